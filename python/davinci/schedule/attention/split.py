"""Attention on a machine whose cube and vector cores run programs of their own.

A block of the launch is a cube core and its two vector cores. It takes units, each `subs` times as
many rows of one matrix as its vector cores take at once, and all keys in tiles:

    cube core      S^T = K Q^T of a tile, as fractals [rows / 16][keys][16]      -> ring in GM
    vector cores   P^T = exp(factor * (S^T - maximum)), as fractals of f16       -> the same or
                                                                                    another ring
    cube core      P V, and the sums of P by a column of ones beside V, in f32   -> ring in GM
    vector cores   O = O * exp(change of the maximum) + P V; behind the last tile O / sums

In fractals a maximum over keys is a maximum of blocks, and weights come back to the cube core by
plain copies. Scores are some tiles ahead of the products with V, so that neither kind of core waits
for the other. A tile of a unit is a step; steps of all units of a block follow each other, and step
n has place n mod (ahead + 1) of each ring. A place is free when it is written again, because the
cores that read it have sent what they made of it, for which the writer has waited.

Rows of a unit are in quarters: those of vector core 0 and of vector core 1, and again, or not where
more units of half as many rows are done sooner. Q, K, V and O lie in rows or in fractals, each as
it is made or needed.

Matrices of few rows, as the heads of a decode step that share keys, have units of one or two
quarters: with one, vector core 1 answers flags, and brings K and V to the L2 ahead of the cube
core. Where there are fewer of them than blocks, or blocks would have different numbers of them, a
unit has a share of the keys; at the end all vector cores meet and put shares together. Sizes of a
schedule are fractals of 16.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.machine.views import VECTOR_CORE
from davinci.schedule.attention.attention import MOST_PIXELS, Attention
from davinci.schedule.attention.fold import COPIES, kept
from davinci.schedule.attention.steps import is_linear
from davinci.schedule.plain_data import CONFIG
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, REPEAT_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

FRACTAL = SIDE * SIDE

LANES = 2
"""Vector cores of a block."""

QUARTERS = ((2, 2), (2, 1), (1, 1))
"""Vector cores that have rows of a unit, and how many times as many as they take at once it has."""

P_SLOTS, SCORE_SLOTS, PIECE_SLOTS = 2, 2, 2
"""Buffers: of P in L1; of scores in UB, besides one more where weights leave from them; of pieces
of P V in UB."""

L0C_SLOTS = (2, 4)
"""The fewest buffers of scores in L0C, and the most."""

SHARED_NUMBERS = 3
"""Numbers of a row for each share while these are put together, at most."""

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
        rounded: whether scores of f32 are rounded to f16 when they leave the cube core, see
            `may_round`.
        lanes: vector cores that have rows.
        subs: how many times as many rows as these take at once a unit has.
        windows: whether K comes to L1 in rows, of which loads of windows make fractals.
        shares: units among which the tiles of a matrix are shared, each as many.
    """

    __pydantic_config__ = CONFIG

    rows: int
    part: int
    parts: int
    chunk: int
    piece: int
    ahead: int
    rounded: bool = False
    lanes: int = LANES
    subs: int = 2
    windows: bool = False
    shares: int = 1

    def dtype(self, attention: Attention) -> str:
        """The type of scores that the vector cores read."""
        return "f16" if self.rounded else attention.chain.scores.dtype

    @property
    def tile(self) -> int:
        """Keys of a tile."""
        return self.part * self.parts

    @property
    def ring(self) -> int:
        """Places of a ring."""
        return self.ahead + 1

    @property
    def quarters(self) -> int:
        """Quarters that a unit has."""
        return self.lanes * self.subs

    @property
    def unit_rows(self) -> int:
        return self.quarters * self.rows

    def tiles(self, attention: Attention) -> int:
        return ceil_div(attention.fractals.keys, self.tile)

    def blocks_of_rows(self, attention: Attention) -> int:
        """Units of a matrix."""
        return ceil_div(attention.fractals.rows, self.unit_rows)

    def units(self, attention: Attention) -> int:
        return attention.batch * self.blocks_of_rows(attention) * self.shares

    def __str__(self) -> str:
        return (
            f"cube and vector cores, units of {self.unit_rows * SIDE} rows, tiles of "
            f"{self.tile * SIDE} keys by {self.part * SIDE}, {self.ahead} ahead"
            f"{f', in {self.shares} shares' if self.shares > 1 else ''}"
        )


def may_round(attention: Attention) -> bool:
    """Whether scores of f32 may be rounded to f16 before anything is done to them: those that are
    only scaled, of a result that is f16 itself.

    Q and K are f16: a score s, the sum of q k, is known to 2^-11 of the sum of |q k| if either was
    rounded, and rounding it misses at most 2^-11 |s|, which is no more. A weight misses as much of
    itself, with s times the scale: 0.5 % at most where that is 10, and what scores miss averages
    out over the keys. Scores beyond 65,504 are infinite and reported as what leaves f16.
    """
    narrow = attention.chain.scores.dtype == "f32" and attention.o.itemsize == 2
    return narrow and not in_place(attention)


def long_rows(attention: Attention, part: int) -> bool:
    """Whether neighbouring rows of K and V, as many as a part has fractals of keys, come to L1 as
    one long row, which changes the order of the keys in a part: nothing may ask for that. The keys
    of a mask that is known are put in that order when a kernel is made, if all parts are whole."""
    if part == 1 or attention.k.nz or attention.v.nz:
        return False
    whole = attention.keys % (part * SIDE) == 0
    return not attention.chain.extras and (attention.band is None or whole)


def weights_in_place(attention: Attention, schedule: SplitAttentionSchedule) -> bool:
    """Whether weights take the places of their scores in the ring, which are as long: a vector core
    has read what it makes weights of, and the cube core has sent products with these before it
    writes scores of a later step there. Half the lines are new to the L2, which gives what others
    left in it to the memory for each of them."""
    return schedule.dtype(attention) == "f16"


def require_split(attention: Attention, machine: Machine) -> None:
    """Fails unless cube and vector cores can share the attention.

    Raises:
        NoSpace: they cannot, and why.
    """
    plain = not (attention.q.k_rows or attention.k.k_rows) and attention.v.k_rows
    operands = (attention.q, attention.k, attention.v)
    if machine.core_types[VECTOR_CORE].count != LANES:
        raise NoSpace("a cube core without two vector cores")
    if not plain or any(each.itemsize != 2 for each in operands):
        raise NoSpace("factors that are no matrices of f16")
    of_depth, of_columns = attention.q.nz and attention.k.nz, attention.v.nz and attention.o.nz
    if (attention.depth % SIDE and not of_depth) or (attention.columns % SIDE and not of_columns):
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
    dtype = schedule.dtype(attention)
    item = DTYPES[dtype].itemsize
    rows, columns = schedule.rows, attention.fractals.columns + 1
    found = score_slots(dtype) * slot_bytes(schedule, item)
    first = scratch_bytes(schedule, item)
    found += weight_slots(dtype) * shared_bytes(attention, schedule, dtype)
    found += first if not weight_slots(dtype) else 0
    found += schedule.subs * columns * rows * FRACTAL * 4
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
    small = schedule.subs * rows + 2 * CHUNKS_AT_ONCE * schedule.chunk
    found += small * COPIES * REPEAT_BYTES + REPEAT_BYTES
    found += (schedule.ring * schedule.subs) * rows * SIDE * 4 + 2 * rows * SIDE * BLOCK_BYTES
    if schedule.shares > 1:
        found += SHARED_NUMBERS * schedule.shares * SIDE * 4
    return found


def bounds_apart(attention: Attention, schedule: SplitAttentionSchedule, machine: Machine) -> bool:
    """Whether bounds of scores that a band hides have a buffer of their own; else those of f32 come
    piece by piece where weights leave from."""
    dtype = schedule.dtype(attention)
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
    return schedule.rows * attention.fractals.columns * FRACTAL * attention.o.itemsize


def shared_bytes(attention: Attention, schedule: SplitAttentionSchedule, dtype: str) -> int:
    """Bytes of a buffer that weights, scratch for maxima and O on its way out take in turns."""
    weights = schedule.chunk * schedule.tile * FRACTAL_BYTES
    return max(
        weights, scratch_bytes(schedule, DTYPES[dtype].itemsize), leaving_bytes(attention, schedule)
    )


def fits(attention: Attention, schedule: SplitAttentionSchedule, machine: Machine) -> bool:
    """Whether the memories of both kinds of cores have room."""
    sizes, rows, part = attention.fractals, schedule.rows, schedule.part
    l1 = schedule.quarters * rows * sizes.depth + schedule.tile * (sizes.depth + sizes.columns)
    l1 += P_SLOTS * schedule.lanes * rows * part + part
    if l1 * FRACTAL_BYTES > machine.buffer("L1").bytes:
        return False
    if ub_bytes(attention, schedule) > machine.buffer("UB").bytes:
        return False
    left, right = (
        {cuts for _, _, cuts in ways(attention, schedule, machine)}
        for ways in (ways_of_left_factors, ways_of_right_factors)
    )
    return bool(ways_of_scores(attention, schedule, machine) and left & right)


@dataclass(frozen=True)
class ScoreSlots:
    """Buffers of scores in L0C.

    Attributes:
        cuts: how many of them the keys of a part take.
    """

    cuts: int
    count: int


MOST_CUTS = 2
"""In how many pieces the keys of a part are cut at most."""


def cuts_of(schedule: SplitAttentionSchedule) -> list[int]:
    return [cuts for cuts in range(1, MOST_CUTS + 1) if schedule.part % cuts == 0]


def ways_of_scores(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> list[ScoreSlots]:
    """Buffers of scores in L0C, the best first: as many as there is room for, so that mads go on
    while others leave it. None is used twice in a row from one step to the next."""
    wide = (attention.fractals.columns + 1) * schedule.lanes * schedule.rows * FRACTAL * 4
    room, (least, most) = machine.buffer("L0C").bytes - wide, L0C_SLOTS
    found: list[ScoreSlots] = []
    for cuts in cuts_of(schedule):
        size = schedule.rows * schedule.part * FRACTAL * 4 // cuts
        products = schedule.quarters * schedule.parts * cuts
        found += [
            ScoreSlots(cuts, count)
            for count in range(min(most, room // size), least - 1, -1)
            if products % count != 1
        ]
    return sorted(found, key=lambda slots: -slots.count)


@dataclass(frozen=True)
class FactorBuffers:
    """Buffers in L0A for tiles of K and P, and in L0B for those of Q and V.

    Attributes:
        cuts: products with V that the keys of a part take; P and V of one are a tile.
    """

    k: int
    p: int
    q: int
    v: int
    cuts: int


PAIRS = ((2, 2), (1, 2), (2, 1), (1, 1))
"""Buffers of K or Q, and of P or V, the best first."""


def ways_of_factors(
    schedule: SplitAttentionSchedule, room: int, whole: int, cut: int
) -> list[tuple[int, int, int]]:
    """Buffers of two factors in one memory, and in how many pieces the keys of the second are cut.

    Args:
        room: bytes of the memory.
        whole, cut: fractals of a buffer of the first factor, and of the second with all its keys.
    """
    return [
        (*pair, cuts)
        for cuts in cuts_of(schedule)
        for pair in PAIRS
        if pair[0] * whole + pair[1] * cut // cuts <= room // FRACTAL_BYTES
    ]


def ways_of_left_factors(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> list[tuple[int, int, int]]:
    """Buffers of K and of P in L0A, and in how many pieces the keys of P are cut."""
    k = schedule.part * attention.fractals.depth
    p = schedule.lanes * schedule.rows * schedule.part
    return ways_of_factors(schedule, machine.buffer("L0A").bytes, k, p)


def ways_of_right_factors(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> list[tuple[int, int, int]]:
    """Buffers of Q and of V and ones in L0B, and in how many pieces the keys of V are cut."""
    q = schedule.rows * attention.fractals.depth
    v = schedule.part * (attention.fractals.columns + 1)
    return ways_of_factors(schedule, machine.buffer("L0B").bytes, q, v)


def factor_slots(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> FactorBuffers:
    """Two buffers of P and of V where there is room, so that one comes while another is used, and
    then of K and Q; the keys of a part are cut in halves where these then have two buffers and
    whole ones have not."""
    left = ways_of_left_factors(attention, schedule, machine)
    right = ways_of_right_factors(attention, schedule, machine)
    ways = [
        FactorBuffers(k, p, q, v, cuts)
        for k, p, cuts in left
        for q, v, other in right
        if cuts == other
    ]
    return max(ways, key=lambda way: (min(way.p, way.v), way.v, -way.cuts, way.q + way.k))


def candidates(attention: Attention, machine: Machine) -> Iterator[SplitAttentionSchedule]:
    """Schedules that may be good and fit the memories."""
    for lanes, subs in ways_of_rows(attention.fractals.rows):
        yield from with_quarters(attention, lanes, subs, machine)


def ways_of_rows(rows: int) -> list[tuple[int, int]]:
    """Ways to cut units of matrices of so many fractals of rows in quarters: in as few as these
    need, and, where that is all of them, in half as many, so that there are more units.

    >>> ways_of_rows(1), ways_of_rows(2), ways_of_rows(4)
    ([(1, 1)], [(2, 1)], [(2, 2), (2, 1)])
    """
    enough = [way for way in QUARTERS if math.prod(way) >= rows]
    return enough[-1:] if len(enough) > 1 else list(QUARTERS[:2])


def with_quarters(
    attention: Attention, lanes: int, subs: int, machine: Machine
) -> Iterator[SplitAttentionSchedule]:
    """Schedules whose units are cut in quarters in one way. K may come in rows where it comes once,
    so that the first has no misses to wait for, unless several rows come as one."""
    sizes = attention.fractals
    once = lanes * subs == 1 and sizes.depth <= MOST_PIXELS and not attention.k.nz
    joined = {part for part in PARTS if long_rows(attention, part)}
    for rows in range(1, min(MOST_ROWS, ceil_div(sizes.rows, lanes * subs)) + 1):
        for part in PARTS:
            most = min(MOST_PARTS, ceil_div(sizes.keys, part))
            for parts in range(1, most + 1):
                for chunk in range(rows, 0, -1):
                    made = [
                        SplitAttentionSchedule(
                            rows, part, parts, chunk, piece, ahead, rounded, lanes, subs, windows
                        )
                        for windows in ((False, True) if once and part not in joined else (False,))
                        for rounded in ((False, True) if may_round(attention) else (False,))
                        for ahead in range(1, MOST_AHEAD + 1)
                        for piece in range(rows, 0, -1)
                    ]
                    fitting = [each for each in made if fits(attention, each, machine)]
                    best = {
                        (
                            each.rounded,
                            each.ahead,
                            each.windows,
                            bounds_apart(attention, each, machine),
                        ): each
                        for each in reversed(fitting)
                    }
                    for each in best.values():
                        yield from shared(attention, each, machine)


def shared(
    attention: Attention, schedule: SplitAttentionSchedule, machine: Machine
) -> Iterator[SplitAttentionSchedule]:
    """A schedule with keys of a matrix in one unit, and in several where rows are one quarter."""
    tiles = schedule.tiles(attention)
    most = tiles if schedule.quarters == 1 and attention.band is None else 1
    for shares in range(1, min(most, machine.cores) + 1):
        made = replace(schedule, shares=shares)
        if tiles % shares == 0 and ub_bytes(attention, made) <= machine.buffer("UB").bytes:
            yield made


def chunks(schedule: SplitAttentionSchedule) -> tuple[int, ...]:
    """Fractals of rows of the chunks of a quarter."""
    whole, rest = divmod(schedule.rows, schedule.chunk)
    return (schedule.chunk,) * whole + (rest,) * bool(rest)


def in_place(attention: Attention) -> bool:
    """Whether the steps of the chain are done to scores one by one: else they are one factor."""
    return bool(attention.chain.extras) or not all(map(is_linear, attention.chain.steps))
