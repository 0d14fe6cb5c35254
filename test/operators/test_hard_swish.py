"""An operator that has a record and nothing else comes in as a composite and gets a kernel."""

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
