"""Fourier transforms, as products with matrices of sines and cosines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Array, OnnxTensor, constant
from davinci.units import ceil_div

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def transform(length: int, inverse: bool = False, onesided: bool = False) -> Array:
    """The matrix [2, length, 2, frequencies] that complex rows [2, length] are multiplied by.

    The dimensions of size 2 are real and imaginary parts. `onesided` keeps the first half of the
    frequencies; of an inverse it is those that are given, and the result is real.
    """
    half = length // 2 + 1
    rows, columns = np.arange(length), np.arange(length)
    rows = rows[:half] if onesided and inverse else rows
    columns = columns[:half] if onesided and not inverse else columns
    angles = 2 * np.pi / length * (np.outer(rows, columns) % length)
    cosine, sine = np.cos(angles), -np.sin(angles)
    if inverse:
        mirrored = 2 - ((rows == 0) | (2 * rows == length)) if onesided else np.ones(len(rows))
        scale = mirrored[:, None] / length
        cosine, sine = cosine * scale, -sine * scale
    return np.stack([np.stack([cosine, sine], 1), np.stack([-sine, cosine], 1)])


def transformed(parts: OnnxTensor, matrix: OnnxTensor) -> OnnxTensor:
    """Rows [.., parts, length] by [parts, length, results, frequencies]: [.., results, ..]."""
    outer, inner = parts.shape[:-2], matrix.shape[2:]
    depth = parts.shape[-2] * parts.shape[-1]
    rows = ops.reshape(parts, [*outer, depth])
    product = ops.matmul(rows, ops.reshape(matrix, [depth, inner[0] * inner[1]]))
    return ops.reshape(product, [*outer, *inner])


def resized(x: OnnxTensor, axis: int, size: int) -> OnnxTensor:
    """`x` cut at the end of an axis, or with zeros there."""
    return ops.pad(x, [0] * x.rank, [size - x.shape[i] if i == axis else 0 for i in range(x.rank)])


@operator("DFT")
def lower_dft(node: NodeCall) -> OnnxTensor:
    """[.., 1] is real, [.., 2] complex. The axis is an attribute before operator set 20."""
    x, length, axes = node.take(0), node.known(1), node.integers("axis", 2)
    inverse, onesided = bool(node.attr("inverse")), bool(node.attr("onesided"))
    default = 1 if node.version < 20 else -2
    axis = ops.axis_of(axes[0] if axes else default, x.rank)
    complex_input = x.shape[-1] == 2
    if axis == x.rank - 1 or (onesided and inverse != complex_input):
        node.refuse(
            f"shape {list(x.shape)} along axis {axis}", "real signals or complex frequencies"
        )
    default = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    count = default if length is None else int(length.item())
    matrix = transform(count, inverse, onesided)
    matrix = matrix[: x.shape[-1], :, : 1 if inverse and onesided else 2]
    parts = ops.move_axis(resized(x, axis, matrix.shape[1]), axis, -1)
    found = transformed(parts, constant(matrix.astype(x.dtype)))
    return ops.move_axis(found, -1, axis)


@operator("STFT")
def lower_stft(node: NodeCall) -> OnnxTensor:
    """Transforms of frames [batch, frames, length] of a signal [batch, n, 1 or 2]."""
    x, step, window = node.take(0), node.known(1), node.optional(2)
    given, onesided = node.known(3), bool(node.attr("onesided"))
    x = ops.expand_dims(x, [2]) if x.rank == 2 else x
    default = x.shape[1] if window is None else window.count
    length = default if given is None else int(given.item())
    if step is None or (onesided and x.shape[2] == 2):
        node.refuse("one side of the frequencies of a complex signal", "onesided 0")
    matrix = constant(transform(length, onesided=onesided)[: x.shape[2]].astype(x.dtype))
    if window is not None:
        matrix = matrix * ops.reshape(window, [1, length, 1, 1])
    parts = ops.move_axis(frames(x, length, int(step.item())), 2, 3)
    return ops.move_axis(transformed(parts, matrix), 2, 3)


def frames(x: OnnxTensor, length: int, step: int) -> OnnxTensor:
    """[batch, n, parts] to [batch, frames, length, parts], whose frames begin every `step`.

    A frame is some rows of `step` elements in turn: as many slices of all rows make all frames.
    """
    batch, size, parts = x.shape
    count, pieces = (size - length) // step + 1, ceil_div(length, step)
    rows = ops.reshape(
        resized(x, 1, (count + pieces - 1) * step), [batch, count + pieces - 1, step, parts]
    )
    behind = [ops.cut_axis(rows, 1, i, i + count) for i in range(pieces)]
    return ops.cut_axis(ops.concat(behind, 2), 2, 0, length)
