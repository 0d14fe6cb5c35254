"""What the programs of both kinds of cores share: steps, rings, and flags between the cores.

A step is a tile of keys of a unit. A block takes units block, block + blocks, .. and counts its
steps through all of them; where a mask leaves units different tiles it reads its steps in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from davinci.mlir import arith, ir, memref
from davinci.passes import builder
from davinci.passes.builder import (
    IndexLike,
    add,
    as_value,
    constant_index,
    divided,
    for_loop,
    is_equal,
    mul,
    only_if,
    remainder,
)
from davinci.passes.cce.unroll import mark
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.dealing import WIDTHS, ring_places
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.schedule.attention.turn import MatrixTurn
from davinci.units import ceil_div

SCORES, WEIGHTS, RESULTS, MET = 1, 2, 3, 4
"""Flags: of scores, from the cube core; of weights, from its vector cores; of P V, again from the
former; of all vector cores, that their shares of keys are done."""


@dataclass(frozen=True)
class Rings:
    """What the cores of a block hand to each other, in GM; the first dimension is of blocks.

    Attributes:
        scores: [blocks][places][quarters][rows / 16][keys][16].
        weights: the same, of f16; the same memory where scores are f16, which are read before.
        results: [blocks][places][quarters] of products with V, as `sums` says, of f32.
        sums: of each share of keys P V of all of it, [matrices][shares] of the same, with those
            rows that there are; None where keys are not shared.
        lowest: beside them minus the maxima, [matrices][shares][16].
        table: the steps of blocks, None where they are counted: see `dealing.table_of`.
        masks: of patterns of a band, None if there are none: see `dealing.masks_of`.
    """

    scores: ir.Value
    weights: ir.Value
    results: ir.Value
    sums: ir.Value | None = None
    lowest: ir.Value | None = None
    table: ir.Value | None = None
    masks: ir.Value | None = None


@dataclass(frozen=True)
class StepPlace:
    """Where a step is.

    Attributes:
        matrix: of O.
        block: which unit of the matrix.
        tile: which tile of keys.
        first, last: whether it is the first tile of its unit, and the last.
        pattern: one more than the number of the pattern that masks it, 0 if none does.
        share: which share of the keys its unit has.
    """

    matrix: IndexLike
    block: IndexLike
    tile: IndexLike
    first: ir.Value
    last: ir.Value
    pattern: IndexLike = 0
    share: IndexLike = 0


class BlockSteps:
    """The steps of a block, and loops over them.

    Args:
        blocks: of the launch.

    Attributes:
        count: how many.
        only_one: whether every block has one, so that nothing is brought for others.
    """

    def __init__(
        self, attention: Attention, schedule: SplitAttentionSchedule, blocks: int, block: ir.Value
    ) -> None:
        self.attention, self.schedule = attention, schedule
        self.blocks, self._block = blocks, block
        self._places = ring_places(attention, schedule, blocks)
        self.tiles = schedule.tiles(attention)
        self._of_unit = self.tiles // schedule.shares
        self._of_matrix = schedule.blocks_of_rows(attention)
        units = schedule.units(attention)
        each: IndexLike = units // blocks
        if units % blocks:
            left = arith.SubIOp(constant_index(units + blocks - 1), block).result
            each = divided(left, blocks)
        self.count = mul(each, self._of_unit)
        self.only_one = ceil_div(units, blocks) * self._of_unit == 1

    @property
    def of_one_tile(self) -> bool:
        """Whether all keys of a matrix are one tile, so that nothing is put together."""
        return self.tiles == 1

    @property
    def may_begin_at_the_end(self) -> bool:
        """Whether the first tile of a block may be the last of its matrix, which has fewer keys."""
        return self._of_unit == 1 or self.attention.band is not None

    @contextmanager
    def only_blocks_with_work(self) -> Iterator[None]:
        """Builds what blocks do that have units. Where keys are shared there may be more blocks
        in the launch, which only meet."""
        if self.schedule.shares == 1:
            yield
            return
        below = arith.CmpIPredicate.ult
        with only_if(arith.CmpIOp(below, self._block, constant_index(self.blocks)).result):
            yield

    def place(self, step: IndexLike) -> StepPlace:
        """Where a step is; of one behind the last the last."""
        unit, tile = divided(step, self._of_unit), remainder(step, self._of_unit)
        number: IndexLike = add(self._block, mul(unit, self.blocks))
        share: IndexLike = 0
        if self.schedule.shares > 1:
            # The last share has fewer keys: those of all matrices follow each other.
            matrices = self.attention.batch * self._of_matrix
            number, share = remainder(number, matrices), divided(number, matrices)
        return StepPlace(
            divided(number, self._of_matrix),
            remainder(number, self._of_matrix),
            add(mul(share, self._of_unit), tile),
            is_equal(tile, 0),
            is_equal(tile, self._of_unit - 1),
            share=share,
        )

    def following(self, step: IndexLike) -> IndexLike:
        """The next step, or the last one again."""
        last = arith.SubIOp(as_value(self.count), constant_index(1)).result
        return arith.MinUIOp(as_value(add(step, 1)), last).result

    def in_ring(self, step: IndexLike) -> IndexLike:
        """The place of a step in the rings."""
        return remainder(step, self._places)

    def skewed(
        self,
        ahead: Callable[[IndexLike], None],
        both: Callable[[IndexLike, IndexLike], None],
        behind: Callable[[IndexLike], None],
        between: Callable[[], None] | None = None,
        ordered: bool = False,
    ) -> None:
        """Loops in which what `ahead` builds is some steps before what `behind` builds.

        Args:
            both: builds both; of the step that is ahead, and of the one behind it.
            between: builds what comes between the first steps that are ahead and all else.
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
        if between is not None:
            between()
        with for_loop(distance, count) as step:
            begin()
            both(step, arith.SubIOp(step, distance).result)
        with for_loop(arith.SubIOp(count, few).result, count) as step:
            begin()
            behind(step)


class ListedSteps(BlockSteps):
    """Steps of a block that stand in a table.

    Args:
        table: see `dealing.table_of`.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: SplitAttentionSchedule,
        blocks: int,
        block: ir.Value,
        table: ir.Value,
    ) -> None:
        super().__init__(attention, schedule, blocks, block)
        self._table = table
        self._start = self._read(block)
        end = as_value(self._read(add(block, 1)))
        self.only_one = False
        self.count = arith.SubIOp(end, as_value(self._start)).result

    def _read(self, index: IndexLike) -> IndexLike:
        number = memref.LoadOp(self._table, [as_value(index)]).result
        return arith.IndexCastOp(ir.IndexType.get(), number).result

    def place(self, step: IndexLike) -> StepPlace:
        left = self._read(add(self._start, step))
        fields: dict[str, IndexLike] = {}
        for name, width in WIDTHS.items():
            fields[name], left = remainder(left, 1 << width), divided(left, 1 << width)
        first, last = (is_equal(fields.pop(name), 1) for name in ("first", "last"))
        return StepPlace(first=first, last=last, **fields)


def matrix_of(place: StepPlace, turn: MatrixTurn, batch: int) -> IndexLike:
    """Which matrix of an array a step takes."""
    if turn.count == 1:
        return 0
    index = divided(place.matrix, turn.each)
    return remainder(index, turn.count) if turn.count * turn.each < batch else index


def choose(
    index: IndexLike,
    value: int,
    then: Callable[[], None],
    other: Callable[[], None],
    ordered: bool = False,
) -> None:
    """As `builder.choose`; `ordered` as of `BlockSteps.skewed`."""
    branch = builder.choose(index, value, then, other)
    if ordered:
        mark(branch.operation)
