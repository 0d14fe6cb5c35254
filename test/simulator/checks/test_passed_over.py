"""Streams whose beginning was checked before: the verdict of a device that knows nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device
from davinci.simulator.checks.checker import Checker
from davinci.simulator.core.coupled import finding
from fuzz.random_order import SPACE_BYTES, random_program

GM_BYTES = 1 << 16
PART = 3
"""Records that a core is handed at a time."""


def fresh() -> tuple[Device, int]:
    """A device, and the address of some numbers in its memory."""
    device = Device(machines.load("ascend910"), GM_BYTES)
    gm = device.allocate(8 * SPACE_BYTES)
    device.write(gm, np.arange(8 * SPACE_BYTES, dtype=np.int64).astype(np.uint8))
    return device, gm


def verdict(device: Device, gm: int, rows: Any) -> str:
    """The message of the fault, or what is in global memory."""

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        for first in range(0, len(rows), PART):
            core.consume(rows[first : first + PART])

    try:
        device.launch("test", program, [])
    except DeviceFault as fault:
        return str(fault)
    return device.read(gm, np.uint8, (8 * SPACE_BYTES,)).tobytes().hex()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instructions were checked in global memory only."""
    calls = [0]
    plain = Checker.access_gm

    def access_gm(self: Checker, *arguments: Any) -> None:
        calls[0] += 1
        plain(self, *arguments)

    monkeypatch.setattr(Checker, "access_gm", access_gm)
    return calls


def elsewhere(rng: Any, asm: Any, gm: int) -> Any:
    """The records of a program with other addresses in global memory."""
    rows = asm.array()
    for name, row in zip(asm.names, rows, strict=True):
        word = {"copy_gm_to_ubuf": 2, "copy_ubuf_to_gm": 1}.get(name)
        if word is not None:
            row[word] += 32 * int(rng.integers(0, 6 * SPACE_BYTES // 32))
    return rows


def test_other_addresses_and_other_endings(new_asm: Callable[[], Any], counted: list[int]) -> None:
    rng = np.random.default_rng(5)
    faults = ran = 0
    for _ in range(50):
        asm = new_asm()
        known, gm = fresh()
        random_program(rng, asm, gm)
        verdict(known, gm, asm.array())
        for _ in range(3):
            rows = elsewhere(rng, asm, gm)
            if rng.integers(3):
                # Another ending: a record is left out, or one that follows comes twice.
                at = int(rng.integers(PART, max(PART + 1, len(rows) - 1)))
                rest = rows[at + 1 :]
                rows = np.concatenate([rows[:at], rest[: int(rng.integers(2))], rest])
            known.write(gm, np.zeros(8 * SPACE_BYTES, np.uint8))
            other, place = fresh()
            other.write(place, np.zeros(8 * SPACE_BYTES, np.uint8))
            found = verdict(known, gm, rows)
            assert found == verdict(other, place, rows)
            faults, ran = faults + ("race" in found), ran + ("kernel" not in found)
    assert faults > 20 and ran > 20 and counted[0] > 100


def copies(asm: Any, source: int, target: int) -> Any:
    asm.emit("copy_gm_to_ubuf", dst=0, src=source, n_burst=1, len_burst=2)
    asm.flag(Pipe.MTE2, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=target, src=0, n_burst=1, len_burst=2)
    asm.emit("copy_gm_to_ubuf", dst=64, src=source, n_burst=1, len_burst=2)
    return asm.array()


def test_memory_that_nobody_wrote(new_asm: Callable[[], Any], counted: list[int]) -> None:
    device, gm = fresh()
    empty = device.allocate(64)
    verdict(device, gm, copies(new_asm(), gm, gm + 64))
    found = verdict(device, gm, copies(new_asm(), empty, gm + 64))
    assert "#0 copy_gm_to_ubuf" in found and "nobody wrote" in found and counted == [1]


def test_a_race_in_global_memory_says_what_is_missing(
    new_asm: Callable[[], Any], counted: list[int]
) -> None:
    device, gm = fresh()
    verdict(device, gm, copies(new_asm(), gm, gm + 64))
    found = verdict(device, gm, copies(new_asm(), gm, gm))
    assert counted == [3]
    assert "#4 copy_gm_to_ubuf" in found and "#3 copy_ubuf_to_gm" in found
    assert "put set_flag(PIPE_MTE3, PIPE_MTE2, id) after the first" in found


def test_what_the_scalar_unit_stores_is_looked_at_again(
    new_asm: Callable[[], Any], counted: list[int]
) -> None:
    """Its record has the bounds of what it stored, not all addresses."""
    device, gm = fresh()
    for _ in range(2):
        asm = new_asm()
        asm.emit("scalar_access", space=6, stores=1, store_low=64, store_high=68)
        verdict(device, gm, np.concatenate([asm.array(), copies(new_asm(), gm, gm + 64)]))
    assert counted == [0]


def test_operations_without_accesses_are_passed_over(
    new_asm: Callable[[], Any], counted: list[int]
) -> None:
    """A phase of a launch begins with some: its core looks for the kernel of its block."""
    device, gm = fresh()
    for place in (gm, gm + 128):
        verdict(device, gm, np.concatenate([finding(0), copies(new_asm(), place, place + 64)]))
    assert counted == [3]


COPIES = 4
"""In a row, 64 bytes each."""


def in_a_row(asm: Any, source: int, target: int, step: int = 64) -> Any:
    """Copies from `source` on, after one that writes `target`."""
    asm.emit("copy_gm_to_ubuf", dst=0, src=source, n_burst=1, len_burst=2)
    asm.flag(Pipe.MTE2, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=target, src=0, n_burst=1, len_burst=2)
    for i in range(COPIES):
        place = 64 + 64 * i
        asm.emit("copy_gm_to_ubuf", dst=place, src=source + step * i, n_burst=1, len_burst=2)
    asm.flag(Pipe.MTE2, Pipe.MTE3, 1)
    for i in range(COPIES):
        place = source + 1024 + 64 * i
        asm.emit("copy_ubuf_to_gm", dst=place, src=64 + 64 * i, n_burst=1, len_burst=2)
    return asm.array()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of copies that were checked as one whether they were legal."""
    found: list[bool] = []
    plain = Checker.run_gm

    def run_gm(self: Checker, *arguments: Any) -> bool:
        found.append(plain(self, *arguments))
        return found[-1]

    monkeypatch.setattr(Checker, "run_gm", run_gm)
    return found


def whole(device: Device, rows: Any, blocks: int = 1) -> str:
    """The message of the fault of a program in one part, if there is one."""

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        core.consume(rows(block) if callable(rows) else rows)

    try:
        device.launch("test", program, [], blocks)
    except DeviceFault as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize("step", [64, 96, 32, 0])
def test_copies_in_a_row_are_one(new_asm: Callable[[], Any], runs: list[bool], step: int) -> None:
    """Wherever they lie, as long as they are evenly apart there."""
    device, gm = fresh()
    assert not whole(device, in_a_row(new_asm(), gm, gm + 2048))
    assert not whole(device, in_a_row(new_asm(), gm + 32, gm + 2048, step))
    assert runs == ([True, True] if step else [True])
    data = device.read(gm, np.uint8, (2048,))
    for i in range(COPIES):
        first = 32 + step * i
        copied = data[32 + 1024 + 64 * i :][:64]
        assert np.array_equal(copied, data[first : first + 64])


def test_one_of_them_races(new_asm: Callable[[], Any], runs: list[bool]) -> None:
    device, gm = fresh()
    assert not whole(device, in_a_row(new_asm(), gm, gm + 2048))
    found = whole(device, in_a_row(new_asm(), gm, gm + 128))
    assert runs == [False] and "#6 copy_gm_to_ubuf" in found and "#3 copy_ubuf_to_gm" in found


def test_one_of_them_reads_what_nobody_wrote(new_asm: Callable[[], Any], runs: list[bool]) -> None:
    device, gm = fresh()
    assert not whole(device, in_a_row(new_asm(), gm, gm + 2048))
    end = gm + 8 * SPACE_BYTES - 64
    found = whole(device, in_a_row(new_asm(), end, gm))
    assert runs == [False] and "#5 copy_gm_to_ubuf" in found and "nobody wrote" in found


def test_another_block_touches_what_one_of_them_writes(
    new_asm: Callable[[], Any], runs: list[bool]
) -> None:
    device, gm = fresh()
    assert not whole(device, in_a_row(new_asm(), gm, gm + 2048))
    found = whole(device, lambda b: in_a_row(new_asm(), gm + 64 * b, gm + 2048 + 64 * b), 2)
    assert runs == [True] * 4
    assert "block 1 writes" in found and "which block 0 writes" in found
    assert "(#10 copy_ubuf_to_gm" in found and "(#11 copy_ubuf_to_gm" in found
