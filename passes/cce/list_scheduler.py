"""Orders tasks of several pipes so that they are done early: list scheduling.

Every pipe works in order; a task starts when its pipe is free and what it follows allows it. At any
moment the pipe that can start first takes, of the tasks that it could start then, the one that is
first by some rank. Several ranks are tried, and the order that ends earliest is taken. Nothing here
knows of MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

SHARES = (0.3, 0.5, 0.8)
"""Shares of the critical path in the rank of a task that are tried; the rest of it is its place in
the given order."""

GOOD = 1.05
"""Cycles of an order, over those of the busiest pipe, at which no better one is looked for."""


@dataclass(frozen=True)
class PipeTask:
    """Work of one pipe; figures are cycles.

    Attributes:
        pipe: any number.
        busy: from its start until its pipe can start the next one.
        result: from its start until it is complete.
        issue: of the scalar unit, before it can start.
        after: (number of an earlier task, from that one's start to when this one may start).
        blocks: nothing is issued before it is complete.
        of_memory: cycles of a memory that serves one task after the other, in order. A task is
            complete, and its pipe free, that much later than the memory is behind.
    """

    pipe: int
    busy: int
    result: int
    issue: int
    after: tuple[tuple[int, int], ...]
    blocks: bool = False
    of_memory: int = 0


@dataclass(frozen=True)
class TaskOrder:
    """An order of tasks, and when the last one is complete.

    Attributes:
        late: pipes with a task that is complete before one in front of it, which others are told
            of late.
    """

    order: tuple[int, ...]
    cycles: int
    late: frozenset[int] = frozenset()


@dataclass(frozen=True)
class SchedulerLimits:
    """What holds for all tasks.

    Attributes:
        credit: cycles for which the memory can catch up on what it did not serve.
        window: a task starts only when fewer than so many tasks, in their given order, lie between
            it and the first that has not started; 1 is the given order. What tasks hold for each
            other to use takes less room if they stay close together.
    """

    credit: int = 0
    window: int = 1 << 30


def plain(tasks: Sequence[PipeTask], limits: SchedulerLimits) -> TaskOrder:
    """The best of three orders: tasks by their given order, by critical paths, and as they are; and
    where that makes a pipe tell others late, by critical paths but as they are in this pipe.

    Args:
        tasks: each follows earlier ones only.
    """
    paths = critical_paths(tasks)
    plans = [
        greedy(tasks, range(len(tasks)), limits),
        greedy(tasks, [-path for path in paths], limits),
        in_order(tasks, limits),
    ]
    late = plans[1].late
    if late:
        kept = _kept_in_order(tasks, late)
        plans.append(greedy(kept, [-path for path in critical_paths(kept)], limits))
    return min(plans, key=lambda plan: plan.cycles)


def _kept_in_order(tasks: Sequence[PipeTask], pipes: frozenset[int]) -> list[PipeTask]:
    """The tasks, of which those of some pipes follow each other as they are given."""
    last: dict[int, int] = {}
    found = []
    for number, task in enumerate(tasks):
        if task.pipe in pipes:
            if task.pipe in last:
                task = replace(task, after=(*task.after, (last[task.pipe], 0)))
            last[task.pipe] = number
        found.append(task)
    return found


def mixed(tasks: Sequence[PipeTask], limits: SchedulerLimits, best: TaskOrder) -> TaskOrder:
    """The best of orders between the given one and that of critical paths, and of `best`, the plain
    one; if that is good, others are not looked for."""
    if best.cycles <= GOOD * _least(tasks):
        return best
    paths = critical_paths(tasks)
    longest, plans = max(paths), [best]
    for share in SHARES:
        # The given order, spread over the longest path, and that of the paths.
        rank = [
            (1 - share) * longest * number / len(tasks) - share * path
            for number, path in enumerate(paths)
        ]
        plans.append(greedy(tasks, rank, limits))
    return min(plans, key=lambda plan: plan.cycles)


def _least(tasks: Sequence[PipeTask]) -> int:
    """Cycles of the busiest pipe."""
    busy: dict[int, int] = {}
    for task in tasks:
        busy[task.pipe] = busy.get(task.pipe, 0) + task.busy
    return max(busy.values(), default=0)


def critical_paths(tasks: Sequence[PipeTask]) -> list[int]:
    """For each task the cycles from its start to the end of all that follows from it."""
    paths = [task.result for task in tasks]
    for number in range(len(tasks) - 1, -1, -1):
        for earlier, cycles in tasks[number].after:
            paths[earlier] = max(paths[earlier], cycles + paths[number])
    return paths


def in_order(tasks: Sequence[PipeTask], limits: SchedulerLimits) -> TaskOrder:
    """The tasks as they are."""
    clock = _Clock(tasks, limits.credit)
    for number in range(len(tasks)):
        clock.start(number)
    return TaskOrder(tuple(range(len(tasks))), clock.end, frozenset(clock.late))


def greedy(tasks: Sequence[PipeTask], rank: Sequence[float], limits: SchedulerLimits) -> TaskOrder:
    """Tasks in the order in which they start; of those that could, the one of the lowest rank."""
    clock = _Clock(tasks, limits.credit)
    waiting = _Waiting(tasks, limits.window)
    queues: dict[int, _Queue] = {task.pipe: _Queue() for task in tasks}
    order: list[int] = []
    for number in waiting.first():
        queues[tasks[number].pipe].add(0, rank[number], number)
    while len(order) < len(tasks):
        pipe = min(
            (pipe for pipe, queue in queues.items() if queue),
            key=lambda pipe: queues[pipe].earliest(clock.free.get(pipe, 0)),
        )
        number = queues[pipe].take(clock.free.get(pipe, 0))
        clock.start(number)
        order.append(number)
        for later in waiting.after(number):
            queues[tasks[later].pipe].add(clock.allowed(later), rank[later], later)
    return TaskOrder(tuple(order), clock.end, frozenset(clock.late))


class _Waiting:
    """Tasks that cannot start yet, because of those they follow or of the window."""

    def __init__(self, tasks: Sequence[PipeTask], window: int) -> None:
        self._window = window
        self._missing = [len(task.after) for task in tasks]
        self._followers: list[list[int]] = [[] for _ in tasks]
        self._started = [False] * (len(tasks) + 1)
        self._oldest = 0
        self._far: list[int] = []
        for number, task in enumerate(tasks):
            for earlier, _ in task.after:
                self._followers[earlier].append(number)

    def first(self) -> list[int]:
        """The tasks that can start now."""
        self._far = [number for number, missing in enumerate(self._missing) if not missing]
        return self._near()

    def after(self, number: int) -> list[int]:
        """The tasks that can start when the task `number` has, and could not before."""
        self._started[number] = True
        while self._started[self._oldest]:
            self._oldest += 1
        for later in self._followers[number]:
            self._missing[later] -= 1
            if not self._missing[later]:
                heappush(self._far, later)
        return self._near()

    def _near(self) -> list[int]:
        found = []
        while self._far and self._far[0] < self._oldest + self._window:
            found.append(heappop(self._far))
        return found


class _Clock:
    """When tasks start that are issued one after the other.

    Attributes:
        free: when each pipe can start its next task.
        end: when all tasks so far are complete.
        late: as of `TaskOrder`.
    """

    def __init__(self, tasks: Sequence[PipeTask], credit: int) -> None:
        self._tasks, self._credit = tasks, credit
        self._memory: int | None = None
        self._started = [0] * len(tasks)
        self._late = [0] * len(tasks)
        self._told: list[int] = [0] * len(tasks)
        self._complete: dict[int, int] = {}
        self._issued = 0
        self.free: dict[int, int] = {}
        self.late: set[int] = set()
        self.end = 0

    def allowed(self, number: int) -> int:
        """When a task may start, given those it follows."""
        return max(
            (self._allowed_by(*edge, number) for edge in self._tasks[number].after), default=0
        )

    def _allowed_by(self, earlier: int, cycles: int, number: int) -> int:
        """When a task may start, given one that it follows. Another pipe is told of its end when
        all in front of it in its pipe are complete as well."""
        there = self._started[earlier] + self._late[earlier] + cycles
        if self._tasks[earlier].pipe == self._tasks[number].pipe:
            return there
        return there + self._told[earlier]

    def start(self, number: int) -> None:
        """Issues a task behind those before: it starts when its pipe is free and what it follows
        allows it."""
        task = self._tasks[number]
        self._issued += task.issue
        start = max(self._issued, self.free.get(task.pipe, 0), self.allowed(number))
        late = self._wait(task, start)
        self._started[number], self._late[number] = start, late
        self.free[task.pipe] = start + task.busy + late
        complete = start + task.result + late
        self._told[number] = max(0, self._complete.get(task.pipe, 0) - complete)
        self._complete[task.pipe] = complete + self._told[number]
        if self._told[number]:
            self.late.add(task.pipe)
        self.end = max(self.end, complete)
        if task.blocks:
            self._issued = start + task.result

    def _wait(self, task: PipeTask, start: int) -> int:
        """How much later a task is complete because of the memory."""
        if not task.of_memory:
            return 0
        behind = start if self._memory is None else max(self._memory, start - self._credit)
        self._memory = behind + task.of_memory
        return max(0, self._memory - start - task.busy)


class _Queue:
    """Tasks of a pipe whose predecessors have started."""

    def __init__(self) -> None:
        self._later: list[tuple[int, float, int]] = []
        self._ready: list[tuple[float, int]] = []

    def __bool__(self) -> bool:
        return bool(self._later or self._ready)

    def add(self, time: int, rank: float, number: int) -> None:
        heappush(self._later, (time, rank, number))

    def earliest(self, free: int) -> int:
        """When the first task could start on a pipe that is free from then on."""
        return free if self._ready else max(free, self._later[0][0])

    def take(self, free: int) -> int:
        now = self.earliest(free)
        while self._later and self._later[0][0] <= now:
            _, rank, number = heappop(self._later)
            heappush(self._ready, (rank, number))
        return heappop(self._ready)[1]
