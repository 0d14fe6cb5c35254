"""Rows that products begin with, on machines whose cube cores have a table for them.

    GM [rows][n], or in fractals -> L1 [n of a tile] -> BT [n of a tile / 16][16]

A tile's part of the row comes to L1 before its first mad needs it, with zeros behind the last
column, which so stay zero in fractals with padding.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.extras import copy_of_fractals, row_number
from davinci.passes.ascend_to_cce.products.parts import PartOfC
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import alloc, mul, restride, subview
from davinci.schedule.products.events import Ask, TurnRows
from davinci.schedule.products.extras import BUFFERS
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import BLOCK_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE


class BiasRows:
    """Buffers of a row of C that mads begin with.

    Args:
        gm: [1, or a row for each matrix][columns of C, or its fractals of columns][16].
    """

    def __init__(self, gm: ir.Value, product: Product, schedule: ProductSchedule) -> None:
        extra = product.end.bias
        assert extra is not None, "a product that begins with no row"
        self._gm, self._extra, self._batch = gm, extra, product.batch
        dtype, size = extra.value.dtype, schedule.tile.n * SIDE
        self._block = BLOCK_BYTES // DTYPES[dtype].itemsize
        tables = product.end.tables(schedule.tile.n)
        self.l1 = [alloc([size], element_type(dtype), "L1") for _ in range(BUFFERS)]
        self.tables = [alloc([size], element_type(dtype), "BT") for _ in range(tables)]

    def bring(self, event: Ask, part: PartOfC) -> None:
        """A tile's columns of the row to L1, and zeros behind the last one."""
        size = event.part.tile.n.size * SIDE
        count, buffer = min(size, part.columns_of_tile), self.l1[event.part.turn]
        there = round_up(count, self._block)
        with serving(*self._extra.members):
            if there < size:
                cce.clear_l1(restride(buffer, [1, size - there], [size - there, 1], there))
            number = row_number(self._gm, self._extra, part.place.batch, self._batch)
            if self._extra.fractals:
                target = restride(buffer, [size // SIDE, SIDE], [SIDE, 1])
                copy_of_fractals(self._gm, number, part.column_of_tile, target)
                return
            row = subview(self._gm, [number, mul(part.column_of_tile, SIDE)], [1, count])
            blocks = [ceil_div(count, self._block), 1, self._block]
            cce.nd2nz(row, restride(buffer, blocks, [self._block, self._block, 1]))

    def turn(self, event: TurnRows) -> None:
        """Copies a tile's columns of the row from L1 to the bias table."""
        size, turn = event.part.tile.n.size * SIDE, event.part.turn
        table = self.tables[turn % len(self.tables)]
        with serving(*self._extra.members):
            cce.copy(restride(self.l1[turn], [size], [1]), restride(table, [size], [1]))

    def row(self, table: int, columns: int) -> ir.Value:
        """What a mad of so many columns of fractals begins with, [columns][16] in BT."""
        found: ir.Value = restride(self.tables[table], [columns, SIDE], [SIDE, 1])
        return found
