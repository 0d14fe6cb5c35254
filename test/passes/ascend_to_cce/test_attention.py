"""Attention in one kernel, against NumPy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from attention_support import Attention
from pairs import all_pairs, in_turn

SHAPES = [
    {"rows": 1, "keys": 1, "depth": 1},
    {"rows": 1, "keys": 50, "depth": 64},
    {"rows": 15, "keys": 17, "depth": 32},
    {"rows": 17, "keys": 16, "depth": 48},
    {"rows": 40, "keys": 77, "depth": 40},
    {"rows": 77, "keys": 77, "depth": 64, "columns": 80},
    {"rows": 197, "keys": 33, "depth": 128, "columns": 24},
    {"rows": 33, "keys": 197, "depth": 80},
    {"rows": 20, "keys": 48, "depth": 256},
    {"rows": 64, "keys": 500, "depth": 64},
]


@pytest.mark.parametrize(("shape", "scores"), in_turn(SHAPES, ["f16", "f32"]), ids=str)
def test_shapes(shape: dict[str, int], scores: str) -> None:
    cores = 1 if shape["rows"] % 2 else 32
    Attention(**shape, scores=scores, mask="key", batch=2, heads=1).check(cores=cores)


@pytest.mark.parametrize(
    ("nz", "rows"), [("qkvo", 48), ("qkvo", 40), ("q", 40), ("kv", 48), ("vo", 40)]
)
def test_layouts(nz: str, rows: int) -> None:
    """Operands and result in fractals; what lies outside them is changed by kernels of its own."""
    Attention(rows=rows, keys=70, nz=nz, depth=40).check(None, cores=3)


SPELLINGS: list[dict[str, Any]] = [
    {"scale": 1.0},
    {"scale": 0.125, "by": "div"},
    {"scale": 0.11},
    {"scale": 0.11, "by": "div", "scores": "f16"},
    {"turned": True},
    {"result": "f32"},
    {"result": "f32", "nz": "o"},
    {"mask": "row", "batch": 3},
    {"mask": "key", "batch": 3, "scores": "f16"},
    {"shared": 2, "heads": 4, "batch": 2},
    {"shared": 4, "heads": 4, "mask": "key", "batch": 2},
    {"spread": 6.0},
    {"spread": 0.0},
]


@pytest.mark.parametrize(
    ("options", "cores"),
    [*in_turn(SPELLINGS, [1, 32]), ({"result": "f32", "nz": "o"}, 32)],  # whole fractals of rows
    ids=str,
)
def test_spellings(options: dict[str, Any], cores: int) -> None:
    launches = None if "nz" in options else 1
    Attention(rows=33, keys=50, **options).check(launches, cores=cores)


@pytest.mark.parametrize(
    ("mask", "flags", "rows"),
    [
        *all_pairs(["key", "whole", "head", "causal"], [False, True], [1, 33]),
        ("causal", True, 1),  # a row that all units have in common
    ],
)
def test_masks(mask: str, flags: bool, rows: int) -> None:
    """What masks need before is in kernels of its own; scores are not."""
    scores = "f16" if mask == "whole" else "f32"
    options = {"rows": rows, "keys": 50, "batch": 2, "mask": mask, "flags": flags}
    executable = Attention(**options, scores=scores).check(None, cores=3)
    assert sum("attention" in launch.name for launch in executable.launches) == 1
    assert not any("matmul" in launch.name for launch in executable.launches)


@pytest.mark.parametrize(
    ("low", "scale", "shape"),
    all_pairs(
        [-5.0, -1e4, -3.4028234663852886e38],
        [0.125, 0.11],
        [(1, 33, 2), (3, 70, 1), (2, 130, 32)],
    ),
)
def test_columns(low: float, scale: float, shape: tuple[int, int, int]) -> None:
    """Masks of f32 with a number for each key; one that hides all of them."""
    batch, rows, cores = shape
    options = {"rows": rows, "keys": 50, "batch": batch, "mask": "key", "empty": True}
    Attention(**options, low=low, scale=scale).check(cores=cores)


@pytest.mark.parametrize(
    "options",
    [
        {"heads": 20, "rows": 16, "keys": 16, "depth": 6, "scores": "f16"},
        {"rows": 40, "keys": 77, "depth": 20, "columns": 24},
        {"rows": 33, "keys": 50, "depth": 40, "columns": 20, "result": "f32"},
        {"rows": 15, "keys": 17, "depth": 7, "columns": 5},
    ],
    ids=lambda options: "x".join(map(str, options.values())),
)
def test_rows_that_are_no_whole_blocks(options: dict[str, Any]) -> None:
    """They come and leave as runs: the scalar unit moves no more than the end of a matrix."""
    made = Attention(**options).check(cores=4)
    assert made.launches[0].scalar_accesses < 4 * 16 * 2 * options.get("heads", 2)


@pytest.mark.parametrize(
    ("options", "cores"),
    [
        ({"mask": "whole", "scores": "f16"}, 1),
        ({"mask": "whole", "scores": "f32", "result": "f32"}, 32),
        ({"mask": "key", "scores": "f32"}, 1),
        ({"mask": "key", "scores": "f16", "keys": 4500, "heads": 1, "spread": 3.0}, 32),
        ({"mask": "whole", "flags": True}, 1),
    ],
    ids=str,
)
def test_rows_of_which_nothing_is_left(options: dict[str, Any], cores: int) -> None:
    """Weights that are no number are zeros: minus infinity hides all keys of the last batch."""
    options = {"rows": 33, "keys": 50, "batch": 2, "low": -np.inf, **options}
    guarded = Attention(**options, empty=True, guarded=True)
    made = guarded.check(None, cores=cores)
    assert sum("attention" in launch.name for launch in made.launches) == 1
    assert not guarded.wanted().reshape(2, -1)[-1].any()


def test_two_masks() -> None:
    Attention(rows=40, keys=70, batch=2, mask="key+row").check(cores=3)


@pytest.mark.parametrize(("rows", "scores"), [(1, "f32"), (20, "f16"), (35, "f32")])
def test_many_keys(rows: int, scores: str) -> None:
    """Keys in blocks, the last of which is ragged."""
    options = {"rows": rows, "keys": 4500, "heads": 1, "mask": "key", "scores": scores}
    Attention(**options, spread=3.0).check(cores=2)


def test_several_units_on_a_core() -> None:
    """Buffers are used again while the next unit's scores are computed."""
    Attention(rows=160, keys=160, heads=3, batch=2, mask="key").check(cores=2)


@pytest.mark.parametrize(
    ("options", "cores"),
    [
        ({"rows": 60, "keys": 130}, 2),
        ({"rows": 64, "keys": 500, "result": "f32"}, 8),
        ({"rows": 64, "keys": 500, "nz": "vo"}, 8),
        ({"rows": 64, "keys": 300, "spread": 6.0}, 1),
    ],
    ids=["ragged", "rows", "fractals", "one-core"],
)
def test_units_of_a_line_together(options: dict[str, Any], cores: int) -> None:
    """Scores of f16 of three matrices, lines of which have rows of two."""
    made = Attention(heads=3, scores="f16", **options).check(None, cores=cores)
    assert any("a line at once" in k.get("schedule", "") for k in made.profile["kernels"])


@pytest.mark.parametrize("machine", ["ascend310"])
def test_machines(machine: str) -> None:
    Attention(rows=33, keys=50, mask="key").check(None, machine=machine)


def test_one_row_of_all_heads() -> None:
    """As a decoder computes a word: the queries of all heads are one row, keys are a cache."""
    x, w, cache = "tensor<1x32xf16>", "tensor<32x64xf16>", "tensor<4x34x16xf32>"
    text = f"""func.func @main(%x: {x}, %w: {w}, %k: {cache}, %v: {cache}) -> tensor<4x1x16xf32> {{
  %q = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> tensor<1x64xf32>
  %0 = stablehlo.reshape %q : (tensor<1x64xf32>) -> tensor<4x1x16xf32>
  %1 = stablehlo.dot_general %0, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
    : (tensor<4x1x16xf32>, {cache}) -> tensor<4x1x34xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum across dimensions = [2]
    : (tensor<4x1x34xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x34xf32>
  %4 = stablehlo.subtract %1, %3 : tensor<4x1x34xf32>
  %5 = stablehlo.exponential %4 : tensor<4x1x34xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<4x1x34xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x34xf32>
  %8 = stablehlo.divide %5, %7 : tensor<4x1x34xf32>
  %9 = stablehlo.dot_general %8, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<4x1x34xf32>, {cache}) -> tensor<4x1x16xf32>
  return %9 : tensor<4x1x16xf32>
}}"""
    random = np.random.default_rng(0)
    shapes = (1, 32), (32, 64), (4, 34, 16), (4, 34, 16)
    given = {f"arg{i}": random.standard_normal(s, np.float32) for i, s in enumerate(shapes)}
    given |= {name: (given[name] / 4).astype(np.float16) for name in ("arg0", "arg1")}
    executable = davinci.compile(text, cores=3)
    (found,) = executable.run(given).values()
    x, w, keys, values = (array.astype(np.float64) for array in given.values())
    weights = np.exp((x @ w).reshape(4, 1, 16) @ keys.swapaxes(1, 2))
    wanted = weights / weights.sum(axis=2, keepdims=True) @ values
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-3)
    assert sum("attention" in launch.name for launch in executable.launches) == 1
