"""Builds the two programs of a product and what follows it on the vector cores beside cube cores.

Both go through the shares of the product in its order, and hand parts of C over (`ring`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from davinci.dialects.cce import build as cce
from davinci.mlir import Op, ir
from davinci.passes.ascend_to_cce import LaunchBlocks, Target
from davinci.passes.ascend_to_cce.products.group import extras_of, factor_in, matrices_in
from davinci.passes.ascend_to_cce.products.kernel import ProductArrays, ProductKernel
from davinci.passes.ascend_to_cce.products.paired import GmBuffers, PairedPart, build_paired
from davinci.passes.ascend_to_cce.products.parts import ResultPlace
from davinci.passes.ascend_to_cce.products.pieces import PieceBuilder
from davinci.passes.ascend_to_cce.products.ring import AHEAD, PARTS, PartRing
from davinci.passes.ascend_to_cce.products.walk import Corner, ShareWalk
from davinci.passes.ascend_to_cce.tiles import first_blocks, share_blocks
from davinci.passes.builder import IndexLike, mul, share_in_two
from davinci.schedule.graph import Graph
from davinci.schedule.products.behind import plan_of_parts
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.events import Event, Leave
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.schedule.products.rolls import EventLine, RolledLoop, leaves_of
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


def build_followed(
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    kernel: Op,
    target: Target,
    schedule: ProductSchedule,
) -> int:
    """Builds both programs; returns how many blocks can share the work.

    Args:
        gm: buffers of the group's inputs and outputs, by number.

    Raises:
        NoSpace: vector cores have no room for a row of a part.
    """
    part = FollowedPart(group, graph, target, schedule)
    build_paired([part], gm, kernel, part.blocks)
    return part.units


class FollowedPart(PairedPart):
    """A product, and what follows it on the vector cores beside its cube cores.

    Attributes:
        blocks: that have work.
        units: pieces of the work, which blocks share.

    Args:
        apart: whether other parts of the kernel multiply as well, see `ProductKernel.keep_apart`.

    Raises:
        NoSpace: vector cores have no room for a row of a part.
    """

    def __init__(
        self,
        group: ProductGroup,
        graph: Graph,
        target: Target,
        schedule: ProductSchedule,
        apart: bool = False,
    ) -> None:
        product, behind = group.product, group.behind
        assert behind is not None and target.adders is not None, "nothing follows on other cores"
        self.group, self.graph, self.target, self.schedule = group, graph, target, schedule
        self.product, self.behind, self.apart = product, behind, apart
        wide, tall = (size * SIDE for size in schedule.part)
        rows, columns = min(product.m, tall), min(product.n, wide)
        self.plan = plan_of_parts(behind, target.adders, rows, columns)
        self.units = shares_of(product, schedule)
        self.blocks = min(target.cores, self.units)
        element = ir.Type.parse(graph.arrays[behind.made].element)
        ring = ir.MemRefType.get([self.blocks, AHEAD, rows, columns], element)
        # Parts lie in C if that leaves the kernel.
        self.kept = behind.made in (*graph.inputs, *graph.outputs)
        self.kinds = [] if self.kept else [ring]

    @contextmanager
    def _sharing(self) -> Iterator[Target]:
        """Builds what the blocks that have work do: the first of all, where all of them have
        something else to do; the target of these."""
        if not self.apart:
            yield self.target
            return
        with first_blocks(self.blocks, self.target.most_blocks(self.target.cores)) as index:
            own = LaunchBlocks(index, self.blocks)
            yield replace(self.target, cores=self.blocks, blocks=own)

    def _ring(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> PartRing:
        """Where parts lie."""
        if self.kept:
            return PartRing(matrices_in(gm, self.graph, self.behind.made, self.product.batch))
        return PartRing(*handed)

    def cube(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        group, product, graph = self.group, self.product, self.graph
        with self._sharing() as target:
            ring = self._ring(gm, handed)
            a, b = (factor_in(gm, graph, product, n, product.batch) for n in group.factors)
            arrays = ProductArrays(a, b, [ring.array], extras_of(group, graph, gm))
            multiplies = ProductKernel(product, self.schedule, arrays, group.members, ring)
            if self.apart:
                multiplies.keep_apart()
            share_blocks(multiplies.parts(), target)
            PARTS.close()

    def vector(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        behind = self.behind
        with self._sharing() as target:
            PARTS.open()
            ring = self._ring(gm, handed)
            values = (*behind.inputs, *(n for n in self.graph.outputs if n != behind.made))
            buffers = [ring.array, *(gm[n] for n in values)]
            pieces = PieceBuilder(self.plan, buffers)
            follows = FollowingCore(self.product, self.schedule, pieces, ring)
            share_blocks(follows.parts(), target)


class FollowingCore(ShareWalk):
    """Builds what a vector core does for the parts of C that its cube core makes."""

    def __init__(
        self, product: Product, schedule: ProductSchedule, pieces: PieceBuilder, ring: PartRing
    ) -> None:
        super().__init__(product, schedule, ring)
        self.pieces, self.parts_made, self.lane = pieces, ring, cce.get_sub_block_idx()

    def lines(
        self, lines: Sequence[EventLine | RolledLoop], corner: Corner, turns: list[ir.Value]
    ) -> None:
        """Of a loop's body, too: what is loaded in an iteration is computed in it."""
        for line in leaves_of(lines):
            if isinstance(line, RolledLoop):
                self.pieces.finish()
            super().lines([line], corner, turns)
        self.pieces.finish()

    def event(self, event: Event, corner: Corner) -> None:
        assert isinstance(event, Leave), "vector cores have to do with parts that have left"
        with PARTS.taking():
            self._take(self.part_of_c(event, corner).place)

    def _take(self, place: ResultPlace) -> None:
        """Builds what follows on this core's half of the rows of a part."""
        row, column = mul(place.row, SIDE), mul(place.column, SIDE)
        corner_of_part = self.pieces.corner(place.batch, self.product.m, row, column)
        source, uneven = self.parts_made.next(place), place.rows % 2 > 0
        turn = self.pieces.turn

        def build(first: IndexLike, rows: int) -> None:
            self.pieces.turn = turn
            self.pieces.rows(source, first, (rows, place.columns), corner_of_part)
            if uneven:  # in a branch of its own
                self.pieces.finish()

        if uneven:
            self.pieces.finish()
        share_in_two(self.lane, ceil_div(place.rows, 2), place.rows, build)

    def skip(self) -> None:
        with PARTS.taking():
            pass
