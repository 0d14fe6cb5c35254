"""Arithmetic, compares and casts by the scalar unit, of forms that have no vector instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.hir_to_hivm import elements, fallback
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.elements import integer, number
from davinci.passes.hir_to_hivm.elementwise import along
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView

Predicate = arith.CmpIPredicate
Ordered = arith.CmpFPredicate
Operand = MemrefView | ir.Value
"""What an operation reads: an array, or a scalar for all of its elements."""

Binary = Callable[[ir.Value, ir.Value], ir.Value]


def built(op: Callable[[ir.Value, ir.Value], Any]) -> Binary:
    """The function that builds an operation of two operands."""
    return lambda left, right: op(left, right).result


def divided(left: ir.Value, right: ir.Value) -> ir.Value:
    """left / right towards zero; all ones by zero, and no overflow, which would end the process."""
    kind = right.type
    zero, one, ones = number(kind, 0), number(kind, 1), number(kind, -1)
    bad = arith.CmpIOp(Predicate.eq, right, zero).result
    minus = arith.CmpIOp(Predicate.eq, right, ones).result
    safe = arith.SelectOp(arith.OrIOp(bad, minus).result, one, right).result
    made = arith.DivSIOp(left, safe).result
    negated = arith.SelectOp(minus, arith.SubIOp(zero, left).result, made).result
    return arith.SelectOp(bad, ones, negated).result


def remainder(left: ir.Value, right: ir.Value) -> ir.Value:
    """The remainder of that; `left` by zero."""
    kind = right.type
    zero, one, ones = number(kind, 0), number(kind, 1), number(kind, -1)
    bad = arith.CmpIOp(Predicate.eq, right, zero).result
    minus = arith.CmpIOp(Predicate.eq, right, ones).result
    safe = arith.SelectOp(arith.OrIOp(bad, minus).result, one, right).result
    return arith.SelectOp(bad, left, arith.RemSIOp(left, safe).result).result


def unsigned_remainder(left: ir.Value, right: ir.Value) -> ir.Value:
    zero, one = number(right.type, 0), number(right.type, 1)
    bad = arith.CmpIOp(Predicate.eq, right, zero).result
    safe = arith.SelectOp(bad, one, right).result
    return arith.SelectOp(bad, left, arith.RemUIOp(left, safe).result).result


INTEGERS: dict[str, Binary] = {
    "vadd": built(arith.AddIOp),
    "vsub": built(arith.SubIOp),
    "vmul": built(arith.MulIOp),
    "vdiv": divided,
    "vmod": remainder,
    "vmodui": unsigned_remainder,
    "vmax": built(arith.MaxSIOp),
    "vmin": built(arith.MinSIOp),
    "vand": built(arith.AndIOp),
    "vor": built(arith.OrIOp),
    "vxor": built(arith.XOrIOp),
    "vshl": built(arith.ShLIOp),
    "vshr": built(arith.ShRSIOp),
}
FLOATS: dict[str, Binary] = {
    "vadd": built(arith.AddFOp),
    "vsub": built(arith.SubFOp),
    "vmul": built(arith.MulFOp),
    "vdiv": built(arith.DivFOp),
    "vmax": built(arith.MaximumFOp),
    "vmin": built(arith.MinimumFOp),
}
BITWISE = ("vand", "vor", "vxor")
SHIFTS = ("vshl", "vshr")


def source(translator: Translator, op: Op, value: ir.Value, dst: MemrefView) -> Operand:
    """The view of an operand as large as the result, or a scalar."""
    return array(translator, op, value, dst) if translator.is_array(value) else value


def array(translator: Translator, op: Op, value: ir.Value, dst: MemrefView) -> MemrefView:
    """The view of an array, as large as the result."""
    return along(translator.view(op, value), dst.sizes)


def computed(
    translator: Translator, given: Operand, at: Sequence[IndexLike], kind: str
) -> ir.Value:
    """The value of an operand at an index."""
    if isinstance(given, MemrefView):
        return elements.read(translator, given, at)
    if kind == "f16" and isinstance(given.type, ir.F16Type):
        return arith.ExtFOp(ir.F32Type.get(), given).result
    return given


def refuse_transposed(op: Op) -> None:
    if attribute(op, "transpose"):
        raise Unsupported(f"{op.name.removeprefix('hir.')} that transposes")


@fallback(*INTEGERS)
def binary(translator: Translator, op: Op) -> None:
    """Two arrays, or an array and a scalar."""
    refuse_transposed(op)
    name = op.name.removeprefix("hir.")
    sources, targets, *_ = translator.groups(op)
    dst = translator.view(op, targets[0])
    given = [source(translator, op, value, dst) for value in sources]
    kinds = [view.kind for view in given if isinstance(view, MemrefView)]
    kind = kinds[0]
    floats = elements.is_float(kind) and name not in (*BITWISE, *SHIFTS)
    function = (FLOATS if floats else INTEGERS).get(name)
    if function is None:
        raise Unsupported(f"{name} of {kind}")
    unsigned = name in ("vdiv", "vmax", "vmin") and attribute(op, "is_signed") is False
    if unsigned:
        raise Unsupported(f"{name} of numbers without sign")

    def element(at: list[IndexLike]) -> ir.Value:
        if floats:
            left, right = (computed(translator, value, at, kind) for value in given)
            return elements.bits_of_value(function(left, right), dst.kind)
        left, right = (
            elements.read_bits(translator, value, at) if isinstance(value, MemrefView) else value
            for value in given
        )
        if right.type != left.type:
            right = arith.TruncIOp(left.type, right).result
        return function(left, right)

    elements.compute(translator, dst, element)


@fallback("vabs", "vnot", "vrelu")
def unary(translator: Translator, op: Op) -> None:
    refuse_transposed(op)
    name = op.name.removeprefix("hir.")
    sources, targets, *_ = translator.groups(op)
    dst = translator.view(op, targets[0])
    src = array(translator, op, sources[0], dst)
    if elements.is_float(src.kind) and name != "vnot":
        raise Unsupported(f"{name} of {src.kind}")

    def element(at: list[IndexLike]) -> ir.Value:
        bits = elements.read_bits(translator, src, at)
        if name == "vnot":
            return arith.XOrIOp(bits, number(bits.type, -1)).result
        zero = number(bits.type, 0)
        other = arith.SubIOp(zero, bits).result if name == "vabs" else zero
        return arith.MaxSIOp(bits, other).result

    elements.compute(translator, dst, element)


def resized(value: ir.Value, kind: ir.IntegerType, signed: bool) -> ir.Value:
    """An integer with as many bits as a type has."""
    have, want = value.type.width, kind.width
    if have == want:
        return value
    if have > want:
        return arith.TruncIOp(kind, value).result
    return (arith.ExtSIOp if signed else arith.ExtUIOp)(kind, value).result


def clamped(value: ir.Value, kind: ir.IntegerType, signed: bool) -> ir.Value:
    """A float towards zero as an integer, as large as there is; 0 for what is not a number."""
    i64, f32 = integer(64), ir.F32Type.get()
    low, high = number(f32, -(2.0**62)), number(f32, 2.0**62)
    near = arith.MaximumFOp(arith.MinimumFOp(value, high).result, low).result
    nan = arith.CmpFOp(Ordered.UNO, value, value).result
    whole = arith.FPToSIOp(i64, arith.SelectOp(nan, number(f32, 0.0), near).result).result
    if kind.width == 64:
        return whole
    least = -(1 << (kind.width - 1)) if signed else 0
    most = (1 << (kind.width - 1)) - 1 if signed else (1 << kind.width) - 1
    bounded = arith.MaxSIOp(arith.MinSIOp(whole, number(i64, most)).result, number(i64, least))
    return arith.TruncIOp(kind, bounded.result).result


@fallback("vcast")
def cast(translator: Translator, op: Op) -> None:
    """Between integers, and from and to floats where nothing but what is behind the point is lost.

    Raises:
        Unsupported: another rounding of a float.
    """
    refuse_transposed(op)
    sources, targets, *_ = translator.groups(op)
    dst = translator.view(op, targets[0])
    src = array(translator, op, sources[0], dst)
    mode, unsigned = word(op, "round_mode", "rint"), word(op, "cast") == "cast_unsigned"
    one, other = elements.is_float(src.kind), elements.is_float(dst.kind)
    booleans = src.kind == "i1"
    if one and not other and mode not in ("trunc", "truncwithoverflow"):
        raise Unsupported(f"vcast from {src.kind} to {dst.kind}, {mode}")
    kind = elements.bits_type(dst)

    def element(at: list[IndexLike]) -> ir.Value:
        value = elements.read(translator, src, at)
        if not one and not other:
            if dst.kind == "i1":
                return arith.CmpIOp(Predicate.ne, value, number(value.type, 0)).result
            return resized(value, kind, signed=not (unsigned or booleans))
        if one and other:
            return elements.bits_of_value(value, dst.kind)
        if one:
            return clamped(value, kind, signed=not unsigned)
        convert = arith.UIToFPOp if unsigned or booleans else arith.SIToFPOp
        return elements.bits_of_value(convert(ir.F32Type.get(), value).result, dst.kind)

    elements.compute(translator, dst, element)


COMPARES = {
    "eq": (Predicate.eq, Predicate.eq, Ordered.OEQ),
    "ne": (Predicate.ne, Predicate.ne, Ordered.UNE),
    "lt": (Predicate.slt, Predicate.ult, Ordered.OLT),
    "le": (Predicate.sle, Predicate.ule, Ordered.OLE),
    "gt": (Predicate.sgt, Predicate.ugt, Ordered.OGT),
    "ge": (Predicate.sge, Predicate.uge, Ordered.OGE),
}
"""Predicates of integers with and without sign, and of floats."""


@fallback("vcmp")
def compare(translator: Translator, op: Op) -> None:
    (left, right), (target,), *_ = translator.groups(op)
    dst = translator.view(op, target)
    mode = word(op, "compare_mode", "eq")
    signed, unsigned, ordered = COMPARES[mode]
    first, second = array(translator, op, left, dst), source(translator, op, right, dst)
    kind = first.kind
    without = attribute(op, "is_signed") is False

    def element(at: list[IndexLike]) -> ir.Value:
        one, other = (computed(translator, value, at, kind) for value in (first, second))
        if elements.is_float(kind):
            return arith.CmpFOp(ordered, one, other).result
        return arith.CmpIOp(unsigned if without else signed, one, other).result

    if dst.kind == "i1":
        elements.compute(translator, dst, element)
        return
    kind_of_result = elements.bits_type(dst)
    elements.compute(translator, dst, lambda at: arith.ExtUIOp(kind_of_result, element(at)).result)


@fallback("vsel")
def select(translator: Translator, op: Op) -> None:
    refuse_transposed(op)
    (condition, left, right), (target,), *_ = translator.groups(op)
    dst = translator.view(op, target)
    choice = array(translator, op, condition, dst)
    given = [source(translator, op, value, dst) for value in (left, right)]

    def bits(value: Operand, at: list[IndexLike]) -> ir.Value:
        if isinstance(value, MemrefView):
            return elements.read_bits(translator, value, at)
        return as_bits(value, elements.bits_type(dst))

    def element(at: list[IndexLike]) -> ir.Value:
        held = elements.read_bits(translator, choice, at)
        if choice.kind != "i1":
            held = arith.CmpIOp(Predicate.ne, held, number(held.type, 0)).result
        return arith.SelectOp(held, *(bits(value, at) for value in given)).result

    elements.compute(translator, dst, element)


def as_bits(value: ir.Value, kind: ir.IntegerType) -> ir.Value:
    """The bits of a scalar as an integer type of that size."""
    if isinstance(value.type, ir.IntegerType):
        return resized(value, kind, signed=True)
    return arith.BitcastOp(kind, value).result


@fallback("vbrc")
def broadcast(translator: Translator, op: Op) -> None:
    """A scalar everywhere, or an array along the dimensions in which it has one element."""
    given, target, *_ = list(op.operands)
    dst = translator.view(op, target)
    if not translator.is_array(given):
        bits = as_bits(given, elements.bits_type(dst))
        elements.compute(translator, dst, lambda at: bits)
        return
    src = array(translator, op, given, dst)
    elements.compute(translator, dst, lambda at: elements.read_bits(translator, src, at))


@fallback("copy")
def copy(translator: Translator, op: Op) -> None:
    given, target, *_ = list(op.operands)
    src, dst = translator.view(op, given), translator.view(op, target)
    elements.compute(translator, dst, lambda at: elements.read_bits(translator, src, at))


@fallback("varange")
def arange(translator: Translator, op: Op) -> None:
    """dst[i, j, ..] = offset + i * stride0 + j * stride1 + .."""
    targets, offsets, strides = translator.groups(op)
    dst = translator.view(op, targets[0])
    if len(strides) != len(dst.sizes):
        raise Unsupported("varange with fewer strides than dimensions")
    kind = elements.bits_type(dst)

    def element(at: list[IndexLike]) -> ir.Value:
        total: IndexLike = offsets[0] if offsets else 0
        for index, stride in zip(at, strides, strict=True):
            total = builder.add(total, builder.mul(index, stride))
        value = arith.IndexCastOp(integer(64), builder.as_value(total)).result
        if elements.is_float(dst.kind):
            made = arith.SIToFPOp(ir.F32Type.get(), value).result
            return elements.bits_of_value(made, dst.kind)
        return resized(value, kind, signed=True)

    elements.compute(translator, dst, element)
