"""Bytes of each on-chip memory that hold a value somebody still needs, over the time of a block.

A 32-byte grain counts from the start of the instruction that writes it to the end of the last one
that reads it before it is written anew. What is written and never read counts while it is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from davinci.isa.core import Space
from davinci.simulator.core.regions import Ints, Region
from davinci.simulator.timing.timeline import TimelineRow
from davinci.units import BLOCK_BYTES as GRAIN_BYTES
from davinci.units import ceil_div

Grains = slice | Ints


def occupancy(
    rows: Sequence[TimelineRow], sizes: dict[Space, int]
) -> dict[Space, list[tuple[int, int]]]:
    """(cycle, bytes) whenever the bytes in use change, for each memory that is written.

    Args:
        rows: of one block.
        sizes: bytes of each on-chip memory.
    """
    memories = {space: _OccupiedMemory(size) for space, size in sizes.items()}
    filled = set()
    for row in sorted(rows, key=lambda row: (row.start, row.index)):
        # What an instruction reads is in use until its end, even if it writes the same place.
        for written in (False, True):
            for space, base, region, is_write in row.accesses:
                if space in memories and is_write == written and not region.empty:
                    filled.update([space] if written else [])
                    grains = memories[space].grains(base, region)
                    memories[space].touch(grains, row.start, row.end, written)
    return {space: memories[space].changes() for space in sorted(filled)}


class _OccupiedMemory:
    def __init__(self, size: int) -> None:
        self._since: Ints = np.full(ceil_div(size, GRAIN_BYTES), -1, dtype=np.int64)
        self._last: Ints = np.zeros_like(self._since)
        self._steps: dict[int, int] = defaultdict(int)
        self._known: dict[tuple[int, int], Ints] = {}

    def grains(self, base: int, region: Region) -> Grains:
        """Returns the numbers of the grains that an access touches."""
        if region.contiguous:
            last = base + region.high - 1
            return slice((base + region.low) // GRAIN_BYTES, last // GRAIN_BYTES + 1)
        first, phase = divmod(base, GRAIN_BYTES)
        found = self._known.get((id(region), phase))
        if found is None:
            starts, lengths = region.runs
            low = (starts + phase) // GRAIN_BYTES
            counts = (starts + phase + lengths - 1) // GRAIN_BYTES - low + 1
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            found = np.unique(np.repeat(low, counts) + within)
            self._known[id(region), phase] = found
        return found + first

    def touch(self, grains: Grains, start: int, end: int, written: bool) -> None:
        """Notes that an instruction reads or writes grains."""
        if not written:
            self._last[grains] = np.maximum(self._last[grains], end)
            return
        self._close(grains, start)
        self._since[grains], self._last[grains] = start, end

    def changes(self) -> list[tuple[int, int]]:
        """Ends the lives of all values, and returns (cycle, bytes in use) at each change."""
        self._close(slice(0, self._since.size), None)
        found, level = [], 0
        for time in sorted(self._steps):
            if self._steps[time]:
                level += self._steps[time]
                found.append((time, level))
        return found

    def _close(self, grains: Grains, now: int | None) -> None:
        """Books the values in `grains`, which are overwritten at `now` or not any more."""
        since, last = self._since[grains], self._last[grains]
        alive = since >= 0
        if not alive.any():
            return
        pairs, counts = np.unique(np.stack([since[alive], last[alive]]), axis=1, return_counts=True)
        for begin, end, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            until = end if now is None else min(end, now)
            if until > begin:
                self._steps[begin] += count * GRAIN_BYTES
                self._steps[until] -= count * GRAIN_BYTES
