"""Programs that issue the same as one before them are executed without a time line of their own:
nothing that they leave, take or do wrong may tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device
from davinci.simulator.core.launch import JoinedKernels, KernelCall
from davinci.simulator.core.twins import Twins
from davinci.simulator.split.launch import SplitLaunch
from davinci.simulator.timing.profile import LaunchProfile

BLOCKS = 130
"""The number of programs, which are three rounds of the 910B's 48 vector cores."""

ROW = 1024
"""Bytes of a row, two lines of the memory."""

Emit = Callable[[Any, int, int], None]
"""Emits a program: assembler, address of the buffer, number of the block."""


def copied(asm: Any, source: int, target: int, nbytes: int = ROW) -> None:
    """Twice the floats at `source`, to `target`."""
    asm.emit("set_vector_mask", low=(1 << 64) - 1)
    asm.emit("copy_gm_to_ubuf", dst=0, src=source, n_burst=1, len_burst=nbytes // 32)
    asm.flag(Pipe.MTE2, Pipe.V)
    blocks = {f"{name}_rep_stride": 8 for name in ("dst", "src0", "src1")}
    blocks |= {f"{name}_blk_stride": 1 for name in ("dst", "src0", "src1")}
    asm.emit("vadd.f32", dst=4096, src0=0, src1=0, repeat=nbytes // 256, **blocks)
    asm.flag(Pipe.V, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=target, src=4096, n_burst=1, len_burst=nbytes // 32)


def rows(asm: Any, gm: int, block: int) -> None:
    copied(asm, gm + block * ROW, gm + (BLOCKS + block) * ROW)


def rows_of_numbers(asm: Any, gm: int, block: int) -> None:
    """Each of a number that the scalar unit hands over."""
    asm.emit("set_vector_mask", low=(1 << 64) - 1)
    asm.emit("vector_dup.s32", dst=0, repeat=4, dst_rep_stride=8, value=3 * block)
    asm.flag(Pipe.V, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=gm + (BLOCKS + block) * ROW, src=0, n_burst=1, len_burst=32)


def rows_in_place(asm: Any, gm: int, block: int) -> None:
    copied(asm, gm + block * ROW, gm + block * ROW)


def rows_of_part_lines(asm: Any, gm: int, block: int) -> None:
    """Rows of 768 bytes, so that every other row begins inside a line."""
    copied(asm, gm + block * 768, gm + BLOCKS * ROW + block * 768, 768)


def rows_turned_round(asm: Any, gm: int, block: int) -> None:
    """What is read and what is written come nearer to each other, and then go apart again."""
    copied(asm, gm + block * ROW, gm + (2 * BLOCKS - 1 - block) * ROW)


def rows_of_two_kinds(asm: Any, gm: int, block: int) -> None:
    rows(asm, gm, block)
    for _ in range(block % 3):
        asm.emit("pipe_barrier", pipe=Pipe.ALL)


def rows_twice(asm: Any, gm: int, block: int) -> None:
    """The second half is another row for some blocks: distances in a program differ."""
    copied(asm, gm + block * ROW, gm + (BLOCKS + block) * ROW)
    asm.flag(Pipe.MTE3, Pipe.MTE2)
    copied(asm, gm + block // 2 * ROW, gm + (2 * BLOCKS + block) * ROW)


def nothing_for_some(asm: Any, gm: int, block: int) -> None:
    if block % 5:
        rows(asm, gm, block)


def launched(
    new_asm: Callable[[], Any], emit: Emit, blocks: int = BLOCKS, checks: bool = True
) -> tuple[np.ndarray[Any, Any], LaunchProfile]:
    """The bytes of the buffer after a launch, and the profile of that launch."""
    device = Device(machine.load("ascend910b"), 1 << 24, checks=checks)
    gm = device.allocate(4 * BLOCKS * ROW)
    x = np.random.default_rng(0).random(BLOCKS * ROW // 4).astype(np.float32)
    device.write(gm, x)

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        emit(asm, gm, block)
        if len(records := asm.array()):
            core.consume(records)

    call = KernelCall("test", {"AIV": program}, [], blocks, (), alone=False, crosses=False)
    ((profile,),) = device.run([JoinedKernels((call,))], [[0]]) or [[]]
    return device._gm.data[gm:][: 4 * BLOCKS * ROW].copy(), profile


@pytest.fixture
def twins_run(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks that were executed as twins."""
    found: list[int] = []
    run = Twins.run

    def counted(self: Twins, blocks: Sequence[int]) -> Any:
        for block, twin in run(self, blocks):
            if twin is not None:
                found.append(block)
            yield block, twin

    monkeypatch.setattr(Twins, "run", counted)
    return found


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No twins are looked for."""
    monkeypatch.setattr(SplitLaunch, "_looked_for", lambda launch, checks: None)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(
    ("emit", "alone"),
    [
        (rows, 1),
        (rows_of_numbers, 1),
        (rows_in_place, 1),
        (rows_of_part_lines, 2),
        (rows_turned_round, 1),
        (rows_of_two_kinds, 3),
        (rows_twice, 1),
        (nothing_for_some, 1 + BLOCKS // 5),
    ],
)
def test_twins_leave_and_take_what_others_do(
    new_asm: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    twins_run: list[int],
    emit: Emit,
    alone: int,
    checks: bool,
) -> None:
    found, profile = launched(new_asm, emit, checks=checks)
    assert len(twins_run) == BLOCKS - alone
    one_by_one(monkeypatch)
    expected, known = launched(new_asm, emit, checks=checks)
    np.testing.assert_array_equal(found, expected)
    for field in fields(LaunchProfile):
        if field.compare:
            assert getattr(profile, field.name) == getattr(known, field.name), field.name


def reads_behind_its_array(asm: Any, gm: int, block: int) -> None:
    copied(asm, gm + (block + BLOCKS * (block == 77)) * ROW, gm + (2 * BLOCKS + block) * ROW)


def stores_behind_memory(asm: Any, gm: int, block: int) -> None:
    copied(asm, gm + block * ROW, (1 << 24) * (block == 77) + gm + (BLOCKS + block) * ROW)


def stores_to_one_place(asm: Any, gm: int, block: int) -> None:
    copied(asm, gm + block * ROW, gm + (BLOCKS + block - (block == 77)) * ROW)


def reads_what_another_writes(asm: Any, gm: int, block: int) -> None:
    copied(asm, gm + (block - 50 * (block == 77)) * ROW, gm + block * ROW)


def races_with_itself(asm: Any, gm: int, block: int) -> None:
    """In one block, two copies of two pipes meet between which nothing orders."""
    copied(asm, gm + block * ROW, gm + (BLOCKS + block) * ROW)
    place = BLOCKS + block if block == 77 else block
    asm.emit("copy_gm_to_ubuf", dst=16384, src=gm + place * ROW, n_burst=1, len_burst=32)


def fails_in_its_program(asm: Any, gm: int, block: int) -> None:
    if block == 77:
        raise DeviceFault("integer division by zero in the scalar program", where="test")
    reads_behind_its_array(asm, gm, block + (block == 76))


@pytest.mark.parametrize(
    "emit",
    [
        reads_behind_its_array,
        stores_behind_memory,
        stores_to_one_place,
        reads_what_another_writes,
        races_with_itself,
        fails_in_its_program,
    ],
)
def test_faults_of_twins_read_as_those_of_others(
    new_asm: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, twins_run: list[int], emit: Emit
) -> None:
    with pytest.raises(DeviceFault) as found:
        launched(new_asm, emit)
    assert twins_run
    one_by_one(monkeypatch)
    with pytest.raises(DeviceFault) as expected:
        launched(new_asm, emit)
    assert str(found.value) == str(expected.value)


def test_long_and_unlike_programs_are_not_looked_at_for_long(
    new_asm: Callable[[], Any], twins_run: list[int]
) -> None:
    def unlike(asm: Any, gm: int, block: int) -> None:
        for _ in range(block):
            asm.emit("pipe_barrier", pipe=Pipe.ALL)
        rows(asm, gm, block)

    launched(new_asm, unlike)
    assert not twins_run
