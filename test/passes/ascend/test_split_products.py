"""precision=fp32: products of f32 by f16 parts, as exact as a dot product in f32."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci.operators.conversion import part_of, scale_of
from support import compile_text, run_text

Matrix = npt.NDArray[np.float32]
UNIT = 2.0**-24
RANDOM = np.random.default_rng(7)


def text(a: tuple[int, ...], b: tuple[int, ...], weight: Matrix | None = None) -> str:
    """A product of two arguments, or of one and a constant."""
    batch = len(a) - 2
    c = (*a[:-1], b[-1])
    types = ["tensor<" + "x".join(map(str, (*shape, "f32"))) + ">" for shape in (a, b, c)]
    batching = "batching_dims = [0] x [0], " if batch else ""
    known = (
        "" if weight is None else f"%b = stablehlo.constant dense<{weight.tolist()}> : {types[1]}"
    )
    arguments = f"%a: {types[0]}" + (f", %b: {types[1]}" if weight is None else "")
    return f"""func.func @main({arguments}) -> {types[2]} {{
      {known}
      %c = stablehlo.dot_general %a, %b, {batching}contracting_dims = [{batch + 1}] x [{batch}]
        : ({types[0]}, {types[1]}) -> {types[2]}
      return %c : {types[2]}
    }}"""


@cache
def product(a: tuple[int, ...], b: tuple[int, ...]) -> Any:
    """The product of two arguments of these shapes, compiled."""
    return compile_text(text(a, b), precision="fp32")


def multiply(a: Matrix, b: Matrix) -> Matrix:
    (found,) = product(a.shape, b.shape).run(a, b).values()
    return np.asarray(found, np.float32)


def bound(a: Matrix, b: Matrix) -> npt.NDArray[np.float64]:
    """The one that `split_products` states, and half of the least f32."""
    k = a.shape[-1]
    x, y = np.abs(a).astype(np.float64), np.abs(b).astype(np.float64)
    largest = x.max(-1, keepdims=True) * y.max(-2, keepdims=True)
    return np.asarray((k + 8) * UNIT * (x @ y) + k * 2.0**-37 * largest + 2.0**-150)


def normal(*shape: int) -> Matrix:
    return RANDOM.standard_normal(shape).astype(np.float32)


def powers(least: int, most: int, *shape: int) -> Matrix:
    return np.float32(10) ** RANDOM.integers(least, most, shape).astype(np.float32)


PAIRS: dict[str, tuple[Matrix, Matrix]] = {
    "ordinary": (normal(17, 33), normal(33, 5)),
    "one": (normal(1, 1), normal(1, 1)),
    "long": (normal(3, 700), normal(700, 20)),
    "batches": (normal(3, 5, 16), normal(3, 16, 7)),
    "large and small": (normal(8, 40) * np.float32(1e30), normal(40, 8) * np.float32(1e-30)),
    "small": (normal(8, 40) * np.float32(1e-20), normal(40, 8) * np.float32(1e-15)),
    "subnormal": (normal(8, 40) * np.float32(1e-41), normal(40, 8) * np.float32(1e30)),
    "rows and columns": (
        normal(20, 30) * powers(-18, 18, 20, 1),
        normal(30, 20) * powers(-18, 18, 1, 20),
    ),
    "within rows": (normal(20, 30) * powers(-3, 3, 20, 30), normal(30, 20)),
    "far apart within rows": (normal(20, 30) * powers(-18, 18, 20, 30), normal(30, 20)),
    "zeros": (normal(9, 30) * (np.arange(9)[:, None] % 2), normal(30, 9) * (np.arange(9) % 3)),
    "cancellation": (np.repeat(normal(4, 20), 2, 1), np.repeat(normal(20, 4), 2, 0)),
}
PAIRS["cancellation"][1][1::2] *= -1


@pytest.mark.parametrize("name", PAIRS)
def test_errors_are_those_of_a_dot_product_in_f32(name: str) -> None:
    a, b = (x.astype(np.float32) for x in PAIRS[name])
    exact = a.astype(np.float64) @ b.astype(np.float64)
    error = np.abs(multiply(a, b).astype(np.float64) - exact)
    assert (error <= bound(a, b)).all()


def test_the_bound_tells_f16_products_apart() -> None:
    a, b = PAIRS["ordinary"]
    (rough,) = run_text(text(a.shape, b.shape), a, b, precision="mixed")
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert not (np.abs(rough - exact) <= bound(a, b)).all()


def test_infinities_and_nan() -> None:
    a, b = normal(8, 20), normal(20, 8)
    a[1, 3], a[2, 5], a[3, 2], a[3, 4] = np.inf, np.nan, np.inf, -np.inf
    b[3, 4], b[:, 6], a[4] = -np.inf, 0, 0
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    found = multiply(a, b)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_array_equal(found[~np.isfinite(found)], wanted[~np.isfinite(wanted)])
    assert np.isnan(found[1, 6])  # inf * 0
    assert (found[4, :4] == 0).all()


def test_results_beyond_f32_are_infinite() -> None:
    a, b = np.full((2, 3), 1e30, np.float32), np.full((3, 2), -1e30, np.float32)
    assert (multiply(a, b) == -np.inf).all()
    a[:, 0], b[1:] = 0, 0  # every product has a factor 0
    assert (multiply(a, b) == 0).all()


def kernels(executable: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for launch in executable.launches:
        operator = launch.name.split("_f")[0]
        found[operator] = found.get(operator, 0) + 1
    return found


@pytest.mark.parametrize(("weight", "products"), [(normal(16, 8), 6), (np.ones((16, 8)) * 3, 3)])
def test_constants_are_split_at_compile_time(weight: Matrix, products: int) -> None:
    """What is exact in f16 has one part only."""
    a, weight = normal(4, 16), weight.astype(np.float32) + np.arange(8, dtype=np.float32)
    executable = compile_text(text(a.shape, weight.shape, weight), precision="fp32", fusion="none")
    (found,) = executable.run(a).values()
    exact = a.astype(np.float64) @ weight.astype(np.float64)
    assert (np.abs(found - exact) <= bound(a, weight)).all()
    counts = kernels(executable)
    assert counts["matmul"] == products
    assert counts["half_part"] == 3


def test_products_of_halves_are_exact_without_splitting() -> None:
    half = text((4, 16), (16, 8)).replace("f32", "f16")
    a, b = normal(4, 16).astype(np.float16), normal(16, 8).astype(np.float16)
    executable = compile_text(half, precision="fp32")
    (found,) = executable.run(a, b).values()
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=2**-10, atol=1e-6)
    assert kernels(executable)["matmul"] == 1
    assert "half_part" not in kernels(executable)


EDGES = [
    *(2.0**e for e in range(-149, 128)),
    *(np.nextafter(np.float32(2.0**e), np.float32(0)) for e in range(-125, 128)),
    *(0.0, np.inf, np.nan, float(np.finfo(np.float32).max)),
]


def test_scales_and_parts_of_kernels_and_of_folding_agree() -> None:
    x = np.array(EDGES, np.float32)
    scale = scale_of(x)
    scaled = (x * scale * scale)[np.isfinite(x)]
    assert (scaled < 2**15).all()
    assert (scaled[(x >= 2.0**-125)[np.isfinite(x)]] >= 2**13).all()
    assert (np.frexp(scale)[0] == 0.5).all()
    kind = f"tensor<{x.size}xf32>"
    (found,) = run_text(
        f"""func.func @main(%x: {kind}) -> {kind} {{
          %r = "ascend.cube_scale"(%x) : ({kind}) -> {kind}
          return %r : {kind} }}""",
        x,
    )
    np.testing.assert_array_equal(found, scale)


@pytest.mark.parametrize("part", range(3))
def test_parts(part: int) -> None:
    x = np.concatenate([normal(100) * np.float32(2**13), [np.inf, np.nan, 0, 1e5, 2.0**-25]])
    x = x.astype(np.float32)
    kind, half = f"tensor<{x.size}xf32>", f"tensor<{x.size}xf16>"
    (found,) = run_text(
        f"""func.func @main(%x: {kind}) -> {half} {{
          %r = "ascend.half_part"(%x) {{part = {part} : i64}} : ({kind}) -> {half}
          return %r : {half} }}""",
        x,
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, part_of(x, part=part))
