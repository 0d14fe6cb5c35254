"""Which earlier operations an operation has to wait for, because they touch the same bytes.

For each segment (`sync_memory`) is kept who read and who wrote it, in order of execution, so that
the last of them is found without a look at all others. Where offsets depend on loops, segments tell
something within an iteration only; between iterations, and between areas of a buffer, all accesses
are looked through that are not known to be complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from davinci.isa.core import Pipe
from davinci.passes.analysis.accesses import FORWARD
from davinci.passes.cce.sync_memory import Area, Kind, Memory, Spot
from davinci.passes.cce.sync_program import Leaf, Loop, Node, common_loops

Clock = list[int]
"""For each pipe the number of its instances up to which all are complete."""


@dataclass(eq=False)
class Instance:
    """One execution of an operation, or of a wait.

    Attributes:
        node: the operation, or the node that the wait precedes or follows.
        is_wait: which of the two it is.
        pipe, number: where it runs, and its number there, from 1.
        order: its number among all.
        work: number of operations that its pipe had before.
        loops, iteration: loops around it, outermost first, and the iteration of each.
        clock: what is complete once it is, it too.
    """

    node: Node
    is_wait: bool
    pipe: Pipe
    number: int
    order: int
    work: int
    loops: tuple[Loop, ...]
    iteration: tuple[int, ...]
    clock: Clock


Entry = tuple[Instance, Spot]
Absent = Sequence[tuple[int, int]]
"""Ranges of instances that are not executed where others are."""


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

    pipe: Pipe
    entries: list[Entry]
    area: Area | None = None
    of_segment: bool = False


class Record:
    """Who touched what in a run of a program."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._notes: dict[Area, dict[tuple[int, ...], _Notes]] = {}

    def add(self, instance: Instance) -> None:
        assert isinstance(instance.node, Leaf)
        for spot in self._memory.spots[instance.node]:
            epochs = self._notes.setdefault(spot.area, {})
            notes = epochs.setdefault(_epoch(spot, instance.iteration), _Notes())
            kind, entry = (spot.is_write, instance.pipe), (instance, spot)
            notes.all.setdefault(kind, []).append(entry)
            if spot.is_wide:
                notes.wide.setdefault(kind, []).append(entry)
                continue
            for segment in spot.segments:
                notes.of_segment.setdefault((segment, kind), []).append(entry)

    def before(
        self, leaf: Leaf, iteration: tuple[int, ...], known: Clock, absent: Absent
    ) -> list[Instance]:
        """Of each pipe the last instance that must be complete before `leaf`, the latest first.

        Args:
            iteration: of the loops around it.
            known: what is complete, and left out.
        """
        last: dict[Pipe, Instance] = {}
        floors = [*known]
        for spot in self._memory.spots[leaf]:
            for each in self._entries(spot, iteration, floors):
                found = self._last(each, spot, iteration, floors[each.pipe], absent)
                if found:
                    last[each.pipe] = found
                    floors[each.pipe] = found.number
        return sorted(last.values(), key=lambda instance: -instance.order)

    def _entries(self, spot: Spot, iteration: tuple[int, ...], floors: Clock) -> Iterator[_Entries]:
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

    def _last(
        self,
        each: _Entries,
        spot: Spot,
        iteration: tuple[int, ...],
        floor: int,
        absent: Absent,
    ) -> Instance | None:
        """The last instance that `spot` meets, numbered above `floor`."""
        for instance, other in reversed(each.entries):
            if instance.number <= floor:
                return None
            if any(begin <= instance.order < end for begin, end in absent):
                continue
            if each.of_segment and other.exact and spot.exact:
                return instance
            depth = common_loops(other.leaf.loops, spot.leaf.loops)
            carrier = differs_at(instance.iteration, iteration, depth)
            if each.area and not self._memory.meets_any(each.area, spot, carrier, depth):
                continue
            if self._memory.meet(other, spot, carrier):
                return instance
        return None


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
