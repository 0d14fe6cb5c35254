"""Reductions over windows of images, as the vector unit computes them: channels are its lanes.

An image lies [pixels, channels], as `conv` has it. What pads it is left out:

    X [n, h w, c]     Y [n, oh ow, c]

    Y[n, (y, x), c] = combination over (i, j) of X[n, (y sh + i dh - top, x sw + j dw - left), c]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.conv import LENGTHS, Geometry, geometry, is_image, legal_geometry
from davinci.operators.core import FLOATS, Array, operator
from davinci.operators.layouts import one_layout
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.tensors import Tensor
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import OperatorWork, traffic
from davinci.units import REPEAT_BYTES, ceil_div

KINDS = ("add", "max", "min")
"""What windows are combined by, of `REDUCTIONS`."""


def known_kind(call: Call) -> None:
    """`kind` is "add", "max" or "min"."""
    call.choice("kind", KINDS)


def has_pixels(found: Geometry) -> bool:
    """Whether each window has a pixel of the image.

    >>> has_pixels(Geometry((4, 4), (1, 3), (1, 1), (1, 1), (0, 0, 3, 0)))
    False
    """
    top, _, left, _ = found.pads
    for axis, before in enumerate((top, left)):
        taken = before + found.image[axis]
        for window in range(found.windows[axis]):
            first = window * found.strides[axis]
            last = first + found.extent[axis]
            reached = range(first, last, found.dilations[axis])
            if not any(before <= place < taken for place in reached):
                return False
    return True


def windows_have_pixels(call: Call) -> None:
    """Each window has a pixel of the image."""
    found = geometry(call.attributes)
    require(has_pixels(found), "a window", "in padding only", "a pixel in each")


def result_of_windows(call: Call) -> None:
    """Y is [n, oh ow, c]."""
    rows, columns = geometry(call.attributes).windows
    n, _, channels = call.inputs[0].shape
    expected, found = (n, rows * columns, channels), call.outputs[0].shape
    require(found == expected, "shape of the result", list(found), list(expected))


def float_pixels(call: Call) -> None:
    """X is f16 or f32; Y is the same, or f32 where windows are added."""
    x, y = (value.element for value in call.values)
    require(x in FLOATS, "element type of X", x, " or ".join(sorted(FLOATS)))
    legal = {x, "f32"} if call.attributes["kind"] == "add" else {x}
    require(y in legal, "element type of the result", y, " or ".join(sorted(legal)))


def windows_of_image(call: Call) -> Windows:
    """Windows of a pooling: any pixel of the image may be read for a part of the result."""
    image = (WindowDim(0), whole(call.inputs[0].shape[1]), WindowDim(2))
    return Windows(axes_of_result(call), in_order(3), (image,))


def combinations(call: Call) -> OperatorWork:
    """Rows and columns of windows one after the other."""
    (y,), kernel = call.outputs, geometry(call.attributes).kernel
    repeats = max(1, sum(kernel) - 2) * ceil_div(y.size_bytes, REPEAT_BYTES)
    return OperatorWork(0, 16, repeats, *traffic(call))


@operator(
    windows=windows_of_image,
    constraints=(
        legal_geometry,
        is_image,
        known_kind,
        windows_have_pixels,
        result_of_windows,
        float_pixels,
    ),
    types=FLOATS,
    work=combinations,
    layouts=one_layout,
)
def pool(
    x: Array,
    *,
    image: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
    kind: str,
    result: Tensor,
) -> Any:
    """Combines the pixels of each window of images X [n, h w, c]: Y [n, oh ow, c].

    `image` is (h, w), `kernel` (kh, kw); `pads` are above, below, left and right. `kind` is "add"
    (in f32), "max" or "min".
    """
    given = (image, kernel, strides, dilations, pads)
    found = geometry(dict(zip(LENGTHS, given, strict=True)))
    reduction, (count, _, channels) = REDUCTIONS[kind], x.shape
    top, bottom, left, right = found.pads
    wide = x.astype(np.float32).reshape(count, *found.image, channels)
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(wide, around, constant_values=reduction.first)
    (rows, columns), (sh, sw) = found.windows, found.strides
    parts = []
    for i, j in np.ndindex(*found.kernel):
        y, z = i * found.dilations[0], j * found.dilations[1]
        down, across = (
            slice(y, y + (rows - 1) * sh + 1, sh),
            slice(z, z + (columns - 1) * sw + 1, sw),
        )
        parts.append(padded[:, down, across])
    return reduction.combine.reduce(np.stack(parts), axis=0).reshape(result.shape)
