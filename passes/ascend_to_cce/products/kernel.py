"""The kernel of a product, built from its schedule.

A core takes shares of C; what it does for one stands in `davinci.schedule.products.order`, which
`schedule.products.rolls` makes loops of:

    Fill   a piece of A or B from GM to L1                               `feed`
    Load   a block from L1 to L0A (Zz) or L0B (Zn), fractals turned where k runs along stored rows
    Mad    C (+)= A B, in L0C; C may begin with a row                    `bias`
    Leave  a part of C from L0C to UB, to rows if C is not Nz, to GM     `leave`
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.mlir import arith, ir
from davinci.passes.analysis.lifetimes import alloc_bytes
from davinci.passes.ascend_to_cce.products.bias import BiasRows
from davinci.passes.ascend_to_cce.products.dense_runs import scratch_of
from davinci.passes.ascend_to_cce.products.direct import DirectExit, make_zeros
from davinci.passes.ascend_to_cce.products.feed import Feed, SinglesFeed, StagingBuffers
from davinci.passes.ascend_to_cce.products.image import ImageFeed
from davinci.passes.ascend_to_cce.products.leave import Exit
from davinci.passes.ascend_to_cce.products.matrix import Matrix
from davinci.passes.ascend_to_cce.products.parts import FactorViews
from davinci.passes.ascend_to_cce.products.ring import PARTS, PartRing
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.products.rows_exit import RowsExit
from davinci.passes.ascend_to_cce.products.walk import Corner, ShareWalk
from davinci.passes.ascend_to_cce.products.words import ScaleWords
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import (
    alloc,
    as_attribute,
    reshaped,
    restride,
    viewed,
)
from davinci.schedule.products.dense_rows import WORD_BYTES
from davinci.schedule.products.events import (
    MATRIX,
    Add,
    Ask,
    Event,
    Fill,
    Leave,
    Load,
    Mad,
    TurnRows,
)
from davinci.schedule.products.footprint import parting_buffers, staging_bytes
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class ProductArrays:
    """What lies in GM, each with a batch dimension: A, B, what the epilogue makes of C, and what
    it combines C with; without one, a fractal of ones on a diagonal, where cores need that."""

    a: ir.Value
    b: ir.Value
    outputs: list[ir.Value]
    extras: list[ir.Value]
    diagonal: ir.Value | None = None


class ProductKernel(ShareWalk):
    """Builds the kernel of a product from its schedule.

    Args:
        members: see `ProductGroup`.
        ring: where vector cores take parts of C; None if none do.
    """

    def __init__(
        self,
        product: Product,
        schedule: ProductSchedule,
        gm: ProductArrays,
        members: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
        ring: PartRing | None = None,
    ) -> None:
        super().__init__(product, schedule, ring)
        own, of_a, of_b = members
        self.members, self.ways = own, {"a": of_a, "b": of_b}
        staging = None if product.direct else staging_of(product, schedule)
        self.feeds = {"b": self._feed(gm.b, "b", staging)}
        self.images: ImageFeed | None = None
        if product.image is not None:
            self.images = ImageFeed(gm.a, product.image, schedule.a)
        else:
            self.feeds["a"] = self._feed(gm.a, "a", staging)
        tile, sums = schedule.tile, product.sum_type
        self.l0 = {
            "a": [self.factors(tile.m * tile.k, "L0A") for _ in range(schedule.l0a)],
            "b": [self.factors(tile.k * tile.n, "L0B") for _ in range(schedule.l0b)],
        }
        size = tile.n * tile.m * FRACTAL
        self.l0c = [alloc([size], element_type(sums), "L0C") for _ in range(schedule.l0c)]
        self.exit: Exit | RowsExit | DirectExit
        self.zeros: ir.Value | None = None
        self.bias: BiasRows | None = None
        self.words: ScaleWords | None = None
        self.matrix: Matrix | None = None
        if product.direct:
            self._take_extras(gm)
            if product.cleared:
                self.zeros = alloc([tile.n * FRACTAL], element_type(sums), "L0C")
                a, b = (self.factors(1, space) for space in ("L0A", "L0B"))
                make_zeros(a, b, self.zeros, tile.n)
            rectified = product.end.rectified
            self.exit = DirectExit(gm.outputs[0], own, rectified, self.words, self.zeros, ring)
        elif product.work is not None:
            self.exit = RowsExit(gm.extras, gm.outputs, product, schedule, own)
        else:
            self.exit = Exit(gm.outputs, gm.extras, product, schedule, own)

    def _feed(self, gm: ir.Value, name: str, staging: StagingBuffers | None) -> Feed:
        """The feed that brings A ("a") or B ("b") from global memory to L1.

        Args:
            staging: buffers in UB for operands in rows, on cores that have a vector unit.
        """
        operand, pieces = self.product.operand(name), self.schedule.pieces(name)
        if self.product.factor == "f32":
            return SinglesFeed(gm, operand, pieces, None)
        return Feed(gm, operand, pieces, None if operand.nz else staging)

    def _take_extras(self, gm: ProductArrays) -> None:
        """What the cube adds to sums, on cores that have nothing else: a row, a matrix; and words
        by which fixpipe scales them."""
        product, schedule = self.product, self.schedule
        for extra, array in zip(product.end.extras, gm.extras, strict=True):
            if extra.table:
                self.bias = BiasRows(array, product, schedule)
                continue
            if extra.words:
                with serving(*extra.members):
                    self.words = ScaleWords(array, product, schedule)
                continue
            assert extra.matrix and gm.diagonal is not None, "the cube adds nothing else"
            columns = product.end.matrix_columns(schedule.tile.m)
            with serving(*extra.members):
                self.matrix = Matrix(schedule, array, columns, gm.diagonal)
            self.of_matrix = extra.members

    def factors(self, fractals: int, space: str) -> FactorViews:
        """A buffer of L0A or L0B."""
        element = element_type(self.product.factor)
        if self.product.factor == "f16":
            words = alloc([fractals * FRACTAL], element, space)
            return FactorViews(words, words, SIDE)
        size, lanes = fractals * FRACTAL * WORD_BYTES, BLOCK_BYTES // self.product.factor_bytes
        held = alloc([size], element_type("s8"), space)
        words = viewed(held, [fractals * FRACTAL], ir.F16Type.get())
        if self.product.factor == "s8":
            return FactorViews(words, held, lanes)
        return FactorViews(words, viewed(held, [fractals * SIDE * lanes], element), lanes)

    def keep_apart(self) -> None:
        """Gives all buffers addresses, one behind the other. Where a kernel has loops one after the
        other, each of which needs all of a memory, plan-memory would let buffers of one loop share
        before those of two do."""
        taken: Counter[str] = Counter()
        l1 = [buffer for feed in self.feeds.values() for buffer in feed.l1]
        l0 = [views.words for name in "ab" for views in self.l0[name]]
        bias = (*self.bias.l1, *self.bias.tables) if self.bias is not None else ()
        words = self.words.buffers if self.words is not None else ()
        for buffer in (*l1, *l0, *self.l0c, *bias, *words):
            space = space_name(buffer.type)
            buffer.owner.attributes["cce.address"] = as_attribute(taken[space])
            taken[space] += alloc_bytes(buffer.owner)

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
        elif self.product.direct:
            self.add(event, corner)
        else:
            assert isinstance(self.exit, Exit), "nothing is combined with what leaves directly"
            if isinstance(event, Ask):
                self.exit.ask(event, self.part_of_c(event.part, corner))
            elif isinstance(event, TurnRows):
                self.exit.extras.turn(event)
            else:
                self.exit.extras.add(event, self.l0c[event.tile.slot], flag(False))

    def add(self, event: Ask | TurnRows | Add, corner: Corner) -> None:
        """Brings a row or a matrix that the cube adds to a tile, or adds it, on cores without a
        vector unit."""
        if (isinstance(event, Ask) and event.kind != MATRIX) or isinstance(event, TurnRows):
            assert self.bias is not None, "rows of a product that begins with none"
            if isinstance(event, Ask):
                self.bias.bring(event, self.part_of_c(event.part, corner))
            else:
                self.bias.turn(event)
            return
        assert self.matrix is not None, "a matrix of a product without one"
        with serving(*self.of_matrix):
            if isinstance(event, Ask):
                self.matrix.bring(event.part, self.part_of_c(event.part, corner).place)
            else:
                self.matrix.add(event, self.l0c[event.tile.slot], flag(False))

    def load(self, event: Load, corner: Corner) -> None:
        """A block to L0A, [m][k] of fractals, or L0B, [k][n]."""
        l0 = self.l0[event.operand][event.slot].words
        if event.operand == "a" and self.images is not None:
            self.images.load(event, corner.region("a", self.product), l0)
            return
        self.feeds[event.operand].load(event.held, event.block, l0, event.operand == "b")

    def mad(self, event: Mad) -> None:
        """C = A B, perhaps plus a row, for the first of k, C += A B for the others."""
        m, k, n = event.tile.m.size, event.k.size, event.tile.n.size
        left, right = self.l0["a"][event.a], self.l0["b"][event.b]
        a = reshaped(left.elements, [m, k, SIDE, left.lanes])
        b = reshaped(right.elements, [k, n, SIDE, right.lanes])
        c = reshaped(self.l0c[event.tile.slot], [n, m, SIDE, SIDE])
        if event.bias is None:
            cce.mad(a, b, c, flag(event.first))
        else:
            assert self.bias is not None, "a row of a product that begins with none"
            cce.mad_bias(a, b, self.bias.row(event.bias, n), c)

    def skip(self) -> None:
        with PARTS.giving():
            pass

    def leave(self, event: Leave, corner: Corner) -> None:
        """Sends fractals of a finished tile, rows `event.m` by columns `event.n` of L0C, on to C in
        GM, by way of what the epilogue does to them.

        Args:
            corner: where the core's share of C begins.
        """
        tile = event.tile
        shape = [event.n.size, event.m.size, SIDE, SIDE]
        strides = [tile.m.size * FRACTAL, FRACTAL, SIDE, 1]
        offset = (event.n.start * tile.m.size + event.m.start) * FRACTAL
        source = restride(self.l0c[tile.slot], shape, strides, offset)
        part = self.part_of_c(event, corner)
        self.exit.leave(event, source, part)


def flag(value: bool) -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(1), int(value)).result


def staging_of(product: Product, schedule: ProductSchedule) -> StagingBuffers | None:
    """The buffers in UB for operands in rows; None if both are fractals."""
    sides = [(product.a, schedule.a), (product.b, schedule.b)]
    staged = [(o, p) for o, p in sides if not o.nz]
    if not staged:
        return None
    sizes = [staging_bytes(operand, pieces) for operand, pieces in staged]
    came, made = (max(size) for size in zip(*sizes, strict=True))
    parting = scratch_of(parting_buffers(product, (schedule.a, schedule.b)))
    return StagingBuffers(RowRing(schedule.inbox, came), RowRing(schedule.outbox, made), parting)
