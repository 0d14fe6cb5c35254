"""Fills, broadcasts, reshapes, scalars in tensors, and reductions."""

from __future__ import annotations

import math
from dataclasses import replace

from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.mlir import Op, ir
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import DTYPE_OF
from davinci.passes.ascend_to_cce.vector.fold_axes import fold_axis
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps, scratch_buffers
from davinci.passes.builder import restride
from davinci.passes.linalg_to_cce import lowering, refusal
from davinci.passes.linalg_to_cce.elementwise import RECORDS, computed, converted_to
from davinci.passes.linalg_to_cce.tiles import (
    Number,
    Tensor,
    TileForm,
    UbTile,
    buffer,
    dense,
    lanes_of,
    spread_out,
    whole_tile,
)
from davinci.passes.linalg_to_cce.translator import FLAG, KernelTranslator, number_of
from davinci.schedule.vector.row_statistics import neutral, reduction
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import row_major


@lowering("tensor.empty", "bufferization.alloc_tensor")
def lower_nothing(translator: KernelTranslator, op: Op) -> None:
    """A tensor that only says where a result goes."""


@lowering("arith.constant")
def lower_constant(translator: KernelTranslator, op: Op) -> None:
    value = ir.DenseElementsAttr(op.attributes["value"])
    if not value.is_splat:
        raise refusal(op, "arith.constant of several numbers")
    kind = ir.RankedTensorType(op.results[0].type)
    element = str(kind.element_type)
    dtype = FLAG if element == "i1" else DTYPE_OF.get(element)
    if dtype is None:
        raise refusal(op, f"arith.constant of {element}")
    number = number_of(value.get_splat_value(), element)
    translator.values[op.results[0]] = Number(number, dtype, tuple(kind.shape))


@lowering("linalg.fill")
def lower_fill(translator: KernelTranslator, op: Op) -> None:
    """A tensor of one number, or a buffer that is filled."""
    number, target = op.operands
    if isinstance(target.type, ir.MemRefType):
        view = translator.views[target]
        tile = view.root
        if not isinstance(tile, UbTile) or tuple(view.sizes) != tile.shape:
            raise refusal(op, "linalg.fill of a part of a buffer, or of global memory")
        cce.vector_dup(number, tile.buffer)
        return
    shape = ir.RankedTensorType(target.type).shape
    translator.values[op.results[0]] = translator.filled(number, shape)


@lowering("tensor.splat")
def lower_splat(translator: KernelTranslator, op: Op) -> None:
    shape = ir.RankedTensorType(op.results[0].type).shape
    translator.values[op.results[0]] = translator.filled(op.operands[0], shape)


@lowering("tensor.insert")
def lower_insertion(translator: KernelTranslator, op: Op) -> None:
    """A scalar as a tensor of one element."""
    shape = ir.RankedTensorType(op.results[0].type).shape
    if math.prod(shape) != 1:
        raise refusal(op, "tensor.insert into a tensor of several elements")
    translator.values[op.results[0]] = translator.filled(op.operands[0], shape)


@lowering("tensor.extract")
def lower_extraction(translator: KernelTranslator, op: Op) -> None:
    """The only element of a tensor, which stays where it is until the scalar unit asks for it."""
    tensor = translator.tensor(op.operands[0])
    if math.prod(tensor.shape) != 1:
        raise refusal(op, "tensor.extract from a tensor of several elements")
    translator.values[op.results[0]] = scalar_of(tensor)


def scalar_of(tensor: Tensor) -> Tensor:
    """A tensor of one element as one of rank 0."""
    if isinstance(tensor, Number):
        return replace(tensor, shape=())
    if not tensor.spread:
        tensor = spread_out(replace(tensor, shape=(1,), strides=(1,)))
    return replace(tensor, shape=(), strides=())


@lowering("linalg.broadcast")
def lower_broadcast(translator: KernelTranslator, op: Op) -> None:
    shape = tuple(ir.RankedTensorType(op.operands[1].type).shape)
    added = set(attribute(op, "dimensions"))
    tensor = translator.tensor(op.operands[0])
    if isinstance(tensor, Number):
        translator.values[op.results[0]] = replace(tensor, shape=shape)
        return
    if len(shape) - 1 in added and not tensor.spread:
        tensor = spread_out(tensor)
    strides = iter(tensor.strides)
    made = tuple(0 if i in added else next(strides) for i in range(len(shape)))
    translator.values[op.results[0]] = replace(tensor, shape=shape, strides=made)


@lowering("tensor.expand_shape", "tensor.collapse_shape")
def lower_reshape(translator: KernelTranslator, op: Op) -> None:
    shape = tuple(ir.RankedTensorType(op.results[0].type).shape)
    tensor = translator.tensor(op.operands[0])
    if not isinstance(tensor, Number) and tensor.spread:
        translator.values[op.results[0]] = reshaped_blocks(tensor, shape)
        return
    if isinstance(tensor, Number):
        translator.values[op.results[0]] = replace(tensor, shape=shape)
        return
    tile = whole_tile(tensor)
    made = replace(tile, shape=shape, strides=row_major(shape))
    if shape and shape[-1] == 1:
        made = replace(spread_out(made), shape=shape)
    translator.values[op.results[0]] = made


def reshaped_blocks(tile: UbTile, shape: tuple[int, ...]) -> UbTile:
    """A spread tile with dimensions of size 1 added or taken away."""
    sizes = [(n, s) for n, s in zip(tile.shape, tile.strides, strict=True) if n > 1]
    if [n for n, _ in sizes] != [n for n in shape if n > 1]:
        raise TileForm("results of rows in another shape")
    strides = iter(s for _, s in sizes)
    return replace(tile, shape=shape, strides=tuple(next(strides) if n > 1 else 0 for n in shape))


@lowering("linalg.generic")
def lower_generic(translator: KernelTranslator, op: Op) -> None:
    """The numbers 0, 1, .. along a tensor of one dimension; other bodies are refused."""
    names = [view.operation.name for view in op.regions[0].blocks[0].operations]
    if not op.results:
        raise refusal(op, f"linalg.generic of memory: {', '.join(names)}")
    kind = ir.RankedTensorType(op.results[0].type)
    counted = names == ["linalg.index", "arith.index_cast", "linalg.yield"]
    if not counted or kind.rank != 1 or str(kind.element_type) != "i32":
        raise refusal(op, f"linalg.generic of {', '.join(names)}")
    (count,) = kind.shape
    held = translator.steps(count)
    translator.values[op.results[0]] = UbTile(held, "s32", (count,), (1,))


@lowering("linalg.reduce")
def lower_reduction(translator: KernelTranslator, op: Op) -> None:
    """Reductions of the last dimensions, or of one in front of them."""
    names = [view.operation.name for view in op.regions[0].blocks[0].operations]
    kind = RECORDS.get(names[0]) if len(names) == 2 and len(op.operands) == 2 else None
    if kind not in REDUCTIONS:
        raise refusal(op, f"linalg.reduce of {', '.join(names[:-1])}")
    source, start = (translator.tensor(value) for value in op.operands)
    tile = whole_tile(translator.tile(source))
    dims = sorted(attribute(op, "dimensions"))
    dtype = tile.dtype
    if dtype == "f16" and kind not in ("max", "min"):
        tile = computed(translator, [tile], converted_to("f32"))
    if dims == list(range(len(tile.shape) - len(dims), len(tile.shape))):
        made = reduced_rows(translator, kind, tile, tile.shape[: dims[0]])
    elif len(dims) == 1:
        made = folded(kind, tile, dims[0])
    else:
        raise refusal(op, f"linalg.reduce along dimensions {dims}")
    if not isinstance(start, Number) or start.number != neutral(kind, start.dtype):
        step = REDUCTIONS[kind].step
        made = computed(translator, [made, start], lambda p, both: p.binary(step, both[0], both[1]))
    if made.dtype != dtype:
        made = computed(translator, [made], converted_to(dtype))
    translator.values[op.results[0]] = made


def reduced_rows(
    translator: KernelTranslator, kind: str, tile: UbTile, shape: tuple[int, ...]
) -> UbTile:
    """Rows to a block each, by the way that takes the machine fewest cycles."""
    rows, lanes = math.prod(shape), lanes_of(tile.dtype)
    length = math.prod(tile.shape) // rows
    if length % lanes:
        raise TileForm(f"rows of {length} elements of {tile.dtype} that are no whole blocks")
    work = reduction(kind, rows, length, tile.dtype, translator.machine).work
    result = buffer(rows * lanes, tile.dtype)
    held = restride(tile.buffer, [rows, length], [length, 1])
    build_steps(work, scratch_buffers(work) | {SOURCE: held, RESULT: result})
    places = row_major([*shape, lanes])[: len(shape)]
    strides = tuple(s if n > 1 else 0 for n, s in zip(shape, places, strict=True))
    return UbTile(result, tile.dtype, shape, strides, spread=True)


def folded(kind: str, tile: UbTile, axis: int) -> UbTile:
    """A dimension in front of the last one, in halves."""
    shape = tile.shape
    kept = tuple(n for i, n in enumerate(shape) if i != axis)
    if shape[axis] == 1:
        return replace(tile, shape=kept, strides=row_major(kept))
    result = dense(kept, tile.dtype)
    outside = tuple(1 if i == axis else n for i, n in enumerate(shape))
    whole = restride(tile.buffer, shape, row_major(shape))
    fold_axis(kind, whole, restride(result.buffer, outside, row_major(outside)), axis, 0)
    return result
