"""Programs of cores that see their own pieces of an axis, and what they tell each other when."""

from __future__ import annotations

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.meeting_program import meeting_program
from davinci.schedule.vector.phases import Phases, phases_of
from davinci.schedule.vector.space import space_of
from davinci.schedule.vector.tile_program import program_of

ROWS, STATISTIC = Tensor((4, 1000), "f32"), Tensor((4,), "f32")

ALONG = {"dims": (1,)}

IN_ROWS = {"dims": (0,)}


def phases(nodes: list[Node], *outputs: int) -> Phases:
    """Of a function of 0: x, whose values are rows but for statistics, which reductions make."""
    arrays = [ROWS] + [STATISTIC if node.name == "reduce" else ROWS for node in nodes]
    graph = Graph(arrays, nodes, [0], list(outputs))
    return phases_of(meeting_program(program_of(graph, space_of(graph)), 1), {1}, keep=True)


def exponentials(kind: str = "max") -> list[Node]:
    """1: maximum, 2: it in rows, 3: difference, 4: exponential, 5: its sum."""
    return [
        Node("reduce", (0,), 1, {"kind": kind, **ALONG}),
        Node("broadcast", (1,), 2, IN_ROWS),
        Node("sub", (0, 2), 3, {}),
        Node("exp", (3,), 4, {}),
        Node("reduce", (4,), 5, {"kind": "add", **ALONG}),
        Node("broadcast", (5,), 6, IN_ROWS),
    ]


def told(found: Phases) -> list[int]:
    return [len(phase.told) for phase in found.phases]


def steps(found: Phases, number: int) -> list[str]:
    return [step.name for step in found.phases[number].steps]


def test_maximum_and_sum_of_exponentials_take_one_meeting() -> None:
    """The core's own maximum, what it subtracts, and its own sum; its own exponentials become the
    result by one product."""
    found = phases([*exponentials(), Node("div", (4, 6), 7, {})], 7)
    assert told(found) == [0, 3, 0]
    assert steps(found, 1) == ["vsub", "vexp"]
    assert steps(found, 2) == ["vmul"]


def test_differences_are_made_again_behind_the_meeting() -> None:
    """Differences to the maximum of all cores are not those to the core's own maximum, so the
    program subtracts again behind the meeting."""
    found = phases([*exponentials(), Node("sub", (3, 6), 7, {})], 7)
    assert told(found) == [0, 3, 0]
    assert steps(found, 2) == ["vsub", "vsub"]


def test_exponentials_that_are_no_product_are_made_again() -> None:
    found = phases([*exponentials(), Node("add", (4, 6), 7, {})], 7)
    assert told(found) == [0, 3, 0]
    assert steps(found, 2) == ["vsub", "vexp", "vadd"]


def test_differences_to_no_maximum_wait_for_a_meeting() -> None:
    assert told(phases([*exponentials("min"), Node("div", (4, 6), 7, {})], 7)) == [1, 1, 0]


def test_another_sum_of_differences_waits_for_a_meeting() -> None:
    nodes = [
        *exponentials(),
        Node("mul", (3, 3), 7, {}),
        Node("reduce", (7,), 8, {"kind": "add", **ALONG}),
        Node("div", (4, 6), 9, {}),
    ]
    found = phases(nodes, 8, 9)
    assert told(found) == [1, 2, 0]
    assert steps(found, 1) == ["vsub", "vexp", "vmul"]
