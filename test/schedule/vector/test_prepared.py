"""Programs that are kept for a group, and the steps of theirs that take equally long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from davinci.machine import load
from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.side_by_side import parts_of
from davinci.schedule.vector.chunks import ChunkLayout, part_of
from davinci.schedule.vector.phases import phases_of
from davinci.schedule.vector.prepared import prepared
from davinci.schedule.vector.step_costs import step_cycles
from davinci.schedule.vector.tile_layout import tile_of

MACHINE = load("ascend910")


def halves() -> Graph:
    """Four products of halves of rows, two by each half of a row of scales; the sums of pairs that
    lie beside each other are stored together."""
    whole, half, row = Tensor((64, 64), "f32"), Tensor((64, 32), "f32"), Tensor((64,), "f32")
    low, high = (
        {"starts": (0, first), "limits": (64, first + 32), "strides": (1, 1)} for first in (0, 32)
    )
    nodes = [
        Node("slice", (0,), 3, low),
        Node("slice", (0,), 4, high),
        Node("broadcast", (2,), 5, {"dims": (1,)}),
        Node("mul", (0, 5), 6),
        Node("neg", (3,), 7),
        Node("neg", (4,), 8),
        Node("concat", (8, 7), 9, {"dim": 1}),
        Node("mul", (9, 1), 10),
        Node("add", (6, 10), 11),
        Node("add", (11, 6), 12),
    ]
    arrays = [whole, whole, row, half, half, whole, whole, half, half, whole, whole, whole, whole]
    return Graph(arrays, nodes, [0, 1, 2], [12])


def tanh() -> Graph:
    array = Tensor((64, 64), "f32")
    return Graph([array] * 3, [Node("tanh", (0,), 1), Node("tanh", (1,), 2)], [0], [2])


@pytest.mark.parametrize("graph", [halves(), tanh()], ids=["halves", "tanh"])
@pytest.mark.parametrize("rows", [8, 1])
def test_steps_of_a_kind_take_equally_long(graph: Graph, rows: int) -> None:
    (part,) = parts_of(graph)
    each = prepared(part.graph, MACHINE)[0]
    tiling = each.tiles.of((*(rows,) * each.program.lane, 64))
    assert tiling is not None
    for tile in tiling.held(2):
        one_by_one = sum(step_cycles(step, tile.layout) for step in each.program.steps)
        assert one_by_one > 0
        by_kinds = sum(count * step_cycles(step, tile.layout) for step, count in each.alike)
        assert by_kinds == one_by_one
    assert sum(count for _, count in each.alike) == len(each.program.steps)


def test_a_tile_is_made_once() -> None:
    """Kernels are weighed on one number of cores after the other, mostly in the same tiles."""
    tiles = prepared(tanh(), MACHINE)[0].tiles
    first, again = tiles.of((8, 64)), prepared(tanh(), MACHINE)[0].tiles.of((8, 64))
    assert first is not None and first is again
    assert first.held(2) is first.held(2)
    assert [(tile.slots, tile.chains) for tile in first.held(1)] == [(1, 1)]


def test_few_kinds() -> None:
    (each, *_) = prepared(tanh(), MACHINE)
    assert 2 * len(each.alike) <= len(each.program.steps)


def test_equal_groups_have_one_program() -> None:
    (first, *_), (second, *_) = prepared(tanh(), MACHINE), prepared(tanh(), MACHINE)
    assert first.program is second.program
    graph = tanh()
    graph.nodes = [replace(node, members=(7,)) for node in graph.nodes]
    (other, *_) = prepared(graph, MACHINE)
    assert {step.members for step in other.program.steps} == {(7,)}
    assert {step.members for step in first.program.steps} == {()}
    (elsewhere, *_) = prepared(tanh(), load("ascend310"))
    assert elsewhere.program is not first.program


def products_with(*numbers: float) -> Graph:
    """An array times numbers, each a result."""
    array = Tensor((40, 257), "f32")
    results = range(1, len(numbers) + 1)
    nodes = [Node("mul", (0, Scalar(x)), n) for n, x in zip(results, numbers, strict=True)]
    return Graph([array] * (len(numbers) + 1), nodes, [0], list(results))


def test_zeros_of_two_signs_are_two_numbers() -> None:
    """Neither what is kept for a group nor a step of its program serves for both."""
    assert products_with(0.0).key() != products_with(-0.0).key()
    (first, *_) = prepared(products_with(0.0, -0.0), MACHINE)
    assert [str(step.scalar) for step in first.program.steps] == ["0.0", "-0.0"]


def test_zeros_of_two_signs_fill_two_buffers() -> None:
    """A quotient of a zero has a buffer of it, with its sign."""
    array = Tensor((40, 257), "f32")
    nodes = [Node("div", (Scalar(x), 0), n) for n, x in ((1, 0.0), (2, -0.0))]
    (first, *_) = prepared(Graph([array] * 3, nodes, [0], [1, 2]), MACHINE)
    assert sorted(map(str, first.program.constants.values())) == ["-0.0", "0.0"]


def test_what_stays_from_chunk_to_chunk_has_its_own_buffers() -> None:
    """Values of one kind may differ in whether they stay in UB while chunks of an axis go by."""
    rows, row = Tensor((3, 40000, 2), "f32"), Tensor((3, 2), "f32")
    nodes = [
        Node("reduce", (0,), 1, {"dims": (1,), "kind": "max"}),
        Node("broadcast", (1,), 2, {"dims": (0, 2)}),
        Node("sub", (0, 2), 3),
        Node("exp", (3,), 4),
        Node("reduce", (4,), 5, {"dims": (1,), "kind": "add"}),
    ]
    graph = Graph([rows, row, rows, rows, rows, row], nodes, [0], [5])
    (part,) = parts_of(graph)
    program = prepared(part.graph, MACHINE)[0]
    (reduced,) = (i for i, axis in enumerate(program.space.axes) if axis.reduced)
    phases = phases_of(program.program, {reduced}, keep=False)
    sizes = [8 if i == reduced else axis.size for i, axis in enumerate(program.space.axes)]
    tile, _ = tile_of(program.space, program.program, sizes)
    differing = 0
    for phase in phases.phases:
        layout = ChunkLayout(program.space, part_of(program.program, phase), tile, MACHINE)
        buffers, of = layout.buffers
        staying: dict[int, set[bool]] = {}
        for value in layout.program.forms:
            staying.setdefault(layout.program.kinds[value], set()).add(layout.once(value))
            assert value not in of or buffers[of[value]].once == layout.once(value)
        differing += any(len(found) == 2 for found in staying.values())
    assert differing
