"""Blocks of 32 bytes of the vector unit: reduced to a number each, filled with a number, and
transposed with 15 others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, product

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.mlir import Op, attribute_names, ir, memref
from davinci.passes import builder
from davinci.passes.cce_to_hir.operations import NoCounterpart, build
from davinci.units import FRACTAL_BYTES as SQUARE_BYTES
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

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


def sum_rows(op: Op, operands: Sequence[ir.Value]) -> None:
    """The sum of the lanes of each row, of which a repeat holds one or more.

    Raises:
        NoCounterpart: the first lanes are left out.
    """
    source, target = operands
    rows, lanes = ir.MemRefType(source.type).shape
    if attribute(op, "first_lane", 0):
        raise NoCounterpart(f"{op.name} of lanes behind the first")
    taken = attribute(op, "lanes", lanes)
    if taken != lanes:
        source = builder.subview(source, [0, 0], [rows, taken])
    attributes = {
        "arith": "#hir.reduce_op<sum>",
        "reduce_dims": "array<i64: 1>",
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
        rows: words before each row of the first square.
        step: words from a square to the next.
    """

    words: ir.Value
    rows: tuple[int, ...]
    step: int

    @staticmethod
    def of(value: ir.Value) -> RowsOfSquares:
        """The operand of a transpose.

        Raises:
            NoCounterpart: the program computes its place.
        """
        view, owner = buffer_of(value), value.owner
        if view.offset is None or isinstance(owner, ir.Block):
            raise NoCounterpart("cce.vnchwconv of a place that the program computes")
        if owner.name != "memref.reinterpret_cast":
            raise NoCounterpart("cce.vnchwconv of a place that the program computes")
        each = view.itemsize // 2
        places = product(*(range(size) for size in view.shape[:-2]))
        steps = view.strides[:-2]
        rows = tuple(
            each * (view.offset + sum(i * step for i, step in zip(place, steps, strict=True)))
            for place in places
        )
        return RowsOfSquares(in_words(owner.operands[0]), rows, view.strides[-2] * each)

    @property
    def row(self) -> int:
        """Words from a row to the next, 0 if they are not equally far apart."""
        apart = {after - before for before, after in pairwise(self.rows)}
        return apart.pop() if len(apart) == 1 else 0

    def matrix(self, rows: int, columns: int, square: int) -> ir.Value:
        """A matrix from one of the squares on, of rows that are equally far apart."""
        at = self.rows[0] + square * self.step
        return builder.restride(self.words, [rows, columns], [self.row, 1], at)

    def lines(self, numbers: Sequence[int], squares: range) -> ir.Value:
        """Rows that are equally far apart, in squares one after the other, or in one of them."""
        at = self.rows[numbers[0]] + squares[0] * self.step
        apart = self.rows[numbers[1]] - self.rows[numbers[0]] if len(numbers) > 1 else 0
        return rows_of_squares(self.words, at, (len(numbers), apart), (len(squares), self.step))

    def kept(self, squares: range) -> Iterator[tuple[int, range]]:
        """Rows, and squares in which nothing that is stored behind them takes their place."""
        last = {self.rows[n] + i * self.step: (n, i) for i in squares for n in range(SIDE)}
        for number, found in groupby(sorted(last.values()), key=lambda pair: pair[0]):
            mine = [square for _, square in found]
            # Squares that follow each other are as far behind the first as in the list.
            for _, run in groupby(enumerate(mine), key=lambda pair: pair[1] - pair[0]):
                together = [square for _, square in run]
                yield number, range(together[0], together[-1] + 1)


def rows_of_squares(
    words: ir.Value, at: int, rows: tuple[int, int], squares: tuple[int, int]
) -> ir.Value:
    """Rows in several squares, without dimensions of one.

    Args:
        at: the first word.
        rows, squares: how many, and words from one to the next.
    """
    dims = [dim for dim in (rows, squares) if dim[0] > 1]
    shape, strides = [*(count for count, _ in dims), SIDE], [*(step for _, step in dims), 1]
    return builder.restride(words, shape, strides, at)


def evenly_apart_parts(numbers: Sequence[int], places: Sequence[int]) -> list[Sequence[int]]:
    """Rows in as few parts of one length as can be in each of which numbers and places grow evenly:
    parts one after the other, or each one of every so many rows."""
    for count in range(1, len(numbers)):
        length = ceil_div(len(numbers), count)
        blocks = [numbers[first : first + length] for first in range(0, len(numbers), length)]
        for parts in (blocks, [numbers[first::count] for first in range(count)]):
            if all(
                grows_evenly(part) and grows_evenly([places[number] for number in part])
                for part in parts
            ):
                return parts
    return [[number] for number in numbers]


def grows_evenly(numbers: Sequence[int]) -> bool:
    """Whether numbers are equally far apart, each more than the one before."""
    apart = {after - before for before, after in pairwise(numbers)}
    return not apart or (len(apart) == 1 and min(apart) > 0)


def in_words(buffer: ir.Value) -> ir.Value:
    """A buffer as words of 16 bits, all of one type, so that these can be copied.

    Raises:
        NoCounterpart: it is no buffer at an address.
    """
    kind, view, owner = ir.MemRefType(buffer.type), buffer_of(buffer), buffer.owner
    if isinstance(kind.element_type, ir.F16Type):
        return buffer
    if isinstance(owner, ir.Block) or owner.name not in ("hir.pointer_cast", "memref.view"):
        raise NoCounterpart("words of something else than a buffer")
    count = view.size * view.itemsize // 2
    words = ir.MemRefType.get([count], ir.F16Type.get(), None, kind.memory_space)
    attributes = {name: owner.attributes[name] for name in attribute_names(owner)}
    return ir.Operation.create(owner.name, [words], list(owner.operands), attributes).result


def transpose_squares(
    op: Op, operands: Sequence[ir.Value], room: int, buffer: Callable[[int], ir.Value]
) -> None:
    """Squares of 16 x 16 words: a row of them becomes a column, or each is transposed by itself.
    Those whose rows are not equally far apart are copied into a buffer in front, or out of one
    behind.

    Args:
        room: bytes of such a buffer.
        buffer: gives one of so many words.

    Raises:
        NoCounterpart: there is no room for one, or there are many squares in any order.
    """
    count = buffer_of(operands[0]).shape[-2]
    source, target = (RowsOfSquares.of(value) for value in operands)
    if source.row and target.row:
        if count == 1 or (source.step == SIDE and target.step == SIDE * target.row):
            transpose(source.matrix(SIDE, count * SIDE, 0), target.matrix(count * SIDE, SIDE, 0))
            return
        if count <= MOST_SQUARES:
            for i in range(count):
                transpose(source.matrix(SIDE, SIDE, i), target.matrix(SIDE, SIDE, i))
            return
    most = min(count, room // (2 * SQUARE_BYTES))
    if not most:
        raise NoCounterpart(f"{op.name} of rows that are not equally far apart, without room")
    words = buffer(2 * most * SIDE * SIDE)
    for first in range(0, count, most):
        transpose_copies(source, target, range(first, min(first + most, count)), words)


def transpose_copies(
    source: RowsOfSquares, target: RowsOfSquares, squares: range, words: ir.Value
) -> None:
    """Some squares by way of a buffer."""
    count = len(squares)
    size = count * SIDE * SIDE
    wait_for_vectors()
    width = count * SIDE
    if source.step or count == 1:
        for part in evenly_apart_parts(range(SIDE), source.rows):
            apart = (part[1] - part[0]) * width if len(part) > 1 else 0
            rows = rows_of_squares(words, part[0] * width, (len(part), apart), (count, SIDE))
            build("copy", {}, [source.lines(part, squares), rows])
    else:
        for number in range(SIDE):
            at = source.rows[number]
            one = builder.restride(source.words, [1, SIDE], [SIDE, 1], at)
            row = builder.restride(words, [count, SIDE], [SIDE, 1], number * width)
            build("vbrc", {"broadcast_dims": "array<i64: 0>"}, [one, row])
    wait_for_vectors()
    given = builder.restride(words, [SIDE, width], [width, 1], 0)
    transpose(given, builder.restride(words, [width, SIDE], [SIDE, 1], size))
    wait_for_vectors()
    kept: dict[range, list[int]] = {}
    for number, together in target.kept(squares):
        kept.setdefault(together, []).append(number)
    for together, numbers in kept.items():
        first = size + (together[0] - squares[0]) * SIDE * SIDE
        for part in evenly_apart_parts(numbers, target.rows):
            apart = (part[1] - part[0]) * SIDE if len(part) > 1 else 0
            rows = rows_of_squares(
                words, first + part[0] * SIDE, (len(part), apart), (len(together), SIDE * SIDE)
            )
            build("copy", {}, [rows, target.lines(part, together)])


def transpose(given: ir.Value, target: ir.Value) -> None:
    permutation = {"permutation": "array<i64: 1, 0>", "disable_align": "false"}
    build("vtranspose", permutation, [given, target])


def wait_for_vectors() -> None:
    """Builds a barrier behind which all earlier work of the vector unit is done."""
    build("pipe_barrier", {"pipe": "#hir.pipe<PIPE_V>"}, [])


def evenly_apart(view: BufferView) -> bool:
    """Whether all rows of a view are equally far apart."""
    first, second = view.strides[:2]
    return view.shape[0] == 1 or first == view.shape[1] * second


def with_last(value: ir.Value) -> ir.Value:
    """A view [.., n] as [.., n, 1]."""
    kind = ir.MemRefType(value.type)
    layout = None
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        strides, offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, [*strides, strides[-1]])
    shape = [*kind.shape, 1]
    result = ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space)
    last = kind.rank - 1
    groups = [*([dim] for dim in range(last)), [last, kind.rank]]
    made = memref.ExpandShapeOp(result, value, groups, output_shape=[], static_output_shape=shape)
    return made.result
