"""Loops that swap, update and mix the arrays they carry, against the interpreter.

The arrays share buffers with each other wherever that is seen to be right.
The number of iterations is an argument, so that the loop stays one kernel of the scalar unit.
"""

from __future__ import annotations

import numpy as np
import pytest

from davinci import frontends
from davinci.mlir import make_context
from davinci.reference import interpreter
from support import run_text

ARRAYS = 3
SHAPE = "tensor<4x3xf32>"
ROW = "tensor<1x3xf32>"


def body(rng: np.random.Generator) -> str:
    """Operations on the carried arrays `%x0`, `%x1`, ... and a return of some of their results."""
    values = [f"%x{i}" for i in range(ARRAYS)]
    lines = []
    for number in range(int(rng.integers(1, 7))):
        a, b = (str(rng.choice(values)) for _ in range(2))
        name = f"%v{number}"
        kind = rng.integers(0, 6)
        if kind == 0:
            lines.append(f"{name} = stablehlo.subtract {a}, {b} : {SHAPE}")
        elif kind == 1:
            lines.append(f"{name} = stablehlo.reverse {a}, dims = [0] : {SHAPE}")
        elif kind in (2, 3):
            place = "%i" if kind == 2 else "%zero"
            lines.append(f"%s{number} = stablehlo.slice {b} [1:2, 0:3] : ({SHAPE}) -> {ROW}")
            lines.append(
                f"{name} = stablehlo.dynamic_update_slice {a}, %s{number}, {place}, %zero : "
                f"({SHAPE}, {ROW}, tensor<i32>, tensor<i32>) -> {SHAPE}"
            )
        elif kind == 4:
            lines.append(
                f'{name} = "stablehlo.sort"({a}) ({{\n^bb0(%l: tensor<f32>, %r: tensor<f32>):\n'
                "%c = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
                "stablehlo.return %c : tensor<i1>\n}) {dimension = 0 : i64} : "
                f"({SHAPE}) -> {SHAPE}"
            )
        else:
            lines.append(
                f'{name} = "stablehlo.if"(%odd) ({{ stablehlo.return {a} : {SHAPE} }}, '
                f"{{ stablehlo.return {b} : {SHAPE} }}) : (tensor<i1>) -> {SHAPE}"
            )
        values.append(name)
    chosen = [str(rng.choice(values)) for _ in range(ARRAYS)]
    types = ", ".join([SHAPE] * ARRAYS)
    return "\n".join([*lines, f"stablehlo.return %n, {', '.join(chosen)} : tensor<i32>, {types}"])


def program(rng: np.random.Generator) -> str:
    arguments = ", ".join(f"%a{i}: {SHAPE}" for i in range(ARRAYS))
    carried = ", ".join(f"%x{i} = %a{i}" for i in range(ARRAYS))
    types = ", ".join([SHAPE] * ARRAYS)
    results = ", ".join(f"%r#{i + 1}" for i in range(ARRAYS))
    return f"""func.func @main(%end: tensor<i32>, {arguments}) -> ({types}) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:{ARRAYS + 1} = stablehlo.while(%i = %zero, {carried}) : tensor<i32>, {types} cond {{
        %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %n = stablehlo.add %i, %one : tensor<i32>
        %bit = stablehlo.and %i, %one : tensor<i32>
        %odd = stablehlo.compare EQ, %bit, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        {body(rng)}
      }}
      return {results} : {types}
    }}"""


@pytest.mark.parametrize("seed", range(20))
def test_carried_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = program(rng)
    arrays = [rng.integers(-9, 9, (4, 3)).astype(np.float32) for _ in range(ARRAYS)]
    inputs = {"end": np.array(3, np.int32)} | {f"a{i}": a for i, a in enumerate(arrays)}
    names = [f"out{i}" for i in range(ARRAYS)]
    wanted = interpreter.evaluate(frontends.load(text, make_context()), inputs, names)
    found = run_text(text, *inputs.values(), cores=2)
    for name, array in zip(names, found, strict=True):
        np.testing.assert_array_equal(array, wanted[name], text)


def test_unsigned_values_in_a_loop() -> None:
    """Indices and factors beyond the signed range, in the body of a loop."""
    text = """func.func @main(%end: tensor<i32>, %x: tensor<300xui8>, %i: tensor<ui8>)
        -> (tensor<4xui8>, tensor<i32>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %start = stablehlo.slice %x [0:4] : (tensor<300xui8>) -> tensor<4xui8>
      %r:3 = stablehlo.while(%n = %zero, %y = %start, %sum = %zero)
        : tensor<i32>, tensor<4xui8>, tensor<i32> cond {
        %c = stablehlo.compare LT, %n, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %m = stablehlo.add %n, %one : tensor<i32>
        %s = stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<300xui8>, tensor<ui8>)
          -> tensor<4xui8>
        %p = stablehlo.dot_general %s, %s, contracting_dims = [0] x [0]
          : (tensor<4xui8>, tensor<4xui8>) -> tensor<i32>
        %t = stablehlo.add %sum, %p : tensor<i32>
        stablehlo.return %m, %s, %t : tensor<i32>, tensor<4xui8>, tensor<i32>
      }
      return %r#1, %r#2 : tensor<4xui8>, tensor<i32>
    }"""
    x = (np.arange(300) % 256).astype(np.uint8)
    found, total = run_text(text, np.int32(2), x, np.uint8(200))
    np.testing.assert_array_equal(found, [200, 201, 202, 203])
    assert total == 2 * (200**2 + 201**2 + 202**2 + 203**2)
