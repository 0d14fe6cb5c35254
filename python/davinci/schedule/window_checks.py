"""What kernels read of operands, held against the windows of the records.

A vector group takes its axes from the windows themselves (`vector.space`). Other kernels have ways
of their own to what they read, so they are asked here for the places of their operands that they
read at corners of the result; these must lie in the windows there:

    moves     the pieces that `moves.piece_rules` makes of an operand
    others    `READS`: of each dimension of an operand the dimension of the result whose index is
              the place, or `ALL`
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from davinci.operators import OPERATORS
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.windows import WindowDim, Windows
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.moves.piece_rules import RULES, pieces_of_operands
from davinci.schedule.node_windows import WrongWindows, reduced_axes, windows_of
from davinci.schedule.vector.space import NoSpace
from davinci.units import ceil_div, row_major

ALL = -1
"""A dimension of which a kernel may read all for any element of the result."""

Point = tuple[int, ...]
"""Indices of an element of the result, or of an operand."""

Followed = tuple[int, ...]
"""For each dimension of an operand the dimension of the result whose index is its place, or ALL."""


def check_windows(graph: Graph) -> None:
    """Refuses a graph whose kernel reads what no window of an operator's record holds.

    Raises:
        WrongWindows: names the operator, and what is read where.
    """
    for node in graph.nodes:
        windows = windows_of(node, graph)
        for number, point, place in _read(node, graph):
            window = windows.operands[number]
            if window is None:
                continue
            indices = _indices(windows, point)
            for dim, wanted in zip(window, place, strict=True):
                if not _holds(dim, indices, wanted):
                    wrong = f"operand {number} is read at {place} for {point} of the result"
                    raise WrongWindows(node, wrong)


def _indices(windows: Windows, point: Point) -> list[Sequence[int]]:
    """Indices of each axis at an element of the result: one, or all that are combined in it."""
    found: list[Sequence[int]] = [(0,) for _ in windows.axes]
    for i in reduced_axes(windows):
        found[i] = range(windows.axes[i].size)
    for dim, index in zip(windows.result, point, strict=True):
        part: WindowDim | None = dim
        while part is not None:
            if part.axis is not None:
                found[part.axis] = (index // part.stride,)
                index %= part.stride
            part = part.inner
    return found


def _holds(dim: WindowDim, indices: Sequence[Sequence[int]], wanted: int) -> bool:
    """Whether the window of a dimension reaches the index `wanted` of the operand, for one of the
    indices of its axis."""
    for index in (0,) if dim.axis is None else _near(dim, indices[dim.axis], wanted):
        rest = wanted - dim.offset - dim.stride * index
        if dim.inner is not None:
            steps = range(dim.size)
            if any(_holds(dim.inner, indices, rest - dim.dilation * j) for j in steps):
                return True
        elif rest % dim.dilation == 0 and 0 <= rest // dim.dilation < dim.size:
            return True
    return False


def _near(dim: WindowDim, indices: Sequence[int], wanted: int) -> Sequence[int]:
    """Those indices of an axis, which may be many, at which a window may reach a position."""
    if dim.inner is not None or dim.stride < 1 or len(indices) == 1:
        return indices
    rest = wanted - dim.offset
    first = ceil_div(rest - (dim.size - 1) * dim.dilation, dim.stride)
    return range(max(first, 0), min(rest // dim.stride + 1, len(indices)))


def _read(node: Node, graph: Graph) -> Iterator[tuple[int, Point, Point]]:
    """Elements of operands, by their numbers, that a kernel reads for elements of the result: the
    number, the element of the result, and the one that is read for it."""
    if node.name in RULES:
        yield from _read_by_moves(node, graph)
        return
    result = graph.arrays[node.result].shape
    if OPERATORS[node.name].elementwise:
        same = tuple(range(len(result)))
        places = [same] * len(node.operands)
    elif node.name in READS:
        places = READS[node.name](node, graph)
    else:
        return
    corners = set(itertools.product(*({0, size - 1} for size in result)))
    for number, (operand, follows) in enumerate(zip(node.operands, places, strict=True)):
        if isinstance(operand, Scalar) or 0 in (*result, *graph.arrays[operand].shape):
            continue
        sizes = graph.arrays[operand].shape
        for point in corners:
            ways = (
                {0, size - 1} if at == ALL else {point[at]}
                for at, size in zip(follows, sizes, strict=True)
            )
            for place in itertools.product(*ways):
                yield number, point, place


def _read_by_moves(node: Node, graph: Graph) -> Iterator[tuple[int, Point, Point]]:
    """What `_read` says, of a movement: for the first and the last element of each piece that the
    result is made of, the operand's number, the element's index in the result and that in the
    operand. Pieces of one number are left out; nothing comes where no kernel moves by pieces."""
    try:
        pieces = pieces_of_operands(node, graph)
    except NoSpace:
        return  # no kernel moves it by pieces
    for piece in pieces:
        if isinstance(piece.source, Scalar) or not piece.count:
            continue
        operand = node.operands[piece.source]
        assert not isinstance(operand, Scalar), "numbers are in pieces as what they are"
        shape = graph.arrays[operand].shape
        for last in (False, True):
            steps = [last * (dim.count - 1) for dim in piece.dims]
            point = tuple(d.start + n * d.step for d, n in zip(piece.dims, steps, strict=True))
            at = piece.offset + sum(d.stride * n for d, n in zip(piece.dims, steps, strict=True))
            pairs = zip(row_major(shape), shape, strict=True)
            yield piece.source, point, tuple(at // stride % size for stride, size in pairs)


def _product(node: Node, graph: Graph) -> list[Followed]:
    """C[.., m, n] = A[.., m, k] B[.., k, n], each perhaps with its last two exchanged."""
    rank = len(graph.arrays[node.result].shape)
    *batch, m, n = range(rank)
    a, b = (m, ALL), (ALL, n)
    turned = [node.attributes.get(flag) for flag in (TRANSPOSE_A, TRANSPOSE_B)]
    ways = [pair[::-1] if flag else pair for pair, flag in zip((a, b), turned, strict=True)]
    return [(*batch, *pair) for pair in ways]


def _convolution(node: Node, graph: Graph) -> list[Followed]:
    """An image of the result's, and of one matrix of weights the column of its channel."""
    weights: Followed = (ALL, ALL, ALL)
    if graph.arrays[node.values[1]].shape[0] == 1:
        weights = (ALL, 2, ALL) if node.attributes.get(TRANSPOSE_B) else (ALL, ALL, 2)
    return [(0, ALL, ALL), weights]


def _reduction(node: Node, graph: Graph) -> list[Followed]:
    kept = itertools.count()
    rank = len(graph.arrays[node.values[0]].shape)
    return [tuple(ALL if i in node.attributes["dims"] else next(kept) for i in range(rank))]


def _any(node: Node, graph: Graph, *first: Followed) -> list[Followed]:
    """Any element of each operand, but of the first ones what `first` says."""
    others = node.operands[len(first) :]
    ranks = (0 if isinstance(v, Scalar) else graph.arrays[v].rank for v in others)
    return [*first, *((ALL,) * rank for rank in ranks)]


def _rows(node: Node, graph: Graph) -> list[Followed]:
    """Any element of the row of the first operand, and any element of the others."""
    return _any(node, graph, (graph.arrays[node.result].rank - 2, ALL))


def _updated(node: Node, graph: Graph) -> list[Followed]:
    """The array where the result is, and any update."""
    return _any(node, graph, tuple(range(graph.arrays[node.result].rank)))


def _gathered(node: Node, graph: Graph) -> list[Followed]:
    """Any row of the table, and the index of the result's row."""
    rank = graph.arrays[node.result].rank
    return [(ALL, *range(1, rank)), (0,)]


def _blocks(node: Node, graph: Graph) -> list[Followed]:
    """Anything of the array, and the indices of the result's block."""
    table, _ = _any(node, graph)
    return [table, (0, ALL)]


def _elements(node: Node, graph: Graph) -> list[Followed]:
    """Anything of the table's row, and the place of the result's element."""
    return [(0, ALL), (0, 1)]


def _scaled(node: Node, graph: Graph) -> list[Followed]:
    """Sums where the result is, and the scale and the digits of their column."""
    dims = tuple(range(graph.arrays[node.result].rank))
    return [dims, (dims[-1],), (dims[-1], ALL)]


READS: dict[str, Callable[[Node, Graph], list[Followed]]] = {
    "matmul": _product,
    "batch_matmul": _product,
    "conv": _convolution,
    "pool": lambda node, graph: [(0, ALL, 2)],
    "reduce": _reduction,
    "dequantize": _scaled,
    "scale_sums": lambda node, graph: _scaled(node, graph)[::2],  # words, as digits
    "gather": _gathered,
    "gather_blocks": _blocks,
    "gather_elements": _elements,
    "update_blocks": _updated,
    "combine_blocks": _updated,
    "sort": _rows,
    "sort_pairs": _rows,
}
"""What kernels read of operands, of operators that are neither elementwise nor moves."""
