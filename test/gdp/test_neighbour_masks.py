"""Comparisons of neighbours give the same by shifted reads and by convolutions; cost decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import gdp, machine
from davinci.gdp.lowering import build
from davinci.gdp.masks import Ways
from davinci.gdp.models import named
from davinci.mlir import make_context
from davinci.reference.interpreter import evaluate, prepare

ROW, COLUMN = gdp.indices()


class Always(Ways):
    """Takes convolutions for all comparisons that could be made by one."""

    def by_convolution(self, comparisons: Any) -> bool:
        return True


def weighted(img: gdp.Array) -> gdp.Array:
    return 2 * img[ROW, COLUMN] - img[ROW - 1, COLUMN + 2] * 0.5 > 1.5


def of_two_sides(img: gdp.Array) -> gdp.Array:
    return -img[ROW, COLUMN] + 3.0 <= img[ROW + 1, COLUMN] - img[ROW, COLUMN - 1]


def both(img: gdp.Array) -> gdp.Array:
    return (img > img[ROW - 1, COLUMN]) & (img >= img[ROW, COLUMN + 1])


def built(program: Callable[..., Any], shape: tuple[int, ...], ways: Ways | None) -> Any:
    img = gdp.input("img", shape, np.float16)
    specs = {"img": (img.dtype, img.shape)}
    return build([img], named(program(img), "test"), specs, make_context(), ways)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 5, 11)], ids=str)
@pytest.mark.parametrize("program", [weighted, of_two_sides, both])
def test_both_ways_give_the_same(program: Callable[..., Any], shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float16)
    found = []
    for ways, count in ((None, 0), (Always(machine.load("ascend310"), 0), 1)):
        module = built(program, shape, ways)
        assert ("stablehlo.convolution" in str(module)) == bool(count)
        assert ("stablehlo.pad" in str(module)) != bool(count)
        prepare(module)
        found.append(evaluate(module, {"img": image}, ["out0"])["out0"])
    np.testing.assert_array_equal(*found)


def test_what_is_no_sum_of_neighbours_is_left() -> None:
    """Products of pixels, two images, other borders, f32, pixels alone, and endless sums."""

    def doubled(img: gdp.Array) -> gdp.Array:
        total = img[ROW - 1, COLUMN]
        for _ in range(99):
            total = total + total
        return total > 0

    ways = Always(machine.load("ascend310"), 0)
    programs: list[Callable[..., Any]] = [
        lambda img: img * img[ROW - 1, COLUMN] > 0,
        lambda img: img[ROW - 1, COLUMN] > gdp.sqrt(img),
        lambda img: gdp.border(img, "reflect")[ROW - 1, COLUMN] > img,
        lambda img: img.astype(np.float32)[ROW - 1, COLUMN] > 0,
        lambda img: img > 1,
        doubled,
    ]
    for program in programs:
        assert "stablehlo.convolution" not in str(built(program, (5, 6), ways))


def test_cost_decides() -> None:
    """A single neighbour by a convolution; four of them share a padded image."""

    def around(img: gdp.Array) -> list[gdp.Array]:
        sides = ((-1, 0), (1, 0), (0, -1), (0, 1))
        return [img > img[ROW + down, COLUMN + right] for down, right in sides]

    ways = Ways(machine.load("ascend310"), 0)
    shape = (1080, 1920)
    single = built(lambda img: img > img[ROW - 1, COLUMN], shape, ways)
    assert str(single).count("stablehlo.convolution") == 1
    assert "stablehlo.convolution" not in str(built(around, shape, ways))
