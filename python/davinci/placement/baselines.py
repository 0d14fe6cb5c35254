"""Baselines to compare plans with: one device, a serial schedule, and tasks queued as they come."""

from __future__ import annotations

import heapq

from davinci.placement.player import play
from davinci.placement.problem import NEVER, Placement, PlacementProblem, best_of
from davinci.placement.schedule import Schedule


def single(problem: PlacementProblem) -> Placement:
    """Puts all tasks on the device where that takes the least time; those that this device
    cannot run go where they run fastest."""
    plans = []
    for device in range(len(problem.devices)):
        schedule = Schedule(problem)
        for task in problem.order:
            seconds = problem.tasks[task].seconds
            own = seconds[device] != NEVER
            schedule.append(task, device if own else seconds.index(min(seconds)))
        plans.append(schedule.plan("single"))
    return best_of(plans)


def serial(problem: PlacementProblem) -> Placement:
    """Dynamic programming over a topological order, one task at a time over all devices (as MOSAIC
    does; Han and others, PACT 2019).

    A state is the device of the last task; of the ways to it the fastest is kept, and what it reads
    that lies elsewhere is moved before it starts.
    """
    states: dict[int, tuple[float, dict[int, int], frozenset[tuple[int, int]]]]
    states = {-1: (0.0, {}, frozenset())}
    for task in problem.order:
        following: dict[int, tuple[float, dict[int, int], frozenset[tuple[int, int]]]] = {}
        for device, seconds in enumerate(problem.tasks[task].seconds):
            if seconds == NEVER:
                continue
            best: tuple[float, int, list[tuple[int, int]]] | None = None
            for last, (time, devices, there) in states.items():
                moved, end = [], time + seconds
                for producer, tensor in problem.reads[task]:
                    if devices[producer] != device and (tensor, device) not in there:
                        moved.append((tensor, device))
                        end += problem.tensors[tensor].moves[devices[producer]][device]
                if best is None or end < best[0]:
                    best = (end, last, moved)
            assert best is not None, "a Problem refuses tasks that no device runs"
            end, last, moved = best
            _, devices, there = states[last]
            following[device] = (end, devices | {task: device}, there | frozenset(moved))
        states = following
    _, devices, _ = min(states.values(), key=lambda state: state[0])
    return _one_after_another(problem, devices)


def _one_after_another(problem: PlacementProblem, devices: dict[int, int]) -> Placement:
    starts = [0.0] * len(problem.tasks)
    there: set[tuple[int, int]] = set()
    now = 0.0
    for task in problem.order:
        device = devices[task]
        for producer, tensor in problem.reads[task]:
            if devices[producer] != device and (tensor, device) not in there:
                there.add((tensor, device))
                now += problem.tensors[tensor].moves[devices[producer]][device]
        starts[task] = now
        now += problem.tasks[task].seconds[device]
    order = tuple(devices[i] for i in range(len(starts)))
    return Placement(problem, order, tuple(starts), "serial")


def queued(problem: PlacementProblem) -> Placement:
    """Each task goes to a device's queue when it becomes ready, where it is expected to end first,
    moves of its tensors included; a device takes of its queue the task of whose tensors it lacks
    the least (StarPU's DMDAR, "deque model data aware ready")."""
    count = len(problem.devices)
    waits = [len(p) for p in problem.predecessors]
    schedule = Schedule(problem)
    queues: list[list[int]] = [[] for _ in range(count)]
    done: list[list[int]] = [[] for _ in range(count)]
    expected = [0.0] * count
    """When each device is expected to have done what is in its queue."""
    ended: list[tuple[float, int]] = []
    rank = {task: place for place, task in enumerate(problem.order)}
    fresh = [i for i in problem.order if not waits[i]]
    now = 0.0
    while True:
        for task in sorted(fresh, key=rank.__getitem__):
            _push(schedule, task, now, queues, expected)
        fresh = []
        for device, queue in enumerate(queues):
            if queue and schedule.free[device] <= now:
                task = min(queue, key=lambda i: (schedule.ready(i, device), rank[i]))
                queue.remove(task)
                done[device].append(task)
                schedule.free[device] = max(schedule.free[device], now)
                heapq.heappush(ended, (schedule.append(task, device), task))
        if not ended:
            break
        now, _ = ended[0]
        while ended and ended[0][0] <= now:
            _, task = heapq.heappop(ended)
            for reader in problem.successors[task]:
                waits[reader] -= 1
                if not waits[reader]:
                    fresh.append(reader)
    devices = [schedule.devices[i] for i in range(len(waits))]
    return play(problem, devices, done, "dmdar").plan


def _push(
    schedule: Schedule, task: int, now: float, queues: list[list[int]], expected: list[float]
) -> None:
    best: tuple[float, int] | None = None
    for device, seconds in enumerate(schedule.problem.tasks[task].seconds):
        if seconds != NEVER:
            start = max(now, expected[device], schedule.ready(task, device))
            if best is None or start + seconds < best[0]:
                best = (start + seconds, device)
    assert best is not None, "a Problem refuses tasks that no device runs"
    expected[best[1]] = best[0]
    queues[best[1]].append(task)
