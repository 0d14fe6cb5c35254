"""Builds transfers between strided places of GM through UB, see `schedule.moves.transfers`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import buffer_of
from davinci.element_types import dtype_of
from davinci.isa.strides import SharedDim
from davinci.mlir import NumberType, arith, ir, memref
from davinci.passes.ascend_to_cce.tiles import AlikeWork, portion_parts, unflatten, with_slots
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    for_loop,
    mul,
    op,
    restride,
    subview,
    viewed,
)
from davinci.schedule.graph import Scalar
from davinci.schedule.moves.transfers import Runs, Scalars, Small, Transfer
from davinci.units import BLOCK_BYTES, round_up

Arrays = dict[int, ir.Value]
"""Buffers in GM by the numbers of values."""

WORD_LANES = 8
"""Words of 32 bits of a block."""


def element_of(buffer: ir.Value) -> NumberType:
    return ir.MemRefType(buffer.type).element_type


class RunsBuilder:
    """Builds a transfer by runs.

    Args:
        looped: whether tiles of a block follow each other, and take turns on several buffers.
    """

    def __init__(self, way: Runs, arrays: Arrays, result: ir.Value, looped: bool = False) -> None:
        self.way, self.transfer = way, way.transfer
        run = [way.transfer.run]
        dims = way.transfer.outer
        sizes = [d.size for d in dims] + run
        self.views: list[ir.Value | None] = [
            None,
            restride(result, sizes, [*strides(dims, 1), 1], self.transfer.place),
        ]
        if not self.transfer.filled:
            source = arrays[self.transfer.array]
            view = restride(source, sizes, [*strides(dims, 0), 1], self.transfer.offset)
            self.views[0] = view
        self.element, self.slots = element_of(result), way.slots if looped else 1
        self.buffers: list[ir.Value] = []
        if self.transfer.filled:
            number = number_in(self.transfer, arrays, self.element)
            self.buffers = [filled(shape, self.element, number) for shape in self._shapes()]
        elif self.slots == 1:
            self.buffers = self._moved()

    def _shapes(self) -> list[list[int]]:
        """Shapes of the buffers: one for whole blocks, and one for a last block that is not
        whole."""
        way = self.way
        if way.portions is not None:
            last = [[way.block]] if way.portions.tail % way.block else []
            return [[round_up(way.portions.largest, way.block)], *last]
        inner = way.sizes[way.level + 1 :]
        return [[way.chunk, *inner, count] for _, count in way.pieces]

    def _moved(self) -> list[ir.Value]:
        """Buffers of a tile that is loaded and stored."""
        made = (alloc(shape, self.element, "UB") for shape in self._shapes())
        return [with_slots(buffer, self.slots) for buffer in made]

    def parts(self, walked: Sequence[IndexLike] = ()) -> list[AlikeWork]:
        """The pieces of work.

        Args:
            walked: indices of the outer dimensions that a loop around them walks.
        """
        if self.way.portions is not None:
            return self._portions(list(walked))
        return self._tiles(list(walked))

    def _portions(self, walked: list[IndexLike]) -> list[AlikeWork]:
        """Long runs: each is cut in portions, which the blocks share."""
        way, sizes = self.way, self.way.sizes
        assert way.portions is not None, "`parts` comes here only with portions"
        rank = len(walked) + len(sizes)

        def build(repetition: IndexLike, start: IndexLike, size: int) -> None:
            buffers = self.buffers or self._moved()
            whole_blocks = size // way.block * way.block
            ends = [(size - way.block, way.block)] if size > whole_blocks else []
            for number, (first, count) in enumerate([(0, whole_blocks), *ends]):
                ub = subview(buffers[0], [0], [count]) if number == 0 else buffers[1]
                at = [*walked, *unflatten(repetition, sizes), add(start, first)]
                self._copy(ub, at, [*[1] * rank, count], range(rank))

        return portion_parts(way.portions, build, math.prod(sizes))

    def _tiles(self, walked: list[IndexLike]) -> list[AlikeWork]:
        """Many runs: tiles of several runs, cut along one dimension, which the blocks share."""
        way, sizes = self.way, self.way.sizes
        level, chunk = way.level, way.chunk
        inner = sizes[level + 1 :]
        outside = len(walked) + level

        def part(first: int, count: int, rows: int) -> AlikeWork:
            """`count` tiles of `rows` along the cut dimension from `first`, for all indices."""

            def build(index: IndexLike) -> None:
                buffers = self.buffers or self._moved()
                *outer, position = unflatten(index, [*sizes[:level], count])
                at = [*walked, *outer, add(first, mul(position, rows)), *[0] * len(inner)]
                for load in (True, False) if not self.transfer.filled else (False,):
                    for (start, width), buffer in zip(way.pieces, buffers, strict=True):
                        tile = [rows, *inner, width]
                        ub = buffer if rows == chunk else subview(buffer, [0] * len(tile), tile)
                        place, shape = [*at, start], [*[1] * outside, *tile]
                        self._move(ub, place, shape, range(outside), load)

            return AlikeWork(math.prod(sizes[:level]) * count, build)

        full, rest = divmod(sizes[level], chunk)
        parts = [part(0, full, chunk)] if full else []
        return parts + ([part(full * chunk, 1, rest)] if rest else [])

    def _copy(
        self, ub: ir.Value, at: list[IndexLike], shape: list[int], drop: Sequence[int]
    ) -> None:
        if not self.transfer.filled:
            self._move(ub, at, shape, drop, load=True)
        self._move(ub, at, shape, drop, load=False)

    def _move(
        self, ub: ir.Value, at: list[IndexLike], shape: list[int], drop: Sequence[int], load: bool
    ) -> None:
        view = self.views[0 if load else 1]
        assert view is not None, "only what is filled is not loaded"
        gm = subview(view, at, shape, drop=list(drop))
        op("cce.copy", [gm, ub] if load else [ub, gm])


def strides(dims: Sequence[SharedDim], side: int) -> list[int]:
    return [d.strides[side] for d in dims]


def small_parts(way: Small, arrays: Arrays, result: ir.Value) -> list[AlikeWork]:
    """Less than a block, with what lies behind it in its block."""
    transfer, size, element = way.transfer, way.transfer.count, element_of(result)

    def build(_: IndexLike) -> None:
        if transfer.filled:
            block = filled(
                [BLOCK_BYTES // transfer.itemsize], element, number_in(transfer, arrays, element)
            )
            held = restride(block, [size], [1])
        else:
            held = alloc([size], element, "UB")
            cce.copy(restride(arrays[transfer.array], [size], [1]), held, round_up=True)
        cce.copy(held, restride(result, [size], [1]), round_up=True)

    return [AlikeWork(1, build)]


def scalar_parts(
    way: Scalars, arrays: Arrays, result: ir.Value, walked: Sequence[IndexLike] = ()
) -> list[AlikeWork]:
    """Element by element on the scalar unit; the outermost dimension is shared by the blocks."""
    transfer = way.transfer
    sizes = [d.size for d in transfer.dims] or [1]
    steps = [strides(transfer.dims, side) or [1] for side in (0, 1)]
    written = restride(result, sizes, steps[1], transfer.place)
    filling = isinstance(transfer.source, Scalar)
    if isinstance(transfer.source, Scalar):
        source = number_in(transfer, arrays, element_of(result))
    else:
        source = restride(arrays[transfer.source], sizes, steps[0], transfer.offset)

    def build(indices: list[IndexLike]) -> None:
        if len(indices) < len(sizes):
            with for_loop(0, sizes[len(indices)]) as index:
                build([*indices, index])
            return
        at = [as_value(i) for i in indices]
        value = source if filling else memref.LoadOp(source, at).result
        memref.StoreOp(value, written, at)

    if len(walked) == len(sizes):
        return [AlikeWork(1, lambda _: build(list(walked)), in_turns=False)]
    count = sizes[len(walked)]
    return [AlikeWork(count, lambda index: build([*walked, index]), in_turns=False)]


def number_in(transfer: Transfer, arrays: Arrays, element: NumberType) -> ir.Value:
    """What a transfer fills with: a constant, or loaded from GM."""
    if not isinstance(transfer.source, Scalar):
        place = restride(arrays[transfer.source], [1], [1], transfer.offset)
        return memref.LoadOp(place, [as_value(0)]).result
    number = np.asarray(transfer.source.value).astype(dtype_of(str(element)))[()]
    if isinstance(element, ir.FloatType):
        return arith.ConstantOp(element, ir.FloatAttr.get(element, float(number))).result
    return arith.ConstantOp(element, ir.IntegerAttr.get(element, int(number))).result


def filled(shape: Sequence[int], element: NumberType, number: ir.Value) -> ir.Value:
    """A buffer in UB of one number everywhere.

    Bytes are filled as words of 16 bits that hold two of them, 64 bits as two words of 32: one
    block is put together, and copied to all others.
    """
    total = math.prod(shape)
    if element.width in (16, 32):
        buffer = alloc(list(shape), element, "UB")
        cce.vector_dup(number, restride(buffer, [total], [1]))
        return buffer
    size = round_up(total * element.width // 8, BLOCK_BYTES)
    raw = alloc([size], ir.IntegerType.get_signless(8), "UB")
    if element.width == 8:
        half = element_type("s16")
        byte = arith.ExtUIOp(half, number).result
        twice = arith.MulIOp(byte, scalar("s16", 257)).result
        cce.vector_dup(twice, viewed(raw, [size // 2], half))
        return viewed(raw, shape, element)
    word = element_type("s32")
    words = viewed(raw, [size // 4], word)
    high = arith.ShRUIOp(number, arith.ConstantOp(element, 32).result).result
    cce.vector_dup(arith.TruncIOp(word, number).result, words)
    block = restride(words, [1, WORD_LANES], [WORD_LANES, 1])
    for lane in range(1, WORD_LANES, 2):
        cce.vector_dup(arith.TruncIOp(word, high).result, block, first_lane=lane, lanes=1)
    blocks = size // BLOCK_BYTES
    if blocks > 1:
        source = restride(words, [blocks - 1, WORD_LANES], [0, 1])
        rest = restride(words, [blocks - 1, WORD_LANES], [WORD_LANES, 1], WORD_LANES)
        cce.vmax(source, source, rest)
    return viewed(raw, shape, element)


def copy_rounded(source: ir.Value, destination: ir.Value, block_bytes: int) -> None:
    """Copies one contiguous run; in whole blocks if it does not end at one.

    On the side of GM the run must then end where its buffer does, so that only padding is touched.
    """
    buffer = buffer_of(source)
    ragged = buffer.size * buffer.itemsize % block_bytes != 0
    attributes: dict[str, Any] = {"round_up": True} if ragged else {}
    op("cce.copy", [source, destination], **attributes)
