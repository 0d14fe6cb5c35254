"""The banks of UB, and how long a vector instruction keeps waiting for them.

UB is made of single-ported banks in groups: the block of 32 bytes at an address is in group
`address / 32 % groups` of row bank `address / (bytes of all groups' banks)`. In one cycle a group
serves one read and one write, and these only in different banks (docs/hardware.md b2).

A repeat reads its blocks, passes the unit and is written `depth` cycles after its reading began. So
the write of one repeat meets the reading of a later one: reading waits, which shifts what comes
after, until the next write that meets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

BLOCK_BYTES = 32
BANK_BYTES = 4096


@dataclass(frozen=True)
class Stream:
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

    def of_repeat(self, repeat: int) -> set[int]:
        """Numbers of the blocks; one that is named several times is accessed once."""
        first = self.block + repeat * self.repeat_stride
        return {first + i * self.block_stride for i in range(self.per_repeat)}


def bank_bits(address: int, groups: int) -> int:
    """The part of an address that says which banks are used, as a number of blocks: its group, and
    its bank in steps of all groups' banks."""
    block = address // BLOCK_BYTES
    bank = address // (groups * BANK_BYTES)
    return block % groups + bank * groups * (BANK_BYTES // BLOCK_BYTES)


@lru_cache(maxsize=65536)
def repeats_cycles(
    reads: tuple[Stream, ...],
    writes: tuple[Stream, ...],
    repeats: int,
    each: int,
    depth: int,
    groups: int,
) -> int:
    """Cycles from the first read of the first repeat until the last repeat's are over.

    Args:
        reads, writes: the operands.
        repeats: how many.
        each: cycles of a repeat in the unit.
        depth: cycles from the start of reading to writing.
        groups: bank groups.
    """
    per_bank = BANK_BYTES // BLOCK_BYTES * groups
    pending: dict[int, frozenset[tuple[int, int]]] = {}
    now = 0
    for repeat in range(repeats):
        beats = _beats([s.of_repeat(repeat) for s in reads], groups, per_bank)
        writing = _beats([s.of_repeat(repeat) for s in writes], groups, per_bank)
        begin = now
        for banks in beats:
            while not banks.isdisjoint(pending.pop(now, ())):
                now += 1
            now += 1
        for i, banks in enumerate(writing):
            pending[begin + depth + i] = banks
        now = max(now, begin + each, begin + len(writing))
    return now


def _beats(
    operands: Sequence[set[int]], groups: int, per_bank: int
) -> list[frozenset[tuple[int, int]]]:
    """The banks accessed in each cycle: as many cycles as the most loaded group has blocks."""
    cycles: list[set[tuple[int, int]]] = []
    taken: dict[int, int] = {}
    for blocks in operands:
        start = max((taken.get(block % groups, 0) for block in blocks), default=0)
        level: dict[int, int] = {}
        for block in sorted(blocks):
            group = block % groups
            cycle = level.get(group, start)
            level[group] = cycle + 1
            while len(cycles) <= cycle:
                cycles.append(set())
            cycles[cycle].add((group, block // per_bank))
        taken |= level
    return [frozenset(banks) for banks in cycles]
