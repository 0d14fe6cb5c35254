"""Builds what follows a product on pieces of rows of C, as the vector house builds tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.feed import expanded
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder
from davinci.passes.builder import IndexLike, add, alloc, mul, subview, viewed
from davinci.schedule.products.row_pieces import piece_sizes
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.tile_layout import TileLayout, tile_of


@dataclass(frozen=True)
class LoadedPiece:
    """Rows of a part that are in UB, and wait for what is computed of them.

    Attributes:
        buffers: of its values, by their number in the layout.
        starts: where it begins along each axis of what follows.
    """

    layout: TileLayout
    buffers: dict[int, ir.Value]
    starts: Sequence[IndexLike]


class PieceBuilder(TileBuilder):
    """Builds what follows a product on some rows of a part of C.

    A piece is loaded in front of what is computed of the one before it, which may be of another
    part: the scalar unit waits where the vector unit's queue is full, and would issue it late. With
    one slot it is loaded where that is done.

    Attributes:
        turn: pieces that were built: they take turns on the buffers of what is moved.
        loaded: the piece of which nothing is computed yet.
    """

    def __init__(self, plan: VectorPlan, arguments: Sequence[ir.Value]) -> None:
        super().__init__(plan, arguments)
        self.whole, self.turn = self.layout, 0
        self.loaded: LoadedPiece | None = None
        self.sums, *_ = plan.graph.inputs
        self.held: list[list[ir.Value]] = []
        for buffer in self.layout.buffers[0]:
            slots = self.schedule.slots if buffer.moved and not buffer.once else 1
            self.held.append(
                [alloc([buffer.bytes], element_type("s8"), "UB") for _ in range(slots)]
            )
        self._take_buffers()
        self._write_constants()
        self._steps((0,) * len(self.space.axes), once=True)

    def _array(self, argument: ir.Value, number: int) -> ir.Value:
        """Parts of C come from elsewhere."""
        first = number == self.plan.graph.inputs[0]
        return argument if first else super()._array(argument, number)

    def _take_buffers(self) -> None:
        """Gives the values of the layout the buffers whose turn it is."""
        for number, (buffer, places) in enumerate(
            zip(self.layout.buffers[0], self.held, strict=True)
        ):
            place, element = places[self.turn % len(places)], element_type(buffer.dtype)
            self.buffers[number] = viewed(place, buffer.shape, element)

    def corner(
        self, batch: IndexLike, height: int, row: IndexLike, column: IndexLike
    ) -> Sequence[IndexLike]:
        """Where a row and a column of a matrix of the batch are by the axes of what follows.

        Args:
            height: rows of each matrix.
        """
        if len(self.space.axes) > 2:
            return batch, row, column
        return add(mul(batch, height), row), column

    def rows(
        self,
        part: ir.Value,
        first: IndexLike,
        size: tuple[int, int],
        corner: Sequence[IndexLike],
    ) -> None:
        """Builds the work on rows of a part from the one numbered `first` on, a few at a time.

        Args:
            part: where the part lies.
            size: rows and columns.
            corner: of the part, see `corner`.
        """
        (*matrix, row, column), (rows, columns) = corner, size
        height = self.schedule.tile.sizes[-2]
        for start in range(0, rows, height):
            if self.schedule.slots == 1:
                self.finish()
            sizes = piece_sizes(self.space, min(height, rows - start), columns)
            tile, _ = tile_of(self.space, self.program, sizes)
            self.layout = self.plan.layout(tile, self.whole)
            self._take_buffers()
            at = add(first, start)
            self._find(part, at, sizes)
            starts = [*matrix, add(row, at), column]
            self._loads(starts, once=False)
            piece = LoadedPiece(self.layout, dict(self.buffers), starts)
            self.finish()
            self.loaded = piece
            self.turn += 1
        self.layout = self.whole

    def _find(self, part: ir.Value, at: IndexLike, sizes: Sequence[int]) -> None:
        """Notes where the rows of a piece lie.

        Args:
            part: in GM, [rows][columns].
            at: the piece's first row.
            sizes: of the piece, by the axes of what follows.
        """
        source = subview(part, [at, 0], sizes[-2:])
        self.arrays[self.sums] = expanded(source, list(sizes), 0) if len(sizes) > 2 else source

    def finish(self) -> None:
        """Computes and stores the results of the piece that is loaded."""
        piece, self.loaded = self.loaded, None
        if piece is not None:
            self.layout, self.buffers = piece.layout, piece.buffers
            self._results(piece.starts, once=False)
            self.layout = self.whole

    def _load_tile(self, number: int, starts: Sequence[IndexLike]) -> None:
        super()._load_tile(number, [0] * len(starts) if number == self.sums else starts)
