"""Schedules of groups whose reduced axis comes in pieces: rows that UB cannot hold several of.

The axes outside the one in pieces are walked one by one, those inside are whole; a core goes over
the pieces of one such tile in phases (`phases`). A piece of a value lies in a buffer of its own;
they take turns on the buffers of a **ring**. Where there are fewer tiles than cores, several cores
share a tile. Either each sees all pieces, and stores its part of them; or it sees its part only,
and cores **meet** at the end of each phase that reduces: each stores what it has reduced, and loads
and combines what all cores of its tile have.

    softmax 16x32768:  i0: 1 of 16; i1: 32768 in 16 pieces of 2048, kept; 2 cores a tile
    softmax 8x50257:   i0: 1 of 8; i1: 50257 in 9 pieces of 6272, kept; 4 cores a tile, which meet
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.operators.vector_program import JOIN, PART, TileStep, Value
from davinci.schedule.choices import PieceChoice
from davinci.schedule.graph import Graph
from davinci.schedule.meetings import can_meet, meeting_cycles
from davinci.schedule.vector.meeting_program import meeting_program
from davinci.schedule.vector.phased_layout import PhasedLayout, held_bytes
from davinci.schedule.vector.phases import Phase, Phases, phases_of
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.step_costs import (
    filling_cycles,
    issuing_cycles,
    moving_cycles,
    once_cycles,
    step_cycles,
    turns_cycles,
    waiting_cycles,
)
from davinci.schedule.vector.tile_layout import (
    CHAINS,
    COPIED_SHARES,
    SLOTS,
    TileLayout,
    VectorTile,
    row_pitch,
)
from davinci.schedule.vector.tile_program import MEETING, RESCALE, TileProgram
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, ceil_div, round_up

PIECE_BYTES = (8192, 16384, 32768, 49152)
"""Sizes of pieces that are tried."""

PIECES_OF_CORE = (1, 2, 4, 8)
"""Pieces of each of the cores that share a tile, which are tried."""

MOST_STEPS = 2048
"""Operations of a tile, above which a kernel would be too long."""


@dataclass(frozen=True)
class PhasedSchedule:
    """How a group is computed in phases.

    Attributes:
        axis: the one that comes in pieces.
        tile: sizes of a piece; 1 of the axes outside of `axis`.
        pieces: how many.
        last: size of the last one; the others are equal.
        keep: whether what later phases read is kept, or made again.
        cores: blocks of the launch.
        share: cores of a tile.
        meet: whether each of these sees its own pieces only, and they meet.
        ragged: lanes of the innermost axis behind its last whole block.
        cycles: estimated.
        spare: bytes of UB that each statistic may take to lie where it is used fastest.
        scalar: whether the scalar unit moves elements of a tile.
    """

    axis: int
    tile: VectorTile
    pieces: int
    last: int
    keep: bool
    cores: int
    share: int
    meet: bool
    ragged: int
    cycles: int
    spare: int
    scalar: bool

    @property
    def equal(self) -> int:
        """How many pieces are whole; where cores share a tile, each begins with its own of them."""
        return equal_pieces(self.pieces, self.tile.sizes[self.axis], self.last, self.ragged)

    @property
    def own(self) -> int:
        """The number of pieces that a core goes over, at most."""
        return pieces_seen(self.pieces, self.equal, self.share if self.meet else 1)

    @property
    def choice(self) -> PieceChoice:
        """The choice that the schedule was made of."""
        return PieceChoice(size=self.tile.sizes[self.axis], keep=self.keep, meet=self.meet)

    @property
    def tables(self) -> frozenset[Value]:
        """None: rows of the pieces come with them."""
        return frozenset()

    @property
    def beside(self) -> tuple[tuple[Value, ...], ...]:
        """None: pieces of what lies beside each other are moved apart."""
        return ()

    @property
    def uses(self) -> int:
        """How often rows are combined with a statistic: once in each piece."""
        return self.own

    def __str__(self) -> str:
        sizes = [f"i{axis}: {size}" for axis, size in enumerate(self.tile.sizes)]
        sizes[self.axis] += f" in {self.pieces} pieces, {'kept' if self.keep else 'made again'}"
        shared = f", {self.share} a tile" if self.share > 1 else ""
        return (
            f"{', '.join(sizes)}; {self.cores} cores{shared}{', which meet' if self.meet else ''}"
        )


def equal_pieces(pieces: int, size: int, last: int, ragged: int) -> int:
    """Pieces but the last one where it is shorter, or ends inside a block."""
    return pieces - (last < size or ragged > 0)


def pieces_seen(pieces: int, equal: int, seers: int) -> int:
    """Pieces that a core sees at most, of so many that share the equal ones; the last of them has
    what is left."""
    return equal // seers + pieces - equal


class PhasedChooser:
    """Weighs the phased schedules of one group.

    Args:
        meets: whether cores may meet in the kernel.
    """

    def __init__(
        self,
        graph: Graph,
        space: IterationSpace,
        program: TileProgram,
        machine: Machine,
        cores: int,
        meets: bool = False,
    ) -> None:
        self.graph, self.space, self.program = graph, space, program
        self.machine, self.cores = machine, cores
        self.meets = meets and can_meet(machine)
        self.room = machine.buffers.UB.bytes
        self.axis = next((i for i, axis in enumerate(space.axes) if axis.reduced), -1)

    def of(self, choice: PieceChoice) -> PhasedSchedule | None:
        """The schedule of a choice; None if there is none."""
        if not self._has_pieces or not 0 < choice.size < self.space.axes[self.axis].size:
            return None
        if choice.meet and not self.meets:
            return None
        program = self.program_of(choice.meet)
        return self._schedule(program, phases_of(program, {self.axis}, keep=choice.keep), choice)

    def program_of(self, meet: bool) -> TileProgram:
        """The program of cores that meet, or that of others."""
        return self._meeting_program if meet else self.program

    @cached_property
    def _meeting_program(self) -> TileProgram:
        return meeting_program(self.program, self.axis)

    @property
    def _has_pieces(self) -> bool:
        """Whether an axis is reduced whose pieces can be computed with, and no two blocks would
        write the same."""
        values = {*self.program.inputs, *(step.result for step in self.program.steps)}
        halves = any(step.name in (PART, JOIN) for step in self.program.steps)
        if self.axis < 0 or halves or any(value.dtype == "s64" for value in values):
            return False
        walked = set(range(self.axis))
        return not any(walked.difference(self.space.order[n]) for n in self.graph.outputs)

    def candidates(self) -> Iterator[PhasedSchedule]:
        """Schedules in phases of each size of pieces that fits, with pieces kept in UB between
        phases or loaded again, and, where they may, with cores that meet."""
        if not self._has_pieces:
            return
        for keep, meet in itertools.product((True, False), (False, True)[: 1 + self.meets]):
            program = self.program_of(meet)
            try:
                phases = phases_of(program, {self.axis}, keep=keep)
            except NoSpace:
                return
            for size in self._sizes():
                choice = PieceChoice(size=size, keep=keep, meet=meet)
                schedule = self._schedule(program, phases, choice)
                if schedule is not None:
                    yield schedule

    def _sizes(self) -> list[int]:
        """Sizes of pieces that are tried, in elements of the axis that is cut, the smallest first:
        about `PIECE_BYTES`, and whole numbers of pieces for each core that may share a tile."""
        axes = self.space.axes
        total = axes[self.axis].size
        inner = math.prod(axis.size for axis in axes[self.axis + 1 :])
        widest = max(DTYPES[value.dtype].itemsize for value in self.program.inputs)
        granule = REPEAT_BYTES // 2 if self.axis == self.program.lane else 1
        counts = {ceil_div(total * inner * widest, size) for size in PIECE_BYTES}
        found = {round_up(ceil_div(total, count), granule) for count in counts}
        # Whole numbers of pieces for each of the cores that may share a tile.
        cores = self.cores // math.prod(axis.size for axis in axes[: self.axis])
        found |= {total // (cores * n) // granule * granule for n in PIECES_OF_CORE if cores > 1}
        return sorted(size for size in found if 0 < size < total)

    def _schedule(
        self, program: TileProgram, phases: Phases, choice: PieceChoice
    ) -> PhasedSchedule | None:
        """The schedule of a choice, None if it does not fit or cannot be moved."""
        size, meet = choice.size, choice.meet
        axes, lane, block = self.space.axes, self.program.lane, self.program.row_block
        total = axes[self.axis].size
        pieces = ceil_div(total, size)
        last = total - (pieces - 1) * size
        ragged = axes[lane].size % block
        if ragged and (last if self.axis == lane else axes[lane].size) < block:
            return None
        tiles = math.prod(axis.size for axis in axes[: self.axis])
        equal = equal_pieces(pieces, size, last, ragged)
        share = self._share(phases, tiles, equal, meet)
        seen = pieces_seen(pieces, equal, share if meet else 1)
        operations = sum(len(phase.steps) + 3 for phase in phases.phases) * seen
        if pieces < 2 or operations > MOST_STEPS or (meet and share < 2):
            return None
        sizes = [1 if i < self.axis else axis.size for i, axis in enumerate(axes)]
        sizes[self.axis] = size
        width = sizes[lane] - ragged + block if ragged and self.axis != lane else sizes[lane]
        tile = VectorTile(tuple(sizes), row_pitch(width, program.lane_block))
        cores = min(tiles * share, self.cores)
        meeting = share if meet else 1
        try:
            layout = self._layout(program, phases, tile, seen, meeting)
            if layout is None:
                return None
            own = ceil_div(tiles * share, self.cores)
            part = equal / share + (last / size if equal < pieces else 0)
            turns = (part, part) if meet else (pieces, ceil_div(pieces, share))
            first, other = self._cycles(phases, layout, turns, meeting, cores)
            cycles = int(first + (own - 1) * other)
        except NoSpace:
            return None
        return PhasedSchedule(
            axis=self.axis,
            tile=tile,
            pieces=pieces,
            last=last,
            keep=choice.keep,
            cores=cores,
            share=share,
            meet=meet,
            ragged=ragged,
            cycles=cycles,
            spare=layout.spare,
            scalar=bool(layout.moved_by_scalars),
        )

    def _layout(
        self,
        program: TileProgram,
        phases: Phases,
        tile: VectorTile,
        pieces: int,
        share: int,
    ) -> TileLayout | None:
        """The layout with statistics where they are used fastest in the room that is left; None if
        there is no room."""
        for spare in (*(self.room // parts for parts in COPIED_SHARES), BLOCK_BYTES):
            args = self.space, program, tile, self.machine
            layout = TileLayout(*args, spare=spare, uses=pieces)
            if PhasedLayout(layout, phases, pieces, share).footprint() <= self.room:
                return layout
        return None

    def _share(self, phases: Phases, tiles: int, equal: int, meet: bool) -> int:
        """Cores that share a tile. Only what the last phase stores can be, unless they meet."""
        early = any(phase.outputs for phase in phases.phases[:-1])
        if not meet and (early or phases.outputs):
            return 1
        most = max(1, self.cores // tiles)
        return max(n for n in range(1, most + 1) if equal % n == 0)

    def _cycles(
        self,
        phases: Phases,
        layout: TileLayout,
        pieces: tuple[float, float],
        share: int,
        cores: int,
    ) -> tuple[float, float]:
        """Estimated time of a core's first tile, with `cores` at work, and of each other one: what
        a core has not loaded of its share of the memory while it folded the only phase's results,
        it loads faster afterwards, as fast as its port can. What is made again is loaded from the
        L2 as long as this holds what all of them work on; of a tile that cores share, a core brings
        its part there, and reads what the others have brought.

        Args:
            pieces: that a core sees where it sees all that it may, and where only its own.
            share: cores that meet, of a tile; 1 if none do.
        """
        machine, (seen, own) = self.machine, pieces
        wait = machine.sync.barrier_cycles
        total, spared = float(prices.ends(machine)), 0.0
        loaded: set[int] = set()
        for number, phase in enumerate(phases.phases):
            count = own if number == len(phases.phases) - 1 else seen
            apart = wait / min(max(1, count), CHAINS)  # a step and the same of the next piece
            vector = sum(step_cycles(step, layout) + apart for step in phase.steps)
            for step in phase.gathered:
                size = math.prod(layout.shape(step.sources[0]))
                repeats = size * DTYPES[step.sources[0].dtype].itemsize / REPEAT_BYTES
                vector += prices.vector(machine, "", "", repeats)
            vector += filling_cycles((self.program.loads[n] for n in phase.inputs), layout)
            write = moving_cycles(phase.outputs, layout, cores, load=False)
            write += issuing_cycles(phase.outputs, layout, load=False)
            issued = issuing_cycles(phase.inputs, layout, load=True)
            for turns, known in ((own, loaded), (count - own, {*phase.inputs})):
                read = moving_cycles(phase.inputs, layout, cores, load=True, known=known)
                read += issued
                total += turns_cycles(machine, turns, vector, read, write, SLOTS)
                alone = moving_cycles(phase.inputs, layout, 1, load=True, known=known) + issued
                spared += turns * max(0.0, read - max(vector, alone, write))
            if self._in_l2(phase.inputs, layout, own * cores):
                loaded.update(phase.inputs)
            total += waiting_cycles(phase.gathered, layout)
            total += self._statistics_cycles(phase.statistics, layout, share)
            if phase.told:
                total += self._exchange_cycles(phase, layout, share)
        total += self._statistics_cycles(phases.statistics, layout, share)
        for once in (False, True):
            total += once_cycles(phases.inputs, phases.outputs, layout, cores, once)
        if len(phases.phases) > 1:  # later ones wait for what was gathered, not for the memory
            return total, total
        waited = prices.ends(machine) + waiting_cycles(phases.phases[0].gathered, layout)
        waited += self._statistics_cycles(phases.statistics, layout, share)
        return total, total - min(spared, waited)

    def _exchange_cycles(self, phase: Phase, layout: TileLayout, share: int) -> float:
        """Estimated time in which the cores of a tile tell each other what each has reduced."""
        machine = self.machine
        told = sum(held_bytes(layout, value) for value in phase.told)
        meeting = meeting_cycles(machine, share, share * told)
        return meeting + machine.sync.flag_cycles + prices.writing(machine).result(told)

    def _statistics_cycles(
        self, steps: Sequence[TileStep], layout: TileLayout, share: int
    ) -> float:
        """Estimated time of steps on statistics, with those that combine what cores of a tile have
        told each other: in halves, after three steps on all of it where it is rescaled."""
        machine, levels = self.machine, share.bit_length()
        total = waiting_cycles((step for step in steps if step.name not in MEETING), layout)
        for step in (step for step in steps if step.name in MEETING):
            repeats = share * held_bytes(layout, step.result) / REPEAT_BYTES
            counts = [repeats] * 3 * (step.name == RESCALE) + [repeats / levels] * levels
            each = (prices.vector(machine, "", "", count) for count in counts)
            total += sum(each) + len(counts) * machine.sync.barrier_cycles
        return total

    def _in_l2(self, values: tuple[int, ...], layout: TileLayout, pieces: float) -> bool:
        """Whether the L2 holds so many pieces of some values."""
        loads = self.program.loads
        held = [math.prod(layout.shape(loads[n])) * DTYPES[loads[n].dtype].itemsize for n in values]
        return pieces * sum(held) <= self.machine.l2.bytes
