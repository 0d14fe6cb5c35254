"""Products whose k is split between cores: partial products, a meeting of all cores, and their sum.

    P[p] = A[:, k of p] B[k of p, :]       in f32 (of bytes i32), in global memory; a core has some
    all cores meet
    C = P[0] + P[1] + ..  and what follows the product, in parts of C shared by all cores

Parts of k have the same number of whole fractals, but for the last one, which has what is left; it
may be fewer, and end inside a fractal. Then it is a product of its own, on cores of its own.

A product with few rows and columns has work for few cores, however long its k is. Split, it reads
its factors on all of them; what that costs is the meeting, and the way of the partial products to
memory and back. Where cube and vector cores are apart, those make the partial products and these
add them up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from davinci.errors import CompileError
from davinci.machine import Machine, prices
from davinci.operators import OPERATORS, Tensor
from davinci.operators.tensors import ND, NZ
from davinci.schedule.choices import Choices, PartChoice, SplitChoice
from davinci.schedule.graph import Graph, Node
from davinci.schedule.meetings import LaunchPrice, can_meet, meeting_cycles
from davinci.schedule.products.behind import add_followers
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import quickly
from davinci.schedule.products.epilogue import plain
from davinci.schedule.products.fastest_way import fastest_way
from davinci.schedule.products.group import SINGLES, ProductGroup, is_product
from davinci.schedule.products.product import Product, ProductResult
from davinci.schedule.side_by_side import PlannedPart, partings_of, plans_of
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

SHARES, SHARES_APART = (1, 2, 4, 8, 16), (1, 2, 4, 8, 12)
"""Most partial products that are weighed, in parts of the number of cores; of cube cores apart
fewer."""

SLOWER_MEMORY = 1.06
"""How many times as long the memory takes where k is split: cores read shorter rows, and in more
places."""

ELEMENTS = ("f16", "f32")
"""Element types of what follows a product in fractals."""

MEETINGS = 4
"""Cycles of a product, in meetings, from which on ways are weighed in which cores meet."""


@dataclass(frozen=True)
class PartsOfK:
    """Parts into which k is cut.

    Attributes:
        count: equal parts.
        size: elements of k that each of them has, whole fractals.
        rest: elements that a last part has, fewer; 0 if there is none.
    """

    count: int
    size: int
    rest: int

    @staticmethod
    def of(k: int, most: int) -> PartsOfK:
        """The smallest parts of which there are at most so many."""
        size = ceil_div(k, most * SIDE) * SIDE
        return PartsOfK(k // size, size, k % size)

    @staticmethod
    def given(k: int, count: int, cores: int) -> PartsOfK:
        """The parts if there are to be exactly `count`, for so many cores.

        Raises:
            NoSpace: k has no such parts, or there are fewer cores.
        """
        cut = PartsOfK.of(k, count)
        if not 2 <= count == cut.total <= cores:
            raise NoSpace(f"{count} parts of a k of {k}")
        return cut

    @property
    def total(self) -> int:
        """The number of parts that k is cut into; a last part that is shorter counts as one."""
        return self.count + (self.rest > 0)


@dataclass(frozen=True)
class PartialProducts:
    """Partial products that are alike, a batch, and the cores that share them."""

    product: Product
    cores: int


@dataclass(frozen=True)
class SplitCores:
    """The cores that make partial products and those that add them up, as machines.

    Attributes:
        adders: the vector cores beside cube cores; None where cores do both.
    """

    machine: Machine
    adders: Machine | None = None

    @property
    def adding(self) -> Machine:
        """The machine whose cores add partial products up."""
        return self.adders or self.machine

    def count(self, cores: int) -> int:
        """The number of cores that add up the partial products of `cores` others."""
        return cores * self.adding.cores // self.machine.cores

    def meeting_cycles(self, cores: int, waiting: bool = False) -> float:
        """Estimated cycles from when so many cores have made partial products until they are added
        up: where cube cores tell their vector cores, these meet behind it.

        Args:
            waiting: whether some of the cores make none.
        """
        found = meeting_cycles(self.adding, self.count(cores), waiting=waiting)
        told = self.adders.cross_core if self.adders is not None else None
        return found + (told.flag_cycles if told is not None else 0)


@dataclass(frozen=True)
class SplitProduct:
    """A product split along k.

    Attributes:
        cores: that make the partial products.
        adders: cores that add them up: the same, or the vector cores beside them.
        parts: of k.
        products: of the equal parts, and of the rest, side by side on different cores.
        fractals: whether partial products lie in memory as they leave the cube, blocks of 16
            columns one after the other; else in rows.
        inputs: of the group's inputs, those that the sum takes behind the partial products.
        sums: what adds these up, and all that follows, as it is computed.
        cycles: estimated, without a launch.
    """

    cores: int
    adders: int
    parts: PartsOfK
    products: tuple[PartialProducts, ...]
    fractals: bool
    inputs: tuple[int, ...]
    sums: PlannedPart
    cycles: float

    @property
    def choices(self) -> Choices:
        """The number of cores and of parts of k, as a file of schedules has them."""
        return (PartChoice(cores=self.cores, choice=SplitChoice(parts=self.parts.total)),)

    def __str__(self) -> str:
        form = ", in fractals" if self.fractals else ""
        return f"k in {self.parts.total} parts on {self.cores} cores, which meet{form}"

    @property
    def element(self) -> str:
        """The element type of partial products in memory: "i32" of bytes, else "f32"."""
        return element_of(self.products[0].product)

    @property
    def partial_shape(self) -> list[int]:
        """The array of all partial products in memory: [parts][m][n] or [parts][n / 16][m][16]."""
        product = self.products[0].product
        return _partial_shape(product.m, product.n, self.parts.total, self.fractals)


def split_of(
    group: ProductGroup,
    graph: Graph,
    split_cores: SplitCores,
    cores: int,
    wanted: Wanted,
    price: LaunchPrice,
    least: float,
) -> SplitProduct | None:
    """The fastest way to split a product on at most so many cores; None if none takes, with its
    launch, less than `least` cycles."""
    if cores < 2 or not can_be_split(group, graph, split_cores):
        return None
    if least < MEETINGS * split_cores.meeting_cycles(cores):
        return None
    form_of = partial(faster_form, group, graph, split_cores, cores)
    ways = (partial(form_of, parts, wanted) for parts in _ways(group.product, cores, split_cores))
    return fastest_way(ways, least - price.cycles(cores))


def faster_form(
    group: ProductGroup,
    graph: Graph,
    split_cores: SplitCores,
    cores: int,
    parts: PartsOfK,
    wanted: Wanted,
    most: float,
) -> SplitProduct | None:
    """A product split in so many parts, which lie in memory in rows or in fractals; None if none is
    estimated to take less than `most` cycles."""
    product = group.product
    node = next(node for node in graph.nodes if is_product(node))
    whole = product.m % SIDE == 0 and product.n % SIDE == 0
    forms = [False] if graph.arrays[node.result].layout == ND else []
    split = partial(split_in, group, graph, split_cores, cores, parts)
    return fastest_way((partial(split, each, wanted) for each in [*forms, *[True] * whole]), most)


def given_split(
    given: Choices, group: ProductGroup, graph: Graph, split_cores: SplitCores, cores: int
) -> SplitProduct | None:
    """The split that choices say; None if they say another schedule.

    Raises:
        NoSpace: the product cannot be split so.
    """
    part, *others = given
    if others or not isinstance(part.choice, SplitChoice):
        return None
    parts = part.choice.parts
    if part.cores > cores or not can_be_split(group, graph, split_cores):
        raise NoSpace(f"a product in {parts} parts of k on {part.cores} cores, of {cores}")
    cut = PartsOfK.given(group.product.k, parts, part.cores)
    found = faster_form(group, graph, split_cores, part.cores, cut, Wanted(), math.inf)
    if found is None:
        raise NoSpace(f"a product in {parts} parts of k, or their sum")
    return found


def split_in(
    group: ProductGroup,
    graph: Graph,
    split_cores: SplitCores,
    cores: int,
    parts: PartsOfK,
    fractals: bool,
    wanted: Wanted,
    most: float,
) -> SplitProduct | None:
    """A product split in so many parts; None if it is estimated to take `most` cycles or more.

    Args:
        fractals: see `SplitProduct`.

    Raises:
        NoSpace: no kernel computes the parts, or their sum.
    """
    if _least(group.product, parts, split_cores, cores) >= most:
        return None
    node = next(node for node in graph.nodes if is_product(node))
    sums, inputs = sums_of(graph, node, parts.total, fractals, element_of(group.product))
    adders = split_cores.count(cores)
    plans = plans_of(partings_of(sums), split_cores.adding, adders)
    if len(plans) != 1:
        raise NoSpace("sums and others beside them")
    behind = split_cores.meeting_cycles(cores) + plans[0].plan.schedule.cycles
    products = partial_products(group.product, parts, cores, fractals)
    partial_bytes = 4 * math.prod(sums.arrays[sums.inputs[0]].shape)
    cycles = behind + _from_memory(group.product, partial_bytes, split_cores, cores)
    if cycles >= most:
        return None
    busy = 0
    for each in products:
        if behind >= most:
            return None
        try:
            found = quickly(each.product, split_cores.machine, each.cores, wanted, most - behind)
        except CompileError as error:
            raise NoSpace(error.message) from None
        if found is None or found.cycles + behind >= most:
            return None
        cycles, busy = max(cycles, found.cycles + behind), busy + min(each.cores, found.blocks)
    if busy < cores:
        cycles += split_cores.meeting_cycles(cores, waiting=True)
        cycles -= split_cores.meeting_cycles(cores)
    if cycles >= most:
        return None
    return SplitProduct(cores, adders, parts, products, fractals, inputs, plans[0], cycles)


def _from_memory(
    product: Product, partial_bytes: int, split_cores: SplitCores, cores: int
) -> float:
    """Cycles in which both factors come from the memory, if vector cores stand beside: partial
    products on cores of their own are weighed as if each had all of it. Vector cores, which find
    partial products in the L2, share it as if cube cores were still at work
    (`simulator.timing.gm_model.competing`): that takes about as long as if they came from the
    memory, too."""
    if split_cores.adders is None:
        return 0.0
    read = product.operand_bytes("a") + product.operand_bytes("b") + partial_bytes
    return SLOWER_MEMORY * read / cores / prices.share_of(split_cores.machine, cores).read


def _least(product: Product, parts: PartsOfK, split_cores: SplitCores, cores: int) -> float:
    """What no split in so many parts is below: its mads, and partial products to the L2 and back,
    each shared by all cores."""
    whole = product.fractals
    mads = prices.mad(split_cores.machine, whole.m * whole.k * whole.n, instructions=0)
    share = prices.share_of(split_cores.machine, cores)
    moved = 4 * parts.total * product.m * product.n / cores
    return mads / cores + moved / share.l2_write + moved / share.l2_read


def can_be_split(group: ProductGroup, graph: Graph, split_cores: SplitCores) -> bool:
    """Whether a product is one of two matrices, of f16, or that become it, or bytes, to rows or
    whole fractals, on cores that meet and have a vector unit each, or vector cores beside them."""
    product, apart = group.product, split_cores.adders is not None
    if product.direct != apart or product.batch != 1 or product.image is not None:
        return False
    if split_cores.machine.split or not can_meet(split_cores.adding):
        return False
    node = next(node for node in graph.nodes if is_product(node))
    if graph.windows or product.factor == SINGLES:
        return False
    return graph.arrays[node.result].layout == ND or _stays_in_fractals(graph, node)


def _stays_in_fractals(graph: Graph, node: Node) -> bool:
    """Whether the result of a product is whole fractals, and what follows is computed element by
    element of such arrays: partial products in fractals add up to it as they lie."""
    result = graph.arrays[node.result]
    if len(result.shape) != 2 or any(size % SIDE for size in result.shape):
        return False
    needed = set(graph.outputs)
    for other in reversed(graph.nodes):
        if other is node or other.result not in needed:
            continue
        needed.update(other.values)
        made, arrays = graph.arrays[other.result], [graph.arrays[v] for v in other.values]
        if other.name == "broadcast" and (made.shape, made.layout) == (result.shape, NZ):
            if arrays and _row_in_fractals(arrays[0], other) is None:
                return False
            continue
        if not any(array.layout == NZ for array in (made, *arrays)):
            continue  # of a row that is broadcast
        if other.name not in OPERATORS or not OPERATORS[other.name].elementwise:
            return False
        if any((a.shape, a.layout) != (result.shape, NZ) for a in (made, *arrays)):
            return False
        if any(a.element not in ELEMENTS for a in (made, *arrays)):
            return False
    return result.element in ELEMENTS


def _row_in_fractals(
    row: Tensor, broadcast: Node
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape and dimensions of what is broadcast to blocks of 16 columns, one after the other:
    of a row, a column or one number; None if it is none of them."""
    sizes = zip(row.shape, broadcast.attributes["dims"], strict=True)
    kept = [(size, dim) for size, dim in sizes if size > 1]
    if row.layout != ND or row.element not in ELEMENTS or len(kept) > 1:
        return None
    if not kept:
        return (), ()
    ((size, dim),) = kept
    return ((size // SIDE, SIDE), (0, 2)) if dim else ((size,), (1,))


def _in_fractals(graph: Graph, shape: tuple[int, ...]) -> Graph:
    """A group with its fractals as the arrays that they are."""
    made = replace(graph, arrays=list(graph.arrays), nodes=[])
    for node in graph.nodes:
        if node.name == "broadcast" and graph.arrays[node.result].layout == NZ and node.values:
            (value,) = node.values
            row = graph.arrays[value]
            found = _row_in_fractals(row, node)
            if found is not None:  # None where it leads to no result
                parts, dims = found
                if parts != row.shape:
                    made.nodes.append(Node("reshape", (value,), len(made.arrays), {}, node.members))
                    value = made.add(Tensor(parts, row.element))
                node = replace(node, operands=(value,), attributes={"dims": dims})
        made.nodes.append(node)
    made.arrays = [Tensor(shape, a.element) if a.layout == NZ else a for a in made.arrays]
    return made


def _ways(product: Product, cores: int, split_cores: SplitCores) -> list[PartsOfK]:
    """Parts of k that are weighed."""
    shares = SHARES if split_cores.adders is None else SHARES_APART
    ways = [PartsOfK.of(product.k, cores // share) for share in shares if share < cores]
    return list(dict.fromkeys(parts for parts in ways if parts.total > 1))


def partial_products(
    product: Product, parts: PartsOfK, cores: int, fractals: bool
) -> tuple[PartialProducts, ...]:
    """The products of parts of k, as batches of matrices that are parts of A and of B: rows or
    columns of them in memory."""
    pitches = {
        name: 0 if product.operand(name).nz else product.stored_columns(name) for name in "ab"
    }

    def products(count: int, k: int) -> Product:
        return replace(
            product,
            batch=count,
            k=k,
            a=replace(product.a, pitch=pitches["a"]),
            b=replace(product.b, pitch=pitches["b"]),
            c=ProductResult(fractals, 4),
            epilogue=plain(product.sum_type, fractals),
            at_work=0 if product.direct else cores,
            whole_rows=False,
        )

    alike = products(parts.count, parts.size)
    if not parts.rest:
        return (PartialProducts(alike, cores),)
    own = cores * parts.count // parts.total
    rest = products(1, parts.rest)
    return PartialProducts(alike, own), PartialProducts(rest, cores - own)


def element_of(product: Product) -> str:
    """The element type of a product's sums, and so of its partial products."""
    return product.sum_type.replace("s", "i")


def _partial_shape(m: int, n: int, parts: int, fractals: bool) -> list[int]:
    return [parts, n // SIDE, m, SIDE] if fractals else [parts, m, n]


def sums_of(
    graph: Graph, node: Node, parts: int, fractals: bool, element: str = "f32"
) -> tuple[Graph, tuple[int, ...]]:
    """What adds partial products up, and all else that the group's outputs need, whether it stands
    behind the product or in front of it; and which of the group's inputs that takes.

    Args:
        element: of partial products.
    """
    made = Graph()
    result = graph.arrays[node.result]
    *outer, n = result.shape
    m = math.prod(outer)
    shape = tuple(_partial_shape(m, n, parts, fractals)) if fractals else (parts, *result.shape)
    partial = made.add(Tensor(shape, element))

    def step(name: str, value: int, shape: tuple[int, ...], **attributes: Any) -> int:
        behind = made.add(Tensor(shape, element))
        made.nodes.append(Node(name, (value,), behind, attributes, node.members))
        return behind

    total = step("reduce", partial, shape[1:], kind="add", dims=(0,))
    if result.layout == NZ:
        graph = _in_fractals(graph, shape[1:])
        result = graph.arrays[node.result]
    elif fractals:
        total = step("transpose", total, (m, n // SIDE, SIDE), permutation=(1, 0, 2))
        total = step("reshape", total, result.shape)
    known = {node.result: total}
    if result.element != element:
        known[node.result] = made.add(result)
        made.nodes.append(Node("cast", (total,), known[node.result], members=node.members))
    made.inputs = [partial]
    return made, add_followers(made, graph, known)
