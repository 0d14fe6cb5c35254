"""What each node of the model takes inside a fused kernel."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from rich.console import Console

import davinci
from davinci.mlir import ir, make_context
from davinci.passes.pipeline.pipelines import Options
from davinci.report.nodes import (
    NO_CYCLES,
    SHARED,
    Lines,
    node_cycles,
    rows_of_first_block,
    shared_out,
)
from davinci.report.program import Member, describe
from davinci.report.tables import print_tables
from davinci.simulator.timing.timeline import NOTHING, TimelineRow
from kernel_support import lowered_text
from onnx_support import model_of

FOLDED = """
module @kernels {
  func.func @k(%a: memref<64xf32>, %r: memref<64xf32>) attributes {ascend.kernel} {
    %x = bufferization.to_tensor %a restrict : memref<64xf32> to tensor<64xf32>
    %c = "ascend.full"() {value = 4.0 : f32} : () -> tensor<64xf32>
    %s = "ascend.sqrt"(%c) : (tensor<64xf32>) -> tensor<64xf32> loc("root")
    %y = "ascend.exp"(%x) : (tensor<64xf32>) -> tensor<64xf32> loc("power")
    %z = "ascend.mul"(%y, %s) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc("times")
    bufferization.materialize_in_destination %z in restrict writable %r
        : (tensor<64xf32>, memref<64xf32>) -> ()
    return
  }
}"""


@pytest.fixture(scope="module")
def executable() -> Any:
    """A heavy product, a gelu and a residual sum, on one core."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "fc/MatMul"),
        helper.make_node("Gelu", ["p"], ["g"], "fc/Gelu"),
        helper.make_node("Add", ["g", "r"], ["y"], "fc/Add"),
    ]
    values = {"x": np.ones((64, 2048), "f"), "r": np.ones((64, 64), "f")}
    weights = np.random.default_rng(0).random((2048, 64), "f")
    model = model_of(nodes, values, constants={"w": weights})
    made = davinci.compile(model, cores=1, timing_only=True, cache=False)
    made.run(timeline="first")
    return made


def test_a_heavy_product_is_most_of_its_kernel(executable: Any) -> None:
    (row,) = (row for row in executable.profile["kernels"] if len(row["operators"]) > 1)
    lines = {line["nodes"][0]: line for line in row["node_cycles"] if line["nodes"]}
    assert lines.keys() == {"fc/MatMul", "fc/Gelu", "fc/Add"}
    assert row["node_cycles"][0] is lines["fc/MatMul"]
    assert lines["fc/MatMul"]["cycles"] > row["cycles"] / 2
    assert "PIPE_M" in lines["fc/MatMul"]["pipes"] and "PIPE_M" not in lines["fc/Gelu"]["pipes"]
    assert "PIPE_V" in lines["fc/Gelu"]["pipes"]
    assert "matmul" in lines["fc/MatMul"]["operators"] and "add" in lines["fc/Add"]["operators"]


def test_lines_add_up(executable: Any) -> None:
    for row in executable.profile["kernels"]:
        launch = next(one for one in executable.launches if one.name == row["name"])
        lines = row["node_cycles"]
        assert sum(line["cycles"] for line in lines) == row["cycles"]
        assert sum(line["path_cycles"] for line in lines) == launch.per_block[0].cycles
        rows = [each for rows in rows_of_first_block(launch).values() for each in rows]
        for pipe in {each.pipe for each in rows}:
            kept = (x.free - x.start for x in rows if x.pipe == pipe)
            worked = sum(kept) - sum(
                x.free - x.start for x in rows if x.pipe == pipe and x.mnemonic in NO_CYCLES
            )
            assert sum(line["pipes"].get(pipe, 0) for line in lines) == worked


def test_lines_of_an_instruction() -> None:
    members = [Member("conv", ("a",)), Member("add", ("a",)), Member("cast", ("b",))]
    served = [(), (0,), (0, 2), (0, 1, 2), (1,), (7,)]
    lines = Lines(members, served)
    found = [dict(lines.parts(row_at(place), 101)) for place in range(7)]
    whole = {SHARED: 101}
    assert found == [whole, {0: 101}, {0: 51, 1: 50}, whole, {0: 101}, whole, whole]
    alone = Lines(members[:2], served)
    assert [dict(alone.parts(row_at(place), 9)) for place in range(7)] == [{0: 9}] * 7


def row_at(place: int) -> TimelineRow:
    """An instruction with this location."""
    notes = dict.fromkeys(("issue_after", "start_after", "end_after"), NOTHING)
    times = dict.fromkeys(("start", "end", "issued", "free", "shared_cycles"), 0)
    what = {"mnemonic": "vadd", "index": 0, "location": "", "fields": {}, "accesses": ()}
    return TimelineRow(core=0, block=0, pipe="PIPE_V", place=place, **notes, **times, **what)


def test_without_rows_there_are_no_lines(executable: Any) -> None:
    for launch in executable.launches:
        launch.rows, rows = [], launch.rows
        assert node_cycles(launch, executable.kernels[launch.name], 100) == []
        launch.rows = rows


def test_folded_operators_keep_their_numbers() -> None:
    """What a launch names by number is what instructions of its kernel serve."""
    pipeline = f"npu-pipeline{{cores={Options().cores}}}"
    module = ir.Module.parse(lowered_text(FOLDED, pipeline), make_context())
    kernel = describe(module).kernels["k"]
    assert [(member.op, member.nodes) for member in kernel.members] == [
        ("sqrt", ("root",)),
        ("exp", ("power",)),
        ("mul", ("times",)),
    ]
    assert {number for numbers in kernel.served for number in numbers} == {1, 2}


def test_launches_and_kernels_number_operators_alike() -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], "softmax", axis=1),
        helper.make_node("Mul", ["s", "x"], ["y"], "times"),
    ]
    model = model_of(nodes, {"x": np.ones((8, 100), "f")})
    made = davinci.compile(model, timing_only=True, cache=False)
    made.run(timeline="first")
    for launch in made.launches:
        members = made.kernels[launch.name].members
        assert len(launch.members) == len(members) > 1
        assert [member.nodes for member in members] == list(launch.members)


@given(
    st.integers(0, 10_000),
    st.lists(st.integers(0, 1_000), min_size=1, max_size=20),
)
def test_parts_add_up_and_are_in_proportion(total: int, weights: list[int]) -> None:
    parts = shared_out(total, weights)
    assert sum(parts) == total and min(parts) >= 0
    every = sum(weights)
    assert not every or all(
        abs(part - total * weight / every) <= 1 for part, weight in zip(parts, weights, strict=True)
    )


@pytest.mark.parametrize("width", [60, 80, 160])
def test_table(executable: Any, width: int) -> None:
    record = {"model": "", "precision": "mixed", **executable.profile}
    text = io.StringIO()
    print_tables(record, Console(file=text, width=width), 20, nodes=True)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any("fc/Gelu" in line for line in lines)
    without = io.StringIO()
    print_tables(record, Console(file=without, width=width), 20)
    assert "fc/Gelu" not in without.getvalue()
