"""Limits of the arena: what is done to stay within them, and that results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError, InputError
from davinci.passes.pipeline.memory_limits import bytes_of, expected

ROWS, WIDE = 64, 512

SKIPPED = f"""
func.func @main(%a: tensor<{ROWS}x64xf32>, %w: tensor<64x{WIDE}xf32>, %v: tensor<{WIDE}x64xf32>)
    -> tensor<{ROWS}x64xf32> {{
  %s = stablehlo.exponential %a : tensor<{ROWS}x64xf32>
  %p = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0]
      : (tensor<{ROWS}x64xf32>, tensor<64x{WIDE}xf32>) -> tensor<{ROWS}x{WIDE}xf32>
  %q = stablehlo.tanh %p : tensor<{ROWS}x{WIDE}xf32>
  %r = stablehlo.dot_general %q, %v, contracting_dims = [1] x [0]
      : (tensor<{ROWS}x{WIDE}xf32>, tensor<{WIDE}x64xf32>) -> tensor<{ROWS}x64xf32>
  %o = stablehlo.add %r, %s : tensor<{ROWS}x64xf32>
  return %o : tensor<{ROWS}x64xf32>
}}
"""
"""A value that is cheap to compute is read before and behind two large ones."""

BRANCHES = """
func.func @main(%a: tensor<64x64xf32>, %w: tensor<64x256xf32>, %v: tensor<256x64xf32>)
    -> tensor<64x64xf32> {
  %p0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %n = stablehlo.negate %a : tensor<64x64xf32>
  %p1 = stablehlo.dot_general %n, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %q0 = stablehlo.tanh %p0 : tensor<64x256xf32>
  %q1 = stablehlo.tanh %p1 : tensor<64x256xf32>
  %r0 = stablehlo.dot_general %q0, %v, contracting_dims = [1] x [0]
      : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %r1 = stablehlo.dot_general %q1, %v, contracting_dims = [1] x [0]
      : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %o = stablehlo.multiply %r0, %r1 : tensor<64x64xf32>
  return %o : tensor<64x64xf32>
}
"""
"""Two branches with large values, which need not be there together."""


def run(text: str, **options: Any) -> tuple[dict[str, Any], Any]:
    """The record's memory with the number of kernels and launches, and the result."""
    executable = davinci.compile(text, fusion="none", launches="many", **options)
    random = np.random.default_rng(3)
    arrays = [random.uniform(-1, 1, spec.shape).astype(np.float32) for spec in executable.inputs]
    (found,) = executable.run(*arrays).values()
    profile = executable.profile
    more = {"kernels": profile["ops"]["total"], "launches": profile["launches"]}
    return {**profile["memory"], **more, "time_us": profile["time_us"]}, found


def test_a_cheap_value_is_computed_again_where_it_is_needed_late() -> None:
    free, wanted = run(SKIPPED)
    large = 2 * 4 * ROWS * WIDE
    assert free["arena_bytes"] > large
    assert "remedies" not in free
    limited, found = run(SKIPPED, memory_limit=large)
    assert limited["arena_bytes"] <= large == limited["limit_bytes"]
    repeated = limited["kernels"] - free["kernels"]
    assert repeated > 0
    assert limited["time_us"] > free["time_us"]
    assert limited["remedies"][-1].startswith(f"recompute by {repeated} launch")
    assert limited["remedies"][0] == f"planned: {free['arena_bytes']:,} bytes"
    np.testing.assert_array_equal(found, wanted)


def test_kernels_that_share_a_launch_are_taken_apart_first() -> None:
    free, wanted = run(BRANCHES, cores=8)
    limited, found = run(BRANCHES, cores=8, memory_limit="75%")
    assert limited["arena_bytes"] <= 0.75 * free["arena_bytes"]
    assert limited["kernels"] == free["kernels"]
    assert limited["launches"] > free["launches"]
    assert limited["remedies"][-1].startswith("split: ")
    np.testing.assert_array_equal(found, wanted)


def test_launches_are_reordered_before_anything_that_costs_time() -> None:
    free, wanted = run(BRANCHES, plan="sequential")
    limited, found = run(BRANCHES, plan="sequential", memory_limit="84%")
    assert limited["arena_bytes"] <= 0.84 * free["arena_bytes"]
    assert limited["remedies"][-1].startswith("reorder: ")
    assert (limited["kernels"], limited["launches"]) == (free["kernels"], free["launches"])
    np.testing.assert_array_equal(found, wanted)


def test_nothing_is_done_where_the_limit_holds() -> None:
    free, _ = run(BRANCHES)
    limited, _ = run(BRANCHES, memory_limit=free["arena_bytes"])
    assert limited["remedies"] == [f"planned: {free['arena_bytes']:,} bytes"]
    assert limited["time_us"] == free["time_us"]


def test_what_fits_in_no_way_is_an_error_with_what_is_alive() -> None:
    one = 4 * ROWS * WIDE
    with pytest.raises(CompileError) as caught:
        run(SKIPPED, memory_limit=2 * one - 1)
    text = str(caught.value)
    assert f"at most {2 * one - 1:,} bytes" in text
    assert text.count(f"{one:,}  ") == 2  # the two large values, one a row
    assert f"{2 * one:,}  of these the kernel itself reads and writes" in text
    for remedy in ("planned", "reorder", "split", "recompute"):
        assert f"\n  {remedy}" in text


def test_limits_are_bytes_with_units_or_a_part() -> None:
    assert bytes_of("1.5kB", 0) == 1500
    assert bytes_of("1 MiB", 0) == 1 << 20
    assert bytes_of("12.5%", 1000) == 125
    assert expected("") == expected("7") == expected("60%") == ""
    for text in ("0", "-1", "4 parsecs", "%", "1e3", "0%", "MB", "٣"):
        assert "4MiB" in expected(text)
        with pytest.raises(InputError, match=r"bad value|memory"):
            davinci.compile(SKIPPED, memory_limit=text)
