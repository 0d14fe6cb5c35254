"""Sets of bytes of a buffer: runs of equal length at equal distances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from davinci.units import ceil_div

MOST_RUNS = 64
"""Runs that are taken out of a longer one, one by one; of more only their absence is forgotten."""


@dataclass(frozen=True)
class StridedRegion:
    """`count` runs of `run` bytes, the first at `start`, each `stride` bytes after the one before.

    A single run has stride 0.
    """

    start: int
    count: int
    stride: int
    run: int

    @property
    def end(self) -> int:
        return self.start + (self.count - 1) * self.stride + self.run

    def part(self, first: int, count: int) -> StridedRegion:
        """`count` of the runs, from number `first` on."""
        stride = self.stride if count > 1 else 0
        return StridedRegion(self.start + first * self.stride, count, stride, self.run)


def span(start: int, size: int) -> StridedRegion:
    return StridedRegion(start, 1, 0, size)


def without(regions: Iterable[StridedRegion], taken: StridedRegion) -> list[StridedRegion]:
    """What is left of `regions`, or a little more where the shapes do not fit each other."""
    return [rest for region in regions for rest in _without(region, taken)]


def _without(region: StridedRegion, taken: StridedRegion) -> list[StridedRegion]:
    if taken.end <= region.start or region.end <= taken.start:
        return [region]
    if taken.count == 1:
        return _without_run(region, taken.start, taken.end)
    if region.count == 1:
        return [region] if taken.count > MOST_RUNS else _between(region, taken)
    return _without_alike(region, taken)


def _without_run(region: StridedRegion, start: int, end: int) -> list[StridedRegion]:
    """Without the bytes from `start` to `end`."""
    if region.count == 1:
        parts = [(region.start, min(start, region.end)), (max(end, region.start), region.end)]
        return [span(low, high - low) for low, high in parts if low < high]
    first = max(0, ceil_div(start - region.start, region.stride))
    last = min(region.count, (end - region.run - region.start) // region.stride + 1)
    return _parts(region, first, last) if first < last else [region]


def _between(region: StridedRegion, taken: StridedRegion) -> list[StridedRegion]:
    """What of a run lies before, between and behind others."""
    found, low = [], region.start
    first = max(0, (low - taken.start - taken.run) // taken.stride + 1)
    end = min(taken.count, ceil_div(region.end - taken.start, taken.stride))
    for number in range(first, end):  # others end before the run, or begin behind it
        start = taken.start + number * taken.stride
        if low < start:
            found.append(span(low, start - low))
        low = max(low, start + taken.run)
    if low < region.end:
        found.append(span(low, region.end - low))
    return found


def _without_alike(region: StridedRegion, taken: StridedRegion) -> list[StridedRegion]:
    """Without runs of another region of the same stride, if they cover those of this one."""
    shift, offset = divmod(region.start - taken.start, taken.stride)
    if region.stride != taken.stride or offset + region.run > taken.run:
        return [region]
    first, last = max(0, -shift), min(region.count, taken.count - shift)
    return _parts(region, first, last) if first < last else [region]


def _parts(region: StridedRegion, first: int, last: int) -> list[StridedRegion]:
    """Without the runs from number `first` to before `last`."""
    found = []
    if first:
        found.append(region.part(0, first))
    if last < region.count:
        found.append(region.part(last, region.count - last))
    return found
