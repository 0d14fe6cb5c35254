"""An operator that has a record and nothing else comes in as a composite, gets a kernel, and is
fused like any other."""

from __future__ import annotations

import numpy as np
import pytest

from operator_cases import case
from operator_forms import hard_swish_text
from support import compile_text

X = np.linspace(-5, 5, 17 * 33, dtype=np.float32).reshape(17, 33)


def program(kind: str) -> str:
    """`@main` calls the composite, whose decomposition is what StableHLO has for it."""
    body = hard_swish_text(case("hard_swish", X), kind, kind).replace("%0", "%x")
    return f"""
    func.func @main(%x: {kind}) -> {kind} {{
      %0 = stablehlo.composite "ascend.hard_swish" %x {{decomposition = @body}} : ({kind}) -> {kind}
      return %0 : {kind}
    }}
    func.func private @body(%x: {kind}) -> {kind} {{
      {body}
      return %r : {kind}
    }}"""


@pytest.mark.parametrize(("element", "tolerance"), [("f32", 1e-6), ("f16", 5e-3), ("f64", 1e-12)])
def test_composite(element: str, tolerance: float) -> None:
    """The vector unit has no f64: there the decomposition is what runs."""
    executable = compile_text(program(f"tensor<17x33x{element}>"))
    x = X.astype({"f32": "f4", "f16": "f2", "f64": "f8"}[element])
    (found,) = executable.run(x).values()
    np.testing.assert_allclose(found, x * np.clip(x + 3.0, 0, 6) / 6, tolerance, tolerance)
    names = [launch.name for launch in executable.launches]
    assert any("hard_swish" in name for name in names) == (element != "f64")


@pytest.mark.parametrize("shape", [(1, 1), (15, 17), (64, 257)])
def test_chain(shape: tuple[int, int]) -> None:
    """With a bias before it and a product of elements behind it: one kernel, or one for each."""
    kind, row = f"tensor<{shape[0]}x{shape[1]}xf32>", f"tensor<{shape[1]}xf32>"
    body = hard_swish_text(case("hard_swish", X), kind, kind).replace("%0", "%x")
    text = f"""
    func.func @main(%x: {kind}, %bias: {row}, %y: {kind}) -> {kind} {{
      %0 = stablehlo.broadcast_in_dim %bias, dims = [1] : ({row}) -> {kind}
      %1 = stablehlo.add %x, %0 : {kind}
      %2 = stablehlo.composite "ascend.hard_swish" %1 {{decomposition = @body}} : ({kind}) -> {kind}
      %3 = stablehlo.multiply %2, %y : {kind}
      return %3 : {kind}
    }}
    func.func private @body(%x: {kind}) -> {kind} {{
      {body}
      return %r : {kind}
    }}"""
    rng = np.random.default_rng(1)
    x, bias, y = (rng.uniform(-4, 4, size).astype(np.float32) for size in (shape, shape[1:], shape))
    wanted = (x + bias) * np.clip(x + bias + 3, 0, 6) / 6 * y
    launches = {}
    for fusion in ("all", "none"):
        executable = compile_text(text, fusion=fusion)
        (found,) = executable.run(x, bias, y).values()
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)
        launches[fusion] = [launch.name for launch in executable.launches]
    assert len(launches["all"]) == 1 and "hard_swish" in launches["all"][0]
    assert len(launches["none"]) > 2
