"""Chains of operators that move elements, each one kernel, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import run_kernel
from random_moves import chain


@pytest.mark.parametrize("seed", range(40))
def test_chain(seed: int) -> None:
    made = chain(seed)
    text, inputs, wanted = made.finished()
    found = run_kernel(text, inputs, cores=(1, 32)[seed % 2]).outputs[0]
    np.testing.assert_array_equal(found, wanted, err_msg=", ".join(made.names))
