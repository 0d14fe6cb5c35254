"""Reduced axes of which UB holds no part that would be worth keeping: gone through in a loop.

As in `phased_schedule` a core goes over the chunks of a tile in phases, and makes anew in each what
it needs; but in a loop, with as many chunks as there are, of any reduced axes:

    softmax of long rows:     m = reduce max x;   t = reduce add exp(x - m);   y = exp(x - m) / t
    phase 0                   for each chunk: load x; m = max(m, reduce max x)
    phase 1                   for each chunk: load x; t = t + reduce add exp(x - m)
    phase 2                   for each chunk: load x; store exp(x - m) / t
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from davinci.machine import Machine
from davinci.operators.vector_program import Value
from davinci.schedule.vector.phases import Phase, Phases
from davinci.schedule.vector.space import IterationSpace
from davinci.schedule.vector.tile_layout import TileLayout, VectorTile
from davinci.schedule.vector.tile_program import TileProgram


@dataclass(frozen=True)
class TileRun:
    """`count` neighbouring tiles of `size`, the first of which starts at `first`."""

    first: int
    count: int
    size: int


@dataclass(frozen=True)
class Chunks:
    """How reduced axes are gone through.

    Attributes:
        axis: the axis that is cut in chunks.
        walked: reduced axes outside it, gone through one by one.
        runs: the chunks.
    """

    axis: int
    walked: tuple[int, ...]
    runs: tuple[TileRun, ...]

    @property
    def axes(self) -> frozenset[int]:
        """The axes that are gone through chunk by chunk."""
        return frozenset((self.axis, *self.walked))


def part_of(program: TileProgram, phase: Phase) -> TileProgram:
    """What is done for each chunk in a phase; reductions are those of the chunk."""
    loads = {number: program.loads[number] for number in phase.inputs}
    stores = {number: program.stores[number] for number in phase.outputs}
    return replace(
        program,
        inputs=list(loads.values()),
        outputs=list(stores.values()),
        steps=[*phase.steps, *phase.gathered],
        constants={},
        loads=loads,
        stores=stores,
    )


def lasting(program: TileProgram, phases: Phases) -> list[Value]:
    """Values that stay in UB from chunk to chunk."""
    steps = [s for phase in phases.phases for s in (*phase.statistics, *phase.gathered)]
    loads = [program.loads[number] for number in phases.inputs]
    return [*loads, *(step.result for step in (*steps, *phases.statistics))]


class ChunkLayout(TileLayout):
    """The values of a chunk in UB; what stays there lies elsewhere."""

    def __init__(
        self,
        space: IterationSpace,
        program: TileProgram,
        tile: VectorTile,
        machine: Machine,
        larger: TileLayout | None = None,
    ) -> None:
        super().__init__(space, program, tile, machine, larger=larger)
        self._own = {*program.inputs, *(step.result for step in program.steps)}

    def once(self, value: Value) -> bool:
        """Whether a value stays in UB from chunk to chunk."""
        return value not in self._own
