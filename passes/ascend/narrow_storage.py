"""What mixed precision stores as f16: values that products read, and shortcuts that they need.

before:
    %1 = "ascend.cast"(%0) : (tensor<8x16xf32>) -> tensor<8x16xf16>
    %2 = "ascend.matmul"(%1, %w) : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf32>
    %3 = "ascend.add"(%2, %0) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
after:
    %1 = "ascend.cast"(%0) : (tensor<8x16xf32>) -> tensor<8x16xf16>
    %4 = "ascend.cast"(%1) : (tensor<8x16xf16>) -> tensor<8x16xf32>
    %2 = "ascend.matmul"(%1, %w) : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf32>
    %3 = "ascend.add"(%2, %4) {finite} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
"""

from __future__ import annotations

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import Op, ir, owner_of
from davinci.operators.arithmetic import FINITE
from davinci.operators.tensors import is_integer
from davinci.passes.ascend.layout_support import last_makers
from davinci.passes.ascend.tensor_ops import (
    HALF,
    KEEPS_NUMBERS,
    MOVES,
    ON_CUBE,
    TensorOps,
    defining_op,
    definition,
    is_f32,
    read_once,
    readers_of,
    users_of,
)

JUMPS = frozenset(
    f"ascend.{name}"
    for name in (
        *("bitcast", "ceil", "compare", "floor", "half_part", "quantize", "remainder"),
        *("round", "round_away", "sign", "sort", "sort_pairs"),
    )
)
"""Operators of which a result may change as a whole where an operand changes a little, besides
conversions to integers: they read what was computed, never what is rounded for products."""


def store_once(block: ir.Block) -> None:
    """Gives values that are rounded to f16 for products to all other readers rounded.

    They are stored once, narrow; what is computed of them stays f32, and so do sums that no
    product reads, as the residuals in front of normalizations, and the results of the function.
    Operators that jump read what was computed.
    """
    for operation in list(block.operations):
        rounded = operation.operation
        if rounded.name != "ascend.cast" or tensor_of(rounded.result.type).element != HALF:
            continue
        value = rounded.operands[0]
        if not is_f32(value) or definition(value) or defining_op(value) is None:
            continue
        if not reaches_product(rounded.result):
            continue
        uses = [use for use in value.uses if reads_rounded(use.owner.operation, rounded)]
        if not uses:
            continue
        rounded.move_after(owner_of(value))
        with rounded.location, ir.InsertionPoint.after(rounded):
            wide = TensorOps().cast(rounded.result, "f32")
        for use in uses:
            use.owner.operands[use.operand_number] = wide


def reaches_product(value: ir.Value) -> bool:
    """Whether a product reads a value, directly or moved."""
    return any(
        user.name in ON_CUBE or (user.name in MOVES and reaches_product(user.results[0]))
        for user in readers_of(value)
    )


def round_shortcuts(block: ir.Block) -> None:
    """Rounds to f16 what the later one of two products brings to a sum that is only needed rounded:
    the kernel of the first one makes the sum, and what the other one brings it crosses GM."""
    products = last_makers(block, ON_CUBE)
    for operation in list(block.operations):
        op = operation.operation
        if op.name != "ascend.add" or not is_f32(op.results[0]) or not is_rounded(op.results[0]):
            continue
        owners = [defining_op(value) for value in op.operands]
        made = [-1 if owner is None else products.get(owner, -1) for owner in owners]
        stored = any(owner is not None and owner.name == "ascend.cast" for owner in owners)
        if stored or min(made) < 0 or made[0] == made[1]:
            continue
        late = made.index(max(made))
        if read_once(op.operands[late]):
            with op.location, ir.InsertionPoint.after(owner_of(op.operands[late])):
                ops = TensorOps()
                op.operands[late] = ops.cast(ops.cast(op.operands[late], HALF), "f32")


def is_rounded(value: ir.Value) -> bool:
    """Whether only products need a value, rounded, or what an elementwise operator makes of it."""
    users = readers_of(value)
    return bool(users) and all(
        tensor_of(user.results[0].type).element == HALF and reaches_product(user.results[0])
        if user.name == "ascend.cast"
        else user.name == "ascend.relu" and is_rounded(user.results[0])
        for user in users
    )


def mark_finite(block: ir.Block) -> None:
    """Says of sums that they are finite if products read them, or what they are sums of, as f16:
    where that is not, the products are lost, and with them what follows."""
    for operation in block.operations:
        op = operation.operation
        if op.name == "ascend.add" and (
            any(is_factor(value) for value in op.operands) or is_rounded(op.results[0])
        ):
            op.attributes[FINITE] = ir.UnitAttr.get()


def is_factor(value: ir.Value) -> bool:
    """Whether a value, or what it widens, is f16 and computed, and a product reads it."""
    owner = defining_op(value)
    if owner is not None and owner.name == "ascend.cast":
        value = owner.operands[0]
        owner = defining_op(value)
    if owner is None or tensor_of(value.type).element != HALF:
        return False
    return any(user.name in ON_CUBE for user in users_of(owner))


def reads_rounded(reader: Op, rounded: Op) -> bool:
    """Whether an operation may read a value as another one rounds it: not what brings it to results
    of the function, nor what jumps."""
    if reader == rounded or not reader.name.startswith("ascend.") or jumps(reader):
        return False
    return reader.name not in MOVES or all(
        reads_rounded(user, rounded) for user in users_of(reader)
    )


def jumps(reader: Op) -> bool:
    """Whether results of an operation may change as a whole where an operand changes a little."""
    if reader.name in JUMPS:
        return True
    if reader.name == "ascend.reduce":
        return is_compared(reader.results[0])
    return reader.name == "ascend.cast" and is_integer(tensor_of(reader.results[0].type).element)


def is_compared(value: ir.Value) -> bool:
    """Whether a comparison reads a value, directly or moved, as where the place of a maximum is
    looked for: the maximum is one of the numbers that it is compared with."""
    return any(
        user.name == "ascend.compare"
        or (
            user.name.removeprefix("ascend.") in KEEPS_NUMBERS
            and any(map(is_compared, user.results))
        )
        for user in readers_of(value)
    )
