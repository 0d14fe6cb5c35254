"""What a kernel of attention works on: its buffers in GM, and units of rows."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.products.feed import Range
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.builder import IndexLike, alloc, reshaped, restride
from davinci.schedule.attention.attention import STAGES, AttentionSchedule
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


@dataclass(frozen=True)
class AttentionArrays:
    """What lies in GM, each with one dimension of matrices: Q, K, V, what the chain combines
    scores with, O."""

    q: ir.Value
    k: ir.Value
    v: ir.Value
    extras: list[ir.Value]
    o: ir.Value


def fractal_buffers(count: int, fractals: int, element: ir.Type, space: str) -> list[ir.Value]:
    """Buffers for so many fractals each, which take turns."""
    return [alloc([fractals * FRACTAL], element, space) for _ in range(count)]


def filled_block(value: Value, number: float) -> ir.Value:
    """A buffer in UB of 16 elements of a value's type that are all one number."""
    buffer: ir.Value = alloc([SIDE], element_type(value.dtype), "UB")
    cce.vector_dup(scalar(value.dtype, number), buffer)
    return buffer


@dataclass(frozen=True)
class Unit:
    """Rows of a matrix of O.

    Attributes:
        batch: which matrix.
        rows: of it.
        turn: how many units of the line are before it.
        matrix: how many matrices of the line are before its own.
    """

    batch: IndexLike
    rows: Range
    turn: int
    matrix: int

    @property
    def fractals(self) -> int:
        return ceil_div(self.rows.elements, SIDE)


class LessHighest:
    """What takes maxima off scores in L0C: ones beside K, in L0A, times fractals whose first rows
    are less the maxima."""

    def __init__(self, schedule: AttentionSchedule) -> None:
        f16, rows = ir.F16Type.get(), schedule.rows
        self.ones = alloc([schedule.tile * FRACTAL], f16, "L0A")
        self.l1, self.l0b = (
            [alloc([rows * FRACTAL], f16, memory) for _ in range(STAGES)]
            for memory in ("L1", "L0B")
        )
        self.turn = 0

    def load(self, made: ir.Value, rows: int) -> ir.Value:
        """Fractals of so many rows, in UB, to L0B."""
        self.turn = (self.turn + 1) % STAGES
        l1, l0b = self.l1[self.turn], self.l0b[self.turn]
        shape = [1, rows, SIDE, SIDE]
        cce.copy_l1(*(restride(x, [rows * FRACTAL], [1]) for x in (made, l1)))
        cce.load2d(reshaped(l1, shape), reshaped(l0b, shape), transpose=True)
        return l0b
