"""Forms of `scatter` that are others, which blocks of an array (`blocks`) have kernels for.

    windows at known places          slice, function, dynamic_update_slice
    indices known to be 0 along a    are left out: the window begins where the dimension does
    dimension that windows fill
    windows longer than 1 along      one for each of their lines, that begins at
    indexed dimensions               index + number of the line
    booleans, bytes, 16 bits,        the same of i32 or i64, and back
    integers without a sign
    places that differ, and any      gather, function, scatter that overwrites
    function

    "scatter"(%x, %i, %u)            window [3, 8] along dimension 0 of [50, 8], indices [n, 1]
    "scatter"(%x, %j, %u)            window [1, 8], indices [n, 3, 1]: %i, %i + 1, %i + 2

An element of a window that lies outside is left out, those beside it are not; so lines are what
they were. StableHLO does not say in which order updates of one element come; it stays here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.passes import builder
from davinci.passes.ascend.kernel_outline import is_boolean
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.elementwise_regions import (
    applied,
    is_elementwise,
    overwrites,
    sole_operation,
)
from davinci.passes.stablehlo_to_ascend.index_bounds import bounds_of, known_indices
from davinci.passes.stablehlo_to_ascend.integer_ranges import has_no_sign, is_integer

COMBINED = frozenset(
    f"stablehlo.{x}" for x in ("add", "subtract", "multiply", "maximum", "minimum")
)
"""Functions that kernels of blocks combine numbers by."""

ORDERED = frozenset({"stablehlo.maximum", "stablehlo.minimum"})

OF_BOOLEANS = {
    **dict.fromkeys(("stablehlo.or", "stablehlo.maximum", "stablehlo.add"), "maximum"),
    **dict.fromkeys(("stablehlo.and", "stablehlo.minimum", "stablehlo.multiply"), "minimum"),
}
"""The function of the numbers 0 and 1 that stands for each function of booleans."""

MOST_KNOWN = 8
"""Windows at known places that are updated one after the other, each by a kernel."""


@dataclass(frozen=True)
class Scatter:
    """A scatter of one array.

    Attributes:
        op: the operation.
        array, indices, updates: its operands, or what takes their place.
        axes: dimensions of the array that columns of the indices are of.
        windows: dimensions of the updates that are a window's, in the order of the array's.
        inserted, batching: dimensions of the array that windows do not have.
        batches: dimensions of the indices that go with `batching`.
        vector: the dimension of the indices that holds tuples, their rank if there is none.
        unique: whether no element is updated twice.
    """

    op: Op
    array: ir.Value
    indices: ir.Value
    updates: ir.Value
    axes: list[int]
    windows: list[int]
    inserted: list[int]
    batching: list[int]
    batches: list[int]
    vector: int
    unique: bool

    @staticmethod
    def of(op: Op) -> Scatter:
        given = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        array, indices, updates = op.operands
        found = Scatter(
            op,
            array,
            indices,
            updates,
            list(given.scattered_dims_to_operand_dims),
            list(given.update_window_dims),
            list(given.inserted_window_dims),
            list(given.input_batching_dims),
            list(given.scatter_indices_batching_dims),
            given.index_vector_dim,
            bool(attribute(op, "unique_indices", False)),
        )
        one = math.prod(found.updates.type.shape[d] for d in found.scattered) == 1
        return replace(found, unique=True) if one else found

    @property
    def scattered(self) -> list[int]:
        """Dimensions of the updates that are the indices'."""
        return [d for d in range(self.updates.type.rank) if d not in self.windows]

    @property
    def kept(self) -> list[int]:
        """Dimensions of the array that windows have."""
        dropped = {*self.inserted, *self.batching}
        return [d for d in range(self.array.type.rank) if d not in dropped]

    @property
    def lengths(self) -> list[int]:
        """Elements of a window along each dimension of the array."""
        found = [1] * self.array.type.rank
        for d, window in zip(self.kept, self.windows, strict=True):
            found[d] = self.updates.type.shape[window]
        return found

    @property
    def tuples(self) -> ir.Value:
        """Indices whose last dimension holds tuples."""
        rank = self.indices.type.rank
        if self.vector == rank:
            return t.reshape(self.indices, [*self.indices.type.shape, 1])
        return t.transpose(
            self.indices, [*(d for d in range(rank) if d != self.vector), self.vector]
        )

    @property
    def function(self) -> Op | None:
        """The operation that the function is, of an element and an update; None of others."""
        return sole_operation(self.op.regions[0])

    @property
    def overwrites(self) -> bool:
        """Whether updates are stored as they are."""
        return overwrites(self.op.regions[0])

    @property
    def is_combination(self) -> bool:
        """Whether kernels of blocks combine by the function, if they have the type."""
        return self.function is not None and self.function.name in COMBINED

    def built(self, fill: Callable[[ir.Block], None] | None = None) -> ir.Value:
        """The result of the operation with these operands.

        Args:
            fill: builds the function in a block with two arguments; else it is as it was.
        """
        fields = {
            "update_window_dims": self.windows,
            "inserted_window_dims": self.inserted,
            "input_batching_dims": self.batching,
            "scatter_indices_batching_dims": self.batches,
            "scatter_dims_to_operand_dims": self.axes,
            "index_vector_dim": self.vector,
        }
        text = ", ".join(f"{name} = {value}" for name, value in fields.items())
        attributes = {
            "scatter_dimension_numbers": ir.Attribute.parse(f"#stablehlo.scatter<{text}>"),
            "indices_are_sorted": ir.BoolAttr.get(False),
            "unique_indices": ir.BoolAttr.get(self.unique),
        }
        operands = [self.array, self.indices, self.updates]
        if fill is None:
            same = self.op.operation.clone()
            for place, operand in enumerate(operands):
                same.operands[place] = operand
            for name, value in attributes.items():
                same.attributes[name] = value
            return same.results[0]
        made = ir.Operation.create(
            "stablehlo.scatter",
            results=[self.array.type],
            operands=operands,
            attributes=attributes,
            regions=1,
        )
        scalar = ir.RankedTensorType.get([], self.array.type.element_type)
        here = ir.Location.current
        block = made.regions[0].blocks.append(scalar, scalar, arg_locs=[here, here])
        with ir.InsertionPoint(block):
            fill(block)
        return made.result


def expand_scatter(op: Op) -> list[ir.Value] | None:
    """What a `stablehlo.scatter` is by other operations; None where blocks have kernels for it, or
    nothing else does."""
    if len(op.results) != 1:
        return None
    array, _, updates = op.operands
    if 0 in array.type.shape or 0 in updates.type.shape:
        return [array]
    scatter = Scatter.of(op)
    if not scatter.axes:
        return None
    for form in (at_known_places, from_the_start, of_wider_integers, by_lines, once_each):
        found = form(scatter)
        if found is not None:
            return [found]
    return None


def at_known_places(scatter: Scatter) -> ir.Value | None:
    """Windows whose places are known, one after the other: the part of each that lies inside, as an
    update of a slice. Several only if they would be cut to lines otherwise."""
    count = math.prod(scatter.updates.type.shape[d] for d in scatter.scattered)
    several = any(scatter.lengths[axis] > 1 for axis in scatter.axes) and not scatter.batching
    if count > (MOST_KNOWN if several else 1) or not is_elementwise(scatter.op.regions[0]):
        return None
    known = known_indices(scatter.tuples)
    if known is None:
        return None
    windows = t.transpose(scatter.updates, [*scatter.scattered, *scatter.windows])
    windows = t.reshape(windows, [count, *scatter.lengths])
    array = scatter.array
    for number, place in enumerate(known.reshape(count, -1)):
        starts = [0] * array.type.rank
        for axis, index in zip(scatter.axes, place, strict=True):
            starts[axis] = int(index)
        window = t.reshape(t.cut(windows, 0, number, number + 1), scatter.lengths)
        array = _updated_at(array, window, starts, scatter.op.regions[0])
    return array


def _updated_at(
    array: ir.Value, window: ir.Value, starts: Sequence[int], function: ir.Region
) -> ir.Value:
    """An array with a function of its elements and a window's where that lies."""
    old, places = array, []
    for d, (start, size) in enumerate(zip(starts, array.type.shape, strict=True)):
        first, end = max(start, 0), min(start + window.type.shape[d], size)
        if first >= end:
            return array
        window, old = t.cut(window, d, first - start, end - start), t.cut(old, d, first, end)
        places.append(first)
    (new,) = applied(function, [old, window])
    scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
    return t.op(
        "dynamic_update_slice",
        [array, new, *(t.full(scalar, place) for place in places)],
        array.type,
    )


def from_the_start(scatter: Scatter) -> ir.Value | None:
    """Without the columns of indices that are known to be 0, of dimensions that windows have."""
    low, high = bounds_of(scatter.tuples)
    free = [
        column
        for column, axis in enumerate(scatter.axes)
        if axis in scatter.kept and not low[..., column].any() and not high[..., column].any()
    ]
    if len(free) == len(scatter.axes):  # which leaves no indices
        free = free[1:]
    if not free:
        return None
    tuples = scatter.tuples
    left = [column for column in range(len(scatter.axes)) if column not in free]
    last = tuples.type.rank - 1
    columns = [t.cut(tuples, last, column, column + 1) for column in left]
    axes = [scatter.axes[column] for column in left]
    return replace(_with_tuples(scatter, t.concatenate(columns, last)), axes=axes).built()


def _with_tuples(scatter: Scatter, tuples: ir.Value) -> Scatter:
    """With other indices, whose last dimension holds tuples."""
    batches = [d - (d > scatter.vector) for d in scatter.batches]
    return replace(scatter, indices=tuples, vector=tuples.type.rank - 1, batches=batches)


def by_lines(scatter: Scatter) -> ir.Value | None:
    """Windows of one element along indexed dimensions, as many as the lines of others."""
    lengths = scatter.lengths
    cut = [axis for axis in scatter.axes if lengths[axis] > 1]
    known = scatter.overwrites or scatter.is_combination
    known = known or (scatter.unique and is_elementwise(scatter.op.regions[0]))
    if not cut or not known:
        return None
    tuples = wide_enough(scatter.tuples)
    own = dict(zip(scatter.kept, scatter.windows, strict=True))
    kept = [d for d in scatter.kept if d not in cut]
    order = [*scatter.scattered, *(own[d] for d in cut), *(own[d] for d in kept)]
    updates = t.transpose(scatter.updates, order)
    outer = len(scatter.scattered)
    sizes = [lengths[axis] for axis in cut]
    steps = np.zeros([*sizes, len(scatter.axes)], np.int64)
    for number, axis in enumerate(cut):
        along = [-1 if d == number else 1 for d in range(len(cut))]
        steps[..., scatter.axes.index(axis)] += np.arange(lengths[axis]).reshape(along)
    shape = [*tuples.type.shape[:-1], *sizes, len(scatter.axes)]
    kind = ir.RankedTensorType.get(shape, tuples.type.element_type)
    dtype = np.dtype(f"i{kind.element_type.width // 8}")
    spread = t.broadcast(tuples, kind, [*range(outer), len(shape) - 1])
    added = t.constant(steps.astype(dtype), kind.element_type)
    added = t.broadcast(added, kind, list(range(outer, len(shape))))
    found = _with_tuples(scatter, t.add(spread, added))
    return replace(
        found,
        updates=updates,
        windows=list(range(outer + len(cut), len(order))),
        inserted=sorted([*scatter.inserted, *cut]),
    ).built()


def wide_enough(indices: ir.Value) -> ir.Value:
    """Indices in a type that holds sums with numbers of lines, or sums that are outside too: i32
    as they are, as what wraps around lies outside, others in i64."""
    element = indices.type.element_type
    if element.width >= 32 and not has_no_sign(indices.type):
        return indices
    if element.width == 64:
        indices = t.op("minimum", [indices, t.full(indices.type, 1 << 62)], indices.type)
    long = ir.IntegerType.get_signless(64)
    return t.op("convert", [indices], ir.RankedTensorType.get(indices.type.shape, long))


def of_wider_integers(scatter: Scatter) -> ir.Value | None:
    """Combinations of booleans and narrow integers, and extremes of those without a sign, by those
    of integers with a sign that hold them: of 64 bits, those with half of the range added."""
    kind = scatter.array.type
    function = scatter.function
    if function is None or not is_integer(kind):
        return None
    name, width = function.name, kind.element_type.width
    unsigned = has_no_sign(kind)
    if is_boolean(kind):
        name = OF_BOOLEANS.get(name, "")
    elif name in COMBINED and (width in (8, 16) or (unsigned and name in ORDERED and width > 8)):
        name = name.removeprefix("stablehlo.")
    else:
        return None
    if not name:
        return None
    wide = ir.IntegerType.get_signless(64 if width >= 32 else 32)

    def widened(x: ir.Value) -> ir.Value:
        target = ir.RankedTensorType.get(x.type.shape, wide)
        if width < 64:
            return t.op("convert", [x], target)
        return _half_added(t.op("bitcast_convert", [x], target))

    turned = list(function.operands) != list(scatter.op.regions[0].blocks[0].arguments)

    def combined(block: ir.Block) -> None:
        operands = list(block.arguments)[:: -1 if turned else 1]
        builder.op("stablehlo.return", [t.op(name, operands, operands[0].type)])

    array, updates = widened(scatter.array), widened(scatter.updates)
    made = replace(scatter, array=array, updates=updates).built(combined)
    if width == 64:
        return t.op("bitcast_convert", [_half_added(made)], kind)
    if is_boolean(kind):
        return t.compare("NE", made, t.full(made.type, 0))
    return t.op("convert", [made], kind)


def _half_added(x: ir.Value) -> ir.Value:
    """i64 with half of their range added, as they wrap around."""
    return t.add(x, t.full(x.type, -(1 << 63)))


def once_each(scatter: Scatter) -> ir.Value | None:
    """Elements that are updated once by a function that blocks do not combine by: those that are
    there, gathered, and what the function gives stored. What lies outside is left out there."""
    double = isinstance(scatter.array.type.element_type, ir.F64Type)
    if scatter.overwrites or not scatter.unique or (scatter.is_combination and not double):
        return None
    if not is_elementwise(scatter.op.regions[0]):
        return None
    fields = {
        "offset_dims": scatter.windows,
        "collapsed_slice_dims": scatter.inserted,
        "operand_batching_dims": scatter.batching,
        "start_indices_batching_dims": scatter.batches,
        "start_index_map": scatter.axes,
        "index_vector_dim": scatter.vector,
    }
    text = ", ".join(f"{name} = {value}" for name, value in fields.items())
    old = t.op(
        "gather",
        [scatter.array, scatter.indices],
        scatter.updates.type,
        dimension_numbers=ir.Attribute.parse(f"#stablehlo.gather<{text}>"),
        slice_sizes=scatter.lengths,
    )
    (new,) = applied(scatter.op.regions[0], [old, scatter.updates])

    def stored(block: ir.Block) -> None:
        builder.op("stablehlo.return", [block.arguments[1]])

    return replace(scatter, updates=new).built(stored)
