"""Builds vector programs (`davinci.operators.vector_program`) on buffers in UB."""

from __future__ import annotations

from davinci.mlir import arith, ir
from davinci.operators.vector_program import ELEMENTS


def element_type(dtype: str) -> ir.Type:
    return ir.Type.parse(ELEMENTS[dtype])


def scalar(dtype: str, number: float) -> ir.Value:
    """An `arith.constant` of an element type."""
    kind = element_type(dtype)
    if isinstance(kind, ir.FloatType):
        return arith.ConstantOp(kind, ir.FloatAttr.get(kind, float(number))).result
    return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, int(number))).result
