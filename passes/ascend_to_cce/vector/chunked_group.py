"""Builds the kernel of a group whose reduced axes do not fit UB, see `schedule.vector.chunks`.

for tile of this core:
  results of the first stage = what leaves others as they are
  for chunk:                            cce.unroll
    copy the chunk of each input to UB
    the steps of the stage; results = results combined with those of the chunk
  steps on the results
  the same for the next stage ..
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.mlir import ir
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import TileStep, Value
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import unflatten
from davinci.passes.ascend_to_cce.vector.group import VectorBuilder
from davinci.passes.ascend_to_cce.vector.tile_builder import tile_buffer
from davinci.passes.builder import IndexLike, add, for_loop, mul, op, restride
from davinci.schedule.vector.chunks import ChunkLayout, Chunks, TileRun, part_of
from davinci.schedule.vector.phases import Phase, phases_of
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.schedule.vector.tile_layout import VectorTile, tile_of


class ChunkBuilder(VectorBuilder):
    """Builds a kernel that goes over chunks.

    Attributes:
        lasting: buffers of values that stay in UB from chunk to chunk.
    """

    def __init__(self, plan: VectorPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        super().__init__(plan, arguments, target)
        self.chunks: Chunks = self.schedule.chunks
        self.phases = phases_of(self.program, self.chunks.axes, keep=False)

    def _held(self, value: Value) -> ir.Value:
        number = self.layout.buffers[1].get(value) if self._in_chunk else None
        return self.lasting[value] if number is None else self.buffers[number]

    @property
    def _in_chunk(self) -> bool:
        return isinstance(self.layout, ChunkLayout)

    def _keep(self, value: Value) -> ir.Value:
        """A buffer for a value that stays in UB."""
        shape = self.layout.shape(value)
        self.lasting[value] = tile_buffer(TileBuffer(value.dtype, shape, True), 0)
        return self.lasting[value]

    def _allocate_once(self) -> None:
        for value in self.program.constants:
            self._keep(value)
        self._write_constants()

    def _tile(
        self, walked: list[int], outside: Sequence[IndexLike], start: IndexLike, size: int
    ) -> None:
        sizes = list(self.schedule.tile.sizes)
        if self.space.axes[self.schedule.cut].reduced:
            start = 0
        else:
            sizes[self.schedule.cut] = size
        starts = self._starts(walked, outside, start)
        tile, self.ragged = tile_of(self.space, self.program, sizes)
        whole, self.layout = self.layout, self.plan.layout(tile)
        for number in self.phases.inputs:
            self._keep(self.program.loads[number])
            self._load(number, starts)
        for phase in self.phases.phases:
            self._lasting_steps(phase.statistics)
            for step in phase.gathered:
                self._begin(step, self._keep(step.result))
            for run in self.chunks.runs:
                self._run(phase, run, starts, sizes)
        self._lasting_steps(self.phases.statistics)
        for number in self.phases.outputs:
            self._store(number, starts)
        self.layout = whole

    def _lasting_steps(self, steps: Sequence[TileStep]) -> None:
        for step in steps:
            self._keep(step.result)
            self._step(step, once=True)

    def _run(self, phase: Phase, run: TileRun, starts: list[IndexLike], sizes: list[int]) -> None:
        """Goes through neighbouring chunks of one size."""
        counts = [*(self.space.axes[axis].size for axis in self.chunks.walked), run.count]
        own = list(sizes)
        own[self.chunks.axis] = run.size
        _, ragged = tile_of(self.space, self.program, own)
        whole = self.layout
        tile = VectorTile(tuple(own), whole.tile.pitch)
        program = part_of(self.program, phase)
        layout = ChunkLayout(self.space, program, tile, self.plan.machine, larger=whole)

        def chunk(index: IndexLike) -> None:
            *outside, place = unflatten(index, counts)
            at = list(starts)
            for axis, number in zip(self.chunks.walked, outside, strict=True):
                at[axis] = number
            at[self.chunks.axis] = add(run.first, mul(place, run.size))
            self._chunk(phase, at)

        self.layout, before, self.ragged = layout, self.ragged, ragged
        total = math.prod(counts)
        if total == 1:
            chunk(0)
        else:
            with for_loop(0, total) as index:
                chunk(index)
            self._unroll(index, total, len(program.steps))
        self.layout, self.ragged = whole, before

    def _chunk(self, phase: Phase, starts: Sequence[IndexLike]) -> None:
        self._allocate(once=False)
        for number in phase.inputs:
            self._load(number, starts)
        for step in phase.steps:
            self._step(step, once=False)
        for step in phase.gathered:
            self._step(step, once=False)
            self._combine(step)
        for number in phase.outputs:
            self._store(number, starts)

    def _combine(self, step: TileStep) -> None:
        """Adds the result of a chunk to those before it."""
        size = [math.prod(self.layout.shape(step.result))]
        held = (self.lasting[step.result], self._held(step.result))
        total, part = (restride(buffer, size, [1]) for buffer in held)
        with serving(*step.members):
            op(f"cce.{REDUCTIONS[str(step.attributes['kind'])].step}", [total, part, total])
