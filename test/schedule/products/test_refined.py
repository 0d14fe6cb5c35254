"""Schedules that differ from a good one in the order of its steps alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from davinci.schedule.products.order import order
from davinci.schedule.products.product import (
    Pieces,
    Product,
    ProductOperand,
    ProductResult,
    ProductSchedule,
    Share,
    Tile,
)
from davinci.schedule.products.refined import along_k, reread

SCHEDULE = ProductSchedule(
    Share(1, 64, 16),
    Tile(8, 4, 16),
    "n",
    (1, 1),
    1,
    Pieces(32, 8, 1, 8, 2),
    Pieces(8, 16, 8, 8, 4),
    (16, 8),
    l0c=1,
)


def product(m: int, k: int, n: int, direct: bool = True) -> Product:
    a, b = (ProductOperand(False, 2, k_rows, direct) for k_rows in (False, True))
    return Product(1, m, k, n, a, b, ProductResult(False, 2))


def test_what_is_read_often_is_begun_at_several_places() -> None:
    ways = along_k(product(4096, 4096, 4096), SCHEDULE)
    assert [(way.turning, way.starts) for way in ways] == [(False, 8), (True, 1), (True, 8)]


@pytest.mark.parametrize("sizes", [(1024, 4096, 256), (4096, 4100, 4096)])
def test_what_is_read_seldom_or_has_no_whole_pieces_begins_at_one(
    sizes: tuple[int, int, int],
) -> None:
    assert {way.starts for way in along_k(product(*sizes), SCHEDULE)} == {1}


def test_columns_of_tiles_are_shares_too() -> None:
    """As shares of one column, what goes back and forth is fewer mads to write."""
    wide = replace(SCHEDULE, share=Share(1, 64, 32))
    ways = along_k(product(4096, 4096, 4096), wide)
    assert [way.share.n for way in ways] == [32] * 3 + [16] * 3


def test_rows_by_way_of_a_vector_unit_go_one_way() -> None:
    assert not along_k(product(4096, 4096, 4096, direct=False), SCHEDULE)


def test_pieces_that_come_in_parts_go_one_way() -> None:
    parted = replace(SCHEDULE, b=replace(SCHEDULE.b, rows=4))
    assert not any(way.turning for way in along_k(product(4096, 4096, 4096), parted))


def test_k_back_and_forth_finds_what_the_tile_before_ended_with() -> None:
    """Of 32 pieces of B four are there when a tile begins, but for the first of eight."""
    whole = product(1024, 4096, 256)
    fills = [
        sum(order(SCHEDULE.share, whole, replace(SCHEDULE, turning=turning)).fills.values())
        for turning in (False, True)
    ]
    assert fills == [8 * (8 + 32), 8 * (8 + 32) - 7 * 4]
    assert reread(whole, SCHEDULE) == pytest.approx((8 + 8 * 2) / (8 + 2))
