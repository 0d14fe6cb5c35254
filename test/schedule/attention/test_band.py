"""Tiles of units whose rows see keys between two ends, against masks written out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from davinci import machine as machines
from davinci.operators import OPERATORS, Tensor
from davinci.operators.band import FIELDS, ends_of, runs_of
from davinci.operators.vector_program import Value
from davinci.schedule.attention import dealing, split_cost
from davinci.schedule.attention.attention import Attention, ScoreChain
from davinci.schedule.attention.band import KeyBand, counts_of, tiling_of
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.products.product import ProductOperand, ProductResult

MACHINE = machines.load("ascend910b")

CAUSAL = (300, 0, 0, 1, 1)
WINDOW = (300, -40, 1, 50, 1)
BLOCKS = (100, 0, 0, 100, 0, 30, 100, 0, 130, 0, 170, 130, 0, 300, 0)
SOME_SEE_NOTHING = (10, 5, 0, 5, 0, 290, 0, 0, 300, 0)


def random_ends(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    first = np.sort(rng.integers(0, 4, rng.integers(1, 12)))
    last = first + rng.integers(0, 3, first.size)
    some = first < last
    return first * some, last * some


def test_runs_are_the_ends() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        first, last = random_ends(rng)
        runs = runs_of(first, last)
        assert sum(runs[::FIELDS]) == first.size
        for found, wanted in zip(ends_of(runs, 10), (first, last), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("runs", [CAUSAL, WINDOW, BLOCKS, SOME_SEE_NOTHING])
@pytest.mark.parametrize(("rows", "keys"), [(64, 128), (128, 96), (16, 512), (512, 16)])
def test_tiles_and_patterns_are_the_mask(runs: tuple[int, ...], rows: int, keys: int) -> None:
    """What is left out is hidden from all rows; the rest is patterns, or seen by all."""
    shape = (300, 300)
    ones = np.ones(shape, np.float32)
    wanted = OPERATORS["band"].values([ones], Tensor(shape, "f32"), {"runs": runs, "fill": 0.0})
    empty = (wanted == 0).all(-1, keepdims=True)
    tiling = tiling_of(KeyBand(runs, MatrixTurn(1, 1), -np.inf, *shape), rows, keys)
    bounds = dealing.masks_of(tiling, 0.0, keys, "f32")
    found = np.zeros(shape, np.float32)
    for block, tiles in enumerate(tiling.tiles[0]):
        for tile in tiles:
            below = slice(block * rows, (block + 1) * rows)
            there = found[below, tile.number * keys : (tile.number + 1) * keys]
            if tile.pattern is None:
                there[...] = 1
                continue
            turned = bounds[tile.pattern].swapaxes(1, 2).reshape(rows, keys)
            there[...] = turned[: len(there), : there.shape[1]] > 0
    np.testing.assert_array_equal(found, wanted)
    tiles_of_empty = [len(own) for own in tiling.tiles[0]]
    for block, count in enumerate(tiles_of_empty):
        if empty[block * rows : (block + 1) * rows].any():
            assert count == -(-300 // keys)
    counts = counts_of(KeyBand(runs, MatrixTurn(1, 1), 0.0, *shape), rows, keys)
    assert counts.tiles[0].tolist() == tiles_of_empty
    masked = [sum(tile.pattern is not None for tile in own) for own in tiling.tiles[0]]
    assert counts.masked[0].tolist() == masked


def test_units_are_dealt_evenly() -> None:
    """Each step of each unit is done once, in its order, and no block has much more to do."""
    band = KeyBand((4096, 0, 0, 1, 1), MatrixTurn(1, 1), -np.inf, 4096, 4096)
    rows, columns = ProductOperand(False, 2, False), ProductOperand(False, 2, True)
    operands = rows, rows, columns, ProductResult(False, 2), *[MatrixTurn(1, 3)] * 3
    chain = ScoreChain(Value(0, "f32"), (), (), ())
    given = Attention(3, 4096, 4096, 128, 128, *operands, 0.125, chain, band=band)
    schedule = split_cost.ranked(given, MACHINE, 24)[0]
    steps = dealing.dealt(given, schedule, 24)
    lengths = [len(own) for own in steps]
    assert max(lengths) <= 1.1 * sum(lengths) / 24
    assert split_cost.most_steps(given, schedule, 24) <= max(lengths)
    tiles = dealing.tiling(given, schedule).tiles[0]
    seen = sorted((step.matrix, step.block, step.tile) for own in steps for step in own)
    wanted = [
        (matrix, block, tile.number)
        for matrix in range(3)
        for block, own in enumerate(tiles)
        for tile in own
    ]
    assert seen == sorted(wanted)
    for own in steps:
        for before, after in pairwise(own):
            assert before.last == after.first
            assert before.last or before.tile + 1 == after.tile
    table = dealing.table_of(steps)
    assert table[24] == len(table)
    number = steps[5][1]
    packed = table[table[5] + 1]
    fields = {}
    for name, width in dealing.WIDTHS.items():
        fields[name], packed = packed % (1 << width), packed >> width
    assert fields == {name: int(getattr(number, name)) for name in fields}
