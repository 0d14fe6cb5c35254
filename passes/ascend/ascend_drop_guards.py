"""ascend-drop-guards: drops selections against rows of a softmax of which nothing is left.

before:
    %m = "ascend.constant"() {value = dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32>} : ..
    %x = "ascend.add"(%product, %m) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    (%p = softmax of the rows of %x)
    %n = "ascend.compare"(%p, %p) {predicate = "NE"} : (..) -> tensor<2x2xi1>
    %y = "ascend.select"(%n, %zero, %p) : (..) -> tensor<2x2xf32>
after:
    (%p = softmax of the rows of %x)

A row is no number only where its mask is minus infinity everywhere. Models that guard against that
often have a mask that is known, and of which something is left in every row, or one that hides by
the lowest finite number: then the guard does nothing to finite scores, and without it softmax and
products around it are attention (`attention_grouping`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.analysis.group_graph import number_of
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.tensor_ops import (
    PRODUCTS,
    constant_array,
    defining_op,
    erase_unused,
    tensor_functions,
)
from davinci.passes.ascend.value_ranges import Ranges
from davinci.passes.pipeline.base import Pass, register_pass

MOVED = frozenset({"ascend.reshape", "ascend.broadcast", "ascend.relayout"})


@register_pass
@dataclass(frozen=True)
class AscendDropGuardsPass(Pass):
    """Drop selections against rows of a softmax of which nothing is left."""

    NAME = "ascend-drop-guards"

    def run(self, op: Op) -> None:
        count = 0
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            for select in [o.operation for o in block.operations if o.name == "ascend.select"]:
                guarded = guarded_by(select)
                scores = scores_of(guarded) if guarded is not None else None
                if guarded is not None and scores is not None and every_row_has_a_number(scores):
                    select.result.replace_all_uses_with(guarded)
                    count += 1
            erase_unused(block)
        note(op, "drop-guards", count)


def guarded_by(select: Op) -> ir.Value | None:
    """What a selection puts zero in the place of where it is no number, None if it is another."""
    flags, chosen, value = select.operands
    compare = made_by(flags, "ascend.compare")
    if compare is None or attribute(compare, "predicate") != "NE" or number_of(chosen) != 0:
        return None
    return value if all(operand == value for operand in compare.operands) else None


def scores_of(value: ir.Value) -> ir.Value | None:
    """What `value` is the softmax of, along the last dimension; None if it is none."""
    div = made_by(value, "ascend.div")
    exp = made_by(div.operands[0], "ascend.exp") if div is not None else None
    sub = made_by(exp.operands[0], "ascend.sub") if exp is not None else None
    if div is None or exp is None or sub is None:
        return None
    scores = sub.operands[0]
    largest, total = reduced(sub.operands[1], "max"), reduced(div.operands[1], "add")
    if largest is None or total is None:
        return None
    return scores if largest == scores and total == exp.result else None


def reduced(value: ir.Value, kind: str) -> ir.Value | None:
    """What a value that is the same along each row is the reduction of, None if it is none."""
    op = defining_op(value)
    while op is not None and (op.name in MOVED or op.name == "ascend.max"):
        values = [v for v in op.operands if number_of(v) != -np.inf]  # which no maximum needs
        op = defining_op(values[0]) if len(values) == 1 else None
    if op is None or op.name != "ascend.reduce" or attribute(op, "kind") != kind:
        return None
    rank = tensor_of(op.operands[0].type).rank
    return op.operands[0] if list(attribute(op, "dims")) == [rank - 1] else None


def every_row_has_a_number(value: ir.Value) -> bool:
    """Whether each row of scores has one that is not minus infinity, as far as what is known of
    masks goes: results of products are finite."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name in PRODUCTS or Ranges().is_finite(value):
        return True
    if op.name == "ascend.add":
        first, second = op.operands
        return (every_row_has_a_number(first) and is_mask(second)) or (
            every_row_has_a_number(second) and is_mask(first)
        )
    if op.name in ("ascend.mul", "ascend.div"):
        return number_of(op.operands[1]) is not None and every_row_has_a_number(op.operands[0])
    keeps_rows = op.name in ("ascend.cast", "ascend.relayout") or (
        op.name == "ascend.reshape" and last(op.operands[0]) == last(value)
    )
    return keeps_rows and every_row_has_a_number(op.operands[0])


def is_mask(value: ir.Value) -> bool:
    """Whether a value is known, no more than numbers and minus infinity, and a number somewhere in
    each row."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "ascend.constant":
        array = constant_array(op).astype(np.float32)
        return bool((array < np.inf).all() and (array > -np.inf).any(axis=-1).all())
    if op.name in ("ascend.broadcast", "ascend.reshape"):
        return last(op.operands[0]) == last(value) and is_mask(op.operands[0])
    return op.name in ("ascend.cast", "ascend.relayout") and is_mask(op.operands[0])


def last(value: ir.Value) -> int:
    """The size of the last dimension."""
    return int(tensor_of(value.type).shape[-1])


def made_by(value: ir.Value, name: str) -> ir.Operation | None:
    """The operation that makes a value if it is a `name`, else None."""
    op = defining_op(value)
    return op.operation if op is not None and op.name == name else None
