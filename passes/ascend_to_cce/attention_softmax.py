"""Scores of a unit become weights, in UB: S^T in, P^T = exp(S - max) in f16 to L1.

S^T  [rows / 16][keys][16]    the chain's steps, in place; -inf where there is no key
max  [rows / 16][copies][16]  `attention_fold`; by blocks, the largest so far
P^T                           S - max, exp, f16; to L1 as [tile][rows / 16][keys of it][16]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.attention_masks import KeyBlock, Masks
from davinci.passes.ascend_to_cce.product_rows import FRACTAL, Ring
from davinci.passes.ascend_to_cce.row_statistics import build_steps, scratch_buffers
from davinci.passes.ascend_to_cce.vector_program import element_type, scalar
from davinci.passes.builder import IndexLike, add, alloc, op, restride
from davinci.schedule.attention import Attention, AttentionSchedule
from davinci.schedule.attention_blocks import (
    BEFORE,
    FACTOR,
    HIGHEST,
    LOWEST,
    taking,
)
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
from davinci.schedule.vector_steps import RESULT, SOURCE, Steps
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


class Softmax:
    """Buffers for scores and weights, and what is done to them.

    Args:
        attention, schedule: what they are of.
        masks: the extras of the chain in GM, see `Masks`.
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
        lanes = rows * result_lanes(self.dtype)
        self.highest = alloc([lanes], self.element, "UB")
        # What is folded is folded before there are weights.
        self.shared = Ring(1, shared_bytes(attention, schedule))
        self.turn = 0
        self.masks = Masks(attention, schedule, masks, machine)
        self.numbers = {value: self._number(value, number) for value, number in chain.numbers}
        if schedule.blocks(attention) > 1:
            self.before = alloc([lanes], self.element, "UB")
            f32 = ir.F32Type.get()
            self.factor = alloc([rows * SIDE], self.element, "UB")
            self.factors = self.factor
            if self.itemsize == 2:
                self.factors = alloc([rows * SIDE], f32, "UB")
            self.spread = alloc([rows * SIDE * BLOCK_BYTES // 4], f32, "UB")

    def _number(self, value: Value, number: float) -> ir.Value:
        buffer: ir.Value = alloc([SIDE], element_type(value.dtype), "UB")
        cce.vector_dup(scalar(value.dtype, number), buffer)
        return buffer

    def begin(self) -> None:
        """A unit begins, of several blocks of keys."""
        cce.vector_dup(scalar(self.dtype, LOWEST[self.dtype]), self.before)

    def take(self, tile: ir.Value, scores: ir.Value, keys: Span, rows: int, block: int) -> None:
        """A tile of scores from L0C, [rows][keys][16][16], to its place in UB, among `block`
        fractals of keys."""
        strides = [block * FRACTAL, FRACTAL, SIDE, 1]
        place = restride(scores, [rows, keys.size, SIDE, SIDE], strides, keys.start * FRACTAL)
        cce.copy_l0c(tile, place)

    def chain(
        self,
        scores: ir.Value,
        rows: int,
        keys: KeyBlock,
        start: IndexLike,
        matrix: dict[Value, IndexLike],
    ) -> None:
        """The chain's steps, and -inf where there are no keys.

        Args:
            start: fractals of rows of the matrix before the unit.
            matrix: for each extra, its matrix or row.
        """
        for row in range(rows):
            self._chain(scores, row, keys, add(start, row), matrix)
        if keys.elements < keys.fractals * SIDE:
            shape = [rows, (keys.fractals * SIDE - keys.elements) * SIDE]
            strides = [keys.fractals * FRACTAL, 1]
            rest = restride(scores, shape, strides, keys.elements * SIDE)
            cce.vector_dup(scalar(self.dtype, -math.inf), rest)

    def soften(
        self, scores: ir.Value, rows: int, p: ir.Value, block: int, tiles: Sequence[Span]
    ) -> None:
        """Scores of a block of keys become weights, in L1 tile by tile."""
        dtype, slices = self.dtype, self.schedule.slices
        folded = self.shared.next(scratch_lanes(rows, block * SIDE, slices), self.element)
        work = fold(rows, block * SIDE, slices, dtype, self.machine)
        odd = restride(folded, [work.scratch[ODD]], [1], work.scratch[EVEN])
        buffers = {SOURCE: scores, RESULT: self.highest}
        build_steps(work, {**buffers, EVEN: folded, ODD: odd})
        if self.schedule.blocks(self.attention) > 1:
            self._take_in(rows)
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

    def _take_in(self, rows: int) -> None:
        """The largest score so far, and the factor of what there is of O."""
        taken = taking(rows, 1, self.dtype, self.machine)
        buffers = {HIGHEST: self.highest, BEFORE: self.before, FACTOR: self.factor}
        build_steps(taken.maxima, buffers)
        if self.itemsize == 2:
            size = [rows * SIDE]
            cce.vconv(restride(self.factor, size, [1]), restride(self.factors, size, [1]))
        work = taken.spread
        build_steps(work, {SOURCE: self.factors, RESULT: self.spread, **scratch_buffers(work)})

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

    def _chain(
        self,
        scores: ir.Value,
        row: int,
        keys: KeyBlock,
        place: IndexLike,
        matrix: dict[Value, IndexLike],
    ) -> None:
        """The chain's steps on the scores of 16 rows, in their matrix at the fractal `place`."""
        chain, lanes = self.attention.chain, BLOCK_BYTES // self.itemsize
        shape, own = [keys.fractals * SIDE, SIDE // lanes, lanes], [SIDE, lanes, 1]
        held = {}
        for extra in chain.extras:
            value = extra.value
            held[value] = self.masks.operand(extra, matrix[value], place, keys)
        held |= {value: (buffer, [0, 0, 1]) for value, buffer in self.numbers.items()}
        for step in chain.steps:
            operands = []
            for value in (*step.sources, step.result):
                if value in held:
                    buffer, strides = held[value]
                    operands.append(restride(buffer, shape, strides))
                else:
                    offset = row * keys.fractals * FRACTAL
                    operands.append(restride(scores, shape, own, offset))
            if step.scalar is not None:
                operands.insert(-1, scalar(step.result.dtype, step.scalar))
            op(f"cce.{step.name}", operands, **step.attributes)
