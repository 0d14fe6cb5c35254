"""Images of one row, as speech and other sequences are, which may as well be images of one column.

A piece of such an image in L1 has all pixels of the row, of which a tile's windows may reach few;
of a column it has those that they reach, but a fractal of windows is then made of 16 rows of them,
which takes loads of windows longer. So the former is the way for short rows, the latter for long
ones: both are estimated.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from davinci.errors import CompileError
from davinci.machine import Machine, for_cube
from davinci.operators.conv import Geometry
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import quick_schedule
from davinci.schedule.products.image import Image
from davinci.schedule.products.product import Product


def faster_way_round(product: Product, machine: Machine) -> Product:
    """The product with its images of one row as images of one column, where these are estimated to
    take less time on all cores; else as it is."""
    image = product.image
    if image is None or image.geometry.image[0] > 1 or image.geometry.windows[1] == 1:
        return product
    alike = replace(product, epilogue=None)
    row, column = (
        _cycles(replace(alike, image=each), for_cube(machine)) for each in (image, upright(image))
    )
    return replace(product, image=upright(image)) if column < row else product


def upright(image: Image) -> Image:
    """An image with height and width exchanged: pixels lie as they do where one of these is 1."""
    found = image.geometry
    top, bottom, left, right = found.pads
    turned = Geometry(
        _exchanged(found.image),
        _exchanged(found.kernel),
        _exchanged(found.strides),
        _exchanged(found.dilations),
        (left, right, top, bottom),
    )
    return replace(image, geometry=turned)


def _exchanged(pair: tuple[int, int]) -> tuple[int, int]:
    down, across = pair
    return across, down


@lru_cache(maxsize=256)
def _cycles(product: Product, machine: Machine) -> float:
    """Estimated cycles of a product whose sums leave as they are; infinite if nothing computes
    it."""
    try:
        found = quick_schedule(product, machine, machine.cores, Wanted(), math.inf)
    except CompileError:
        return math.inf
    return math.inf if found is None else found[0]
