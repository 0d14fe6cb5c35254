"""Parts of C: where they lie in their tile and in GM. Buffers of the factors of a mad."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.mlir import ir
from davinci.passes.builder import IndexLike
from davinci.schedule.products.events import FractalSpan


@dataclass(frozen=True)
class ResultPlace:
    """Where a part of C lies: its matrix, its first fractals, and how many elements C has of it.

    Attributes:
        last: whether its last row may be the last one of the matrix.
    """

    batch: IndexLike
    row: IndexLike
    column: IndexLike
    rows: int
    columns: int
    last: bool


@dataclass(frozen=True)
class PartOfC:
    """A part of a tile.

    Attributes:
        n, m: its fractals, counted from the tile's first.
        place: in C.
        column_of_tile: the tile's first fractal column in C.
        columns_of_tile: elements from there to the last column of the share.
    """

    n: FractalSpan
    m: FractalSpan
    place: ResultPlace
    column_of_tile: IndexLike
    columns_of_tile: int


@dataclass(frozen=True)
class FactorViews:
    """A buffer of L0A or L0B: as the words that loads move, and as the elements that a mad
    multiplies, `lanes` in a row of a fractal."""

    words: ir.Value
    elements: ir.Value
    lanes: int
