"""The largest score of every row: keys are combined until one is left.

scores  [rows][keys][16]     slices of the keys, a power of two, into scratch
scratch [rows][kept][16]     halves or neighbours, whichever takes less, from buffer to buffer
result  [rows][copies][16]   the last two; a repeat of copies where a key is several blocks
"""

from __future__ import annotations

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.schedule.vector_steps import RESULT, SOURCE, Step, Steps, View, cost_of
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

EVEN, ODD = "even", "odd"
"""Scratch buffers."""

MAXIMUM = "vmax"

WORTH = 48
"""Repeats that make up for an instruction and a barrier."""


def kept(keys: int, slices: int) -> int:
    """Keys of a slice: the largest power of two of which about `slices` are all keys.

    >>> kept(208, 2), kept(512, 4), kept(16, 8)
    (64, 128, 2)
    """
    size = 2
    while 2 * size * slices <= keys:
        size *= 2
    return size


def result_lanes(dtype: str) -> int:
    """Elements of the result for a row of fractals: what every repeat of scores is combined with.

    A key of f16 is a block, which an instruction can read eight times.
    """
    return SIDE if block_lanes(dtype) == SIDE else REPEAT_BYTES // DTYPES[dtype].itemsize


def scratch_lanes(rows: int, keys: int, slices: int) -> int:
    """Elements of both scratch buffers."""
    size = kept(keys, slices)
    return rows * (size + size // 2) * SIDE


def fold(rows: int, keys: int, slices: int, dtype: str, machine: Machine) -> Steps:
    """The steps.

    Args:
        rows: fractals.
        keys: at least 4.
        slices: about as many as the keys are cut in first.
    """
    size = kept(keys, slices)
    steps: list[Step] = []
    pitches = {SOURCE: keys, EVEN: size}

    def part(name: str, first: int, count: int) -> View:
        return View(name, (rows, count * SIDE), (pitches[name] * SIDE, 1), first * SIDE)

    def combine(a: View, b: View, result: View) -> None:
        steps.append(Step(MAXIMUM, (a, b, result)))

    first = part(EVEN, 0, size)
    shift = REPEAT_BYTES // DTYPES[dtype].itemsize // SIDE
    if rows * size // shift > WORTH:
        # A repeat further the second slice lies in the other half of the bank groups.
        combine(part(SOURCE, 0, size), part(SOURCE, size - shift, size), first)
        left = part(EVEN, 0, shift)
        combine(left, part(SOURCE, 2 * size - shift, shift), left)
    else:
        combine(part(SOURCE, 0, size), part(SOURCE, min(size, keys - size), size), first)
    for start in range(2 * size, keys, size):
        combine(first, part(SOURCE, min(start, keys - size), size), first)
    name, other = EVEN, ODD
    while size > 2:
        size //= 2
        pitches[other] = size
        halves = Step(MAXIMUM, (part(name, 0, size), part(name, size, size), part(other, 0, size)))
        ways = [halves, neighbours(name, other, rows * size, dtype)]
        steps.append(min(ways, key=lambda step: cost_of(step, dtype, machine)[1]))
        pitches[name], name, other = size, other, name
    steps.append(spread(name, rows, dtype))
    lanes = scratch_lanes(rows, keys, slices) * 2 // 3
    return Steps(dtype, tuple(steps), {EVEN: lanes, ODD: lanes // 2})


def block_lanes(dtype: str) -> int:
    return BLOCK_BYTES // DTYPES[dtype].itemsize


def neighbours(source: str, result: str, keys: int, dtype: str) -> Step:
    """Keys 0, 2, 4, .. with keys 1, 3, 5, ..; `keys` are left."""
    lanes = block_lanes(dtype)
    shape = (SIDE // lanes, keys, lanes)
    pair = (lanes, 2 * SIDE, 1)
    a, b = View(source, shape, pair), View(source, shape, pair, SIDE)
    return Step(MAXIMUM, (a, b, View(result, shape, (lanes, SIDE, 1))))


def spread(source: str, rows: int, dtype: str) -> Step:
    """The larger of two keys to all of its copies."""
    lanes, room = block_lanes(dtype), result_lanes(dtype)
    shape = (SIDE // lanes, rows, room // SIDE, lanes)
    pair = (lanes, 2 * SIDE, 0, 1)
    a, b = View(source, shape, pair), View(source, shape, pair, SIDE)
    return Step(MAXIMUM, (a, b, View(RESULT, shape, (lanes, room, SIDE, 1))))


def less_highest(row: int, keys: int, dtype: str) -> Step:
    """Scores of 16 rows, in `SOURCE`, less the highest, in `RESULT`."""
    lanes = result_lanes(dtype)
    shape = (keys * SIDE // lanes, lanes)
    scores = View(SOURCE, shape, (lanes, 1), row * keys * SIDE)
    return Step("vsub", (scores, View(RESULT, shape, (0, 1), row * lanes), scores))
