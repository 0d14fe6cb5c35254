"""Arc and hyperbolic functions and their inverses over all exponents of f32, against f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from davinci.frontends.composites import NAMES
from davinci.operators.core import Array
from davinci.operators.inverse_functions import ERF, erf_inverse
from davinci.passes.stablehlo_to_ascend.elementwise import CHLO
from operators.test_trigonometry import all_exponents, of_f32, ulps

DRAWS = np.random.default_rng(1)

BOUNDS: dict[str, tuple[Callable[[Array], Array], float, float, float]] = {
    "asin": (np.arcsin, 3, -1, 1),
    "acos": (np.arccos, 2, -1, 1),
    "sinh": (np.sinh, 3, -np.inf, np.inf),
    "cosh": (np.cosh, 3, -np.inf, np.inf),
    "asinh": (np.arcsinh, 3, -np.inf, np.inf),
    "acosh": (np.arccosh, 3, 1, np.inf),
    "atanh": (np.arctanh, 2, -1, 1),
}
"""Functions, their largest error in ulp, and where they are numbers."""

ENDS = np.array([0.0, -0.0, 1, -1, 1.5, -2, np.inf, -np.inf, np.nan, 1e-42, 89.3, -89.3], "f4")


def swept(low: float, high: float) -> Array:
    """Numbers of all exponents, between -1 and 1 evenly, and close to 1."""
    close = 1 + DRAWS.standard_normal(2000) * 1e-3
    x = np.concatenate([all_exponents(16), DRAWS.uniform(-1, 1, 4000), close]).astype("f4")
    return x[(x >= low) & (x <= high)]


@pytest.mark.parametrize("name", BOUNDS)
def test_within_the_bound(name: str) -> None:
    function, most, low, high = BOUNDS[name]
    x = swept(low, high)
    with np.errstate(all="ignore"):
        wanted = function(x.astype(np.float64))
    assert ulps(of_f32(f"chlo.{name}", x), wanted).max() < most


@pytest.mark.parametrize("name", BOUNDS)
def test_ends(name: str) -> None:
    """Zeros keep their signs, infinities and what is no number come out as NumPy has them."""
    found = of_f32(f"chlo.{name}", ENDS)
    with np.errstate(all="ignore"):
        wanted = BOUNDS[name][0](ENDS.astype(np.float64))
        np.testing.assert_allclose(found, wanted.astype("f4"), rtol=5e-7)
    numbers = ~np.isnan(wanted)
    assert (np.signbit(found) == np.signbit(wanted))[numbers].all()


def test_inverse_of_erf() -> None:
    """Of numbers of all exponents and close to the ends, against what erf takes back to them."""
    x = np.concatenate([swept(-1, 1), 1 - np.ldexp(1.0, -np.arange(1, 25))]).astype("f4")
    wanted = erf_inverse(x)
    inside = np.abs(x) < 1
    np.testing.assert_allclose(ERF(wanted[inside]), x[inside].astype(float), rtol=1e-15)
    assert ulps(of_f32("chlo.erf_inv", x), wanted).max() < 4
    found = of_f32("chlo.erf_inv", ENDS)
    assert np.isposinf(found[2]) and np.isneginf(found[3]) and np.isnan(found[4:9]).all()


def test_models_of_onnx_keep_them_too() -> None:
    assert set(CHLO) == set(NAMES)
