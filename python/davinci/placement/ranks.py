"""Upward-rank partition: a graph is cut into parts that can be solved one after another."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.placement.problem import PlacementProblem

LARGEST_PART = 11
"""Tasks of a part: fewer than 12, as in the source (NT)."""

IMBALANCES = (0.2, 0.1, 0.5, 1.0)
"""How much larger than half of a graph a part may be, tried in this order (the source's epsilon,
then looser ones for graphs that cannot be balanced, as those with many sources)."""


def ranks(problem: PlacementProblem, tasks: Sequence[int]) -> dict[int, int]:
    """For each task, how many tasks the longest path to it within `tasks` has, itself included."""
    inside = set(tasks)
    found: dict[int, int] = {}
    for task in problem.order:
        if task in inside:
            before = (found[p] for p in problem.predecessors[task] if p in inside)
            found[task] = 1 + max(before, default=0)
    return found


def bisect(problem: PlacementProblem, tasks: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """Cuts a graph in two behind a rank, so that nothing leads back; None if all have one rank.

    Among the cuts that are balanced the one with the fewest tasks at the rank is taken, whose
    results may cross it; of equal ones that of the smaller difference of sizes.
    """
    rank = ranks(problem, tasks)
    highest = max(rank.values())
    best: tuple[int, int, int] | None = None
    for imbalance in IMBALANCES:
        for cut in range(1, highest):
            low = sum(r <= cut for r in rank.values())
            if max(low, len(tasks) - low) > (1 + imbalance) * len(tasks) / 2:
                continue
            width = sum(r == cut for r in rank.values())
            key = (width, abs(2 * low - len(tasks)), cut)
            if best is None or key < best:
                best = key
        if best is not None:
            break
    if best is None:
        return None
    cut = best[2]
    return [t for t in tasks if rank[t] <= cut], [t for t in tasks if rank[t] > cut]


def parts(problem: PlacementProblem, largest: int = LARGEST_PART) -> list[list[int]]:
    """Cuts a graph until no part has more than `largest` tasks; no part reads from a later one.

    Independent tasks of one rank, which no rank separates, are cut in the order of the graph.
    """
    place = {task: i for i, task in enumerate(problem.order)}
    done: list[list[int]] = []
    waiting = [list(problem.order)]
    while waiting:
        tasks = waiting.pop()
        if len(tasks) <= largest:
            if tasks:
                done.append(tasks)
            continue
        halves = bisect(problem, tasks)
        if halves is None:
            tasks.sort(key=place.__getitem__)
            halves = (tasks[:largest], tasks[largest:])
        waiting += [halves[1], halves[0]]
    return done
