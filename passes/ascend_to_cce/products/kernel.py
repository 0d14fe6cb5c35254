"""The kernel of a product, built from its schedule.

A core takes shares of C; what it does for one stands in `davinci.schedule.products.order`, which
`schedule.products.rolls` makes loops of:

    Fill   a piece of A or B from GM to L1                               `feed`
    Load   a block from L1 to L0A (Zz) or L0B (Zn), fractals turned where k runs along stored rows
    Mad    C (+)= A B, in L0C
    Leave  a part of C from L0C to UB, to rows if C is not Nz, to GM     `leave`
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.mlir import arith, ir
from davinci.passes.analysis.lifetimes import alloc_bytes
from davinci.passes.ascend_to_cce.products.dense_runs import scratch_of
from davinci.passes.ascend_to_cce.products.direct import DirectExit, ZeroRows
from davinci.passes.ascend_to_cce.products.feed import Feed, Range, ShareRegion, StagingBuffers
from davinci.passes.ascend_to_cce.products.image import ImageFeed
from davinci.passes.ascend_to_cce.products.leave import Exit
from davinci.passes.ascend_to_cce.products.parts import FactorViews, PartOfC, ResultPlace
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import AlikeWork, TileSegment, segments, unflatten
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_attribute,
    for_loop,
    mul,
    remainder,
    reshaped,
    restride,
    viewed,
)
from davinci.schedule.products.cost import crossing_bytes, parting_buffers
from davinci.schedule.products.dense_rows import WORD_BYTES
from davinci.schedule.products.events import Ask, Block, Event, Fill, Leave, Load, Mad, TurnRows
from davinci.schedule.products.product import Product, ProductSchedule, Share
from davinci.schedule.products.rolls import HERE, EventLine, Position, RolledLoop, lines_of
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


@dataclass(frozen=True)
class ProductArrays:
    """What lies in GM, each with a batch dimension: A, B, what the epilogue makes of C, and what
    it combines C with."""

    a: ir.Value
    b: ir.Value
    outputs: list[ir.Value]
    extras: list[ir.Value]


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
        """What of an operand the share takes."""
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


class ProductKernel:
    """Builds the kernel of a product from its schedule.

    Args:
        members: see `ProductGroup`.
    """

    def __init__(
        self,
        product: Product,
        schedule: ProductSchedule,
        gm: ProductArrays,
        members: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    ) -> None:
        self.product, self.schedule = product, schedule
        own, of_a, of_b = members
        self.members, self.ways = own, {"a": of_a, "b": of_b}
        staging = None if product.direct else staging_of(product, schedule)
        self.feeds = {"b": Feed(gm.b, product.b, schedule.b, None if product.b.nz else staging)}
        self.images: ImageFeed | None = None
        if product.image is not None:
            self.images = ImageFeed(gm.a, product.image, schedule.a)
        else:
            self.feeds["a"] = Feed(gm.a, product.a, schedule.a, None if product.a.nz else staging)
        tile, sums = schedule.tile, "s32" if product.factor == "s8" else "f32"
        self.l0 = {
            "a": [self.factors(tile.m * tile.k, "L0A") for _ in range(schedule.l0a)],
            "b": [self.factors(tile.k * tile.n, "L0B") for _ in range(schedule.l0b)],
        }
        size = tile.n * tile.m * FRACTAL
        self.l0c = [alloc([size], element_type(sums), "L0C") for _ in range(schedule.l0c)]
        self.exit: Exit | DirectExit
        if product.direct:
            spaces = ("L0A", "L0B") if product.cleared else ()
            zeros = ZeroRows.of(*(self.factors(1, space) for space in spaces)) if spaces else None
            self.exit = DirectExit(gm.outputs[0], own, product.end.rectified, zeros)
        else:
            self.exit = Exit(gm.outputs, gm.extras, product, schedule, own)

    def factors(self, fractals: int, space: str) -> FactorViews:
        """A buffer of L0A or L0B."""
        element = element_type(self.product.factor)
        if self.product.factor == "f16":
            words = alloc([fractals * FRACTAL], element, space)
            return FactorViews(words, words, SIDE)
        held = alloc([fractals * FRACTAL * WORD_BYTES], element, space)
        words = viewed(held, [fractals * FRACTAL], ir.F16Type.get())
        return FactorViews(words, held, SIDE * WORD_BYTES)

    def keep_apart(self) -> None:
        """Gives all buffers addresses, one behind the other. Where a kernel has loops one after the
        other, each of which needs all of a memory, plan-memory would let buffers of one loop share
        before those of two do."""
        taken: Counter[str] = Counter()
        l1 = [buffer for feed in self.feeds.values() for buffer in feed.l1]
        l0 = [views.words for name in "ab" for views in self.l0[name]]
        for buffer in (*l1, *l0, *self.l0c):
            space = space_name(buffer.type)
            buffer.owner.attributes["cce.address"] = as_attribute(taken[space])
            taken[space] += alloc_bytes(buffer.owner)

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
        self.lines(lines, Corner(first, Range(0, self.product.k, True), m, n, start), [])

    def lines(
        self, lines: Sequence[EventLine | RolledLoop], corner: Corner, turns: list[ir.Value]
    ) -> None:
        """Builds lines and loops; `turns` counts the iterations of the loops around them."""
        for line in lines:
            if isinstance(line, RolledLoop):
                with for_loop(0, line.count) as turn:
                    self.lines(line.body, corner, [*turns, turn])
                continue
            places: dict[tuple[Position, ...], Corner] = {}
            for event, moves in line.events:
                if moves not in places:
                    places[moves] = corner.further(moves, turns)
                self.event(event, places[moves])

    def event(self, event: Event, corner: Corner) -> None:
        if isinstance(event, Fill):
            region = corner.begun(event.block, self.product).region(event.operand, self.product)
            feed = self.images if event.operand == "a" else None
            with serving(*self.ways[event.operand]):
                (feed or self.feeds[event.operand]).fill(event, region)
        elif isinstance(event, Load):
            with serving(*self.members):
                self.load(event, corner)
        elif isinstance(event, Mad):
            with serving(*self.members):
                self.mad(event)
        elif isinstance(event, Leave):
            self.leave(event, corner)
        else:
            assert isinstance(self.exit, Exit), "nothing is combined with what leaves directly"
            if isinstance(event, Ask):
                self.exit.ask(event, self.part_of_c(event.part, corner))
            elif isinstance(event, TurnRows):
                self.exit.extras.turn(event)
            else:
                self.exit.extras.add(event, self.l0c[event.tile.slot], flag(False))

    def load(self, event: Load, corner: Corner) -> None:
        """A block to L0A, [m][k] of fractals, or L0B, [k][n]."""
        l0 = self.l0[event.operand][event.slot].words
        if event.operand == "a" and self.images is not None:
            self.images.load(event, corner.region("a", self.product), l0)
            return
        self.feeds[event.operand].load(event.held, event.block, l0, event.operand == "b")

    def mad(self, event: Mad) -> None:
        """C = A B for the first of k, C += A B for the others."""
        m, k, n = event.tile.m.size, event.k.size, event.tile.n.size
        a, b = self.l0["a"][event.a], self.l0["b"][event.b]
        cce.mad(
            reshaped(a.elements, [m, k, SIDE, a.lanes]),
            reshaped(b.elements, [k, n, SIDE, b.lanes]),
            reshaped(self.l0c[event.tile.slot], [n, m, SIDE, SIDE]),
            flag(event.first),
        )

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

    def leave(self, event: Leave, corner: Corner) -> None:
        """A part of a tile of the share."""
        tile = event.tile
        shape = [event.n.size, event.m.size, SIDE, SIDE]
        strides = [tile.m.size * FRACTAL, FRACTAL, SIDE, 1]
        offset = (event.n.start * tile.m.size + event.m.start) * FRACTAL
        source = restride(self.l0c[tile.slot], shape, strides, offset)
        part = self.part_of_c(event, corner)
        if isinstance(self.exit, DirectExit):
            self.exit.leave(event, source, part, self.l0c[tile.slot])
        else:
            self.exit.leave(event, source, part)


def flag(value: bool) -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(1), int(value)).result


def staging_of(product: Product, schedule: ProductSchedule) -> StagingBuffers | None:
    """The buffers in UB for operands in rows; None if both are fractals."""
    sides = [(product.a, schedule.a), (product.b, schedule.b)]
    crossing = [(o, p) for o, p in sides if not o.nz]
    if not crossing:
        return None
    sizes = [crossing_bytes(operand, pieces) for operand, pieces in crossing]
    came, made = (max(size) for size in zip(*sizes, strict=True))
    parting = scratch_of(parting_buffers(product, (schedule.a, schedule.b)))
    return StagingBuffers(RowRing(schedule.inbox, came), RowRing(schedule.crossing, made), parting)
