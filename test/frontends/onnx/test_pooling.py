"""Pools against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.frontends.onnx import evaluate
from onnx_support import against_onnxruntime, means, node_model, run

SHAPES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 1, 4, 4), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((2, 3, 7, 6), {"kernel_shape": [3, 2], "dilations": [2, 2], "ceil_mode": 1}),
    ((1, 2, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
    ((2, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2]}),
    ((1, 2, 6, 6), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 6, 5), {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 6, 5), {"kernel_shape": [2, 2], "auto_pad": "VALID"}),
    ((1, 2, 6, 6), {"kernel_shape": [3, 3], "pads": [1, 0, 2, 1]}),
    (
        (1, 2, 5, 5),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [3, 3], "ceil_mode": 1},
    ),
    ((1, 2, 7, 7), {"kernel_shape": [7, 7]}),
    ((1, 1, 40), {"kernel_shape": [35]}),
    ((1, 3, 12, 19), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
]


def values(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "attributes"), SHAPES)
@pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
def test_pool(name: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    means(*node_model(name, values(*shape), opset=19, **attributes))


@pytest.mark.parametrize(
    ("name", "number"), [(("MaxPool", "AveragePool")[i % 2], i) for i in range(len(SHAPES))]
)
def test_pools_are_compiled(name: str, number: int) -> None:
    shape, attributes = SHAPES[number]
    against_onnxruntime(*node_model(name, values(*shape), opset=19, **attributes))


@pytest.mark.parametrize("inside", [0, 1])
@pytest.mark.parametrize("ceil", [0, 1])
def test_average_counts_padding_only_if_asked(inside: int, ceil: int) -> None:
    attributes = {"kernel_shape": [3, 3], "pads": [0, 1, 1, 1], "strides": [2, 2]}
    model = node_model(
        "AveragePool", values(1, 2, 6, 7), count_include_pad=inside, ceil_mode=ceil, **attributes
    )
    against_onnxruntime(*model)


@pytest.mark.parametrize(
    ("shape", "attributes", "columns"),
    [(*SHAPES[i], n % 2) for n, i in enumerate((0, 2, 3, 4, 7, 8, 11, 3))],
)
def test_indices_count_over_the_whole_tensor(
    shape: tuple[int, ...], attributes: dict[str, Any], columns: int
) -> None:
    """Of equal elements the first counts, and none of the padding."""
    x = np.random.default_rng(1).integers(-3, 0, shape).astype(np.float32)
    model = node_model("MaxPool", x, outputs=2, storage_order=columns, **attributes)
    means(*model)


@pytest.mark.parametrize(("number", "columns"), [(0, 0), (3, 1), (11, 1)])
def test_indices_are_compiled(number: int, columns: int) -> None:
    shape, attributes = SHAPES[number]
    x = np.random.default_rng(1).integers(-3, 0, shape).astype(np.float32)
    model = node_model("MaxPool", x, outputs=2, storage_order=columns, **attributes)
    against_onnxruntime(*model)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64])
def test_element_types(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 127, (1, 2, 5, 5)).astype(dtype)
    model, inputs = node_model("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x[0], [(0, 0), (1, 1), (1, 1)]), (1, 3, 3)
    )
    np.testing.assert_array_equal(run(model, inputs)["y"][0], windows.max((3, 4, 5)))


def test_half_precision_sums_do_not_overflow() -> None:
    x = np.full((1, 2, 16, 16), 1000, np.float16)
    for name, attributes in [
        ("AveragePool", {"kernel_shape": [12, 12]}),
        ("GlobalAveragePool", {}),
    ]:
        model, inputs = node_model(name, x, **attributes)
        np.testing.assert_array_equal(run(model, inputs)["y"], np.float16(1000))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms(p: int) -> None:
    x = values(1, 2, 7, 6)
    against_onnxruntime(
        *node_model("LpPool", x, p=p, kernel_shape=[3, 2], strides=[2, 1], opset=18)
    )
    against_onnxruntime(*node_model("GlobalLpPool", x, p=p, opset=18))


def test_global_pools() -> None:
    for name in ("GlobalAveragePool", "GlobalMaxPool"):
        against_onnxruntime(*node_model(name, values(2, 3, 4, 5)))
        against_onnxruntime(*node_model(name, values(2, 3, 17)))


@pytest.mark.parametrize(("side", "is_known"), [(3, True), (200, False)])
def test_a_pool_of_a_constant_is_folded_only_where_that_is_little(
    side: int, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference implementation takes the elements of windows one by one: minutes for some."""
    attributes = {"kernel_shape": [side, side], "pads": [side // 2] * 4, "count_include_pad": 1}
    model, _ = node_model("AveragePool", values(1, 32, 1, 2), known=(0,), opset=19, **attributes)
    folded: list[str] = []
    computed = evaluate.run

    def counted(node: Any, *rest: Any) -> Any:
        folded.append(node.op_type)
        return computed(node, *rest)

    monkeypatch.setattr(evaluate, "run", counted)
    against_onnxruntime(model, {})
    assert folded == ["AveragePool"] * is_known
