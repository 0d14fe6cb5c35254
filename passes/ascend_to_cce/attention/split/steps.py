"""What the programs of both kinds of cores share: steps, rings, and flags between the cores.

A step is a tile of keys of a unit; a block takes units block, block + blocks, .. and counts its
steps through all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from davinci.mlir import arith, ir, scf
from davinci.passes.builder import (
    IndexLike,
    add,
    as_value,
    constant_index,
    divided,
    for_loop,
    mul,
    remainder,
)
from davinci.passes.cce.unroll import mark
from davinci.schedule.attention.attention import Attention, Turn
from davinci.schedule.attention.split import SplitAttentionSchedule

SCORES, WEIGHTS, RESULTS = 1, 2, 3
"""Flags: of scores, from the cube core; of weights, from its vector cores; of P V, again from the
former."""


@dataclass(frozen=True)
class Rings:
    """What the cores of a block hand to each other, in GM; the first dimension is of blocks.

    Attributes:
        scores: [blocks][places][quarters][rows / 16][keys][16].
        weights: the same, of f16.
        results: [blocks][places][halves of a unit][rows][columns + 16], of f32.
    """

    scores: ir.Value
    weights: ir.Value
    results: ir.Value


@dataclass(frozen=True)
class StepPlace:
    """Where a step is.

    Attributes:
        matrix: of O.
        block: which unit of the matrix.
        tile: which tile of keys.
    """

    matrix: IndexLike
    block: IndexLike
    tile: IndexLike


class BlockSteps:
    """The steps of a block, and loops over them.

    Args:
        blocks: of the launch.
    """

    def __init__(
        self, attention: Attention, schedule: SplitAttentionSchedule, blocks: int, block: ir.Value
    ) -> None:
        self.attention, self.schedule = attention, schedule
        self._blocks, self._block = blocks, block
        self.tiles = schedule.tiles(attention)
        self._of_matrix = schedule.blocks_of_rows(attention)
        units = add(schedule.units(attention) + blocks - 1, 0)
        left = arith.SubIOp(as_value(units), block).result
        self.count = mul(divided(left, blocks), self.tiles)

    def place(self, step: IndexLike) -> StepPlace:
        """Where a step is; of one behind the last the last."""
        unit, tile = divided(step, self.tiles), remainder(step, self.tiles)
        number = add(self._block, mul(unit, self._blocks))
        return StepPlace(divided(number, self._of_matrix), remainder(number, self._of_matrix), tile)

    def following(self, step: IndexLike) -> IndexLike:
        """The next step, or the last one again."""
        last = arith.SubIOp(as_value(self.count), constant_index(1)).result
        return arith.MinUIOp(as_value(add(step, 1)), last).result

    def in_ring(self, step: IndexLike) -> IndexLike:
        return remainder(step, self.schedule.ring)

    def skewed(
        self,
        ahead: Callable[[IndexLike], None],
        both: Callable[[IndexLike, IndexLike], None],
        behind: Callable[[IndexLike], None],
        ordered: bool = False,
    ) -> None:
        """Loops in which what `ahead` builds is some steps before what `behind` builds.

        Args:
            both: builds both; of the step that is ahead, and of the one behind it.
            ordered: whether `multi-buffer` orders what lies between flags of a step.
        """

        def begin() -> None:
            if ordered:
                mark(ir.InsertionPoint.current.block.owner)

        distance = constant_index(self.schedule.ahead)
        count = as_value(self.count)
        few = arith.MinUIOp(count, distance).result
        with for_loop(0, few) as step:
            begin()
            ahead(step)
        with for_loop(distance, count) as step:
            begin()
            both(step, arith.SubIOp(step, distance).result)
        with for_loop(arith.SubIOp(count, few).result, count) as step:
            begin()
            behind(step)


def matrix_of(place: StepPlace, turn: Turn, batch: int) -> IndexLike:
    """Which matrix of an array a step takes."""
    if turn.count == 1:
        return 0
    index = divided(place.matrix, turn.each)
    return remainder(index, turn.count) if turn.count * turn.each < batch else index


@contextmanager
def only_if(index: IndexLike, value: int) -> Iterator[None]:
    """Builds what is done only where an index has a value."""
    equal = arith.CmpIOp(arith.CmpIPredicate.eq, as_value(index), constant_index(value)).result
    branch = scf.IfOp(equal)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])


def choose(
    index: IndexLike, value: int, then: Callable[[], None], other: Callable[[], None]
) -> None:
    """Builds one thing for an index of that value, another for all others."""
    equal = arith.CmpIOp(arith.CmpIPredicate.eq, as_value(index), constant_index(value)).result
    branch: Any = scf.IfOp(equal, has_else=True)  # type: ignore[call-arg]
    for block, build in ((branch.then_block, then), (branch.else_block, other)):
        with ir.InsertionPoint(block):
            build()
            scf.YieldOp([])
