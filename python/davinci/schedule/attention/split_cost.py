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
    MOST_AHEAD,
    SplitAttentionSchedule,
    bounds_apart,
    candidates,
    chunks,
    in_place,
    require_split,
    shared_bytes,
)
from davinci.schedule.attention.split_latency import LoadCycles, step_latency
from davinci.schedule.meetings import meeting_cycles
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
    return schedule.subs * found


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
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, steps: int
) -> tuple[float, float]:
    """Cycles of a step where steps follow each other, and what the first of `steps` takes from its
    first instruction to its last.

    Scores of few steps are all in front of the first products, which rows pass stage by stage; of
    more, cores take scores and products in turns and fill the rings first. Of units of one quarter
    all waits for K and V.
    """
    cube, vector = machines.for_cube(machine), machines.for_vector(machine)
    sizes, dtype = attention.fractals, schedule.dtype(attention)
    rows, part, parts = schedule.rows, schedule.part, schedule.parts
    columns = sizes.columns + 1
    scores = prices.mad(cube, rows * part * sizes.depth, 2, 1)
    product = prices.mad(cube, schedule.lanes * rows * part * columns, 2, 1)
    of_cube = parts * (schedule.quarters * scores + schedule.subs * product)
    of_cube += parts * (schedule.quarters + schedule.subs) * product_gap(cube)
    if schedule.windows:  # Products wait for these loads, which take much longer.
        of_cube += parts * k_loads(attention, schedule, cube)
    masked = len(attention.chain.steps) if in_place(attention) else 0
    size = schedule.quarters * rows * schedule.tile * FRACTAL
    item = DTYPES[dtype].itemsize
    of_v = schedule.quarters * rows * columns * FRACTAL * 4
    written = max(size * item + of_v, size * 2)
    read = size * (item + 2 + item * attention.whole_masks) + of_v
    read += schedule.tile * (sizes.depth + sizes.columns) * FRACTAL_BYTES
    moved = max(written / machine.l2.write_bytes_per_cycle, read / machine.l2.read_bytes_per_cycle)
    moved = max(moved, *factor_cycles(attention, schedule, machine))
    taken = schedule.subs * rows * columns * FRACTAL * 4 / REPEAT_BYTES
    weights = _scores_cycles(schedule, dtype, masked, vector)
    of_vector = weights + 2 * taken + schedule.subs * columns * 50
    each = max(of_cube, of_vector, moved) + PER_STEP
    in_turn = 2 * prices.ends(vector) + of_cube + of_vector + moved
    if schedule.quarters == 1:
        return each, in_turn + first_cycles(attention, schedule, machine)
    loads = load_cycles(attention, schedule, machine)
    alone = step_latency(attention, schedule, machine, loads, weights)
    return each, alone if steps <= MOST_AHEAD else max(alone, in_turn)


def k_loads(attention: Attention, schedule: SplitAttentionSchedule, cube: Machine) -> float:
    """Cycles of MTE1 in which a part of K becomes fractals of L0A."""
    depth = attention.fractals.depth
    pixels = depth if schedule.windows else 1
    return prices.load3d(cube, "L0A", pixels, [1] * (schedule.part * depth))


def load_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> LoadCycles:
    """Cycles until the factors of a step that is alone are in L1."""
    cube, width = machines.for_cube(machine), attention.fractals.depth
    part = part_cycles(schedule, width, attention.k.nz, machine, 0.0)
    size = schedule.rows * width * FRACTAL_BYTES
    port = prices.reading(cube, to_l1=True)
    of_q = port.busy(size)
    if not attention.q.nz:
        of_q = prices.nd2nz(cube, schedule.rows * SIDE, size)
    start = port.result(0) + schedule.lanes * of_q
    memory, mte2, _ = factor_cycles(attention, schedule, machine)
    return LoadCycles(start + part, part, start + max(memory, mte2))


def first_cycles(attention: Attention, schedule: SplitAttentionSchedule, machine: Machine) -> float:
    """Cycles until K of the first step is in L1, of which the L2 has nothing."""
    plain = schedule.windows or attention.k.nz
    return schedule.parts * part_cycles(schedule, attention.fractals.depth, plain, machine, 1.0)


def part_cycles(
    schedule: SplitAttentionSchedule, width: int, plain: bool, machine: Machine, missing: float
) -> float:
    """Cycles of MTE2 for a part of K or V.

    Args:
        width: of the factor, in fractals.
        plain: whether it comes to L1 as it is; else rows become fractals on their way.
        missing: part of the rows that the L2 has not.
    """
    cube, size = machines.for_cube(machine), schedule.part * width * FRACTAL_BYTES
    if plain:
        return prices.reading(cube, to_l1=True).busy(size)
    return prices.nd2nz(cube, schedule.part * SIDE, size, missing=missing)


def factor_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> tuple[float, float, float]:
    """Cycles of a step that the memory, MTE2 and MTE1 take for K and V. The first unit of a matrix
    finds none of them in the L2, unless a vector core without rows has read them."""
    cube, sizes, parts = machines.for_cube(machine), attention.fractals, schedule.parts
    fresh = 1 / schedule.blocks_of_rows(attention)
    missing = fresh if schedule.lanes == LANES else 0.0
    memory = schedule.tile * (sizes.depth + sizes.columns) * FRACTAL_BYTES * fresh
    k_size, v_size = (schedule.part * n * FRACTAL_BYTES for n in (sizes.depth, sizes.columns))
    plain_k, plain_v = schedule.windows or attention.k.nz, attention.v.nz
    of_k = part_cycles(schedule, sizes.depth, plain_k, machine, missing)
    of_v = part_cycles(schedule, sizes.columns, plain_v, machine, missing)
    loads = k_loads(attention, schedule, cube)
    loads += schedule.quarters * prices.load2d(cube, "L0B", schedule.rows * k_size // schedule.part)
    loads += schedule.subs * prices.load2d(cube, "L0B", v_size, schedule.part)
    return memory / machine.gm.read_bytes_per_cycle, parts * (of_k + of_v), parts * loads


def most_steps(attention: Attention, schedule: SplitAttentionSchedule, cores: int) -> int:
    """Steps of the block that has most of them, about."""
    if attention.band is None:
        own = schedule.tiles(attention) // schedule.shares
        return ceil_div(schedule.units(attention), cores) * own
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
    return schedule.subs * each * total / cores


def estimate(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, cores: int
) -> float:
    """Cycles on that many blocks."""
    steps = most_steps(attention, schedule, cores)
    each, alone = step_cycles(attention, schedule, machine, steps)
    found = alone + (steps - 1) * each
    found += shared_cycles(attention, schedule, machine, cores)
    return found + masked_cycles(attention, schedule, machine, cores)


def shared_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, cores: int
) -> float:
    """Cycles in which the vector cores of that many blocks meet and put shares of keys together."""
    if schedule.shares == 1:
        return 0.0
    vector, columns = machines.for_vector(machine), attention.fractals.columns + 1
    size = schedule.rows * columns * FRACTAL * 4
    of_share = prices.reading(vector).busy(size) + 3 * columns * prices.short_vector(vector) / 2
    each = prices.ends(vector) + schedule.shares * of_share
    meeting = meeting_cycles(machine, LANES * cores)
    return meeting + ceil_div(attention.batch, LANES * cores) * each


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
