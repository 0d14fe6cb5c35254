"""The problem of static memory planning, and what a plan is: plain data without MLIR.

Every buffer has a size and a lifetime, the half-open interval [lower, upper) of times at which its
bytes are needed. Two buffers *conflict* where their lifetimes meet, or where they are declared to;
buffers that conflict get disjoint ranges of one memory. The memory's size, the *height* of a plan,
is to be small; finding the least one is NP-hard (dynamic storage allocation, problem SR2 of Garey
and Johnson).

What is a view of a buffer, or overwrites a range of it, is part of that buffer. A buffer whose
ranges are not all needed for its whole lifetime has *pieces*, each with a lifetime of its own:

    20 MB, of which 10 MB at 6 MB are overwritten at time 1 and needed until time 3

    offset  0 ......... 6 ......... 16 ....... 20
    pieces    [0, 2)      [0, 4)       [0, 2)         the first 6 MB and the last 4 are given back

Two buffers with pieces conflict only where pieces of them that are needed at one time would meet.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from davinci.units import round_up

Ints = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Piece:
    """A range of a buffer that is needed for a part of its lifetime.

    Attributes:
        begin, end: of the range, in bytes from the beginning of the buffer.
        lower: the first time at which it is needed.
        upper: the first time at which it is needed no more.
    """

    begin: int
    end: int
    lower: int
    upper: int


@dataclass(frozen=True)
class Buffer:
    """Bytes that are needed for some time.

    Attributes:
        size: in bytes, 0 or more.
        lower: the first time at which they are needed.
        upper: the first time at which they are needed no more; above `lower`.
        name: for messages and reports.
        pieces: disjoint ranges with lifetimes of their own, which together have all bytes that are
            needed at any time; none where all bytes are needed all the time. They begin and end at
            multiples of the alignment, or end where the buffer ends.
    """

    size: int
    lower: int
    upper: int
    name: str = ""
    pieces: tuple[Piece, ...] = ()

    @property
    def parts(self) -> tuple[Piece, ...]:
        """The pieces, or the whole buffer as one."""
        return self.pieces or (Piece(0, self.size, self.lower, self.upper),)


@dataclass(frozen=True)
class Problem:
    """Buffers that share one memory.

    Attributes:
        buffers: to be placed.
        align: offsets are multiples of it, in bytes.
        conflicts: pairs of numbers of buffers that may not overlap although their lifetimes do
            not meet, for example because kernels that run at the same time use them.
    """

    buffers: tuple[Buffer, ...]
    align: int = 1
    conflicts: frozenset[tuple[int, int]] = frozenset()

    @functools.cached_property
    def sizes(self) -> Ints:
        """Bytes of each buffer, rounded up to the alignment, so that sums of them are aligned."""
        return np.array([round_up(b.size, self.align) for b in self.buffers], dtype=np.int64)

    @functools.cached_property
    def live(self) -> Truths:
        """Rows are times, columns are buffers: which of them are live then.

        Only times at which a buffer begins to live are rows, and of these only the ones whose
        buffers are not all live at the next one as well: what is live at any other time is live
        at one of these.
        """
        lower = np.array([b.lower for b in self.buffers], dtype=np.int64)
        upper = np.array([b.upper for b in self.buffers], dtype=np.int64)
        times = np.unique(lower)
        live = (lower <= times[:, None]) & (times[:, None] < upper)
        if len(times) < 2:
            return live
        ends_before_next = (live[:-1] & ~live[1:]).any(axis=1)
        kept: Truths = live[np.append(ends_before_next, True)]
        return kept

    @functools.cached_property
    def overlaps(self) -> Truths:
        """Square: which pairs of buffers conflict; a buffer does not conflict with itself."""
        count = len(self.buffers)
        lower = np.array([b.lower for b in self.buffers], dtype=np.int64)
        upper = np.array([b.upper for b in self.buffers], dtype=np.int64)
        found = (lower[:, None] < upper) & (lower < upper[:, None])
        for one, other in self.conflicts:
            found[one, other] = found[other, one] = True
        found[np.arange(count), np.arange(count)] = False
        return found

    @functools.cached_property
    def in_pieces(self) -> bool:
        """True if a buffer has pieces."""
        return any(buffer.pieces for buffer in self.buffers)

    @functools.cached_property
    def whole(self) -> Problem:
        """The same without pieces: each buffer takes all of its bytes for all of its lifetime. Its
        plans are plans of this problem, too."""
        if not self.in_pieces:
            return self
        return replace(self, buffers=tuple(replace(b, pieces=()) for b in self.buffers))

    @functools.cached_property
    def parts(self) -> tuple[tuple[Piece, ...], ...]:
        """The parts of each buffer, those at its end up to a multiple of the alignment."""
        return tuple(
            tuple(replace(part, end=round_up(part.end, self.align)) for part in buffer.parts)
            for buffer in self.buffers
        )

    @functools.cached_property
    def lower_bound(self) -> int:
        """The largest sum of bytes that are live at one time: no plan is lower."""
        if not self.in_pieces:
            return int((self.live @ self.sizes).max(initial=0))
        parts = (part for parts in self.parts for part in parts)
        pieces = tuple(Buffer(p.end - p.begin, p.lower, p.upper) for p in parts)
        return Problem(pieces, self.align).lower_bound


@dataclass(frozen=True)
class Plan:
    """Where every buffer of a problem lies.

    Attributes:
        problem: that it solves.
        offsets: of each buffer, in bytes.
        algorithm: that found it, a name in `ALGORITHMS`.
        seconds: that it took to find it.
        bound: in bytes; no plan is lower. At least the problem's lower bound, more where a search
            has proven that this bound cannot be met.
    """

    problem: Problem
    offsets: tuple[int, ...]
    algorithm: str
    seconds: float = 0.0
    bound: int = field(default=0)

    @functools.cached_property
    def height(self) -> int:
        """Bytes of memory that the plan takes, a multiple of the alignment."""
        ends = np.array(self.offsets, dtype=np.int64) + self.problem.sizes
        return int(ends.max(initial=0))

    @property
    def ratio(self) -> float:
        """The height, in units of the largest sum of live bytes; 1 for a problem without bytes."""
        bound = self.problem.lower_bound
        return self.height / bound if bound else 1.0

    @property
    def optimal(self) -> bool:
        """True if the plan reaches a lower bound, so that no plan is lower."""
        return self.height <= max(self.bound, self.problem.lower_bound)


def pieces_of(uses: Iterable[Piece], size: int, align: int) -> tuple[Piece, ...]:
    """The pieces of a buffer that is used in parts: each byte is needed from the first use that
    touches it to the last one. None where that is the same for all bytes.

    Args:
        uses: ranges that are used at some times; they may overlap.
        size: of the buffer, in bytes.
        align: which pieces begin and end at multiples of, in bytes.

    >>> uses = [Piece(0, 20, 0, 2), Piece(6, 16, 1, 4)]
    >>> for piece in pieces_of(uses, 20, 1):
    ...     print(piece)
    Piece(begin=0, end=6, lower=0, upper=2)
    Piece(begin=6, end=16, lower=0, upper=4)
    Piece(begin=16, end=20, lower=0, upper=2)
    """
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    for use in uses:
        key = use.begin // align * align, min(round_up(use.end, align), size)
        lower, upper = ranges.get(key, (use.lower, use.upper))
        ranges[key] = min(lower, use.lower), max(upper, use.upper)
    bounds = sorted({bound for key in ranges for bound in key})
    found: list[Piece] = []
    for begin, end in itertools.pairwise(bounds):
        inside = [lives for (low, high), lives in ranges.items() if low <= begin and end <= high]
        if not inside:
            continue
        lower, upper = min(low for low, _ in inside), max(high for _, high in inside)
        if found and found[-1] == Piece(found[-1].begin, begin, lower, upper):
            begin = found.pop().begin
        found.append(Piece(begin, end, lower, upper))
    if len(found) == 1 and (found[0].begin, found[0].end) == (0, size):
        return ()
    return tuple(found)


def live_bytes(buffers: Sequence[Buffer], times: int) -> Ints:
    """Bytes of the buffers that are live at each of the times from 0 to `times` - 1."""
    change = np.zeros(times + 1, dtype=np.int64)
    for piece in (piece for buffer in buffers for piece in buffer.parts):
        change[piece.lower] += piece.end - piece.begin
        change[piece.upper] -= piece.end - piece.begin
    sums: Ints = np.cumsum(change[:-1])
    return sums


def faults(problem: Problem, offsets: Sequence[int]) -> list[str]:
    """What is wrong with a plan, checked pair by pair and without any algorithm's data; [] if
    nothing is."""
    found = []
    buffers = problem.buffers
    if len(offsets) != len(buffers):
        return [f"{len(offsets)} offsets for {len(buffers)} buffers"]
    for i, (one, at) in enumerate(zip(buffers, offsets, strict=True)):
        if at < 0 or at % problem.align:
            found.append(f"buffer {one.name or i} at {at}, not a multiple of {problem.align}")
        for j in range(i):
            other, there = buffers[j], offsets[j]
            declared = (i, j) in problem.conflicts or (j, i) in problem.conflicts
            if any(
                (declared or (p.lower < q.upper and q.lower < p.upper))
                and max(at + p.begin, there + q.begin) < min(at + p.end, there + q.end)
                for p in one.parts
                for q in other.parts
            ):
                found.append(
                    f"buffers {other.name or j} at {there} and {one.name or i} at {at} overlap"
                )
    return found
