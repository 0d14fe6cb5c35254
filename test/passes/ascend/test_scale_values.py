"""Policy `scaled-fp16`: images, joins and random graphs against float64, where fp16 overflows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from random_ranges import RangedGraph, findings, lost

Array = npt.NDArray[Any]

IMAGE = (24, 40)
PIXELS = {"x": (0.0, 255.0)}


def model(
    nodes: list[onnx.NodeProto],
    shape: tuple[int, ...],
    result: tuple[int, ...],
    element: int = TensorProto.FLOAT,
    **constants: Any,
) -> onnx.ModelProto:
    """A model of `x` and `y`."""
    graph = helper.make_graph(
        nodes,
        "image",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def numbers(**given: float) -> dict[str, Array]:
    return {name: np.asarray(value, np.float32) for name, value in given.items()}


def node(kind: str, operands: str, result: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, operands.split(), [result], **attributes)


def run(proto: onnx.ModelProto, x: Array, precision: str = "scaled-fp16") -> tuple[Array, Any]:
    """The output, and the record of the run."""
    scaled = precision == "scaled-fp16" and x.dtype == np.float32
    executable = davinci.compile(
        proto, precision=precision, **({"ranges": PIXELS} if scaled else {})
    )
    return executable.run(x)["y"].astype(np.float64), executable.profile


def within(found: Array, wanted: Array, record: Any) -> None:
    """Asserts that nothing overflowed and that the error is below the stated bound."""
    assert lost(record) == 0
    (output,) = record["scaling"]["outputs"]
    assert np.abs(found - wanted).max() <= output["max_abs_err"]
    assert output["low"] <= found.min()
    assert found.max() <= output["high"]


TONE = [
    node("Mul", "x a", "ax"), node("Add", "ax b", "axb"), node("Mul", "x axb", "top"),
    node("Mul", "x c", "cx"), node("Add", "cx d", "cxd"), node("Mul", "x cxd", "low"),
    node("Add", "low e", "bottom"), node("Div", "top bottom", "y"),
]  # fmt: skip
FILM = {"a": 2.51, "b": 0.03, "c": 2.43, "d": 0.59, "e": 0.14}


def test_tone_of_all_pixels() -> None:
    """(x (a x + b)) / (x (c x + d) + e)."""
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    proto = model(TONE, (16, 16), (16, 16), **numbers(**FILM))
    found, record = run(proto, x)
    wide = x.astype(np.float64)
    a, b, c, d, e = FILM.values()
    wanted = wide * (a * wide + b) / (wide * (c * wide + d) + e)
    within(found, wanted, record)
    assert np.abs(found - wanted).max() <= 2e-3 * wanted.max()
    assert record["scaling"]["left"] == []
    halves, plain = run(proto, x, "fp16")
    assert lost(plain) > 0
    assert not np.isfinite(halves).all()


def test_gaussian_of_three_channels() -> None:
    weights = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.float32) / 256
    kernel = np.stack([weights[None]] * 3)
    rows, columns = IMAGE
    shape = (1, 3, rows, columns)
    blur = [node("Conv", "x w", "y", pads=[2, 2, 2, 2], group=3)]
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.float32)
    found, record = run(model(blur, shape, shape, w=kernel), x)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (2, 2), (2, 2)))
    wanted = sum(
        weights[i, j] * padded[:, :, i : i + rows, j : j + columns]
        for i in range(5)
        for j in range(5)
    )
    within(found, wanted, record)
    assert np.abs(found / wanted - 1).max() <= 2e-3


SHARP = [
    node("Conv", "x gray", "g"), node("Conv", "g laplace", "l"),
    node("ReduceMean", "l", "m", axes=[2, 3], keepdims=1), node("Sub", "l m", "c"),
    node("Mul", "c c", "q"), node("ReduceMean", "q", "y", axes=[2, 3], keepdims=1),
]  # fmt: skip


def test_sharpness() -> None:
    """The variance of the Laplacian of the gray image."""
    gray = np.array([0.299, 0.587, 0.114], np.float32).reshape(1, 3, 1, 1)
    laplace = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], np.float32)[None, None]
    rows, columns = IMAGE
    proto = model(SHARP, (1, 3, rows, columns), (1, 1, 1, 1), gray=gray, laplace=laplace)
    x = np.random.default_rng(0).integers(0, 256, (1, 3, rows, columns)).astype(np.float32)
    found, record = run(proto, x)
    g = (x.astype(np.float64) * gray.astype(np.float64)).sum(1)[0]
    inner = g[1:-1, :-2] + g[1:-1, 2:] + g[:-2, 1:-1] + g[2:, 1:-1] - 4 * g[1:-1, 1:-1]
    wanted = np.var(inner)
    within(found, np.asarray(wanted), record)
    assert found.item() == pytest.approx(wanted, rel=2e-3)


MEAN_STD = [
    node("Cast", "x", "f", to=TensorProto.FLOAT),
    node("ReduceMean", "f", "m", axes=[1], keepdims=1), node("Sub", "f m", "c"),
    node("Mul", "c c", "q"), node("ReduceMean", "q", "v", axes=[1], keepdims=1),
    node("Sqrt", "v", "y"),
]  # fmt: skip


def test_standard_deviation_of_bytes() -> None:
    """Bytes have the range of their type."""
    x = np.random.default_rng(0).integers(0, 256, (3, 500)).astype(np.uint8)
    found, record = run(model(MEAN_STD, (3, 500), (3, 1), TensorProto.UINT8), x)
    wanted = x.astype(np.float64).std(1, keepdims=True)
    assert np.abs(found / wanted - 1).max() <= 2e-3
    assert record["scaling"]["left"] == []
    assert lost(record) == 0


@pytest.mark.parametrize("seed", [3, 22, 31])
def test_random_graphs(seed: int) -> None:
    """Values in the ranges and at their ends: no overflow, errors within what is stated."""
    graph = RangedGraph(seed)
    executable = davinci.compile(graph.model, precision="scaled-fp16", ranges=graph.ranges)
    wrong, shares = findings(graph, executable)
    assert wrong == []
    assert shares


def test_masked_attention_is_one_kernel() -> None:
    """Scores beside a mask that f16 does not hold: what it hides becomes minus infinity, whose
    weight is 0, in f16, and is all that overflows."""
    shape = (2, 24, 32)
    steps = [
        node("Transpose", "x", "k", perm=[0, 2, 1]), node("MatMul", "x k", "s"),
        node("Div", "s root", "d"), node("Add", "d mask", "m"), node("Softmax", "m", "p", axis=-1),
        node("MatMul", "p x", "y"),
    ]  # fmt: skip
    mask = np.where(np.arange(24) < 20, 0, -1e30).astype(np.float32)
    proto = model(steps, shape, shape, mask=mask.reshape(1, 1, 24), **numbers(root=40000.0))
    x = np.random.default_rng(0).uniform(0, 255, shape).astype(np.float32)
    found, record = run(proto, x)
    wide = x.astype(np.float64)
    scores = np.exp((wide @ wide.transpose(0, 2, 1) / 40000) + mask)
    wanted = scores / scores.sum(-1, keepdims=True) @ wide
    assert lost(record) == 2 * 24 * 4
    assert np.abs(found / wanted - 1).max() <= 4e-3
    assert [kernel["label"].split()[0] for kernel in record["kernels"]].count("attention") == 1


def test_what_has_no_range_is_said_by_node() -> None:
    proto = model([node("Mul", "x x", "y")], (4, 8), (4, 8))
    executable = davinci.compile(proto, precision="scaled-fp16")
    (left,) = executable.details["scaling"]["left"]
    assert left["operator"] == "mul"
    assert left["reason"] == "no range is known"
    x = np.full((4, 8), 300, np.float32)
    assert (executable.run(x)["y"] == 90000).all()
