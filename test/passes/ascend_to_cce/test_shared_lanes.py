"""Loops whose lanes are shared by cores that meet in each step: recurrent layers against
onnxruntime, and what each core reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.machine import load
from davinci.operators import Tensor
from davinci.reference import check
from davinci.schedule.graph import Graph, Node
from davinci.schedule.loops.choice import schedules_of
from davinci.schedule.loops.group import LoopGroup, Role, read_loop
from davinci.schedule.loops.schedule import blocks_of
from davinci.schedule.meetings import lines_looked_at, meeting_cycles
from recurrent_support import layer


def run(kind: str, steps: int, batch: int, hidden: int, **more: Any) -> davinci.Executable:
    """Asserts that a layer is right, twice: counters go on from run to run; its executable."""
    options = {key: more.pop(key) for key in ("cores", "launches", "processes") if key in more}
    model, inputs = layer(kind, steps, batch, hidden, **{"size": 16, **more})
    wanted = check.reference_onnx(model, inputs)
    processes = options.pop("processes", 1)
    executable = davinci.compile(model, **options)
    executable.processes = processes
    executable.poison = True
    kept = set(executable.input_names)
    for _ in range(2):
        found = executable.run({name: x for name, x in inputs.items() if name in kept})
        check.require(check.compare(found, wanted), "mixed")
    return executable


def blocks_of_loop(executable: davinci.Executable) -> int:
    """The number of blocks of the kernel that holds the loop."""
    kernels = executable.profile["kernels"]
    return max(k["blocks"] for k in kernels if k["name"].startswith("loop_"))


@pytest.mark.parametrize(
    ("kind", "batch", "hidden", "more"),
    [
        ("LSTM", 1, 256, {}),
        ("GRU", 3, 256, {}),  # two left factors in a step
        ("GRU", 2, 256, {"linear_before_reset": 1, "lengths": np.array([3, 1], np.int32)}),
        ("RNN", 17, 512, {}),
        ("LSTM", 2, 256, {"directions": 2, "states": True}),  # all cores of both meet
        ("LSTM", 1, 512, {"direction": "reverse"}),  # 2 MB of weights fit no core
    ],
)
def test_layer(kind: str, batch: int, hidden: int, more: dict[str, Any]) -> None:
    assert blocks_of_loop(run(kind, 3, batch, hidden, **more)) > max(1, batch // 16) * (
        more.get("directions", 1)
    )


def test_phase_of_a_launch_whose_weights_are_read_once() -> None:
    """Weights, in f16, go to the cores that have their columns: those of the inputs, too, and the
    bias in a block of rows."""
    executable = run("LSTM", 5, 1, 256, launches="joined")
    assert executable.profile["launches"] == 1
    loop = next(k for k in executable.profile["kernels"] if k["name"].startswith("loop_"))
    weights, counters = 4 * 256 * (256 + 16 + 16) * 2, 8 * 8 * 32
    of_a_step = 4 * 256 * 4 + 8 * 256 * 2 + 4 * counters
    assert weights <= loop["gm_read_bytes"] <= weights + 6 * of_a_step


@pytest.mark.parametrize(("kind", "size"), [("LSTM", 256), ("GRU", 48), ("RNN", 40)])
def test_what_is_added_is_a_part_of_the_products_of_inputs(kind: str, size: int) -> None:
    """Where these are multiplied in the loop, which needs whole blocks of them, it has neither the
    bias nor a sum, and the factors of inputs take turns in L0B if those of states leave them too
    little room: 68 + 64 fractals of four gates of 16 lanes."""
    executable = run(kind, 12, 1, 256, size=size)
    loop = next(k for k in executable.profile["kernels"] if k["name"].startswith("loop_"))
    assert ("those of rows in L1" in loop["schedule"]) == (kind == "LSTM")


def test_more_cores_take_less_time() -> None:
    one, many = (run("LSTM", 4, 1, 256, cores=cores) for cores in (1, 32))
    assert blocks_of_loop(one) == 1
    assert many.profile["total_cycles"] < 0.85 * one.profile["total_cycles"]


def test_in_processes() -> None:
    assert blocks_of_loop(run("GRU", 2, 1, 256, processes=2)) > 1


def chain(width: int, steps: int, lanes_summed: bool = False) -> LoopGroup:
    """h = tanh(h R), whose lanes may be needed by each other."""
    graph = Graph()
    h, r = graph.add(Tensor((1, width), "f32")), graph.add(Tensor((width, width), "f16", "nz"))
    half, c = graph.add(Tensor((1, width), "f16")), graph.add(Tensor((1, width), "f32"))
    out = graph.add(Tensor((1, width), "f32"))
    graph.nodes = [
        Node("cast", (h,), half),
        Node("matmul", (half, r), c, {"transpose_b": True}),
        Node("tanh", (c,), out),
    ]
    graph.inputs, graph.outputs = [h, r], [out]
    roles = (Role("state", 0, state=0), Role("fixed", 1))
    return read_loop(graph, steps, roles, (Role("state", 2, state=0),))


def test_short_forms() -> None:
    """tanh as a quotient, where the loop has products of f16; the error that is stated."""
    assert "tanh" not in {node.name for node in chain(64, 10).graph.nodes}
    x = np.linspace(-100, 100, 200_001, dtype=np.float32)
    with np.errstate(over="ignore"):
        found = np.float32(2) / (1 + np.exp(np.float32(-2) * x)) - 1
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 2**-21


def test_few_counters_are_looked_at_by_the_scalar_unit() -> None:
    """The vector unit makes many counters few in halves, of odd numbers too; the scalar unit looks
    at the last few, as a minimum with its barrier takes longer than looks at two or three."""
    machine = load("ascend910")
    looks = [lines_looked_at(machine, cores) for cores in (2, 4, 8, 16, 31, 32)]
    assert looks == [2, 4, 8, 4, 4, 4]
    assert meeting_cycles(machine, 31) <= meeting_cycles(machine, 32)


def test_cores_are_chosen_by_cost() -> None:
    """Few lanes do not pay a meeting; loops side by side need not meet equally often."""
    machine = load("ascend910")
    assert schedules_of([chain(64, 10)], machine, 32)[0].units == 1
    wide = schedules_of([chain(512, 10)], machine, 32)[0]
    assert wide.shares_lanes and wide.units * wide.lanes == 512
    uneven = schedules_of([chain(512, 10), chain(512, 11)], machine, 32)
    assert [schedule.shares_lanes for schedule in uneven] == [True, True]


def test_blocks_of_a_right_factor_are_of_one_size() -> None:
    """96 lanes of 256 rows, of which half of L0A holds 64, are two blocks of 48."""
    machine, loop = load("ascend910"), chain(512, 10)
    (product,) = loop.products
    turned = replace(schedules_of([loop], machine, 32)[0], resident=False, turned=True)
    found = blocks_of(replace(product, k=256, n=96), 16, turned, machine)
    assert [(block.column, block.columns) for block in found] == [(0, 3), (3, 3)]


def test_times_without_data_from_run_to_run() -> None:
    """Blocks of two loops have their counters at different places of UB."""
    model, _ = layer("LSTM", 3, 1, 256, size=16, directions=2)
    executable = davinci.compile(model, timing_only=True)
    cycles = []
    for _ in range(3):
        executable.run()
        cycles.append(executable.profile["total_cycles"])
    assert len(set(cycles)) == 1
