"""What is known of a share of a product before its order of issue is made."""

from __future__ import annotations

import itertools
from collections import Counter

from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import ceil_div

FillShape = tuple[str, int, int]
"""An operand, and fractals of a transfer along k and along m or n."""


def sizes_of(total: int, step: int) -> dict[int, int]:
    """The sizes of the parts of a dimension, and how many of each there are.

    >>> sizes_of(14, 4)
    {4: 3, 2: 1}
    """
    whole, rest = divmod(total, step)
    return {size: count for size, count in ((step, whole), (rest, 1)) if size and count}


def fills_of_share(product: Product, schedule: ProductSchedule) -> dict[FillShape, int]:
    """The transfers of a share by their shape, and how many of each come, unless k turns: a panel
    stays where L1 or L0 has room for all that comes until it is used again."""
    share, tile, k = schedule.share, schedule.tile, product.fractals.k
    times, rows = product.rows_of_tiles(share, tile)
    columns, (down, across) = ceil_div(share.n, tile.n), schedule.beside
    a = "a", "m", (share.m, tile.m), (rows, down), (columns, across), schedule.l0a
    b = "b", "n", (share.n, tile.n), (columns, across), (rows, down), schedule.l0b
    found = Counter[FillShape]()
    for name, loop, size, (own, own_beside), (other, other_beside), blocks in (a, b):
        pieces, k_rows = schedule.pieces(name), product.operand(name).k_rows
        between = own_beside if schedule.outer == loop else own
        stays = pieces.slots >= ceil_div(k, pieces.k) * between
        stays |= blocks >= ceil_div(k, tile.k) * between
        widths, depths = sizes_of(*size), sizes_of(k, pieces.k)
        rounds = 1 if stays else ceil_div(other, other_beside)
        panels = times * own // sum(widths.values()) * rounds
        for width, depth in itertools.product(widths, depths):
            count = panels * widths[width] * depths[depth]
            for rows, transfers in sizes_of(depth if k_rows else width, pieces.rows).items():
                shape = (name, rows, width) if k_rows else (name, depth, rows)
                found[shape] += count * transfers
    return found


def mads_of_share(product: Product, schedule: ProductSchedule) -> dict[tuple[int, int, int], int]:
    """The mads of a share by their fractals along m, k and n, and how many of each there are."""
    rows, along_k, columns = _sizes(product, schedule)
    return {
        (m, k, n): schedule.share.batch * rows[m] * along_k[k] * columns[n]
        for m, k, n in itertools.product(rows, along_k, columns)
    }


def smallest_parts(
    product: Product, schedule: ProductSchedule
) -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Fractals along m, k and n of the smallest mad of a share, and along n and m of the smallest
    part of C that leaves at once."""
    m, k, n = map(min, _sizes(product, schedule))
    columns, rows = schedule.part
    return (m, k, n), (min(sizes_of(n, columns)), min(sizes_of(m, rows)))


def _sizes(product: Product, schedule: ProductSchedule) -> tuple[dict[int, int], ...]:
    """The sizes of mads along m, k and n, and how many of each there are."""
    share, tile, k = schedule.share, schedule.tile, product.fractals.k
    return sizes_of(share.m, tile.m), sizes_of(k, tile.k), sizes_of(share.n, tile.n)
