"""Rows of a row-major matrix between GM and UB, for any number of columns.

In UB every row starts at a block; in GM rows follow each other without gaps. Rows of whole blocks
move with one copy. Others ("ragged") move one by one in whole blocks:

* Loading reads a few elements of the next row too; they are garbage that the caller overwrites.
* Storing writes garbage over the head of the next row, which is stored next and corrects it. So
  rows are stored in ascending order, and a row's head not before the row above it.

The last rows of a piece must neither read nor write past its end, where the matrix may end or
another block may be at work: their last, partial block goes element by element through the scalar
unit, at most 31 elements a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from davinci.mlir import ir, memref
from davinci.passes.builder import IndexLike, add, as_value, for_loop, op, subview
from davinci.units import BLOCK_BYTES


@dataclass(frozen=True)
class MatrixPiece:
    """`rows` x `columns` elements of a matrix [batch, m, n] in GM, from (batch, row, column)."""

    matrix: ir.Value
    batch: IndexLike
    row: IndexLike
    column: IndexLike
    rows: int
    columns: int

    def block(self) -> int:
        """Elements of a 32-byte block."""
        element = ir.MemRefType(self.matrix.type).element_type
        return BLOCK_BYTES * 8 // int(element.width)

    def ragged(self) -> bool:
        """Whether a row is not whole blocks."""
        return self.columns % self.block() != 0

    def part(self, row: IndexLike, rows: int, columns: int) -> ir.Value:
        """The first `columns` of `rows` rows as a view [rows, columns]."""
        start = [self.batch, add(self.row, row), self.column]
        return subview(self.matrix, start, [1, rows, columns], drop=[0])

    def careful_rows(self) -> int:
        """How many of the last rows may not be moved in whole blocks."""
        if not self.ragged():
            return 0
        n = int(ir.MemRefType(self.matrix.type).shape[2])
        excess = -self.columns % self.block()
        return min(self.rows, -(-excess // n))


def load_rows(piece: MatrixPiece, ub: ir.Value) -> None:
    """GM to the top left of `ub` [r, w]; behind the columns of a ragged row comes garbage."""

    def move(outside: ir.Value, inside: ir.Value, **attributes: Any) -> None:
        op("cce.copy", [outside, inside], **attributes)

    def element(outside: list[ir.Value], inside: list[ir.Value]) -> None:
        memref.StoreOp(memref.LoadOp(piece.matrix, outside).result, ub, inside)

    move_rows(piece, ub, move, element)


def store_rows(ub: ir.Value, piece: MatrixPiece) -> None:
    """The top left of `ub` [r, w] to GM; the head of what follows each row is overwritten first."""

    def move(outside: ir.Value, inside: ir.Value, **attributes: Any) -> None:
        op("cce.copy", [inside, outside], **attributes)

    def element(outside: list[ir.Value], inside: list[ir.Value]) -> None:
        memref.StoreOp(memref.LoadOp(ub, inside).result, piece.matrix, outside)

    move_rows(piece, ub, move, element)


def move_rows(
    piece: MatrixPiece,
    ub: ir.Value,
    move: Callable[..., None],
    element: Callable[[list[ir.Value], list[ir.Value]], None],
) -> None:
    """Moves a piece by `move(gm view, ub view)` and, for what is left, `element(gm, ub index)`."""
    columns = piece.columns
    if not piece.ragged():
        move(piece.part(0, piece.rows, columns), subview(ub, [0, 0], [piece.rows, columns]))
        return
    careful = piece.careful_rows()
    whole = columns - columns % piece.block()

    def row(index: IndexLike) -> None:
        target = subview(ub, [index, 0], [1, columns])
        move(piece.part(index, 1, columns), target, round_up=True)

    def careful_row(index: IndexLike) -> None:
        if whole:
            move(piece.part(index, 1, whole), subview(ub, [index, 0], [1, whole]))
        with for_loop(whole, columns) as column:
            outside = [piece.batch, add(piece.row, index), add(piece.column, column)]
            element([as_value(i) for i in outside], [as_value(index), column])

    for_rows(0, piece.rows - careful, row)
    for_rows(piece.rows - careful, piece.rows, careful_row)


def for_rows(start: int, stop: int, build: Callable[[IndexLike], None]) -> None:
    """Builds `build(row)` for each row, in a loop if there are several."""
    if stop - start == 1:
        build(start)
    elif stop > start:
        with for_loop(start, stop) as row:
            build(row)
