"""What a node of a graph reads for which part of its result, as the record of its operator says.

Schedules take the axes and windows of an operator from here, or have what they read held against
them (`window_checks`): a record whose windows are wrong compiles nothing, instead of a kernel that
reads other elements than its operator means.
"""

from __future__ import annotations

from dataclasses import replace

from davinci.operators import OPERATORS
from davinci.operators.call import Call
from davinci.operators.tensors import Tensor
from davinci.operators.windows import PARALLEL, WindowDim, Windows
from davinci.schedule.graph import Graph, Node, Scalar


class WrongWindows(Exception):
    """A record whose windows do not hold what its operator's kernels read: a defect of the record
    or of a schedule, never of a model."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"the windows of {node.name}: {reason}")


def windows_of(node: Node, graph: Graph) -> Windows:
    """The axes of a node, and the windows of its operands.

    Raises:
        WrongWindows: they do not fit the shapes of the node's values.
    """
    inputs = tuple(_operand(node, place, graph) for place in range(len(node.operands)))
    result = graph.arrays[node.result]
    windows = OPERATORS[node.name].windows(Call(inputs, (result,), node.attributes))
    if len(windows.result) != result.rank or len(windows.operands) != len(inputs):
        raise WrongWindows(node, "other operands, or a result of another rank")
    for dim, size in zip(windows.result, result.shape, strict=True):
        if extent_of(dim, windows) != size:
            raise WrongWindows(node, f"{size} elements of the result on other axes")
    for operand, window, tensor in zip(node.operands, windows.operands, inputs, strict=True):
        if window is None or isinstance(operand, Scalar):
            continue
        if len(window) != tensor.rank:
            raise WrongWindows(node, f"a window of {len(window)} dimensions in {tensor}")
    return windows


def extent_of(dim: WindowDim, windows: Windows) -> int:
    """Elements of a dimension whose places axes number without gaps, as i * size + j does; 0 of a
    dimension with an offset, with gaps, or with windows of several elements."""
    size, found = 1, []
    part: WindowDim | None = dim
    while part is not None:
        found.append(part)
        part = part.inner
    for each in reversed(found):
        if each.axis is None:
            if each.size != 1 or each.offset or len(found) > 1:
                return 0
            continue
        if each.size != 1 or each.offset or each.stride != size:
            return 0
        size *= windows.axes[each.axis].size
    return size


def axes_of(dim: WindowDim) -> list[int]:
    """Numbers of the axes that the place of a dimension follows, outermost first."""
    found, part = [], dim
    while True:
        if part.axis is not None:
            found.append(part.axis)
        if part.inner is None:
            return found
        part = part.inner


def reduced_axes(windows: Windows) -> list[int]:
    """Numbers of the axes that the result has not."""
    return [i for i, axis in enumerate(windows.axes) if axis.kind != PARALLEL]


def shape_of_number(node: Node, place: int, graph: Graph) -> tuple[int, ...]:
    """The shape of an operand of which only its number is known: that of the result, but for a
    number that pads, and for what is joined with another operand."""
    result = graph.arrays[node.result].shape
    if node.name == "pad" and place == 1:
        return ()
    others = [v for i, v in enumerate(node.operands) if i != place and not isinstance(v, Scalar)]
    if node.name != "concat" or not others:
        return result
    dim = node.attributes["dim"]
    known = sum(graph.arrays[other].shape[dim] for other in others)
    return (*result[:dim], result[dim] - known, *result[dim + 1 :])


def _operand(node: Node, place: int, graph: Graph) -> Tensor:
    """The shape and type of an operand; a number has those with which it stands for an array."""
    operand = node.operands[place]
    if not isinstance(operand, Scalar):
        return graph.arrays[operand]
    return replace(graph.arrays[node.result], shape=shape_of_number(node, place, graph))
