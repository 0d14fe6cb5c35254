"""Which earlier operations an operation has to wait for, because they touch the same bytes.

For each segment (`sync_memory`) is kept who read and who wrote it, in order of execution, so that
the last of them is found without a look at all others. Where offsets depend on loops, segments tell
something within an iteration only; between iterations, and between areas of a buffer, all accesses
are looked through.

None of it depends on flags and barriers, so it is found once for a kernel, however often those are
tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from davinci.passes.analysis.accesses import FORWARD
from davinci.passes.cce.sync_clock import PIPES
from davinci.passes.cce.sync_memory import Area, Kind, ProgramAccesses, Spot
from davinci.passes.cce.sync_program import Branch, Leaf, Program, SyncBlock, SyncLoop, common_loops
from davinci.passes.cce.sync_queues import Queue


@dataclass(eq=False)
class _Execution:
    """One of an operation: its number among all, and the iteration of each loop around it."""

    leaf: Leaf
    number: int
    iteration: tuple[int, ...]


Entry = tuple[_Execution, Spot]


@dataclass(eq=False)
class _Notes:
    """Accesses to an area at offsets that differ by constants, in a run of the program."""

    all: dict[Kind, list[Entry]] = field(default_factory=dict)
    wide: dict[Kind, list[Entry]] = field(default_factory=dict)
    of_segment: dict[tuple[int, Kind], list[Entry]] = field(default_factory=dict)


class _Entries(NamedTuple):
    """Accesses of a pipe that an operation may have to wait for, in order.

    Attributes:
        area: if not the operation's own, theirs.
        of_segment: whether all touch a segment that the operation touches, unless strided.
    """

    pipe: Queue
    entries: list[Entry]
    area: Area | None = None
    of_segment: bool = False


class Record:
    """Who touches what when a program is run: every loop twice, and branches one after the other.

    Attributes:
        program: the program.
        before: for each execution of an operation, in order, those that must be complete before it:
            of each pipe the number, from 0, of the last one, the latest first.
    """

    def __init__(self, program: Program, memory: ProgramAccesses) -> None:
        self.program = program
        self.before: list[tuple[tuple[Queue, int], ...]] = []
        self._memory = memory
        self._notes: dict[Area, dict[tuple[int, ...], _Notes]] = {}
        self._absent: list[tuple[int, int]] = []
        """Ranges of executions that there are not where the present ones are."""
        self._block(program.body, ())

    def _block(self, block: SyncBlock, iteration: tuple[int, ...]) -> None:
        for node in block.nodes:
            if isinstance(node, Leaf):
                self._leaf(node, iteration)
            elif isinstance(node, SyncLoop):
                for number in range(node.turns):
                    self._block(node.body, (*iteration, number))
            elif isinstance(node, Branch):
                self._branch(node, iteration)

    def _branch(self, branch: Branch, iteration: tuple[int, ...]) -> None:
        begin = len(self.before)
        for block in branch.blocks:
            self._absent.append((begin, len(self.before)))
            self._block(block, iteration)
            self._absent.pop()

    def _leaf(self, leaf: Leaf, iteration: tuple[int, ...]) -> None:
        last = [-1] * len(PIPES)
        spots = self._memory.spots[leaf]
        for spot in spots:
            for each in self._entries(spot, iteration, last):
                found = self._last(each, spot, iteration, last[each.pipe])
                last[each.pipe] = max(found, last[each.pipe])
        execution = _Execution(leaf, len(self.before), iteration)
        latest = sorted(((last[pipe], pipe) for pipe in PIPES if last[pipe] >= 0), reverse=True)
        self.before.append(tuple((pipe, number) for number, pipe in latest))
        for spot in spots:
            self._add(execution, spot)

    def _add(self, execution: _Execution, spot: Spot) -> None:
        epochs = self._notes.setdefault(spot.area, {})
        notes = epochs.setdefault(_epoch(spot, execution.iteration), _Notes())
        kind, entry = (spot.use, spot.leaf.pipe), (execution, spot)
        notes.all.setdefault(kind, []).append(entry)
        if spot.is_wide:
            notes.wide.setdefault(kind, []).append(entry)
            return
        for segment in spot.segments:
            notes.of_segment.setdefault((segment, kind), []).append(entry)

    def _entries(
        self, spot: Spot, iteration: tuple[int, ...], floors: Sequence[int]
    ) -> Iterator[_Entries]:
        """Accesses that a spot may meet, those of each pipe that are numbered above its floor."""
        own_epoch = _epoch(spot, iteration)
        for area in spot.areas:
            for epoch, notes in self._notes.get(area, {}).items():
                own = area is spot.area and epoch == own_epoch
                for kind in spot.sources:
                    pipe = kind[1]
                    if not reaches(notes.all.get(kind), floors[pipe]):
                        continue
                    if not own or spot.is_wide:
                        yield _Entries(pipe, notes.all[kind], None if own else area)
                        continue
                    if reaches(notes.wide.get(kind), floors[pipe]):
                        yield _Entries(pipe, notes.wide[kind])
                    for segment in spot.segments:
                        if reaches(notes.of_segment.get((segment, kind)), floors[pipe]):
                            entries = notes.of_segment[segment, kind]
                            yield _Entries(pipe, entries, of_segment=True)

    def _last(self, each: _Entries, spot: Spot, iteration: tuple[int, ...], floor: int) -> int:
        """The number of the last execution that `spot` meets, if it is above `floor`, else -1."""
        for execution, other in reversed(each.entries):
            if execution.number <= floor:
                return -1
            if any(begin <= execution.number < end for begin, end in self._absent):
                continue
            if each.of_segment and other.exact and spot.exact:
                return execution.number
            depth = common_loops(other.leaf.loops, spot.leaf.loops)
            carrier = differs_at(execution.iteration, iteration, depth)
            if each.area and not self._memory.meets_any(each.area, spot, carrier, depth):
                continue
            if self._memory.meet(other, spot, carrier):
                return execution.number
        return -1


def reaches(entries: list[Entry] | None, floor: int) -> bool:
    """Whether the last of some accesses of a pipe is numbered above `floor`."""
    return entries is not None and entries[-1][0].number > floor


def _epoch(spot: Spot, iteration: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(iteration[level] for level in spot.levels)


def differs_at(first: tuple[int, ...], second: tuple[int, ...], depth: int) -> int:
    """The first of `depth` loops in whose iteration two instances differ, or FORWARD."""
    for level in range(depth):
        if first[level] != second[level]:
            return level
    return FORWARD
