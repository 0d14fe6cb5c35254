"""Tensors of a kernel as tiles in UB.

A tile holds a tensor of a static shape. Along a dimension of stride 0 all elements are the same, so
a broadcast moves nothing. A *dense* tile has the elements of the last dimension beside each other;
in a *spread* one each element fills a block of 32 bytes, as reductions of rows leave it, and what
operations with whole rows take.

    tensor<8x128xf32> loaded                         dense, strides [128, 1]
    tensor<128xf32> broadcast to 8x128               dense, strides [0, 1]
    sums of rows, tensor<8xf32>                      spread, strides [8]
    the same broadcast to 8x128                      spread, strides [8, 0]
    a scalar as tensor<8x128xf32>                    spread, strides [0, 0]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.builder import alloc, op, restride
from davinci.schedule.vector.steps import copying
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS, round_up, row_major


class TileForm(Exception):
    """A form of a tensor that the lowerings do not lay out in UB; its text says which."""


@dataclass(frozen=True)
class Number:
    """A tensor whose elements are one number that is known; `dtype` is the unit's name of the
    type, that of flags being "flag"."""

    number: float
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class UbTile:
    """A tensor in UB, see the head of the module.

    Attributes:
        buffer: a contiguous buffer in UB.
        dtype: element type as instructions name it.
        strides: of the dimensions, in elements.
        spread: whether each element fills a block.
        flag: whether it is a tensor of booleans, which are 1.0 and 0.0 in `dtype`.
    """

    buffer: ir.Value
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    spread: bool = False
    flag: bool = False

    @property
    def varying(self) -> list[int]:
        """Dimensions along which elements differ."""
        return [i for i, stride in enumerate(self.strides) if stride]

    @property
    def count(self) -> int:
        """Elements of the buffer."""
        return int(ir.MemRefType(self.buffer.type).shape[0])

    @property
    def whole(self) -> bool:
        """Whether it is dense, with all elements in the order of rows."""
        return not self.spread and self.strides == row_major(self.shape)


Tensor = UbTile | Number


def lanes_of(dtype: str) -> int:
    """Elements of a block."""
    return BLOCK_BYTES // DTYPES[dtype].itemsize


def buffer(count: int, dtype: str) -> ir.Value:
    """A buffer of so many elements in UB."""
    return alloc([count], element_type(dtype), "UB")


def dense(shape: Sequence[int], dtype: str, flag: bool = False) -> UbTile:
    """A dense tile of a shape, in a buffer of its own."""
    held = buffer(math.prod(shape), dtype)
    return UbTile(held, dtype, tuple(shape), row_major(shape), flag=flag)


def splat(value: ir.Value, dtype: str, shape: Sequence[int], flag: bool = False) -> UbTile:
    """A scalar of the running program as a tensor: a block that is filled with it."""
    if DTYPES[dtype].itemsize < 2:
        raise TypeError(f"{dtype}: no instruction fills a buffer with it")
    held = buffer(lanes_of(dtype), dtype)
    cce.vector_dup(value, held)
    return UbTile(held, dtype, tuple(shape), (0,) * len(shape), spread=True, flag=flag)


@dataclass(frozen=True)
class StepViews:
    """Operands of an elementwise step as arrays of one shape, and its result.

    Attributes:
        operands: views of the sources, then of the result.
    """

    operands: list[ir.Value]
    result: UbTile


def step_views(sources: Sequence[UbTile], dtype: str, whole: bool = False) -> StepViews:
    """The views of an elementwise step, whose result is a new tile.

    Args:
        sources: tiles of one shape.
        dtype: of the result.
        whole: whether the result is to have all elements in the order of rows.

    Raises:
        TileForm: rows are no whole blocks where a block stands for an element.
    """
    if any(s.spread and s.shape and s.strides[-1] for s in sources):
        sources = [s if s.spread else spread_out(s) for s in sources]
    shape = sources[0].shape
    vary = sorted({i for source in sources for i in source.varying})
    if whole:
        vary = list(range(len(shape)))
    if not whole and all(source.spread for source in sources):
        return _spread_views(sources, dtype, vary)
    sizes = [shape[i] for i in vary]
    places = iter(row_major(sizes))
    strides = tuple(next(places) if i in vary else 0 for i in range(len(shape)))
    result = UbTile(buffer(math.prod(sizes), dtype), dtype, shape, strides)
    tiles = [*sources, result]
    if all(not tile.spread and tile.strides == strides for tile in tiles):
        return StepViews([restride(t.buffer, [math.prod(sizes)], [1]) for t in tiles], result)
    return StepViews(_row_views(tiles, vary), result)


def _row_views(tiles: Sequence[UbTile], vary: Sequence[int]) -> list[ir.Value]:
    """Views of dense tiles, and of spread ones that are the same along rows, as blocks of rows."""
    shape, outer = tiles[-1].shape, list(vary[:-1])
    length, lanes = shape[-1], lanes_of(tiles[-1].dtype)
    if len({lanes_of(tile.dtype) for tile in tiles}) > 1:
        raise TileForm("operands of several widths, some of which are broadcast")
    if length % lanes and (outer or length > lanes):
        raise TileForm(f"rows of {length} elements of {tiles[-1].dtype} that are no whole blocks")
    found = []
    for tile in tiles:
        strides = [tile.strides[i] for i in outer]
        sizes = [shape[i] for i in outer]
        if length % lanes:
            found.append(restride(tile.buffer, [length], [1]))
            continue
        block = 0 if tile.spread else lanes
        sizes = [*sizes, length // lanes, lanes]
        found.append(restride(tile.buffer, sizes, [*strides, block, 1]))
    return found


def _spread_views(sources: Sequence[UbTile], dtype: str, vary: Sequence[int]) -> StepViews:
    """Views of tiles whose elements fill blocks. Where the result has more lanes in a block than a
    source, it is written before."""
    shape, lanes = sources[0].shape, lanes_of(dtype)
    sizes = [shape[i] for i in vary]
    places = iter(row_major([*sizes, lanes]))
    strides = tuple(next(places) if i in vary else 0 for i in range(len(shape)))
    held = buffer(math.prod(sizes) * lanes, dtype)
    result = UbTile(held, dtype, shape, strides, spread=True)
    least = min(lanes_of(tile.dtype) for tile in (*sources, result))
    if least < lanes:
        cce.vector_dup(scalar(dtype, 0), held)
    views = [
        restride(tile.buffer, [*sizes, least], [*(tile.strides[i] for i in vary), 1])
        for tile in (*sources, result)
    ]
    return StepViews(views, result)


def copied(tile: UbTile, whole: bool = True) -> UbTile:
    """A copy of a tile, dense in the order of rows."""
    if whole and tile.spread and tile.shape and tile.strides[-1]:
        tile = packed(tile)
        if tile.whole:
            return tile
    views = step_views([tile], tile.dtype, whole)
    copy_views(views.operands, tile.dtype)
    return replace(views.result, flag=tile.flag)


def copy_views(operands: Sequence[ir.Value], dtype: str) -> None:
    """Copies a view in UB to another of the same shape, by the vector unit."""
    source, target = operands
    name, number = copying(dtype)
    op(f"cce.{name}", [source, source if number is None else scalar(dtype, number), target])


def whole_tile(tile: UbTile) -> UbTile:
    """The tile with all of its elements in the order of rows."""
    return tile if tile.whole else copied(tile)


def _compact(tile: UbTile) -> int:
    """How many elements the varying dimensions have, which have to lie without gaps."""
    return math.prod(tile.shape[i] for i in tile.varying)


def spread_out(tile: UbTile) -> UbTile:
    """A dense tile with a block for each element."""
    count, lanes = _compact(tile), lanes_of(tile.dtype)
    rounded = round_up(count, REPEAT_BLOCKS)
    source = tile.buffer
    if rounded != count:
        source = buffer(rounded, tile.dtype)
        cce.vector_dup(scalar(tile.dtype, 0), source)
        copy_views([restride(b, [count], [1]) for b in (tile.buffer, source)], tile.dtype)
    held = buffer(rounded * lanes, tile.dtype)
    rows = rounded // REPEAT_BLOCKS
    cce.vbrcb(
        restride(source, [rows, REPEAT_BLOCKS], [REPEAT_BLOCKS, 1]),
        restride(held, [rows, REPEAT_BLOCKS, lanes], [REPEAT_BLOCKS * lanes, lanes, 1]),
    )
    strides = tuple(stride * lanes for stride in tile.strides)
    return replace(tile, buffer=held, strides=strides, spread=True)


def packed(tile: UbTile) -> UbTile:
    """A spread tile with its elements beside each other.

    Raises:
        TileForm: there is no instruction for it.
    """
    count, lanes = _compact(tile), lanes_of(tile.dtype)
    if tile.dtype not in ("f16", "f32") or count % REPEAT_BLOCKS:
        raise TileForm(f"{count} results of rows of {tile.dtype} beside rows")
    held, rows = buffer(count, tile.dtype), count // REPEAT_BLOCKS
    cce.vcgmax(
        restride(tile.buffer, [rows, REPEAT_BLOCKS, lanes], [REPEAT_BLOCKS * lanes, lanes, 1]),
        restride(held, [rows, REPEAT_BLOCKS], [REPEAT_BLOCKS, 1]),
    )
    strides = tuple(stride // lanes for stride in tile.strides)
    return replace(tile, buffer=held, strides=strides, spread=False)
