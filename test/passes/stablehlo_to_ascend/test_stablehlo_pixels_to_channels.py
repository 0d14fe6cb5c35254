"""Filters by blocks of pixels give what they give as they are, whatever their shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import davinci
from davinci import frontends
from davinci.elements import to_attribute
from davinci.mlir import ir, make_context, operations
from davinci.passes.stablehlo_to_ascend.stablehlo_pixels_to_channels import SIZES, Filter, rewrite
from davinci.reference.interpreter import evaluate, prepare

ORDERS = (
    ("[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", (0, 1, 2, 3), (0, 1, 2, 3)),
    ("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", (0, 2, 3, 1), (2, 3, 1, 0)),
)
"""Dimension numbers, and where images and weights in the first order have their dimensions."""


def text_of(shape: tuple[int, ...], weights: np.ndarray, **given: object) -> str:
    """A convolution of f32 of images [n, c, h, w] and weights [o, c, kh, kw]."""
    numbers, of_x, of_w = ORDERS[given["order"]]
    groups, stride, dilation, pads = (
        given[key] for key in ("groups", "stride", "dilation", "pads")
    )
    high, wide = weights.shape[2:]
    rows = (shape[2] + pads[0] + pads[1] - dilation[0] * (high - 1) - 1) // stride + 1
    columns = shape[3] + pads[2] + pads[3] - dilation[1] * (wide - 1)
    result = (shape[0], weights.shape[0], rows, columns)
    kinds = [
        f"tensor<{'x'.join(str(sizes[i]) for i in order)}xf32>"
        for sizes, order in ((shape, of_x), (weights.shape, of_w), (result, of_x))
    ]
    with make_context(), ir.Location.unknown():
        laid = np.ascontiguousarray(weights.transpose(of_w))
        attr = to_attribute(laid, ir.F32Type.get())
    return f"""
func.func @main(%x: {kinds[0]}) -> {kinds[2]} {{
  %w = stablehlo.constant {attr}
  %y = stablehlo.convolution(%x, %w) dim_numbers = {numbers}, window = {{stride = [{stride}, 1],
    pad = [[{pads[0]}, {pads[1]}], [{pads[2]}, {pads[3]}]], rhs_dilate = {list(dilation)}}}
    {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
    : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}
  return %y : {kinds[2]}
}}"""


@given(data=st.data())
def test_blocks_of_pixels_give_the_same(data: st.DataObject) -> None:
    """Random filters of whole numbers, which f32 sums exactly in any order."""
    draw = data.draw
    groups = draw(st.sampled_from([1, 2, 3]))
    each = draw(st.integers(1, 2 if groups == 1 else 1))
    outputs = groups * draw(st.integers(1, 4 // groups))
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 3)))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 6)))
    # Blocks lie along columns; rows stay as they are.
    pads = tuple(draw(st.integers(*of)) for of in ((0, 3), (0, 3), (-15, 20), (-15, 20)))
    size = draw(st.sampled_from(SIZES))
    least = [max(1, d * (k - 1) + 1) for d, k in zip(dilation, kernel, strict=True)]
    shape = (
        draw(st.integers(1, 2)),
        groups * each,
        draw(st.integers(least[0], least[0] + 2)),
        draw(st.integers(least[1], least[1] + 40)) - min(0, pads[2]) - min(0, pads[3]),
    )
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights = rng.integers(-4, 5, (outputs, each, *kernel)).astype(np.float32)
    if draw(st.booleans()):
        weights[:] = weights[:1]
    order = draw(st.integers(0, 1))
    text = text_of(
        shape,
        weights,
        order=order,
        groups=groups,
        stride=draw(st.integers(1, 2)),
        dilation=dilation,
        pads=pads,
    )
    x = rng.integers(-8, 9, shape).astype(np.float32).transpose(ORDERS[order][1])
    found = []
    for changed in (False, True):
        module = frontends.load(text, make_context())
        if changed:
            (op,) = operations(module.operation, "stablehlo.convolution")
            filter_ = Filter.of(op)
            assert filter_ is not None
            rewrite(replace(filter_, pixels=size))
            kinds = [
                op.operands[1].type for op in operations(module.operation, "stablehlo.convolution")
            ]
            assert [kind.shape[-1] % size for kind in kinds] == [0]
        prepare(module)
        found.append(evaluate(module, {"x": np.ascontiguousarray(x)}, ["y"])["y"])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
def test_a_filter_of_planes_on_the_machine(precision: str) -> None:
    """One launch that reads and writes planes, against a sum of shifted images in f64."""
    image = np.random.default_rng(0).random((1, 2, 48, 160), np.float32).astype(np.float16)
    taps = np.array([1, 4, 6, 4, 1]) / 16
    weights = np.broadcast_to(np.outer(taps, taps), (2, 1, 5, 5)).astype(np.float32)
    text = text_of(
        image.shape, weights, order=0, groups=2, stride=1, dilation=(1, 1), pads=(2, 2, 2, 2)
    ).replace("f32", "f16")
    executable = davinci.compile(text, machine="ascend310", precision=precision)
    found = executable.run(image)["out0"]
    around = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (2, 2), (2, 2)))
    expected = sum(
        weights[0, 0, i, j] * around[:, :, i : i + 48, j : j + 160] for i, j in np.ndindex(5, 5)
    )
    assert executable.profile["rewrites"]["pixels-to-channels"] == 1
    assert executable.profile["ops"]["total"] == 1
    np.testing.assert_allclose(found, expected, rtol=2**-10)
