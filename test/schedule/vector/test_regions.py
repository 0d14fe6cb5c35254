"""Groups in regions: slices, concatenations and pads become windows of inputs and outputs."""

from __future__ import annotations

import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.side_by_side import parts_of
from davinci.schedule.vector.regions import regions_of
from davinci.schedule.vector.space import NoSpace


def cut(first: int, last: int, rows: int = 4) -> dict[str, tuple[int, ...]]:
    """A slice of columns."""
    return {"starts": (0, first), "limits": (rows, last), "strides": (1, 1)}


def rotary() -> Graph:
    """6 = x c + concat(-x[32:], x[:32]) of x: 4x64 and c: 4x64."""
    whole, half = Tensor((4, 64), "f32"), Tensor((4, 32), "f32")
    nodes = [
        Node("slice", (0,), 2, cut(32, 64)),
        Node("slice", (0,), 3, cut(0, 32)),
        Node("neg", (2,), 4),
        Node("concat", (4, 3), 5, {"dim": 1}),
        Node("mul", (0, 1), 6),
        Node("add", (6, 5), 7),
    ]
    return Graph([whole, whole, half, half, half, whole, whole, whole], nodes, [0, 1], [7])


def test_halves_of_rows() -> None:
    found = regions_of(rotary())
    assert found.inputs == (0, 0, 1, 1)
    assert found.outputs == (0, 0)
    assert {found.graph.arrays[v].shape for v in found.graph.outputs} == {(4, 32)}
    assert [found.graph.windows[v].offset for v in found.graph.outputs] == [0, 32]
    assert {found.graph.windows[v].strides for v in found.graph.outputs} == {(64, 1)}
    assert [n.name for n in found.graph.nodes].count("neg") == 1
    assert [n.name for n in found.graph.nodes].count("mul") == 2
    assert [len(row) for row in found.graph.rows()] == [2, 2, 2]


def test_parts_of_rows_are_one_part() -> None:
    (part,) = parts_of(rotary())
    assert sorted(part.inputs) == [0, 0, 1, 1]
    assert part.outputs == (0, 0)


def test_nothing_that_moves() -> None:
    a = Tensor((4, 64), "f32")
    graph = Graph([a, a], [Node("exp", (0,), 1)], [0], [1])
    assert regions_of(graph).graph is graph


def test_padding_is_a_number() -> None:
    """y = exp(pad x) with two rows in front and one behind."""
    x, y = Tensor((5, 16), "f32"), Tensor((8, 16), "f32")
    pad = {"low": (2, 0), "high": (1, 0), "interior": (0, 0)}
    nodes = [Node("pad", (0, Scalar(0.0)), 1, pad), Node("exp", (1,), 2)]
    found = regions_of(Graph([x, y, y], nodes, [0], [2])).graph
    assert [found.arrays[v].shape for v in found.outputs] == [(2, 16), (5, 16), (1, 16)]
    assert [found.windows[v].offset for v in found.outputs] == [0, 32, 112]
    assert [(n.name, n.operands) for n in found.nodes if n.name == "copy"] == [
        ("copy", (Scalar(1.0),)),
        ("copy", (Scalar(1.0),)),
    ]


def test_what_is_read_and_written_as_it_is_has_two_numbers() -> None:
    """concat(past, exp new) along rows: the first part is read and written."""
    a, b, c = (Tensor((n, 16), "f32") for n in (3, 2, 5))
    nodes = [Node("exp", (1,), 2), Node("concat", (0, 2), 3, {"dim": 0})]
    found = regions_of(Graph([a, b, b, c], nodes, [0, 1], [3])).graph
    assert not set(found.inputs) & set(found.outputs)
    assert sorted(n.name for n in found.nodes) == ["copy", "exp"]


def test_reductions_are_cut_where_slices_are() -> None:
    """n = x max(x), of which halves are needed: the maximum is that of the halves."""
    x, m, h = Tensor((4, 64), "f32"), Tensor((4,), "f32"), Tensor((4, 32), "f32")
    nodes = [
        Node("reduce", (0,), 1, {"kind": "max", "dims": (1,)}),
        Node("broadcast", (1,), 2, {"dims": (0,)}),
        Node("mul", (0, 2), 3),
        Node("slice", (3,), 4, cut(0, 32)),
        Node("slice", (3,), 5, cut(32, 64)),
        Node("sub", (4, 5), 6),
    ]
    found = regions_of(Graph([x, m, x, x, h, h, h], nodes, [0], [6])).graph
    assert [n.name for n in found.nodes if n.name in ("reduce", "max")] == [
        "reduce",
        "reduce",
        "max",
    ]
    assert {found.arrays[v].shape for v in found.inputs} == {(4, 32)}


@pytest.mark.parametrize(
    ("shape", "step", "wanted"), [((8, 32), 1, 64), ((2, 4, 32), 1, 64), ((256,), 1, 64)]
)
def test_slices_of_reshapes(shape: tuple[int, ...], step: int, wanted: int) -> None:
    """Rows 2 to 5 of a reshape to 8x32."""
    x, y = Tensor(shape, "f32"), Tensor((8, 32), "f32")
    rows = {"starts": (2, 0), "limits": (6, 32), "strides": (step, 1)}
    part = Tensor((4, 32), "f32")
    nodes = [Node("reshape", (0,), 1), Node("slice", (1,), 2, rows), Node("exp", (2,), 3)]
    graph = Graph([x, y, part, part], nodes, [0], [3])
    if len(shape) == 3:
        with pytest.raises(NoSpace, match="a reshape of parts"):
            regions_of(graph)
        return
    found = regions_of(graph).graph
    assert found.windows[found.inputs[0]].offset == wanted


def test_no_padding_between_elements() -> None:
    x, y = Tensor((5,), "f32"), Tensor((9,), "f32")
    pad = {"low": (0,), "high": (0,), "interior": (1,)}
    nodes = [Node("pad", (0, Scalar(0.0)), 1, pad), Node("exp", (1,), 2)]
    with pytest.raises(NoSpace, match="padding between elements"):
        regions_of(Graph([x, y, y], nodes, [0], [2]))
