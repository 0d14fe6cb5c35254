"""What becomes of operators of a group: quotients by statistics, statistics that meet, axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.space import space_of
from davinci.schedule.vector.tile_program import program_of
from support import run_text

ROWS, STATISTIC = Tensor((4, 100), "f32"), Tensor((4,), "f32")


def names(divisor: str, last: str) -> set[str]:
    """Of the steps of x / divisor(sum of x), and what follows."""
    nodes = [
        Node("reduce", (0,), 1, {"kind": "add", "dims": (1,)}),
        Node(divisor, (1,), 2, {}),
        Node("broadcast", (2,), 3, {"dims": (0,)}),
        Node("div", (0, 3), 4, {}),
        Node(last, (4,), 5, {}),
    ]
    graph = Graph([ROWS, STATISTIC, STATISTIC, ROWS, ROWS, ROWS], nodes, [0], [5])
    return {step.name for step in program_of(graph, space_of(graph)).steps}


@pytest.mark.parametrize(
    ("divisor", "last", "wanted", "missing"),
    [
        ("exp", "abs", {"vexp", "vrec", "vmul"}, {"vdiv"}),
        ("sqrt", "abs", {"vrsqrt", "vmul"}, {"vsqrt", "vrec", "vdiv"}),
        ("sqrt", "floor", {"vsqrt", "vdiv"}, {"vrsqrt", "vrec", "vmul"}),
    ],
)
def test_quotients_by_statistics(
    divisor: str, last: str, wanted: set[str], missing: set[str]
) -> None:
    """A product with the inverse, which of a root is one step; what is rounded is divided."""
    found = names(divisor, last)
    assert wanted <= found
    assert not missing & found


@pytest.mark.parametrize("shapes", [((32, 1, 1), ()), ((32, 1, 1), (1, 9, 1)), ((1, 9, 1), ())])
def test_statistics_of_different_axes_meet_in_one_step(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Both operands that a selection chooses from may lack axes, and not the same ones."""
    condition = np.arange(32 * 9 * 20).reshape(32, 9, 20) % 3 == 0
    random = np.random.default_rng(0)
    a, b = (np.asarray(random.normal(size=shape), np.float32) for shape in shapes)
    lines, names = [], []
    for number, array in ((1, a), (2, b)):
        dims = list(range(array.ndim))
        kind = "x".join([*map(str, array.shape), "f32"])
        names.append(f"%{number}: tensor<{kind}>")
        lines.append(
            f"%w{number} = stablehlo.broadcast_in_dim %{number}, dims = {dims} : "
            f"(tensor<{kind}>) -> tensor<32x9x20xf32>"
        )
    body = "\n".join(lines)
    (found,) = run_text(
        f"func.func @main(%0: tensor<32x9x20xi1>, {', '.join(names)}) -> tensor<32x9x20xf32> {{\n"
        f"{body}\n%r = stablehlo.select %0, %w1, %w2 : tensor<32x9x20xi1>, tensor<32x9x20xf32>\n"
        "return %r : tensor<32x9x20xf32> }",
        condition,
        a,
        b,
    )
    np.testing.assert_array_equal(found, np.where(condition, a, b))


def test_order_of_axes_does_not_depend_on_the_order_of_operators() -> None:
    """Channels that are repeated and transposed, in front of or behind what lies in GM."""
    shapes = ((3,), (3, 16), (16, 3), (16, 3), (16, 3), (16, 3), (3,))
    arrays = [Tensor(shape, "f32") for shape in shapes]
    repeated = [
        Node("broadcast", (0,), 1, {"dims": (0,)}),
        Node("transpose", (1,), 2, {"permutation": (1, 0)}),
    ]
    read = Node("abs", (3,), 4, {})
    rest = [Node("add", (4, 2), 5, {}), Node("reduce", (5,), 6, {"kind": "max", "dims": (0,)})]
    first = space_of(Graph(arrays, [*repeated, read, *rest], [0, 3], [6]))
    numbers = {3: 0, 4: 1, 0: 2, 1: 3, 2: 4, 5: 5, 6: 6}
    renumbered = [
        replace(n, operands=tuple(numbers[v] for v in n.values), result=numbers[n.result])
        for n in (read, *repeated, *rest)
    ]
    again = [arrays[value] for value in numbers]
    second = space_of(Graph(again, renumbered, [0, 2], [6]))
    assert first.axes == second.axes
    assert first.order[3] == second.order[0] == (0, 1)
