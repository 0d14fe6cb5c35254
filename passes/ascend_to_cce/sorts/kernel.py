"""Builds the kernel that sorts the rows of a matrix, see `davinci.schedule.sorts`.

for tile of this core:
  keys, and their numbers, to UB; what fills the rows up behind them
  bits to ranks, ranks to planes; the network; planes to bits and numbers
  the first keys of each row to GM
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows, store_rows
from davinci.passes.ascend_to_cce.tiles import AlikeWork, share_blocks
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.builder import IndexLike, add, alloc, as_value, mul, op, restride, viewed
from davinci.schedule.sorts.keys import MOST_RANK, PLACE, KeySteps
from davinci.schedule.sorts.network import CONSTANT, NUMBERS, SPARE, NetworkStep
from davinci.schedule.sorts.schedule import SortPlan
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
        self.work = KeySteps(self.keys, self.tile)
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
        self._constants()
        whole, rest = divmod(self.schedule.rows, self.tile.rows)
        parts = [AlikeWork(whole, lambda i: self._tile(mul(i, self.tile.rows), self.tile.rows))]
        if rest:
            parts.append(AlikeWork(1, lambda _: self._tile(whole * self.tile.rows, rest)))
        return max(1, share_blocks([part for part in parts if part.count], self.target))

    def _constants(self) -> None:
        for i, number in enumerate(self.keys.constants().values()):
            block = restride(self.buffers[NUMBERS, "s32"], [CONSTANT], [1], i * CONSTANT)
            cce.vector_dup(scalar("s32", number), block)

    def _tile(self, first: IndexLike, rows: int) -> None:
        """Sorts so many rows from `first` on."""
        self._load(first, rows)
        self._steps(self.work.before())
        self._fill(rows)
        self._steps(self.work.digits())
        self._steps(self.tile.steps())
        self._steps(self.work.after())
        self._store(first, rows)

    def _rows(self, name: str, plane: int, kind: str, rows: int, first: int = 0) -> ir.Value:
        """Rows of a plane of a buffer, [rows, width]."""
        width = self.tile.width
        offset = plane * self.tile.elements + first * width
        return restride(self.buffers[name, kind], [rows, width], [width, 1], offset)

    def _load(self, first: IndexLike, rows: int) -> None:
        schedule, come = self.schedule, self.tile.come
        if rows * schedule.columns < self.tile.elements:  # all of a plane is computed on
            size = (1 + PLACE if len(self.loaded) > 1 else 1) * self.tile.elements
            spare = restride(self.buffers[come, "s32"], [size], [1])
            cce.vector_dup(scalar("s32", 0), spare)
        keys = MatrixPiece(self.loaded[0], 0, first, 0, rows, schedule.columns)
        load_rows(keys, self._rows(come, 0, self.kinds[0], rows))
        if len(self.loaded) == 1:
            return
        groups = schedule.groups
        together = groups in (rows, schedule.rows) or groups % self.tile.rows == 0
        for row, count in [(0, rows)] if together else [(i, 1) for i in range(rows)]:
            place = wrapped(add(first, row), groups)
            piece = MatrixPiece(self.loaded[1], 0, place, 0, count, schedule.columns)
            load_rows(piece, self._rows(come, PLACE, "s32", count, row))

    def _fill(self, rows: int) -> None:
        """The largest ranks and numbers behind keys, and in rows that are none."""
        columns, width, come = self.schedule.columns, self.tile.width, self.tile.come
        planes = [(0, MOST_RANK)]
        if len(self.loaded) > 1:
            planes.append((PLACE, self.keys.most_pair))
        for plane, number in planes:
            if columns < width:
                fill_lanes("s32", self._rows(come, plane, "s32", rows), columns, width, number)
            if rows < self.tile.rows:
                size = (self.tile.rows - rows) * width
                offset = plane * self.tile.elements + rows * width
                rest = restride(self.buffers[come, "s32"], [size], [1], offset)
                cce.vector_dup(scalar("s32", number), rest)

    def _store(self, first: IndexLike, rows: int) -> None:
        planes = (0,) if len(self.loaded) == 1 else (0, PLACE)
        for plane in planes:
            piece = MatrixPiece(self.stored, plane, first, 0, rows, self.schedule.kept)
            store_rows(self._rows(SPARE, plane, self.kinds[-1], rows), piece)

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
