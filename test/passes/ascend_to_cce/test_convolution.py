"""Convolutions on the cube, simulated machine code with all checks, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convolution_support import Conv
from davinci.schedule.products import choice
from davinci.schedule.products.candidates import Candidates
from davinci.schedule.products.product import Share
from pairs import all_pairs
from support import compile_text


def check(case: Conv, **options: Any) -> Any:
    """Exact on whole numbers; returns the executable."""
    x, w = case.arrays()
    executable = compile_text(case.text(), **options)
    (found,) = executable.run({"arg0": x, "arg1": w}).values()
    np.testing.assert_array_equal(found, case.values(x, w))
    return executable


PADDED = ((1, 1), (1, 1))
CASES = [
    Conv(1, 16, (8, 8), 16, (3, 3), pads=PADDED),
    Conv(2, 3, (9, 11), 5, (3, 3), (2, 2), pads=((1, 0), (0, 1))),
    Conv(3, 17, (7, 5), 20, (1, 1)),
    Conv(2, 17, (7, 5), 33, (1, 1), (2, 3)),
    Conv(2, 1, (7, 6), 1, (5, 1), pads=((2, 2), (0, 0))),
    Conv(3, 20, (10, 9), 17, (3, 3), (1, 3), (2, 2), pads=((2, 1), (0, 2))),
    Conv(1, 3, (30, 30), 64, (7, 7), (2, 2), pads=((3, 3), (3, 3))),
    Conv(1, 40, (40, 44), 70, (3, 3), pads=PADDED),
    Conv(1, 300, (5, 5), 16, (3, 3), pads=PADDED),
    Conv(1, 16, (3, 70), 16, (3, 5), pads=((1, 1), (4, 0))),
    Conv(2, 17, (5, 6), 18, (3, 2), inside=(2, 3), pads=((2, 1), (-1, 2))),
    Conv(1, 4, (9, 9), 8, (2, 2), pads=((-1, -2), (0, -1))),
    Conv(1, 32, (9, 9), 32, (3, 3), pads=PADDED, groups=32),
    Conv(2, 64, (9, 9), 32, (3, 3), pads=PADDED, groups=2),
    Conv(3, 64, (5, 5), 64, (1, 1), groups=4),
    Conv(2, 34, (5, 4), 17, (3, 3), groups=17),
    Conv(2, 24, (5, 4), 48, (1, 3), groups=12),
    Conv(2, 40, (5, 7), 40, (3, 3), pads=PADDED, groups=40),
    Conv(1, 56, (9, 6), 56, (3, 3), (2, 2), pads=PADDED, groups=7),
    Conv(3, 72, (4, 4), 72, (1, 1), groups=9),
    Conv(1, 120, (5, 5), 120, (3, 1), groups=5),
    Conv(2, 40, (3, 6), 76, (3, 3), pads=PADDED, groups=4),
]


@pytest.mark.parametrize(
    ("case", "cores"), [(case, (1, 32)[n % 2]) for n, case in enumerate(CASES)], ids=str
)
def test_convolution(case: Conv, cores: int) -> None:
    executable = check(case, cores=cores)
    kernels = [k for k in executable.profile["kernels"] if "conv" in k["op"]]
    assert {k["unit"] for k in kernels} == {"cube"}


@pytest.mark.parametrize(
    ("case", "end", "machine"),
    all_pairs(
        [
            Conv(2, 40, (5, 7), 40, (3, 3), pads=PADDED, groups=40),
            Conv(1, 104, (12, 12), 104, (1, 1), groups=13),
            Conv(1, 88, (8, 8), 88, (3, 3), (2, 2), pads=PADDED, groups=11),
            Conv(1, 28, (9, 9), 56, (3, 3), pads=PADDED, groups=7),
        ],
        ["maximum", "add"],
        ["ascend910", "ascend910b"],
    ),
    ids=str,
)
def test_groups_that_end_inside_a_block(case: Conv, end: str, machine: str) -> None:
    """Between convolutions, with a bias, by which the padding of channels stays zero, and with what
    makes it other than that."""
    x, w = case.arrays()
    inner = np.eye(case.o, dtype=np.float32)[:, :, None, None]
    bias = np.random.default_rng(1).integers(1, 9, case.o).astype(np.float32)
    y = f"tensor<{'x'.join(map(str, case.result))}xf32>"
    kinds = [f"tensor<{'x'.join(map(str, a.shape))}xf32>" for a in (x, w)]
    eye = Conv(case.n, case.o, (case.result[2], case.result[3]), case.o, (1, 1))
    rows = str(inner.tolist())
    text = f"""
    func.func @main(%x: {kinds[0]}, %w: {kinds[1]}) -> {y} {{
      %b = stablehlo.constant dense<{bias.tolist()}> : tensor<{case.o}xf32>
      %i = stablehlo.constant dense<{rows}> : tensor<{case.o}x{case.o}x1x1xf32>
      %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{case.o}xf32>) -> {y}
      %three = stablehlo.constant dense<3.0> : {y}
      %0 = {case.call("%x", "%w")}
      %1 = stablehlo.add %0, %c : {y}
      %2 = stablehlo.{end} %1, %three : {y}
      %3 = {eye.call("%2", "%i")}
      return %3 : {y}
    }}"""
    executable = compile_text(text, machine=machine)
    (found,) = executable.run({"arg0": x, "arg1": w}).values()
    function = {"maximum": np.maximum, "add": np.add}[end]
    wanted = function(case.values(x, w) + bias[:, None, None], 3)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("case", [CASES[1], CASES[5], CASES[13]], ids=str)
def test_on_the_310(case: Conv) -> None:
    check(case, machine="ascend310")


@pytest.mark.parametrize("case", [CASES[5], Conv(3, 20, (7, 5), 40, (1, 1))], ids=str)
def test_a_share_is_columns_of_several_images(case: Conv, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the last tile on, as what passes the L2 is."""
    monkeypatch.setattr(Candidates, "shares", lambda ways: [Share(2, ways.whole.m, 1)])
    monkeypatch.setattr(choice, "goes_backwards", lambda product, machine: True)
    executable = check(case, cores=2)
    schedules = [k["schedule"] for k in executable.profile["kernels"]]
    assert any("share 2x" in s and s.endswith("backwards") for s in schedules)


OPTIONS = [{"precision": "fp32"}, {"precision": "fp16"}, {"fusion": "none"}]


@pytest.mark.parametrize(
    ("case", "options"),
    [(CASES[number], options) for options in OPTIONS for number in (1, 13)]
    + [(CASES[2], OPTIONS[0])],
    ids=str,
)
def test_other_ways(case: Conv, options: dict[str, Any]) -> None:
    check(case, **options)


def pairs(draw: st.DrawFn, low: int, high: int) -> tuple[int, int]:
    return draw(st.integers(low, high)), draw(st.integers(low, high))


@st.composite
def convolutions(draw: st.DrawFn) -> Conv:
    kernel, dilations = pairs(draw, 1, 4), pairs(draw, 1, 2)
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    image, pads = pairs(draw, 1, 20), (pairs(draw, 0, 3), pairs(draw, 0, 3))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    least = [e - sum(p) for e, p in zip(extent, pads, strict=True)]
    return Conv(
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 3, 15, 16, 17, 33])) * groups,
        (max(image[0], least[0]), max(image[1], least[1])),
        draw(st.sampled_from([1, 4, 16, 17, 40])) * groups,
        kernel,
        pairs(draw, 1, 3),
        dilations,
        pads,
        groups=groups,
    )


@settings(max_examples=4)
@given(case=convolutions(), cores=st.sampled_from([1, 2, 32]))
def test_random_convolutions(case: Conv, cores: int) -> None:
    check(case, cores=cores)


@pytest.mark.parametrize(
    "case",
    [
        Conv(2, 20, (9, 8), 17, (3, 3), pads=PADDED),
        Conv(1, 17, (12, 12), 16, (1, 1)),
        Conv(2, 32, (7, 7), 64, (3, 3), pads=PADDED, groups=2),
    ],
    ids=str,
)
def test_bias_residual_and_relu(case: Conv) -> None:
    x, w = case.arrays()
    rng = np.random.default_rng(1)
    residual = rng.integers(-9, 9, case.result).astype(np.float32)
    bias = rng.integers(-9, 9, case.o).astype(np.float32)
    kinds = [f"tensor<{'x'.join(map(str, a.shape))}xf32>" for a in (x, w, residual, bias)]
    y = kinds[2]
    text = f"""
    func.func @main(%x: {kinds[0]}, %w: {kinds[1]}, %r: {y}, %b: {kinds[3]}) -> {y} {{
      %y = {case.call("%x", "%w")}
      %c = stablehlo.broadcast_in_dim %b, dims = [1] : ({kinds[3]}) -> {y}
      %0 = stablehlo.add %y, %c : {y}
      %1 = stablehlo.add %0, %r : {y}
      %zero = stablehlo.constant dense<0.0> : {y}
      %2 = stablehlo.maximum %1, %zero : {y}
      return %2 : {y}
    }}"""
    executable = compile_text(text)
    given_arrays = {"arg0": x, "arg1": w, "arg2": residual, "arg3": bias}
    (found,) = executable.run(given_arrays).values()
    wanted = case.values(x, w) + bias[:, None, None] + residual
    np.testing.assert_array_equal(found, np.maximum(wanted, 0))


def test_between_convolutions_nothing_is_rearranged() -> None:
    """Three in a row, with biases, relu and a residual: channels come first at the ends only."""
    case = Conv(2, 32, (7, 7), 32, (3, 3), pads=PADDED)
    x, w = case.arrays()
    y = f"tensor<{'x'.join(map(str, case.result))}xf32>"
    text = f"""
    func.func @main(%x: {y}, %w: tensor<32x32x3x3xf32>, %b: tensor<32xf32>) -> {y} {{
      %zero = stablehlo.constant dense<0.0> : {y}
      %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> {y}
      %0 = {case.call("%x", "%w")}
      %1 = stablehlo.add %0, %c : {y}
      %2 = stablehlo.maximum %1, %zero : {y}
      %3 = {case.call("%2", "%w")}
      %4 = stablehlo.add %3, %2 : {y}
      %5 = stablehlo.maximum %4, %zero : {y}
      %6 = {case.call("%5", "%w")}
      return %6 : {y}
    }}"""
    bias = np.random.default_rng(1).integers(-9, 9, 32).astype(np.float32)
    w = np.sign(w) * (np.random.default_rng(2).random(w.shape) < 0.02)
    executable = compile_text(text)
    (found,) = executable.run({"arg0": x, "arg1": w.astype(np.float32), "arg2": bias}).values()
    first = np.maximum(case.values(x, w) + bias[:, None, None], 0)
    second = np.maximum(case.values(first, w) + first, 0)
    np.testing.assert_array_equal(found, case.values(second, w))
    launched = [one["kernel"] for one in executable.profile["launches_list"]]
    places = [i for i, name in enumerate(launched) if "conv" in name]
    assert len(places) == 3 and places[2] - places[0] == 2, launched


@pytest.mark.parametrize(
    ("case", "options"),
    [
        (Conv(2, 32, (12, 11), 32, (1, 1)), {"cores": 1}),
        (Conv(1, 20, (9, 8), 20, (3, 3), pads=PADDED), {"cores": 1}),
        (Conv(1, 160, (13, 14), 160, (1, 1)), {"cores": 2}),
        (Conv(1, 64, (30, 30), 64, (1, 1)), {"machine": "ascend310"}),
    ],
    ids=str,
)
def test_the_cube_adds_residuals(case: Conv, options: dict[str, Any]) -> None:
    """What a product reads as f16 is added to sums in L0C: no vector instruction adds, and sums are
    rounded and rectified on their way out."""
    x, w = case.arrays()
    w = (np.sign(w) * (np.random.default_rng(2).random(w.shape) < 0.05)).astype(np.float32)
    y = f"tensor<{'x'.join(map(str, case.result))}xf32>"
    kind = f"tensor<{'x'.join(map(str, w.shape))}xf32>"
    text = f"""
    func.func @main(%x: {y}, %w: {kind}, %b: tensor<{case.o}xf32>) -> {y} {{
      %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{case.o}xf32>) -> {y}
      %zero = stablehlo.constant dense<0.0> : {y}
      %0 = {case.call("%x", "%w")}
      %1 = stablehlo.maximum %0, %zero : {y}
      %2 = {case.call("%1", "%w")}
      %3 = stablehlo.add %2, %c : {y}
      %4 = stablehlo.add %3, %1 : {y}
      %5 = stablehlo.maximum %4, %zero : {y}
      %6 = {case.call("%5", "%w")}
      return %6 : {y}
    }}"""
    bias = np.random.default_rng(1).integers(-9, 9, case.o).astype(np.float32)
    executable = compile_text(text, **options)
    (found,) = executable.run({"arg0": x, "arg1": w, "arg2": bias}).values()
    first = np.maximum(case.values(x, w), 0)
    second = np.maximum(case.values(first, w) + bias[:, None, None] + first, 0)
    np.testing.assert_array_equal(found, case.values(second, w))
    (launch,) = [one for one in executable.launches if "conv_add_relu" in one.name]
    assert not {"vadd.f32", "vrelu.f16"} & set(launch.instructions)
    assert "copy_matrix_cc_to_ubuf.f322f16relu" in launch.instructions
