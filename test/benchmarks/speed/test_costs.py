"""Estimated against simulated cycles of kernels that are loops, and of those that are groups."""

from __future__ import annotations

from typing import Any


def test_a_loop_has_an_estimate(benchmark_script: Any) -> None:
    costs = benchmark_script("costs")
    found = list(costs.measured("gru,steps=3,features=32,hidden=32", "ascend910", 4))
    (loop,) = (kernel for kernel in found if kernel.kind == "loop")
    assert loop.off < 0.5


def test_a_product_has_an_estimate(benchmark_script: Any) -> None:
    costs = benchmark_script("costs")
    products = [each for each in costs.measured("mlp", "ascend910", 4) if each.kind == "product"]
    assert products
    assert max(each.off for each in products) < 0.25
