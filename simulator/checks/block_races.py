"""Races between the blocks of one launch: nothing orders them, so no byte of GM that one block
writes may be touched by another, of the same kernel or of one that shares the launch.

What the scalar unit did is known as bounds only and takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from davinci.errors import DeviceFault
from davinci.simulator.checks.races import GmAccess, Party, members
from davinci.simulator.core.core import Core
from davinci.simulator.core.regions import Ints, union

Ranges = tuple[Ints, Ints]
"""Starts and ends of ranges of bytes: sorted, disjoint, maximal."""


Touched = tuple[Ranges, Ranges]
"""Bytes of global memory that are read, and those that are written."""


@dataclass(frozen=True)
class Conflict:
    """A byte of GM that block `writer` writes and block `other` touches, which it `does`."""

    byte: int
    writer: int
    other: int
    does: str


def conflict(blocks: Mapping[int, Touched]) -> Conflict | None:
    """What two blocks may not do both, if there is any.

    Args:
        blocks: by number, what each reads and writes.
    """
    starts, ends, owners = _joined({block: writes for block, (_, writes) in blocks.items()})
    order = np.argsort(starts, kind="stable")
    starts, ends, owners = starts[order], ends[order], owners[order]
    if starts.size > 1:
        reach = np.maximum.accumulate(ends)
        hit = np.flatnonzero(reach[:-1] > starts[1:])
        if hit.size:
            later = int(hit[0]) + 1
            before = int(np.flatnonzero(ends[:later] > starts[later])[0])
            byte = int(starts[later])
            return Conflict(byte, int(owners[before]), int(owners[later]), "writes")
    for block, ((low, high), _) in blocks.items():
        # The written ranges are disjoint: those that a read meets are neighbours.
        foreign = np.concatenate([[0], np.cumsum(owners != block)])
        first = np.searchsorted(ends, low, side="right")
        last = np.searchsorted(starts, high, side="left")
        hit = np.flatnonzero((last > first) & (foreign[last] > foreign[first]))
        if hit.size:
            i = int(hit[0])
            met = [j for j in range(int(first[i]), int(last[i])) if owners[j] != block]
            return Conflict(int(max(low[i], starts[met[0]])), int(owners[met[0]]), block, "reads")
    return None


def touched(core: Core) -> Touched:
    """What the program that ran last on a core that checks did to global memory."""
    return merged(core.gm_reads), merged(core.gm_writes)


class BlockRaces:
    """Collects what each block did to global memory.

    Args:
        kernel: its name, for messages; of several kernels their names.
        named: what messages call a block of that number.
    """

    def __init__(
        self, kernel: str, named: Callable[[int], str] = lambda block: f"block {block}"
    ) -> None:
        self._kernel, self._named = kernel, named
        self._logs: dict[int, tuple[list[GmAccess], list[GmAccess]]] = {}
        self._describe: dict[int, Callable[[Party], str]] = {}

    def add(self, block: int, core: Core) -> None:
        """Takes over the accesses of a program of that block that has ended."""
        reads, writes = self._logs.setdefault(block, ([], []))
        reads += core.gm_reads
        writes += core.gm_writes
        self._describe[block] = core.describer()

    def check(self) -> None:
        """Compares all blocks.

        Raises:
            DeviceFault: two blocks write the same byte, or one reads what another writes.
        """
        logs = self._logs.items()
        found = conflict({b: (merged(reads), merged(writes)) for b, (reads, writes) in logs})
        if found is not None:
            raise self._fault(found)

    def _fault(self, found: Conflict) -> DeviceFault:
        byte = found.byte
        first = self._touching(found.writer, 1, byte)
        second = self._touching(found.other, 1 if found.does == "writes" else 0, byte)
        return DeviceFault(
            f"race between blocks: {self._named(found.other)} {found.does} GM byte {byte:#x} "
            f"({second}), which {self._named(found.writer)} writes ({first})",
            where=f"kernel {self._kernel}",
            expected="blocks that write different bytes and read none that another block writes",
            hint="nothing orders the blocks of one launch: change the split, or use two launches",
        )

    def _touching(self, block: int, written: int, byte: int) -> str:
        for access in self._logs[block][written]:
            for region, address, party in members(access.region, access.address, access.party):
                starts, lengths = region.runs
                starts = starts + address
                if ((starts <= byte) & (byte < starts + lengths)).any():
                    return self._describe[block](party)
        return "unknown instruction"


def merged(log: list[GmAccess]) -> Ranges:
    """The bytes that a log touches."""
    return union((access.region, access.address) for access in log)


def _joined(blocks: dict[int, Ranges]) -> tuple[Ints, Ints, Ints]:
    starts = np.concatenate([low for low, _ in blocks.values()])
    ends = np.concatenate([high for _, high in blocks.values()])
    owners = np.concatenate([np.full(low.size, b) for b, (low, _) in blocks.items()])
    return starts, ends, owners
