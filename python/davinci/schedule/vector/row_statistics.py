"""Reductions of the rows of a tile to statistics, and statistics brought to where they are used.

Rows lie in UB one after the other, each of whole blocks of 32 bytes: [rows, lanes]. A **statistic**
is one value a row, in a block a row: [rows, lanes of a block], either in lane 0 ("first"; the
others hold anything that has been written) or in all lanes (spread), see `row_places`.

Folds reduce a row to a block or a repeat, see `row_steps`. Where a machine has instructions that
reduce a block to a lane and that repeat lanes over blocks (`vcgadd`, `vbrcb`), rows become lanes by
the first, 8 blocks a repeat, and these statistics by the second. Elsewhere no instruction combines
lanes of 32 bits but `vcadd`, which sums those of a repeat, 7 cycles each, and leaves the sum in
lane 0. All else, and sums of many rows, goes by transpositions that give each lane of a row a block
of its own, filled with it; these are folded as blocks are, and the result is spread. In 16 bits
lane l of 16 rows is one block; those are folded before the second transposition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from davinci.machine import Machine, prices
from davinci.operators.reduce import REDUCTIONS
from davinci.schedule.vector.row_places import RowPlaces, block_lanes, places_of, use_cycles
from davinci.schedule.vector.row_steps import DIGITS, BufferBlocks, Digits, RowSteps, SpreadWay
from davinci.schedule.vector.steps import (
    OF_BLOCKS,
    RESULT,
    ROW_SUM,
    SOURCE,
    SPREAD,
    BufferStep,
    BufferSteps,
    Estimate,
    View,
)
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS

TILE_INSTRUCTIONS = 100
"""Vector instructions of all tiles that are in UB at a time, of a softmax for example."""

KEPT = 4096
"""Answers that are kept: the groups that are weighed have few sizes of tiles between them."""


@dataclass(frozen=True)
class RowReduction:
    """A reduction of rows.

    Attributes:
        work: from the buffer `SOURCE` to the buffer `RESULT`.
        first: whether the result is valid in lane 0 only.
    """

    work: BufferSteps
    first: bool


@lru_cache(maxsize=KEPT)
def reduction(
    kind: str,
    rows: int,
    lanes: int,
    dtype: str,
    machine: Machine,
    *,
    places: RowPlaces | None = None,
    slices: int = 1,
    first: bool = False,
    filled: bool = False,
) -> RowReduction:
    """`kind` over the lanes of each row of [rows, lanes], or of [slices, rows, lanes] over slices
    too; the source stays as it is.

    Args:
        kind: "add", "max", "min" or "mul"; sums and products not of f16.
        lanes: of whole blocks.
        dtype: "f32", "s32" or "f16".
        places: of the result; a block a row if None.
        first: whether the result may be valid in lane 0 only (then `places` is one block a row).
        filled: whether all bytes of the result have been written before, once in the kernel; if
            not, a sum in lane 0 fills it each time.
    """
    assert lanes % block_lanes(dtype) == 0, "rows are not whole blocks"
    assert dtype != "f16" or kind in ("max", "min"), "sums of f16 accumulate in f32"
    places = places or RowPlaces(rows)
    count = lanes // block_lanes(dtype)
    source = BufferBlocks(SOURCE, slices, rows, count, count)
    found = [RowReduction(_by_lanes(RowSteps(kind, dtype, machine), source, places), first=False)]
    if spreads_lanes(machine) and dtype in machine.intrinsics.get(OF_BLOCKS.get(kind, ""), ()):
        for folds in range(count.bit_length() + 1):
            way = _by_blocks(RowSteps(kind, dtype, machine), source, places, folds)
            found += [RowReduction(way, first=False)] if way is not None else []
    if kind == "add" and dtype == "f32":
        steps = RowSteps(kind, dtype, machine)
        work = _in_lane_0(steps, source, filled) if first else _by_sums(steps, source, places)
        found.append(RowReduction(work, first))
    return min(found, key=lambda r: _weight(r.work.estimate(machine), machine))


@lru_cache(maxsize=KEPT)
def placing(dtype: str, places: RowPlaces, machine: Machine, *, first: bool) -> BufferSteps:
    """A statistic [rows, lanes of a block] in `SOURCE` to all lanes of `places` in `RESULT`.

    Args:
        first: whether it is valid in lane 0 only.
    """
    spread = RowSteps("", dtype, machine)
    spread.spread(SOURCE, block_lanes(dtype), places)
    if first:
        return spread.done()
    copied = RowSteps("", dtype, machine)
    copied.copy(places)
    return min(spread.done(), copied.done(), key=lambda w: _weight(w.estimate(machine), machine))


@lru_cache(maxsize=KEPT)
def best_places(
    rows: int,
    row_blocks: int,
    dtype: str,
    machine: Machine,
    *,
    first: bool,
    room: int,
    uses: int = 1,
    slices: int = 1,
    spare: bool = False,
) -> RowPlaces:
    """The places that take fewest cycles to fill once and to use `uses` times.

    Bytes cost cycles too, unless there are enough to `spare`: where a tile leaves less room its
    successors have fewer rows, and the instructions of a tile are issued more often
    (`TILE_INSTRUCTIONS`).

    Args:
        row_blocks: blocks of a row that the statistic is combined with.
        first: whether the statistic is in lane 0 only.
        room: bytes that they may take; one block a row is always allowed.
        slices: of the rows that have one statistic in common.
    """

    def cycles(places: RowPlaces) -> float:
        made = 0.0
        if first or places.copies > 1:
            made = _weight(placing(dtype, places, machine, first=first).estimate(machine), machine)
        taken = 0 if spare else places.blocks * BLOCK_BYTES / machine.buffers.UB.bytes
        issued = taken * TILE_INSTRUCTIONS * prices.short_vector(machine)
        return made + issued + uses * use_cycles(places, row_blocks, dtype, machine, slices)

    found = places_of(rows, row_blocks)
    return min((p for p in found if p.copies == 1 or p.blocks * BLOCK_BYTES <= room), key=cycles)


def neutral(kind: str, dtype: str) -> float:
    """The value of lanes that a reduction must not see."""
    return float(REDUCTIONS[kind].start(dtype.replace("s", "i")))


def _by_lanes(steps: RowSteps, source: BufferBlocks, places: RowPlaces) -> BufferSteps:
    """Folds to one block a row, then its lanes by transposition."""
    folded = steps.fold(source)
    digits = Digits.of(source.rows, DIGITS)
    turned = steps.turn(folded.buffer, folded.offset, folded.row_stride, digits)
    if steps.words == 1:
        steps.place(steps.fold(turned), SpreadWay.of(places, DIGITS), places)
    else:
        spread = steps.spread_lanes(turned, source.rows, digits)
        steps.combine_last(steps.fold(spread, least=2), places)
    return steps.done()


def spreads_lanes(machine: Machine) -> bool:
    """Whether an instruction repeats lanes over blocks, so that no statistic is in lane 0 only."""
    return {"b16", "b32"} <= set(machine.intrinsics.get(SPREAD, ()))


def _by_blocks(
    steps: RowSteps, source: BufferBlocks, places: RowPlaces, folds: int
) -> BufferSteps | None:
    """Folds each row `folds` times, then reduces blocks to lanes until a row is one of them, and
    repeats these; None if blocks do not lie so that they can be reduced."""
    least = source.count
    for _ in range(folds):
        least = -(-least // 2)
    found: BufferBlocks | None = steps.fold(source, least)
    reduced = None
    while found is not None and reduced is None:
        if found.count == 1:
            reduced = steps.reduce_blocks(found)
            break
        found = steps.reduce_blocks(found) or steps.fold(found, -(-found.count // 2))
    if reduced is None:
        return None
    steps.repeat_lanes(reduced.buffer, source.rows, places)
    return steps.done()


def _by_sums(steps: RowSteps, source: BufferBlocks, places: RowPlaces) -> BufferSteps:
    """Sums of lanes to a buffer that folds have written, and on to their places."""
    folded, size = steps.fold(source, REPEAT_BLOCKS), source.rows * steps.lanes
    buffer = steps.other(folded.buffer)
    if steps.written.get(buffer, 0) < size:
        buffer = _filled(steps, steps.buffer("first", size), size)
    _sum_lanes(steps, folded, buffer)
    steps.spread(buffer, steps.lanes, places)
    return steps.done()


def _in_lane_0(steps: RowSteps, source: BufferBlocks, filled: bool) -> BufferSteps:
    """Sums of lanes to lane 0 of the result."""
    if not filled:
        _filled(steps, RESULT, source.rows * steps.lanes)
    _sum_lanes(steps, steps.fold(source, REPEAT_BLOCKS), RESULT)
    return steps.done()


def _filled(steps: RowSteps, buffer: str, size: int) -> str:
    steps.steps.append(BufferStep("vector_dup", (View(buffer, (size,), (1,)),), 0.0))
    return buffer


def _sum_lanes(steps: RowSteps, rows: BufferBlocks, buffer: str) -> None:
    """The sum of at most a repeat a row to lane 0 of a block."""
    source = View(
        rows.buffer,
        (rows.rows, rows.count * steps.lanes),
        (rows.row_stride * steps.lanes, 1),
        rows.offset * steps.lanes,
    )
    steps.steps.append(BufferStep(ROW_SUM, (source, View(buffer, (rows.rows,), (steps.lanes,)))))


def _weight(estimate: Estimate, machine: Machine) -> float:
    """Cycles, and for each link half a barrier: the other half other tiles fill."""
    return estimate.cycles + estimate.links * machine.sync.barrier_cycles / 2
