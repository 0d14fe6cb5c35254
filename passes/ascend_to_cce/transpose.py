"""Transposes, in the two forms of the source and their generalisations.

Form 2, dst[i][j][k][l] = src[i][k][j][l]: the last dimension stays, so runs are moved as they are
(see `moves`). Form 1, dst[i][j][k] = src[i][k][j]: the dimension that is contiguous in the operand
is another one than in the result. These two span a matrix, all others count matrices:

    for each matrix and portion of its columns, for each portion of its rows:
      copy rows x columns in; transpose 16 x 16 blocks with vnchwconv; copy columns x rows out

16 rows at a time, or 16 columns, whichever takes fewer instructions. 32-bit elements are pairs of
16-bit halves (p = 0, 1); three passes bring them to their places, rows at equal distances in each:

    element (j, c):   in [j][2c + p]  ->  [2c + p][j]  ->  [2j + p][c]  ->  out [c][2j + p]

Portions are whole 16 x 16 blocks; at ragged ends they overlap. A matrix with a side shorter than
16, or of another element width, is moved by words (`davinci.schedule.word_moves`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from davinci.dialects.base import attribute
from davinci.isa.strides import Dim, merge_dims
from davinci.isa.transpose import ROWS as SIDE
from davinci.mlir import ir
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.moves import Array, move, move_by_words, shape_of, whole
from davinci.passes.ascend_to_cce.portions import cut, in_blocks, portion_parts
from davinci.passes.ascend_to_cce.tiles import Part, for_tiles, segments, share_blocks, unflatten
from davinci.passes.builder import (
    IndexLike,
    alloc,
    op,
    restride,
    row_major,
    subview,
    viewed,
)

HALF_BYTES = 2
"""Bytes of an element of vnchwconv."""


@lowering("transpose")
def lower_transpose(operation: Any, target: Target) -> int:
    """dst[.., i_k, ..] = src[.., i_permutation(k), ..]."""
    source, result = operation.operands
    strides = row_major(shape_of(source))
    moved = Array(source, tuple(strides[p] for p in attribute(operation, "permutation")))
    shape = shape_of(result)
    dims = merge_dims(shape, [moved.strides, row_major(shape)])
    matrix = Matrices.of(moved, whole(result), dims)
    if matrix is None:
        return share_blocks(move(moved, whole(result), shape, target, operation), target)
    if matrix.ragged and (parts := move_by_words(moved, whole(result), dims, target)):
        return share_blocks(parts, target)
    return share_blocks(Transposition(matrix, target).parts(), target)


@dataclass(frozen=True)
class Matrices:
    """Matrices to transpose: `rows` are contiguous in the result, `columns` in the source.

    Attributes:
        others: the dimensions that count the matrices.
        rows, columns: with the strides of source and result.
    """

    source: Array
    result: Array
    others: tuple[Dim, ...]
    rows: Dim
    columns: Dim

    @staticmethod
    def of(source: Array, result: Array, dims: list[Dim]) -> Matrices | None:
        """The matrices of a permutation; None if it is not one that vnchwconv can do."""
        if (
            not dims
            or dims[-1].strides[0] == 1
            or source.itemsize not in (HALF_BYTES, 2 * HALF_BYTES)
        ):
            return None
        *others, rows = dims
        columns = next((d for d in others if d.strides[0] == 1), None)
        if columns is None or min(rows.size, columns.size) < SIDE:
            return None
        others.remove(columns)
        return Matrices(source, result, tuple(others), rows, columns)

    @property
    def ragged(self) -> bool:
        """Whether a side is less than two squares and no whole one: half of its work is done
        twice."""
        sides = (self.rows.size, self.columns.size)
        return any(SIDE < side < 2 * SIDE for side in sides)


class Transposition:
    """Builds the transposition of `Matrices`: tiles of rows x columns in two UB buffers."""

    def __init__(self, matrices: Matrices, target: Target) -> None:
        self.matrices = matrices
        source = matrices.source
        self.times = math.prod(d.size for d in matrices.others)
        room = target.machine.buffers.UB.bytes // source.itemsize // 2
        square = math.isqrt(room) // SIDE * SIDE
        cores = -(-target.cores // self.times)
        columns = cut(matrices.columns.size, SIDE, SIDE, square, SIDE, cores)
        self.columns = in_blocks(columns, SIDE)
        rows = cut(matrices.rows.size, SIDE, SIDE, room // self.columns.largest, SIDE, 1)
        self.rows = in_blocks(rows, SIDE)
        elements = self.rows.largest * self.columns.largest
        self.buffers, self.halves = [], []
        for _ in range(2):
            whole_words, halves = two_views(elements, source)
            self.buffers.append(whole_words)
            self.halves.append(halves)

    def parts(self) -> list[Part]:
        matrices = self.matrices
        sizes = [d.size for d in matrices.others]
        axes = [*matrices.others, matrices.rows, matrices.columns]
        gm_in = matrices.source.view([d.size for d in axes], [d.strides[0] for d in axes])
        axes = [*matrices.others, matrices.columns, matrices.rows]
        gm_out = matrices.result.view([d.size for d in axes], [d.strides[1] for d in axes])
        ones, drop = [1] * len(sizes), list(range(len(sizes)))

        def build(matrix: IndexLike, column: IndexLike, width: int) -> None:
            outside = unflatten(matrix, sizes)

            def tile(row: IndexLike, height: int) -> None:
                loaded = restride(self.buffers[0], [height, width], [width, 1])
                gm = subview(gm_in, [*outside, row, column], [*ones, height, width], drop=drop)
                op("cce.copy", [gm, loaded])
                self._transpose(height, width)
                turned = restride(self.buffers[1], [width, height], [height, 1])
                gm = subview(gm_out, [*outside, column, row], [*ones, width, height], drop=drop)
                op("cce.copy", [turned, gm])

            for segment in segments(self.rows.count * self.rows.size, self.rows.size):
                for_tiles(segment, lambda row: tile(row, self.rows.size))
            if self.rows.tail:
                tile(self.rows.tail_start, self.rows.tail)

        return portion_parts(self.columns, build, self.times)

    def _transpose(self, height: int, width: int) -> None:
        """The tile [height, width] in buffer 0, transposed, in buffer 1."""
        first, second = self.halves
        if self.matrices.source.itemsize == HALF_BYTES:
            transpose_halves(Plane(first, width), Plane(second, height), height, width)
            return
        transpose_halves(Plane(first, 2 * width), Plane(second, height), height, 2 * width)
        for p in (0, 1):
            source = Plane(second, 2 * height, p * height)
            transpose_halves(source, Plane(first, 2 * width, p * width), width, height)
        transpose_halves(Plane(first, width), Plane(second, 2 * height), 2 * height, width)


def two_views(elements: int, array: Array) -> tuple[Any, Any]:
    """A UB buffer of so many elements of the array's type, and the same bytes as 16-bit halves."""
    if array.itemsize == HALF_BYTES:
        buffer = alloc([elements], array.element, "UB")
        return buffer, buffer
    size = elements * array.itemsize
    raw = alloc([size], ir.IntegerType.get_signless(8), "UB")
    words = viewed(raw, [elements], array.element)
    return words, viewed(raw, [size // HALF_BYTES], ir.F16Type.get())


@dataclass(frozen=True)
class Plane:
    """Rows of 16-bit elements in a UB buffer, `pitch` apart, from element `offset`."""

    buffer: Any
    pitch: int
    offset: int = 0

    def blocks(self, row: int, column: int, stride: int, count: int) -> Any:
        """`count` blocks of SIDE x SIDE from (row, column), `stride` apart: [SIDE, count, SIDE]."""
        start = self.offset + row * self.pitch + column
        return restride(self.buffer, [SIDE, count, SIDE], [self.pitch, stride, 1], start)


def transpose_halves(source: Plane, result: Plane, height: int, width: int) -> None:
    """result[c][r] = source[r][c] for a [height, width] plane of whole blocks."""
    if height <= width:
        for row in range(0, height, SIDE):
            blocks = source.blocks(row, 0, SIDE, width // SIDE)
            turned = result.blocks(0, row, SIDE * result.pitch, width // SIDE)
            op("cce.vnchwconv", [blocks, turned])
        return
    for column in range(0, width, SIDE):
        blocks = source.blocks(0, column, SIDE * source.pitch, height // SIDE)
        turned = result.blocks(column, 0, SIDE, height // SIDE)
        op("cce.vnchwconv", [blocks, turned])
