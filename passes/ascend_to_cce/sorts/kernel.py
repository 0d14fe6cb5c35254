"""Builds the kernel that sorts the rows of a matrix, see `davinci.schedule.sorts`.

for tile of this core:
  keys, and their numbers, to UB; what fills the rows up behind them
  bits to ranks, ranks to planes; the network; planes to bits and numbers
  the first keys of each row to GM
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows, store_rows
from davinci.passes.ascend_to_cce.tiles import AlikeWork, share_blocks
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.builder import IndexLike, add, alloc, as_value, mul, op, restride, viewed
from davinci.schedule.sorts.keys import MOST_RANK, PLACE, KeySteps
from davinci.schedule.sorts.network import (
    CONSTANT,
    KEYS,
    NUMBERS,
    SHARED,
    SPARE,
    NetworkStep,
    SortTile,
)
from davinci.schedule.sorts.schedule import SortPlan, TileShare
from davinci.units import row_major

KINDS = ("s32", "f32")


class SortBuilder:
    """Builds the kernel of a plan.

    Args:
        arguments: buffers of the keys, of the numbers if there are any, and of the result.
    """

    def __init__(self, plan: SortPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        self.schedule, self.target = plan.schedule, target
        self.tile, self.keys = self.schedule.tile, self.schedule.keys
        self.loaded = [self._matrix(gm) for gm in arguments[:-1]]
        self.stored = self._matrix(arguments[-1])
        self.kinds = [self._kind(gm) for gm in arguments]
        self.buffers: dict[tuple[str, str], ir.Value] = {}

    @staticmethod
    def _matrix(gm: ir.Value) -> ir.Value:
        """An array in GM as [planes, rows, columns]."""
        shape = list(ir.MemRefType(gm.type).shape)
        shape = [1] * (3 - len(shape)) + shape
        return restride(gm, shape, row_major(shape))

    @staticmethod
    def _kind(gm: ir.Value) -> str:
        return "f32" if isinstance(ir.MemRefType(gm.type).element_type, ir.F32Type) else "s32"

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        for name, count in self.tile.sizes().items():
            raw = alloc([4 * count], ir.IntegerType.get_signless(8), "UB")
            for kind in KINDS:
                self.buffers[name, kind] = viewed(raw, [count], element_type(kind))
        if self.tile.shared:
            self._load_shared()
        self._clear()
        self._constants()
        parts, first = list[AlikeWork](), 0
        for share in self.schedule.shares:
            parts += self._parts(share, first)
            first += share.rows
        return max(1, share_blocks([part for part in parts if part.count], self.target))

    def _parts(self, share: TileShare, first: int) -> Iterator[AlikeWork]:
        """The tiles of a share of the rows, from `first` on."""
        tile = share.tile
        whole, rest = divmod(share.rows, tile.rows)
        yield AlikeWork(whole, lambda i: self._tile(tile, add(first, mul(i, tile.rows)), tile.rows))
        yield AlikeWork(int(rest > 0), lambda _: self._tile(tile, first + whole * tile.rows, rest))

    def _load_shared(self) -> None:
        """The numbers that all rows have, for all tiles."""
        width, numbers = self.tile.width, self.buffers[SHARED, "s32"]
        if self.schedule.columns < self.tile.lanes:
            cce.vector_dup(scalar("s32", 0), restride(numbers, [width], [1]))
        piece = MatrixPiece(self.loaded[PLACE], 0, 0, 0, 1, self.schedule.columns)
        load_rows(piece, restride(self.buffers[SHARED, self.kinds[PLACE]], [1, width], [width, 1]))

    def _clear(self) -> None:
        """Something is in all places that are computed on or transposed, whether keys are loaded to
        them or not. It comes first, as keys are loaded behind it."""
        tile, schedule = self.tile, self.schedule
        lacking = schedule.columns < tile.lanes
        lacking |= any(share.rows % share.tile.rows for share in schedule.shares)
        alone = tile.lanes < tile.width
        if lacking or (alone and tile.planes == 1):
            loaded = 1 if tile.shared else len(self.loaded)
            self._clear_planes(tile.come, 1 + PLACE if loaded > 1 else 1)
        if alone and tile.planes > 1:
            self._clear_planes(KEYS, tile.planes)

    def _clear_planes(self, name: str, planes: int) -> None:
        """The first planes of a buffer."""
        held = restride(self.buffers[name, "s32"], [planes * self.tile.elements], [1])
        cce.vector_dup(scalar("s32", 0), held)

    def _constants(self) -> None:
        for i, number in enumerate(self.keys.constants().values()):
            block = restride(self.buffers[NUMBERS, "s32"], [CONSTANT], [1], i * CONSTANT)
            cce.vector_dup(scalar("s32", number), block)

    def _tile(self, tile: SortTile, first: IndexLike, rows: int) -> None:
        """Sorts so many rows from `first` on, in a tile."""
        self.tile = tile
        work = KeySteps(self.keys, tile, self.schedule.kept)
        self._load(first, rows)
        self._steps(work.coming())
        self._fill(rows)
        self._steps(work.sorting())
        self._store(first, rows)

    def _rows(
        self, name: str, plane: int, kind: str, rows: int, first: int = 0, place: int = 0
    ) -> ir.Value:
        """Rows of a plane of a buffer from a place on, [rows, width]."""
        width = self.tile.width
        offset = plane * self.tile.elements + first * width + place
        return restride(self.buffers[name, kind], [rows, width - place], [width, 1], offset)

    def _load(self, first: IndexLike, rows: int) -> None:
        """Loads so many rows of keys from `first` on, and of numbers where there are any: these
        stand once for each of `groups` rows, so that row i has those of i modulo `groups`."""
        self._load_rows(0, first, 0, rows)
        if len(self.loaded) == 1 or self.tile.shared:
            return
        groups = self.schedule.groups
        together = groups in (rows, self.schedule.rows) or groups % self.tile.rows == 0
        for row, count in [(0, rows)] if together else [(i, 1) for i in range(rows)]:
            self._load_rows(PLACE, wrapped(add(first, row), groups), row, count)

    def _load_rows(self, plane: int, first: IndexLike, row: int, count: int) -> None:
        """So many rows of the keys, or of numbers, into a plane from a row on."""
        for span in self.tile.spans(self.schedule.columns):
            piece = MatrixPiece(self.loaded[plane], 0, first, span.first, count, span.count)
            ub = self._rows(self.tile.come, plane, self.kinds[plane], count, row, span.place)
            load_rows(piece, ub)

    def _fill(self, rows: int) -> None:
        """The largest ranks and numbers behind keys, and in rows that are none."""
        tile, come = self.tile, self.tile.come
        planes = [(0, MOST_RANK)]
        if len(self.loaded) > 1:
            planes.append((PLACE, self.keys.most_pair))
        last = tile.spans(self.schedule.columns)[-1]
        for plane, number in planes:
            filled = self._rows(come, plane, "s32", rows, place=last.place)
            lanes = tile.lanes - last.place
            if last.count < lanes:
                fill_lanes("s32", filled, last.count, lanes, number)
            if rows < tile.rows:
                size = (tile.rows - rows) * tile.width
                offset = plane * tile.elements + rows * tile.width
                rest = restride(self.buffers[come, "s32"], [size], [1], offset)
                cce.vector_dup(scalar("s32", number), rest)

    def _store(self, first: IndexLike, rows: int) -> None:
        planes = (0,) if len(self.loaded) == 1 else (0, PLACE)
        for plane in planes:
            for span in self.tile.spans(self.schedule.kept):
                piece = MatrixPiece(self.stored, plane, first, span.first, rows, span.count)
                kept = self._rows(SPARE, plane, self.kinds[-1], rows, place=span.place)
                store_rows(kept, piece)

    def _steps(self, steps: Iterable[NetworkStep]) -> None:
        for step in steps:
            self._step(step)

    def _step(self, step: NetworkStep) -> None:
        operands = []
        for view, kind in zip(step.operands, step.kinds, strict=True):
            buffer = self.buffers[view.buffer, kind]
            operands.append(restride(buffer, view.shape, view.strides, view.offset))
        if step.scalar is not None:
            operands.insert(-1, scalar(step.kinds[-1], step.scalar))
        given = {} if step.round is None else {"round": step.round}
        op(f"cce.{step.name}", operands, **given)


def wrapped(row: IndexLike, groups: int) -> IndexLike:
    """The row of numbers that belongs to a row of keys."""
    if isinstance(row, int):
        return row % groups
    if groups == 1:
        return 0
    return arith.RemUIOp(row, as_value(groups)).result
