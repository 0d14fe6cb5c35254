"""Reductions over windows on the vector unit, simulated machine code with all checks, and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convolution_support import Conv
from pool_support import Windows
from support import compile_text


def check(case: Windows, **options: Any) -> Any:
    """Exact on whole numbers; returns the executable."""
    x = case.array()
    executable = compile_text(case.text(), **options)
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, case.values(x))
    return executable


PADDED = ((1, 1), (1, 1))
CASES = [
    Windows("max", 1, 16, (8, 8), (3, 3), pads=PADDED),
    Windows("max", 2, 17, (15, 16), (3, 3), (2, 2), pads=PADDED),
    Windows("add", 1, 33, (17, 13), (2, 5), (1, 3), pads=((1, 0), (2, 2))),
    Windows("min", 3, 5, (7, 7), (3, 2), (3, 2), (2, 3), pads=((1, 2), (0, 1))),
    Windows("max", 1, 64, (56, 56), (3, 3), (2, 2), pads=((0, 1), (0, 1))),
    Windows("max", 2, 20, (9, 8), (1, 1), (2, 3)),
    Windows("add", 1, 15, (1, 61), (1, 4), (1, 4)),
    Windows("max", 1, 48, (9, 9), (5, 5), pads=((2, 2), (2, 2)), last=True),
    Windows("add", 2, 32, (5, 11), (5, 11)),
    Windows("max", 1, 4, (130, 130), (3, 3), (2, 2)),
]


@pytest.mark.parametrize(
    ("case", "cores"), [(case, (1, 32)[n % 2]) for n, case in enumerate(CASES)], ids=str
)
def test_windows(case: Windows, cores: int) -> None:
    kernels = check(case, cores=cores).profile["kernels"]
    assert sum(k["op"] == "pool" for k in kernels) == 1


@pytest.mark.parametrize("cores", [3, 5, 7, 12])
def test_tiles_that_come_out_uneven(cores: int) -> None:
    """Some cores have a tile more than others, and the last band has fewer rows of windows."""
    check(Windows("max", 1, 64, (111, 25), (3, 3), (2, 2)), cores=cores)


def test_tiles_of_a_core_overlap() -> None:
    """A core's tiles are one straight line: it takes less than loads, steps and stores in turn."""
    executable = check(Windows("max", 1, 64, (111, 111), (3, 3), (2, 2)), cores=8)
    (launch,) = [each for each in executable.launches if "pool" in each.name]
    busy = sum(launch.pipes[pipe] for pipe in ("PIPE_MTE2", "PIPE_V", "PIPE_MTE3"))
    assert launch.blocks == 8
    assert launch.cycles < 0.75 * busy / launch.blocks


OPTIONS = [{"precision": "fp16"}, {"fusion": "none"}, {"machine": "ascend310"}]


@pytest.mark.parametrize("case", [CASES[1], CASES[2], CASES[3]], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_other_ways(case: Windows, options: dict[str, Any]) -> None:
    check(case, **options)


def pairs(draw: st.DrawFn, low: int, high: int) -> tuple[int, int]:
    return draw(st.integers(low, high)), draw(st.integers(low, high))


@st.composite
def windows(draw: st.DrawFn) -> Windows:
    """Padding is less than a window, so that each has a pixel."""
    kernel, dilations = pairs(draw, 1, 4), pairs(draw, 1, 2)
    image = pairs(draw, 1, 20)
    pads = tuple(pairs(draw, 0, k - 1) for k in kernel)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    least = [e - sum(p) for e, p in zip(extent, pads, strict=True)]
    return Windows(
        draw(st.sampled_from(["add", "max", "min"])),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 4, 15, 16, 17, 33, 64])),
        (max(image[0], least[0]), max(image[1], least[1])),
        kernel,
        pairs(draw, 1, 3),
        dilations,
        pads,
        draw(st.booleans()),
    )


@settings(max_examples=6)
@given(case=windows(), cores=st.sampled_from([1, 2, 32]))
def test_random_windows(case: Windows, cores: int) -> None:
    check(case, cores=cores)


@pytest.mark.parametrize("channels", [20, 48])
@pytest.mark.parametrize("kind", ["add", "max"])
def test_between_convolutions(channels: int, kind: str) -> None:
    """A bias, another result and a relu behind the windows share their kernel; what pads them is
    zero for the product that follows."""
    conv = Conv(2, channels, (9, 7), channels, (3, 3), pads=PADDED)
    case = Windows(kind, 2, channels, (9, 7), (3, 3), pads=PADDED)
    x, w = conv.arrays()
    w = np.sign(w) * (np.random.default_rng(2).random(w.shape) < 0.02)
    bias = np.random.default_rng(1).integers(1, 9, channels).astype(np.float32)
    y, weights = (f"tensor<{'x'.join(map(str, a.shape))}xf32>" for a in (x, w))
    text = f"""
    func.func @main(%x: {y}, %w: {weights}, %b: tensor<{channels}xf32>) -> {y} {{
      {case.start()}
      %zero = stablehlo.constant dense<0.0> : {y}
      %row = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{channels}xf32>) -> {y}
      %0 = {conv.call("%x", "%w")}
      %1 = {case.call("%0")}
      %2 = stablehlo.add %1, %row : {y}
      %3 = stablehlo.add %2, %0 : {y}
      %4 = stablehlo.maximum %3, %zero : {y}
      %5 = {conv.call("%4", "%w")}
      return %5 : {y}
    }}"""
    executable = compile_text(text)
    (found,) = executable.run({"arg0": x, "arg1": w.astype(np.float32), "arg2": bias}).values()
    first = conv.values(x, w)
    second = case.values(first.astype(np.float32)) + bias[:, None, None] + first
    np.testing.assert_array_equal(found, conv.values(np.maximum(second, 0), w))
    launched = [one["kernel"] for one in executable.profile["launches_list"]]
    places = [i for i, name in enumerate(launched) if "conv" in name or "pool" in name]
    assert len(places) == 3 and places[2] - places[0] == 2, launched


POOL_OF_BYTES = """
!x = tensor<{n}x{pixels}x{c}xf16>
!nz = tensor<{n}x{pixels}x{c}xf16, #ascend.layout<"nz">>
!y = tensor<{n}x{windows}x{c}xf16, #ascend.layout<"nz">>
!bytes = tensor<{n}x{windows}x{c}xi8, #ascend.layout<"nz">>
func.func @main(%x: !x) -> tensor<{n}x{windows}x{c}xi8> {{
  %0 = "ascend.relayout"(%x) : (!x) -> !nz
  %1 = "ascend.pool"(%0) {{dilations = array<i64: 1, 1>, image = array<i64: {h}, {w}>,
    kernel = array<i64: 3, 3>, kind = "max", pads = array<i64: 1, 1, 1, 1>,
    strides = array<i64: 2, 2>}} : (!nz) -> !y
  %2 = "ascend.quantize"(%1) {{zero = 3 : i64}} : (!y) -> !bytes
  %3 = "ascend.relayout"(%2) : (!bytes) -> tensor<{n}x{windows}x{c}xi8>
  return %3 : tensor<{n}x{windows}x{c}xi8>
}}
"""


@pytest.mark.parametrize(("n", "h", "w", "c"), [(1, 9, 7, 32), (3, 16, 21, 64), (2, 13, 13, 96)])
def test_windows_that_become_bytes(n: int, h: int, w: int, c: int) -> None:
    """Two planes of f16 become one of bytes in the kernel of the windows."""
    high, wide = (h + 1) // 2, (w + 1) // 2
    text = POOL_OF_BYTES.format(n=n, h=h, w=w, c=c, pixels=h * w, windows=high * wide)
    x = np.random.default_rng(0).integers(-200, 200, (n, h, w, c)).astype(np.float16)
    padded = np.pad(x, ((0, 0), (1, 2), (1, 2), (0, 0)), constant_values=-np.inf)
    taps = [padded[:, i : i + h : 2, j : j + w : 2] for i in range(3) for j in range(3)]
    wanted = np.clip(np.max(taps, axis=0) + 3, -128, 127).astype(np.int8)
    executable = compile_text(text, machine="ascend310")
    (found,) = executable.run({"arg0": x.reshape(n, h * w, c)}).values()
    np.testing.assert_array_equal(found, wanted.reshape(n, high * wide, c))
    (label,) = (k["label"] for k in executable.profile["kernels"] if "pool" in k["label"])
    assert "quantize" in label
