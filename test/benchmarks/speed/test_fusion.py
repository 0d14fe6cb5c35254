"""The table of fusion: what a run is measured by, and that fusion is worth something."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest


@pytest.fixture(scope="module")
def fusion(benchmark_script: Any) -> Any:
    return benchmark_script("fusion")


def test_a_small_network(fusion: Any) -> None:
    none, fused = (
        fusion.measure("mlp,layers=2,features=64,hidden=64", "ascend910", 4, way)
        for way in ("none", "all")
    )
    assert none.launches > fused.launches and none.cycles > fused.cycles
    assert all(ratio >= 1 for ratio in none.over(fused))
    lines = fusion.lines_of("mlp", none, fused)
    assert [len(line.split()) for line in lines] == [8, 7, 7]
    assert f"{none.time_us:,.1f}" in lines[0] and all(v > 0 for v in astuple(fused))
