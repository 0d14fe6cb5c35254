"""Operators that reshape, cut, pad and rearrange, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError, InputError
from onnx_support import against_onnxruntime, against_reference, node_model, run

FAR = 2**31


def values(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


SLICES: list[tuple[Any, ...]] = [
    ([1, 0], [3, 4], [0, 2], None),
    ([-1], [-FAR], [1], [-1]),
    ([3, 10], [0, -100], [1, 2], [-2, -3]),
    ([1], [FAR], [-1], [2]),
    ([3], [1], [0], None),
    ([-100], [100], None, None),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(starts: Any, ends: Any, axes: Any, steps: Any) -> None:
    parameters = [None if p is None else np.array(p, np.int64) for p in (starts, ends, axes, steps)]
    known = [i + 1 for i, p in enumerate(parameters) if p is not None]
    against_onnxruntime(*node_model("Slice", values(3, 5, 6), *parameters, known=known))


def test_slice_by_attributes() -> None:
    attributes = {"starts": [1, -3], "ends": [FAR, -1], "axes": [1, 2]}
    against_onnxruntime(*node_model("Slice", values(3, 5, 6), opset=9, **attributes))


def test_slice_at_computed_places() -> None:
    model, inputs = node_model("Slice", values(3, 5), ints(1), ints(2))
    with pytest.raises(CompileError, match="computed while the network runs"):
        run(model, inputs)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    "pads", [[0, 1, 2, 0, 2, 3], [0, 0, 4, 0, 3, 0], [0, 2, -2, 0, -1, 1], [0, 0, -1, -1, 0, 0]]
)
def test_pad(mode: str, pads: list[int]) -> None:
    model = node_model("Pad", values(2, 4, 5), np.array(pads), known=[1], opset=19, mode=mode)
    against_onnxruntime(*model)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.uint8, np.bool_])
def test_pad_of_types(dtype: Any) -> None:
    x, value = np.arange(6).reshape(2, 3).astype(dtype), np.array(1, dtype)
    operands = (x, ints(1, 2), value, ints(-1))
    against_reference(*node_model("Pad", *operands, known=[1, 2, 3], opset=19))
    against_reference(*node_model("Pad", x, ints(1, 0, 2, 0), known=[1], opset=19))


def test_pad_by_attributes_and_with_computed_value() -> None:
    attributes = {"pads": [0, 1, 2, 0], "value": 3.5}
    against_onnxruntime(*node_model("Pad", values(3, 4), opset=2, **attributes))
    operands = (values(3, 4), ints(0, 1, 2, 0), np.array(2.5, np.float32))
    against_onnxruntime(*node_model("Pad", *operands, known=[1], opset=13))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize(
    ("shape", "block"),
    [
        ((2, 8, 3, 4), 2),
        ((1, 4, 3, 4), 2),
        ((1, 9, 2, 2), 3),
        ((1, 3, 2, 4), 1),
        ((2, 72, 3, 6), 2),
    ],
)
def test_depth_to_space(shape: tuple[int, ...], block: int, mode: str) -> None:
    against_onnxruntime(*node_model("DepthToSpace", values(*shape), blocksize=block, mode=mode))


@pytest.mark.parametrize(
    ("shape", "block"),
    [((2, 3, 4, 6), 2), ((1, 1, 3, 3), 3), ((2, 18, 6, 8), 2), ((1, 2, 2, 2), 1)],
)
def test_space_to_depth(shape: tuple[int, ...], block: int) -> None:
    against_onnxruntime(*node_model("SpaceToDepth", values(*shape), blocksize=block))


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_reversed_sequences(batch: int, time: int) -> None:
    lengths = ints(1, 4, 2, 3)
    operands = (values(4, 4, 3), lengths)
    against_onnxruntime(*node_model("ReverseSequence", *operands, batch_axis=batch, time_axis=time))


def test_sequences_are_reversed_without_the_scalar_unit() -> None:
    """Lengths that are computed: of reversed rows each is one transfer at a computed address."""
    x, lengths = values(16, 40), ints(40, 1, *range(2, 16))
    model, inputs = node_model("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)
    executable = davinci.compile(model)
    (found,) = executable.run(inputs).values()
    wanted = x.copy()
    for row, length in zip(wanted, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    np.testing.assert_array_equal(found, wanted)
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


SHAPINGS: list[tuple[str, tuple[int, ...], Any, dict[str, Any]]] = [
    ("Reshape", (2, 3, 4), ints(0, -1), {}),
    ("Reshape", (2, 0, 4), ints(0, -1, 0), {}),
    ("Reshape", (2, 0), ints(0, 5), {"allowzero": 1}),
    ("Reshape", (1,), ints(), {}),
    ("Flatten", (2, 3, 4), None, {"axis": -1}),
    ("Flatten", (2, 3, 4), None, {"axis": 3}),
    ("Flatten", (2, 3, 4), None, {"axis": 0}),
    ("Flatten", (2, 0, 4), None, {}),
    ("Squeeze", (1, 3, 1), None, {}),
    ("Squeeze", (1, 3, 1), ints(-1), {}),
    ("Unsqueeze", (3, 2), ints(-1, 0), {}),
    ("Expand", (3, 1), ints(2, 1, 4), {}),
    ("Expand", (), ints(2, 3), {}),
    ("Tile", (2, 3), ints(2, 3), {}),
    ("Tile", (2, 3), ints(1, 0), {}),
    ("Transpose", (2, 3, 4), None, {}),
    ("Transpose", (2, 3, 4), None, {"perm": [2, 0, 1]}),
    ("Shape", (2, 3, 4), None, {"start": -2}),
    ("Shape", (2, 3, 4), None, {"start": 1, "end": -5}),
    ("Size", (2, 3, 4), None, {}),
    ("CenterCropPad", (6, 7, 3), ints(8, 4, 3), {}),
    ("CenterCropPad", (5, 8), ints(3, 3), {}),
    ("CenterCropPad", (5, 8), ints(11), {"axes": [-1]}),
]


@pytest.mark.parametrize(("name", "shape", "parameter", "attributes"), SHAPINGS)
def test_shapes(
    name: str, shape: tuple[int, ...], parameter: Any, attributes: dict[str, Any]
) -> None:
    operands = [values(*shape), *([] if parameter is None else [parameter])]
    known = [1] if parameter is not None else []
    against_reference(*node_model(name, *operands, known=known, **attributes))


@pytest.mark.parametrize(
    ("name", "attributes", "opset"),
    [
        ("Squeeze", {"axes": [0]}, 11),
        ("Unsqueeze", {"axes": [0, 2]}, 11),
        ("Split", {"split": [1, 3], "axis": 1}, 11),
        ("Split", {"axis": 1}, 13),
    ],
)
def test_old_operator_sets(name: str, attributes: dict[str, Any], opset: int) -> None:
    outputs = 2 if name == "Split" else 1
    model = node_model(name, values(1, 4), opset=opset, outputs=outputs, **attributes)
    against_onnxruntime(*model)


@pytest.mark.parametrize(("sizes", "parts"), [([2, 0, 5], None), (None, 3), (None, 4), ([7], None)])
def test_split(sizes: list[int] | None, parts: int | None) -> None:
    operands = [values(2, 7), *([] if sizes is None else [np.array(sizes)])]
    attributes = {} if parts is None else {"num_outputs": parts}
    known = [] if sizes is None else [1]
    outputs = parts or len(sizes or [])
    against_onnxruntime(
        *node_model("Split", *operands, known=known, outputs=outputs, axis=1, **attributes)
    )


def test_concat() -> None:
    against_onnxruntime(*node_model("Concat", values(2, 3), values(2, 0), values(2, 4), axis=-1))
    with pytest.raises(InputError, match="differ outside of axis"):
        run(*node_model("Concat", values(2, 3), values(3, 3), axis=1))


@pytest.mark.parametrize("axis", [None, 1])
def test_compress(axis: int | None) -> None:
    chosen = np.array([0, 1, 1, 0, 1], bool)
    attributes = {} if axis is None else {"axis": axis}
    model, inputs = node_model("Compress", values(2, 5, 3), chosen, known=[1], **attributes)
    against_onnxruntime(model, inputs)


@pytest.mark.parametrize("name", ["NonZero", "Unique"])
def test_shapes_that_depend_on_data(name: str) -> None:
    with pytest.raises(CompileError, match=r"depends on the data|computed while"):
        run(*node_model(name, values(4)))


@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 0, 1, 2]}, {"strides": [2, 1]}, {"dilations": [1, 2]}]
)
def test_columns_to_images(attributes: dict[str, Any]) -> None:
    image, block = (5, 6), (2, 3)
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    counts = [
        (n + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
        for i, n in enumerate(image)
    ]
    operands = (values(2, 3 * 6, counts[0] * counts[1]), ints(*image), ints(*block))
    against_reference(*node_model("Col2Im", *operands, known=[1, 2], **attributes))
