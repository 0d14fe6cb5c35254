"""Integers of 64 bits on the vector unit: ragged rows, rows in several tiles, scalars, machines."""

from __future__ import annotations

import numpy as np
import pytest

from support import compile_text, run_text

SHAPES = [(), (1,), (1, 1), (3, 5), (17, 17), (31, 129), (2, 3, 97), (64, 1000), (3, 40000), (0, 4)]


@pytest.mark.parametrize(
    ("shape", "machine"),
    [(shape, ("ascend910", "ascend310")[n % 2]) for n, shape in enumerate(SHAPES)],
    ids=str,
)
def test_casts_select_and_compare(shape: tuple[int, ...], machine: str) -> None:
    sizes = "".join(f"{size}x" for size in shape)
    text = f"""func.func @main(%a: tensor<{sizes}xi64>, %b: tensor<{sizes}xi64>)
        -> (tensor<{sizes}xi32>, tensor<{sizes}xf32>, tensor<{sizes}xi64>) {{
      %low = stablehlo.convert %a : (tensor<{sizes}xi64>) -> tensor<{sizes}xi32>
      %real = stablehlo.convert %b : (tensor<{sizes}xi64>) -> tensor<{sizes}xf32>
      %less = stablehlo.compare LT, %a, %b : (tensor<{sizes}xi64>, tensor<{sizes}xi64>)
        -> tensor<{sizes}xi1>
      %least = stablehlo.select %less, %a, %b : tensor<{sizes}xi1>, tensor<{sizes}xi64>
      return %low, %real, %least : tensor<{sizes}xi32>, tensor<{sizes}xf32>, tensor<{sizes}xi64>
    }}""".replace("xx", "x").replace("<x", "<")
    random = np.random.default_rng(7)
    a, b = random.integers(-(2**62), 2**62, (2, *shape))
    b = np.where(random.random(shape) < 0.3, a + random.integers(-1, 2, shape), b >> 33)
    executable = compile_text(text, machine=machine, cores=2)
    low, real, least = executable.run({"arg0": a, "arg1": b}).values()
    np.testing.assert_array_equal(low, a.astype(np.int32))
    np.testing.assert_allclose(real, b.astype(np.float32), rtol=2.0**-23)
    np.testing.assert_array_equal(least, np.minimum(a, b))
    assert not any(kernel["unit"] == "scalar" for kernel in executable.profile["kernels"])


def test_a_known_number_of_64_bits() -> None:
    text = """func.func @main(%a: tensor<37xi64>) -> tensor<37xi1> {
      %c = stablehlo.constant dense<9007199254740993> : tensor<37xi64>
      %r = stablehlo.compare EQ, %a, %c : (tensor<37xi64>, tensor<37xi64>) -> tensor<37xi1>
      return %r : tensor<37xi1> }"""
    a = np.arange(37, dtype=np.int64) + 2**53 - 5
    (found,) = run_text(text, a)
    np.testing.assert_array_equal(found, a == 2**53 + 1)


def test_values_of_all_tiles_beside_a_smaller_last_tile() -> None:
    # Buffers of the last tile, of one row, are numbered otherwise than those of tiles of three.
    kind, row = "tensor<7x1000xi64>", "tensor<7xi64>"
    text = f"""func.func @main(%x: {kind}) -> {row} {{
      %i = stablehlo.iota dim = 1 : {kind}
      %least = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
      %first = stablehlo.constant dense<0> : tensor<i64>
      %r:2 = stablehlo.reduce(%x init: %least), (%i init: %first) across dimensions = [1]
        : ({kind}, {kind}, tensor<i64>, tensor<i64>) -> ({row}, {row})
        reducer(%a: tensor<i64>, %b: tensor<i64>) (%p: tensor<i64>, %q: tensor<i64>) {{
          %greater = stablehlo.compare GT, %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
          %value = stablehlo.select %greater, %a, %b : tensor<i1>, tensor<i64>
          %equal = stablehlo.compare EQ, %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
          %before = stablehlo.compare LT, %p, %q : (tensor<i64>, tensor<i64>) -> tensor<i1>
          %tie = stablehlo.and %equal, %before : tensor<i1>
          %taken = stablehlo.or %greater, %tie : tensor<i1>
          %place = stablehlo.select %taken, %p, %q : tensor<i1>, tensor<i64>
          stablehlo.return %value, %place : tensor<i64>, tensor<i64>
        }}
      return %r#1 : {row}
    }}"""
    x = np.random.default_rng(3).integers(-(2**62), 2**62, (7, 1000)) >> 55
    found = run_text(text, x, machine="ascend910", cores=1)
    np.testing.assert_array_equal(found[0], x.argmax(1))
