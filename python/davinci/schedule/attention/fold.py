"""The largest score of every row: tiles of keys are combined, then keys until one is left.

scores  [rows][keys][16] a tile  the largest of all tiles, for each key of one, into scratch
scratch [rows][kept][16]         halves into another buffer, or neighbours, in place
result  [rows][copies][16]       the last two; a repeat of copies where a key is several blocks

Where a key is a block, as of f16, a maximum is read eight times in a repeat. Scores of a tile are
one run then, and maxima lie beside them, `spread`: one for each repeat, as far from each other as
repeats are, so that they are never in the bank groups of the scores that they are taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.schedule.vector.step_banks import cycles_with_banks
from davinci.schedule.vector.steps import (
    RESULT,
    SOURCE,
    BufferStep,
    BufferSteps,
    View,
    copy_of,
    cost_of,
)
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

FIRST, SECOND = "first", "second"
"""Scratch buffers."""

SPREAD_OUT = "spread_out"
"""Buffer of maxima beside a tile of scores."""

LEAST = "least"
"""Buffer of one block of the lowest number, below which no maximum may be."""

MAXIMUM = "vmax"

COPIES = 2
"""Copies of maxima, in either half of the bank groups."""


APART = 8
"""Repeats of a row that make up for an instruction in `fold_in_place`. Each is shorter by a cycle
there, so one would expect as many as an instruction takes besides them; but with so many on the
910B attention of 12 heads of 512 rows takes 5 % longer."""


def tile_name(number: int) -> str:
    """Buffer of a tile of scores."""
    return f"scores {number}"


def kept(keys: int) -> int:
    """The largest power of two below a number of keys.

    >>> kept(208), kept(512), kept(16)
    (128, 256, 8)
    """
    return 1 << (keys - 1).bit_length() - 1


def block_lanes(dtype: str) -> int:
    return BLOCK_BYTES // DTYPES[dtype].itemsize


def repeat_lanes(dtype: str) -> int:
    return REPEAT_BYTES // DTYPES[dtype].itemsize


def result_lanes(dtype: str) -> int:
    """Elements of the result for a row of fractals: what every repeat of scores is combined with.

    A key of f16 is a block, which an instruction can read eight times.
    """
    return SIDE if block_lanes(dtype) == SIDE else repeat_lanes(dtype)


def scratch_lanes(rows: int, tiles: Sequence[int], dtype: str) -> dict[str, int]:
    """Elements of the two scratch buffers of `fold`, by name, for so many rows of fractals; of
    several tiles the first has to come to the first buffer as a whole."""
    most = tiles[0] if len(tiles) > 1 else kept(tiles[0])
    in_place = most == 2 * kept(most) and block_lanes(dtype) == SIDE
    return {FIRST: rows * most * SIDE, SECOND: rows * (2 if in_place else kept(most)) * SIDE}


def fold(
    rows: int,
    tiles: Sequence[int],
    dtype: str,
    machine: Machine,
    spread: bool = False,
    bounded: bool = False,
) -> BufferSteps:
    """The steps from the buffers of tiles to `RESULT`.

    Args:
        rows: fractals.
        tiles: keys of each, whole fractals; as many as of the first, of the last at most so many.
        spread: whether to `SPREAD_OUT` instead, for tiles of the first's keys.
        bounded: whether maxima are no less than `LEAST`.
    """
    steps = gathered(rows, tiles, dtype, machine)
    name, other = (FIRST, SECOND) if steps else (tile_name(0), FIRST)
    keys = tiles[0]
    while keys > 2:
        size = kept(keys)
        in_place = keys == 2 * size and block_lanes(dtype) == SIDE
        if in_place:
            # What is written was read before.
            result = other if name == tile_name(0) else name
            if size == 2:
                # A few bytes, so that maxima may lie where there was more.
                result = SECOND
            steps.append(neighbours(name, result, rows * size, dtype))
            name = result
        else:
            ways = [halves(name, other, rows, keys)]
            if keys == 2 * size:
                ways.append(neighbours(name, other, rows * size, dtype))
            steps.append(min(ways, key=lambda step: cost_of(step, dtype, machine)[1]))
            name, other = other, SECOND if other == FIRST else FIRST
        keys = size
    if bounded:
        steps.append(no_less(name, 2 * rows * SIDE, dtype))
    steps.append(spread_out(name, rows, tiles[0], dtype) if spread else last(name, rows, dtype))
    return BufferSteps(dtype, tuple(steps), scratch_lanes(rows, tiles, dtype))


def fold_in_place(rows: int, keys: int, dtype: str) -> BufferSteps:
    """The steps from one tile in `SOURCE`, [rows][keys][16], to `RESULT`, by way of `FIRST`.

    Repeats of a half are combined with those of the other that lie in other bank groups, so that
    long ones are two instructions (`in_two`). The result is `COPIES` times
    [`result_lanes`], a repeat apart, of which either half of the bank groups has one.

    Args:
        rows: fractals.
        keys: whole fractals.
    """
    lanes, name, pitch, steps = repeat_lanes(dtype), SOURCE, keys * SIDE, []
    room = kept(keys) * SIDE
    while keys > 2:
        size = kept(keys)
        behind, width = (keys - size) * SIDE, size * SIDE
        a, b = (View(name, (rows, width), (pitch, 1), first) for first in (0, behind))
        one = BufferStep(MAXIMUM, (a, b, View(FIRST, (rows, width), (room, 1))))
        apart = width >= APART * lanes and width % (2 * lanes) == 0
        steps += in_two(one, dtype) if apart else [one]
        name, pitch, keys = FIRST, room, size
    block, copies = block_lanes(dtype), result_lanes(dtype) // SIDE
    spread = (SIDE // block, rows, COPIES, copies, block)
    a, b = (View(name, spread, (block, pitch, 0, 0, 1), first) for first in (0, SIDE))
    there = (block, COPIES * lanes, lanes, SIDE, 1)
    steps.append(BufferStep(MAXIMUM, (a, b, View(RESULT, spread, there))))
    return BufferSteps(dtype, tuple(steps), {FIRST: rows * room})


def gathered(rows: int, tiles: Sequence[int], dtype: str, machine: Machine) -> list[BufferStep]:
    """The largest score of all tiles for each key of the first, in `FIRST`; none for one tile."""
    if len(tiles) == 1:
        return []
    pitch = tiles[0] * SIDE
    size = rows * pitch

    a, b = tile_name(0), tile_name(1)

    def place(name: str, tile: int, first: int, stop: int) -> View:
        """Lanes of each row of a tile."""
        own = tiles[tile] * SIDE
        return View(name, (rows, stop - first), (own, 1), first)

    def flat(name: str) -> View:
        return View(name, (size,), (1,))

    steps: list[BufferStep] = []
    if tiles[1] < tiles[0]:
        width = tiles[1] * SIDE
        rest = place(a, 0, width, pitch)
        steps = [
            BufferStep(MAXIMUM, tuple(place(*x, 0, width) for x in ((a, 0), (b, 1), (FIRST, 0)))),
            BufferStep(MAXIMUM, (rest, rest, place(FIRST, 0, width, pitch))),
        ]
    else:
        one = BufferStep(MAXIMUM, (flat(a), flat(b), flat(FIRST)))
        steps = fastest_in_banks(one, dtype, machine)
    for tile in range(2, len(tiles)):
        if tiles[tile] == tiles[0]:
            steps.append(BufferStep(MAXIMUM, (flat(FIRST), flat(tile_name(tile)), flat(FIRST))))
        else:
            part = place(FIRST, 0, 0, tiles[tile] * SIDE)
            source = place(tile_name(tile), tile, 0, tiles[tile] * SIDE)
            steps.append(BufferStep(MAXIMUM, (part, source, part)))
    return steps


def in_two(step: BufferStep, dtype: str) -> list[BufferStep]:
    """A combination of keys, [rows][an even number of repeats], as two steps. Each combines every
    second repeat of the first source with the repeat beside it of the second one, which lies in the
    other half of the bank groups. Other pairs of keys are combined so, of which the same is left.
    """
    lanes = repeat_lanes(dtype)

    def every_second(view: View, first: int) -> View:
        *outer, width = view.shape
        shape, strides = (*outer, width // (2 * lanes), lanes), (*view.strides[:-1], 2 * lanes, 1)
        return View(view.buffer, shape, strides, view.offset + first)

    a, b, result = step.operands
    pairs = ((0, lanes), (lanes, 0))
    places = [((a, own), (b, other), (result, own)) for own, other in pairs]
    return [replace(step, operands=tuple(every_second(*x) for x in each)) for each in places]


def fastest_in_banks(step: BufferStep, dtype: str, machine: Machine) -> list[BufferStep]:
    """A combination of keys as one step or `in_two`, whichever takes less time where both sources
    begin in the same bank group."""
    if step.operands[-1].shape[-1] % (2 * repeat_lanes(dtype)):
        return [step]
    ways = [step], in_two(step, dtype)
    return min(ways, key=lambda way: sum(cycles_with_banks(x, dtype, machine) for x in way))


def halves(source: str, result: str, rows: int, keys: int) -> BufferStep:
    """The first keys with the last ones, the largest power of two of each."""
    size = kept(keys)
    shape, strides = (rows, size * SIDE), (keys * SIDE, 1)
    a, b = (View(source, shape, strides, first * SIDE) for first in (0, keys - size))
    return BufferStep(MAXIMUM, (a, b, View(result, shape, (size * SIDE, 1))))


def neighbours(source: str, result: str, keys: int, dtype: str) -> BufferStep:
    """Keys 0, 2, 4, .. with keys 1, 3, 5, ..; `keys` are left."""
    lanes = block_lanes(dtype)
    shape = (SIDE // lanes, keys, lanes)
    pair = (lanes, 2 * SIDE, 1)
    a, b = View(source, shape, pair), View(source, shape, pair, SIDE)
    return BufferStep(MAXIMUM, (a, b, View(result, shape, (lanes, SIDE, 1))))


def no_less(name: str, count: int, dtype: str) -> BufferStep:
    """The first elements of a buffer, or the lowest number where they are minus infinity."""
    lanes = block_lanes(dtype)
    values = View(name, (count // lanes, lanes), (lanes, 1))
    return BufferStep(MAXIMUM, (values, View(LEAST, values.shape, (0, 1)), values))


def last(source: str, rows: int, dtype: str) -> BufferStep:
    """The larger of two keys to all of its copies."""
    lanes, room = block_lanes(dtype), result_lanes(dtype)
    shape = (SIDE // lanes, rows, room // SIDE, lanes)
    pair = (lanes, 2 * SIDE, 0, 1)
    a, b = View(source, shape, pair), View(source, shape, pair, SIDE)
    return BufferStep(MAXIMUM, (a, b, View(RESULT, shape, (lanes, room, SIDE, 1))))


def spread_out(source: str, rows: int, keys: int, dtype: str) -> BufferStep:
    """The larger of two keys to one a repeat of a tile of so many keys."""
    lanes, repeats = repeat_lanes(dtype), keys * SIDE // repeat_lanes(dtype)
    shape = (rows, repeats, SIDE)
    a, b = (View(source, shape, (2 * SIDE, 0, 1), first) for first in (0, SIDE))
    return BufferStep(MAXIMUM, (a, b, View(SPREAD_OUT, shape, (repeats * lanes, lanes, 1))))


def spread_again(rows: int, keys: int, dtype: str) -> BufferStep:
    """The maxima of rows, in `RESULT`, to where `spread_out` has them."""
    lanes, repeats = repeat_lanes(dtype), keys * SIDE // repeat_lanes(dtype)
    shape = (rows, repeats, SIDE)
    source = View(RESULT, shape, (SIDE, 0, 1))
    return copy_of(source, View(SPREAD_OUT, shape, (repeats * lanes, lanes, 1)), dtype)


def less_highest(rows: int, keys: int, first: int, dtype: str) -> BufferStep:
    """Scores of a tile, in `SOURCE`, less the highest of their rows, in place.

    Args:
        keys, first: of this tile, and of the first.
    """
    lanes = repeat_lanes(dtype)
    run = result_lanes(dtype)
    shape = (rows, keys * SIDE // lanes, lanes // run, run)
    scores = View(SOURCE, shape, (keys * SIDE, lanes, run, 1))
    if run == SIDE:
        maxima = View(SPREAD_OUT, shape, (first * SIDE, lanes, 0, 1))
    else:
        maxima = View(RESULT, shape, (run, 0, 0, 1))
    return BufferStep("vsub", (scores, maxima, scores))


def negated(rows: int) -> BufferStep:
    """Less the maxima of rows, in `RESULT`, as the first rows of fractals in `SPREAD_OUT`."""
    shape = (rows, SIDE)
    source = View(RESULT, shape, (SIDE, 1))
    return BufferStep("vmuls", (source, View(SPREAD_OUT, shape, (SIDE * SIDE, 1))), -1.0)
