"""Schedules of a product that differ from a good one in the order of its steps alone.

    k back and forth     every second tile goes through k from its end, which L1 still holds
    from several places  cores that read the same at the same time wait for each other

They are for cores whose rows become fractals on their way to L1: there MTE2 has as much to do as
the cube.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from davinci.schedule.products.estimate import shares_of, tiles_of
from davinci.schedule.products.legality import faults_along_k
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import ceil_div

REREAD = 8
"""How often cores have to read what there is so that they may begin at several places along k: the
first time it comes from the memory, and cores that read the same together wait for it once."""


def along_k(product: Product, schedule: ProductSchedule) -> list[ProductSchedule]:
    """The same with k back and forth, and from several places on; also by shares of one column of
    tiles, whose loops are shorter to write."""
    share, tile = schedule.share, schedule.tile
    if not product.direct or product.fractals.k <= tile.k:
        return []
    several = reread(product, schedule) >= REREAD
    found = list(ways_along_k(product, schedule, several))
    if schedule.outer == "n" and schedule.beside == (1, 1) and share.n > tile.n:
        column = replace(schedule, share=replace(share, n=tile.n))
        found += ways_along_k(product, column, several)
    return found


def ways_along_k(
    product: Product, schedule: ProductSchedule, several: bool
) -> Iterator[ProductSchedule]:
    """The legal ones of the same with k back and forth, and from as many places on as there are.

    Args:
        several: whether it may begin at several places.
    """
    whole = ceil_div(product.fractals.k, math.lcm(schedule.a.k, schedule.b.k))
    for turning in (False, True):
        for starts in (1, whole) if several and whole > 1 else (1,):
            found = replace(schedule, turning=turning, starts=starts)
            if found != schedule and not any(wrong for wrong, _ in faults_along_k(product, found)):
                yield found


def reread(product: Product, schedule: ProductSchedule) -> float:
    """How often all cores together read what there is of both operands, on average."""
    tiles, shares = tiles_of(product, schedule), shares_of(product, schedule)
    read = there = 0.0
    for side, (name, size) in enumerate((("a", schedule.tile.m), ("b", schedule.tile.n))):
        panels = sum(kind.count * kind.fills[side] for kind in tiles)
        read += shares * panels * product.panel_bytes(name, size)
        there += product.operand_bytes(name)
    return read / there
