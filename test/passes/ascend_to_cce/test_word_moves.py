"""Moves of elements that are no whole blocks, against NumPy, without the scalar unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from davinci import machine as machines
from davinci.schedule.meetings import LaunchPrice
from operator_support import run_operator
from pairs import all_pairs
from support import compile_text

Array = np.ndarray[Any, Any]

TYPES = [np.float16, np.float32, np.int8, np.int64]


def counting(shape: tuple[int, ...], dtype: Any, first: int = 0) -> Array:
    return ((np.arange(np.prod(shape)) + first) % 2039).astype(dtype).reshape(shape)


def transposed(x: Array, permutation: Sequence[int]) -> Any:
    wanted = x.transpose(permutation)
    attributes = f"permutation = {listed(permutation)}"
    return wanted, run_operator("transpose", [x], wanted.shape, x.dtype, attributes)


def listed(values: Any) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def scalar_accesses(run: Any) -> int:
    return int(run.profile.scalar_accesses)


@pytest.mark.parametrize(
    ("shape", "permutation"),
    [
        ((1, 224, 224, 3), (0, 3, 1, 2)),
        ((1, 3, 224, 224), (0, 2, 3, 1)),
        ((2, 3, 37, 41), (0, 2, 3, 1)),
        ((257, 1, 5), (2, 1, 0)),
        ((31, 7, 5), (0, 2, 1)),
        ((4099, 2), (1, 0)),
        ((2, 4099), (1, 0)),
        ((12, 17, 3, 5), (2, 0, 3, 1)),
        ((7, 2), (1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", TYPES)
def test_transpose(shape: tuple[int, ...], permutation: tuple[int, ...], dtype: Any) -> None:
    x = counting(shape, dtype)
    wanted = x.transpose(permutation)
    found = run_operator(
        "transpose", [x], wanted.shape, dtype, f"permutation = {listed(permutation)}"
    )
    np.testing.assert_array_equal(found.outputs[0], wanted)
    assert scalar_accesses(found) == 0


@pytest.mark.parametrize(
    ("shape", "cuts"),
    [
        ((1000, 100), (slice(0, 1000, 1), slice(3, 7, 1))),
        ((1000, 100), (slice(1, 1000, 3), slice(0, 100, 2))),
        ((100_000,), (slice(0, 100_000, 3),)),
        ((64, 1001), (slice(0, 64, 1), slice(0, 1001, 2))),
        ((33, 5, 7), (slice(0, 33, 1), slice(1, 4, 2), slice(2, 5, 1))),
        ((19,), (slice(18, 19, 1),)),
    ],
)
@pytest.mark.parametrize("dtype", TYPES)
def test_slice(shape: tuple[int, ...], cuts: tuple[slice, ...], dtype: Any) -> None:
    x = counting(shape, dtype)
    wanted = x[cuts]
    names = {"starts": "start", "limits": "stop", "strides": "step"}
    attributes = (
        f"{name} = {listed(getattr(c, part) for c in cuts)}" for name, part in names.items()
    )
    found = run_operator("slice", [x], wanted.shape, dtype, ", ".join(attributes))
    np.testing.assert_array_equal(found.outputs[0], wanted)
    assert scalar_accesses(found) == 0


@pytest.mark.parametrize(
    ("first", "second", "dim"),
    [
        ((1000, 3), (1000, 1), 1),
        ((1009, 1), (1009, 1), 1),
        ((3, 5, 2), (3, 4, 2), 1),
        ((3,), (4,), 0),
    ],
)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("machine", ["ascend910", "ascend310"])
def test_concat(
    first: tuple[int, ...], second: tuple[int, ...], dim: int, dtype: Any, machine: str
) -> None:
    a, b = counting(first, dtype), counting(second, dtype, 1000)
    wanted = np.concatenate([a, b], dim)
    found = run_operator(
        "concat", [a, b], wanted.shape, dtype, f"dim = {dim} : i64", machine=machine, cores=2
    )
    np.testing.assert_array_equal(found.outputs[0], wanted)
    assert scalar_accesses(found) == 0


@pytest.mark.parametrize(
    ("case", "kind", "number"),
    all_pairs(
        [
            ((5, 3), (1, 2), (0, 1), (0, 0)),
            ((300, 7), (0, 1), (0, 1), (0, 0)),
            ((40, 9, 5), (0, 1, 0), (0, 0, 2), (0, 1, 2)),
            ((40, 9), (0, -2), (0, 3), (0, 0)),
        ],
        ["f32", "i8", "i64"],
        [0, 77, -3],
    ),
)
def test_pad(case: tuple[tuple[int, ...], ...], kind: str, number: int) -> None:
    """The shape, and what is added in front, behind and between."""
    dtype = {"f32": np.float32, "i8": np.int8, "i64": np.int64}[kind]
    shape, low, high, interior = case
    x = counting(shape, dtype)
    opened = np.full([n + (n - 1) * i for n, i in zip(shape, interior, strict=True)], number, dtype)
    opened[tuple(slice(None, None, i + 1) for i in interior)] = x
    wide = [(max(0, a), max(0, b)) for a, b in zip(low, high, strict=True)]
    wanted = np.pad(opened, wide, constant_values=number)
    wanted = wanted[tuple(slice(-min(0, a), None) for a in low)]
    text = f"low = {listed(low)}, high = {listed(high)}, interior = {listed(interior)}"
    value = f"{number}.0 : {kind}" if kind == "f32" else f"{number} : {kind}"
    given_value = np.array(number, dtype)
    found = run_operator("pad", [x, given_value], wanted.shape, dtype, text, full={1: value})
    np.testing.assert_array_equal(found.outputs[0], wanted)
    assert scalar_accesses(found) == 0


def test_fewer_rows_where_sixteen_do_not_fit() -> None:
    """128 points of 225 words and of the 196 that they come from are more than UB holds."""
    x = counting((528, 14, 14), np.float32)
    text = f"low = {listed([0] * 3)}, high = {listed([0, 1, 1])}, interior = {listed([0] * 3)}"
    found = run_operator(
        "pad", [x, np.array(7, np.float32)], (528, 15, 15), np.float32, text, full={1: "7.0 : f32"}
    )
    wanted = np.pad(x, [(0, 0), (0, 1), (0, 1)], constant_values=7)
    np.testing.assert_array_equal(found.outputs[0], wanted)
    assert found.profile.cycles < 10_000  # planes one by one take 14,567


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(1, 23), min_size=2, max_size=4),
    seed=st.randoms(use_true_random=False),
    dtype=st.sampled_from(TYPES),
)
def test_any_transpose(shape: list[int], seed: Any, dtype: Any) -> None:
    permutation = list(range(len(shape)))
    seed.shuffle(permutation)
    x = counting(tuple(shape), dtype)
    wanted = x.transpose(permutation)
    found = run_operator(
        "transpose", [x], wanted.shape, dtype, f"permutation = {listed(permutation)}"
    )
    np.testing.assert_array_equal(found.outputs[0], wanted)


@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, "f32"), (np.int8, "i8")])
def test_pieces_of_one_array_are_loaded_once(dtype: Any, kind: str) -> None:
    """Columns turned round in front of their array and behind it, as reflection pads."""
    x = counting((210, 64), dtype)
    wanted = np.concatenate([x[:, 3:0:-1], x, x[:, 62:59:-1]], 1)
    executable = compile_text(
        f"""func.func @main(%x: tensor<210x64x{kind}>) -> tensor<210x70x{kind}> {{
          %a = stablehlo.slice %x [0:210, 1:4] : (tensor<210x64x{kind}>) -> tensor<210x3x{kind}>
          %b = stablehlo.reverse %a, dims = [1] : tensor<210x3x{kind}>
          %c = stablehlo.slice %x [0:210, 60:63] : (tensor<210x64x{kind}>) -> tensor<210x3x{kind}>
          %d = stablehlo.reverse %c, dims = [1] : tensor<210x3x{kind}>
          %r = stablehlo.concatenate %b, %x, %d, dim = 1 : (tensor<210x3x{kind}>,
            tensor<210x64x{kind}>, tensor<210x3x{kind}>) -> tensor<210x70x{kind}>
          return %r : tensor<210x70x{kind}> }}"""
    )
    (found,) = executable.run(x).values()
    np.testing.assert_array_equal(found, wanted)
    (kernel,) = executable.profile["kernels"]
    assert kernel["scalar_accesses"] == 0
    assert kernel["gm_read_bytes"] < 2 * x.nbytes


def test_rows_that_lie_apart_are_paid_for() -> None:
    """A transposition whose rows each miss the L2 takes as many cores as are fastest when run."""
    price = LaunchPrice(machines.load("ascend910"))

    def total(**options: Any) -> float:
        executable = compile_text(
            """func.func @main(%x: tensor<32x320xf32>) -> tensor<320x32xf32> {
              %r = stablehlo.transpose %x, dims = [1, 0] : (tensor<32x320xf32>)
                -> tensor<320x32xf32>
              return %r : tensor<320x32xf32> }""",
            timing_only=True,
            **options,
        )
        executable.run()
        (kernel,) = executable.profile["kernels"]
        return float(kernel["cycles"] + price.cycles(kernel["blocks"]))

    by_count = [total(cores=count, core_choice="all") for count in (1, 2, 4, 10)]
    assert total() <= min(by_count)
