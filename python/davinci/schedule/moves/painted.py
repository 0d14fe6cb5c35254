"""Pieces that are too short to be moved beside each other: a number is put everywhere first.

Rows of which some elements are a number, and the rest comes from an array, are filled with the
number as a whole; what is moved goes over it, by the same core, for stores of several cores have no
order. Cores share *windows*: the outer dimensions of what is moved, each window all that lies
between what is moved for one index and for the next:

    number |x x x x|  x x x x  |x x x x|  ..        rows of a padded array, from row to row
           ^ window 0          ^ window 1

Where windows leave something between them or at the ends, that is filled beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.isa.strides import SharedDim
from davinci.machine import Machine
from davinci.schedule.moves.portions import AlikePieces
from davinci.schedule.moves.transfers import TURNS, Runs, Scalars, Transfer, by_scalars, runs_of
from davinci.units import ceil_div

MOST_SHARED = 2
"""Outer dimensions that cores share."""


@dataclass(frozen=True)
class Painted(AlikePieces):
    """Transfers that are stored one over the other, in order, by one core.

    Attributes:
        outer: sizes of the outer dimensions of all of them, each index a piece of work.
        ways: the first fills all of it.
        cycles: of a piece of work by itself.
        further: of each that the same core does behind it.
    """

    outer: tuple[int, ...]
    ways: tuple[Runs | Scalars, ...]
    cycles: float
    further: float

    @property
    def units(self) -> int:
        return math.prod(self.outer)

    def __str__(self) -> str:
        return "painted: " + ", then ".join(map(str, self.ways))


class Painting:
    """Finds the ways to fill a stretch of an array and to store pieces over it.

    Args:
        numbers, over: pieces that are all one number, and those that are moved.
        first, end: of the stretch, which all of them together cover.
    """

    def __init__(
        self,
        numbers: Sequence[Transfer],
        over: Sequence[Transfer],
        first: int,
        end: int,
        machine: Machine,
        cores: int,
    ) -> None:
        self._number, self._over = numbers[0], tuple(over)
        self._first, self._end = first, end
        self._machine, self._cores = machine, cores

    def ways(self) -> Iterator[tuple[Painted | Runs, ...]]:
        """Yields the ways of all: by one core, and by cores that share windows."""
        whole = self._painted(self._over, (), self._first, self._end - self._first)
        if whole is not None:
            yield (whole,)
        for level in range(MOST_SHARED):
            dims = self._shared(level + 1)
            if dims is None:
                return
            size = dims[-1].size
            each = {ceil_div(size, self._cores * turns) for turns in TURNS}
            for count in sorted(each):
                if level == 0 or size % count == 0:
                    yield from self._in_windows(dims, count)

    def _shared(self, count: int) -> tuple[SharedDim, ...] | None:
        """Places in the result of the outer dimensions of what is moved, if all have the same."""
        found = {tuple((d.size, d.strides[1]) for d in t.outer[:count]) for t in self._over}
        if len(found) != 1:
            return None
        (dims,) = found
        return tuple(SharedDim(n, (0, s)) for n, s in dims) if len(dims) == count else None

    def _in_windows(
        self, dims: tuple[SharedDim, ...], each: int
    ) -> Iterator[tuple[Painted | Runs, ...]]:
        """Windows of `each` indices of the last of some dimensions. What is left of the indices of
        a single one, and the last window where it would reach beyond the end, is painted by one
        core."""
        *outer, last = dims
        windows, step = last.size // each, last.strides[1] * each
        place = min(t.place for t in self._over)
        beyond = place + _span((*outer, SharedDim(windows, (0, step)))) > self._end
        if beyond and not outer and windows > 1:
            windows -= 1
        walked = (*outer, SharedDim(windows, (0, step)))
        left = windows * each < last.size
        rest = [t.from_index(windows * each) for t in self._over if left]
        over = [_grouped(t, len(outer), windows, each) for t in self._over]
        reach = max(t.inside(len(dims)).end for t in over)
        stop = min([self._end, *(t.place for t in rest)])
        for begin in self._begins(place, reach - step, stop - _span(walked)):
            end = begin + _span(walked)
            ways: list[Painted | Runs | None] = [self._painted(over, walked, begin, step)]
            fills = self._filled(walked, begin, end if rest else self._end)
            ways += fills if fills is not None else [None]
            if rest:
                ways.append(self._painted(rest, (), end, self._end - end))
            found = [way for way in ways if way is not None]
            if len(found) == len(ways):
                yield tuple(found)

    def _begins(self, place: int, least: int, most: int) -> list[int]:
        """Where the first window may begin: it holds all that is moved, and what lies in front of
        it and behind the last one is empty or whole blocks."""
        block = self._machine.vector.block_bytes // self._number.itemsize
        least = max(least, self._first)
        tried = {least, place, most, self._first + block, most - block}
        return sorted(begin for begin in tried if least <= begin <= min(place, most))

    def _filled(self, walked: tuple[SharedDim, ...], begin: int, end: int) -> list[Runs] | None:
        """What is filled beside windows: in front of them, between, and behind up to `end`; None if
        some of it is less than a block."""
        last = begin + _span(walked)
        gaps: list[tuple[tuple[SharedDim, ...], int, int]] = [
            ((), self._first, begin - self._first),
            ((), last, end - last),
        ]
        for level in range(len(walked) - 1):
            inside, dim = _span(walked[level + 1 :]), walked[level]
            dims = (*walked[:level], replace(dim, size=dim.size - 1))
            gaps.append((dims, begin + inside, dim.strides[1] - inside))
        if any(length < 0 for _, _, length in gaps):
            return None
        found = [
            runs_of(self._ground(dims, place, length), self._machine, self._cores)
            for dims, place, length in gaps
            if length and all(dim.size for dim in dims)
        ]
        fitting = [way for way in found if way is not None]
        return fitting if len(fitting) == len(found) else None

    def _ground(self, dims: tuple[SharedDim, ...], place: int, length: int) -> Transfer:
        """The number at `length` places, for each index of some dimensions."""
        number = self._number
        dims = (*dims, SharedDim(length, (0, 1)))
        return Transfer(number.source, number.offset, place, dims, number.itemsize)

    def _painted(
        self, over: Sequence[Transfer], walked: tuple[SharedDim, ...], begin: int, length: int
    ) -> Painted | None:
        """One piece of work for each index of some dimensions: `length` places filled, then what is
        moved; None if less than a block is filled."""
        share, ways = 1 + len(over), list[Runs | Scalars]()
        ground = self._ground(walked, begin, length)
        for transfer in (ground, *over):
            runs = runs_of(transfer, self._machine, 1, len(walked), share)
            ways.append(runs or by_scalars(transfer, self._machine, len(walked)))
        if isinstance(ways[0], Scalars):
            return None
        sizes = tuple(dim.size for dim in walked)
        further = sum(way.further * way.units for way in ways)
        return Painted(sizes, tuple(ways), sum(w.time(w.units) for w in ways), further)


def _grouped(transfer: Transfer, level: int, groups: int, each: int) -> Transfer:
    """A transfer whose dimension `level` counts groups of `each` of its indices, which lie in
    another one behind it; what is no whole group is left out."""
    dim = transfer.dims[level]
    strides = tuple(stride * each for stride in dim.strides)
    inner = (SharedDim(each, dim.strides),) if each > 1 else ()
    parted = (SharedDim(groups, strides), *inner)
    return replace(transfer, dims=(*transfer.dims[:level], *parted, *transfer.dims[level + 1 :]))


def _span(walked: Sequence[SharedDim]) -> int:
    """Places from the begin of the first window to the end of the last one."""
    *outer, last = walked
    return sum((dim.size - 1) * dim.strides[1] for dim in outer) + last.size * last.strides[1]
