"""Chains that are computed in parts where a memory limit asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci import zoo
from davinci.errors import CompileError
from davinci.passes.ascend.memory_limit import CUT


def weights(*shape: int) -> str:
    """A constant of random numbers."""
    array = np.random.default_rng(sum(shape)).uniform(-0.2, 0.2, shape).astype(np.float32)
    kind = "x".join(map(str, shape)) + "xf32"
    return f'stablehlo.constant dense<"0x{array.tobytes().hex().upper()}"> : tensor<{kind}>'


def wide_layer(rows: int) -> str:
    """Two products with a wide value between them, as in a transformer's layer."""
    return f"""
func.func @main(%a: tensor<{rows}x64xf32>) -> tensor<{rows}x64xf32> {{
  %w = {weights(64, 256)}
  %v = {weights(256, 64)}
  %s = stablehlo.exponential %a : tensor<{rows}x64xf32>
  %p = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0]
      : (tensor<{rows}x64xf32>, tensor<64x256xf32>) -> tensor<{rows}x256xf32>
  %q = stablehlo.tanh %p : tensor<{rows}x256xf32>
  %r = stablehlo.dot_general %q, %v, contracting_dims = [1] x [0]
      : (tensor<{rows}x256xf32>, tensor<256x64xf32>) -> tensor<{rows}x64xf32>
  %t = stablehlo.add %r, %s : tensor<{rows}x64xf32>
  %o = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0]
      : (tensor<{rows}x64xf32>, tensor<64x256xf32>) -> tensor<{rows}x256xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%o init: %z) applies stablehlo.maximum across dimensions = [1]
      : (tensor<{rows}x256xf32>, tensor<f32>) -> tensor<{rows}xf32>
  %b = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<{rows}xf32>) -> tensor<{rows}x64xf32>
  return %b : tensor<{rows}x64xf32>
}}
"""


def images(size: int, stride: int) -> str:
    """Two convolutions of 3x3 windows; the rows of an image that a part needs have a halo."""
    small = (size - 1) // stride + 1
    return f"""
func.func @main(%a: tensor<1x16x{size}x{size}xf32>) -> tensor<1x16x{small}x{small}xf32> {{
  %w = {weights(64, 16, 3, 3)}
  %v = {weights(16, 64, 3, 3)}
  %p = stablehlo.convolution(%a, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {{pad = [[1, 1], [1, 1]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<1x16x{size}x{size}xf32>, tensor<64x16x3x3xf32>) -> tensor<1x64x{size}x{size}xf32>
  %z = stablehlo.constant dense<0.0> : tensor<1x64x{size}x{size}xf32>
  %q = stablehlo.maximum %p, %z : tensor<1x64x{size}x{size}xf32>
  %r = stablehlo.convolution(%q, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {{stride = [{stride}, {stride}], pad = [[1, 1], [1, 1]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<1x64x{size}x{size}xf32>, tensor<16x64x3x3xf32>) -> tensor<1x16x{small}x{small}xf32>
  return %r : tensor<1x16x{small}x{small}xf32>
}}
"""


HEADS = f"""
func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {{
  %wq = {weights(128, 128)}
  %wk = {weights(128, 128)}
  %wv = {weights(128, 128)}
  %wo = {weights(128, 128)}
  %q = stablehlo.dot_general %x, %wq, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %k = stablehlo.dot_general %x, %wk, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %v = stablehlo.dot_general %x, %wv, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %q4 = stablehlo.reshape %q : (tensor<64x128xf32>) -> tensor<64x4x32xf32>
  %k4 = stablehlo.reshape %k : (tensor<64x128xf32>) -> tensor<64x4x32xf32>
  %v4 = stablehlo.reshape %v : (tensor<64x128xf32>) -> tensor<64x4x32xf32>
  %s = stablehlo.dot_general %q4, %k4, batching_dims = [1] x [1], contracting_dims = [2] x [2]
      : (tensor<64x4x32xf32>, tensor<64x4x32xf32>) -> tensor<4x64x64xf32>
  %e = stablehlo.tanh %s : tensor<4x64x64xf32>
  %c = stablehlo.dot_general %e, %v4, batching_dims = [0] x [1], contracting_dims = [2] x [0]
      : (tensor<4x64x64xf32>, tensor<64x4x32xf32>) -> tensor<4x64x32xf32>
  %t = stablehlo.transpose %c, dims = [1, 0, 2] : (tensor<4x64x32xf32>) -> tensor<64x4x32xf32>
  %r = stablehlo.reshape %t : (tensor<64x4x32xf32>) -> tensor<64x128xf32>
  %o = stablehlo.dot_general %r, %wo, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  return %o : tensor<64x128xf32>
}}
"""


def run(text: str, **options: Any) -> tuple[dict[str, Any], Any]:
    """The record's memory and time, and the result."""
    executable = davinci.compile(text, **options)
    random = np.random.default_rng(3)
    arrays = [random.uniform(-0.2, 0.2, s.shape).astype(np.float32) for s in executable.inputs]
    (found,) = executable.run(*arrays).values()
    return {**executable.profile["memory"], "time_us": executable.profile["time_us"]}, found


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (wide_layer(64), "60%"),
        (wide_layer(77), "70%"),
        (images(16, 1), "80%"),
        (images(15, 2), "70%"),
        (HEADS, "75%"),
    ],
    ids=["rows", "77 rows", "images", "images, stride 2", "heads"],
)
def test_chains_are_cut_where_nothing_else_helps(text: str, limit: str) -> None:
    free, wanted = run(text)
    limited, found = run(text, memory_limit=limit)
    assert limited["arena_bytes"] <= limited["limit_bytes"] < free["arena_bytes"]
    assert limited["remedies"][-1].startswith(f"{CUT} of ")
    assert "cycles more" in limited["remedies"][-1]
    assert limited["time_us"] > free["time_us"]
    largest = float(np.abs(wanted).max())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3 * largest)


def test_a_transformer_at_60_percent_of_its_arena() -> None:
    model = zoo.find("bert,layers=1,hidden=256,heads=4,seq=128").proto
    executable = davinci.compile(model, memory_limit="60%", timing_only=True)
    executable.run()
    memory = executable.profile["memory"]
    assert memory["arena_bytes"] <= memory["limit_bytes"]
    assert memory["remedies"][-1].startswith(f"{CUT} of ")


def test_chains_stay_whole_where_the_limit_holds() -> None:
    free, wanted = run(wide_layer(64))
    limited, found = run(wide_layer(64), memory_limit=free["arena_bytes"])
    assert limited["remedies"] == [f"planned: {free['arena_bytes']:,} bytes"]
    np.testing.assert_array_equal(found, wanted)


def test_what_cuts_gave_is_said_where_they_are_not_enough() -> None:
    with pytest.raises(CompileError) as caught:
        run(images(16, 1), memory_limit="50%")
    text = str(caught.value)
    assert "\n  planned: " in text
    assert f"\n  {CUT} of " in text
