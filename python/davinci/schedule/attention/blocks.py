"""Softmax by blocks of keys: what is kept of the blocks before, and how the next one is taken in.

    all at once    m = max(x)                    o = sum exp(x - m) v             l = sum exp(x - m)
    by blocks      m' = max(m, max(x of it))     o' = o exp(m - m') + sum exp(x - m') v of it
                   with l' as o', of v = 1; at first m is the lowest number, o and l are 0

Both end with o / l, which is the same: every block's weights are multiplied by exp(m - m') for all
that follow, which is exp(m - last m) in the end.

`exp(m - m')` is a number for each of 16 lanes of a row of fractals, and O has the rows of those one
after the other, so it is spread to a block a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.schedule.attention.fold import MAXIMUM, result_lanes
from davinci.schedule.vector.row_packing import unpacking
from davinci.schedule.vector.steps import BufferStep, BufferSteps, View, copy_of
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

HIGHEST, BEFORE, FACTOR, SPREAD, KEPT, PART = (
    "highest",
    "before",
    "factor",
    "spread",
    "kept",
    "part",
)
"""Buffers: the highest score of this block, then of all so far; that of the blocks before;
exp(m - m') a row, and in a block a row; O so far; that of this block."""

LOWEST = {"f16": -65504.0, "f32": -3.4028234663852886e38}
"""What the maximum begins with."""


@dataclass(frozen=True)
class TakenSteps:
    """Steps that take in a block.

    Attributes:
        maxima: on buffers of the type of scores, before its weights are computed.
        spread: the factors of rows, f32, from `SOURCE` to `RESULT`.
        sums: on f32, after its part of O.
    """

    maxima: BufferSteps
    spread: BufferSteps
    sums: BufferSteps


def taking(rows: int, columns: int, dtype: str, machine: Machine) -> TakenSteps:
    """The steps.

    Args:
        rows: fractals.
        columns: fractals of O, the sums among them.
        dtype: of scores.
    """
    lanes = result_lanes(dtype)
    whole = View(HIGHEST, (rows * lanes,), (1,))
    before = View(BEFORE, (rows * lanes,), (1,))
    shape = (rows, SIDE)
    old, new = (View(name, shape, (lanes, 1)) for name in (BEFORE, HIGHEST))
    factor = View(FACTOR, shape, (SIDE, 1))
    maxima = (
        BufferStep(MAXIMUM, (before, whole, whole)),
        BufferStep("vsub", (old, new, factor)),
        BufferStep("vexp", (factor, factor)),
        copy_of(whole, before, dtype),
    )
    spread = unpacking("f32", rows * SIDE, SIDE, machine)
    block = BLOCK_BYTES // DTYPES["f32"].itemsize
    size = columns * rows * SIDE * SIDE
    wide = (columns, rows * SIDE, SIDE // block, block)
    kept = View(KEPT, wide, (rows * SIDE * SIDE, SIDE, block, 1))
    factors = View(SPREAD, wide, (0, block, 0, 1))
    flat, part = View(KEPT, (size,), (1,)), View(PART, (size,), (1,))
    sums = BufferStep("vmul", (kept, factors, kept)), BufferStep("vadd", (flat, part, flat))
    return TakenSteps(BufferSteps(dtype, maxima, {}), spread, BufferSteps("f32", sums, {}))
