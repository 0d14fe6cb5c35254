"""ascend-unfold-windows: convolutions as products of what their windows hold.

before:
    %y = "ascend.conv"(%x, %w) {image = array<i64: 8, 8>, kernel = array<i64: 3, 3>,
                                pads = array<i64: 1, 1, 1, 1>, ..}
        : (tensor<1x64x16xf32>, tensor<1x144x32xf32>) -> tensor<1x64x32xf32>
after:
    %p = "ascend.pad"(..) : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x10x10x16xf32>
    %0 = "ascend.slice"(%p) .. -> tensor<1x8x8x16xf32>     one for each element of the kernel
    %u = "ascend.concat"(..) {dim = 3} : .. -> tensor<1x8x8x144xf32>
    %y = "ascend.matmul"(%u', %w') : (tensor<64x144xf32>, tensor<144x32xf32>) -> tensor<64x32xf32>

For targets without loads of windows, such as text of AscendNPU-IR (`davinci.hivm_out`). What
windows hold is written to memory, where it takes as many times the bytes of the image as the kernel
has elements. Several groups are a batch of products, the last one padded if it is ragged. Rows of
the weights, which follow load3d's order, are put into that of the unfolded windows, at compile time
where weights are known.

Windows that are the pixels of the image stay, for they need no such loads, and so do those of bytes
in several groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.conv import Geometry
from davinci.operators.tensors import lanes
from davinci.passes.ascend.ascend_winograd import geometry_of
from davinci.passes.ascend.tensor_ops import CONVOLUTION, TensorOps, erase_unused, tensor_functions
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.units import FRACTAL_SIDE, ceil_div


@register_pass
@dataclass(frozen=True)
class AscendUnfoldWindowsPass(Pass):
    """Compute convolutions as products of unfolded windows."""

    NAME = "ascend-unfold-windows"

    def run(self, op: Op) -> None:
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            for operation in list(block.operations):
                conv = operation.operation
                if conv.name == CONVOLUTION and may_be_unfolded(conv):
                    unfold(conv)
            erase_unused(block)


def may_be_unfolded(conv: Op) -> bool:
    """Whether the windows of a convolution are more than the image's pixels, and of bytes in one
    group."""
    groups, weights = attribute(conv, "groups", 1), tensor_of(conv.operands[1].type)
    return (weights.element != "i8" or groups == 1) and not geometry_of(conv).pointwise


def unfold(conv: Op) -> None:
    """Replaces a convolution by the product of its windows and its weights."""
    x, w = conv.operands
    found, result = geometry_of(conv), tensor_of(conv.result.type)
    (images, windows, outputs), (groups, *_) = result.shape, tensor_of(w.type).shape
    with conv.location, ir.InsertionPoint(conv):
        ops = TensorOps()
        of_bytes = tensor_of(w.type).element == "i8"
        _, pixels, channels = tensor_of(x.type).shape
        columns = outputs
        if groups > 1:
            _, inner, columns = tensor_of(w.type).shape
            channels = inner // found.elements
            x = ops.padded(x, [images, pixels, groups * channels])
        rows, inner = images * windows, found.elements * channels
        held = held_by_windows(x, found, attribute(conv, "padding", 0), ops)
        laid = bytes_by_element if of_bytes else rows_by_element
        weights = laid(w, found, channels, ops)
        if groups == 1:
            held = ops.reshape(held, [rows, inner])
            turned = {"transpose_b": True} if of_bytes else {}
            weights = ops.reshape(weights, [columns, inner] if of_bytes else [inner, columns])
            kind = Tensor((rows, columns), result.element)
            made = ops.emit("matmul", [held, weights], kind, **turned)
        else:
            held = ops.reshape(held, [rows, found.elements, groups, channels])
            held = ops.reshape(ops.transpose(held, [2, 0, 1, 3]), [groups, rows, inner])
            kind = Tensor((groups, rows, columns), result.element)
            made = ops.transpose(ops.emit("batch_matmul", [held, weights], kind), [1, 0, 2])
        made = ops.reshape(made, [images, windows, groups * columns])
        made = ops.cut(made, [0, 0, 0], [images, windows, outputs])
    conv.result.replace_all_uses_with(made)
    conv.erase()


def held_by_windows(x: ir.Value, found: Geometry, padding: int, ops: TensorOps) -> ir.Value:
    """Images [n, h w, c] as [n, oh, ow, kh kw c]: of each window all elements, one behind the
    other, with all channels of each; around images is `padding`."""
    images, _, channels = tensor_of(x.type).shape
    image = ops.reshape(x, [images, *found.image, channels])
    top, bottom, left, right = found.pads
    height, width = found.image
    shape = [images, top + height + bottom, left + width + right, channels]
    if any(found.pads):
        zero = ops.full((), tensor_of(x.type).element, padding)
        around = {"low": [0, top, left, 0], "high": [0, bottom, right, 0], "interior": [0] * 4}
        kind = Tensor(tuple(shape), tensor_of(x.type).element)
        image = ops.emit("pad", [image, zero], kind, **around)
    parts = []
    for place in product(*map(range, found.kernel)):
        starts = [n * step for n, step in zip(place, found.dilations, strict=True)]
        ends = [
            start + (count - 1) * step + 1
            for start, count, step in zip(starts, found.windows, found.strides, strict=True)
        ]
        limits = [images, *ends, channels]
        parts.append(ops.cut(image, [0, *starts, 0], limits, [1, *found.strides, 1]))
    return ops.concat(parts, 3)


def rows_by_element(w: ir.Value, found: Geometry, channels: int, ops: TensorOps) -> ir.Value:
    """Weights whose rows are [c / 16][kh][kw][16] as [groups, kh kw c, outputs].

    Args:
        channels: of a group; rows for more than these are left out.
    """
    groups, _, outputs = tensor_of(w.type).shape
    blocks = ceil_div(channels, FRACTAL_SIDE)
    w = ops.reshape(w, [groups, blocks, found.elements, FRACTAL_SIDE, outputs])
    w = ops.transpose(w, [0, 2, 1, 3, 4])
    w = ops.reshape(w, [groups, found.elements, blocks * FRACTAL_SIDE, outputs])
    w = ops.cut(w, [0, 0, 0, 0], [groups, found.elements, channels, outputs])
    return ops.reshape(w, [groups, found.elements * channels, outputs])


def bytes_by_element(w: ir.Value, found: Geometry, channels: int, ops: TensorOps) -> ir.Value:
    """Weights of bytes [1, outputs, k], k being [c / 32][kh][kw][32], as [1, outputs, kh kw c]."""
    _, outputs, _ = tensor_of(w.type).shape
    block = lanes("i8")
    w = ops.reshape(w, [outputs, ceil_div(channels, block), found.elements, block])
    w = ops.transpose(w, [0, 2, 1, 3])
    return ops.reshape(w, [1, outputs, found.elements * channels])
