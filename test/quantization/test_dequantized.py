"""Quantized layers whose sums are scaled on their way out of L0C: next to what f32 would give."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import davinci
from davinci.reference import check
from pairs import all_pairs

quantize = partial(davinci.quantize, layers="all")
"""Quantizes all layers: of such small networks none would pay."""

SIDE = 9
MACHINES = {"ascend310": "dequantize", "ascend910b": "scale_sums"}
"""Machines, and the operator that scales sums on their way out of L0C: by copies, or by fixpipe."""


def convolution(
    rng: Any, x: str, y: str, channels: int, kernel: int, bias: float
) -> tuple[Any, list[Any]]:
    size = (channels, channels, kernel, kernel)
    w = (rng.standard_normal(size) / np.sqrt(channels * kernel**2)).astype(np.float32)
    w[5] = 0  # a dead channel, whose scale says nothing
    b = (bias * rng.standard_normal(channels)).astype(np.float32)
    given = [numpy_helper.from_array(v, f"{y}_{n}") for n, v in (("w", w), ("b", b))]
    pads = [kernel // 2] * 4
    return helper.make_node("Conv", [x, f"{y}_w", f"{y}_b"], [y], pads=pads), given


@cache
def layers(
    average: bool, channels: int = 32, side: int = SIDE, kernel: int = 3
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A residual block, or what its pixels are on average where they are positive, and a product by
    which its bytes are seen, one by one."""
    rng = np.random.default_rng(0)
    first, one = convolution(rng, "x", "a", channels, kernel, 0.3)
    second, two = convolution(rng, "r", "c", channels, 1, 20.0)  # a bias far beyond the sums
    seen = numpy_helper.from_array(np.eye(channels, dtype=np.float32)[:, :, None, None], "e")
    nodes = [
        first,
        helper.make_node("Relu", ["a"], ["r"]),
        second,
        helper.make_node("Add", ["c", "r"], ["s"]),
        helper.make_node("Relu", ["s"], ["p"]),
        helper.make_node("GlobalAveragePool", ["p"], ["m"]),
        helper.make_node("Conv", ["m" if average else "s", "e"], ["y"]),
    ]
    shape = [1, channels, side, side]
    x = helper.make_tensor_value_info("x", 1, shape)
    y = helper.make_tensor_value_info("y", 1, [*shape[:2], 1, 1] if average else shape)
    nodes = nodes if average else [*nodes[:4], nodes[-1]]
    graph = helper.make_graph(nodes, "block", [x], [y], [*one, *two, seen])
    sets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    samples = [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(3)]
    return quantize(model, samples).model, samples[0]


@pytest.mark.parametrize(
    ("precision", "average", "machine"), all_pairs(["mixed", "fp32"], [False, True], MACHINES)
)
def test_neighbours_at_most(precision: str, average: bool, machine: str) -> None:
    most, share = {"mixed": (1, 0.05), "fp32": (0, 0.0)}[precision]
    model, given = layers(average)
    wanted = check.reference_onnx(model, given)["y"]
    executable = davinci.compile(model, machine=machine, precision=precision)
    found = executable.run(given)["y"]
    step = (wanted.max() - wanted.min()) / 255
    steps = np.rint((found - wanted) / step)
    assert np.abs(steps).max() <= most
    assert np.mean(steps != 0) <= share
    kernels = " ".join(kernel["label"] for kernel in executable.profile["kernels"])
    assert (MACHINES[machine] in kernels) == (precision == "mixed")


def test_columns_apart() -> None:
    """Many columns at once become bytes of blocks that lie apart, and what is scaled is added to
    them there: as with pairs of columns."""
    model, given = layers(average=False, channels=256, side=4, kernel=1)
    wanted = check.reference_onnx(model, given)["y"]
    executable = davinci.compile(model, machine="ascend310")
    found = executable.run(given)["y"]
    step = (wanted.max() - wanted.min()) / 255
    assert np.abs(np.rint((found - wanted) / step)).max() <= 1
    assert any("vaxpy.f32" in launch.instructions for launch in executable.launches)


def test_what_onnx_defines_is_exact() -> None:
    """Scales have 19 bits on their way out of L0C, and halves are rounded away from zero, so vector
    cores scale the sums of QLinearMatMul: there they become the same bytes as in ONNX."""
    rng = np.random.default_rng(5)
    known = {"b": rng.integers(-128, 128, (64, 96), np.int8)}
    known |= {f"{x}s": np.float32(s) for x, s in (("a", 0.5), ("b", 0.25), ("y", 32.0))}
    known |= {f"{x}z": np.int8(z) for x, z in (("a", 3), ("b", 0), ("y", -5))}
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    a = helper.make_tensor_value_info("a", onnx.TensorProto.INT8, (48, 64))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT8, (48, 96))
    given = [numpy_helper.from_array(np.asarray(array), name) for name, array in known.items()]
    graph = helper.make_graph([node], "exact", [a], [y], given)
    sets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    arrays = {"a": rng.integers(-128, 128, (48, 64), np.int8)}
    found = davinci.compile(model, machine="ascend910b").run(arrays)["y"]
    wanted = check.reference_onnx(model, arrays)["y"]
    assert np.array_equal(found, wanted)


def test_sums_that_are_limited_and_rounded() -> None:
    """What a product of f16 takes leaves L0C as f16, between limits: a Clip of which fixpipe does
    the lower one."""
    rng = np.random.default_rng(11)
    known: dict[str, Any] = {"w": rng.integers(-127, 128, (64, 96), np.int8)}
    known |= {"xs": np.float32(0.02), "xz": np.int8(4), "wz": np.zeros(96, np.int8)}
    known |= {"ws": rng.uniform(0.002, 0.01, 96).astype(np.float32)}
    known |= {"b": rng.standard_normal(96).astype(np.float32)}
    known |= {"low": np.float32(0), "high": np.float32(6)}
    known |= {"v": rng.standard_normal((96, 48)).astype(np.float32)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["p"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["q"], axis=1),
        helper.make_node("MatMul", ["p", "q"], ["c"]),
        helper.make_node("Sub", ["c", "b"], ["d"]),
        helper.make_node("Clip", ["d", "low", "high"], ["e"]),
        helper.make_node("MatMul", ["e", "v"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT8, (1, 50, 64))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 50, 48))
    given = [numpy_helper.from_array(np.asarray(array), name) for name, array in known.items()]
    graph = helper.make_graph(nodes, "limited", [x], [y], given)
    sets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    arrays = {"x": rng.integers(-128, 128, (1, 50, 64), np.int8)}
    executable = davinci.compile(model, machine="ascend910b")
    errors = check.compare(executable.run(arrays), check.reference_onnx(model, arrays))
    check.require(errors, "mixed")
    kernels = " ".join(kernel["label"] for kernel in executable.profile["kernels"])
    assert "scale_sums" in kernels


@pytest.mark.parametrize(
    ("sign", "added", "leaves"), [(1, 0, True), (-1, 0, False), (1, 0.02, False), (1, 15, False)]
)
def test_relu_that_is_no_limit_of_bytes(sign: int, added: float, leaves: bool) -> None:
    """Behind it bytes have another zero point than their least: fixpipe adds that as an offset. Its
    scale is off by 2^-11 at most, so of values of up to 147 steps fewer than one in 14 are others
    than in f32. Vector cores do it where columns have scales of both signs, as fixpipe does the
    relu first, and where the offset is no integer of 9 bits: of 0.4 and of 300 steps."""
    rng = np.random.default_rng(9)
    w = rng.integers(-127, 128, (64, 64), np.int8)
    known = {"w": w, "xs": np.float32(0.02), "ws": np.float32(0.01), "ys": np.float32(0.05)}
    known |= {"xz": np.int8(4), "wz": np.int8(0), "yz": np.int8(-20), "added": np.float32(added)}
    known |= {"signs": np.where(np.arange(64) % 2, sign, 1).astype(np.float32)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["c"]),
        helper.make_node("Mul", ["c", "signs"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("Add", ["e", "added"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "ys", "yz"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT8, (50, 64))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT8, (50, 64))
    given = [numpy_helper.from_array(np.asarray(array), name) for name, array in known.items()]
    graph = helper.make_graph(nodes, "relu", [x], [y], given)
    sets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    arrays = {"x": rng.integers(-128, 128, (50, 64), np.int8)}
    executable = davinci.compile(model, machine="ascend910b")
    found, wanted = executable.run(arrays)["y"], check.reference_onnx(model, arrays)["y"]
    assert np.abs(found.astype(int) - wanted).max() <= 1
    assert np.mean(found != wanted) <= 147 * 2.0**-11
    assert added or (wanted.min() == -20 and (wanted > -20).mean() > 0.3)
    kernels = " ".join(kernel["label"] for kernel in executable.profile["kernels"])
    assert "scale_sums" in kernels and ("quantize" not in kernels) == leaves
