"""The phases of programs whose reduced axis comes in pieces."""

from __future__ import annotations

import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.phases import Phases, phases_of
from davinci.schedule.vector.space import space_of
from davinci.schedule.vector.tile_program import program_of

ROWS, STATISTIC = Tensor((4, 1000), "f32"), Tensor((4,), "f32")


def softmax() -> Graph:
    """0: x, 1: maximum, 2: it in rows, 3: difference, 4: exponential, 5: sum, 6: in rows, 7."""
    arrays = [ROWS, STATISTIC, ROWS, ROWS, ROWS, STATISTIC, ROWS, ROWS]
    along = {"dims": (1,)}
    nodes = [
        Node("reduce", (0,), 1, {"kind": "max", **along}),
        Node("broadcast", (1,), 2, {"dims": (0,)}),
        Node("sub", (0, 2), 3, {}),
        Node("exp", (3,), 4, {}),
        Node("reduce", (4,), 5, {"kind": "add", **along}),
        Node("broadcast", (5,), 6, {"dims": (0,)}),
        Node("div", (4, 6), 7, {}),
    ]
    return Graph(arrays, nodes, [0], [7])


def phases(graph: Graph, keep: bool) -> Phases:
    return phases_of(program_of(graph, space_of(graph)), {1}, keep=keep)


def names(found: Phases) -> list[tuple[list[str], list[str], list[str]]]:
    """Of each phase: steps on statistics, steps on pieces, reductions."""
    return [
        (
            [step.name for step in phase.statistics],
            [step.name for step in phase.steps],
            [str(step.attributes["kind"]) for step in phase.gathered],
        )
        for phase in found.phases
    ]


def test_what_is_read_again_is_kept() -> None:
    found = phases(softmax(), keep=True)
    assert names(found) == [
        ([], [], ["max"]),
        (["place"], ["vsub", "vexp"], ["add"]),
        (["vrec", "place"], ["vmul"], []),
    ]
    assert [phase.inputs for phase in found.phases] == [(0,), (), ()]
    assert [phase.outputs for phase in found.phases] == [(), (), (7,)]
    assert len(found.kept) == 2


def test_what_is_read_again_is_made_again() -> None:
    found = phases(softmax(), keep=False)
    assert names(found)[2] == (["vrec", "place"], ["vsub", "vexp", "vmul"], [])
    assert [phase.inputs for phase in found.phases] == [(0,), (0,), (0,)]
    assert not found.kept


@pytest.mark.parametrize("keep", [True, False])
def test_a_statistic_leaves_at_the_end(keep: bool) -> None:
    graph = Graph(
        [ROWS, STATISTIC], [Node("reduce", (0,), 1, {"kind": "add", "dims": (1,)})], [0], [1]
    )
    found = phases(graph, keep)
    assert names(found) == [([], [], ["add"])]
    assert found.outputs == (1,)
