"""Sums that policy `fp16` keeps in f32 until what is made of them is in the range of f16 again.

before:
    %q = "ascend.mul"(%x, %x) : (tensor<8x768xf32>, tensor<8x768xf32>) -> tensor<8x768xf32>
    %s = "ascend.reduce"(%q) {kind = "add", ..} : (tensor<8x768xf32>) -> tensor<8xf32>
    %v = "ascend.div"(%s, %n) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %r = "ascend.rsqrt"(%v) : (tensor<8xf32>) -> tensor<8xf32>
kept in f32: all of them; of %r the f16 values are broadcast.

The sum of squares of 768 values with a deviation of 12 is 110,592, which f16 does not hold, and the
square of 256 is beyond its range already. What a mean, a variance or a norm is made of is one value
a row, so f32 costs little; squares in front of a sum are computed in f32 where only sums read them.
A division by a sum itself is computed in f32 on all values. Sums of exponentials less their maxima
are at most their number, and stay f16: those of attention.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    POOL,
    TensorOps,
    defining_op,
    definition,
    full_value,
    is_elementwise,
    is_f32,
    readers_of,
)

REDUCE, BROADCAST, RESHAPE = "ascend.reduce", "ascend.broadcast", "ascend.reshape"

GROWING = frozenset({"ascend.mul", "ascend.pow", "ascend.exp", "ascend.div"})
"""Operations whose results leave f16 although their operands do not."""

SHRINKING = frozenset(f"ascend.{name}" for name in ("sqrt", "rsqrt", "log", "reciprocal"))
"""Operations that bring a sum back into the range of f16."""

FEW = 8
"""Elements that a sum has at least for what follows it to cost nothing."""

LARGEST_HALF = 65_504

LEAST_ROOT = 2.0**-15
"""The least power of two whose inverse f16 holds."""

BOUNDS = {"ascend.sqrt": ("max", LEAST_ROOT), "ascend.rsqrt": ("min", 1 / LEAST_ROOT)}
"""What roots of sums are bounded by, so that neither they nor their inverses leave f16."""


@dataclass
class WideSums:
    """What is kept in f32, and of which of it f16 holds all values.

    Attributes:
        wide: results that stay f32.
        sums: results that may be as large as a sum is.
        small: results that have few elements beside what is summed.
    """

    wide: set[ir.Value] = field(default_factory=set)
    sums: set[ir.Value] = field(default_factory=set)
    small: set[ir.Value] = field(default_factory=set)


def wide_sums(block: ir.Block, foldable: set[ir.Value]) -> set[ir.Value]:
    """Results of operations of a block that policy `fp16` leaves in f32.

    Args:
        foldable: values that depend on constants only.
    """
    found = WideSums()
    operations = [operation.operation for operation in block.operations]
    for op in operations:
        if op.name.startswith("ascend.") and op.name not in CONSTANTS and is_f32(op.results[0]):
            look_at(op, found, foldable)
    for op in reversed(operations):
        if op.name in GROWING and is_f32(op.results[0]) and only_summed(op, found.wide):
            found.wide.add(op.results[0])
    return found.wide


def look_at(op: Op, found: WideSums, foldable: set[ir.Value]) -> None:
    """Adds an operation if it is a sum, or computes with one that f16 may not hold."""
    result = op.results[0]
    if is_sum(op):
        if not of_exponentials(op):
            found.wide.add(result)
            found.sums.add(result)
            if summed_elements(op) >= FEW:
                found.small.add(result)
        return
    computed = [v for v in op.operands if not definition(v) and v not in foldable]
    large = any(value in found.sums for value in computed)
    if op.name == BROADCAST:
        if large:
            found.wide.add(result)
            found.sums.add(result)
    elif is_elementwise(op) or op.name == RESHAPE:
        small = bool(computed) and all(value in found.small for value in computed)
        if not large and not small:
            return
        found.wide.add(result)
        if small:
            found.small.add(result)
        if large and not shrinks(op, found):
            found.sums.add(result)


def is_sum(op: Op) -> bool:
    """Whether an operation adds elements, of rows or of windows."""
    return op.name in (REDUCE, POOL) and attribute(op, "kind") == "add"


def summed_elements(op: Op) -> int:
    """Elements of which one of the result is the sum, about."""
    result = tensor_of(op.results[0].type).count
    return tensor_of(op.operands[0].type).count // max(1, result)


def shrinks(op: Op, found: WideSums) -> bool:
    """Whether an operation on a sum gives what f16 holds if it holds what was added.

    That are means, roots, and quotients of which the sum is the divisor.
    """
    if op.name in SHRINKING:
        return True
    if op.name == "ascend.div":
        return full_value(op.operands[1]) is not None or op.operands[1] in found.sums
    numbers = [full_value(value) for value in op.operands]
    return op.name == "ascend.mul" and any(n is not None and abs(n) < 1 for n in numbers)


def of_exponentials(op: Op) -> bool:
    """Whether a sum is one of exponentials of differences from maxima, so at most their number."""
    if op.name != REDUCE or summed_elements(op) > LARGEST_HALF:
        return False
    exp = through(op.operands[0], RESHAPE)
    if exp is None or exp.name != "ascend.exp":
        return False
    shifted = through(exp.operands[0], RESHAPE)
    if shifted is None or shifted.name != "ascend.sub":
        return False
    largest = through(shifted.operands[1], BROADCAST, RESHAPE)
    return largest is not None and largest.name == REDUCE and attribute(largest, "kind") == "max"


def through(value: ir.Value, *moves: str) -> ir.OpView | None:
    """What computes a value, looking through operations of these names."""
    owner = defining_op(value)
    while owner is not None and owner.name in moves:
        owner = defining_op(owner.operands[0])
    return owner


def bound_roots(block: ir.Block, wide: set[ir.Value]) -> None:
    """Bounds roots of sums to which a number is added that only f32 holds, as 1e-12 of a layer
    normalisation: of a row of equal values that is all there is, and 0 over its root is to stay 0.

    Args:
        wide: results that stay f32; what is added here joins them.
    """
    for op in [operation.operation for operation in block.operations]:
        if op.name not in BOUNDS or op.results[0] not in wide:
            continue
        total = through(op.operands[0], RESHAPE)
        if total is None or total.name != "ascend.add":
            continue
        added = map(full_value, total.operands)
        if not any(n is not None and 0 < n < LEAST_ROOT**2 for n in added):
            continue
        kind, bound = BOUNDS[op.name]
        uses, found = list(op.results[0].uses), tensor_of(op.results[0].type)
        with op.location, ir.InsertionPoint.after(op):
            ops = TensorOps()
            bounded = ops.binary(kind, op.results[0], ops.full(found.shape, found.element, bound))
        wide.add(bounded)
        for use in uses:
            use.owner.operands[use.operand_number] = bounded


def only_summed(op: Op, wide: set[ir.Value]) -> bool:
    """Whether nothing but sums in f32, and what leads to them alone, reads a result."""
    readers = readers_of(op.results[0])
    return bool(readers) and all(
        (is_sum(reader) or reader.name in GROWING) and reader.results[0] in wide
        for reader in readers
    )
