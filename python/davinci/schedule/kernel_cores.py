"""How many cores the kernel of a group takes, of whatever kind: what it is weighed by.

attention, pools, loops    their schedule on so many cores, and its estimate
products                   the best of a few schedules, played on paper
all others                 the longest of the parts that share the launch
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.schedule.attention import choice as attention_choice
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.group import read_attention
from davinci.schedule.choices import Choices, LoopChoice
from davinci.schedule.core_count import CoreCount, Weigh, Weighed, cheapest, counts
from davinci.schedule.graph import Graph, KeyedGraph
from davinci.schedule.loops.choice import are_chained, cores_each, schedules_of
from davinci.schedule.loops.group import LoopGroup
from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.moves.blocks import BlockPlan
from davinci.schedule.moves.choice import MovePlan
from davinci.schedule.moves.combines import CombinePlan
from davinci.schedule.moves.element_gathers import ElementPlan
from davinci.schedule.moves.fractal_moves import IMPROVED
from davinci.schedule.moves.piece_rules import RULES
from davinci.schedule.pools import choice as pool_choice
from davinci.schedule.pools.group import is_pool, read_pool
from davinci.schedule.pools.pool import Pool
from davinci.schedule.products.behind import cycles_with
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import quick_schedule, quickly
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.group import ProductGroup, is_product, read_group
from davinci.schedule.side_by_side import partings_of, plans_of
from davinci.schedule.stages import CoresWay, pruned
from davinci.schedule.vector.phased_schedule import PhasedSchedule
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.tiled_schedule import VectorSchedule

SLOW = 4
"""Fewer cores on which a kernel takes so many times as long as on those that it takes alone are not
weighed: kernels that share a launch wait for the longest of them."""


def cores_of(
    graph: Graph,
    machine: Machine,
    cores: int,
    wanted: Wanted | None = None,
    algorithm: str = IMPROVED,
    price: LaunchPrice | None = None,
    adders: Machine | None = None,
    meets: bool = False,
) -> CoreCount:
    """The number of cores, at most `cores`, on which a group and its launch take least time.

    Args:
        wanted: what a user asks for of products.
        algorithm: of fractalisation.
        price: of launching it; by default alone.
        adders: the vector cores beside cube cores, if what follows a product is theirs.
        meets: whether cores may meet in a kernel of the vector unit.

    Raises:
        NoSpace: no kernel can compute the group.
        CompileError: no schedule of a product fits.
    """
    price, wanted = price or LaunchPrice(machine), wanted or Wanted()
    if sum(map(is_product, graph.nodes)) == 1:
        known = KeyedGraph(graph.key(), graph)
        return _cores_of_product(known, machine, cores, wanted, price, adders)
    weigh = weigher_of(graph, machine, cores, wanted, algorithm, meets)
    return cheapest(price, cores, weigh, _has_pieces(graph))


@lru_cache(maxsize=256)
def _cores_of_product(
    known: KeyedGraph,
    machine: Machine,
    cores: int,
    wanted: Wanted,
    price: LaunchPrice,
    adders: Machine | None,
) -> CoreCount:
    """`cores_of` a product: stages weigh it before the kernel is built, which asks again."""
    group = read_group(known.graph, machine)
    return cheapest(price, cores, _weigh_product(group, machine, wanted, adders))


def count_alone(graph: Graph, machine: Machine, cores: int) -> CoreCount | None:
    """The number of cores, at most `cores`, that a group takes with a launch of its own; None where
    its scalar unit accesses memory.

    Raises:
        NoSpace: no kernel can compute the group.
        CompileError: no schedule of a product fits.
    """
    return None if _on_scalar_unit(graph, machine, cores) else cores_of(graph, machine, cores)


def ways_of_group(
    graph: Graph, machine: Machine, cores: int, alone: CoreCount, most: float
) -> tuple[CoresWay, ...]:
    """A group on several numbers of cores, at most those that it takes with a launch of its own:
    these, and fewer as long as it takes at most `most` cycles.

    Args:
        alone: what `count_alone` found for as many cores.
    """
    weigh = weigher_of(graph, machine, cores, Wanted(), IMPROVED)
    found: list[CoresWay] = []
    for count in reversed([count for count in counts(cores) if count <= alone.cores]):
        try:
            weighed = alone.tried.get(count) or weigh(count, most if found else math.inf)
        except (NoSpace, CompileError):  # as parts that are more than so few cores
            break
        if weighed is None or (found and weighed.cycles > most):
            break
        found.append(CoresWay(max(1, min(count, weighed.blocks)), weighed.cycles))
        if weighed.cycles > SLOW * found[0].cycles:
            break
    return pruned(found)


def _has_pieces(graph: Graph) -> bool:
    """Whether a kernel puts elements in other places, piece by piece."""
    others = any(is_pool(node) or is_product(node) for node in graph.nodes)
    return not others and any(node.name in RULES for node in graph.nodes)


def _on_scalar_unit(graph: Graph, machine: Machine, cores: int) -> bool:
    """Whether the scalar unit moves elements in some part of a kernel, in the plan for so many
    cores."""
    if any(is_pool(node) or is_product(node) for node in graph.nodes):
        return False
    plans = [each.plan for each in plans_of(partings_of(graph), machine, cores)]
    return any(
        isinstance(plan, BlockPlan | CombinePlan)
        or (isinstance(plan, ElementPlan) and plan.schedule.scalar)
        or (isinstance(plan, MovePlan) and plan.schedule.scalar)
        for plan in plans
    )


def cores_of_loops(
    loops: Sequence[LoopGroup], machine: Machine, cores: int, price: LaunchPrice | None = None
) -> CoreCount:
    """The same of loops side by side, each on that many cores at most."""

    def weigh(count: int, most: float) -> Weighed:
        made = schedules_of(loops, machine, count)
        cycles, units = max(each.cycles for each in made), sum(each.units for each in made)
        return Weighed(cycles, units, beside=1 if are_chained(loops) else len(loops))

    most = cores_each(loops, machine, cores)
    return cheapest(price or LaunchPrice(machine), most, weigh)


def cores_of_given_loops(given: Choices, loops: int, cores: int) -> int:
    """The cores that choices give loops side by side, each the same.

    Raises:
        NoSpace: they are none of so many loops, or of more cores.
    """
    found = {part.cores for part in given}
    if len(given) != loops or not all(isinstance(part.choice, LoopChoice) for part in given):
        raise NoSpace(f"choices that are not those of {loops} loops")
    if len(found) != 1 or max(found) > cores:
        raise NoSpace(f"loops on {', '.join(map(str, sorted(found)))} cores, of {cores}")
    return found.pop()


def weigher_of(
    graph: Graph,
    machine: Machine,
    cores: int,
    wanted: Wanted,
    algorithm: str,
    meets: bool = False,
) -> Weigh:
    """What weighs the kernel of a group on at most `cores` cores; `meets` as of `cores_of`.

    Raises:
        NoSpace: no kernel can compute the group.
    """
    if any(map(is_pool, graph.nodes)):
        return _weigh_pool(read_pool(graph).pool, machine)
    products = sum(map(is_product, graph.nodes))
    if products == 1:
        return _weigh_product(read_group(graph, machine), machine, wanted)
    if products:
        return _weigh_attention(read_attention(graph).attention, machine, cores)
    return _weigh_parts(graph, machine, algorithm, meets)


def _weigh_pool(pool: Pool, machine: Machine) -> Weigh:
    """A function that weighs a pool on a number of cores, without a limit."""

    def weigh(count: int, most: float) -> Weighed:
        schedule = pool_choice.choose(pool, machine, count)
        return Weighed(schedule.cycles, schedule.cores, schedule)

    return weigh


def _weigh_attention(attention: Attention, machine: Machine, cores: int) -> Weigh:
    """A function that weighs attention on a number of cores, at most `cores`, without a limit."""

    def weigh(count: int, most: float) -> Weighed:
        schedule = attention_choice.quickly(attention, machine, count, cores)
        cycles, blocks = attention_choice.cycles_and_units(attention, schedule, machine, count)
        return Weighed(cycles, blocks)

    return weigh


def _weigh_product(
    group: ProductGroup, machine: Machine, wanted: Wanted, adders: Machine | None = None
) -> Weigh:
    """A function that estimates the cycles of a product's kernel on a given number of cores.

    Args:
        adders: the vector cores beside cube cores, whose cycles for what follows the product are
            counted; None where these are left out.
    """
    product, behind = group.product, group.behind

    def weigh(count: int, most: float) -> Weighed | None:
        if not (product.batch and product.m and product.k and product.n):
            return Weighed(0, 1)
        if behind is None or adders is None:
            return quickly(product, machine, count, wanted, most)
        found = quick_schedule(product, machine, count, wanted, most)
        if found is None:
            return None
        cycles, schedule = found
        cycles = cycles_with(behind, product, schedule, cycles, count, adders)
        return Weighed(cycles, shares_of(product, schedule))

    return weigh


def _stores_elements(schedule: object) -> bool:
    """Whether on this number of cores the scalar unit moves elements that on others are blocks."""
    return isinstance(schedule, VectorSchedule | PhasedSchedule) and schedule.scalar


def _weigh_parts(graph: Graph, machine: Machine, algorithm: str, meets: bool) -> Weigh:
    """A function that weighs the independent parts of a vector or movement kernel on cores that
    they share: the slowest of them counts."""
    partings = partings_of(graph)

    def weigh(count: int, most: float) -> Weighed:
        plans = plans_of(partings, machine, count, algorithm=algorithm, meets=meets)
        made = [each.plan.schedule for each in plans]
        cycles, blocks = max(each.cycles for each in made), sum(each.cores for each in made)
        return Weighed(cycles, blocks, plans, any(map(_stores_elements, made)))

    return weigh
