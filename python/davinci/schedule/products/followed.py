"""Whether what follows a product, and is more than an epilogue, shares its kernel.

Where cores have both units, it is done to whole rows in front of memory (`row_work`). Where cubes
have cores of their own, it is done beside the product, part by part on the vector cores (`behind`),
or in the sum of partial products where k is split (`split_k`). Else it is another kernel, or phase.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from davinci.errors import CompileError
from davinci.machine import Machine, for_cube, for_vector, vector_cores_for, within_l2
from davinci.schedule.graph import Graph, KeyedGraph
from davinci.schedule.meetings import LaunchPrice, can_meet, meeting_cycles
from davinci.schedule.products.behind import cycles_with
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import quick_schedule
from davinci.schedule.products.group import ProductGroup, read_group
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.schedule.products.split_k import SplitCores, split_of
from davinci.schedule.side_by_side import cycles_of
from davinci.schedule.vector.space import NoSpace

GAIN = 1.05
"""How many times the cycles of a product with what follows it beside it both take one after the
other, where it is worth it: estimates of different ways are further apart than those of one."""


def pays(
    group: ProductGroup, graph: Graph, chip: Machine, cores: int, from_memory: bool = False
) -> bool:
    """Whether what follows a product takes less time in its kernel than behind it on all vector
    cores, which is another phase.

    Args:
        group: with something that follows its product on other cores.
        chip: with both kinds of cores.
        from_memory: whether what follows takes an array as large as the product's result that no
            kernel has made. That comes from the memory, which takes as long for one kernel as for
            two; estimates are those of values that the L2 has, and parts of whole rows, of which
            there are few for a core, wait for it longer.
    """
    cube, vector, behind = for_cube(chip), for_vector(chip), group.behind
    assert behind is not None, "a group of a product alone"
    if behind.whole_rows and (from_memory or not behind.reduces):
        # Rows that end inside a block and are not reduced go to the next kernel for less: it takes
        # whole blocks of several of them at a time.
        return False
    product, alone = group.product, replace(group.product, whole_rows=False)
    try:
        of_parts, schedule = _found(product, cube, cores)
        cycles = of_parts if product == alone else _found(alone, cube, cores)[0]
    except CompileError:
        return False
    after = replace(behind.graph, lanes_apart=False)
    try:
        apart = cycles_of(after, within_l2(vector), vector_cores_for(chip, cores), growing=False)
    except NoSpace:
        return False
    others = meeting_cycles(chip, cores) + apart
    try:
        beside = cycles_with(behind, product, schedule, of_parts, cores, vector)
    except NoSpace:
        beside = math.inf
    if beside * GAIN < cycles + others:
        return True
    if behind.reduces:
        return False  # rows are not reduced while parts of k are added up
    price = LaunchPrice(cube)
    least = price.cycles(cores) + (cycles + others) / GAIN
    split = split_of(group, graph, SplitCores(cube, vector), cores, Wanted(), price, least)
    # A split product alone takes as long, but for what follows, and that is then another phase.
    return split is not None and split.cycles <= cycles


def rows_pay(whole: Graph, first: Graph, second: Graph, machine: Machine, cores: int) -> bool:
    """Whether a product and what reduces its rows take less time as one kernel than as two that
    are phases of one launch, on cores that have both units.

    Args:
        whole: the group.
        first: the product, with those elementwise operators that follow it.
        second: what follows these.
    """
    known = (KeyedGraph(graph.key(), graph) for graph in (whole, first, second))
    return _rows_pay(*known, machine, cores)


@lru_cache(maxsize=256)
def _rows_pay(
    whole: KeyedGraph, first: KeyedGraph, second: KeyedGraph, machine: Machine, cores: int
) -> bool:
    """`rows_pay`, found once for layers that are alike."""
    try:
        both = read_group(whole.graph, machine).product
        alone = _found(read_group(first.graph, machine).product, machine, cores)[0]
        after = cycles_of(second.graph, within_l2(machine), cores, growing=False)
        meeting = meeting_cycles(machine, cores) if can_meet(machine) else machine.launch_cycles
        most = (alone + min(meeting, machine.launch_cycles) + after) / GAIN
        found = quick_schedule(both, machine, cores, Wanted(), most)
    except (CompileError, NoSpace):
        return False
    return found is not None and found[0] < most


def _found(product: Product, cube: Machine, cores: int) -> tuple[float, ProductSchedule]:
    """A product's estimated cycles, and the schedule that takes them.

    Raises:
        CompileError: no schedule fits.
    """
    found = quick_schedule(product, cube, cores, Wanted(), math.inf)
    assert found is not None, "a limit without one"
    return found
