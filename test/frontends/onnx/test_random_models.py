"""Random ONNX networks against onnxruntime, in one launch and in many.

benchmarks/proofs/launches.py runs many more.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from random_models import Draw


@pytest.mark.parametrize("seed", [16, 21])
def test_random_model(seed: int) -> None:
    drawn = Draw(seed).model()
    replace(drawn, ways=drawn.ways[:2]).check()


def test_each_way_is_taken() -> None:
    """One launch and many, each on every number of cores."""
    ways = [way for seed in range(40) for way in Draw(seed).model().ways]
    taken = {(way["launches"], way["cores"]) for way in ways if way["machine"] == "ascend910"}
    assert taken == {(name, n) for name in ("joined", "many", "auto") for n in (1, 3, 8, 32)}
