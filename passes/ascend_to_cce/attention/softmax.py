"""Scores of a unit become weights, in UB: S^T in, P^T = exp(S - max) in f16 to L1.

S^T  [tile][rows / 16][keys of it][16]    as they come from L0C; the chain's steps, in place;
                                          -inf where there is no key
max  [rows / 16][copies][16]              `fold`; by blocks, the largest so far
P^T                                       S - max, f16, exp; to L1 in the same order

Where scores come twice, they come again less their maxima, which go to L0B as the first rows of
fractals of zeros, and the chain is done to these differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.operators.vector_program import Value, joined
from davinci.passes.ascend_to_cce.attention.masks import KeyBlock, Masks
from davinci.passes.ascend_to_cce.attention.units import filled_block
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing, fill_zeros
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps, scratch_buffers
from davinci.passes.builder import IndexLike, alloc, op, restride, viewed
from davinci.schedule.attention.attention import Attention, AttentionSchedule
from davinci.schedule.attention.blocks import (
    BEFORE,
    FACTOR,
    HIGHEST,
    LOWEST,
    taking,
)
from davinci.schedule.attention.cost import shared_bytes
from davinci.schedule.attention.fold import (
    FIRST,
    LEAST,
    SECOND,
    SPREAD_OUT,
    fold,
    less_highest,
    negated,
    result_lanes,
    spread_again,
    tile_name,
)
from davinci.schedule.attention.members import Members
from davinci.schedule.products.events import FractalSpan
from davinci.schedule.vector.steps import RESULT, SOURCE, BufferStep, BufferSteps
from davinci.units import BLOCK_BYTES, row_major
from davinci.units import FRACTAL_SIDE as SIDE


class Softmax:
    """Buffers for scores and weights, and what is done to them.

    Args:
        attention, schedule: what they are of.
        masks: the extras of the chain in GM, see `Masks`.
        members: operators of the kernel that what is built serves.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        masks: Sequence[ir.Value],
        machine: Machine,
        members: Members,
    ) -> None:
        self.attention, self.schedule, self.machine = attention, schedule, machine
        self.members = members
        self.dtype = schedule.dtype(attention)
        self.element, self.itemsize = element_type(self.dtype), schedule.itemsize(attention)
        rows, keys = schedule.scored, schedule.block
        whole = 0 if schedule.together else rows * keys * FRACTAL * self.itemsize
        self.scores = RowRing(schedule.scores, whole)
        lanes = rows * result_lanes(self.dtype)
        self.highest = alloc([lanes], self.element, "UB")
        # What is folded is folded before there are weights.
        first, second = shared_bytes(attention, schedule)
        self.shared = RowRing(1, first)
        self.second = alloc([second], ir.IntegerType.get_signless(8), "UB")
        self.turn = 0
        with serving(*members.difference):
            self.spread_out = self._spread_out()
        chain = attention.chain
        masking = joined(*(step.members for step in chain.steps), *members.extras)
        with serving(*masking):
            self.masks = Masks(attention, schedule, masks, machine)
            self.numbers = {value: filled_block(value, number) for value, number in chain.numbers}
        self.least: ir.Value | None = None
        if attention.guarded:
            with serving(*members.highest):
                self.least = alloc([BLOCK_BYTES // self.itemsize], self.element, "UB")
                cce.vector_dup(scalar(self.dtype, LOWEST[self.dtype]), self.least)
        if schedule.blocks(attention) > 1:
            self.before = alloc([lanes], self.element, "UB")
            f32 = ir.F32Type.get()
            self.factor = alloc([rows * SIDE], self.element, "UB")
            self.factors = self.factor
            if self.itemsize == 2:
                self.factors = alloc([rows * SIDE], f32, "UB")
            self.spread = alloc([rows * SIDE * BLOCK_BYTES // 4], f32, "UB")

    def _spread_out(self) -> list[ir.Value]:
        """Buffers of f16 for maxima beside scores, or in fractals."""
        schedule, f16 = self.schedule, ir.F16Type.get()
        if self.itemsize > 2:
            return []
        if schedule.together:
            # Where all is folded: both are read beside all tiles, so what is good for one is good
            # for the other.
            return [self.shared.at(0, schedule.scored * schedule.tile * FRACTAL, f16)]
        if not schedule.twice:
            return [alloc([schedule.rows * schedule.tile * FRACTAL], f16, "UB")]
        buffers: list[ir.Value] = [alloc([schedule.rows * FRACTAL], f16, "UB") for _ in range(2)]
        for buffer in buffers:
            fill_zeros(buffer)
        return buffers

    def begin(self) -> None:
        """A unit begins, of several blocks of keys."""
        with serving(*self.members.highest):
            cce.vector_dup(scalar(self.dtype, LOWEST[self.dtype]), self.before)

    def next_scores(self, rows: int, tiles: Sequence[FractalSpan]) -> list[ir.Value]:
        """A place for the scores of each tile."""
        if self.schedule.together:
            # Buffers of their own, which are free as soon as weights are in L1.
            return [alloc([rows * tile.size * FRACTAL], self.element, "UB") for tile in tiles]
        whole = self.scores.next(self.schedule.rows * self.schedule.block * FRACTAL, self.element)
        return [
            restride(whole, [rows * tile.size * FRACTAL], [1], rows * tile.start * FRACTAL)
            for tile in tiles
        ]

    def take(self, tile: ir.Value, scores: ir.Value) -> None:
        """A tile of scores from L0C, [rows][keys][16][16], to its place in UB."""
        shape = ir.MemRefType(tile.type).shape
        with serving(*self.members.scores):
            cce.copy_l0c(tile, restride(scores, shape, row_major(shape), start_of(scores)))

    def hide(self, scores: ir.Value, rows: int, keys: KeyBlock, tile: FractalSpan) -> None:
        """-inf where a tile has no keys."""
        size = tile.size * SIDE
        there = keys.elements - tile.start * SIDE
        if there < size:
            shape = [rows, (size - there) * SIDE]
            rest = restride(scores, shape, [size * SIDE, 1], start_of(scores) + there * SIDE)
            with serving(*self.members.highest):
                cce.vector_dup(scalar(self.dtype, -math.inf), rest)

    def chain(
        self,
        scores: ir.Value,
        rows: int,
        keys: KeyBlock,
        tile: FractalSpan,
        start: IndexLike,
        matrix: dict[Value, IndexLike],
    ) -> None:
        """The chain's steps on a tile.

        Args:
            start: fractals of rows of the matrix before the unit.
            matrix: for each extra, its matrix or row.
        """
        chain, lanes = self.attention.chain, BLOCK_BYTES // self.itemsize
        size = tile.size * SIDE
        shape = [rows, size, SIDE // lanes, lanes]
        own = [size * SIDE, SIDE, lanes, 1]
        held = {}
        for extra, own_members in zip(chain.extras, self.members.extras, strict=True):
            value = extra.value
            readers = (step.members for step in chain.steps if value in step.sources)
            with serving(*joined(own_members, *readers)):
                held[value] = self.masks.operand(extra, matrix[value], start, rows, keys, tile)
        held |= {value: (buffer, [0, 0, 0, 1], 0) for value, buffer in self.numbers.items()}
        for step in chain.steps:
            operands = []
            for value in (*step.sources, step.result):
                if value in held:
                    buffer, strides, offset = held[value]
                    operands.append(restride(buffer, shape, strides, offset))
                else:
                    operands.append(restride(scores, shape, own, start_of(scores)))
            if step.scalar is not None:
                operands.insert(-1, scalar(self.dtype, step.scalar))
            with serving(*step.members):
                op(f"cce.{step.name}", operands, **step.attributes)

    def stretch(self, scores: ir.Value) -> None:
        """The chain's factors, on the differences of a tile."""
        factor = self.attention.chain.factor
        if factor != 1.0:
            with serving(*joined(*(step.members for step in self.attention.chain.steps))):
                cce.vmuls(scores, scalar(self.dtype, factor), scores)

    def find_highest(
        self, scores: Sequence[ir.Value], rows: int, tiles: Sequence[FractalSpan], above: int = 0
    ) -> ir.Value | None:
        """The maxima of a block of keys, to where they are taken off; where scores come again,
        what is to be added to them, in fractals.

        Args:
            above: fractals of rows of a line above these.
        """
        with serving(*self.members.highest):
            return self._find_highest(scores, rows, tiles, above)

    def _find_highest(
        self, scores: Sequence[ir.Value], rows: int, tiles: Sequence[FractalSpan], above: int
    ) -> ir.Value | None:
        whole = self.schedule.blocks(self.attention) == 1
        spread = bool(self.spread_out) and whole and not self.schedule.twice
        sizes, bounded = [tile.size * SIDE for tile in tiles], self.least is not None
        work = fold(rows, sizes, self.dtype, self.machine, spread, bounded)
        folded, second = self._scratch(work, rows, above)
        buffers = {RESULT: self.highest, FIRST: folded, SECOND: second}
        buffers |= {tile_name(number): place for number, place in enumerate(scores)}
        if self.least is not None:
            buffers[LEAST] = self.least
        if self.spread_out:
            self.turn += 1
            place = self.spread_out[self.turn % len(self.spread_out)]
            buffers[SPREAD_OUT] = self._beside(place, rows, above, tiles) if spread else place
        build_steps(work, buffers)
        if not whole:
            self._take_in(rows)
        if self.schedule.twice:
            self._step(negated(rows), buffers)
        elif self.spread_out and not whole:
            self._step(spread_again(rows, tiles[0].size * SIDE, self.dtype), buffers)
        return buffers.get(SPREAD_OUT)

    def _scratch(self, work: BufferSteps, rows: int, above: int) -> list[ir.Value]:
        """The two scratch buffers of a fold. Several rows of fractals may be folded in one line of
        instructions, each in its part of the buffers.

        Args:
            rows: of fractals that are folded here.
            above: rows of fractals of the same line whose parts come first.
        """
        parts = []
        for buffer, name in ((self.shared.take(), FIRST), (self.second, SECOND)):
            count = work.scratch[name]
            start = above * count // rows
            whole = viewed(buffer, [start + count], self.element)
            parts.append(restride(whole, [count], [1], start))
        return parts

    def weights(
        self,
        scores: ir.Value,
        rows: int,
        p: ir.Value,
        tiles: Sequence[FractalSpan],
        tile: FractalSpan,
        above: int = 0,
    ) -> None:
        """Scores of a tile become weights, in L1; `above`: fractals of rows above these whose
        maxima were looked for together with theirs."""
        count, start = rows * tile.size * FRACTAL, rows * tile.start * FRACTAL
        if not self.schedule.twice:
            keys, first = tile.size * SIDE, tiles[0].size * SIDE
            buffers = {SOURCE: scores, RESULT: self.highest}
            if self.spread_out:
                buffers[SPREAD_OUT] = self._beside(self.spread_out[0], rows, above, tiles)
            with serving(*self.members.difference):
                self._step(less_highest(rows, keys, first, self.dtype), buffers)
        flat = scores
        with serving(*self.members.exponential):
            if self.itemsize > 2:
                flat = self._weights(count)
                cce.vconv(scores, flat)
            cce.vexp(flat, flat)
        with serving(*self.members.product):
            cce.copy_l1(flat, restride(p, [count], [1], start))

    def _beside(
        self, place: ir.Value, rows: int, above: int, tiles: Sequence[FractalSpan]
    ) -> ir.Value:
        """The part of some rows of a line of the maxima beside tiles."""
        each = tiles[0].size * FRACTAL
        return restride(place, [rows * each], [1], above * each)

    def _step(self, step: BufferStep, buffers: dict[str, ir.Value]) -> None:
        build_steps(BufferSteps(self.dtype, (step,), {}), buffers)

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
        """The next buffer for the weights of a tile."""
        count, most = self.schedule.weights, self.schedule.rows * self.schedule.tile * FRACTAL
        shared = self.shared.next(count * most, ir.F16Type.get())
        self.turn = (self.turn + 1) % count
        place: ir.Value = restride(shared, [size], [1], self.turn * most)
        return place


def start_of(place: ir.Value) -> int:
    """Elements before a place in its buffer."""
    _, start = ir.MemRefType(place.type).get_strides_and_offset()
    return int(start)
