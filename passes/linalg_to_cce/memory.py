"""Loads and stores: rows between global memory and tiles."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.mlir import Op, ir, memref
from davinci.operators.vector_program import DTYPE_OF
from davinci.passes.builder import IndexLike, as_value, mul, restride
from davinci.passes.linalg_to_cce import lowering, refusal
from davinci.passes.linalg_to_cce.tiles import (
    UbTile,
    dense,
    lanes_of,
    whole_tile,
)
from davinci.passes.linalg_to_cce.translator import KernelTranslator
from davinci.passes.linalg_to_cce.views import TensorView, places_of


@lowering("memref.reinterpret_cast", "memref.subview", "memref.cast")
def lower_view(translator: KernelTranslator, op: Op) -> None:
    source = op.operands[0]
    view = translator.views.get(source)
    if view is None:
        view = TensorView(source, 0, tuple(ir.MemRefType(source.type).shape), (1,))
    if op.name == "memref.subview":
        view = view.part(places_of(op))
    elif op.name == "memref.reinterpret_cast":
        if isinstance(view.root, UbTile):
            raise refusal(op, "memref.reinterpret_cast of a buffer on the chip")
        offsets, sizes, strides = places_of(op)
        view = TensorView(view.root, offsets[0], tuple(sizes), tuple(strides))
    translator.views[op.results[0]] = view


@lowering("memref.alloc")
def lower_allocation(translator: KernelTranslator, op: Op) -> None:
    kind = ir.MemRefType(op.results[0].type)
    dtype = DTYPE_OF.get(str(kind.element_type))
    if dtype is None or not kind.has_static_shape or str(kind.element_type) == "i1":
        raise refusal(op, f"memref.alloc of {kind}")
    tile = dense(kind.shape, dtype)
    translator.views[op.results[0]] = TensorView(tile, 0, tile.shape, tile.strides)


@lowering("bufferization.to_tensor")
def lower_to_tensor(translator: KernelTranslator, op: Op) -> None:
    view = translator.views[op.operands[0]]
    if not isinstance(view.root, UbTile):
        raise refusal(op, "bufferization.to_tensor of global memory")
    translator.values[op.results[0]] = view.root


@lowering("memref.copy")
def lower_copy(translator: KernelTranslator, op: Op) -> None:
    source, target = (translator.views[value] for value in op.operands)
    if isinstance(source.root, UbTile) or not isinstance(target.root, UbTile):
        raise refusal(op, "memref.copy that is no load from global memory")
    transfer(op, source, target, loads=True)


@lowering("tensor.extract_slice")
def lower_slice(translator: KernelTranslator, op: Op) -> None:
    """A slice is stored; nothing else is done to it."""
    tile = translator.tile(translator.tensor(op.operands[0]))
    if not (tile.spread and tile.shape and tile.strides[-1]):
        tile = whole_tile(tile)
    whole = TensorView(tile, 0, tile.shape, tile.strides)
    if any(use.owner.name != STORE for use in op.results[0].uses):
        raise refusal(op, "tensor.extract_slice that is not stored")
    translator.views[op.results[0]] = whole.part(places_of(op))


STORE = "bufferization.materialize_in_destination"


@lowering(STORE)
def lower_store(translator: KernelTranslator, op: Op) -> None:
    value, destination = list(op.operands)[:2]
    view = translator.views.get(value)
    if view is None:
        tile = translator.tile(translator.tensor(value))
        if not (tile.spread and tile.shape and tile.strides[-1]):
            tile = whole_tile(tile)
        view = TensorView(tile, 0, tile.shape, tile.strides)
    target = translator.views[destination]
    if isinstance(target.root, UbTile):
        raise refusal(op, f"{STORE} of a buffer on the chip")
    transfer(op, target, view, loads=False)


@lowering("memref.load")
def lower_scalar_load(translator: KernelTranslator, op: Op) -> None:
    """The scalar unit loads an element from global memory."""
    view = translator.views.get(op.operands[0])
    if view is None or isinstance(view.root, UbTile):
        raise refusal(op, "memref.load of a buffer on the chip")
    ones = [1] * len(view.sizes)
    at = view.part([list(op.operands)[1:], ones, ones]).offset
    loaded = memref.LoadOp(view.array, [as_value(at)])
    op.results[0].replace_all_uses_with(loaded.result)


@lowering("memref.store")
def lower_scalar_store(translator: KernelTranslator, op: Op) -> None:
    raise refusal(op, "memref.store")


def transfer(op: Op, array: TensorView, held: TensorView, loads: bool) -> None:
    """Copies rows between global memory and a tile.

    Raises:
        CompileError: elements lie apart, or rows begin inside the tile.
    """
    tile = held.tile
    kept = [i for i, size in enumerate(tile.shape) if size > 1]
    refuse_places(op, array, held, kept)
    sizes = [array.sizes[i] for i in kept]
    shape = [tile.shape[i] for i in kept]
    rows: IndexLike = sizes[0] if len(kept) == 2 else 1
    for i in range(len(tile.shape)):
        if i not in kept:  # a mask may leave nothing of it
            rows = mul(rows, array.sizes[i])
    elements: IndexLike = sizes[-1] if kept else 1
    width = shape[-1] if kept else 1
    height = shape[0] if len(kept) == 2 else 1
    stride: IndexLike = array.strides[kept[0]] if len(kept) == 2 else width
    view = restride(tile.buffer, [height, width], [width, 1])
    if tile.spread and kept and tile.strides[kept[-1]]:
        # Each element is a row of its own, in a block of its own.
        view = restride(tile.buffer, [width, 1], [lanes_of(tile.dtype), 1])
        rows, elements, stride = mul(rows, elements), 1, 1
    source, target = (array.array, view) if loads else (view, array.array)
    cce.copy_rows(
        source,
        target,
        as_value(array.offset),
        as_value(stride),
        as_value(rows),
        as_value(elements),
    )


def refuse_places(op: Op, array: TensorView, held: TensorView, kept: Sequence[int]) -> None:
    """Raises an error unless rows can be copied between an array and a tile.

    Args:
        kept: dimensions of the tile of more than one element.
    """
    tile = held.tile
    if held.offset != 0:
        raise refusal(op, "a load or store of the middle of a tile", "one that begins at its start")
    if len(array.sizes) != len(tile.shape):
        raise refusal(op, f"{len(array.sizes)} dimensions in {len(tile.shape)} of a tile")
    if len(kept) > 2 or (len(kept) == 2 and tile.spread):
        raise refusal(op, f"a load or store of {tile.shape} elements", "at most 2 dimensions")
    steps = [array.strides[i] for i in kept]
    if steps[-1:] not in ([], [1]):
        distance = steps[-1] if isinstance(steps[-1], int) else "that the program computes"
        raise refusal(op, f"elements at a distance {distance} in global memory", "a distance of 1")
    if len(kept) == 2 and tile.shape[kept[1]] % lanes_of(tile.dtype):
        found = f"rows of {tile.shape[kept[1]]} elements of {tile.dtype}"
        raise refusal(op, found, "whole blocks of 32 bytes")
