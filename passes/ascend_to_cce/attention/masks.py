"""What scores are combined with, in UB.

a number for each key     [rows][keys] in GM -> a block of equal lanes for each key
one for each score        turned, in fractals: as scores lie, a tile of keys at a time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps, scratch_buffers
from davinci.passes.builder import IndexLike, add, alloc, mul, reshaped, subview
from davinci.schedule.attention.attention import STAGES, Attention, AttentionSchedule, ScoreOperand
from davinci.schedule.products.events import FractalSpan
from davinci.schedule.vector.row_packing import unpacking
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class KeyBlock:
    """Keys whose scores are in UB at once.

    Attributes:
        start: fractals before it.
        elements: how many.
        fractals: the same in fractals.
    """

    start: IndexLike
    elements: int
    fractals: int


class Masks:
    """Buffers of the extras of a chain; of none where they are columns (`KeyColumns`).

    Args:
        gm: of each extra, [1][rows][keys], or [matrices][rows / 16][keys / 16][16][16].
    """

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        gm: Sequence[ir.Value],
        machine: Machine,
    ) -> None:
        self.attention, self.machine = attention, machine
        size = schedule.block * SIDE
        extras = self.extras = attention.chain.extras if not schedule.twice else ()
        self._gm = dict(zip((x.value for x in attention.chain.extras), gm, strict=True))
        self._whole: dict[Value, RowRing] = {}
        self._raw, self._spread = {}, {}
        self._once = schedule.block >= attention.fractals.keys
        for extra in extras:
            element, itemsize = element_type(extra.value.dtype), DTYPES[extra.value.dtype].itemsize
            if extra.whole:
                held = schedule.rows * schedule.tile * FRACTAL * itemsize
                self._whole[extra.value] = RowRing(STAGES, held)
                continue
            self._raw[extra.value] = alloc([size], element, "UB")
            self._spread[extra.value] = alloc([size * BLOCK_BYTES // itemsize], element, "UB")
            if self._is_common(extra):
                self._bring(extra, 0, KeyBlock(0, attention.keys, schedule.block))

    def _is_common(self, extra: ScoreOperand) -> bool:
        """Whether all units take the same of it at all times."""
        return self._once and extra.turn.count == 1

    def bring(self, rows: dict[Value, IndexLike], keys: KeyBlock) -> None:
        """What a unit takes for some keys, by the matrices or rows that are its own; what all units
        have in common is there already."""
        for extra in self.extras:
            if not extra.whole and not self._is_common(extra):
                self._bring(extra, rows[extra.value], keys)

    def _bring(self, extra: ScoreOperand, row: IndexLike, keys: KeyBlock) -> None:
        raw, dtype = self._raw[extra.value], extra.value.dtype
        (size,) = ir.MemRefType(raw.type).shape
        if keys.elements < size:
            cce.vector_dup(scalar(dtype, 0.0), raw)
        first = mul(keys.start, SIDE)
        piece = MatrixPiece(self._gm[extra.value], 0, row, first, 1, keys.elements)
        load_rows(piece, reshaped(raw, [1, size]))
        work = unpacking(dtype, keys.fractals * SIDE, SIDE, self.machine)
        buffers = {SOURCE: raw, RESULT: self._spread[extra.value], **scratch_buffers(work)}
        build_steps(work, buffers)

    def operand(
        self,
        extra: ScoreOperand,
        matrix: IndexLike,
        start: IndexLike,
        rows: int,
        keys: KeyBlock,
        tile: FractalSpan,
    ) -> tuple[ir.Value, list[int], int]:
        """A buffer, strides of [rows][keys of the tile][blocks of 16 lanes][lanes of a block], and
        where it begins.

        Args:
            matrix: of a mask with a number for each score.
            start: fractals of its rows before the unit.
        """
        value = extra.value
        block = BLOCK_BYTES // DTYPES[value.dtype].itemsize
        if not extra.whole:
            return self._spread[value], [0, block, 0, 1], tile.start * SIDE * block
        size = tile.size * FRACTAL
        place = self._whole[value].next(rows * size, element_type(value.dtype))
        shape = [1, rows, tile.size, SIDE, SIDE]
        first = add(keys.start, tile.start)
        source = subview(self._gm[value], [matrix, start, first, 0, 0], shape, drop=[0])
        cce.copy(source, reshaped(place, shape[1:]))
        return place, [size, SIDE, block, 1], 0
