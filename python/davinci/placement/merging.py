"""Super-operators: short tasks stay on the device of the one task that they read."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.placement.player import play
from davinci.placement.problem import NEVER, MovedTensor, Placement, PlacementProblem, PlacementTask

SHORT = 0.1
"""Share of its predecessor's time below which a task is short, on each device. The source gives
examples only: a ReLU of less than 0.1 ms behind a convolution of more than 3 ms."""


@dataclass(frozen=True)
class Merged:
    """A problem of fewer tasks.

    Attributes:
        problem: whose tasks are groups of the original's.
        original: with all tasks.
        members: numbers of the original's tasks in each group, in topological order.
    """

    problem: PlacementProblem
    original: PlacementProblem
    members: tuple[tuple[int, ...], ...]

    def unmerge(self, plan: Placement) -> Placement:
        """The plan of all tasks: groups where they were placed, their members in a row, each as
        soon as what it reads has come."""
        devices = [0] * len(self.original.tasks)
        for group, device in zip(self.members, plan.devices, strict=True):
            for task in group:
                devices[task] = device
        queues = [[task for g in queue for task in self.members[g]] for queue in plan.queues]
        return play(self.original, devices, queues, plan.algorithm).plan


def merge_short(problem: PlacementProblem, short: float = SHORT) -> Merged:
    """Merges each task into the one task that it reads, where it is short beside it on every
    device that runs both and none is lost by that; none with a share of 0."""
    group = list(range(len(problem.tasks)))
    members = {i: [i] for i in group}
    seconds = {i: list(task.seconds) for i, task in enumerate(problem.tasks)}
    for task in problem.order:
        if not short or len(problem.predecessors[task]) != 1:
            continue
        into = group[problem.predecessors[task][0]]
        if _is_short(problem.tasks[task].seconds, seconds[into], short):
            group[task] = into
            members[into] += members.pop(task)
            added = seconds.pop(task)
            seconds[into] = [a + b for a, b in zip(seconds[into], added, strict=True)]
    numbers = {first: number for number, first in enumerate(members)}
    tasks = tuple(
        PlacementTask(problem.tasks[first].name, tuple(seconds[first])) for first in members
    )
    tensors = []
    for tensor in problem.tensors:
        producer = numbers[group[tensor.producer]]
        consumers = {numbers[group[consumer]] for consumer in tensor.consumers} - {producer}
        if consumers:
            tensors.append(MovedTensor(producer, tuple(sorted(consumers)), tensor.moves))
    merged = PlacementProblem(problem.devices, tasks, tuple(tensors))
    return Merged(merged, problem, tuple(map(tuple, members.values())))


def _is_short(task: tuple[float, ...], before: list[float], short: float) -> bool:
    pairs = list(zip(task, before, strict=True))
    if any(own == NEVER and other != NEVER for own, other in pairs):
        return False
    return all(own <= short * other for own, other in pairs if other != NEVER)
