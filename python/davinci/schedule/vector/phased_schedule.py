"""Schedules of groups whose reduced axis comes in pieces: rows that UB cannot hold several of.

The axes outside the one in pieces are walked one by one, those inside are whole; a core goes over
the pieces of one such tile in phases (`phases`). A piece of a value lies in a buffer of its own;
they take turns on the buffers of a **ring**. Where there are fewer tiles than cores, several cores
share a tile: each sees all pieces, and stores its part of them.

    softmax 16x32768:  i0: 1 of 16; i1: 32768 in 16 pieces of 2048, kept; 2 cores a tile
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.operators.vector_program import JOIN, PART, Value
from davinci.schedule.choices import PieceChoice
from davinci.schedule.graph import Graph
from davinci.schedule.vector.phased_layout import PhasedLayout
from davinci.schedule.vector.phases import Phases, phases_of
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.step_costs import (
    filling_cycles,
    inner_waits,
    issuing_cycles,
    moving_cycles,
    step_cycles,
    turns_cycles,
)
from davinci.schedule.vector.tile_layout import COPIED_SHARES, SLOTS, TileLayout, VectorTile
from davinci.schedule.vector.tile_program import TileProgram
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
    ragged: int
    cycles: int
    spare: int
    scalar: bool

    @property
    def equal(self) -> int:
        """How many pieces are whole; where cores share a tile, each begins with its own of them."""
        return equal_pieces(self.pieces, self.tile.sizes[self.axis], self.last, self.ragged)

    @property
    def choice(self) -> PieceChoice:
        """The choice that the schedule was made of."""
        return PieceChoice(size=self.tile.sizes[self.axis], keep=self.keep)

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
        return self.pieces

    def __str__(self) -> str:
        sizes = [f"i{axis}: {size}" for axis, size in enumerate(self.tile.sizes)]
        sizes[self.axis] += f" in {self.pieces} pieces, {'kept' if self.keep else 'made again'}"
        shared = f", {self.share} a tile" if self.share > 1 else ""
        return f"{', '.join(sizes)}; {self.cores} cores{shared}"


def equal_pieces(pieces: int, size: int, last: int, ragged: int) -> int:
    """Pieces but the last one where it is shorter, or ends inside a block."""
    return pieces - (last < size or ragged > 0)


class PhasedChooser:
    """Weighs the phased schedules of one group."""

    def __init__(
        self,
        graph: Graph,
        space: IterationSpace,
        program: TileProgram,
        machine: Machine,
        cores: int,
    ) -> None:
        self.graph, self.space, self.program = graph, space, program
        self.machine, self.cores = machine, cores
        self.room = machine.buffers.UB.bytes
        self.axis = next((i for i, axis in enumerate(space.axes) if axis.reduced), -1)

    def of(self, choice: PieceChoice) -> PhasedSchedule | None:
        """The schedule of a choice; None if there is none."""
        if not self._has_pieces or not 0 < choice.size < self.space.axes[self.axis].size:
            return None
        phases = phases_of(self.program, {self.axis}, keep=choice.keep)
        return self._schedule(phases, choice.keep, choice.size)

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
        if not self._has_pieces:
            return
        for keep in (True, False):
            try:
                phases = phases_of(self.program, {self.axis}, keep=keep)
            except NoSpace:
                return
            for size in self._sizes():
                schedule = self._schedule(phases, keep, size)
                if schedule is not None:
                    yield schedule

    def _sizes(self) -> list[int]:
        """Sizes of pieces."""
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

    def _schedule(self, phases: Phases, keep: bool, size: int) -> PhasedSchedule | None:
        """The schedule with pieces of `size`, None if it does not fit or cannot be moved."""
        axes, lane, block = self.space.axes, self.program.lane, self.program.row_block
        total = axes[self.axis].size
        pieces = ceil_div(total, size)
        last = total - (pieces - 1) * size
        ragged = axes[lane].size % block
        if ragged and (last if self.axis == lane else axes[lane].size) < block:
            return None
        operations = sum(len(phase.steps) + 3 for phase in phases.phases) * pieces
        if pieces < 2 or operations > MOST_STEPS:
            return None
        sizes = [1 if i < self.axis else axis.size for i, axis in enumerate(axes)]
        sizes[self.axis] = size
        width = sizes[lane] - ragged + block if ragged and self.axis != lane else sizes[lane]
        tile = VectorTile(tuple(sizes), round_up(width, REPEAT_BYTES // 4))
        tiles = math.prod(axis.size for axis in axes[: self.axis])
        share = self._share(phases, tiles, equal_pieces(pieces, size, last, ragged))
        try:
            layout = self._layout(phases, tile, pieces)
            if layout is None:
                return None
            own = ceil_div(tiles * share, self.cores)
            cores = min(tiles * share, self.cores)
            cycles = int(own * self._cycles(phases, layout, pieces, share, cores))
        except NoSpace:
            return None
        return PhasedSchedule(
            axis=self.axis,
            tile=tile,
            pieces=pieces,
            last=last,
            keep=keep,
            cores=cores,
            share=share,
            ragged=ragged,
            cycles=cycles,
            spare=layout.spare,
            scalar=bool(layout.moved_by_scalars),
        )

    def _layout(self, phases: Phases, tile: VectorTile, pieces: int) -> TileLayout | None:
        """The layout with statistics where they are used fastest in the room that is left; None if
        there is no room."""
        for spare in (*(self.room // share for share in COPIED_SHARES), BLOCK_BYTES):
            args = self.space, self.program, tile, self.machine
            layout = TileLayout(*args, spare=spare, uses=pieces)
            if PhasedLayout(layout, phases, pieces).footprint() <= self.room:
                return layout
        return None

    def _share(self, phases: Phases, tiles: int, equal: int) -> int:
        """Cores that share a tile: only what the last phase stores can be shared."""
        early = any(phase.outputs for phase in phases.phases[:-1])
        if early or phases.outputs:
            return 1
        most = max(1, self.cores // tiles)
        return max(n for n in range(1, most + 1) if equal % n == 0)

    def _cycles(
        self, phases: Phases, layout: TileLayout, pieces: int, share: int, cores: int
    ) -> float:
        """Estimated time of a tile, with `cores` at work. What is made again is loaded from the L2
        as long as this holds what all of them work on; of a tile that cores share, a core brings
        its part there, and reads what the others have brought."""
        machine = self.machine
        wait = machine.sync.barrier_cycles
        total = float(prices.ends(machine))
        loaded: set[int] = set()
        for number, phase in enumerate(phases.phases):
            shared = number == len(phases.phases) - 1
            count = ceil_div(pieces, share) if shared else pieces
            vector = sum(step_cycles(step, layout) + wait / 2 for step in phase.steps)
            for step in phase.gathered:
                size = math.prod(layout.shape(step.sources[0]))
                repeats = size * DTYPES[step.sources[0].dtype].itemsize / REPEAT_BYTES
                vector += prices.vector(machine, "", "", repeats)
            vector += filling_cycles((self.program.loads[n] for n in phase.inputs), layout)
            write = moving_cycles(phase.outputs, layout, cores, load=False)
            write += issuing_cycles(phase.outputs, layout, load=False)
            issued = issuing_cycles(phase.inputs, layout, load=True)
            own = count if shared else ceil_div(pieces, share)
            for turns, known in ((own, loaded), (count - own, {*phase.inputs})):
                read = moving_cycles(phase.inputs, layout, cores, load=True, known=known)
                read += issued
                total += turns_cycles(machine, turns, vector, read, write, SLOTS)
            if self._in_l2(phase.inputs, layout, pieces * cores // share):
                loaded.update(phase.inputs)
            for step in (*phase.gathered, *phase.statistics):
                total += step_cycles(step, layout) + wait * (1 + inner_waits(step, layout))
        for step in phases.statistics:
            total += step_cycles(step, layout) + wait * (1 + inner_waits(step, layout))
        for values, load in ((phases.inputs, True), (phases.outputs, False)):
            for once in (False, True):
                total += moving_cycles(values, layout, cores, load, once)
                total += issuing_cycles(values, layout, load, once)
        return total

    def _in_l2(self, values: tuple[int, ...], layout: TileLayout, pieces: int) -> bool:
        """Whether the L2 holds so many pieces of some values."""
        loads = self.program.loads
        held = [math.prod(layout.shape(loads[n])) * DTYPES[loads[n].dtype].itemsize for n in values]
        return pieces * sum(held) <= self.machine.l2.bytes
