"""Loops whose products cube cores compute and whose states vector cores beside them keep: recurrent
layers against onnxruntime from run to run, with all launches proven, and who has which part."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.compose
import pytest

import davinci
from davinci.machine import load
from davinci.operators import Tensor
from davinci.reference import check
from davinci.schedule.graph import Graph, Node
from davinci.schedule.loops.choice import cores_each, schedules_of
from davinci.schedule.loops.group import LoopGroup, Role, read_loop
from davinci.schedule.loops.schedule import of_vector_core
from davinci.schedule.vector.space import NoSpace
from pairs import in_turn
from recurrent_support import layer

MACHINE = "ascend910b"


def run(model: onnx.ModelProto, inputs: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """Asserts that a model is right, twice, and that its launches are proven; its kernels."""
    wanted = check.reference_onnx(model, inputs)
    executable = davinci.compile(model, machine=MACHINE, check_launches=True, **options)
    executable.poison = True
    for _ in range(2):
        check.require(check.compare(executable.run(inputs), wanted), "mixed")
    return list(executable.profile["kernels"])


def loops(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kernels of loops."""
    return [kernel for kernel in kernels if kernel["name"].startswith("loop_")]


@pytest.mark.parametrize(
    ("kind", "batch", "hidden", "more"),
    [
        ("LSTM", 1, 256, {}),  # vectors; lanes are halved
        ("LSTM", 1, 272, {}),  # 17 blocks of 16 lanes, and vectors that end inside a fractal
        ("GRU", 2, 256, {}),  # two left factors in a step; rows are halved
        ("RNN", 17, 512, {}),
        ("LSTM", 1, 512, {"direction": "reverse"}),  # 2 MB of weights fit no core
    ],
)
def test_lanes_are_shared(kind: str, batch: int, hidden: int, more: dict[str, Any]) -> None:
    model, inputs = layer(kind, 3, batch, hidden, size=16, **more)
    (loop,) = loops(run(model, inputs, launches="many", core_choice="all"))
    assert "lanes each of" in loop["schedule"]


def test_blocks_without_lanes_meet_in_a_phase() -> None:
    """The loop is for fewer cores than the product in front of it."""
    model, inputs = layer("GRU", 3, 2, 256, size=16)
    (loop,) = loops(run(model, inputs, launches="joined", core_choice="all"))
    assert "16 lanes each of 16 cube cores" in loop["schedule"] and loop["blocks"] > 16


@pytest.mark.parametrize(("batch", "kind"), in_turn([1, 7, 48, 50], ["LSTM", "GRU"]))
def test_rows_are_shared(kind: str, batch: int) -> None:
    """Blocks have even or odd numbers of rows, and the last one fewer."""
    model, inputs = layer(kind, 3, batch, 24, size=16)
    (loop,) = loops(run(model, inputs, core_choice="all"))
    assert "rows each of" in loop["schedule"]


def test_directions_that_take_more_cores_than_there_are_share_them() -> None:
    model, inputs = layer("LSTM", 5, 1, 512, directions=2)
    (loop,) = loops(run(model, inputs))
    assert loop["schedule"].count("16 lanes") == 0 and loop["schedule"].count("steps") == 2


def test_loops_that_meet_unequally_often() -> None:
    """Cube cores of one loop meet in 3 steps, those of the other twice in each of 5."""
    first, inputs = layer("LSTM", 3, 1, 256, size=16)
    second, others = layer("GRU", 5, 1, 256, size=16)
    second = onnx.compose.add_prefix(second, "second_")
    for name in ("node", "initializer", "input", "output"):
        getattr(first.graph, name).extend(getattr(second.graph, name))
    given = inputs | {f"second_{name}": array for name, array in others.items()}
    (loop,) = loops(run(first, given))
    assert "3 steps" in loop["schedule"] and "5 steps" in loop["schedule"]


def recurrence(rows: int, width: int, normed: bool = False) -> LoopGroup:
    """h = tanh(h R), or h R less the sums of its rows."""
    graph = Graph()
    state, product = Tensor((rows, width), "f32"), Tensor((width, width), "f16", "nz")
    h, r = graph.add(state), graph.add(product)
    half, c = graph.add(Tensor((rows, width), "f16")), graph.add(state)
    out = graph.add(state)
    graph.nodes = [
        Node("cast", (h,), half),
        Node("matmul", (half, r), c, {"transpose_b": True}),
    ]
    if normed:
        total, spread = graph.add(Tensor((rows,), "f32")), graph.add(state)
        graph.nodes += [
            Node("reduce", (c,), total, {"kind": "add", "dims": (1,)}),
            Node("broadcast", (total,), spread, {"dims": [0]}),
            Node("sub", (c, spread), out),
        ]
    else:
        graph.nodes.append(Node("tanh", (c,), out))
    graph.inputs, graph.outputs = [h, r], [out]
    roles = (Role("state", 0, state=0), Role("fixed", 1))
    return read_loop(graph, 10, roles, (Role("state", 2, state=0),))


@pytest.mark.parametrize(
    ("rows", "width", "normed", "expected"),
    [
        (6, 64, False, (3, 64, 2)),
        (1, 64, False, (1, 32, 2)),
        (3, 96, False, (3, 48, 2)),
        (3, 48, False, (3, 48, 1)),  # no whole blocks of 16
        (3, 64, True, (3, 64, 1)),  # lanes are added up
        (4, 64, True, (2, 64, 2)),
    ],
)
def test_shares_of_vector_cores(
    rows: int, width: int, normed: bool, expected: tuple[int, int, int]
) -> None:
    machine, group = load(MACHINE), recurrence(rows, width, normed)
    (schedule,) = schedules_of([group], machine, 1)
    own, count = of_vector_core(group, schedule, rows, machine)
    assert (own.rows, own.lanes, count) == expected


def test_cores_of_each_loop() -> None:
    """All of them where the loops take no more together, else an equal share."""
    machine, few, many = load(MACHINE), recurrence(1, 16), recurrence(1, 512)
    (alone,) = schedules_of([many], machine, 24)
    assert alone.apart and alone.shares_lanes and alone.units > 12
    assert cores_each([few] * 2, machine, 24) == 24
    assert cores_each([many] * 2, machine, 24) == 12
    with pytest.raises(NoSpace, match="2 loops side by side on 1 cores"):
        cores_each([few] * 2, machine, 1)
