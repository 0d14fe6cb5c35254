"""Bytes of each memory that a schedule of attention takes."""

from __future__ import annotations

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.schedule.attention.attention import STAGES, Attention, AttentionSchedule
from davinci.schedule.attention.cost import (
    FRACTAL,
    column_bytes,
    column_slots,
    exit_bytes,
    pieces_of,
    query_bytes,
    shared_bytes,
    spread_cost,
    staged_bytes,
)
from davinci.schedule.attention.dense import dense_buffers
from davinci.schedule.attention.fold import result_lanes
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


def holds_factors(attention: Attention, schedule: AttentionSchedule, machine: Machine) -> bool:
    """Whether L1, L0A and L0B have room for what both products read, however UB is shared out."""
    l0a, l0b = _factors(attention, schedule)
    return (
        l0a <= machine.buffer("L0A").bytes
        and l0b <= machine.buffer("L0B").bytes
        and _l1_bytes(attention, schedule) <= machine.buffer("L1").bytes
    )


def _l1_bytes(attention: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of L1 for what the cube reads: pieces of Q, K and V, weights, and the factors of the
    products that add masks and maxima to scores."""
    rows, block, twice = schedule.rows, schedule.block, schedule.twice
    l1 = sum(p.fractals * p.slots for p in pieces_of(attention, schedule).values())
    l1 += schedule.p_slots * rows * block + twice * STAGES * rows
    l1 += max(schedule.tile, rows)
    if _has_columns(attention, schedule):
        l1 += block * column_slots(attention)
    return l1 * FRACTAL_BYTES


def ub_bytes(attention: Attention, schedule: AttentionSchedule, machine: Machine) -> int:
    """Bytes of UB."""
    sizes, rows, tile = attention.fractals, schedule.rows, schedule.tile
    chain, block = attention.chain, schedule.block
    item, twice = schedule.itemsize(attention), schedule.twice
    lanes = result_lanes(schedule.dtype(attention))
    parts = sum(dense_buffers(attention, pieces_of(attention, schedule), rows).values())
    if schedule.together:
        return _together_bytes(attention, schedule) + parts
    ub = parts + schedule.scores * rows * block * FRACTAL * item
    ub += sum(shared_bytes(attention, schedule))
    ub += rows * lanes * item
    if item == 2:
        ub += (STAGES * rows if twice else rows * tile) * FRACTAL_BYTES
    ub += exit_bytes(attention, schedule) + query_bytes(attention, schedule)
    ub += STAGES * sum(staged_bytes(attention, schedule))
    if schedule.blocks(attention) > 1:
        ub += rows * ((sizes.columns + 1) * FRACTAL * 4 + lanes * item)
        ub += rows * SIDE * (item + 4 + BLOCK_BYTES)
        ub += spread_cost("f32", rows * SIDE, machine)[0]
    ub += attention.whole_masks * STAGES * rows * tile * FRACTAL * item
    columns = _has_columns(attention, schedule)
    if columns:
        ub += column_bytes(attention, schedule)
    for extra in chain.extras:
        if extra.whole or columns:
            continue
        ub += block * SIDE * (BLOCK_BYTES + DTYPES[extra.value.dtype].itemsize)
        ub += spread_cost(extra.value.dtype, block * SIDE, machine)[0]
    return ub + (len(chain.numbers) + 2 * attention.guarded) * BLOCK_BYTES


def _has_columns(attention: Attention, schedule: AttentionSchedule) -> bool:
    """Whether a mask of keys is a column beside K, which a product adds."""
    return schedule.twice and bool(attention.chain.extras)


def _factors(attention: Attention, schedule: AttentionSchedule) -> tuple[int, int]:
    """Bytes of L0A and L0B."""
    sizes, rows, tile, twice = attention.fractals, schedule.rows, schedule.tile, schedule.twice
    columns = _has_columns(attention, schedule)
    l0a = schedule.l0a[0] * tile * sizes.depth + schedule.l0a[1] * tile * rows
    l0a += (twice + columns * STAGES) * tile
    l0b = schedule.l0b[0] * rows * sizes.depth + schedule.l0b[1] * tile * sizes.columns
    l0b += max(tile, rows) + twice * STAGES * rows
    return l0a * FRACTAL_BYTES, l0b * FRACTAL_BYTES


def sum_bytes(attention: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of L0C: of scores and of sums of O."""
    scores = schedule.l0c * schedule.scored * schedule.tile * attention.chain.itemsize
    of_o = schedule.sums * schedule.rows * (attention.fractals.columns + 1) * 4
    return (scores + of_o) * FRACTAL


def _together_bytes(attention: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of UB where the maxima of a line are looked for together: Q is gone before the last
    tiles of scores are there, O comes when the first ones are gone."""
    item, tile = schedule.itemsize(attention), schedule.tile * schedule.scored * FRACTAL
    scores = schedule.scored * schedule.block * FRACTAL * item
    half = (schedule.l0c // 2) * tile * item
    over = max(0, exit_bytes(attention, schedule) - half)
    over += max(0, query_bytes(attention, schedule) - tile * item)
    maxima = sum(shared_bytes(attention, schedule))
    return scores + maxima + over + STAGES * sum(staged_bytes(attention, schedule))
