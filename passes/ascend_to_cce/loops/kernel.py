"""Builds the kernel of a loop that stays on a core.

    states and fixed values to UB; right factors to L1, and to L0B if they fit
    for step:                                             cce.unroll
      slices to UB                                        buffers with cce.slots
      left factor to L1, L0A; C = A B; C to UB            of each product, as soon as A is there
      outputs of the step before that are states to GM    behind the first left factor
      the other steps of the program
      other outputs to GM
    states, and outputs of the last step, to GM

What goes to L1 takes the way of what goes to GM, and whoever waits for it waits for both. So states
that are outputs go to GM behind the left factors that are made of them, which the cube waits for.

The rows of the states are shared by the cores; or their lanes are, and then each core stores its
part of a left factor in global memory and meets the others before it loads all of it
(`loops.left_factors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.operators.vector_program import TileStep, Value
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.loops.left_factors import Exchange, Meeting
from davinci.passes.ascend_to_cce.loops.products import LoopProducts, elements_of
from davinci.passes.ascend_to_cce.loops.turned_results import LaneRun, turn
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows, store_rows
from davinci.passes.ascend_to_cce.moves.packed_runs import load_run, store_run
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, change
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import block_index, only_blocks
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.ascend_to_cce.vector.tile_builder import tile_buffer
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_attribute,
    as_value,
    for_loop,
    mul,
    op,
    remainder,
    reshaped,
    restride,
)
from davinci.schedule.loops.group import HANDED, LoopGroup, Role
from davinci.schedule.loops.schedule import (
    SLOTS,
    LoopSchedule,
    terms_of,
)
from davinci.schedule.loops.schedule import parts_of as units_of
from davinci.schedule.vector.steps import copying
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major


def build_loops(
    loops: Sequence[tuple[LoopGroup, LoopSchedule]],
    buffers: Mapping[int, ir.Value],
    target: Target,
    exchange: Exchange | None = None,
) -> int:
    """Builds the kernel of loops side by side; returns how many blocks share it.

    Args:
        buffers: arguments of the kernel in GM, by place.
        exchange: by which cores that share lanes tell each other left factors.
    """
    done = 0
    parts = [(number, *loop, part) for number, loop in enumerate(loops) for part in units_of(*loop)]
    for number, group, schedule, part in parts:
        first, rows, count = part.first, part.each, part.units
        if exchange is not None:
            unit = LoopCore(group, schedule, schedule.rows, buffers, target, part.shared)
            with only_blocks(done, count) as (_, index):
                block = add(first // SIDE, mul(index, rows // SIDE))
                unit.build_lanes(block, exchange, number)
            done += count
            continue
        unit = LoopCore(group, schedule, rows, buffers, target)
        if len(parts) == 1:
            unit.build(mul(block_index(target), rows) if count > 1 else 0)
            return count
        with only_blocks(done, count) as (_, index):
            unit.build(add(first, mul(index, rows)) if count > 1 else first)
        done += count
    return done


class LoopCore(LoopProducts):
    """Builds what one core does: some rows of the states, all steps."""

    def build_lanes(self, block: IndexLike, exchange: Exchange, number: int) -> None:
        """The kernel of the lanes from a block of 16 on, of the loop of a number."""
        self.first_block = block
        self.meeting = Meeting(exchange, number, self.schedule.delay, self.shared > 0)
        self.build(0)

    def build(self, first: IndexLike) -> None:
        """The kernel of the rows from `first` on."""
        self.first = first
        held, of = self.layout.buffers
        inside = {of[self.program.loads[n]] for n in self.group.inputs("slice")}
        kept = {of[v] for v in (*self.layout.fixed, *self.layout.states) if v in of}
        for number, buffer in enumerate(held):
            if number in kept:
                self.buffers[number] = tile_buffer(buffer, 0)
        self._write_constants()
        for number in (*self.group.inputs("fixed"), *self.group.inputs("state")):
            self._bring(number, 0)
        for value, scale in self.layout.scaled.items():
            self._multiply_state(value, scale)
        for step in self.program.steps:
            if self.layout.once(step.result):
                self._step(step, once=True)
        rows = self.group.rows
        if rows is not None:
            self._room_for_row()
            self._bring_row(self._row_of(as_value(0)))
        self._bring_factors()
        if rows is not None:
            self._row_to_l1()
            self._bring_row(self._row_of(as_value(1)))
        if self.meeting is not None:
            self.meeting.wait_before()
        with for_loop(0, self.group.steps) as time:
            for number, buffer in enumerate(held):
                if number not in kept:
                    self.buffers[number] = tile_buffer(buffer, SLOTS if number in inside else 0)
            self._one(time)
        time.owner.owner.attributes["cce.unroll"] = as_attribute(SLOTS)
        self._take_states(self.group.steps - 1)
        if self.meeting is not None and self.schedule.rest:
            self._hand_on_last(self.meeting)
        for value, scale in self.layout.scaled.items():
            self._multiply_state(value, 1 / scale)
        states = {self.group.roles[n].state: n for n in self.group.inputs("state")}
        for number in self.group.outputs("state"):
            state = states[self.group.roles[number].state]
            self._take(number, 0, self.program.loads[state])

    def _come(self, number: int) -> None:
        """The results of products that come together from L0C to UB: to rows, unless the step that
        reads them takes fractals."""
        values = [self.program.loads[product.c] for product in self.parts[number]]
        columns, pitch = ceil_div(self.schedule.lanes, SIDE), self.schedule.pitch
        count = len(values) * columns
        scratch = alloc([count * self.height * FRACTAL], ir.F32Type.get(), "UB")
        turned = count - self.kept_columns[number] if self.schedule.turned else 0
        self._to_ub(number, scratch, 0, turned)
        self._to_ub(number, scratch, turned, count - turned)
        if self.layout.direct.issuperset(values):
            self.in_fractals |= dict.fromkeys(values, scratch)
            return
        held = self._held(values[0])
        rows = restride(held, [self.rows * len(values), pitch], [pitch, 1])
        if columns * SIDE < pitch:
            fill_lanes(values[0].dtype, rows, columns * SIDE, pitch, 0)
        runs = []
        for place, value in enumerate(values):
            row, first = self.layout.held_shape(value)[-1], self.layout.held_offset(value)
            low, high = place * columns, (place + 1) * columns
            own = min(max(turned, low), high) - low
            if own:
                runs.append(LaneRun(low * SIDE, own * SIDE, first))
            if own == columns:
                continue
            source = self._in_fractals(scratch, [self.rows, columns - own], low + own)
            shape = [self.rows, columns - own, SIDE]
            change(source, restride(held, shape, [row, SIDE, 1], first + own * SIDE))
        if runs:
            turn(scratch, held, runs, self.rows, self.layout.held_shape(values[0])[-1])

    def _to_ub(self, number: int, scratch: ir.Value, first: int, columns: int) -> None:
        """Columns of fractals of a result from L0C to UB, from one on."""
        if columns:
            shape = [columns, self.height, SIDE, SIDE]
            offset = first * self.height * FRACTAL
            sums = (self.sums[number], scratch)
            cce.copy_l0c(*(restride(each, shape, row_major(shape), offset) for each in sums))

    def _in_fractals(self, scratch: ir.Value, shape: Sequence[int], first: int = 0) -> ir.Value:
        """Rows by blocks of 16 columns of a result in fractals, from a block on."""
        strides = [SIDE, self.height * FRACTAL, 1]
        return restride(scratch, [*shape, SIDE], strides, first * self.height * FRACTAL)

    def _views(self, values: Sequence[Value], width: int) -> list[ir.Value]:
        """As of tiles; where a result of a product is read in fractals, or a left factor written as
        blocks of 16 lanes, the others as such blocks as well."""
        if not any(v in self.in_fractals or v in self.layout.in_blocks for v in values):
            return super()._views(values, width)
        form = self.layout.form(values[-1])
        assert form is not None, "what is computed of a product has axes"
        blocks = width * self.schedule.pitch // SIDE
        found = []
        for value in values:
            if value in self.in_fractals:
                # The first of those that come together is the first of the scratch buffer.
                found.append(self._in_fractals(self.in_fractals[value], [self.rows, blocks]))
                continue
            if value in self.layout.in_blocks:
                own = [*self._strides_of_left(value), 1]
                found.append(restride(self._held(value), [self.rows, blocks, SIDE], own))
                continue
            *outer, block, lane = self.layout.strides(value, form)
            strides = [*(outer or [0]), SIDE if block else 0, lane]
            found.append(self._view(value, [self.rows, blocks, SIDE], strides))
        return found

    # A step.

    def _one(self, time: ir.Value) -> None:
        """One step of the loop: what comes from GM, what is computed, and what goes there."""
        group, program = self.group, self.program
        self.multiplied, self.come, self.in_fractals = set(), set(), {}
        for number in group.inputs("slice"):
            self._bring(number, self._index(group.roles[number], time))
        if any(term.a == HANDED for term in terms_of(self.products)):
            self._multiply(HANDED, time)
        for value in self.loaded:
            self._multiply_once(value, time)
        self._compute(time)
        for value in program.stores.values():
            self._need(value)
        for number in group.outputs("slice"):
            if number not in self.of_states:
                place = self._index(group.roles[number], time)
                self._take(number, place, program.stores[number])
        for number in group.outputs("last"):
            self._take(number, 0, program.stores[number])
        for old, new in self.layout.copied:
            self._copy(new, old)

    def _compute(self, time: ir.Value) -> None:
        """The program's steps, each behind the results of products that it reads; what it makes is
        multiplied as soon as it is there."""
        sources = {step.result: step.sources for step in self.program.steps}
        for step in self.program.steps:
            if not self.layout.once(step.result):
                for other in self.program.together.get(step.result, (step.result,)):
                    for source in sources[other]:
                        self._need(source)
                self._step(step, once=False)
            self._multiply_once(step.result, time)

    def _multiply_once(self, value: Value, time: ir.Value) -> None:
        """The products of a value, if it is a left factor that has not been multiplied in this step
        of the loop."""
        a = self.factors.get(value)
        if a is None or a in self.multiplied:
            return
        self._multiply(a, time)
        if self.group.rows is not None and not self.multiplied:
            # While the cube is at it, and before the vector unit is. What comes behind it has a
            # step for its way.
            self._row_to_l1()
            self._bring_row(self._row_of(as_value(add(time, 2))))
        self.multiplied.add(a)
        if value == self.last_of_states:
            self._take_states(arith.MaxSIOp(as_value(add(time, -1)), as_value(0)).result)

    def _need(self, value: Value) -> None:
        """Brings the result of a product, and those that come with it, unless they came before in
        this step of the loop."""
        number = self.results.get(value)
        if number is None or number in self.come:
            return
        self.come.add(number)
        product = next(product for product in self.products if product.c == number)
        with serving(*product.members):
            self._come(number)

    @cached_property
    def last_of_states(self) -> Value | None:
        """The last left factor of a step that is made of states, while none of these has its next
        value; None if there is none, and where cores meet, which tell each other left factors
        through global memory. Behind it no left factor waits until states are stored."""
        if self.meeting is not None:
            return None
        made = set(self.layout.states)
        found = [
            value for value in self.program.loads.values() if value in made & self.factors.keys()
        ]
        of = self.layout.buffers[1]
        kept = {of[state] for state in self.layout.states if state in of}
        for step in self.program.steps:
            if of.get(step.result) in kept:
                break
            if made.intersection(step.sources):
                made.add(step.result)
                found += [step.result] if step.result in self.factors else []
        return found[-1] if found else None

    @cached_property
    def of_states(self) -> dict[int, Value]:
        """Outputs of each step that are the next value of a state, with that state, where a left
        factor is made of states: they go to GM in the next step."""
        if self.last_of_states is None:
            return {}
        group, layout = self.group, self.layout
        olds = {new: old for old, new in layout.states.items() if old not in layout.scaled}
        made = {number: self.program.stores[number] for number in group.outputs("slice")}
        return {number: olds[value] for number, value in made.items() if value in olds}

    def _take_states(self, time: IndexLike) -> None:
        """Takes the outputs of a step that are states to GM, from where states are. In the first
        step that is what they began with, which the next one overwrites."""
        for number, state in self.of_states.items():
            place = self._index(self.group.roles[number], as_value(time))
            with serving(*self.program.makers(self.program.stores[number])):
                self._take_rows(number, place, state)

    def _hand_on_last(self, meeting: Meeting) -> None:
        """The rows of the last step, which no step of this loop multiplies, for the loop behind."""
        for a in meeting.handed_on:
            value, of = self.program.stores[a], self.layout.buffers[1]
            needed = {value}
            for step in reversed(self.program.steps):
                if step.result in needed:
                    needed.update(step.sources)
            for step in self.program.steps:
                if step.result in needed and not self.layout.once(step.result):
                    held = self.layout.buffers[0][of[step.result]]
                    self.buffers[of[step.result]] = tile_buffer(held, 0)
                    self._step(step, once=False)
            with serving(*self.program.makers(value)):
                self._store_part(a, as_value(self.group.steps + self.schedule.delay))
        meeting.wait_behind(self.group.steps, self.schedule.rest)

    def _step(self, step: TileStep, once: bool) -> None:
        super()._step(step, once=True)

    def _index(self, role: Role, time: ir.Value) -> IndexLike:
        """Which part of an array a step has."""
        if not role.backwards:
            return time
        return add(as_value(self.group.steps - 1), mul(time, -1))

    def _row_of(self, time: ir.Value) -> IndexLike:
        """Which rows of the array of left factors a step has, or the step behind the last one so
        many steps from the first one again."""
        assert self.group.rows is not None, "a loop with an array of left factors"
        return self._index(self.group.rows.role, as_value(remainder(time, self.group.steps)))

    def _multiply_state(self, value: Value, by: float) -> None:
        """Multiplies a state by a power of two."""
        held = restride(self._held(value), [elements_of(self._held(value))], [1])
        cce.vmuls(held, scalar(value.dtype, by), held)

    def _copy(self, source: Value, to: Value) -> None:
        name, number = copying(to.dtype)
        old, new = (
            restride(self._held(v), [elements_of(self._held(v))], [1]) for v in (source, to)
        )
        other = old if number is None else scalar(to.dtype, number)
        op(f"cce.{name}", [old, other, new])

    # Between GM and UB.

    def _bring(self, number: int, index: IndexLike) -> None:
        with serving(*self.program.readers(self.program.loads[number])):
            self._bring_rows(number, index)

    def _bring_rows(self, number: int, index: IndexLike) -> None:
        value = self.program.loads[number]
        held = self._held(value)
        if value in self.program.packed:
            start, count, array = self._run(number, index)
            load_run(array, start, count, held, self.layout)
            return
        piece = self._piece(number, index)
        lanes = piece.columns - piece.columns % piece.block()
        rows = restride(held, [piece.rows, self.schedule.pitch], [self.schedule.pitch, 1])
        if lanes < self.schedule.pitch:
            fill_lanes(value.dtype, rows, lanes, self.schedule.pitch, 0)
        load_rows(piece, rows)

    def _take(self, number: int, index: IndexLike, value: Value) -> None:
        with serving(*self.program.makers(value)):
            self._take_rows(number, index, value)

    def _take_rows(self, number: int, index: IndexLike, value: Value) -> None:
        held = self._held(value)
        if value in self.program.packed:
            start, count, array = self._run(number, index)
            store_run(array, start, count, held, self.layout)
            return
        piece = self._piece(number, index, self.shared)
        pitch = self.schedule.pitch
        rows = restride(held, [piece.rows, pitch - self.shared], [pitch, 1], self.shared)
        store_rows(rows, piece)

    def _piece(self, number: int, index: IndexLike, without: int = 0) -> MatrixPiece:
        """Where in GM the rows of a value lie, without so many of their first lanes."""
        graph, role = self.group.graph, self.group.roles[number]
        form = self.space.of(number)
        lanes, window = self.space.axes[self.lane].size, graph.windows.get(number)
        gm = self.gm[role.place]
        steps = self.group.steps if role.kind == "slice" else 1
        width, offset = lanes, 0
        if window is not None:
            # A row of its own is all that there is of a step.
            row = len(window.strides) == 1
            width, offset = elements_of(gm) // steps if row else window.strides[-2], window.offset
        matrix = reshaped(gm, [steps, elements_of(gm) // steps // width, width])
        own = self.schedule.axis is not None and self.schedule.axis in form
        first = self.first if own else 0
        column = add(offset + without, mul(self.first_block, SIDE))
        count = self.schedule.lanes - without
        return MatrixPiece(matrix, index, first, column, self.rows if own else 1, count)

    def _run(self, number: int, index: IndexLike) -> tuple[IndexLike, int, ir.Value]:
        """Where in GM the elements of a statistic lie: the first, how many, and the array."""
        role = self.group.roles[number]
        gm = self.gm[role.place]
        total, steps = elements_of(gm), self.group.steps if role.kind == "slice" else 1
        own = bool(self.space.of(number))
        start = mul(index, total // steps)
        if own:
            start = add(start, self.first)
        return start, self.rows if own else 1, reshaped(gm, [total])
