"""Random convolutions and pools on simulated machine code with all checks, against onnxruntime."""

from __future__ import annotations

import pytest

from random_convolutions import WAYS, Draw

TWO_WAYS = 1896
"""The phases of a transposed convolution are put together by a kernel of two ways."""


@pytest.mark.parametrize("seed", [*range(5000, 5006), TWO_WAYS])
def test_random_layer(seed: int) -> None:
    Draw(seed).layer().check(**WAYS[seed % len(WAYS)])
