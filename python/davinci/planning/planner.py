"""The best of all algorithms, within a budget.

Algorithms are tried in turn, until one meets the lower bound. They take buffers as whole; what the
pieces of buffers give is found from the best of their plans by `settle`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from davinci.planning.dives import dives
from davinci.planning.greedy import by_size, first_fit
from davinci.planning.pieces import settle
from davinci.planning.problem import Plan, Problem
from davinci.planning.search import search
from davinci.planning.simulated import simulated

ALGORITHMS: Mapping[str, Callable[[Problem], list[int]]] = {
    "greedy-by-size": by_size,
    "first-fit": first_fit,
    "dives": dives,
    "simulated": simulated,
}
"""Algorithms that take a fixed time, by name, in the order in which they are tried."""

SEARCH = "search"
"""The name of the algorithm that improves on what others found for as long as it may."""

PIECES = "pieces"
"""The name of the algorithm that lets buffers into what others give back before they end."""

MOST_FOR_DIVES = 2_000
"""Buffers up to which dives, whose arrays grow with the square of their number, are made."""


@dataclass(frozen=True)
class Budget:
    """How much work may be spent on finding a plan.

    Attributes:
        states: that the search may look at; 0 for no search.
        seconds: after which the search begins nothing further; None for no limit. A plan within a
            limit in seconds may differ from one run to the next, others do not.
    """

    states: int
    seconds: float | None = None


QUICK = Budget(0)
"""No search: a plan in some hundredths of a second."""

COMPILE = Budget(20_000)
"""What a compilation spends where nothing simpler meets the lower bound: about 0.3 s."""


def algorithms_for(problem: Problem) -> list[str]:
    """The names of the algorithms that a problem is not too large for, in order."""
    large = len(problem.buffers) > MOST_FOR_DIVES
    return [name for name in ALGORITHMS if not (large and name == "dives")]


def run(name: str, problem: Problem) -> Plan:
    """The plan of one algorithm of `ALGORITHMS`."""
    began = time.perf_counter()
    offsets = ALGORITHMS[name](problem.whole)
    return Plan(problem, tuple(offsets), name, time.perf_counter() - began)


def solve(problem: Problem, budget: Budget = COMPILE, capacity: int | None = None) -> Plan:
    """The lowest plan of all algorithms within a budget.

    Args:
        problem: to be solved.
        budget: see `Budget`.
        capacity: bytes of the memory; a plan that fits is not made lower. None to look for the
            lowest one.

    Returns:
        A plan with the name of the algorithm that made it, and the seconds that all took together.
    """
    began = time.perf_counter()
    best = _of_whole(problem.whole, budget, capacity)
    if problem.in_pieces:
        best = replace(best, problem=problem, bound=0)
        if not best.optimal and (capacity is None or best.height > capacity):
            offsets = settle(problem, best.offsets)
            settled = Plan(problem, tuple(offsets), PIECES)
            best = settled if settled.height < best.height else best
    return replace(best, seconds=time.perf_counter() - began)


def _of_whole(problem: Problem, budget: Budget, capacity: int | None) -> Plan:
    """The lowest plan of a problem whose buffers have no pieces."""
    best: Plan | None = None
    good = False
    for name in algorithms_for(problem):
        made = run(name, problem)
        if best is None or made.height < best.height:
            best = made
        good = best.optimal or (capacity is not None and best.height <= capacity)
        if good:
            break
    assert best is not None, "some algorithm takes every problem"
    if not good and budget.states and len(problem.buffers) <= MOST_FOR_DIVES:
        found = search(
            problem,
            best.height,
            states=budget.states,
            seconds=budget.seconds,
            capacity=capacity,
        )
        if found.offsets is not None:
            best = Plan(problem, tuple(found.offsets), SEARCH)
        best = replace(best, bound=found.bound)
    return best
