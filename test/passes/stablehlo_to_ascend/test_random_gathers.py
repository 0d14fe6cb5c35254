"""Random gathers of elements on all machines, and their oracle against StableHLO's interpreter;
many more: benchmarks/proofs/gathers.py."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.mlir import ir, make_context
from davinci.reference.interpreter import evaluate
from random_gathers import random_gather

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


@pytest.mark.parametrize("seed", range(24))
def test_random_gathers(seed: int) -> None:
    gather = random_gather(seed, longest=60)
    executable = davinci.compile(gather.text, machine=MACHINES[seed % len(MACHINES)], cores=2)
    (found,) = executable.run(*gather.inputs).values()
    assert np.array_equal(found, gather.result)


@pytest.mark.parametrize("seed", range(24))
def test_oracle(seed: int) -> None:
    """Places outside, duplicates, and any axis."""
    gather = random_gather(seed, longest=20)
    with make_context():
        module = ir.Module.parse(gather.text)
    inputs = dict(zip("ab", gather.inputs, strict=True))
    (found,) = evaluate(module, inputs, ["r"]).values()
    assert np.array_equal(found, gather.result)
