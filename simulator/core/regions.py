"""Which bytes an access touches, apart from its address: exact and cheap to compare.

Two accesses of one instruction in a loop differ only in their address, so the geometry is made
once and shared. Most comparisons end at the outer bounds or at a remainder; the byte-exact one
is made for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import gcd

import numpy as np
import numpy.typing as npt

from davinci.isa.core import Access, Space

Ints = npt.NDArray[np.int64]
"""Offsets, addresses, and numbers of lines, grains or instructions."""


class Region:
    """The bytes of an access relative to its address.

    Attributes:
        shape, strides, dtype, mask: as in the access; a mask of all ones is dropped.
        dims: (count, stride) of its runs, outermost first, contiguous dimensions merged.
        run_bytes: length of a run.
        low, high: first byte and one past the last.
        byte_shape, byte_strides: the runs as an array of bytes.
        contiguous: it is one run.
    """

    def __init__(self, access: Access) -> None:
        self.shape, self.strides, self.dtype = access.shape, access.strides, access.dtype
        self.mask = access.mask
        if self.mask is not None and bool(np.all(self.mask)):
            self.mask = None
        self.run_bytes = access.run * access.dtype.itemsize
        dims = [d for d in access.dims if d[0] != 1]
        while dims and dims[-1][1] == self.run_bytes:
            self.run_bytes *= dims.pop()[0]
        self.dims = tuple(dims)
        self.empty = 0 in self.shape or (self.mask is not None and not self.mask.any())
        self.low, self.high = 0, access.span_bytes
        if self.mask is not None and not self.empty:
            starts, lengths = self.runs
            self.low, self.high = int(starts[0]), int((starts + lengths).max())
        self.contiguous = not self.dims and self.mask is None
        self.byte_shape = (*(count for count, _ in self.dims), self.run_bytes)
        self.byte_strides = (*(stride for _, stride in self.dims), 1)
        self.size_bytes = 0 if self.empty else access.size_bytes
        if self.mask is not None and not self.empty:
            self.size_bytes = int(self.runs[1].sum())
        self._gcd = gcd(*(stride for _, stride in dims)) if self.mask is None else 0

    @cached_property
    def runs(self) -> tuple[Ints, Ints]:
        """Start and length of every contiguous run, sorted by start."""
        if self.mask is None:
            starts = np.zeros(1, dtype=np.int64)
            for count, stride in self.dims:
                starts = (starts[:, None] + np.arange(count) * stride).reshape(-1)
            starts = np.unique(starts)
            return starts, np.full(starts.shape, self.run_bytes)
        # A mask that says the same of all of a run is one of runs.
        by_runs = self.mask.shape[-1] == 1 and self.mask.ndim == len(self.shape)
        dims = len(self.shape) - by_runs
        size = self.dtype.itemsize * (self.shape[-1] if by_runs else 1)
        mask = self.mask[..., 0] if by_runs else self.mask
        offsets = np.zeros(1, dtype=np.int64)
        for count, stride in zip(self.shape[:dims], self.strides[:dims], strict=True):
            offsets = (offsets[:, None] + np.arange(count) * stride).reshape(-1)
        touched = np.unique(offsets[np.broadcast_to(mask, self.shape[:dims]).reshape(-1)])
        breaks = np.flatnonzero(np.diff(touched) != size) + 1
        first = np.concatenate([[0], breaks]).astype(np.int64)
        last = np.concatenate([breaks, [touched.size]]).astype(np.int64) - 1
        return touched[first], touched[last] - touched[first] + size

    @cached_property
    def disjoint(self) -> bool:
        """Whether it names no byte twice."""
        starts, lengths = self.runs
        return self.size_bytes == int(lengths.sum()) and bool(
            (starts[1:] >= starts[:-1] + lengths[:-1]).all()
        )

    def overlaps(self, address: int, other: Region, other_address: int) -> tuple[int, int] | None:
        """First common range of bytes of two regions at their addresses, or None."""
        low = max(address + self.low, other_address + other.low)
        high = min(address + self.high, other_address + other.high)
        if low >= high or self.empty or other.empty:
            return None
        if self.contiguous and other.contiguous:
            return low, high
        if self.mask is None and other.mask is None and self._apart(address, other, other_address):
            return None
        return first_common(*self._absolute(address), *other._absolute(other_address))

    def _apart(self, address: int, other: Region, other_address: int) -> bool:
        """Whether remainders by the common divisor of all strides already keep them apart."""
        step = gcd(self._gcd, other._gcd)
        if step == 0:
            return False
        distance = (other_address - address) % step
        return self.run_bytes <= distance and distance + other.run_bytes <= step

    def _absolute(self, address: int) -> tuple[Ints, Ints]:
        starts, lengths = self.runs
        return starts + address, starts + lengths + address


class Repeated(Region):
    """The same region several times, at a constant distance.

    Attributes:
        one: the region, without a mask.
        count: how often.
        step: bytes from one to the next.
    """

    def __init__(self, space: Space, one: Region, count: int, step: int) -> None:
        dims = zip(one.shape[:-1], one.strides[:-1], strict=True)
        super().__init__(Access(space, 0, ((count, step), *dims), one.shape[-1], one.dtype))
        self.one, self.count, self.step = one, count, step


def first_common(
    starts: Ints, ends: Ints, other_starts: Ints, other_ends: Ints
) -> tuple[int, int] | None:
    """First common range of two lists of ranges, each sorted by start; ranges may overlap."""
    reach = np.maximum.accumulate(other_ends)
    last = np.searchsorted(other_starts, ends, side="left") - 1
    hit = np.flatnonzero((last >= 0) & (reach[last] > starts))
    if not hit.size:
        return None
    i = int(hit[0])
    near = np.flatnonzero((other_starts < ends[i]) & (other_ends > starts[i]))
    j = int(near[0])
    return int(max(starts[i], other_starts[j])), int(min(ends[i], other_ends[j]))


def union(places: Iterable[tuple[Region, int]]) -> tuple[Ints, Ints]:
    """Starts and ends of the ranges of bytes that regions at addresses have: sorted, disjoint,
    maximal."""
    by_region: dict[int, tuple[Region, list[int]]] = {}
    some = [place for place in places if not place[0].empty]
    if not some or (len(some) == 1 and some[0][0].contiguous):
        ends = [(address + region.low, address + region.high) for region, address in some]
        both = np.array(ends, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]
    for region, address in some:
        by_region.setdefault(id(region), (region, []))[1].append(address)
    lows: list[Ints] = [np.zeros(0, dtype=np.int64)]
    highs: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for region, addresses in by_region.values():
        starts, lengths = region.runs
        low = (np.array(sorted(set(addresses)))[:, None] + starts).reshape(-1)
        lows.append(low)
        highs.append((low.reshape(-1, starts.size) + lengths).reshape(-1))
    low, high = np.concatenate(lows), np.concatenate(highs)
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order]) if low.size else high
    if not low.size:
        return low, reach
    # A range starts where nothing before reaches; it ends where the next one starts.
    first = np.concatenate([[True], low[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return low[first], reach[last]
