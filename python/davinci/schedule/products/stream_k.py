"""Stream-K: products whose last tiles are no round of all cores, and are split along k for them.

    C[:r] = A[:r] B                       rows that make whole rounds of tiles, a tile on a core
    P[p] = A[r:, k of p] B[k of p, :]     of all other rows, on all cores again
    vector cores meet
    C[r:] = P[0] + P[1] + ..              and what follows the product

Tiles of C are the larger the less of A and B comes for them, so there are few, and of the last
round of them most cores may have none. Split, it takes a part of a round. Cube cores go on from the
first rows to the others without waiting for each other. The first rows are a product by themselves,
with what follows it beside; the others are one whose k is split (`split_k`).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from functools import partial

from davinci.machine import Machine, prices, within_l2
from davinci.schedule.choices import Choices, PartChoice, StreamChoice
from davinci.schedule.graph import Graph
from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.products.behind import cycles_with
from davinci.schedule.products.candidates import Candidates, Wanted
from davinci.schedule.products.choice import quick_schedule
from davinci.schedule.products.cost import ProductCosts
from davinci.schedule.products.estimate import cycles_from_mad
from davinci.schedule.products.fastest_way import fastest_way
from davinci.schedule.products.group import ProductGroup, read_group
from davinci.schedule.products.product import Share
from davinci.schedule.products.rough import Rough
from davinci.schedule.products.rows import RowAxes, graph_of_rows, row_axes
from davinci.schedule.products.split_k import (
    PartsOfK,
    SplitCores,
    SplitProduct,
    can_be_split,
    faster_form,
    split_of,
)
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import SUM_BYTES, ceil_div, even_cuts

TRIED = 3
"""Numbers of first rows that are weighed, of those that promise most."""

LEAST_PARTS = 2
"""Parts of k of the other rows, at least."""


@dataclass(frozen=True)
class StreamKProduct:
    """A product whose first rows are computed in whole rounds, and the others with k split.

    Attributes:
        cores: that multiply.
        axes: dimensions of rows of the group's values.
        first, others: the groups of both.
        split: how the other rows are computed.
        in_l2: whether the L2 holds both factors, so that B is there for the other rows.
        cycles: estimated, without a launch.
    """

    cores: int
    axes: RowAxes
    first: GroupOfRows
    others: GroupOfRows
    split: SplitProduct
    in_l2: bool
    cycles: float

    @property
    def choices(self) -> Choices:
        """The number of cores, of first rows and of parts of k, as a file of schedules has them."""
        choice = StreamChoice(rows=self.first.stop, parts=self.split.parts.total)
        return (PartChoice(cores=self.cores, choice=choice),)

    def __str__(self) -> str:
        first, rows = self.first.stop, self.others.stop
        return f"the first {first} of {rows} rows whole, of the others {self.split}"


@dataclass(frozen=True)
class GroupOfRows:
    """The group that makes rows `start` to `stop` of C."""

    start: int
    stop: int
    graph: Graph
    group: ProductGroup

    @staticmethod
    def of(graph: Graph, axes: RowAxes, start: int, stop: int, machine: Machine) -> GroupOfRows:
        """The part of a group that computes its rows `start` to `stop - 1`.

        Raises:
            NoSpace: they are no product with what can be done on its way.
        """
        made = graph_of_rows(graph, axes, start, stop)
        group = read_group(made, machine)
        if group.product.m != stop - start:
            raise NoSpace(f"rows of a product that is computed as one of {group.product.m} rows")
        return GroupOfRows(start, stop, made, group)


def stream_k_of(
    group: ProductGroup,
    graph: Graph,
    split_cores: SplitCores,
    cores: int,
    wanted: Wanted,
    price: LaunchPrice,
    least: float,
) -> StreamKProduct | None:
    """The fastest way of those that promise most, on all of the cores; None if none takes, with its
    launch, less than `least` cycles."""
    if not _can_stream(group, graph, split_cores):
        return None
    try:
        weighing = _Weighing(group, graph, row_axes(graph), split_cores, cores, wanted)
    except NoSpace:
        return None
    ways = (partial(weighing.found, rows) for rows in weighing.promising())
    return fastest_way(ways, least - price.cycles(cores))


def given_stream_k(
    given: Choices, group: ProductGroup, graph: Graph, split_cores: SplitCores, cores: int
) -> StreamKProduct | None:
    """The way that choices say; None if they say another schedule.

    Raises:
        NoSpace: the product cannot be computed so.
    """
    part, *others = given
    if others or not isinstance(part.choice, StreamChoice):
        return None
    choice, m = part.choice, group.product.m
    if not _can_stream(group, graph, split_cores) or not 2 <= part.cores <= cores:
        raise NoSpace(f"rows of a product with k split on {part.cores} cores, of {cores}")
    if choice.rows % SIDE or choice.rows >= m:
        raise NoSpace(f"{choice.rows} first rows of {m}, expected whole fractals, and fewer")
    weighing = _Weighing(group, graph, row_axes(graph), split_cores, part.cores, Wanted())
    found = weighing.found(choice.rows, math.inf, choice.parts)
    if found is None:
        raise NoSpace(f"{choice.rows} first rows, and {choice.parts} parts of k of the others")
    return found


def _can_stream(group: ProductGroup, graph: Graph, split_cores: SplitCores) -> bool:
    """Whether k of some rows can be split on cube cores that have vector cores beside them."""
    return split_cores.adders is not None and can_be_split(group, graph, split_cores)


@dataclass(frozen=True)
class _Weighing:
    """What ways to compute a product are weighed by."""

    group: ProductGroup
    graph: Graph
    axes: RowAxes
    split_cores: SplitCores
    cores: int
    wanted: Wanted

    def promising(self) -> list[int]:
        """Numbers of first rows that promise most, by a rough estimate in which the other rows are
        as fast as rounds of tiles that leave no core idle, and need their sums; of those that take
        less than rounds of tiles of which the last one may."""
        product, machine = self.group.product, self.split_cores.machine
        candidates = Candidates(product, machine, self.cores, self.wanted)
        rough, room = Rough(candidates.ways, self.cores), candidates.sums
        whole, share = product.fractals, prices.share_of(machine, self.cores)
        all_of_b = product.operand_bytes("b") / self.cores / share.l2_read
        found, alone = dict[int, float](), math.inf
        for height in range(1, min(whole.m, room) + 1):
            for width in even_cuts(whole.n, room // height):
                across = ceil_div(whole.n, width)
                tile = rough.of_share(Share(1, height, width))
                alone = min(alone, ceil_div(ceil_div(whole.m, height) * across, self.cores) * tile)
                round_rows = height * self.cores // math.gcd(self.cores, across)
                rows = (whole.m - 1) // round_rows * round_rows
                rounds, left = across * rows // (height * self.cores), whole.m - rows
                others = max(left * whole.n * tile / (height * width * self.cores), all_of_b)
                sums = SUM_BYTES * max(LEAST_PARTS * left * whole.n, room * self.cores)
                cycles = rounds * tile + others + sums / self.cores / share.read
                if rows:
                    found[rows] = min(cycles, found.get(rows, math.inf))
        best = heapq.nsmallest(TRIED, found, key=lambda rows: found[rows])
        return [rows * SIDE for rows in best if found[rows] < alone]

    def found(self, rows: int, most: float, parts: int = 0) -> StreamKProduct | None:
        """The way with so many first rows; None if it takes `most` cycles or more.

        Args:
            parts: of k of the other rows; 0 for those of fewest cycles.

        Raises:
            NoSpace, CompileError: a part of it cannot be computed.
        """
        machine, product = self.split_cores.machine, self.group.product
        first, others = (
            GroupOfRows.of(self.graph, self.axes, start, stop, machine)
            for start, stop in ((0, rows), (rows, product.m))
        )
        cycles = self._whole(first.group, most)
        if cycles >= most:
            return None
        read = product.operand_bytes("a") + product.operand_bytes("b")
        in_l2 = read <= machine.l2.bytes
        split = self._split(others, in_l2, parts, most - cycles)
        if split is None:
            return None
        total = cycles + split.cycles
        return StreamKProduct(self.cores, self.axes, first, others, split, in_l2, total)

    def _whole(self, group: ProductGroup, most: float) -> float:
        """Cycles of the first rows, until the last mad is over: their last tiles leave L0C while
        the first of the other rows come."""
        product, machine = group.product, self.split_cores.machine
        found = quick_schedule(product, machine, self.cores, self.wanted, most)
        if found is None:
            return math.inf
        cycles, schedule = found
        costs = ProductCosts(product, machine)
        until_mad = cycles - cycles_from_mad(costs, schedule)
        if group.behind is None:
            return until_mad
        vector = self.split_cores.adding
        return max(
            until_mad, cycles_with(group.behind, product, schedule, until_mad, self.cores, vector)
        )

    def _split(
        self, others: GroupOfRows, in_l2: bool, parts: int, most: float
    ) -> SplitProduct | None:
        """The way to compute the rows behind the whole ones, with k in `parts` parts, or in as many
        as take least time if 0; None if none takes less than `most` cycles."""
        split_cores, graph, group = self.split_cores, others.graph, others.group
        if in_l2:
            split_cores = replace(split_cores, machine=within_l2(split_cores.machine))
        price = LaunchPrice(split_cores.machine)
        if not parts:
            least = most + price.cycles(self.cores)
            return split_of(group, graph, split_cores, self.cores, self.wanted, price, least)
        cut = PartsOfK.given(group.product.k, parts, self.cores)
        return faster_form(group, graph, split_cores, self.cores, cut, Wanted(), most)
