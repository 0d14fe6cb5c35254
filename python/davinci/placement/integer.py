"""Placement and order of some tasks as an integer linear program, solved by SciPy's HiGHS.

For task i on device j with time c[i,j], the variables are x[i,j] (it runs there), s[i] (its start),
o[i,k] (it ends before k starts) and T (an estimate of the whole latency):

    minimise T
    sum over j of x[i,j] = 1
    T >= s[i] + sum over j of c[i,j] x[i,j] + what follows i at least
    T >= when j is free + sum over i of c[i,j] x[i,j]
    s[i] >= sum over j of r[i,j] x[i,j]        r: when j is free and what i reads from outside came
    s[k] >= s[i] + sum of c[i,j] x[i,j] + sum over j, l of m[j,l] z[j,l]     for each edge i, k
    sum over l of z[j,l] = x[i,j],  sum over j of z[j,l] = x[k,l],  z >= 0   (the tensor's route)
    s[k] >= s[i] + sum of c[i,j] x[i,j] - M (1 - o[i,k])      for i, k that do not depend
    o[i,k] + o[k,i] >= x[i,j] + x[k,j] - 1,  o[i,k] + o[k,i] <= 1

The source's program is bilinear in T and in the cost of moves, and counts a move as time of the
device that receives it; here moves go on while devices compute. M is what the starts' bounds allow.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from davinci.errors import InputError
from davinci.placement.problem import NEVER, MovedTensor, PlacementProblem, PlacementTask
from davinci.placement.schedule import Schedule

RELATIVE_GAP = 1e-6
"""Difference of the best solution and the proven bound at which a program counts as solved."""

SOLVER_FAILED = 4
"""SciPy's status of a program that HiGHS gave up, as it does now and then behind its presolve; most
of these it solves without."""

Row = dict[int, float]
"""Coefficients by number of the variable."""


@dataclass(frozen=True)
class Solved:
    """The placement and order that solve a program.

    Attributes:
        devices: of each task, by its number in the problem.
        order: the tasks by their starts.
        proven: whether the solver has shown that no estimate is lower.
    """

    devices: dict[int, int]
    order: tuple[int, ...]
    proven: bool


class _Program:
    """The program of some tasks behind a schedule of others."""

    def __init__(self, schedule: Schedule, tasks: Sequence[int], upper: float) -> None:
        self.schedule, self.tasks = schedule, list(tasks)
        self.problem = schedule.problem
        self.upper = upper
        self.lower: list[float] = []
        self.most: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[Row, float, float]] = []
        self.after = least_after(self.problem)
        self.head = self._heads()
        self.x: dict[tuple[int, int], int] = {}
        self.s: dict[int, int] = {}
        self.last = self.variable(0.0, upper)
        self.build()

    def variable(self, lower: float, upper: float, whole: bool = False) -> int:
        """Adds a variable; returns its number."""
        self.lower.append(lower)
        self.most.append(upper)
        self.whole.append(int(whole))
        return len(self.lower) - 1

    def at_least(self, row: Row, lower: float, upper: float = NEVER) -> None:
        """Adds the row: lower <= sum of coefficients times variables <= upper."""
        self.rows.append((row, lower, upper))

    def able(self, task: int) -> list[int]:
        return [d for d, seconds in enumerate(self.problem.tasks[task].seconds) if seconds != NEVER]

    def _heads(self) -> dict[int, float]:
        """The earliest start of each task, if all that is in its way goes as fast as it can."""
        found: dict[int, float] = {}
        inside = set(self.tasks)
        for task in self.problem.order:
            if task not in inside:
                continue
            found[task] = min(self.release(task, device) for device in self.able(task))
            for producer in self.problem.predecessors[task]:
                if producer in inside:
                    fastest = min(self.problem.tasks[producer].seconds)
                    found[task] = max(found[task], found[producer] + fastest)
        return found

    def release(self, task: int, device: int) -> float:
        """When a device is free and has what the task reads of tasks placed already."""
        latest = self.schedule.free[device]
        for producer, tensor in self.problem.reads[task]:
            if producer in self.schedule.devices:
                source = self.schedule.devices[producer]
                moved = self.problem.tensors[tensor].moves[source][device]
                latest = max(latest, self.schedule.ends[producer] + moved)
        return latest

    def build(self) -> None:
        for task in self.tasks:
            latest = self.upper - self.after[task] - min(self.problem.tasks[task].seconds)
            self.s[task] = self.variable(self.head[task], max(latest, self.head[task]))
            for device in self.able(task):
                self.x[task, device] = self.variable(0.0, 1.0, whole=True)
        for task in self.tasks:
            own = {self.x[task, d]: 1.0 for d in self.able(task)}
            self.at_least(own, 1.0, 1.0)
            releases = {self.x[task, d]: -self.release(task, d) for d in self.able(task)}
            self.at_least({self.s[task]: 1.0, **releases}, 0.0)
            self.at_least({self.last: 1.0, **self.end(task, -1.0)}, self.after[task])
        for device, free in enumerate(self.schedule.free):
            loads = {
                self.x[task, device]: -self.problem.tasks[task].seconds[device]
                for task in self.tasks
                if (task, device) in self.x
            }
            if loads:
                self.at_least({self.last: 1.0, **loads}, free)
        self.edges()
        self.orders()

    def end(self, task: int, sign: float) -> Row:
        """The end of a task, or its negative."""
        seconds = self.problem.tasks[task].seconds
        row = {self.x[task, d]: sign * seconds[d] for d in self.able(task)}
        return {self.s[task]: sign, **row}

    def edges(self) -> None:
        inside = set(self.tasks)
        for consumer in self.tasks:
            for producer, tensor in self.problem.reads[consumer]:
                if producer not in inside:
                    continue
                moves = self.problem.tensors[tensor].moves
                routes = {
                    (j, m): self.variable(0.0, 1.0)
                    for j in self.able(producer)
                    for m in self.able(consumer)
                }
                for j in self.able(producer):
                    row = {v: 1.0 for (a, _), v in routes.items() if a == j}
                    self.at_least({**row, self.x[producer, j]: -1.0}, 0.0, 0.0)
                for m in self.able(consumer):
                    row = {v: 1.0 for (_, b), v in routes.items() if b == m}
                    self.at_least({**row, self.x[consumer, m]: -1.0}, 0.0, 0.0)
                moved = {v: -moves[j][m] for (j, m), v in routes.items() if moves[j][m]}
                self.at_least({self.s[consumer]: 1.0, **self.end(producer, -1.0), **moved}, 0.0)

    def orders(self) -> None:
        """Tasks of one device do not overlap, where the graph does not order them anyway."""
        above = _ancestors(self.problem, self.tasks)
        for number, one in enumerate(self.tasks):
            for other in self.tasks[:number]:
                shared = set(self.able(one)) & set(self.able(other))
                if one in above[other] or other in above[one] or not shared:
                    continue
                before = self.variable(0.0, 1.0, whole=True)
                behind = self.variable(0.0, 1.0, whole=True)
                for device in shared:
                    both = {self.x[one, device]: -1.0, self.x[other, device]: -1.0}
                    self.at_least({before: 1.0, behind: 1.0, **both}, -1.0)
                self.at_least({before: 1.0, behind: 1.0}, 0.0, 1.0)
                for first, second, chosen in ((one, other, before), (other, one, behind)):
                    most = max(0.0, self.upper - self.after[first] - self.head[second])
                    row = {self.s[second]: 1.0, **self.end(first, -1.0), chosen: -most}
                    self.at_least(row, -most)

    def solve(self, seconds: float) -> Solved | None:
        values, proven = _minimise(self, max(seconds, 0.01))
        if values is None:
            return None
        devices = {
            task: max(self.able(task), key=lambda d: values[self.x[task, d]]) for task in self.tasks
        }
        place = {task: i for i, task in enumerate(self.problem.order)}
        middles = {
            task: values[self.s[task]] + self.problem.tasks[task].seconds[device] / 2
            for task, device in devices.items()
        }
        order = sorted(self.tasks, key=lambda i: (middles[i], place[i]))
        return Solved(devices, tuple(_topological(self.problem, order)), proven)


def solve(schedule: Schedule, tasks: Sequence[int], upper: float, seconds: float) -> Solved | None:
    """Places some tasks behind those of a schedule, so that the latency of the whole graph is
    estimated to be least.

    Args:
        schedule: of all tasks that these read, and are not among them.
        tasks: to be placed.
        upper: a latency that some placement is known to reach.
        seconds: after which the best solution so far is taken.

    Returns:
        None if no solution was found in time.

    Raises:
        InputError: SciPy is not installed.
    """
    # Times are counted in units of `upper`, so that the solver's tolerances mean the same always.
    return _Program(_scaled(schedule, upper), tasks, 1.0 + 1e-6).solve(seconds)


def _scaled(schedule: Schedule, unit: float) -> Schedule:
    problem = schedule.problem
    tasks = tuple(PlacementTask(t.name, tuple(s / unit for s in t.seconds)) for t in problem.tasks)
    tensors = tuple(
        MovedTensor(t.producer, t.consumers, tuple(tuple(s / unit for s in row) for row in t.moves))
        for t in problem.tensors
    )
    scaled = PlacementProblem(problem.devices, tasks, tensors)
    ends = {task: end / unit for task, end in schedule.ends.items()}
    return Schedule(scaled, [f / unit for f in schedule.free], dict(schedule.devices), ends)


def _minimise(program: _Program, seconds: float) -> tuple[list[float] | None, bool]:
    """Values of a program's variables with the least first one, and whether that is proven; None
    if none were found in time."""
    try:
        from scipy import optimize, sparse
    except ImportError:
        raise InputError(
            "SciPy, which solves integer programs, is not installed",
            where="placement",
            hint="pip install 'davinci-mlir[place]', or take an algorithm without it: hope:gs",
        ) from None
    entries = [
        (number, column, value)
        for number, (row, _, _) in enumerate(program.rows)
        for column, value in row.items()
    ]
    rows, columns, coefficients = (np.array(part) for part in zip(*entries, strict=True))
    shape = (len(program.rows), len(program.lower))
    matrix = sparse.csr_array((coefficients, (rows, columns)), shape=shape)
    cost = np.zeros(len(program.lower))
    cost[program.last] = 1.0
    bounds = optimize.Bounds(np.array(program.lower), np.array(program.most))
    rows_between = optimize.LinearConstraint(
        matrix,
        np.array([lower for _, lower, _ in program.rows]),
        np.array([upper for _, _, upper in program.rows]),
    )
    for presolve in (True, False):
        options = {"time_limit": seconds, "mip_rel_gap": RELATIVE_GAP, "presolve": presolve}
        with _quiet():
            found = optimize.milp(
                cost,
                integrality=np.array(program.whole),
                bounds=bounds,
                constraints=rows_between,
                options=options,
            )
        if found.status != SOLVER_FAILED:
            break
    values = None if found.x is None else [float(value) for value in found.x]
    return values, bool(found.status == 0)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Inside, nothing is written to the process's output: HiGHS prints a line there now and then
    that no option of SciPy turns off."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def least_after(problem: PlacementProblem) -> list[float]:
    """Seconds that pass from the end of each task to that of the last one at least."""
    found = [0.0] * len(problem.tasks)
    for task in reversed(problem.order):
        for reader in problem.successors[task]:
            found[task] = max(found[task], min(problem.tasks[reader].seconds) + found[reader])
    return found


def _ancestors(problem: PlacementProblem, tasks: Sequence[int]) -> dict[int, set[int]]:
    """The tasks that each depends on, of these and through these; a part is convex."""
    inside = set(tasks)
    found: dict[int, set[int]] = {}
    for task in problem.order:
        if task in inside:
            found[task] = set()
            for producer in problem.predecessors[task]:
                if producer in inside:
                    found[task] |= {producer} | found[producer]
    return found


def _topological(problem: PlacementProblem, tasks: Sequence[int]) -> list[int]:
    """The tasks in their order, but none before one that it reads: starts of tasks that take no
    time are equal, or off by what the solver tolerates."""
    waiting, done = list(tasks), []
    left = set(tasks)
    while waiting:
        at = next(i for i, t in enumerate(waiting) if left.isdisjoint(problem.predecessors[t]))
        task = waiting.pop(at)
        left.discard(task)
        done.append(task)
    return done
