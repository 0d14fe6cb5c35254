"""Bytes from and to global memory, and the number of busy cores, over the time of a launch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from davinci.isa.core import Space
from davinci.report.launching import Sharing
from davinci.simulator.timing.timeline import TimelineRow

MOST_CHANGES = 8
"""Changes of the number of busy cores that are told apart in a launch."""


def gm_rates(rows: Iterable[TimelineRow]) -> list[tuple[int, float, float]]:
    """(cycle, bytes read in a cycle, bytes written) whenever the rate of GM traffic changes.

    A transfer moves its bytes evenly while it keeps its pipe. The scalar unit's accesses are left
    out: they move a few bytes each.

    Args:
        rows: of one core.
    """
    changes: dict[int, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for row in rows:
        if row.pipe == "PIPE_S":
            continue
        moved = [0, 0]
        for space, _, region, written in row.accesses:
            if space == Space.GM:
                moved[written] += region.size_bytes
        if any(moved):
            end = max(row.free, row.start + 1)
            read, wrote = (size / (end - row.start) for size in moved)
            for cycle, sign in ((row.start, 1), (end, -1)):
                before = changes[cycle]
                changes[cycle] = before[0] + sign * read, before[1] + sign * wrote
    found, read, wrote = [], 0.0, 0.0
    for cycle in sorted(changes):
        read, wrote = read + changes[cycle][0], wrote + changes[cycle][1]
        found.append((cycle, round(max(read, 0.0), 3), round(max(wrote, 0.0), 3)))
    return found


def busy_cores(launch: Sharing) -> list[tuple[int, int]]:
    """(cycle, cores that have a block under way) whenever that number changes, from the start of a
    launch to its end; of many cores that end one after the other some are told together.

    The blocks of a core run one after the other, from the start of the launch.
    """
    ends: Counter[int] = Counter()
    for block in (block for kernel in launch for block in kernel.per_block):
        ends[block.core] += block.cycles
    times = sorted(ends.values())
    if not times:
        return []
    each = -(-len(set(times)) // MOST_CHANGES)
    found = [(0, len(times))]
    for time in sorted(set(times))[each - 1 :: each]:
        found.append((time, sum(end > time for end in times)))
    if found[-1][1]:
        found.append((times[-1], 0))
    return found
