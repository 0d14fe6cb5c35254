"""StableHLO's interpreter in its own process: what it aborts at, and constants it lacks."""

from __future__ import annotations

import re

import numpy as np
import pytest

from davinci import frontends, interpreter
from davinci.errors import InputError
from davinci.mlir import make_context

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def program(argument: str, result: str, body: str) -> str:
    return f"""func.func @main(%x: tensor<{argument}>) -> tensor<{result}> {{
      {body}
      return %r : tensor<{result}>
    }}"""


def test_constants_of_arith() -> None:
    body = """%c = arith.constant dense<2.0> : tensor<2x3xf32>
      %r = stablehlo.add %x, %c : tensor<2x3xf32>"""
    module = frontends.load(program("2x3xf32", "2x3xf32", body), make_context())
    found = interpreter.reference(module, {"x": X}, ["r"])
    np.testing.assert_array_equal(found["r"], X + 2)


ABORTS = {
    "an empty contraction": (
        "2x0xf32",
        "2x2xf32",
        """%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]
          : (tensor<2x0xf32>, tensor<2x0xf32>) -> tensor<2x2xf32>""",
        "Incompatible index and shape",
    ),
    "an operation it does not know": (
        "2x3xf32",
        "2x3xf32",
        "%r = math.sin %x : tensor<2x3xf32>",
        "Unsupported op",
    ),
}


@pytest.mark.parametrize("case", ABORTS)
def test_an_abort_is_a_message(case: str) -> None:
    argument, result, body, reason = ABORTS[case]
    module = frontends.load(program(argument, result, body), make_context())
    x = X[:, : int(argument[2])]
    expected = re.escape("StableHLO's interpreter cannot run the module: ") + f".*{reason}"
    with pytest.raises(InputError, match=expected) as raised:
        interpreter.reference(module, {"x": x}, ["r"])
    assert raised.value.hint == "run without --check"
