"""Bitwise and logical operators."""

from __future__ import annotations

import numpy as np

from davinci.operators.core import WHOLE, elementwise
from davinci.operators.formulas import in_f16, kind_of, to_byte
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import Operand, Value, VectorProgram

BITS = frozenset({"i1", "i16"})


@elementwise(values=np.bitwise_and, types=BITS, constraints=WHOLE)
def and_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a & b, bitwise; of booleans the product."""
    if kind_of(a, b) == "s16":
        return p.binary("vand", a, b)
    return to_byte(p, p.mul(in_f16(p, a), in_f16(p, b)))


@elementwise(values=np.bitwise_or, types=BITS, constraints=WHOLE)
def or_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a | b, bitwise; of booleans the maximum."""
    if kind_of(a, b) == "s16":
        return p.binary("vor", a, b)
    return to_byte(p, p.max(in_f16(p, a), in_f16(p, b)))


@elementwise(values=np.bitwise_xor, types=BITS, constraints=WHOLE)
def xor(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a ^ b, bitwise: what is in either and not in both; of booleans the difference."""
    if kind_of(a, b) == "s16":
        both = p.binary("vand", a, b)
        return p.binary("vand", p.binary("vor", a, b), p.unary("vnot", both))
    return to_byte(p, p.unary("vabs", p.sub(in_f16(p, a), in_f16(p, b))))


@elementwise(values=lambda a, result: np.invert(a), types=BITS | {"i32"}, constraints=WHOLE)
def not_(p: VectorProgram, a: Value, *, result: Tensor) -> Value:
    """Bitwise complement: -1 - a of integers, 1 - a of booleans."""
    if result.element == "i1":
        return to_byte(p, p.add(p.mul(p.convert(a, "f16"), -1.0), 1.0))
    return p.sub(-1, a) if a.dtype == "s32" else p.unary("vnot", a)
