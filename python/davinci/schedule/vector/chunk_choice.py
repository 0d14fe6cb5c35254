"""Schedules of groups whose reduced axes do not fit UB, chosen by estimated cycles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from davinci.machine import Machine, prices
from davinci.operators.vector_program import TileStep
from davinci.schedule.vector.chunks import ChunkLayout, Chunks, TileRun, lasting, part_of
from davinci.schedule.vector.phases import Phases, phases_of
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.step_costs import moving_cycles, step_cycles, turns_cycles
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.schedule.vector.tile_layout import SLOTS, TileLayout, tile_of
from davinci.schedule.vector.tile_program import TileProgram
from davinci.units import REPEAT_BYTES, round_up

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096)
"""Numbers of chunks that are tried, in turn until they fit."""


class ChunkChoice:
    """Weighs the chunks of one group."""

    def __init__(self, space: IterationSpace, program: TileProgram, machine: Machine) -> None:
        self.space, self.program, self.machine = space, program, machine
        self.lane = program.lane
        self._phases: dict[frozenset[int], Phases] = {}

    def best(self, sizes: Sequence[int], cores: int) -> tuple[Chunks, list[int], int, int] | None:
        """Chunks for a tile that has `sizes` of the axes that are not reduced; the sizes of a
        chunk, buffers of what it moves, and cycles of a tile. None if nothing fits."""
        found = min(self._candidates(sizes, cores), key=lambda choice: choice[-1], default=None)
        return found

    def _candidates(
        self, sizes: Sequence[int], cores: int
    ) -> Iterator[tuple[Chunks, list[int], int, int]]:
        """For each reduced axis that is cut, those outside it walked, the fewest chunks that fit:
        chunks, sizes of a tile, slots and cycles.

        Args:
            sizes: of a tile that has all of the reduced axes.
        """
        axes = self.space.axes
        reduced = [i for i, axis in enumerate(axes) if axis.reduced and axis.size > 1]
        for place, axis in enumerate(reduced):
            walked = tuple(reduced[:place])
            for count in COUNTS:
                runs = self._runs(axis, count)
                if runs is None:
                    continue
                chunk = list(sizes)
                for i in walked:
                    chunk[i] = 1
                chunk[axis] = max(run.size for run in runs)
                choice = self._weighed(Chunks(axis, walked, runs), chunk, cores)
                if choice is not None:
                    yield choice
                    break

    def _runs(self, axis: int, count: int) -> tuple[TileRun, ...] | None:
        """About `count` chunks of an axis; of lanes whole repeats, none shorter than a block."""
        total = self.space.axes[axis].size
        lanes = axis == self.lane
        granule = REPEAT_BYTES // 4 if lanes else 1
        size = round_up(math.ceil(total / count), granule)
        if size >= total:
            return (TileRun(0, 1, total),) if count == 1 else None
        whole, rest = divmod(total, size)
        if not rest:
            return (TileRun(0, whole, size),)
        if lanes and rest < self.program.row_block:
            return None
        return TileRun(0, whole, size), TileRun(whole * size, 1, rest)

    def _weighed(
        self, chunks: Chunks, sizes: list[int], cores: int
    ) -> tuple[Chunks, list[int], int, int] | None:
        """Chunks with the sizes of a tile, the most slots that fit UB and the cycles of a tile;
        None where none fits, or nothing can be reduced by chunks."""
        try:
            if chunks.axes not in self._phases:
                self._phases[chunks.axes] = phases_of(self.program, chunks.axes, keep=False)
            phases = self._phases[chunks.axes]
            tile, _ = tile_of(self.space, self.program, sizes)
            whole = TileLayout(self.space, self.program, tile, self.machine)
            if not all(map(whole.is_run, (*self.program.loads, *self.program.stores))):
                return None
            layouts = [
                ChunkLayout(self.space, part_of(self.program, phase), tile, self.machine)
                for phase in phases.phases
            ]
            room = self.machine.buffers.UB.bytes - self._held(phases, whole)
            for slots in range(SLOTS, 0, -1):
                if max(layout.footprint(slots) for layout in layouts) <= room:
                    cycles = self._cycles(chunks, phases, layouts, whole, cores, slots)
                    return chunks, sizes, slots, cycles
        except NoSpace:
            pass
        return None

    def _held(self, phases: Phases, layout: TileLayout) -> int:
        """Bytes of what stays in UB."""
        values = dict.fromkeys((*lasting(self.program, phases), *self.program.constants))
        found = sum(TileBuffer(v.dtype, layout.shape(v), True).bytes for v in values)
        steps = [step for phase in phases.phases for step in phase.statistics]
        return found + sum(map(layout.scratch_bytes, (*steps, *phases.statistics)))

    def _cycles(
        self,
        chunks: Chunks,
        phases: Phases,
        layouts: list[ChunkLayout],
        whole: TileLayout,
        cores: int,
        slots: int,
    ) -> int:
        """Cycles of a tile that is computed chunk by chunk, phase after phase.

        Args:
            layouts: of a chunk in each phase.
            whole: layout of what stays between chunks.
            cores: that share the memory.
        """
        barrier = self.machine.sync.barrier_cycles
        start = prices.ends(self.machine)
        count = sum(run.count for run in chunks.runs)
        count *= math.prod(self.space.axes[axis].size for axis in chunks.walked)

        def vector(steps: Sequence[TileStep], layout: TileLayout) -> float:
            return sum(step_cycles(step, layout) + barrier / 2 for step in steps)

        total = vector(phases.statistics, whole)
        for phase, layout in zip(phases.phases, layouts, strict=True):
            work = vector((*layout.program.steps, *phase.gathered), layout)
            read = moving_cycles(phase.inputs, layout, cores, load=True)
            write = moving_cycles(phase.outputs, layout, cores, load=False)
            turns = count * (work + read + write + start)
            if slots > 1:
                turns = turns_cycles(self.machine, count, work, read, write, slots)
            total += start + read + write + turns + vector(phase.statistics, whole)
        return int(total)
