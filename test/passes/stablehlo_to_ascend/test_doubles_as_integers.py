"""f64 off the scalar unit against NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from davinci.passes.stablehlo_to_ascend import double_products

Array = npt.NDArray[Any]

ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1.0])


def doubles(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of all exponents, a third of them zeros, infinities, NaN and denormals."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice(ODD, shape), numbers)


def same_bits(found: Array, wanted: Array) -> bool:
    return found.dtype == np.float64 and np.array_equal(found.view("i8"), wanted.view("i8"))


MOVES = """func.func @main(%x: tensor<7x9xf64>, %i: tensor<4xi32>, %m: tensor<9x7xi1>)
    -> (tensor<9x7xf64>, tensor<4x9xf64>, tensor<9x7xf64>, tensor<7x9xf64>) {
  %big = stablehlo.constant dense<0xFFF8000000000123> : tensor<f64>
  %fill = stablehlo.broadcast_in_dim %big, dims = [] : (tensor<f64>) -> tensor<9x7xf64>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<7x9xf64>) -> tensor<9x7xf64>
  %r = stablehlo.reverse %t, dims = [0] : tensor<9x7xf64>
  %rows = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 9>} : (tensor<7x9xf64>, tensor<4xi32>) -> tensor<4x9xf64>
  %chosen = stablehlo.select %m, %t, %fill : tensor<9x7xi1>, tensor<9x7xf64>
  return %r, %rows, %chosen, %x : tensor<9x7xf64>, tensor<4x9xf64>, tensor<9x7xf64>, tensor<7x9xf64>
}"""


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b", "ascend310"])
def test_moves(machine: str) -> None:
    """NaN keeps its sign and what it carries; an argument that is returned is copied."""
    x, mask = doubles((7, 9)), np.random.default_rng(1).random((9, 7)) < 0.5
    indices = np.array([6, 0, 3, 3], np.int32)
    executable = davinci.compile(MOVES, machine=machine, cores=2)
    fill = np.array(0xFFF8000000000123, "u8").view("f8")
    wanted = [x.T[::-1], x[indices], np.where(mask, x.T, fill), x]
    for found, each in zip(executable.run(x, indices, mask).values(), wanted, strict=True):
        assert same_bits(found, np.ascontiguousarray(each))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


ARITHMETIC = """func.func @main(%x: tensor<27x9xf64>, %y: tensor<27x9xf64>, %i: tensor<27x9xi64>,
    %s: tensor<27x9xf32>) -> (tensor<27x9xf64>, tensor<27x9xf64>, tensor<27x9xf64>,
    tensor<27x9xf32>, tensor<27x9xi32>, tensor<27x9xf64>) {
  %half = stablehlo.constant dense<0.1> : tensor<27x9xf64>
  %a = stablehlo.add %x, %y : tensor<27x9xf64>
  %d = stablehlo.subtract %half, %y : tensor<27x9xf64>
  %m = stablehlo.multiply %x, %y : tensor<27x9xf64>
  %j = stablehlo.convert %i : (tensor<27x9xi64>) -> tensor<27x9xf64>
  %w = stablehlo.convert %s : (tensor<27x9xf32>) -> tensor<27x9xf64>
  %p = stablehlo.multiply %j, %w : tensor<27x9xf64>
  %f = stablehlo.convert %y : (tensor<27x9xf64>) -> tensor<27x9xf32>
  %n = stablehlo.convert %x : (tensor<27x9xf64>) -> tensor<27x9xi32>
  %b = stablehlo.add %d, %p : tensor<27x9xf64>
  %q = stablehlo.divide %x, %y : tensor<27x9xf64>
  %r = stablehlo.sqrt %q : tensor<27x9xf64>
  return %a, %m, %b, %f, %n, %r : tensor<27x9xf64>, tensor<27x9xf64>, tensor<27x9xf64>,
    tensor<27x9xf32>, tensor<27x9xi32>, tensor<27x9xf64>
}"""


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow", "ignore:divide")
def test_arithmetic() -> None:
    """Sums, products, quotients, roots and conversions are rounded once, edge values among them, on
    the machine with the fewest instructions; others have a kernel of each in the records' tests."""
    x, y = doubles((27, 9), 4), doubles((27, 9), 5)
    x[:9], y[:9] = np.meshgrid(ODD, ODD)
    y[9:18] = -x[9:18] * (1 + np.arange(9) * 2.0**-52)
    integers = np.random.default_rng(6).integers(-(2**63), 2**63, (27, 9)) >> np.arange(9) * 7
    single = (y * 1e-20).astype(np.float32)
    executable = davinci.compile(ARITHMETIC, machine="ascend310", cores=2)
    bounds = np.iinfo(np.int32)
    whole = np.trunc(np.nan_to_num(np.clip(x, bounds.min, bounds.max)))
    both = (0.1 - y) + integers.astype(np.float64) * single.astype(np.float64)
    wanted = [x + y, x * y, both, y.astype(np.float32), whole.astype(np.int32), np.sqrt(x / y)]
    for found, each in zip(executable.run(x, y, integers, single).values(), wanted, strict=True):
        assert same_numbers(found, each)
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


PLACES = """func.func @main(%x: tensor<9x40xf64>) -> (tensor<9xf64>, tensor<9xi32>) {{
  %begin = stablehlo.constant dense<{begin}> : tensor<f64>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %places = stablehlo.iota dim = 1 : tensor<9x40xi32>
  %0:2 = stablehlo.reduce(%x init: %begin), (%places init: %zero) across dimensions = [1]
    : (tensor<9x40xf64>, tensor<9x40xi32>, tensor<f64>, tensor<i32>)
      -> (tensor<9xf64>, tensor<9xi32>)
    reducer(%a: tensor<f64>, %b: tensor<f64>) (%i: tensor<i32>, %j: tensor<i32>) {{
      %better = stablehlo.compare {better}, %a, %b, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %wins = stablehlo.or %better, %nan : tensor<i1>
      %same = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %first = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %same, %first : tensor<i1>
      %takes = stablehlo.or %wins, %tie : tensor<i1>
      %v = stablehlo.select %wins, %a, %b : tensor<i1>, tensor<f64>
      %p = stablehlo.select %takes, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %p : tensor<f64>, tensor<i32>
    }}
  return %0#0, %0#1 : tensor<9xf64>, tensor<9xi32> }}"""


@pytest.mark.parametrize(
    ("better", "begin", "place"),
    [("GT", "0xFFF0000000000000", np.argmax), ("LT", "0x7FF0000000000000", np.argmin)],
)
def test_places_of_extremes(better: str, begin: str, place: Any) -> None:
    """The first of equal ones, zeros of both signs among them, or the first NaN."""
    x = doubles((9, 40), 8)
    x[1], x[2, ::2], x[2, 1::2], x[3] = 5.0, -0.0, 0.0, np.abs(np.nan_to_num(x[3])) + 1e-320
    x[4], x[5] = np.where(np.isnan(x[4]), 2.0, x[4]), -x[3]
    executable = davinci.compile(PLACES.format(better=better, begin=begin), cores=2)
    value, number = executable.run(x).values()
    wanted = place(x, axis=1)
    np.testing.assert_array_equal(number, wanted)
    np.testing.assert_array_equal(value, x[np.arange(9), wanted])
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("kind", "begin"), [("add", 0.0), ("add", 0.5), ("multiply", 1.0)])
def test_sums_and_products_of_halves(kind: str, begin: float) -> None:
    """Whole numbers, whose sums and products do not depend on the order, along both dimensions;
    zeros with a sign, and a sum that begins with one without."""
    text = f"""func.func @main(%x: tensor<43x30xf64>) -> (tensor<43xf64>, tensor<30xf64>) {{
      %c = stablehlo.constant dense<{begin}> : tensor<f64>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{kind} across dimensions = [1]
        : (tensor<43x30xf64>, tensor<f64>) -> tensor<43xf64>
      %1 = stablehlo.reduce(%x init: %c) applies stablehlo.{kind} across dimensions = [0]
        : (tensor<43x30xf64>, tensor<f64>) -> tensor<30xf64>
      return %0, %1 : tensor<43xf64>, tensor<30xf64> }}"""
    most = 1 << 40 if kind == "add" else 3
    x = np.random.default_rng(7).integers(-most, most, (43, 30)).astype(np.float64)
    x[3], x[:, 4] = -0.0, np.inf
    executable = davinci.compile(text, cores=2)
    combine = np.sum if kind == "add" else np.prod
    for found, axis in zip(executable.run(x).values(), (1, 0), strict=True):
        assert same_numbers(found, combine(x, axis=axis, initial=begin))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


ORDERS = """func.func @main(%x: tensor<9x8xf64>, %y: tensor<9x8xf64>)
    -> (tensor<9x8xi1>, tensor<9x8xi1>, tensor<9x8xi1>, tensor<9x8xi1>, tensor<9x8xf64>,
    tensor<9x8xf64>, tensor<9x8xf64>, tensor<9x8xf64>, tensor<9xf64>) {
  %least = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %lt = stablehlo.compare LT, %x, %y, FLOAT : (tensor<9x8xf64>, tensor<9x8xf64>) -> tensor<9x8xi1>
  %ge = stablehlo.compare GE, %x, %y, FLOAT : (tensor<9x8xf64>, tensor<9x8xf64>) -> tensor<9x8xi1>
  %ne = stablehlo.compare NE, %x, %y, FLOAT : (tensor<9x8xf64>, tensor<9x8xf64>) -> tensor<9x8xi1>
  %finite = stablehlo.is_finite %x : (tensor<9x8xf64>) -> tensor<9x8xi1>
  %max = stablehlo.maximum %x, %y : tensor<9x8xf64>
  %min = stablehlo.minimum %x, %y : tensor<9x8xf64>
  %sign = stablehlo.sign %x : tensor<9x8xf64>
  %abs = stablehlo.abs %x : tensor<9x8xf64>
  %neg = stablehlo.negate %abs : tensor<9x8xf64>
  %most = stablehlo.reduce(%y init: %least) applies stablehlo.maximum across dimensions = [1]
    : (tensor<9x8xf64>, tensor<f64>) -> tensor<9xf64>
  return %lt, %ge, %ne, %finite, %max, %min, %sign, %neg, %most : tensor<9x8xi1>, tensor<9x8xi1>,
    tensor<9x8xi1>, tensor<9x8xi1>, tensor<9x8xf64>, tensor<9x8xf64>, tensor<9x8xf64>,
    tensor<9x8xf64>, tensor<9xf64>
}"""


def greatest(x: Array, y: Array) -> Array:
    """The larger one, 0 of zeros with different signs, NaN if one is."""
    zeros = np.where(np.signbit(x), y, x)
    return np.where((x == 0) & (y == 0), zeros, np.maximum(x, y))


def same_numbers(found: Array, wanted: Array) -> bool:
    """Whether two arrays are equal, signs of zeros too, and of NaN that they are."""
    signs = np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0])
    return np.array_equal(found, wanted, equal_nan=True) and np.array_equal(*signs)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_orders() -> None:
    x, y = doubles((9, 8), 2), doubles((9, 8), 3)
    x[:, 0], y[:, 0] = ODD, ODD[::-1]
    x[:, 1], y[:, 1] = ODD, np.roll(ODD, 1)
    executable = davinci.compile(ORDERS, cores=2)
    flags = [x < y, x >= y, x != y, np.isfinite(x)]
    sign = np.where(x == 0, x, np.sign(x))
    numbers = [greatest(x, y), -greatest(-x, -y), sign, -abs(x), y.max(axis=1)]
    found = list(executable.run(x, y).values())
    assert all(map(np.array_equal, found[:4], flags))
    assert all(map(same_numbers, found[4:], numbers))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


SORT = """func.func @main(%x: tensor<3x40xf64>, %n: tensor<3x40xi32>)
    -> (tensor<3x40xf64>, tensor<3x40xi32>) {
  %v, %p = "stablehlo.sort"(%x, %n) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b, ORDER : (tensor<f64>, tensor<f64>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<3x40xf64>, tensor<3x40xi32>) -> (tensor<3x40xf64>, tensor<3x40xi32>)
  return %v, %p : tensor<3x40xf64>, tensor<3x40xi32>
}"""


@pytest.mark.parametrize("order", ["FLOAT", "TOTALORDER"])
def test_sorts(order: str) -> None:
    """Equal numbers stay in order, zeros of both signs among them unless the order is total."""
    x = doubles((3, 40), 4)
    places = np.broadcast_to(np.arange(40, dtype=np.int32), x.shape).copy()
    bits = x.view("i8")
    if order == "FLOAT":
        x = np.where(np.isnan(x), np.inf, x)
        by = np.argsort(x, axis=1, kind="stable")
    else:
        by = np.argsort(np.where(bits < 0, np.iinfo("i8").max - bits, bits), axis=1, kind="stable")
    executable = davinci.compile(SORT.replace("ORDER", order), cores=2)
    found, order_found = executable.run(x, places).values()
    assert same_bits(found, np.take_along_axis(x, by, 1))
    assert np.array_equal(order_found, by)


FLAGS = """func.func @main(%m: tensor<9x8xi1>, %x: tensor<9x8xf64>)
    -> (tensor<9x8xf64>, tensor<9x8xi1>) {
  %ones = stablehlo.convert %m : (tensor<9x8xi1>) -> tensor<9x8xf64>
  %flags = stablehlo.convert %x : (tensor<9x8xf64>) -> tensor<9x8xi1>
  return %ones, %flags : tensor<9x8xf64>, tensor<9x8xi1>
}"""


def test_flags() -> None:
    mask, x = np.random.default_rng(5).random((9, 8)) < 0.5, doubles((9, 8), 6)
    executable = davinci.compile(FLAGS, cores=2)
    ones, flags = executable.run(mask, x).values()
    assert same_bits(ones, mask.astype("f8"))
    assert np.array_equal(flags, x.astype(bool))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


WHOLE = """func.func @main(%x: tensor<27x9xf64>, %n: tensor<27x9xui64>)
    -> (tensor<27x9xf64>, tensor<27x9xf64>, tensor<27x9xf64>, tensor<27x9xf64>, tensor<27x9xf16>,
    tensor<27x9xui64>, tensor<27x9xf64>) {
  %f = stablehlo.floor %x : tensor<27x9xf64>
  %c = stablehlo.ceil %x : tensor<27x9xf64>
  %e = stablehlo.round_nearest_even %x : tensor<27x9xf64>
  %a = stablehlo.round_nearest_afz %x : tensor<27x9xf64>
  %h = stablehlo.convert %x : (tensor<27x9xf64>) -> tensor<27x9xf16>
  %u = stablehlo.convert %x : (tensor<27x9xf64>) -> tensor<27x9xui64>
  %d = stablehlo.convert %n : (tensor<27x9xui64>) -> tensor<27x9xf64>
  return %f, %c, %e, %a, %h, %u, %d : tensor<27x9xf64>, tensor<27x9xf64>, tensor<27x9xf64>,
    tensor<27x9xf64>, tensor<27x9xf16>, tensor<27x9xui64>, tensor<27x9xf64>
}"""


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("machine", ["ascend910", "ascend310p"])
def test_whole_numbers_halves_and_unsigned_integers(machine: str) -> None:
    """Halves of whole numbers up to where these have none, halves of the last bit of f16 and what
    is next to them, and integers without a sign around 2^63 and 2^64 and between two numbers."""
    random = np.random.default_rng(9)
    x = doubles((27, 9), 9)
    x[2:12] = random.integers(-40, 40, (10, 9)) / 2 * 2.0 ** random.integers(0, 52, (10, 9))
    x[12:20] = (
        random.integers(0, 1 << 11, (8, 9))
        * 2.0 ** random.integers(-28, 6, (8, 9))
        * (1 + random.integers(-1, 2, (8, 9)) * 2.0**-52)
    )
    x[20] = [2.0**63, 2.0**64, 2.0**64 - 2048, 2.0**63 - 1024, -0.5, 0.5, 1.5, 2.0**52 - 0.5, 65520]
    n = random.integers(0, 1 << 64, (27, 9), np.uint64, endpoint=False)
    n[0] = np.array(
        [0, 1, 2**63 - 1, 2**63, 2**63 + 1024, 2**63 + 1025, 2**63 + 3072, 2**64 - 1, 3]
    )
    executable = davinci.compile(WHOLE, machine=machine, cores=2)
    *whole, short, unsigned, real = executable.run(x, n).values()
    truncated = np.trunc(x)
    away = np.copysign(abs(truncated) + (abs(x - truncated) >= 0.5), x)
    for found, wanted in zip(whole, (np.floor(x), np.ceil(x), np.rint(x), away), strict=True):
        assert same_numbers(found, wanted)
    assert same_numbers(short, x.astype(np.float16))
    assert same_bits(real, n.astype(np.float64))
    inside = np.where(x >= 0, x, 0)  # NaN too
    wanted_bits = np.where(inside >= 2.0**64, 0, inside).astype(np.uint64)
    np.testing.assert_array_equal(unsigned, np.where(inside >= 2.0**64, 2**64 - 1, wanted_bits))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


PRODUCTS = """func.func @main(%x: tensor<3x7x9xf64>, %y: tensor<9x3x5xf64>, %z: tensor<9x9xf64>)
    -> (tensor<3x7x5xf64>, tensor<3x7x9xf64>) {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0]
    : (tensor<3x7x9xf64>, tensor<9x3x5xf64>) -> tensor<3x7x5xf64>
  %1 = stablehlo.dot_general %x, %z, contracting_dims = [2] x [1]
    : (tensor<3x7x9xf64>, tensor<9x9xf64>) -> tensor<3x7x9xf64>
  return %0, %1 : tensor<3x7x5xf64>, tensor<3x7x9xf64>
}"""


def test_products_of_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers, whose sums do not depend on the order, zeros with a sign and infinities; one
    product in parts of the inner dimension, the last of which is shorter, the other whole."""
    monkeypatch.setattr(double_products, "MOST_TERMS", 3 * 7 * 5 * 9)
    random = np.random.default_rng(10)
    x, y, z = (
        random.integers(-(1 << 24), 1 << 24, shape).astype(np.float64)
        for shape in ((3, 7, 9), (9, 3, 5), (9, 9))
    )
    x[0, 0], x[1, 2, 3], z[:, 3] = -0.0, np.inf, 1 << 20
    executable = davinci.compile(PRODUCTS, cores=2)
    wanted = [np.einsum("bmk,kbn->bmn", x, y), x @ z.T]
    for found, each in zip(executable.run(x, y, z).values(), wanted, strict=True):
        assert same_numbers(found, each + 0.0)
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
