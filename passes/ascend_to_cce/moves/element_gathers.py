"""Builds the kernel that gathers single elements, see `davinci.schedule.moves.element_gathers`."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.gathered_words import gather_by_words
from davinci.passes.ascend_to_cce.moves.transfers import WORD_LANES, element_of
from davinci.passes.ascend_to_cce.tiles import (
    mark_scalar,
    portion_parts,
    share_blocks,
    with_slots,
)
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    mul,
    restride,
    subview,
    viewed,
)
from davinci.schedule.moves.element_gathers import ElementPlan
from davinci.schedule.moves.portions import SLOTS
from davinci.units import BLOCK_BYTES, BYTE_BITS, round_up


class ElementBuilder:
    """Builds the kernel of a plan.

    Args:
        arguments: the buffers of the graph's inputs, then of its output.
    """

    def __init__(self, plan: ElementPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        self.schedule, self.target = plan.schedule, target
        self.gather = gather = plan.schedule.gather
        of = dict(zip(plan.graph.inputs, arguments, strict=False))
        table, places = (of[value] for value in plan.graph.nodes[0].values)
        self.element = element_of(arguments[-1])
        self.word = ir.IntegerType.get_signless(32)
        self.table = restride(table, [gather.rows * gather.row], [1])
        total = [gather.rows * gather.count]
        self.places, self.result = restride(places, total, [1]), restride(arguments[-1], total, [1])

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        schedule = self.schedule
        if schedule.scalar:
            mark_scalar(ir.InsertionPoint.current.block.owner)
        tiles = schedule.tiles
        self.buffers = [self._buffer(size) for size in schedule.buffers()]
        self.size = self._filled(self.gather.itemsize) if schedule.by_vectors else None
        self.zero = self._filled(0)
        times = self.gather.rows if schedule.parted else 1
        parts = portion_parts(tiles, self._tile, times)
        return max(1, share_blocks(parts, self.target, total=schedule.units, unroll=4 * SLOTS))

    def _buffer(self, size: int) -> ir.Value:
        """A buffer of `size` bytes, which the tiles of all sizes see as words of their own."""
        byte = ir.IntegerType.get_signless(BYTE_BITS)
        return with_slots(alloc([size], byte, "UB"), self.schedule.slots)

    def _held(self, size: int) -> tuple[ir.Value, list[tuple[ir.Value, ir.Value]]]:
        """The table of a tile of `size`, then places and results of each of its pieces."""
        elements, count = self.schedule.held(size)
        block = self.gather.block
        table, *others = self.buffers
        pieces = [
            (
                viewed(places, [round_up(wide, block)], self.word),
                viewed(found, [round_up(wide, block)], self.element),
            )
            for (_, wide), places, found in zip(
                self.gather.pieces(count), others[::2], others[1::2], strict=False
            )
        ]
        return viewed(table, [round_up(elements, block)], self.element), pieces

    def _filled(self, number: IndexLike) -> ir.Value:
        """A block of one number."""
        block = alloc([WORD_LANES], self.word, "UB")
        if isinstance(number, int):
            value = arith.ConstantOp(self.word, ir.IntegerAttr.get(self.word, number)).result
        else:
            value = arith.IndexCastOp(self.word, number).result
        cce.vector_dup(value, block)
        return block

    def _tile(self, row: IndexLike, start: IndexLike, size: int) -> None:
        """Gathers the elements of a tile: rows from `start` on, or places of one row."""
        schedule, gather = self.schedule, self.gather
        rows = row if schedule.parted else start
        first = mul(rows, gather.row)
        begin = mul(rows, gather.count)
        if schedule.parted:
            begin = add(begin, start)
        elements, count = schedule.held(size)
        table, held = self._held(size)
        first = self._loaded_from(first, elements)
        loaded = subview(table, [0], [elements])
        cce.copy(subview(self.table, [first], [elements]), loaded, round_up=True)
        base = self._filled(first)
        for (offset, wide), (places, found) in zip(gather.pieces(count), held, strict=True):
            at, whole = add(begin, offset), wide % gather.block == 0
            source = subview(self.places, [at], [wide])
            cce.copy(source, subview(places, [0], [wide]), round_up=not whole)
            self._inside(places, cce.vsub, base)
            if self.size is not None:
                self._inside(places, cce.vmul, self.size)
                cce.vgather(subview(places, [0], [wide]), table, subview(found, [0], [wide]))
            else:
                self._by_scalars(table, places, found, wide)
            target = subview(self.result, [at], [wide])
            cce.copy(subview(found, [0], [wide]), target, round_up=not whole)

    def _loaded_from(self, first: IndexLike, elements: int) -> IndexLike:
        """Where the load of a tile's part of the table begins: copies of whole blocks end with the
        array's last one."""
        gather = self.gather
        block = BLOCK_BYTES // gather.itemsize
        end = round_up(gather.rows * gather.row, block)
        last = end - round_up(elements, block)
        if gather.row % block == 0:
            return first
        if last == 0:
            return 0  # the blocks that are loaded are all of the table
        if isinstance(first, int):
            return min(first, last)
        return arith.MinUIOp(first, as_value(last)).result

    def _inside(self, places: ir.Value, operation: cce.BinaryBuild, number: ir.Value) -> None:
        """Computes with all places and a number, which a block is filled with."""
        (words,) = ir.MemRefType(places.type).shape
        shape = [words // WORD_LANES, WORD_LANES]
        held = restride(places, shape, [WORD_LANES, 1])
        operation(held, restride(number, shape, [0, 1]), held)

    def _by_scalars(self, table: ir.Value, places: ir.Value, found: ir.Value, count: int) -> None:
        """By words. Places are kept inside of the buffer: they are any where only time is
        computed."""
        (held,) = ir.MemRefType(table.type).shape
        self._inside(places, cce.vmin, self._filled(held - 1))
        self._inside(places, cce.vmax, self.zero)
        gather_by_words(table, places, found, count)
