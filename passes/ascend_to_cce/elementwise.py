"""Elementwise operators: portions of the operands, seen as one-dimensional, go through UB.

    for each portion of this block:
      copy in; vector program of the operator (its record's tile rule); copy out

The last portion overlaps the one before if the array is not a whole number of 32-byte blocks (see
`portions`); an array of one portion is copied in whole blocks, into the padding of its buffer.
"""

from __future__ import annotations

from typing import Any

from davinci.dialects.ascend import call_of, record_of
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.errors import CompileError
from davinci.isa.core import DTYPES
from davinci.mlir import ir
from davinci.operators import OPERATORS, Call, Value, VectorProgram
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves import copy_rounded
from davinci.passes.ascend_to_cce.portions import LEAST_BYTES, cut, for_portions
from davinci.passes.ascend_to_cce.vector_program import Buffers, scalar
from davinci.passes.builder import IndexLike, op, restride, subview
from davinci.passes.pipeline.base import fail

NAMES = [name for name, record in OPERATORS.items() if record.elementwise]


def lower_elementwise(operation: Any, target: Target) -> int:
    """Builds the loop over portions; returns how many blocks can share them.

    Raises:
        CompileError: the vector unit has no instructions for the operator on these types.
    """
    call = call_of(operation)
    require_support(operation, call)
    *sources, result = list(operation.operands)
    program = VectorProgram()
    operands: list[Any] = []
    arrays: dict[Any, Any] = {}
    for source in sources:
        if source in arrays:
            operands.append(arrays[source])
        elif (number := full_value(source)) is not None:
            operands.append(number)
        else:
            arrays[source] = program.input(buffer_of(source).dtype)
            operands.append(arrays[source])
    if not arrays:
        operands[0] = program.constant(buffer_of(sources[0]).dtype, float(operands[0]))
    program.output(recorded(operation, call, program, operands))
    try:
        return lower_program(program, list(arrays), [result], target)
    except CompileError as error:
        fail(operation, error.message, found=error.found, expected=error.expected)


def full_value(value: Any) -> Any:
    """The number an operand is everywhere, None if it is a buffer."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "ascend.full":
        return None
    return attribute(value.owner, "value")


def require_support(operation: Any, call: Call) -> None:
    """Fails at an operator whose element types the vector unit cannot take."""
    record = record_of(operation)
    if found := record.refused(call):
        fail(
            operation,
            "has no vector instructions for its element type",
            found=found,
            expected=", ".join(sorted(record.types)),
            hint="make it a scalar kernel",
        )


def recorded(operation: Any, call: Call, program: VectorProgram, operands: list[Any]) -> Value:
    """Records the operator on its operands."""
    element = "i1" if call.attributes.get("boolean") else call.outputs[0].element
    return record_of(operation).tile(program, operands, call.attributes, element)


def lower_program(
    program: VectorProgram, sources: list[Any], results: list[Any], target: Target
) -> int:
    """Runs a vector program over whole GM buffers of equal shapes; returns the units of work."""
    buffers = [buffer_of(v) for v in (*sources, *results)]
    total = buffers[0].size
    vector = target.machine.vector
    sizes = [DTYPES[dtype].itemsize for dtype in program.slots()]
    portions = cut(
        total,
        vector.block_bytes // min(sizes),
        vector.repeat_bytes // min(sizes),
        target.machine.buffers.UB.bytes // program.bytes_per_element(),
        LEAST_BYTES // max(b.itemsize for b in buffers),
        target.cores,
    )
    block = vector.block_bytes // min(sizes)
    ub = Buffers(program, -(-portions.largest // block) * block)
    flat = [restride(v, [total], [1]) for v in (*sources, *results)]
    arrays = list(zip(flat, (*program.inputs, *program.outputs), strict=True))
    moved_in, moved_out = arrays[: len(sources)], arrays[len(sources) :]

    def build(start: IndexLike, size: int) -> None:
        count = -(-size // block) * block
        if count != size:
            fill_short_inputs(program, ub, count, size, vector.block_bytes)
        for array, value in moved_in:
            gm, held = subview(array, [start], [size]), ub.view(value, ub.size)
            copy_rounded(gm, subview(held, [0], [size]), vector.block_bytes)
        ub.build(count)
        for array, value in moved_out:
            gm, held = subview(array, [start], [size]), ub.view(value, ub.size)
            copy_rounded(subview(held, [0], [size]), gm, vector.block_bytes)

    return for_portions(portions, build, target)


def fill_short_inputs(
    program: VectorProgram, ub: Buffers, count: int, size: int, block_bytes: int
) -> None:
    """Zeroes inputs whose own whole blocks end before `count` elements, the lanes computed on."""
    for value in program.inputs:
        lanes = block_bytes // DTYPES[value.dtype].itemsize
        if -(-size // lanes) * lanes < count:
            op("cce.vector_dup", [scalar(value.dtype, 0), ub.view(value, count)])
