"""Angles and their functions over all exponents of f32, on the simulator, against f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci.operators.core import Array
from davinci.schedule.vector import prepared, schedule
from support import run_text

DRAWS = np.random.default_rng(0)


def all_exponents(each: int) -> Array:
    """Random numbers of both signs, `each` of every exponent of f32."""
    exponents = np.repeat(np.arange(-126, 128), each)
    digits = DRAWS.uniform(1, 2, exponents.size) * DRAWS.choice([-1, 1], exponents.size)
    return np.asarray(np.ldexp(digits.astype(np.float32), exponents), np.float32)


NEAR = np.array([k * math.pi / 2 for k in range(-3000, 3000)], np.float32)
"""Multiples of a quarter turn, rounded to f32."""

HARDEST = np.array([16367173 * 2.0**72], np.float32)
"""A number of f32 that is 1.6e-9 from an odd multiple of pi / 2 (found by continued fractions)."""

ALL = np.concatenate([all_exponents(16), NEAR, HARDEST])


def ulps(found: Array, wanted: Array) -> Array:
    """Errors in units in the last place of the result, where it is a number of f32."""
    with np.errstate(over="ignore", invalid="ignore"):
        spacing = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
        return np.where(np.isfinite(spacing), np.abs(found - wanted) / spacing, 0)


def of_f32(operation: str, *inputs: Array) -> Array:
    """The results of an operation of StableHLO, or of CHLO if it is said."""
    kind = f"tensor<{inputs[0].size}xf32>"
    name, type_ = f"stablehlo.{operation}", kind
    if operation.startswith("chlo."):
        name, type_ = operation, f"{kind} -> {kind}"
    given = ", ".join(f"%{i}: {kind}" for i in range(len(inputs)))
    names = ", ".join(f"%{i}" for i in range(len(inputs)))
    (found,) = run_text(
        f"func.func @main({given}) -> {kind} {{ %r = {name} {names} : {type_}\n"
        f"return %r : {kind} }}",
        *inputs,
    )
    return np.asarray(found, np.float64)


def exact(function: Callable[..., float], *inputs: Array) -> Array:
    return np.vectorize(function, otypes=[np.float64])(*(x.astype(np.float64) for x in inputs))


@pytest.mark.parametrize(
    ("operation", "function"), [("sine", math.sin), ("cosine", math.cos)], ids=("sine", "cosine")
)
def test_circle(operation: str, function: Any) -> None:
    found, wanted = of_f32(operation, ALL), exact(function, ALL)
    assert np.abs(found).max() <= 1
    beyond = np.abs(found - wanted) - 2.0**-35
    assert (beyond <= 3 * np.spacing(np.abs(wanted).astype(np.float32))).all()


def test_tangent() -> None:
    x = all_exponents(16)
    wanted = exact(math.tan, x)
    known = np.abs(np.log2(np.abs(wanted))) < 8
    known |= np.abs(x) < 1
    assert known.mean() > 0.9 and ulps(of_f32("tan", x), wanted)[known].max() < 5


def test_angle_of_a_point() -> None:
    y = all_exponents(16)
    for x in (DRAWS.permutation(y), np.ones_like(y)):
        assert ulps(of_f32("atan2", y, x), exact(math.atan2, y, x)).max() < 2


@pytest.mark.parametrize(
    ("operation", "function", "most", "low"),
    [
        ("exponential_minus_one", np.expm1, 5, -np.inf),
        ("log_plus_one", np.log1p, 4, -1),
        ("cbrt", np.cbrt, 3, -np.inf),
    ],
    ids=("expm1", "log1p", "cbrt"),
)
def test_near_zero_and_far(operation: str, function: Any, most: float, low: float) -> None:
    x = np.concatenate([all_exponents(16), DRAWS.uniform(-20, 88, 4000).astype(np.float32)])
    x = x[x > low]
    with np.errstate(over="ignore"):
        wanted = function(x.astype(np.float64))
    assert ulps(of_f32(operation, x), wanted).max() < most


def test_angles_are_lost_without_the_digits_of_pi(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep sees one wrong part of one angle."""
    from davinci.operators import trigonometry

    right = trigonometry.angle_of_unit

    def wrong(unit: int) -> tuple[int, float]:
        whole, rest = right(unit)
        return whole, rest / 2 if unit == 66 else rest

    monkeypatch.setattr(trigonometry, "angle_of_unit", wrong)
    forget_programs()
    with pytest.raises(AssertionError):
        test_circle("sine", math.sin)
    forget_programs()


def forget_programs() -> None:
    """Clears the memos of programs of groups and of the schedules that were chosen for them."""
    for kept in (prepared._first, prepared._prepared, schedule._chooser):
        kept.cache_clear()


def test_zeros_and_ends() -> None:
    """Zeros keep their signs; the largest numbers, which digits round up, are angles too."""
    x = np.array([0.0, -0.0, np.finfo(np.float32).max, -np.finfo(np.float32).max], np.float32)
    for operation, function in (("sine", math.sin), ("tan", math.tan)):
        found = of_f32(operation, x)
        assert (np.signbit(found[:2]) == [False, True]).all() and not found[:2].any()
        assert np.allclose(found[2:], exact(function, x[2:]), rtol=1e-6)
    assert np.isnan(of_f32("sine", np.array([np.inf, -np.inf, np.nan], np.float32))).all()
