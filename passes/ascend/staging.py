"""Which launches of @main become one: reads its list of launches as tasks for
`davinci.schedule.stages`, and puts what was decided into the list.

`davinci.passes.pipeline.plans` has the names of plans.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from davinci import machine as machines
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.mlir import Op, ir, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.kernels import CORES, known_kernels, seen_by, takes_both
from davinci.passes.ascend.host_function import Launch, Storage, Touch, bytes_of
from davinci.passes.ascend.kernel_group import group_of_kernel
from davinci.passes.ascend.streaming import arrivals
from davinci.passes.pipeline.plans import SEQUENTIAL, TIME, groups_of
from davinci.planning import Piece, Step, Work, lowest
from davinci.schedule.core_count import CoreCount
from davinci.schedule.graph import Graph
from davinci.schedule.kernel_cores import count_alone, ways_of_group
from davinci.schedule.stages import (
    CoresWay,
    LaunchStage,
    StagedCall,
    StagePrices,
    fastest,
    in_groups,
    partners,
    sequential,
)
from davinci.schedule.vector.space import NoSpace
from davinci.units import round_up

WAYS_KEPT = 5_000
"""Kernels whose cycles are remembered."""

MOST_GROUPS = 4
"""Groups of a layer that plans for memory try."""

MOST_LAYERED = 8
"""Groups of a layer up to which plans are compared in reports."""


@dataclass(frozen=True)
class Staged:
    """Launches in the order in which they run.

    Attributes:
        launches: of each stage.
        stages: that they were made from.
    """

    launches: list[list[Launch]]
    stages: list[LaunchStage]

    @property
    def cycles(self) -> float:
        """Estimated, with the launches."""
        return sum(stage.cycles for stage in self.stages)

    def calls_of(self, storage: Storage, piece: Piece) -> tuple[int, int]:
        """Numbers of the first call that needs a piece of a storage and of the last call of the
        last stage that does."""
        before = sum(map(len, self.launches[: piece.lower]))
        users = [
            before + at
            for at, launch in enumerate(self.launches[piece.lower])
            if any(
                touch.storage is storage and touch.meets(piece.begin, piece.end)
                for touch in launch.touches
            )
        ]
        end = sum(map(len, self.launches[: piece.upper]))
        return min(users, default=before), end - 1

    def later_writers(self, storage: Storage, piece: Piece) -> list[int]:
        """Numbers of the calls that write bytes of a piece of a storage, but for the first one:
        they make other parts of it, or overwrite it."""
        calls = (launch for launches in self.launches for launch in launches)
        return [
            number
            for number, launch in enumerate(calls)
            if any(
                touch.storage is storage and touch.writes and touch.meets(piece.begin, piece.end)
                for touch in launch.touches
            )
        ][1:]

    def note_lifetimes(self) -> None:
        """Gives storages the first and the last stage that needs them, and their uses: kernels of a
        stage run at the same time, so what they use conflicts. Streamed weights are needed from the
        stage on with which their transfer begins."""
        seen: set[Storage] = set()
        for number, launches in enumerate(self.launches):
            for touch in (touch for launch in launches for touch in launch.touches):
                storage = touch.storage
                if storage not in seen:
                    storage.first, storage.uses = number, []
                    seen.add(storage)
                storage.last = number
                storage.uses.append(Piece(touch.begin, touch.end, number, number + 1))
        for storage, begins in arrivals(self.launches):
            storage.first = begins
            storage.uses.append(Piece(0, storage.size, begins, begins + 1))


class StageSearch:
    """Decides the stages of a list of launches.

    Args:
        root: the module; it has the kernels.
        launches: in an order in which they can run.
        cores: that a launch may have.
    """

    def __init__(self, root: Op, launches: list[Launch], machine: Machine, cores: int) -> None:
        self._root, self._launches = root, launches
        self._machine = machines.for_vector(machine)
        self._cores = machines.vector_cores_for(machine, cores)
        self._chip, self._chip_cores = machine, cores
        self._needs = needs_of(launches)
        self._kernels: dict[str, KernelWays | None] = {}

    def plans(self, plan: str) -> list[Staged]:
        """What may be taken, by a name of a plan: one, or several of which the arena decides."""
        if plan == SEQUENTIAL or not any(self._partners):
            return [self._apart()]
        prices = self._all_prices
        if (groups := groups_of(plan)) is not None:
            return [self._staged(in_groups(prices, groups))]
        layered = [in_groups(prices, count) for count in range(1, MOST_GROUPS + 1)]
        # A search that looks at some sets of kernels only may miss what layers find.
        best = min(map(self._staged, [fastest(prices), *layered]), key=lambda made: made.cycles)
        if plan == TIME:
            return [best]
        order = lowest(self.work(self._machine.gm.line_bytes)).steps
        few = [LaunchStage((number,), (), prices.alone(number)) for number in order]
        made = [sequential(prices), few, *layered]
        return [*map(self._staged, made), best]

    def layered(self) -> Iterator[tuple[str, Staged]]:
        """Yields plans from one launch after the other to layers whose kernels all share a launch,
        by the names of `davinci.passes.pipeline.plans`; none where every kernel waits for
        another. Plans of as many launches as the one before are left out."""
        if not any(self._partners):
            return
        prices = self._all_prices
        apart = sequential(prices)
        yield SEQUENTIAL, self._staged(apart)
        launches = len(apart)
        for groups in reversed(range(1, MOST_LAYERED + 1)):
            stages = in_groups(prices, groups)
            if len(stages) != launches:
                yield f"groups={groups}", self._staged(stages)
            launches = len(stages)

    def work(self, line_bytes: int) -> Work:
        """The launches as steps that touch storages of the arena; a step waits for those that
        launches wait for, so kernels that write parts of one storage may run in any order."""
        numbers: dict[Storage, int] = {}
        steps = []
        for launch, needs in zip(self._launches, self._needs, strict=True):
            touched = [place.storage for place, _ in launch.buffers]
            inside = dict.fromkeys(s for s in touched if s.kind == "arena")
            reads = tuple(numbers.setdefault(storage, len(numbers)) for storage in inside)
            steps.append(Step(reads, (), needs))
        sizes = tuple(round_up(storage.size, line_bytes) for storage in numbers)
        return Work(sizes, tuple(steps))

    def of_stages(self, stages: Sequence[tuple[int, ...]]) -> Staged:
        """Given stages, their cores shared out as takes least time."""
        priced = [self._all_prices.stage(tuple(sorted(tasks))) for tasks in stages]
        found = [
            stage or LaunchStage(tuple(tasks)) for stage, tasks in zip(priced, stages, strict=True)
        ]
        return self._staged(found)

    def in_order(self, order: Sequence[int]) -> Staged:
        """One launch after the other, whose cycles nobody has asked for."""
        return self._staged([LaunchStage((number,)) for number in order])

    def with_launches(self, launches: list[Launch]) -> StageSearch:
        """Decides of other launches of the same kernels."""
        other = StageSearch(self._root, launches, self._chip, self._chip_cores)
        other._kernels = self._kernels
        return other

    def cycles_alone(self, launch: Launch) -> float | None:
        """Estimated cycles of a launch that shares nothing; None for kernels of the scalar unit
        and for loops."""
        kernel = self._kernel(launch.kernel)
        return kernel.alone.total if kernel else None

    def cycles_of(self, staged: Staged) -> float:
        """Estimated cycles of all launches, those of unknown length counted as none."""
        total = 0.0
        for launches, stage in zip(staged.launches, staged.stages, strict=True):
            alone = len(launches) == 1
            total += (self.cycles_alone(launches[0]) or 0.0) if alone else stage.cycles
        return total

    @cached_property
    def _partners(self) -> list[int]:
        return partners(self._needs)

    @cached_property
    def _all_prices(self) -> StagePrices:
        return StagePrices(self._machine, self._cores, self._tasks())

    def _worth(self) -> dict[str, float]:
        """Cycles beyond which a kernel has too few cores to share a launch: it and all that may
        share it take as long one after the other."""
        least = self._machine.queued_cycles(min(2, self._cores))
        alone = [
            (self.cycles_alone(launch) or 0.0) if others else 0.0
            for launch, others in zip(self._launches, self._partners, strict=True)
        ]
        worth: dict[str, float] = {}
        for launch, own, others in zip(self._launches, alone, self._partners, strict=True):
            apart = own - least + sum(c for n, c in enumerate(alone) if others >> n & 1)
            worth[launch.kernel] = max(apart, worth.get(launch.kernel, 0.0))
        return worth

    def _apart(self) -> Staged:
        stages = [LaunchStage((number,)) for number in range(len(self._launches))]
        return self._staged(stages)

    def _staged(self, stages: list[LaunchStage]) -> Staged:
        return Staged([[self._launches[n] for n in stage.tasks] for stage in stages], stages)

    def _tasks(self) -> list[StagedCall]:
        if self._chip.split:  # kernels share no launch there, so all orders take equally long
            return [StagedCall((CoresWay(1, 0.0),), needs, shares=False) for needs in self._needs]
        tasks, worth = [], self._worth()
        for launch, needs, beside in zip(self._launches, self._needs, self._partners, strict=True):
            kernel = self._kernel(launch.kernel) if beside else None
            if kernel is None:
                tasks.append(StagedCall((CoresWay(1, 0.0),), needs, shares=False))
                continue
            ways = kernel.ways(worth[launch.kernel])
            sizes: dict[str, int] = {}
            for place, kind in launch.buffers:
                source = "constant" if place.storage.streamed else place.storage.kind
                sizes[source] = sizes.get(source, 0) + bytes_of(kind)
            total = sum(sizes.values())
            brought = sizes.get("constant", 0) + sizes.get("argument", 0)
            tasks.append(StagedCall(ways, needs, brought, total))
        return tasks

    def _kernel(self, name: str) -> KernelWays | None:
        """A kernel on several numbers of cores; None if it shares no launch."""
        if name not in self._kernels:
            kernel = known_kernels(self._root)[name]
            if takes_both(kernel, self._chip):
                self._kernels[name] = None
                return None
            try:
                seen = seen_by(kernel, self._chip)
                cores = self._cores * seen.cores // self._machine.cores
                self._kernels[name] = ways_of(kernel, seen, cores)
            except (NoSpace, CompileError):  # said again, with its place, where it is lowered
                self._kernels[name] = None
        return self._kernels[name]

    def apply(self, staged: Staged) -> list[Launch]:
        """The launches in order, each with the number of its stage if it shares that, and with a
        kernel for as many cores as it has there."""
        made: dict[tuple[str, int], str] = {}
        alone = {launches[0].kernel for launches in staged.launches if len(launches) == 1}
        found: list[Launch] = []
        for number, (launches, stage) in enumerate(
            zip(staged.launches, staged.stages, strict=True)
        ):
            if len(launches) == 1:
                found += launches
                continue
            for launch, cores in zip(launches, stage.cores, strict=True):
                key = launch.kernel, cores
                if key not in made:
                    first = launch.kernel not in {name for name, _ in made} | alone
                    made[key] = self._for_cores(launch.kernel, cores, first)
                found.append(replace(launch, kernel=made[key], stage=number))
        return found

    def _for_cores(self, name: str, cores: int, itself: bool) -> str:
        """The kernel for that many cores: itself, or a copy."""
        known = known_kernels(self._root)
        kernel = known[name]
        if not itself:
            with ir.InsertionPoint(kernel):
                kernel = kernel.clone().operation
            name = unique(f"{name}_on_{cores}", {**known, **dict(symbols(self._root))})
            kernel.attributes["sym_name"] = builder.as_attribute(name)
        kernel.attributes[CORES] = builder.as_attribute(cores)
        return name


def needs_of(launches: Sequence[Launch]) -> list[frozenset[int]]:
    """Numbers of the launches before each that it waits for: both touch bytes that one writes.

    Kernels touch whole blocks, so bytes of one block are those of all of it.
    """
    touched: dict[Storage, list[tuple[int, Touch]]] = {}
    needs: list[frozenset[int]] = []
    for number, launch in enumerate(launches):
        touches = launch.touches
        found = {
            other
            for touch in touches
            for other, before in touched.get(touch.storage, ())
            if (touch.writes or before.writes) and before.meets(touch.begin, touch.end)
        }
        for touch in touches:
            touched.setdefault(touch.storage, []).append((number, touch))
        needs.append(frozenset(found))
    return needs


class KernelWays:
    """A kernel on several numbers of cores: on fewer of them only as asked for.

    Attributes:
        alone: the number that it takes with a launch of its own.
    """

    def __init__(self, graph: Graph, machine: Machine, cores: int, alone: CoreCount) -> None:
        self.alone = alone
        self._graph, self._machine, self._cores = graph, machine, cores
        self._weighed: tuple[CoresWay, ...] = ()
        self._most = -math.inf

    def ways(self, most: float) -> tuple[CoresWay, ...]:
        """On as many cores as it takes alone, and on all fewer on which it takes at most so many
        cycles; see `davinci.schedule.stages.Task.ways`."""
        if self._most < most:
            graph, machine, cores = self._graph, self._machine, self._cores
            self._weighed = ways_of_group(graph, machine, cores, self.alone, most)
            self._most = most
        least = self._weighed[-1]
        return tuple(way for way in self._weighed if way is least or way.cycles <= most)


def ways_of(kernel: Op, machine: Machine, cores: int) -> KernelWays | None:
    """A kernel on several numbers of cores; None of a kernel that shares no launch: loops that stay
    on a core, and what the scalar unit does, whose accesses nobody compares with those of other
    kernels.

    Raises:
        NoSpace, CompileError: no kernel can compute the group.
    """
    group = group_of_kernel(kernel)
    if group is None:
        return None
    known, key = _known_ways(machine, cores), group.graph.key()
    if key not in known:
        if len(known) == WAYS_KEPT:
            known.clear()
        alone = count_alone(group.graph, machine, cores)
        known[key] = KernelWays(group.graph, machine, cores, alone) if alone else None
    return known[key]


@lru_cache(maxsize=4)
def _known_ways(machine: Machine, cores: int) -> dict[Hashable, KernelWays | None]:
    """What was found for groups, from one module to the next."""
    return {}
