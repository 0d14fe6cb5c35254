"""Chains of operators that move elements, each one kernel, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.errors import CompileError
from kernel_support import run_kernel
from random_moves import chain
from support import run_text


@pytest.mark.parametrize("seed", [9, 34, 86])
def test_several_kernels(seed: int) -> None:
    """The same as a program: what is no one kernel, or would be slower, becomes several."""
    made = chain(seed)
    (found,) = run_text(made.program(), *made.inputs)
    np.testing.assert_array_equal(found, made.value, err_msg=", ".join(made.names))


@pytest.mark.parametrize("seed", range(40))
def test_chain(seed: int) -> None:
    made = chain(seed)
    text, inputs, wanted = made.finished()
    try:
        found = run_kernel(text, inputs, cores=(1, 32)[seed % 2]).outputs[0]
    except CompileError as error:
        assert "more than 64 pieces" in str(error)  # several kernels, see `test_several_kernels`
        return
    np.testing.assert_array_equal(found, wanted, err_msg=", ".join(made.names))
