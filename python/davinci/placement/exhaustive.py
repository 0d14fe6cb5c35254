"""The best of all plans of a small graph, found by trying them; for tests of the others."""

from __future__ import annotations

from davinci.placement.greedy import heft
from davinci.placement.player import play
from davinci.placement.problem import EPSILON, NEVER, Placement, PlacementProblem, queues_of
from davinci.placement.schedule import Schedule

MOST_TASKS = 10
"""Tasks up to which all plans can be tried in a reasonable time."""


def exhaustive(problem: PlacementProblem) -> Placement:
    """The fastest of all plans in which no task could start earlier without another order.

    Some fastest plan is among them, and each of them is made by appending tasks in the order of
    their starts. Ways that cannot end before the best plan so far are left.
    """
    fastest = problem.seconds.min(axis=1, initial=NEVER)
    after = [0.0] * len(problem.tasks)
    """Seconds that pass from the end of a task to that of the last one at least."""
    for task in reversed(problem.order):
        for reader in problem.successors[task]:
            after[task] = max(after[task], float(fastest[reader]) + after[reader])
    best = heft(problem)
    bound = best.latency * (1 + EPSILON)
    waits = [len(p) for p in problem.predecessors]
    found: Schedule | None = None

    def extend(schedule: Schedule, ready: frozenset[int], last_start: float, latest: float) -> None:
        nonlocal bound, found
        if not ready:
            bound, found = latest * (1 - EPSILON), schedule.copy()
            return
        for task in sorted(ready):
            for device, seconds in enumerate(problem.tasks[task].seconds):
                if seconds == NEVER:
                    continue
                start = schedule.start(task, device)
                if start < last_start or start + seconds + after[task] >= bound:
                    continue
                was_free = schedule.free[device]
                end = schedule.append(task, device)
                following = set(ready - {task})
                for reader in problem.successors[task]:
                    waits[reader] -= 1
                    if not waits[reader]:
                        following.add(reader)
                extend(schedule, frozenset(following), start, max(latest, end))
                for reader in problem.successors[task]:
                    waits[reader] += 1
                schedule.free[device] = was_free
                del schedule.devices[task], schedule.ends[task]

    extend(Schedule(problem), frozenset(i for i, w in enumerate(waits) if not w), 0.0, 0.0)
    plan = best if found is None else found.plan("exhaustive")
    queues = queues_of(problem, plan.devices, plan.starts)
    return play(problem, plan.devices, queues, "exhaustive").plan
