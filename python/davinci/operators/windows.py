"""What an operator reads for which part of its result: iteration axes, and windows over them.

An operator is iterated over axes. A point of the axes that are not reduced stands for one element
of the result; each dimension of an operand is read in a window whose place follows an axis:

    y[i] = x[i + 2], a slice          axes (i),   result (i),  x (i, offset 2)
    y[i] = sum of x[i, j] over j      axes (i, j: add),  result (i),  x (i, j)
    y[i] = x[0], a broadcast          axes (i),   result (i),  x (fixed, size 1)
    y[i, j] = x[4 * i + j], a reshape axes (i, j),   result (i, j),  x (4 i + j)

Positions outside an array do not exist: a `pad` reads its operand at i - low, and nothing where
that is negative; of a dimension that two axes make up, the last points may lie behind its end.
A window may hold more than is read, never less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from davinci.operators.call import Call

PARALLEL = "parallel"
"""The kind of an axis of the result; others are reduced: "add", "max", "min", "mul"."""


@dataclass(frozen=True)
class WindowAxis:
    """An axis of iteration: its size, and how what lies along it is combined."""

    size: int
    kind: str = PARALLEL


@dataclass(frozen=True)
class WindowDim:
    """What is read of one dimension: offset + stride * i + dilation * j for all j < size.

    Attributes:
        axis: number of the axis whose index is i; None: i is 0, the window stays where it is.
        stride: from one window to the next.
        size: elements of a window.
        offset: of the first window; negative: it begins outside.
        dilation: from one element of a window to the next.
        inner: another axis that the place follows; its positions are added.
    """

    axis: int | None
    stride: int = 1
    size: int = 1
    offset: int = 0
    dilation: int = 1
    inner: WindowDim | None = None

    def positions(self, point: Sequence[int]) -> list[int]:
        """Positions at a point of the axes, also those outside the array."""
        index = 0 if self.axis is None else point[self.axis]
        first = self.offset + self.stride * index
        own = [first + self.dilation * j for j in range(self.size)]
        more = self.inner.positions(point) if self.inner else [0]
        return [a + b for a in own for b in more]


Window = tuple[WindowDim, ...] | None
"""What is read of each dimension of an operand; None where all of it may be read for any part of
the result."""


@dataclass(frozen=True)
class Windows:
    """Axes of an operator, where its result lies on them, and the windows of its operands."""

    axes: tuple[WindowAxis, ...]
    result: tuple[WindowDim, ...]
    operands: tuple[Window, ...]


WindowsOf = Callable[[Call], Windows]


def whole(size: int) -> WindowDim:
    """A dimension of which all is read for any part of the result."""
    return WindowDim(None, size=size)


def along(axis: int, size: int, result: int) -> WindowDim:
    """A dimension that follows an axis of `result` points, or stays where it has one element."""
    return WindowDim(axis) if size == result else WindowDim(None)


def axes_of_result(call: Call) -> tuple[WindowAxis, ...]:
    """One parallel axis for each dimension of the result."""
    return tuple(map(WindowAxis, call.outputs[0].shape))


def in_order(rank: int) -> tuple[WindowDim, ...]:
    """Dimension i follows axis i."""
    return tuple(map(WindowDim, range(rank)))


def same_place(call: Call) -> Windows:
    """Every operand is read where the result is written."""
    dims = in_order(call.outputs[0].rank)
    return Windows(axes_of_result(call), dims, (dims,) * len(call.inputs))
