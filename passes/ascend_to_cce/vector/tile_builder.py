"""Tiles of a group on the vector unit: what moves to UB and back, and the steps of the program.

What goes over the tiles is built on this: `group`, `phased_group` and `chunked_group`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import ir
from davinci.operators.vector_program import JOIN, TileStep, Value, joined
from davinci.passes.ascend_to_cce.moves.packed_runs import load_run, store_run
from davinci.passes.ascend_to_cce.moves.transfers import copy_rounded
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import with_slots
from davinci.passes.ascend_to_cce.vector.fold_axes import fold_axis
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import (
    array,
    build_steps,
    build_table,
    fill_lanes,
    scratch_buffers,
)
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    mul,
    offset_of,
    op,
    reshaped,
    restride,
    subview,
    viewed,
)
from davinci.schedule.moves.word_halves import HALVES
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.row_statistics import neutral
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.steps import RESULT, SOURCE, BufferSteps, View, copy_of, copying
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.schedule.vector.tile_program import EXPAND, MOVED, REDUCE
from davinci.units import BLOCK_BYTES, round_up, row_major

WORDS = {"s64": "s32", "s8": "s16", "u8": "s16"}
"""Element types that the vector unit cannot fill buffers with, and as what it can."""


class TileBuilder:
    """Builds the work on a tile.

    Attributes:
        layout: of the tile that is built.
        buffers: of the values of a tile, by their number in its layout.
        lasting: those of values that all tiles read, whatever their layouts number them.
        ragged: lanes of its rows behind their last whole block.
        ordered: whether the kernel lies in a straight line.
    """

    def __init__(self, plan: VectorPlan, arguments: Sequence[ir.Value]) -> None:
        self.plan = plan
        self.program, self.space = plan.program, plan.space
        self.schedule: Any = plan.schedule
        self.lane = len(self.space.axes) - 1
        numbers = [*plan.graph.inputs, *plan.graph.outputs]
        self.arrays = {n: self._array(a, n) for a, n in zip(arguments, numbers, strict=True)}
        self.layout = plan.layout(plan.schedule.tile)
        self.block = self.program.row_block
        self.buffers: dict[int, ir.Value] = {}
        self.lasting: dict[Value, ir.Value] = {}
        self.ordered = False
        self.ragged = plan.schedule.ragged

    def _array(self, argument: ir.Value, number: int) -> ir.Value:
        """A GM buffer as an array of the axes of its value, in the order of the space."""
        axes, strides = self.space.of(number), self.space.strides(number)
        sizes = [self.space.axes[axis].size for axis in axes]
        window = self.plan.graph.windows.get(number)
        offset = offset_of(argument) + (window.offset if window else 0)
        return restride(argument, sizes, [strides[axis] for axis in axes], offset)

    def _held(self, value: Value) -> ir.Value:
        """The buffer of a value, as an array of its type."""
        held, element = self.lasting.get(value), element_type(value.dtype)
        if held is None:
            held = self.buffers[self.layout.buffers[1][value]]
        kind = ir.MemRefType(held.type)
        if kind.element_type == element:
            return held
        return viewed(held.owner.operands[0], kind.shape, element)

    def _starts(
        self, walked: Sequence[int], outside: Sequence[IndexLike], start: IndexLike
    ) -> list[IndexLike]:
        """Where a tile begins along each axis.

        Args:
            outside: along the axes `walked`.
            start: along the axis that is cut.
        """
        found: list[IndexLike] = [0] * len(self.space.axes)
        for axis, index in zip(walked, outside, strict=True):
            found[axis] = index
        found[self.schedule.cut] = start
        return found

    def _write_constants(self) -> None:
        for value, number in self.program.constants.items():
            with serving(*self.program.readers(value)):
                self._fill_constant(value, number)

    def _fill_constant(self, value: Value, number: float) -> None:
        """Fills a constant, of bytes as words of two."""
        buffer = self._held(value)
        if DTYPES[value.dtype].itemsize > 1:
            cce.vector_dup(scalar(value.dtype, number), buffer)
            return
        raw = buffer.owner.operands[0]
        pair = np.full(2, number, DTYPES[value.dtype]).view(np.int16)[0]
        words = viewed(raw, [ir.MemRefType(raw.type).shape[0] // 2], element_type("s16"))
        cce.vector_dup(scalar("s16", int(pair)), words)

    def _steps(self, starts: Sequence[IndexLike], once: bool) -> None:
        """Loads, computes and stores the values that are the same for all tiles, or the others."""
        self._loads(starts, once)
        self._results(starts, once)

    def _loads(self, starts: Sequence[IndexLike], once: bool) -> None:
        """Loads the values that are the same for all tiles, or the others."""
        for number in self.plan.graph.inputs:
            if self.layout.once(self.program.loads[number]) == once:
                self._load(number, starts)

    def _results(self, starts: Sequence[IndexLike], once: bool) -> None:
        """Computes and stores the values that are the same for all tiles, or the others, of what is
        loaded."""
        program, layout = self.program, self.layout
        for step in program.steps:
            if layout.once(step.result) == once:
                self._step(step, once)
        for number in self.plan.graph.outputs:
            if layout.once(program.stores[number]) == once:
                self._store(number, starts)

    def _load(self, number: int, starts: Sequence[IndexLike]) -> None:
        """Copies the tile of an input to UB."""
        value = self.program.loads[number]
        row = self.layout.beside.get(value, (value,))
        with serving(*joined(*map(self.program.readers, row))):
            self._load_tile(number, starts)

    def _load_tile(self, number: int, starts: Sequence[IndexLike]) -> None:
        value = self.program.loads[number]
        if value in self.layout.beside:
            self._move_beside(number, value, starts, load=True)
            return
        if value not in self.layout.tables:
            self._move(number, value, starts, load=True)
            return
        shape = self.layout.shape(value)
        rows = restride(self._held(value), [math.prod(shape[:-1]), shape[-1]], [shape[-1], 1])
        moved = self.layout.comes_from_l1(value)
        build_table(value.dtype, self.arrays[number], rows, moved)

    def _store(self, number: int, starts: Sequence[IndexLike]) -> None:
        """Copies the tile of an output to GM."""
        value = self.program.stores[number]
        row = self.layout.beside.get(value, (value,))
        with serving(*joined(*map(self.program.makers, row))):
            if value in self.layout.beside:
                self._move_beside(number, value, starts, load=False)
            else:
                self._move(number, value, starts, load=False)

    def _move_beside(
        self, number: int, value: Value, starts: Sequence[IndexLike], load: bool
    ) -> None:
        """Copies the tiles of values that lie beside each other, all with the first of them."""
        row = self.layout.beside[value]
        if value != row[0]:
            return
        array = self.arrays[number]
        strides, offset = ir.MemRefType(array.type).get_strides_and_offset()
        *outer, lanes = array.type.shape
        gm = restride(array, [*outer, lanes * len(row)], strides, offset)
        sizes = self.layout.held_shape(value)
        ub = restride(self._held(value), sizes, row_major(sizes))
        gm = subview(gm, [starts[axis] for axis in self.space.of(number)], sizes)
        op("cce.copy", [gm, ub] if load else [ub, gm])

    def _move(self, number: int, value: Value, starts: Sequence[IndexLike], load: bool) -> None:
        if value in self.program.packed:
            self._move_packed(number, value, starts, load)
            return
        if value in self.program.turned:
            self._move_turned(number, value, starts, load)
            return
        axes, tile, array = self.space.of(number), self.layout.tile, self.arrays[number]
        sizes = [tile.sizes[axis] for axis in axes]
        first = [starts[axis] for axis in axes]
        width, held = sizes[-1], self._held(value)
        block, ragged = block_lanes(value.dtype), self.ragged
        pieces = [(0, 0, width)]
        if ragged:
            pieces = [(0, 0, width - ragged), (width - self.block, width - ragged, self.block)]
        if load:
            self._fill(held, value.dtype, pieces[-1][1] + round_up(pieces[-1][2], block))
        rows = [0] * (len(sizes) - 1)
        for gm_lane, ub_lane, count in pieces if load else reversed(pieces):
            gm = subview(array, [*first[:-1], add(first[-1], gm_lane)], [*sizes[:-1], count])
            ub = subview(held, [*rows, ub_lane], [*sizes[:-1], count])
            if count % block:
                zeros, drop = [0] * len(sizes), range(len(rows))
                gm, ub = (subview(v, zeros, [*sizes[:-1], count], drop=drop) for v in (gm, ub))
                copy_rounded(*((gm, ub) if load else (ub, gm)), BLOCK_BYTES)
            else:
                op("cce.copy", [gm, ub] if load else [ub, gm])

    def _move_packed(
        self, number: int, value: Value, starts: Sequence[IndexLike], load: bool
    ) -> None:
        """Copies the tile of a statistic, whose elements follow each other in GM."""
        axes, strides = self.space.of(number), self.space.strides(number)
        start: IndexLike = 0
        for axis in axes:
            start = add(start, mul(starts[axis], strides[axis]))
        total = math.prod(self.space.axes[axis].size for axis in axes)
        move = load_run if load else store_run
        array = self.arrays[number]
        run = restride(array, [total], [1], offset_of(array))
        move(run, start, self.layout.run(axes), self._held(value), self.layout)

    def _move_turned(
        self, number: int, value: Value, starts: Sequence[IndexLike], load: bool
    ) -> None:
        """Copies the tile of a value with axes inside its lanes: a run for each of the places along
        the axes outside."""
        order, strides = self.space.order[number], self.space.strides(number)
        outside = [axis for axis in order if axis != self.lane and axis not in self.space.inside]
        total = math.prod(self.space.axes[axis].size for axis in order if axis not in outside)
        sizes = [*(self.space.axes[axis].size for axis in outside), total]
        array, steps = self.arrays[number], [*(strides[axis] for axis in outside), 1]
        runs = restride(array, sizes, steps, offset_of(array))
        first = [*(starts[axis] for axis in outside), mul(starts[self.lane], strides[self.lane])]
        gm = subview(runs, first, self.layout.shape(value))
        op("cce.copy", [gm, self._held(value)] if load else [self._held(value), gm])

    def _fill(self, held: ir.Value, dtype: str, first: int) -> None:
        """Writes the lanes of rows behind what is loaded, which are computed on too."""
        *outer, pitch = held.type.shape
        if first == pitch:
            return
        if dtype in WORDS:
            word = WORDS[dtype]
            first, pitch = (
                n * DTYPES[dtype].itemsize // DTYPES[word].itemsize for n in (first, pitch)
            )
            held = viewed(held.owner.operands[0], (*outer, pitch), element_type(word))
            dtype = word
        rows = restride(held, [math.prod(outer), pitch], [pitch, 1])
        fill_lanes(dtype, rows, first, pitch, 0)

    def _step(self, step: TileStep, once: bool) -> None:
        siblings = self.program.together.get(step.result, ())
        with serving(*joined(step.members, *map(self.program.makers, siblings))):
            self._build_step(step, once)

    def _build_step(self, step: TileStep, once: bool) -> None:
        if step.name == REDUCE:
            self._reduce(step, once)
        elif step.name in MOVED:
            names = HALVES if step.name == JOIN else (SOURCE,)
            buffers = dict(zip(names, map(self._held, step.sources), strict=True))
            buffers[RESULT] = self._held(step.result)
            work = self.layout.moving(step)
            build_steps(work, self._scratch(work, once) | buffers)
        else:
            self._elementwise(step)

    def _scratch(self, work: Any, once: bool) -> dict[str, Any]:
        found = scratch_buffers(work)
        if not once:
            for buffer in found.values():
                with_slots(buffer, self.schedule.slots_held)
        return found

    def _elementwise(self, step: TileStep) -> None:
        values = step.operands
        width = self.layout.width(step)
        if not width:
            return  # done with another, or nothing to do
        operands = self._views(values, width)
        dtype = step.result.dtype
        if step.name == EXPAND:
            source, result = operands
            name, number = copying(dtype)
            other = source if number is None else scalar(dtype, number)
            op(f"cce.{name}", [source, other, result])
            return
        if step.scalar is not None:
            operands.insert(-1, scalar(dtype, step.scalar))
        op(f"cce.{step.name}", operands, **step.attributes)

    def _views(self, values: Sequence[Value], width: int) -> list[ir.Value]:
        """The values as arrays of one shape: flat where all have the same axes, else with strides
        of 0 along those that they lack.

        Args:
            width: parts of rows that lie beside each other, all of which are meant.
        """
        layout = self.layout
        shapes = [layout.shape(value) for value in values]
        form = layout.form(values[-1])
        if values[-1] in self.program.packed:
            return self._packed_views(values, shapes[-1][0])
        if all(layout.form(value) == form for value in values):
            if form is not None and self.lane not in form:
                return self._statistics(values)
            if width == 1 and any(value in layout.beside for value in values):
                rows = [math.prod(shapes[-1][:-1]), shapes[-1][-1]]
                return [self._view(v, rows, [layout.held_shape(v)[-1], 1]) for v in values]
            held = [self._held(value) for value in values]
            return [restride(b, [width * math.prod(shapes[-1])], [1]) for b in held]
        assert form is not None, "a result has axes wherever a source has other ones"
        placed = [value for value in values if value in layout.placed]
        if placed:
            return self._placed_views(values, placed[0], width)
        block = block_lanes(values[-1].dtype)
        whole = shapes[-1]
        shape = [*whole[:-1], width * whole[-1] // block, block]
        return [self._view(v, shape, layout.strides(v, form)) for v in values]

    def _view(self, value: Value, shape: Sequence[int], strides: Sequence[int]) -> ir.Value:
        """A value as an array of other strides; what lies beside others begins inside a buffer."""
        return restride(self._held(value), shape, strides, self.layout.held_offset(value))

    def _statistics(self, values: Sequence[Value]) -> list[ir.Value]:
        """Statistics in a block a row. Where the result has more lanes than a source, those behind
        are written beforehand: they hold nothing, but are read."""
        counts = [block_lanes(value.dtype) for value in values]
        rows, lanes = math.prod(self.layout.shape(values[-1])[:-1]), min(counts)
        if lanes < counts[-1]:
            cce.vector_dup(scalar(values[-1].dtype, 0), self._held(values[-1]))
        held = [self._held(value) for value in values]
        return [restride(b, [rows, lanes], [n, 1]) for b, n in zip(held, counts, strict=True)]

    def _packed_views(self, values: Sequence[Value], size: int) -> list[ir.Value]:
        """Packed values and constants, as blocks of `size` elements in all."""
        held = [self._held(value) for value in values]
        if all(value in self.program.packed for value in values):
            return held
        block = block_lanes(values[-1].dtype)
        return [
            restride(b, [size // block, block], [block if v in self.program.packed else 0, 1])
            for b, v in zip(held, values, strict=True)
        ]

    def _placed_views(self, values: Sequence[Value], first: Value, width: int) -> list[ir.Value]:
        """Rows and statistics as arrays of one shape, see `row_places`; `width` as of `_views`."""
        layout = self.layout
        form = self.program.forms[first]
        assert form is not None, "a result has axes wherever a source has other ones"
        places = layout.places(form, first.dtype)
        blocks = width * layout.tile.pitch // block_lanes(first.dtype)
        whole = layout.form(values[-1])
        assert whole is not None, "a result has axes wherever a source has other ones"
        slices = layout.slices(form, whole)
        rows, statistic = places.operands(blocks, first.dtype, RESULT, SOURCE, slices)
        lane = self.plan.program.lane
        found = []
        for value in values:
            own = layout.form(value)
            if value in layout.placed:
                assert own == form, "statistics of a step are of one form, see TileProgram.expand"
                view = statistic
            elif own is None:
                view = replace(rows, buffer=SOURCE, strides=(0,) * (len(rows.shape) - 1) + (1,))
            elif own == (lane,):
                strides, offset = (0, 0, 0, *rows.strides[3:]), layout.held_offset(value)
                view = replace(rows, buffer=SOURCE, strides=strides, offset=offset)
            else:
                parts = layout.held_shape(value)[-1] // layout.tile.pitch
                outer = (stride * parts // width for stride in rows.strides[:3])
                strides = (*outer, *rows.strides[3:])
                view = replace(rows, strides=strides, offset=layout.held_offset(value))
            found.append(array({view.buffer: self._held(value)}, view))
        return found

    def _reduce(self, step: TileStep, once: bool) -> None:
        """Folds the outer axes in halves, then the lanes of rows."""
        (source,) = step.sources
        kind, fold = str(step.attributes["kind"]), self.layout.fold(step)
        held, shape = self._held(source), list(self.layout.shape(source))
        for number, axis in enumerate(fold.axes):
            shape[axis] = 1
            if number == len(fold.axes) - 1 and fold.lanes is None:
                to = reshaped(self._held(step.result), shape)
            else:
                to = alloc(shape, element_type(source.dtype), "UB")
                to = to if once else with_slots(to, self.schedule.slots_held)
            fold_axis(kind, held, to, axis, self.schedule.slots_held if not once else 0)
            held = to
        if fold.lanes is None:
            if not fold.axes:  # one element of each is all there is in a chunk
                size = math.prod(shape)
                old, new = (View(name, (size,), (1,)) for name in (SOURCE, RESULT))
                copy = BufferSteps(source.dtype, (copy_of(old, new, source.dtype),), {})
                build_steps(copy, {SOURCE: held, RESULT: self._held(step.result)})
            return
        work = fold.lanes.work
        pitch = shape[-1]
        rows = restride(held, [math.prod(shape[:-1]), pitch], [pitch, 1])
        for first, last in self._void(pitch):
            fill_lanes(source.dtype, rows, first, last, neutral(kind, source.dtype))
        buffers = {SOURCE: held, RESULT: self._held(step.result)}
        build_steps(work, self._scratch(work, once) | buffers)

    def _begin(self, step: TileStep, buffer: ir.Value) -> None:
        """Fills what a reduction gathers its pieces in with what changes no result."""
        dtype = step.result.dtype
        with serving(*step.members):
            cce.vector_dup(scalar(dtype, neutral(str(step.attributes["kind"]), dtype)), buffer)

    def _void(self, pitch: int) -> list[tuple[int, int]]:
        """Lanes of rows, first and behind the last, that repeat others or hold nothing."""
        width, ragged = self.layout.tile.sizes[-1], self.ragged
        end = width - ragged + self.block if ragged else width
        lanes = [(width - ragged, end - ragged), (end, pitch)]
        return [(first, last) for first, last in lanes if first < last]


def tile_buffer(buffer: TileBuffer, slots: int) -> ir.Value:
    """A buffer in UB, of which `multi-buffer` makes `slots`; 0 or 1: one for all tiles."""
    element = element_type(buffer.dtype)
    if buffer.dtype not in WORDS and not buffer.seen:
        return with_slots(alloc(buffer.shape, element, "UB"), slots)
    # Only bytes can be seen as words, too, of which there are whole ones.
    size = round_up(math.prod(buffer.shape) * DTYPES[buffer.dtype].itemsize, DTYPES["s16"].itemsize)
    raw = alloc([size], element_type("s8"), "UB")
    return viewed(with_slots(raw, slots), buffer.shape, element)
