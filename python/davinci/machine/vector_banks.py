"""The banks of UB, and how long a vector instruction keeps waiting for them.

UB is made of single-ported banks in groups: the block of 32 bytes at an address is in group
`address / 32 % groups` of row bank `address / (bytes of all groups' banks)`. In one cycle a group
serves one read and one write, and these only in different banks (docs/hardware.md b2).

A repeat reads its blocks in as many cycles as one group has of them, passes the unit, and is
written `depth` cycles after its last read. Results wait in a queue. Where the write at its head and
the read of a cycle need the same bank, they take turns, the write first. Results of fewer blocks
than are read need their banks in half of the cycles at most, and find them free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from davinci.machine import Vector
from davinci.units import BLOCK_BYTES

Banks = frozenset[tuple[int, int]]
"""Banks that are accessed in one cycle: (group, bank of the group)."""


@dataclass(frozen=True)
class BankLayout:
    """How UB is divided: number of bank groups, and blocks of one row of banks over all groups."""

    groups: int
    row_blocks: int

    @staticmethod
    def of(vector: Vector) -> BankLayout:
        return BankLayout(vector.bank_groups, vector.bank_groups * vector.bank_bytes // BLOCK_BYTES)


class OperandBlocks(NamedTuple):
    """The blocks of one operand.

    Attributes:
        block: number of its first block in UB.
        per_repeat: blocks of one repeat.
        block_stride, repeat_stride: in blocks.
    """

    block: int
    per_repeat: int
    block_stride: int
    repeat_stride: int

    def of_repeat(self, repeat: int) -> range | tuple[int]:
        """Numbers of the blocks; one that is named several times is accessed once."""
        first = self.block + repeat * self.repeat_stride
        if not self.block_stride:
            return (first,)
        return range(first, first + self.per_repeat * self.block_stride, self.block_stride)


def bank_bits(address: int, span_bytes: int, layout: BankLayout) -> int:
    """The part of an operand's address that says which banks it uses, as a number of blocks.

    For an operand that lies in one bank of each group its group and bank; the row matters only
    where it reaches into the next one.
    """
    block = address // BLOCK_BYTES
    bank_bytes = layout.row_blocks * BLOCK_BYTES
    bank = address // bank_bytes
    if (address + span_bytes - 1) // bank_bytes > bank:
        return block
    return block % layout.groups + bank * layout.row_blocks


@lru_cache(maxsize=65536)
def repeats_cycles(
    reads: tuple[OperandBlocks, ...],
    writes: tuple[OperandBlocks, ...],
    repeats: int,
    each: int,
    depth: int,
    layout: BankLayout,
) -> int:
    """Cycles that an instruction takes besides those before its first read and its depth.

    Args:
        reads, writes: the operands.
        repeats: how many.
        each: cycles of a repeat in the unit.
        depth: cycles from the last read of a repeat to its first write.
        layout: of UB.
    """
    results: deque[tuple[int, Banks]] = deque()
    narrow = max((s.per_repeat for s in writes), default=0) < max(
        (s.per_repeat for s in reads), default=0
    )
    now = start = 0
    each_reads, each_writes = (_repeats(streams, repeats, layout) for streams in (reads, writes))
    for reading, writing in zip(each_reads, each_writes, strict=True):
        # Between repeats nothing is read: what is ready is written.
        while now < start:
            if results and results[0][0] <= now:
                results.popleft()
            now += 1
        for banks in reading:
            if results and results[0][0] <= now and not banks.isdisjoint(results.popleft()[1]):
                # The write has had its turn, now the read has its own; another may be written too.
                now += 1
                if results and results[0][0] <= now and banks.isdisjoint(results[0][1]):
                    results.popleft()
            now += 1
        if not narrow:
            results.extend((now - 1 + depth + i, banks) for i, banks in enumerate(writing))
        start = max(now, start + each, start + len(writing))
    end = now
    for ready, _ in results:
        end = max(end, ready) + 1
    return max(start, end - depth)


@lru_cache(maxsize=4096)
def _repeats(
    streams: tuple[OperandBlocks, ...], repeats: int, layout: BankLayout
) -> tuple[list[Banks], ...]:
    """The banks accessed in each cycle of each repeat."""
    blocks = zip(*(map(stream.of_repeat, range(repeats)) for stream in streams), strict=True)
    return tuple(_beats(operands, layout) for operands in blocks) if streams else ([],) * repeats


@lru_cache(maxsize=65536)
def _beats(operands: tuple[Sequence[int], ...], layout: BankLayout) -> list[Banks]:
    """The banks accessed in each cycle: as many cycles as the most loaded group has blocks.

    An operand of which a block has to wait for another operand is accessed after it as a whole.
    """
    groups = layout.groups
    cycles: list[set[tuple[int, int]]] = []
    taken: dict[int, int] = {}
    for blocks in operands:
        start = max((taken.get(block % groups, 0) for block in blocks), default=0)
        level: dict[int, int] = {}
        for block in blocks:
            group = block % groups
            cycle = level.get(group, start)
            level[group] = cycle + 1
            while len(cycles) <= cycle:
                cycles.append(set())
            cycles[cycle].add((group, block // layout.row_blocks))
        taken |= level
    return [frozenset(banks) for banks in cycles]
