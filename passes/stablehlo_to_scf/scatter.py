"""`scatter`: a loop over the updates, each combined with the element its index names."""

from __future__ import annotations

from davinci.mlir import Op, arith, ir, scf, stablehlo
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.stablehlo_to_ascend.index_wrapping import wrapped
from davinci.passes.stablehlo_to_scf import lowering
from davinci.passes.stablehlo_to_scf.elements import (
    Values,
    all_of,
    apply,
    as_index,
    extract,
    insert,
    inside,
    restored,
    select,
    stored,
)


@lowering("scatter")
def lower_scatter(op: Op) -> Values:
    """Updates in the order of their elements, which is the interpreter's.

    An update outside of the operand is skipped: the element that is nearest keeps its value.
    """
    count = len(op.results)
    operands = [stored(v) for v in list(op.operands)[:count]]
    if 0 in operands[0].type.shape or 0 in op.operands[count + 1].type.shape:
        return list(op.operands)[:count]
    places = UpdatePlaces(op, count)
    updates = [stored(v) for v in list(op.operands)[count + 1 :]]

    def update(at: Values, start: Values, results: Values) -> Values:
        position = places.position(at, start)
        shape = operands[0].type.shape
        fits = all_of([inside(p, n) for p, n in zip(position, shape, strict=True)])
        safe = [select(fits, p, builder.constant_index(0)) for p in position]
        old = [extract(r, safe) for r in results]
        new = apply(op.regions[0], [*old, *(extract(u, at) for u in updates)])
        chosen = [select(fits, n, o) for n, o in zip(new, old, strict=True)]
        return [insert(s, r, safe) for s, r in zip(chosen, results, strict=True)]

    def nest(at: Values, start: Values | None, results: Values) -> Values:
        """Loops over the remaining dimensions; indices are read where all they need is known."""
        if start is None and max(places.scattered, default=-1) < len(at):
            start = places.start(at)
        if len(at) == len(places.shape):
            return update(at, start or [], results)
        first, stop, step = map(builder.as_value, (0, places.shape[len(at)], 1))
        loop = scf.ForOp(first, stop, step, results)
        with ir.InsertionPoint(loop.body):
            inner = nest([*at, loop.induction_variable], start, list(loop.inner_iter_args))
            scf.YieldOp(inner)
        return list(loop.results)

    return restored(nest([], None, operands), op.results)


class UpdatePlaces:
    """Where an update goes, by the dimension numbers of a scatter.

    Attributes:
        shape: of the updates.
        scattered: dimensions of the updates that say which index; the others lie in a window.
    """

    def __init__(self, op: Op, count: int) -> None:
        numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        indices = op.operands[count]
        self.shape = list(op.operands[count + 1].type.shape)
        self._sizes = list(op.operands[0].type.shape)
        self._rank = len(self._sizes)
        self._wraps = any(wrapped(op))
        self._indices = stored(indices)
        self._unsigned = indices.type.element_type.is_unsigned
        self._windows = list(numbers.update_window_dims)
        self._vector = numbers.index_vector_dim
        self._targets = list(numbers.scattered_dims_to_operand_dims)
        self._batching = dict(
            zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        collapsed = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        self._whole = [d for d in range(self._rank) if d not in collapsed]
        self.scattered = [d for d in range(len(self.shape)) if d not in self._windows]

    def start(self, at: Values) -> Values:
        """Where the window of an update begins, one position a dimension of the operand."""
        which = [at[d] for d in self.scattered]
        start: Values = [builder.constant_index(0)] * self._rank
        for number, target in enumerate(self._targets):
            place: list[IndexLike] = list(which)
            if self._vector < self._indices.type.rank:
                place.insert(self._vector, number)
            index = as_index(extract(self._indices, place), self._unsigned)
            start[target] = self._from_end(index, target) if self._wraps else index
        for target, batch in self._batching.items():
            start[target] = which[batch - (batch > self._vector)]
        return start

    def _from_end(self, index: ir.Value, target: int) -> ir.Value:
        """An index that counts from the end of a dimension if it is negative."""
        behind = arith.AddIOp(index, builder.constant_index(self._sizes[target])).result
        zero = builder.constant_index(0)
        negative = arith.CmpIOp(arith.CmpIPredicate.slt, index, zero).result
        return arith.SelectOp(negative, behind, index).result

    def position(self, at: Values, start: Values) -> Values:
        position = list(start)
        for target, window in zip(self._whole, self._windows, strict=True):
            position[target] = arith.AddIOp(start[target], at[window]).result
        return position
