"""Blocks of 32 bytes of the vector unit: reduced to a number each, filled with a number, and
transposed with 15 others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.mlir import Op, attribute_names, ir, memref
from davinci.passes import builder
from davinci.passes.cce_to_hir.operations import NoCounterpart, build
from davinci.units import FRACTAL_SIDE as SIDE

MOST_SQUARES = 32
"""Squares that are transposed one by one at most."""

REDUCTIONS = {"vcgadd": "sum", "vcgmax": "max", "vcgmin": "min"}


def reduce_blocks(op: Op, operands: Sequence[ir.Value]) -> None:
    """A reduction along the elements of blocks.

    Raises:
        NoCounterpart: blocks are not equally far apart.
    """
    source, target = operands
    if not evenly_apart(buffer_of(source)):
        raise NoCounterpart(f"{op.name} of blocks that are not equally far apart")
    attributes = {
        "arith": f"#hir.reduce_op<{REDUCTIONS[op.name.removeprefix('cce.')]}>",
        "reduce_dims": "array<i64: 2>",
        "operandSegmentSizes": "array<i32: 1, 1, 0, 0>",
    }
    build("vreduce", attributes, [source, with_last(target)])


def fill_blocks(op: Op, operands: Sequence[ir.Value], buffer: Callable[[int], ir.Value]) -> None:
    """A broadcast along the elements of blocks, by way of a buffer.

    Args:
        buffer: gives one of so many elements.
    """
    source, target = operands
    view = buffer_of(target)
    dims = {"broadcast_dims": "array<i64: 2>"}
    build("vbrc", dims, [with_last(source), target, buffer(view.size)])


@dataclass(frozen=True)
class RowsOfSquares:
    """16 rows of 16-bit words, in squares of 16.

    Attributes:
        words: the buffer, of 16-bit elements.
        offset, row, step: words before the first one, to the next row and to the next square.
    """

    words: ir.Value
    offset: int
    row: int
    step: int

    @staticmethod
    def of(value: ir.Value) -> RowsOfSquares:
        """The operand of a transpose.

        Raises:
            NoCounterpart: its rows are not equally far apart, or the program computes its place.
        """
        view, owner = buffer_of(value), value.owner
        outer = [d for d in zip(view.shape[:-2], view.strides[:-2], strict=True) if d[0] > 1]
        if any(a != size * b for (_, a), (size, b) in pairwise(outer)) or view.offset is None:
            raise NoCounterpart("cce.vnchwconv of rows that are not equally far apart")
        if isinstance(owner, ir.Block) or owner.name != "memref.reinterpret_cast":
            raise NoCounterpart("cce.vnchwconv of a place that the program computes")
        each = view.itemsize // 2
        words = in_words(owner.operands[0])
        return RowsOfSquares(
            words, view.offset * each, outer[-1][1] * each, view.strides[-2] * each
        )

    def matrix(self, rows: int, columns: int, square: int = 0) -> ir.Value:
        """A matrix from one of the squares on."""
        at = self.offset + square * self.step
        return builder.restride(self.words, [rows, columns], [self.row, 1], at)


def in_words(buffer: ir.Value) -> ir.Value:
    """A buffer with elements of 16 bits.

    Raises:
        NoCounterpart: it is no buffer at an address.
    """
    kind, view, owner = ir.MemRefType(buffer.type), buffer_of(buffer), buffer.owner
    if view.itemsize == 2:
        return buffer
    if isinstance(owner, ir.Block) or owner.name != "hir.pointer_cast":
        raise NoCounterpart("words of something else than a buffer")
    count = view.size * view.itemsize // 2
    words = ir.MemRefType.get([count], ir.F16Type.get(), None, kind.memory_space)
    attributes = {name: owner.attributes[name] for name in attribute_names(owner)}
    return ir.Operation.create(owner.name, [words], list(owner.operands), attributes).result


def transpose_squares(op: Op, operands: Sequence[ir.Value]) -> None:
    """Squares of 16 x 16 words: a row of them becomes a column, or each is transposed by itself.

    Raises:
        NoCounterpart: there are many squares in any order.
    """
    count = buffer_of(operands[0]).shape[-2]
    source, target = (RowsOfSquares.of(value) for value in operands)
    permutation = {"permutation": "array<i64: 1, 0>", "disable_align": "false"}

    def transpose(squares: int, number: int = 0) -> None:
        given = source.matrix(SIDE, squares * SIDE, number)
        build("vtranspose", permutation, [given, target.matrix(squares * SIDE, SIDE, number)])

    if count == 1 or (source.step == SIDE and target.step == SIDE * target.row):
        transpose(count)
        return
    if count > MOST_SQUARES:
        raise NoCounterpart(f"{op.name} of {count} squares")
    for number in range(count):
        transpose(1, number)


def evenly_apart(view: BufferView) -> bool:
    """Whether all rows of a view are equally far apart."""
    first, second = view.strides[:2]
    return view.shape[0] == 1 or first == view.shape[1] * second


def with_last(value: ir.Value) -> ir.Value:
    """A contiguous view [r, n] as [r, n, 1]."""
    kind = ir.MemRefType(value.type)
    layout = None
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        strides, offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, [*strides, 1])
    shape = [*kind.shape, 1]
    result = ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space)
    made = memref.ExpandShapeOp(
        result, value, [[0], [1, 2]], output_shape=[], static_output_shape=shape
    )
    return made.result
