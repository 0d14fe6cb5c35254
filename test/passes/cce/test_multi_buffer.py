"""Kernels whose loops were unrolled and whose operations were reordered compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import Array
from random_tiles import random_inputs, random_kernel
from tile_kernels import PIPELINE, UNTOUCHED, chain, run_tiles, tile_loop

UNARY = ("vexp", "vabs", "vrelu", "vabs", "vrelu", "vabs", "vrelu", "vabs")


def values(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 13])
def test_trip_counts(count: int, unroll: int, cores: int) -> None:
    """Whole loops, remainders and loops of a computed length, or of none, do every tile once."""
    size = 64
    x = values(count * size)
    for dynamic in (False, True) if cores == 1 else (True,):
        text = tile_loop(chain("vabs", "vrelu"), count, size, unroll, cores=cores, dynamic=dynamic)
        assert np.array_equal(run_tiles(text, [x]).outputs[0], np.abs(x))


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [8, 16, 120, 136, 1000, 16384])
def test_sizes_and_slots(size: int, slots: int) -> None:
    text = tile_loop(chain("vabs", "vrelu"), 5, size, 5, min(slots, 200000 // (8 * size)), 1)
    x = values(5 * size)
    assert np.array_equal(run_tiles(text, [x]).outputs[0], np.abs(x))


@pytest.mark.parametrize("cores", [1, 2, 32])
def test_tiles_overlap(cores: int) -> None:
    """The time of a chain of dependent operations is filled with the work of other tiles."""
    size, count = 512, 8 * cores
    x = values(size * count)
    plain = run_tiles(tile_loop(chain(*UNARY), count, size, 0, cores=cores), [x])
    text = tile_loop(chain(*UNARY), count, size, 8, 4, 3, cores=cores)
    ordered = run_tiles(text, [x])
    assert np.array_equal(ordered.outputs[0], plain.outputs[0])
    assert ordered.profile.cycles < 0.7 * plain.profile.cycles


@pytest.mark.parametrize("seed", range(30))
def test_random_kernel(seed: int) -> None:
    text, inputs = random_kernel(seed), random_inputs(seed)
    plain = run_tiles(text, inputs, pipeline=UNTOUCHED)
    ordered = run_tiles(text, inputs, pipeline=PIPELINE)
    assert np.array_equal(ordered.outputs[0], plain.outputs[0])
