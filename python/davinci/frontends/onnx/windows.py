"""Windows that convolutions and pools move over the spatial dimensions of [N, C, ..].

Where they lie follows from `kernel_shape`, `strides`, `dilations`, `pads`, `auto_pad` and
`ceil_mode`, which mean the same in all of these operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, Operand
from davinci.units import ceil_div

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class SpatialWindows:
    """Along each spatial axis: size, step, distance of elements, padding, and number of windows.

    The last window may reach beyond the padding (`ceil_mode`), which `beyond` counts.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    low: list[int]
    high: list[int]
    counts: list[int]

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def extents(self) -> list[int]:
        """Elements from the first to the last of a window, both included."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    def reach(self, axis: int) -> int:
        """Elements of an axis from its padding to the end of the last window."""
        return (self.counts[axis] - 1) * self.strides[axis] + self.extents[axis]


def windows_of(
    node: NodeCall, x: OnnxTensor, kernel: Sequence[int] | None = None
) -> SpatialWindows:
    """The windows of a node on `x`; `kernel` where there is no `kernel_shape`."""
    rank = x.rank - 2
    sizes = node.attr("kernel_shape", None) or list(kernel or [])
    if rank < 1 or len(sizes) != rank:
        raise BadNode(f"windows of {sizes} on a tensor of rank {x.rank}", "[N, C, ..]")
    strides = node.attr("strides", None) or [1] * rank
    dilations = node.attr("dilations", None) or [1] * rank
    extents = [d * (k - 1) + 1 for k, d in zip(sizes, dilations, strict=True)]
    low, high = paddings(node, x.shape[2:], extents, strides)
    ceil = bool(node.attr("ceil_mode", 0))
    counts = [
        count(n + a + b, n + a, extent, stride, ceil)
        for n, a, b, extent, stride in zip(x.shape[2:], low, high, extents, strides, strict=True)
    ]
    return SpatialWindows(list(sizes), list(strides), list(dilations), low, high, counts)


def paddings(
    node: NodeCall, sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What stands before and behind each spatial axis."""
    rank, mode = len(sizes), node.attr("auto_pad", "NOTSET")
    pads = node.attr("pads", None) or [0] * (2 * rank)
    if mode in SAME:
        totals = [
            max(0, (ceil_div(n, s) - 1) * s + e - n)
            for n, e, s in zip(sizes, extents, strides, strict=True)
        ]
        return halves(totals, larger_first=mode == "SAME_LOWER")
    if mode == "VALID":
        return [0] * rank, [0] * rank
    return list(pads[:rank]), list(pads[rank:])


def halves(totals: Sequence[int], larger_first: bool) -> tuple[list[int], list[int]]:
    """Totals in two parts; which one is larger where a total is odd."""
    first = [(total + larger_first) // 2 for total in totals]
    return first, [total - a for total, a in zip(totals, first, strict=True)]


def count(padded: int, inside: int, extent: int, stride: int, ceil: bool) -> int:
    """Number of windows; with `ceil` the last may end outside, but begins before `inside`."""
    free = padded - extent
    if free < 0 and not ceil:
        raise BadNode(f"a window of {extent} on {padded} elements")
    number = (ceil_div(free, stride) if ceil else free // stride) + 1
    if ceil and (number - 1) * stride >= inside:
        number -= 1
    return max(0, number)


def fold(x: OnnxTensor, windows: SpatialWindows, kind: str) -> OnnxTensor:
    """Combines the elements of each window: [N, C, ..counts].

    Args:
        kind: name of `ops.reduce`, whose neutral element stands in the padding.
    """
    # Elements that no window reaches are no padding that is taken away.
    ends = zip(x.shape[2:], windows.low, strict=True)
    high = [max(0, windows.reach(i) - size - low) for i, (size, low) in enumerate(ends)]
    return ops.reduce_window(
        kind,
        x,
        [1, 1, *windows.kernel],
        strides=[1, 1, *windows.strides],
        dilations=[1, 1, *windows.dilations],
        padding=[(0, 0), (0, 0), *zip(windows.low, high, strict=True)],
        shape=[*x.shape[:2], *windows.counts],
    )


def padded(x: OnnxTensor, windows: SpatialWindows, value: Operand) -> OnnxTensor:
    """`x` with its padding, up to the end of the last window."""
    sizes = x.shape[2:]
    high = [
        windows.reach(i) - size - low
        for i, (size, low) in enumerate(zip(sizes, windows.low, strict=True))
    ]
    return ops.pad(x, [0, 0, *windows.low], [0, 0, *high], value)


def shifted(x: OnnxTensor, at: int, windows: SpatialWindows, i: int) -> list[OnnxTensor]:
    """The elements number 0, 1, .. of all windows along axis i, which is dimension `at` of `x`."""
    stride, dilation, number = windows.strides[i], windows.dilations[i], windows.counts[i]
    reach = (number - 1) * stride + 1
    return [
        ops.cut_axis(x, at, k * dilation, k * dilation + reach, stride)
        for k in range(windows.kernel[i])
    ]
