"""Rows of a part of C whose fractals, [columns][rows + 1][16], are in UB behind L0C.

    the fractals        | 16 lanes | 16 lanes | 5 lanes, padding |
    their last block    | 16 lanes | 16 lanes | the last 8 lanes of the row |
    a row for tiles     | 16 lanes | 16 lanes | the last 8 |

Tiles of the vector unit have rows that are whole blocks, or end with a block that ends where the
row does (`vector.tile_layout.ragged_lanes`). What pads C is not in them.

Columns of fractals are a row apart, so that blocks of a row are in different bank groups.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.schedule.products.dense_rows import shifted
from davinci.schedule.vector.steps import RESULT, SOURCE, BufferStep, BufferSteps, View, copy_of
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class StagedRows:
    """Whole rows of C in fractals in UB.

    Attributes:
        height: rows, a multiple of 16.
        width: elements of a row.
        block: elements of the block with which a row of a tile ends if it is no whole ones.
        dtype: element type.
    """

    height: int
    width: int
    block: int
    dtype: str

    @property
    def ragged(self) -> int:
        """Elements behind the last whole block of a row."""
        return self.width % self.block

    @property
    def lanes(self) -> int:
        """Lanes of a row of a tile that are brought there."""
        return self.width - self.ragged + self.block if self.ragged else self.width

    @property
    def column(self) -> int:
        """Elements from a column of fractals to the next."""
        return (self.height + 1) * SIDE

    @property
    def elements(self) -> int:
        """Elements of a buffer for all of them."""
        return ceil_div(self.width, SIDE) * self.column

    @property
    def lanes_of_block(self) -> int:
        """Elements of a block of the vector unit."""
        return BLOCK_BYTES // DTYPES[self.dtype].itemsize

    def ended(self) -> BufferSteps | None:
        """RESULT, the fractals, with the last elements of each row in the blocks behind its last
        whole one; None where they lie there."""
        each, itemsize = SIDE // self.lanes_of_block, DTYPES[self.dtype].itemsize
        first = self.width - self.block
        shift = first % self.lanes_of_block
        if not self.ragged:
            return None
        if not shift:
            return self._moved(first)
        sources = range(first // self.lanes_of_block, (self.width - 1) // self.lanes_of_block + 1)
        results = range(
            (self.width - self.ragged) // self.lanes_of_block, self.lanes // self.lanes_of_block
        )
        places = [[self._place(block) for block in blocks] for blocks in (sources, results)]
        return shifted(self.height, itemsize, each, places[0], places[1], shift)

    def _place(self, block: int) -> int:
        """The number of a row's block among those of the fractals, for the first row."""
        each = SIDE // self.lanes_of_block
        return block // each * (self.height + 1) * each + block % each

    def _moved(self, first: int) -> BufferSteps:
        """`ended` where the last elements are whole blocks from the one numbered `first` on."""
        size = self.lanes_of_block
        places = zip(
            range(first, self.width, size),
            range(self.width - self.ragged, self.lanes, size),
            strict=True,
        )
        # The last one first: each goes further to the end, where the next one lies.
        steps = [
            copy_of(self._block(source // size), self._block(result // size), self.dtype)
            for source, result in reversed(list(places))
        ]
        return BufferSteps(self.dtype, tuple(steps), {})

    def _block(self, block: int) -> View:
        """A block of each row, in the fractals."""
        size = self.lanes_of_block
        return View(RESULT, (self.height, size), (SIDE, 1), self._place(block) * size)

    def taken(self, first: int, rows: int, pitch: int) -> BufferSteps:
        """RESULT = so many rows of SOURCE, the fractals, from the one numbered `first` on.

        Args:
            pitch: elements from a row of the result to the next.
        """
        whole, rest = divmod(self.lanes, SIDE)
        steps = list[BufferStep]()
        for columns, lanes, column in ((whole, SIDE, 0), (1, rest, whole)):
            if columns and lanes:
                shape, apart = (rows, columns, lanes), self.column
                start = column * apart + first * SIDE
                source = View(SOURCE, shape, (SIDE, apart, 1), start)
                result = View(RESULT, shape, (pitch, SIDE, 1), column * SIDE)
                steps.append(copy_of(source, result, self.dtype))
        return BufferSteps(self.dtype, tuple(steps), {})
