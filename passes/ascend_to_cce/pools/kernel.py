"""Builds the kernel of a group around one reduction over windows, see `schedule.pools.pool`.

for tile of this core:
  copy the rows of pixels that its windows reach to UB, what pads them written around
  combine rows, then columns
  the steps of the epilogue
  copy the tile of each output to GM
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import DTYPE_OF, TileStep, Value, joined
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.transfers import copy_rounded
from davinci.passes.ascend_to_cce.products.extras import repeat_row
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, fill_zeros
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import AlikeWork, share_blocks, unflatten, with_slots
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    divided,
    mul,
    op,
    restride,
    subview,
)
from davinci.schedule.graph import Graph
from davinci.schedule.pools.choice import choose
from davinci.schedule.pools.combining import Combination, columns_of, fills_of, lines_of
from davinci.schedule.pools.group import PoolGroup
from davinci.schedule.pools.pool import (
    Band,
    PoolSchedule,
    RowPhase,
    bands,
    came_pixels,
    line_pixels,
    padding,
    phases,
    tile_fractals,
    turn_pixels,
)
from davinci.schedule.products.extras import Extra
from davinci.schedule.products.rewrites import UNCHANGED
from davinci.units import BLOCK_BYTES, ceil_div, round_up, row_major
from davinci.units import FRACTAL_SIDE as SIDE


def build_pool(
    group: PoolGroup,
    graph: Graph,
    gm: dict[int, ir.Value],
    target: Target,
    given: PoolSchedule | None = None,
) -> tuple[PoolSchedule, int]:
    """The schedule of a group, and how many blocks can share its work.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
        given: the schedule, if it was chosen already.

    Raises:
        NoSpace: no tile fits.
    """
    schedule = given or choose(group.pool, target.machine, target.cores)
    return schedule, PoolKernel(group, schedule, gm, target).build()


class PoolKernel:
    """Builds the work on tiles."""

    def __init__(
        self, group: PoolGroup, schedule: PoolSchedule, gm: dict[int, ir.Value], target: Target
    ) -> None:
        self.pool, self.schedule, self.target = group.pool, schedule, target
        self.end, pool = group.pool.end, group.pool
        self.members = joined(group.members, self.end.program.taken)
        planes = pool.images * pool.blocks
        self.images = [self._every(gm[group.image], first) for first in self._firsts()]
        windows = pool.geometry.windows

        def whole(number: int, wide: int) -> ir.Value:
            shape = [planes * SIDE // wide, windows[0], windows[1] * wide]
            return restride(gm[number], shape, [pool.pixels * wide, windows[1] * wide, 1])

        outputs = [
            (value, number, self.end.lanes(value))
            for value, number in zip(self.end.program.outputs, group.outputs, strict=True)
        ]
        self.outputs = {value: whole(number, wide) for value, number, wide in outputs}
        self.paddings = {value: self._behind(gm[number], wide) for value, number, wide in outputs}
        self.extras: dict[Value, ir.Value] = {}
        for extra, number in zip(self.end.extras, group.extras, strict=True):
            of_rows = [pool.images if extra.batch else 1, pool.channels]
            self.extras[extra.value] = (
                restride(gm[number], of_rows, row_major(of_rows))
                if extra.row
                else whole(number, SIDE)
            )
        self.numbers = {}
        for value, filling in self.end.program.constants.items():
            with serving(*self.end.program.readers(value)):
                self.numbers[value] = self._number(value.dtype, filling)

    def _firsts(self) -> range:
        """First rows of the image of those that windows step to."""
        shape = self.pool.geometry
        return range(min(shape.strides[0], shape.image[0]))

    def _every(self, gm: ir.Value, first: int) -> ir.Value:
        """Every `strides[0]`th row of the images from row `first` on."""
        pool, (rows, columns) = self.pool, self.pool.geometry.image
        step, plane = pool.geometry.strides[0], round_up(rows * columns, SIDE) * SIDE
        shape = [pool.images * pool.blocks, ceil_div(rows - first, step), columns, SIDE]
        strides = [plane, step * columns * SIDE, SIDE, 1]
        return restride(gm, shape, strides, first * columns * SIDE)

    def _behind(self, gm: ir.Value, wide: int) -> ir.Value | None:
        """What pads the planes of an output, of so many channels; None if nothing does."""
        pool = self.pool
        windows = math.prod(pool.geometry.windows)
        if windows == pool.pixels:
            return None
        shape = [pool.images * pool.blocks * SIDE // wide, (pool.pixels - windows) * wide]
        return restride(gm, shape, [pool.pixels * wide, 1], windows * wide)

    def build(self) -> int:
        """Builds it at the insertion point; returns the pieces of work."""
        pool, parts = self.pool, []
        groups = [(0, pool.whole_blocks // self.schedule.planes, self.schedule.planes)]
        if pool.blocks > pool.whole_blocks:
            groups.append((pool.whole_blocks, 1, 1))
        for band in bands(pool.geometry, self.schedule.rows):
            parts += [self._part(band, *blocks) for blocks in groups if blocks[1]]
        return share_blocks(parts, self.target, unroll=2 * self.schedule.slots)

    def _part(self, band: Band, first: int, count: int, planes: int) -> AlikeWork:
        """The tiles of a band, of `count` times `planes` planes of each image from `first` on."""
        total = self.pool.images * count * band.count

        def build(index: IndexLike) -> None:
            image, block, number = unflatten(index, [self.pool.images, count, band.count])
            block = add(first, mul(block, planes))
            PoolTile(
                self, band, planes, image, block, add(band.first, mul(number, band.rows))
            ).build()

        return AlikeWork(total, build)

    def _number(self, dtype: str, number: float) -> ir.Value:
        """A repeat of a number."""
        buffer: ir.Value = alloc([self.end.row_elements(1, dtype)], element_type(dtype), "UB")
        cce.vector_dup(scalar(dtype, number), buffer)
        return buffer


class PoolTile:
    """The work on a tile.

    Args:
        planes: how many.
        image: its number.
        block: of channels, the first one.
        row: of windows, the first one.
    """

    def __init__(
        self,
        kernel: PoolKernel,
        band: Band,
        planes: int,
        image: IndexLike,
        block: IndexLike,
        row: IndexLike,
    ) -> None:
        self.kernel, self.pool, self.end = kernel, kernel.pool, kernel.end
        self.band, self.planes, self.image, self.block, self.row = band, planes, image, block, row
        self.plane = add(mul(image, self.pool.blocks), block)
        self.fractals, self.windows = tile_fractals(self.pool, band), self.pool.flat(band.rows)
        self.phases = phases(self.pool, band)
        # The last block of channels has a tile of its own where it is not whole.
        self.lanes = SIDE if isinstance(block, ir.Value) else self._lanes(block)

    def _lanes(self, block: int) -> int:
        return SIDE if block < self.pool.whole_blocks else self.pool.channels % SIDE

    def build(self) -> None:
        program = self.end.program
        with serving(*self.kernel.members):
            came = self._came()
        held = dict(self.kernel.numbers)
        for extra in self.end.extras:  # what they fill is filled while the image comes
            with serving(*program.readers(extra.value)):
                held[extra.value] = self._row(extra) if extra.row else self._whole(extra)
        with serving(*self.kernel.members):
            held[self.end.sums] = self._combined(came)
        made: dict[tuple[str, int], ir.Value] = {}
        for value, slot in self.end.slots().items():
            made.setdefault(slot, self._buffer(value.dtype, moved=False))
            held[value] = made[slot]
        for value in program.outputs:
            if value not in held:
                held[value] = self._buffer(value.dtype, moved=True)
        for step in program.steps:
            made_bytes = step.result in program.outputs and step.result in self.end.paired
            with serving(*step.members):
                if made_bytes and step.sources[0] != self.end.sums:
                    # Lanes of bytes are cleared before they are bytes.
                    self._clear(held[step.sources[0]], self.end.lanes(step.result))
                self._step(step, held)
        for value in program.outputs:
            with serving(*(program.makers(value) or self.kernel.members)):
                self._store(value, held[value])

    def _alloc(self, shape: Sequence[int], dtype: str, moved: bool) -> ir.Value:
        buffer = alloc([math.prod(shape)], element_type(dtype), "UB")
        return with_slots(buffer, self.kernel.schedule.slots if moved else 1)

    def _buffer(self, dtype: str, moved: bool) -> ir.Value:
        """For a value of the tile, [planes][fractals][16][16]."""
        return self._alloc([self.planes, self.fractals, FRACTAL], dtype, moved)

    def _came(self) -> ir.Value:
        """The pixels that windows reach and what pads them, [planes][phases][rows][pitch][16]."""
        pool = self.pool
        dtype = DTYPE_OF[pool.element]
        plane = came_pixels(pool, self.band) * SIDE
        buffer = self._alloc([self.planes, plane], dtype, moved=True)
        number = scalar(dtype, REDUCTIONS[pool.kind].start(pool.element))
        line = pool.pitch * SIDE
        for phase in self.phases.values():
            rows, begin = phase.rows - phase.above - phase.below, phase.begin * SIDE
            inside = begin + phase.above * line + pool.left * SIDE
            if rows <= 0:
                continue
            sizes = [self.planes, rows, pool.inner, SIDE]
            target = restride(buffer, sizes, [plane, line, SIDE, 1], inside)
            cce.copy(self._rows(phase, sizes), target)
        for fill in fills_of(pool, self.band):
            sizes = [self.planes, fill.rows, fill.size]
            cce.vector_dup(number, restride(buffer, sizes, [plane, line, 1], fill.begin))
        return buffer

    def _rows(self, phase: RowPhase, sizes: Sequence[int]) -> ir.Value:
        """The rows of a phase in GM."""
        shape = self.pool.geometry
        skipped, first = divmod(phase.first - shape.pads[0], shape.strides[0])
        row = add(add(self.row, skipped), phase.above)
        return subview(self.kernel.images[first], [self.plane, row, 0, 0], sizes)

    def _combined(self, came: ir.Value) -> ir.Value:
        """The windows of the tile, [planes][fractals][16][16], as the epilogue takes them."""
        pool, sums = self.pool, self.end.sums
        kind = pool.accumulator
        source = self._widened(came)
        if pool.geometry.kernel[0] > 1:
            source = self._lines(source)
        rounded = sums.dtype != kind
        made = self._buffer(kind, moved=not rounded and sums in self.end.program.outputs)
        self._combine(columns_of(pool, self.band, self.planes), source, made)
        wide = self.end.lanes(sums)
        self._clear(made, wide)
        if not rounded:
            return made
        leaves = self._buffer(sums.dtype, moved=sums in self.end.program.outputs)
        cce.vconv(made, leaves)
        return leaves

    def _lines(self, came: ir.Value) -> ir.Value:
        """The rows of windows combined, pixel by pixel."""
        size = line_pixels(self.pool, self.band) * SIDE
        lines = self._alloc([self.planes, size], self.pool.accumulator, moved=False)
        self._combine(lines_of(self.pool, self.band, self.planes), came, lines)
        return lines

    def _widened(self, came: ir.Value) -> ir.Value:
        """Pixels in the type in which they are combined."""
        kind, sizes = self.pool.accumulator, ir.MemRefType(came.type).shape
        if DTYPE_OF[self.pool.element] == kind:
            return came
        wide = self._alloc(sizes, kind, moved=False)
        plane = came_pixels(self.pool, self.band) * SIDE
        for phase in self.phases.values():
            sizes = [self.planes, (phase.rows * self.pool.pitch + self.pool.left) * SIDE]
            held = [restride(x, sizes, [plane, 1], phase.begin * SIDE) for x in (came, wide)]
            cce.vconv(*held)
        return wide

    def _combine(self, how: Combination, source: ir.Value, result: ir.Value) -> None:
        """Adds term by term: sums lie in two buffers by turns if there are two, the last one in
        `result`."""
        terms = [restride(source, how.sizes, how.source, start) for start in how.starts]
        made = restride(result, how.sizes, how.result)
        if len(terms) == 1:
            cce.vadds(terms[0], scalar(self.pool.accumulator, UNCHANGED), made)
            return
        turns = [made]
        if len(terms) > 2 and self.kernel.schedule.turns:
            turns += [restride(self._turn, how.sizes, how.result, how.turn_start(self.pool))]
        so_far = terms[0]
        for left, term in zip(reversed(range(len(terms) - 1)), terms[1:], strict=True):
            result = turns[left % len(turns)]
            op(f"cce.{REDUCTIONS[self.pool.kind].step}", [so_far, term, result])
            so_far = result

    @cached_property
    def _turn(self) -> ir.Value:
        """Where every other sum of more than two terms lies."""
        size = turn_pixels(self.pool, self.band) * SIDE
        return self._alloc([self.planes, size], self.pool.accumulator, moved=False)

    def _clear(self, buffer: ir.Value, wide: int) -> None:
        """Zeroes the pixels behind the last window, of planes of so many channels."""
        first, total = self.windows, self.fractals * SIDE
        if first < total:
            sizes = [self.planes * SIDE // wide, (total - first) * wide]
            fill_zeros(restride(buffer, sizes, [total * wide, 1], first * wide))

    def _row(self, extra: Extra) -> ir.Value:
        """The channels of the tile of a row, each block's repeated to fill a repeat."""
        dtype, count = extra.value.dtype, (self.planes - 1) * SIDE + self.lanes
        came = self._alloc([self.planes, SIDE], dtype, moved=True)
        if self.lanes < SIDE:
            fill_zeros(came)
        at = [self.image if extra.batch else 0, mul(self.block, SIDE)]
        row = subview(self.kernel.extras[extra.value], at, [1, count], drop=[0])
        copy_rounded(row, restride(came, [count], [1]), BLOCK_BYTES)
        lanes = self.end.row_elements(1, dtype)
        made = self._alloc([self.planes, lanes], dtype, moved=False)
        repeat_row(came, made, self.planes, lanes)
        return made

    def _whole(self, extra: Extra) -> ir.Value:
        """The tile of what has the shape of the result; ones where there are no windows."""
        buffer = self._buffer(extra.value.dtype, moved=True)
        gaps = self.pool.row > self.pool.geometry.windows[1] and self.band.rows > 1
        if gaps or self.windows < self.fractals * SIDE:
            cce.vector_dup(scalar(extra.value.dtype, 1.0), buffer)
        source, target = self._places(self.kernel.extras[extra.value], buffer, SIDE)
        cce.copy(source, target)
        return buffer

    def _places(self, gm: ir.Value, buffer: ir.Value, wide: int) -> tuple[ir.Value, ir.Value]:
        """The tile of an array of the shape of the result in GM and in UB, whose fractals have so
        many channels."""
        planes, windows = self.planes * SIDE // wide, self.pool.geometry.windows[1]
        sizes = [planes, self.band.rows, windows * wide]
        plane = divided(self.plane, wide // SIDE)
        return (
            subview(gm, [plane, self.row, 0], sizes),
            restride(buffer, sizes, [self.fractals * SIDE * wide, self.pool.row * wide, 1]),
        )

    def _step(self, step: TileStep, held: dict[Value, ir.Value]) -> None:
        """One operation of the epilogue."""
        shape, strides = self.end.operands(step, self.planes, self.fractals)
        operands: list[ir.Value] = [
            restride(held[value], shape, steps)
            for value, steps in zip(step.operands, strides, strict=True)
        ]
        if step.scalar is not None:
            operands.insert(-1, scalar(step.result.dtype, step.scalar))
        op(f"cce.{step.name}", operands, **step.attributes)

    def _store(self, value: Value, buffer: ir.Value) -> None:
        """An output; what pads it, which the steps may have changed, is zero."""
        wide = self.end.lanes(value)
        if self.end.program.steps and value not in self.end.paired:
            self._clear(buffer, wide)
            if self.lanes < SIDE:
                rows = restride(buffer, [self.planes * self.fractals * SIDE, SIDE], [SIDE, 1])
                fill_lanes(value.dtype, rows, self.lanes, SIDE, 0.0)
        target, source = self._places(self.kernel.outputs[value], buffer, wide)
        cce.copy(source, target)
        behind = self.kernel.paddings[value]
        if behind is None or not self.band.last:
            return
        sizes = [self.planes * SIDE // wide, padding(self.pool, self.band) * wide]
        zeros = restride(buffer, sizes, [self.fractals * SIDE * wide, 1], self.windows * wide)
        plane = divided(self.plane, wide // SIDE)
        cce.copy(zeros, subview(behind, [plane, 0], sizes))
