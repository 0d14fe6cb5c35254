"""The axes of a group: one space that all its operators are iterated over.

    %m = reduce max %x dims 1        x: 12x128x128      axes  i0 (12 * 128), i1 (128, reduced)
    %b = broadcast %m                                   x, b, s: (i0, i1)    m: (i0)
    %s = sub %x, %b

Dimensions that operators bring together are one axis: elementwise operators those in the same
place, a transpose those that it permutes, a reshape those that make up each other (768 = 12 x 64:
an axis may be split). Nz has its columns split in two axes, the inner of 16 lanes. Neighbours
that lie beside each other in all values which have one of them are merged, so that most groups
have one or two axes.

The innermost axis is the vector unit's lanes. Where it is shorter than a block, no copy can bring
its rows to blocks of their own; then the space has one more axis, of size 1, that no value has, and
every value is a statistic (`tile_program`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from davinci.operators import OPERATORS
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.operators.vector_program import DTYPE_OF
from davinci.schedule.graph import Graph, Node, Operand, Scalar
from davinci.schedule.node_windows import (
    WrongWindows,
    axes_of,
    extent_of,
    reduced_axes,
    windows_of,
)
from davinci.schedule.vector.row_places import block_lanes
from davinci.units import FRACTAL_SIDE, round_up

MOVES = frozenset({"broadcast", "reshape", "transpose", "reduce"})
"""Operators besides the elementwise ones that a space can hold."""


LEAST_LANES = 8
"""Lanes of a block of 32 bits, and of what the halves of 64 take."""


class NoSpace(Exception):
    """A group that has no common space."""


class _Factor:
    """A dimension, or a part of one; `same` or `parts` lead to what it has become."""

    __slots__ = ("parts", "same", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.same: _Factor | None = None
        self.parts: tuple[_Factor, ...] = ()


Dims = list[_Factor]


def _leaves(factors: Sequence[_Factor]) -> Dims:
    """What factors have become, outermost first; sizes of 1 vanish."""
    found: Dims = []
    for factor in factors:
        while factor.same is not None:
            factor = factor.same
        if factor.parts:
            found += _leaves(factor.parts)
        elif factor.size != 1:
            found.append(factor)
    return found


def _unify(first: Sequence[_Factor], second: Sequence[_Factor]) -> None:
    """Makes two rows of factors the same, splitting what is larger; sizes multiply to the same."""
    a, b = _leaves(first), _leaves(second)
    while a and b:
        x, y = a.pop(), b.pop()
        if x is y:
            continue
        if x.size < y.size:
            x, y, a, b = y, x, b, a
        if x.size == y.size:
            x.same = y
            continue
        if x.size % y.size:
            raise NoSpace(f"{x.size} and {y.size} have no common parts")
        outer = _Factor(x.size // y.size)
        x.parts = (outer, y)
        a.append(outer)
    if a or b:
        raise NoSpace("sizes differ")


@dataclass(frozen=True)
class Axis:
    """An axis of the space: its size, and whether some operator reduces it."""

    size: int
    reduced: bool


@dataclass(frozen=True)
class IterationSpace:
    """The axes of a group.

    Attributes:
        axes: outermost first, in the order of the group's largest value; the last one is lanes.
        order: of each value the axes that it has, in the order in which it lies in memory.
        windows: strides of inputs and outputs that are parts of arrays.
        inside: axes that lie inside the lanes in memory, see `turned_space`.
    """

    axes: tuple[Axis, ...]
    order: dict[int, tuple[int, ...]]
    windows: dict[int, dict[int, int]] = field(default_factory=dict)
    inside: frozenset[int] = frozenset()

    def of(self, value: int) -> tuple[int, ...]:
        """The axes of a value in the order of the space."""
        return tuple(sorted(self.order[value]))

    def strides(self, value: int) -> dict[int, int]:
        """Elements between neighbours along each axis of a value in GM."""
        if value in self.windows:
            return self.windows[value]
        found, stride = {}, 1
        for axis in reversed(self.order[value]):
            found[axis] = stride
            stride *= self.axes[axis].size
        return found


def space_of(graph: Graph) -> IterationSpace:
    """The space of a group.

    Raises:
        NoSpace: the operators cannot be iterated together.
    """
    graph = _as_stored(graph)
    dims = [[_Factor(size) for size in array.shape] for array in graph.arrays]
    reduced = [factor for node in graph.nodes for factor in _relate(node, graph, dims)]
    for first, *others in graph.rows():
        for value in others:
            for a, b in zip(dims[value], dims[first], strict=True):
                _unify([a], [b])
    for value, array in enumerate(graph.arrays):
        if array.layout == NZ:
            _split_columns(dims[value], padded=value not in graph.outputs)
    orders = [_memory_order(dims[v], array.layout) for v, array in enumerate(graph.arrays)]
    # What lies in GM keeps its order, whatever order its operators are recorded in.
    outputs, inputs = set(graph.outputs), set(graph.inputs)
    main = max(
        range(len(orders)), key=lambda v: (len(_leaves(orders[v])), v in outputs, v in inputs)
    )
    steps = {value: _steps(dims[value], window.strides) for value, window in graph.windows.items()}
    for value in graph.inputs:
        array = graph.arrays[value]
        if array.layout == NZ and array.shape[-2] % FRACTAL_SIDE:
            steps[value] = _steps_of_padded(orders[value], array.stored_shape)
    merged = _merged(
        [_leaves(order) for order in orders], main, steps, _leaves(reduced), graph.lanes_apart
    )
    return _with_lanes(graph, merged)


def _as_stored(graph: Graph) -> Graph:
    """Fractals with padding as the arrays that they are, where operators do to it what they do to
    elements: it is zero and stays so."""
    stored = {array.stored_shape for array in graph.arrays}
    padded = any(array.count != math.prod(array.stored_shape) for array in graph.arrays)
    alike = len(stored) == 1 and all(array.layout == NZ for array in graph.arrays)
    plain = all(OPERATORS[node.name].elementwise for node in graph.nodes) and not graph.windows
    if padded and alike and plain:
        (shape,) = stored
        return replace(graph, arrays=[replace(a, shape=shape, layout=ND) for a in graph.arrays])
    return _with_padding_as_elements(graph) if padded else graph


def _with_padding_as_elements(graph: Graph) -> Graph:
    """Fractals whose last rows or columns are padding as ones with more, where that is zero and
    stays so: rows of lanes repeated over all rows meet zeros in the padding of these that stay
    zeros whatever they are met by, and bring zeros for that of columns, as they lie in fractals."""
    fractals = {v for v, array in enumerate(graph.arrays) if array.layout == NZ}
    spread = {v for node in graph.nodes if node.name == "broadcast" for v in node.values}
    rows = {v for v in fractals & spread & set(graph.inputs) if graph.arrays[v].shape[-2] == 1}
    shapes = {graph.arrays[v].shape for v in fractals - rows}
    if len(shapes) != 1 or graph.windows:
        return graph
    (shape,) = shapes
    if any(graph.arrays[v].shape[-1] != shape[-1] for v in rows):
        return graph
    zeros = [fractals.intersection(graph.inputs) - rows, fractals.intersection(graph.inputs)]
    for node in graph.nodes:
        inside = fractals.intersection(node.values)
        if not inside and node.result not in fractals:
            continue
        if node.name == "broadcast":
            in_rows = bool(node.values) and not inside
            lanes = shape[-1] % FRACTAL_SIDE > 0 or len(shape) - 2 in node.attributes["dims"]
            if not inside <= rows or (in_rows and lanes):
                return graph
            zeros[1] |= {node.result} if inside else set()
        elif not OPERATORS[node.name].elementwise or 0 < len(inside) < len(node.values):
            return graph
        elif inside:
            for found in zeros:
                found |= {node.result} if _keeps_zeros(node, found, graph) else set()
    for size, found in zip(shape[-2:], zeros, strict=True):
        if size % FRACTAL_SIDE and not fractals.intersection(graph.outputs) <= found:
            return graph

    def whole(array: Tensor) -> Tensor:
        *outer, height, width = array.shape
        height = height if array.shape != shape else round_up(height, FRACTAL_SIDE)
        return replace(array, shape=(*outer, height, round_up(width, FRACTAL_SIDE)))

    arrays = [whole(array) if array.layout == NZ else array for array in graph.arrays]
    return replace(graph, arrays=arrays)


def _keeps_zeros(node: Node, zeros: set[int], graph: Graph) -> bool:
    """Whether an elementwise operator makes zeros of zeros, its other operands being any numbers
    but 0 (where these are not finite, or 0 in a division, zeros become NaN)."""
    record, element = OPERATORS[node.name], graph.arrays[node.result].element
    others = [value for value in dict.fromkeys(node.values) if value not in zeros]

    def number(operand: Operand, known: dict[int, float]) -> tuple[str, float]:
        if isinstance(operand, Scalar):
            return element, operand.value
        return graph.arrays[operand].element, known.get(operand, 0)

    return all(
        record.makes_zero(
            [number(operand, dict(zip(others, numbers, strict=True))) for operand in node.operands],
            element,
            node.attributes,
        )
        for numbers in itertools.product((1, -2.5), repeat=len(others))
    )


def _steps(dims: Dims, strides: Sequence[int]) -> dict[_Factor, int]:
    """Elements from one to the next along each factor of a window."""
    found = {}
    for dim, stride in zip(dims, strides, strict=True):
        for leaf in reversed(_leaves([dim])):
            found[leaf] = stride
            stride *= leaf.size
    return found


def _steps_of_padded(order: Dims, stored: Sequence[int]) -> dict[_Factor, int]:
    """Elements from one to the next along each factor of fractals whose last rows are padding.

    Args:
        order: of the value: columns of fractals, rows, lanes innermost.
        stored: sizes of the array of fractals.
    """
    found = {}
    *outer, rows, lanes = order
    column = math.prod(stored[-3:])
    for factors, first in (([lanes], 1), ([rows], FRACTAL_SIDE), (outer, column)):
        stride = first
        for leaf in reversed(_leaves(factors)):
            found[leaf] = stride
            stride *= leaf.size
    return found


def _with_lanes(graph: Graph, space: IterationSpace) -> IterationSpace:
    """The same where the innermost axis can be lanes; else with an axis for them."""
    last = len(space.axes) - 1
    block = max(
        (
            max(block_lanes(DTYPE_OF[graph.arrays[value].element]), LEAST_LANES)
            for value in (*graph.inputs, *graph.outputs)
            if last in space.order[value] and graph.arrays[value].element in DTYPE_OF
        ),
        default=1,
    )
    if last == 0 or (last > 0 and space.axes[last].size >= block):
        return space
    return replace(space, axes=(*space.axes, Axis(1, False)))


def _relate(node: Node, graph: Graph, dims: list[Dims]) -> Dims:
    """Makes dimensions the same that follow the same axis of an operator; returns what it reduces.

    Raises:
        NoSpace: for an element of the result more is read than one place, or what is reduced.
    """
    windows = windows_of(node, graph)
    axes = [_Factor(axis.size) for axis in windows.axes]
    values = [node.result, *node.operands]
    for value, window in zip(values, (windows.result, *windows.operands), strict=True):
        if isinstance(value, Scalar):
            continue
        if window is None:
            raise NoSpace(f"{node.name}, which may read all of an operand")
        for dim, factor in zip(window, dims[value], strict=True):
            if dim.axis is None and dim.size > 1:
                raise NoSpace(f"{node.name}, which may read all of a dimension")
            if extent_of(dim, windows) != factor.size:
                raise WrongWindows(node, f"{factor.size} elements of an operand on other axes")
            _unify([factor], [axes[i] for i in axes_of(dim)])
    return [axes[i] for i in reduced_axes(windows)]


def _split_columns(dims: Dims, padded: bool) -> None:
    """Makes columns those of fractals and lanes.

    Args:
        padded: whether the last rows may be padding, which a result would have to fill.
    """
    rows, columns = dims[-2:]
    if (rows.size % FRACTAL_SIDE and not padded) or columns.size % FRACTAL_SIDE:
        raise NoSpace("fractals with padding")
    _unify([columns], [_Factor(columns.size // FRACTAL_SIDE), _Factor(FRACTAL_SIDE)])


def _memory_order(dims: Dims, layout: str) -> Dims:
    """The factors of a value in the order in which it lies in memory."""
    if layout != NZ:
        return dims
    *batch, rows, columns = dims
    *outer, lanes = _leaves([columns])
    if lanes.size != FRACTAL_SIDE:
        raise NoSpace("fractals whose lanes are split")
    return [*batch, *outer, rows, lanes]


def _merged(
    orders: list[Dims],
    main: int,
    steps: dict[int, dict[_Factor, int]],
    reduced: Dims,
    lanes_apart: bool,
) -> IterationSpace:
    """The space in the order of the value `main`, neighbours merged.

    Args:
        reduced: factors that some operator reduces.
        lanes_apart: whether the last factor is an axis alone.
    """
    leaves = orders[main]
    if not leaves:
        return IterationSpace((Axis(1, False),), dict.fromkeys(range(len(orders)), (0,)))
    place = {factor: i for i, factor in enumerate(leaves)}
    if any(factor not in place for order in orders for factor in order):
        raise NoSpace("no value has all axes")
    placed = [[place[factor] for factor in order] for order in orders]
    if any(len(set(order)) < len(order) for order in placed):
        raise NoSpace("two dimensions of a value are one axis")
    groups: list[list[int]] = []
    for i in range(len(leaves)):
        inner, outer = leaves[i], leaves[i - 1]
        lanes = lanes_apart and i == len(leaves) - 1
        whole = not lanes and all(
            inner not in window or window.get(outer) == window[inner] * inner.size
            for window in steps.values()
        )
        if groups and whole and all(_beside(order, i - 1, i) for order in placed):
            groups[-1].append(i)
        else:
            groups.append([i])
    axis_of = {i: number for number, group in enumerate(groups) for i in group}
    order = {
        value: tuple(dict.fromkeys(axis_of[i] for i in found)) for value, found in enumerate(placed)
    }
    sizes = [math.prod(leaves[i].size for i in group) for group in groups]
    windows = {
        value: {
            axis_of[place[leaf]]: window[leaf] for leaf in sorted(window, key=place.__getitem__)
        }
        for value, window in steps.items()
    }
    # Of the factors that an axis is made of the last one gives its stride.
    folded = {axis_of[place[factor]] for factor in reduced}
    axes = tuple(Axis(size, i in folded) for i, size in enumerate(sizes))
    return IterationSpace(axes, order, windows)


def _beside(order: list[int], outer: int, inner: int) -> bool:
    """Whether a value has `inner` right behind `outer`, or neither."""
    if outer not in order or inner not in order:
        return outer not in order and inner not in order
    return order.index(inner) == order.index(outer) + 1
