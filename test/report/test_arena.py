"""The arena over a run, in the record and on the page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import helper

import davinci
from davinci.planning import Buffer, Problem, faults
from davinci.report.arena import MOST_BOXES, arena_of, arena_values
from davinci.report.page import as_html
from onnx_support import model_of


@pytest.fixture(scope="module")
def executable() -> Any:
    """Softmax after softmax: values that live from one launch to the next, and one for longer."""
    nodes, before = [], "x"
    for number in range(4):
        made = f"s{number}"
        nodes.append(helper.make_node("Softmax", [before], [made], f"softmax_{number}", axis=1))
        turned = f"t{number}"
        nodes.append(helper.make_node("Transpose", [made], [turned], f"turn_{number}"))
        before = turned
    nodes.append(helper.make_node("Add", [before, "t1"], ["y"], "sum"))
    model = model_of(nodes, {"x": np.ones((64, 64), "f")})
    compiled = davinci.compile(model, cores=4, timing_only=True, fusion="none", cache=False)
    compiled.run()
    return compiled


def test_values_that_live_at_once_lie_apart(executable: Any) -> None:
    memory = executable.profile["memory"]
    values = memory["arena"]
    assert len(values) > 4
    buffers = [Buffer(v["bytes"], v["first_launch"], v["last_launch"] + 1) for v in values]
    assert faults(Problem(tuple(buffers)), [value["offset"] for value in values]) == []
    assert max(v["offset"] + v["bytes"] for v in values) == memory["arena_bytes"]
    picture = arena_of(executable.profile)
    assert picture is not None
    assert max(picture.live) == picture.live[picture.peak] <= memory["lower_bound_bytes"]


def test_values_have_the_names_of_what_makes_them(executable: Any) -> None:
    record = executable.profile
    for value in record["memory"]["arena"]:
        made = record["launches_list"][value["first_launch"]]["operators"]
        assert value["nodes"] and set(value["nodes"]) <= set(made)
    last = max(record["memory"]["arena"], key=lambda v: v["last_launch"] - v["first_launch"])
    assert last["nodes"] == ["turn_1"]


def test_picture(executable: Any) -> None:
    record = {"model": "", "precision": "mixed", **executable.profile}
    page = as_html(executable.machine, record, executable.launches)
    section = page.split('<section id="arena">')[1].split("</section>")[0]
    picture = arena_of(record)
    assert picture is not None and picture.left_out == 0
    assert section.count("<rect") == len(record["memory"]["arena"]) <= MOST_BOXES
    assert f"peak: {max(picture.live):,} bytes in launch {picture.peak + 1}, " in section
    hints = re.findall(r'data-hint="([^"]*)"', section)
    assert any(hint.startswith("turn_1\n") for hint in hints)
    without = {**record, "memory": {**record["memory"], "arena": []}}
    assert '<section id="arena">' not in as_html(executable.machine, without, executable.launches)


def test_launches_that_did_not_run_are_left_out(executable: Any) -> None:
    facts = executable.facts
    beyond = replace(facts.arena[0], first=0, last=len(executable.launches))
    facts = replace(facts, arena=(beyond, *facts.arena[1:]))
    assert len(arena_values(executable.launches, facts)) == len(facts.arena) - 1


def test_results_in_the_bytes_of_operands_are_told() -> None:
    """Exponentials lie where their operands do; sums, one after the other, in the output."""
    x = np.ones((64, 64), "f")
    nodes = [helper.make_node("Softmax", ["x"], ["s0"], "first", axis=1)]
    for number in range(3):
        s, made, total = f"s{number}", f"t{number}", f"s{number + 1}"
        nodes.append(helper.make_node("Softmax", [s], [made], f"softmax_{number}", axis=1))
        nodes.append(helper.make_node("Add", [s, made], [total], f"sum_{number}"))
    nodes.append(helper.make_node("Softmax", ["s3"], ["y"], "end", axis=0))
    model = model_of(nodes, {"x": x})
    compiled = davinci.compile(model, cores=4, timing_only=True, fusion="none", cache=False)
    compiled.run()
    values = compiled.profile["memory"]["arena"]
    later = [node for v in values for writer in v["later_writers"] for node in writer["nodes"]]
    assert {"softmax_0", "softmax_1", "softmax_2"} <= set(later)
    assert not any("sum" in node for v in values for node in v["nodes"])
    assert len({value["buffer"] for value in values}) == len(values)
    page = as_html(
        compiled.machine, {"model": "", "precision": "mixed", **compiled.profile}, compiled.launches
    )
    assert re.search(r"written into in launch \d+ by softmax_0", page)
