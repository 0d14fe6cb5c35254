"""Order between the cores of a launch that meet, and what no order is between.

Each core is a list of accesses to global memory and of meetings (`block_places`). Cores are
followed side by side from meeting to meeting: one that has come posts its counter, and goes on when
those it looks at have reached its number. What a core knows of the others is a clock, the number of
meetings to which each of them had come when that was posted; it grows where the core waits.

    core 0: store a[0:64]   meeting 1              clock [1, 1]: after what core 1 did in front of
    core 1: store a[64:128] meeting 1   load a     clock [1, 1]  its first meeting

An access is after one of another core if the core's clock counts the meeting behind that one.
Cores of a split machine, which have flags for each other, are followed by `flag_order`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from davinci.isa.counters import LINE_BYTES
from davinci.mlir import Op, ir, location_text
from davinci.passes.analysis.accesses import Dims, lie_between
from davinci.passes.analysis.block_steps import ADD, COUNT, READ, FlagWait
from davinci.passes.analysis.core_pipes import Numbers
from davinci.passes.analysis.not_provable import NotProvable

MOST_RUNS = 1 << 20
"""Runs of bytes of an access that are looked at one by one."""


class PipeWork(NamedTuple):
    """Place of a pipe in `PIPES`, and numbers of the first and last of some instructions there,
    counted from the launch's beginning."""

    pipe: int
    first: int
    last: int


NO_PIPE = PipeWork(0, 0, 0)


@dataclass(frozen=True)
class CoreAccess:
    """Bytes of global memory that a core touches, as `GlobalAccess`, of the host's memory.

    Attributes:
        work: what it is of a pipe's, where pipes are followed.
    """

    op: Op
    what: str
    memory: ir.Value | str
    start: int
    dims: Dims
    run: int
    exact: bool
    work: PipeWork = NO_PIPE

    @property
    def stop(self) -> int:
        """One past the last byte."""
        return self.start + sum((count - 1) * stride for count, stride in self.dims) + self.run


@dataclass(frozen=True)
class CoreMeeting:
    """A core comes to a meeting, as `BlockMeeting`, counters being lines of the host's memory.

    Attributes:
        own: places of lines and what they are posted with above `number`.
        seen: places of the lines that are waited for.
    """

    op: Op
    lines: ir.Value | str
    number: int
    relative: bool
    own: tuple[tuple[int, int], ...]
    seen: tuple[int, ...]
    reads: bool = False


@dataclass(frozen=True)
class CoreFlagSet:
    """A core sets a flag for others, as `FlagSet`, work counted from the launch's beginning."""

    op: Op
    pipe: int
    flag: int
    of_all: bool
    number: int
    complete: Numbers


CoreStep = CoreAccess | CoreMeeting | CoreFlagSet | FlagWait


class PlacedAccess(NamedTuple):
    """An access, its core, and how many waits for others that has had."""

    access: CoreAccess
    core: int
    waits: int


class CoreOrder(Protocol):
    """The order between the accesses of different cores, by meetings or by flags."""

    def cuts(self) -> list[list[int]]:
        """Numbers of waits of each core behind which all cores are after all in front of them."""

    def name(self, core: int) -> str:
        """A core in words."""

    def ordered(self, first: PlacedAccess, second: PlacedAccess) -> bool | None:
        """Whether one of two accesses of different cores is after the other; None if only a part of
        it is known to be."""


@dataclass
class LaunchVerdict:
    """What was found of a launch.

    Attributes:
        meetings: of the core that comes to most, or its waits for flags.
        pairs: accesses of two cores whose ranges of bytes overlap between meetings of all, one of
            them a change.
        faults: what certainly goes wrong.
        open: what is not proven.
    """

    meetings: int = 0
    pairs: int = 0
    faults: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


@dataclass
class _CounterLine:
    """A counter in memory.

    Attributes:
        core: that counts in it.
        ahead: by how much it is higher than the numbers of meetings, also as an earlier launch may
            have left it.
        posts: what was posted, with the core's clock then.
    """

    core: int
    ahead: int
    posts: list[tuple[int, np.ndarray]] = field(default_factory=list)


class MeetingClocks:
    """Follows cores from meeting to meeting.

    Attributes:
        clocks: of each core, in front of its first meeting and behind each one.
        faults: what goes wrong; nobody is followed any further then.
    """

    def __init__(self, cores: Sequence[Sequence[CoreStep]]) -> None:
        count = len(cores)
        self._meetings = [[s for s in steps if isinstance(s, CoreMeeting)] for steps in cores]
        self._lines: dict[tuple[ir.Value | str, int], _CounterLine] = {}
        self._bases = [0] * count
        self.clocks = [[np.zeros(count, np.int64)] for _ in range(count)]
        self.faults: list[str] = []
        self._next, self._posted = [0] * count, [False] * count
        while not self.faults and any(self._advance(core) for core in range(count)):
            pass
        stuck = [core for core in range(count) if self._next[core] < len(self._meetings[core])]
        if stuck and not self.faults:
            self.faults.append(self._deadlock(stuck[0]))

    def _advance(self, core: int) -> bool:
        """Takes a core as far as it comes; whether it came further."""
        moved = False
        while self._next[core] < len(self._meetings[core]) and not self.faults:
            meeting = self._meetings[core][self._next[core]]
            if meeting.reads:
                line = self._lines.get((meeting.lines, meeting.own[-1][0]))
                self._bases[core] = line.posts[-1][0] if line is not None else 0
            elif not self._meet(core, meeting):
                return moved
            self._next[core] += 1
            moved = True
        return moved

    def _meet(self, core: int, meeting: CoreMeeting) -> bool:
        """Posts, once, and looks; whether all that are waited for have come."""
        number = meeting.number + (self._bases[core] if meeting.relative else 0)
        if not self._posted[core]:
            self._post(core, meeting, number)
            self._posted[core] = True
        clock = self.clocks[core][-1].copy()
        clock[core] += 1
        for place in meeting.seen:
            line = self._lines.get((meeting.lines, place))
            reached = [at for value, at in line.posts if value >= number] if line else []
            if not reached:
                return False
            if line is not None and number > line.ahead:
                clock = np.maximum(clock, reached[0])
        self.clocks[core].append(clock)
        self._posted[core] = False
        return True

    def _post(self, core: int, meeting: CoreMeeting, number: int) -> None:
        clock = self.clocks[core][-1].copy()
        clock[core] += 1
        for place, ahead in meeting.own:
            line = self._lines.setdefault((meeting.lines, place), _CounterLine(core, ahead))
            where = location_text(meeting.op.location)
            if line.core != core:
                text = f"two counts in one line: blocks {line.core} and {core}, at {where}"
                self.faults.append(text)
            if number + ahead <= (line.posts[-1][0] if line.posts else 0):
                self.faults.append(f"a counter that does not grow, of block {core} at {where}")
            line.posts.append((number + ahead, clock))

    def _deadlock(self, core: int) -> str:
        """Who waits for whom."""
        meeting = self._meetings[core][self._next[core]]
        number = meeting.number + (self._bases[core] if meeting.relative else 0)
        for place in meeting.seen:
            line = self._lines.get((meeting.lines, place))
            value = line.posts[-1][0] if line else 0
            if value < number:
                whose = f"of block {line.core}" if line else "in which no block counts"
                where = location_text(meeting.op.location)
                return (
                    f"a deadlock: block {core} waits for {number} of a counter {whose}, "
                    f"which stays at {value}, at {where}"
                )
        raise AssertionError("a core that is stuck waits for a counter")

    def cuts(self) -> list[list[int]]:
        """Numbers of meetings of each core behind which all cores are after all in front of them.

        Each is a list of how many meetings each of the cores has had then.
        """
        found: list[list[int]] = []
        for clock in self.clocks[0][1:]:
            place = clock.tolist()
            if all(
                0 < n < len(own) and (own[n] >= clock).all()
                for n, own in zip(place, self.clocks, strict=True)
            ) and (not found or place != found[-1]):
                found.append(place)
        return found

    def name(self, core: int) -> str:
        """The core as the block that it runs."""
        return f"block {core}"

    def ordered(self, first: PlacedAccess, second: PlacedAccess) -> bool:
        """Whether one of two accesses is after the other."""
        (_, a, i), (_, b, j) = first, second
        return bool(self.clocks[b][j][a] > i or self.clocks[a][i][b] > j)


def judge(cores: Sequence[Sequence[CoreStep]]) -> LaunchVerdict:
    """Whether the cores of a launch come through all meetings, and what they do without order."""
    meetings = MeetingClocks(cores)
    return judge_order(cores, meetings, meetings.faults)


def judge_order(
    cores: Sequence[Sequence[CoreStep]], order: CoreOrder, faults: Sequence[str]
) -> LaunchVerdict:
    """Compares accesses of different cores that no order is between, unless there are faults."""
    verdict = LaunchVerdict(faults=list(faults))
    verdict.meetings = max(sum(map(_waits, steps)) for steps in cores)
    if not verdict.faults:
        for rows in _intervals(cores, order.cuts()):
            _compare(rows, order, verdict)
    return verdict


def _waits(step: CoreStep) -> bool:
    """Whether a core waits for others."""
    return isinstance(step, FlagWait) or (isinstance(step, CoreMeeting) and not step.reads)


def _intervals(
    cores: Sequence[Sequence[CoreStep]], cuts: list[list[int]]
) -> Iterator[list[PlacedAccess]]:
    """Accesses to each memory between cuts, in which order is to be shown."""
    found: dict[tuple[int, ir.Value | str], list[PlacedAccess]] = defaultdict(list)
    for core, steps in enumerate(cores):
        ends = [cut[core] for cut in cuts]
        for step, met in zip(steps, accumulate(map(_waits, steps), initial=0), strict=False):
            place = bisect_right(ends, met)
            if isinstance(step, CoreAccess):
                found[place, step.memory].append(PlacedAccess(step, core, met))
            elif isinstance(step, CoreMeeting) and not step.reads:
                for line, _ in step.own:
                    own = CoreAccess(
                        step.op, COUNT, step.lines, line * LINE_BYTES, (), LINE_BYTES, True
                    )
                    found[place, step.lines].append(PlacedAccess(own, core, met))
    yield from found.values()


def _compare(rows: list[PlacedAccess], order: CoreOrder, verdict: LaunchVerdict) -> None:
    """Compares accesses of different cores whose ranges overlap."""
    if all(access.what == READ for access, _, _ in rows):
        return
    rows.sort(key=lambda row: row.access.start)
    live: list[tuple[int, PlacedAccess]] = []
    said: set[tuple[Op, Op]] = set()
    for row in rows:
        access = row.access
        live = [(stop, other) for stop, other in live if stop > access.start]
        for _, before in live:
            other = before.access
            alike = other.what == access.what and access.what in (READ, ADD, COUNT)
            if alike or before.core == row.core:
                continue
            verdict.pairs += 1
            ordered = order.ordered(row, before)
            if ordered:
                continue
            common = have_common_byte(access, other)
            if common is False or (access.op, other.op) in said:
                continue
            said |= {(access.op, other.op), (other.op, access.op)}
            text = _said(row, before, order)
            if common and access.exact and other.exact and ordered is False:
                verdict.faults.append(f"a race: {text}")
            else:
                verdict.open.append(text)
        live.append((access.stop, row))


def _said(first: PlacedAccess, second: PlacedAccess, order: CoreOrder) -> str:
    """Two accesses in words."""
    one, other = first.access, second.access
    return (
        f"{order.name(first.core)} {one.what} what {order.name(second.core)} {other.what}, at "
        f"{location_text(one.op.location)} and {location_text(other.op.location)}"
    )


def have_common_byte(first: CoreAccess, second: CoreAccess) -> bool | None:
    """Whether two accesses touch a common byte; None if they are too many to say."""
    if first.stop <= second.start or second.stop <= first.start:
        return False
    distance = second.start - first.start
    return _boxes_meet(first.dims, first.run, second.dims, second.run, distance)


@lru_cache(maxsize=1 << 14)
def _boxes_meet(
    first: Dims, first_run: int, second: Dims, second_run: int, distance: int
) -> bool | None:
    """The same of two boxes; layers of a network have the same ones again and again."""
    if lie_between(first, first_run, second, second_run, distance, 0):
        return False
    try:
        one, other = np.sort(_starts(0, first)), np.sort(_starts(distance, second))
    except NotProvable:
        return None
    behind = np.searchsorted(other, one - second_run, side="right")
    there = behind < len(other)
    return bool((other[behind[there]] < one[there] + first_run).any())


def _starts(start: int, dims: Dims) -> np.ndarray:
    """The first byte of each run."""
    found = np.array([start], np.int64)
    for count, stride in dims:
        if len(found) * count > MOST_RUNS:
            raise NotProvable("too many runs of bytes")
        found = (found[:, None] + np.arange(count) * stride).ravel()
    return found
