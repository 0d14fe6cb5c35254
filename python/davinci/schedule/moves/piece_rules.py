"""What each operator that moves elements makes of the pieces of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from davinci.operators import OPERATORS
from davinci.operators.layouts import is_whole
from davinci.operators.tensors import NZ, Tensor
from davinci.operators.windows import in_order
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.moves.extents import Extent, Found
from davinci.schedule.moves.index_maps import (
    Pieces,
    ValueBox,
    along,
    broadcast,
    limited,
    padded,
    repeated,
    reshaped,
    sliced,
    transposed,
    whole,
)
from davinci.schedule.node_windows import shape_of_number, windows_of
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE, ceil_div, row_major


def from_array(array: Tensor, source: int) -> Pieces:
    """A value as it lies in GM."""
    stored = array.stored_shape
    pieces = whole(source, stored, row_major(stored))
    if array.layout != NZ:
        return pieces
    *batch, n1, m1, side, c = stored
    b = len(batch)
    pieces = transposed(pieces, (*range(b), b + 1, b + 2, b, b + 3))
    matrix = (*batch, m1 * side, n1 * c)
    pieces = reshaped(pieces, (*batch, m1, side, n1, c), matrix)
    return sliced(pieces, (0,) * len(matrix), array.shape, (1,) * len(matrix))


def to_array(pieces: Pieces, array: Tensor) -> Pieces:
    """The array that a value takes in GM; what pads it is zero."""
    if array.layout != NZ:
        return pieces
    *batch, n1, m1, side, c = array.stored_shape
    b, zeros = len(batch), (0,) * array.rank
    matrix = (*batch, m1 * side, n1 * c)
    pieces = padded(pieces, array.shape, zeros, zeros, matrix, repeated(Scalar(0), ()))
    pieces = reshaped(pieces, matrix, (*batch, m1, FRACTAL_SIDE, n1, c))
    return transposed(pieces, (*range(b), b + 2, b, b + 1, b + 3))


@dataclass(frozen=True)
class _Call:
    """An operator on pieces.

    Attributes:
        graph: that the operator is a node of.
        shapes: of the operands.
        result: shape of the result.
    """

    node: Node
    graph: Graph
    operands: tuple[Pieces, ...]
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]

    def __getitem__(self, attribute: str) -> Any:
        return self.node.attributes[attribute]


def _transpose(call: _Call) -> Pieces:
    return transposed(call.operands[0], call["permutation"])


def _slice(call: _Call) -> Pieces:
    return sliced(call.operands[0], call["starts"], call["limits"], call["strides"])


def _pad(call: _Call) -> Pieces:
    pieces, padding = call.operands
    return padded(pieces, call.shapes[0], call["low"], call["interior"], call.result, padding)


def _concat(call: _Call) -> Pieces:
    """The pieces of all operands, each moved along `dim` by the sizes of those before it."""
    dim, place = call["dim"], 0
    found: list[ValueBox] = []
    for pieces, shape in zip(call.operands, call.shapes, strict=True):

        def change(extent: Extent, place: int = place) -> Found:
            yield extent.moved(place), 0

        found += along(pieces, dim, change)
        place += shape[dim]
    return limited(found)


def _broadcast(call: _Call) -> Pieces:
    return broadcast(call.operands[0], call.shapes[0], call["dims"], call.result)


def _reshape(call: _Call) -> Pieces:
    return reshaped(call.operands[0], call.shapes[0], call.result)


def _same(call: _Call) -> Pieces:
    return call.operands[0]


def _by_windows(call: _Call) -> Pieces:
    """What an operator of one operand moves whose record says no more than its windows: elements
    at an offset, at steps, in another order, repeated, or where several dimensions follow one axis.

    Raises:
        NoSpace: its windows are no single elements, or dimensions that follow one axis come in
            several pieces.
    """
    windows = windows_of(call.node, call.graph)
    (reads,), sizes = windows.operands, [axis.size for axis in windows.axes]
    if windows.result != in_order(len(sizes)) or reads is None:
        raise NoSpace(f"{call.node.name} with a result on other axes, or any operand")
    if any(dim.size != 1 or dim.inner or dim.stride < 1 for dim in reads):
        raise NoSpace(f"{call.node.name} of more than single elements")
    if 0 in sizes:
        return ()
    starts = [dim.offset for dim in reads]
    last = [0 if d.axis is None else d.stride * (sizes[d.axis] - 1) for d in reads]
    limits = [start + more + 1 for start, more in zip(starts, last, strict=True)]
    found = []
    for piece in sliced(call.operands[0], starts, limits, [dim.stride for dim in reads]):
        dims: list[Extent | None] = [None] * len(sizes)
        for read, extent in zip(reads, piece.dims, strict=True):
            if read.axis is not None:
                dims[read.axis] = _both(dims[read.axis], extent, sizes[read.axis])
        every = zip(dims, sizes, strict=True)
        placed = (Extent(0).within(n, 1, 0) if dim is None else dim for dim, n in every)
        found.append(replace(piece, dims=tuple(placed)))
    return limited(found)


def _both(first: Extent | None, second: Extent, size: int) -> Extent:
    """Positions along two dimensions that go on together.

    Raises:
        NoSpace: one of them is not all there.
    """
    if first is None:
        return second
    if not (first.covers(size) and second.covers(size)):
        raise NoSpace("dimensions that follow one axis, in several pieces")
    return Extent(0).within(size, 1, first.stride + second.stride)


RULES: Mapping[str, Callable[[_Call], Pieces]] = {
    **{name: _by_windows for name, record in OPERATORS.items() if record.moves},
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "copy": _same,
    "relayout": _same,
}
"""What operators make of the pieces of their operands."""


def pieces_of(graph: Graph) -> list[Pieces]:
    """The pieces of the array that each output of a group takes in GM.

    Raises:
        NoSpace: an operator does more than move elements, or there are too many pieces.
    """
    if kept := whole_fractals(graph):
        return [kept]
    known = {value: from_array(graph.arrays[value], value) for value in graph.inputs}
    for node in graph.nodes:
        if node.name not in RULES:
            raise NoSpace(f"{node.name} does more than move elements")
        known[node.result] = RULES[node.name](_call(node, graph, known))
    return [to_array(known[value], graph.arrays[value]) for value in graph.outputs]


def whole_fractals(graph: Graph) -> Pieces:
    """The piece of an array of fractals that a slice of whole ones is: what pads them comes along;
    none of another group."""
    node = graph.nodes[0]
    if len(graph.nodes) > 1 or node.name != "slice" or isinstance(node.operands[0], Scalar):
        return ()
    array, bounds = graph.arrays[node.operands[0]], ("starts", "limits", "strides")
    starts, limits, steps = (node.attributes[name] for name in bounds)
    if array.layout != NZ or not is_whole(array, starts, limits, steps):
        return ()
    *_, side, c = stored = array.stored_shape
    first = (*starts[:-2], starts[-1] // c, starts[-2] // side, 0, 0)
    ends = (*limits[:-2], ceil_div(limits[-1], c), ceil_div(limits[-2], side), side, c)
    pieces = whole(node.operands[0], stored, row_major(stored))
    return sliced(pieces, first, ends, (*steps, 1, 1))


def pieces_of_operands(node: Node, graph: Graph) -> Pieces:
    """The pieces of operands that the result of one operator is made of; their sources are numbers
    of operands, which lie in rows."""
    shapes = _shapes_of_operands(node, graph)
    operands = [
        repeated(v, shape) if isinstance(v, Scalar) else whole(i, shape, row_major(shape))
        for i, (v, shape) in enumerate(zip(node.operands, shapes, strict=True))
    ]
    result = graph.arrays[node.result].shape
    return RULES[node.name](_Call(node, graph, tuple(operands), shapes, result))


def _call(node: Node, graph: Graph, known: Mapping[int, Pieces]) -> _Call:
    """A movement with the pieces that its operands consist of; a number is one piece, repeated."""
    shapes = _shapes_of_operands(node, graph)
    operands = [
        repeated(v, shape) if isinstance(v, Scalar) else known[v]
        for v, shape in zip(node.operands, shapes, strict=True)
    ]
    return _Call(node, graph, tuple(operands), shapes, graph.arrays[node.result].shape)


def _shapes_of_operands(node: Node, graph: Graph) -> tuple[tuple[int, ...], ...]:
    """The shape of each operand, also of those that are numbers.

    Raises:
        NoSpace: a number where the movement takes none, or numbers only.
    """
    numbers = [isinstance(v, Scalar) for v in node.operands]
    if any(numbers) and node.name not in ("pad", "copy", "concat"):
        raise NoSpace(f"{node.name} of a number")
    if node.name == "concat" and all(numbers):
        raise NoSpace("numbers only")
    return tuple(
        shape_of_number(node, i, graph) if isinstance(v, Scalar) else graph.arrays[v].shape
        for i, v in enumerate(node.operands)
    )
