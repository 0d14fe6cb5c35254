"""Numbers rounded to fewer bits, against StableHLO's interpreter, on the vector unit."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.mlir import ir, make_context
from davinci.reference.interpreter import evaluate

ODD = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65519.9, 65520.0, 6.1e-5, 1e-40, 3.4028235e38],
    np.float32,
)


@pytest.mark.parametrize("form", ["e5m10", "e8m7", "e4m3", "e8m23", "e11m30", "e2m1", "e5m0"])
def test_against_the_interpreter(form: str) -> None:
    rng = np.random.default_rng(0)
    any_bits = rng.integers(0, 1 << 32, 2000, np.uint64).astype(np.uint32).view(np.float32)
    near_one = (rng.integers(-99, 99, 2000) / 64 * (1 + rng.integers(0, 9, 2000) / 2048)).astype(
        np.float32
    )
    x = np.concatenate([ODD, any_bits, near_one])
    kind = f"tensor<{x.size}xf32>"
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
      %r = stablehlo.reduce_precision %x, format = {form} : {kind}
      return %r : {kind} }}"""
    executable = davinci.compile(text)
    (found,) = executable.run(x).values()
    with make_context():
        module = ir.Module.parse(text)
    (wanted,) = evaluate(module, {"x": x}, ["r"]).values()
    nan = np.isnan(found) & np.isnan(wanted)
    assert np.array_equal(found.view(np.int32)[~nan], wanted.view(np.int32)[~nan])
    assert all(kernel["unit"] == "vector" for kernel in executable.profile["kernels"])
