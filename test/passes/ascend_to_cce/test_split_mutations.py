"""Mutants of kernels whose cube and vector cores run programs of their own: a part of what
`benchmarks/proofs/split_mutations.py` judges."""

from __future__ import annotations

from functools import partial

import pytest

from fuzz.hivm_mutation import HivmOutcomes, judge
from fuzz.recorded_launches import record_launches
from fuzz.split_kernels import made


@pytest.mark.parametrize("name", ["product-split-k", "product-laid-out"])
def test_missing_synchronisation_is_reported(name: str) -> None:
    executable, inputs = made(name)
    outcomes = HivmOutcomes()
    for launch in record_launches(name, partial(executable.run, inputs)):
        judge(launch, outcomes, every=97)
    assert not outcomes.wrong
    assert outcomes.total("reported") > 0
