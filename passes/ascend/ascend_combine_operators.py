"""ascend-combine-operators: finds operators that models spell out in others.

before:
    %s = "ascend.mul"(%x, %c) : (..)          %c = 0.70710678 everywhere
    %e = "ascend.erf"(%s) : (..)
    %f = "ascend.add"(%e, %one) : (..)
    %g = "ascend.mul"(%x, %f) : (..)
    %y = "ascend.mul"(%g, %half) : (..)
after:
    %y = "ascend.gelu"(%x) : (..)

So are numbers that are rounded, shifted by a zero point and saturated on their way to bytes one
`quantize`, in front of which a `relu` is left out that saturating does as well, and scales of the
factors of attention's scores are one scale of these (`score_scales`).

Factors and terms may stand in any order, and the scale be a division. An operator that has further
users is still there for them. Constants may differ by one part in 10^4, as models round them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.element_types import dtype_of
from davinci.mlir import Op, ir
from davinci.operators.quantize import QUANTIZED
from davinci.passes.analysis.group_graph import number_of
from davinci.passes.analysis.origins import fuse
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.score_scales import combine_scales
from davinci.passes.ascend.tensor_ops import TensorOps, defining_op, tensor_functions, users_of
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import REWRITES_HELP
from davinci.passes.pipeline.rewrites import chosen, expected

TOLERANCE = 1e-4


@register_pass
@dataclass(frozen=True)
class AscendCombineOperatorsPass(Pass):
    """Find operators that models spell out in others."""

    NAME = "ascend-combine-operators"

    rewrites: str = option("all", REWRITES_HELP, expected=expected)

    def run(self, op: Op) -> None:
        names = chosen(self.rewrites)
        ways = {name: way for name, way in WAYS.items() if way[0] in names}
        counts: Counter[str] = Counter()
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            for operation in [o.operation for o in block.operations]:
                if operation.name in ways:
                    name, combine = ways[operation.name]
                    counts[name] += combine(operation)
        for name, count in counts.items():
            note(op, name, count)


def combine_gelu(erf: Op) -> bool:
    """Replaces x (1 + erf(x / sqrt 2)) / 2, if `erf` is part of one; whether it is."""
    x = scaled(erf.operands[0], math.sqrt(0.5))
    sum_ = only_user(erf, "ascend.add")
    if x is None or sum_ is None or not is_close(other(sum_, erf.result), 1.0):
        return False
    number, arrays, parts = 1.0, list[ir.Value](), [erf, sum_]
    while (product := only_user(parts[-1], "ascend.mul")) is not None:
        found = factors(other(product, parts[-1].result))
        number, arrays = number * found[0], arrays + found[1]
        parts.append(product)
        if arrays == [x] and close(number, 0.5):
            replace(parts, x)
            return True
        if len(arrays) > 1 or (arrays and arrays != [x]):
            return False
    return False


def combine_quantize(cast: Op) -> bool:
    """Replaces min(max(round(x) + zero, lowest), highest) in bytes, if `cast` ends one; whether it
    does."""
    result = tensor_of(cast.results[0].type)
    if result.element not in QUANTIZED:
        return False
    limits = np.iinfo(dtype_of(result.element))
    low, high = float(limits.min), float(limits.max)
    clamped = with_number(cast.operands[0], "ascend.min", high)
    clamped = None if clamped is None else with_number(clamped, "ascend.max", low)
    if clamped is None:
        return False
    zero, whole = plus_number(clamped)
    rounding = defining_op(whole)
    if rounding is None or rounding.name != "ascend.round":
        return False
    if not low <= zero <= high or not float(zero).is_integer():
        return False
    x = rounding.operands[0]
    with ir.InsertionPoint(cast), cast.location:
        ops = TensorOps()
        x = without_relu(x, ops) if zero == low else x
        new = ops.emit("quantize", [x], result, zero=int(zero))
    fuse(new.owner, [rounding.location])
    cast.results[0].replace_all_uses_with(new)
    cast.erase()
    return True


WAYS = {
    "ascend.erf": ("gelu", combine_gelu),
    "ascend.cast": ("quantize", combine_quantize),
    "ascend.exp": ("score-scales", combine_scales),
}
"""The rewrite that an operation may be part of, and what does it."""


def without_relu(x: ir.Value, ops: TensorOps) -> ir.Value:
    """`x`, but where a `relu` made a number 0 it may be any less."""
    owner = defining_op(x)
    if owner is None:
        return x
    if owner.name == "ascend.relu":
        return owner.operands[0]
    if owner.name not in ("ascend.div", "ascend.mul"):
        return x
    first, second = owner.operands
    scale, source = number_of(second), defining_op(first)
    if scale is None or scale <= 0 or source is None or source.name != "ascend.relu":
        return x
    return ops.binary(owner.name.removeprefix("ascend."), source.operands[0], second)


def with_number(value: ir.Value, name: str, number: float) -> ir.Value | None:
    """What `name` combines with a number to make `value`; None if it does not."""
    op = defining_op(value)
    if op is not None and (op.name, name, number) == ("ascend.relu", "ascend.max", 0.0):
        return op.operands[0]
    if op is None or op.name != name:
        return None
    return next((given for given, found in with_numbers(op) if found == number), None)


def plus_number(value: ir.Value) -> tuple[float, ir.Value]:
    """The number and the value whose sum a value is."""
    op = defining_op(value)
    if op is not None and op.name == "ascend.add":
        for given, number in with_numbers(op):
            return number, given
    return 0.0, value


def with_numbers(op: Op) -> Iterator[tuple[ir.Value, float]]:
    """Operands of an operator of two, each with what the other is, where that is one number."""
    first, second = op.operands
    for given, beside in ((first, second), (second, first)):
        if (number := number_of(beside)) is not None:
            yield given, number


def replace(parts: list[Op], x: ir.Value) -> None:
    last = parts[-1]
    with ir.InsertionPoint(last), last.location:
        new = TensorOps().unary("gelu", x)
    fuse(new.owner, [part.location for part in parts[:-1]])
    last.result.replace_all_uses_with(new)
    for part in reversed(parts):
        part.erase()


def scaled(value: ir.Value, scale: float) -> ir.Value | None:
    """What `value` is `scale` times of, None if it is not."""
    op = defining_op(value)
    if op is None or op.name not in ("ascend.mul", "ascend.div"):
        return None
    first, second = op.operands
    if op.name == "ascend.div":
        return first if is_close(second, 1 / scale) else None
    if is_close(first, scale):
        return second
    return first if is_close(second, scale) else None


def factors(value: ir.Value) -> tuple[float, list[ir.Value]]:
    """A number and the array whose product a value is."""
    if (number := number_of(value)) is not None:
        return number, []
    op = defining_op(value)
    if op is not None and op.name == "ascend.mul":
        for array, known in with_numbers(op):
            return known, [array]
    return 1.0, [value]


def only_user(op: Op, name: str) -> Op | None:
    """The operator `name` that is the only user of a result, None if there is no such."""
    users = users_of(op)
    return users[0] if len(users) == 1 and users[0].name == name else None


def other(op: Op, value: ir.Value) -> ir.Value:
    first, second = op.operands
    return second if first == value else first


def close(number: float, wanted: float) -> bool:
    return math.isclose(number, wanted, rel_tol=TOLERANCE)


def is_close(value: ir.Value, wanted: float) -> bool:
    number = number_of(value)
    return number is not None and close(number, wanted)
