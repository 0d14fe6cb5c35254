"""What a tile of a program is, and what the vector unit takes for it, however many cores share
the tiles: kernels are weighed on one number of cores after the other, with mostly the same tiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.graph import Graph
from davinci.schedule.vector.interleaving import waiting
from davinci.schedule.vector.row_parts import in_tile
from davinci.schedule.vector.row_siblings import Beside
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.step_costs import (
    cycles_of_scalars,
    filling_cycles,
    step_cycles,
)
from davinci.schedule.vector.tile_layout import (
    CHAINS,
    COPIED_SHARES,
    TABLE_SHARE,
    TileLayout,
    tile_of,
)
from davinci.schedule.vector.tile_program import VIEW, TileProgram


@dataclass(frozen=True)
class HeldTile:
    """A tile with as many buffers as fit UB.

    Attributes:
        slots: buffers of what is moved.
        chains: buffers of what only the vector unit sees.
        once: cycles of the vector unit for what is the same for all tiles.
        each: its cycles for every tile.
    """

    slots: int
    chains: int
    layout: TileLayout
    once: float
    each: float


class MovableTile:
    """A tile that can be moved, in all numbers of buffers.

    Attributes:
        ragged: lanes behind the last whole block of its rows.
    """

    def __init__(
        self, layout: TileLayout, ragged: int, alike: Sequence[tuple[TileStep, int]]
    ) -> None:
        self.layout, self.ragged = layout, ragged
        self._alike, self._room = alike, layout.machine.buffers.UB.bytes
        self._held: dict[int, list[HeldTile]] = {}

    def held(self, most: int) -> list[HeldTile]:
        """The numbers of buffers that fit UB, at most `most` of what is moved.

        With two of what only the vector unit sees it takes tiles in turn and does not wait for its
        own results; with one there may be room for one more of the others, so that loads come
        earlier.

        Raises:
            NoSpace: statistics cannot lie beside the rows that they are combined with.
        """
        if most not in self._held:
            self._held[most] = [self._with(*numbers) for numbers in self._numbers(most)]
        return self._held[most]

    def _numbers(self, most: int) -> list[tuple[int, int]]:
        """Pairs of slots and chains that fit UB, at most `most` slots: fewer chains only where more
        slots fit then."""
        found: list[tuple[int, int]] = []
        for chains in range(CHAINS, 0, -1):
            numbers = range(most, 0, -1)
            fits = (n for n in numbers if self.layout.footprint(n, chains) <= self._room)
            slots = next(fits, 0)
            if slots > max((n for n, _ in found), default=0):
                found.append((slots, min(slots, chains)))
        return found

    def _with(self, slots: int, chains: int) -> HeldTile:
        """The tile with so many slots and chains, and its vector cycles: those once a core and
        those of each tile."""
        layout = self._with_spare(slots, chains)
        steps = [s for s in layout.program.steps if layout.width(s) or s.name == VIEW]
        barrier = layout.machine.sync.barrier_cycles
        once = each = 0.0
        for step, count in self._alike:
            cycles = count * step_cycles(step, layout)
            if layout.once(step.result):
                once += cycles
            else:
                each += cycles
        moved = (v for v in layout.program.loads.values() if not layout.once(v))
        each += cycles_of_scalars(layout) + filling_cycles(moved, layout)
        once += waiting([step for step in steps if layout.once(step.result)]) * barrier
        waits = waiting([step for step in steps if not layout.once(step.result)])
        each += waits * barrier / chains
        return HeldTile(slots, chains, layout, once, each)

    def _with_spare(self, slots: int, chains: int) -> TileLayout:
        """The layout with statistics where they are used fastest in the room that is left."""
        if not self.layout.placed:
            return self.layout
        wider = (self.layout.with_spare(self._room // share) for share in COPIED_SHARES)
        fits = (each for each in wider if each.footprint(slots, chains) <= self._room)
        return next(fits, self.layout)


class ProgramTiles:
    """The tiles of a program, each of which is made once.

    Args:
        beside: values that lie beside each other wherever tiles have whole rows.
        alike: a step of each kind and how many there are.
    """

    def __init__(
        self,
        graph: Graph,
        space: IterationSpace,
        program: TileProgram,
        beside: Sequence[Beside],
        alike: Sequence[tuple[TileStep, int]],
        machine: Machine,
    ) -> None:
        self._graph, self._space, self._program = graph, space, program
        self._beside, self._alike, self._machine = beside, alike, machine
        self._found: dict[tuple[int, ...], MovableTile | None] = {}

    def of(self, sizes: tuple[int, ...]) -> MovableTile | None:
        """The tile of some sizes; None if it cannot be moved, or if several tiles would write the
        same results."""
        if sizes not in self._found:
            self._found[sizes] = self._make(sizes)
        return self._found[sizes]

    def _make(self, sizes: tuple[int, ...]) -> MovableTile | None:
        """The tile of so many elements along each axis; None where it has no layout, or parts of it
        are no runs in GM."""
        space, program, machine = self._space, self._program, self._machine
        lane, axes = program.lane, space.axes
        if sizes[lane] < axes[lane].size and sizes[lane] % program.row_block:
            return None
        if space.inside and not self._is_turned(sizes):
            return None
        try:
            tile, ragged = tile_of(space, program, sizes)
        except NoSpace:
            return None
        layout, graph = TileLayout(space, program, tile, machine), self._graph
        if any(layout.looped.difference(space.order[v]) for v in graph.outputs):
            return None
        if not all(map(layout.is_run, (*graph.inputs, *graph.outputs))):
            return None
        if not (ragged or lane in layout.looped):
            one_row = all(size == 1 for size in sizes[:lane])
            tables = frozenset() if one_row else _tables(layout)
            beside = in_tile(self._beside, tile, axes[lane].size, program.lane_block, tables)
            if tables or beside:
                layout = TileLayout(space, program, tile, machine, tables, beside)
        return MovableTile(layout, ragged, self._alike)

    def _is_turned(self, sizes: tuple[int, ...]) -> bool:
        """Whether a tile has whole blocks of lanes and all of the axes inside them."""
        whole = (sizes[axis] == self._space.axes[axis].size for axis in self._space.inside)
        return sizes[self._program.lane] % self._program.row_block == 0 and all(whole)


def _tables(layout: TileLayout) -> frozenset[Value]:
    """The inputs of one row that lie in UB for each row of the tile, if there is room; a row of
    which another row is computed is better alone."""
    lane, program = layout.lane, layout.program
    rows = math.prod(layout.tile.sizes[:lane])
    forms = program.forms
    alone = {v for s in program.steps if forms[s.result] == (lane,) for v in s.sources}
    room = layout.machine.buffers.UB.bytes // TABLE_SHARE
    found = set()
    for value in program.inputs:
        if value in alone or forms[value] != (lane,):
            continue
        if value.dtype in ("f16", "f32", "s32"):
            size = rows * layout.tile.pitch * DTYPES[value.dtype].itemsize
            if size <= room:
                found.add(value)
                room -= size
    return frozenset(found)
