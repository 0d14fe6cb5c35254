"""Estimated cycles of attention on a machine whose cube and vector cores run programs of their own,
and the schedules in the order of these."""

from __future__ import annotations

from functools import lru_cache

from davinci import machine as machines
from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.attention.attention import NONE_FITS, Attention
from davinci.schedule.attention.band import counts_of
from davinci.schedule.attention.fold import fold_in_place
from davinci.schedule.attention.split import (
    CHUNKS_AT_ONCE,
    FRACTAL,
    LANES,
    SplitAttentionSchedule,
    bounds_apart,
    candidates,
    chunks,
    in_place,
    require_split,
    shared_bytes,
    weights_in_place,
)
from davinci.schedule.attention.split_latency import StepCycles, stages_of, steps_cycles
from davinci.schedule.attention.split_loads import SplitAttentionLoads
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

PIPES = 4
"""Pipes of a cube core that a product passes: MTE2, MTE1, M, FIX."""


def first_weights(schedule: SplitAttentionSchedule, cube: Machine) -> float:
    """Cycles of each step in which a cube core waits for the first weights of its products: they
    come to L1 when the products before have begun."""
    part = schedule.lanes * schedule.rows * schedule.part * FRACTAL_BYTES
    to_l1 = prices.reading(cube, to_l1=True).result(part)
    return to_l1 + prices.load2d(cube, "L0A", part) + prices.mad_latency(cube)


def cube_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, loads: SplitAttentionLoads
) -> float:
    """Cycles of a cube core for a step."""
    cube, sizes = loads.cube, attention.fractals
    rows, part, columns = schedule.rows, schedule.part, sizes.columns + 1
    scores = prices.mad(cube, rows * part * sizes.depth, 2, 1)
    product = prices.mad(cube, schedule.lanes * rows * part * columns, 2, 1)
    found = schedule.quarters * scores + schedule.subs * product
    # Each pipe tells the next one.
    found += (schedule.quarters + schedule.subs) * PIPES * cube.sync.flag_cycles
    if schedule.windows:  # Products wait for these loads, which take much longer.
        found += loads.k_to_l0a()
    return schedule.parts * found + first_weights(schedule, cube)


def moved_cycles(
    attention: Attention, schedule: SplitAttentionSchedule, loads: SplitAttentionLoads
) -> float:
    """Cycles of the memory, the L2 and a cube core's loads for a step."""
    sizes, l2 = attention.fractals, loads.machine.l2
    size = schedule.quarters * schedule.rows * schedule.tile * FRACTAL
    item = DTYPES[schedule.dtype(attention)].itemsize
    of_v = schedule.quarters * schedule.rows * (sizes.columns + 1) * FRACTAL * 4
    written = max(size * item + of_v, size * 2)
    read = size * (item + 2 + item * attention.whole_masks) + of_v
    read += schedule.tile * (sizes.depth + sizes.columns) * FRACTAL_BYTES
    return max(
        written / l2.write_bytes_per_cycle,
        read / l2.read_bytes_per_cycle,
        loads.of_memory(),
        loads.of_mte2(),
        loads.of_mte1(),
    )


def steps_estimate(
    attention: Attention,
    schedule: SplitAttentionSchedule,
    machine: Machine,
    cores: int,
    steps: int,
) -> float:
    """Cycles of some steps of a block."""
    vector = machines.for_vector(machine)
    loads = SplitAttentionLoads(attention, schedule, machine, cores)
    masked = len(attention.chain.steps) if in_place(attention) else 0
    weights = _scores_cycles(schedule, schedule.dtype(attention), masked, vector)
    first = loads.alone()
    stages = stages_of(attention, schedule, machine, first, weights)
    of_cube = cube_cycles(attention, schedule, loads)
    of_vector = weights + schedule.subs * stages.results.busy
    # A place of the ring is taken again when what was in it has passed both kinds of cores.
    of_ring = (of_cube + of_vector + stages.crossings()) / schedule.ahead
    pace = max(of_ring, moved_cycles(attention, schedule, loads))
    each = StepCycles(of_cube, of_vector, pace)
    return steps_cycles(schedule, stages, first, steps, each)


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
    found = steps_estimate(attention, schedule, machine, cores, steps)
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


LEFT_BEHIND = 0.1
"""Part of the lines in the L2 that kernels before have written and the memory has not: between none
where a kernel runs alone, and 0.4, as attention of Whisper's encoder layer takes longer there."""


def beside_others(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine, cores: int
) -> float:
    """Cycles on that many blocks where the L2 is full of what kernels before left there, some of
    which the memory has to take before the rings have their places."""
    steps, units = most_steps(attention, schedule, cores), schedule.units(attention)
    item = DTYPES[schedule.dtype(attention)].itemsize
    apart = 0 if weights_in_place(attention, schedule) else DTYPES["f16"].itemsize
    of_row = schedule.tile * SIDE * (item + apart)
    of_row += (attention.fractals.columns + 1) * SIDE * DTYPES["f32"].itemsize
    size = min(steps, schedule.ring) * schedule.unit_rows * SIDE * of_row
    left = LEFT_BEHIND * size / prices.share_of(machine, min(cores, units)).write
    return estimate(attention, schedule, machine, cores) + left


def require_some(attention: Attention, machine: Machine) -> None:
    """Fails unless a schedule fits.

    Raises:
        NoSpace: there is none.
    """
    require_split(attention, machine)
    if next(iter(candidates(attention, machine)), None) is None:
        raise NoSpace(NONE_FITS)


def ranked(attention: Attention, machine: Machine, cores: int) -> list[SplitAttentionSchedule]:
    """Schedules that fit, that of fewest estimated cycles beside other kernels first.

    Raises:
        NoSpace: there is none.
    """
    require_some(attention, machine)
    found = dict.fromkeys(candidates(attention, machine))
    return sorted(found, key=lambda made: beside_others(attention, made, machine, cores))
