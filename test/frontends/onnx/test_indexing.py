"""Operators that read and write elements at indices, against onnxruntime or ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import davinci
from davinci.errors import InputError
from davinci.reference import check
from onnx_support import (
    against_onnxruntime,
    against_reference,
    agree,
    model_of,
    node_model,
    run,
)
from pairs import all_pairs

REDUCTIONS = ["none", "add", "mul", "max", "min"]


def values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("indices", "axis"),
    [
        ([[0, -1], [2, 1]], 0),
        ([[0, -1, 2]], 1),
        (3, -1),
        ([0, 0, 1, 1, 2, 2], 2),
        ([[]], 1),
        ([2, 1, 0], 1),
    ],
)
def test_gather(indices: Any, axis: int, known: bool) -> None:
    operands = (values(3, 4, 5), np.array(indices, np.int64))
    against_onnxruntime(*node_model("Gather", *operands, known=[1] if known else [], axis=axis))


def test_known_index_out_of_range() -> None:
    with pytest.raises(InputError, match="out of range"):
        run(*node_model("Gather", values(3, 4), np.array([3]), known=[1]))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int, known: bool) -> None:
    indices = np.random.default_rng(1).integers(-3, 3, (2, 3, 2))
    operands = (values(3, 4, 5), indices)
    model = node_model("GatherElements", *operands, known=[1] if known else [], axis=axis)
    against_onnxruntime(*model)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements_along_rows(axis: int) -> None:
    """The other dimensions of the indices are the array's."""
    shape = [3, 4, 5]
    size, shape[axis] = shape[axis], 7
    indices = np.random.default_rng(1).integers(-size, size, shape)
    against_onnxruntime(*node_model("GatherElements", values(3, 4, 5), indices, axis=axis))


@pytest.mark.parametrize(
    ("shape", "indices", "batch"),
    [
        ((3, 4, 5), [[0, 1], [-1, 2]], 0),
        ((3, 4, 5), [[[0, 1, -1]], [[2, 2, 2]]], 0),
        ((2, 3, 4), [[1], [-1]], 1),
        ((2, 3, 4), [[[1], [0]], [[2], [2]]], 1),
        ((2, 2, 4), [[[1], [0]], [[3], [2]]], 2),
    ],
)
def test_gather_tuples(shape: tuple[int, ...], indices: Any, batch: int) -> None:
    operands = (values(*shape), np.array(indices, np.int64))
    against_onnxruntime(*node_model("GatherND", *operands, batch_dims=batch))


def test_gather_tuples_of_nothing() -> None:
    against_reference(*node_model("GatherND", values(3, 4), np.zeros((0, 2), np.int64)))
    against_reference(*node_model("GatherND", values(3, 0), np.array([[1]], np.int64)))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements(axis: int, reduction: str) -> None:
    """With indices that come several times, unless the last one would win."""
    indices = np.array([[0, 1, -2], [2, 0, 1]] if reduction == "none" else [[0, 1, 1], [0, 0, -1]])
    operands = (values(3, 3), indices, values(2, 3))
    attributes = {"axis": axis, "reduction": reduction}
    against_onnxruntime(*node_model("ScatterElements", *operands, opset=18, **attributes))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("depth", [1, 2])
def test_scatter_tuples(depth: int, reduction: str) -> None:
    indices = np.array([[0], [-2]] if depth == 1 else [[0, 1], [2, -1]])
    operands = (values(3, 4, 2), indices, values(2, *(3, 4, 2)[depth:]))
    against_onnxruntime(*node_model("ScatterND", *operands, opset=18, reduction=reduction))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16, np.bool_])
def test_scatter_of_types(dtype: Any) -> None:
    x, updates = np.arange(6).astype(dtype), np.ones(2, dtype)
    operands = (x, np.array([[4], [0]]), updates)
    against_reference(*node_model("ScatterND", *operands))


def test_scatter_of_nothing() -> None:
    nothing = np.zeros((0, 1), np.int64), np.zeros((0, 4), np.float32)
    against_reference(*node_model("ScatterND", values(3, 4), *nothing))


@pytest.mark.parametrize("known", [True, False])
def test_scatter_of_a_slice(known: bool) -> None:
    """What `x[1:3] = y` exports as."""
    operands = (values(5, 4), np.array([[1], [2]]), values(2, 4))
    against_onnxruntime(*node_model("ScatterND", *operands, known=[1] if known else []))


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (2, 3, 1, 4), (1, 1, 9, 1)])
@pytest.mark.parametrize("axis", [1, 2])
def test_scatter_of_a_box(shape: tuple[int, ...], axis: int) -> None:
    """Steps that a cache is written with at known places; some are counted from the end."""
    size = [min(2, n) if i == axis else n for i, n in enumerate(shape[:3])]
    first = [n - s if i == axis else 0 for i, (n, s) in enumerate(zip(shape, size, strict=False))]
    tuples = np.moveaxis(np.indices(size), 0, -1) + first
    for places in (tuples, tuples - np.array(shape[:3]), tuples[::-1]):
        operands = (values(*shape), places, values(*size, *shape[3:]))
        against_onnxruntime(*node_model("ScatterND", *operands, known=[1]))


def test_scatter_of_constants() -> None:
    """A mask of windows, as Swin's: its indices are a range, whose numbers are no shape."""
    nodes = [
        helper.make_node("Range", ["zero", "many", "one"], ["range"]),
        helper.make_node("Expand", ["range", "columns"], ["wide"]),
        helper.make_node("ScatterND", ["mask", "first", "wide"], ["marked"]),
        helper.make_node("Add", ["x", "marked"], ["y"]),
    ]
    numbers = {"zero": 0.0, "many": 70.0, "one": 1.0, "mask": np.zeros((90, 70))}
    constants = {name: np.float32(value) for name, value in numbers.items()}
    constants |= {"columns": np.array([3, 70]), "first": np.array([[2], [7], [5]])}
    inputs = {"x": values(90, 70)}
    executable = davinci.compile(model_of(nodes, inputs, constants=constants), cores=2)
    (found,) = executable.run(inputs).values()
    inputs["x"][[2, 7, 5]] += np.arange(70, dtype=np.float32)
    np.testing.assert_array_equal(found, inputs["x"])
    assert [kernel["unit"] for kernel in executable.profile["kernels"]] == ["vector"]


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("given", [True, False])
def test_scatter_of_steps(mode: str, given: bool) -> None:
    first = np.array([1, 3], np.int64) if given else None
    operands = (values(2, 3, 5, 4), values(2, 3, 2, 4), *([first] if given else []))
    against_reference(*node_model("TensorScatter", *operands, opset=24, mode=mode))


@pytest.mark.parametrize(
    ("dtype", "largest", "axis"), all_pairs([np.float32, np.int64, np.uint8], [0, 1], [0, -1])
)
def test_largest(dtype: Any, largest: int, axis: int) -> None:
    """Of equal elements the first comes first."""
    count = 7 if axis else 4
    x = np.random.default_rng(0).integers(0, 6, (7, 8)).astype(dtype)
    wanted = np.argsort(-x.astype(int) if largest else x.astype(int), axis=axis, kind="stable")
    wanted = np.take(wanted, range(count), axis)
    model, inputs = node_model(
        "TopK", x, np.array([count]), known=[1], outputs=2, axis=axis, largest=largest
    )
    agree(model, inputs, {"y0": np.take_along_axis(x, wanted, axis), "y1": wanted})


def test_largest_of_old_operator_sets() -> None:
    against_onnxruntime(*node_model("TopK", values(3, 5), opset=9, outputs=2, k=2, axis=1))
    operands = (values(3, 3), np.array([3]))
    against_onnxruntime(*node_model("TopK", *operands, known=[1], opset=10, outputs=2))


@pytest.mark.parametrize("count", [3, 17])
def test_largest_of_infinite_values(count: int) -> None:
    """Few of them are found one by one, each without those before it; more are sorted."""
    x = np.full((2, 19), -np.inf, np.float32)
    x[1, 5:8] = [2, np.inf, -3]
    operands = (x, np.array([count]))
    against_onnxruntime(*node_model("TopK", *operands, known=[1], outputs=2))


def test_more_than_a_few_of_the_largest_are_sorted() -> None:
    x = values(8, 60)
    for count, sorts in ((2, False), (16, True)):
        executable = davinci.compile(
            node_model("TopK", x, np.array([count]), known=[1], outputs=2)[0], timing_only=True
        )
        executable.run()
        kernels = executable.profile["kernels"]
        assert {kernel["unit"] for kernel in kernels} == {"vector"}
        assert any("sort" in kernel["op"] for kernel in kernels) == sorts


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.uint32, np.int64])
def test_the_largest_of_any_integers_are_sorted_on_the_vector_unit(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 100, (4, 37)).astype(dtype)
    model, _ = node_model("TopK", x, np.array([5]), known=[1], outputs=2)
    executable = davinci.compile(model, timing_only=True)
    executable.run()
    kernels = executable.profile["kernels"]
    scalar = sum(kernel["cycles"] for kernel in kernels if kernel["unit"] == "scalar")
    assert scalar < 5000  # words of 16 and 64 bits are gathered; sorted there they take 200,000


def test_experts_of_a_router_are_chosen_on_the_vector_unit() -> None:
    nodes = [
        helper.make_node("TopK", ["x", "two"], ["best", "places"]),
        helper.make_node("Softmax", ["best"], ["shares"]),
        helper.make_node("ScatterElements", ["none", "places", "shares"], ["y"], axis=1),
    ]
    constants = {"two": np.array([2]), "none": np.zeros((17, 8), np.float32)}
    inputs = {"x": values(17, 8)}
    model = model_of(nodes, inputs, constants=constants)
    executable = davinci.compile(model, cores=2)
    found = executable.run(inputs)
    np.testing.assert_allclose(found["y"], check.reference_onnx(model, inputs)["y"], atol=1e-5)
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


def test_none_of_the_largest() -> None:
    model, inputs = node_model("TopK", values(3, 5), np.array([0]), known=[1], outputs=2)
    assert [found.shape for found in run(model, inputs).values()] == [(3, 0), (3, 0)]
    with pytest.raises(InputError, match="6 of 5"):
        run(*node_model("TopK", values(3, 5), np.array([6]), known=[1], outputs=2))


@pytest.mark.parametrize("wanted", [None, (1, 1, 5, 6)])
def test_unpooled(wanted: Any) -> None:
    x = np.arange(4).reshape(1, 1, 2, 2).astype(np.float32)
    numbers = np.array([5, 7, 13, 15], np.int64).reshape(1, 1, 2, 2)
    operands = (x, numbers, *([] if wanted is None else [np.array(wanted)]))
    known = [] if wanted is None else [2]
    model = node_model("MaxUnpool", *operands, known=known, kernel_shape=[2, 2], strides=[2, 2])
    against_reference(*model)
