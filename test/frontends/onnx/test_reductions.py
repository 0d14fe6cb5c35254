"""Reductions, places of extrema, running sums and normalizations, by onnxruntime and reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError
from onnx_support import against_onnxruntime, against_reference, node_model, run
from pairs import all_pairs

RNG = np.random.default_rng(11)
X = RNG.standard_normal((2, 3, 5)).astype(np.float32)

REDUCTIONS = [
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"),
    *("ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogSum"),
]


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [None, [-1, 0]])
def test_reduction(operator: str, keepdims: int, axes: list[int] | None) -> None:
    x = abs(X) if operator == "ReduceLogSum" else X
    given = None if axes is None else np.array(axes, np.int64)
    known = [] if axes is None else [1]
    against_onnxruntime(*node_model(operator, x, given, known=known, opset=18, keepdims=keepdims))


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_of_rank_0(operator: str, keepdims: int) -> None:
    """What torch writes for the mean of a scalar, and most losses."""
    x = np.array(2.5, np.float32)
    against_onnxruntime(*node_model(operator, x, opset=18, keepdims=keepdims))
    empty = np.zeros(0, np.int64)
    against_onnxruntime(*node_model(operator, x, empty, known=[1], opset=18, keepdims=keepdims))


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_axes_as_attribute(operator: str) -> None:
    against_onnxruntime(*node_model(operator, abs(X), opset=11, axes=[0, -1], keepdims=0))


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_no_axes_and_no_reduction(operator: str) -> None:
    against_reference(*node_model(operator, abs(X), opset=18, noop_with_empty_axes=1))


@pytest.mark.parametrize(
    "operator", ["ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"]
)
def test_of_no_elements(operator: str) -> None:
    x, axes = np.zeros((2, 0, 3), np.float32), np.array([1])
    against_reference(*node_model(operator, x, axes, known=[1], opset=20))


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
def test_mean_of_more_halves_than_a_half_can_count(precision: str) -> None:
    """70,000 elements, whose sum no f16 holds either."""
    x = (np.arange(70_000) % 4).astype(np.float16).reshape(1, 70_000)
    model, inputs = node_model("ReduceMean", x, np.array([1]), known=[1], opset=18, keepdims=0)
    (found,) = davinci.compile(model, precision=precision).run(inputs).values()
    assert found.tolist() == [1.5]


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL1"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_of_integers(operator: str, dtype: Any) -> None:
    x = RNG.integers(-50, 50, (3, 7)).astype(dtype)
    against_onnxruntime(*node_model(operator, x, np.array([1]), known=[1], opset=18))


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.uint64, np.bool_])
def test_extrema_of_unsigned_and_narrow(operator: str, dtype: Any) -> None:
    """128 is larger than 127 where there is no sign."""
    x = np.array([[0, 127, 128], [200, 255, 3]]).astype(dtype)
    against_reference(*node_model(operator, x, np.array([1]), known=[1], opset=20))


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_extrema_of_no_booleans(operator: str) -> None:
    nothing = np.zeros((3, 0), np.bool_)
    found = run(*node_model(operator, nothing, np.array([1]), known=[1], opset=20))["y"]
    np.testing.assert_array_equal(found, np.full((3, 1), operator == "ReduceMin"))


def test_log_sum_exp_does_not_overflow() -> None:
    x = np.array([[1000.0, 1001.0], [-np.inf, -np.inf], [np.inf, 0.0]], np.float32)
    model, inputs = node_model("ReduceLogSumExp", x, np.array([1]), known=[1], keepdims=0)
    found = run(model, inputs)["y"]
    np.testing.assert_allclose(found, [1001.3133, -np.inf, np.inf], rtol=1e-3)


@pytest.mark.parametrize(
    ("operator", "last", "dtype"),
    all_pairs(["ArgMax", "ArgMin"], [0, 1], [np.float32, np.uint8, np.int32, np.uint64]),
)
def test_places(operator: str, last: int, dtype: Any) -> None:
    x = np.array([[3, 200, 1, 200, 1], [7, 7, 7, 7, 7], [0, 127, 128, 127, 0]]).astype(dtype)
    for axis in (0, -1):
        model = node_model(operator, x, axis=axis, keepdims=0, select_last_index=last)
        against_reference(*model)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_the_place_of_nan(operator: str, last: int) -> None:
    """As NumPy's: NaN is what is looked for, wherever there is one."""
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, 3, nan], [nan, 1, 2, 3], [1, 2, 3, nan], [inf, -inf, inf, -inf]], "f4")
    against_reference(*node_model(operator, x, axis=1, keepdims=1, select_last_index=last))


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(("reverse", "axis"), [(0, 0), (0, -1), (1, -1)])
def test_running(operator: str, exclusive: int, reverse: int, axis: int) -> None:
    x = RNG.uniform(0.5, 1.5, (3, 13)).astype(np.float32)
    options = {"exclusive": exclusive, "reverse": reverse, "opset": 26}
    against_reference(*node_model(operator, x, np.array(axis), known=[1], **options))


def test_running_sum_is_not_quadratic() -> None:
    model, inputs = node_model("CumSum", np.ones((4, 300), np.float32), np.array(1), known=[1])
    assert np.array_equal(run(model, inputs)["y"][2], np.arange(1, 301))


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (11, -1), (11, 0), (13, 1), (13, -1)])
def test_softmax(operator: str, opset: int, axis: int) -> None:
    """Before operator set 13 all dimensions behind the axis belong together."""
    against_onnxruntime(*node_model(operator, X, opset=opset, axis=axis))


def test_hardmax_takes_the_first() -> None:
    against_onnxruntime(*node_model("Hardmax", np.array([[1, 3, 3, 2]], np.float32)))


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p: int) -> None:
    x = np.array([[3, -4, 0], [0, 0, 0]], np.float32)
    against_onnxruntime(*node_model("LpNormalization", x, p=p, axis=1))


def channels(count: int, number: int) -> list[Any]:
    return list(RNG.uniform(0.5, 1.5, (number, count)).astype(np.float32))


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization(opset: int) -> None:
    model = node_model("BatchNormalization", X, *channels(3, 4), opset=opset, epsilon=1e-3)
    against_onnxruntime(*model)


def test_batch_normalization_of_each_element() -> None:
    operands = RNG.uniform(0.5, 1.5, (4, 3, 5)).astype(np.float32)
    model, inputs = node_model("BatchNormalization", X, *operands, opset=7, spatial=0)
    scale, bias, mean, variance = operands
    wanted = (X - mean) / np.sqrt(variance + 1e-5) * scale + bias
    np.testing.assert_allclose(run(model, inputs)["y"], wanted, rtol=1e-2, atol=1e-2)


def test_batch_normalization_in_training() -> None:
    operands = (X, *channels(3, 4))
    options = {"training_mode": 1, "momentum": 0.7}
    against_reference(*node_model("BatchNormalization", *operands, outputs=3, opset=15, **options))


def test_batch_normalization_in_training_by_outputs() -> None:
    operands = channels(3, 4)
    model, inputs = node_model("BatchNormalization", X, *operands, outputs=5, opset=9)
    found = run(model, inputs)
    mean, variance = X.mean((0, 2)), X.var((0, 2))
    np.testing.assert_allclose(found["y1"], operands[2] * 0.9 + mean * 0.1, rtol=1e-3)
    np.testing.assert_allclose(found["y2"], operands[3] * 0.9 + variance * 0.1, rtol=1e-3)
    np.testing.assert_allclose(found["y3"], mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found["y4"], variance, rtol=1e-3)


def test_instance_normalization() -> None:
    against_onnxruntime(*node_model("InstanceNormalization", X, *channels(3, 2), epsilon=1e-2))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_normalization(groups: int) -> None:
    x = RNG.standard_normal((2, 4, 3, 2)).astype(np.float32)
    operands = (x, *channels(4, 2))
    against_reference(*node_model("GroupNormalization", *operands, num_groups=groups))


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("outputs", [1, 3])
def test_layer_normalization(axis: int, outputs: int) -> None:
    shape = X.shape[axis:]
    scale, bias = RNG.uniform(0.5, 1.5, (2, *shape)).astype(np.float32)
    options = {"axis": axis, "outputs": outputs, "epsilon": 1e-3}
    against_onnxruntime(*node_model("LayerNormalization", X, scale, bias, **options))


def test_layer_normalization_of_fp16_is_computed_in_f32() -> None:
    """Its squares are beyond fp16's range."""
    x = (RNG.standard_normal((2, 64)) * 1000).astype(np.float16)
    scale = np.ones(64, np.float16)
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    found = run(*node_model("LayerNormalization", x, scale, stash_type=1))["y"]
    np.testing.assert_allclose(found, wanted, atol=0.01)


def test_rms_normalization() -> None:
    scale = RNG.uniform(0.5, 1.5, 5).astype(np.float32)
    against_reference(*node_model("RMSNormalization", X, scale, opset=23, epsilon=1e-2))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    x = RNG.standard_normal((1, 6, 3, 3)).astype(np.float32)
    options = {"alpha": 0.3, "beta": 0.6, "bias": 1.5}
    against_onnxruntime(*node_model("LRN", x, size=size, **options))


def test_lrn_of_an_even_size_reaches_further_up() -> None:
    x = RNG.standard_normal((1, 5, 2, 2)).astype(np.float32)
    square = np.pad(x * x, [(0, 0), (1, 2), (0, 0), (0, 0)])
    around = sum(square[:, i : i + 5] for i in range(4))
    found = run(*node_model("LRN", x, size=4, alpha=2.0, beta=0.5))["y"]
    np.testing.assert_allclose(found, x / np.sqrt(1 + 0.5 * around), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("reduction", "weighted"), [("mean", False), ("mean", True), ("sum", True), ("none", False)]
)
@pytest.mark.parametrize("ignored", [{}, {"ignore_index": 1}])
def test_cross_entropy(reduction: str, weighted: bool, ignored: dict[str, int]) -> None:
    x = RNG.standard_normal((3, 4, 2)).astype(np.float32)
    labels = np.array([[0, 1], [3, 2], [1, 1]])
    weight = channels(4, 1) if weighted else []
    options = {"reduction": reduction, "outputs": 2, **ignored}
    against_onnxruntime(*node_model("SoftmaxCrossEntropyLoss", x, labels, *weight, **options))


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("RandomNormalLike", [X], {}),
        ("Bernoulli", [abs(X) / 10], {}),
        ("Dropout", [X, np.float32(0.5), np.True_], {"opset": 13, "known": [1, 2]}),
    ],
)
def test_random_numbers_are_refused(
    operator: str, operands: list[Any], attributes: dict[str, Any]
) -> None:
    model, inputs = node_model(operator, *operands, **attributes)
    with pytest.raises(CompileError, match=f"random numbers.*operator {operator} of node"):
        run(model, inputs)


@pytest.mark.parametrize(
    "operands", [[X], [X, np.float32(0.5)], [X, np.float32(0.0), np.True_], [X, None, np.False_]]
)
def test_dropout_that_drops_nothing(operands: list[Any]) -> None:
    known = [i for i, x in enumerate(operands) if i and x is not None]
    against_onnxruntime(*node_model("Dropout", *operands, outputs=2, known=known, opset=13))
