"""Cholesky's factors off the scalar unit, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from davinci.passes.stablehlo_to_ascend import cholesky, triangular_solve

Array = npt.NDArray[Any]


def program(shape: tuple[int, ...], kind: str, lower: bool) -> str:
    array = f"tensor<{'x'.join(map(str, shape))}x{kind}>"
    return f"""func.func @main(%a: {array}) -> {array} {{
      %0 = stablehlo.cholesky %a, lower = {str(lower).lower()} : {array}
      return %0 : {array} }}"""


def positive(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Matrices whose smallest eigenvalue is no less than 1."""
    a = np.random.default_rng(seed).standard_normal(shape)
    found = a @ np.swapaxes(a, -1, -2) / shape[-1] + np.eye(shape[-1])
    return np.asarray(found, np.float32)


def factor(a: Array, lower: bool = True, **options: Any) -> tuple[Array, set[str]]:
    """The factor, and the units that it took."""
    kind = {2: "f16", 4: "f32"}[a.dtype.itemsize]
    executable = davinci.compile(program(a.shape, kind, lower), **options)
    (found,) = executable.run(a).values()
    return np.asarray(found), {kernel["unit"] for kernel in executable.profile["kernels"]}


@pytest.mark.parametrize(
    ("shape", "lower", "machine", "block"),
    [
        ((16, 16), False, "ascend310", 16),
        ((33, 33), True, "ascend910b", 32),
        ((2, 3, 7, 7), False, "ascend310p", 32),
        ((2, 34, 34), False, "ascend910", 16),
        ((40, 5, 5), True, "ascend910", 32),
        ((300, 2, 2), True, "ascend910", 32),
    ],
)
def test_factors(
    shape: tuple[int, ...], lower: bool, machine: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one block and of several, of few matrices and of many; the other triangle is not read,
    and is 0 in the result."""
    for module in (cholesky, triangular_solve):
        monkeypatch.setattr(module, "BLOCK", block)
    a = positive(shape)
    part = np.tril if lower else np.triu
    given = np.where(part(np.ones_like(a)) > 0, a, np.float32(np.nan))
    wanted = np.linalg.cholesky(a.astype(np.float64))
    wanted = wanted if lower else np.swapaxes(wanted, -1, -2)
    found, units = factor(given, lower, machine=machine, cores=2)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)
    assert np.array_equal(found, part(found))
    assert "vector" in units


def test_halves() -> None:
    """Computed in f32."""
    a = positive((14, 14)).astype(np.float16)
    found, _ = factor(a, cores=2)
    wanted = np.linalg.cholesky(a.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=2**-10, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_positive() -> None:
    """From a pivot below 0 on there are NaN, of other matrices of the batch none."""
    a = positive((3, 11, 11))
    a[1, 6, 6] = -9.0
    found, _ = factor(a, cores=2)
    assert np.isnan(np.diagonal(found[1])[6:]).all()
    np.testing.assert_allclose(found[1, :6, :6], np.linalg.cholesky(a[1, :6, :6]), atol=2e-6)
    np.testing.assert_allclose(found[::2], np.linalg.cholesky(a[::2]), rtol=0, atol=2e-6)


def test_many_small_ones_take_no_scalar_unit() -> None:
    a = positive((40, 16, 16))
    executable = davinci.compile(program(a.shape, "f32", True))
    executable.run(a)
    assert executable.profile["total_cycles"] < 45_000  # 3,903,047 by the scalar unit
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
