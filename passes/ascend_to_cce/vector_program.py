"""Builds vector programs (`davinci.operators.vector_program`) on buffers in UB."""

from __future__ import annotations

from typing import Any

from davinci.mlir import arith, ir
from davinci.operators.vector_program import ELEMENTS, Value, VectorProgram
from davinci.passes.builder import alloc, op, subview


class Buffers:
    """The UB buffers of a program, all of `size` elements, and its filled constants."""

    def __init__(self, program: VectorProgram, size: int) -> None:
        self.program, self.size = program, size
        self._slots = program.assign()
        self._allocated = {
            slot: alloc([size], element_type(slot[0]), "UB")
            for slot in dict.fromkeys(self._slots.values())
        }
        for (dtype, number), value in program.constants.items():
            op("cce.vector_dup", [scalar(dtype, number), self.view(value, size)])

    def view(self, value: Value, count: int) -> Any:
        """The first `count` elements of a value's buffer."""
        buffer = self._allocated[self._slots[value]]
        return buffer if count == self.size else subview(buffer, [0], [count])

    def build(self, count: int) -> None:
        """Builds the steps on the first `count` elements."""
        for step in self.program.steps:
            operands = [self.view(source, count) for source in step.sources]
            if step.scalar is not None:
                operands.append(scalar(step.result.dtype, step.scalar))
            operands.append(self.view(step.result, count))
            op(f"cce.{step.name}", operands, **step.attributes)


def element_type(dtype: str) -> Any:
    return ir.Type.parse(ELEMENTS[dtype])


def scalar(dtype: str, number: float) -> Any:
    """An `arith.constant` of an element type."""
    kind = element_type(dtype)
    if isinstance(kind, ir.FloatType):
        return arith.ConstantOp(kind, ir.FloatAttr.get(kind, float(number))).result
    return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, int(number))).result
