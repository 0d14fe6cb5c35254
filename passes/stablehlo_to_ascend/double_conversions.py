"""Conversions of f64 as its bits, integers of 64 bits, to and from other types of numbers, made of
StableHLO operations at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.mlir import ir
from davinci.passes.ascend.kernel_outline import is_boolean
from davinci.passes.stablehlo_to_ascend import double_order as order
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.integer_ranges import has_no_sign, range_of_type

FLOATS = {"f32": "double_to_single", "f16": "double_to_half"}
"""Operators that make other floats of f64."""

EXPONENT = 1 << 52
"""What twice a number's bits are above its own."""


def is_double(kind: ir.Type) -> bool:
    """Whether a type is a tensor of f64 of a static shape."""
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return False
    return isinstance(kind.element_type, ir.F64Type)


def operator(name: str, operands: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """The result of an operator of `ascend`."""
    return t.op("custom_call", operands, kind, call_target_name=f"ascend.{name}")


def bits_from(x: ir.Value) -> ir.Value | None:
    """Numbers as bits of f64. Booleans are 0 and 1. Unsigned integers of 64 bits whose highest bit
    is set are twice what is left without their last bit, which is that or the one before it."""
    bits, element = as_integers(x.type), x.type.element_type
    if is_boolean(x.type):
        return t.select(x, t.full(bits, order.ONE), t.full(bits, 0))
    if isinstance(element, ir.FloatType):
        single = ir.RankedTensorType.get(x.type.shape, ir.F32Type.get())
        return operator("double_from_single", [as_type(x, single)], bits)
    if not has_no_sign(x.type) or element.width < 64:
        return operator("double_from_long", [as_type(x, bits)], bits)
    x = t.op("bitcast_convert", [x], bits)
    large = order.related("LT", x, 0)
    half = order.combined("shift_right_logical", x, 1)
    half = order.combined("or", half, order.combined("and", x, 1))
    made = operator("double_from_long", [t.select(large, half, x)], bits)
    return t.select(large, order.combined("add", made, EXPONENT), made)


def other_of(bits: ir.Value, kind: ir.RankedTensorType) -> ir.Value | None:
    """f64 of bits as numbers of another type; None of other floats than f32 and f16. All but zeros
    are true, and integers are the nearest ones towards zero, 0 of NaN."""
    element = kind.element_type
    if is_boolean(kind):
        return order.related("NE", order.magnitude(bits), 0)
    if isinstance(element, ir.FloatType):
        name = FLOATS.get(str(element))
        return None if name is None else operator(name, [bits], kind)
    if has_no_sign(kind) and element.width == 64:
        return t.op("bitcast_convert", [unsigned_of(bits)], kind)
    whole = operator("double_to_long", [bits], bits.type)
    if element.width < 64:
        least, most = range_of_type(kind)
        whole = order.combined("maximum", whole, least)
        whole = order.combined("minimum", whole, most)
    return as_type(whole, kind)


def unsigned_of(bits: ir.Value) -> ir.Value:
    """The bits of unsigned integers of 64 bits nearest to f64 towards zero: from 2^63 on they are
    twice those of half the number."""
    number = order.related("LE", bits, order.INFINITY)
    large, beyond = (
        order.combined("and", number, order.related("GE", bits, order.ONE + power * EXPONENT))
        for power in (63, 64)
    )
    half = order.combined("subtract", bits, EXPONENT)
    whole = operator("double_to_long", [t.select(large, half, bits)], bits.type)
    whole = order.combined("maximum", whole, 0)
    whole = t.select(large, order.combined("shift_left", whole, 1), whole)
    return t.select(beyond, t.full(bits.type, -1), whole)


def as_type(x: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """A conversion, or the value itself."""
    return x if x.type == kind else t.op("convert", [x], kind)


def as_integers(kind: ir.ShapedType) -> ir.RankedTensorType:
    """Tensors of integers of 64 bits, of the shape of another type."""
    return ir.RankedTensorType.get(kind.shape, ir.IntegerType.get_signless(64))


def halved(name: str, bits: ir.Value, dim: int) -> ir.Value:
    """Numbers along a dimension combined to one: those beyond a power of two first."""
    while (size := bits.type.shape[dim]) > 1:
        half = 1 << (size - 1).bit_length() - 1
        first, last = t.cut(bits, dim, 0, size - half), t.cut(bits, dim, half, size)
        combined = [operator(name, [first, last], first.type)]
        if 2 * half > size:
            combined.append(t.cut(bits, dim, size - half, half))
        bits = t.concatenate(combined, dim)
    return bits
