"""Groups whose reduced axis comes in pieces, against NumPy: rows that UB cannot hold several of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pairs import in_turn
from support import compile_text

Array = npt.NDArray[Any]

INIT = {"maximum": "0xFF800000", "add": "0.0"}


def reduce(kind: str, result: str, source: str, m: int, n: int) -> str:
    return f"""%i{result} = stablehlo.constant dense<{INIT[kind]}> : tensor<f32>
  %{result} = stablehlo.reduce(%{source} init: %i{result}) applies stablehlo.{kind}
    across dimensions = [1] : (tensor<{m}x{n}xf32>, tensor<f32>) -> tensor<{m}xf32>"""


def rows(result: str, source: str, m: int, n: int) -> str:
    return f"""%{result} = stablehlo.broadcast_in_dim %{source}, dims = [0]
    : (tensor<{m}xf32>) -> tensor<{m}x{n}xf32>"""


def softmax(m: int, n: int) -> str:
    kind = f"tensor<{m}x{n}xf32>"
    return f"""func.func @main(%x: {kind}) -> {kind} {{
  {reduce("maximum", "m", "x", m, n)}
  {rows("b", "m", m, n)}
  %s = stablehlo.subtract %x, %b : {kind}
  %e = stablehlo.exponential %s : {kind}
  {reduce("add", "t", "e", m, n)}
  {rows("c", "t", m, n)}
  %r = stablehlo.divide %e, %c : {kind}
  return %r : {kind}
}}"""


def layer_norm(m: int, n: int) -> str:
    """(x - mean) gamma / deviation, and the deviation."""
    kind = f"tensor<{m}x{n}xf32>"
    return f"""func.func @main(%x: {kind}, %g: tensor<{n}xf32>) -> ({kind}, tensor<{m}xf32>) {{
  %n = stablehlo.constant dense<{1 / n:.9e}> : tensor<{m}xf32>
  {reduce("add", "t", "x", m, n)}
  %mean = stablehlo.multiply %t, %n : tensor<{m}xf32>
  {rows("b", "mean", m, n)}
  %d = stablehlo.subtract %x, %b : {kind}
  %q = stablehlo.multiply %d, %d : {kind}
  {reduce("add", "v", "q", m, n)}
  %variance = stablehlo.multiply %v, %n : tensor<{m}xf32>
  %deviation = stablehlo.sqrt %variance : tensor<{m}xf32>
  {rows("c", "deviation", m, n)}
  %y = stablehlo.divide %d, %c : {kind}
  %gamma = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<{n}xf32>) -> {kind}
  %z = stablehlo.multiply %y, %gamma : {kind}
  return %z, %deviation : {kind}, tensor<{m}xf32>
}}"""


def sums_of_columns(m: int, n: int) -> str:
    """x - the sum of its column / m."""
    kind = f"tensor<{m}x{n}xf32>"
    return f"""func.func @main(%x: {kind}) -> {kind} {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.constant dense<{1 / m:.9e}> : tensor<{n}xf32>
  %t = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
    : ({kind}, tensor<f32>) -> tensor<{n}xf32>
  %mean = stablehlo.multiply %t, %k : tensor<{n}xf32>
  %b = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<{n}xf32>) -> {kind}
  %r = stablehlo.subtract %x, %b : {kind}
  return %r : {kind}
}}"""


def run(text: str, *inputs: Array, **options: Any) -> tuple[list[Array], list[str]]:
    """Outputs, and the schedules of the kernels."""
    executable = compile_text(text, **options)
    arrays = dict(zip(executable.input_names, inputs, strict=True))
    found = list(executable.run(arrays).values())
    return found, [kernel["schedule"] for kernel in executable.profile["kernels"]]


def uniform(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(-4, 4, shape).astype(np.float32)


LENGTHS = [30000, 32768, 30522, 50021, 65537, 100000]
"""Rows that fit UB once, or not at all; whole blocks, ends inside a block, a prime."""


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("m", [1, 3])
def test_softmax(m: int, n: int) -> None:
    x = uniform(m, n)
    (found,), schedules = run(softmax(m, n), x, cores=m)  # with more, a row is parted among them
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=4e-6, atol=1e-12)
    assert len(schedules) == 1 and "pieces" in schedules[0]


def test_a_row_that_fills_ub_is_kept() -> None:
    """The exponentials of 50,257 numbers take the place of these, in 7 pieces, and the pieces that
    sums are gathered in that of those before: there is room for all, so each is computed once."""
    executable = compile_text(softmax(2, 50257), cores=2)
    x = uniform(2, 50257)
    (found,) = executable.run(x).values()
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)
    (kernel,) = executable.profile["kernels"]
    assert "7296 in 7 pieces, kept" in kernel["schedule"]
    assert kernel["gm_read_bytes"] < 1.01 * x.nbytes


@pytest.mark.parametrize(("cores", "n"), in_turn([1, 2, 7, 32], [32768, 40003]))
def test_cores_share_a_row(cores: int, n: int) -> None:
    x = uniform(2, n)
    (found,), schedules = run(softmax(2, n), x, cores=cores)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=4e-6, atol=1e-12)
    assert ("a tile" in schedules[0]) == (cores > 2)


@pytest.mark.parametrize(
    ("machine", "cores", "n"),
    [("ascend910", 7, 40003), ("ascend910b", 12, 40003), ("ascend310p", 8, 70001)],
)
def test_cores_that_share_a_row_meet(machine: str, cores: int, n: int) -> None:
    """Each of them reads its own pieces only; the statistic is stored by one of each row."""
    x, gamma = uniform(2, n) + 5, uniform(n)
    options = {"machine": machine, "cores": cores, "core_choice": "all"}
    executable = compile_text(layer_norm(2, n), **options)
    arrays = dict(zip(executable.input_names, (x, gamma), strict=True))
    for _ in range(2):  # counters go on from where they stood
        found, deviation = executable.run(arrays).values()
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(deviation, wide.std(1), rtol=1e-5)
    np.testing.assert_allclose(found, expected * gamma, rtol=1e-4, atol=1e-4)
    (kernel,) = executable.profile["kernels"]
    assert "which meet" in kernel["schedule"]
    assert kernel["gm_read_bytes"] < 1.1 * (x.nbytes + 2 * gamma.nbytes)


@pytest.mark.parametrize("machine", ["ascend910", "ascend310"])
def test_machines(machine: str) -> None:
    x = uniform(2, 32768)
    (found,), _ = run(softmax(2, 32768), x, machine=machine)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=4e-6, atol=1e-12)


@pytest.mark.parametrize("n", [30000, 30522, 70001])
def test_layer_norm(n: int) -> None:
    x, gamma = uniform(3, n) + 5, uniform(n)
    (found, deviation), _ = run(layer_norm(3, n), x, gamma)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(deviation, wide.std(1), rtol=1e-5)
    np.testing.assert_allclose(found, expected * gamma, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("m", "n"), [(1000, 77), (4099, 16), (3000, 130), (20000, 8)])
def test_sums_of_columns(m: int, n: int) -> None:
    x = uniform(m, n)
    (found,), _ = run(sums_of_columns(m, n), x)
    np.testing.assert_allclose(found, x - x.astype(np.float64).mean(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("m", "n"), [(17, 32), (200, 32), (1, 33), (5000, 100)])
def test_statistics_of_statistics(m: int, n: int) -> None:
    """What is combined with the second one lacks the axis that the first one has reduced."""
    text = f"""func.func @main(%x: tensor<{m}x{n}xf32>) -> tensor<{n}xf32> {{
    %least = "ascend.reduce"(%x) {{kind = "min", dims = array<i64: 0>}}
        : (tensor<{m}x{n}xf32>) -> tensor<{n}xf32>
    %most = "ascend.reduce"(%least) {{kind = "max", dims = array<i64: 0>}}
        : (tensor<{n}xf32>) -> tensor<f32>
    %all = "ascend.broadcast"(%most) {{dims = array<i64>}} : (tensor<f32>) -> tensor<{n}xf32>
    %d = "ascend.sub"(%least, %all) : (tensor<{n}xf32>, tensor<{n}xf32>) -> tensor<{n}xf32>
    return %d : tensor<{n}xf32>
    }}"""
    x = uniform(m, n)
    least = x.min(0)
    (found,), _ = run(text, x)
    np.testing.assert_array_equal(found, least - least.max())


def test_statistics_of_pieces() -> None:
    """A row statistic beside a reduction over rows: the last piece has fewer of them."""
    kind = "tensor<255x129xf32>"
    text = f"""func.func @main(%a: {kind}, %s: tensor<255xf32>) -> ({kind}, {kind}, {kind}) {{
  {rows("b", "s", 255, 129)}
  %m = stablehlo.maximum %b, %a : {kind}
  %p = stablehlo.add %b, %m : {kind}
  %q = stablehlo.multiply %m, %m : {kind}
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0]
    : ({kind}, tensor<f32>) -> tensor<129xf32>
  %d = stablehlo.sqrt %t : tensor<129xf32>
  %c = stablehlo.broadcast_in_dim %d, dims = [1] : (tensor<129xf32>) -> {kind}
  %r = stablehlo.multiply %m, %c : {kind}
  return %m, %p, %r : {kind}, {kind}, {kind}
}}"""
    a, s = uniform(255, 129), uniform(255)
    (m, p, r), (schedule,) = run(text, a, s, machine="ascend310", cores=1)
    assert "29 in 9 pieces" in schedule
    wanted = np.maximum(s[:, None], a)
    np.testing.assert_array_equal(m, wanted)
    np.testing.assert_array_equal(p, s[:, None] + wanted)
    np.testing.assert_allclose(r, wanted * np.sqrt((wanted * wanted).sum(0)), rtol=1e-5)


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
def test_short_rows_of_a_column_are_held_as_such(machine: str) -> None:
    """exp(x) and its sums along the middle of [3, 6000, 16]: rows of 16 take 16 lanes in UB, so
    that the pieces of cores that meet have room."""
    text = """func.func @main(%x: tensor<3x6000x16xf32>)
      -> (tensor<3x6000x16xf32>, tensor<3x16xf32>) {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %e = stablehlo.exponential %x : tensor<3x6000x16xf32>
      %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<3x6000x16xf32>, tensor<f32>) -> tensor<3x16xf32>
      return %e, %s : tensor<3x6000x16xf32>, tensor<3x16xf32> }"""
    x = np.random.default_rng(0).standard_normal((3, 6000, 16)).astype(np.float32)
    executable = compile_text(text, machine=machine, cores=12, core_choice="all")
    each, sums = executable.run(x).values()
    np.testing.assert_allclose(each, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(sums, np.exp(x.astype(np.float64)).sum(1), rtol=1e-5)
    (kernel,) = executable.profile["kernels"]
    assert kernel["blocks"] == (24 if machine == "ascend910b" else 12)
