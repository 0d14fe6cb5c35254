"""Slices, gathers, updates and scatters at computed indices as blocks of an array, see
`davinci.operators.blocks`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.machine import Machine, prices
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.blocks import COMBINED_TYPES
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.element_gathers import BlockForm, gathered_elements
from davinci.passes.stablehlo_to_ascend.index_wrapping import wrapped
from davinci.passes.stablehlo_to_ascend.reduced_values import seen_as
from davinci.units import BLOCK_BYTES, ceil_div

SUBTRACT = "sub"
"""A combination that is the addition of negated updates."""

COMBINED_BY = {
    "stablehlo.add": "add",
    "stablehlo.subtract": SUBTRACT,
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
}
"""Combinations by the operation that computes them."""


WORDS = dict.fromkeys(("f32", "i32", "f16", "i16", "ui8", "i8", "i1"), "i32") | {"i64": "i64"}
"""Integers that hold the bits of elements, and are added to an array as differences."""

WORD_BYTES = 4


@conversion("dynamic_update_slice")
def convert_dynamic_update_slice(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """One block, clamped so that it lies inside."""
    array, update, *indices = op.operands
    shape, block = tensor_of(array.type).shape, tensor_of(update.type).shape
    if 0 in block:
        return [array]
    if shape == block:
        return [update]
    given = starts_of(op, indices, shape, block, ops)
    if given is None:
        return None
    updates = ops.reshape(update, [1, *block])
    operands = [array, updates, given.pop("indices")]
    return [ops.emit("update_blocks", operands, tensor_of(array.type), skip=0, **given)]


def dynamic_slice(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """One block at starts that are not all known, clamped so that it lies inside."""
    array, *indices = op.operands
    result = tensor_of(op.results[0].type)
    shape, block = tensor_of(array.type).shape, result.shape
    given = starts_of(op, indices, shape, block, ops) if result.count else None
    if given is None:
        return None
    operands = [array, given.pop("indices")]
    found = Tensor((1, *block), result.element)
    return [ops.reshape(ops.emit("gather_blocks", operands, found, **given), block)]


def starts_of(
    op: Op, indices: Sequence[ir.Value], shape: Sequence[int], block: Sequence[int], ops: TensorOps
) -> dict[str, Any] | None:
    """The attributes of one block that begins at scalars, and its array of indices under
    "indices"; None if their type cannot be read."""
    marks = wrapped(op) or [0] * len(indices)
    axes, starts, columns, wrap = [], [], [], []
    for d, (index, size, length) in enumerate(zip(indices, shape, block, strict=True)):
        known = full_value(index)
        if known is None and size > length:
            axes.append(d)
            starts.append(0)
            columns.append(index)
            wrap.append(marks[d])
            continue
        first = 0 if known is None else int(known) + size * (marks[d] and int(known) < 0)
        starts.append(min(max(first, 0), size - length))
    if not axes:
        axes, wrap = [0], [0]
        table = ops.array(np.array([[starts[0]]], np.int32), Tensor((1, 1), "i32"))
        starts[0] = 0
    else:
        found = (integers(ops.reshape(index, [1, 1]), ops) for index in columns)
        numbers = [number for number in found if number is not None]
        if len(numbers) < len(columns):
            return None
        table = ops.concat(numbers, 1)
    batch = [0] * len(starts)
    return {"indices": table, "axes": axes, "starts": starts, "batch": batch, "wrap": wrap}


def integers(indices: ir.Value, ops: TensorOps) -> ir.Value | None:
    """Indices as i32 or i64; None if that has no conversion."""
    element = tensor_of(indices.type).element
    if element in ("i32", "i64"):
        return indices
    if element in ("ui32", "ui64"):  # which the scalar unit takes for what they are
        return None
    return ops.cast(indices, "i32")


def gathered_blocks(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """Any gather: blocks at tuples of indices."""
    array, indices = op.operands
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    result, found = tensor_of(op.results[0].type), tensor_of(array.type)
    block = list(attribute(op, "slice_sizes"))
    axes = list(numbers.start_index_map)
    if not result.count or not axes:
        return None
    table, outer = tuples(indices, numbers.index_vector_dim, len(axes), ops)
    if table is None:
        return None
    batch = batch_of(
        found.rank,
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True),
        numbers.index_vector_dim,
        outer,
    )
    places = BlockPlaces(table, axes, batch, wrapped(op) or [0] * len(axes))
    blocks = places.taken(array, block, ops)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [size for d, size in enumerate(block) if d not in dropped]
    rows = ops.reshape(blocks, [*outer, *kept])
    offsets = list(numbers.offset_dims)
    order = [*(i for i in range(result.rank) if i not in offsets), *offsets]
    return [ops.transpose(rows, [order.index(i) for i in range(result.rank)])]


@conversion("scatter")
def convert_scatter(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """A scatter that overwrites or combines: blocks at tuples of indices, left out where they are
    outside. Narrow floats are combined as f32."""
    by = combination_of(op) if len(op.results) == 1 else None
    if by is None:
        return None
    array, indices, updates = op.operands
    element = tensor_of(array.type).element
    if by and element in ("f16", "bf16"):
        array, updates = ops.cast(array, "f32"), ops.cast(updates, "f32")
    elif by and element not in COMBINED_TYPES:
        return None
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    found, given = tensor_of(array.type), tensor_of(updates.type)
    if not given.count or not found.count:
        return [op.operands[0]]
    axes = list(numbers.scattered_dims_to_operand_dims)
    windows = list(numbers.update_window_dims)
    scattered = [d for d in range(given.rank) if d not in windows]
    table, outer = tuples(indices, numbers.index_vector_dim, len(axes), ops)
    if table is None:
        return None
    batching = list(numbers.input_batching_dims)
    batch = batch_of(
        found.rank,
        zip(batching, numbers.scatter_indices_batching_dims, strict=True),
        numbers.index_vector_dim,
        outer,
    )
    dropped = {*numbers.inserted_window_dims, *batching}
    sizes = iter(windows)
    block = [1 if d in dropped else given.shape[next(sizes)] for d in range(found.rank)]
    # Of windows longer than 1 along an indexed dimension some elements may lie inside.
    if any(block[axis] > 1 for axis in axes):
        return None
    moved = ops.transpose(updates, [*scattered, *windows])
    rows = ops.reshape(moved, [math.prod(outer), *block])
    if by == SUBTRACT:
        rows, by = ops.unary("neg", rows), "add"
    places = BlockPlaces(table, axes, batch, wrapped(op) or [0] * len(axes))
    if by:
        return [ops.cast(places.combined(array, rows, by, ops), element)]
    unique, machine = bool(attribute(op, "unique_indices", False)), ops.machine
    if machine is not None and pays_differences(rows, found, unique, machine):
        return [overwritten(array, rows, places, unique, ops)]
    return [places.emit("update_blocks", [array, rows], found, ops, skip=1)]


@dataclass(frozen=True)
class BlockPlaces:
    """Where blocks of an array begin, as attributes of `davinci.operators.blocks` say."""

    indices: ir.Value
    axes: list[int]
    batch: list[int]
    wrap: list[int]

    def emit(
        self, name: str, operands: list[ir.Value], result: Tensor, ops: TensorOps, **attributes: Any
    ) -> ir.Value:
        """An operator on blocks at these places."""
        return ops.emit(
            name,
            [*operands, self.indices],
            result,
            axes=self.axes,
            starts=[0] * len(self.batch),
            batch=self.batch,
            wrap=self.wrap,
            **attributes,
        )

    def combined(self, array: ir.Value, rows: ir.Value, by: str, ops: TensorOps) -> ir.Value:
        return self.emit("combine_blocks", [array, rows], tensor_of(array.type), ops, by=by)

    def taken(self, array: ir.Value, block: Sequence[int], ops: TensorOps) -> ir.Value:
        """Blocks of an array: single elements as those of rows in UB, where that pays."""
        found, count = tensor_of(array.type), tensor_of(self.indices.type).shape[0]
        form = BlockForm(
            found,
            tuple(block),
            count,
            tuple(self.axes),
            tuple(map(bool, self.wrap)),
            tuple(self.batch),
        )
        by_elements = gathered_elements(array, self.indices, form, ops)
        if by_elements is not None:
            return by_elements
        return self.emit("gather_blocks", [array], Tensor((count, *block), found.element), ops)

    def gathered(self, array: ir.Value, like: ir.Value, ops: TensorOps) -> ir.Value:
        """The blocks of an array, of the shape of others."""
        return self.emit("gather_blocks", [array], tensor_of(like.type), ops)


def pays_differences(rows: ir.Value, array: Tensor, unique: bool, machine: Machine) -> bool:
    """Whether blocks are added to an array as differences in less time than they are written: short
    ones, each of which waits until the one before is in memory. That takes two gathers, two
    combinations, three launches more and an array of numbers, half of it where blocks are `unique`;
    elements of other widths are words meanwhile."""
    count, *block = tensor_of(rows.type).shape
    if array.element not in WORDS or block[-1] * array.bytes_each >= BLOCK_BYTES:
        return False
    written = count * (
        prices.reading(machine).result(BLOCK_BYTES) + prices.writing(machine).result(BLOCK_BYTES)
    )
    passes, launches = (2, 2) if unique else (4, 3)
    words = ceil_div(count * math.prod(block), machine.cores)
    moved = passes * prices.scalar_accesses(machine, words, "GM")
    arrays = (not unique) + 4 * (array.bytes_each < WORD_BYTES)
    part = ceil_div(array.count * WORD_BYTES, machine.cores)
    moved += arrays * prices.moving(machine, machine.cores, False, part)
    return written > moved + launches * machine.queued_cycles(1)


def overwritten(
    array: ir.Value, rows: ir.Value, places: BlockPlaces, unique: bool, ops: TensorOps
) -> ir.Value:
    """Blocks written to an array: the differences to the elements that are there are added to
    these, as integers of the same bits, of each element that of the last block which has it.

    Args:
        unique: whether no two blocks have an element in common.
    """
    kind, shape = tensor_of(array.type), tensor_of(rows.type).shape
    words, new = (words_of(x, ops) for x in (array, rows))
    word = tensor_of(words.type).element
    change = ops.binary("sub", new, places.gathered(words, new, ops))
    if not unique:
        numbers = ops.constant(np.arange(1, shape[0] + 1, dtype=np.int32), "i32")
        numbers = ops.broadcast(numbers, shape, [0])
        last = places.combined(ops.full(kind.shape, "i32", 0), numbers, "max", ops)
        operands = [places.gathered(last, numbers, ops), numbers]
        is_last = ops.emit("compare", operands, Tensor(shape, "i1"), predicate="EQ")
        none = ops.full(shape, word, 0)
        change = ops.emit("select", [is_last, change, none], Tensor(shape, word))
    found = places.combined(words, change, "add", ops)
    if kind.element == "f16":
        return seen_as(ops, ops.cast(found, "i16"), kind.element)
    return seen_as(ops, found, "f32") if kind.element == "f32" else ops.cast(found, kind.element)


def words_of(x: ir.Value, ops: TensorOps) -> ir.Value:
    """The bits of elements, or what they are in more bits."""
    element = tensor_of(x.type).element
    if element in ("f16", "f32"):
        x = seen_as(ops, x, "i16" if element == "f16" else "i32")
    return ops.cast(x, WORDS[element])


def combination_of(op: Op) -> str | None:
    """What a scatter makes of an element that was there and an update: "" if it stores the update,
    else a combination of `combine_blocks` or `SUBTRACT`; None if it does anything else."""
    block = op.regions[0].blocks[0]
    first, *others = [view.operation for view in block.operations]
    (result,) = (others or [first])[-1].operands
    if result == block.arguments[1]:
        return ""
    if len(others) != 1 or result not in list(first.results):
        return None
    operands, by = list(first.operands), COMBINED_BY.get(first.name)
    old, update = block.arguments
    if operands == [old, update] or (operands == [update, old] and by != SUBTRACT):
        return by
    return None


def tuples(
    indices: ir.Value, vector: int, columns: int, ops: TensorOps
) -> tuple[ir.Value | None, list[int]]:
    """Indices as tuples [n, columns], None if their type cannot be read, and the shape that n is
    of."""
    shape = list(tensor_of(indices.type).shape)
    order = [d for d in range(len(shape)) if d != vector]
    outer = [shape[d] for d in order]
    if vector < len(shape):
        indices = ops.transpose(indices, [*order, vector])
    return integers(ops.reshape(indices, [math.prod(outer), columns]), ops), outer


def batch_of(
    rank: int, pairs: Iterable[tuple[int, int]], vector: int, outer: Sequence[int]
) -> list[int]:
    """For each batching dimension of an array how many blocks in a row have one index along it.

    Args:
        pairs: such dimensions of the array, and of the indices.
        vector: the dimension of the indices that holds tuples.
        outer: shape of the indices without it.
    """
    batch = [0] * rank
    for dim, place in pairs:
        batch[dim] = math.prod(outer[place - (place > vector) + 1 :])
    return batch
