"""StableHLO's interpreter in its own process: what it aborts at, and constants it lacks."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from davinci import elements, frontends
from davinci.errors import InputError
from davinci.mlir import ir, make_context, operations
from davinci.passes import builder
from davinci.reference import interpreter

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


def test_the_data_of_resources() -> None:
    """The interpreter reads other bytes than those of a resource."""
    weight = np.linspace(-1, 1, 600, dtype=np.float32).reshape(200, 3)
    module = frontends.load(
        program("200x3xf32", "200x3xf32", "%r = stablehlo.add %x, %x : tensor<200x3xf32>")
    )
    add = operations(module.operation, "stablehlo.add")[0]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(add):
        value = elements.to_attribute(weight, ir.F32Type.get(), "w")
        assert "dense_resource" in str(value)
        add.operands[1] = builder.op("stablehlo.constant", [], [value.type], value=value).result
    x = np.ones((200, 3), np.float32)
    found = interpreter.reference(module, {"x": x}, ["r"])
    np.testing.assert_array_equal(found["r"], x + weight)


def test_chlo_and_custom_calls_that_mean_it() -> None:
    body = """%0 = chlo.sinh %x : tensor<2x3xf32> -> tensor<2x3xf32>
      %r = stablehlo.custom_call @mhlo.erf(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>"""
    module = frontends.load(program("2x3xf32", "2x3xf32", body))
    found = interpreter.reference(module, {"x": X / 4}, ["r"])
    wanted = np.vectorize(math.erf)(np.sinh(X / 4))
    np.testing.assert_allclose(found["r"], wanted, rtol=1e-5)


def test_main_need_not_be_the_first_function() -> None:
    text = program("2x3xf32", "2x3xf32", "%r = call @f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>")
    callee = """func.func private @f(%y: tensor<2x3xf32>) -> tensor<2x3xf32> {
      return %y : tensor<2x3xf32>
    }
    """
    found = interpreter.reference(frontends.load(callee + text), {"x": X}, ["r"])
    np.testing.assert_array_equal(found["r"], X)
