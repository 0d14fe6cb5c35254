"""Concatenations whose operands are made where their parts of the result lie."""

from __future__ import annotations

import math

from davinci.mlir import Op, ir
from davinci.passes.ascend.grouping import joined_in_place
from davinci.passes.ascend.kernel_outline import memref_of
from davinci.passes.ascend.tensor_ops import defining_op


def parts_of_joined(
    block: ir.Block, returned: set[ir.Value]
) -> dict[ir.Value, tuple[ir.Value, int]]:
    """For each value that is made in place inside the result of a concatenation: that result, and
    the offset in it in bytes. A value has one place at most; what the function returns has
    another."""
    found: dict[ir.Value, tuple[ir.Value, int]] = {}
    for operation in block.operations:
        op = operation.operation
        if op.name != "ascend.concat" or not joined_in_place(op):
            continue
        for operand, offset in zip(op.operands, offsets_of(op), strict=True):
            owner = defining_op(operand)
            made = owner is not None and (owner.name == "func.call" or is_kernel(owner))
            if made and operand not in found and operand not in returned:
                found[operand] = op.results[0], offset
    return found


def is_kernel(op: Op) -> bool:
    """Whether an operator's result is made by a kernel of its own, or is joined in place."""
    views = ("full", "constant", "iota", "reshape", "view", "reinterpret", "slice")
    return op.name.startswith("ascend.") and op.name.removeprefix("ascend.") not in views


def offsets_of(concat: Op) -> tuple[int, int]:
    """Where operands of a concatenation in place lie in its result, in bytes."""
    first = memref_of(concat.operands[0].type)
    return 0, math.prod(first.shape) * first.element_type.width // 8
