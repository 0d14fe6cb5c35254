"""Builds the kernel of a group whose reduced axis comes in pieces, from its schedule.

    for each tile of the block:
      for each phase:
        statistics that are known by now
        for each piece:
          copy the piece of each input to UB       buffers of a ring in turn
          the steps of the program, on the piece
          gather what is reduced                   lanes of the piece into lanes of a buffer
          copy the piece of each output to GM
        fold what was gathered to statistics

Pieces are written out one after the other, so that `multi-buffer` can order them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from davinci.mlir import arith, ir
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import TileStep, Value
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import AlikeWork, share_blocks, unflatten
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder, tile_buffer
from davinci.passes.builder import IndexLike, add, as_value, for_loop, mul, op, restride
from davinci.schedule.vector.phased_layout import PhasedLayout
from davinci.schedule.vector.phases import Phase, phases_of
from davinci.schedule.vector.row_statistics import neutral
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.schedule.vector.tile_layout import VectorTile
from davinci.units import row_major


class PhasedBuilder(TileBuilder):
    """Builds a kernel that goes over pieces."""

    def __init__(self, plan: VectorPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        super().__init__(plan, arguments, target)
        axes = {self.schedule.axis}
        self.phases = phases_of(self.program, axes, keep=self.schedule.keep)
        self.whole = self.layout
        self.held = PhasedLayout(self.layout, self.phases, self.schedule.pieces)
        self.fixed: dict[Value, ir.Value] = {}
        self.rings: list[list[ir.Value]] = []
        self.of: dict[Value, int] = {}
        self.piece = 0

    def build(self) -> int:
        self._fix(self.program.constants)
        self._write_constants()
        schedule = self.schedule
        walked = [axis.size for axis in self.space.axes[: schedule.axis]]
        tiles = math.prod(walked) * schedule.share

        def build(index: IndexLike) -> None:
            *outside, part = unflatten(index, [*walked, schedule.share])
            self._phases(outside, part)

        self.ordered = tiles <= schedule.cores
        return share_blocks([AlikeWork(tiles, build)], replace(self.target, cores=schedule.cores))

    def _fix(self, values: Any) -> None:
        """A buffer for each value without the axis."""
        for value in values:
            buffer = TileBuffer(value.dtype, self.whole.shape(value), once=True)
            self.fixed[value] = tile_buffer(buffer, 0)

    def _phases(self, outside: Sequence[IndexLike], part: IndexLike) -> None:
        self._fix(self.held.statistics)
        self.rings = [
            [tile_buffer(ring.buffer, 0) for _ in range(ring.count)] for ring in self.held.rings
        ]
        starts = [*outside, *(0 for _ in self.space.axes[self.schedule.axis :])]
        for number in self.phases.inputs:
            self._load(number, starts)
        last = len(self.phases.phases) - 1
        for number, phase in enumerate(self.phases.phases):
            self.of = self.held.ring_of[number]
            self._phase(phase, starts, part, shared=number == last and self.schedule.share > 1)
        self._on_statistics(self.phases.statistics)
        for number in self.phases.outputs:
            self._store(number, starts)

    def _on_statistics(self, steps: Sequence[TileStep]) -> None:
        self.layout = self.whole
        for step in steps:
            self._step(step, once=True)

    def _phase(
        self, phase: Phase, starts: Sequence[IndexLike], part: IndexLike, shared: bool
    ) -> None:
        """One turn over the pieces.

        Args:
            part: number of the core among those that share the tile.
            shared: whether each core does its own pieces only; the last one what is left.
        """
        schedule = self.schedule
        self._on_statistics(phase.statistics)
        gathered = []
        for step in phase.gathered:
            buffer = tile_buffer(self.held.gathering(step), 0)
            self._begin(step, buffer)
            gathered.append(buffer)
        for piece in range(schedule.equal // (schedule.share if shared else 1)):
            self._piece(phase, piece, self._start(starts, part, piece), gathered)
        if schedule.equal < schedule.pieces:
            # Runs once, or not at all.
            only = for_loop(schedule.share - 1, add(part, 1)) if shared else nullcontext()
            with only:
                piece = schedule.pieces - 1
                self._piece(phase, piece, self._start(starts, 0, piece), gathered)
        self.layout = self.whole
        self.ragged = 0 if self.schedule.axis == self.lane else self.schedule.ragged
        for step, buffer in zip(phase.gathered, gathered, strict=True):
            (source,) = step.sources
            self.fixed[source] = buffer
            with serving(*step.members):
                self._reduce(step, once=True)
            del self.fixed[source]

    def _start(self, starts: Sequence[IndexLike], part: IndexLike, piece: int) -> list[IndexLike]:
        """Where a piece begins: each of the cores that share a tile begins with its own pieces."""
        schedule, found = self.schedule, list(starts)
        place: IndexLike = piece
        if schedule.share > 1 and piece < schedule.equal:
            first = add(mul(part, schedule.equal // schedule.share), piece)
            place = arith.RemUIOp(as_value(first), as_value(schedule.equal)).result
        found[schedule.axis] = mul(place, self.whole.tile.sizes[schedule.axis])
        return found

    def _piece(
        self, phase: Phase, piece: int, starts: Sequence[IndexLike], gathered: list[ir.Value]
    ) -> None:
        self.piece, self.layout = piece, self._layout_of(piece)
        for number in phase.inputs:
            self._load(number, starts)
        for step in phase.steps:
            self._step(step, once=True)
        for step, buffer in zip(phase.gathered, gathered, strict=True):
            with serving(*step.members):
                self._gather(step, buffer)
        for number in phase.outputs:
            self._store(number, starts)

    def _layout_of(self, piece: int) -> Any:
        """The layout of a piece: the last one may hold less."""
        schedule, tile = self.schedule, self.whole.tile
        inner = schedule.axis == self.lane
        self.ragged = schedule.ragged if not inner or piece == schedule.pieces - 1 else 0
        if piece < schedule.pieces - 1 or schedule.last == tile.sizes[schedule.axis]:
            return self.whole
        sizes = list(tile.sizes)
        sizes[schedule.axis] = schedule.last
        return self.plan.layout(VectorTile(tuple(sizes), tile.pitch), self.whole)

    def _held(self, value: Value) -> ir.Value:
        if value in self.fixed:
            return self.fixed[value]
        ring = self.rings[self.of[value]]
        buffer = ring[self.piece % len(ring)]
        shape = self.layout.shape(value)
        if tuple(buffer.type.shape) == shape:
            return buffer
        return restride(buffer, shape, row_major(shape))

    def _gather(self, step: TileStep, buffer: ir.Value) -> None:
        """buffer = buffer op piece, lane by lane; lanes behind the piece's change nothing."""
        (source,) = step.sources
        kind, dtype = str(step.attributes["kind"]), source.dtype
        held, shape = self._held(source), self.layout.shape(source)
        size = math.prod(shape)
        if self.schedule.axis == self.lane:
            rows = restride(held, [size // shape[-1], shape[-1]], [shape[-1], 1])
            for first, last in self._void(shape[-1]):
                fill_lanes(dtype, rows, first, last, neutral(kind, dtype))
        operands = [restride(x, [size], [1]) for x in (buffer, held, buffer)]
        op(f"cce.{REDUCTIONS[kind].step}", operands)
