"""Estimated cycles of loops that stay on cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from davinci.machine import Machine, for_vector, prices
from davinci.schedule.loops.group import HANDED, LoopGroup, StepProduct
from davinci.schedule.loops.loop_layout import LoopLayout
from davinci.schedule.loops.schedule import (
    LoopSchedule,
    blocks_of,
    depth_of,
    layout_of,
    of_vector_core,
    products_of,
    terms_of,
)
from davinci.schedule.loops.step_form import barriers_of
from davinci.schedule.loops.turned_results import turning_cycles
from davinci.schedule.meetings import flag_cycles, meeting_cycles
from davinci.schedule.vector.step_costs import step_cycles
from davinci.units import FRACTAL_BYTES, SUM_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


def cycles_of(group: LoopGroup, schedule: LoopSchedule, machine: Machine, meeting: int) -> int:
    """Estimated cycles of a loop and of filling the memories that it keeps.

    Args:
        meeting: lines of counters that a core looks at; 0 if cores share rows and do not meet.
    """
    terms = terms_of(products_of(group, schedule, machine))
    factors: Mapping[int, StepProduct] = {term.b: term for term in terms}
    filled = sum(p.fractals for p in factors.values()) * FRACTAL_BYTES
    once = prices.ends(machine) + filled / machine.l2.read_bytes_per_cycle
    each = _of_step_apart if schedule.apart else _of_step
    steps = group.steps + schedule.delay + schedule.rest
    return int(once + steps * each(group, schedule, machine, meeting))


def _vector_cycles(layout: LoopLayout) -> float:
    """What the vector unit computes in a step, but for bringing results of products to rows."""
    steps = [s for s in layout.program.steps if not layout.once(s.result) and layout.width(s)]
    barriers = barriers_of(steps) * layout.machine.sync.barrier_cycles
    return sum(step_cycles(step, layout) for step in steps) + barriers


def _loading_and_multiplying(
    products: Sequence[StepProduct],
    terms: Sequence[StepProduct],
    schedule: LoopSchedule,
    machine: Machine,
) -> tuple[float, float]:
    """Cycles in which right factors come to L0B, and in which the cube multiplies, of some of the
    terms of products."""
    loads = mads = 0.0
    for term in terms:
        mads += prices.mad(machine, term.fractals * schedule.fractal_rows)
        if not schedule.stays(term.a):
            depth = depth_of(products, term.a, schedule, machine)
            blocks = blocks_of(term, depth, schedule, machine)
            size = sum(block.columns * block.rows for block in blocks) * FRACTAL_BYTES
            loads += prices.load2d(machine, schedule.space_of_right, size, len(blocks))
    for a, k in {term.a: term.k for term in terms if term.kept}.items():
        # A left factor to L0A, for what stays in L0B.
        loads += prices.load2d(machine, "L0A", schedule.left_bytes(a, k))
    return loads, mads


def _of_step(group: LoopGroup, schedule: LoopSchedule, machine: Machine, meeting: int) -> float:
    """A step on cores that are cube and vector core in one. Its products come one after the other,
    and the vector unit computes with each while those behind it are multiplied: with the last one
    nothing else goes on. Nor does anything while cores that share lanes meet, and load a left
    factor, but for products of rows that are handed on, which are there before."""
    layout = layout_of(group, schedule, schedule.rows, machine)
    vector = _vector_cycles(layout)
    height = schedule.fractal_rows
    products = products_of(group, schedule, machine)
    terms = terms_of(products)
    cube = early = 0.0
    busy = [0.0, 0.0]
    for own in (False, True):
        some = [term for term in terms if (term.a != HANDED) == own]
        loads, mads = _loading_and_multiplying(products, some, schedule, machine)
        cube, early = max(loads, mads), cube
        busy = [busy[0] + loads, busy[1] + mads]
    for product, part in zip(products, layout.arrivals, strict=True):
        columns = len(part) * ceil_div(schedule.lanes, SIDE)
        vector += prices.l0c_to_ub(machine, columns * height * SUM_BYTES, 0)
        if schedule.turned:
            turned = columns - product.kept
            vector += turning_cycles(machine, turned * SIDE, schedule.rows) if turned else 0
            if product.kept:
                rounds = schedule.rows * product.kept
                vector += prices.vector(machine, "vadds", "f32", rounds, 2)
            continue
        # In fractals an instruction takes 16 lanes of a repeat.
        vector += schedule.rows * columns
        if group.program.loads[part[0].c] not in layout.direct:
            vector += prices.vector(machine, "vadds", "f32", 0) + machine.sync.barrier_cycles
    parts = max(1, len(layout.arrivals))
    first, then = cube / parts, vector / parts
    each = (parts - 1) * max(first, then) + then + prices.writing(machine).start_cycles
    if meeting:
        for a, k in {term.a: term.k for term in terms if term.a != HANDED}.items():
            size = schedule.rows * k * FRACTAL_BYTES // (SIDE * SIDE)
            each += meeting_cycles(machine, meeting, loaded=size)
            if schedule.resident and not schedule.is_vector(a):
                # Else loads of right factors take its time.
                each += prices.load2d(machine, "L0A", schedule.left_bytes(a, k))
                each += machine.sync.flag_cycles
    return max(first + each, first + early, *busy)


def _of_step_apart(
    group: LoopGroup, schedule: LoopSchedule, machine: Machine, meeting: int
) -> float:
    """A step on cube cores with vector cores beside them, which wait for each other: left factors
    go to memory and to L1, results the same way back. What the vector cores compute with the first
    result goes on while others are made, which is little."""
    own, _ = of_vector_core(group, schedule, schedule.rows, machine)
    vector_core = for_vector(machine)
    each = _vector_cycles(layout_of(group, own, own.rows, machine))
    products = products_of(group, schedule, machine)
    terms = terms_of(products)
    store, load = prices.writing(vector_core), prices.reading(vector_core)
    to_l1 = prices.reading(machine, to_l1=True)
    for a, k in {term.a: term.k for term in terms}.items():
        some = [term for term in terms if term.a == a]
        width = sum(term.n for term in some)
        # Two flags, and between cube cores that meet another one.
        each += (3 if meeting else 2) * flag_cycles(machine)
        each += store.result(2 * own.rows * own.lanes) + to_l1.result(2 * schedule.rows * k)
        if not schedule.is_vector(a):
            each += prices.load2d(machine, "L0A", schedule.left_bytes(a, k))
        each += max(_loading_and_multiplying(products, some, schedule, machine))
        each += prices.mad_latency(machine)
        sums = schedule.rows * width
        _, left = prices.fixpipe(machine, sums, 4 * sums, machine.l2.write_bytes_per_cycle)
        each += left + load.result(4 * sums * own.rows * own.lanes / schedule.rows / schedule.lanes)
    return each
