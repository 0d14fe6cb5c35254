"""Builds the kernel of a gather, see `davinci.schedule.moves.gathers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir, memref
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.transfers import element_of
from davinci.passes.ascend_to_cce.tiles import Part, mark_scalar, portion_parts, share_blocks
from davinci.passes.builder import IndexLike, add, alloc, as_value, for_loop, restride, subview
from davinci.schedule.moves.gathers import GatherPlan


class GatherBuilder:
    """Builds a gather."""

    def __init__(self, plan: GatherPlan, arguments: Sequence[Any], target: Target) -> None:
        self.schedule, self.target = plan.schedule, target
        # Table and indices in the order of the operands.
        of = dict(zip(plan.graph.inputs, arguments, strict=False))
        table, self.indices = (of[value] for value in plan.graph.nodes[0].values)
        length = self.schedule.length
        self.element = element_of(table)
        self.rows = restride(table, [self.schedule.entries, length], [length, 1])
        self.out = restride(arguments[-1], [self.schedule.count, length], [length, 1])

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        portions = self.schedule.portions
        if self.schedule.scalar:
            mark_scalar(ir.InsertionPoint.current.block.owner)
            parts = [Part(self.schedule.count, self._row_by_scalars)]
        else:
            self.buffers = [
                alloc([portions.largest, size], self.element, "UB")
                for _, size in self.schedule.pieces
            ]
            parts = portion_parts(portions, lambda _, start, size: self._tile(start, size))
        return max(1, share_blocks(parts, self.target))

    def _row_by_scalars(self, index: IndexLike) -> None:
        entry = self._entry(index)
        with for_loop(0, self.schedule.length) as column:
            value = memref.LoadOp(self.rows, [entry, column]).result
            memref.StoreOp(value, self.out, [as_value(index), column])

    def _tile(self, start: IndexLike, size: int) -> None:
        pieces = list(zip(self.schedule.pieces, self.buffers, strict=True))
        with for_loop(0, size) as index:
            entry = self._entry(add(start, index))
            for (first, wide), buffer in pieces:
                held = subview(buffer, [index, 0], [1, wide])
                cce.copy(subview(self.rows, [entry, first], [1, wide]), held)
        for (first, wide), buffer in pieces:
            held = subview(buffer, [0, 0], [size, wide])
            cce.copy(held, subview(self.out, [start, first], [size, wide]))

    def _entry(self, position: IndexLike) -> ir.Value:
        """The index at a position, as a row of the table."""
        value = memref.LoadOp(self.indices, [as_value(position)]).result
        index = arith.IndexCastOp(ir.IndexType.get(), value).result
        low = arith.MaxSIOp(index, as_value(0)).result
        return arith.MinSIOp(low, as_value(self.schedule.entries - 1)).result
