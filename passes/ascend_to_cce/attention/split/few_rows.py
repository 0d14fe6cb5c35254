"""The vector cores of units that have one quarter of rows, as the heads of a decode step that share
keys: vector core 0 has the rows.

Vector core 1 answers flags and reads K and V ahead, so that the L2 has them: where rows become
fractals on their way, those that the L2 has not are late one by one. What lies in fractals, or
comes several rows as one, comes in few long runs, and is not read ahead.

Where a unit has a share of the keys, what it makes is kept in GM; then all vector cores meet, and
each puts together the shares of some matrices:

    vector core 0       O_s, and l_s = -factor * maximum_s, of its share s of the keys        -> GM
    all vector cores    O = sum of exp(min(l) - l_s) O_s, over its last columns               -> GM
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce.attention.split.steps import (
    MET,
    RESULTS,
    SCORES,
    StepPlace,
    choose,
    matrix_of,
)
from davinci.passes.ascend_to_cce.attention.split.vector import AttentionVectorCore
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    divided,
    for_loop,
    mul,
    only_if,
    restride,
    subview,
)
from davinci.schedule.attention.fold import COPIES
from davinci.schedule.attention.split import LANES, long_rows
from davinci.schedule.attention.turn import MatrixTurn
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import REPEAT_BLOCKS


class FewRowsVectorCore(AttentionVectorCore):
    """Builds the program of both vector cores of a block."""

    def build(self) -> None:
        """Everything."""
        with self.steps.only_blocks_with_work():
            choose(self.lane, 0, super().build, self.answer)
        if self.schedule.shares > 1:
            cce.set_core_flag(pipe="MTE3", flag=MET, of_all=True)
            cce.wait_core_flag(flag=MET)
            with self.steps.only_blocks_with_work():
                self.put_together()

    # Vector core 1.

    def answer(self) -> None:
        """Flags, for which the cube core waits, and what it takes in later steps."""
        (rows,) = self.halves

        def read(step: IndexLike) -> None:
            if long_rows(self.attention, self.schedule.part):
                return
            if not (self.schedule.windows or self.attention.k.nz):
                later = self.steps.place(self.steps.following(self.steps.following(step)))
                self.touch(self.gm.k, self.attention.of_k, later, self.attention.depth)
            if not self.attention.v.nz:
                place = self.steps.place(step)
                self.touch(self.gm.v, self.attention.of_v, place, self.attention.columns)

        def both(ahead: IndexLike, behind: IndexLike) -> None:
            read(ahead)
            self.wait_for(SCORES, rows)
            self.wait_for(RESULTS, rows)
            self.tell_weights(rows)

        def weights(step: IndexLike) -> None:
            read(step)
            self.wait_for(SCORES, rows)
            self.tell_weights(rows)

        self.steps.skewed(weights, both, lambda step: self.wait_for(RESULTS, rows))

    def touch(self, gm: ir.Value, turn: MatrixTurn, place: StepPlace, columns: int) -> None:
        """Reads a tile of K or V, and does nothing with it."""
        attention = self.attention
        matrix = matrix_of(place, turn, attention.batch)
        element = ir.F16Type.get()
        (size,) = ir.MemRefType(self.pieces.buffers[0].type).shape
        most = size // (columns * 2)

        def read(count: int) -> None:
            for start in range(0, count, most):
                rows = min(most, count - start)
                row = add(mul(place.tile, self.schedule.tile * SIDE), start)
                source = subview(gm, [matrix, row, 0], [1, rows, columns], drop=[0])
                there = self.pieces.next(rows * columns, element)
                cce.copy(source, restride(there, [rows, columns], [columns, 1]))

        whole, last = self.schedule.tile * SIDE, self.steps.tiles - 1
        left = attention.keys - last * whole
        if left == whole or last == 0:
            read(left)
        else:
            choose(place.tile, last, lambda: read(left), lambda: read(whole))

    # Shares of keys.

    def make_weights(self, step: IndexLike, place: StepPlace, subs: range) -> None:
        """Makes and stores the weights of a step, and of the last one what maxima its unit had."""
        super().make_weights(step, place, subs)
        if self.schedule.shares > 1:
            with only_if(place.last), serving(*self.members.highest):
                self.keep_lowest(place)

    def end_results(self, place: StepPlace, subs: range) -> None:
        """Behind the last tile of a unit rows of O leave, or are kept if keys are shared."""
        if self.schedule.shares == 1:
            super().end_results(place, subs)
            return
        with only_if(place.last):
            self.keep(place)

    def keep(self, place: StepPlace) -> None:
        """Stores what a unit has made of its share of the keys."""
        assert self.rings.sums is not None, "keys are shared"
        rows = self.attention.rows
        with serving(*self.members.product):
            target = self.lies.in_gm(self.rings.sums, [place.matrix, place.share], 0, rows)
            cce.copy(self.lies.rows(0, rows).of(self.sums[0]), target)

    def keep_lowest(self, place: StepPlace) -> None:
        """Stores minus the maxima of a share of the keys, whose last weights are made: those of the
        next unit come before this one's products."""
        assert self.rings.lowest is not None, "keys are shared"
        rows, height = self.schedule.rows, self.schedule.rows * SIDE
        lowest = restride(self.lowest[0], [rows, SIDE], [COPIES * self.wide, 1])
        kept = restride(self.exit.inverse, [rows, SIDE], [SIDE, 1])
        if self.dtype == "f32":
            cce.vadds(lowest, scalar("f32", 0.0), kept)
        else:
            cce.vconv(lowest, kept)
        target = subview(
            self.rings.lowest, [place.matrix, place.share, 0], [1, 1, height], drop=[0, 1]
        )
        cce.copy(restride(self.exit.inverse, [height], [1]), target)

    def put_together(self) -> None:
        """O of all matrices, dealt to all vector cores: the sum of what shares of the keys made,
        each times exp(its maximum - the largest), over the sum of their weights."""
        assert self.rings.sums is not None and self.rings.lowest is not None, "keys are shared"
        shares, height, cores = self.schedule.shares, SIDE, LANES * self.steps.blocks
        f32 = ir.F32Type.get()
        lowest, weights = (alloc([shares, height], f32, "UB") for _ in range(2))
        least = alloc([height], f32, "UB")
        number = add(mul(self.block, LANES), self.lane)
        left = arith.SubIOp(as_value(add(self.attention.batch + cores - 1, 0)), as_value(number))
        with serving(*self.members.quotient):  # What is divided besides the rows that there are.
            cce.vector_dup(scalar("f32", 1.0), self.sums[0])
        with for_loop(0, divided(left.result, cores)) as turn:
            matrix = add(number, mul(turn, cores))
            with serving(*self.members.highest):
                source = subview(self.rings.lowest, [matrix, 0, 0], [1, shares, height], drop=[0])
                cce.copy(source, lowest)
                for share in range(1, shares):
                    before = least if share > 1 else restride(lowest, [height], [1])
                    cce.vmin(before, restride(lowest, [height], [1], share * height), least)
            with serving(*self.members.exponential):
                cce.vsub(restride(least, [shares, height], [0, 1]), lowest, weights)
                cce.vexp(weights, weights)
            for share in range(shares):
                with serving(*self.members.product):
                    self.add_share(matrix, share, weights)
            self.leave(matrix, 0, 0)

    def add_share(self, matrix: IndexLike, share: int, weights: ir.Value) -> None:
        """Adds to O what a share of the keys made, each row times its weight among the shares."""
        assert self.rings.sums is not None, "keys are shared"
        rows, columns = self.attention.rows, self.lies.columns
        there = self.pieces.next(self.lies.height * self.lies.width, ir.F32Type.get())
        part = self.lies.rows(0, rows)
        cce.copy(self.lies.in_gm(self.rings.sums, [matrix, share], 0, rows), part.of(there))
        shape = [SIDE // REPEAT_BLOCKS, REPEAT_BLOCKS]
        self.spread_out(restride(weights, shape, [REPEAT_BLOCKS, 1], share * SIDE))
        blocks = self.lies.blocks(0, rows, columns)
        factors = self.lies.factors(0, rows, columns).of(self.spread)
        target = there if share else self.sums[0]
        cce.vmul(blocks.of(there), factors, blocks.of(target))
        if share:
            sums = part.of(self.sums[0])
            cce.vadd(sums, part.of(there), sums)
