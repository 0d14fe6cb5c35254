"""A bare machine for the tests of the records: memories, registers, and one instruction at a time.

It knows nothing but the contract of a record, so it also shows that the contract is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.isa import INSTRUCTIONS, Access, Instruction, Registers, Space

MEMORY_BYTES = 1 << 17


class Bench:
    """Memories of `MEMORY_BYTES` each, filled with `seed`'s random bytes."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.memory = {space: rng.integers(0, 256, MEMORY_BYTES, dtype=np.uint8) for space in Space}
        self.registers = Registers()

    def view(self, access: Access) -> Any:
        """The bytes of an access as an array of its shape, without a copy."""
        assert access.address + access.span_bytes <= MEMORY_BYTES
        return np.ndarray(
            access.shape,
            access.dtype,
            self.memory[access.space].data,
            access.address,
            access.strides,
        )

    def put(self, space: Space, address: int, array: Any) -> None:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.memory[space][address : address + data.size] = data

    def get(self, space: Space, address: int, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.ndarray(shape, np.dtype(dtype), self.memory[space].data, address)

    def run(self, mnemonic: str, **values: int) -> None:
        """Encodes, decodes and executes one instruction."""
        record = INSTRUCTIONS[mnemonic]
        decoded = record.decode(record.encode(values))
        assert decoded == {**record.defaults, **values}
        execute(record, decoded, self)


def execute(record: Instruction, values: dict[str, int], bench: Bench) -> None:
    """Reads the sources, computes, writes the results where their mask allows."""
    reads, writes = record.accesses(values, bench.registers)
    arrays = [bench.view(a).copy() for a in reads]
    found = record.finds(values, bench.registers, arrays)
    arrays += [bench.view(a).copy() for a in found]
    with np.errstate(all="ignore"):
        results = record.compute(values, bench.registers, arrays)
    for access, result in zip(writes, results, strict=True):
        where = True if access.mask is None else access.mask
        np.copyto(bench.view(access), result, where=where, casting="no")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def strides(*names: str, blocks: int = 8, **given: int) -> dict[str, int]:
    """Stride fields of contiguous operands; `given` overrides them."""
    fields = {f"{name}_blk_stride": 1 for name in names}
    fields |= {f"{name}_rep_stride": blocks for name in names}
    return fields | given


@pytest.fixture(scope="session")
def make_bench() -> type[Bench]:
    """For tests that draw examples: a function-scoped fixture would be shared by all of them."""
    return Bench
