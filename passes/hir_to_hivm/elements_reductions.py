"""Reductions and running sums by the scalar unit, in the order of the elements."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.hir_to_hivm import elements, fallback
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.elements import integer, number
from davinci.passes.hir_to_hivm.elements_arithmetic import (
    FLOATS,
    INTEGERS,
    Ordered,
    Predicate,
    resized,
)
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import as_i64

CUMULATIVE = {"vcumsum": "vadd", "vcumprod": "vmul", "vcummax": "vmax", "vcummin": "vmin"}


@fallback(*CUMULATIVE)
def cumulate(translator: Translator, op: Op) -> None:
    """Each element is the sum (product, ...) of those up to it, or from it on."""
    name = op.name.removeprefix("hir.")
    given, target, *_ = list(op.operands)
    src, dst = translator.view(op, given), translator.view(op, target)
    (dim,) = attribute(op, "cum_dims")
    reverse = bool(attribute(op, "reverse", False))
    combine = (FLOATS if elements.is_float(src.kind) else INTEGERS)[CUMULATIVE[name]]
    size = src.sizes[dim]
    others = [n if i != dim else 1 for i, n in enumerate(src.sizes)]

    def along_dim(at: Sequence[IndexLike], index: IndexLike) -> list[IndexLike]:
        if reverse:
            last = builder.as_value(builder.add(size, -1))
            index = arith.SubIOp(last, builder.as_value(index)).result
        return [*at[:dim], index, *at[dim + 1 :]]

    def row(at: list[IndexLike]) -> None:
        first = elements.read(translator, src, along_dim(at, 0))
        elements.write(translator, dst, along_dim(at, 0), first)

        def step(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            there = along_dim(at, builder.add(index, 1))
            made = combine(values[0], elements.read(translator, src, there))
            elements.write(translator, dst, there, made)
            return [made]

        elements.carried(translator, builder.add(size, -1), [first], step)

    with elements.on_the_scalar_unit(translator):
        elements.each(translator, others, row)


REDUCTIONS = {
    "sum": "vadd",
    "prod": "vmul",
    "max": "vmax",
    "min": "vmin",
    "xori": "vxor",
    "andi": "vand",
    "ori": "vor",
    "any": "vor",
    "all": "vand",
}


@fallback("vreduce")
def reduce(translator: Translator, op: Op) -> None:
    """Along one dimension, in the order of the elements; with the index of the result, too."""
    (given,), targets, *_ = translator.groups(op)
    name = word(op, "arith")
    src = translator.view(op, given)
    outputs = [translator.view(op, value) for value in targets]
    dims = list(attribute(op, "reduce_dims"))
    floats = elements.is_float(src.kind)
    dst = outputs[0]
    if attribute(op, "unsigned_src", False) and name in ("max", "min"):
        raise Unsupported(f"vreduce {name} of numbers without sign")
    others = [1 if i in dims else n for i, n in enumerate(src.sizes)]
    with_index = "_with_index" in name
    if len(dims) != 1 or (not with_index and name not in REDUCTIONS):
        raise Unsupported(f"vreduce {name} along several dimensions" if with_index else name)
    (dim,) = dims
    combine = None
    if not with_index:
        combine = (FLOATS if floats else INTEGERS).get(REDUCTIONS[name])
        if combine is None:
            raise Unsupported(f"vreduce {name} of {src.kind}")

    def there(at: Sequence[IndexLike], index: IndexLike) -> list[IndexLike]:
        return [*at[:dim], index, *at[dim + 1 :]]

    def row(at: list[IndexLike]) -> None:
        first = elements.read(translator, src, there(at, 0))

        def step(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            place = builder.add(index, 1)
            found = elements.read(translator, src, there(at, place))
            if combine is not None:
                return [combine(values[0], found)]
            taken = better(name, values[0], found, floats)
            at_ = as_i64(place)
            return [
                arith.SelectOp(taken, found, values[0]).result,
                arith.SelectOp(taken, at_, values[1]).result,
            ]

        begin = [first, number(integer(64), 0)] if with_index else [first]
        made = elements.carried(translator, builder.add(src.sizes[dim], -1), begin, step)
        elements.write(translator, dst, at, made[0])
        for view in outputs[1:]:
            index = resized(made[1], elements.bits_type(view), signed=True)
            elements.write_bits(translator, view, at, index)

    with elements.on_the_scalar_unit(translator):
        elements.each(translator, others, row)


def better(name: str, best: ir.Value, found: ir.Value, floats: bool) -> ir.Value:
    """Whether a later element takes the place of the best one: the first of equal ones stays,
    the last one where the name says `right`; what is not a number is taken once."""
    right, most = name.endswith("_right"), name.startswith("max")
    if not floats:
        names = {(True, True): "sge", (True, False): "sgt", (False, True): "sle"}
        predicate = getattr(Predicate, names.get((most, right), "slt"))
        return arith.CmpIOp(predicate, found, best).result
    names = {(True, True): "OGE", (True, False): "OGT", (False, True): "OLE"}
    ahead = arith.CmpFOp(getattr(Ordered, names.get((most, right), "OLT")), found, best).result
    nan = arith.CmpFOp(Ordered.UNO, found, found).result
    was_number = arith.CmpFOp(Ordered.ORD, best, best).result
    return arith.OrIOp(ahead, arith.AndIOp(nan, was_number).result).result
