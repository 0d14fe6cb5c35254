"""Products whose factors all cores lay out in fractals first, once, before they multiply.

    A, B in rows -> fractals in global memory       blocks of rows and columns, shared by the cores
    all cores meet
    C = A B                                         of factors in fractals

A core that multiplies brings rows of a factor through UB, where they become fractals; so do all
others that take the same rows, and it does so again for each tile. Rows that end inside a block of
memory take it longest. Laid out before, each factor crosses UB once; what that costs is the
meeting, and the way of the factor to memory and back.

Where cube and vector cores are apart, those have nothing else to do: they lay B out while the cube
cores multiply the first rows of A by B as it is, which then go on with all other rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from davinci.errors import CompileError
from davinci.machine import Machine, prices
from davinci.schedule.choices import Choices, Factors, LaidOutChoice, PartChoice
from davinci.schedule.meetings import LaunchPrice, can_meet, meeting_cycles
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import quick_schedule, quickly
from davinci.schedule.products.cost import Busy, ProductCosts
from davinci.schedule.products.estimate import cycles_from_mad, cycles_to_mad, least_on
from davinci.schedule.products.fastest_way import fastest_way
from davinci.schedule.products.footprint import parting_buffers, staging_bytes
from davinci.schedule.products.product import Pieces, Product, ProductSchedule
from davinci.schedule.products.split_k import MEETINGS, SplitCores
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_BYTES, ceil_div, even_cuts, round_up
from davinci.units import FRACTAL_SIDE as SIDE

FACTORS: tuple[Factors, ...] = ("b", "a", "ab")
"""The factors that may be laid out, in the order in which ways are weighed."""

SLOTS = 2
"""Buffers of rows, and of fractals, of a core that lays out."""

HEIGHTS, WIDTHS = 8, 16
"""Sizes of blocks that are weighed, of rows and of columns of fractals."""

GAIN = 1.04
"""How many times the cycles of laid out factors a product takes, as it is otherwise, where they are
worth it: estimates of different ways are further apart than those of one."""


FIRST_ROWS, FIRST_WAYS = 8, 3
"""Rows of fractals that are weighed as the first of C, of which B comes as it is: multiples of so
many, that many of them."""

FAR = 1.1
"""How many times too slow first rows are, with the part of all rows that the others are, where no
more of them are weighed: each `FIRST_ROWS` more change that by 4 % at most."""


@dataclass(frozen=True)
class FactorLayout:
    """Blocks in which cores bring one factor from rows to fractals.

    Attributes:
        factor: "a" or "b".
        rows, columns: fractals of a block of its stored matrices, as many for each turn of a core.
        dense: whether whole rows come as one run of memory and are parted in UB.
        turns: blocks of the core that has most.
        cycles: estimated, on all cores.
    """

    factor: str
    rows: int
    columns: int
    dense: bool
    turns: int
    cycles: float


@dataclass(frozen=True)
class LaidOutProduct:
    """A product some of whose factors are laid out first.

    Attributes:
        cores: that multiply, and lay out and meet if no others do.
        factors: that are laid out.
        layouts: of each of them.
        product: of the factors as they are then.
        cycles: estimated, without a launch.
        first: the product of the first rows of C, made meanwhile of the factors as they are.
        layers: vector cores beside the others, which lay out and meet; 0 if there are none.
    """

    cores: int
    factors: Factors
    layouts: tuple[FactorLayout, ...]
    product: Product
    cycles: float
    first: Product | None = None
    layers: int = 0

    @property
    def choices(self) -> Choices:
        """The number of cores and the factors, as a file of schedules has them."""
        return (PartChoice(cores=self.cores, choice=LaidOutChoice(factors=self.factors)),)

    def __str__(self) -> str:
        blocks = " and ".join(
            f"{each.factor} laid out by {each.rows} x {each.columns}"
            f"{' as one run' if each.dense else ''}"
            for each in self.layouts
        )
        if not self.layers:
            return f"{blocks} on {self.cores} cores, which meet"
        where = "before all" if self.first is None else f"beside the first {self.first.m}"
        return f"{blocks} on {self.layers} vector cores {where} rows"


def laid_out_of(
    product: Product,
    machine: Machine,
    cores: int,
    wanted: Wanted,
    price: LaunchPrice,
    least: float,
) -> LaidOutProduct | None:
    """The fastest way to lay factors out first, on at most so many cores; None if none takes, with
    its launch, so much less than `least` cycles that it is worth it."""
    if cores < 2 or least < MEETINGS * meeting_cycles(machine, cores):
        return None
    legal = (factors for factors in FACTORS if can_be_laid_out(product, machine, factors))
    ways = (partial(laid_out_in, product, machine, cores, factors, wanted) for factors in legal)
    return fastest_way(ways, (least - price.cycles(cores)) / GAIN)


def laid_out_beside(
    product: Product,
    split_cores: SplitCores,
    cores: int,
    wanted: Wanted,
    price: LaunchPrice,
    least: float,
) -> LaidOutProduct | None:
    """B laid out by the vector cores beside so many cube cores; None if that does not take, with
    its launch, so much less than `least` cycles that it is worth it."""
    if not can_be_laid_out_beside(product, split_cores):
        return None
    if least < MEETINGS * split_cores.meeting_cycles(cores):
        return None
    try:
        return beside_in(product, split_cores, cores, wanted, (least - price.cycles(cores)) / GAIN)
    except NoSpace:
        return None


def can_be_laid_out_beside(product: Product, split_cores: SplitCores) -> bool:
    """Whether both factors are single matrices of f16 in rows, and C is, on cube cores that have
    vector cores beside them."""
    if split_cores.adders is None or not product.direct or not can_meet(split_cores.adders):
        return False
    plain = product.batch == 1 and product.image is None and product.factor == "f16"
    rows = not (product.a.nz or product.b.nz or product.c.nz)
    return plain and rows and not (product.a.pitch or product.b.pitch)


def beside_in(
    product: Product, split_cores: SplitCores, cores: int, wanted: Wanted, most: float
) -> LaidOutProduct | None:
    """A product whose B vector cores lay out, before all of it or beside its first rows; None if it
    is estimated to take `most` cycles or more.

    Raises:
        NoSpace: no block of B fits UB, or no schedule of the product fits.
    """
    machine, layers = split_cores.machine, split_cores.count(cores)
    layout = layout_of(staged_in_ub(product), "b", split_cores.adding, layers, beside=True)
    told = layout.cycles + split_cores.meeting_cycles(cores)
    made = replace(product, b=replace(product.b, nz=True))
    try:
        whole = quick_schedule(made, machine, cores, wanted, most)
        if whole is None or whole[0] >= most:
            return None
        if best := before_all_rows(made, layout, cores, layers, told + whole[0], most):
            most = best.cycles
        beside = FirstRows(product, made, machine, cores, wanted, told, *whole)
        for first, rest, cycles in beside.ways(most):
            if cycles < most:
                most = cycles
                best = LaidOutProduct(cores, "b", (layout,), rest, cycles, first, layers)
    except CompileError as error:
        raise NoSpace(error.message) from None
    return best


def before_all_rows(
    product: Product, layout: FactorLayout, cores: int, layers: int, cycles: float, most: float
) -> LaidOutProduct | None:
    """The way in which cube cores wait for all of B, as where rows of it that are no whole blocks
    become fractals slowly; None if that takes `most` cycles or more."""
    if cycles >= most:
        return None
    return LaidOutProduct(cores, "b", (layout,), product, cycles, None, layers)


@dataclass(frozen=True)
class FirstRows:
    """A product of which B comes as it is for the first rows of A, and in fractals for the others.

    Attributes:
        product, made: with B in rows, and in fractals.
        told: cycles until cores know that B is there in fractals.
        cycles, schedule: of all rows with B in fractals.
    """

    product: Product
    made: Product
    machine: Machine
    cores: int
    wanted: Wanted
    told: float
    cycles: float
    schedule: ProductSchedule

    def ways(self, most: float) -> Iterator[tuple[Product, Product, float]]:
        """Products of the first rows and of the others, with the cycles of both; of those that take
        more than `most` not all."""
        height = self.product.fractals.m
        # Of the other rows, the first mad is prepared while the first rows are multiplied.
        prepared = cycles_to_mad(self._costs(self.made), self.schedule)
        needed = math.ceil(self.told / self.cycles * height)
        begin = round_up(max(1, needed), FIRST_ROWS)
        for rows in range(begin, min(begin + FIRST_WAYS * FIRST_ROWS, height), FIRST_ROWS):
            first, rest = rows_of(self.product, 0, rows), rows_of(self.made, rows, height)
            multiplied = self._multiplied(first, most - least_on(self._costs(rest), self.cores))
            if multiplied is None:
                continue
            begun = max(multiplied - prepared, self.told)
            if begun + self.cycles * (1 - rows / height) > FAR * most:
                break
            after = quickly(rest, self.machine, self.cores, self.wanted, most - begun)
            if after is not None:
                most = min(most, begun + after.cycles)
                yield first, rest, begun + after.cycles

    def _multiplied(self, first: Product, most: float) -> float | None:
        """Cycles until the last mad of the first rows is over, whose tile leaves L0C while the next
        one is made; None if all of them take more than `most`."""
        found = quick_schedule(first, self.machine, self.cores, self.wanted, most)
        return found and found[0] - cycles_from_mad(self._costs(first), found[1])

    def _costs(self, product: Product) -> ProductCosts:
        return ProductCosts(product, self.machine)


def staged_in_ub(product: Product) -> Product:
    """A product as one whose factors become fractals in UB."""
    a, b = (replace(product.operand(name), direct=False) for name in "ab")
    return replace(product, a=a, b=b, epilogue=None)


def rows_of(product: Product, start: int, stop: int) -> Product:
    """The product of some rows of fractals of A and C."""
    a = product.a
    if a.k_rows:
        a = replace(a, pitch=product.stored_columns("a"))
    return replace(product, m=min(product.m, stop * SIDE) - start * SIDE, a=a)


def given_laid_out(
    given: Choices, product: Product, split_cores: SplitCores, cores: int
) -> LaidOutProduct | None:
    """The way that choices say; None if they say another schedule.

    Raises:
        NoSpace: the factors cannot be laid out so.
    """
    part, *others = given
    if others or not isinstance(part.choice, LaidOutChoice):
        return None
    factors, machine = part.choice.factors, split_cores.machine
    fits = can_be_laid_out(product, machine, factors)
    beside = factors == "b" and can_be_laid_out_beside(product, split_cores)
    if not 2 <= part.cores <= cores or not (fits or beside):
        raise NoSpace(f"factors {factors} laid out on {part.cores} cores, of {cores}")
    if beside:
        made = beside_in(product, split_cores, part.cores, Wanted(), math.inf)
        if made is None:
            raise NoSpace(f"b laid out beside the first rows of {product.m}")
        return made
    found = laid_out_in(product, machine, part.cores, factors, Wanted(), math.inf)
    assert found is not None, "a limit without one"
    return found


def can_be_laid_out(product: Product, machine: Machine, factors: Factors) -> bool:
    """Whether these factors are matrices of floats in rows, on a machine whose cores meet and have
    a vector unit each."""
    if machine.split or product.direct or product.factor != "f16" or not can_meet(machine):
        return False
    if "a" in factors and product.image is not None:
        return False
    operands = [product.operand(name) for name in factors]
    return all(not operand.nz and not operand.pitch for operand in operands)


def laid_out_in(
    product: Product, machine: Machine, cores: int, factors: Factors, wanted: Wanted, most: float
) -> LaidOutProduct | None:
    """A product of which these factors are laid out first; None if it is estimated to take `most`
    cycles or more.

    Raises:
        NoSpace: no block of a factor fits UB, or no schedule of the product fits.
    """
    layouts = tuple(layout_of(product, name, machine, cores) for name in factors)
    before = meeting_cycles(machine, cores) + sum(layout.cycles for layout in layouts)
    if before >= most:
        return None
    made = product
    for name in factors:
        operand = replace(product.operand(name), nz=True, itemsize=FRACTAL_BYTES // SIDE**2)
        made = replace(made, a=operand) if name == "a" else replace(made, b=operand)
    try:
        found = quickly(made, machine, cores, wanted, most - before)
    except CompileError as error:
        raise NoSpace(error.message) from None
    if found is None or found.cycles + before >= most:
        return None
    return LaidOutProduct(cores, factors, layouts, made, found.cycles + before)


def matrices_of(product: Product, name: str) -> int:
    """Matrices of a factor."""
    return product.batch if name == "a" else product.matrices or product.batch


def layout_of(
    product: Product, name: str, machine: Machine, cores: int, beside: bool = False
) -> FactorLayout:
    """The blocks of a factor with which all cores are done soonest.

    Args:
        beside: whether others multiply meanwhile: what is laid out stays in the L2 if that holds
            it beside the rows that it is made of.

    Raises:
        NoSpace: no block fits UB.
    """
    costs = ProductCosts(product, machine, missing=1.0)
    back = not beside or 2 * product.operand_bytes(name) > machine.l2.bytes
    ways = (
        _layout(product, name, machine, cores, costs, pieces, back)
        for pieces in _blocks(product, name)
        if layout_bytes(product, name, pieces) <= machine.buffer("UB").bytes
    )
    found = min(ways, key=lambda way: way.cycles, default=None)
    if found is None:
        raise NoSpace("rows of a factor that have no room in UB")
    return found


def _blocks(product: Product, name: str) -> Iterator[Pieces]:
    """Blocks of a factor that are weighed."""
    rows, columns = stored_fractals(product, name)
    heights, widths = even_cuts(rows, rows)[::-1][:HEIGHTS], even_cuts(columns, columns)[:WIDTHS]
    for height, width in itertools.product(heights, widths):
        yield pieces_of(product, name, height, width, False)
        if width == columns and product.ends(name):
            yield pieces_of(product, name, height, width, True)


def pieces_of(product: Product, name: str, rows: int, columns: int, dense: bool) -> Pieces:
    """A block as what a product brings at once."""
    k, other = (rows, columns) if product.operand(name).k_rows else (columns, rows)
    return Pieces(k, other, 1, rows, 1, dense=dense)


def stored_fractals(product: Product, name: str) -> tuple[int, int]:
    """Fractals of the stored rows and columns of a factor."""
    rows, columns = product.stored_rows(name), product.stored_columns(name)
    return ceil_div(rows, SIDE), ceil_div(columns, SIDE)


def layout_bytes(product: Product, name: str, pieces: Pieces) -> int:
    """Bytes of UB that a core takes which lays blocks of a factor out."""
    came, made = staging_bytes(product.operand(name), pieces)
    return SLOTS * (came + made) + sum(layout_scratch(product, name, pieces).values())


def layout_scratch(product: Product, name: str, pieces: Pieces) -> dict[str, int]:
    """Bytes of the buffers in which rows of a block are parted, and ends of rows moved."""
    other = Pieces(1, 1, 1, 1, 1)
    a, b = (replace(product.operand(x), nz=x != name) for x in "ab")
    alone = replace(product, a=a, b=b)
    return parting_buffers(alone, (pieces, other) if name == "a" else (other, pieces))


def _layout(
    product: Product,
    name: str,
    machine: Machine,
    cores: int,
    costs: ProductCosts,
    pieces: Pieces,
    back: bool,
) -> FactorLayout:
    """A way with its cycles: of the busiest core's blocks one after the other, of which each pipe
    has one at a time, or of all bytes at the core's share of the memory.

    Args:
        back: whether what is laid out leaves the L2 for the memory in the end, which what comes in
            waits for.
    """
    size = (pieces.k, pieces.other)
    rows, columns = size if product.operand(name).k_rows else size[::-1]
    tall, wide = stored_fractals(product, name)
    count = matrices_of(product, name) * ceil_div(tall, rows) * ceil_div(wide, columns)
    used, turns = min(cores, count), ceil_div(count, cores)
    fill = costs.crossed(name, pieces, *size)
    block = rows * columns * FRACTAL_BYTES
    moved = block * (back + product.operand(name).itemsize * SIDE**2 / FRACTAL_BYTES)
    memory = moved / prices.share_of(machine, used).read
    each = Busy(max(fill.mte2, memory), fill.v, prices.writing(machine).busy(block, 1))
    cycles = prices.ends(machine) + each.sum + (turns - 1) * each.most
    return FactorLayout(name, rows, columns, pieces.dense, turns, cycles)
