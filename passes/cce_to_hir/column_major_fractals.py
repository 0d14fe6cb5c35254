"""Column-major order of the fractals in L1 that AscendNPU-IR's products read.

before: 8 x 4 fractals in rows; row i has the four fractals of 16 keys, which one load brings:
    "cce.nd2nz"(%gm, %l1) : (memref<16x512xf16>, memref<32x16x16xf16, strided<[256, 16, 1]>, L1>)
    "cce.mad_l1"(%l1', ..) : (memref<4x8x16x16xf16, strided<[256, 1024, 16, 1]>, L1>, ..)
after: in columns of 8, of which eight loads bring four fractals each:
    "cce.nd2nz"(%gm0, %l1') : (memref<16x64xf16, strided<[512, 1]>>,
                               memref<4x16x16xf16, strided<[2048, 16, 1]>, L1>)
    ..
    "cce.mad_l1"(%l1'', ..) : (memref<4x8x16x16xf16, strided<[2048, 256, 16, 1]>, L1>, ..)

Our loads from L1 take fractals that lie apart in either direction; products of the vendor's library
take the fractals of a column one behind the other. A buffer is laid out anew if loads and fills
write it, products read it, and each does so at places that are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.cce_to_hir.buffer_uses import BufferUse, uses_of
from davinci.units import FRACTAL_SIDE as SIDE

LOAD, FILL, PRODUCT = "cce.nd2nz", "cce.clear_l1", "cce.mad_l1"


def lay_in_columns(kernel: Op) -> None:
    """Lays out anew the buffers of a kernel whose products read fractals in rows."""
    for alloc in operations(kernel, "memref.alloc"):
        buffer = alloc.results[0]
        if buffer_of(buffer).space != "L1":
            continue
        uses = uses_of(buffer, (LOAD, FILL, PRODUCT))
        order = None if uses is None else order_of(buffer, uses)
        if uses is not None and order is not None:
            lay_out(uses, order)


@dataclass(frozen=True)
class RowMajorOrder:
    """A buffer that has rows of fractals one behind the other, and shall have columns.

    Attributes:
        source: the buffer.
        columns, rows: of fractals in it.
        fractal: elements of a fractal.
    """

    source: ir.Value
    columns: int
    rows: int
    fractal: int

    def moved(self, number: int) -> int:
        """The number that a fractal has in columns, by its number in rows."""
        row, column = divmod(number, self.columns)
        return column * self.rows + row


def runs(places: Sequence[int]) -> Iterator[tuple[range, int]]:
    """Parts of a list of places with equal steps from one to the next: the indices of each part,
    and its step, which is positive."""
    first = 0
    while first < len(places):
        steps = [after - before for before, after in pairwise(places[first:])]
        step = steps[0] if steps and steps[0] > 0 else 1
        count = 1 + sum(1 for _ in takewhile(step.__eq__, steps))
        yield range(first, first + count), step
        first += count


def order_of(buffer: ir.Value, uses: Sequence[BufferUse]) -> RowMajorOrder | None:
    """The order of a buffer whose products all read it in rows of as many fractals; None if they do
    not, or a load or fill does not keep to fractals."""
    views = [use.view for use in uses if use.op.name == PRODUCT]
    pitches = {(view.strides[0], view.strides[1]) for view in views if view.shape[1] > 1}
    if len(pitches) != 1:
        return None
    ((column, row),) = pitches
    fractal = SIDE * views[0].block
    size = buffer_of(buffer).size
    if column != fractal or row <= fractal or row % fractal or size % row:
        return None
    order = RowMajorOrder(buffer, row // fractal, size // row, fractal)
    return order if all(keeps_to_fractals(use, order) for use in uses) else None


def keeps_to_fractals(use: BufferUse, order: RowMajorOrder) -> bool:
    """Whether each column that a load writes lies in one fractal, whether a fill is of one part of
    each of some fractals or of whole ones, and whether what a product reads is in rows."""
    view, fractal = use.view, order.fractal
    first, inside = divmod(view.offset or 0, fractal)
    if use.op.name == PRODUCT:
        return not inside and first % order.columns + view.shape[0] <= order.columns
    size = view.size // view.shape[0]
    apart = view.strides[0] % fractal == 0 or view.shape[0] == 1
    together = view.strides[1] in (1, view.block) or view.shape[1] == 1
    whole = use.op.name == FILL and not inside and size % fractal == 0
    return apart and together and (whole or inside + size <= fractal)


def lay_out(uses: Sequence[BufferUse], order: RowMajorOrder) -> None:
    """Has all uses of a buffer find its fractals in columns."""
    for use in uses:
        with ir.InsertionPoint(use.op), use.op.location:
            if use.op.name == PRODUCT:
                use.op.operands[use.number] = read(use.view, order)
                continue
            (load if use.op.name == LOAD else fill)(use, order)
        use.op.erase()


def read(view: BufferView, order: RowMajorOrder) -> ir.Value:
    """What a product reads, in columns."""
    place = order.moved((view.offset or 0) // order.fractal) * order.fractal
    strides = [order.rows * order.fractal, order.fractal, view.block, 1]
    return builder.restride(order.source, list(view.shape), strides, place)


def load(use: BufferUse, order: RowMajorOrder) -> None:
    """Builds loads of the fractals that one brings, of as many columns each as lie equally far
    apart."""
    view = use.view
    first, inside = divmod(view.offset or 0, order.fractal)
    apart = view.strides[0] // order.fractal
    places = [order.moved(first + column * apart) for column in range(view.shape[0])]
    rows, width = buffer_of(use.op.operands[0]).shape
    for columns, step in runs(places):
        begin, end = (min(i * view.block, width) for i in (columns.start, columns.stop))
        source = builder.subview(use.op.operands[0], [0, begin], [rows, end - begin])
        shape, strides = [len(columns), *view.shape[1:]], [step * order.fractal, *view.strides[1:]]
        offset = places[columns.start] * order.fractal + inside
        cce.nd2nz(source, builder.restride(order.source, shape, strides, offset))


def fill(use: BufferUse, order: RowMajorOrder) -> None:
    """Builds fills of the fractals, or parts of fractals, that one fills: whole ones that lie
    behind each other are one run."""
    view, fractal = use.view, order.fractal
    first, inside = divmod(view.offset or 0, fractal)
    apart, size = view.strides[0] // fractal, view.shape[1]
    whole = range(max(1, size // fractal))
    places = sorted(order.moved(first + i * apart + j) for i in range(view.shape[0]) for j in whole)
    for part, step in runs(places):
        count, run, pitch = len(part), min(size, fractal), step * fractal
        if run == pitch:
            count, run, pitch = 1, count * run, count * run
        offset = places[part.start] * fractal + inside
        target = builder.restride(order.source, [count, run], [pitch, 1], offset)
        cce.clear_l1(target, bits=attribute(use.op, "bits", None))
