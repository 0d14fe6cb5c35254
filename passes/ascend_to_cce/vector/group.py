"""Builds the kernel of a group on the vector unit from its schedule.

    values that are the same for all tiles: loaded or computed once
    for tile of this core:              cce.unroll
      copy the tile of each input to UB           buffers with cce.slots
      the steps of the group's program
      copy the tile of each output to GM

Values that lack axes are read with strides of 0. Rows whose last block is not whole end in a block
that is loaded apart, ending where the row ends; it is stored before the rest of the row, because
reductions overwrite the lanes it has twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from davinci.mlir import ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.tiles import AlikeWork, block_index, share_blocks, unflatten
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder, tile_buffer
from davinci.passes.builder import (
    IndexLike,
    add,
    as_attribute,
    for_loop,
    mul,
)
from davinci.schedule.vector.chunks import TileRun
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.tile_layout import tile_of

UNROLLED_STEPS = 512
"""Steps up to which all tiles of a core are written out, so that they can be interleaved."""


class VectorBuilder(TileBuilder):
    """Builds a kernel that goes over tiles."""

    def __init__(self, plan: VectorPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        super().__init__(plan, arguments)
        self.target = target

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        self._allocate_once()
        axes = enumerate(self.space.axes[: self.schedule.cut])
        sizes = self.schedule.tile.sizes
        walked = [i for i, axis in axes if not axis.reduced and sizes[i] < axis.size]
        parts = [self._part(run, walked) for run in self.schedule.runs]
        if self.schedule.overlap:
            parts = self._joined(walked)
        return self._share(parts)

    def _allocate_once(self) -> None:
        """Computes what is the same for all tiles."""
        self._allocate(once=True)
        self._write_constants()
        self._steps((0,) * len(self.space.axes), once=True)

    def _part(self, run: TileRun, walked: list[int]) -> AlikeWork:
        sizes = [self.space.axes[i].size for i in walked]

        def build(index: IndexLike) -> None:
            *outside, place = unflatten(index, [*sizes, run.count])
            self._tile(walked, outside, add(run.first, mul(place, run.size)), run.size)

        return AlikeWork(math.prod(sizes) * run.count, build)

    def _joined(self, walked: list[int]) -> list[AlikeWork]:
        """The parts where the last tile overlaps the one before: both are one unit of work."""
        full, last = self.schedule.runs
        sizes = [self.space.axes[i].size for i in walked]

        def build(index: IndexLike) -> None:
            outside = unflatten(index, sizes) if sizes else []
            self._tile(walked, outside, (full.count - 1) * full.size, full.size)
            self._tile(walked, outside, last.first, last.size)

        parts = [AlikeWork(math.prod(sizes), build)]
        if full.count > 1:
            parts.insert(0, self._part(replace(full, count=full.count - 1), walked))
        return parts

    def _tile(
        self, walked: list[int], outside: Sequence[IndexLike], start: IndexLike, size: int
    ) -> None:
        tile = self.schedule.tile
        if size != tile.sizes[self.schedule.cut]:
            sizes = list(tile.sizes)
            sizes[self.schedule.cut] = size
            if self.program.placed:  # places depend on the pitch, and statistics may have theirs
                tile = replace(tile, sizes=tuple(sizes))
            else:
                tile, _ = tile_of(self.space, self.program, sizes)
        whole, self.layout = self.layout, self.plan.layout(tile, self.layout)
        self._allocate(once=False)
        self._steps(self._starts(walked, outside, start), once=False)
        self.layout = whole

    def _share(self, parts: list[AlikeWork]) -> int:
        """Builds the parts, each block its share; neighbouring tiles of the first part are one
        block's, what is left goes round."""
        total = sum(part.count for part in parts)
        cores = min(total, self.target.cores)
        own, rest = divmod(parts[0].count, cores)
        if own:
            first = parts[0]
            self._loop(first, own, cores)
            left = AlikeWork(rest, lambda i: first.build(add(own * cores, i)))
            parts = [*([left] if rest else []), *parts[1:]]
        if parts:
            share_blocks(parts, replace(self.target, cores=cores), alone=not own)
        return total

    def _loop(self, part: AlikeWork, own: int, cores: int) -> None:
        """`own` neighbouring tiles of each of `cores` blocks."""
        first: IndexLike = 0
        if cores > 1:
            first = mul(block_index(self.target), own)
        if own == 1:
            part.build(first)
            self.ordered = self.schedule.chunks is None
            return
        with for_loop(0, own) as number:
            part.build(add(first, number))
        if self.schedule.chunks is None:
            self._unroll(number, own, len(self.program.steps))

    def _unroll(self, number: ir.Value, trips: int, steps: int) -> None:
        """Has the loop of a variable unrolled."""
        few = trips * max(1, steps) <= UNROLLED_STEPS
        unroll = trips if few else 2 * self.schedule.slots
        number.owner.owner.attributes["cce.unroll"] = as_attribute(unroll)

    def _allocate(self, once: bool) -> None:
        """Buffers of the values that are the same for all tiles, or of the others."""
        buffers, numbers = self.layout.buffers
        made: dict[int, ir.Value] = {}
        for number, buffer in enumerate(buffers):
            if buffer.once == once:
                moved = self.schedule.slots if buffer.moved else self.schedule.slots_held
                made[number] = tile_buffer(buffer, 0 if once else moved)
        if once:
            self.lasting = {v: made[number] for v, number in numbers.items() if number in made}
        else:
            self.buffers = made
