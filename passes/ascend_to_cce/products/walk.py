"""The shares of a product in the order of its schedule, whoever does something for them: what is
built for their events, in loops where these repeat themselves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.feed import Range, ShareRegion
from davinci.passes.ascend_to_cce.products.parts import PartOfC, ResultPlace
from davinci.passes.ascend_to_cce.products.ring import AHEAD, PartRing
from davinci.passes.ascend_to_cce.tiles import AlikeWork, TileSegment, segments, unflatten
from davinci.passes.builder import IndexLike, add, for_loop, mul, remainder
from davinci.schedule.products.events import Block, Event, Leave
from davinci.schedule.products.product import Product, ProductSchedule, Share
from davinci.schedule.products.rolls import (
    HERE,
    EventLine,
    Position,
    RolledLoop,
    count_leaves,
    lines_of,
)
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


@dataclass(frozen=True)
class Corner:
    """Where a share begins: its first matrix, and what it takes of each dimension.

    Attributes:
        start: of k, in fractals, from which it goes on to the end of k, and through the rest then.
    """

    batch: IndexLike
    k: Range
    m: Range
    n: Range
    start: IndexLike = 0

    def further(self, moves: Sequence[Position], turns: Sequence[ir.Value]) -> Corner:
        """Where it would begin to be so much further on with every turn of each loop."""
        batch, *starts = self.batch, self.k.start, self.m.start, self.n.start
        for move, turn in zip(moves, turns, strict=True):
            if move != HERE:
                steps = [mul(turn, step) for step in move]
                batch, *starts = map(add, [batch, *starts], steps)
        ranges = zip((self.k, self.m, self.n), starts, strict=True)
        k, m, n = (replace(whole, start=start) for whole, start in ranges)
        return Corner(batch, k, m, n, self.start)

    def region(self, operand: str, product: Product) -> ShareRegion:
        """The batch of an operand that the share reads, and its ranges of k and rows or columns."""
        if operand == "a":
            return ShareRegion(self.batch, self.k, self.m)
        count, batch = product.matrices, self.batch
        if count not in (0, product.batch):
            batch = remainder(batch, count)
        return ShareRegion(batch, self.k, self.n)

    def begun(self, block: Block, product: Product) -> Corner:
        """Where it would begin if a block that lies there without `start` lies where it does."""
        if self.start == 0:
            return self
        place = remainder(add(add(self.k.start, block.k.start), self.start), product.fractals.k)
        return replace(self, k=replace(self.k, start=add(place, -block.k.start)))


class ShareWalk(ABC):
    """Goes through the shares of a product.

    Args:
        ring: where a cube core hands parts of C over to its vector cores, if it does.
    """

    def __init__(
        self, product: Product, schedule: ProductSchedule, ring: PartRing | None = None
    ) -> None:
        self.product, self.schedule, self.ring = product, schedule, ring

    @abstractmethod
    def event(self, event: Event, corner: Corner) -> None:
        """Builds what is done for an event of the share that begins at `corner`."""

    @abstractmethod
    def skip(self) -> None:
        """Passes a place of the ring."""

    def parts(self) -> list[AlikeWork]:
        """The shares of C, equal ones together."""
        product, share = self.product, self.schedule.share
        parts = []
        for batches in segments(product.batch, share.batch):
            for rows in segments(product.m, share.m * SIDE):
                for columns in segments(product.n, share.n * SIDE):
                    parts.append(self.part(batches, rows, columns))
        return parts

    def part(self, batches: TileSegment, rows: TileSegment, columns: TileSegment) -> AlikeWork:
        """Shares of one size; rows and columns are counted in elements."""
        share, counts = self.schedule.share, (batches.count, rows.count, columns.count)

        def build(index: IndexLike) -> None:
            if self.schedule.backwards:
                index = add(math.prod(counts) - 1, mul(index, -1))
            batch, i, j = unflatten(index, counts)
            m, n = (
                Range(
                    add(segment.first // SIDE, mul(at, size)),
                    segment.size,
                    segment.first + segment.count * segment.size == total,
                )
                for segment, at, size, total in (
                    (rows, i, share.m, self.product.m),
                    (columns, j, share.n, self.product.n),
                )
            )
            self.build(batches.start(batch), batches.size, m, n, self.start(i, j))

        return AlikeWork(math.prod(counts), build)

    def start(self, i: IndexLike, j: IndexLike) -> IndexLike:
        """The fractal of k with which a share begins, that has rows and columns of these numbers:
        another one than those that read the same of A, or of B."""
        starts = self.schedule.starts
        if starts == 1:
            return 0
        return mul(remainder(add(i, j), starts), self.product.fractals.k // starts)

    def build(self, first: IndexLike, batch: int, m: Range, n: Range, start: IndexLike = 0) -> None:
        """One share: `batch` matrices from the one numbered `first`, rows `m`, columns `n` of C."""
        share = Share(batch, ceil_div(m.elements, SIDE), ceil_div(n.elements, SIDE))
        lines = lines_of(share, self.product, self.schedule)
        if self.ring is not None:
            self.ring.left = 0
        self.lines(lines, Corner(first, Range(0, self.product.k, True), m, n, start), [])
        # Every share begins with the first place.
        for _ in range(-count_leaves(lines) % AHEAD if self.ring is not None else 0):
            self.skip()

    def lines(
        self, lines: Sequence[EventLine | RolledLoop], corner: Corner, turns: list[ir.Value]
    ) -> None:
        """Builds lines and loops; `turns` counts the iterations of the loops around them."""
        for line in lines:
            if isinstance(line, RolledLoop):
                with for_loop(0, line.count) as turn, self._counting(line, turn):
                    self.lines(line.body, corner, [*turns, turn])
                continue
            places: dict[tuple[Position, ...], Corner] = {}
            for event, moves in line.events:
                if moves not in places:
                    places[moves] = corner.further(moves, turns)
                self.event(event, places[moves])

    @contextmanager
    def _counting(self, loop: RolledLoop, turn: ir.Value) -> Iterator[None]:
        """Counts parts that leave in a loop."""
        if self.ring is None:
            yield
            return
        before, each = self.ring.left, count_leaves(loop.body)
        self.ring.left = add(before, mul(turn, each))
        yield
        self.ring.left = add(before, loop.count * each)

    def part_of_c(self, event: Leave, corner: Corner) -> PartOfC:
        """Where a part of a tile of the share lies."""
        tile, batch, m, n = event.tile, corner.batch, corner.m, corner.n
        row, column = tile.m.start + event.m.start, tile.n.start + event.n.start
        place = ResultPlace(
            add(batch, tile.batch),
            add(m.start, row),
            add(n.start, column),
            min(m.elements - row * SIDE, event.m.size * SIDE),
            min(n.elements - column * SIDE, event.n.size * SIDE),
            m.last and (row + event.m.size) * SIDE >= m.elements,
        )
        first = add(n.start, tile.n.start)
        return PartOfC(event.n, event.m, place, first, n.elements - tile.n.start * SIDE)
