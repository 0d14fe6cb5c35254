"""Cycles of steps of attention on cube and vector cores, from the first instruction to the last.

Rows of a unit that leave at once pass four stages, each on one kind of core, and cross from one
kind to the other by the memory:

    scores     cube core      K and Q to L0, mads, fixpipe
    weights    vector core    softmax of a tile
    products   cube core      P to L0A, mads, fixpipe
    results    vector core    O

Scores of the first steps, as many as a ring has them ahead, come before any product; behind the
last scores products are left of as many. Between these a core does both of a step, and the slower
kind sets the pace, or the ring does in long runs. Where a unit has two halves of rows, the second
is in a stage as soon as the first has left it.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.split import (
    FRACTAL,
    SplitAttentionSchedule,
    chunks,
    factor_slots,
)
from davinci.schedule.attention.split_loads import LoadCycles
from davinci.units import FRACTAL_BYTES, REPEAT_BYTES, ceil_div


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
class Stages:
    """Cycles of the stages of half of a unit, or of all of it if it has no halves."""

    scores: StageCycles
    weights: StageCycles
    products: StageCycles
    results: StageCycles

    def crossings(self) -> float:
        """Cycles from scores on one cube core to the products of their weights in which no core is
        busy with them."""
        stages = self.scores, self.weights
        return sum(stage.latency - stage.busy for stage in stages)


def stages_of(
    attention: Attention,
    schedule: SplitAttentionSchedule,
    machine: Machine,
    loads: LoadCycles,
    weights: float,
) -> Stages:
    """The stages of a schedule.

    Args:
        weights: cycles of a vector core, in which scores of all rows become weights.
    """
    return Stages(
        _scores(attention, schedule, machine, loads),
        _weights(schedule, machine, weights / schedule.subs),
        _products(attention, schedule, machine),
        _results(attention, schedule, machine),
    )


@dataclass(frozen=True)
class StepCycles:
    """Cycles of a step in which a cube core makes scores of one step and products of another.

    Attributes:
        of_cube, of_vector: of a core, busy with both.
        pace: at least, of the ring and of what brings and takes data.
    """

    of_cube: float
    of_vector: float
    pace: float


ROUNDS = 4
"""How many times the places of a ring are taken in turn before what follows is the same."""


def steps_cycles(
    schedule: SplitAttentionSchedule,
    stages: Stages,
    loads: LoadCycles,
    steps: int,
    each: StepCycles,
) -> float:
    """Cycles of some steps of a block."""
    ahead, halves = min(steps, schedule.ahead), schedule.subs
    of_k = schedule.parts * loads.part_of_k
    # Parts of K of the first step are waited for together, if it is not the only one.
    cube, vector = loads.first + (of_k - loads.part_of_k if steps > 1 else 0.0), 0.0
    ready: list[float] = []
    for step in range(ahead):
        start, all_scores = cube, max(halves * stages.scores.busy, of_k if step else 0.0)
        cube += all_scores
        for half in range(1, halves + 1):
            # Scores of all rows leave together where other steps follow.
            share = half / halves if steps == 1 else 1.0
            left = start + share * all_scores + stages.scores.latency - stages.scores.busy
            vector = max(vector, left) + stages.weights.busy
            ready.append(vector + stages.weights.latency - stages.weights.busy)
    # V of the first step comes behind K of all these.
    late = max(1, schedule.parts - 1) * loads.part_of_v
    cube = cube + late if steps > 1 else max(cube, loads.all_of_it)
    played = min(steps, (1 + ROUNDS) * ahead)
    for step in range(ahead, played):
        begun = max(cube, ready[(step - ahead) * halves])
        cube = max(begun + each.of_cube, cube + each.pace)
        left = cube + stages.scores.latency - stages.scores.busy
        begun = max(vector, left)
        ready += [begun + (halves - 1) * stages.weights.busy + stages.weights.latency] * halves
        vector = begun + each.of_vector
    # All others follow at one pace.
    rest = (steps - played) * max(each.of_cube, each.of_vector, each.pace)
    cube, vector = cube + rest, vector + rest
    for time in (rest + time for time in ready[-ahead * halves :]):
        cube = max(cube, time) + stages.products.busy
        vector = max(vector, cube + stages.products.latency - stages.products.busy)
        vector += stages.results.busy
    return vector + stages.results.latency - stages.results.busy


def _flag(machine: Machine) -> float:
    """Cycles of a flag to the other kind of core."""
    assert machine.cross_core is not None, "split machines have flags between cores"
    return machine.cross_core.flag_cycles


def _scores(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, loads: LoadCycles
) -> StageCycles:
    """The stage of a cube core that makes scores of a tile, until a vector core has some of them.

    Args:
        loads: of K.
    """
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    keys, depth = schedule.part, attention.fractals.depth
    item = DTYPES[schedule.dtype(attention)].itemsize
    elements = schedule.rows * keys * FRACTAL
    leaving, complete = prices.fixpipe(cube, elements, elements * item)
    mad = prices.mad(cube, schedule.rows * keys * depth, 2, 1)
    of_k = loads.to_l0a
    of_q = prices.load2d(cube, "L0B", schedule.rows * depth * FRACTAL_BYTES)
    lanes = schedule.lanes
    slots, latency = factor_slots(attention, schedule, cube), prices.mad_latency(cube)
    # Where a factor has one buffer it comes when the mads before are done, K before Q.
    mads = lanes * (mad + (of_q + latency if slots.q == 1 else 0.0))
    mads += of_k + of_q + latency if slots.k == 1 else 0.0
    each = max(lanes * leaving, mads, of_k + lanes * of_q)
    busy = schedule.parts * each
    first = of_k + of_q + latency
    chunk = chunks(schedule)[0] * schedule.tile * FRACTAL * item
    crossing = _flag(machine) + prices.reading(vector).result(chunk)
    all_parts = max(busy, (schedule.parts - 1) * loads.part_of_k + each)
    return StageCycles(busy, first + mad + all_parts - leaving + complete + crossing)


def _weights(schedule: SplitAttentionSchedule, machine: Machine, cycles: float) -> StageCycles:
    """The stage of a vector core, until the cube core has the weights of a part of the keys.

    Args:
        cycles: in which scores become weights.
    """
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    chunk = chunks(schedule)[-1] * schedule.tile * FRACTAL_BYTES
    part = schedule.lanes * schedule.rows * schedule.part * FRACTAL_BYTES
    crossing = prices.writing(vector).result(chunk) + _flag(machine)
    crossing += prices.reading(cube, to_l1=True).result(part)
    return StageCycles(cycles, cycles + crossing)


def _products(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> StageCycles:
    """Cycles of the products of weights and V for a step, busy and until the vector cores have read
    the results."""
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


def result_cycles(attention: Attention, schedule: SplitAttentionSchedule, vector: Machine) -> float:
    """Cycles of a vector core for products with V of half of the rows of a step: sums times what
    spreads the change of a maximum, whose operands and result meet in banks, and an addition."""
    elements = schedule.rows * (attention.fractals.columns + 1) * FRACTAL
    pieces = ceil_div(schedule.rows, schedule.piece)
    size = elements * DTYPES["f32"].itemsize
    product = BANK_TURNS * prices.vector(vector, "vmul", "f32", size / REPEAT_BYTES, 0)
    addition = prices.vector(vector, "vadd", "f32", size / REPEAT_BYTES, 0)
    return product + addition + (1 + 3 * pieces) * prices.short_vector(vector)


BANK_TURNS = 3
"""Cycles of a repeat of a product in place of sums with what is spread to a block for each row:
both are read from even groups of banks, of which the result needs the same ones."""


def _results(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> StageCycles:
    """Cycles in which vector cores add up the products of a step, busy and until quotients are
    stored."""
    vector = machines.for_vector(machine)
    busy = result_cycles(attention, schedule, vector)
    elements = schedule.rows * attention.fractals.columns * FRACTAL
    divided = elements * DTYPES["f32"].itemsize / REPEAT_BYTES
    leaving = prices.vector(vector, "vmul", "f32", BANK_TURNS * divided, 1)
    leaving += prices.vector(vector, "vconv", "", divided, 1) + prices.short_vector(vector)
    stored = prices.writing(vector).result(elements * attention.o.itemsize)
    return StageCycles(busy, busy + leaving + stored)
