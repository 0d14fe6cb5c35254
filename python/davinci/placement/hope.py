"""HOPE:LP: short tasks merged, the graph cut by upward rank, each part placed by an integer
program behind the parts before it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from davinci.placement import integer
from davinci.placement.greedy import heft, top_k
from davinci.placement.merging import SHORT, merge_short
from davinci.placement.player import play
from davinci.placement.problem import NEVER, Placement, PlacementProblem, PlacementTask, best_of
from davinci.placement.ranks import LARGEST_PART, parts
from davinci.placement.schedule import Schedule


def integer_parts(
    problem: PlacementProblem,
    seconds: float = 8.0,
    largest: int = LARGEST_PART,
    short: float = SHORT,
) -> Placement:
    """Places a graph part by part; a greedy plan is taken where that is faster, and the plan's
    remark says so.

    Args:
        problem: to be solved.
        seconds: for all parts together; a part whose share is over takes the best solution that was
            found, or what a greedy algorithm makes of it, and the plan's remark says so.
        largest: tasks of a part, after merging.
        short: see `merge_short`.
    """
    merged = merge_short(problem, short)
    small = merged.problem
    began = time.perf_counter()
    pieces = parts(small, largest)
    schedule = Schedule(small)
    unproven = 0
    for number, tasks in enumerate(pieces):
        left = seconds - (time.perf_counter() - began)
        share = left / (len(pieces) - number)
        unproven += not place_part(schedule, tasks, share)
    plan = schedule.plan("hope:lp")
    retimed = play(small, plan.devices, plan.queues, plan.algorithm).plan
    found = best_of([retimed, heft(on_devices(small, plan.devices))])
    greedy = best_of([top_k(small), heft(small)])
    best = best_of([found, greedy])
    made = merged.unmerge(best)
    whole = len(pieces) <= 1 and len(small.tasks) == len(problem.tasks)
    remarks = []
    if unproven:
        why = "their time ran out, or the solver failed"
        remarks.append(f"{unproven} of {len(pieces)} parts are not proven: {why}")
    if best is greedy:
        remarks.append(f"the plan of {greedy.algorithm} was faster than that of the parts")
    return Placement(
        problem,
        made.devices,
        made.starts,
        "hope:lp",
        proven=whole and not unproven,
        remark="; ".join(remarks),
    )


def on_devices(problem: PlacementProblem, devices: Sequence[int]) -> PlacementProblem:
    """The problem in which each task can run only on the device that it was given: a part is placed
    without what comes behind it, so that the order on a device may gain from seeing the whole."""
    tasks = tuple(
        PlacementTask(
            task.name, tuple(s if d == device else NEVER for d, s in enumerate(task.seconds))
        )
        for task, device in zip(problem.tasks, devices, strict=True)
    )
    return PlacementProblem(problem.devices, tasks, problem.tensors)


def place_part(schedule: Schedule, tasks: list[int], seconds: float) -> bool:
    """Appends some tasks to a schedule; returns whether the solver has proven its solution."""
    greedy = _appended(schedule, tasks)
    after = integer.least_after(schedule.problem)
    reached = max((greedy.ends[i] + after[i] for i in tasks), default=0.0)
    reached = max(reached, *greedy.free)
    solved = integer.solve(schedule, tasks, max(reached, 1e-12), seconds)
    if solved is None:
        for task in tasks:
            schedule.append(task, greedy.devices[task])
        return False
    for task in solved.order:
        schedule.append(task, solved.devices[task])
    return solved.proven


def _appended(schedule: Schedule, tasks: list[int]) -> Schedule:
    """The schedule with the tasks behind it, each on the device where it ends first."""
    made = schedule.copy()
    inside = set(tasks)
    for task in schedule.problem.order:
        if task in inside:
            ends = [made.end(task, d) for d in range(len(made.free))]
            made.append(task, ends.index(min(ends)))
    return made
