"""Which earlier operations an operation has to wait for, because they touch the same bytes.

For the segments of an area (`sync_memory`) is kept who read and who wrote them, in order of
execution, so that the last of them is found without a look at all others. An access is noted at few
nodes of a binary tree over the segments, however many it touches (`_Notes`). Where offsets depend
on loops, segments tell something within an iteration only; between iterations, and between areas of
a buffer, all accesses are looked through.

None of it depends on flags and barriers, so it is found once for a kernel, however often those are
tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


class _Notes:
    """Accesses to an area at offsets that differ by constants, in a run of the program.

    The segments of the area are the leaves of a complete binary tree whose root is node 1 and whose
    node i has the children 2 i and 2 i + 1. A range of segments is the union of the leaves below a
    few nodes, its *cover*, at most two in each level. Two ranges share a segment where a node of
    one cover is a node of the other, or lies above or below one.

    Args:
        segments: number of segments of the area.

    Attributes:
        all: all accesses of each kind.
    """

    def __init__(self, segments: int) -> None:
        self.all: dict[Kind, list[Entry]] = {}
        self._first_leaf = 1 << max(segments - 1, 0).bit_length()
        self._covered: dict[tuple[int, Kind], list[Entry]] = {}
        """By node of a tree: accesses that have it in their cover."""
        self._below: dict[tuple[int, Kind], list[Entry]] = {}
        """By node of a tree: accesses that have it or a node below it in their cover."""

    def add(self, entry: Entry) -> None:
        """Notes an access that comes after all those before."""
        spot = entry[1]
        kind = (spot.use, spot.leaf.pipe)
        self.all.setdefault(kind, []).append(entry)
        cover = self._cover(spot.segments)
        for node in cover:
            self._covered.setdefault((node, kind), []).append(entry)
        for node in _with_parents(cover):
            self._below.setdefault((node, kind), []).append(entry)

    def sharing(self, segments: range, kind: Kind) -> Iterator[list[Entry]]:
        """The accesses of a kind that share one of some segments, as lists in order."""
        cover = self._cover(segments)
        for node in cover:
            if entries := self._below.get((node, kind)):
                yield entries
        for node in _with_parents([node >> 1 for node in cover]):
            if entries := self._covered.get((node, kind)):
                yield entries

    def _cover(self, segments: range) -> list[int]:
        """The highest nodes that have exactly some segments below them."""
        first, end = segments.start + self._first_leaf, segments.stop + self._first_leaf
        found = []
        while first < end:
            if first & 1:
                found.append(first)
                first += 1
            if end & 1:
                end -= 1
                found.append(end)
            first, end = first >> 1, end >> 1
        return found


def _with_parents(nodes: list[int]) -> set[int]:
    """Nodes of a binary tree with all that lie above them."""
    found: set[int] = set()
    for node in nodes:
        while node and node not in found:
            found.add(node)
            node >>= 1
    return found


class _Entries(NamedTuple):
    """Accesses of a pipe that an operation may have to wait for, in order.

    Attributes:
        area: if not the operation's own, theirs.
        shared: whether all touch a segment that the operation touches, unless strided.
    """

    pipe: Queue
    entries: list[Entry]
    area: Area | None = None
    shared: bool = False


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
        epoch = _epoch(spot, execution.iteration)
        if epoch not in epochs:
            epochs[epoch] = _Notes(len(spot.area.bounds))
        epochs[epoch].add((execution, spot))

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
                    if not own:
                        yield _Entries(pipe, notes.all[kind], area)
                        continue
                    for entries in notes.sharing(spot.segments, kind):
                        if reaches(entries, floors[pipe]):
                            yield _Entries(pipe, entries, shared=True)

    def _last(self, each: _Entries, spot: Spot, iteration: tuple[int, ...], floor: int) -> int:
        """The number of the last execution that `spot` meets, if it is above `floor`, else -1."""
        for execution, other in reversed(each.entries):
            if execution.number <= floor:
                return -1
            if any(begin <= execution.number < end for begin, end in self._absent):
                continue
            if each.shared and other.exact and spot.exact:
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
