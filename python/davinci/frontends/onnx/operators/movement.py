"""Operators that cut, pad and rearrange data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, constant, convert
from davinci.units import ceil_div

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


@operator("Slice")
def lower_slice(node: NodeCall) -> OnnxTensor:
    """Bounds are clamped as Python's; steps may be negative."""
    x = node.take(0)
    starts, ends = node.integers("starts", 1) or [], node.integers("ends", 2) or []
    axes = node.integers("axes", 3)
    axes = [ops.axis_of(a, x.rank) for a in (range(len(starts)) if axes is None else axes)]
    steps = node.integers("steps", 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise BadNode("starts, ends, axes and steps do not fit", "as many of each, no step of 0")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        chosen = range(x.shape[axis])[start:end:step]
        x = ops.take_range(x, axis, chosen)
    return x


@operator("Pad")
def lower_pad(node: NodeCall) -> OnnxTensor:
    """With a value, or with elements of the tensor; negative pads cut."""
    x, mode = node.take(0), node.attr("mode")
    pads = node.integers("paddings" if node.given("paddings") else "pads", 1) or []
    axes = node.integers("axes", 3)
    axes = [ops.axis_of(a, x.rank) for a in (range(x.rank) if axes is None else axes)]
    if len(pads) != 2 * len(axes):
        raise BadNode(f"{len(pads)} pads for {len(axes)} axes", "two for each axis")
    low, high = [0] * x.rank, [0] * x.rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[i + len(axes)]
    value: Any = node.attr("value") if node.given("value") else node.optional(2)
    if mode == "constant":
        return ops.pad(x, low, high, _filler(value, x))
    if mode not in ("reflect", "edge", "wrap"):
        node.refuse(f"mode {mode!r} is not supported", "constant, edge, reflect or wrap")
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        x = ops.take_known(x, _padded_indices(x.shape[axis], a, b, mode), axis)
    return x


def _filler(value: Any, x: OnnxTensor) -> Any:
    if value is None:
        return False if x.dtype == ops.BOOL else 0
    return ops.reshape(value, []) if isinstance(value, OnnxTensor) else value


def _padded_indices(size: int, low: int, high: int, mode: Any) -> Any:
    """The index that each element of a padded axis comes from; what is cut is cut first."""
    kept = np.arange(size)[max(0, -low) : size - max(0, -high)]
    amounts = (max(0, low), max(0, high))
    if not kept.size and any(amounts):
        raise BadNode(f"an axis of size {size} has no elements to pad with")
    return np.pad(kept, amounts, mode=mode)


TO_SPACE = {"DCR": [0, 3, 4, 1, 5, 2], "CRD": [0, 1, 4, 2, 5, 3]}
TO_DEPTH = {"DCR": [0, 3, 5, 1, 2, 4], "CRD": [0, 1, 3, 5, 2, 4]}
"""Orders of [N, block, block, C, H, W] or [N, C, block, block, H, W], and of
[N, C, H, block, W, block]."""


@operator("DepthToSpace")
def lower_depth_to_space(node: NodeCall) -> OnnxTensor:
    """Blocks of channels as blocks of the image; many channels move as rows of their own."""
    x, block, mode = node.take(0), node.attr("blocksize"), node.attr("mode", "DCR")
    n, c, h, w = _image(x, block)
    if c % (block * block):
        raise BadNode(f"{c} channels are no multiple of {block * block}")
    if mode not in TO_SPACE:
        node.refuse(f"mode {mode!r} is not supported", "DCR or CRD")
    kept = c // (block * block)
    apart = [block, block, kept] if mode == "DCR" else [kept, block, block]
    if kept < ops.ROW_ELEMENTS:
        blocks = ops.transpose(ops.reshape(x, [n, *apart, h, w]), TO_SPACE[mode])
        return ops.reshape(blocks, [n, kept, h * block, w * block])
    if mode == "CRD":
        x = ops.transpose(ops.reshape(x, [n, *apart, h * w]), [0, 2, 3, 1, 4])
    rows = ops.transpose(ops.reshape(x, [n, c, h * w]), [0, 2, 1])
    pixels = ops.transpose(ops.reshape(rows, [n, h, w, block, block * kept]), [0, 1, 3, 2, 4])
    planes = ops.transpose(ops.reshape(pixels, [n, h * w * block * block, kept]), [0, 2, 1])
    return ops.reshape(planes, [n, kept, h * block, w * block])


@operator("SpaceToDepth")
def lower_space_to_depth(node: NodeCall) -> OnnxTensor:
    """The reverse of DepthToSpace."""
    x, block, mode = node.take(0), node.attr("blocksize"), node.attr("mode", "DCR")
    n, c, h, w = _image(x, block)
    if h % block or w % block:
        raise BadNode(f"an image of {h} x {w} has no whole blocks of {block}")
    if mode not in TO_DEPTH:
        node.refuse(f"mode {mode!r} is not supported", "DCR or CRD")
    h, w = h // block, w // block
    made = [n, c * block * block, h, w]
    if c < ops.ROW_ELEMENTS:
        blocks = ops.transpose(ops.reshape(x, [n, c, h, block, w, block]), TO_DEPTH[mode])
        return ops.reshape(blocks, made)
    rows = ops.transpose(ops.reshape(x, [n, c, h * w * block * block]), [0, 2, 1])
    pixels = ops.transpose(ops.reshape(rows, [n, h, block, w, block * c]), [0, 1, 3, 2, 4])
    planes = ops.transpose(ops.reshape(pixels, [n, h * w, made[1]]), [0, 2, 1])
    if mode == "CRD":
        apart = ops.reshape(planes, [n, block, block, c, h * w])
        planes = ops.transpose(apart, [0, 3, 1, 2, 4])
    return ops.reshape(planes, made)


def _image(x: OnnxTensor, block: int) -> tuple[int, ...]:
    if x.rank != 4 or block < 1:
        raise BadNode(f"blocks of {block} of a tensor of rank {x.rank}", "images [N, C, H, W]")
    return x.shape


@operator("ReverseSequence")
def lower_reverse_sequence(node: NodeCall) -> OnnxTensor:
    """The first elements along the time axis backwards, as many as each sequence is long.

    All rows are reversed; of each, what begins behind the elements that its sequence lacks is taken
    as one window of the rows behind each other, and the elements behind the sequence from x.
    """
    x, lengths = node.take(0), node.take(1)
    batch, time = ops.axis_of(node.attr("batch_axis"), x.rank), node.attr("time_axis")
    time = ops.axis_of(time, x.rank)
    rest = [i for i in range(x.rank) if i not in (batch, time)]
    order = [batch, time, *rest]
    rows = ops.transpose(x, order)
    if not rows.count:
        return x
    count, steps, *elements = rows.shape
    long = convert(lengths, np.int32)
    back = ops.reverse(rows, [1])
    table = ops.concat([back, ops.cut_axis(back, 0, 0, 1)], 0)  # the last window goes beyond
    table = ops.reshape(table, [(count + 1) * steps, *elements])
    starts = (ops.iota(np.int32, [count], 0) + 1) * steps - long
    numbers = (
        f"offset_dims = {list(range(1, rows.rank))}, collapsed_slice_dims = [], "
        "start_index_map = [0], index_vector_dim = 1"
    )
    starts = ops.reshape(starts, [count, 1])
    taken = ops.gather(table, starts, numbers, [steps, *elements], rows.shape)
    step = ops.iota(np.int32, rows.shape, 1)
    found = ops.where(ops.compare("LT", step, ops.along(long, rows.shape, 0)), taken, rows)
    return ops.transpose(found, np.argsort(order).tolist())


@operator("CenterCropPad")
def lower_center_crop_pad(node: NodeCall) -> OnnxTensor:
    x, sizes = node.take(0), node.integers("shape", 1) or []
    axes = node.attr("axes", None)
    axes = [ops.axis_of(a, x.rank) for a in (range(x.rank) if axes is None else axes)]
    low, high = [0] * x.rank, [0] * x.rank
    for axis, size in zip(axes, sizes, strict=True):
        more = size - x.shape[axis]
        low[axis] = more // 2 if more > 0 else ceil_div(more, 2)
        high[axis] = more - low[axis]
    return ops.pad(x, low, high, _filler(None, x))


@operator("Compress")
def lower_compress(node: NodeCall) -> OnnxTensor:
    x, axis = node.take(0), node.attr("axis")
    condition = node.constant(1)
    if axis is None:
        x, axis = ops.reshape(x, [x.count]), 0
    return ops.take_known(x, np.flatnonzero(condition), ops.axis_of(axis, x.rank))


@operator("NonZero")
def lower_non_zero(node: NodeCall) -> OnnxTensor:
    return constant(np.array(np.nonzero(np.atleast_1d(node.constant(0))), np.int64))


@operator("Unique", "NonMaxSuppression", "ImageDecoder")
def refuse_by_shape(node: NodeCall) -> OnnxTensor:
    node.refuse("the shape of the result depends on the data", "results of known shape")


@operator("Col2Im")
def lower_col2im(node: NodeCall) -> OnnxTensor:
    """Blocks [N, C * block, number] added up in images [N, C, ..]."""
    x, image = node.take(0), node.constant_integers("image_shape", 1)
    block = node.constant_integers("block_shape", 2)
    if not block or min(block) < 1:
        raise BadNode(f"blocks of {block} elements", "at least 1 along each axis")
    rank = len(image)
    strides, dilations = node.attr("strides") or [1] * rank, node.attr("dilations") or [1] * rank
    pads = node.attr("pads") or [0] * 2 * rank
    extents = [n + a + b for n, a, b in zip(image, pads[:rank], pads[rank:], strict=True)]
    counts = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, d, s in zip(extents, block, dilations, strides, strict=True)
    ]
    n, channels = x.shape[0], x.shape[1] // int(np.prod(block))
    blocks = ops.reshape(x, [n, channels, int(np.prod(block)), *counts])
    total: OnnxTensor | None = None
    for number, offset in enumerate(np.ndindex(*block)):
        part = ops.squeeze(ops.cut_axis(blocks, 2, number, number + 1), [2])
        first = [o * d for o, d in zip(offset, dilations, strict=True)]
        last = [
            e - f - ((c - 1) * s + 1)
            for e, f, c, s in zip(extents, first, counts, strides, strict=True)
        ]
        inner = [s - 1 for s in strides]
        placed = ops.pad(part, [0, 0, *first], [0, 0, *last], _filler(None, x), [0, 0, *inner])
        total = placed if total is None else total + placed
    assert total is not None, "a block has elements"
    back = [0, 0, *(-p for p in pads[:rank])], [0, 0, *(-p for p in pads[rank:])]
    return ops.pad(total, *back, _filler(None, x))
