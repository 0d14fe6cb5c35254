"""How many cores the kernels take that will be phases of one launch.

Such a launch has the cores of the phase that has most, all of which meet behind each phase. So the
number that it has is weighed for all kernels together: a kernel may use as many without a price. On
a split machine whose both kinds of cores are in the launch, the number is that of cube cores, each
of which brings its vector cores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.mlir import Op, callee_of, ir, operations, symbol_name
from davinci.passes.analysis.kernels import (
    CORES,
    LAUNCHED_ALONE,
    STAGE,
    UNIT,
    kernels,
    launched_kernels,
    seen_by,
    takes_both,
)
from davinci.passes.analysis.loop_graph import loops_of
from davinci.passes.ascend.tensor_ops import fold_numbers
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.given_choices import given_choices
from davinci.passes.ascend_to_cce.groups import (
    count_of,
    count_of_loops,
    group_of,
    is_group,
    loop_groups,
    may_meet,
)
from davinci.schedule.core_count import CoreCount
from davinci.schedule.meetings import LaunchPrice, can_meet
from davinci.schedule.vector.space import NoSpace
from davinci.units import ceil_div


@dataclass(frozen=True)
class LaunchPhases:
    """The phases of a launch of all kernels of groups.

    Attributes:
        machine: as a launch of all of them sees it.
        count: how many.
        calls: of each kernel, by name.
        seen: by name, the machine as the kernel sees it where it has a launch of its own.
        share: by name, blocks that the kernel may have for each core of the launch.
        least: cores that the launch has at least, for kernels that share a phase.
    """

    machine: Machine
    count: int
    calls: Mapping[str, int]
    seen: Mapping[str, Machine]
    share: Mapping[str, int]
    least: int

    @property
    def price(self) -> LaunchPrice:
        """The price of a phase of the launch, besides the cycles of its kernel."""
        return LaunchPrice(self.machine, self.count)


def with_shared_cores(root: Op, target: Target, weigh_many: bool = False) -> Target:
    """The target with the cores of kernels, weighed for all of them together; where each takes all,
    it says that they are phases.

    Args:
        weigh_many: leave kernels a launch each where all of them together take less time so.
    """
    groups = {symbol_name(kernel): kernel for kernel in kernels(root) if is_group(kernel)}
    phases = phases_of(root, groups, target.machine)
    if phases.count < 2 or not can_meet(target.machine):
        return target
    if target.all_cores:
        return replace(target, joined=True)
    alone, target = target, replace(target, phases=phases.count)
    found: dict[str, CoreCount] = {}
    for name, kernel in groups.items():
        if name in phases.calls and CORES not in kernel.attributes:
            count = weighed(kernel, seen(kernel, target))
            if count is not None:
                found[name] = count
    counts = shared(found, phases)
    if weigh_many and not phases_pay(found, counts, phases):
        root.attributes[LAUNCHED_ALONE] = ir.UnitAttr.get()
        return alone
    return replace(target, counts=counts)


def phases_pay(
    found: Mapping[str, CoreCount], chosen: Mapping[str, CoreCount], phases: LaunchPhases
) -> bool:
    """Whether kernels as phases of one launch take less time than each with a launch of its own, on
    as many cores as that one pays; those that were not weighed take as long in both ways.

    Args:
        found: the cores of kernels that were weighed.
        chosen: the same, as phases.
    """
    price, blocks = phases.price, {name: _blocks(count) for name, count in chosen.items()}
    cores = max([phases.least, *(ceil_div(n, phases.share[name]) for name, n in blocks.items())])
    joined = price.cycles(cores) * phases.count
    many = sum(
        LaunchPrice(phases.seen[name]).cycles(1) * calls
        for name, calls in phases.calls.items()
        if name not in found
    )
    for name, count in found.items():
        alone = LaunchPrice(phases.seen[name])
        ways = [(each.on(n), each.cycles) for n, each in count.tried.items()]
        way = count.tried[chosen[name].cores]
        joined += phases.calls[name] * (way.cycles + way.apart * price.apart(cores))
        many += phases.calls[name] * min(alone.cycles(n) + cycles for n, cycles in ways)
    return joined < many


def _blocks(count: CoreCount) -> int:
    """Cores that have work, of those that a kernel takes."""
    return count.tried[count.cores].on(count.cores)


def phases_of(root: Op, groups: Mapping[str, Any], machine: Machine) -> LaunchPhases:
    """The phases of the calls of these kernels: one for each stage."""
    kernels_of = launched_kernels(root)
    count, stage, least, taken = 0, None, 1, 0
    calls: Counter[str] = Counter()
    for call in operations(root, "func.call"):
        name = kernels_of.get(callee_of(call), "")
        if name not in groups:
            continue
        calls[name] += 1
        own = attribute(call, STAGE, None)
        if own is None or own != stage:
            count, taken = count + 1, 0
        stage = own
        taken += attribute(groups[name], CORES, 1)
        least = max(least, taken)
    kinds = {name: kinds_of(groups[name], machine) for name in calls}
    of_launch = frozenset[str]().union(*kinds.values())
    return LaunchPhases(
        machines.for_kinds(machine, of_launch),
        count,
        calls,
        {name: machines.for_kinds(machine, own) for name, own in kinds.items()},
        {name: machines.blocks_a_core(machine, own, of_launch) for name, own in kinds.items()},
        least,
    )


def kinds_of(kernel: Op, machine: Machine) -> frozenset[str]:
    """The kinds of cores that will run a kernel whose operators are not lowered yet."""
    if takes_both(kernel, machine) or not machine.split:
        return frozenset(machine.core_types)
    cube = attribute(kernel, UNIT, "vector") == "cube"
    return frozenset({machines.CUBE_CORE if cube else machines.VECTOR_CORE})


def seen(kernel: Op, target: Target) -> Target:
    """The target with the cores that run a kernel, on a machine with several kinds of them; all of
    the machine for attention, which both kinds share."""
    if takes_both(kernel, target.machine):
        return target
    whole = target.machine
    machine = seen_by(kernel, whole)
    cores = target.cores * machine.cores // whole.cores
    beside = whole.split and machine == machines.for_cube(whole) and CORES not in kernel.attributes
    adders = machines.for_vector(whole) if beside else None
    return replace(target, machine=machine, cores=cores, adders=adders)


def weighed(kernel: Op, target: Target) -> CoreCount | None:
    """The cores of a kernel and what it takes on others; None where nothing is to be chosen, or
    where what is wrong is said when it is lowered."""
    fold_numbers(kernel.regions[0].blocks[0])
    try:
        if loops := loops_of(kernel):
            return count_of_loops(loop_groups(kernel, loops), target)
        graph = group_of(kernel, target.machine).graph
        if given_choices(kernel, graph, target) is not None:
            return None
        return count_of(graph, target, may_meet(kernel))
    except (NoSpace, CompileError):
        return None


def shared(found: Mapping[str, CoreCount], phases: LaunchPhases) -> dict[str, CoreCount]:
    """The cores of kernels on the number of cores of a launch on which all of them together take
    least time."""
    best, least, price = dict(found), math.inf, phases.price
    for cores in sorted(_numbers(found, phases)):
        total, chosen = price.cycles(cores) * phases.count, {}
        for name, count in found.items():
            way = count.at_most(cores * phases.share[name], price)
            if way is None:
                total = math.inf
                break
            number, weighed = way
            taken = weighed.cycles + weighed.apart * price.apart(cores)
            total += phases.calls[name] * taken
            chosen[name] = replace(count, cores=number, schedule=weighed.schedule)
        if total < least:
            best, least = chosen, total
    return best


def _numbers(found: Mapping[str, CoreCount], phases: LaunchPhases) -> set[int]:
    """Numbers of cores that a launch may have."""
    numbers = {
        ceil_div(each.on(n), phases.share[name])
        for name, count in found.items()
        for n, each in count.tried.items()
    }
    return {max(phases.least, number) for number in numbers}
