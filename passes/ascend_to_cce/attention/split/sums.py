"""How matrices of a quarter's rows lie: products with V, in the ring, in UB and beside shares of
keys, and O.

A row of a product with V is O before it is divided, and 16 times the sum of its weights. All lie as
O leaves, so that nothing is turned on the way:

    in rows         [rows][columns]
    in fractals     [columns / 16][rows][16]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from davinci.mlir import ir
from davinci.passes.builder import IndexLike, restride, subview
from davinci.schedule.attention.attention import Attention
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

F32_BLOCK = BLOCK_BYTES // 4
"""Elements of f32 of a block."""


@dataclass(frozen=True)
class StridedPart:
    """Shape and strides of a part of a buffer, and where it begins, in elements."""

    shape: list[int]
    strides: list[int]
    offset: int = 0

    def of(self, buffer: ir.Value) -> ir.Value:
        """The view of a buffer that has this shape, these strides and this offset."""
        made: ir.Value = restride(buffer, self.shape, self.strides, self.offset)
        return made


@dataclass(frozen=True)
class QuarterLayout(ABC):
    """The place in memory of a matrix that has the rows of a quarter.

    Attributes:
        height: rows.
        columns: in fractals.
    """

    height: int
    columns: int

    def of(self, columns: int) -> QuarterLayout:
        """The layout of a matrix that differs in its number of columns of fractals only."""
        return replace(self, columns=columns)

    @property
    def width(self) -> int:
        """Elements of a row."""
        return self.columns * SIDE

    @abstractmethod
    def shape(self, rows: int) -> list[int]:
        """Shape of an array of so many rows; in fractals the last one is whole."""

    @abstractmethod
    def start(self, row: IndexLike) -> list[IndexLike]:
        """Where a row begins in such an array."""

    @abstractmethod
    def rows(self, first: int, count: int) -> StridedPart:
        """Rows `first` to `first + count` of a buffer, as an array of these alone has them."""

    @abstractmethod
    def blocks(self, first: int, count: int, columns: int) -> StridedPart:
        """Blocks of f32 of some rows and of the first columns, in fractals."""

    @abstractmethod
    def factors(self, first: int, count: int, columns: int) -> StridedPart:
        """What these are multiplied with, in a buffer that has a block for each row."""

    @abstractmethod
    def column(self, fractal: int) -> StridedPart:
        """The first block of f32 of a column of fractals, of all rows."""

    def in_gm(
        self, array: ir.Value, place: list[IndexLike], row: IndexLike, count: int
    ) -> ir.Value:
        """Some rows of a matrix in global memory.

        Args:
            place: of the matrix in the array.
        """
        shape = self.shape(count)
        sizes = [1] * len(place) + shape
        leading = list(range(len(place)))
        made: ir.Value = subview(array, [*place, *self.start(row)], sizes, drop=leading)
        return made


class QuarterInRows(QuarterLayout):
    """[rows][columns]."""

    def shape(self, rows: int) -> list[int]:
        return [rows, self.width]

    def start(self, row: IndexLike) -> list[IndexLike]:
        return [row, 0]

    def rows(self, first: int, count: int) -> StridedPart:
        return StridedPart(self.shape(count), [self.width, 1], first * self.width)

    def blocks(self, first: int, count: int, columns: int) -> StridedPart:
        shape = [count, columns * SIDE // F32_BLOCK, F32_BLOCK]
        return StridedPart(shape, [self.width, F32_BLOCK, 1], first * self.width)

    def factors(self, first: int, count: int, columns: int) -> StridedPart:
        shape = [count, columns * SIDE // F32_BLOCK, F32_BLOCK]
        return StridedPart(shape, [F32_BLOCK, 0, 1], first * F32_BLOCK)

    def column(self, fractal: int) -> StridedPart:
        return StridedPart([self.height, F32_BLOCK], [self.width, 1], fractal * SIDE)


class QuarterInFractals(QuarterLayout):
    """[columns / 16][rows][16]."""

    def shape(self, rows: int) -> list[int]:
        return [self.columns, ceil_div(rows, SIDE) * SIDE, SIDE]

    def start(self, row: IndexLike) -> list[IndexLike]:
        return [0, row, 0]

    def rows(self, first: int, count: int) -> StridedPart:
        strides = [self.height * SIDE, SIDE, 1]
        return StridedPart(self.shape(count), strides, first * SIDE)

    def blocks(self, first: int, count: int, columns: int) -> StridedPart:
        shape = [columns, SIDE // F32_BLOCK, count, F32_BLOCK]
        return StridedPart(shape, [self.height * SIDE, F32_BLOCK, SIDE, 1], first * SIDE)

    def factors(self, first: int, count: int, columns: int) -> StridedPart:
        shape = [columns, SIDE // F32_BLOCK, count, F32_BLOCK]
        return StridedPart(shape, [0, 0, F32_BLOCK, 1], first * F32_BLOCK)

    def column(self, fractal: int) -> StridedPart:
        return StridedPart([self.height, F32_BLOCK], [SIDE, 1], fractal * self.height * SIDE)


def sums_layout(attention: Attention, rows: int) -> QuarterLayout:
    """How products with V of so many fractals of rows lie: behind O is a column of sums."""
    kind = QuarterInFractals if attention.o.nz else QuarterInRows
    return kind(rows * SIDE, attention.fractals.columns + 1)
