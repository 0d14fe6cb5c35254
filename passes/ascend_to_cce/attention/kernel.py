"""The kernel of attention, built from its schedule.

A core takes units, some rows of one matrix each; of a unit

    Q, K, V   GM -> L1                                                   `products.feed`
    S^T       K in L0A, Q in L0B: a mad a tile of keys, L0C -> UB; where scores come twice, another
              one of ones and less the maxima, and again L0C -> UB
    P^T       the chain and softmax, in UB; -> L1                        `softmax`
    O         P in L0A, V and ones in L0B: a mad a tile and column       `leave`

Of several units in a straight line the scores of the next one are computed before the weights of
this one are multiplied; `multi-buffer` orders what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import arith, ir
from davinci.operators.vector_program import Value, joined
from davinci.passes.ascend_to_cce.attention.columns import KeyColumns, is_common
from davinci.passes.ascend_to_cce.attention.feeds import KeyRowsFeed, ScaledFeed
from davinci.passes.ascend_to_cce.attention.leave import AttentionExit
from davinci.passes.ascend_to_cce.attention.masks import KeyBlock
from davinci.passes.ascend_to_cce.attention.softmax import Softmax
from davinci.passes.ascend_to_cce.attention.units import (
    AttentionArrays,
    LessHighest,
    Unit,
    fractal_buffers,
)
from davinci.passes.ascend_to_cce.products.dense_runs import scratch_of
from davinci.passes.ascend_to_cce.products.feed import Feed, Range, ShareRegion, StagingBuffers
from davinci.passes.ascend_to_cce.products.kernel import flag
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import unflatten
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    for_loop,
    mul,
    reshaped,
    restride,
)
from davinci.passes.cce.unroll import mark
from davinci.schedule.attention.attention import STAGES, Attention, AttentionSchedule
from davinci.schedule.attention.cost import (
    is_direct,
    is_scaled,
    pieces_of,
    staged_bytes,
)
from davinci.schedule.attention.dense import dense_buffers
from davinci.schedule.attention.lines import LinesOfUnits
from davinci.schedule.attention.members import Members
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.products.events import Block, Fill, FractalSpan, Held, spans
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major


class AttentionKernel:
    """Builds the kernel of attention from its schedule.

    Args:
        members: operators of the kernel that what is built serves.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        gm: AttentionArrays,
        machine: Machine,
        members: Members,
    ) -> None:
        self.attention, self.schedule, self.members = attention, schedule, members
        self.sizes = attention.fractals
        pieces = pieces_of(attention, schedule)
        # Q passes the vector unit, which K and V should not wait for.
        parts = scratch_of(dense_buffers(attention, pieces, schedule.rows))
        staged = {
            names: self.staging(staged_bytes(attention, schedule, names), count, parts)
            for names, count in (("q", schedule.queries), ("kv", STAGES))
        }

        def feeding(name: str, source: ir.Value) -> tuple[Any, ...]:
            operand = getattr(attention, name)
            own = None if operand.nz else staged["q" if name == "q" else "kv"]
            return source, operand, pieces[name], own, is_direct(attention, name)

        self.q = ScaledFeed(*feeding("q", gm.q))
        self.q.scale = attention.scale
        if attention.q.nz and is_scaled(attention, schedule):
            self.q.ring = RowRing(STAGES, schedule.rows * self.sizes.depth * FRACTAL * 2)
        self.k = (
            Feed(*feeding("k", gm.k))
            if not schedule.windows
            else KeyRowsFeed(gm.k, attention.k, pieces["k"])
        )
        self.v = Feed(*feeding("v", gm.v))
        rows, tile, depth = schedule.rows, schedule.tile, self.sizes.depth
        columns, f16, f32 = self.sizes.columns, ir.F16Type.get(), ir.F32Type.get()

        self.softmax = Softmax(attention, schedule, gm.extras, machine, members)
        self.l0a_k = fractal_buffers(schedule.l0a[0], tile * depth, f16, "L0A")
        self.l0a_p = fractal_buffers(schedule.l0a[1], tile * rows, f16, "L0A")
        self.l0b_q = fractal_buffers(schedule.l0b[0], rows * depth, f16, "L0B")
        self.l0b_v = fractal_buffers(schedule.l0b[1], tile * columns, f16, "L0B")
        made = element_type(attention.chain.scores.dtype)
        self.l0c_s = fractal_buffers(schedule.l0c, schedule.scored * tile, made, "L0C")
        self.l0c_o = fractal_buffers(schedule.sums, rows * (columns + 1), f32, "L0C")
        self.p = fractal_buffers(schedule.p_slots, rows * schedule.block, f16, "L1")
        self.exit = AttentionExit(attention, schedule, gm.o, machine, parts, members)
        self.less = LessHighest(schedule) if schedule.twice else None
        with serving(*members.sums):
            self.ones = self._ones(max(tile, rows))
        if schedule.twice and attention.chain.extras:
            with serving(*self.masking):
                self.q.columns = KeyColumns(attention, schedule, gm.extras, machine)
        self.scores: dict[int, list[ir.Value]] = {}
        self.begun: set[Unit] = set()
        self.there: dict[tuple[bool, int], int] = {}
        self.common = False
        self.tiles = 0

    @property
    def masking(self) -> tuple[int, ...]:
        """Operators that masks are brought for."""
        steps = (step.members for step in self.attention.chain.steps)
        return joined(*steps, *self.members.extras)

    @staticmethod
    def staging(sizes: tuple[int, int], count: int, parts: dict[str, ir.Value]) -> StagingBuffers:
        """Buffers for rows that came, for fractals made of them, and what parts dense rows."""
        came, made = sizes
        return StagingBuffers(
            RowRing(count if came else 0, came), RowRing(count if made else 0, made), parts
        )

    def _ones(self, count: int) -> ir.Value:
        """Ones beside V, in L0B for good; where scores come twice, beside K too."""
        f16 = ir.F16Type.get()
        ub, l1, l0b = (alloc([count * FRACTAL], f16, memory) for memory in ("UB", "L1", "L0B"))
        cce.vector_dup(scalar("f16", 1.0), ub)
        cce.copy_l1(ub, l1)
        shape = [count, 1, SIDE, SIDE]
        cce.load2d(reshaped(l1, shape), reshaped(l0b, shape))
        if self.less is not None:
            shape[0] = self.schedule.tile
            cce.load2d(reshaped(l1, shape), reshaped(self.less.ones, shape))
        return l0b

    def line(self, line: LinesOfUnits, index: IndexLike) -> None:
        """One of the lines of a form."""
        mark(ir.InsertionPoint.current.block.owner)
        first, at = unflatten(index, (line.count // line.each, line.each))
        units, matrices = [], list(dict.fromkeys(part.matrix for part in line.parts))
        for turn, part in enumerate(line.parts):
            batch = add(mul(first, line.step), part.matrix)
            start = add(mul(at, line.rows), part.start)
            elements = min(part.rows * SIDE, self.attention.rows - part.start * SIDE)
            rows = Range(start, elements, True)
            units.append(Unit(batch, rows, turn, matrices.index(part.matrix)))
        self.common = is_common(self.attention, line)
        self.build(units)

    def build(self, units: Sequence[Unit]) -> None:
        """Units in a straight line."""
        if self.schedule.blocks(self.attention) > 1:
            for unit in units:
                self.by_blocks(unit)
        else:
            self.at_once(units)

    def at_once(self, units: Sequence[Unit]) -> None:
        """Units all of whose scores lie in UB; scores are as many tiles ahead as L0C holds."""
        keys = KeyBlock(0, self.attention.keys, self.sizes.keys)
        tiles = self.tiles_of(keys)
        self.tiles = len(tiles)
        self.begun.clear()
        self.there.clear()
        line = [(unit, number) for unit in units for number in range(len(tiles))]
        scored = 0

        def ahead(done: int) -> None:
            """Scores of the tiles for which L0C has room once `done` tiles are taken."""
            nonlocal scored
            for turn in range(scored, min(done + self.schedule.l0c, len(line))):
                unit, number = line[turn]
                if number == 0:
                    self.begin(unit)
                self.score(unit, keys, tiles[number], turn)
                scored = turn + 1

        for unit in units:
            first = unit.turn * len(tiles)
            following = units[unit.turn + 1] if unit.turn + 1 < len(units) else None
            for number, tile in enumerate(tiles):
                ahead(first if self.schedule.twice else first + number)
                if number == 0 and following is not None:
                    # Before the vector unit is busy with this one's scores.
                    self.begin(following)
                self.take(unit, keys, tile, first + number)
            if unit.turn == 0:
                self.bring(unit, keys)
            if following is not None:
                # Not earlier: there is room for V of two units.
                self.bring(following, keys)
            if not self.schedule.twice:
                ahead(first + len(tiles))
            less = self.find_highest(unit, tiles)
            for number, tile in enumerate(tiles):
                if less is not None:
                    self.take_again(unit, keys, tile, first + number, less)
                    ahead(first + number + 1)
                self.soften(unit, tiles, tile)
            for turn, tile in enumerate(tiles, first):
                self.weigh(unit, keys, tile, turn)
            self.exit.copy(self.sums(unit), unit.fractals)
            self.exit.leave(unit.batch, unit.rows)

    def by_blocks(self, unit: Unit) -> None:
        """A unit whose scores lie in UB block by block; those of the next block are computed before
        this one's weights are multiplied."""
        size, whole = self.schedule.block, self.attention.keys
        count = self.schedule.blocks(self.attention)
        self.begun.clear()
        self.begin(unit)
        self.softmax.begin()
        self.exit.begin(unit.fractals)

        def block(number: IndexLike, last: bool = False) -> KeyBlock:
            elements = whole - (count - 1) * size * SIDE if last else size * SIDE
            return KeyBlock(mul(number, size), elements, ceil_div(elements, SIDE))

        def scores(keys: KeyBlock) -> None:
            self.there.clear()
            for turn, tile in enumerate(self.tiles_of(keys)):
                self.score(unit, keys, tile, turn)

        def step(keys: KeyBlock, following: KeyBlock | None) -> None:
            tiles = self.tiles_of(keys)
            for turn, tile in enumerate(tiles):
                self.take(unit, keys, tile, turn)
            self.there.clear()
            self.bring(unit, keys)
            if following is not None and not self.schedule.twice:
                scores(following)
            less = self.find_highest(unit, tiles)
            if less is not None:
                for turn, tile in enumerate(tiles):
                    self.take_again(unit, keys, tile, turn, less)
                if following is not None:
                    scores(following)
            for tile in tiles:
                self.soften(unit, tiles, tile)
            for turn, tile in enumerate(tiles):
                self.weigh(unit, keys, tile, turn)
            self.exit.take_in(self.sums(unit), self.softmax.spread, unit.fractals)

        scores(block(0))
        if count > 2:
            with for_loop(0, count - 2) as index:
                mark(ir.InsertionPoint.current.block.owner)
                step(block(index), block(add(index, 1)))
        step(block(count - 2), block(count - 1, last=True))
        step(block(count - 1, last=True), None)
        self.exit.leave(unit.batch, unit.rows)

    def tiles_of(self, keys: KeyBlock) -> list[FractalSpan]:
        """The tiles of a block, counted from its first keys."""
        return spans(keys.fractals, self.schedule.tile)

    def sums(self, unit: Unit) -> ir.Value:
        return self.l0c_o[unit.turn % len(self.l0c_o)]

    def begin(self, unit: Unit) -> None:
        """Q of a unit to L0B, once."""
        if unit in self.begun:
            return
        self.begun.add(unit)
        if self.q.columns is not None and not (self.common and unit.turn):
            with serving(*self.masking):
                self.q.columns.bring(self.own(unit))
        block = Block(0, FractalSpan(0, self.sizes.depth), FractalSpan(0, unit.fractals))
        held = Held(block, unit.turn % len(self.q.l1))
        depth = Range(0, self.attention.depth, True)
        region = ShareRegion(self.matrix(unit, self.attention.of_q), depth, unit.rows)
        with serving(*self.members.q):
            self.fill(self.q, held, region)
            self.q.load(held, block, self.l0b_q[unit.turn % len(self.l0b_q)], k_first=True)

    def score(self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int) -> None:
        """S^T of a tile of keys, in L0C; `turn` counts tiles."""
        number = turn + (unit.matrix - unit.turn) * self.tiles
        l0a = self.load_k(unit, keys, tile, number, self.l0a_k[turn % len(self.l0a_k)])
        self.multiply(unit, tile, l0a, self.l0c_s[turn % len(self.l0c_s)])

    def load_k(
        self, unit: Unit, keys: KeyBlock, tile: FractalSpan, number: int, l0a: ir.Value
    ) -> ir.Value:
        """A tile of K to L0A; tiles of the matrices of a line are numbered."""
        held = Held(Block(0, FractalSpan(0, self.sizes.depth), tile), number % len(self.k.l1))
        region = ShareRegion(
            self.matrix(unit, self.attention.of_k),
            Range(0, self.attention.depth, True),
            Range(keys.start, keys.elements, True),
        )
        with serving(*self.members.k):
            self.bring_once(self.k, held, region, number)
            self.k.load(held, held.piece, l0a, k_first=False)
        return l0a

    def multiply(
        self, unit: Unit, tile: FractalSpan, l0a: ir.Value, l0c: ir.Value, place: int = 0
    ) -> None:
        """K of a tile times Q of a unit, to `place` elements behind the beginning of `l0c`."""
        rows, depth = unit.fractals, self.sizes.depth
        shape = [rows, tile.size, SIDE, SIDE]
        scores = restride(l0c, shape, row_major(shape), place)
        with serving(*self.members.scores):
            cce.mad(
                reshaped(l0a, [tile.size, depth, SIDE, SIDE]),
                reshaped(self.l0b_q[unit.turn % len(self.l0b_q)], [depth, rows, SIDE, SIDE]),
                scores,
                flag(True),
            )
        if self.q.columns is not None:
            with serving(*self.masking):
                ones = reshaped(self.ones, [1, rows, SIDE, SIDE])
                cce.mad(self.q.columns.load(tile), ones, scores, flag(False))

    def take(self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int) -> None:
        """Scores of a tile from L0C to UB, and what is done to them there."""
        if tile.start == 0:
            # Not earlier: there is room for the masks of one unit.
            with serving(*self.masking):
                self.softmax.masks.bring(self.own(unit), keys)
            self.scores[unit.turn] = self.softmax.next_scores(unit.fractals, self.tiles_of(keys))
        self._take(unit, tile, turn)
        scores, rows, start = self.place(unit, tile), unit.fractals, unit.rows.start
        if not self.schedule.twice:
            self.softmax.chain(scores, rows, keys, tile, start, self.own(unit))
        self.softmax.hide(scores, rows, keys, tile)

    def _take(self, unit: Unit, tile: FractalSpan, turn: int) -> None:
        l0c = self.l0c_s[turn % len(self.l0c_s)]
        source = reshaped(l0c, [unit.fractals, tile.size, SIDE, SIDE])
        self.softmax.take(source, self.place(unit, tile))

    def place(self, unit: Unit, tile: FractalSpan) -> ir.Value:
        """The buffer in UB of a unit's scores of one tile of keys."""
        return self.scores[unit.turn][tile.start // self.schedule.tile]

    def find_highest(self, unit: Unit, tiles: Sequence[FractalSpan]) -> ir.Value | None:
        """The maxima of a unit's scores; where these come twice, in L0B, to be taken off there."""
        rows = unit.fractals
        found = self.softmax.find_highest(self.scores[unit.turn], rows, tiles)
        if self.less is None or found is None:
            return None
        with serving(*self.members.difference):
            return self.less.load(found, rows)

    def take_again(
        self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int, less: ir.Value
    ) -> None:
        """Scores of a tile less their maxima, from L0C to UB."""
        assert self.less is not None, "scores come twice only where maxima are kept in L0B"
        rows, l0c = unit.fractals, self.l0c_s[turn % len(self.l0c_s)]
        with serving(*self.members.difference):
            cce.mad(
                reshaped(self.less.ones, [tile.size, 1, SIDE, SIDE]),
                reshaped(less, [1, rows, SIDE, SIDE]),
                reshaped(l0c, [rows, tile.size, SIDE, SIDE]),
                flag(False),
            )
        self._take(unit, tile, turn)
        self.softmax.stretch(self.place(unit, tile))
        self.softmax.hide(self.place(unit, tile), rows, keys, tile)

    def soften(self, unit: Unit, tiles: Sequence[FractalSpan], tile: FractalSpan) -> None:
        """Scores of a tile become weights."""
        p = self.p[unit.turn % len(self.p)]
        self.softmax.weights(self.place(unit, tile), unit.fractals, p, tiles, tile)

    def own(self, unit: Unit) -> dict[Value, IndexLike]:
        """For each extra the matrix or row that the unit takes."""
        return {x.value: self.matrix(unit, x.turn) for x in self.attention.chain.extras}

    def bring(self, unit: Unit, keys: KeyBlock) -> None:
        """V of a block of keys to L1."""
        region = ShareRegion(
            self.matrix(unit, self.attention.of_v),
            Range(keys.start, keys.elements, True),
            Range(0, self.attention.columns, True),
        )
        with serving(*self.members.v):
            self.bring_once(self.v, self.held(unit, keys), region, unit.matrix)

    def held(self, unit: Unit, keys: KeyBlock) -> Held:
        """V of a block in L1: one piece, so that one flag tells of it."""
        block = Block(0, FractalSpan(0, keys.fractals), FractalSpan(0, self.sizes.columns))
        return Held(block, unit.matrix % len(self.v.l1))

    def weigh(self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int) -> None:
        """O += P V and the sums of P, over a tile of keys; the first of a block begins anew."""
        with serving(*self.members.product):
            self._weigh(unit, keys, tile, turn)

    def _weigh(self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int) -> None:
        rows, columns = unit.fractals, self.sizes.columns
        l0b = self.load_v(unit, keys, tile, turn)
        l0a = self.l0a_p[turn % len(self.l0a_p)]
        shape = [rows, tile.size, SIDE, SIDE]
        strides = [tile.size * FRACTAL, FRACTAL, SIDE, 1]
        p = self.p[unit.turn % len(self.p)]
        source = restride(p, shape, strides, tile.start * rows * FRACTAL)
        cce.load2d(source, reshaped(l0a, shape), transpose=True)
        shape_b, steps_b = [tile.size, 1, SIDE, SIDE], [FRACTAL, FRACTAL, SIDE, 1]
        shape_c, steps_c = [1, rows, SIDE, SIDE], [rows * FRACTAL, FRACTAL, SIDE, 1]
        sums, first = self.sums(unit), flag(tile.start == 0)
        for column in range(columns + 1):
            # Columns of V follow each other as they came, so each has a mad of its own.
            b = restride(l0b, shape_b, steps_b, column * tile.size * FRACTAL)
            if column == columns:
                b = reshaped(restride(self.ones, [tile.size * FRACTAL], [1]), shape_b)
            c = restride(sums, shape_c, steps_c, column * rows * FRACTAL)
            with serving(*(self.members.sums if column == columns else ())):
                cce.mad(reshaped(l0a, shape), b, c, first)

    def load_v(self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int) -> ir.Value:
        """A tile of V to L0B."""
        l0b = self.l0b_v[turn % len(self.l0b_v)]
        block = Block(0, tile, FractalSpan(0, self.sizes.columns))
        self.v.load(self.held(unit, keys), block, l0b, k_first=False)
        return l0b

    def bring_once(self, feed: Feed, held: Held, region: ShareRegion, number: int) -> None:
        """A piece of K or V to L1, unless the unit before has brought it; pieces of a line are
        numbered."""
        key = feed is self.k, held.slot
        if self.there.get(key) != number:
            self.there[key] = number
            self.fill(feed, held, region)

    def fill(self, feed: Feed, held: Held, region: ShareRegion) -> None:
        """A piece to L1, in as many transfers as it takes."""
        piece, size = held.piece, feed.pieces.rows
        stored = piece.k if feed.operand.k_rows else piece.other
        for start in range(stored.start, stored.stop, size):
            span = FractalSpan(start, min(stored.stop, start + size))
            block = Block(0, span, piece.other) if feed.operand.k_rows else Block(0, piece.k, span)
            feed.fill(Fill("", held, block), region)

    def matrix(self, unit: Unit, turn: MatrixTurn) -> IndexLike:
        """Which matrix of an array the unit takes."""
        index = unit.batch
        if turn.count == 1:
            return 0
        if turn.each > 1:
            index = arith.DivUIOp(as_value(index), as_value(turn.each)).result
        if turn.count * turn.each < self.attention.batch:
            index = arith.RemUIOp(as_value(index), as_value(turn.count)).result
        return index
