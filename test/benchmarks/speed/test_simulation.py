"""Figures of the simulator's benchmark that are compared with those of another commit."""

from __future__ import annotations

from typing import Any


def test_an_instruction_is_compared_with_an_instruction(benchmark_script: Any) -> None:
    """A program of three times as many instructions that takes twice as long is faster."""
    script = benchmark_script("simulation")
    before = {"instructions": 1000, "seconds": [2.0, 1.0]}
    now = {"instructions": 3000, "seconds": [2.0, 2.5]}
    line = script.compared("network, times only", before, now)
    assert "an instruction 1.50 times as fast" in line
    assert "in all 0.50 times, 1,000 -> 3,000 instructions" in line
