"""Random ONNX networks against onnxruntime, in one launch and in many.

benchmarks/proofs/launches.py runs many more.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import davinci
from random_models import Draw


@pytest.mark.parametrize("seed", [16, 21, 10481])
def test_random_model(seed: int) -> None:
    """The output of the last one is 0 but for roundings: a constant image less its mean."""
    drawn = Draw(seed).model()
    replace(drawn, ways=drawn.ways[:2]).check()


def test_each_way_is_taken() -> None:
    """One launch and many, each on every number of cores."""
    ways = [way for seed in range(40) for way in Draw(seed).model().ways]
    taken = {(way["launches"], way["cores"]) for way in ways if way["machine"] == "ascend910"}
    assert taken == {(name, n) for name in ("joined", "many", "auto") for n in (1, 3, 8, 32)}


def test_loops_that_become_one_kernel_beside_others() -> None:
    """A layer in front of two of two directions each: some loops are replaced while the pass that
    makes kernels of them still has the others in hand."""
    drawn = Draw(64).model()
    davinci.compile(drawn.model, machine="ascend910", cores=3)
