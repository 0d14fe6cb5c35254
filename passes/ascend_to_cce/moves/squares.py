"""Builds transpositions of matrices by squares of 16 x 16 words, see `schedule.moves.squares`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.isa.transpose import ROWS as SIDE
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.moves.transfers import Arrays, element_of
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    Stretches,
    stretches,
    unflatten,
    with_slots,
)
from davinci.passes.builder import IndexLike, alloc, op, restride, subview, viewed
from davinci.schedule.moves.squares import HALF_BYTES, Squares


class SquaresBuilder:
    """Tiles of rows x columns in buffers of UB.

    Args:
        looped: whether tiles of a block follow each other, and take turns on several buffers.
    """

    def __init__(self, way: Squares, arrays: Arrays, result: ir.Value, looped: bool) -> None:
        self.way, self.slots = way, way.slots if looped else 1
        transfer = way.transfer
        self.itemsize = transfer.itemsize
        source = arrays[transfer.array]
        axes = [*way.others, way.rows, way.columns]
        sizes, steps = [d.size for d in axes], [d.strides[0] for d in axes]
        self.loaded = restride(source, sizes, steps, transfer.offset)
        axes = [*way.others, way.columns, way.rows]
        sizes, steps = [d.size for d in axes], [d.strides[1] for d in axes]
        self.stored = restride(result, sizes, steps, transfer.place)
        self.element = element_of(result)
        if self.slots == 1:
            self._allocate()

    def _allocate(self) -> None:
        """Makes the buffers of a tile as it is loaded, and as it is stored."""
        elements = self.way.high.largest * self.way.wide.largest
        views = [two_views(elements, self.element, self.itemsize, self.slots) for _ in range(2)]
        self.buffers = [words for words, _ in views]
        self.halves = [halves for _, halves in views]

    def parts(self) -> list[AlikeWork]:
        sizes = [d.size for d in self.way.others]
        found = []
        for rows, high in stretches(self.way.high):
            for columns, wide in stretches(self.way.wide):

                def build(
                    index: IndexLike,
                    rows: int = rows,
                    columns: int = columns,
                    high: Callable[[IndexLike], Stretches] = high,
                    wide: Callable[[IndexLike], Stretches] = wide,
                ) -> None:
                    *outside, row, column = unflatten(index, [*sizes, rows, columns])
                    self._tiles(outside, high(row), wide(column))

                found.append(AlikeWork(math.prod(sizes) * rows * columns, build))
        return found

    def _tiles(self, outside: list[IndexLike], high: Stretches, wide: Stretches) -> None:
        ones, drop = [1] * len(outside), list(range(len(outside)))
        if self.slots > 1:
            self._allocate()
        for row, height in high:
            for column, width in wide:
                held = restride(self.buffers[0], [height, width], [width, 1])
                shape = [*ones, height, width]
                cce.copy(subview(self.loaded, [*outside, row, column], shape, drop=drop), held)
                self._transpose(height, width)
                turned = restride(self.buffers[1], [width, height], [height, 1])
                shape = [*ones, width, height]
                cce.copy(turned, subview(self.stored, [*outside, column, row], shape, drop=drop))

    def _transpose(self, height: int, width: int) -> None:
        """The tile [height, width] in buffer 0, transposed, in buffer 1."""
        first, second = self.halves
        if self.itemsize <= HALF_BYTES:
            size = height * width
            if self.itemsize == 1:
                cce.vconv(restride(self.buffers[0], [size], [1]), restride(first, [size], [1]))
            transpose_halves(Plane(first, width), Plane(second, height), height, width)
            if self.itemsize == 1:
                cce.vconv(restride(second, [size], [1]), restride(self.buffers[1], [size], [1]))
            return
        words = self.itemsize // HALF_BYTES
        transpose_halves(Plane(first, words * width), Plane(second, height), height, words * width)
        for p in range(words):
            source = Plane(second, words * height, p * height)
            transpose_halves(source, Plane(first, words * width, p * width), width, height)
        transpose_halves(Plane(first, width), Plane(second, words * height), words * height, width)


def two_views(
    elements: int, element: ir.Type, itemsize: int, slots: int
) -> tuple[ir.Value, ir.Value]:
    """A UB buffer of so many elements, and its words of 16 bits: the same bytes, of bytes a buffer
    of the numbers that they are."""

    def made(count: int, type_: ir.Type) -> ir.Value:
        return with_slots(alloc([count], type_, "UB"), slots)

    if itemsize == HALF_BYTES:
        buffer = made(elements, element)
        return buffer, buffer
    if itemsize == 1:
        return made(elements, element), made(elements, ir.F16Type.get())
    size = elements * itemsize
    raw = made(size, ir.IntegerType.get_signless(8))
    return viewed(raw, [elements], element), viewed(raw, [size // HALF_BYTES], ir.F16Type.get())


@dataclass(frozen=True)
class Plane:
    """Rows of 16-bit elements in a UB buffer, `pitch` apart, from element `offset`."""

    buffer: ir.Value
    pitch: int
    offset: int = 0

    def blocks(self, row: int, column: int, stride: int, count: int) -> ir.Value:
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
