"""Scales of the factors of attention's scores become one scale of the scores.

before:
    %q = "ascend.mul"(%a, %c)                 %c = 0.35355338 everywhere
    %k = "ascend.mul"(%b, %c)
    %s = "ascend.batch_matmul"(%q, %k)        whose softmax is taken
after:
    %p = "ascend.batch_matmul"(%a, %b)
    %s = "ascend.mul"(%p, %d)                 %d = 0.125 everywhere

PyTorch exports scaled_dot_product_attention with the root of the scale on either factor, which
would take a kernel in front of attention. The kernel of attention scales for nothing.
"""

from __future__ import annotations

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import Op, ir
from davinci.passes.analysis.group_graph import number_of
from davinci.passes.ascend.tensor_ops import PRODUCTS, TensorOps, defining_op, users_of

MOVED = frozenset({"ascend.reshape", "ascend.transpose", "ascend.cast"})
"""What may stand between a scale and its product."""

MASKING = frozenset({"ascend.add", "ascend.select", "ascend.min", *MOVED})
"""What may stand between scores and their softmax."""

MOST_BETWEEN = 8
"""Operators between scores and their softmax, a limit to the search."""


def combine_scales(exp: Op) -> bool:
    """Takes the scales of a product's factors behind it, if `exp` is of its softmax; whether there
    are any."""
    product = scores_of(exp)
    if product is None or tensor_of(product.results[0].type).element != "f32":
        return False
    scales = [scale for operand in product.operands if (scale := scale_of(operand)) is not None]
    if not scales:
        return False
    number = 1.0
    for scaled, value, factor in scales:
        scaled.results[0].replace_all_uses_with(value)
        scaled.erase()
        number *= factor
    result = product.results[0]
    found = tensor_of(result.type)
    users = users_of(product)
    with ir.InsertionPoint.after(product), product.location:
        ops = TensorOps()
        new = ops.binary("mul", result, ops.full(found.shape, found.element, number, found.layout))
    for user in users:
        for place, operand in enumerate(user.operands):
            if operand == result:
                user.operands[place] = new
    return True


def scores_of(exp: Op) -> ir.Operation | None:
    """The product that `exp` is the softmax of, with masks and scales in between; None if it is
    of something else."""
    sub = defining_op(exp.operands[0])
    if sub is None or sub.name != "ascend.sub":
        return None
    waiting, steps = [sub.operands[0]], 0
    while waiting and steps < MOST_BETWEEN:
        op, steps = defining_op(waiting.pop(0)), steps + 1
        if op is None:
            continue
        if op.name in PRODUCTS:
            return op.operation
        if op.name in MASKING:
            waiting += [value for value in op.operands if number_of(value) is None]
    return None


def scale_of(value: ir.Value) -> tuple[ir.Operation, ir.Value, float] | None:
    """The multiplication that scales a factor of a product and nothing else, what it scales, and by
    which number."""
    op = defining_op(value)
    while op is not None and op.name in MOVED and len(users_of(op)) == 1:
        op = defining_op(op.operands[0])
    if op is None or op.name != "ascend.mul" or len(users_of(op)) != 1:
        return None
    first, second = op.operands
    for given, beside in ((first, second), (second, first)):
        if (number := number_of(beside)) is not None and number > 0:
            return op.operation, given, float(number)
    return None
