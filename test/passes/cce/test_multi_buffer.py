"""Kernels whose loops were unrolled and whose operations were reordered compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import Array
from pairs import all_pairs
from random_tiles import random_inputs, random_kernel
from tile_kernels import PIPELINE, UNTOUCHED, chain, run_tiles, tile_loop

UNARY = ("vexp", "vabs", "vrelu", "vabs", "vrelu", "vabs", "vrelu", "vabs")


def values(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


@pytest.mark.parametrize(
    ("count", "unroll", "cores"), all_pairs([1, 2, 3, 7, 8, 13], [1, 2, 3, 4, 8], [1, 3])
)
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


def test_buffers_that_do_not_fit_side_by_side() -> None:
    """Three tiles of seven buffers of 36 KB: all at once would take three times UB, and two chains
    in turn more than half of what each holds at a time."""
    allocs = "\n".join(f"%b{i} = memref.alloc() TEMPORARIES : !ub" for i in range(6))
    steps = "\n".join(f'"cce.vabs"(%b{i}, %b{i + 1}) : (!ub, !ub) -> ()' for i in range(5))
    body = f"""
      %a = memref.alloc() SLOTS : !ub
      {allocs}
      "cce.copy"(%in0, %a) : (!tile, !ub) -> ()
      "cce.vexp"(%a, %b0) : (!ub, !ub) -> ()
      {steps}
      "cce.vadd"(%b5, %a, %b5) : (!ub, !ub, !ub) -> ()
      "cce.copy"(%b5, %out) : (!ub, !tile) -> ()"""
    size = 9216
    x = values(3 * size)
    plain = run_tiles(tile_loop(body, 3, size, 0), [x])
    ordered = run_tiles(tile_loop(body, 3, size, 3, 3, 3), [x])
    assert np.array_equal(ordered.outputs[0], plain.outputs[0])
    assert ordered.profile.cycles < 0.9 * plain.profile.cycles


@pytest.mark.parametrize("seed", range(15))
def test_random_kernel(seed: int) -> None:
    text, inputs = random_kernel(seed), random_inputs(seed)
    plain = run_tiles(text, inputs, pipeline=UNTOUCHED)
    ordered = run_tiles(text, inputs, pipeline=PIPELINE)
    assert np.array_equal(ordered.outputs[0], plain.outputs[0])
