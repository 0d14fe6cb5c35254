"""In which pieces operands of products may come."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.schedule.products.pieces import PieceWays
from davinci.schedule.products.product import Product, ProductOperand, ProductResult, Tile


@pytest.mark.parametrize(
    ("k", "step", "deep"), [(768, 8, {48, 16}), (768, 3, {48, 18}), (16, 1, {1})]
)
def test_rows_come_whole_or_a_third_at_a_time(k: int, step: int, deep: set[int]) -> None:
    """Whole steps of them: with the first third the cube begins."""
    product = Product(
        1,
        512,
        k,
        256,
        ProductOperand(False, 2, False),
        ProductOperand(True, 2, True),
        ProductResult(True, 2),
    )
    ways = PieceWays(product, machine.load("ascend910"), staged=26214)
    assert {pieces.k for pieces in ways.pieces("a", Tile(8, step, 6))} == deep
