"""Pieces in a shape of few dimensions along which positions are equally far apart."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.schedule.moves.extents import joined
from davinci.schedule.moves.index_maps import Pieces, ValueBox, cut
from davinci.schedule.vector.space import NoSpace


def simple_boxes(pieces: Pieces, shape: Sequence[int]) -> tuple[Pieces, tuple[int, ...]] | None:
    """The pieces in a shape of few dimensions along each of which their positions are equally far
    apart, and that shape; None if there is none."""
    try:
        pieces, shape = split_until_simple(pieces, tuple(shape))
    except NoSpace:
        return None
    place = len(shape) - 1
    while place > 0:
        merged = joined_dims(pieces, shape, place)
        if merged is not None:
            pieces, shape = merged
        place -= 1
    kept = [i for i, n in enumerate(shape) if n > 1]
    sizes = tuple(shape[i] for i in kept) or (1,)
    if not kept:
        return pieces, (1,) * len(shape)
    return tuple(
        ValueBox(p.source, p.offset, tuple(p.dims[i] for i in kept)) for p in pieces
    ), sizes


def split_until_simple(pieces: Pieces, shape: tuple[int, ...]) -> tuple[Pieces, tuple[int, ...]]:
    """Dimensions along which a piece has nested walks are split at their steps.

    Raises:
        NoSpace: that cannot be.
    """
    for dim in reversed(range(len(shape))):
        while True:
            steps = [p.dims[dim].walks[-2].step for p in pieces if not p.dims[dim].simple]
            if not steps:
                break
            step = min(steps)
            if step <= 1 or shape[dim] % step or step >= shape[dim]:
                raise NoSpace("positions that are not equally far apart")
            pieces = cut(pieces, shape, dim, step)
            shape = (*shape[:dim], shape[dim] // step, step, *shape[dim + 1 :])
            if not all(p.dims[dim + 1].simple for p in pieces):
                raise NoSpace("positions that are not equally far apart")
    return pieces, shape


def joined_dims(
    pieces: Pieces, shape: tuple[int, ...], dim: int
) -> tuple[Pieces, tuple[int, ...]] | None:
    """The dimensions `dim` - 1 and `dim` as one, if each piece has neighbouring positions of it."""
    found = []
    for piece in pieces:
        extent = joined(piece.dims[dim - 1], piece.dims[dim], shape[dim])
        if not extent.simple or extent.step != 1:
            return None
        found.append(
            ValueBox(
                piece.source, piece.offset, (*piece.dims[: dim - 1], extent, *piece.dims[dim + 1 :])
            )
        )
    return tuple(found), (*shape[: dim - 1], shape[dim - 1] * shape[dim], *shape[dim + 1 :])
