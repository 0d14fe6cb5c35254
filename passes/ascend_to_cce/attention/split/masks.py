"""What scores of a chunk are combined with, on a vector core: see `attention.masks`.

A mask with a number for each score comes row of fractals by row, with those keys that there are;
one with a number for each key comes once a step and is spread to a block for each key.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.mlir import arith, ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.attention.split.steps import (
    BlockSteps,
    StepPlace,
    choose,
    matrix_of,
)
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps, scratch_buffers
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    constant_index,
    mul,
    reshaped,
    restride,
    subview,
    viewed,
)
from davinci.schedule.attention.attention import Attention, ScoreOperand
from davinci.schedule.attention.split import (
    MASK_SLOTS,
    SplitAttentionSchedule,
    bounds_apart,
    slot_bytes,
)
from davinci.schedule.vector.row_packing import unpacking
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

View = tuple[ir.Value, list[int]]
"""A buffer, and its strides of [rows / 16][keys][blocks of 16 lanes][lanes of a block]."""


class ChunkMasks:
    """Buffers of the extras of a chain, and how they are filled.

    Args:
        gm: of each extra, [1][rows][keys], or [matrices][rows / 16][keys / 16][16][16].
        patterns: see `Rings.masks`.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: SplitAttentionSchedule,
        gm: Sequence[ir.Value],
        patterns: ir.Value | None,
        steps: BlockSteps,
        machine: Machine,
    ) -> None:
        self.attention, self.schedule, self.steps = attention, schedule, steps
        self.machine = machine
        self._whole: dict[Value, RowRing] = {}
        self._asked: dict[Value, ir.Value] = {}
        self._raw: dict[Value, ir.Value] = {}
        self._spread: dict[Value, ir.Value] = {}
        self._gm = dict(zip((x.value for x in attention.chain.extras), gm, strict=True))
        keys = schedule.tile * SIDE
        self._patterns = patterns
        self._bounds: RowRing | None = None
        dtype = schedule.dtype(attention)
        if patterns is not None and bounds_apart(attention, schedule, machine):
            self._bounds = RowRing(1, slot_bytes(schedule, DTYPES[dtype].itemsize))
        for extra in attention.chain.extras:
            element, item = element_type(extra.value.dtype), DTYPES[extra.value.dtype].itemsize
            if extra.whole:
                size = schedule.chunk * keys * SIDE * item
                self._whole[extra.value] = RowRing(MASK_SLOTS, size)
                if attention.fractals.keys % schedule.tile:
                    # What lies behind the last key is read, though what is made of it is not.
                    for buffer in self._whole[extra.value].buffers:
                        flat = viewed(buffer, [size // item], element)
                        cce.vector_dup(scalar(extra.value.dtype, 0.0), flat)
                continue
            self._raw[extra.value] = alloc([keys], element, "UB")
            self._spread[extra.value] = alloc([keys * BLOCK_BYTES // item], element, "UB")

    def bound(
        self, place: StepPlace, start: IndexLike, scores: ir.Value, rows: int, shared: ir.Value
    ) -> None:
        """Hides scores of a chunk as a band does.

        Args:
            start: fractals of rows of the unit before it.
            shared: a buffer that the chunk has, for bounds if they have none of their own.
        """
        assert self._patterns is not None, "only of steps that have a pattern"
        keys, element = self.schedule.tile * SIDE, ir.MemRefType(self._patterns.type).element_type
        held = shared if self._bounds is None else self._bounds.take()
        (size,) = ir.MemRefType(held.type).shape
        most = size // (rows * SIDE * element.width // 8) // SIDE * SIDE
        pattern = arith.SubIOp(as_value(place.pattern), constant_index(1)).result
        for first in range(0, keys, most):
            count = min(most, keys - first)
            shape = [rows, count, SIDE]
            source = subview(self._patterns, [pattern, start, first, 0], [1, *shape], drop=[0])
            bounds = viewed(held, [rows * count * SIDE], element)
            cce.copy(source, restride(bounds, shape, [count * SIDE, SIDE, 1]))
            part = restride(scores, [rows, count * SIDE], [keys * SIDE, 1], first * SIDE)
            cce.vmin(part, restride(bounds, [rows, count * SIDE], [count * SIDE, 1]), part)

    @property
    def left(self) -> int:
        """Keys of the last tile."""
        return self.attention.keys - (self.steps.tiles - 1) * self.schedule.tile * SIDE

    def bring(self, place: StepPlace) -> None:
        """The numbers of keys of a step."""
        keys = self.schedule.tile * SIDE
        for extra in self.attention.chain.extras:
            if extra.whole:
                continue
            raw, dtype = self._raw[extra.value], extra.value.dtype
            row = matrix_of(place, extra.turn, self.attention.batch)
            first = mul(place.tile, keys)

            def load(
                count: int,
                raw: ir.Value = raw,
                dtype: str = dtype,
                row: IndexLike = row,
                first: IndexLike = first,
                extra: ScoreOperand = extra,
            ) -> None:
                if count < keys:
                    cce.vector_dup(scalar(dtype, 0.0), raw)
                piece = MatrixPiece(self._gm[extra.value], 0, row, first, 1, count)
                load_rows(piece, reshaped(raw, [1, keys]))

            self._whole_or_left(place, keys, self.left, load)
            work = unpacking(dtype, keys, SIDE, self.machine)
            buffers = {SOURCE: raw, RESULT: self._spread[extra.value], **scratch_buffers(work)}
            build_steps(work, buffers)

    def _whole_or_left(self, place: StepPlace, whole: int, left: int, load: object) -> None:
        assert callable(load), "what loads takes the number of keys"
        last = self.steps.tiles - 1
        if left == whole:
            load(whole)
        elif last == 0:
            load(left)
        else:
            choose(place.tile, last, lambda: load(left), lambda: load(whole))

    def operand(self, extra: ScoreOperand, place: StepPlace, start: IndexLike, rows: int) -> View:
        """The numbers for a chunk; `start`: fractals of rows of the matrix before it."""
        value = extra.value
        item = DTYPES[value.dtype].itemsize
        block, keys = BLOCK_BYTES // item, self.schedule.tile * SIDE
        if not extra.whole:
            return self._spread[value], [0, block, 0, 1]
        held = self._asked.pop(value, None) or self._load(extra, place, start, rows)
        return held, [keys * SIDE, SIDE, block, 1]

    def ask(self, place: StepPlace, start: IndexLike, rows: int) -> None:
        """Brings the numbers of the chunk whose operands are taken next, while its scores are
        waited for; `start` as of `operand`."""
        for extra in self.attention.chain.extras:
            if extra.whole:
                self._asked[extra.value] = self._load(extra, place, start, rows)

    def _load(self, extra: ScoreOperand, place: StepPlace, start: IndexLike, rows: int) -> ir.Value:
        """Brings the numbers of a mask with one for each score; `start` as of `operand`."""
        keys, value = self.schedule.tile * SIDE, extra.value
        held: ir.Value = self._whole[value].next(rows * keys * SIDE, element_type(value.dtype))
        matrix = matrix_of(place, extra.turn, self.attention.batch)
        last_row = constant_index(self.attention.fractals.rows - 1)

        def load(fractals: int) -> None:
            for i in range(rows):
                # Behind the last row any will do: such rows of O go nowhere.
                row = arith.MinUIOp(as_value(add(start, i)), last_row).result
                at = [matrix, row, mul(place.tile, self.schedule.tile), 0, 0]
                shape = [1, 1, fractals, SIDE, SIDE]
                source = subview(self._gm[value], at, shape, drop=[0, 1])
                strides = [FRACTAL, SIDE, 1]
                cce.copy(source, restride(held, shape[2:], strides, i * keys * SIDE))

        left = self.attention.fractals.keys - (self.steps.tiles - 1) * self.schedule.tile
        self._whole_or_left(place, self.schedule.tile, left, load)
        return held
