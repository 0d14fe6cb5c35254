"""Cycles of one step of attention on cube and vector cores, from its first instruction to its last.

Rows of a unit that leave at once pass four stages, each on one kind of core, and cross from one
kind to the other by the memory:

    scores     cube core      K and Q to L0, mads, fixpipe
    weights    vector core    softmax of a tile
    products   cube core      P to L0A, mads, fixpipe
    results    vector core    O

Where a unit has two halves of rows, the second is in a stage as soon as the first has left it.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.split import FRACTAL, SplitAttentionSchedule, chunks
from davinci.units import FRACTAL_BYTES, REPEAT_BYTES


@dataclass(frozen=True)
class StageCycles:
    """Cycles of a stage for rows that leave at once.

    Attributes:
        busy: until the next rows may be in it.
        latency: until the next stage has what it makes.
    """

    busy: float
    latency: float


@dataclass(frozen=True)
class LoadCycles:
    """Cycles of MTE2, or of the memory, for a step.

    Attributes:
        first: until Q and the first part of K are in L1.
        part: of each other part of K.
        all_of_it: until V is in L1 as well.
    """

    first: float
    part: float
    all_of_it: float


def step_latency(
    attention: Attention,
    schedule: SplitAttentionSchedule,
    machine: Machine,
    loads: LoadCycles,
    weights: float,
) -> float:
    """Cycles of a step that is alone.

    Args:
        weights: of a vector core, in which scores of all rows become weights.
    """
    scores = _scores(attention, schedule, machine, loads.part)
    softmax = _weights(attention, schedule, machine, weights / schedule.subs)
    products = _products(attention, schedule, machine)
    results = _results(attention, schedule, machine)
    again = max(stage.busy for stage in (scores, softmax, products, results))
    before = max(loads.first + scores.latency + softmax.latency, loads.all_of_it)
    return before + products.latency + results.latency + (schedule.subs - 1) * again


def _flag(machine: Machine) -> float:
    """Cycles of a flag to the other kind of core."""
    assert machine.cross_core is not None, "split machines have flags between cores"
    return machine.cross_core.flag_cycles


def _scores(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, part: float
) -> StageCycles:
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    keys, depth = schedule.part, attention.fractals.depth
    item = DTYPES[schedule.dtype(attention)].itemsize
    elements = schedule.rows * keys * FRACTAL
    leaving, complete = prices.fixpipe(cube, elements, elements * item)
    mad = prices.mad(cube, schedule.rows * keys * depth, 2, 1)
    of_k = prices.load3d(cube, "L0A", 1, [1] * (keys * depth))
    of_q = prices.load2d(cube, "L0B", schedule.rows * depth * FRACTAL_BYTES)
    lanes = schedule.lanes
    each = max(lanes * leaving, lanes * mad, of_k + lanes * of_q)
    busy = schedule.parts * each
    first = of_k + of_q + prices.mad_latency(cube)
    chunk = chunks(schedule)[0] * schedule.tile * FRACTAL * item
    crossing = _flag(machine) + prices.reading(vector).result(chunk)
    all_parts = max(busy, (schedule.parts - 1) * part + each)
    return StageCycles(busy, first + mad + all_parts - leaving + complete + crossing)


def _weights(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, cycles: float
) -> StageCycles:
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    chunk = chunks(schedule)[-1] * schedule.tile * FRACTAL_BYTES
    part = schedule.lanes * schedule.rows * schedule.part * FRACTAL_BYTES
    crossing = prices.writing(vector).result(chunk) + _flag(machine)
    crossing += prices.reading(cube, to_l1=True).result(part)
    return StageCycles(cycles, cycles + crossing)


def _products(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> StageCycles:
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    columns = attention.fractals.columns + 1
    elements = schedule.rows * columns * FRACTAL
    leaving, complete = prices.fixpipe(cube, elements, elements * 4)
    p = schedule.lanes * schedule.rows * schedule.part * FRACTAL_BYTES
    mads = schedule.lanes * prices.mad(cube, schedule.rows * schedule.part * columns, 2, 1)
    load = prices.load2d(cube, "L0A", p)
    of_v = schedule.part * (columns - 1) * FRACTAL_BYTES
    loads = load + prices.load2d(cube, "L0B", of_v, schedule.part)
    busy = schedule.parts * max(loads, mads) + (schedule.lanes - 1) * leaving
    crossing = _flag(machine) + prices.reading(vector).result(elements * 4)
    return StageCycles(busy, load + prices.mad_latency(cube) + busy + complete + crossing)


def _results(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> StageCycles:
    vector = machines.for_vector(machine)
    columns, rows = attention.fractals.columns, schedule.rows
    moved = rows * columns * FRACTAL * 4 / REPEAT_BYTES
    busy = 2 * moved + 2 * columns * prices.short_vector(vector)
    stored = rows * columns * FRACTAL * attention.o.itemsize
    return StageCycles(busy, busy + prices.writing(vector).result(stored))
