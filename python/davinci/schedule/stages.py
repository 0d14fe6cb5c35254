"""Stages: which kernels of a network share a launch, and how many cores each of them has.

The kernels of a network wait for each other as its graph says. A *stage* is a set of kernels of
which none waits for another; it is one launch, whose cores they share, so its price is paid once
and cores that a small kernel leaves idle have work. As in IOS (Ding et al., MLSys 2021) stages are
searched by dynamic programming over the sets of kernels that are done: the least time of a set is
that of a smaller one and of the stage that makes the difference. Sets of one size compete, and only
those that have saved most, compared with one launch for each kernel, are kept.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from davinci.machine import Machine

ALL_SUBSETS = 6
"""Kernels that are ready up to which every set of them may be a stage; of more only kernels that
are neighbours when they are sorted by time, or by how long what waits for them takes."""

MOST_TOGETHER = 16
"""Kernels of a stage."""

KEPT = 24
"""Sets of done kernels of one size that are kept."""


@dataclass(frozen=True)
class CoresWay:
    """A kernel on some number of cores: those that have work, and estimated cycles."""

    cores: int
    cycles: float


@dataclass(frozen=True)
class StagedCall:
    """A call of a kernel.

    Attributes:
        ways: by rising cores and falling cycles; at least one.
        needs: numbers of the tasks that it waits for, all of them before it.
        memory_bytes: that come from the memory, as constants do.
        l2_bytes: that pass the L2, these among them.
        shares: whether it may share a launch.
    """

    ways: tuple[CoresWay, ...]
    needs: frozenset[int] = frozenset()
    memory_bytes: int = 0
    l2_bytes: int = 0
    shares: bool = True


@dataclass(frozen=True)
class LaunchStage:
    """Tasks that are one launch.

    Attributes:
        tasks: their numbers, in rising order.
        cores: of each of them; none where it has a launch of its own, which takes as many as pay.
        cycles: estimated, with the launch.
    """

    tasks: tuple[int, ...]
    cores: tuple[int, ...] = ()
    cycles: float = 0.0


def pruned(ways: Sequence[CoresWay]) -> tuple[CoresWay, ...]:
    """Ways of which none has more cores than another and takes as long.

    >>> pruned([Way(4, 50), Way(1, 90), Way(2, 90)])
    (Way(cores=1, cycles=90), Way(cores=4, cycles=50))
    """
    found: list[CoresWay] = []
    for way in sorted(ways, key=lambda each: (each.cores, each.cycles)):
        if not found or way.cycles < found[-1].cycles:
            found.append(way)
    return tuple(found)


@dataclass
class StagePrices:
    """What stages take.

    Attributes:
        machine: on which.
        cores: that a launch may have.
        tasks: of which stages consist.
    """

    machine: Machine
    cores: int
    tasks: Sequence[StagedCall]
    _alone: dict[int, float] = field(default_factory=dict)
    _known: dict[tuple[int, ...], LaunchStage | None] = field(default_factory=dict)
    _of_kinds: dict[tuple[int, ...], LaunchStage | None] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> list[int]:
        """The number of the first task with the ways and bytes of each: stages of equal kernels are
        priced once."""
        first: dict[StagedCall, int] = {}
        kinds = []
        for number, task in enumerate(self.tasks):
            kinds.append(first.setdefault(replace(task, needs=frozenset()), number))
        return kinds

    @cached_property
    def _queued(self) -> list[float]:
        return [self.machine.queued_cycles(count) for count in range(self.cores + 1)]

    def alone(self, number: int) -> float:
        """Least cycles of a task with a launch of its own."""
        if number not in self._alone:
            ways = (way for way in self.tasks[number].ways if way.cores <= self.cores)
            self._alone[number] = min(
                (way.cycles + self._queued[way.cores] for way in ways), default=math.inf
            )
        return self._alone[number]

    def stage(self, tasks: tuple[int, ...]) -> LaunchStage | None:
        """A stage, its cores shared out as takes least time; None if there are not enough."""
        if len(tasks) == 1:
            return LaunchStage(tasks, (), self.alone(tasks[0]))
        if tasks not in self._known:
            kinds = tuple(self.kinds[task] for task in tasks)
            if kinds not in self._of_kinds:
                self._of_kinds[kinds] = self._shared(kinds)
            found = self._of_kinds[kinds]
            self._known[tasks] = found and replace(found, tasks=tasks)
        return self._known[tasks]

    def _shared(self, numbers: tuple[int, ...]) -> LaunchStage | None:
        """The stage in which the cores are dealt to some tasks so that the slowest one is fastest;
        None where they have too few cores, or a task has its cores for itself."""
        tasks = [self.tasks[number] for number in numbers]
        if len(tasks) > self.cores or not all(task.shares for task in tasks):
            return None
        gm, l2 = self.machine.gm, self.machine.l2
        memory = sum(task.memory_bytes for task in tasks) / gm.read_bytes_per_cycle
        passing = sum(task.l2_bytes for task in tasks) / l2.read_bytes_per_cycle
        least = max(memory, passing) / self.machine.cores
        slowest = [[-way.cycles for way in task.ways] for task in tasks]
        best = LaunchStage(numbers, (), math.inf)
        for limit in sorted({way.cycles for task in tasks for way in task.ways}):
            places = [bisect.bisect_left(each, -limit) for each in slowest]
            if any(place == len(each) for place, each in zip(places, slowest, strict=True)):
                continue
            ways = [task.ways[place] for task, place in zip(tasks, places, strict=True)]
            count = sum(way.cores for way in ways)
            if count > self.cores:
                continue
            cycles = max(limit, least) + self._queued[count]
            if cycles < best.cycles:
                best = LaunchStage(numbers, tuple(way.cores for way in ways), cycles)
        return best if best.cores else None


def fastest(prices: StagePrices) -> list[LaunchStage]:
    """The stages of least estimated time that the search finds, in order."""
    tasks = prices.tasks
    readers = readers_of(tasks)
    masks = [sum(1 << need for need in task.needs) for task in tasks]
    after = longest_after(prices)
    alike = twins(prices, readers)
    # By the number of done tasks: sets of them, what each took, and how it came about.
    layers: list[dict[int, tuple[float, int, LaunchStage | None]]] = [
        {} for _ in range(len(tasks) + 1)
    ]
    layers[0][0] = (0.0, 0, None)
    worth: dict[int, float] = {0: 0.0}
    ready_after = {0: [number for number, task in enumerate(tasks) if not task.needs]}
    for layer in layers[:-1]:
        kept = sorted(layer, key=lambda done: layer[done][0] - worth[done])[:KEPT]
        for done in kept:
            cycles, before, last = layer[done]
            if last is not None:
                new = {n for task in last.tasks for n in readers[task] if masks[n] & ~done == 0}
                ready_after[done] = sorted(new.union(ready_after[before]).difference(last.tasks))
            for chosen in _candidates(ready_after[done], prices, after, alike):
                stage = prices.stage(chosen)
                if stage is None:
                    continue
                then = done | sum(1 << number for number in chosen)
                total = cycles + stage.cycles
                found = layers[then.bit_count()]
                if then not in found or total < found[then][0]:
                    found[then] = (total, done, stage)
                    worth[then] = worth[done] + sum(map(prices.alone, chosen))
    stages: list[LaunchStage] = []
    done = (1 << len(tasks)) - 1
    while done:
        _, done, stage = layers[done.bit_count()][done]
        assert stage is not None, "only nothing is done by no stage"
        stages.append(stage)
    return stages[::-1]


def readers_of(tasks: Sequence[StagedCall]) -> list[list[int]]:
    """Numbers of the tasks that wait for each, in rising order."""
    found: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for need in task.needs:
            found[need].append(number)
    return found


def twins(prices: StagePrices, readers: Sequence[Sequence[int]]) -> list[int]:
    """The number of the first task that each could change places with: one of an equal kernel that
    waits for the same tasks and that the same tasks wait for."""
    first: dict[tuple[int, frozenset[int], tuple[int, ...]], int] = {}
    found = []
    for number, task in enumerate(prices.tasks):
        key = (prices.kinds[number], task.needs, tuple(readers[number]))
        found.append(first.setdefault(key, number))
    return found


def _candidates(
    ready: Sequence[int], prices: StagePrices, after: Sequence[float], alike: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Sets of ready tasks that may be the next stage; a task that shares no launch alone, and at
    once, for nothing is gained by waiting. Of tasks that could change places the first are taken.

    Args:
        alike: the first of the tasks that each could change places with (`twins`).
    """
    for number in ready:
        if not prices.tasks[number].shares:
            yield (number,)
            return
    same: dict[int, list[int]] = {}
    for number in ready:
        same.setdefault(alike[number], []).append(number)
    if len(same) == len(ready):
        yield from dict.fromkeys(tuple(sorted(c)) for c in _choices(ready, prices, after, alike))
        return
    found = (tuple(sorted(alike[n] for n in c)) for c in _choices(ready, prices, after, alike))
    for kinds in dict.fromkeys(found):
        places = {kind: iter(same[kind]) for kind in kinds}
        yield tuple(sorted(next(places[kind]) for kind in kinds))


def _choices(
    ready: Sequence[int], prices: StagePrices, after: Sequence[float], alike: Sequence[int]
) -> Iterator[Sequence[int]]:
    """All sets of a few tasks; of more of them neighbours in two orders, without those that differ
    from others only in tasks that could change places."""
    if len(ready) <= ALL_SUBSETS:
        for count in range(1, len(ready) + 1):
            yield from combinations(ready, count)
        return
    for key in (prices.alone, after.__getitem__):
        ordered = sorted(ready, key=lambda number: (-key(number), alike[number], number))
        kinds = [alike[number] for number in ordered]
        for first, kind in enumerate(kinds):
            end = first + 1
            if first and kinds[first - 1] == kind:  # alone these are the ones from the first on
                while end < len(kinds) and kinds[end] == kind:
                    end += 1
                end += 1
            for stop in range(end, min(len(ordered), first + MOST_TOGETHER) + 1):
                yield ordered[first:stop]


def longest_after(prices: StagePrices) -> list[float]:
    """Cycles of the longest chain of tasks that begins with each."""
    tasks = prices.tasks
    found = [prices.alone(number) for number in range(len(tasks))]
    for number in reversed(range(len(tasks))):
        for need in tasks[number].needs:
            found[need] = max(found[need], prices.alone(need) + found[number])
    return found


def sequential(prices: StagePrices) -> list[LaunchStage]:
    """One launch after the other."""
    return [LaunchStage((n,), (), prices.alone(n)) for n in range(len(prices.tasks))]


def in_groups(prices: StagePrices, groups: int) -> list[LaunchStage]:
    """Layers of tasks that wait for equally many others one after the other, each cut in so many
    groups of equal size; a group that is no stage is cut in halves until it is."""
    layer: list[int] = []
    for task in prices.tasks:
        layer.append(max((layer[need] + 1 for need in task.needs), default=0))
    stages: list[LaunchStage] = []
    for level in range(max(layer, default=-1) + 1):
        numbers = [number for number, own in enumerate(layer) if own == level]
        size = -(-len(numbers) // groups)
        for first in range(0, len(numbers), size):
            stages += _as_stages(prices, numbers[first : first + size])
    return stages


def _as_stages(prices: StagePrices, numbers: Sequence[int]) -> list[LaunchStage]:
    """Tasks as one stage, or, where they cannot be one, as those of either half of them."""
    stage = prices.stage(tuple(numbers))
    if stage is not None:
        return [stage]
    middle = len(numbers) // 2
    return [*_as_stages(prices, numbers[:middle]), *_as_stages(prices, numbers[middle:])]


def reachable(needs: Sequence[frozenset[int]]) -> list[int]:
    """Of each task the tasks that it waits for, directly or not, as bits of a number.

    Args:
        needs: numbers of the tasks that each waits for, all of them before it.
    """
    found: list[int] = []
    for own in needs:
        before = 0
        for need in own:
            before |= 1 << need | found[need]
        found.append(before)
    return found


def partners(needs: Sequence[frozenset[int]]) -> list[int]:
    """Of each task the tasks that it neither waits for nor that wait for it, as bits of a number.

    Args:
        needs: as of `reachable`.
    """
    before = reachable(needs)
    after = [0] * len(needs)
    for number, bits in enumerate(before):
        for other in range(number):
            if bits >> other & 1:
                after[other] |= 1 << number
    every = (1 << len(needs)) - 1
    return [every & ~(before[number] | after[number] | 1 << number) for number in range(len(needs))]
