"""Schedules of groups on the vector unit, chosen by estimated cycles.

A tile holds all of every reduced axis, and of the others as many as fit UB, the innermost first:
one axis is **cut**, those inside it are whole, those outside it are walked one by one. The tiles
are shared by the cores; a core works on `slots` of them at a time.

    softmax 6144x512:  i0: 6144 in tiles of 24 on 32 cores, 2 slots; i1: 512
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.choices import PieceChoice, TileChoice
from davinci.schedule.graph import Graph, KeyedGraph
from davinci.schedule.vector.chunk_choice import ChunkChoice
from davinci.schedule.vector.chunks import TileRun
from davinci.schedule.vector.phased_schedule import PhasedChooser, PhasedSchedule
from davinci.schedule.vector.prepared import (
    PreparedProgram,
    first_prepared,
    prepared,
    turned_prepared,
)
from davinci.schedule.vector.program_tiles import HeldTile
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.step_costs import (
    issuing_cycles,
    moving_cycles,
    once_cycles,
    turns_cycles,
)
from davinci.schedule.vector.tile_layout import (
    CHAINS,
    SLOTS,
    TileLayout,
    VectorTile,
    tile_of,
)
from davinci.schedule.vector.tile_program import TileProgram
from davinci.schedule.vector.tiled_schedule import VectorSchedule as VectorSchedule
from davinci.units import REPEAT_BYTES, round_up

ScheduleOf = Callable[[int, list[int]], VectorSchedule | None]
"""The schedule of tiles of some sizes, cut along an axis; None if there is none."""

WAVES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
"""Tiles of a core that are tried; of long axes also twice as many, and so on."""

WEIGHED = 6
"""Sizes of tiles that are weighed, from the largest that fits."""

TURNED = -1
"""The number of the program whose lanes are short rows, for those who ask for it alone."""

CHOOSERS_KEPT = 512
"""Choosers that are kept: of the programs of groups, on each number of cores that is weighed."""


@dataclass(frozen=True)
class VectorPlan:
    """A group as it is computed on the vector unit."""

    graph: Graph
    space: IterationSpace
    program: TileProgram
    schedule: VectorSchedule | PhasedSchedule
    machine: Machine

    def layout(self, tile: VectorTile, larger: TileLayout | None = None) -> TileLayout:
        """Where values lie in UB, for the tile of the schedule or a smaller one; `larger`: in the
        buffers of that layout."""
        schedule = self.schedule
        args = self.space, self.program, tile, self.machine
        rows = schedule.tables, schedule.beside
        return TileLayout(*args, *rows, larger, schedule.spare, schedule.uses)


def plan(
    graph: Graph,
    machine: Machine,
    cores: int,
    choice: TileChoice | PieceChoice | None = None,
    meets: bool = False,
) -> VectorPlan:
    """The best schedule of a group, or that of a choice.

    Args:
        meets: whether its cores may meet.

    Raises:
        NoSpace: the vector unit cannot compute the group in one kernel, or not in this way.
    """
    choosers = _choosers(graph, machine, cores, meets)
    choosers[0].require_rows()
    if choice is not None:
        turned = choice.form == "turned"
        choosers = [each for each in choosers if each.turned == turned]
    chooser, found = _least(choosers, lambda each: each.best if choice is None else each.of(choice))
    return VectorPlan(graph, chooser.space, chooser.program_of(found), found, machine)


def plans(graph: Graph, machine: Machine, cores: int) -> list[VectorSchedule | PhasedSchedule]:
    """The schedules that are weighed for a group whose cores do not meet.

    Raises:
        NoSpace: the vector unit cannot compute the group in one kernel.
    """
    choosers = _choosers(graph, machine, cores, meets=False)
    choosers[0].require_rows()
    return [schedule for chooser in choosers for schedule in chooser.all()]


def estimate(graph: Graph, machine: Machine, cores: int) -> int:
    """Cycles of a group that may still grow, by its first program and by whole tiles if any fit, or
    else by phases, in which cores may meet; statistics may be its inputs and outputs.

    Raises:
        NoSpace: no group that contains it can be computed in one kernel.
    """
    chooser = _chooser(graph.keyed(), machine, cores, 0, True)
    found: list[VectorSchedule | PhasedSchedule] = [chooser.in_tiles or chooser.best]
    if turned_prepared(graph, machine) is not None:
        turned = _chooser(graph.keyed(), machine, cores, TURNED, True).in_tiles
        found += [turned] if turned is not None else []
    return min(schedule.cycles for schedule in found)


def _choosers(graph: Graph, machine: Machine, cores: int, meets: bool) -> list[_VectorChooser]:
    """One for each program of a group that is weighed."""
    known, count = graph.keyed(), len(prepared(graph, machine))
    return [_chooser(known, machine, cores, number, meets) for number in range(count)]


@lru_cache(maxsize=CHOOSERS_KEPT)
def _chooser(
    known: KeyedGraph, machine: Machine, cores: int, number: int, meets: bool
) -> _VectorChooser:
    """The chooser for one of a group's programs. The last ones are kept with what they found:
    passes weigh a group when it grows, alone, as a part of others, and when its kernel is built."""
    graph = known.graph
    if number == TURNED:
        program = turned_prepared(graph, machine)
        assert program is not None, "asked for where there is one"
    else:
        program = prepared(graph, machine)[number] if number else first_prepared(graph, machine)
    return _VectorChooser(graph, program, machine, cores, meets)


def _least(
    choosers: Sequence[_VectorChooser],
    schedule_of: Callable[[_VectorChooser], VectorSchedule | PhasedSchedule],
) -> tuple[_VectorChooser, VectorSchedule | PhasedSchedule]:
    """The chooser whose schedule takes least time, and that schedule.

    Raises:
        NoSpace: none of them has one.
    """
    found, refusal = [], NoSpace("a group without a program of such a form")
    for chooser in choosers:
        try:
            found.append((chooser, schedule_of(chooser)))
        except NoSpace as reason:
            refusal = refusal if found else reason
    if not found:
        raise refusal
    return min(found, key=lambda pair: pair[1].cycles)


def units_of(runs: tuple[TileRun, ...], overlap: bool) -> int:
    """Tiles along the cut axis; of two that overlap, both are one unit of work."""
    return sum(run.count for run in runs) - overlap


class _VectorChooser:
    """Weighs the schedules of one group."""

    def __init__(
        self,
        graph: Graph,
        prepared: PreparedProgram,
        machine: Machine,
        cores: int,
        meets: bool,
    ) -> None:
        self.graph, self.program_tiles = graph, prepared.tiles
        self.space, self.program = prepared.space, prepared.program
        self.machine, self.cores = machine, cores
        self.lane = self.program.lane
        self.block = self.program.row_block
        self.turned = bool(self.space.inside)
        self._phased = PhasedChooser(graph, self.space, self.program, machine, cores, meets)
        self._chunks = ChunkChoice(self.space, self.program, machine)

    def require_rows(self) -> None:
        """Fails unless what lies in GM is rows of the innermost axis, or statistics in order."""
        for value in (*self.graph.inputs, *self.graph.outputs):
            order = self.space.order[value]
            if order != self.space.of(value) and order[-1] != self.lane:
                raise NoSpace("a value in GM whose axes have another order")
            if value in self.graph.windows:
                self._require_whole_rows(value)
            elif value in self.space.windows and self.lane not in order:
                self._require_run(value)

    def _require_whole_rows(self, value: int) -> None:
        """Fails at a window whose lanes do not lie together, or that could only be copied with
        what lies behind it."""
        strides = self.space.windows.get(value, {})
        size = self.space.axes[self.lane].size
        if strides.get(self.lane) != 1 or (len(self.space.axes) == 1 and size % self.block):
            raise NoSpace("a part of an array that is no rows of lanes")

    def _require_run(self, value: int) -> None:
        """Fails at a statistic whose elements do not follow each other: fractals with padding."""
        strides, run = self.space.windows[value], 1
        for axis in reversed(self.space.order[value]):
            size = self.space.axes[axis].size
            if size > 1 and strides[axis] != run:
                raise NoSpace("a statistic in fractals with padding")
            run *= size

    @cached_property
    def best(self) -> VectorSchedule | PhasedSchedule:
        """The schedule that takes least time. Phases are weighed where tiles cannot overlap, and
        chunks of reduced axes where neither a tile nor a phase fits.

        Raises:
            NoSpace: none of them fits UB.
        """
        tiles = self.in_tiles
        found: VectorSchedule | PhasedSchedule | None = tiles
        if (tiles is None or tiles.slots == 1) and not self.turned:
            phased = min(self._phased.candidates(), key=lambda s: s.cycles, default=None)
            if phased is not None and (found is None or phased.cycles < found.cycles):
                found = phased
        if found is None and not self.turned:
            chunked = self._candidates(self._in_chunks)
            found = min(chunked, key=lambda s: s.cycles, default=None)
        if found is None:
            raise NoSpace("no tile that can be moved fits UB")
        return found

    @cached_property
    def in_tiles(self) -> VectorSchedule | None:
        """The schedule of whole tiles that takes least time, None if none fits."""
        return min(self._candidates(self._schedule), key=lambda s: s.cycles, default=None)

    def all(self) -> Iterator[VectorSchedule | PhasedSchedule]:
        """Tiles of all sizes that are weighed, with all numbers of slots; pieces; chunks."""
        for schedule in self._candidates(self._schedule):
            for slots in range(1, schedule.slots + 1):
                yield self.of(replace(schedule.choice, slots=slots))
        if self.turned:
            return
        yield from self._phased.candidates()
        yield from self._candidates(self._in_chunks)

    def of(self, choice: TileChoice | PieceChoice) -> VectorSchedule | PhasedSchedule:
        """The schedule of a choice.

        Raises:
            NoSpace: there is none.
        """
        found: VectorSchedule | PhasedSchedule | None
        if isinstance(choice, PieceChoice):
            found = self._phased.of(choice)
        else:
            cut, axes = choice.cut, self.space.axes
            if cut >= len(axes) or choice.size > axes[cut].size:
                raise NoSpace(f"axis {cut} cut to {choice.size}, of axes {axes}")
            if axes[cut].reduced and choice.size < axes[cut].size:
                raise NoSpace(f"tiles with a part of the reduced axis {cut}")
            sizes = self._tile(cut, choice.size, choice.whole)
            if choice.form == "chunks":
                found = self._in_chunks(cut, sizes)
            else:
                found = self._schedule(cut, sizes, choice.slots)
        if found is None:
            raise NoSpace(f"no tile like {choice} can be moved and fits UB")
        return found

    def program_of(self, schedule: VectorSchedule | PhasedSchedule) -> TileProgram:
        """The program that a schedule computes."""
        if isinstance(schedule, PhasedSchedule):
            return self._phased.program_of(schedule.meet)
        return self.program

    def _tile(self, cut: int, size: int, whole: bool) -> list[int]:
        """Sizes of a tile that has `size` of the axis that is cut."""
        sizes = [axis.size for axis in self.space.axes]
        for outside in self._free:
            if outside < cut and not whole:
                sizes[outside] = 1
        sizes[cut] = size
        return sizes

    def _candidates(self, schedule_of: ScheduleOf) -> Iterator[VectorSchedule]:
        """The schedules that fit, for each axis that tiles may be cut along: the largest few tiles,
        with one place of the axes outside it, or with all of these where that loads less.

        Args:
            schedule_of: makes a schedule of the axis that is cut and sizes of a tile, None if none
                fits.
        """
        axes, free = self.space.axes, self._free
        for place, whole in itertools.product(range(len(free)), (False, True)):
            cut, outside = free[place], free[:place]
            if whole and not self._repeats(cut, outside):
                continue
            weighed = 0
            for size in self._sizes(cut, [] if whole else outside):
                schedule = schedule_of(cut, self._tile(cut, size, whole))
                if schedule is not None:
                    weighed += 1
                    yield schedule
                if weighed == WEIGHED:
                    break
        if not free:
            schedule = schedule_of(0, [axis.size for axis in axes])
            if schedule is not None:
                yield schedule

    @property
    def _free(self) -> list[int]:
        """The axes that tiles may have a part of."""
        axes, inside = enumerate(self.space.axes), self.space.inside
        return [i for i, axis in axes if not axis.reduced and axis.size > 1 and i not in inside]

    def _repeats(self, cut: int, outside: list[int]) -> bool:
        """Whether tiles with all of the axes outside the one that is cut load less: an input is the
        same along some of these axes, or has no other ones."""
        forms = [set(self.program.forms[value] or ()) for value in self.program.inputs]
        alike = any(cut in form and not form.issuperset(outside) for form in forms)
        return alike or any(form and form.issubset(outside) for form in forms)

    def _sizes(self, cut: int, outside: list[int]) -> list[int]:
        """Numbers of elements along the axis `cut` that a tile may have, the largest first: those
        that give every core the same number of tiles, once or several times.

        Along lanes they are whole repeats, or, where sums leave few lanes or statistics are packed,
        whole blocks.

        Args:
            outside: axes of which a tile has one place each: cores share these, too.
        """
        total = self.space.axes[cut].size
        walks = math.prod(self.space.axes[i].size for i in outside)
        granule = 1
        if cut == self.lane:
            smallest = min((DTYPES[v.dtype].itemsize for v in self.program.inputs), default=2)
            granule = REPEAT_BYTES // min(smallest, 2)
        share = max(1, self.cores // walks)
        doubled = (WAVES[-1] << i for i in itertools.count(1))
        more = itertools.takewhile(lambda waves: share * waves * granule < total, doubled)
        even = (math.ceil(total / (share * waves)) for waves in (*WAVES, *more))
        found = {round_up(size, granule) for size in even}
        summed = any(axis.reduced for i, axis in enumerate(self.space.axes) if i != self.lane)
        if summed and share * granule > total:
            # Few lanes of many rows: all cores have some, though less than a repeat.
            found.add(round_up(math.ceil(total / share), self.block))
        if self.program.packed:  # shorter runs are moved by the scalar unit
            run = max(block_lanes(value.dtype) for value in self.program.packed)
            found |= {run, total} if min(found) < run else set()
        return sorted({min(total, size) for size in found}, reverse=True)

    def _schedule(self, cut: int, sizes: list[int], slots: int = SLOTS) -> VectorSchedule | None:
        """The schedule of tiles of so many elements along each axis, cut along `cut`, on as many
        cores as have some and with at most so many slots: of all numbers of buffers that fit the
        one of fewest cycles. None if none fits, or the tile cannot be moved."""
        axes = self.space.axes
        movable = self.program_tiles.of(tuple(sizes))
        if movable is None:
            return None
        walks = math.prod(a.size for a, n in zip(axes[:cut], sizes, strict=False) if n < a.size)
        runs, overlap = self._runs(axes[cut].size, sizes[cut], cut == self.lane)
        tiles = walks * units_of(runs, overlap)
        cores = min(tiles, self.cores)
        own = walks * (runs[0].count - overlap) // cores
        left = math.ceil((tiles - own * cores) / cores)
        twice = math.ceil(walks / cores) if overlap else 0
        try:
            ways = movable.held(min(slots, max(own, 1)))
            found = [(self._cycles(way, cores, own, left, twice), way) for way in ways]
        except NoSpace:
            return None
        if not found:
            return None
        cycles, way = min(found, key=lambda each: each[0])
        layout = way.layout
        return VectorSchedule(
            cut=cut,
            whole=self._is_whole(cut, sizes),
            tile=layout.tile,
            runs=runs,
            overlap=overlap,
            cores=cores,
            slots=way.slots,
            slots_held=way.chains,
            tables=layout.tables,
            beside=layout.rows,
            ragged=movable.ragged,
            cycles=cycles,
            spare=layout.spare,
            scalar=bool(layout.moved_by_scalars),
            turned=self.turned,
        )

    def _in_chunks(self, cut: int, sizes: list[int]) -> VectorSchedule | None:
        """The schedule of a tile whose reduced axes are gone through chunk by chunk."""
        axes = self.space.axes
        if sizes[self.lane] < axes[self.lane].size and sizes[self.lane] % self.block:
            return None
        looped = {i for i, axis in enumerate(axes) if sizes[i] < axis.size and not axis.reduced}
        if any(looped.difference(self.space.order[v]) for v in self.graph.outputs):
            return None  # several blocks would write it
        whole = self._is_whole(cut, sizes)
        walks = math.prod(axes[i].size for i in looped if i < cut)
        runs, overlap = self._runs(axes[cut].size, sizes[cut], cut == self.lane)
        tiles = walks * units_of(runs, overlap)
        cores = min(tiles, self.cores)
        choice = self._chunks.best(sizes, cores)
        if choice is None:
            return None
        chunks, chunk, slots, cycles = choice
        cycles *= math.ceil(tiles / cores)
        tile, ragged = tile_of(self.space, self.program, chunk)
        layout = TileLayout(self.space, self.program, tile, self.machine)
        return VectorSchedule(
            cut=cut,
            whole=whole,
            tile=tile,
            runs=runs,
            overlap=overlap,
            cores=cores,
            slots=slots,
            slots_held=min(slots, CHAINS),
            tables=frozenset(),
            beside=(),
            ragged=ragged,
            cycles=cycles,
            chunks=chunks,
            scalar=bool(layout.moved_by_scalars),
        )

    def _is_whole(self, cut: int, sizes: list[int]) -> bool:
        """Whether a tile has all of the axes outside the one that is cut, which could be walked."""
        outside = [sizes[axis] for axis in self._free if axis < cut]
        return bool(outside) and 1 not in outside

    def _runs(self, total: int, size: int, lanes: bool) -> tuple[tuple[TileRun, ...], bool]:
        """Runs of tiles of `size` along an axis of `total`, and whether the last one begins earlier
        than the one before it ends: along lanes it is whole blocks."""
        count, rest = divmod(total, size)
        runs = [TileRun(0, count, size)] if count else []
        if not rest:
            return tuple(runs), False
        if lanes and runs and rest % self.block:
            rest = math.ceil(rest / self.block) * self.block
            return (*runs, TileRun(total - rest, 1, rest)), True
        return (*runs, TileRun(total - rest, 1, rest)), False

    def _cycles(self, tile: HeldTile, cores: int, own: int, left: int, twice: int) -> int:
        """Estimated time of each of `cores` that has `own` tiles in a row and `left` others one by
        one, `twice` of them with another one that they overlap right behind."""
        layout, inputs, outputs = tile.layout, self.graph.inputs, self.graph.outputs
        once = tile.once + once_cycles(inputs, outputs, layout, cores)
        read, write = (
            moving_cycles(values, layout, cores, load) + issuing_cycles(values, layout, load)
            for values, load in ((inputs, True), (outputs, False))
        )
        start = prices.ends(self.machine)
        alone = tile.each + read + write + start
        once += twice * (alone - start)
        if tile.slots == 1:
            return int(once + (own + left) * alone)
        turns = turns_cycles(self.machine, own, tile.each, read, write, tile.slots)
        together = start + read + write + turns
        return int(once + together + left * alone)
