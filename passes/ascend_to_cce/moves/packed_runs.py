"""Runs of elements between GM and packed values in UB, see `schedule.vector.row_packing`."""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.machine import copies_elements
from davinci.mlir import ir, memref
from davinci.operators.vector_program import DTYPE_OF
from davinci.passes.analysis.group_graph import CONVERSION
from davinci.passes.ascend_to_cce.moves.transfers import copy_rounded
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.builder import IndexLike, add, as_value, op, restride, subview
from davinci.schedule.vector.row_packing import is_scattered, pieces_of
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.tile_layout import TileLayout
from davinci.schedule.vector.tile_program import MOVABLE
from davinci.units import BLOCK_BYTES, round_up


def load_run(
    array: ir.Value, start: IndexLike, count: int, held: ir.Value, layout: TileLayout
) -> None:
    """Brings `count` elements of GM from `start` on to a packed value.

    Args:
        array: [n] in GM, the whole of an argument.
        held: [packed size] in UB; all of it is written.
        layout: of the tile that the value is of.
    """
    block = layout.packed_block
    (total,) = ir.MemRefType(array.type).shape
    dtype = DTYPE_OF[str(ir.MemRefType(array.type).element_type)]
    if total != count and is_scattered(count, block, dtype):
        _fill(array, held, dtype, 0)
        if copies_elements(layout.machine):
            source, target = subview(array, [start], [count]), subview(held, [0], [count])
            cce.copy(source, target, exact=True)
            return
        for i in range(count):
            value = memref.LoadOp(array, [as_value(add(start, i))]).result
            memref.StoreOp(_element(value, held), held, [as_value(i)])
        return
    if count < block:
        _fill(array, held, dtype, round_up(count, block_lanes(dtype)))
    for piece in pieces_of(count, block):
        gm = subview(array, [add(start, piece.first)], [piece.count])
        _copy(gm, subview(held, [piece.place], [piece.count]))


def store_run(
    array: ir.Value, start: IndexLike, count: int, held: ir.Value, layout: TileLayout
) -> None:
    """The other way; the last piece goes over elements of the one before."""
    block = layout.packed_block
    (total,) = ir.MemRefType(array.type).shape
    dtype = DTYPE_OF[str(ir.MemRefType(array.type).element_type)]
    if total != count and is_scattered(count, block, dtype):
        if copies_elements(layout.machine):
            source, target = subview(held, [0], [count]), subview(array, [start], [count])
            cce.copy(source, target, exact=True)
            return
        for i in range(count):
            value = memref.LoadOp(held, [as_value(i)]).result
            memref.StoreOp(_element(value, array), array, [as_value(add(start, i))])
        return
    for piece in pieces_of(count, block):
        gm = subview(array, [add(start, piece.first)], [piece.count])
        _copy(subview(held, [piece.place], [piece.count]), gm)


def _element(value: ir.Value, buffer: ir.Value) -> ir.Value:
    """The same bits as an element of a buffer: bytes have no sign in GM, and one in UB."""
    element = ir.MemRefType(buffer.type).element_type
    if value.type == element:
        return value
    return op(CONVERSION, [value], [element]).result


def _copy(source: ir.Value, destination: ir.Value) -> None:
    kind = ir.MemRefType(source.type)
    if kind.shape[0] * kind.element_type.width % (8 * BLOCK_BYTES):
        copy_rounded(source, destination, BLOCK_BYTES)
    else:
        op("cce.copy", [source, destination])


def _fill(array: ir.Value, held: ir.Value, dtype: str, first: int) -> None:
    """Writes what no copy does, from a block on: it is computed on too, whatever it is."""
    (total,), (size,) = (ir.MemRefType(value.type).shape for value in (array, held))
    if dtype in MOVABLE:
        if first < size:
            fill_lanes(dtype, restride(held, [1, size], [size, 1]), first, size, 0)
        return
    most = min(total, block_lanes(dtype))
    for place in range(first, size, block_lanes(dtype)):
        _copy(subview(array, [0], [most]), subview(held, [place], [most]))
