"""Products on the cube cores of the 910B, and networks around them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from davinci import zoo
from davinci.isa import Pipe
from davinci.passes.cce.sync_queues import Queue
from davinci.reference import check

Array = npt.NDArray[Any]

MACHINE = "ascend910b"

PRODUCTS = (
    (1, 1, 1),
    (1, 15, 16),
    (17, 33, 40),
    (16, 17, 1),
    (127, 64, 131),
    (300, 1000, 96),
)
"""m, k, n: less than a fractal, around one, primes, more than a tile."""


def product(
    m: int, k: int, n: int, turned: tuple[bool, bool] = (False, False), batch: int = 0
) -> str:
    """A model of one product of f16 to f16; `turned`: whether A and B are stored as columns."""
    lead, first = (f"{batch}x", 1) if batch else ("", 0)
    a, b = (f"{k}x{m}" if turned[0] else f"{m}x{k}"), (f"{n}x{k}" if turned[1] else f"{k}x{n}")
    together = "batching_dims = [0] x [0], " if batch else ""
    sums = f"[{first + (not turned[0])}] x [{first + turned[1]}]"
    kinds = [f"tensor<{lead}{shape}xf16>" for shape in (a, b, f"{m}x{n}")]
    return f"""func.func @main(%a: {kinds[0]}, %b: {kinds[1]}) -> {kinds[2]} {{
      %c = stablehlo.dot_general %a, %b, {together}contracting_dims = {sums}
        : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}
      return %c : {kinds[2]} }}"""


def assert_right(text: str, turned: tuple[bool, bool] = (False, False), **options: Any) -> Any:
    executable = davinci.compile(text, machine=MACHINE, **options)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(x.shape).astype(x.dtype) for x in executable.inputs)
    (found,) = executable.run(a, b).values()
    wide = [x.astype(np.float64) for x in (a, b)]
    left, right = (x.swapaxes(-1, -2) if t else x for x, t in zip(wide, turned, strict=True))
    wanted = left @ right
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
    return executable


@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_products(sizes: tuple[int, int, int]) -> None:
    executable = assert_right(product(*sizes))
    assert [kernel.unit for kernel in executable.kernels.values()] == ["cube"]


@pytest.mark.parametrize("turned", [(True, False), (False, True), (True, True)])
def test_stored_as_columns(turned: tuple[bool, bool]) -> None:
    """Where k runs along the rows of both, both end in zeros."""
    assert_right(product(37, 45, 70, turned), turned)


def test_a_batch() -> None:
    assert_right(product(33, 47, 20, batch=3))


def test_rows_that_lie_far_apart() -> None:
    """Further than a transfer of several rows can say."""
    assert_right(product(2, 3, 70000))


def test_all_cube_cores_share_the_work() -> None:
    executable = assert_right(product(96, 64, 512), core_choice="all")
    assert max(launch.blocks for launch in executable.launches) == 24


@pytest.mark.parametrize(
    "name", ["mlp,batch=3,features=20,hidden=33,classes=7", "bert,layers=1,hidden=48,heads=3,seq=9"]
)
def test_networks(name: str) -> None:
    """Kernels of cube cores and of vector cores, one after the other."""
    network = zoo.build(name)
    executable = davinci.compile(network.proto, machine=MACHINE)
    inputs = network.inputs(0)
    outputs = executable.run(inputs)
    check.require(check.compare(outputs, check.reference_onnx(network.proto, inputs)), "mixed")
    assert {kernel.unit for kernel in executable.kernels.values()} == {"cube", "vector"}


WINDOWS = (
    (1, 1, 1, 17, 5, 1, 1, 0, 1, 1),
    (1, 3, 3, 64, 256, 3, 1, 1, 1, 1),
    (2, 15, 13, 20, 33, 3, 2, 1, 1, 1),
    (1, 14, 14, 32, 32, 5, 1, 2, 2, 2),
    (1, 9, 9, 48, 48, 3, 1, 1, 1, 3),
    (1, 270, 20, 16, 16, 3, 3, 1, 1, 1),
)
"""Images, height, width, channels in and out; kernel, stride, padding, dilation, groups: one pixel;
tiles that share windows, padding rows of C; ragged channels; dilated, in groups; more rows of the
image than FMATRIX has padding."""


@pytest.mark.parametrize("sizes", WINDOWS, ids=str)
def test_convolutions(sizes: tuple[int, ...]) -> None:
    n, h, w, c, o, kernel, stride, pad, dilation, groups = sizes
    node = helper.make_node(
        "Conv",
        ["x", "w", "b"],
        ["c"],
        kernel_shape=[kernel] * 2,
        strides=[stride] * 2,
        pads=[pad] * 4,
        dilations=[dilation] * 2,
        group=groups,
    )
    shapes = {"x": [n, c, h, w], "w": [o, c // groups, kernel, kernel], "b": [o]}
    random = np.random.default_rng(0)
    values = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    opset = {"opset_imports": [helper.make_opsetid("", 17)], "ir_version": 8}
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes["x"])]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    known = [numpy_helper.from_array(values[name], name) for name in "wb"]
    nodes = [node, helper.make_node("Relu", ["c"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "conv", given, result, known), **opset)
    inputs = {"x": values["x"]}
    outputs = davinci.compile(model, machine=MACHINE).run(inputs)
    check.require(check.compare(outputs, check.reference_onnx(model, inputs)), "mixed")


def test_bytes() -> None:
    """Products and convolutions of bytes: sums leave as integers and are scaled on vector cores."""
    network = zoo.build("squeezenet,resolution=32")
    samples = [network.inputs(seed) for seed in range(2)]
    quantized = davinci.quantize(network.proto, samples, layers="all").model
    executable = davinci.compile(quantized, machine=MACHINE)
    inputs = network.inputs(3)
    outputs = executable.run(inputs)
    check.require(check.compare(outputs, check.reference_onnx(quantized, inputs)), "fp16")
    assert any("i8" in name or "i32" in name for name in executable.kernels)


def test_queues_are_pipes() -> None:
    assert {queue.name for queue in Queue} == {pipe.name for pipe in Pipe}
