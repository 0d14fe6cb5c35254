"""A plan while it is made: tasks are appended, each as early as its device and its inputs allow."""

from __future__ import annotations

from dataclasses import dataclass, field

from davinci.placement.problem import NEVER, Placement, PlacementProblem


@dataclass
class Schedule:
    """Tasks that have a device and a start, and when each device is free again.

    Attributes:
        problem: whose tasks are placed.
        free: seconds from the beginning at which each device has ended its last task.
        devices: of the tasks that are placed.
        ends: of the tasks that are placed, in seconds from the beginning.
    """

    problem: PlacementProblem
    free: list[float] = field(default_factory=list)
    devices: dict[int, int] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = self.free or [0.0] * len(self.problem.devices)

    def ready(self, task: int, device: int) -> float:
        """Seconds at which all that a task reads has come to a device."""
        latest = 0.0
        for producer, tensor in self.problem.reads[task]:
            moves = self.problem.tensors[tensor].moves
            moved = moves[self.devices[producer]][device]
            latest = max(latest, self.ends[producer] + moved)
        return latest

    def start(self, task: int, device: int) -> float:
        """Seconds at which a task may start behind what its device does so far."""
        return max(self.free[device], self.ready(task, device))

    def end(self, task: int, device: int) -> float:
        """Seconds at which a task would end there; `NEVER` if it cannot run there."""
        seconds = self.problem.tasks[task].seconds[device]
        return NEVER if seconds == NEVER else self.start(task, device) + seconds

    def append(self, task: int, device: int) -> float:
        """Places a task behind what its device does so far; returns when it ends."""
        end = self.end(task, device)
        self.devices[task] = device
        self.ends[task] = self.free[device] = end
        return end

    def copy(self) -> Schedule:
        """The same, which may go on in another way."""
        return Schedule(self.problem, list(self.free), dict(self.devices), dict(self.ends))

    def plan(self, algorithm: str) -> Placement:
        """The finished plan, once each task is placed."""
        tasks = self.problem.tasks
        devices = tuple(self.devices[i] for i in range(len(tasks)))
        starts = tuple(self.ends[i] - tasks[i].seconds[d] for i, d in enumerate(devices))
        return Placement(self.problem, devices, starts, algorithm)
