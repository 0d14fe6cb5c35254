"""Gathers of elements, or of blocks of few of them, as elements at places of rows of a table.

before:
    %r = stablehlo.gather(%x, %i) .. batching dims [0], slice sizes [1, 1]
        : (tensor<9x64xf32>, tensor<9x5x1xi64>) -> tensor<9x5xf32>
after:
    %k = clamp %i to 0 .. 63, as i32
    %p = 64 * row + %k                                                        : tensor<9x5xi32>
    %r = ascend.gather_elements(%x, %p) : (tensor<9x64xf32>, tensor<9x5xi32>) -> tensor<9x5xf32>

What is computed of indices is elementwise, so the vector unit does it. Leading dimensions of the
array that are batch dimensions are rows; all behind them is one row, which has to lie in UB. A
longer one is cut in parts, of which each yields an element, and the place says which is the one.
Elements that no instruction gathers are others meanwhile: bytes are f16, which holds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.machine import Machine, prices
from davinci.mlir import ir
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps
from davinci.passes.stablehlo_to_ascend.reduced_values import seen_as, shifted
from davinci.schedule.moves.blocks import BlockMove, blocks_cycles
from davinci.schedule.moves.element_gathers import (
    PLACE_BYTES,
    ElementGather,
    element_schedule,
    has_vector_gather,
)
from davinci.units import BLOCK_BYTES, ceil_div, row_major

MOST_PARTS = 16
"""Parts of a row of the table, each of which is a kernel."""

LIMIT = 1 << 28
"""Elements of a table that are too many: i32 holds sums of several of their numbers."""

SEEN = {"bf16": "i16", "ui16": "i16", "ui32": "i32", "f64": "i64", "ui64": "i64"}
"""Types of the same bits that copies take."""

BYTE_CARRIER = "f16"
"""Holds all numbers of 8 bits."""


@dataclass(frozen=True)
class BlockForm:
    """Blocks that are gathered; see `davinci.operators.blocks`.

    Attributes:
        array: that they are blocks of.
        block: shape of one.
        count: blocks.
        axes, wrap: of each column of indices.
        batch: of each dimension of the array.
    """

    array: Tensor
    block: tuple[int, ...]
    count: int
    axes: tuple[int, ...]
    wrap: tuple[bool, ...]
    batch: tuple[int, ...]

    @property
    def batched(self) -> int:
        """The leading dimensions of the array that are rows."""
        rows = number = 0
        for number, (inner, size) in enumerate(zip(self.batch, self.array.shape, strict=True)):
            rows = math.prod(self.array.shape[:number])
            if not inner or inner * rows * size != self.count:
                return number
        return number + 1

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return math.prod(self.array.shape[: self.batched])

    @property
    def row(self) -> int:
        """Elements of a row of the table."""
        return self.array.count // self.rows

    def gather(self, element: str, parts: int = 1) -> ElementGather:
        """The kernel of one of so many parts of each row, whose elements are of such a type."""
        each = self.count // self.rows * math.prod(self.block)
        return ElementGather(self.rows, ceil_div(self.row, parts), each, element)


def carrier_of(element: str, machine: Machine) -> str:
    """The type that elements are gathered as."""
    found = SEEN.get(element, element)
    if found in ("i1", "i8", "ui8") and has_vector_gather(2, machine):
        return BYTE_CARRIER
    return found


def gathered_elements(
    array: ir.Value, indices: ir.Value, form: BlockForm, ops: TensorOps
) -> ir.Value | None:
    """Blocks [n, ..block] at tuples of indices [n, k], as elements at places; None where blocks as
    they are take less time."""
    machine, found = ops.machine, form.array
    few = math.prod(form.block) * found.bytes_each <= BLOCK_BYTES
    if machine is None or not few or not 0 < found.count < LIMIT:
        return None
    carrier = carrier_of(found.element, machine)
    parts = parts_of_rows(form, carrier, machine)
    if parts is None:
        return None
    table = ops.reshape(carried(array, carrier, ops), [form.rows, form.row])
    places = places_of(indices, form, ops)
    taken = taken_by_parts(table, places, parts, ops)
    shape = [form.count, *form.block]
    return ops.reshape(carried(taken, found.element, ops), shape)


def carried(x: ir.Value, element: str, ops: TensorOps) -> ir.Value:
    """Elements as those of another type: of the same bits where they are as wide."""
    found = tensor_of(x.type)
    same = Tensor((1,), element).bytes_each == found.bytes_each
    return seen_as(ops, x, element) if same else ops.cast(x, element)


def parts_of_rows(form: BlockForm, carrier: str, machine: Machine) -> int | None:
    """The fewest parts of rows that lie in UB; None if there are too many, or gathers of these take
    longer than blocks at indices do."""
    cores, parts = machine.cores, 1
    while (found := element_schedule(form.gather(carrier, parts), machine, cores)) is None:
        parts *= 2
        if parts > min(MOST_PARTS, form.row):
            return None
    elements = form.count * math.prod(form.block)
    size = PLACE_BYTES + (form.array.bytes_each if parts > 1 else 0)
    moved = 2 * prices.moving(machine, cores, False, ceil_div(elements * size, cores))
    if carrier != form.array.element and SEEN.get(form.array.element) != carrier:
        moved += 3 * prices.moving(machine, cores, False, ceil_div(form.array.count, cores))
    launch = machine.queued_cycles(1)
    # Places are made by a kernel more than blocks at indices take, parts are one more each; what
    # the scalar unit gathers has a launch of its own.
    apart = machine.queued_cycles(found.cores) if found.scalar else 0
    taken = parts * (found.cycles + launch + moved + apart)
    return parts if taken < blocks_cycles(move_of(form), machine, cores) else None


def move_of(form: BlockForm) -> BlockMove:
    """The move of the same blocks by a kernel that reads the indices."""
    whole = replace(form.array, shape=(1, *form.array.shape))
    return BlockMove(
        update=False,
        array=whole,
        block=(1, *form.block),
        count=form.count,
        axes=tuple(axis + 1 for axis in form.axes),
        starts=(0,) * whole.rank,
        batch=(0, *form.batch),
        wrap=form.wrap,
        skip=False,
    )


def places_of(indices: ir.Value, form: BlockForm, ops: TensorOps) -> ir.Value:
    """Where in its row of the table each element lies: i32 [rows, elements of a row]."""
    shape, count = form.array.shape, form.count
    strides = row_major(shape)
    places: ir.Value | None = None
    terms = [
        index_term(indices, column, form, strides[axis], ops)
        for column, axis in enumerate(form.axes)
    ]
    for dim in range(form.batched, len(shape)):
        if inner := form.batch[dim]:
            numbers = np.arange(shape[dim], dtype=np.int32) * strides[dim]
            around = [count // (inner * shape[dim]), shape[dim], inner]
            term = ops.broadcast(ops.constant(numbers, "i32"), around, [1])
            terms.append(ops.reshape(term, [count]))
    for term in terms:
        places = term if places is None else ops.binary("add", places, term)
    assert places is not None, "a gather has an index"
    size = math.prod(form.block)
    if size > 1:
        inside = np.indices(form.block).reshape(len(shape), size)
        offsets = (np.asarray(strides) @ inside).astype(np.int32)
        whole = ops.broadcast(places, [count, size], [0])
        within = ops.broadcast(ops.constant(offsets, "i32"), [count, size], [1])
        places = ops.binary("add", whole, within)
    return ops.reshape(places, [form.rows, count // form.rows * size])


def index_term(
    indices: ir.Value, column: int, form: BlockForm, stride: int, ops: TensorOps
) -> ir.Value:
    """What a column of indices adds to places: clamped so that blocks lie inside, times the
    distance of elements along its axis."""
    count = form.count
    axis = form.axes[column]
    size, most = form.array.shape[axis], form.array.shape[axis] - form.block[axis]
    words = IndexWords((count,), ops)
    index = ops.reshape(ops.cut(indices, [0, column], [count, column + 1]), [count])
    if tensor_of(index.type).element == "i64":
        index = words.saturated(index, size)
    if form.wrap[column]:
        index = ops.binary("sub", index, words.times(words.clamped(index, -1, 0), size))
    return words.times(words.clamped(index, 0, most), stride)


@dataclass(frozen=True)
class IndexWords:
    """Arithmetic with i32 of one shape."""

    shape: tuple[int, ...]
    ops: TensorOps

    def full(self, number: int) -> ir.Value:
        """An array of one number."""
        return self.ops.full(self.shape, "i32", number)

    def clamped(self, x: ir.Value, low: int, high: int) -> ir.Value:
        """The nearest numbers from `low` to `high`."""
        return self.ops.binary("min", self.ops.binary("max", x, self.full(low)), self.full(high))

    def times(self, x: ir.Value, number: int) -> ir.Value:
        """A product by a number."""
        return x if number == 1 else self.ops.binary("mul", x, self.full(number))

    def saturated(self, x: ir.Value, size: int) -> ir.Value:
        """i64 as i32: what lies between -size and size as it is, all else somewhere beyond these.

        The high word less the sign of the low one is 0 where that is all, and has the sign of what
        lies beyond, which is moved far away.
        """
        ops = self.ops
        low = ops.cast(x, "i32")
        high = ops.cast(shifted(x, "right", 32, ops), "i32")
        beyond = ops.binary("sub", self.clamped(high, -2, 2), self.clamped(low, -1, 0))
        near = self.clamped(low, -1 - size, size)
        return ops.binary("add", near, self.times(beyond, 2 * LIMIT))


def taken_by_parts(table: ir.Value, places: ir.Value, parts: int, ops: TensorOps) -> ir.Value:
    """Elements of rows of a table [r, v] at places [r, n] in them, by parts of rows."""
    kind, shape = tensor_of(table.type), tensor_of(places.type).shape
    (rows, row), result = kind.shape, Tensor(shape, kind.element)
    width, words = ceil_div(row, parts), IndexWords(shape, ops)
    found: ir.Value | None = None
    for begin in range(0, row, width):
        end = min(begin + width, row)
        part = ops.cut(table, [0, begin], [rows, end])
        inside = places
        if parts > 1:
            inside = ops.binary("sub", inside, words.full(begin))
            inside = words.clamped(inside, 0, end - begin - 1)
        if rows > 1:
            numbers = np.arange(rows, dtype=np.int32) * (end - begin)
            first = ops.broadcast(ops.constant(numbers, "i32"), shape, [0])
            inside = ops.binary("add", inside, first)
        taken = ops.emit("gather_elements", [part, inside], result)
        if found is None:
            found = taken
        else:
            flags = Tensor(shape, "i1")
            before = ops.emit("compare", [places, words.full(begin)], flags, predicate="LT")
            found = ops.emit("select", [before, found, taken], result)
    assert found is not None, "a row has elements"
    return found
