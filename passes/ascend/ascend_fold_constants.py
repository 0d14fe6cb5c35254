"""ascend-fold-constants: computes at compile time what depends on constants only.

before:
    %w = "ascend.constant"() {value = dense_resource<w> : tensor<768x768xf32>}
    %0 = "ascend.cast"(%w) : (tensor<768x768xf32>) -> tensor<768x768xf16>
    %1 = "ascend.relayout"(%0) : (tensor<768x768xf16>) -> tensor<768x768xf16, #ascend.layout<"nz">>
after:
    %1 = "ascend.constant"() {value = dense_resource<w_nz> : tensor<48x48x16x16xf16>}

Weights so get their type and layout before the program runs. Results that are much larger than what
they come from (a broadcast, a padding) are left to the device above a size, which is small for rows
that elementwise operators combine others with: kernels read these again for nothing. A chain is
computed in one go, and originals that nobody uses any more are dropped, so that memory stays
bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute, python_value
from davinci.element_types import DTYPES
from davinci.elements import Array
from davinci.mlir import ir, location_text
from davinci.operators import OPERATORS
from davinci.passes import builder
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    ON_CUBE,
    REPEATED_BYTES,
    TensorOps,
    constant_array,
    defining_op,
    definition,
    erase_unused,
    evaluate,
    full_value,
    size_bytes,
    tensor_functions,
    users_of,
)
from davinci.passes.pipeline.base import Pass, register_pass

BROADCAST = "ascend.broadcast"
CARRIED = frozenset({BROADCAST, "ascend.reshape"})
"""What moves nothing inside a kernel."""

LostByPlace = dict[str, list[tuple[int, int, int]]]
"""Overflows, underflows and values of each conversion of a constant to f16, by its location."""

HALF_MAGNITUDE, HALF_INFINITY = np.uint16(0x7FFF), np.uint16(0x7C00)
"""Bits of an f16 without its sign, and those of infinity; of numbers they are less."""

GROWN_BYTES = 4 << 20
"""Results larger than all their operands are folded up to this size, and up to `REPEATED_BYTES`
what is repeated for elementwise operators."""


@register_pass
@dataclass(frozen=True)
class AscendFoldConstantsPass(Pass):
    """Evaluate operations on constants at compile time."""

    NAME = "ascend-fold-constants"

    def run(self, op: Any) -> None:
        lost: LostByPlace = {}
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            foldable = mark_foldable(block)
            for operation in list(block.operations):
                candidate = operation.operation
                if is_final(candidate, foldable):
                    replace(candidate, foldable, lost)
            for operation in list(block.operations):
                select(operation.operation)
            erase_unused(block)
        note_lost(op, lost)


def mark_foldable(block: Any) -> set[Any]:
    """Results of operations that can be computed now."""
    found: set[Any] = set()
    for operation in block.operations:
        op = operation.operation
        if not op.name.startswith("ascend.") or op.name in CONSTANTS or len(op.results) != 1:
            continue
        if not op.operands and op.name != "ascend.iota":
            continue
        if not all(has_array(v) for v in [*op.operands, op.result]):
            continue
        known = all(v in found or definition(v) is not None for v in op.operands)
        if known and op.name not in ON_CUBE and not grows(op):
            found.add(op.result)
    return found


def has_array(value: Any) -> bool:
    """Whether NumPy has the element type of `value`; bf16 for example is left to the device."""
    return tensor_of(value.type).element in DTYPES


def grows(op: Any) -> bool:
    """Whether the result is large, and larger than the operands."""
    result = tensor_of(op.result.type)
    most = REPEATED_BYTES if op.name == BROADCAST and is_read_in_place(op) else GROWN_BYTES
    count = sum(tensor_of(v.type).count for v in op.operands)
    return size_bytes(result) > most and result.count > count


def is_read_in_place(op: Any) -> bool:
    """Whether elementwise operators are all that reads a value, whatever its shape."""
    users = users_of(op)
    return bool(users) and all(
        is_read_in_place(user) if user.name in CARRIED else is_elementwise(user.name)
        for user in users
    )


def is_elementwise(name: str) -> bool:
    record = OPERATORS.get(name.removeprefix("ascend."))
    return record is not None and record.elementwise


def is_final(op: Any, foldable: set[Any]) -> bool:
    """Whether the result of `op` is foldable and somebody needs it at run time."""
    if len(op.results) != 1 or op.result not in foldable:
        return False
    return any(
        not any(result in foldable for result in use.owner.operation.results)
        for use in op.result.uses
    )


def replace(op: Any, foldable: set[Any], lost: LostByPlace) -> None:
    array = value_of(op.result, foldable, lost)
    if array is None:
        return
    with op.location, ir.InsertionPoint(op):
        result = tensor_of(op.result.type)
        new = TensorOps().constant(array, result.element, result.layout)
    op.result.replace_all_uses_with(new)
    foldable.discard(op.result)


def select(op: Any) -> None:
    """Replaces a selection by flags that are the same everywhere."""
    if op.name == "ascend.select" and (flag := full_value(op.operands[0])) is not None:
        op.results[0].replace_all_uses_with(op.operands[1 if flag[()] else 2])


def value_of(value: Any, foldable: set[Any], lost: LostByPlace | None = None) -> Array | None:
    """The elements of a foldable value or a constant.

    Args:
        lost: where what conversions to f16 lose is noted.
    """
    owner = defining_op(value)
    if owner.name in CONSTANTS:
        return constant_array(owner)
    inputs: list[Array] = []
    for operand in owner.operands:
        array = value_of(operand, foldable, lost)
        if array is None:
            return None
        inputs.append(array)
    attributes = {key: python_value(owner.attributes[key]) for key in owner.attributes}
    name = owner.name.removeprefix("ascend.")
    result = evaluate(name, inputs, tensor_of(value.type), attributes)
    if lost is not None and name == "cast":
        lost.setdefault(location_text(owner.location), []).append(losses(inputs[0], result))
    return result


def losses(source: Array, half: Array) -> tuple[int, int, int]:
    """How many finite values became infinite, and how many became zero, in a conversion to f16."""
    if source.dtype != np.float32 or half.dtype != np.float16:
        return 0, 0, 0
    magnitudes = half.view(np.uint16) & HALF_MAGNITUDE  # NumPy counts integers fast, halves not
    overflows = np.count_nonzero(np.isfinite(source)) - np.count_nonzero(magnitudes < HALF_INFINITY)
    underflows = np.count_nonzero(source != 0) - np.count_nonzero(magnitudes)
    return int(overflows), int(underflows), half.size


def note_lost(module: Any, lost: LostByPlace) -> None:
    """Writes what constants lost to `ascend.lost`: [place, overflows, underflows, values], ..."""
    rows = [[place, *map(sum, zip(*found, strict=True))] for place, found in lost.items()]
    if rows := [row for row in rows if any(row[1:3])]:
        with module.context:
            module.attributes["ascend.lost"] = builder.as_attribute(rows)


def lost_constants(module: Any) -> list[dict[str, Any]]:
    """What constants of `module`, at any level, lost at compile time, by place in the model."""
    keys = ("name", "overflows", "underflows", "converted")
    rows = attribute(module, "ascend.lost", [])
    return [dict(zip(keys, row, strict=True)) for row in rows]
