"""Chooses schedules of loops side by side: the cores share their rows, or their lanes; and loops
that hand rows on share the cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from davinci.machine import Machine, prices
from davinci.schedule.loops.cut import origin_of
from davinci.schedule.loops.group import HANDED, LoopGroup
from davinci.schedule.loops.schedule import LoopSchedule, lanes_apart, terms_of
from davinci.schedule.loops.ways import schedule_with
from davinci.schedule.meetings import can_meet, meeting_cycles
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


def schedules_of(groups: Sequence[LoopGroup], machine: Machine, cores: int) -> list[LoopSchedule]:
    """The schedules of loops side by side, each on so many cores at most: all share rows, or all
    share lanes, whichever takes less time. Loops that hand rows on share the cores.

    Raises:
        NoSpace: the states of a loop, or what they are multiplied by, do not fit a core.
    """
    if are_chained(groups):
        return _chained(groups, machine, cores)
    ways: list[list[LoopSchedule]] = []
    refused: NoSpace | None = None
    try:
        ways.append([_by_rows(group, machine, cores) for group in groups])
    except NoSpace as error:
        refused = error
    if can_meet(machine):
        shared = [_by_lanes(group, machine, cores) for group in groups]
        found = [schedule for schedule in shared if schedule is not None]
        if len(found) == len(groups):
            ways.append(found)
    if not ways:
        assert refused is not None, "no way and no reason"
        raise refused
    return min(ways, key=lambda way: max(schedule.cycles for schedule in way))


def cores_each(groups: Sequence[LoopGroup], machine: Machine, cores: int) -> int:
    """The cores that each of loops side by side may have at most, of so many: all of them where
    they take no more together; else an equal share.

    Raises:
        NoSpace: as of `schedules_of`, or there are fewer cores than loops.
    """
    if are_chained(groups) or _taken(groups, machine, cores) <= cores:
        return cores
    share = cores // len(groups)
    if share == 0:
        raise NoSpace(f"{len(groups)} loops side by side on {cores} cores")
    return share


def _taken(groups: Sequence[LoopGroup], machine: Machine, cores: int) -> int:
    """The cores that loops side by side take together, each so many at most."""
    return sum(schedule.units for schedule in schedules_of(groups, machine, cores))


def are_chained(groups: Sequence[LoopGroup]) -> bool:
    """Whether one of several loops hands rows on to another, so that all share the cores."""
    return any(group.source is not None for group in groups)


def schedule_of(group: LoopGroup, machine: Machine, cores: int) -> LoopSchedule:
    """The schedule of a loop.

    Raises:
        NoSpace: its states, or what they are multiplied by, do not fit a core.
    """
    return schedules_of([group], machine, cores)[0]


def product_in_front(group: LoopGroup, machine: Machine, cores: int) -> float:
    """Estimated cycles of the products of a loop's array of rows, if a kernel in front of the loop
    computes those of all steps: factors come, the cube multiplies, results leave, and the cores
    meet. So short a kernel hardly does two of them at a time."""
    terms = [term for term in terms_of(group.products) if term.a == HANDED]
    axis = row_axis(group)
    rows = group.steps * (1 if axis is None else group.space.axes[axis].size)
    fractals = sum(term.fractals for term in terms)
    moved = fractals * FRACTAL_BYTES + 4 * rows * (terms[0].k + sum(term.n for term in terms))
    mads = prices.mad(machine, ceil_div(fractals * ceil_div(rows, SIDE), cores))
    loads = moved / cores / machine.l2.read_bytes_per_cycle
    return prices.ends(machine) + loads + mads + meeting_cycles(machine, cores)


def meetings_of(group: LoopGroup) -> int:
    """How often cores that share the lanes of a loop meet in a step: for each left factor, but for
    rows that are handed on."""
    return len({term.a for term in terms_of(group.products)} - {HANDED})


def _by_rows(group: LoopGroup, machine: Machine, cores: int) -> LoopSchedule:
    """The schedule of a loop whose rows are shared by the cores, which never meet."""
    axis = row_axis(group)
    rows = 1 if axis is None else group.space.axes[axis].size
    each = ceil_div(rows, min(rows, cores))
    units = ceil_div(rows, each)
    return schedule_with(group, machine, axis, each, group.space.axes[-1].size, units)


def _by_lanes(group: LoopGroup, machine: Machine, cores: int) -> LoopSchedule | None:
    """The fastest schedule of a loop whose lanes are shared by the cores; None if there is none."""
    width = group.space.axes[-1].size
    if width % SIDE:
        return None
    ways = [
        _on_cores(group, machine, units, units)
        for units in range(2, min(cores, width // SIDE) + 1)
        if width % (units * SIDE) == 0
    ]
    found = [schedule for schedule in ways if schedule is not None]
    return min(found, key=lambda schedule: schedule.cycles, default=None)


def _on_cores(
    group: LoopGroup, machine: Machine, units: int, meeting: int, rest: int = 0
) -> LoopSchedule | None:
    """The schedule of a loop whose lanes are shared by at most so many cores, of which the last may
    have fewer lanes; None if there is none.

    Args:
        meeting: lines of counters that a core looks at.
        rest: steps of other loops before and behind those of this one.
    """
    if not group.products or not lanes_apart(group):
        return None
    blocks = ceil_div(group.space.axes[-1].size, SIDE)
    each = ceil_div(blocks, units)
    try:
        axis = row_axis(group)
        rows = 1 if axis is None else group.space.axes[axis].size
        units = ceil_div(blocks, each)
        lanes = each * SIDE
        return schedule_with(group, machine, axis, rows, lanes, units, meeting, rest)
    except NoSpace:
        return None


LEAD = 2
"""Steps that a loop is behind the one that hands rows on to it: products of a row are computed
while the cores meet for the next one."""


LINES_OF_CHAIN = 4
"""Lines that a core looks at for each core of its loop: theirs, of which each has two, and those of
the loops in front and behind."""


def _chained(groups: Sequence[LoopGroup], machine: Machine, cores: int) -> list[LoopSchedule]:
    """The schedules of loops that hand rows on, on so many cores together, which share the lanes:
    the slowest loop gets one more core as long as there are any.

    Raises:
        NoSpace: they do not fit the cores, or meet unequally often in a step.
    """
    if not can_meet(machine):
        raise NoSpace("rows handed on by cores that cannot meet")
    if len({meetings_of(group) for group in groups}) > 1:
        raise NoSpace("loops that hand rows on and meet unequally often in a step")
    delays: list[int] = []
    for number, group in enumerate(groups):
        giver = giver_of(groups, number)
        if group.space.axes[-1].size % SIDE:
            raise NoSpace("rows handed on that are no whole blocks")
        if giver is not None and giver != number - 1:
            raise NoSpace("rows handed on by another loop than the one in front")
        delays.append(0 if giver is None else delays[giver] + LEAD)
    turns = max(delay + group.steps for delay, group in zip(delays, groups, strict=True))
    ways = _LaneSchedules(machine, turns)
    made: list[LoopSchedule] = []
    for group in groups:
        found = (ways.on(group, units) for units in range(1, cores + 1))
        first = next((schedule for schedule in found if schedule is not None), None)
        if first is None:
            raise NoSpace("a loop that hands rows on and fits no number of cores")
        made.append(first)
    while True:
        slowest = max(range(len(made)), key=lambda number: made[number].cycles)
        old, left = made[slowest], cores - sum(schedule.units for schedule in made)
        more = (ways.on(groups[slowest], old.units + n) for n in range(1, left + 1))
        better = (found for found in more if found is not None and found.cycles < old.cycles)
        new = next(better, None)
        if new is None:
            break
        made[slowest] = new
    if sum(schedule.units for schedule in made) > cores:
        raise NoSpace("loops that hand rows on and take more cores than there are")
    return [
        replace(schedule, delay=delay, rest=turns - delay - schedule.steps)
        for schedule, delay in zip(made, delays, strict=True)
    ]


class _LaneSchedules:
    """Schedules of loops of which each is known for equal ones.

    Args:
        turns: steps of all loops together, from the first to the last.
    """

    def __init__(self, machine: Machine, turns: int) -> None:
        self._machine, self._turns = machine, turns
        self._known: dict[tuple[object, ...], LoopSchedule | None] = {}

    def on(self, group: LoopGroup, units: int) -> LoopSchedule | None:
        """The schedule on at most so many cores; None if there is none."""
        blocks = ceil_div(group.space.axes[-1].size, SIDE)
        each = ceil_div(blocks, units)
        key = (*group.key(), each)
        if key not in self._known:
            rest = self._turns - group.steps
            lines = LINES_OF_CHAIN * ceil_div(blocks, each)
            self._known[key] = _on_cores(group, self._machine, units, lines, rest)
        return self._known[key]


def giver_of(groups: Sequence[LoopGroup], number: int) -> int | None:
    """The loop, of those in front, that hands rows on to one of several loops; None if none does.

    Raises:
        NoSpace: none has these rows as left factors.
    """
    place = groups[number].source
    if place is None:
        return None
    for giver, group in enumerate(groups[:number]):
        if any(group.roles[n].place == place for n in group.outputs("slice")):
            if group.steps != groups[number].steps:
                raise NoSpace("rows handed on to a loop of another number of steps")
            return giver
    raise NoSpace("rows handed on by no loop in front")


def factor_handed_on(group: LoopGroup, place: int) -> int:
    """The left factor of the next step that the rows of an array are.

    Args:
        place: of the array among the arguments of the kernel.

    Raises:
        NoSpace: none is.
    """
    made = {node.result: node for node in group.graph.nodes}
    rows = {origin_of(n, made) for n in group.outputs("slice") if group.roles[n].place == place}
    following = {group.roles[n].state: origin_of(n, made) for n in group.outputs("state")}
    for term in terms_of(group.products):
        if term.a == HANDED:
            continue
        state = origin_of(term.a, made)
        role = group.roles.get(state)
        if role is not None and role.kind == "state" and following.get(role.state) in rows:
            return term.a
    raise NoSpace("rows handed on that the next step does not multiply")


def row_axis(group: LoopGroup) -> int | None:
    """The axis that is not lanes."""
    axes, lane = group.space.axes, group.program.lane
    if len(axes) > 2 or axes[lane].size == 1:
        raise NoSpace(f"a loop on values of {len(axes)} axes, {axes[lane].size} lanes")
    for number in (*group.graph.inputs, *group.graph.outputs):
        if group.space.order[number] != group.space.of(number):
            raise NoSpace("a value of a loop that is turned")
    if lane == 0:
        return None
    if axes[0].reduced:
        raise NoSpace("rows that are summed up in a loop")
    for number in group.graph.outputs:
        if 0 not in group.space.order[number]:
            raise NoSpace("a value of a loop that all rows have in common")
    return 0
