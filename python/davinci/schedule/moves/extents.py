"""Positions along one dimension of a piece, and where their elements lie in an array.

They are a start and nested walks:

    start + step0 * i0 + step1 * i1          a step is longer than all that lies inside
    offset + stride0 * i0 + stride1 * i1     the element of the array
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.units import ceil_div


@dataclass(frozen=True)
class Walk:
    """`count` positions, `step` apart, whose elements lie `stride` apart in the array."""

    count: int
    step: int
    stride: int


@dataclass(frozen=True)
class Extent:
    """The positions of a piece along one dimension; walks outermost first."""

    start: int
    walks: tuple[Walk, ...] = ()

    @property
    def reach(self) -> int:
        """From the first position to the last."""
        return sum((walk.count - 1) * walk.step for walk in self.walks)

    @property
    def count(self) -> int:
        return math.prod(walk.count for walk in self.walks)

    @property
    def simple(self) -> bool:
        """Whether its positions are equally far apart."""
        return len(self.walks) < 2

    @property
    def step(self) -> int:
        """Places from one position to the next along the dimension, where the extent is simple."""
        return self.walks[0].step if self.walks else 1

    @property
    def stride(self) -> int:
        """Elements of the array from one position to the next, where the extent is simple."""
        return self.walks[0].stride if self.walks else 0

    def covers(self, size: int) -> bool:
        """Whether it has all of a dimension of `size` positions."""
        return self.simple and self.count == size and self.step == 1

    def moved(self, start: int, step: int = 1) -> Extent:
        """Every position p at start + step * p."""
        walks = (replace(walk, step=walk.step * step) for walk in self.walks)
        return Extent(start + self.start * step, tuple(walks))

    def within(self, count: int, step: int, stride: int) -> Extent:
        """This extent repeated `count` times, in as few walks as describe that."""
        if count == 1:
            return self
        if self.walks:
            first, *rest = self.walks
            if (step, stride) == (first.step * first.count, first.stride * first.count):
                whole_walk = Walk(count * first.count, first.step, first.stride)
                return Extent(self.start, (whole_walk, *rest))
        return Extent(self.start, (Walk(count, step, stride), *self.walks))


Found = Iterator[tuple[Extent, int]]
"""Parts of an extent, and how far behind its first element theirs lies."""


def clipped(extent: Extent, low: int, high: int) -> Found:
    """The positions from `low` to below `high`."""
    first, last = extent.start, extent.start + extent.reach
    if last < low or first >= high:
        return
    if low <= first and last < high:
        yield extent, 0
        return
    outer, inner = extent.walks[0], Extent(first, extent.walks[1:])
    reach = inner.reach
    begin = max(0, ceil_div(low - first, outer.step))
    end = min(outer.count, (high - 1 - reach - first) // outer.step + 1)
    touched = range(
        max(0, ceil_div(low - reach - first, outer.step)),
        min(outer.count, (high - 1 - first) // outer.step + 1),
    )
    for i in touched:
        if begin <= i < end:
            if i == begin:
                there = inner.moved(i * outer.step)
                yield there.within(end - begin, outer.step, outer.stride), i * outer.stride
            continue
        for part, behind in clipped(inner.moved(i * outer.step), low, high):
            yield part, behind + i * outer.stride


def stepped(extent: Extent, step: int) -> Found:
    """The positions that are multiples of `step`, counted in such."""
    if not extent.walks:
        if extent.start % step == 0:
            yield Extent(extent.start // step), 0
        return
    outer, inner = extent.walks[0], Extent(extent.start, extent.walks[1:])
    period = step // math.gcd(step, outer.step)
    for i in range(min(period, outer.count)):
        times = ceil_div(outer.count - i, period)
        for part, behind in stepped(inner.moved(i * outer.step), step):
            again = part.within(times, outer.step * period // step, outer.stride * period)
            yield again, behind + i * outer.stride


def split(extent: Extent, size: int) -> Iterator[tuple[Extent, Extent, int]]:
    """Positions as `size` times one and another below `size`, and how far behind they lie."""
    row, place = divmod(extent.start, size)
    if place + extent.reach < size:
        yield Extent(row), Extent(place, extent.walks), 0
        return
    outer, inner = extent.walks[0], Extent(extent.start, extent.walks[1:])
    if outer.step % size == 0:
        for high, low, behind in split(inner, size):
            yield high.within(outer.count, outer.step // size, outer.stride), low, behind
        return
    each = size // outer.step
    if size % outer.step == 0 and place % outer.step + inner.reach < outer.step:
        first = -(place // outer.step) % each  # of the first whole row
        first = min(first, outer.count)
        whole_rows = (outer.count - first) // each
        low = Extent(place % outer.step, inner.walks)
        if first:
            yield (
                Extent(row),
                low.moved(place - place % outer.step).within(first, outer.step, outer.stride),
                0,
            )
            row += 1
        if whole_rows:
            high = Extent(row).within(whole_rows, 1, outer.stride * each)
            yield high, low.within(each, outer.step, outer.stride), first * outer.stride
        done = first + whole_rows * each
        if done < outer.count:
            last = low.within(outer.count - done, outer.step, outer.stride)
            yield Extent(row + whole_rows), last, done * outer.stride
        return
    i = 0
    while i < outer.count:
        start = extent.start + i * outer.step
        room = size - start % size - 1 - inner.reach
        behind = i * outer.stride
        if room < 0:  # what lies inside goes over the end of a row
            for high, low, more in split(inner.moved(i * outer.step), size):
                yield high, low, behind + more
            i += 1
            continue
        together = min(outer.count - i, room // outer.step + 1)
        low = Extent(start % size, inner.walks).within(together, outer.step, outer.stride)
        yield Extent(start // size), low, behind
        i += together


def joined(outer: Extent, inner: Extent, size: int) -> Extent:
    """Two dimensions as one, of the inner one's `size`."""
    found = inner.moved(outer.start * size)
    for walk in reversed(outer.walks):
        found = found.within(walk.count, walk.step * size, walk.stride)
    return found


def gaps(size: int, low: int, step: int, total: int) -> Iterator[Extent]:
    """The positions below `total` that none of `size` from `low` on, `step` apart, are at."""
    inside = [p for p in (low, low + (size - 1) * step) if size]
    covered = next(clipped(Extent(low).within(size, step, 0), 0, total), None) if size else None
    if covered is None or not inside:
        yield Extent(0).within(total, 1, 0)
        return
    first, last = covered[0].start, covered[0].start + covered[0].reach
    if first:
        yield Extent(0).within(first, 1, 0)
    if step > 1 and last > first:
        between = Extent(first + 1).within(step - 1, 1, 0)
        yield between.within((last - first) // step, step, 0)
    if last + 1 < total:
        yield Extent(last + 1).within(total - last - 1, 1, 0)
