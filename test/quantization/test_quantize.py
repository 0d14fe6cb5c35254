"""`davinci.quantize`: what it makes of small networks, and that its corrections reduce errors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from davinci.errors import InputError
from davinci.quantization.comparison import ErrorSums, model_sums, values_of
from davinci.quantization.runs import ModelRun
from davinci.reference import check

quantize = partial(davinci.quantize, layers="all")
"""Quantizes all layers: of such small networks none would pay."""

Arrays = dict[str, np.ndarray[Any, Any]]
RNG = np.random.default_rng(0)


def normal(*shape: int, mean: float = 0.0, scale: float = 1.0) -> np.ndarray[Any, Any]:
    return (RNG.standard_normal(shape) * scale + mean).astype(np.float32)


def model_of(
    nodes: list[onnx.NodeProto], constants: Arrays, shape: list[int], result: list[int]
) -> onnx.ModelProto:
    """A model from x to y, both floats."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def small_cnn() -> onnx.ModelProto:
    """A Conv with a bias, one without, one of groups, a residual, a MatMul with an Add behind it
    and one without, a Gemm."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["a"], name="first", pads=[1] * 4),
        node("Relu", ["a"], ["r"]),
        node("Conv", ["r", "w1"], ["c"], name="second"),
        node("Conv", ["r", "w2", "b2"], ["d"], name="grouped", group=2),
        node("Add", ["c", "d"], ["sum"]),
        node("Relu", ["sum"], ["s"]),
        node("GlobalAveragePool", ["s"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("MatMul", ["f", "w3"], ["m"], name="biased"),
        node("Add", ["b3", "m"], ["n"]),
        node("MatMul", ["n", "w4"], ["o"], name="bare"),
        node("Relu", ["o"], ["p"]),
        node("Gemm", ["p", "w5", "b5"], ["y"], name="last", transB=1),
    ]
    constants = {
        "w0": normal(64, 32, 3, 3, scale=0.06),
        "b0": normal(64, scale=0.1),
        "w1": normal(64, 64, 1, 1, scale=0.1),
        "w2": normal(64, 32, 1, 1, scale=0.1),
        "b2": normal(64, scale=0.1),
        "w3": normal(64, 17, scale=0.1),
        "b3": normal(17, scale=0.1),
        "w4": normal(17, 16, scale=0.3),
        "w5": normal(5, 16, scale=0.3),
        "b5": normal(5, scale=0.1),
    }
    return model_of(nodes, constants, [2, 32, 7, 7], [2, 5])


CNN = small_cnn()
SAMPLES = [{"x": normal(2, 32, 7, 7)} for _ in range(8)]
HELD_OUT = [{"x": normal(2, 32, 7, 7)} for _ in range(8)]


def error_of(made: davinci.Quantized, model: onnx.ModelProto, samples: list[Arrays]) -> ErrorSums:
    return model_sums(values_of(model, ["y"], samples), made.model, ["y"], samples)["y"]


@pytest.mark.parametrize("method", ["max_min", "outliers", "kl"])
def test_model_runs_in_onnxruntime_and_is_near_the_one_of_floats(method: str) -> None:
    made = quantize(CNN, SAMPLES, method=method, central=0.999)
    onnx.checker.check_model(made.model, full_check=True)
    assert error_of(made, CNN, HELD_OUT).cosine > 0.999
    names = [layer.layer for layer in made.report.layers]
    assert names == ["first", "second", "grouped", "biased", "bare", "last"]
    assert not made.report.kept
    assert all(layer.own_db > 25 for layer in made.report.layers)
    kinds = [node.op_type for node in made.model.graph.node]
    assert kinds.count("QuantizeLinear") == 5  # the second and the grouped one read the same
    held = {tensor.name for tensor in made.model.graph.initializer}
    assert not held & {"w0", "w1", "w2", "w3", "w4", "w5"}


def test_device_computes_what_onnxruntime_does() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("MatMul", ["f", "w1"], ["y"]),
    ]
    constants = {"w0": normal(4, 32, 3, 3, scale=0.1), "w1": normal(16, 5, scale=0.3)}
    model = model_of(nodes, constants, [2, 32, 4, 4], [2, 5])
    samples = [{"x": normal(2, 32, 4, 4)} for _ in range(4)]
    made = quantize(model, samples).model
    found = davinci.compile(made, cores=1).run(samples[0])
    check.require(check.compare(found, check.reference_onnx(made, samples[0])), "mixed")


def test_convolutions_of_few_channels_stay_in_floats() -> None:
    """A stem of three channels, and one of four groups of 16."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="stem"),
        helper.make_node("Conv", ["a", "w1"], ["b"], name="groups", group=4),
        helper.make_node("Conv", ["b", "w2"], ["y"], name="whole"),
    ]
    constants = {"w0": normal(64, 3, 1, 1), "w1": normal(64, 16, 1, 1), "w2": normal(4, 64, 1, 1)}
    model = model_of(nodes, constants, [1, 3, 2, 2], [1, 4, 2, 2])
    made = quantize(model, [{"x": normal(1, 3, 2, 2)}])
    assert [layer.layer for layer in made.report.layers] == ["whole"]


def test_biases_have_no_mean_error_left() -> None:
    """What `bias_correction` takes off is measured layer by layer: the first has no other error."""
    made = quantize(CNN, SAMPLES, weight_correction=False)
    plain = quantize(CNN, SAMPLES, weight_correction=False, bias_correction=False)
    floats = ModelRun(CNN, ["a"])
    left = []
    for quantized in (made, plain):
        run = ModelRun(quantized.model, ["a"])
        errors = np.stack([run(sample)["a"] - floats(sample)["a"] for sample in SAMPLES])
        left.append(errors.mean(axis=(0, 1, 3, 4)))
    assert np.abs(left[0]).max() < 1e-6
    assert np.abs(left[1]).max() > 1e-4


@pytest.mark.parametrize("method", ["max_min", "kl"])
def test_corrections_reduce_the_error_of_new_data(method: str) -> None:
    """Of a network whose operands, after a Relu, are not 0 on average: there errors of a weight's
    mean add up. Each correction alone and both."""
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w0", "b"], ["a"]),
        node("Relu", ["a"], ["r"]),
        node("Gemm", ["r", "w1", "b"], ["c"]),
        node("Relu", ["c"], ["s"]),
        node("Gemm", ["s", "w2", "b"], ["y"]),
    ]
    rng = np.random.default_rng(3)
    constants = {f"w{i}": rng.standard_normal((64, 64)).astype(np.float32) / 8 for i in range(3)}
    model = model_of(nodes, {**constants, "b": np.ones(64, np.float32)}, [16, 64], [16, 64])
    data = [{"x": rng.standard_normal((16, 64)).astype(np.float32) + 1} for _ in range(12)]

    def decibels(weights: bool, biases: bool) -> float:
        made = quantize(
            model, data[:8], method=method, weight_correction=weights, bias_correction=biases
        )
        return error_of(made, model, data[8:]).decibels()

    none = decibels(False, False)
    assert decibels(True, False) > none + 0.5
    assert decibels(False, True) > none + 0.5
    assert decibels(True, True) > none + 0.5


def test_bound_keeps_as_few_layers_as_it_takes() -> None:
    loose = quantize(CNN, SAMPLES, accuracy=0.9)
    assert not loose.report.kept
    plain = loose.report.cosine
    bound = (1 + plain) / 2
    tight = quantize(CNN, SAMPLES, accuracy=bound).report
    assert tight.cosine >= bound > plain
    assert 0 < len(tight.kept) < 6
    exact = quantize(CNN, SAMPLES, accuracy=1.0)
    assert len(exact.report.kept) == 6
    assert [n.op_type for n in exact.model.graph.node] == [n.op_type for n in CNN.graph.node]


def test_bound_keeps_the_layer_that_harms_most() -> None:
    """One weight of each row, which is never used, leaves the others of a layer few integers."""
    model = onnx.ModelProto()
    model.CopyFrom(CNN)
    (weight,) = (tensor for tensor in model.graph.initializer if tensor.name == "w2")
    values = numpy_helper.to_array(weight).copy()
    values[:, 0] = 40.0
    weight.CopyFrom(numpy_helper.from_array(values, "w2"))
    (weight,) = (tensor for tensor in model.graph.initializer if tensor.name == "b0")
    values = numpy_helper.to_array(weight).copy()
    values[[0, 32]] = -100.0  # the first channel of each group is always cut by the Relu
    weight.CopyFrom(numpy_helper.from_array(values, "b0"))
    plain = quantize(model, SAMPLES).report
    bounded = quantize(model, SAMPLES, accuracy=(1 + plain.cosine) / 2).report
    assert [layer.layer for layer in bounded.kept] == ["grouped"]


def test_outputs_and_graphs_inside_nodes_keep_their_values() -> None:
    """A tensor that is an output, and one that a branch of an If reads, stay floats for these."""
    node = helper.make_node
    made = helper.make_tensor_value_info("t", TensorProto.FLOAT, [4, 8])
    branch = helper.make_graph([node("Neg", ["x"], ["t"])], "branch", [], [made])
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("If", ["yes"], ["i"], then_branch=branch, else_branch=branch),
        node("MatMul", ["m", "w"], ["p"]),
        node("Add", ["p", "i"], ["y"]),
    ]
    model = model_of(nodes, {"w": normal(8, 8), "yes": np.array(True)}, [4, 8], [4, 8])
    model.graph.output.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [4, 8]))
    quantized = quantize(model, [{"x": normal(4, 8)} for _ in range(4)])
    assert quantized.report.cosine > 0.999
    onnx.checker.check_model(quantized.model)
    assert [value.name for value in quantized.model.graph.output] == ["y", "m"]


def test_older_operator_sets_are_converted() -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    model = model_of([node], {"w": normal(8, 4), "b": normal(4)}, [2, 8], [2, 4])
    model.opset_import[0].version = 9
    made = quantize(model, [{"x": normal(2, 8)}])
    assert made.model.opset_import[0].version == 13 and made.report.cosine > 0.999


def test_tensors_of_zeros_and_empty_channels() -> None:
    weight = normal(4, 8)
    weight[2] = 0
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    model = model_of([node], {"w": weight}, [2, 8], [2, 4])
    for values in (np.zeros((2, 8), np.float32), normal(2, 8)):
        made = quantize(model, [{"x": values}], method="kl")
        assert error_of(made, model, [{"x": values}]).cosine > 0.999


def test_npz_files_of_stacked_and_of_joined_samples(tmp_path: Path) -> None:
    stacked, joined = str(tmp_path / "stacked.npz"), str(tmp_path / "joined.npz")
    np.savez(stacked, x=np.stack([sample["x"] for sample in SAMPLES]))
    np.savez(joined, x=np.concatenate([sample["x"] for sample in SAMPLES]))
    onnx.save(CNN, tmp_path / "net.onnx")
    wanted = quantize(CNN, SAMPLES).model
    for path in (stacked, joined):
        assert quantize(str(tmp_path / "net.onnx"), path).model == wanted


def test_a_quantized_model_has_nothing_left_to_quantize() -> None:
    made = quantize(CNN, SAMPLES)
    with pytest.raises(InputError, match=r"net: nothing to quantize; expected Conv, Gemm or Mat"):
        quantize(made.model, SAMPLES)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (SAMPLES, {"method": "kll"}, "method: no such method; found 'kll'; .* did you mean 'kl'"),
        (SAMPLES, {"accuracy": 1.5}, "accuracy: bad value; found 1.5; expected above 0"),
        (SAMPLES, {"central": 0.0}, "central: bad value; found 0.0"),
        ([], {}, "calibration_data: no samples; expected one at least"),
        (SAMPLES[0], {}, "not calibration data; found an object of type dict; .* one sample"),
        ([3], {}, "sample 0: not a sample; found an object of type int"),
        ([{"z": SAMPLES[0]["x"]}], {}, "sample 0: not the model's inputs; found z; expected x"),
        ([{"x": np.ones((2, 3), np.float32)}], {}, r"found float32\[2, 3\]; expected float32\[2, "),
        ([{"x": np.ones((2, 32, 7, 7))}], {}, r"input 'x' does not fit; found float64\["),
        ([{"x": np.full((2, 32, 7, 7), np.inf, np.float32)}], {}, "the value 'x' is not finite"),
    ],
)
def test_wrong_calls(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quantize(CNN, data, **options)


def test_wrong_files(tmp_path: Path) -> None:
    path = str(tmp_path / "data.npz")
    np.savez(path, x=np.ones((3, 32, 7, 7), np.float32))
    with pytest.raises(InputError, match=r"data.npz: array 'x' cannot be parted into samples"):
        quantize(CNN, path)
    with pytest.raises(InputError, match=r"only ONNX models are quantized; found net.mlir"):
        quantize("net.mlir", path)
    with pytest.raises(InputError, match=r"none.onnx: no such file"):
        quantize(str(tmp_path / "none.onnx"), path)
