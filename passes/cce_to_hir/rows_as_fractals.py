"""Matrices whose rows are one behind the other in L1, and of which loads of windows make fractals.

before: 4 rows of 32 elements in room for 16; the window of a row is its two pixels of 16 elements:
    "cce.clear_l1"(%rest) : (memref<1x256xf16, strided<[256, 1], offset: 256>, L1>)
    "cce.copy"(%gm, %rows) : (memref<4x32xf16>, memref<4x32xf16, strided<[32, 1]>, L1>)
    "cce.load3d"(%image, ..) {kernel = [1, 2], strides = [1, 2], ..}
       : (memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, L1>, ..)
after: two columns of 16 rows each; the window of a row is one pixel, which has both its blocks:
    "cce.clear_l1"(%all) : (memref<1x512xf16, strided<[512, 1]>, L1>)
    "cce.nd2nz"(%gm, %columns) : (memref<4x32xf16>, memref<2x4x16xf16, strided<[256, 16, 1]>, L1>)
    "cce.load3d"(%image', ..) {kernel = [1, 1], strides = [1, 1], ..}
       : (memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, L1>, ..)

Our schedules have rows in L1 where few of them come, in one burst; AscendNPU-IR loads no windows.
A buffer is laid out anew if fills, copies of whole rows and such loads are all that touches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.cce_to_hir.buffer_uses import BufferUse, uses_of
from davinci.units import FRACTAL_SIDE as SIDE

COPY, FILL, LOAD = "cce.copy", "cce.clear_l1", "cce.load3d"
PIXEL = [1, 1]


def bring_as_fractals(kernel: Op) -> None:
    """Has the matrices of a kernel that lie in L1 as rows come as columns of fractals."""
    for alloc in operations(kernel, "memref.alloc"):
        buffer = alloc.results[0]
        if buffer_of(buffer).space != "L1":
            continue
        uses = uses_of(buffer, (COPY, FILL, LOAD))
        matrix = None if uses is None else matrix_of(buffer, uses)
        if uses is None or matrix is None:
            continue
        rebuild = {COPY: matrix.bring, FILL: matrix.fill, LOAD: matrix.load}
        for use in uses:
            with ir.InsertionPoint(use.op), use.op.location:
                rebuild[use.op.name](use)


@dataclass(frozen=True)
class MatrixInL1:
    """A buffer that has a matrix as rows, and shall have it as columns of fractals.

    Attributes:
        buffer: that it fills.
        rows: of the matrix, whole fractals.
        columns: of fractals.
        lanes: elements of a row of a fractal.
    """

    buffer: ir.Value
    rows: int
    columns: int
    lanes: int

    def bring(self, use: BufferUse) -> None:
        """Has rows come in columns."""
        view, lanes = use.view, self.lanes
        shape, strides = [self.columns, view.shape[0], lanes], [self.rows * lanes, lanes, 1]
        target = builder.restride(self.buffer, shape, strides, (view.offset or 0) // self.columns)
        cce.nd2nz(use.op.operands[0], target)
        use.op.erase()

    def fill(self, use: BufferUse) -> None:
        """Fills all of the buffer: either that was filled, or nothing was there."""
        size = self.rows * self.columns * self.lanes
        use.op.operands[use.number] = builder.restride(self.buffer, [1, size], [size, 1])

    def load(self, use: BufferUse) -> None:
        """Has windows of one pixel, of an image with as many blocks of channels as windows had
        pixels. Windows, and elements of them, keep their numbers."""
        column, lanes = self.rows * self.lanes, self.lanes
        shape, strides = [self.columns, 1, self.rows, lanes], [column, column, lanes, 1]
        use.op.operands[use.number] = builder.restride(self.buffer, shape, strides)
        for name in ("kernel", "strides"):
            use.op.attributes[name] = ir.DenseI64ArrayAttr.get(PIXEL)


def matrix_of(buffer: ir.Value, uses: Sequence[BufferUse]) -> MatrixInL1 | None:
    """The matrix that a buffer has as rows; None if what touches it sees it otherwise."""
    widths = {width_of_windows(use.op) for use in uses if use.op.name == LOAD}
    if len(widths) != 1 or 0 in widths:
        return None
    (columns,) = widths
    view = buffer_of(buffer)
    rows, rest = divmod(view.size, columns * view.block)
    if rest or rows % SIDE:
        return None
    matrix = MatrixInL1(buffer, rows, columns, view.block)
    return matrix if all(keeps_to_rows(use, uses, matrix) for use in uses) else None


def width_of_windows(load: Op) -> int:
    """The pixels of the windows of a load, if one begins where the one before ends; else 0."""
    kernel, strides, dilations, pads = (
        tuple(attribute(load, name)) for name in ("kernel", "strides", "dilations", "pads")
    )
    pixels: int = kernel[1]
    beside = (kernel, strides, dilations, pads) == ((1, pixels), (1, pixels), (1, 1), (0, 0))
    return pixels if beside and pixels > 1 else 0


def keeps_to_rows(use: BufferUse, uses: Sequence[BufferUse], matrix: MatrixInL1) -> bool:
    """Whether a load sees all of a buffer as an image of one row, a copy brings whole rows from
    global memory, and a fill is of all of the buffer or in front of all else that touches it."""
    view, width = use.view, matrix.columns * matrix.lanes
    everything = view.offset == 0 and view.size == matrix.rows * width
    if use.op.name == LOAD:
        return everything and view.shape[:2] == (1, 1)
    if use.op.name == FILL:
        others = [other.op for other in uses if other.op != use.op]
        return everything or all(comes_before(use.op, other) for other in others)
    source = buffer_of(use.op.operands[0])
    rows = (view.shape[1:], view.strides[1:]) == ((width,), (1,))
    apart = view.shape[0] == 1 or view.strides[0] == width
    return source.space == "GM" and rows and apart and not (view.offset or 0) % width


def comes_before(op: ir.Operation, other: ir.Operation) -> bool:
    """Whether an operation runs once and before another one: that, or what is around it, is behind
    it in the block of a function."""
    if op.block.owner.operation.name != "func.func":
        return False
    around = other
    while around.block != op.block:
        parent = around.parent
        assert parent is not None, "both touch a buffer of one function"
        around = parent.operation
    return bool(op.is_before_in_block(around))
