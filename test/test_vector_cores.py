"""Networks without products on the 48 vector cores of the 910B, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

import davinci
from davinci import arrays
from davinci import machine as machines
from pairs import in_turn

Array = npt.NDArray[Any]

MACHINE = "ascend910b"

SHAPES = ((1, 1), (17, 33), (97, 1031), (540, 96), (768, 512), (3, 20000))
"""One element, rows that end in a block, more rows than cores with a prime, rows that are no whole
repeats, whole ones, rows UB has to part."""


def rows_of(operator: str, shape: tuple[int, int], **attributes: Any) -> Any:
    """A model of one operator on rows of f16; a layer norm has a scale and a bias."""
    weights = ["scale", "bias"] if operator == "LayerNormalization" else []
    half = TensorProto.FLOAT16
    inputs = [helper.make_tensor_value_info("x", half, shape)]
    inputs += [helper.make_tensor_value_info(name, half, shape[1:]) for name in weights]
    node = helper.make_node(operator, ["x", *weights], ["y"], **attributes)
    outputs = [helper.make_tensor_value_info("y", half, shape)]
    graph = helper.make_graph([node], operator, inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * scale + bias


def gelu(x: Array) -> Array:
    return x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))) / 2


CASES = (
    ("Softmax", softmax, {"axis": -1}),
    ("LayerNormalization", layer_norm, {"axis": -1}),
    ("Gelu", gelu, {"approximate": "tanh"}),
)


@pytest.mark.parametrize(
    ("shape", "case"), in_turn([*SHAPES, *SHAPES[1:]], CASES), ids=lambda x: str(x)[:14]
)
def test_rows(shape: tuple[int, int], case: tuple[str, Any, dict[str, Any]]) -> None:
    operator, formula, attributes = case
    executable = davinci.compile(rows_of(operator, shape, **attributes), machine=MACHINE)
    random = np.random.default_rng(0)
    inputs = {s.name: random.standard_normal(s.shape).astype(s.dtype) for s in executable.inputs}
    (found,) = executable.run(inputs).values()
    wanted = formula(*(x.astype(np.float64) for x in inputs.values()))
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_all_vector_cores_share_the_work() -> None:
    executable = davinci.compile(
        rows_of("Softmax", (96, 512), axis=-1), machine=MACHINE, core_choice="all"
    )
    executable.run({"x": np.zeros((96, 512), np.float16)})
    assert [launch.blocks for launch in executable.launches] == [48]


def test_cores_are_counted_in_cube_cores() -> None:
    executable = davinci.compile(
        rows_of("Softmax", (96, 512), axis=-1), machine=MACHINE, core_choice="all", cores=3
    )
    executable.run({"x": np.zeros((96, 512), np.float16)})
    assert [launch.blocks for launch in executable.launches] == [6]


def test_a_vector_core_as_a_machine() -> None:
    """Half of a core's share of the memory and of the L2, and no instruction of the cube's."""
    chip = machines.load(MACHINE)
    seen = machines.for_vector(chip)
    assert (seen.split, seen.cores) == (False, 48)
    assert seen.gm.read_bytes_per_cycle * seen.cores == chip.gm.read_bytes_per_cycle * chip.cores
    assert "vmadd" in seen.intrinsics and "mad" not in seen.intrinsics
    assert machines.for_vector(machines.load("ascend910")) is machines.load("ascend910")
    assert machines.vector_cores_for(chip, 0) == 48


@pytest.mark.parametrize("dtype", ["f32", "i32", "f16"])
def test_statistics_of_few_rows_are_stored_to_the_element(dtype: str) -> None:
    """Two rows a core leave two numbers, fewer than a block: a copy ends behind them, where the
    scalar unit would store each, and a kernel whose scalar unit stores has a launch of its own."""
    zero = "0" if dtype == "i32" else "0.0"
    text = f"""
      func.func @main(%x: tensor<50x700x{dtype}>) -> (tensor<50x{dtype}>, tensor<50x700x{dtype}>) {{
        %z = stablehlo.constant dense<{zero}> : tensor<{dtype}>
        %m = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1]
            : (tensor<50x700x{dtype}>, tensor<{dtype}>) -> tensor<50x{dtype}>
        %b = stablehlo.broadcast_in_dim %m, dims = [0]
            : (tensor<50x{dtype}>) -> tensor<50x700x{dtype}>
        %d = stablehlo.subtract %x, %b : tensor<50x700x{dtype}>
        return %m, %d : tensor<50x{dtype}>, tensor<50x700x{dtype}>
      }}
    """
    executable = davinci.compile(text, machine="ascend910b", core_choice="all", precision="fp32")
    (x,) = arrays.random_inputs(executable.inputs, seed=0).values()
    most, less = executable.run(x).values()
    wanted = np.maximum(x.max(axis=1), 0)
    np.testing.assert_array_equal(most, wanted)
    np.testing.assert_allclose(less, x - wanted[:, None], rtol=1e-3)
    assert all(kernel["scalar_accesses"] == 0 for kernel in executable.profile["kernels"])
