"""Static placement of buffers with known lifetimes in one memory (interval colouring).

Greedy by decreasing size, each buffer into the smallest gap it fits between the buffers that are
alive at the same time. Deterministic: equal inputs give equal offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass
class Item:
    """A buffer to place: `size` bytes, alive from time `first` to time `last`, both included.

    `offset` is -1 until placed; an item that comes with an offset keeps it.
    """

    size: int
    first: int
    last: int
    offset: int = -1

    @property
    def end(self) -> int:
        return self.offset + self.size


def pack(items: Sequence[Item], align: int) -> int:
    """Gives each item an offset, a multiple of `align`; returns the bytes used in all.

    Items of size 0 are put at offset 0 and conflict with nothing.
    """
    count = len(items)
    first, last, start, end = (np.zeros(count, dtype=np.int64) for _ in range(4))
    placed = 0

    def place(item: Item) -> None:
        nonlocal placed
        first[placed], last[placed] = item.first, item.last
        start[placed], end[placed] = item.offset, item.end
        placed += 1

    waiting = []
    for index, item in enumerate(items):
        if item.size == 0:
            item.offset = max(item.offset, 0)
        elif item.offset >= 0:
            place(item)
        else:
            waiting.append(index)
    waiting.sort(key=lambda i: (-items[i].size, items[i].first, i))
    for index in waiting:
        item = items[index]
        alive = (first[:placed] <= item.last) & (last[:placed] >= item.first)
        item.offset = _best_gap(start[:placed][alive], end[:placed][alive], item.size, align)
        place(item)
    return int(end.max(initial=0))


def _best_gap(
    start: np.ndarray[tuple[int], np.dtype[np.int64]],
    end: np.ndarray[tuple[int], np.dtype[np.int64]],
    size: int,
    align: int,
) -> int:
    """Offset of the smallest gap of at least `size` bytes outside the ranges; else their top."""
    order = np.argsort(start, kind="stable")
    tops = np.maximum.accumulate(np.concatenate(([0], end[order])))
    opens = -(-tops // align) * align  # of an array
    room = start[order] - opens[:-1]
    fits = np.flatnonzero(room >= size)
    if len(fits):
        return int(opens[fits[np.argmin(room[fits])]])
    return int(opens[-1])
