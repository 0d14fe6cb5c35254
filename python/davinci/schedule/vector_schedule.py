"""Schedules of groups on the vector unit, chosen by estimated cycles.

A tile holds all of every reduced axis, and of the others as many as fit UB, the innermost first:
one axis is **cut**, those inside it are whole, those outside it are walked one by one. The tiles
are shared by the cores; a core works on `slots` of them at a time.

    softmax 6144x512:  i0: 6144 in tiles of 24 on 32 cores, 2 slots; i1: 512
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.operators.vector_program import Step
from davinci.schedule.graph import Graph
from davinci.schedule.space import NoSpace, Space, space_of
from davinci.schedule.tile_program import (
    EXPAND,
    REDUCE,
    Buffers,
    Tile,
    TileProgram,
    assign,
    block_lanes,
    is_invariant,
    program_of,
)
from davinci.units import MAX_REPEAT, REPEAT_BYTES

SLOTS = 3
"""Buffers of each value of a tile: one is filled, one worked on and one drained."""

LEAST_BYTES = 4096
"""Bytes below which a tile is not cut further to occupy more cores: the start of a transfer
(docs/hardware.md b3) would take longer than the data."""


@dataclass(frozen=True)
class Run:
    """`count` neighbouring tiles of `size`, the first of which starts at `first`."""

    first: int
    count: int
    size: int


@dataclass(frozen=True)
class VectorSchedule:
    """How a group is computed.

    Attributes:
        cut: the axis that is cut.
        tile: sizes of a full tile.
        runs: the tiles along the cut axis.
        overlap: whether the last tile goes over elements of the one before; both are of one core.
        cores: blocks of the launch.
        slots: tiles that a core works on at a time.
        ragged: lanes of the innermost axis behind its last whole block; rows then end in a block
            that repeats lanes of the one before.
        cycles: estimated.
    """

    cut: int
    tile: Tile
    runs: tuple[Run, ...]
    overlap: bool
    cores: int
    slots: int
    ragged: int
    cycles: int

    def __str__(self) -> str:
        sizes = [f"i{axis}: {size}" for axis, size in enumerate(self.tile.sizes)]
        sizes[self.cut] += " of " + " + ".join(f"{r.count} x {r.size}" for r in self.runs)
        return f"{', '.join(sizes)}; {self.cores} cores, {self.slots} slots"


@dataclass(frozen=True)
class Plan:
    """A group as it is computed on the vector unit."""

    graph: Graph
    space: Space
    program: TileProgram
    schedule: VectorSchedule

    @property
    def looped(self) -> frozenset[int]:
        """Axes along which there are several tiles."""
        return looped_axes(self.space, self.schedule.tile)

    @property
    def buffers(self) -> Buffers:
        return assign(self.program, self.looped)


def plan(graph: Graph, machine: Machine, cores: int) -> Plan:
    """The best schedule of a group.

    Raises:
        NoSpace: the vector unit cannot compute the group in one kernel.
    """
    space = space_of(graph)
    if not space.axes or any(axis.size == 0 for axis in space.axes):
        raise NoSpace("a group of scalars, or of nothing")
    program = program_of(graph, space)
    chooser = _Chooser(graph, space, program, machine, cores)
    return Plan(graph, space, program, chooser.best())


def looped_axes(space: Space, tile: Tile) -> frozenset[int]:
    return frozenset(i for i, axis in enumerate(space.axes) if tile.sizes[i] < axis.size)


class _Chooser:
    """Weighs the schedules of one group."""

    def __init__(
        self, graph: Graph, space: Space, program: TileProgram, machine: Machine, cores: int
    ) -> None:
        self.graph, self.space, self.program = graph, space, program
        self.machine, self.cores = machine, cores
        self.lane = len(space.axes) - 1
        moved = [program.loads[v] for v in graph.inputs] + [
            program.stores[v] for v in graph.outputs
        ]
        self.block = max(block_lanes(value.dtype) for value in moved)
        self.room = machine.buffers.UB.bytes
        self._require_lanes()

    def _require_lanes(self) -> None:
        """Fails unless rows are what transfers and instructions can take."""
        for value in (*self.graph.inputs, *self.graph.outputs):
            order = self.space.order[value]
            if not order or order[-1] != self.lane:
                raise NoSpace("a value in GM without the innermost axis, or with another one")
        if any(form is not None and self.lane not in form for form in self.program.forms.values()):
            raise NoSpace("statistics of rows")

    def best(self) -> VectorSchedule:
        """The schedule that takes least time.

        Raises:
            NoSpace: not even the smallest tile fits UB.
        """
        found = min(self._candidates(), key=lambda s: s.cycles, default=None)
        if found is None:
            raise NoSpace("the smallest tile does not fit UB")
        return found

    def _candidates(self) -> Iterator[VectorSchedule]:
        axes = self.space.axes
        free = [i for i, axis in enumerate(axes) if not axis.reduced]
        for place in range(len(free)):
            cut = free[place]
            outside = free[:place]
            for size in self._sizes(cut, outside):
                sizes = [axis.size for axis in axes]
                for i in outside:
                    sizes[i] = 1
                sizes[cut] = size
                schedule = self._schedule(cut, sizes)
                if schedule is not None:
                    yield schedule
        if not free:
            schedule = self._schedule(0, [axis.size for axis in axes])
            if schedule is not None:
                yield schedule

    def _sizes(self, cut: int, outside: list[int]) -> list[int]:
        """Sizes of tiles along the axis `cut` that share it evenly."""
        total = self.space.axes[cut].size
        walks = math.prod(self.space.axes[i].size for i in outside)
        granule = 1
        if cut == self.lane:
            smallest = (
                min(DTYPES[v.dtype].itemsize for v in self.program.inputs)
                if (self.program.inputs)
                else 2
            )
            granule = REPEAT_BYTES // min(smallest, 2)
        share = max(1, self.cores // walks)
        found = set()
        for waves in range(1, 65):
            size = math.ceil(total / (share * waves))
            found.add(min(total, math.ceil(size / granule) * granule))
            if cut != self.lane:
                found.add(min(total, math.ceil(size / 8) * 8))
        return sorted(found)

    def _schedule(self, cut: int, sizes: list[int]) -> VectorSchedule | None:
        """The schedule of a tile, None if it does not fit or cannot be moved."""
        axes = self.space.axes
        tile_lanes = sizes[self.lane]
        flat = all(size == 1 for i, size in enumerate(sizes) if i != self.lane)
        ragged = 0
        if cut != self.lane and tile_lanes % self.block:
            if tile_lanes < self.block:
                return None
            ragged = tile_lanes % self.block
        if (
            cut == self.lane
            and not flat
            and (tile_lanes % self.block or axes[self.lane].size % self.block)
        ):
            return None
        if cut == self.lane and len(axes) > 1 and axes[self.lane].size % self.block:
            return None
        tile = Tile(tuple(sizes), self._pitch(tile_lanes, ragged))
        looped = looped_axes(self.space, tile)
        if any(looped.difference(self.space.order[v]) for v in self.graph.outputs):
            return None  # several blocks would write it
        walks = math.prod(
            axis.size for i, axis in enumerate(axes) if sizes[i] == 1 != axis.size and i != cut
        )
        runs, overlap = self._runs(axes[cut].size, sizes[cut], cut == self.lane)
        tiles = walks * sum(run.count for run in runs)
        cores = min(tiles, self.cores)
        own = math.ceil(tiles / cores)
        least = min(SLOTS, own)
        fixed, each = self._footprint(tile, looped)
        slots = min(least, (self.room - fixed) // each) if each and self.room > fixed else 0
        if not each and fixed <= self.room:
            slots = 1
        if slots < 1:
            return None
        cycles = self._cycles(tile, own, slots, looped)
        return VectorSchedule(cut, tile, runs, overlap, cores, slots, ragged, cycles)

    def _pitch(self, lanes: int, ragged: int) -> int:
        width = lanes - ragged + self.block if ragged else lanes
        if not any(s.name == REDUCE for s in self.program.steps) and self._plain():
            return math.ceil(width / self.block) * self.block
        if width > 32:
            return math.ceil(width / 64) * 64
        return max(self.block, 8 << max(0, math.ceil(math.log2(width / 8))))

    def _plain(self) -> bool:
        """Whether all values have the innermost axis."""
        return all(form is None or self.lane in form for form in self.program.forms.values())

    def _runs(self, total: int, size: int, lanes: bool) -> tuple[tuple[Run, ...], bool]:
        count, rest = divmod(total, size)
        runs = [Run(0, count, size)] if count else []
        if not rest:
            return tuple(runs), False
        if lanes and runs and rest % self.block:
            rest = math.ceil(rest / self.block) * self.block
            return (*runs, Run(total - rest, 1, rest)), True
        return (*runs, Run(total - rest, 1, rest)), False

    def _footprint(self, tile: Tile, looped: frozenset[int]) -> tuple[int, int]:
        """Bytes of UB that are there once, and that each slot takes."""
        fixed = each = 0
        align = self.machine.vector.repeat_bytes
        for dtype, form, once in assign(self.program, looped).kinds:
            size = math.ceil(tile.bytes(dtype, form) / align) * align
            fixed, each = (fixed + size, each) if once else (fixed, each + size)
        for step in self.program.steps:
            if step.name == REDUCE:
                scratch = scratch_bytes(self.program, step, tile)
                if is_invariant(self.program.forms[step.sources[0]], looped):
                    fixed += scratch
                else:
                    each += scratch
        return fixed, each

    def _cycles(self, tile: Tile, own: int, slots: int, looped: frozenset[int]) -> int:
        """Estimated time of a core that has `own` tiles."""
        gm = self.machine.gm
        vector = sum(
            self._step_cycles(step, tile)
            for step in self.program.steps
            if not is_invariant(self.program.forms[step.result], looped)
        )
        read = self._moved(self.graph.inputs, tile, looped) / gm.read_bytes_per_cycle
        write = self._moved(self.graph.outputs, tile, looped) / gm.write_bytes_per_cycle
        start = self.machine.mte2.start_cycles + self.machine.mte3.start_cycles
        if slots == 1:
            return int(own * (vector + read + write + start))
        return int(start + read + write + own * max(vector, read + write))

    def _moved(self, values: list[int], tile: Tile, looped: frozenset[int]) -> int:
        held = {**self.program.loads, **self.program.stores}
        found = 0
        for number in values:
            form = self.space.of(number)
            if not is_invariant(form, looped):
                lanes = math.prod(tile.sizes[axis] for axis in form)
                found += lanes * DTYPES[held[number].dtype].itemsize
        return found

    def _step_cycles(self, step: Step, tile: Tile) -> float:
        fixed = self.machine.vector.fixed_cycles
        form = self.program.forms[step.result]
        if step.name == REDUCE:
            size = tile.bytes(step.result.dtype, self.program.forms[step.sources[0]])
            rows = math.prod(tile.shape(step.result.dtype, form)[:-1])
            return 12 * fixed + 2 * size / REPEAT_BYTES + 8 * math.ceil(rows / 16)
        widest = max((step.result, *step.sources), key=lambda v: DTYPES[v.dtype].itemsize)
        shape = tile.shape(widest.dtype, form)
        repeats = math.ceil(tile.bytes(widest.dtype, form) / REPEAT_BYTES)
        issues = math.ceil(repeats / MAX_REPEAT)
        lacking = [
            f for v in step.sources if (f := self.program.forms[v]) is not None and f != form
        ]
        if lacking or step.name == EXPAND:
            rows = math.prod(shape[:-1])
            issues = max(issues, min(rows, math.ceil(repeats / max(1, rows))))
        table = self.machine.vector.cycles_per_repeat
        per = table.get(f"{step.name}.{step.result.dtype}", table.get(step.name, 1))
        return issues * fixed + repeats * per


def scratch_bytes(program: TileProgram, step: Step, tile: Tile) -> int:
    """Bytes that a reduction needs besides its source and result."""
    source = tile.bytes(step.sources[0].dtype, program.forms[step.sources[0]])
    return math.ceil(source / 2 / REPEAT_BYTES) * REPEAT_BYTES + 4096
