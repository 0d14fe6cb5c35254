"""Which syncs of a complete plan are needed: what nobody else teaches a pipe that must know it.

A sync *teaches* the pipe that waits for it up to which number all is complete on each pipe. If of
all syncs that a pipe has heard of only one tells it enough, that one is needed; and then so is, in
the same way, what the sync itself was told by others. Syncs of which this cannot be said may still
be needed together: which of them, only a trace without them tells.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from davinci.passes.cce.sync_clock import Clock
from davinci.passes.cce.sync_plan import PipeFlag, Sync
from davinci.passes.cce.sync_queues import Queue


class _Lesson(NamedTuple):
    """What a pipe was told by a sync, which sent it when `src` had had `heard` lessons itself; a
    barrier has no `src`."""

    sync: Sync
    told: Clock
    src: Queue | None
    heard: int


class Teachers:
    """Follows a trace, lesson by lesson.

    Attributes:
        needed: syncs that something required hangs on.
    """

    def __init__(self, pipes: int) -> None:
        self.needed: set[Sync] = set()
        self._lessons: list[list[_Lesson]] = [[] for _ in range(pipes)]
        self._most: list[list[list[int]]] = [[[] for _ in range(pipes)] for _ in range(pipes)]
        """For each pipe and each other, the most it was told by each lesson or those before."""
        self._heard_at: dict[PipeFlag, int] = {}
        self._others: dict[tuple[Queue, Queue, int], tuple[int, bool]] = {}
        """For what was asked before: up to which lesson a second teacher was looked for; found?"""

    def sets(self, flag: PipeFlag) -> None:
        """A flag is set: what its pipe has heard so far goes with it."""
        self._heard_at[flag] = len(self._lessons[flag.src])

    def barrier(self, sync: Sync, pipe: Queue, told: Clock) -> None:
        self._learn(pipe, _Lesson(sync, told, None, 0))

    def wait(self, sync: Sync, flag: PipeFlag, pipe: Queue, told: Clock) -> None:
        self._learn(pipe, _Lesson(sync, told, flag.src, self._heard_at[flag]))

    def _learn(self, pipe: Queue, lesson: _Lesson) -> None:
        self._lessons[pipe].append(lesson)
        for most, number in zip(self._most[pipe], lesson.told, strict=True):
            most.append(max(number, most[-1] if most else 0))

    def require(self, pipe: Queue, other: Queue, number: int) -> None:
        """`pipe` must know now that `other` is past `number`."""
        heard = len(self._lessons[pipe])
        while True:
            lesson = self._only(pipe, other, number, heard)
            if lesson is None:
                return
            self.needed.add(lesson.sync)
            if lesson.src is None or lesson.src == other:
                return
            pipe, heard = lesson.src, lesson.heard

    def _only(self, pipe: Queue, other: Queue, number: int, heard: int) -> _Lesson | None:
        """The first of so many lessons that tells enough, if those of no other sync do."""
        lessons = self._lessons[pipe]
        first = bisect_left(self._most[pipe][other], number)
        if first >= heard:
            return None
        key = (pipe, other, number)
        start, found = self._others.get(key, (first, False))
        while not found and start + 1 < heard:
            start += 1
            each = lessons[start]
            found = each.told[other] >= number and each.sync is not lessons[first].sync
        self._others[key] = (start, found)
        return None if found and start < heard else lessons[first]
