"""Races between the blocks of one launch: nothing orders them, so no byte of GM that one block
writes may be touched by another.

What the scalar unit did is known as bounds only and takes no part.
"""

from __future__ import annotations

import numpy as np

from davinci.errors import DeviceFault
from davinci.simulator.checks.races import GmAccess, members
from davinci.simulator.core.core import Core
from davinci.simulator.core.regions import Ints, union


class BlockRaces:
    """Collects what each block did to global memory."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._logs: dict[int, tuple[list[GmAccess], list[GmAccess]]] = {}

    def add(self, block: int, core: Core) -> None:
        """Takes over the accesses of a program of that block that has ended."""
        reads, writes = self._logs.setdefault(block, ([], []))
        reads += core.gm_reads
        writes += core.gm_writes
        self._core = core

    def check(self) -> None:
        """Compares all blocks.

        Raises:
            DeviceFault: two blocks write the same byte, or one reads what another writes.
        """
        starts, ends, owners = _joined({b: merged(writes) for b, (_, writes) in self._logs.items()})
        order = np.argsort(starts, kind="stable")
        starts, ends, owners = starts[order], ends[order], owners[order]
        if starts.size > 1:
            reach = np.maximum.accumulate(ends)
            hit = np.flatnonzero(reach[:-1] > starts[1:])
            if hit.size:
                later = int(hit[0]) + 1
                before = int(np.flatnonzero(ends[:later] > starts[later])[0])
                byte = int(starts[later])
                raise self._fault(byte, int(owners[before]), int(owners[later]), "writes")
        for block, (reads, _) in self._logs.items():
            low, high = merged(reads)
            # The written ranges are disjoint: those that a read meets are neighbours.
            foreign = np.concatenate([[0], np.cumsum(owners != block)])
            first = np.searchsorted(ends, low, side="right")
            last = np.searchsorted(starts, high, side="left")
            hit = np.flatnonzero((last > first) & (foreign[last] > foreign[first]))
            if hit.size:
                i = int(hit[0])
                met = [j for j in range(int(first[i]), int(last[i])) if owners[j] != block]
                byte = int(max(low[i], starts[met[0]]))
                raise self._fault(byte, int(owners[met[0]]), block, "reads")

    def _fault(self, byte: int, writer: int, other: int, does: str) -> DeviceFault:
        first = self._touching(self._logs[writer][1], byte)
        log = self._logs[other][1 if does == "writes" else 0]
        second = self._touching(log, byte)
        return DeviceFault(
            f"race between blocks: block {other} {does} GM byte {byte:#x} ({second}), "
            f"which block {writer} writes ({first})",
            where=f"kernel {self._kernel}",
            expected="blocks that write different bytes and read none that another block writes",
            hint="nothing orders the blocks of one launch: change the split, or use two launches",
        )

    def _touching(self, log: list[GmAccess], byte: int) -> str:
        for access in log:
            for region, address, party in members(access.region, access.address, access.party):
                starts, lengths = region.runs
                starts = starts + address
                if ((starts <= byte) & (byte < starts + lengths)).any():
                    return self._core.describe(party)
        return "unknown instruction"


def merged(log: list[GmAccess]) -> tuple[Ints, Ints]:
    """Starts and ends of the ranges of bytes that a log touches: sorted, disjoint, maximal."""
    return union((access.region, access.address) for access in log)


def _joined(blocks: dict[int, tuple[Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    starts = np.concatenate([low for low, _ in blocks.values()])
    ends = np.concatenate([high for _, high in blocks.values()])
    owners = np.concatenate([np.full(low.size, b) for b, (low, _) in blocks.items()])
    return starts, ends, owners
