"""Products and convolutions with what follows them, on simulated machine code with all checks."""

from __future__ import annotations

import pytest

from random_epilogues import PLACES, Draw

ROWS_CONVERTED = (302, 1229)
"""A row of f16 that is widened in the kernel where rows of f16 are combined with a number."""


@pytest.mark.parametrize("seed", [*range(5000, 5000 + len(PLACES)), *ROWS_CONVERTED])
def test_random_epilogue(seed: int) -> None:
    assert Draw(seed).epilogue().check(), "numbers that f16 does not have"
