"""The ways in which cores can have so many rows and lanes of a loop, and what room each needs."""

from __future__ import annotations

from dataclasses import replace

from davinci.isa.counters import LINE_BYTES
from davinci.machine import Machine
from davinci.schedule.loops.cost import cycles_of
from davinci.schedule.loops.group import HANDED, LoopGroup
from davinci.schedule.loops.schedule import (
    SLOTS,
    LoopSchedule,
    layout_of,
    most_kept,
    of_vector_core,
    pitch_of,
    products_of,
    terms_of,
)
from davinci.schedule.loops.turned_results import MOST_ROWS, scratch_elements
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.units import FRACTAL_BYTES, SUM_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE

MOVED = frozenset({"f16", "f32", "s32"})
"""Types of rows that are moved."""


def schedule_with(
    group: LoopGroup,
    machine: Machine,
    axis: int | None,
    rows: int,
    lanes: int,
    units: int,
    meeting: int = 0,
    rest: int = 0,
) -> LoopSchedule:
    """The fastest schedule in which a core has so many rows and lanes, by estimated cycles: right
    factors in L0B, some or none of them, results side by side or not, on either side of the cube.

    Args:
        axis: that rows are counted along; None if there is one row.
        rows, lanes: of each core, in elements; the last core may have fewer.
        units: cores at work.
        meeting: lines of counters that a core looks at; 0 if cores share rows and do not meet.
        rest: steps of other loops before and behind those of this one.

    Raises:
        NoSpace: none of them fits into the memories of a core.
    """
    shares = meeting > 0
    pitch = pitch_of(group, lanes)
    first = LoopSchedule(axis, rows, lanes, units, False, pitch, group.steps, 0, shares)
    first = replace(first, rest=rest, apart=machine.split)
    terms = terms_of(products_of(group, first, machine))
    fractals = sum(term.fractals for term in terms)
    first = replace(first, resident=_fit_l0b(fractals, machine))
    found: list[LoopSchedule] = []
    refused: NoSpace | None = None
    for schedule in _ways(group, first, machine):
        try:
            _require_room(group, schedule, machine, fractals, meeting)
        except NoSpace as error:
            refused = error
            continue
        found.append(replace(schedule, cycles=cycles_of(group, schedule, machine, meeting)))
    if not found:
        assert refused is not None, "no way and no reason"
        raise refused
    return min(found, key=lambda schedule: schedule.cycles)


def _fit_l0b(fractals: int, machine: Machine) -> bool:
    """Whether so many fractals of right factors have room in L0B."""
    return fractals * FRACTAL_BYTES <= machine.buffers.L0B.bytes


def _ways(group: LoopGroup, first: LoopSchedule, machine: Machine) -> list[LoopSchedule]:
    """A first schedule and others of as many rows and lanes: right factors of states alone in L0B,
    where not all fit, results side by side, right factors on the left of the cube, all of them or
    but for what stays in L0B, and left factors of one row as vectors."""
    ways = [first]
    terms = terms_of(products_of(group, first, machine))
    of_states = sum(term.fractals for term in terms if term.a != HANDED)
    if not first.resident and _fit_l0b(2 * of_states, machine):
        ways.append(replace(first, resident=True, passing=True))
    if group.form(machine, joined=True).rows:
        ways += [replace(way, joined=True) for way in ways]
    if _can_be_turned(group, first):
        turned = [replace(way, turned=True) for way in ways if not way.resident]
        # Cores that meet load blocks before the left factor, which would take their place.
        alone = [] if first.shares_lanes else turned
        kept = [most_kept(products_of(group, way, machine), way, machine) for way in alone]
        kinds = zip(alone, kept, strict=True)
        ways += [*turned, *(replace(way, kept=count) for way, count in kinds if count)]
    vectors = first.shares_lanes and first.rows == 1
    if vectors and "f16" in machine.intrinsics.get("load_gm_to_ca", ()):
        ways += [replace(way, vector=True) for way in ways if way.resident]
    return ways


def _can_be_turned(group: LoopGroup, schedule: LoopSchedule) -> bool:
    """Whether right factors may be the cube's left operand: they do not stay there, and the rows
    are columns of one fractal, of f32."""
    results = [group.program.loads[product.c].dtype for product in group.products]
    few = schedule.rows <= MOST_ROWS
    return (
        few
        and not schedule.apart
        and not schedule.resident
        and bool(results)
        and set(results) == {"f32"}
    )


def _require_room(
    group: LoopGroup, schedule: LoopSchedule, machine: Machine, fractals: int, meeting: int
) -> None:
    """Fails unless everything fits the memories, and the counters of cores that meet."""
    program, lanes = group.program, group.space.axes[-1].size
    _require_rows(group)
    if schedule.apart and (group.source is not None or group.rows is not None):
        raise NoSpace("rows that are nothing but left factors, on cores of two kinds")
    made = {step.result for step in program.steps}
    made |= {program.loads[n] for n in group.inputs("product")}
    if any(program.stores[n] not in made for n in group.outputs("state")):
        raise NoSpace("a state that is another one")
    if group.rows is not None and group.rows.columns % SIDE:
        raise NoSpace("rows of an array that are no whole blocks")
    for term in terms_of(group.products):
        handed = term.a == HANDED
        if term.n != lanes or term.k != (round_up(term.k, SIDE) if handed else lanes):
            raise NoSpace("a product of other sizes than the states")
        for number in (term.c,) if handed else (term.a, term.c):
            form = group.space.order[number]
            if program.lane not in form or (schedule.axis is not None and len(form) < 2):
                raise NoSpace("a product of something else than rows")
    height, buffers = schedule.fractal_rows, machine.buffers
    inner = {term.a: term.k for term in terms_of(group.products)}
    left = sum(schedule.left_bytes(a, k) for a, k in inner.items())
    through = sum(schedule.left_bytes(a, k) for a, k in inner.items() if not schedule.is_vector(a))
    columns = [ceil_div(product.n, SIDE) for product in products_of(group, schedule, machine)]
    sums = height * sum(columns) * SUM_BYTES
    held = _ub_bytes(group, schedule, machine)
    if not schedule.apart:
        # Sums come to UB in fractals, those of all products at a time at most.
        held += sums
    if schedule.turned:
        parts = layout_of(group, schedule, schedule.rows, machine).arrivals
        each = scratch_elements(ceil_div(schedule.lanes, SIDE) * SIDE, schedule.rows)
        held += 4 * each * sum(map(len, parts))
    if meeting and not schedule.apart:
        # Of each core two lines at most, and its own.
        held += 2 * (machine.cores + 1) * LINE_BYTES
    needs = (
        ("L1", fractals * FRACTAL_BYTES + through, buffers.L1.bytes),
        (schedule.space_of_left, left, machine.buffer(schedule.space_of_left).bytes),
        ("L0C", sums, buffers.L0C.bytes),
        ("UB", held, buffers.UB.bytes),
    )
    for name, size, room in needs:
        if size > room:
            raise NoSpace(f"a loop that needs {size} bytes of {name}")


def _require_rows(group: LoopGroup) -> None:
    """Fails unless what lies in GM is rows that can be moved, or statistics of whole arrays."""
    program, graph = group.program, group.graph
    for number, value in (*program.loads.items(), *program.stores.items()):
        window = graph.windows.get(number)
        if value in program.packed:
            if window is not None:
                raise NoSpace("a part of an array of statistics in a loop")
            continue
        if value.dtype not in MOVED:
            raise NoSpace(f"rows of {value.dtype} in a loop")
        if window is not None:
            width = graph.arrays[number].shape[-1]
            *_, pitch, step = (window.offset + width, *window.strides)
            whole = width == group.space.axes[-1].size
            if step != 1 or not whole or window.offset + width > pitch:
                raise NoSpace("a part of an array that is no columns")


def _ub_bytes(group: LoopGroup, schedule: LoopSchedule, machine: Machine) -> int:
    """Bytes of UB that a loop's step takes on a core: tiles, twice of slices of arrays, scratch of
    the steps, the row array of a step, and zeros that products begin with."""
    own = schedule
    if schedule.apart:
        own, _ = of_vector_core(group, schedule, schedule.rows, machine)
    layout = layout_of(group, own, own.rows, machine)
    buffers, of = layout.buffers
    slices = {of[group.program.loads[n]] for n in group.inputs("slice")}
    size = sum(b.bytes * (SLOTS if i in slices else 1) for i, b in enumerate(buffers))
    widest = max((term.k for term in terms_of(group.products)), default=0)
    zeros = 0 if schedule.apart else widest * SIDE * 2 * schedule.fractal_rows
    if group.rows is not None:
        k, element = group.rows.columns, group.rows.element
        size += TileBuffer(element, (schedule.rows, k), once=False).bytes
        if element != "f16":
            halves = (k // SIDE, layout.block_rows, SIDE)
            size += TileBuffer("f16", halves, once=False).bytes
    return size + sum(map(layout.scratch_bytes, layout.program.steps)) + zeros
