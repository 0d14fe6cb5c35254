"""Convolution of images, as the cube computes it: windows of pixels times weights.

An image lies [pixels, channels], so its fractals (nz) are what load3d reads: blocks of 16 channels
of all pixels. The weights are a matrix whose rows follow load3d's order, blocks of channels, rows
and columns of the kernel, channels of the block:

    X [n, h w, c]     W [1, ceil(c / 16) kh kw 16, o]     Y [n, oh ow, o]

    Y[n, (y, x), o] = sum over (i, j, c) of X[n, (y sh + i dh - top, x sw + j dw - left), c]
                                            W[0, ((c / 16) kh kw + i kw + j) 16 + c % 16, o]

With several matrices of weights channels are in as many groups, each whole blocks of 16, of inputs
as of outputs; the last block of the last group may be ragged, and its weights are zeros beyond c
and o, which keeps the padding of Y zero. 40 channels that do not meet are groups of 16, 16 and 8:

    X [n, h w, 40]    W [3, kh kw 16, 16]    Y [n, oh ow, 40]

Bytes lie in blocks of 32 channels, and their weights with rows and columns exchanged
(`transpose_b`): the way to the cube turns no fractals of them. Their groups are whole blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import CUBE, Array, operator
from davinci.operators.layouts import any_layout
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.tensors import Tensor, lanes
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import OperatorWork
from davinci.units import FRACTAL_SIDE, ceil_div, round_up

MOST_KERNEL, MOST_STRIDE, MOST_DILATION, MOST_PADDING, MOST_SIDE = 255, 63, 255, 255, 32767
"""What load3d can encode along a side."""

FACTORS = ("f16", "f32", "i8")
TYPES = frozenset({*FACTORS, "i32"})


@dataclass(frozen=True)
class Geometry:
    """How windows lie on an image; pairs are along the height and the width.

    Attributes:
        image: pixels of the image.
        pads: rows and columns of zeros above, below, on the left and on the right.
    """

    image: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]

    @property
    def extent(self) -> tuple[int, int]:
        """Pixels from the first to the last one of a window."""
        (h, w), (dh, dw) = self.kernel, self.dilations
        return (h - 1) * dh + 1, (w - 1) * dw + 1

    @property
    def windows(self) -> tuple[int, int]:
        """Rows and columns of windows."""
        top, bottom, left, right = self.pads
        (height, width), (high, wide) = self.image, self.extent
        rows = (top + height + bottom - high) // self.strides[0] + 1
        return rows, (left + width + right - wide) // self.strides[1] + 1

    @property
    def elements(self) -> int:
        """Elements of the kernel for one channel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def pointwise(self) -> bool:
        """Whether each window is the pixel of its number."""
        return self.elements == 1 and self.strides == (1, 1) and not any(self.pads)


LENGTHS = {"image": 2, "kernel": 2, "strides": 2, "dilations": 2, "pads": 4}


def geometry(attributes: Any) -> Geometry:
    """The geometry that a convolution's attributes, as Python values, describe."""
    return Geometry(**{name: tuple(attributes[name]) for name in LENGTHS})


def legal_geometry(call: Call) -> None:
    """image, kernel, strides and dilations are pairs, pads four numbers, in the limits of load3d:
    strides 1..63, kernel and dilations 1..255, pads 0..255, sides of the image 1..32767; a window
    fits into the image with its padding."""
    bounds = {
        "image": (1, MOST_SIDE),
        "kernel": (1, MOST_KERNEL),
        "strides": (1, MOST_STRIDE),
        "dilations": (1, MOST_DILATION),
        "pads": (0, MOST_PADDING),
    }
    for name, (least, most) in bounds.items():
        found = call.array(name)
        legal = len(found) == LENGTHS[name] and all(least <= x <= most for x in found)
        require(legal, f"attribute '{name}'", found, f"{LENGTHS[name]} numbers {least}..{most}")
    windows = geometry(call.attributes).windows
    require(min(windows) > 0, "windows", list(windows), "at least one")


def is_image(call: Call) -> None:
    """X is [n, h w, c] with a channel at least."""
    x, found = call.inputs[0], geometry(call.attributes)
    pixels = found.image[0] * found.image[1]
    legal = x.rank == 3 and x.shape[1] == pixels and x.shape[2] > 0
    require(legal, "shape of X", list(x.shape), f"[n, {pixels}, c]")


def has_weights(call: Call) -> None:
    """W is [1, ceil(c / 16) kh kw 16, o], or of several groups [g, b kh kw 16, p 16]: each of b
    blocks of channels and p blocks of outputs, ceil(c / 16) and ceil(o / 16) blocks together. Of
    bytes W has rows and columns exchanged, with `transpose_b`, and c is a multiple of 32 g."""
    x, w = call.inputs
    require(w.rank == 3 and w.shape[0] > 0, "shape of W", list(w.shape), "[groups, rows, columns]")
    turned = bool(call.attributes.get(TRANSPOSE_B))
    require(turned == (w.element == "i8"), "transpose_b", turned, "true of bytes only")
    (groups, found, outputs), channels = matrices(call), x.shape[2]
    block, lies = lanes(x.element), geometry(call.attributes)
    if groups > 1:
        last = block if x.element == "i8" else 1
        whole = ceil_div(channels, block) % groups == 0 and channels % last == outputs % block == 0
        require(whole, "channels of groups", [channels, outputs], f"whole blocks of {block} each")
    rows = weight_rows(ceil_div(channels, groups), lies, block)
    require(found == rows, "rows of W", found, rows)


def matrices(call: Call) -> tuple[int, int, int]:
    """Groups, and rows and columns of the matrix of weights of each."""
    groups, rows, columns = call.inputs[1].shape
    return (groups, columns, rows) if call.attributes.get(TRANSPOSE_B) else (groups, rows, columns)


def weight_rows(channels: int, found: Geometry, block: int = FRACTAL_SIDE) -> int:
    """Rows of the matrix of weights; `block`: channels of a block."""
    return ceil_div(channels, block) * found.elements * block


def result_of_windows(call: Call) -> None:
    """Y is [n, oh ow, o]; of several groups o may end inside the last block of the last one."""
    rows, columns = geometry(call.attributes).windows
    groups, _, each = matrices(call)
    found, outputs = call.outputs[0].shape, groups * each
    if groups > 1 and call.inputs[0].element != "i8" and len(found) == 3:
        block = lanes(call.inputs[0].element)
        outputs = found[2] if round_up(found[2], block) == outputs else outputs
    expected = (call.inputs[0].shape[0], rows * columns, outputs)
    require(found == expected, "shape of the result", list(found), list(expected))


def types_of_factors(call: Call) -> None:
    """X and W are f16, f32 or i8; the result is the same, or f32; of i8 it is i32."""
    x, w, y = (value.element for value in call.values)
    require(x in FACTORS, "element type of X", x, " or ".join(FACTORS))
    require(w == x, "element type of W", w, x)
    legal = ("i32",) if x == "i8" else (x, "f32")
    require(y in legal, "element type of the result", y, " or ".join(legal))


def padding_of_bytes(call: Call) -> None:
    """`padding` is a byte, of floats 0."""
    found, of_bytes = call.attributes.get("padding", 0), call.inputs[0].element == "i8"
    legal = -128 <= found < 128 if of_bytes else found == 0
    require(legal, "padding", found, "a byte, or 0 of floats")


def windows_of_image(call: Call) -> Windows:
    """Of the image any pixel may be read for a window."""
    x, w = call.inputs
    image = (WindowDim(0), whole(x.shape[1]), whole(x.shape[2]))
    weights = (whole(w.shape[0]), whole(w.shape[1]), whole(w.shape[2]))
    if w.shape[0] == 1 and call.attributes.get(TRANSPOSE_B):
        weights = (weights[0], WindowDim(2), weights[2])
    elif w.shape[0] == 1:
        weights = (*weights[:2], WindowDim(2))
    return Windows(axes_of_result(call), in_order(3), (image, weights))


def multiplications(call: Call) -> OperatorWork:
    """Work of a convolution: products over the channels of a group; padding is read from no
    memory."""
    x, w = call.inputs
    y = call.outputs[0]
    groups = call.attributes.get("groups", w.shape[0])
    inner = x.shape[2] // groups * geometry(call.attributes).elements
    return OperatorWork(
        macs=y.count * inner,
        factor_bits=8 if x.bytes_each == 1 else 16,
        read_bytes=x.size_bytes + inner * y.shape[2] * x.bytes_each,
        write_bytes=y.size_bytes,
    )


@operator(
    windows=windows_of_image,
    constraints=(
        legal_geometry,
        is_image,
        has_weights,
        result_of_windows,
        types_of_factors,
        padding_of_bytes,
    ),
    unit=CUBE,
    types=TYPES,
    work=multiplications,
    layouts=any_layout,
)
def conv(
    x: Array,
    w: Array,
    *,
    image: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
    groups: int = 1,
    transpose_b: bool = False,
    padding: int = 0,
    result: Tensor,
) -> Any:
    """Images X [n, h w, c] in windows times weights W [g, k, o / g]: Y [n, oh ow, o].

    `image` is (h, w), `kernel` (kh, kw); `pads` are above, below, left and right. Rows of W are
    blocks of 16 channels, rows and columns of the kernel, channels of a block. `groups` says how
    many groups of channels do not meet: more than W has matrices where it has zeros between them.
    With `transpose_b`, as bytes have it, W is [g, o / g, k]. Around images is `padding`, of bytes
    any number.
    """
    given = (image, kernel, strides, dilations, pads)
    found = geometry(dict(zip(LENGTHS, given, strict=True)))
    w = w.swapaxes(1, 2) if transpose_b else w
    groups, block = w.shape[0], lanes("i8" if x.dtype == np.int8 else "f16")
    each = x.shape[2] if groups == 1 else w.shape[1] // found.elements // block * block
    images = x.reshape(x.shape[0], *found.image, x.shape[2])
    parts = [images[..., i * each : (i + 1) * each] for i in range(groups)]
    made = [convolved(part, w[i], found, padding) for i, part in enumerate(parts)]
    return np.concatenate(made, axis=3)[..., : result.shape[2]].reshape(result.shape)


def convolved(images: Array, weights: Array, found: Geometry, padding: int) -> Array:
    """[n, h, w, c] times weights [rows, o], summed in f32, of bytes in i32: [n, oh, ow, o]."""
    count, *_, channels = images.shape
    of_bytes = images.dtype == np.int8
    kind: Any = np.int32 if of_bytes else np.float32
    block = lanes("i8" if of_bytes else "f16")
    top, bottom, left, right = found.pads
    blocks = ceil_div(channels, block)
    around = ((0, 0), (top, bottom), (left, right), (0, blocks * block - channels))
    padded = np.pad(images.astype(kind), around, constant_values=padding)
    outputs = weights.shape[1]
    parts = weights.astype(kind).reshape(blocks, *found.kernel, block, outputs)
    (rows, columns), (sh, sw) = found.windows, found.strides
    total = np.zeros((count, rows, columns, outputs), kind)
    for i, j in np.ndindex(found.kernel):
        y, z = i * found.dilations[0], j * found.dilations[1]
        taken = padded[:, y : y + (rows - 1) * sh + 1 : sh, z : z + (columns - 1) * sw + 1 : sw]
        total += taken @ parts[:, i, j].reshape(-1, outputs)
    return total
