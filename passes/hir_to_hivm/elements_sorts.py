"""Sorting by the scalar unit: each element goes to the place that the number of those before it
says."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.hir_to_hivm import elements, fallback
from davinci.passes.hir_to_hivm.elements import integer, number
from davinci.passes.hir_to_hivm.elements_arithmetic import Predicate, resized
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView, as_i64


@fallback("vsort")
def sort(translator: Translator, op: Op) -> None:
    """Along one axis, equal elements in their order; with the index of each, too.

    The vector unit sorts 32 pairs of a number and its index at a time; what AscendNPU-IR's library
    makes of that has no counterpart here.
    """
    given, *rest = list(op.operands)
    count = len(rest) - 1 if len(rest) > 1 else len(rest)  # the last one is a buffer to work in
    src = translator.view(op, given)
    outputs = [translator.view(op, value) for value in rest[:count]]
    if src.kind in ("i1", "s64") or not outputs or outputs[0].address == src.address:
        raise Unsupported(f"vsort of {src.kind} or in place")
    descending = bool(attribute(op, "descending", False))
    axis = attribute(op, "sort_axis", -1) % len(src.sizes)
    others = [n if i != axis else 1 for i, n in enumerate(src.sizes)]

    def there(at: Sequence[IndexLike], index: IndexLike) -> list[IndexLike]:
        return [*at[:axis], index, *at[axis + 1 :]]

    def row(at: list[IndexLike]) -> None:
        with builder.for_loop(0, src.sizes[axis]) as i, translator.emitter.block():
            bits = elements.read_bits(translator, src, there(at, i))
            mine, place = key(bits, src), as_i64(i)

            def step(j: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
                other = key(elements.read_bits(translator, src, there(at, j)), src)
                ahead = Predicate.sgt if descending else Predicate.slt
                before = arith.CmpIOp(ahead, other, mine).result
                equal = arith.CmpIOp(Predicate.eq, other, mine).result
                earlier = arith.CmpIOp(Predicate.slt, as_i64(j), place).result
                first = arith.OrIOp(before, arith.AndIOp(equal, earlier).result).result
                more = arith.ExtUIOp(integer(64), first).result
                return [arith.AddIOp(values[0], more).result]

            begin = [number(integer(64), 0)]
            (rank,) = elements.carried(translator, src.sizes[axis], begin, step)
            target = there(at, arith.IndexCastOp(ir.IndexType.get(), rank).result)
            elements.write_bits(translator, outputs[0], target, bits)
            for view in outputs[1:]:
                index = resized(place, elements.bits_type(view), signed=True)
                elements.write_bits(translator, view, target, index)

    with elements.on_the_scalar_unit(translator):
        elements.each(translator, others, row)


def key(bits: ir.Value, view: MemrefView) -> ir.Value:
    """An integer that is ordered as the element: of a negative float all bits but the sign are
    turned round."""
    if not elements.is_float(view.kind):
        return bits
    width = bits.type.width
    sign = arith.ShRSIOp(bits, number(bits.type, width - 1)).result
    turned = arith.AndIOp(sign, number(bits.type, (1 << (width - 1)) - 1)).result
    return arith.XOrIOp(bits, turned).result
