"""Damaged streams and machine files: faults and messages come out, nothing else.

`benchmarks/proofs/fuzz_streams.py` tries thousands of each.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci import zoo
from davinci.errors import InputError
from davinci.isa import INSTRUCTIONS
from davinci.simulator import Device
from fuzz.damaged_streams import (
    EDGES,
    Hang,
    add,
    at_the_limits,
    damaged,
    damaged_team,
    launch,
    random_words,
    watched,
)
from fuzz.interleaving_fuzz import SHAPES
from fuzz.random_cores import CoresPool, seats
from fuzz.recorded_kernels import record as record_kernels

CORES = [
    ("ascend310", "AICORE"),
    ("ascend910", "AICORE"),
    ("ascend910b", "AIC"),
    ("ascend910b", "AIV"),
]
ODD: list[Any] = [0, 1, -1, 3, 1 << 40, 1 << 62, 0.5, -0.5, float("nan"), float("inf"), "", "x"]
ODD += [True, None, [], [1], {}, {"x": 1}]


@pytest.mark.parametrize(("machine", "kind"), CORES)
def test_random_words(machine: str, kind: str) -> None:
    device = Device(machines.load(machine), 1 << 16)
    rng = np.random.default_rng(10)
    counts: Counter[str] = Counter()
    for _ in range(400):
        add(counts, launch(device, {kind: random_words(rng, int(rng.integers(1, 3)), EDGES)}))
    assert counts["ran"] and counts["unknown opcode"] and counts["misaligned address of"]


@pytest.mark.parametrize(("machine", "kind"), CORES)
def test_every_instruction_at_its_limits(machine: str, kind: str) -> None:
    device = Device(machines.load(machine), 1 << 16)
    rng = np.random.default_rng(13)
    ran: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for record in INSTRUCTIONS.values():
        for _ in range(3):
            blocks = int(rng.integers(1, 3))
            fault = launch(device, {kind: at_the_limits(rng, record)}, blocks)
            add(counts, fault)
            ran[record.mnemonic] += not fault
    assert sum(count > 0 for count in ran.values()) > 5


def test_damaged_kernels() -> None:
    rng = np.random.default_rng(17)
    kernels = record_kernels(zoo.build("mlp,batch=16,features=32,hidden=48,layers=2"), cores=1)
    counts: Counter[str] = Counter()
    for i in range(200):
        kernel = kernels[i % len(kernels)]
        add(counts, launch(kernel.device, {"AICORE": damaged(rng, kernel.streams[0])}))
    assert counts["ran"] > 20 and counts["race"] and counts["deadlock"]


def test_damaged_programs_for_several_cores() -> None:
    rng = np.random.default_rng(29)
    pool = CoresPool(rng, tries=16)
    counts: Counter[str] = Counter()
    threads = threading.active_count()
    for i in range(60):
        add(counts, damaged_team(rng, pool, list(seats(*SHAPES[i % len(SHAPES)]))))
    assert counts["ran"] and counts["deadlock"]
    assert threading.active_count() == threads


def test_a_launch_that_hangs_would_be_noticed() -> None:
    with pytest.raises(Hang), watched(1):
        while True:
            pass


def leaves(table: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all values of nested tables."""
    found = []
    for key, value in table.items():
        inner = (*path, key)
        found += leaves(value, inner) if isinstance(value, dict) and value else [inner]
    return found


@pytest.mark.parametrize("machine", machines.names())
def test_machine_files_with_odd_values(machine: str) -> None:
    """One value of a machine file is odd: refused with a message, or the machine works."""
    path = machines.DIRECTORY / f"{machine}.toml"
    data = machines.read(path)
    rng = np.random.default_rng(19)
    refused = 0
    for keys in leaves(data):
        for odd in rng.choice(np.array(ODD, dtype=object), 4, replace=False):
            changed = copy.deepcopy(data)
            table = changed
            for key in keys[:-1]:
                table = table[key]
            table[keys[-1]] = odd
            try:
                machines.parse(changed, "odd.toml")
            except InputError as error:
                assert "odd.toml" in str(error)
                refused += 1
    assert refused > 100


def test_machine_files_with_damaged_text(tmp_path: Any) -> None:
    text = (machines.DIRECTORY / "ascend910.toml").read_bytes()
    rng = np.random.default_rng(23)
    for i in range(150):
        damaged = bytearray(text)
        for _ in range(int(rng.integers(1, 6))):
            at = int(rng.integers(len(damaged)))
            damaged[at : at + int(rng.integers(3))] = rng.bytes(int(rng.integers(3)))
        path = tmp_path / f"{i}.toml"
        path.write_bytes(damaged if i % 5 else rng.bytes(200))
        try:
            machines.load(str(path))
        except InputError as error:
            assert path.name in str(error)
