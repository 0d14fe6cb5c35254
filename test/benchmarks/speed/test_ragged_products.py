"""Products that are no whole fractals take about as long as those of whole ones."""

from __future__ import annotations

from typing import Any

import pytest

SIZES = (1000, 1000, 1000), (5, 1118, 3365), (1, 536, 338)


@pytest.fixture(scope="module")
def ragged(benchmark_script: Any) -> Any:
    return benchmark_script("ragged_products")


@pytest.mark.parametrize("sizes", SIZES)
def test_cycles(ragged: Any, sizes: tuple[int, int, int]) -> None:
    shape = ragged.Shape(*sizes, 32)
    taken, whole = (
        ragged.Times.of(each, "ascend910").cycles for each in (shape, ragged.whole(shape))
    )
    assert taken <= ragged.MOST_RAGGED * whole


def test_every_other_one_is_drawn_whole(ragged: Any) -> None:
    shapes = ragged.drawn(8, 5, 32)
    assert [ragged.whole(shape) == shape for shape in shapes[1::2]] == [True] * 4
    assert shapes == ragged.drawn(8, 5, 32)
