"""Where the cycles of a block went: for each pipe, at work or waiting, and for what.

From the time a block starts until it ends, every cycle of every pipe is in exactly one of these:

* `run`: an instruction keeps the pipe.
* `memory`: an instruction keeps the pipe longer because GM serves other cores as well.
* `flag`: a `wait_flag` is at the head of the queue; blamed on the instruction whose completion the
  flag tells, or on the `set_flag` itself if that came late. Or the scalar unit waits for a flag of
  other cores; blamed on that `wait_flag_dev`.
* `barrier`: a barrier is at the head of the queue, or holds the scalar unit.
* `queue`: nothing in the queue, because the scalar unit could not issue to another, full queue.
* `scalar`: nothing in the queue, because the scalar unit waited for a flag or did accesses.
* `issue`: nothing in the queue, because the scalar unit was busy issuing.
* `done`: after the last instruction of the pipe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.report.critical import SYNCHRONISATION, WAIT_FOR_A_CORE
from davinci.simulator.timing.timeline import NOTHING, TimelineRow

SCALAR = "PIPE_S"


@dataclass(frozen=True)
class Wait:
    """The reasons on which cycles of a pipe are booked.

    Attributes:
        pipe: that waits.
        kind: see above.
        other: pipe that is waited for, "" if none.
        mnemonic, location: the instruction that is waited for, "" if none.
        event: number of the flag, or `NOTHING`.
    """

    pipe: str
    kind: str
    other: str = ""
    mnemonic: str = ""
    location: str = ""
    event: int = NOTHING


@dataclass(frozen=True)
class Stall:
    """A stretch of time in which the scalar unit issued nothing."""

    start: int
    end: int
    kind: str
    culprit: TimelineRow


def waits(rows: Sequence[TimelineRow], cycles: int) -> dict[Wait, int]:
    """Cycles by what they are booked on, for each pipe that appears in one block's rows.

    Args:
        rows: of the block, which starts at cycle 0.
        cycles: of the block; the cycles of each pipe add up to it.
    """
    by_index = {row.index: row for row in rows}
    stalls = _stalls(by_index)
    lanes: dict[str, list[TimelineRow]] = defaultdict(list)
    for row in rows:
        lanes[row.pipe].append(row)
    found: dict[Wait, int] = defaultdict(int)
    for pipe, lane in lanes.items():
        lane.sort(key=lambda row: (row.start, row.index))
        now, next_stall = 0, 0
        for row in lane:
            if row.start > now:
                next_stall = _book_gap(found, pipe, now, row.start, stalls, next_stall)
                now = row.start
            if row.free > now:
                kept = row.free - now
                shared = min(row.shared_cycles, kept)
                if shared:
                    where = Wait(pipe, "memory", pipe, row.mnemonic, row.location)
                    found[where] += shared
                found[_held(row, by_index)] += kept - shared
                now = row.free
        if cycles > now:
            found[Wait(pipe, "done")] += cycles - now
    return dict(found)


def _held(row: TimelineRow, by_index: dict[int, TimelineRow]) -> Wait:
    """Returns the reason for which an instruction keeps its pipe."""
    if row.mnemonic not in SYNCHRONISATION:
        return Wait(row.pipe, "run")
    if row.mnemonic == "wait_flag" and row.end_after != NOTHING:
        culprit = _told(by_index[row.end_after], by_index)
        where = (culprit.pipe, culprit.mnemonic, culprit.location)
        return Wait(row.pipe, "flag", *where, row.fields["event"])
    if row.mnemonic == WAIT_FOR_A_CORE:
        return Wait(row.pipe, "flag", "", row.mnemonic, row.location, row.fields["flag"])
    if row.mnemonic == "wait_flag":
        return Wait(row.pipe, "flag", event=row.fields["event"])
    culprit = by_index.get(row.end_after, row)
    return Wait(row.pipe, "barrier", culprit.pipe, culprit.mnemonic, culprit.location)


def _told(sender: TimelineRow, by_index: dict[int, TimelineRow]) -> TimelineRow:
    """The instruction that a `set_flag` came after, or the `set_flag` if there was none."""
    for before in (sender.end_after, sender.start_after):
        if before != NOTHING and by_index[before].mnemonic not in SYNCHRONISATION:
            return by_index[before]
    return sender


def _stalls(by_index: dict[int, TimelineRow]) -> list[Stall]:
    """Returns the stretches in which the scalar unit was held up, in order of time."""
    found = []
    previous = 0
    for index in sorted(by_index):
        row = by_index[index]
        if row.issue_after != NOTHING:
            found.append(Stall(previous, row.issued, "queue", by_index[row.issue_after]))
        previous = row.issued
        if row.pipe == SCALAR and row.end > row.start:
            kind = "barrier" if row.mnemonic == "pipe_barrier" else "scalar"
            culprit = row
            if row.end_after != NOTHING:
                culprit = _told(by_index[row.end_after], by_index)
            found.append(Stall(row.start, row.end, kind, culprit))
            previous = row.end
    return found


def _book_gap(
    found: dict[Wait, int], pipe: str, start: int, end: int, stalls: list[Stall], first: int
) -> int:
    """Books a time in which nothing was in the queue; returns the first stall that may be next."""
    while first < len(stalls) and stalls[first].end <= start:
        first += 1
    now, number = start, first
    while number < len(stalls) and stalls[number].start < end:
        stall = stalls[number]
        begin, until = max(now, stall.start), min(end, stall.end)
        if until > begin:
            found[Wait(pipe, "issue")] += begin - now
            culprit = stall.culprit
            where = Wait(pipe, stall.kind, culprit.pipe, culprit.mnemonic, culprit.location)
            found[where] += until - begin
            now = until
        number += 1
    found[Wait(pipe, "issue")] += end - now
    return first
