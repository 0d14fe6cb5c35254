"""`select_and_scatter`: of each window one element is selected, and a source value goes there."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.elements import to_array
from davinci.mlir import Op, arith
from davinci.passes import builder
from davinci.passes.stablehlo_to_scf import lowering
from davinci.passes.stablehlo_to_scf.elements import (
    Values,
    all_of,
    apply,
    boolean,
    buffer,
    extract,
    for_each,
    insert,
    inside,
    restored,
    select,
    stored,
)


@lowering("select_and_scatter")
def lower_select_and_scatter(op: Op) -> Values:
    """A loop over windows, and in it one over the elements of the window.

    What a window selects is carried as position and value, and whether there is one yet: elements
    of the padding are none.
    """
    operand, source, start = (stored(value) for value in op.operands)
    shape, rank = operand.type.shape, operand.type.rank
    initial = extract(start)
    filled = for_each(shape, [buffer(operand.type)], lambda at, t: [insert(initial, t[0], at)])
    if 0 in shape or 0 in source.type.shape:
        return restored(filled, op.results)
    window = attribute(op, "window_dimensions", [1] * rank)
    strides = attribute(op, "window_strides", [1] * rank)
    low = [0] * rank
    if "padding" in op.attributes:
        low = to_array(op.attributes["padding"])[:, 0].tolist()
    zero = builder.constant_index(0)

    def visit(first: Values, within: Values, best: Values) -> Values:
        """Takes the element of a window if it is the first, or the one before is not selected."""
        found, value, *position = best
        at = [arith.AddIOp(a, b).result for a, b in zip(first, within, strict=True)]
        fits = all_of([inside(p, n) for p, n in zip(at, shape, strict=True)])
        safe = [select(fits, p, zero) for p in at]
        candidate = extract(operand, safe)
        (keep,) = apply(op.regions[0], [value, candidate])
        stays = arith.AndIOp(found, keep).result
        taken = select(fits, select(stays, boolean(False), boolean(True)), boolean(False))
        kept = [select(taken, a, b) for a, b in zip(safe, position, strict=True)]
        return [arith.OrIOp(found, fits).result, select(taken, candidate, value), *kept]

    def scatter(at: Values, results: Values) -> Values:
        first: Values = [
            arith.SubIOp(
                arith.MulIOp(i, builder.constant_index(s)).result, builder.constant_index(p)
            ).result
            for i, s, p in zip(at, strides, low, strict=True)
        ]
        nothing: Values = [boolean(False), extract(operand, [zero] * rank), *[zero] * rank]
        found, _, *place = for_each(window, nothing, lambda w, best: visit(first, w, best))
        old = extract(results[0], place)
        (new,) = apply(op.regions[1], [old, extract(source, at)])
        return [insert(select(found, new, old), results[0], place)]

    return restored(for_each(source.type.shape, filled, scatter), op.results)
