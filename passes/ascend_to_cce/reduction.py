"""The steps that all reductions on the vector unit are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from davinci.mlir import arith, ir
from davinci.passes.builder import op, subview

ROUNDED = frozenset({"add", "mul"})
"""Kinds whose partial results are rounded: f16 accumulates in f32."""

VECTOR_OPS = {"add": "cce.vadd", "max": "cce.vmax", "min": "cce.vmin", "mul": "cce.vmul"}


@dataclass(frozen=True)
class Axis:
    """A dimension of the source: its stride in elements, and whether it is kept."""

    size: int
    stride: int
    kept: bool


def accumulator(kind: str, element: Any) -> Any:
    """The element type in which values of type `element` are combined."""
    if kind in ROUNDED and isinstance(element, ir.F16Type):
        return ir.F32Type.get(element.context)
    return element


def widened(staging: Any, wide: Any) -> Any:
    """Converts what was loaded to the accumulator's type; without staging it is there already."""
    if staging is not None:
        op("cce.vconv", [staging, wide])
    return wide


def combine(kind: str, total: Any, more: Any) -> None:
    """total = kind(total, more), element by element."""
    op(VECTOR_OPS[kind], [total, more, total])


def fold_rows(kind: str, buffer: Any, rows: int, width: int) -> None:
    """Combines the first `rows` rows of a [.., ..] buffer into row 0, in halves."""
    while rows > 1:
        half = -(-rows // 2)
        upper = subview(buffer, [half, 0], [rows - half, width])
        combine(kind, subview(buffer, [0, 0], [rows - half, width]), upper)
        rows = half


def fold_columns(kind: str, buffer: Any, rows: int, width: int, block: int, most: int) -> int:
    """Combines the columns of a [.., ..] buffer in halves, block by block; returns those left.

    Args:
        block: elements of a block; halves start at blocks.
        most: columns that may remain, at least a block.
    """
    while width > most:
        half = -(-width // (2 * block)) * block
        upper = subview(buffer, [0, half], [rows, width - half])
        combine(kind, subview(buffer, [0, 0], [rows, width - half]), upper)
        width = half
    return width


def neutral(kind: str, element: Any) -> Any:
    """The value that leaves others as they are."""
    if isinstance(element, ir.FloatType):
        value = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf}[kind]
        return arith.ConstantOp(element, ir.FloatAttr.get(element, value)).result
    high = (1 << (element.width - 1)) - 1
    number = {"add": 0, "mul": 1, "max": -high - 1, "min": high}[kind]
    return arith.ConstantOp(element, ir.IntegerAttr.get(element, number)).result


def scalar_op(kind: str, a: Any, b: Any) -> Any:
    """a combined with b by the scalar unit."""
    floats = {
        "add": arith.AddFOp,
        "mul": arith.MulFOp,
        "max": arith.MaximumFOp,
        "min": arith.MinimumFOp,
    }
    integers = {
        "add": arith.AddIOp,
        "mul": arith.MulIOp,
        "max": arith.MaxSIOp,
        "min": arith.MinSIOp,
    }
    chosen = floats if isinstance(a.type, ir.FloatType) else integers
    return chosen[kind](a, b).result
