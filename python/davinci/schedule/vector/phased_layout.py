"""What lies in UB while a group is computed in phases: rings of buffers for pieces, statistics.

A value that is kept has a buffer for each piece. Of others, pieces take turns: three buffers if
they are moved, as many as the vector unit works on in turn if not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.isa.counters import LINE_BYTES
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.phases import Phase, Phases
from davinci.schedule.vector.tile_buffers import NOT_IN_PLACE, TileBuffer
from davinci.schedule.vector.tile_layout import CHAINS, SLOTS, TileLayout
from davinci.units import REPEAT_BYTES, round_up


@dataclass(frozen=True)
class PieceRing:
    """Buffers that pieces take turns on."""

    buffer: TileBuffer
    count: int


def held_bytes(layout: TileLayout, value: Value) -> int:
    """Bytes of a statistic as it lies in UB."""
    return math.prod(layout.shape(value)) * DTYPES[value.dtype].itemsize


class PhasedLayout:
    """What lies in UB while a group is computed in phases.

    Attributes:
        pieces: that a core sees.
        share: cores that meet to combine what each has reduced of its pieces; 1 if none do.
        rings: buffers of pieces.
        ring_of: of each phase, the number of the ring of each value with the axis.
    """

    def __init__(self, layout: TileLayout, phases: Phases, pieces: int, share: int = 1) -> None:
        self.layout, self.phases, self.pieces = layout, phases, pieces
        self.share = share
        self.rings: list[PieceRing] = []
        self.ring_of: list[dict[Value, int]] = []
        self._assign()

    def _assign(self) -> None:
        """Gives each value of a phase a ring of buffers: as many as transfers or chains need, or,
        of what is kept from phase to phase, one for each piece."""
        assignment = _RingAssignment(self.layout, self.phases)
        self.ring_of = [assignment.phase(i) for i in range(len(self.phases.phases))]
        for number, buffer in enumerate(assignment.found):
            count = SLOTS if number in assignment.moved else CHAINS
            if number in assignment.kept:
                count = self.pieces
            self.rings.append(PieceRing(buffer, min(count, self.pieces)))

    @cached_property
    def statistics(self) -> list[Value]:
        """Values without the axis: each has a buffer."""
        steps = [step for phase in self.phases.phases for step in (*phase.statistics,)]
        steps += [step for phase in self.phases.phases for step in phase.gathered]
        steps += self.phases.statistics
        loads = [self.layout.program.loads[number] for number in self.phases.inputs]
        return [*loads, *dict.fromkeys(step.result for step in steps)]

    def gathering(self, step: TileStep) -> TileBuffer:
        """The buffer in which a reduction gathers pieces."""
        (source,) = step.sources
        return TileBuffer(source.dtype, self.layout.shape(source), once=False)

    def footprint(self) -> int:
        """Bytes of UB."""
        layout = self.layout
        found = sum(ring.count * ring.buffer.bytes for ring in self.rings)
        values = [*layout.program.constants, *self.statistics]
        found += sum(TileBuffer(v.dtype, layout.shape(v), True).bytes for v in values)
        late = sum(map(layout.scratch_bytes, self.phases.statistics))
        if self.share > 1:
            found += round_up((self.share + 1) * LINE_BYTES, REPEAT_BYTES)
        return found + max(late, *map(self._bytes_of_phase, self.phases.phases))

    def _bytes_of_phase(self, phase: Phase) -> int:
        """Bytes of UB that a phase takes besides pieces and statistics; the next one has them."""
        layout = self.layout
        found = sum(self.gathering(step).bytes for step in phase.gathered)
        found += CHAINS * sum(layout.scratch_bytes(step) for step in phase.steps)
        if self.share > 1:  # what all cores tell, and the first half of that combined
            sizes = (held_bytes(layout, value) for value in phase.told)
            found += sum(
                round_up(n * size, REPEAT_BYTES)
                for size in sizes
                for n in (self.share, self.share // 2)
            )
        return found + sum(map(layout.scratch_bytes, (*phase.statistics, *phase.gathered)))


class _RingAssignment:
    """Gives values rings: a step's result takes over that of an equal source that ends; one that is
    not kept may take that of one that was."""

    def __init__(self, layout: TileLayout, phases: Phases) -> None:
        self.layout, self.phases = layout, phases
        self.found: list[TileBuffer] = []
        self.moved: set[int] = set()
        self.kept: set[int] = set()
        self.of_kept: dict[Value, int] = {}
        self.free: dict[tuple[TileBuffer, bool], list[int]] = {}
        self.end = {
            value: number
            for number, phase in enumerate(phases.phases)
            for value in self._reads(phase)
        }

    def _reads(self, phase: Phase) -> list[Value]:
        stores = self.layout.program.stores
        found = [source for step in (*phase.steps, *phase.gathered) for source in step.sources]
        return found + [stores[number] for number in phase.outputs]

    def phase(self, number: int) -> dict[Value, int]:
        """The number of the ring of each value that a phase has in UB, by its place in `found`.

        Phases are asked for in their order: a ring is free for a later value once the last phase
        that reads its value is done.
        """
        phase, program = self.phases.phases[number], self.layout.program
        of = dict(self.of_kept)
        last = {source: i for i, step in enumerate(phase.steps) for source in step.sources}
        late = [source for step in phase.gathered for source in step.sources]
        late += [program.stores[n] for n in phase.outputs]
        last |= dict.fromkeys(late, len(phase.steps))
        for value in (program.loads[n] for n in phase.inputs):
            self.moved.add(self._take(value, of))
        for i, step in enumerate(phase.steps):
            ends = [v for v in dict.fromkeys(step.sources) if last.get(v) == i]
            in_place = step.name not in NOT_IN_PLACE
            if not in_place:
                self._take(step.result, of)
            for source in ends:
                self._release(source, number, of)
            if in_place:
                self._take(step.result, of)
        self.moved |= {of[program.stores[n]] for n in phase.outputs}
        for value in dict.fromkeys(late):
            self._release(value, number, of)
        return of

    def _take(self, value: Value, of: dict[Value, int]) -> int:
        """The ring of a value, one of the same shape that is free or a new one.

        Args:
            of: rings of the phase's values by now.
        """
        keep = value in self.phases.kept
        buffer = TileBuffer(value.dtype, self.layout.shape(value), once=False)
        kinds = [(buffer, True)] if keep else [(buffer, True), (buffer, False)]
        free = next((self.free[kind] for kind in kinds if self.free.get(kind)), None)
        if free is None:
            free = [len(self.found)]
            self.found.append(buffer)
        of[value] = free.pop()
        if keep:
            self.kept.add(of[value])
            self.of_kept[value] = of[value]
        return of[value]

    def _release(self, value: Value, number: int, of: dict[Value, int]) -> None:
        """Frees the ring of a value in phase `number`, unless a later phase needs what is kept in
        it."""
        keep = value in self.phases.kept
        if value not in of or (keep and self.end[value] > number):
            return
        buffer = self.found[of[value]]
        self.free.setdefault((buffer, of[value] in self.kept), []).append(of[value])
