"""Attention on a machine whose cube and vector cores run programs of their own.

A block of the launch is a cube core and its two vector cores. It takes units, each `SUBS` times as
many rows of one matrix as both vector cores take at once, and all keys in tiles:

    cube core      S^T = K Q^T of a tile, as fractals [rows / 16][keys][16]      -> ring in GM
    vector cores   P^T = exp(factor * (S^T - maximum)), as fractals of f16       -> ring in GM
    cube core      P V, and the sums of P by a column of ones beside V, in f32   -> ring in GM
    vector cores   O = O * exp(change of the maximum) + P V; behind the last tile O / sums

In fractals a maximum over keys is a maximum of blocks, and weights come back to the cube core by
plain copies. Scores are some tiles ahead of the products with V, so that neither kind of core waits
for the other. A tile of a unit is a step; steps of all units of a block follow each other, and step
n has place n mod (ahead + 1) of each ring. A place is free when it is written again, because the
cores that read it have sent what they made of it, for which the writer has waited.

Rows of a unit are in quarters: those of vector core 0 and of vector core 1, and again. Sizes of a
schedule are fractals of 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from davinci import machine as machines
from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.machine.views import VECTOR_CORE
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.band import counts_of
from davinci.schedule.attention.fold import COPIES, fold_in_place, kept
from davinci.schedule.attention.steps import is_linear
from davinci.schedule.plain_data import CONFIG
from davinci.schedule.vector.space import NoSpace
from davinci.units import (
    BLOCK_BYTES,
    FRACTAL_BYTES,
    MAX_REPEAT,
    REPEAT_BYTES,
    ceil_div,
)
from davinci.units import FRACTAL_SIDE as SIDE

FRACTAL = SIDE * SIDE

LANES, SUBS = 2, 2
"""Vector cores of a block, and how many times as many rows as they take at once a unit has."""

QUARTERS = LANES * SUBS

L0_SLOTS, P_SLOTS, SCORE_SLOTS, PIECE_SLOTS = 2, 2, 2, 2
"""Buffers: of Q in L0B; of P in L1; of scores in UB, besides one more where weights leave from
them; of pieces of P V in UB."""

L0C_SLOTS = (2, 4)
"""The fewest buffers of scores in L0C, and the most."""

MASK_SLOTS = 1
"""Buffers for a chunk's numbers of a mask that has one for each score."""

CHUNKS_AT_ONCE = 2
"""Chunks that a vector core works on in turns."""

MOST_ROWS, PARTS, MOST_PARTS, MOST_AHEAD = 4, (8, 4, 2, 1), 8, 3
"""Fractals of rows of a quarter; fractals of keys of a part; parts of a tile; tiles that scores are
ahead."""


@dataclass(frozen=True)
class SplitAttentionSchedule:
    """How a block computes its units.

    Attributes:
        rows: of a quarter of a unit.
        part: keys that one product takes.
        parts: of a tile of keys.
        chunk: rows whose scores of a tile a vector core takes at once.
        piece: rows of P V that it takes at once.
        ahead: tiles that scores are ahead of products with V.
    """

    __pydantic_config__ = CONFIG

    rows: int
    part: int
    parts: int
    chunk: int
    piece: int
    ahead: int

    @property
    def tile(self) -> int:
        """Keys of a tile."""
        return self.part * self.parts

    @property
    def ring(self) -> int:
        """Places of a ring."""
        return self.ahead + 1

    @property
    def unit_rows(self) -> int:
        return QUARTERS * self.rows

    def tiles(self, attention: Attention) -> int:
        return ceil_div(attention.fractals.keys, self.tile)

    def blocks_of_rows(self, attention: Attention) -> int:
        """Units of a matrix."""
        return ceil_div(attention.fractals.rows, self.unit_rows)

    def units(self, attention: Attention) -> int:
        return attention.batch * self.blocks_of_rows(attention)

    def __str__(self) -> str:
        return (
            f"cube and vector cores, units of {self.unit_rows * SIDE} rows, tiles of "
            f"{self.tile * SIDE} keys by {self.part * SIDE}, {self.ahead} ahead"
        )


def require_split(attention: Attention, machine: Machine) -> None:
    """Fails unless cube and vector cores can share the attention.

    Raises:
        NoSpace: they cannot, and why.
    """
    plain = not (attention.q.k_rows or attention.k.k_rows) and attention.v.k_rows
    operands = (attention.q, attention.k, attention.v)
    if machine.core_types[VECTOR_CORE].count != LANES:
        raise NoSpace("a cube core without two vector cores")
    if not plain or any(each.nz or each.itemsize != 2 for each in operands):
        raise NoSpace("factors that are no rows of f16")
    if attention.o.nz or attention.depth % SIDE or attention.columns % SIDE:
        raise NoSpace("rows that are no whole fractals")
    if attention.guarded:
        raise NoSpace("rows of which masks may leave nothing")
    known = attention.chain.extras or attention.band is not None
    if not known and not all(map(is_linear, attention.chain.steps)):
        raise NoSpace("scores that are neither only scaled nor masked")
    if attention.scale * attention.chain.factor <= 0:
        raise NoSpace("a scale that turns the order of scores")


def ub_bytes(attention: Attention, schedule: SplitAttentionSchedule) -> int:
    """Bytes of UB that a vector core takes."""
    dtype = attention.chain.scores.dtype
    item = DTYPES[dtype].itemsize
    rows, columns = schedule.rows, attention.fractals.columns + 1
    found = score_slots(dtype) * slot_bytes(schedule, item)
    first = scratch_bytes(schedule, item)
    found += weight_slots(dtype) * shared_bytes(attention, schedule, dtype)
    found += first if not weight_slots(dtype) else 0
    found += SUBS * columns * rows * FRACTAL * 4
    for extra in attention.chain.extras:
        width = DTYPES[extra.value.dtype].itemsize
        keys = schedule.tile * SIDE
        masks = MASK_SLOTS * slot_bytes(schedule, width)
        found += masks if extra.whole else keys * (width + BLOCK_BYTES)
    if attention.band is not None and not weight_slots(dtype):
        found += slot_bytes(schedule, item)
    found += BLOCK_BYTES * len(attention.chain.numbers)
    found += PIECE_SLOTS * schedule.piece * columns * FRACTAL * 4
    found += leaving_bytes(attention, schedule) if not weight_slots(dtype) else 0
    # Maxima, factors and what they are spread to, one over the sums.
    small = SUBS * rows + 2 * CHUNKS_AT_ONCE * schedule.chunk
    found += small * COPIES * REPEAT_BYTES + REPEAT_BYTES
    found += (schedule.ring * SUBS) * rows * SIDE * 4 + 2 * rows * SIDE * BLOCK_BYTES
    return found


def bounds_apart(attention: Attention, schedule: SplitAttentionSchedule, machine: Machine) -> bool:
    """Whether bounds of scores that a band hides have a buffer of their own; else those of f32 come
    piece by piece where weights leave from."""
    dtype = attention.chain.scores.dtype
    size = slot_bytes(schedule, DTYPES[dtype].itemsize)
    room = machine.buffer("UB").bytes - ub_bytes(attention, schedule)
    return not weight_slots(dtype) or size <= room


def score_slots(dtype: str) -> int:
    """Buffers of scores; those of f16 leave as weights from where they came to."""
    return SCORE_SLOTS + (dtype == "f16")


def weight_slots(dtype: str) -> int:
    """Buffers of weights."""
    return SCORE_SLOTS if dtype == "f32" else 0


def slot_bytes(schedule: SplitAttentionSchedule, itemsize: int) -> int:
    """Bytes of the scores of a chunk."""
    return schedule.chunk * schedule.tile * FRACTAL * itemsize


def scratch_bytes(schedule: SplitAttentionSchedule, itemsize: int) -> int:
    """Bytes of the buffer in which maxima are looked for."""
    return schedule.chunk * kept(schedule.tile * SIDE) * SIDE * itemsize


def leaving_bytes(attention: Attention, schedule: SplitAttentionSchedule) -> int:
    """Bytes of the rows of a quarter of O on their way out."""
    return schedule.rows * SIDE * attention.columns * attention.o.itemsize


def shared_bytes(attention: Attention, schedule: SplitAttentionSchedule, dtype: str) -> int:
    """Bytes of a buffer that weights, scratch for maxima and O on its way out take in turns."""
    weights = schedule.chunk * schedule.tile * FRACTAL_BYTES
    return max(
        weights, scratch_bytes(schedule, DTYPES[dtype].itemsize), leaving_bytes(attention, schedule)
    )


def fits(attention: Attention, schedule: SplitAttentionSchedule, machine: Machine) -> bool:
    """Whether the memories of both kinds of cores have room."""
    sizes, rows = attention.fractals, schedule.rows
    columns, part = sizes.columns + 1, schedule.part
    l1 = QUARTERS * rows * sizes.depth + schedule.tile * (sizes.depth + sizes.columns)
    l1 += P_SLOTS * LANES * rows * part + part
    bytes_of = {
        "L1": l1 * FRACTAL_BYTES,
        "L0A": (part * sizes.depth + LANES * rows * part) * FRACTAL_BYTES,
        "L0B": (L0_SLOTS * rows * sizes.depth + part * columns) * FRACTAL_BYTES,
        "L0C": L0C_SLOTS[0] * scores_l0c_bytes(schedule) + sums_l0c_bytes(attention, schedule),
        "UB": ub_bytes(attention, schedule),
    }
    return all(size <= machine.buffer(name).bytes for name, size in bytes_of.items())


def scores_l0c_bytes(schedule: SplitAttentionSchedule) -> int:
    """Bytes of L0C that the scores of a product take."""
    return schedule.rows * schedule.part * FRACTAL * 4


def sums_l0c_bytes(attention: Attention, schedule: SplitAttentionSchedule) -> int:
    """Bytes of L0C that products with V take."""
    return LANES * schedule.rows * (attention.fractals.columns + 1) * FRACTAL * 4


def l0c_slots(attention: Attention, schedule: SplitAttentionSchedule, machine: Machine) -> int:
    """Buffers of scores in L0C: as many as there is room for, so that mads go on while others
    leave it. Each is used as often in a step, so that none is used twice in a row from one step to
    the next."""
    room = machine.buffer("L0C").bytes - sums_l0c_bytes(attention, schedule)
    least, most = L0C_SLOTS
    counts = range(min(most, room // scores_l0c_bytes(schedule)), least, -1)
    even = (count for count in counts if QUARTERS * schedule.parts % count == 0)
    return next(even, least)


@dataclass(frozen=True)
class Factors:
    """Buffers in L0A and L0B for tiles of K, of P and of V."""

    k: int
    p: int
    v: int


def factor_slots(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> Factors:
    """Two buffers of each factor where there is room, so that one comes while another is used."""
    sizes, rows, part = attention.fractals, schedule.rows, schedule.part
    bytes_k, bytes_p, bytes_v, bytes_q = (
        fractals * FRACTAL_BYTES
        for fractals in (
            part * sizes.depth,
            LANES * rows * part,
            part * (sizes.columns + 1),
            L0_SLOTS * rows * sizes.depth,
        )
    )
    l0a, l0b = (machine.buffer(name).bytes for name in ("L0A", "L0B"))
    pairs = ((2, 2), (1, 2), (2, 1), (1, 1))
    k, p = next((k, p) for k, p in pairs if k * bytes_k + p * bytes_p <= l0a)
    return Factors(k, p, 2 if 2 * bytes_v + bytes_q <= l0b else 1)


def candidates(attention: Attention, machine: Machine) -> Iterator[SplitAttentionSchedule]:
    """Schedules that may be good and fit the memories."""
    sizes = attention.fractals
    for rows in range(1, min(MOST_ROWS, ceil_div(sizes.rows, QUARTERS)) + 1):
        for part in PARTS:
            most = min(MOST_PARTS, ceil_div(sizes.keys, part))
            for parts in range(1, most + 1):
                for chunk in range(rows, 0, -1):
                    made = [
                        SplitAttentionSchedule(rows, part, parts, chunk, piece, ahead)
                        for ahead in range(1, MOST_AHEAD + 1)
                        for piece in range(rows, 0, -1)
                    ]
                    fitting = [each for each in made if fits(attention, each, machine)]
                    best = {
                        (each.ahead, bounds_apart(attention, each, machine)): each
                        for each in reversed(fitting)
                    }
                    yield from best.values()


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


def chunks(schedule: SplitAttentionSchedule) -> tuple[int, ...]:
    """Fractals of rows of the chunks of a quarter."""
    whole, rest = divmod(schedule.rows, schedule.chunk)
    return (schedule.chunk,) * whole + (rest,) * bool(rest)


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
    sizes, dtype = attention.fractals, attention.chain.scores.dtype
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


def in_place(attention: Attention) -> bool:
    """Whether the steps of the chain are done to scores one by one: else they are one factor."""
    return bool(attention.chain.extras) or not all(map(is_linear, attention.chain.steps))


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
    dtype = attention.chain.scores.dtype
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
