"""The program of a vector core: scores of a tile become weights, products with V are summed up.

Of a chunk of rows, S^T as [rows / 16][keys][16]:

    maxima     of keys by `fold`, times minus the factor; with those of the tiles before: the least
    S^T        times the factor plus that, f16, exp                                  -> GM
    change     exp(new - old), kept until the products with V of the tile come

Of the rows of a quarter, P V in rows or fractals, as O leaves (`sums`):

    O          times the change, spread to a block for each row, plus P V
    behind the last tile  O / its last columns                                       -> GM

If all keys are one tile, maxima do not change and P V is O.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.attention.split.leave import QuarterExit
from davinci.passes.ascend_to_cce.attention.split.masks import ChunkMasks
from davinci.passes.ascend_to_cce.attention.split.steps import (
    RESULTS,
    SCORES,
    WEIGHTS,
    BlockSteps,
    Rings,
    StepPlace,
    choose,
)
from davinci.passes.ascend_to_cce.attention.split.sums import F32_BLOCK, sums_layout
from davinci.passes.ascend_to_cce.attention.units import AttentionArrays, filled_block
from davinci.passes.ascend_to_cce.products.feed import expanded
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    is_equal,
    mul,
    only_if,
    op,
    remainder,
    restride,
    subview,
    viewed,
)
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.blocks import LOWEST
from davinci.schedule.attention.fold import (
    COPIES,
    FIRST,
    fold_in_place,
    repeat_lanes,
    result_lanes,
)
from davinci.schedule.attention.members import Members
from davinci.schedule.attention.split import (
    CHUNKS_AT_ONCE,
    PIECE_SLOTS,
    SplitAttentionSchedule,
    chunks,
    in_place,
    leaving_bytes,
    score_slots,
    scratch_bytes,
    shared_bytes,
    slot_bytes,
    weight_slots,
)
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS
from davinci.units import FRACTAL_SIDE as SIDE


class AttentionVectorCore:
    """Builds the program.

    Args:
        gm: the arrays of the attention.
        rings: shared with the cube core.
        block: the number of the block.
        lane: that of the vector core in its block.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: SplitAttentionSchedule,
        gm: AttentionArrays,
        rings: Rings,
        steps: BlockSteps,
        block: ir.Value,
        lane: ir.Value,
        members: Members,
        machine: Machine,
    ) -> None:
        self.attention, self.schedule, self.members = attention, schedule, members
        self.gm, self.rings, self.steps, self.machine = gm, rings, steps, machine
        self.block, self.lane = block, lane
        self.row_lane: IndexLike = lane if schedule.lanes > 1 else 0
        self.dtype = schedule.dtype(attention)
        self.element = element_type(self.dtype)
        self.masked = in_place(attention)
        self.factor = 1.0 if self.masked else attention.scale * attention.chain.factor
        self.masks = ChunkMasks(attention, schedule, gm.extras, rings.masks, steps, machine)
        self.numbers = {value: filled_block(value, n) for value, n in attention.chain.numbers}
        f32, item = ir.F32Type.get(), ir.FloatType(self.element).width // 8
        rows, self.lies = schedule.rows, sums_layout(attention, schedule.rows)
        self.lanes, self.wide = result_lanes(self.dtype), repeat_lanes(self.dtype)
        self.scores = RowRing(score_slots(self.dtype), slot_bytes(schedule, item))
        first = scratch_bytes(schedule, item)
        self.shared = RowRing(
            weight_slots(self.dtype) or 1,
            shared_bytes(attention, schedule, self.dtype)
            if weight_slots(self.dtype)
            else max(first, leaving_bytes(attention, schedule)),
        )
        self.first = first // item
        subs, size = schedule.subs, self.lies.columns * rows * FRACTAL
        self.sums = [alloc([size], f32, "UB") for _ in range(subs)]
        self.pieces = RowRing(PIECE_SLOTS, schedule.piece * self.lies.columns * FRACTAL * 4)
        apart = COPIES * self.wide
        self.lowest = [alloc([rows * apart], self.element, "UB") for _ in range(subs)]
        self.small = RowRing(2 * CHUNKS_AT_ONCE, schedule.chunk * apart * item)
        self.changes = alloc([schedule.ring, subs, rows * SIDE], f32, "UB")
        self.spread = alloc([rows * SIDE * F32_BLOCK], f32, "UB")
        self.exit = QuarterExit(attention, schedule, self.lies, gm.o, lane, self.row_lane, members)
        self.factors = alloc([self.lanes], self.element, "UB")

    def build(self) -> None:
        """Everything."""
        with serving(*self.members.difference):
            cce.vector_dup(scalar(self.dtype, self.factor), self.factors)
        self.steps.skewed(self.weights, self.both, self.results, ordered=True)

    @property
    def halves(self) -> list[range]:
        """The halves of a unit one by one."""
        return [range(sub, sub + 1) for sub in range(self.schedule.subs)]

    def wait_for(self, flag: int, subs: range) -> None:
        """Waits until the cube core has told of halves of a unit."""
        for _ in subs:
            cce.wait_core_flag(flag=flag)

    def both(self, ahead: IndexLike, behind: IndexLike) -> None:
        """Weights of a step and results of an earlier one, in one straight line: what pipes do
        ahead ends where flags are."""
        here, there = self.steps.place(ahead), self.steps.place(behind)
        subs = range(self.schedule.subs)
        self.begin_weights(here)
        self.ask(here, 0)
        self.wait_for(SCORES, subs)
        self.begin_results(there, subs)
        self.make_weights(ahead, here, subs)
        self.take_results(behind, subs)
        self.tell_weights(subs)
        self.end_results(there, subs)

    # Weights.

    def weights(self, step: IndexLike) -> None:
        """Scores of a step become weights, alone: half of the rows after the other, as the cube
        core takes them. Branches for what a band hides leave little to interleave in half."""
        place = self.steps.place(step)
        self.begin_weights(place)
        for subs in self.halves if self.rings.masks is None else [range(self.schedule.subs)]:
            self.ask(place, subs.start)
            self.wait_for(SCORES, subs)
            self.make_weights(step, place, subs)
            self.tell_weights(subs)

    def begin_weights(self, place: StepPlace) -> None:
        """Begins the maxima of a unit at the lowest number, and brings masks, while the cube core
        is at the scores of a step."""
        with only_if(place.first), serving(*self.members.highest):
            for lowest in self.lowest:
                cce.vector_dup(scalar(self.dtype, -LOWEST[self.dtype]), lowest)
        self.masks.bring(place)

    def ask(self, place: StepPlace, sub: int) -> None:
        """Brings what the first chunk of half of a unit is masked by, before its scores come."""
        with serving(*(member for extra in self.members.extras for member in extra)):
            start = self.rows_before(place, sub, 0)
            self.masks.ask(place, start, chunks(self.schedule)[0])

    def rows_before(self, place: StepPlace, sub: int, first: int) -> IndexLike:
        """Fractals of rows of a matrix before a chunk of a quarter, which begins behind `first`."""
        return add(mul(place.block, self.schedule.unit_rows), self.rows_above(sub, first))

    def rows_above(self, sub: int, first: int) -> IndexLike:
        """Fractals of rows of a unit before a chunk of a quarter, which begins behind `first`."""
        quarter = add(sub * self.schedule.lanes, self.row_lane)
        return add(mul(quarter, self.schedule.rows), first)

    def make_weights(self, step: IndexLike, place: StepPlace, subs: range) -> None:
        """Makes and stores the weights of a step."""
        if self.rings.masks is None:
            self.chunks(step, place, subs, banded=False)
        else:
            clear, banded = (partial(self.chunks, step, place, subs, x) for x in (False, True))
            self.alike(place, clear, banded)

    def tell_weights(self, subs: range) -> None:
        """Tells the cube core of the weights of halves of a unit."""
        for _ in subs:
            cce.set_core_flag(pipe="MTE3", flag=WEIGHTS)

    def alike(
        self, place: StepPlace, clear: Callable[[], None], banded: Callable[[], None]
    ) -> None:
        """Builds what is done where a band leaves all of a tile, and where it hides some of it;
        both take the same buffers."""
        rings = self.scores, self.shared, self.small
        turns = [ring.turn for ring in rings]

        def again() -> None:
            for ring, turn in zip(rings, turns, strict=True):
                ring.turn = turn
            banded()

        choose(place.pattern, 0, clear, again, ordered=True)

    def chunks(self, step: IndexLike, place: StepPlace, subs: range, banded: bool) -> None:
        """Rows of halves of a unit, in one straight line: what pipes do ahead ends where flags are.

        Args:
            banded: whether a band hides some scores.
        """
        for sub in subs:
            first = 0
            for rows in chunks(self.schedule):
                self.chunk(step, place, sub, first, rows, banded)
                first += rows

    def of_ring(self, ring: ir.Value, step: IndexLike, sub: int, first: int, rows: int) -> ir.Value:
        """Rows of a quarter, of scores or weights."""
        keys = self.schedule.tile * SIDE
        quarter = add(sub * self.schedule.lanes, self.row_lane)
        start = [self.block, self.steps.in_ring(step), quarter, first, 0, 0]
        return subview(ring, start, [1, 1, 1, rows, keys, SIDE], drop=[0, 1, 2])

    def chunk(
        self, step: IndexLike, place: StepPlace, sub: int, first: int, rows: int, banded: bool
    ) -> None:
        """Some rows of a quarter."""
        keys = self.schedule.tile * SIDE
        count, size = rows * keys * SIDE, [rows, keys, SIDE]
        strides = [keys * SIDE, SIDE, 1]
        scores = self.scores.next(count, self.element)
        with serving(*self.members.scores):
            source = self.of_ring(self.rings.scores, step, sub, first, rows)
            cce.copy(source, restride(scores, size, strides))
        if self.masked:
            self.chain(place, self.rows_before(place, sub, first), rows, scores)
        shared = self.shared.take()
        if banded:
            with serving(*self.members.scores):
                self.masks.bound(place, self.rows_above(sub, first), scores, rows, shared)
        self.hide(place, scores, rows)
        with serving(*self.members.highest):
            work = fold_in_place(rows, keys, self.dtype)
            highest = self.small.next(rows * COPIES * self.wide, self.element)
            scratch = viewed(shared, [self.first], self.element)
            build_steps(work, {SOURCE: scores, FIRST: scratch, RESULT: highest})
        with serving(*self.members.difference):
            self.take_off(step, sub, first, rows, scores, highest)
        weights = scores
        with serving(*self.members.exponential):
            if self.dtype == "f32":
                weights = viewed(shared, [count], ir.F16Type.get())
                cce.vconv(scores, weights)
            cce.vexp(weights, weights)
        with serving(*self.members.product):
            target = self.of_ring(self.rings.weights, step, sub, first, rows)
            cce.copy(restride(weights, size, strides), target)

    def chain(self, place: StepPlace, start: IndexLike, rows: int, scores: ir.Value) -> None:
        """The chain's steps on a chunk; `start`: fractals of rows of the matrix before it."""
        chain, block = self.attention.chain, BLOCK_BYTES // (ir.FloatType(self.element).width // 8)
        keys = self.schedule.tile * SIDE
        shape, own = [rows, keys, SIDE // block, block], [keys * SIDE, SIDE, block, 1]
        views = {value: (buffer, [0, 0, 0, 1]) for value, buffer in self.numbers.items()}
        for extra, members in zip(chain.extras, self.members.extras, strict=True):
            with serving(*members):
                views[extra.value] = self.masks.operand(extra, place, start, rows)
        if self.attention.scale != 1.0:
            with serving(*self.members.scores):
                cce.vmuls(scores, scalar(self.dtype, self.attention.scale), scores)
        for step in chain.steps:
            operands = [
                restride(buffer, shape, strides)
                for buffer, strides in (
                    views.get(value, (scores, own)) for value in (*step.sources, step.result)
                )
            ]
            if step.scalar is not None:
                operands.insert(-1, scalar(self.dtype, step.scalar))
            with serving(*step.members):
                op(f"cce.{step.name}", operands, **step.attributes)

    def hide(self, place: StepPlace, scores: ir.Value, rows: int) -> None:
        """Minus infinity where the last tile has no keys."""
        keys, last = self.schedule.tile * SIDE, self.steps.tiles - 1
        left = self.attention.keys - last * keys
        if left == keys:
            return

        def fill() -> None:
            shape, strides = [rows, (keys - left) * SIDE], [keys * SIDE, 1]
            with serving(*self.members.highest):
                rest = restride(scores, shape, strides, left * SIDE)
                cce.vector_dup(scalar(self.dtype, -math.inf), rest)

        if last == 0:
            fill()
        else:
            with only_if(is_equal(place.tile, last)):
                fill()

    def copies(self, buffer: ir.Value, rows: int, first: int = 0) -> ir.Value:
        """Numbers of rows as `fold_in_place` has them."""
        apart = COPIES * self.wide
        strides = [apart, self.wide, 1]
        made: ir.Value = restride(buffer, [rows, COPIES, self.lanes], strides, first * apart)
        return made

    def take_off(
        self, step: IndexLike, sub: int, first: int, rows: int, scores: ir.Value, highest: ir.Value
    ) -> None:
        """Scores times the factor less the highest of their rows; the change of that is kept."""
        apart = COPIES * self.wide
        other = self.small.next(rows * apart, self.element)
        lowest = self.copies(self.lowest[sub], rows, first)
        new, change = self.copies(highest, rows), self.copies(other, rows)
        cce.vmuls(new, scalar(self.dtype, -self.factor), new)
        cce.vmin(new, lowest, new)
        if not self.steps.of_one_tile:
            cce.vsub(new, lowest, change)
            cce.vadds(new, scalar(self.dtype, 0.0), lowest)
            kept = expanded(self.kept_changes(step, sub, first, rows), [rows, SIDE], 0)
            one = restride(other, [rows, SIDE], [apart, 1])
            if self.dtype == "f32":
                cce.vexp(one, kept)
            else:
                cce.vexp(one, one)
                cce.vconv(one, kept)
        keys, runs = self.schedule.tile * SIDE, self.wide // self.lanes
        shape = [rows, keys * SIDE // apart, runs, self.lanes]
        for half in range(COPIES):
            # What is read of both is in other bank groups.
            own, away = half * self.wide, (COPIES - 1 - half) * self.wide
            cce.vmadd(
                restride(self.factors, shape, [0, 0, 0, 1]),
                restride(highest, shape, [apart, 0, 0, 1], away),
                restride(scores, shape, [keys * SIDE, apart, self.lanes, 1], own),
            )

    # Products with V.

    def results(self, step: IndexLike) -> None:
        """Products with V of a step are taken in, alone: each half of the rows when it is there."""
        place = self.steps.place(step)
        for subs in self.halves:
            self.begin_results(place, subs)
            self.take_results(step, subs)
            self.end_results(place, subs)

    def begin_results(self, place: StepPlace, subs: range) -> None:
        """Waits for the products with V of a step."""
        if not self.steps.of_one_tile:
            with only_if(place.first), serving(*self.members.product):
                for sub in subs:
                    cce.vector_dup(scalar("f32", 0.0), self.sums[sub])
        self.wait_for(RESULTS, subs)

    def take_results(self, step: IndexLike, subs: range) -> None:
        """Takes them in."""
        for sub in subs:
            with serving(*self.members.product):
                self.take_in(step, sub)

    def end_results(self, place: StepPlace, subs: range) -> None:
        """Rows of O leave behind the last tile of a unit."""
        with only_if(place.last):
            for sub in subs:
                self.leave(place.matrix, place.block, sub)

    def take_in(self, step: IndexLike, sub: int) -> None:
        """O of a quarter times the change of its rows' maxima, and what a tile adds to it."""
        rows = self.schedule.rows
        height = rows * SIDE
        if self.steps.of_one_tile:
            cce.copy(
                self.of_results(step, sub, 0, height), self.lies.rows(0, height).of(self.sums[sub])
            )
            return
        kept = self.kept_changes(step, sub, 0, rows)
        self.spread_out(expanded(kept, [height // REPEAT_BLOCKS, REPEAT_BLOCKS], 0))
        start, piece = 0, self.schedule.piece * SIDE
        while start < height:
            count = min(piece, height - start)
            self.take_piece(step, sub, start, count)
            start += count

    def spread_out(self, numbers: ir.Value) -> None:
        """Numbers of rows of a quarter, [rows / 8][8], each to a block."""
        shape = [*ir.MemRefType(numbers.type).shape, F32_BLOCK]
        cce.vbrcb(numbers, restride(self.spread, shape, [REPEAT_BLOCKS * F32_BLOCK, F32_BLOCK, 1]))

    def kept_changes(self, step: IndexLike, sub: int, first: int, rows: int) -> ir.Value:
        """The changes of maxima of some fractals of rows of a quarter in a step."""
        start = [remainder(step, self.schedule.ring), sub, first * SIDE]
        return subview(self.changes, start, [1, 1, rows * SIDE], drop=[0, 1])

    def of_results(self, step: IndexLike, sub: int, start: int, count: int) -> ir.Value:
        """Some rows of the products with V of a quarter."""
        quarter = add(sub * self.schedule.lanes, self.row_lane)
        place = [self.block, self.steps.in_ring(step), quarter]
        return self.lies.in_gm(self.rings.results, place, start, count)

    def take_piece(self, step: IndexLike, sub: int, start: int, count: int) -> None:
        """Some rows."""
        columns = self.lies.columns
        there = self.pieces.next(count * columns * SIDE, ir.F32Type.get())
        piece = replace(self.lies, height=count).rows(0, count).of(there)
        cce.copy(self.of_results(step, sub, start, count), piece)
        kept = self.lies.blocks(start, count, columns).of(self.sums[sub])
        cce.vmul(kept, self.lies.factors(start, count, columns).of(self.spread), kept)
        sums = self.lies.rows(start, count).of(self.sums[sub])
        cce.vadd(sums, piece, sums)

    def leave(self, matrix: IndexLike, block: IndexLike, sub: int) -> None:
        """Stores the rows of O that a vector core has of a quarter of a unit."""
        self.exit.leave(self.sums[sub], self.shared.take(), matrix, block, sub)
