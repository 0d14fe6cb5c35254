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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from davinci.operators.vector_program import Step, Value
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.fold_axes import fold_axis
from davinci.passes.ascend_to_cce.moves import copy_rounded
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks, unflatten
from davinci.passes.ascend_to_cce.vector_program import element_type, scalar
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_attribute,
    for_loop,
    mul,
    op,
    reshaped,
    restride,
    row_major,
    subview,
)
from davinci.schedule.tile_program import (
    EXPAND,
    REDUCE,
    Form,
    Tile,
    block_lanes,
    is_invariant,
)
from davinci.schedule.vector_schedule import Plan, Run
from davinci.units import BLOCK_BYTES

UNROLLED_STEPS = 512
"""Steps up to which all tiles of a core are written out, so that they can be interleaved."""


@dataclass(frozen=True)
class Place:
    """Where a tile lies: its first element along each axis."""

    starts: tuple[IndexLike, ...]
    tile: Tile


def build_vector_group(plan: Plan, arguments: Sequence[Any], target: Target) -> int:
    """Builds the kernel at the insertion point; returns the blocks it takes.

    Args:
        arguments: GM buffers of the group's inputs, then of its outputs.
    """
    return _Builder(plan, arguments, target).build()


class _Builder:
    """Builds one kernel."""

    def __init__(self, plan: Plan, arguments: Sequence[Any], target: Target) -> None:
        self.plan, self.target = plan, target
        self.program, self.space, self.schedule = plan.program, plan.space, plan.schedule
        self.lane = len(self.space.axes) - 1
        numbers = [*plan.graph.inputs, *plan.graph.outputs]
        self.gm = [self._array(a, n) for a, n in zip(arguments, numbers, strict=True)]
        self.assigned = plan.buffers
        self.looped = plan.looped
        self.block = max(block_lanes(v.dtype) for v in self._moved())
        self.once: dict[int, Any] = {}
        self.buffers: dict[int, Any] = {}

    def _moved(self) -> list[Value]:
        return [*self.program.loads.values(), *self.program.stores.values()]

    def _array(self, argument: Any, number: int) -> Any:
        """A GM buffer as an array of the axes of its value, in the order of the space."""
        axes, strides = self.space.of(number), self.space.strides(number)
        sizes = [self.space.axes[axis].size for axis in axes]
        return restride(argument, sizes, [strides[axis] for axis in axes])

    def build(self) -> int:
        tile = self.schedule.tile
        everywhere = Place((0,) * len(self.space.axes), tile)
        self._allocate(tile, once=True)
        for (dtype, number), value in self.program.constants.items():
            op("cce.vector_dup", [scalar(dtype, number), self._held(value)])
        self._steps(everywhere, once=True)
        walked = [
            i
            for i, axis in enumerate(self.space.axes)
            if i < self.schedule.cut and tile.sizes[i] < axis.size
        ]
        parts = [self._part(run, walked) for run in self.schedule.runs]
        if self.schedule.overlap:
            parts = self._joined(walked)
        return self._share(parts)

    def _part(self, run: Run, walked: list[int]) -> Part:
        sizes = [self.space.axes[i].size for i in walked]

        def build(index: IndexLike) -> None:
            *outside, place = unflatten(index, [*sizes, run.count])
            self._tile(walked, outside, add(run.first, mul(place, run.size)), run.size)

        return Part(math.prod(sizes) * run.count, build)

    def _joined(self, walked: list[int]) -> list[Part]:
        """The parts where the last tile overlaps the one before: both are one unit of work."""
        full, last = self.schedule.runs
        sizes = [self.space.axes[i].size for i in walked]

        def build(index: IndexLike) -> None:
            outside = unflatten(index, sizes) if sizes else []
            self._tile(walked, outside, (full.count - 1) * full.size, full.size)
            self._tile(walked, outside, last.first, last.size)

        parts = [Part(math.prod(sizes), build)]
        if full.count > 1:
            parts.insert(0, self._part(replace(full, count=full.count - 1), walked))
        return parts

    def _tile(
        self, walked: list[int], outside: Sequence[IndexLike], start: IndexLike, size: int
    ) -> None:
        starts: list[IndexLike] = [0] * len(self.space.axes)
        for axis, index in zip(walked, outside, strict=True):
            starts[axis] = index
        starts[self.schedule.cut] = start
        tile = self.schedule.tile
        if size != tile.sizes[self.schedule.cut]:
            sizes = list(tile.sizes)
            sizes[self.schedule.cut] = size
            pitch = tile.pitch
            if self.schedule.cut == self.lane:
                pitch = math.ceil(size / self.block) * self.block
            tile = Tile(tuple(sizes), pitch)
        self._allocate(tile, once=False)
        self._steps(Place(tuple(starts), tile), once=False)

    def _share(self, parts: list[Part]) -> int:
        """Builds the parts, each block its share; neighbouring tiles of the first part are one
        block's, what is left goes round."""
        total = sum(part.count for part in parts)
        cores = min(total, self.target.cores)
        own, rest = divmod(parts[0].count, cores)
        if own:
            first = parts[0]
            self._loop(first, own, cores)
            left = Part(rest, lambda i: first.build(add(own * cores, i)))
            parts = [*([left] if rest else []), *parts[1:]]
        if parts:
            share_blocks(parts, replace(self.target, cores=cores))
        return total

    def _loop(self, part: Part, own: int, cores: int) -> None:
        """`own` neighbouring tiles of each of `cores` blocks."""
        first: IndexLike = 0
        if cores > 1:
            index = op("cce.get_block_idx", [], [_index()]).result
            first = mul(index, own)
        if own == 1:
            part.build(first)
            return
        steps = max(1, len(self.program.steps))
        unroll = own if own * steps <= UNROLLED_STEPS else 2 * self.schedule.slots
        with for_loop(0, own) as number:
            part.build(add(first, number))
            loop = number.owner.owner
        loop.attributes["cce.unroll"] = as_attribute(unroll)

    def _allocate(self, tile: Tile, once: bool) -> None:
        """Buffers of the values that are the same for all tiles, or of the others."""
        for number, (dtype, form, invariant) in enumerate(self.assigned.kinds):
            if invariant != once:
                continue
            buffer = alloc(tile.shape(dtype, form), element_type(dtype), "UB")
            if not once:
                buffer.owner.attributes["cce.slots"] = as_attribute(self.schedule.slots)
            self.buffers[number] = buffer

    def _held(self, value: Value) -> Any:
        return self.buffers[self.assigned.of[value]]

    def _steps(self, place: Place, once: bool) -> None:
        """Loads, computes and stores the values that are the same for all tiles, or the others."""

        def now(value: Value) -> bool:
            return is_invariant(self.program.forms[value], self.looped) == once

        graph = self.plan.graph
        for array, number in zip(self.gm, graph.inputs, strict=False):
            if now(self.program.loads[number]):
                self._move(array, number, self.program.loads[number], place, load=True)
        for step in self.program.steps:
            if now(step.result):
                self._step(step, place.tile)
        for array, number in zip(self.gm[len(graph.inputs) :], graph.outputs, strict=True):
            if now(self.program.stores[number]):
                self._move(array, number, self.program.stores[number], place, load=False)

    def _move(self, array: Any, number: int, value: Value, place: Place, load: bool) -> None:
        """Copies the tile of a value between GM and UB."""
        axes, tile = self.space.of(number), place.tile
        sizes = [tile.sizes[axis] for axis in axes]
        starts = [place.starts[axis] for axis in axes]
        width, held = sizes[-1], self._held(value)
        lanes = block_lanes(value.dtype)
        ragged = self.schedule.ragged
        pieces = [(0, 0, width)]
        if ragged:
            pieces = [(0, 0, width - ragged), (width - self.block, width - ragged, self.block)]
        if load:
            written = pieces[-1][1] + math.ceil(pieces[-1][2] / lanes) * lanes
            self._fill(held, value.dtype, written, tile.pitch)
        for gm_lane, ub_lane, count in pieces if load else reversed(pieces):
            at = [*starts[:-1], add(starts[-1], gm_lane)]
            gm = subview(array, at, [*sizes[:-1], count])
            ub = subview(held, [*[0] * (len(sizes) - 1), ub_lane], [*sizes[:-1], count])
            if count % lanes:
                one = [0] * (len(sizes) - 1)
                gm, ub = (
                    subview(v, [0] * len(sizes), [*sizes[:-1], count], drop=range(len(one)))
                    for v in (gm, ub)
                )
                copy_rounded(*((gm, ub) if load else (ub, gm)), BLOCK_BYTES)
            else:
                op("cce.copy", [gm, ub] if load else [ub, gm])

    def _fill(self, held: Any, dtype: str, first: int, pitch: int) -> None:
        """Writes the lanes of rows behind what is loaded, which are computed on too."""
        if first < pitch and dtype in ("f16", "f32", "s32", "s16"):
            shape = list(held.type.shape)
            lanes = subview(held, [*[0] * (len(shape) - 1), first], [*shape[:-1], pitch - first])
            op("cce.vector_dup", [scalar(dtype, 0), lanes])

    def _step(self, step: Step, tile: Tile) -> None:
        if step.name == REDUCE:
            self._reduce(step, tile)
            return
        views = self._views([*step.sources, step.result], self.program.forms[step.result], tile)
        if step.name == EXPAND:
            self._expand(step.result.dtype, *views)
            return
        if step.scalar is not None:
            views.insert(-1, scalar(step.result.dtype, step.scalar))
        op(f"cce.{step.name}", views, **step.attributes)

    def _expand(self, dtype: str, source: Any, result: Any) -> None:
        if dtype in ("f16", "f32"):
            op("cce.vmuls", [source, scalar(dtype, 1.0), result])
        else:
            op("cce.vmax", [source, source, result])

    def _views(self, values: Sequence[Value], form: Form, tile: Tile) -> list[Any]:
        """The values as arrays of one shape: flat where all have the axes `form`, else with
        strides of 0 along those that they lack."""
        forms = [self.program.forms[value] for value in values]
        if all(f == form for f in forms):
            held = [self._held(value) for value in values]
            return [restride(b, [_count(b)], [1]) for b in held]
        assert form is not None
        block = block_lanes(values[-1].dtype)
        whole = tile.shape(values[-1].dtype, form)
        shape = [*whole[:-1], whole[-1] // block, block]
        return [
            restride(self._held(value), shape, self._strides(value, f, form, tile))
            for value, f in zip(values, forms, strict=True)
        ]

    def _strides(self, value: Value, own: Form, form: Form, tile: Tile) -> list[int]:
        """Strides of a value along the axes of `form`, the innermost in blocks and lanes."""
        assert form is not None
        outer = [axis for axis in form if axis != self.lane]
        if own is None:
            return [0] * (len(outer) + 1) + [1]
        block = block_lanes(value.dtype)
        shape = tile.shape(value.dtype, own)
        strides = row_major(shape)
        mine = dict(zip((a for a in own if a != self.lane), strides, strict=False))
        return [*(mine.get(axis, 0) for axis in outer), block if self.lane in own else 0, 1]

    def _reduce(self, step: Step, tile: Tile) -> None:
        """Folds the outer axes in halves, then the lanes of rows."""
        (source,) = step.sources
        form, result = self.program.forms[source], self.program.forms[step.result]
        assert form is not None and result is not None
        kind = str(step.attributes["kind"])
        held = self._held(source)
        shape = list(tile.shape(source.dtype, form))
        gone = [i for i, axis in enumerate(form) if axis not in result and axis != self.lane]
        lanes = self.lane not in result
        for number, i in enumerate(gone):
            shape[i] = 1
            last = number == len(gone) - 1 and not lanes
            to = (
                reshaped(self._held(step.result), shape)
                if last
                else alloc(shape, element_type(source.dtype), "UB")
            )
            fold_axis(kind, held, to, i)
            held = to
        if lanes:
            self._reduce_lanes(kind, held, self._held(step.result), tile)

    def _reduce_lanes(self, kind: str, source: Any, result: Any, tile: Tile) -> None:
        raise NotImplementedError


def _count(buffer: Any) -> int:
    return math.prod(buffer.type.shape)


def _index() -> Any:
    from davinci.mlir import ir

    return ir.IndexType.get()


Build = Callable[[IndexLike], None]
