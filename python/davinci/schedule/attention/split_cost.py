"""Estimated cycles of attention on a machine whose cube and vector cores run programs of their own,
and the schedules in the order of these."""

from __future__ import annotations

from functools import lru_cache

from davinci import machine as machines
from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.band import counts_of
from davinci.schedule.attention.fold import fold_in_place
from davinci.schedule.attention.split import (
    CHUNKS_AT_ONCE,
    FRACTAL,
    LANES,
    QUARTERS,
    SUBS,
    SplitAttentionSchedule,
    bounds_apart,
    candidates,
    chunks,
    in_place,
    require_split,
    shared_bytes,
)
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_BYTES, MAX_REPEAT, REPEAT_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


@lru_cache(maxsize=4096)
def _scores_cycles(
    schedule: SplitAttentionSchedule, dtype: str, masked: int, vector: Machine
) -> float:
    """Cycles of a vector core in which scores of a tile become weights, all rows of a unit;
    `masked`: steps of the chain besides, as long as an addition."""
    keys, item = schedule.tile * SIDE, DTYPES[dtype].itemsize
    found = 0.0
    for chunk in chunks(schedule):
        size = chunk * keys * SIDE

        def work(name: str, kind: str, width: int, size: int = size) -> float:
            repeats = size * width / REPEAT_BYTES
            count = ceil_div(int(repeats), MAX_REPEAT)
            return prices.vector(vector, name, kind, repeats, count)

        steps = fold_in_place(chunk, keys, dtype)
        found += steps.estimate(vector).cycles
        found += 2 * work("vmadd", dtype, item) + work("vexp", "f16", 2)
        if dtype == "f32":
            found += work("vconv", "", 4)
        found += SMALL_STEPS * (prices.short_vector(vector) + vector.sync.barrier_cycles)
        found += LINKS * vector.sync.barrier_cycles / min(CHUNKS_AT_ONCE, len(chunks(schedule)))
        found += masked * work("vadd", dtype, item)
    return SUBS * found


SMALL_STEPS = 5
"""Steps on the maxima of a chunk."""

LINKS = 16
"""Steps of a chunk that wait for the one before."""

PER_STEP = 500
"""Cycles of a step in which pipes wait for each other, as estimates of schedules of 12x512x64 and
32x4096x128 miss what they take."""


def product_gap(cube: Machine) -> float:
    """Cycles of a product on a cube core besides those of its fractals: a factor comes when the
    product before has left its buffer, and each pipe tells the next one."""
    return prices.mad_latency(cube) + prices.load2d(cube, "L0A", 0) + 4 * cube.sync.flag_cycles


def step_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> tuple[float, float]:
    """Cycles of a step where steps follow each other, and from its first instruction to its last
    where it is alone."""
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    sizes, dtype = attention.fractals, schedule.dtype(attention)
    rows, part, parts = schedule.rows, schedule.part, schedule.parts
    columns = sizes.columns + 1
    scores = prices.mad(cube, rows * part * sizes.depth, 2, 1)
    product = prices.mad(cube, LANES * rows * part * columns, 2, 1)
    of_cube = parts * (QUARTERS * scores + SUBS * product)
    of_cube += parts * (QUARTERS + SUBS) * product_gap(cube)
    masked = len(attention.chain.steps) if in_place(attention) else 0
    size = QUARTERS * rows * schedule.tile * FRACTAL
    item = DTYPES[dtype].itemsize
    of_v = QUARTERS * rows * columns * FRACTAL * 4
    written = max(size * item + of_v, size * 2)
    read = size * (item + 2 + item * attention.whole_masks) + of_v
    read += schedule.tile * (sizes.depth + sizes.columns) * FRACTAL_BYTES
    moved = max(written / machine.l2.write_bytes_per_cycle, read / machine.l2.read_bytes_per_cycle)
    taken = SUBS * rows * columns * FRACTAL * 4 / REPEAT_BYTES
    of_vector = _scores_cycles(schedule, dtype, masked, vector) + 2 * taken + SUBS * columns * 50
    each = max(of_cube, of_vector, moved) + PER_STEP
    return each, of_cube + of_vector + moved


def most_steps(attention: Attention, schedule: SplitAttentionSchedule, cores: int) -> int:
    """Steps of the block that has most of them, about."""
    if attention.band is None:
        return ceil_div(schedule.units(attention), cores) * schedule.tiles(attention)
    counts = counts_of(attention.band, schedule.unit_rows * SIDE, schedule.tile * SIDE)
    total = attention.band.of_all(counts.tiles, attention.batch)
    return max(ceil_div(total, cores), int(counts.tiles.max()))


def masked_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, cores: int
) -> float:
    """Cycles in which a vector core of one of that many blocks waits for bounds of scores that a
    band hides, and compares them."""
    band, vector = attention.band, machines.for_vector(machine)
    if band is None:
        return 0.0
    counts = counts_of(band, schedule.unit_rows * SIDE, schedule.tile * SIDE)
    total = band.of_all(counts.masked, attention.batch)
    dtype = schedule.dtype(attention)
    item = DTYPES[dtype].itemsize
    each = 0.0
    for chunk in chunks(schedule):
        size = chunk * schedule.tile * FRACTAL * item
        apart = bounds_apart(attention, schedule, vector)
        pieces = 1 if apart else ceil_div(size, shared_bytes(attention, schedule, dtype))
        read = prices.reading(vector).result(size / pieces) + 2 * vector.sync.flag_cycles
        each += pieces * read + size / REPEAT_BYTES
        if not apart:  # They come when the weights before have left.
            each += prices.writing(vector).result(chunk * schedule.tile * FRACTAL_BYTES)
    return SUBS * each * total / cores


def estimate(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, cores: int
) -> float:
    """Cycles on that many blocks."""
    each, alone = step_cycles(attention, schedule, machine)
    steps = most_steps(attention, schedule, cores)
    found = 2 * prices.ends(machines.for_vector(machine)) + alone + (steps - 1) * each
    return found + masked_cycles(attention, schedule, machine, cores)


def ranked(attention: Attention, machine: Machine, cores: int) -> list[SplitAttentionSchedule]:
    """Schedules that fit, that of fewest estimated cycles first.

    Raises:
        NoSpace: there is none.
    """
    require_split(attention, machine)
    found = list(dict.fromkeys(candidates(attention, machine)))
    if not found:
        raise NoSpace("attention that no schedule fits")
    return sorted(found, key=lambda made: estimate(attention, made, machine, cores))
