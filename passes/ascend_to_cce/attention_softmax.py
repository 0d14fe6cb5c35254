"""Scores of a unit become weights, in UB: S^T in, P^T = exp(S - max) in f16 to L1.

S^T  [rows / 16][keys][16]    the chain's steps, in place; -inf where there is no key
max  [rows / 16][16]          halves of the keys are combined until one is left
P^T                           S - max, exp, f16; to L1 as [tile][rows / 16][keys of it][16]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.matrix_rows import Piece, load_rows
from davinci.passes.ascend_to_cce.product_rows import FRACTAL, Ring
from davinci.passes.ascend_to_cce.row_statistics import build_steps, scratch_buffers
from davinci.passes.ascend_to_cce.vector_program import element_type, scalar
from davinci.passes.builder import IndexLike, alloc, op, reshaped, restride
from davinci.schedule.attention import Attention, AttentionSchedule, Extra
from davinci.schedule.attention_cost import shared_bytes
from davinci.schedule.attention_fold import (
    EVEN,
    ODD,
    fold,
    less_highest,
    result_lanes,
    scratch_lanes,
)
from davinci.schedule.product_events import Span
from davinci.schedule.row_packing import unpacking
from davinci.schedule.vector_steps import RESULT, SOURCE, Steps
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


class Masks:
    """What scores are combined with, in UB: a block of equal lanes for each key.

    Args:
        gm: of each extra of the chain, [1][rows][keys].
    """

    def __init__(self, attention: Attention, gm: Sequence[ir.Value], machine: Machine) -> None:
        self.attention, self.machine = attention, machine
        keys = attention.fractals.keys * SIDE
        self._gm = dict(zip((x.value for x in attention.chain.extras), gm, strict=True))
        self._raw, self._spread = {}, {}
        for extra in attention.chain.extras:
            element = element_type(extra.value.dtype)
            block = BLOCK_BYTES // DTYPES[extra.value.dtype].itemsize
            self._raw[extra.value] = alloc([keys], element, "UB")
            self._spread[extra.value] = alloc([keys * block], element, "UB")
            if extra.turn.count == 1:
                self._bring(extra, 0)

    def bring(self, row_of: dict[Value, IndexLike]) -> None:
        """Those of a unit, by the rows of the arrays that it takes; what all units have in common
        is there already."""
        for extra in self.attention.chain.extras:
            if extra.turn.count > 1:
                self._bring(extra, row_of[extra.value])

    def _bring(self, extra: Extra, row: IndexLike) -> None:
        count, keys = self.attention.keys, self.attention.fractals.keys * SIDE
        raw, dtype = self._raw[extra.value], extra.value.dtype
        if count < keys:
            cce.vector_dup(scalar(dtype, 0.0), raw)
        load_rows(Piece(self._gm[extra.value], 0, row, 0, 1, count), reshaped(raw, [1, keys]))
        work = unpacking(dtype, keys, SIDE, self.machine)
        buffers = {SOURCE: raw, RESULT: self._spread[extra.value], **scratch_buffers(work)}
        build_steps(work, buffers)

    def operand(self, value: Value) -> tuple[ir.Value, list[int]]:
        """A buffer, and strides of [keys][blocks of 16 lanes][lanes of a block]."""
        block = BLOCK_BYTES // DTYPES[value.dtype].itemsize
        return self._spread[value], [block, 0, 1]


class Softmax:
    """Buffers for scores and weights, and what is done to them.

    Args:
        attention, schedule: what they are of.
        masks: gm arrays of the chain's extras.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        masks: Sequence[ir.Value],
        machine: Machine,
    ) -> None:
        self.attention, self.schedule, self.machine = attention, schedule, machine
        chain = attention.chain
        self.dtype = chain.scores.dtype
        self.element, self.itemsize = element_type(self.dtype), chain.itemsize
        rows, keys = schedule.rows, schedule.block
        self.scores = Ring(schedule.scores, rows * keys * FRACTAL * self.itemsize)
        self.highest = alloc([rows * result_lanes(self.dtype)], self.element, "UB")
        # What is folded is folded before there are weights.
        self.folded = scratch_lanes(rows, keys * SIDE, schedule.slices)
        size = shared_bytes(attention, schedule)
        self.shared = Ring(1, size)
        self.turn = 0
        self.masks = Masks(attention, masks, machine)
        self.numbers = {value: self._number(value, number) for value, number in chain.numbers}

    def _number(self, value: Value, number: float) -> ir.Value:
        buffer: ir.Value = alloc([SIDE], element_type(value.dtype), "UB")
        cce.vector_dup(scalar(value.dtype, number), buffer)
        return buffer

    def take(self, tile: ir.Value, scores: ir.Value, keys: Span, rows: int) -> None:
        """A tile of scores from L0C, [rows][keys][16][16], to its place in UB."""
        block = self.schedule.block
        strides = [block * FRACTAL, FRACTAL, SIDE, 1]
        place = restride(scores, [rows, keys.size, SIDE, SIDE], strides, keys.start * FRACTAL)
        cce.copy_l0c(tile, place)

    def soften(self, scores: ir.Value, rows: int, p: ir.Value, tiles: Sequence[Span]) -> None:
        """Scores of all keys become weights, in L1 tile by tile."""
        block, count = self.schedule.block, self.attention.keys
        for row in range(rows):
            self._chain(scores, row)
        if count < block * SIDE:
            shape, strides = [rows, (block * SIDE - count) * SIDE], [block * FRACTAL, 1]
            cce.vector_dup(
                scalar(self.dtype, -math.inf), restride(scores, shape, strides, count * SIDE)
            )
        dtype, slices = self.dtype, self.schedule.slices
        work = fold(rows, block * SIDE, slices, dtype, self.machine)
        scratch = self.shared.next(self.folded, self.element)
        odd = restride(scratch, [work.scratch[ODD]], [1], work.scratch[EVEN])
        buffers = {SOURCE: scores, RESULT: self.highest}
        build_steps(work, {**buffers, EVEN: scratch, ODD: odd})
        for row in range(rows):
            less = less_highest(row, block * SIDE, dtype)
            build_steps(Steps(dtype, (less,), {}), buffers)
            flat = restride(scores, [block * FRACTAL], [1], row * block * FRACTAL)
            cce.vexp(flat, flat)
            if self.itemsize > 2:
                weights = self._weights(block * FRACTAL)
                cce.vconv(flat, weights)
                flat = weights
            self._to_l1(flat, row, rows, p, tiles)

    def _weights(self, size: int) -> ir.Value:
        """The next buffer for the weights of 16 rows."""
        count = self.schedule.weights
        shared = self.shared.next(count * size, ir.F16Type.get())
        self.turn = (self.turn + 1) % count
        place: ir.Value = restride(shared, [size], [1], self.turn * size)
        return place

    def _to_l1(
        self, weights: ir.Value, row: int, rows: int, p: ir.Value, tiles: Sequence[Span]
    ) -> None:
        """Weights of 16 rows, [keys][16], to [tile][rows][keys of a tile][16]."""
        _, start = ir.MemRefType(weights.type).get_strides_and_offset()
        last = [tile for tile in tiles if tile.size < tiles[0].size]
        for count, size, first in (
            (len(tiles) - len(last), tiles[0].size, 0),
            *((1, tile.size, tile.start) for tile in last),
        ):
            shape, fractals = [count, size * FRACTAL], size * FRACTAL
            source = restride(weights, shape, [fractals, 1], start + first * FRACTAL)
            place = (first * rows + row * size) * FRACTAL
            cce.copy(source, restride(p, shape, [rows * fractals, 1], place))

    def _chain(self, scores: ir.Value, row: int) -> None:
        """The chain's steps on the scores of 16 rows."""
        block, chain = self.schedule.block, self.attention.chain
        lanes = BLOCK_BYTES // self.itemsize
        shape, own = [block * SIDE, SIDE // lanes, lanes], [SIDE, lanes, 1]
        extras = {extra.value for extra in chain.extras}
        for step in chain.steps:
            operands = []
            for value in (*step.sources, step.result):
                if value in extras:
                    buffer, strides = self.masks.operand(value)
                    operands.append(restride(buffer, shape, strides))
                elif value in self.numbers:
                    operands.append(restride(self.numbers[value], shape, [0, 0, 1]))
                else:
                    operands.append(restride(scores, shape, own, row * block * FRACTAL))
            if step.scalar is not None:
                operands.insert(-1, scalar(step.result.dtype, step.scalar))
            op(f"cce.{step.name}", operands, **step.attributes)
