"""How many cores the kernels take that will be phases of one launch.

Such a launch has the cores of the phase that has most, all of which meet behind each phase. So the
number that it has is weighed for all kernels together: a kernel may use as many without a price.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.mlir import ir, operations, symbol_name
from davinci.passes.analysis.kernels import (
    CORES,
    LAUNCHED_ALONE,
    STAGE,
    kernels,
    launched_kernels,
)
from davinci.passes.analysis.loop_graph import loops_of
from davinci.passes.ascend.tensor_ops import fold_numbers
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.given_choices import given_choices
from davinci.passes.ascend_to_cce.groups import count_of, group_of, is_group
from davinci.schedule.core_count import CoreCount
from davinci.schedule.meetings import LaunchPrice, can_meet
from davinci.schedule.vector.space import NoSpace


@dataclass(frozen=True)
class LaunchPhases:
    """The phases of a launch of all kernels of groups.

    Attributes:
        count: how many.
        calls: of each kernel, by name.
        least: cores that the launch has at least, for kernels that share a phase.
    """

    count: int
    calls: Mapping[str, int]
    least: int


def with_shared_cores(root: ir.Operation, target: Target, weigh_many: bool = False) -> Target:
    """The target with the cores of kernels, weighed for all of them together.

    Args:
        weigh_many: leave kernels a launch each where all of them together take less time so.
    """
    groups = {symbol_name(kernel): kernel for kernel in kernels(root) if is_group(kernel)}
    phases = phases_of(root, groups)
    if phases.count < 2 or not can_meet(target.machine):
        return target
    alone, target = target, replace(target, phases=phases.count)
    found: dict[str, CoreCount] = {}
    for name, kernel in groups.items():
        if name in phases.calls and CORES not in kernel.attributes:
            count = weighed(kernel, target)
            if count is not None:
                found[name] = count
    price = LaunchPrice(target.machine, phases.count)
    counts = shared(found, phases, price)
    if weigh_many and not phases_pay(found, counts, phases, price, LaunchPrice(target.machine)):
        root.attributes[LAUNCHED_ALONE] = ir.UnitAttr.get()
        return alone
    return replace(target, counts=counts)


def phases_pay(
    found: Mapping[str, CoreCount],
    chosen: Mapping[str, CoreCount],
    phases: LaunchPhases,
    price: LaunchPrice,
    alone: LaunchPrice,
) -> bool:
    """Whether kernels as phases of one launch take less time than each with a launch of its own, on
    as many cores as that one pays; those that were not weighed take as long in both ways.

    Args:
        found: the cores of kernels that were weighed.
        chosen: the same, as phases.
        price: of a phase.
        alone: of a launch.
    """
    cores = max([phases.least, *(_blocks(count) for count in chosen.values())])
    joined = price.cycles(cores) * phases.count
    many = alone.cycles(1) * (phases.count - sum(phases.calls[name] for name in found))
    for name, count in found.items():
        ways = [(min(n, each.blocks), each.cycles) for n, each in count.tried.items()]
        way = count.tried[chosen[name].cores]
        joined += phases.calls[name] * (way.cycles + way.apart * price.apart(cores))
        many += phases.calls[name] * min(alone.cycles(n) + cycles for n, cycles in ways)
    return joined < many


def _blocks(count: CoreCount) -> int:
    """Cores that have work, of those that a kernel takes."""
    return min(count.cores, count.tried[count.cores].blocks)


def phases_of(root: ir.Operation, groups: Mapping[str, Any]) -> LaunchPhases:
    """The phases of the calls of these kernels: one for each stage."""
    kernels_of = launched_kernels(root)
    count, stage, least, taken = 0, None, 1, 0
    calls: Counter[str] = Counter()
    for call in operations(root, "func.call"):
        name = kernels_of.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value, "")
        if name not in groups:
            continue
        calls[name] += 1
        own = attribute(call, STAGE, None)
        if own is None or own != stage:
            count, taken = count + 1, 0
        stage = own
        taken += attribute(groups[name], CORES, 1)
        least = max(least, taken)
    return LaunchPhases(count, calls, least)


def weighed(kernel: ir.Operation, target: Target) -> CoreCount | None:
    """The cores of a kernel and what it takes on others; None where nothing is to be chosen, or
    where what is wrong is said when it is lowered."""
    if loops_of(kernel):
        return None
    fold_numbers(kernel.regions[0].blocks[0])
    try:
        graph = group_of(kernel).graph
        if given_choices(kernel, graph, target) is not None:
            return None
        return count_of(graph, target)
    except (NoSpace, CompileError):
        return None


def shared(
    found: Mapping[str, CoreCount], phases: LaunchPhases, price: LaunchPrice
) -> dict[str, CoreCount]:
    """The cores of kernels on the number of cores of a launch on which all of them together take
    least time."""
    best, least = dict(found), math.inf
    for cores in sorted(_numbers(found.values(), phases.least)):
        total, chosen = price.cycles(cores) * phases.count, {}
        for name, count in found.items():
            way = count.at_most(cores, price)
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


def _numbers(found: Iterable[CoreCount], least: int) -> set[int]:
    """Numbers of cores that a launch may have."""
    numbers = {min(n, each.blocks) for count in found for n, each in count.tried.items()}
    return {max(least, number) for number in numbers}
