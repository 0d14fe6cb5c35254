"""The problem of placement, and what a plan is: plain data without MLIR.

A network is a directed acyclic graph of *tasks*, each an operator or a group of them. A task runs
on one of several unlike *devices*, alone and without interruption, for a time that was measured or
simulated there. A *tensor* whose producer and consumer run on different devices is moved between
them; moves go on while devices compute. The *latency* of a plan is the time at which the last task
ends; it is to be small. Finding the least one is NP-hard already for two equal devices and no
tensors (PARTITION).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from davinci.errors import InputError

Floats = npt.NDArray[np.float64]

NEVER = float("inf")
"""The time of a task on a device that cannot run it."""

EPSILON = 1e-9
"""Relative difference below which two times are the same: what sums of floats and solvers lose."""


@dataclass(frozen=True)
class PlacementTask:
    """An operator, or a group that runs as one.

    Attributes:
        name: for messages and reports.
        seconds: that it takes on each device; `NEVER` where it cannot run.
    """

    name: str
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class MovedTensor:
    """A tensor that one task makes and others read.

    Attributes:
        producer: number of the task that makes it.
        consumers: numbers of the tasks that read it.
        moves: seconds from a device (row) to another (column), conversion of the layout included;
            0 on the diagonal.
    """

    producer: int
    consumers: tuple[int, ...]
    moves: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PlacementProblem:
    """A graph of tasks, and what they cost on each device.

    Attributes:
        devices: their names.
        tasks: the nodes of the graph.
        tensors: its edges, one tensor for all of its consumers.

    Raises:
        InputError: there is no device, a task that none of them runs, a negative time, a tensor of
            tasks that do not exist, or a cycle.
    """

    devices: tuple[str, ...]
    tasks: tuple[PlacementTask, ...]
    tensors: tuple[MovedTensor, ...] = ()

    def __post_init__(self) -> None:
        if not self.devices:
            raise InputError("there is no device to place tasks on", where="placement")
        for task in self.tasks:
            self._check_task(task)
        for tensor in self.tensors:
            self._check_tensor(tensor)
        self.order  # noqa: B018  raises where there is a cycle

    def _check_task(self, task: PlacementTask) -> None:
        count = len(self.devices)
        where = f"task {task.name!r}"
        if len(task.seconds) != count:
            message = "times for another number of devices"
            raise InputError(
                message, where=where, found=str(len(task.seconds)), expected=str(count)
            )
        for device, seconds in zip(self.devices, task.seconds, strict=True):
            if not seconds >= 0:  # also NaN
                raise InputError(
                    f"bad time on {device}", where=where, found=f"{seconds:g}", expected="0 or more"
                )
        if min(task.seconds) == NEVER:
            names = ", ".join(self.devices)
            hint = "add a device that runs it, or its time there"
            raise InputError(f"none of the devices {names} runs it", where=where, hint=hint)

    def _check_tensor(self, tensor: MovedTensor) -> None:
        count = len(self.devices)
        for task in (tensor.producer, *tensor.consumers):
            if not 0 <= task < len(self.tasks):
                expected = f"0 to {len(self.tasks) - 1}"
                raise InputError(
                    "a tensor of no task", where="placement", found=str(task), expected=expected
                )
        where = f"tensor of task {self.tasks[tensor.producer].name!r}"
        if [len(row) for row in tensor.moves] != [count] * count:
            raise InputError(
                "moves are no square of devices", where=where, expected=f"{count} x {count}"
            )
        for source, row in enumerate(tensor.moves):
            for target, seconds in enumerate(row):
                if not seconds >= 0 or (source == target and seconds):
                    route = f"{self.devices[source]} to {self.devices[target]}"
                    expected = "0" if source == target else "0 or more"
                    message = f"bad time of a move from {route}"
                    raise InputError(message, where=where, found=f"{seconds:g}", expected=expected)

    @functools.cached_property
    def seconds(self) -> Floats:
        """Times as [tasks, devices]."""
        times = np.array([task.seconds for task in self.tasks], dtype=np.float64)
        return times.reshape(len(self.tasks), len(self.devices))

    @functools.cached_property
    def edges(self) -> tuple[tuple[int, int, int], ...]:
        """Producer, consumer and tensor of each edge."""
        found = {
            (tensor.producer, consumer, number)
            for number, tensor in enumerate(self.tensors)
            for consumer in tensor.consumers
        }
        return tuple(sorted(found))

    @functools.cached_property
    def reads(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each task, the producer and the tensor of everything that it reads."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.tasks]
        for producer, consumer, tensor in self.edges:
            found[consumer].append((producer, tensor))
        return tuple(map(tuple, found))

    @functools.cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each task, the tasks whose results it reads."""
        return tuple(tuple(sorted({p for p, _ in reads})) for reads in self.reads)

    @functools.cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each task, the tasks that read its results."""
        found: list[set[int]] = [set() for _ in self.tasks]
        for producer, consumer, _ in self.edges:
            found[producer].add(consumer)
        return tuple(tuple(sorted(s)) for s in found)

    @functools.cached_property
    def order(self) -> tuple[int, ...]:
        """The tasks in a topological order: of those that may come next, the one given first."""
        waits = [len(p) for p in self.predecessors]
        ready = [i for i, count in enumerate(waits) if not count]
        done: list[int] = []
        while ready:
            ready.sort(reverse=True)
            task = ready.pop()
            done.append(task)
            for reader in self.successors[task]:
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
        if len(done) < len(self.tasks):
            names = " -> ".join(self.tasks[i].name for i in self._cycle(waits))
            raise InputError("the graph has a cycle", where="placement", found=names)
        return tuple(done)

    def _cycle(self, waits: Sequence[int]) -> list[int]:
        """A cycle among the tasks that still wait, its first one also last."""
        at = next(i for i, count in enumerate(waits) if count)
        seen: list[int] = []
        while at not in seen:
            seen.append(at)
            at = next(p for p in self.predecessors[at] if waits[p])
        return [at, *reversed(seen[seen.index(at) :])]

    def latency_bound(self) -> float:
        """Seconds below which no plan is: the longest path, each task on the device that is the
        fastest for it, or all of the work on all devices."""
        ends: dict[int, float] = {}
        fastest = self.seconds.min(axis=1, initial=NEVER)
        for task in self.order:
            before = max((ends[p] for p in self.predecessors[task]), default=0.0)
            ends[task] = before + float(fastest[task])
        work = float(fastest.sum()) / len(self.devices)
        return max(max(ends.values(), default=0.0), work)


@dataclass(frozen=True)
class Placement:
    """Where and when each task runs.

    Attributes:
        problem: that it solves.
        devices: number of the device of each task.
        starts: seconds from the beginning at which each task starts.
        algorithm: that found it, a name in `ALGORITHMS`.
        seconds: that it took to find it.
        proven: whether no plan of the whole problem is faster, as the algorithm has shown.
        remark: what a reader of the plan must know, for example that a limit of time was met.
    """

    problem: PlacementProblem
    devices: tuple[int, ...]
    starts: tuple[float, ...]
    algorithm: str
    seconds: float = 0.0
    proven: bool = False
    remark: str = ""

    @functools.cached_property
    def ends(self) -> tuple[float, ...]:
        """Seconds from the beginning at which each task ends."""
        pairs = zip(self.problem.tasks, self.devices, self.starts, strict=True)
        return tuple(start + task.seconds[device] for task, device, start in pairs)

    @property
    def latency(self) -> float:
        """Seconds until the last task has ended."""
        return max(self.ends, default=0.0)

    @functools.cached_property
    def queues(self) -> tuple[tuple[int, ...], ...]:
        """The tasks of each device in the order in which they run."""
        return queues_of(self.problem, self.devices, self.starts)

    def busy(self) -> tuple[float, ...]:
        """Seconds for which each device computes."""
        return tuple(
            sum(self.problem.tasks[i].seconds[device] for i in queue)
            for device, queue in enumerate(self.queues)
        )


def queues_of(
    problem: PlacementProblem, devices: Sequence[int], starts: Sequence[float]
) -> tuple[tuple[int, ...], ...]:
    """The tasks of each device in the order in which it does them.

    They are sorted by the middles of their times, so that a task that takes none lies on the right
    side of one that starts or ends with it; of equal ones those that depend on others are last.
    """
    rank = {task: place for place, task in enumerate(problem.order)}
    middles = [
        start + task.seconds[device] / 2
        for start, task, device in zip(starts, problem.tasks, devices, strict=True)
    ]
    queues: list[list[int]] = [[] for _ in problem.devices]
    for task in sorted(range(len(problem.tasks)), key=lambda i: (middles[i], rank[i])):
        queues[devices[task]].append(task)
    return tuple(map(tuple, queues))


def faults(plan: Placement) -> list[str]:
    """Returns the faults of a plan, found task by task and without any algorithm's data; [] if
    it has none."""
    problem = plan.problem
    names = [task.name for task in problem.tasks]
    count = len(names)
    if not len(plan.devices) == len(plan.starts) == count:
        return [f"{len(plan.devices)} devices and {len(plan.starts)} starts for {count} tasks"]
    found = []
    for i, task in enumerate(problem.tasks):
        device = plan.devices[i]
        if not 0 <= device < len(problem.devices):
            return [f"task {task.name!r} is on device {device}, which does not exist"]
        if task.seconds[device] == NEVER:
            found.append(f"task {task.name!r} is on {problem.devices[device]}, which cannot run it")
        if plan.starts[i] < 0:
            found.append(f"task {task.name!r} starts at {plan.starts[i]:g} s")
    slack = EPSILON * max([1e-30, *(end for end in plan.ends if end != NEVER)])
    for tensor in problem.tensors:
        for consumer in tensor.consumers:
            producer = tensor.producer
            moved = tensor.moves[plan.devices[producer]][plan.devices[consumer]]
            if plan.starts[consumer] < plan.ends[producer] + moved - slack:
                found.append(f"task {names[consumer]!r} starts before it has what it reads")
    for i in range(count):
        for j in range(i):
            apart = _apart(plan, i, j, slack)
            if plan.devices[i] == plan.devices[j] and not apart:
                where = problem.devices[plan.devices[i]]
                found.append(f"tasks {names[j]!r} and {names[i]!r} run on {where} at one time")
    return found


def _apart(plan: Placement, one: int, other: int, slack: float) -> bool:
    before = plan.ends[one] <= plan.starts[other] + slack
    return before or plan.ends[other] <= plan.starts[one] + slack


def best_of(plans: Iterable[Placement]) -> Placement:
    """The plan of the least latency, of equal ones the first."""
    return min(plans, key=lambda plan: plan.latency)
