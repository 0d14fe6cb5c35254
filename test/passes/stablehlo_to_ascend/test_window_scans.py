"""Windows with any function, and products of many small matrices, on the vector unit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.mlir import ir, make_context
from davinci.passes.pipeline.runner import run
from davinci.passes.stablehlo_to_ascend.small_products import LANES_OF_CORES, LEAST_BATCH
from davinci.reference import interpreter
from pairs import in_turn

LINEAR = """%r:2 = "stablehlo.reduce_window"(%a, %b, %one, %zero) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %x: tensor<f32>, %y: tensor<f32>):
    %0 = stablehlo.multiply %p, %x : tensor<f32>
    %1 = stablehlo.multiply %q, %x : tensor<f32>
    %2 = stablehlo.add %1, %y : tensor<f32>
    stablehlo.return %0, %2 : tensor<f32>, tensor<f32>
  })"""
"""Linear functions one after the other: associative, not commutative."""


def composed(a: Any, b: Any, size: tuple[int, int], steps: tuple[int, int]) -> Any:
    """What windows of linear functions do to 0, one function after the other as they lie."""
    counts = [(n - k) // s + 1 for n, k, s in zip(a.shape, size, steps, strict=True)]
    found = np.zeros(counts, np.float32)
    for at in np.ndindex(*counts):
        rows, columns = (range(i * s, i * s + k) for i, s, k in zip(at, steps, size, strict=True))
        for place in itertools.product(rows, columns):
            found[at] = found[at] * a[place] + b[place]
    return found


@pytest.mark.parametrize(
    ("size", "steps"), [((1, 17), (1, 1)), ((2, 3), (2, 1)), ((3, 16), (1, 2)), ((1, 1), (1, 1))]
)
def test_functions_that_do_not_commute(size: tuple[int, int], steps: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 1, (5, 17)).astype(np.float32) for _ in range(2))
    wanted = composed(a, b, size, steps)
    kind, made = "tensor<5x17xf32>", f"tensor<{wanted.shape[0]}x{wanted.shape[1]}xf32>"
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> {made} {{
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      {LINEAR} {{window_dimensions = array<i64: {size[0]}, {size[1]}>,
        window_strides = array<i64: {steps[0]}, {steps[1]}>}}
        : ({kind}, {kind}, tensor<f32>, tensor<f32>) -> ({made}, {made})
      return %r#1 : {made} }}"""
    executable = davinci.compile(text)
    (found,) = executable.run(a, b).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert {k["unit"] for k in executable.profile["kernels"]} == {"vector"}


FUNCTIONS = {
    "a sum of squares": ("%1 = stablehlo.multiply %y, %y : tensor<T>", "add %x, %1", False),
    "a mean": ("%1 = stablehlo.add %x, %y : tensor<T>", "multiply %1, %h", False),
    "a difference": ("", "subtract %x, %y", False),
    "a sum of more than either": ("%1 = stablehlo.add %x, %y : tensor<T>", "add %1, %h", True),
    "the first": ("", "maximum %x, %x", True),
}
"""Functions of x and y, in which h is a constant from outside: how they begin, their last
operation, and whether they are associative."""


@pytest.mark.parametrize("kind", ["f32", "f16", "i32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_element_after_the_other_where_order_matters(name: str, kind: str) -> None:
    first, last, associative = FUNCTIONS[name]
    zero, half = ("0", "2") if kind == "i32" else ("0.0", "0.5")
    text = f"""func.func @main(%a: tensor<3x9xT>) -> tensor<3x5xT> {{
      %z = stablehlo.constant dense<{zero}> : tensor<T>
      %h = stablehlo.constant dense<{half}> : tensor<T>
      %r = "stablehlo.reduce_window"(%a, %z) ({{
      ^bb0(%x: tensor<T>, %y: tensor<T>):
        {first}
        %2 = stablehlo.{last} : tensor<T>
        stablehlo.return %2 : tensor<T>
      }}) {{window_dimensions = array<i64: 1, 5>}} : (tensor<3x9xT>, tensor<T>) -> tensor<3x5xT>
      return %r : tensor<3x5xT> }}"""
    text = text.replace("<T>", f"<{kind}>").replace("xT>", f"x{kind}>")
    executable = davinci.compile(text)
    dtype = {"f32": np.float32, "f16": np.float16, "i32": np.int32}[kind]
    x = np.random.default_rng(0).integers(-3, 4, (3, 9)).astype(dtype)
    (found,) = executable.run(x).values()
    with make_context():
        module = ir.Module.parse(text)
        wanted = interpreter.evaluate(module, {"a": x}, ["r"])["r"]
    np.testing.assert_allclose(found, wanted, rtol=2e-3)
    units = {k["unit"] for k in executable.profile["kernels"]}
    assert ("scalar" in units) is not associative


LOGADDEXP = """%d = stablehlo.subtract %x, %y : tensor<T>
  %odd = stablehlo.compare NE, %d, %d : (tensor<T>, tensor<T>) -> tensor<i1>
  %sum = stablehlo.add %x, %y : tensor<T>
  %far = stablehlo.abs %d : tensor<T>
  %near = stablehlo.negate %far : tensor<T>
  %e = stablehlo.exponential %near : tensor<T>
  %l = stablehlo.log_plus_one %e : tensor<T>
  %m = stablehlo.maximum %x, %y : tensor<T>
  %made = stablehlo.add %m, %l : tensor<T>
  %r = stablehlo.select %odd, %sum, %made : tensor<i1>, tensor<T>"""
NAIVE = """%p = stablehlo.exponential %x : tensor<T>
  %q = stablehlo.exponential %y : tensor<T>
  %s = stablehlo.add %p, %q : tensor<T>
  %r = stablehlo.log %s : tensor<T>"""


def sums_of_exponentials(body: str, kind: str, rows: int, size: int, start: str) -> str:
    """Running sums of exponentials in rows, of windows that reach back to the first element."""
    given = f"tensor<{rows}x{size}xT>"
    text = f"""func.func @main(%a: {given}) -> {given} {{
      %z = stablehlo.constant dense<{start}> : tensor<T>
      %w = "stablehlo.reduce_window"(%a, %z) ({{
      ^bb0(%x: tensor<T>, %y: tensor<T>):
        {body}
        stablehlo.return %r : tensor<T>
      }}) {{window_dimensions = array<i64: 1, {size}>,
        padding = dense<[[0, 0], [{size - 1}, 0]]> : tensor<2x2xi64>}}
        : ({given}, tensor<T>) -> {given}
      return %w : {given} }}"""
    return text.replace("<T>", f"<{kind}>").replace("xT>", f"x{kind}>")


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("f32", (1, 5)), ("f16", (1, 5)), ("f16", (3, 17))],
)
def test_running_sums_of_exponentials(kind: str, shape: tuple[int, int]) -> None:
    start = {"f32": "0xFF800000", "f16": "0xFC00"}[kind]
    dtype = np.float32 if kind == "f32" else np.float16
    x = np.random.default_rng(2).normal(0, 30, shape).astype(dtype)
    inf = np.inf
    x[0, :5] = [-inf, -inf, 3, np.finfo(dtype).max, inf]
    x[-1, 1:4] = [-200, inf, -inf] if shape[0] > 1 else x[-1, 1:4]
    x[shape[0] // 2, 4] = np.nan
    executable = davinci.compile(sums_of_exponentials(LOGADDEXP, kind, *shape, start))
    (found,) = executable.run(x).values()
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp.accumulate(wide, axis=1)
    rtol = 1e-6 if kind == "f32" else 2e-3
    np.testing.assert_allclose(found, wanted.astype(dtype), rtol=rtol, atol=2e-5)
    assert {k["unit"] for k in executable.profile["kernels"]} == {"vector"}


def logarithms(body: str, start: str) -> int:
    """Logarithms in what becomes of running sums of 8 rows of 16."""
    with make_context():
        module = ir.Module.parse(sums_of_exponentials(body, "f32", 8, 16, start))
        run(module.operation, "builtin.module(stablehlo-expand-operators)")
        return str(module).count("stablehlo.log")


def test_one_logarithm_of_each_window() -> None:
    assert logarithms(LOGADDEXP, "0xFF800000") == 1
    assert logarithms(LOGADDEXP, "0.0") > 1  # it would be in windows that begin with padding
    assert logarithms(NAIVE, "0xFF800000") > 1  # infinite for numbers of which the other is not


def product(batch: int, m: int, k: int, n: int, kind: str) -> str:
    types = [f"tensor<{batch}x{r}x{c}x{kind}>" for r, c in ((m, k), (k, n), (m, n))]
    return f"""func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
      %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : ({types[0]}, {types[1]}) -> {types[2]}
      return %r : {types[2]} }}"""


SIZES = [
    (LEAST_BATCH, 1, 1, 1),
    (LEAST_BATCH + 1, 1, 1, 17),
    (LEAST_BATCH + 1, 15, 1, 1),
    (LEAST_BATCH, 1, 33, 1),
    (LANES_OF_CORES + 1, 2, 3, 5),
    (LANES_OF_CORES, 9, 1, 9),
]


@pytest.mark.parametrize(("size", "kind"), in_turn(SIZES, ["f32", "f16"]), ids=str)
def test_many_small_products(size: tuple[int, int, int, int], kind: str) -> None:
    batch, m, k, n = size
    rng = np.random.default_rng(1)
    dtype = np.float32 if kind == "f32" else np.float16
    a = rng.standard_normal((batch, m, k)).astype(dtype)
    b = rng.standard_normal((batch, k, n)).astype(dtype)
    executable = davinci.compile(product(batch, m, k, n, kind))
    (found,) = executable.run(a, b).values()
    wanted = np.matmul(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=1e-3 if kind == "f16" else 1e-5, atol=1e-5)
    assert {k["unit"] for k in executable.profile["kernels"]} == {"vector"}


def test_few_or_larger_ones_are_the_cubes() -> None:
    for size in ((LEAST_BATCH - 1, 1, 4, 1), (LANES_OF_CORES, 13, 2, 2)):
        executable = davinci.compile(product(*size, "f16"))
        shapes = ((size[0], size[1], size[2]), (size[0], size[2], size[3]))
        executable.run(*(np.ones(shape, np.float16) for shape in shapes))
        assert "cube" in {k["unit"] for k in executable.profile["kernels"]}
