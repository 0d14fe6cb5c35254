"""Where the cycles of a fused kernel go: to which nodes of the model.

Each instruction has a location, and the compiler notes which operators of the kernel it serves. The
stretches of the critical path of the kernel's first block lie end to end, so what each node has of
them adds up to the whole; an instruction that serves several nodes counts for each in equal parts.
What serves all of them, or nothing that has a name, is a line of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from davinci.report.critical import SYNCHRONISATION, critical_path
from davinci.report.program import Kernel, Member
from davinci.simulator.timing.profile import LaunchProfile
from davinci.simulator.timing.timeline import TimelineRow

Record = dict[str, Any]

SHARED = -1
"""Number of the line of what serves no node in particular."""

NO_CYCLES = frozenset({"set_flag", "ffts_cross_core_sync", "pass_turn", *SYNCHRONISATION})
"""Instructions that wait or tell others: they keep no pipe at work."""


def node_cycles(launch: LaunchProfile, kernel: Kernel, cycles: int) -> list[Record]:
    """The lines of `node_cycles` of a kernel in the record, the longest first.

    Args:
        launch: of the kernel, with the rows of its first block.
        kernel: what the module says of it.
        cycles: of all launches of the kernel, which the lines add up to.

    Returns:
        For each node, or nodes that one operator computes: `nodes`, their names; `operators` of
        the kernel that compute them; `cycles`; `path_cycles` of the critical path of the first
        block; `pipes`, the cycles in which instructions for it keep each pipe of this block.
        What serves no node in particular has neither names nor operators. Nothing at all without
        rows, or for a kernel of which nobody knows the operators.
    """
    cores = rows_of_first_block(launch)
    if not cores or not kernel.members:
        return []
    lines = Lines(named(kernel.members, launch), kernel.served)
    pipes: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in (row for rows in cores.values() for row in rows):
        if row.mnemonic not in NO_CYCLES:
            for line, part in lines.parts(row, row.free - row.start):
                pipes[line][row.pipe] += part
    path = path_cycles(launch, cores, lines)
    whole = dict(zip(path, shared_out(cycles, [*path.values()]), strict=True))
    found = [
        {
            "nodes": list(nodes),
            "operators": list(operators),
            "cycles": whole.get(line, 0),
            "path_cycles": path.get(line, 0),
            "pipes": {pipe: count for pipe, count in sorted(pipes[line].items()) if count},
        }
        for line, (nodes, operators) in lines.names.items()
    ]
    kept = [each for each in found if each["path_cycles"] or each["pipes"]]
    return sorted(kept, key=lambda each: -each["cycles"])


def drawn_launches(launches: Iterable[LaunchProfile]) -> dict[str, LaunchProfile]:
    """Returns by kernel its first launch that has rows."""
    found: dict[str, LaunchProfile] = {}
    for launch in launches:
        if launch.rows:
            found.setdefault(launch.name, launch)
    return found


def rows_of_first_block(launch: LaunchProfile) -> dict[int, list[TimelineRow]]:
    """The rows of block 0 by core."""
    found: dict[int, list[TimelineRow]] = defaultdict(list)
    for row in launch.rows:
        if row.block == 0:
            found[row.core].append(row)
    return found


def named(members: Sequence[Member], launch: LaunchProfile) -> list[Member]:
    """Operators of a kernel with the nodes that they compute in a launch, where it names them."""
    nodes = launch.members or (launch.operators,)
    if len(nodes) != len(members):
        return list(members)
    return [Member(member.op, tuple(own)) for member, own in zip(members, nodes, strict=True)]


class Lines:
    """Numbers the lines of a kernel, and says for which of them an instruction counts.

    Attributes:
        names: nodes and operators of each line by number.
    """

    def __init__(self, members: Sequence[Member], served: Sequence[Sequence[int]]) -> None:
        self.names: dict[int, tuple[tuple[str, ...], dict[str, None]]] = {}
        self._served = served
        numbers: dict[tuple[str, ...], int] = {}
        self._line_of: list[int] = []
        for member in members:
            # Operators without names of nodes are told apart by their own.
            line = numbers.setdefault(member.nodes or ("", member.op), len(numbers))
            self._line_of.append(line)
            self.names.setdefault(line, (member.nodes, {}))[1][member.op] = None
        self.names[SHARED] = (), {}
        self._count = len(self._line_of)

    def parts(self, row: TimelineRow, cycles: int) -> Iterator[tuple[int, int]]:
        """The lines that an instruction counts for, and the part that each has of `cycles`."""
        members = self._served[row.place] if row.place < len(self._served) else ()
        known = {number: self._line_of[number] for number in members if number < self._count}
        if len(self.names) == 2:  # whatever the kernel does is for its only node
            lines = [0]
        elif not known or len(known) == self._count:
            lines = [SHARED]
        else:
            lines = list(dict.fromkeys(known.values()))
        yield from zip(lines, shared_out(cycles, [1] * len(lines)), strict=True)


def path_cycles(
    launch: LaunchProfile, cores: Mapping[int, Iterable[TimelineRow]], lines: Lines
) -> dict[int, int]:
    """Cycles of the critical path of block 0 by line, on the core that ends last."""
    ends = {run.core: run.cycles for run in launch.per_block if run.block == 0}
    last = max(cores, key=lambda core: ends[core])
    rows = sorted(cores[last], key=lambda row: row.index)
    by_index = {row.index: row for row in rows}
    found: dict[int, int] = defaultdict(int)
    for segment in critical_path(rows):
        for line, part in lines.parts(by_index[segment.index], segment.end - segment.start):
            found[line] += part
    for line, part in lines.parts(rows[-1], ends[last] - sum(found.values())):
        found[line] += part
    return found


def shared_out(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of `total` in proportion to `weights` that add up to it; the first ones get what
    is left over."""
    every = sum(weights)
    if not every:
        return [total, *(0 for _ in weights[1:])]
    parts = [total * weight // every for weight in weights]
    for i in range(total - sum(parts)):
        parts[i] += 1
    return parts
