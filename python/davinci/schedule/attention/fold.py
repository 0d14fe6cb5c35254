"""The largest score of every row: tiles of keys are combined, then keys until one is left.

scores  [tile][rows][keys][16]   the largest of all tiles, for each key of one, into scratch
scratch [rows][kept][16]         halves or neighbours, whichever takes less, from buffer to buffer
result  [rows][copies][16]       the last two; a repeat of copies where a key is several blocks

Where a key is a block, as of f16, a maximum is read eight times in a repeat. Scores of a tile are
one run then, and maxima lie beside them, `spread`: one for each repeat, as far from each other as
repeats are, so that they are never in the bank groups of the scores that they are taken off.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.schedule.vector.steps import RESULT, SOURCE, Step, Steps, View, copy_of, cost_of
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

FIRST, SECOND = "first", "second"
"""Scratch buffers."""

SPREAD_OUT = "spread_out"
"""Buffer of maxima beside a tile of scores."""

MAXIMUM = "vmax"

WORTH = 24
"""Repeats that make up for an instruction."""


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


def scratch_lanes(rows: int, tiles: Sequence[int]) -> dict[str, int]:
    """Elements of the scratch buffers."""
    most = tiles[0] if len(tiles) > 1 else kept(tiles[0])
    return {FIRST: rows * most * SIDE, SECOND: rows * kept(most) * SIDE}


def fold(
    rows: int, tiles: Sequence[int], dtype: str, machine: Machine, spread: bool = False
) -> Steps:
    """The steps from `SOURCE` to `RESULT`.

    Args:
        rows: fractals.
        tiles: keys of each, whole fractals; as many as of the first, of the last at most so many.
        spread: whether to `SPREAD_OUT` instead, for tiles of the first's keys.
    """
    steps = gathered(rows, tiles, dtype)
    name, other = (FIRST, SECOND) if steps else (SOURCE, FIRST)
    keys = tiles[0]
    while keys > 2:
        size = kept(keys)
        pitch, run = keys * SIDE, size * SIDE

        def part(first: int, name: str = name, pitch: int = pitch, run: int = run) -> View:
            return View(name, (rows, run), (pitch, 1), first * SIDE)

        halves = Step(MAXIMUM, (part(0), part(keys - size), View(other, (rows, run), (run, 1))))
        ways = [halves]
        if keys == 2 * size:
            ways.append(neighbours(name, other, rows * size, dtype))
        steps.append(min(ways, key=lambda step: cost_of(step, dtype, machine)[1]))
        name, other = other, SECOND if other == FIRST else FIRST
        keys = size
    steps.append(spread_out(name, rows, tiles[0], dtype) if spread else last(name, rows, dtype))
    return Steps(dtype, tuple(steps), scratch_lanes(rows, tiles))


def gathered(rows: int, tiles: Sequence[int], dtype: str) -> list[Step]:
    """The largest score of all tiles for each key of the first, in `FIRST`; none for one tile."""
    if len(tiles) == 1:
        return []
    pitch = tiles[0] * SIDE
    size, lanes = rows * pitch, repeat_lanes(dtype)

    def place(name: str, tile: int, first: int, stop: int) -> View:
        """Lanes of each row of a tile."""
        own = tiles[tile] * SIDE
        return View(name, (rows, stop - first), (own, 1), tile * size + first)

    def flat(name: str, start: int) -> View:
        return View(name, (size,), (1,), start)

    steps: list[Step] = []
    if tiles[1] < tiles[0]:
        width = tiles[1] * SIDE
        rest = place(SOURCE, 0, width, pitch)
        steps = [
            Step(
                MAXIMUM, tuple(place(*x, 0, width) for x in ((SOURCE, 0), (SOURCE, 1), (FIRST, 0)))
            ),
            Step(MAXIMUM, (rest, rest, place(FIRST, 0, width, pitch))),
        ]
    elif size // lanes > WORTH:
        # Keys of a repeat further in the second tile lie in the other half of the bank groups.
        shape, strides = (size // lanes // 2, lanes), (2 * lanes, 1)
        for half in (0, lanes):
            sources = (half, size + lanes - half)
            views = [View(SOURCE, shape, strides, start) for start in sources]
            steps.append(Step(MAXIMUM, (*views, View(FIRST, shape, strides, half))))
    else:
        steps = [Step(MAXIMUM, (flat(SOURCE, 0), flat(SOURCE, size), flat(FIRST, 0)))]
    for tile in range(2, len(tiles)):
        if tiles[tile] == tiles[0]:
            steps.append(Step(MAXIMUM, (flat(FIRST, 0), flat(SOURCE, tile * size), flat(FIRST, 0))))
        else:
            part = place(FIRST, 0, 0, tiles[tile] * SIDE)
            source = place(SOURCE, tile, 0, tiles[tile] * SIDE)
            steps.append(Step(MAXIMUM, (part, source, part)))
    return steps


def neighbours(source: str, result: str, keys: int, dtype: str) -> Step:
    """Keys 0, 2, 4, .. with keys 1, 3, 5, ..; `keys` are left."""
    lanes = block_lanes(dtype)
    shape = (SIDE // lanes, keys, lanes)
    pair = (lanes, 2 * SIDE, 1)
    a, b = View(source, shape, pair), View(source, shape, pair, SIDE)
    return Step(MAXIMUM, (a, b, View(result, shape, (lanes, SIDE, 1))))


def last(source: str, rows: int, dtype: str) -> Step:
    """The larger of two keys to all of its copies."""
    lanes, room = block_lanes(dtype), result_lanes(dtype)
    shape = (SIDE // lanes, rows, room // SIDE, lanes)
    pair = (lanes, 2 * SIDE, 0, 1)
    a, b = View(source, shape, pair), View(source, shape, pair, SIDE)
    return Step(MAXIMUM, (a, b, View(RESULT, shape, (lanes, room, SIDE, 1))))


def spread_out(source: str, rows: int, keys: int, dtype: str) -> Step:
    """The larger of two keys to one a repeat of a tile of so many keys."""
    lanes, repeats = repeat_lanes(dtype), keys * SIDE // repeat_lanes(dtype)
    shape = (rows, repeats, SIDE)
    a, b = (View(source, shape, (2 * SIDE, 0, 1), first) for first in (0, SIDE))
    return Step(MAXIMUM, (a, b, View(SPREAD_OUT, shape, (repeats * lanes, lanes, 1))))


def spread_again(rows: int, keys: int, dtype: str) -> Step:
    """The maxima of rows, in `RESULT`, to where `spread_out` has them."""
    lanes, repeats = repeat_lanes(dtype), keys * SIDE // repeat_lanes(dtype)
    shape = (rows, repeats, SIDE)
    source = View(RESULT, shape, (SIDE, 0, 1))
    return copy_of(source, View(SPREAD_OUT, shape, (repeats * lanes, lanes, 1)), dtype)


def less_highest(rows: int, keys: int, first: int, place: int, dtype: str) -> Step:
    """Scores of a tile less the highest of their rows, in place.

    Args:
        keys, first: of this tile, and of the first.
        place: of it in `SOURCE`.
    """
    lanes = repeat_lanes(dtype)
    run = result_lanes(dtype)
    shape = (rows, keys * SIDE // lanes, lanes // run, run)
    scores = View(SOURCE, shape, (keys * SIDE, lanes, run, 1), place)
    if run == SIDE:
        maxima = View(SPREAD_OUT, shape, (first * SIDE, lanes, 0, 1))
    else:
        maxima = View(RESULT, shape, (run, 0, 0, 1))
    return Step("vsub", (scores, maxima, scores))


def negated(rows: int, dtype: str) -> Step:
    """Less the maxima of rows, in `RESULT`, as the first rows of fractals in `SPREAD_OUT`."""
    shape = (rows, SIDE)
    source = View(RESULT, shape, (SIDE, 1))
    return Step("vmuls", (source, View(SPREAD_OUT, shape, (SIDE * SIDE, 1))), -1.0)
