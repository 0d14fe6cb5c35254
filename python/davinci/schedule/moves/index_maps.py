"""Where the elements of a value come from, if operators only moved them: pieces.

A piece is a box of a value, with steps, whose elements lie at equal distances in one array, or are
one number. Operators are applied to the pieces of their operands, so a chain of them is again a set
of pieces, however long it is:

    transpose     the dimensions of each piece change places
    slice         each piece is cut, and its positions are counted anew
    pad           positions are moved apart; what is left is pieces of the padding
    concat        the pieces of all operands, each moved to its place
    broadcast     new positions that come from one place: a stride of 0
    reshape       dimensions are joined, and split where others end; a piece is cut where it must be

A matrix in fractals is its array [n/c][m/16][16][c] transposed, reshaped and sliced, so a change of
layout is nothing new.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.operators.movement import runs
from davinci.schedule.graph import Scalar
from davinci.schedule.moves.extents import Extent, Found, clipped, gaps, joined, split, stepped
from davinci.schedule.vector.space import NoSpace

MOST_PIECES = 64
"""Pieces that a value has at most: each is code of its own."""


@dataclass(frozen=True)
class ValueBox:
    """A box of a value.

    Attributes:
        source: the number of the array that its elements come from; or what all of them are.
        offset: of the first element in the array.
        dims: positions along each dimension of the value.
    """

    source: int | Scalar
    offset: int
    dims: tuple[Extent, ...]

    @property
    def array(self) -> int:
        """The number of the array that it comes from."""
        assert isinstance(self.source, int), "a number"
        return self.source

    @property
    def count(self) -> int:
        return math.prod(dim.count for dim in self.dims)

    @property
    def starts(self) -> tuple[int, ...]:
        return tuple(dim.start for dim in self.dims)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(dim.count for dim in self.dims)

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(dim.step for dim in self.dims)

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(dim.stride for dim in self.dims)


Pieces = tuple[ValueBox, ...]


def whole(source: int | Scalar, shape: Sequence[int], strides: Sequence[int]) -> Pieces:
    """The piece that reads all of a value, which is a strided array or one number."""
    if 0 in shape:
        return ()
    dims = (Extent(0).within(size, 1, stride) for size, stride in zip(shape, strides, strict=True))
    return (ValueBox(source, 0, tuple(dims)),)


def repeated(number: Scalar, shape: Sequence[int]) -> Pieces:
    return whole(number, shape, (0,) * len(shape))


def limited(pieces: Iterable[ValueBox]) -> Pieces:
    """The pieces, as long as they are not too many.

    Raises:
        NoSpace: they are too many.
    """
    found = []
    for piece in pieces:
        found.append(piece)
        if len(found) > MOST_PIECES:
            raise NoSpace(f"more than {MOST_PIECES} pieces")
    return tuple(found)


def along(pieces: Pieces, dim: int, change: Callable[[Extent], Found]) -> Pieces:
    """Parts of all pieces along a dimension."""
    return limited(
        ValueBox(
            piece.source,
            piece.offset + behind,
            (*piece.dims[:dim], part, *piece.dims[dim + 1 :]),
        )
        for piece in pieces
        for part, behind in change(piece.dims[dim])
    )


def transposed(pieces: Pieces, permutation: Sequence[int]) -> Pieces:
    return tuple(replace(p, dims=tuple(p.dims[i] for i in permutation)) for p in pieces)


def sliced(
    pieces: Pieces, starts: Sequence[int], limits: Sequence[int], steps: Sequence[int]
) -> Pieces:
    """Positions starts[i], starts[i] + steps[i], .. below limits[i]."""
    for dim, (start, limit, step) in enumerate(zip(starts, limits, steps, strict=True)):

        def change(
            extent: Extent, start: int = start, limit: int = limit, step: int = step
        ) -> Found:
            for inside, behind in clipped(extent, start, limit):
                for part, more in stepped(inside.moved(-start), step):
                    yield part, behind + more

        pieces = along(pieces, dim, change)
    return pieces


def padded(
    pieces: Pieces,
    shape: Sequence[int],
    low: Sequence[int],
    interior: Sequence[int],
    result: Sequence[int],
    padding: Pieces,
) -> Pieces:
    """Position p at low + p * (interior + 1), and pieces of the padding everywhere else.

    Args:
        shape, result: before and after.
        padding: a value without dimensions.
    """
    if 0 in result:
        return ()
    found: list[ValueBox] = []
    outside: list[Extent] = []  # of the dimensions before, what the operand covers
    for dim, (size, first, between) in enumerate(zip(shape, low, interior, strict=True)):
        step = between + 1

        def change(extent: Extent, first: int = first, step: int = step, dim: int = dim) -> Found:
            return clipped(extent.moved(first, step), 0, result[dim])

        pieces = along(pieces, dim, change)
        rest = [Extent(0).within(n, 1, 0) for n in result[dim + 1 :]]
        for gap in gaps(size, first, step, result[dim]):
            found += (ValueBox(p.source, p.offset, (*outside, gap, *rest)) for p in padding)
        covered = next(clipped(Extent(first).within(size, step, 0), 0, result[dim]), None)
        if covered is None or size == 0:
            break
        outside.append(covered[0])
    return limited((*pieces, *found))


def broadcast(
    pieces: Pieces, shape: Sequence[int], dims: Sequence[int], result: Sequence[int]
) -> Pieces:
    """Dimension i becomes dims[i]; everything else repeats."""
    if 0 in result:
        return ()
    found = []
    for piece in pieces:
        spread = [Extent(0).within(size, 1, 0) for size in result]
        for size, dim, extent in zip(shape, dims, piece.dims, strict=True):
            if size == result[dim]:
                spread[dim] = extent
        found.append(replace(piece, dims=tuple(spread)))
    return tuple(found)


def reshaped(pieces: Pieces, shape: Sequence[int], result: Sequence[int]) -> Pieces:
    """The same elements in rows of another shape.

    Raises:
        NoSpace: pieces would have to be cut too often.
    """
    if tuple(shape) == tuple(result) or 0 in shape:
        return pieces
    groups = list(runs(tuple(shape), tuple(result)))
    return limited(piece for p in pieces for piece in _reshaped(p, groups))


def _reshaped(
    piece: ValueBox, groups: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Iterator[ValueBox]:
    """The boxes of a piece after a reshape, whose dimensions are given in `groups` of source and
    result sizes with the same product.

    Raises:
        NoSpace: they are more than `MOST_PIECES`.
    """
    found = [replace(piece, dims=())]
    first = 0
    for sources, results in groups:
        dims = piece.dims[first : first + len(sources)]
        first += len(sources)
        extent = Extent(0)
        for size, dim in zip(sources, dims, strict=True):
            extent = joined(extent, dim, size)
        parts = list(_split_in(extent, results))
        if len(parts) * len(found) > MOST_PIECES:
            raise NoSpace(f"more than {MOST_PIECES} pieces")
        found = [
            replace(p, offset=p.offset + behind, dims=(*p.dims, *split_dims))
            for p in found
            for split_dims, behind in parts
        ]
    yield from found


def _split_in(extent: Extent, sizes: Sequence[int]) -> Iterator[tuple[tuple[Extent, ...], int]]:
    """The ways to write an extent of a flat dimension as extents of dimensions of these sizes, with
    the elements of the source in front of each."""
    if not sizes:
        yield (), 0
        return
    for high, low, behind in split(extent, math.prod(sizes[1:])):
        for rest, more in _split_in(low, sizes[1:]):
            yield (high, *rest), behind + more


def cut(pieces: Pieces, shape: Sequence[int], dim: int, size: int) -> Pieces:
    """The same with the dimension `dim` as two, the inner one of `size`."""
    result = (*shape[:dim], shape[dim] // size, size, *shape[dim + 1 :])
    return reshaped(pieces, shape, result)
