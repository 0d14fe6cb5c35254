"""Random scatters on all machines, and their oracle against StableHLO's interpreter; many more:
benchmarks/proofs/scatters.py."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.mlir import ir, make_context
from davinci.reference.interpreter import evaluate
from random_scatters import random_scatter

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


@pytest.mark.parametrize("seed", range(12))
def test_random_scatters(seed: int) -> None:
    scatter = random_scatter(seed, longest=40)
    executable = davinci.compile(scatter.text, machine=MACHINES[seed % len(MACHINES)], cores=2)
    (found,) = executable.run(*scatter.inputs).values()
    assert np.array_equal(found, scatter.result, equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize("seed", range(40))
def test_oracle(seed: int) -> None:
    """Places outside, boxes that lie there in part, and the order of duplicates."""
    scatter = random_scatter(seed, longest=20)
    with make_context():
        module = ir.Module.parse(scatter.text)
    inputs = dict(zip("abc", scatter.inputs, strict=False))
    (found,) = evaluate(module, inputs, ["r"]).values()
    assert np.array_equal(found, scatter.result, equal_nan=found.dtype.kind == "f")
