"""Loads of windows of images from L1 to L0A: rectangles of windows and elements of the kernel."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.machine import prices
from davinci.operators.conv import Geometry
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.image import Image, windows_cycles
from davinci.schedule.products.product import Product, ProductOperand, ProductResult

MACHINE = machines.load("ascend910b")
GEOMETRY = Geometry((56, 56), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))


def test_a_part_of_the_depth_of_a_mad_takes_a_load_for_each_row_of_fractals() -> None:
    image = Image(GEOMETRY, 4)
    place = MACHINE, "L0A", 1, 56
    whole = windows_cycles(image, MACHINE, 28, 2)
    assert whole == prices.load3d_on_average(*place, 56, 1)
    part = windows_cycles(image, MACHINE, 28, 1, part=True)
    assert part == prices.load3d_on_average(*place, 28, 28)
    assert 2 * part > 3 * whole


@pytest.mark.parametrize(("most", "depth"), [(1, 1), (2, 1), (8, 3), (9, 9), (17, 9), (20, 18)])
def test_whole_depths_stay_within_blocks_of_channels(most: int, depth: int) -> None:
    assert Image(GEOMETRY, 4).whole_depths(most) == {depth}


@pytest.mark.parametrize("batch", [3, 16])
def test_a_mad_takes_windows_of_whole_blocks_or_of_one(batch: int) -> None:
    a, b = (ProductOperand(True, 2, rows, direct=True) for rows in (False, True))
    sizes = batch, 56 * 56, 9 * 64, 64
    product = Product(*sizes, a, b, ProductResult(True, 2), None, Image(GEOMETRY, 4), matrices=1)
    depth = choose(product, MACHINE, 24, Wanted()).tile.k
    assert depth % 9 == 0 or 9 % depth == 0
