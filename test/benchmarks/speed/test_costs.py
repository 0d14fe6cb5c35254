"""Estimated against simulated cycles of kernels that are loops."""

from __future__ import annotations

from typing import Any


def test_a_loop_has_an_estimate(benchmark_script: Any) -> None:
    costs = benchmark_script("costs")
    found = list(costs.measured("gru,steps=3,features=32,hidden=32", "ascend910", 4))
    (loop,) = (kernel for kernel in found if kernel.kind == "loop")
    assert loop.off < 0.5
