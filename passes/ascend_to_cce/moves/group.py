"""Builds the kernel of a group that only moves elements: what `davinci.schedule.moves.choice` says.

The pieces of work of all ways are dealt out to the blocks one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from davinci.mlir import ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.fractal_moves import FractalBuilder
from davinci.passes.ascend_to_cce.moves.squares import SquaresBuilder
from davinci.passes.ascend_to_cce.moves.transfers import (
    Arrays,
    RunsBuilder,
    scalar_parts,
    small_parts,
)
from davinci.passes.ascend_to_cce.moves.word_moves import WordsBuilder
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    TileSegment,
    for_tiles,
    mark_scalar,
    share_blocks,
    unflatten,
)
from davinci.passes.builder import IndexLike
from davinci.schedule.moves.choice import MovePlan, Way, uses_scalars
from davinci.schedule.moves.fractal_moves import FractalMove
from davinci.schedule.moves.painted import Painted
from davinci.schedule.moves.portions import SLOTS
from davinci.schedule.moves.squares import Squares
from davinci.schedule.moves.transfers import Runs, Scalars, Small
from davinci.schedule.moves.word_moves import WordMove


class MoveBuilder:
    """Builds a kernel that moves elements."""

    def __init__(self, plan: MovePlan, arguments: Sequence[ir.Value], target: Target) -> None:
        self.plan, self.target = plan, target
        inputs = plan.graph.inputs
        self.arrays: Arrays = dict(zip(inputs, arguments, strict=False))
        self.results = arguments[len(inputs) :]

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        if self.plan.schedule.scalar:
            mark_scalar(ir.InsertionPoint.current.block.owner)
        units = sum(way.units for way in self.plan.schedule.ways)
        return max(1, share_blocks(self._parts(), self.target, total=units, unroll=4 * SLOTS))

    def _parts(self) -> Iterator[AlikeWork]:
        """Buffers of a way are made when its turn comes."""
        schedule = self.plan.schedule
        # Where a block does one piece those of all ways are made before the first is built.
        looped = sum(way.units for way in schedule.ways) > self.target.cores
        for ways, result in zip(schedule.outputs, self.results, strict=True):
            for way in ways:
                yield from parts_of(way, self.arrays, result, looped)


def parts_of(way: Way, arrays: Arrays, result: ir.Value, looped: bool) -> list[AlikeWork]:
    """The pieces of work of one way.

    Args:
        looped: whether a block does several pieces.
    """
    if isinstance(way, Runs):
        return RunsBuilder(way, arrays, result, looped).parts()
    if isinstance(way, Squares):
        return SquaresBuilder(way, arrays, result, looped).parts()
    if isinstance(way, WordMove):
        return WordsBuilder(way, arrays, result, looped).parts()
    if isinstance(way, FractalMove):
        return FractalBuilder(way, arrays, result).parts()
    if isinstance(way, Painted):
        return painted_parts(way, arrays, result)
    if isinstance(way, Small):
        return small_parts(way, arrays, result)
    return scalar_parts(way, arrays, result)


def painted_parts(way: Painted, arrays: Arrays, result: ir.Value) -> list[AlikeWork]:
    """The parts of a kernel that does all transfers of one index of the outer dimensions in their
    order."""
    runs = [RunsBuilder(w, arrays, result) if isinstance(w, Runs) else None for w in way.ways]

    def build(index: IndexLike) -> None:
        for made, transfer in zip(runs, way.ways, strict=True):
            walked = unflatten(index, way.outer)[: transfer.walked]
            if isinstance(transfer, Scalars):
                found = scalar_parts(transfer, arrays, result, walked)
            else:
                assert made is not None, "whatever is not left to the scalar unit has a builder"
                found = made.parts(walked)
            for part in found:
                for_tiles(TileSegment(0, part.count, 1), part.build)

    return [AlikeWork(way.units, build, in_turns=not uses_scalars(way))]
