"""Values that are known at compile time, as operands of elementwise operators: one number, an array
of the operand's shape, or a row or column that is repeated to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir, owner_of
from davinci.passes.ascend.tensor_ops import (
    CARRIED,
    FOLD_BYTES,
    TensorOps,
    constant_array,
    defining_op,
    definition,
    full_value,
    is_splat,
    size_bytes,
)

BROADCAST, RESHAPE = "ascend.broadcast", "ascend.reshape"

SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)


def source_of(value: ir.Value) -> ir.Value:
    """What a value repeats, or the value itself."""
    owner = defining_op(value)
    return owner.operands[0] if owner is not None and owner.name == BROADCAST else value


def is_known(value: ir.Value) -> bool:
    """Whether a value is a constant, or one that is repeated."""
    return definition(source_of(value)) is not None


def known_array(value: ir.Value) -> Array | None:
    """The elements that a known value has, each at least once; None of one that is not known, or
    larger than what is computed with at once."""
    owner = definition(source_of(value))
    return None if owner is None or size_bytes(owner) > FOLD_BYTES else constant_array(owner)


def known_number(value: ir.Value) -> float | None:
    """The number that a known value is everywhere, None if there is no such."""
    array = known_array(value)
    return float(array.flat[0]) if array is not None and array.size and is_splat(array) else None


def operands_of(op: Op) -> tuple[ir.Value, ir.Value] | None:
    """The operand of an operator of two that is not known, and the one that is; None unless just
    one is, and of a difference or a quotient the second."""
    first, second = op.operands
    if is_known(first) == is_known(second):
        return None
    if is_known(second):
        return first, second
    return (second, first) if op.name in ("ascend.add", "ascend.mul") else None


def combined(name: str, a: ir.Value, b: ir.Value, ops: TensorOps) -> ir.Value | None:
    """`name` of two known values of one shape, as a constant or a repeated one; None if it would
    have to be computed on the device, or has numbers that f32 does not hold to all its digits."""
    repeated = [owner_of(value) for value in (a, b) if source_of(value) != value]
    dims = [attribute(owner, "dims") for owner in repeated]
    sources = {tensor_of(owner.operands[0].type) for owner in repeated}
    others = [value for value in (a, b) if source_of(value) == value]
    alike = len(sources) == 1 and dims[0] == dims[-1] and all(map(is_full, others))
    if not alike:
        made = ops.binary(name, *(written_out(value, ops) for value in (a, b)))
        return made if is_sound(made) else None
    (source,) = sources
    parts = []
    for value in (a, b):
        number = full_value(value)
        if number is None:
            parts.append(source_of(value))
        else:
            parts.append(ops.full(source.shape, source.element, number[()]))
    made = ops.binary(name, *parts)
    return ops.broadcast(made, tensor_of(a.type).shape, dims[0]) if is_sound(made) else None


def is_full(value: ir.Value) -> bool:
    """Whether a value is one number everywhere."""
    return full_value(value) is not None


def written_out(value: ir.Value, ops: TensorOps) -> ir.Value:
    """A repeated value as a constant, if it is small; others as they are."""
    owner = owner_of(value)
    if owner.name != BROADCAST:
        return value
    return ops.broadcast(owner.operands[0], tensor_of(value.type).shape, attribute(owner, "dims"))


def is_sound(value: ir.Value) -> bool:
    """Whether all elements of a known value are zeros or normal numbers."""
    array = known_array(value)
    if array is None:
        return False
    size = np.abs(array)
    return bool((np.isfinite(array) & ((array == 0) | (size >= SMALLEST_NORMAL))).all())


def rebuilt(chain: list[Op], value: ir.Value, ops: TensorOps) -> ir.Value:
    """Reshapes and broadcasts, the last one first, done to another value of the same shape."""
    for op in reversed(chain):
        shape = tensor_of(op.results[0].type).shape
        if op.name == BROADCAST:
            value = ops.broadcast(value, shape, attribute(op, "dims"))
        else:
            value = ops.reshape(value, shape)
    return value


def below(value: ir.Value, accept: Callable[[Op], bool]) -> tuple[ir.Value, list[Op]]:
    """What a value is a repeated or reshaped form of, as long as `accept` takes the operations, and
    these, the last one first."""
    chain: list[Op] = []
    while (op := defining_op(value)) is not None and op.name in CARRIED and accept(op):
        chain.append(op)
        value = op.operands[0]
    return value, chain
