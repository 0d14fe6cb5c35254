"""Values that arithmetic treats specially: infinities, NaN, zeros with a sign, ends of ranges.

Expected values are NumPy's, whose power, sign and comparisons are those of IEEE 754 and StableHLO.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support import run_text

ODD = np.array(
    [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -2.5, 65, 1e30, -1e30, np.inf, -np.inf, np.nan],
    np.float32,
)


def program(arguments: dict[str, str], result: str, body: str) -> str:
    signature = ", ".join(f"%{name}: tensor<{kind}>" for name, kind in arguments.items())
    return f"""func.func @main({signature}) -> tensor<{result}> {{
      {body}
      return %r : tensor<{result}>
    }}"""


def expect_close(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> None:
    np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-37)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def test_power_of_any_base_and_exponent() -> None:
    x, y = (a.ravel() for a in np.meshgrid(ODD, ODD))
    kind = f"{x.size}xf32"
    body = f"%r = stablehlo.power %x, %y : tensor<{kind}>"
    with np.errstate(all="ignore"):
        expect_close(run_text(program({"x": kind, "y": kind}, kind, body), x, y)[0], x**y)


@pytest.mark.parametrize("exponent", [0.0, 0.5, -0.5, 1, -1, 2, 3, 4.0, -3.0, 65.0, 100.0, 2.5])
def test_power_by_a_constant(exponent: float) -> None:
    body = f"""%c = stablehlo.constant dense<{float(exponent)}> : tensor<16xf32>
      %r = stablehlo.power %x, %c : tensor<16xf32>"""
    with np.errstate(all="ignore"):
        wanted = np.power(ODD, np.full(16, exponent, np.float32))
    expect_close(run_text(program({"x": "16xf32"}, "16xf32", body), ODD)[0], wanted)


def test_sign() -> None:
    body = "%r = stablehlo.sign %x : tensor<16xf32>"
    found = run_text(program({"x": "16xf32"}, "16xf32", body), ODD)[0]
    np.testing.assert_array_equal(found, np.sign(ODD))


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32"])
def test_floats_beyond_an_integer_saturate(kind: str) -> None:
    dtype = np.dtype(kind.replace("ui", "uint") if kind[0] == "u" else kind.replace("i", "int"))
    limits = np.iinfo(dtype)
    body = f"%r = stablehlo.convert %x : (tensor<16xf32>) -> tensor<16x{kind}>"
    found = run_text(program({"x": "16xf32"}, f"16x{kind}", body), ODD)[0]
    wanted = [
        0 if np.isnan(x) else limits.max if x > 1e20 else limits.min if x < -1e20 else int(x)
        for x in ODD
    ]
    np.testing.assert_array_equal(found, np.maximum(wanted, limits.min).astype(dtype))


@pytest.mark.parametrize("kind", ["i8", "i32", "i64", "ui8", "ui32"])
def test_constant_floats_beyond_an_integer_saturate(kind: str) -> None:
    """As they do when the machine converts them."""
    body = f"%r = stablehlo.convert %x : (tensor<16xf32>) -> tensor<16x{kind}>"
    at_run_time = run_text(program({"x": "16xf32"}, f"16x{kind}", body), ODD)[0]
    numbers = ", ".join(f"0x{bits:08X}" for bits in ODD.view(np.uint32))
    constant = f"%x = stablehlo.constant dense<[{numbers}]> : tensor<16xf32>"
    found = run_text(program({}, f"16x{kind}", f"{constant}\n{body}"))[0]
    np.testing.assert_array_equal(found, at_run_time)


@pytest.mark.parametrize(
    ("name", "function"),
    [("floor", np.floor), ("ceil", np.ceil), ("round_nearest_even", np.rint)],
)
@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_rounding_keeps_the_sign_of_zeros(kind: str, name: str, function: Any) -> None:
    x = np.array([0, -0.0, 0.25, -0.25, 0.5, -0.5, -0.75, -1, 2.5, -np.inf, np.nan])
    x = x.astype({"f32": np.float32, "f16": np.float16}[kind])
    shape = f"{x.size}x{kind}"
    body = f"%r = stablehlo.{name} %x : tensor<{shape}>"
    expect_close(run_text(program({"x": shape}, shape, body), x)[0], function(x))


def test_logistic_of_infinities() -> None:
    x = np.array([-np.inf, -200, -80, 0, 200, np.inf, np.nan], np.float32)
    body = "%r = stablehlo.logistic %x : tensor<7xf32>"
    found = run_text(program({"x": "7xf32"}, "7xf32", body), x)[0]
    with np.errstate(over="ignore"):
        expect_close(found, 1 / (1 + np.exp(-x)))
    assert found[0] == found[1] == 0


@pytest.mark.parametrize(
    ("name", "function"), [("exponential_minus_one", np.expm1), ("log_plus_one", np.log1p)]
)
def test_small_arguments_keep_their_digits(name: str, function: Any) -> None:
    x = np.array([0, -0.0, 1e-3, -1e-3, 1e-6, -3e-7, 1e-10, -1e-37, 2, np.inf, np.nan], np.float32)
    body = f"%r = stablehlo.{name} %x : tensor<11xf32>"
    found = run_text(program({"x": "11xf32"}, "11xf32", body), x)[0]
    np.testing.assert_allclose(found, function(x), rtol=1e-6)


def test_narrowed_integers_keep_their_low_byte() -> None:
    x = np.array([0, 127, 128, -129, 255, 65536, 2**31 - 1, -(2**31)], np.int32)
    body = "%r = stablehlo.convert %x : (tensor<8xi32>) -> tensor<8xi8>"
    found = run_text(program({"x": "8xi32"}, "8xi8", body), x)[0]
    np.testing.assert_array_equal(found, x.astype(np.int8))


def test_sum_of_booleans_is_or() -> None:
    x = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], bool)
    body = """%c = stablehlo.constant dense<false> : tensor<i1>
      %r = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
        : (tensor<4x3xi1>, tensor<i1>) -> tensor<4xi1>"""
    found = run_text(program({"x": "4x3xi1"}, "4xi1", body), x)[0]
    np.testing.assert_array_equal(found, x.any(1))


def test_reduction_that_returns_its_argument() -> None:
    body = """%c = stablehlo.constant dense<7.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %c) across dimensions = [1]
        : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
        reducer(%a: tensor<f32>, %b: tensor<f32>) {
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %a : tensor<f32>
        }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run_text(program({"x": "2x3xf32"}, "2xf32", body), x)[0], [7, 7])


def test_unsigned_products() -> None:
    x = np.array([[200, 255], [3, 250]], np.uint8)
    body = """%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<2x2xui8>, tensor<2x2xui8>) -> tensor<2x2xi32>"""
    found = run_text(program({"x": "2x2xui8"}, "2x2xi32", body), x)[0]
    np.testing.assert_array_equal(found, x.astype(np.int32) @ x.astype(np.int32))


@pytest.mark.parametrize(
    ("kind", "indices"), [("ui8", [200, 255, 0, 3]), ("ui32", [2**32 - 1, 2**31, 0, 3])]
)
def test_unsigned_indices(kind: str, indices: list[int]) -> None:
    body = f"""%r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 9>}}>
      : (tensor<7x9xf32>, tensor<4x1x{kind}>) -> tensor<4x9xf32>"""
    x = np.arange(63, dtype=np.float32).reshape(7, 9)
    text = program({"x": "7x9xf32", "i": f"4x1x{kind}"}, "4x9xf32", body)
    found = run_text(text, x, np.array(indices, kind.replace("ui", "uint")).reshape(4, 1))[0]
    np.testing.assert_array_equal(found, x[np.minimum(indices, 6)])


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64", "ui8", "ui32"])
def test_integer_power_is_modulo_its_bits(kind: str) -> None:
    """With a negative exponent, 0 but for the bases 1 and -1."""
    dtype = np.dtype(kind.replace("ui", "uint") if kind[0] == "u" else kind.replace("i", "int"))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    bases = [n for n in (low, -7, -2, -1, 0, 1, 2, 3, 10, high) if n >= low]
    exponents = [n for n in (low, low + 1, -3, -1, 0, 1, 2, 31, 63, 64, high - 1, high) if n >= low]
    x, y = (a.ravel() for a in np.meshgrid(np.array(bases, dtype), np.array(exponents, dtype)))
    shape = f"{x.size}x{kind}"
    body = f"%r = stablehlo.power %x, %y : tensor<{shape}>"
    found = run_text(program({"x": shape, "y": shape}, shape, body), x, y)[0]
    bits = 8 * dtype.itemsize
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    exact = [
        pow(a, b, 1 << bits) if b >= 0 else {1: 1, -1: 1 - b % 2 * 2}.get(a, 0) for a, b in pairs
    ]
    np.testing.assert_array_equal(
        found, np.array([n % (1 << bits) for n in exact], f"u{bits // 8}").view(dtype)
    )


@pytest.mark.parametrize("exponent", [0, 2, 3, 5, 64, 2**31 - 1, -1])
def test_integer_power_by_a_constant(exponent: int) -> None:
    x = np.array([-(2**31), -3, -1, 0, 1, 3, 7, 2**31 - 1], np.int32)
    body = f"""%c = stablehlo.constant dense<{exponent}> : tensor<8xi32>
      %r = stablehlo.power %x, %c : tensor<8xi32>"""
    found = run_text(program({"x": "8xi32"}, "8xi32", body), x)[0]
    wanted = [
        pow(int(a), exponent, 1 << 32) if exponent >= 0 else int(a) * (int(a) ** 2 == 1) for a in x
    ]
    np.testing.assert_array_equal(found, np.array([n % (1 << 32) for n in wanted], "u4").view("i4"))
