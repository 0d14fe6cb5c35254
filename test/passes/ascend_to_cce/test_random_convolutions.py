"""Random convolutions and pools on simulated machine code with all checks, against onnxruntime."""

from __future__ import annotations

import pytest

from random_convolutions import WAYS, Draw


@pytest.mark.parametrize("seed", range(5000, 5006))
def test_random_layer(seed: int) -> None:
    Draw(seed).layer().check(**WAYS[seed % len(WAYS)])
