"""Whether a schedule that somebody gives can compute a product."""

from __future__ import annotations

import math
from collections.abc import Iterator

from davinci.machine import Machine
from davinci.schedule.products.footprint import footprint
from davinci.schedule.products.product import DENSE, Product, ProductSchedule, Share
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


def require_legal(product: Product, schedule: ProductSchedule, machine: Machine) -> None:
    """Refuses a schedule by which a product cannot be computed.

    Raises:
        NoSpace: says what is wrong with it.
    """
    for wrong, reason in _faults(product, schedule):
        if wrong:
            raise NoSpace(f"a schedule of a product: {reason}")
    if memory := footprint(product, schedule).excess(machine):
        raise NoSpace(f"a schedule of a product: no room in {memory}")


def _faults(product: Product, schedule: ProductSchedule) -> Iterator[tuple[bool, str]]:
    """Rules in an order in which each may rely on those before it; whether each is broken."""
    whole, share, tile, part = product.fractals, schedule.share, schedule.tile, schedule.part
    a, b = schedule.a, schedule.b
    sizes = [share.batch, share.m, share.n, tile.m, tile.k, tile.n, *part, *schedule.beside]
    sizes += [size for p in (a, b) for size in (p.k, p.other, p.together, p.rows, p.slots)]
    sizes += [schedule.turn, schedule.l0a, schedule.l0b, schedule.l0c, schedule.ahead]
    sizes += [schedule.inbox, schedule.outbox, schedule.loads, schedule.leaving]
    yield min(sizes) < 1, "sizes and numbers of buffers are 1 or more"
    yield schedule.outer not in ("m", "n"), "the outer loop is over m or n"
    most = product.batch, whole.m, whole.n
    given = share.batch, share.m, share.n
    yield any(x > y for x, y in zip(given, most, strict=True)), "a share is a part of C"
    yield from faults_of_matrices(product, share)
    wide = tile.m > share.m or tile.n > share.n or tile.k > whole.k
    yield wide, "a tile is a part of its share"
    yield part[0] > tile.n or part[1] > tile.m, "what leaves at once is a part of a tile"
    together = product.columns_together
    odd = any(n % together for n in (share.n, tile.n, part[0]))
    yield odd, f"columns go by {together} fractals"
    down, across = schedule.beside
    tiles = product.rows_of_tiles(share, tile)[1], ceil_div(share.n, tile.n)
    yield down > tiles[0] or across > tiles[1], "no more tiles take turns than there are"
    yield down * across > schedule.l0c, "tiles that take turns are all in L0C"
    for name, pieces, other in (("a", a, tile.m), ("b", b, tile.n)):
        yield pieces.other != other, f"pieces of {name} are as wide as a tile"
        yield (
            pieces.together not in (1, tile.k, pieces.k),
            f"{name}: fractals lie alone or by steps",
        )
        k_rows = product.operand(name).k_rows
        yield (
            pieces.rows > (pieces.k if k_rows else other),
            f"{name}: a transfer is part of a piece",
        )
        count = min(ceil_div(whole.k, pieces.k), (tile.k + pieces.k - 2) // pieces.k + 1)
        needed = 1 if pieces.k % tile.k == 0 else count
        yield pieces.slots < needed, f"{name}: L1 holds what a mad needs"
        yield from _held(product, schedule, name)
    yield from _ragged(product, schedule)
    yield from faults_along_k(product, schedule)


def faults_of_matrices(product: Product, share: Share) -> Iterator[tuple[bool, str]]:
    """Rules of shares of several matrices; whether each is broken."""
    whole, several = product.fractals, share.batch > 1
    parts = share.m < whole.m or (share.n < whole.n and product.matrices != 1)
    yield several and parts, "a share of several matrices has all of each, or columns with one B"
    ones = several and product.matrices not in (0, 1, product.batch)
    yield ones, "matrices that take several B in turn are shared one by one"


def _held(product: Product, schedule: ProductSchedule, name: str) -> Iterator[tuple[bool, str]]:
    """How pieces come."""
    pieces, operand, image = schedule.pieces(name), product.operand(name), product.image
    if name == "a" and image is not None:
        yield pieces.k % image.elements != 0, "a piece of an image has whole blocks of channels"
        held = image.piece_fractals(pieces.k // image.elements, pieces.other)
        yield pieces.held != held or pieces.dense, f"a piece of the image takes {held} fractals"
        return
    yield pieces.held != 0, f"pieces of {name} are matrices"
    width = product.stored_columns(name)
    columns = pieces.other if operand.k_rows else pieces.k
    dense = not operand.nz and columns * SIDE >= width
    yield pieces.dense and not dense, f"{name}: dense rows are whole ones"


def _ragged(product: Product, schedule: ProductSchedule) -> Iterator[tuple[bool, str]]:
    """How rows of C leave that are no whole blocks."""
    way = schedule.ragged
    yield way not in ("", DENSE), f"rows leave by {DENSE} or as they are"
    yield bool(way) and not product.ragged, "rows of C are whole blocks"
    if way == DENSE:
        columns = product.fractals.n
        narrow = schedule.tile.n < columns or schedule.part[0] < columns
        yield narrow, "whole rows of C leave at once"


def faults_along_k(product: Product, schedule: ProductSchedule) -> Iterator[tuple[bool, str]]:
    """Where k begins, and which way it goes."""
    sides = ((product.a, schedule.a), (product.b, schedule.b))
    parted = any(p.rows < (p.k if operand.k_rows else p.other) for operand, p in sides)
    yield schedule.turning and parted, "k goes back and forth by pieces that come whole"
    starts = schedule.starts
    yield starts < 1, "k begins at one place or more"
    if starts > 1:
        yield product.image is not None, "k of an image begins at one place"
        apart, rest = divmod(product.k, starts * SIDE)
        odd = rest or apart % math.lcm(schedule.a.k, schedule.b.k)
        yield bool(odd), "k begins where pieces do, and ends where they do"
