"""A training step of the benchmark, held against JAX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks" / "speed"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("jax")
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    import training_steps

    return training_steps


def test_a_step_of_adam(steps: Any) -> None:
    """The loss, five arrays of parameters and their means; gradients of a lookup are scattered."""
    profile, error = steps.measured("mlp", "adam", precision="fp32")
    assert error < steps.MOST_ERROR["fp32"]
    scalar = sum(k["cycles"] for k in profile["kernels"] if k["unit"] == "scalar")
    assert scalar < steps.MOST_SCALAR * profile["total_cycles"]
