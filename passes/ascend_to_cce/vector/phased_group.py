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
        where cores that share a tile meet:      they see their own pieces only
          copy what they tell to GM              one message each, behind the kernel's arguments
          the cores of the tile meet             cce.sync_cores
          copy the messages of all of them to UB, which statistics combine

Pieces are written out one after the other, so that `multi-buffer` can order them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from davinci.mlir import arith, ir
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import TileStep, Value, joined
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.exchange import (
    LANES,
    CoreMeetings,
    add_arguments,
    mark_meeting,
)
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    block_index,
    only_blocks,
    share_blocks,
    unflatten,
)
from davinci.passes.ascend_to_cce.vector.fold_axes import fold_axis
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder, tile_buffer
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    constant_index,
    is_equal,
    mul,
    only_if,
    op,
    restride,
    subview,
)
from davinci.passes.cce.unroll import ORDER
from davinci.schedule.vector.phased_layout import PhasedLayout
from davinci.schedule.vector.phases import Phase, phases_of
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.row_statistics import neutral
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.schedule.vector.tile_layout import VectorTile
from davinci.schedule.vector.tile_program import MEETING, RESCALE
from davinci.units import REPEAT_BYTES, round_up, row_major


class PhasedBuilder(TileBuilder):
    """Builds a kernel that goes over pieces."""

    def __init__(self, plan: VectorPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        super().__init__(plan, arguments)
        self.target = target
        axes = {self.schedule.axis}
        self.phases = phases_of(self.program, axes, keep=self.schedule.keep)
        self.whole = self.layout
        self.held = PhasedLayout(self.layout, self.phases, self.schedule.own)
        self.meetings: CoreMeetings | None = None
        self.sent: dict[tuple[Value, ...], ir.Value] = {}
        self.told: dict[Value, ir.Value] = {}
        self.core: ir.Value | None = None
        self.fixed: dict[Value, ir.Value] = {}
        self.rings: list[list[ir.Value]] = []
        self.of: dict[Value, int] = {}
        self.piece = 0

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        if self.schedule.meet:
            self._begin_exchange()
            mark_meeting(ir.InsertionPoint.current.block.owner, self.target)
            if self.target.most_blocks(self.schedule.cores) > self.schedule.cores:
                return self._beside_idle_blocks()
        return self._tiles()

    def _beside_idle_blocks(self) -> int:
        """As a phase of a launch that may have more blocks, which only meet."""
        assert self.meetings is not None and self.core is not None, "cores that do not meet"
        cores = self.schedule.cores
        with only_blocks(0, cores, self.core) as (branch, _):
            units = self._tiles()
        if self.ordered:
            branch.attributes[ORDER], self.ordered = ir.UnitAttr.get(), False
        idle = arith.CmpIOp(arith.CmpIPredicate.uge, self.core, constant_index(cores)).result
        with only_if(idle):
            self.meetings.only_meet(sum(bool(phase.told) for phase in self.phases.phases))
        return units

    def _tiles(self) -> int:
        """Builds the work of the blocks that have some; returns how many units of work it is."""
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
        last, meet = len(self.phases.phases) - 1, self.schedule.meet
        for number, phase in enumerate(self.phases.phases):
            self.of = self.held.ring_of[number]
            shared = meet or (number == last and self.schedule.share > 1)
            self._phase(phase, starts, part, shared)
            if phase.told:
                self._exchange(phase.told, part)
        self._on_statistics(self.phases.statistics)
        # Each core of a tile has all statistics after the meeting, so the first stores them.
        first = only_if(is_equal(part, 0)) if meet and self.phases.outputs else nullcontext()
        with first:
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
        own = schedule.equal // (schedule.share if shared else 1)
        self._on_statistics(phase.statistics)
        gathered = []
        for step in phase.gathered:
            buffer = tile_buffer(self.held.gathering(step), 0)
            self._begin(step, buffer)
            gathered.append(buffer)
        rest = schedule.equal < schedule.pieces
        only = only_if(is_equal(part, schedule.share - 1)) if shared else nullcontext()
        if rest and schedule.meet:  # first, as others wait for the core
            with only:
                self._rest(phase, starts, gathered)
        for piece in range(own):
            self.piece = piece
            self._piece(phase, piece, self._start(starts, part, piece), gathered)
        if rest and not schedule.meet:
            with only:
                self._rest(phase, starts, gathered)
        self.layout = self.whole
        self.ragged = 0 if self.schedule.axis == self.lane else self.schedule.ragged
        for step, buffer in zip(phase.gathered, gathered, strict=True):
            (source,) = step.sources
            self.fixed[source] = buffer
            with serving(*step.members):
                self._reduce(step, once=True)
            del self.fixed[source]

    def _rest(self, phase: Phase, starts: Sequence[IndexLike], gathered: list[ir.Value]) -> None:
        """The last piece, where it is another one than the others."""
        piece = self.schedule.pieces - 1
        self.piece = self.schedule.own - 1
        self._piece(phase, piece, self._start(starts, 0, piece), gathered)

    def _start(self, starts: Sequence[IndexLike], part: IndexLike, piece: int) -> list[IndexLike]:
        """Where a piece begins: each of the cores that share a tile begins with its own pieces, and
        goes round where it sees all."""
        schedule, found = self.schedule, list(starts)
        place: IndexLike = piece
        if schedule.share > 1 and piece < schedule.equal:
            first = add(mul(part, schedule.equal // schedule.share), piece)
            place = first
            if not schedule.meet:
                place = arith.RemUIOp(as_value(first), as_value(schedule.equal)).result
        found[schedule.axis] = mul(place, self.whole.tile.sizes[schedule.axis])
        return found

    def _piece(
        self, phase: Phase, piece: int, starts: Sequence[IndexLike], gathered: list[ir.Value]
    ) -> None:
        self.layout = self._layout_of(piece)
        for number in phase.inputs:
            self._load(number, starts)
        for step in phase.steps:
            self._step(step, once=True)
        for step, buffer in zip(phase.gathered, gathered, strict=True):
            with serving(*step.members):
                self._gather(step, buffer)
        for number in phase.outputs:
            self._store(number, starts)

    def _begin_exchange(self) -> None:
        """Arguments for counters, and for what each core has reduced."""
        cores, i32 = self.schedule.cores, ir.IntegerType.get_signless(32)
        kinds = [ir.MemRefType.get([cores, LANES], i32)]
        messages = [values for phase in self.phases.phases for values in by_type(phase.told)]
        for values in messages:
            size = sum(math.prod(self.whole.shape(value)) for value in values)
            kinds.append(ir.MemRefType.get([cores, size], element_type(values[0].dtype)))
        kernel = ir.InsertionPoint.current.block.owner
        lines, *sent = add_arguments(kernel, kinds)
        self.sent = dict(zip(messages, sent, strict=True))
        self.meetings = CoreMeetings(lines, self.schedule.share)
        self.core = block_index(self.target)

    def _exchange(self, told: Sequence[Value], part: IndexLike) -> None:
        """Tells the cores of a tile what each has of its pieces."""
        assert self.meetings is not None and self.core is not None, "cores that do not meet"
        share, messages = self.schedule.share, by_type(told)
        for values in messages:
            for value, first, size in self._places(values):
                with serving(*self.program.makers(value)):
                    own = subview(self.sent[values], [self.core, first], [1, size])
                    op("cce.copy", [restride(self._held(value), [1, size], [size, 1]), own])
        self.meetings.meet()
        first_core = arith.SubIOp(self.core, as_value(part)).result
        for values in messages:
            sent = self.sent[values]
            kind = ir.MemRefType(sent.type)
            shape = [share, kind.shape[1]]
            with serving(*joined(*map(self.program.makers, values))):
                found = alloc(shape, kind.element_type, "UB")
                op("cce.copy", [subview(sent, [first_core, 0], shape), found])
            for value, first, size in self._places(values):
                self.told[value] = subview(found, [0, first], [share, size])

    def _places(self, values: Sequence[Value]) -> Iterator[tuple[Value, int, int]]:
        """The statistics of a message, each with its first element there and their number."""
        first = 0
        for value in values:
            size = math.prod(self.whole.shape(value))
            yield value, first, size
            first += size

    def _build_step(self, step: TileStep, once: bool) -> None:
        if step.name not in MEETING:
            super()._build_step(step, once)
            return
        told, held = self.told[step.sources[0]], self._held(step.result)
        share, size = ir.MemRefType(told.type).shape
        if step.name == RESCALE:
            _, own, reference = step.sources
            scaled = alloc([share, size], element_type(step.result.dtype), "UB")
            alike = restride(self._held(reference), [share, size], [0, 1])
            op("cce.vsub", [self.told[own], alike, scaled])
            op("cce.vexp", [scaled, scaled])
            op("cce.vmul", [told, scaled, scaled])
            told = scaled
        result = restride(held, [1, size], [size, 1])
        fold_axis(str(step.attributes["kind"]), told, result, 0, 0)

    def _layout_of(self, piece: int) -> Any:
        """The layout of a piece: the last one may hold less."""
        schedule, tile = self.schedule, self.whole.tile
        inner = schedule.axis == self.lane
        self.ragged = schedule.ragged if not inner or piece == schedule.pieces - 1 else 0
        if piece < schedule.pieces - 1 or schedule.last == tile.sizes[schedule.axis]:
            return self.whole
        sizes = list(tile.sizes)
        sizes[schedule.axis] = schedule.last
        pitch = self._last_pitch() if inner else tile.pitch
        return self.plan.layout(VectorTile(tuple(sizes), pitch), self.whole)

    def _last_pitch(self) -> int:
        """Lanes of the only row of the last piece: whole units of what reads a statistic."""
        schedule, turns = self.schedule, [REPEAT_BYTES // 4]
        for value in self.whole.placed:
            form = self.program.forms[value]
            assert form is not None, "a statistic has axes"
            places = self.whole.places(form, value.dtype)
            turns.append(places.unit * block_lanes(value.dtype))
        width = schedule.last + (self.block - schedule.ragged if schedule.ragged else 0)
        return min(self.whole.tile.pitch, round_up(width, math.lcm(*turns)))

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


def by_type(values: Iterable[Value]) -> list[tuple[Value, ...]]:
    """Values that cores tell each other in one message each: those of one element type."""
    found: dict[str, list[Value]] = {}
    for value in values:
        found.setdefault(value.dtype, []).append(value)
    return [tuple(each) for each in found.values()]
