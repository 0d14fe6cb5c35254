"""Random StableHLO programs on the simulated machine against StableHLO's interpreter.

`benchmarks/proofs/random_cases.py` runs as many of them as it is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci import frontends
from davinci.mlir import make_context
from davinci.reference import interpreter
from random_stablehlo import Program, Step
from random_stablehlo_regions import REGION_STEPS
from random_stablehlo_steps import STEPS
from support import run_text

LENGTH = 6

SHARE = 3e-3
"""Factors of products become f16: off by 2^-11 of the largest value, a few times in a chain."""


def expect_close(found: npt.NDArray[Any], wanted: npt.NDArray[Any], where: str) -> None:
    """Integers equal; floats within a share of the largest one, and not finite in one place."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), where
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, where)
        return
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    share = 4 * SHARE if wanted.dtype == np.float16 else SHARE
    limit = share * np.abs(b[finite]).max(initial=0) + 1e-6
    np.testing.assert_allclose(a[finite], b[finite], rtol=share, atol=limit, err_msg=where)
    np.testing.assert_array_equal(a[~finite], b[~finite], where)


@pytest.mark.parametrize("steps", [STEPS, (*STEPS, *3 * REGION_STEPS)], ids=["plain", "regions"])
@pytest.mark.parametrize("seed", range(3))
def test_random_program(seed: int, steps: tuple[Step, ...]) -> None:
    """On all cores against the interpreter, and bit for bit against one core."""
    program = Program(seed, LENGTH, steps)
    module = frontends.load(program.text, make_context())
    names = [value.name for value in program.results]
    inputs = {
        value.name: data for value, data in zip(program.arguments, program.inputs, strict=True)
    }
    wanted = interpreter.reference(module, inputs, names)
    found = run_text(program.text, *program.inputs)
    alone = run_text(program.text, *program.inputs, cores=1)
    for name, a, b in zip(names, found, alone, strict=True):
        expect_close(a, wanted[name], program.text)
        np.testing.assert_array_equal(a, b, program.text)
