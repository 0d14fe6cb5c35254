"""The pieces in which L1 may hold an operand of a product, and how they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from davinci.machine import Machine
from davinci.machine.views import loads_rectangles
from davinci.schedule.products.cost import ProductCosts
from davinci.schedule.products.dense_rows import scratch_bytes
from davinci.schedule.products.footprint import parting
from davinci.schedule.products.image import Image
from davinci.schedule.products.product import Pieces, Product, Tile
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div, even_cut, even_cuts, round_up
from davinci.units import FRACTAL_SIDE as SIDE

IMAGE_PIECES = 6
"""Numbers of blocks of channels that are tried for what L1 holds of an image at once."""

THIRDS = 3
"""Parts into which k is cut, so that the first one is there sooner."""

LONGER = 2
"""How many times as long as rows that others come beside those of k may be that become fractals on
their way to L1."""

PARTING = 2
"""How much more of UB than rows that came their way to fractals may take."""


class PieceWays:
    """Pieces of the operands of a product.

    Args:
        staged: bytes of UB for rows that come at once.
    """

    def __init__(self, product: Product, machine: Machine, staged: int) -> None:
        self.product, self.machine, self.staged = product, machine, staged
        self.room = machine.buffer("L1").bytes // FRACTAL_BYTES
        self.parting = PARTING * staged
        self.costs = ProductCosts(product, machine, 0.5)

    def pieces(self, name: str, tile: Tile) -> Iterator[Pieces]:
        """Ways in which L1 holds an operand; slots are still to be found."""
        product, operand = self.product, self.product.operand(name)
        if name == "a" and self.product.image is not None:
            yield from self.images(self.product.image, tile)
            return
        other = tile.m if name == "a" else tile.n
        as_loaded = tile.k if name == "a" else 1
        if operand.nz:
            rows = tile.k if operand.k_rows else other
            in_columns = tile.k if operand.k_rows else 1
            if loads_rectangles(self.machine, "L0A" if name == "a" else "L0B"):
                as_loaded = in_columns
            for together in dict.fromkeys([as_loaded, in_columns]):
                yield Pieces(tile.k, other, together, rows, 1)
            return
        row = SIDE * SIDE * operand.itemsize
        if operand.direct:
            # Columns of blocks as they come: of rows of k each column is a step's. Longer rows come
            # faster.
            most = self.staged // (other * row)
            spans = self.spans_of_k(tile.k, most)
            if not operand.k_rows:
                spans += self.spans_of_k(tile.k, LONGER * most)
            for deep in dict.fromkeys(spans):
                rows = deep if operand.k_rows else other
                yield Pieces(deep, other, deep if operand.k_rows else 1, rows, 1)
            return
        if operand.k_rows:
            # Rows that are no whole blocks come by few instructions if many of them do.
            ends = product.stored_columns(name) * operand.itemsize % BLOCK_BYTES
            most = self.staged // (other * row)
            for deep in self.spans_of_k(tile.k, most if ends else 0)[:1]:
                rows = even_cut(deep, max(1, most))
                yield from self.crossed(name, Pieces(deep, other, as_loaded, rows, 1))
            return
        # Rows of all of k follow each other in GM; if that is too much, pieces of whole steps.
        for deep in self.spans_of_k(tile.k, self.staged // row):
            rows = even_cut(other, max(1, self.staged // (deep * row)))
            for together in dict.fromkeys([as_loaded, deep if name == "a" else 1]):
                yield from self.crossed(name, Pieces(deep, other, together, rows, 1))

    def crossed(self, name: str, pieces: Pieces) -> Iterator[Pieces]:
        """Rows that come one by one, and as one run if they are whole: then they come faster, and
        the vector unit has more to do."""
        product, operand = self.product, self.product.operand(name)
        columns = pieces.other if operand.k_rows else pieces.k
        width = product.stored_columns(name)
        yield pieces
        if width * operand.itemsize % BLOCK_BYTES == 0 or columns < ceil_div(width, SIDE):
            return
        rows = pieces.rows
        while sum(scratch_bytes([parting(product, name, pieces, rows)]).values()) > self.parting:
            if rows == 1:
                return
            rows = ceil_div(rows, 2)
        yield replace(pieces, dense=True, rows=rows)

    def images(self, image: Image, tile: Tile) -> Iterator[Pieces]:
        """Blocks of channels of the rows that a tile reaches: all of them, or fewer at a time."""
        cuts = even_cuts(image.blocks, image.blocks)
        for blocks in dict.fromkeys([*cuts[:IMAGE_PIECES], 1]):
            held = image.piece_fractals(blocks, tile.m)
            if held <= self.room or blocks == 1:
                yield Pieces(blocks * image.elements, tile.m, 1, tile.m, 1, held)

    def spans_of_k(self, step: int, most: int) -> list[int]:
        """Whole steps of about `most` fractals: all of k, and about a third of it, with which the
        cube begins sooner; or as many as there are room for, as many pieces of about the same
        size, and those that divide it."""
        k, steps = self.product.fractals.k, max(1, most // step)
        if k <= steps * step:
            thirds = ceil_div(ceil_div(k, THIRDS), step) * step
            return [k, thirds] if most and thirds < k else [k]
        even = round_up(even_cut(k, steps * step), step)
        parts = [part for part in range(steps, 0, -1) if k % (part * step) == 0]
        return list(dict.fromkeys([steps * step, even, *(part * step for part in parts[:1])]))
