"""The steps that all reductions on the vector unit are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci.mlir import arith, ir
from davinci.operators.reduce import REDUCTIONS
from davinci.passes.builder import op, subview


@dataclass(frozen=True)
class Axis:
    """A dimension of the source: its stride in elements, and whether it is kept."""

    size: int
    stride: int
    kept: bool


def accumulator(kind: str, element: Any) -> Any:
    """The element type in which values of type `element` are combined."""
    return ir.Type.parse(REDUCTIONS[kind].accumulator(str(element)), element.context)


def widened(staging: Any, wide: Any) -> Any:
    """Converts what was loaded to the accumulator's type; without staging it is there already."""
    if staging is not None:
        op("cce.vconv", [staging, wide])
    return wide


def combine(kind: str, total: Any, more: Any) -> None:
    """total = kind(total, more), element by element."""
    op(f"cce.{REDUCTIONS[kind].step}", [total, more, total])


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
    return arith.ConstantOp(element, REDUCTIONS[kind].start(str(element))).result


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
