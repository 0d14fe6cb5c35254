"""Damaged streams and machine files: faults and messages come out, nothing else."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import DeviceFault, InputError
from davinci.isa import INSTRUCTIONS, header
from davinci.simulator import Device
from random_programs import Pool, Writer

CORES = [
    ("ascend310", "AICORE"),
    ("ascend910", "AICORE"),
    ("ascend910b", "AIC"),
    ("ascend910b", "AIV"),
]
EDGES = [0, 1, 31, 32, 512, 1 << 17, (1 << 18) - 32, 1 << 31, 1 << 44, (1 << 63) - 1, (1 << 64) - 1]
ODD: list[Any] = [0, 1, -1, 3, 1 << 40, 1 << 62, 0.5, -0.5, float("nan"), float("inf"), "", "x"]
ODD += [True, None, [], [1], {}, {"x": 1}]


def launch(device: Device, kind: str, words: Any, blocks: int) -> str:
    """Runs words on every block; returns the fault, or ""."""
    array = np.array(words, dtype=np.uint64).reshape(-1, 8)
    try:
        device.launch("k", {kind: lambda a, b, n, core: core.consume(array)}, [], blocks)
    except DeviceFault as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize(("machine", "kind"), CORES)
def test_every_instruction_at_its_limits(machine: str, kind: str) -> None:
    """Each record with fields and addresses at, near and beyond their limits."""
    device = Device(machines.load(machine), 1 << 16)
    rng = np.random.default_rng(13)
    ran = set()
    for record in INSTRUCTIONS.values():
        for _ in range(12):
            row = [header(record.opcode, int(rng.integers(1 << 16)), int(rng.integers(1 << 32)))]
            row += [EDGES[i] for i in rng.integers(len(EDGES), size=len(record.operands))]
            words = [0] * record.words
            for f in record.fields:
                choices = [f.minimum, f.minimum + 1, f.limit, (1 << f.width) - 1]
                words[f.word] |= (choices[rng.integers(4)] & (1 << f.width) - 1) << f.lo
            row += words
            if not launch(device, kind, row + [0] * (8 - len(row)), int(rng.integers(1, 3))):
                ran.add(record.mnemonic)
    assert len(ran) > 5


@pytest.mark.parametrize(("machine", "kind"), CORES)
def test_programs_with_flipped_bits(machine: str, kind: str) -> None:
    rng = np.random.default_rng(17)
    pool = Pool(machine, kind, rng, tries=16)
    outcomes = set()
    for _ in range(60):
        rows = Writer(pool, rng, 6, scalar=True).rows
        words = np.array(rows, dtype=np.uint64)
        for _ in range(int(rng.integers(1, 4))):
            i, j = rng.integers(words.shape[0]), rng.integers(words.shape[1])
            words[i, j] ^= np.uint64(1) << np.uint64(rng.integers(64))
        fault = pool.simulate([words.tolist()])
        outcomes.add(bool(fault))
        assert "Traceback" not in fault
    assert outcomes == {True, False}


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
    data = machines.tomllib.loads(path.read_text(encoding="utf-8"))
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
