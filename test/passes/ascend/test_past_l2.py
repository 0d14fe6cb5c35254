"""Which arrays launches read past the L2, and that they are read right."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import davinci

ROWS = 64
BYTES = ROWS * 128 * 4
"""Bytes of one f32 array of the network."""

NETWORK = f"""
func.func @main(%x: tensor<{ROWS}x128xf32>, %y: tensor<{ROWS}x128xf32>, %r: tensor<128xf32>)
    -> tensor<{ROWS}x128xf32> {{
  %0 = stablehlo.add %x, %y : tensor<{ROWS}x128xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<{ROWS}x128xf32>) -> tensor<128x{ROWS}xf32>
  %2 = stablehlo.reshape %1 : (tensor<128x{ROWS}xf32>) -> tensor<{ROWS}x128xf32>
  %3 = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<128xf32>) -> tensor<{ROWS}x128xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<{ROWS}x128xf32>
  return %4 : tensor<{ROWS}x128xf32>
}}
"""
"""An addition of arguments, a transpose, and a product of what that has just made."""


def machine_with(l2_bytes: int, folder: Path) -> str:
    """The file of a 910B with another L2."""
    text = (resources.files("davinci.machine") / "files" / "ascend910b.toml").read_text()
    size = "bytes = 201326592 "
    assert size in text
    path = folder / "small.toml"
    path.write_text(text.replace(size, f"bytes = {l2_bytes} "))
    return str(path)


def calls(text: str) -> list[str]:
    return [line for line in text.splitlines() if "call @" in line]


@pytest.mark.parametrize(
    ("arrays", "past"),
    [(8, [[], [], []]), (3, [[0, 1], [], []])],
)
def test_what_is_read_past_the_l2(arrays: int, past: list[list[int]], tmp_path: Path) -> None:
    """Arguments, which an L2 of few arrays has lost since a run before; not what is just made, nor
    what a transpose reads; nothing where all fits."""
    executable = davinci.compile(NETWORK, machine=machine_with(arrays * BYTES, tmp_path))
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((ROWS, 128)).astype(np.float32) for _ in range(2))
    r = random.standard_normal(128).astype(np.float32)
    for _ in range(2):
        (found,) = executable.run(x, y, r).values()
        np.testing.assert_allclose(found, (x + y).T.reshape(ROWS, 128) * r, rtol=1e-6)
    bypass = 1 << 40
    launched = [call for launch in executable._host.launches for call in launch.kernels]
    found_past = [
        [n for n, address in enumerate(call.arguments) if address >= bypass] for call in launched
    ]
    assert [each for each in found_past if each] == [each for each in past if each]
