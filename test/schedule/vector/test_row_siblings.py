"""Steps on parts of rows that lie beside each other are one, where they do the same."""

from __future__ import annotations

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.side_by_side import parts_of
from davinci.schedule.vector.row_parts import beside_each_other
from davinci.schedule.vector.space import space_of
from davinci.schedule.vector.tile_program import TileProgram, program_of


def rotary() -> Graph:
    """7 = x c + concat(-x[32:], x[:32]) c of x: 4x64 and c: 4x64."""
    whole, half = Tensor((4, 64), "f32"), Tensor((4, 32), "f32")
    high, low = (
        {"starts": (0, first), "limits": (4, first + 32), "strides": (1, 1)} for first in (32, 0)
    )
    nodes = [
        Node("slice", (0,), 2, high),
        Node("slice", (0,), 3, low),
        Node("neg", (2,), 4),
        Node("concat", (4, 3), 5, {"dim": 1}),
        Node("mul", (0, 1), 6),
        Node("mul", (5, 1), 7),
        Node("add", (6, 7), 8),
    ]
    arrays = [whole, whole, half, half, half, whole, whole, whole, whole]
    return Graph(arrays, nodes, [0, 1], [8])


def joined() -> tuple[TileProgram, int]:
    (part,) = parts_of(rotary())
    space = space_of(part.graph)
    program = program_of(part.graph, space)
    return program, len(beside_each_other(part.graph, space, program))


def test_whole_rows_where_halves_do_the_same() -> None:
    program, rows = joined()
    assert rows == 5  # x, c, x c, the other product, the sum
    one = [step.name for step in program.steps if step.result in program.together]
    assert one == ["vmul", "vmul", "vadd", "vadd"]
    apart = [step.name for step in program.steps if step.result not in program.together]
    assert sorted(apart) == ["vmul", "vmul", "vmuls"]


def test_steps_that_are_one_follow_each_other() -> None:
    program, _ = joined()
    results = [step.result for step in program.steps]
    for row in set(program.together.values()):
        first = results.index(row[0])
        assert tuple(results[first : first + len(row)]) == row
    known = set(program.inputs)
    for step in program.steps:
        assert known.issuperset(step.sources)
        known.add(step.result)
