"""Where the values of a tile lie in UB: shapes, places of statistics, tables of rows, buffers.

Everything that depends on the sizes of a tile, and so the bytes of UB that a schedule takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.machine import Machine, copies_elements
from davinci.operators.vector_program import JOIN, PART, TileStep, Value
from davinci.schedule.moves.word_halves import joined, parted
from davinci.schedule.vector.row_packing import is_scattered, packed_size, packing, unpacking
from davinci.schedule.vector.row_places import RowPlaces, block_lanes, use_cycles
from davinci.schedule.vector.row_statistics import (
    RowReduction,
    best_places,
    placing,
    reduction,
    spreads_lanes,
)
from davinci.schedule.vector.row_tables import doubling_cycles, is_moved
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.steps import BufferSteps
from davinci.schedule.vector.tile_buffers import TileBuffer, assigned
from davinci.schedule.vector.tile_program import (
    MOVED,
    PACK,
    PLACE,
    REDUCE,
    TO_LANES,
    TO_ROWS,
    VIEW,
    Form,
    TileProgram,
)
from davinci.schedule.vector.turned_rows import TurnedRows
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, round_up, row_major

SLOTS = 3
"""Buffers of what is loaded or stored: one is filled, one worked on and one drained."""

CHAINS = 2
"""Tiles that the vector unit works on in turn, at most: as many buffers of what only it sees do."""

CONSTANT_LANES = 64
"""Elements of the buffer of a constant: a block of each type at least."""

COPIED_SHARES = (8, 16, 32, 64)
"""Parts of UB, one in so many, that copies of one statistic may take."""

TABLE_SHARE = 4
"""The part of UB that the tables of rows may take in all."""


@dataclass(frozen=True)
class VectorTile:
    """Sizes of a tile.

    Attributes:
        sizes: elements along each axis of the space.
        pitch: lanes that a row of the innermost axis takes in UB.
    """

    sizes: tuple[int, ...]
    pitch: int


def ragged_lanes(space: IterationSpace, program: TileProgram, sizes: Sequence[int]) -> int:
    """Lanes behind the last whole block of the rows of a tile, which are moved in a block of their
    own that ends where the row does; what has no other axis is moved with padding instead."""
    alone = len(space.axes) == 1 and sizes[-1] == space.axes[-1].size
    return 0 if alone else sizes[-1] % program.row_block


def tile_of(
    space: IterationSpace, program: TileProgram, sizes: Sequence[int]
) -> tuple[VectorTile, int]:
    """The tile of some sizes, and the lanes behind the last whole block of its rows.

    Raises:
        NoSpace: its rows cannot be moved.
    """
    lanes, block = sizes[-1], program.row_block
    ragged = ragged_lanes(space, program, sizes)
    if ragged and lanes < block:
        raise NoSpace("rows shorter than a block")
    width = lanes - ragged + block if ragged else lanes
    forms = set(program.forms.values())
    whole = all(form is None or program.lane in form for form in forms)
    if None in forms or not whole:  # what is combined with numbers or statistics: block by block
        block = program.lane_block
    lanes_of_repeats = _lanes_of_repeats(program)
    if lanes_of_repeats < lanes < space.axes[-1].size and math.prod(sizes[:-1]) == 1:
        block = lanes_of_repeats  # a part of a row takes no instruction more for its last lanes
    pitch = round_up(width, block) if whole else row_pitch(width, block)
    return VectorTile(tuple(sizes), pitch), ragged


def row_pitch(width: int, block: int) -> int:
    """Lanes that a row of so many takes in UB where it is combined with others: whole blocks if a
    repeat has room for two of them, else whole repeats of words of 32 bits."""
    repeat = REPEAT_BYTES // 4
    return round_up(width, block if width <= repeat // 2 else repeat)


def _lanes_of_repeats(program: TileProgram) -> int:
    """Lanes of which every step of a program takes whole repeats: those of the narrowest step."""
    sides = ((*step.sources, step.result) for step in program.steps if step.name not in MOVED)
    widest = (max(DTYPES[value.dtype].itemsize for value in values) for values in sides)
    return REPEAT_BYTES // min(widest, default=4)


@dataclass(frozen=True)
class Fold:
    """How a step reduces: outer axes one by one, then slices and lanes of rows together.

    Attributes:
        axes: places in the source's array of the axes that are folded first.
        lanes: what reduces the rest; None if the innermost axis stays.
    """

    axes: tuple[int, ...]
    lanes: RowReduction | None


class TileLayout:
    """The values of a program in UB, for tiles of given sizes.

    Attributes:
        tables: values of a row that lie in UB once for each row of a tile.
        rows: values that lie beside each other in one buffer (`row_parts`).
        beside: of each of these values, all of its row.
        larger: the layout of larger tiles whose buffers these use: equally many statistics have
            the same places there, fewer of them no more room.
        spare: bytes that each statistic may take to lie where it is used fastest; 0 if bytes of UB
            are better kept for more rows.
        uses: how often rows are combined with a statistic for each time that it is made.
    """

    def __init__(
        self,
        space: IterationSpace,
        program: TileProgram,
        tile: VectorTile,
        machine: Machine,
        tables: frozenset[Value] = frozenset(),
        beside: Sequence[tuple[Value, ...]] = (),
        larger: TileLayout | None = None,
        spare: int = 0,
        uses: int = 1,
    ) -> None:
        self.space, self.program, self.tile, self.machine = space, program, tile, machine
        self.tables, self.rows, self.larger, self.spare = tables, tuple(beside), larger, spare
        self.uses = uses
        self.beside = {value: row for row in beside for value in row}
        self.lane = program.lane
        axes = enumerate(space.axes)
        self.looped = frozenset(i for i, axis in axes if tile.sizes[i] < axis.size)

    def with_spare(self, spare: int) -> TileLayout:
        """The same with room for statistics to lie where they are used fastest."""
        args = self.space, self.program, self.tile, self.machine
        return TileLayout(*args, self.tables, self.rows, self.larger, spare, self.uses)

    def form(self, value: Value) -> Form:
        """The axes that the array of a value has: a table those of the rows it is combined with."""
        return tuple(range(self.lane + 1)) if value in self.tables else self.program.forms[value]

    def table_cycles(self, value: Value) -> int:
        """Cycles of the vector unit until a value of a row lies in UB once for each row of the
        tile."""
        *rows, lanes = self.shape(value)
        if self.comes_from_l1(value):
            return 0
        return doubling_cycles(math.prod(rows), lanes, value.dtype, self.machine)

    def comes_from_l1(self, value: Value) -> bool:
        """Whether a value of a row is copied from L1 to each row of the tile, not by the vector
        unit."""
        steps = len(self.program.steps)
        return is_moved(self.shape(value)[-1], value.dtype, steps, self.machine)

    def once(self, value: Value) -> bool:
        """Whether a value is the same for all tiles."""
        form = self.program.forms[value]
        return form is None or not self.looped.intersection(form)

    def shape(self, value: Value) -> tuple[int, ...]:
        """The array that holds a value; of a constant, equally many lanes whatever its type."""
        form, block = self.form(value), block_lanes(value.dtype)
        if form is None:
            return (CONSTANT_LANES,)
        if value in self.program.packed:
            return (packed_size(self.run(form), self.packed_block),)
        if value in self.program.turned:
            return self.run_sizes(form)
        outer = self.outer(form)
        if self.lane in form:
            return (*outer, self.tile.pitch)
        if value in self.placed:
            return (self.places(form, value.dtype).blocks, block)
        return (*outer, block)

    def width(self, step: TileStep) -> int:
        """How many parts of rows that lie beside each other a step does at once; 0 of one that is
        done with another, or that is only a view."""
        if step.name == VIEW:
            return 0
        row = self.program.together.get(step.result, ())
        rows = (v for v in step.sources if self.lane in (self.program.forms[v] or ()))
        if not row or any(value not in self.beside for value in (*rows, step.result)):
            return 1
        return len(row) if step.result == row[0] else 0

    def held_shape(self, value: Value) -> tuple[int, ...]:
        """The buffer in which a value lies, beside others or alone."""
        *outer, lanes = self.shape(value)
        return (*outer, lanes * len(self.beside.get(value, (value,))))

    def held_offset(self, value: Value) -> int:
        """Elements in front of a value in its buffer."""
        row = self.beside.get(value, (value,))
        return row.index(value) * self.shape(value)[-1] if len(row) > 1 else 0

    def strides(self, value: Value, form: tuple[int, ...]) -> list[int]:
        """Strides of a value along the axes of `form`, the innermost in blocks and lanes; 0 along
        those that it lacks."""
        own = self.form(value)
        outer = [axis for axis in form if axis != self.lane]
        if own is None:
            return [0] * (len(outer) + 1) + [1]
        steps = row_major(self.held_shape(value))
        mine = dict(zip((a for a in own if a != self.lane), steps, strict=False))
        block = block_lanes(value.dtype)
        return [*(mine.get(axis, 0) for axis in outer), block if self.lane in own else 0, 1]

    def run(self, form: tuple[int, ...]) -> int:
        """Elements of a tile of a statistic."""
        return math.prod(self.tile.sizes[axis] for axis in form)

    def run_sizes(self, form: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes of a tile of a value with axes inside its lanes, as it lies in GM: of the axes
        outside, and of the run of all others."""
        inside = [axis for axis in form if axis in self.program.inside or axis == self.lane]
        outside = (self.tile.sizes[axis] for axis in form if axis not in inside)
        return (*outside, math.prod(self.tile.sizes[axis] for axis in inside))

    def is_run(self, number: int) -> bool:
        """Whether the tile of a value of the group lies together in GM, if it is a statistic."""
        order, sizes = self.space.order[number], self.tile.sizes
        if self.lane in order:
            return True
        outer = itertools.dropwhile(lambda axis: axis not in self.looped, reversed(order))
        return all(sizes[axis] == 1 for axis in list(outer)[1:])

    def by_scalars(self, value: Value) -> bool:
        """Whether the elements of a packed value are too few to be copied beside others in GM, in
        whole blocks."""
        if copies_elements(self.machine):
            return False
        form = self.program.forms[value]
        assert form is not None, "constants, which have no axes, are neither moved nor packed"
        whole = not self.looped.intersection(form)
        return not whole and is_scattered(self.run(form), self.packed_block, value.dtype)

    @cached_property
    def moved_by_scalars(self) -> frozenset[Value]:
        """Packed values of a tile that the scalar unit moves element by element."""
        return frozenset(
            value
            for value in self.program.packed
            if not self.once(value) and self.by_scalars(value)
        )

    @cached_property
    def packed_block(self) -> int:
        """Elements of which pieces of packed values are whole numbers: blocks of every type."""
        return max((block_lanes(value.dtype) for value in self.program.packed), default=1)

    def outer(self, form: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes of the axes of a form but the innermost."""
        return tuple(self.tile.sizes[axis] for axis in form if axis != self.lane)

    @cached_property
    def placed(self) -> frozenset[Value]:
        """Statistics where rows are combined with them."""
        return frozenset(self.program.placed.values())

    def places(self, form: tuple[int, ...], dtype: str) -> RowPlaces:
        """Where statistics of a form lie for the steps that combine rows with them."""
        key = (form, dtype)
        if key not in self._places:
            self._places[key] = self._best_places(form, dtype)
        return self._places[key]

    def _best_places(self, form: tuple[int, ...], dtype: str) -> RowPlaces:
        """The places of statistics of a form beside rows that take fewest cycles to fill and to use
        (`best_places`); in a tile smaller than another one those that they have there, if they
        fit."""
        rows = math.prod(self.outer(form))
        blocks, slices = self.tile.pitch // block_lanes(dtype), self._slices(form)
        room = self.spare or self.machine.buffers.UB.bytes // COPIED_SHARES[0]
        if self.larger is not None:
            places = self.larger.places(form, dtype)
            if self.larger.outer(form) == self.outer(form):
                units = blocks // places.unit
                if rows == 1 and units:  # of a shorter row, as many copies as it has turns for
                    copies = min(places.copies, units)
                    places = replace(places, copies=math.gcd(units, copies))
                if blocks % (places.unit * places.copies) == 0:
                    return places
            room = places.blocks * BLOCK_BYTES
        return best_places(
            rows,
            blocks,
            dtype,
            self.machine,
            first=self._first,
            room=room,
            uses=self.uses,
            slices=slices,
            spare=self.spare > 0,
        )

    def use_cycles(self, step: TileStep, statistic: Value, width: int) -> float:
        """Cycles of a step that combines rows with one of the placed statistics.

        Args:
            width: parts of rows that lie beside each other, all of which are meant.
        """
        form, whole, dtype = self.program.forms[statistic], self.form(step.result), statistic.dtype
        assert form is not None and whole is not None, "constants are no statistics"
        blocks = width * self.tile.pitch // block_lanes(dtype)
        name, slices = step.instruction[0], self.slices(form, whole)
        return use_cycles(self.places(form, dtype), blocks, dtype, self.machine, slices, name)

    @cached_property
    def _places(self) -> dict[tuple[tuple[int, ...], str], RowPlaces]:
        return {}

    def _slices(self, form: tuple[int, ...]) -> int:
        """How many arrays of rows, one after the other, have the statistics of `form` in common.

        Raises:
            NoSpace: the rows do not lie one after the other.
        """
        outside = [axis for axis in range(self.lane) if axis not in form]
        wide = [axis for axis in outside if self.tile.sizes[axis] > 1]
        own = [axis for axis in form if self.tile.sizes[axis] > 1]
        if wide and own and max(wide) > min(own):
            raise NoSpace("a statistic of rows that do not lie together")
        return self.slices(form, range(self.lane))

    def slices(self, form: tuple[int, ...], rows: Iterable[int]) -> int:
        """How many arrays of rows, one after the other, a value with the axes `rows` has for the
        statistics of `form`; it may lack axes of the tile itself."""
        apart = (axis for axis in rows if axis not in form and axis != self.lane)
        return math.prod(self.tile.sizes[axis] for axis in apart)

    @property
    def _first(self) -> bool:
        """Whether statistics may be in lane 0 only."""
        return not spreads_lanes(self.machine)

    @cached_property
    def _in_first_lanes(self) -> frozenset[Value]:
        return self.program.in_first_lanes()

    def fold(self, step: TileStep) -> Fold:
        """How a step reduces."""
        (source,) = step.sources
        before, after = self.program.forms[source], self.program.forms[step.result]
        assert before is not None and after is not None, "constants are not reduced"
        gone = [i for i, axis in enumerate(before) if axis not in after and axis != self.lane]
        kind = str(step.attributes["kind"])
        if self.lane in after or self.lane not in before:
            return Fold(tuple(i for i in gone if self.tile.sizes[before[i]] > 1), None)
        sizes = [self.tile.sizes[axis] for axis in before if axis != self.lane]
        leading = 0
        while leading in gone:
            leading += 1
        rows = math.prod(n for i, n in enumerate(sizes) if i not in gone)
        slices = math.prod(sizes[:leading])
        work = reduction(
            kind,
            rows,
            self.tile.pitch,
            source.dtype,
            self.machine,
            slices=slices,
            first=self._first,
        )
        inner = (i for i in gone if i >= leading and self.tile.sizes[before[i]] > 1)
        return Fold(tuple(inner), work)

    def moving(self, step: TileStep) -> BufferSteps:
        """How a step brings a statistic to its places, packs or unpacks it, parts or joins the
        halves of elements, or brings short rows to lanes or back."""
        form, dtype = self.program.forms[step.result], step.result.dtype
        assert form is not None, "constants, which have no axes, are neither moved nor packed"
        if step.name == PLACE:
            first = self._first or step.sources[0] in self._in_first_lanes
            return placing(dtype, self.places(form, dtype), self.machine, first=first)
        if step.name in (PART, JOIN):
            count = math.prod(self.shape(step.result))
            if step.name == JOIN:
                return joined(count, step.sources[0].dtype)
            return parted(count, int(step.attributes["half"] == "high"), dtype)
        if step.name in (TO_LANES, TO_ROWS):
            *outside, run = self.run_sizes(form)
            rows, pitch = self.tile.sizes[self.lane], self.tile.pitch
            turned = TurnedRows(dtype, math.prod(outside), run // rows, rows, pitch)
            return turned.to_lanes() if step.name == TO_LANES else turned.to_rows()
        rule = packing if step.name == PACK else unpacking
        return rule(dtype, self.run(form), self.packed_block, self.machine)

    @cached_property
    def buffers(self) -> tuple[list[TileBuffer], dict[Value, int]]:
        """The buffers, and that of each value: a step's result takes over that of an equal source
        that ends; values that are the same for all tiles keep theirs."""
        once = frozenset(value for value in self.program.forms if self.once(value))
        lasting = once | self.tables
        known: dict[tuple[int, bool], TileBuffer] = {}

        def kind(value: Value) -> TileBuffer:
            key = self.program.kinds[value], value in once
            apart = value in self.beside or value in self.tables
            if apart or key not in known:
                found = TileBuffer(value.dtype, self.held_shape(value), value in once)
                if apart:
                    return found
                known[key] = found
            return known[key]

        return assigned(self.program, lasting, kind, self.beside)

    def scratch_bytes(self, step: TileStep) -> int:
        """Bytes that a step takes besides its sources and result."""
        if step.name in MOVED:
            return _whole_repeats(self.moving(step))
        if step.name != REDUCE:
            return 0
        fold = self.fold(step)
        found = _whole_repeats(fold.lanes.work) if fold.lanes is not None else 0
        shape = list(self.shape(step.sources[0]))
        for axis in fold.axes:
            shape[axis] = max(1, shape[axis] // 2)
            found += TileBuffer(step.sources[0].dtype, tuple(shape), False).bytes
            shape[axis] = 1
        return found

    @cached_property
    def _bytes(self) -> tuple[int, int, int]:
        """Bytes of buffers that are there once, of those that are moved, and of the others."""
        once = moved = held = 0
        for buffer in self.buffers[0]:
            once += buffer.once * buffer.bytes
            moved += (not buffer.once and buffer.moved) * buffer.bytes
            held += (not buffer.once and not buffer.moved) * buffer.bytes
        for step in self.program.steps:
            if step.name == REDUCE or step.name in MOVED:
                size = self.scratch_bytes(step)
                if self.once(step.result) and self.once(step.sources[0]):
                    once += size
                else:
                    held += size
        return once, moved, held

    def footprint(self, slots: int, chains: int = CHAINS) -> int:
        """Bytes of UB with `slots` of each buffer that is moved, and of each that only the vector
        unit sees as many as `chains`, but no more than slots."""
        once, moved, held = self._bytes
        return once + slots * moved + min(slots, chains) * held


def _whole_repeats(work: BufferSteps) -> int:
    size = DTYPES[work.dtype].itemsize
    return sum(
        math.ceil(count * size / REPEAT_BYTES) * REPEAT_BYTES for count in work.scratch.values()
    )
