"""Whether what follows a product shares its kernel, where cubes have cores of their own.

It does beside the product, part by part on the vector cores (`behind`), or in the sum of partial
products where k is split (`split_k`); else it is another phase on all vector cores.
"""

from __future__ import annotations

import math
from dataclasses import replace

from davinci.errors import CompileError
from davinci.machine import Machine, for_cube, for_vector, vector_cores_for, within_l2
from davinci.schedule.graph import Graph
from davinci.schedule.meetings import LaunchPrice, meeting_cycles
from davinci.schedule.products.behind import cycles_with
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import quick_schedule
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.split_k import SplitCores, split_of
from davinci.schedule.side_by_side import cycles_of
from davinci.schedule.vector.space import NoSpace

GAIN = 1.05
"""How many times the cycles of a product with what follows it beside it both take one after the
other, where it is worth it: estimates of different ways are further apart than those of one."""


def pays(group: ProductGroup, graph: Graph, chip: Machine, cores: int) -> bool:
    """Whether what follows a product takes less time in its kernel than behind it on all vector
    cores, which is another phase.

    Args:
        group: with something that follows its product on other cores.
        chip: with both kinds of cores.
    """
    cube, vector, behind = for_cube(chip), for_vector(chip), group.behind
    assert behind is not None, "a group of a product alone"
    try:
        found = quick_schedule(group.product, cube, cores, Wanted(), math.inf)
        assert found is not None, "a limit without one"
        cycles, schedule = found
    except CompileError:
        return False
    after = replace(behind.graph, lanes_apart=False)
    try:
        apart = cycles_of(after, within_l2(vector), vector_cores_for(chip, cores), growing=False)
    except NoSpace:
        return False
    others = meeting_cycles(chip, cores) + apart
    price = LaunchPrice(cube)
    least = price.cycles(cores) + (cycles + others) / GAIN
    split = split_of(group, graph, SplitCores(cube, vector), cores, Wanted(), price, least)
    # A split product alone takes as long, but for what follows, and that is then another phase.
    if split is not None and split.cycles <= cycles:
        return True
    try:
        beside = cycles_with(behind, group.product, schedule, cycles, cores, vector)
    except NoSpace:
        return False
    return beside * GAIN < cycles + others
