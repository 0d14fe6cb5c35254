"""What `ascend_fuse` does to operators before it looks for groups.

sink                     %b = broadcast %s, used twice    becomes    a broadcast for each user
round_behind_reshapes    reshape(cast(x))                 becomes    cast(reshape(x))
cast_before_broadcasts   cast(broadcast(s))               becomes    broadcast(cast(s))
round_before_limits      cast(min(x, 6))                  becomes    min(cast(x), 6)
mark_exact               div(x, y), rounded later         becomes    div(x, y) {exact}
"""

from __future__ import annotations

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import ir, owner_of
from davinci.operators import OPERATORS
from davinci.operators.tensors import ND
from davinci.passes.ascend.grouping import BEGINS, is_candidate, is_free
from davinci.passes.ascend.product_grouping import is_rounding
from davinci.passes.ascend.tensor_ops import (
    HALF,
    ON_CUBE,
    TensorOps,
    defining_op,
    erase_unused,
    full_value,
    read_once,
)
from davinci.schedule.moves.piece_rules import RULES
from davinci.schedule.vector.tile_program import decides

LIMITS = ("ascend.max", "ascend.min")
"""Operators that choose one of their operands."""


def sink(block: ir.Block) -> None:
    """Gives each user of a free operator one of its own, right in front of it; what is read by the
    first operators of kernels is made once for all."""
    for op in reversed([o.operation for o in block.operations]):
        if not is_free(op):
            continue
        uses = [(use.owner.operation, use.operand_number) for use in op.result.uses]
        if any(BEGINS in user.attributes for user, _ in uses):
            continue
        for user, number in uses[1:]:
            with ir.InsertionPoint(user):
                user.operands[number] = op.clone().operation.results[0]


def cast_before_broadcasts(block: ir.Block) -> None:
    """Converts computed values before they are repeated: fewer elements are converted, and what
    reads the repeated values finds what computes them behind operators that cost nothing.

    A broadcast of a constant stays as it is, which products and foldings look for.
    """
    for cast in [o.operation for o in block.operations if o.operation.name == "ascend.cast"]:
        broadcast = defining_op(cast.operands[0])
        if broadcast is None or broadcast.name != "ascend.broadcast":
            continue
        source = broadcast.operands[0]
        if any(tensor_of(value.type).layout != ND for value in (source, *cast.operands)):
            continue
        if (maker := defining_op(source)) is None or not is_candidate(maker):
            continue
        ops, result = TensorOps(), tensor_of(cast.results[0].type)
        with ir.InsertionPoint(cast), cast.location:
            converted = ops.cast(source, result.element)
            repeated = ops.broadcast(converted, result.shape, attribute(broadcast, "dims"))
        if BEGINS in broadcast.attributes:
            owner_of(repeated).attributes[BEGINS] = broadcast.attributes[BEGINS]
        cast.results[0].replace_all_uses_with(repeated)
    erase_unused(block)


def round_behind_reshapes(block: ir.Block) -> None:
    """Brings roundings of rows next to the products that need them, which round on the way."""
    for product in [o.operation for o in block.operations if o.operation.name in ON_CUBE]:
        for number, value in enumerate(product.operands):
            reshape = defining_op(value)
            if reshape is None or reshape.name != "ascend.reshape" or not read_once(value):
                continue
            if is_rounding(reshape.operands[0]):
                ops, result = TensorOps(), tensor_of(value.type)
                with ir.InsertionPoint(product), reshape.location:
                    source = ops.reshape(reshape.operands[0].owner.operands[0], result.shape)
                    product.operands[number] = ops.cast(source, result.element)
    erase_unused(block)


def round_before_limits(block: ir.Block) -> None:
    """Rounds before numbers are limited by one that rounds to itself, which is the same bit for
    bit, as rounding keeps their order. Cores of the cube round products on their way out, and fewer
    bytes go from them to the vector cores that limit."""
    for cast in [o.operation for o in block.operations if o.operation.name == "ascend.cast"]:
        source, result = cast.operands[0], tensor_of(cast.results[0].type)
        limit = defining_op(source)
        if limit is None or limit.name not in LIMITS or not read_once(source):
            continue
        bounds = [full_value(value) for value in limit.operands]
        exact = any(b is not None for b in bounds) and all(
            b is None or np.float16(b) == b for b in bounds
        )
        if (tensor_of(source.type).element, result.element) != ("f32", HALF) or not exact:
            continue
        ops = TensorOps()
        with ir.InsertionPoint(cast), cast.location:
            rounded = [
                ops.cast(value, HALF)
                if bound is None
                else ops.full(result.shape, HALF, bound, result.layout)
                for value, bound in zip(limit.operands, bounds, strict=True)
            ]
            made = ops.binary(limit.name.removeprefix("ascend."), *rounded)
        cast.results[0].replace_all_uses_with(made)
    erase_unused(block)


def mark_exact(block: ir.Block) -> None:
    """Marks divisions whose result is compared or rounded to whole numbers by operators behind
    them, though these may be in other kernels: a step of quantization that is off by its last bit
    makes another byte. Products and reductions in between end the search, as they round anyhow."""
    decided: set[ir.Value] = set()
    for op in reversed([o.operation for o in block.operations]):
        name = op.name.removeprefix("ascend.")
        record = OPERATORS.get(name)
        if record is None or not (record.elementwise or name in RULES):
            continue
        result = op.results[0]
        if result in decided and op.name == "ascend.div":
            op.attributes["exact"] = ir.UnitAttr.get()
        if result in decided or decides(name, tensor_of(result.type).element):
            decided.update(op.operands)
