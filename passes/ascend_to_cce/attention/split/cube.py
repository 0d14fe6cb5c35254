"""The program of a cube core: scores of a tile, and its products with V.

    Q, K, V   GM -> L1, fractals as they are, rows by ND2NZ, several of K and V as one where order
              matters to nothing (`long_rows`), or rows of K as they are
    S^T       K in L0A, Q in L0B: a mad for each part of the keys and quarter of the rows -> GM
    P V       P in L0A, V and ones in L0B: a mad for each part, or cut of it, and quarter of the
              rows, summed up -> GM

Mads of scores and of products take turns. A part of K or V of the next step comes as soon
as that of this one is in L0 for the last time; the last part of V behind the first weights of its
step, which are needed before it. Where there is only one step, scores of half of the rows leave
before those of the other half; behind the last scores weights are taken half by half, so that
vector cores make the other half meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.attention.feeds import KeyRowsFeed
from davinci.passes.ascend_to_cce.attention.split.long_rows import LongRowsFeed
from davinci.passes.ascend_to_cce.attention.split.steps import (
    RESULTS,
    SCORES,
    WEIGHTS,
    BlockSteps,
    Rings,
    StepPlace,
    choose,
    matrix_of,
)
from davinci.passes.ascend_to_cce.attention.split.sums import sums_layout
from davinci.passes.ascend_to_cce.attention.units import AttentionArrays, fractal_buffers
from davinci.passes.ascend_to_cce.products.feed import Feed, Range, ShareRegion
from davinci.passes.ascend_to_cce.products.kernel import flag
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    constant_index,
    mul,
    only_if,
    reshaped,
    restride,
    subview,
)
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.members import Members
from davinci.schedule.attention.split import (
    P_SLOTS,
    SplitAttentionSchedule,
    factor_slots,
    long_rows,
    ways_of_scores,
)
from davinci.schedule.products.events import Block, Fill, FractalSpan, Held
from davinci.schedule.products.product import Pieces, ProductOperand
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

ONE = 0x3C00
"""1.0 in f16."""


class AttentionCubeCore:
    """Builds the program.

    Args:
        gm: the arrays of the attention.
        rings: shared with the vector cores.
        steps: of the block.
        block: its number.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: SplitAttentionSchedule,
        gm: AttentionArrays,
        rings: Rings,
        steps: BlockSteps,
        block: ir.Value,
        members: Members,
        machine: Machine,
    ) -> None:
        self.attention, self.schedule, self.members = attention, schedule, members
        self.rings, self.steps, self.block = rings, steps, block
        sizes, rows, part, parts = attention.fractals, schedule.rows, schedule.part, schedule.parts
        f16, f32 = ir.F16Type.get(), ir.F32Type.get()
        self.depth, self.columns = sizes.depth, sizes.columns

        def feed(source: ir.Value, operand: ProductOperand, pieces: Pieces) -> Feed:
            return Feed(source, replace(operand, direct=True), pieces, None)

        self.q = feed(gm.q, attention.q, Pieces(self.depth, rows, 1, rows, schedule.quarters))
        of_k = Pieces(self.depth, part, 1, part, parts)
        of_v = Pieces(part, self.columns, part, part, parts)
        self.joined = long_rows(attention, schedule.part)
        if self.joined:
            self.k: Feed = LongRowsFeed(gm.k, attention.k, of_k, self.depth)
            self.v: Feed = LongRowsFeed(gm.v, attention.v, of_v, self.columns)
        else:
            rows_of_k = KeyRowsFeed(gm.k, attention.k, of_k) if schedule.windows else None
            self.k = rows_of_k or feed(gm.k, attention.k, of_k)
            self.v = feed(gm.v, attention.v, of_v)

        slots = factor_slots(attention, schedule, machine)
        self.cuts = slots.cuts
        self.own = part // self.cuts
        height = schedule.lanes * rows
        self.p = fractal_buffers(P_SLOTS * self.cuts, height * self.own, f16, "L1")
        self.l0a_k = fractal_buffers(slots.k, part * self.depth, f16, "L0A")
        self.l0a_p = fractal_buffers(slots.p, height * self.own, f16, "L0A")
        self.l0b_q = fractal_buffers(slots.q, rows * self.depth, f16, "L0B")
        self.l0b_v = fractal_buffers(slots.v, self.own * (self.columns + 1), f16, "L0B")
        scores = ways_of_scores(attention, schedule, machine)[0]
        self.pieces = scores.cuts
        self.l0c_s = fractal_buffers(scores.count, rows * part // scores.cuts, f32, "L0C")
        self.l0c_o = fractal_buffers(schedule.lanes, rows * (self.columns + 1), f32, "L0C")
        self.turn = 0

    def build(self) -> None:
        """Everything."""
        self.prepare()
        self.next_k = self.steps.place(0)
        quarters = range(self.schedule.quarters)
        self.bring_q(self.next_k, quarters[: self.schedule.lanes])
        for part in range(self.schedule.parts):
            self.bring_k(self.next_k, part)
        self.bring_q(self.next_k, quarters[self.schedule.lanes :])
        self.steps.skewed(self.scores, self.both, self.results, between=self.bring_first_v)

    def prepare(self) -> None:
        """Ones beside V in L0B, and numbers in L1 where rows of a matrix end before a buffer and
        none were there before."""
        wide = self.columns + 1
        ones = alloc([self.own * FRACTAL], ir.F16Type.get(), "L1")
        with serving(*self.members.sums):
            cce.clear_l1(reshaped(ones, [1, self.own * FRACTAL]), bits=ONE)
            for k in range(self.own):
                source = restride(ones, [1, 1, SIDE, SIDE], [FRACTAL, FRACTAL, SIDE, 1])
                place = (k * wide + self.columns) * FRACTAL
                for held in self.l0b_v:
                    cce.load2d(source, self.fractals(held, 1, 1, place))
        for quarter, there in enumerate(self.rows_of_last()):
            self.clear(self.q.l1[quarter], self.depth, self.schedule.rows, there)
        if self.steps.may_begin_at_the_end:
            for part in range(self.schedule.parts):
                _, left = self.keys_of(part)
                if self.schedule.windows:
                    lies = [1, self.depth * self.schedule.part, left * self.depth // SIDE]
                    self.clear(self.k.l1[part], *lies)
                else:
                    self.clear_keys(self.k.l1[part], self.depth, ceil_div(left, SIDE))

    def rows_of_last(self) -> list[int]:
        """Fractals of rows of each quarter of the last unit of a matrix."""
        rows, last = self.schedule.rows, self.schedule.blocks_of_rows(self.attention) - 1
        left = self.attention.fractals.rows - last * self.schedule.unit_rows
        return [
            max(0, min(rows, left - quarter * rows)) for quarter in range(self.schedule.quarters)
        ]

    def clear(self, buffer: ir.Value, columns: int, height: int, first: int) -> None:
        """Zeros in a buffer [columns][height] of fractals, from fractal `first` of each column on.
        Nothing may have been there before."""
        if first < height:
            shape, strides = [columns, (height - first) * FRACTAL], [height * FRACTAL, 1]
            cce.clear_l1(restride(buffer, shape, strides, first * FRACTAL))

    def clear_keys(self, buffer: ir.Value, width: int, first: int) -> None:
        """Zeros in a part of K or V of so many columns of fractals, from fractal `first` of the
        keys on."""
        part = self.schedule.part
        lies = [1, part * width, first * width] if self.joined else [width, part, first]
        self.clear(buffer, *lies)

    def fractals(self, buffer: ir.Value, rows: int, columns: int, offset: int = 0) -> ir.Value:
        """Fractals of a buffer that follow each other."""
        strides = [columns * FRACTAL, FRACTAL, SIDE, 1]
        made: ir.Value = restride(buffer, [rows, columns, SIDE, SIDE], strides, offset)
        return made

    # What comes from GM.

    def bring_q(self, place: StepPlace, quarters: Iterable[int]) -> None:
        """Q of quarters of a unit."""
        attention, unit = self.attention, self.schedule.unit_rows
        matrix = matrix_of(place, attention.of_q, attention.batch)
        last = self.schedule.blocks_of_rows(attention) - 1

        def rows(count: int) -> None:
            for quarter in quarters:
                size = self.schedule.rows * SIDE
                there = min(size, count - quarter * size)
                if there <= 0:
                    break
                start = add(mul(place.block, unit), quarter * self.schedule.rows)
                depth = FractalSpan(0, self.depth)
                whole = Block(0, depth, FractalSpan(0, self.schedule.rows))
                block = Block(0, depth, FractalSpan(0, ceil_div(there, SIDE)))
                region = ShareRegion(
                    matrix, Range(0, attention.depth, True), Range(start, there, True)
                )
                self.q.fill(Fill("", Held(whole, quarter), block), region)

        left = attention.rows - last * unit * SIDE
        with serving(*self.members.q):
            self.whole_or_tail(place.block, last, unit * SIDE, left, rows)

    def whole_or_tail(
        self, index: IndexLike, last: int, whole: int, left: int, build: object
    ) -> None:
        """Builds for a whole of something, and for what is left of it at the last index."""
        assert callable(build), "what builds takes the size"
        if left == whole:
            build(whole)
        elif last == 0:
            build(left)
        else:
            choose(index, last, lambda: build(left), lambda: build(whole))

    def keys_of(self, part: int) -> tuple[int, int]:
        """Keys of a part in a tile, and in the last one."""
        size, tile = self.schedule.part * SIDE, self.schedule.tile * SIDE
        left = self.attention.keys - (self.steps.tiles - 1) * tile
        return size, max(0, min(size, left - part * size))

    def start_of(self, place: StepPlace, part: int) -> IndexLike:
        """The first fractal of keys of a part."""
        return add(mul(place.tile, self.schedule.tile), part * self.schedule.part)

    def bring_k(self, place: StepPlace, part: int) -> None:
        """A part of K of a step."""
        attention = self.attention
        depth = FractalSpan(0, self.depth)
        piece = Block(0, depth, FractalSpan(0, self.schedule.part))
        matrix = matrix_of(place, attention.of_k, attention.batch)

        def keys(count: int) -> None:
            if count:
                block = Block(0, depth, FractalSpan(0, ceil_div(count, SIDE)))
                other = Range(self.start_of(place, part), count, True)
                region = ShareRegion(matrix, Range(0, attention.depth, True), other)
                self.k.fill(Fill("", Held(piece, part), block), region)

        whole, left = self.keys_of(part)
        with serving(*self.members.k):
            self.whole_or_tail(place.tile, self.steps.tiles - 1, whole, left, keys)

    def bring_v(self, place: StepPlace, part: int) -> None:
        """A part of V of a step; zeros behind the last key."""
        attention = self.attention
        columns = FractalSpan(0, self.columns)
        piece = Block(0, FractalSpan(0, self.schedule.part), columns)
        matrix = matrix_of(place, attention.of_v, attention.batch)

        def keys(count: int) -> None:
            self.clear_keys(self.v.l1[part], self.columns, ceil_div(count, SIDE))
            if count:
                block = Block(0, FractalSpan(0, ceil_div(count, SIDE)), columns)
                k = Range(self.start_of(place, part), count, True)
                region = ShareRegion(matrix, k, Range(0, attention.columns, True))
                self.v.fill(Fill("", Held(piece, part), block), region)

        whole, left = self.keys_of(part)
        with serving(*self.members.v):
            self.whole_or_tail(place.tile, self.steps.tiles - 1, whole, left, keys)

    def bring_first_v(self) -> None:
        """V of the first step, behind K of those that are ahead: they are waited for together."""
        place = self.steps.place(0)
        for part in range(self.late_v):
            self.bring_v(place, part)

    @property
    def late_v(self) -> int:
        """The part of V of a step that comes behind its first weights: the last one, which is
        needed last and whose buffer the step before needs longest; `parts` if there are no
        others."""
        return max(1, self.schedule.parts - (not self.steps.only_one))

    @property
    def products(self) -> int:
        """Products with V of a step."""
        return self.schedule.subs * self.schedule.parts * self.cuts

    def begin_products(self, step: IndexLike, run: int) -> None:
        """Brings the first weights of a step and what is missing of V; `run` as of `result`."""
        self.bring_first_p(step, 0, run)
        self.next_v = self.steps.place(self.steps.following(step))
        for part in range(self.late_v, self.schedule.parts):
            self.bring_v(self.steps.place(step), part)

    def bring_first_p(self, step: IndexLike, first: int, run: int) -> None:
        """Brings weights of a run of products in all buffers but one, which is filled when one of
        them is built."""
        for number in range(first, first + min(len(self.p) - 1, run)):
            self.bring_p(step, number)

    def bring_p(self, step: IndexLike, number: int) -> None:
        """Weights of half of the rows and the keys of a product with V, of those of a step."""
        sub, part = divmod(number, self.schedule.parts * self.cuts)
        if part == 0:
            cce.wait_core_flag(flag=WEIGHTS)
        rows, keys, lanes = self.schedule.rows, self.own * SIDE, self.schedule.lanes
        start = [self.block, self.steps.in_ring(step), sub * lanes, 0, part * keys, 0]
        with serving(*self.members.product):
            source = subview(
                self.rings.weights, start, [1, 1, lanes, rows, keys, SIDE], drop=[0, 1]
            )
            shape, strides = [lanes, rows, keys, SIDE], [rows * keys * SIDE, keys * SIDE, SIDE, 1]
            cce.copy(source, restride(self.p[number % len(self.p)], shape, strides))

    # Products.

    def scores(self, step: IndexLike) -> None:
        """Scores of a step, alone. Of the only one half of the rows leaves after the other, as
        vector cores wait for it; else parts of K make room for those of the next step."""
        together = self.schedule.lanes if self.steps.only_one else self.schedule.quarters
        self.begin(step)
        for number in range(self.schedule.quarters * self.schedule.parts):
            self.score(step, number, together)

    def begin(self, step: IndexLike) -> None:
        """Finds what follows a step."""
        self.next_k = self.steps.place(self.steps.following(step))

    def score(self, step: IndexLike, number: int, together: int) -> None:
        """S^T of a part of the keys and a quarter of the rows.

        Args:
            together: quarters that take all keys before others do, each part from one load to L0A.
        """
        runs, own = divmod(number, together)
        group, part = divmod(runs, self.schedule.parts)
        quarter = group * together + own
        rows, keys = self.schedule.rows, self.schedule.part
        held_k = self.l0a_k[runs % len(self.l0a_k)]
        k = self.fractals(held_k, keys, self.depth)
        members = self.members
        if own == 0:
            with serving(*members.k):
                self.load_k(part, k)
            if quarter + together == self.schedule.quarters and not self.steps.only_one:
                self.bring_k(self.next_k, part)
        q = self.l0b_q[number % len(self.l0b_q)]
        whole = Block(0, FractalSpan(0, self.depth), FractalSpan(0, rows))
        with serving(*members.q):
            self.q.load(Held(whole, quarter), whole, q, k_first=True)
        height = keys // self.pieces
        with serving(*members.scores):
            for piece in range(self.pieces):
                c = self.fractals(self.l0c_s[self.turn % len(self.l0c_s)], rows, height)
                self.turn += 1
                of_piece = piece * height * self.depth * FRACTAL
                cce.mad(
                    self.fractals(held_k, height, self.depth, of_piece),
                    self.fractals(q, self.depth, rows),
                    c,
                    flag(True),
                )
                first = (part * keys + piece * height) * SIDE
                start = [self.block, self.steps.in_ring(step), quarter, 0, first, 0]
                shape = [1, 1, 1, rows, height * SIDE, SIDE]
                cce.fixpipe(c, subview(self.rings.scores, start, shape, drop=[0, 1, 2]))
        if part == self.schedule.parts - 1 and (quarter + 1) % self.schedule.lanes == 0:
            cce.set_core_flag(pipe="FIX", flag=SCORES)
        if part == self.schedule.parts - 1 and not self.steps.only_one:
            with only_if(self.next_k.first):
                self.bring_q(self.next_k, [quarter])

    def load_k(self, part: int, k: ir.Value) -> None:
        """A part of K to L0A."""
        keys, zero = self.schedule.part, constant_index(0)
        if self.joined:
            cce.load2d(self.fractals(self.k.l1[part], keys, self.depth), k)
            return
        # Of rows a key is `depth` pixels of an image of one row; of fractals, one of each.
        pixels = self.depth if self.schedule.windows else 1
        width = keys * SIDE * pixels
        shape = [self.depth // pixels, 1, width, SIDE]
        image = restride(self.k.l1[part], shape, [width * SIDE, width * SIDE, SIDE, 1])
        cce.load3d(
            image,
            zero,
            zero,
            k,
            kernel=(1, pixels),
            strides=(1, pixels),
            dilations=(1, 1),
            pads=(0, 0),
            element=0,
        )

    def results(self, step: IndexLike) -> None:
        """Products with V of a step, alone: weights of half of the rows are waited for when all
        products of the other half are told, and V of their first product is in L0B."""
        run = self.products // self.schedule.subs
        self.load_v(0)
        self.begin_products(step, run)
        for number in range(self.products):
            if number and number % run == 0:
                self.load_v(number)
                self.bring_first_p(step, number, run)
            self.result(step, number, run, run_begun=True)

    def result(self, step: IndexLike, number: int, run: int, run_begun: bool = False) -> None:
        """P V of half of the rows, and of a part of the keys or one of its cuts.

        Args:
            run: products of which all weights are there if those of the first are.
            run_begun: whether V of the first product of a run is loaded.
        """
        if number % run + len(self.p) - 1 < run:
            self.bring_p(step, number + len(self.p) - 1)
        if number % run or not run_begun:
            self.load_v(number)
        sub, part = divmod(number, self.schedule.parts * self.cuts)
        with serving(*self.members.product):
            self._result(step, number, sub, part)

    def load_v(self, number: int) -> None:
        """V of a product to L0B."""
        keys, wide = self.own, self.columns + 1
        v = self.l0b_v[number % len(self.l0b_v)]
        part, first = divmod(number % (self.schedule.parts * self.cuts), self.cuts)
        columns = FractalSpan(0, self.columns)
        whole = Block(0, FractalSpan(0, self.schedule.part), columns)
        with serving(*self.members.v):
            for k in range(keys):
                key = first * keys + k
                row = Block(0, FractalSpan(key, key + 1), columns)
                ((_, source),) = self.v.loads(Held(whole, part), row, k_first=True)
                place = self.fractals(v, 1, self.columns, k * wide * FRACTAL)
                cce.load2d(source, place, transpose=True)

    def _result(self, step: IndexLike, number: int, sub: int, cut: int) -> None:
        height, keys, wide = self.schedule.lanes * self.schedule.rows, self.own, self.columns + 1
        held_p = self.l0a_p[number % len(self.l0a_p)]
        p = self.fractals(held_p, height, keys)
        v = self.l0b_v[number % len(self.l0b_v)]
        cce.load2d(self.fractals(self.p[number % len(self.p)], height, keys), p, transpose=True)
        part, first = divmod(cut, self.cuts)
        over = sub == self.schedule.subs - 1 and first == self.cuts - 1
        if over and part < self.late_v and not self.steps.only_one:
            self.bring_v(self.next_v, part)
        last = cut == self.schedule.parts * self.cuts - 1
        rows = self.schedule.rows
        for lane, sums in enumerate(self.l0c_o):
            # By vector cores, so that the next sums of one begin while those of the other leave.
            own = self.fractals(held_p, rows, keys, lane * rows * keys * FRACTAL)
            c = self.fractals(sums, wide, rows)
            cce.mad(own, self.fractals(v, keys, wide), c, flag(cut == 0))
            if last:
                at = [self.block, self.steps.in_ring(step), sub * self.schedule.lanes + lane]
                lies = sums_layout(self.attention, rows)
                cce.fixpipe(c, lies.in_gm(self.rings.results, at, 0, lies.height))
        if last:
            cce.set_core_flag(pipe="FIX", flag=RESULTS)

    def both(self, ahead: IndexLike, behind: IndexLike) -> None:
        """Scores of a step and products of an earlier one, in turns."""
        self.begin(ahead)
        scores = self.schedule.quarters * self.schedule.parts
        self.begin_products(behind, self.products)
        for number in range(self.products):
            first, stop = (scores * at // self.products for at in (number, number + 1))
            for score in range(first, stop):
                self.score(ahead, score, self.schedule.quarters)
            self.result(behind, number, self.products)
