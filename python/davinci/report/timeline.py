"""What the page shows of a kernel: instructions, critical path and waits of its first block, for
each core that has a part in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from davinci.isa.core import Space
from davinci.machine import Machine
from davinci.report.critical import (
    BARRIER,
    FLAG,
    ISSUE,
    WAIT_FOR_A_CORE,
    WAIT_FOR_A_TURN,
    PathSegment,
    critical_path,
)
from davinci.report.nodes import rows_of_first_block
from davinci.report.occupancy import occupancy
from davinci.report.seats import core_name
from davinci.report.trace import LANES, MEMORIES
from davinci.report.traffic import gm_rates
from davinci.report.waits import Wait, waits
from davinci.simulator.timing.profile import LaunchProfile
from davinci.simulator.timing.timeline import NOTHING, TimelineRow

MOST_ROWS = 60_000
"""Instructions drawn on a page, longest kernels first; about 40 bytes each."""

MOST_OF_A_KERNEL = 6_000
"""Instructions drawn of one kernel, from its start."""

MOST_STEPS = 400
"""Stretches of a critical path that are listed."""

MOST_LEVELS = 1_500
"""Steps of a curve that are drawn."""

MOST_WAITS = 8
"""Causes listed for each pipe; what is left is summed up."""


def timelines(machine: Machine, launch: LaunchProfile, most: int) -> list[dict[str, Any]]:
    """The first block of a launch, for the page's script, core by core.

    Args:
        machine: that it ran on.
        launch: with rows.
        most: instructions to draw at most.
    """
    found: list[dict[str, Any]] = []
    for core, rows in sorted(rows_of_first_block(launch).items()):
        cycles = next(x.cycles for x in launch.per_block if (x.core, x.block) == (core, 0))
        sizes = {Space[name]: machine.buffer(name).bytes for name in MEMORIES}
        drawn = timeline(rows, cycles, most)
        found.append({"core": core_name(machine, core), **drawn, "levels": levels(rows, sizes)})
        most -= len(found[-1]["rows"])
    return found


def timeline(rows: list[TimelineRow], cycles: int, most: int) -> dict[str, Any]:
    """Returns what the script draws of one core's part of a block of that many cycles."""
    rows = sorted(rows, key=lambda row: row.index)
    path = critical_path(rows)
    critical = {segment.index for segment in path if segment.kind != ISSUE}
    pipes = [pipe for pipe in LANES if any(row.pipe == pipe for row in rows)]
    names, sources = Numbers(), Numbers()
    drawn = rows[: min(most, MOST_OF_A_KERNEL)]
    return {
        "cycles": cycles,
        "instructions": len(rows),
        "lanes": [LANES[pipe] for pipe in pipes],
        "rows": [
            [
                pipes.index(row.pipe),
                row.start,
                row.free,
                row.end,
                names[row.mnemonic],
                sources[row.location],
                row.index,
                int(row.index in critical),
                row.end_after,
                row.issued,
            ]
            for row in drawn
        ],
        "names": names.texts,
        "sources": sources.texts,
        "path": steps(path, {row.index: row for row in rows}),
        "shares": shares(path, {row.index: row for row in rows}),
        "waits": lost(waits(rows, cycles), pipes),
    }


def levels(rows: Sequence[TimelineRow], sizes: dict[Space, int]) -> list[dict[str, Any]]:
    """What rises and falls while a block runs: bytes in use of each memory, and bytes that move
    from and to GM in a cycle. Steps are [cycle, level]."""
    found: list[dict[str, Any]] = [
        {"name": space.name, "unit": "bytes in use", "most": sizes[space], "steps": changes}
        for space, changes in occupancy(rows, sizes).items()
    ]
    traffic = [[cycle, round(read + written, 1)] for cycle, read, written in gm_rates(rows)]
    if traffic:
        most = max(height for _, height in traffic)
        found.append({"name": "GM", "unit": "bytes a cycle", "most": most, "steps": traffic})
    return [{**each, "steps": thinned(each["steps"])} for each in found]


def thinned(steps: Sequence[Any]) -> list[Any]:
    """Returns as many of the steps as a page has room for: of neighbours the highest."""
    each = -(-len(steps) // MOST_LEVELS)
    if each <= 1:
        return list(steps)
    groups = (steps[i : i + each] for i in range(0, len(steps), each))
    return [[group[0][0], max(height for _, height in group)] for group in groups]


class Numbers(dict[str, int]):
    """Numbers texts in the order in which they are asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    @property
    def texts(self) -> list[str]:
        return list(self)


def steps(path: list[PathSegment], rows: dict[int, TimelineRow]) -> list[list[Any]]:
    """[start, end, what, source, number of segments] of the path; equal neighbours are one."""
    found: list[list[Any]] = []
    for segment in path:
        what, source = described(segment, rows)
        if segment.kind == FLAG:
            fields = rows[segment.index].fields
            what = f"{what}, event {fields.get('event', fields.get('flag'))}"
        if found and found[-1][2:4] == [what, source]:
            found[-1][1] = segment.end
            found[-1][4] += 1
        elif len(found) < MOST_STEPS:
            found.append([segment.start, segment.end, what, source, 1])
        else:
            found[-1][1:4] = [segment.end, "further instructions", ""]
            found[-1][4] += 1
    return found


def shares(path: list[PathSegment], rows: dict[int, TimelineRow]) -> list[list[Any]]:
    """[what, cycles] of the path, longest first."""
    found: dict[str, int] = defaultdict(int)
    for segment in path:
        found[described(segment, rows)[0]] += segment.end - segment.start
    return sorted(([what, cycles] for what, cycles in found.items()), key=lambda x: -x[1])


def described(segment: PathSegment, rows: dict[int, TimelineRow]) -> tuple[str, str]:
    """A segment in words, and the source of its instruction."""
    row = rows[segment.index]
    lane = LANES[row.pipe]
    if segment.kind == ISSUE:
        return "SCALAR issues instructions", row.location
    if row.mnemonic == WAIT_FOR_A_CORE:
        return "flag from another core", row.location
    if row.mnemonic == WAIT_FOR_A_TURN:
        return "turn of the block in a lock", row.location
    if segment.kind == FLAG:
        sender = LANES[rows[row.end_after].pipe] if row.end_after != NOTHING else "?"
        return f"flag from {sender} to {lane}", row.location
    if segment.kind == BARRIER:
        return f"{lane} barrier", row.location
    return f"{lane} {row.mnemonic}", row.location


def lost(found: dict[Wait, int], pipes: list[str]) -> list[dict[str, Any]]:
    """For each pipe its cycles by kind and the longest waits with their causes."""
    result = []
    for pipe in pipes:
        mine = {wait: cycles for wait, cycles in found.items() if wait.pipe == pipe and cycles}
        kinds: dict[str, int] = defaultdict(int)
        for wait, cycles in mine.items():
            kinds[wait.kind] += cycles
        causes = [
            (wait, cycles) for wait, cycles in mine.items() if wait.kind not in ("run", "done")
        ]
        causes.sort(key=lambda item: -item[1])
        listed = [[reason(wait), wait.location, cycles] for wait, cycles in causes[:MOST_WAITS]]
        rest = sum(cycles for _, cycles in causes[MOST_WAITS:])
        if rest:
            listed.append([f"{len(causes) - MOST_WAITS} further causes", "", rest])
        result.append({"lane": LANES[pipe], "kinds": dict(kinds), "causes": listed})
    return result


def reason(wait: Wait) -> str:
    """Says in words what a pipe waits for."""
    culprit = f"{wait.mnemonic} of {LANES[wait.other]}" if wait.other else ""
    if wait.kind == "flag" and wait.mnemonic == WAIT_FOR_A_CORE:
        return f"flag from another core, event {wait.event}"
    if wait.kind == "flag":
        flag = f"event {wait.event}"
        if not wait.other:
            return f"flag, {flag}"
        late = "that came late" if wait.mnemonic == "set_flag" else f"set after {wait.mnemonic}"
        return f"flag from {LANES[wait.other]}, {flag}, {late}"
    if wait.kind == "memory":
        return f"GM bandwidth, shared with other cores, in {culprit}"
    if wait.kind == "barrier":
        return f"barrier, for {culprit}"
    if wait.kind == "queue":
        return f"issue: a queue was full until {culprit} left it"
    if wait.kind == "scalar" and wait.mnemonic == WAIT_FOR_A_CORE:
        return "issue: the scalar unit waited for a flag of another core"
    if wait.kind == "scalar":
        return f"issue: the scalar unit waited for {culprit}"
    return "issue: the scalar unit was computing and issuing"
