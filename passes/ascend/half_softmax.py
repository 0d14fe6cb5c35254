"""A softmax of f16 values whose result is f16 is computed in f16 by policy `mixed`, but its sums.

before:
    %d = "ascend.sub"(%x32, %m32) : (tensor<8x512xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
    %e = "ascend.exp"(%d) : (tensor<8x512xf32>) -> tensor<8x512xf32>
    %s = "ascend.reduce"(%e) {kind = "add", ..} : (tensor<8x512xf32>) -> tensor<8xf32>
    %q = "ascend.div"(%e, %s32) : (tensor<8x512xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
    %w = "ascend.cast"(%q) : (tensor<8x512xf32>) -> tensor<8x512xf16>
after, where %x and %m are f16, and %x32 and %m32 what they are widened to:
    %d = "ascend.sub"(%x, %m) : (tensor<8x512xf16>, tensor<8x512xf16>) -> tensor<8x512xf16>
    %e = "ascend.exp"(%d) : (tensor<8x512xf16>) -> tensor<8x512xf16>
    %e32 = "ascend.cast"(%e) : (tensor<8x512xf16>) -> tensor<8x512xf32>
    %s = "ascend.reduce"(%e32) {kind = "add", ..} : (tensor<8x512xf32>) -> tensor<8xf32>
    %r = "ascend.cast"(1 / %s) : (tensor<8x1xf32>) -> tensor<8x1xf16>
    %w = "ascend.mul"(%e, %r16) : (tensor<8x512xf16>, tensor<8x512xf16>) -> tensor<8x512xf16>

An instruction of the vector unit takes twice as many lanes of f16, and what is widened for the sum
is widened once. A weight whose element lies d below the largest of its row is off by at most
2^-11 (d + 3) of itself, and by as much as the sum of its row is, which is as far off as its terms
are on average. The exponentials are at most 1 and their sum at least that, so all values are in the
range of f16. Weights that a product reads stay as they are: attention has a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.ascend.narrow_storage import reaches_product
from davinci.passes.ascend.tensor_ops import CARRIED, HALF, TensorOps, defining_op, users_of
from davinci.passes.ascend.wide_sums import BROADCAST, REDUCE, is_sum, through

READERS = 2
"""Operators that read an exponential: the sum and the quotient."""


@dataclass(frozen=True)
class WideSoftmax:
    """A softmax in f32 between f16 values.

    Attributes:
        rows, largest: the f16 operands of the difference, of one shape.
        exponential: of the difference.
        repeated: the broadcast of the sums of the exponentials.
        rounded: the cast of the quotient.
    """

    rows: ir.Value
    largest: ir.Value
    exponential: Op
    repeated: Op
    rounded: Op


def compute_softmax_of_halves(block: ir.Block) -> None:
    """Computes each softmax between f16 values in f16, but its sums."""
    for operation in list(block.operations):
        found = softmax_rounded_by(operation.operation)
        if found is None or reaches_product(found.rounded.result):
            continue
        with found.exponential.location, ir.InsertionPoint(found.exponential):
            ops = TensorOps()
            powers = ops.unary("exp", ops.binary("sub", found.rows, found.largest))
            found.exponential.result.replace_all_uses_with(ops.cast(powers, "f32"))
        with found.rounded.location, ir.InsertionPoint(found.rounded):
            total, shape = found.repeated.operands[0], tensor_of(found.rounded.result.type).shape
            one = ops.full(tensor_of(total.type).shape, "f32", 1.0)
            inverse = ops.cast(ops.binary("div", one, total), HALF)
            inverse = ops.broadcast(inverse, shape, attribute(found.repeated, "dims"))
            found.rounded.result.replace_all_uses_with(ops.binary("mul", powers, inverse))


def softmax_rounded_by(rounded: Op) -> WideSoftmax | None:
    """The softmax whose quotient a cast rounds to f16; None if the cast rounds something else, or
    if anything but the softmax reads what is computed between."""
    quotient = _narrowed(rounded)
    exponential = None if quotient is None else defining_op(quotient.operands[0])
    if quotient is None or exponential is None or exponential.name != "ascend.exp":
        return None
    repeated, total = defining_op(quotient.operands[1]), through(quotient.operands[1], *CARRIED)
    if repeated is None or repeated.name != BROADCAST or total is None:
        return None
    if total.name != REDUCE or not is_sum(total):
        return None
    if total.operands[0] != exponential.result or len(users_of(exponential)) > READERS:
        return None
    difference = defining_op(exponential.operands[0])
    if difference is None or difference.name != "ascend.sub" or len(users_of(difference)) > 1:
        return None
    rows, numbers = map(_widened, difference.operands)
    if rows is None or numbers is None:
        return None
    found = WideSoftmax(rows, numbers, exponential, repeated, rounded)
    return found if is_largest(through(numbers, *CARRIED), rows, attribute(total, "dims")) else None


def is_largest(op: Op | None, rows: ir.Value, dims: Sequence[int]) -> bool:
    """Whether an operator finds the largest numbers of rows along some dimensions."""
    if op is None or op.name != REDUCE or op.operands[0] != rows:
        return False
    return attribute(op, "kind") == "max" and list(attribute(op, "dims")) == list(dims)


def _narrowed(rounded: Op) -> Op | None:
    """The quotient that a cast rounds to f16 and nothing else reads."""
    if rounded.name != "ascend.cast" or tensor_of(rounded.result.type).element != HALF:
        return None
    quotient = defining_op(rounded.operands[0])
    if quotient is None or quotient.name != "ascend.div" or len(users_of(quotient)) > 1:
        return None
    return quotient


def _widened(value: ir.Value) -> ir.Value | None:
    """The f16 value that a cast widens to f32."""
    cast = defining_op(value)
    if cast is None or cast.name != "ascend.cast":
        return None
    source: ir.Value = cast.operands[0]
    return source if tensor_of(source.type).element == HALF else None
