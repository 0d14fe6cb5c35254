"""Where the values of a step of a loop lie in UB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from davinci.machine import Machine
from davinci.operators.vector_program import Value
from davinci.schedule.loops.group import LoopGroup
from davinci.schedule.loops.step_form import StepForm, fixed_values
from davinci.schedule.vector.tile_buffers import NOT_IN_PLACE, TileBuffer, assigned
from davinci.schedule.vector.tile_layout import TileLayout, VectorTile
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import round_up


class LoopLayout(TileLayout):
    """The values of a step in UB: fixed ones and states keep their buffers.

    Attributes:
        fixed: values that are the same in all steps.
        states: of the value of each state the one that takes its place.
        scaled: of states that are kept as multiples of themselves, by which number.
        arrivals: products whose results come to the vector unit together.
        direct: results of products that are read as they come, in fractals; others are brought
            into rows first.
        in_blocks: left factors that are computed as blocks of 16 columns, [k / 16][rows][16], as
            they lie in fractals: they leave UB in one transfer, others a transfer a block.
        block_rows: rows from one of these blocks to the next. The number is odd, so that what is
            written together lies in different banks.
    """

    def __init__(
        self, group: LoopGroup, form: StepForm, tile: VectorTile, machine: Machine, in_rows: bool
    ) -> None:
        program = form.program
        super().__init__(group.space, program, tile, machine, beside=form.rows)
        self.fixed = fixed_values(group, program)
        self.arrivals, self.scaled = form.arrivals, form.scaled
        results = (program.loads[product.c] for part in form.arrivals for product in part)
        self.direct = frozenset(v for v in results if not in_rows and self._is_direct(v))
        self.states = group.following
        rows = math.prod(tile.sizes[: self.lane])
        self.block_rows = rows | 1
        self.in_blocks = frozenset(self._left_in_blocks(group) if rows > 1 else ())

    def once(self, value: Value) -> bool:
        """True if a value is the same in all steps, and so keeps its buffer through the loop."""
        return value in self.fixed

    def _is_direct(self, value: Value) -> bool:
        """Whether the one step that reads the result of a product takes it in fractals."""
        readers = [step for step in self.program.steps if value in step.sources]
        if len(readers) != 1 or value in self.program.stores.values() or value.dtype != "f32":
            return False
        (step,) = readers
        moved = step.name in NOT_IN_PLACE or step.name == "vcmpsel" or step.result.dtype != "f32"
        rows = all(self.lane in (self.form(v) or (self.lane,)) for v in step.sources)
        whole = self.form(value) == self.form(step.result)
        fractals = round_up(self.tile.sizes[self.lane], SIDE)
        return not moved and rows and whole and self.tile.pitch == fractals

    def _left_in_blocks(self, group: LoopGroup) -> Iterator[Value]:
        """The left factors of several rows that are nothing else, and each of which is a number of
        f32 rounded last."""
        stores = self.program.stores.items()
        others = {value for number, value in stores if number not in group.lefts}
        others |= {value for step in self.program.steps for value in step.sources}
        others |= {*self.states, *self.states.values(), *self.fixed}
        if self.tile.pitch % SIDE:
            return
        for step in self.program.steps:
            value = step.result
            if value in others or value in self.beside or step.name != "vconv":
                continue
            alike = self.lane in (self.form(value) or ())
            alike = alike and self.form(value) == self.form(step.sources[0])
            if alike and (step.sources[0].dtype, value.dtype) == ("f32", "f16"):
                yield value

    def held_shape(self, value: Value) -> tuple[int, ...]:
        """The shape in which UB holds a value: [k / 16, rows, 16] for a left factor in blocks, else
        that of a tile."""
        if value in self.in_blocks:
            return self.tile.pitch // SIDE, self.block_rows, SIDE
        return super().held_shape(value)

    @cached_property
    def buffers(self) -> tuple[list[TileBuffer], dict[Value, int]]:
        """As of tiles; a state is computed in its own buffer where its last use allows that."""
        program = self.program
        lasting = frozenset(self.fixed | set(self.states))

        def kind(value: Value) -> TileBuffer:
            return TileBuffer(value.dtype, self.held_shape(value), value in self.fixed)

        found, of = assigned(program, lasting, kind, self.beside)
        of = dict(of)
        last = {v: i for i, step in enumerate(program.steps) for v in step.sources}
        made = {step.result: i for i, step in enumerate(program.steps)}
        taken: set[Value] = set()
        for old, new in self.states.items():
            if new in taken or new not in made:
                continue
            moved = [new]  # and what it is made in the place of
            while program.steps[made[moved[-1]]].accumulates:
                moved.append(program.steps[made[moved[-1]]].sources[0])
            if any(kind(old) != kind(value) for value in moved):
                continue
            place, end = made[moved[-1]], last.get(old, -1)
            if end < place or (end == place and program.steps[place].name not in NOT_IN_PLACE):
                of |= dict.fromkeys(moved, of[old])
                taken.add(new)
        return found, of

    @cached_property
    def copied(self) -> list[tuple[Value, Value]]:
        """States that are copied to their buffers when a step ends: buffer of, and value."""
        of = self.buffers[1]
        return [(old, new) for old, new in self.states.items() if of[old] != of[new]]
