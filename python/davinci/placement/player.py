"""A plan played event by event: devices do one task at a time, tensors move meanwhile."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.placement.problem import Placement, PlacementProblem


@dataclass(frozen=True)
class TensorMove:
    """A tensor on its way between two devices.

    Attributes:
        tensor: its number.
        source: number of the device that has it.
        target: number of the device that wants it.
        start: seconds from the beginning.
        end: seconds from the beginning.
    """

    tensor: int
    source: int
    target: int
    start: float
    end: float


@dataclass(frozen=True)
class PlacementTimeline:
    """A played plan: when each task ran, and when each tensor moved."""

    plan: Placement
    moves: tuple[TensorMove, ...]


class _Player:
    """The state of all devices and links while a plan is played."""

    def __init__(
        self,
        problem: PlacementProblem,
        devices: Sequence[int],
        queues: Sequence[Sequence[int]],
        exclusive_links: bool,
    ) -> None:
        self.problem, self.devices, self.queues = problem, devices, queues
        self.exclusive_links = exclusive_links
        self.next = [0] * len(queues)
        self.busy = [False] * len(queues)
        self.link_free: dict[tuple[int, int], float] = {}
        self.missing = [len(reads) for reads in problem.reads]
        self.starts = [-1.0] * len(problem.tasks)
        self.moves: list[TensorMove] = []
        self.events: list[tuple[float, int, int, int]] = []
        """Time, 0 for an arrival and 1 for the end of a task, the task, and its tensors."""
        self.made: list[list[int]] = [[] for _ in problem.tasks]
        for number, tensor in enumerate(problem.tensors):
            self.made[tensor.producer].append(number)

    def run(self) -> None:
        now = 0.0
        self.begin(now)
        while self.events:
            now, kind, task, count = heapq.heappop(self.events)
            if kind:
                self.busy[self.devices[task]] = False
                self.deliver(task, now)
            else:
                self.missing[task] -= count
            if not self.events or self.events[0][0] > now:
                self.begin(now)

    def begin(self, now: float) -> None:
        """Starts the next task of every idle device, if all that it reads has come."""
        for device, queue in enumerate(self.queues):
            at = self.next[device]
            if self.busy[device] or at == len(queue) or self.missing[queue[at]]:
                continue
            task = queue[at]
            self.next[device] += 1
            self.busy[device] = True
            self.starts[task] = now
            end = now + self.problem.tasks[task].seconds[device]
            heapq.heappush(self.events, (end, 1, task, 0))

    def deliver(self, task: int, now: float) -> None:
        """Sends what a task has made to the devices that read it, once to each of them."""
        source = self.devices[task]
        for number in self.made[task]:
            tensor = self.problem.tensors[number]
            consumers = sorted(set(tensor.consumers))
            for target in sorted({self.devices[consumer] for consumer in consumers}):
                seconds = tensor.moves[source][target]
                start = now
                if target != source:
                    if self.exclusive_links:
                        start = max(now, self.link_free.get((source, target), 0.0))
                        self.link_free[source, target] = start + seconds
                    self.moves.append(TensorMove(number, source, target, start, start + seconds))
                for consumer in consumers:
                    if self.devices[consumer] == target:
                        heapq.heappush(self.events, (start + seconds, 0, consumer, 1))


def play(
    problem: PlacementProblem,
    devices: Sequence[int],
    queues: Sequence[Sequence[int]],
    algorithm: str,
    exclusive_links: bool = False,
) -> PlacementTimeline:
    """Runs the tasks of each device in their order, each as soon as all that it reads has come.

    Args:
        problem: whose tasks these are.
        devices: number of the device of each task.
        queues: the tasks of each device in the order in which it does them.
        algorithm: whose plan this is.
        exclusive_links: whether one tensor at a time moves from one device to another; otherwise
            moves do not slow each other down.

    Raises:
        ValueError: tasks wait for each other, because the order of a device contradicts the graph.
    """
    player = _Player(problem, devices, queues, exclusive_links)
    player.run()
    waiting = [problem.tasks[i].name for i, start in enumerate(player.starts) if start < 0]
    if waiting:
        raise ValueError(f"tasks wait for each other: {', '.join(waiting[:8])}")
    plan = Placement(problem, tuple(devices), tuple(player.starts), algorithm)
    return PlacementTimeline(plan, tuple(player.moves))
