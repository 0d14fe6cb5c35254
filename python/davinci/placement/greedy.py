"""Greedy algorithms: tasks are placed one after another, or some together."""

from __future__ import annotations

import itertools

from davinci.placement.problem import NEVER, Placement, PlacementProblem
from davinci.placement.schedule import Schedule

MOST_COMBINATIONS = 64
"""Combinations of devices that are tried for the tasks that are placed together."""


def tasks_at_once(devices: int) -> int:
    """How many tasks are placed together by default: 4 on two devices, 3 on three (HOPE)."""
    count = 1
    while devices > 1 and devices ** (count + 1) <= MOST_COMBINATIONS and count < 4:
        count += 1
    return count


def top_k(problem: PlacementProblem, together: int | None = None) -> Placement:
    """HOPE's greedy search: of the tasks whose predecessors are placed, those that can start first
    are placed together, on the devices on which the last of them ends first.

    Args:
        problem: to be solved.
        together: how many tasks are placed at once, K in the source; None for `tasks_at_once`.
    """
    count = together or tasks_at_once(len(problem.devices))
    schedule = Schedule(problem)
    waits = [len(p) for p in problem.predecessors]
    ready = [i for i in range(len(waits)) if not waits[i]]
    rank = {task: place for place, task in enumerate(problem.order)}
    while ready:
        ready.sort(key=lambda i: (_earliest(schedule, i), rank[i]))
        group, ready = ready[:count], ready[count:]
        for task, device in zip(group, _best_devices(schedule, group), strict=True):
            schedule.append(task, device)
        for task in group:
            for reader in problem.successors[task]:
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
    return schedule.plan("hope:gs")


def _earliest(schedule: Schedule, task: int) -> float:
    """Seconds at which the last predecessor of a task ends."""
    return max((schedule.ends[p] for p in schedule.problem.predecessors[task]), default=0.0)


def _best_devices(schedule: Schedule, group: list[int]) -> tuple[int, ...]:
    """A device for each task of a group, so that the last of them ends first; of equal choices
    the one whose tasks end first in sum."""
    problem = schedule.problem
    able = [
        [d for d, seconds in enumerate(problem.tasks[task].seconds) if seconds != NEVER]
        for task in group
    ]
    best: tuple[float, float] | None = None
    chosen: tuple[int, ...] = ()
    arrivals = [{d: schedule.ready(task, d) for d in able[i]} for i, task in enumerate(group)]
    for devices in itertools.product(*able):
        free = list(schedule.free)
        last = total = 0.0
        for i, device in enumerate(devices):
            start = max(free[device], arrivals[i][device])
            free[device] = end = start + problem.tasks[group[i]].seconds[device]
            last, total = max(last, end), total + end
        if best is None or (last, total) < best:
            best, chosen = (last, total), devices
    return chosen


def upward_ranks(problem: PlacementProblem) -> list[float]:
    """Seconds from the start of each task to the end of the last one along the longest path, with
    the means of all devices and routes (Topcuoglu and others, 2002)."""
    count = len(problem.devices)
    routes = max(1, count * count)
    means = []
    for times in problem.seconds:
        able = times[times != NEVER]
        means.append(float(able.mean()))
    moved = [
        sum(s for row in tensor.moves for s in row if s != NEVER) / routes
        for tensor in problem.tensors
    ]
    ranks = [0.0] * len(problem.tasks)
    for task in reversed(problem.order):
        ranks[task] += means[task]
        for producer, tensor in problem.reads[task]:
            ranks[producer] = max(ranks[producer], moved[tensor] + ranks[task])
    return ranks


def heft(problem: PlacementProblem) -> Placement:
    """List scheduling by upward rank, each task where it ends first, also in a gap between two
    that are placed already (HEFT)."""
    ranks = upward_ranks(problem)
    place = {task: i for i, task in enumerate(problem.order)}
    schedule = Schedule(problem)
    taken: list[list[tuple[float, float]]] = [[] for _ in problem.devices]
    starts = [0.0] * len(problem.tasks)
    # The rank of a task is at least that of its readers; of equal ones the graph decides.
    for task in sorted(range(len(ranks)), key=lambda i: (-ranks[i], place[i])):
        best: tuple[float, float, int] | None = None
        for device, seconds in enumerate(problem.tasks[task].seconds):
            if seconds == NEVER:
                continue
            start = _gap(taken[device], schedule.ready(task, device), seconds)
            if best is None or start + seconds < best[0]:
                best = (start + seconds, start, device)
        assert best is not None, "a Problem refuses tasks that no device runs"
        end, starts[task], device = best
        schedule.devices[task], schedule.ends[task] = device, end
        taken[device].append((starts[task], end))
        taken[device].sort()
    devices = tuple(schedule.devices[i] for i in range(len(starts)))
    return Placement(problem, devices, tuple(starts), "heft")


def _gap(taken: list[tuple[float, float]], earliest: float, seconds: float) -> float:
    """The first time from `earliest` on at which a device is idle for so long."""
    at = earliest
    for start, end in taken:
        if at + seconds <= start:
            break
        at = max(at, end)
    return at
