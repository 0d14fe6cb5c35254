"""Scatters of windows, at known places, of other types and functions: no scalar unit, and NumPy's
numbers. `benchmarks/proofs/scatters.py` draws many more."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci

Array = npt.NDArray[Any]

SCATTER = """func.func @main({arguments}, %u: tensor<{updates}>) -> tensor<{array}> {{
  {before}
  %r = "stablehlo.scatter"(%x, %i, %u) <{{
    scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, unique_indices = {unique}
  }}> ({{
  ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
    {function}
    stablehlo.return {result} : tensor<{element}>
  }}) : (tensor<{array}>, tensor<{indices}>, tensor<{updates}>) -> tensor<{array}>
  return %r : tensor<{array}> }}"""


SET = ""
"""The function that stores updates."""


def scatter(
    array: str,
    indices: str,
    updates: str,
    numbers: str,
    function: str = "add",
    *,
    unique: bool = False,
    before: str = "",
) -> str:
    """A program; `before` makes the indices, which are an argument else."""
    element = array.split("x")[-1]
    body = (
        function
        if not function or "%" in function
        else f"%s = stablehlo.{function} %a, %b : tensor<{element}>"
    )
    given = [f"%x: tensor<{array}>", *([] if before else [f"%i: tensor<{indices}>"])]
    return SCATTER.format(
        arguments=", ".join(given),
        array=array,
        indices=indices,
        updates=updates,
        numbers=numbers,
        unique=str(unique).lower(),
        before=before,
        element=element,
        function=body.replace("TYPE", f"tensor<{element}>"),
        result="%s" if function else "%b",
    )


def off_the_scalar_unit(text: str, *inputs: Array, machine: str = "ascend910") -> Array:
    executable = davinci.compile(text, machine=machine, cores=2)
    (found,) = executable.run(*inputs).values()
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
    return np.asarray(found)


@pytest.mark.parametrize("machine", ["ascend910", "ascend310", "ascend310p", "ascend910b"])
def test_windows_that_overlap_and_lie_outside_in_part(machine: str) -> None:
    """Also where an index is so large that its sums with numbers of lines wrap around."""
    random = np.random.default_rng(0)
    x = random.integers(-9, 9, 500).astype(np.float32)
    u = random.integers(-9, 9, (9, 37)).astype(np.float32)
    places = np.array([0, 5, 5, 463, 464, 499, 500, -36, 2**31 - 1], np.int32)
    wanted = x.copy()
    for place, update in zip(places.astype(int), u, strict=True):
        inside = [k for k in range(37) if 0 <= place + k < 500]
        wanted[[place + k for k in inside]] += update[inside]
    numbers = "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    text = scatter("500xf32", "9xi32", "9x37xf32", numbers)
    np.testing.assert_array_equal(off_the_scalar_unit(text, x, places, u, machine=machine), wanted)


def test_windows_in_front_of_places_and_unsigned_indices() -> None:
    """Dimensions of a window that come first in the updates, and places of bytes, whose sums with
    numbers of lines are wider."""
    random = np.random.default_rng(1)
    x = random.integers(-9, 9, (300, 24)).astype(np.int32)
    u = random.integers(-9, 9, (20, 40, 24)).astype(np.int32)
    places = random.integers(0, 256, (20, 1)).astype(np.uint8)
    places[0] = 255
    wanted = x.copy()
    for n, place in enumerate(places[:, 0].astype(int)):
        wanted[place : place + 40] += u[n]
    numbers = """update_window_dims = [0, 2], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1"""
    text = scatter("300x24xi32", "20x1xui8", "40x20x24xi32", numbers)
    found = off_the_scalar_unit(text, x, places, u.transpose(1, 0, 2).copy())
    np.testing.assert_array_equal(found, wanted)


def test_one_step_into_caches_of_a_batch() -> None:
    """What JAX makes of `dynamic_update_slice` under `vmap`: the last column of indices is 0."""
    random = np.random.default_rng(2)
    x = random.standard_normal((4, 64, 32), np.float32)
    u = random.standard_normal((4, 2, 32), np.float32)
    places = np.array([3, 70, -5, 17], np.int32)
    before = """%p = stablehlo.reshape %x1 : (tensor<4xi32>) -> tensor<4x1xi32>
      %z = stablehlo.constant dense<0> : tensor<4x1xi32>
      %t = stablehlo.concatenate %p, %z, dim = 1
        : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
      %m = stablehlo.constant dense<[62, 0]> : tensor<2xi32>
      %most = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<2xi32>) -> tensor<4x2xi32>
      %least = stablehlo.constant dense<0> : tensor<4x2xi32>
      %i = stablehlo.clamp %least, %t, %most : tensor<4x2xi32>"""
    numbers = """update_window_dims = [1, 2], input_batching_dims = [0],
      scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1, 2],
      index_vector_dim = 1"""
    text = scatter("4x64x32xf32", "4x2xi32", "4x2x32xf32", numbers, SET, before=before)
    text = text.replace(", %u:", ", %x1: tensor<4xi32>, %u:")
    executable = davinci.compile(text, cores=32)
    (found,) = executable.run(x, places, u).values()
    wanted = x.copy()
    for n, place in enumerate(np.clip(places, 0, 62)):
        wanted[n, place : place + 2] = u[n]
    np.testing.assert_array_equal(found, wanted)
    assert executable.profile["total_cycles"] < 4000  # 1,246,762 by the scalar unit


@pytest.mark.parametrize("start", [2, -1, 14, -8, 40])
def test_one_window_at_a_known_place(start: int) -> None:
    """The part that lies inside, by any function: a kernel without indices."""
    x = np.arange(5 * 16 * 8, dtype=np.float32).reshape(5, 16, 8)
    u = np.full((5, 3, 8), 0.5, np.float32)
    wanted = x.copy()
    for k in range(3):
        if 0 <= start + k < 16:
            wanted[:, start + k] = 3 * wanted[:, start + k] - u[:, k]
    text = scatter(
        "5x16x8xf32",
        "1xi32",
        "5x3x8xf32",
        "update_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [1]",
        """%c = stablehlo.constant dense<3.0> : TYPE
    %d = stablehlo.multiply %a, %c : TYPE
    %s = stablehlo.subtract %d, %b : TYPE""",
        before=f"%i = stablehlo.constant dense<{start}> : tensor<1xi32>",
    )
    np.testing.assert_array_equal(off_the_scalar_unit(text, x, u), wanted)


ROWS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"


@pytest.mark.parametrize(
    ("kind", "dtype", "function", "ufunc"),
    [
        ("i1", np.bool_, "or", np.logical_or),
        ("i1", np.bool_, "minimum", np.minimum),
        ("i8", np.int8, "add", np.add),
        ("ui8", np.uint8, "multiply", np.multiply),
        ("i16", np.int16, "subtract", np.subtract),
        ("ui16", np.uint16, "minimum", np.minimum),
        ("ui32", np.uint32, "maximum", np.maximum),
        ("ui64", np.uint64, "minimum", np.minimum),
        ("f64", np.float64, "maximum", np.maximum),
    ],
)
def test_types(kind: str, dtype: Any, function: str, ufunc: Any) -> None:
    """Numbers of the whole range, whose sums and products wrap around; many of one place."""
    random = np.random.default_rng(3)
    x, u = (random.integers(0, 256, (n, dtype().itemsize)).astype(np.uint8) for n in (300, 90))
    if kind == "i1":
        x, u = x & 1, u & 1
    x, u = x.view(dtype)[:, 0].copy(), u.view(dtype)[:, 0].copy()
    places = random.integers(0, 60, (90, 1)).astype(np.int32)
    wanted = x.copy()
    with np.errstate(all="ignore"):
        ufunc.at(wanted, places[:, 0], u)
    text = scatter(f"300x{kind}", "90x1xi32", f"90x{kind}", ROWS, function)
    np.testing.assert_array_equal(off_the_scalar_unit(text, x, places, u), wanted)


def test_any_function_of_places_that_differ() -> None:
    """One that nothing combines by: what is there is gathered, and places outside are left out."""
    random = np.random.default_rng(4)
    x, u = (random.standard_normal((n, 24), np.float32) for n in (100, 40))
    places = np.concatenate([random.permutation(100)[:36], [-1, 100, 2**30, -(2**31)]])
    places = places.astype(np.int32)[:, None]
    wanted = x.copy()
    wanted[places[:36, 0]] = abs(x[places[:36, 0]] * u[:36])
    text = scatter(
        "100x24xf32",
        "40x1xi32",
        "40x24xf32",
        f"update_window_dims = [1], {ROWS}",
        """%c = stablehlo.multiply %a, %b : TYPE
    %s = stablehlo.abs %c : TYPE""",
        unique=True,
    )
    np.testing.assert_array_equal(off_the_scalar_unit(text, x, places, u), wanted)
