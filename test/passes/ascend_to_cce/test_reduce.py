"""Reductions against NumPy: kinds, types, dimensions, ragged and long rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from operator_support import run_operator

Array = npt.NDArray[Any]

KINDS: dict[str, Any] = {"add": np.sum, "max": np.max, "min": np.min, "mul": np.prod}

LAST = [(1, 8), (3, 9), (8, 16), (17, 17), (5, 64), (13, 65), (31, 131), (1537, 24), (2, 3, 100)]
"""Shapes whose last dimension is reduced."""

FIRST = [(1, 8), (17, 16), (9, 17), (300, 33), (3, 5, 40), (2, 4099)]
"""Shapes whose first dimension is reduced."""


def reduce(kind: str, x: Array, dims: tuple[int, ...], **options: Any) -> tuple[Array, Any]:
    shape = [n for i, n in enumerate(x.shape) if i not in dims]
    numbers = ", ".join(map(str, dims))
    attributes = f'kind = "{kind}", dims = array<i64{": " + numbers if dims else ""}>'
    run = run_operator("reduce", [x], shape, x.dtype, attributes, **options)
    return run.outputs[0], run.profile


def operand(shape: tuple[int, ...], dtype: Any, kind: str) -> Array:
    rng = np.random.default_rng(sum(shape))
    if kind == "mul":
        return rng.choice([-1.0, 1.0, 1.03125], shape).astype(dtype)
    return rng.uniform(-50, 50, shape).astype(dtype)


def check(kind: str, x: Array, dims: tuple[int, ...], **options: Any) -> None:
    found, _ = reduce(kind, x, dims, **options)
    if x.dtype.kind == "i":
        np.testing.assert_array_equal(found, KINDS[kind](x, axis=dims, dtype=x.dtype))
        return
    wide = x.astype(np.float64)
    expected = KINDS[kind](wide, axis=dims)
    if kind in ("max", "min"):
        np.testing.assert_array_equal(found, expected)
        return
    # Sums err in proportion to what was summed, products to their factors.
    scale = np.sum(np.abs(wide), axis=dims) if kind == "add" else np.abs(expected)
    unit = np.finfo(x.dtype).eps * (4 if kind == "add" else 64)
    np.testing.assert_array_less(np.abs(found - expected), scale * unit + 1e-30)


@pytest.mark.parametrize("shape", LAST)
@pytest.mark.parametrize("kind", KINDS)
def test_last_dimension(shape: tuple[int, ...], kind: str) -> None:
    check(kind, operand(shape, np.float32, kind), (len(shape) - 1,))


@pytest.mark.parametrize("shape", [(3, 16), (17, 17), (31, 131), (100, 256)])
@pytest.mark.parametrize("kind", ["add", "max"])
@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_last_dimension_types(shape: tuple[int, ...], kind: str, dtype: Any) -> None:
    if dtype == np.int32:
        x = np.random.default_rng(0).integers(-1000, 1000, shape).astype(np.int32)
        found, _ = reduce(kind, x, (1,))
        expected = x.sum(axis=1, dtype=np.int32) if kind == "add" else x.max(axis=1)
        np.testing.assert_array_equal(found, expected)
    else:
        check(kind, operand(shape, dtype, kind), (1,))


@pytest.mark.parametrize("shape", FIRST)
@pytest.mark.parametrize("kind", KINDS)
def test_first_dimension(shape: tuple[int, ...], kind: str) -> None:
    check(kind, operand(shape, np.float32, kind), (0,))


@pytest.mark.parametrize("dims", [(0, 1), (1, 2), (0, 2), (1,), (0, 1, 2), (0, 1, 2, 3), ()])
@pytest.mark.parametrize("kind", ["add", "max"])
def test_several_dimensions(dims: tuple[int, ...], kind: str) -> None:
    check(kind, operand((3, 4, 5, 19), np.float32, kind), dims)


@pytest.mark.parametrize("dims", [(0, 2, 4), (1, 3), (0, 4)])
def test_dimensions_apart(dims: tuple[int, ...]) -> None:
    check("add", operand((2, 3, 4, 9, 10), np.float32, "add"), dims)


@pytest.mark.parametrize("kind", ["add", "max"])
def test_rows_longer_than_ub(kind: str) -> None:
    check(kind, operand((3, 100_003), np.float32, kind), (1,))


def test_columns_longer_than_ub() -> None:
    """On one core: several would meet, which takes a launch (`test_phased_group`)."""
    check("add", operand((70_001, 9), np.float32, "add"), (0,), cores=1)
    check("max", operand((3, 70_001), np.float32, "max"), (0,), cores=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_short_rows(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 99, (40, 5)).astype(dtype)
    found, profile = reduce("max", x, (1,))
    np.testing.assert_array_equal(found, x.max(axis=1))
    assert any(name.startswith("vmax") for name in profile.instructions)


def test_softmax_rows_use_all_cores() -> None:
    x = operand((12, 128, 128), np.float32, "max")
    found, profile = reduce("max", x, (2,), core_choice="all")
    np.testing.assert_array_equal(found, x.max(axis=2))
    assert profile.blocks == 32
