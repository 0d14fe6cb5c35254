"""The critical path of a block: what its last cycle waited for, and that, back to the start.

Nothing is guessed: every step follows a note that the timing engine made when it took a maximum
(`TimelineRow.issue_after`, `start_after`, `end_after`). The segments lie end to end from cycle 0 of
the block to its last, so their lengths add up to its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.simulator.timing.timeline import NOTHING, TimelineRow

RUN, FLAG, BARRIER, ISSUE = "run", "flag", "barrier", "issue"
"""Kinds of segments: an instruction under way, a flag on its way, a barrier, the scalar unit."""

WAIT_FOR_A_CORE = "wait_flag_dev"
"""Waits for a flag of other cores; the rows of a block do not know which instruction set it."""

WAIT_FOR_A_TURN = "await_turn"
"""Waits for the block before in a lock."""

WAIT_FOR_COUNTERS = "poll_counters"
"""Waits for counters of other blocks: from the first look to the one that sees enough."""

SYNCHRONISATION = {
    "wait_flag": FLAG,
    "pipe_barrier": BARRIER,
    WAIT_FOR_A_CORE: FLAG,
    WAIT_FOR_A_TURN: FLAG,
    WAIT_FOR_COUNTERS: FLAG,
}
"""Instructions that leave their queue when they are over, not when they start."""


@dataclass(frozen=True)
class PathSegment:
    """A stretch of the critical path.

    Attributes:
        kind: `RUN`, `FLAG`, `BARRIER` or `ISSUE`.
        start, end: cycles of the launch.
        index: the instruction; for `ISSUE` the last one that was issued in this stretch.
    """

    kind: str
    start: int
    end: int
    index: int


def critical_path(rows: Sequence[TimelineRow]) -> list[PathSegment]:
    """The segments of a block that starts at cycle 0, first to last; none for no rows."""
    if not rows:
        return []
    by_index = {row.index: row for row in rows}
    segments: list[PathSegment] = []
    row: TimelineRow | None = max(rows, key=lambda row: row.end)
    event = "end"
    while row is not None:
        step, event, row = _before(event, row, by_index)
        if step.end > step.start:
            segments.append(step)
    return _joined(segments[::-1])


def _before(
    event: str, row: TimelineRow, by_index: dict[int, TimelineRow]
) -> tuple[PathSegment, str, TimelineRow | None]:
    """The segment that ends with an event of `row`, and the event it starts with."""
    if event == "issue":
        return _before_issue(row, by_index)
    if event == "start":
        if row.start_after == NOTHING:
            return PathSegment(RUN, row.start, row.start, row.index), "issue", row
        other = by_index[row.start_after]
        return PathSegment(RUN, row.start, row.start, row.index), _leaving(other, "free"), other
    kind = SYNCHRONISATION.get(row.mnemonic, RUN)
    if event == "free":
        return PathSegment(kind, row.start, row.free, row.index), "start", row
    if row.end_after == NOTHING:
        return PathSegment(kind, row.start, row.end, row.index), "start", row
    other = by_index[row.end_after]
    return PathSegment(kind, other.end, row.end, row.index), "end", other


def _before_issue(
    row: TimelineRow, by_index: dict[int, TimelineRow]
) -> tuple[PathSegment, str, TimelineRow | None]:
    if row.issue_after != NOTHING:
        other = by_index[row.issue_after]
        return (
            PathSegment(ISSUE, row.issued, row.issued, row.index),
            _leaving(other, "start"),
            other,
        )
    other_row = by_index.get(row.index - 1)
    if other_row is None:
        return PathSegment(ISSUE, 0, row.issued, row.index), "", None
    if other_row.pipe == "PIPE_S" or other_row.mnemonic == WAIT_FOR_COUNTERS:
        return PathSegment(ISSUE, other_row.end, row.issued, row.index), "end", other_row
    return PathSegment(ISSUE, other_row.issued, row.issued, row.index), "issue", other_row


def _leaving(row: TimelineRow, otherwise: str) -> str:
    """The event with which an instruction lets the ones behind it go on."""
    return "end" if row.mnemonic in SYNCHRONISATION else otherwise


def _joined(segments: list[PathSegment]) -> list[PathSegment]:
    """Stretches in which the scalar unit does nothing but issue become one."""
    found: list[PathSegment] = []
    for segment in segments:
        if found and segment.kind == ISSUE == found[-1].kind:
            found[-1] = PathSegment(ISSUE, found[-1].start, segment.end, segment.index)
        else:
            found.append(segment)
    return found
