"""Plans by time and memory: in the record, on the page, and as `npu-plan` prints them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import helper

import davinci
from davinci.report.page import as_html
from davinci.report.plan_chart import plan_chart
from onnx_support import model_of

OPERATORS = ("Exp", "Sigmoid", "Tanh", "Abs", "Sqrt", "Softplus")


def run(plan: str, branches: int = len(OPERATORS)) -> Any:
    """Operators on one input side by side, whose results are subtracted from it."""
    nodes = []
    for number in range(branches):
        nodes.append(helper.make_node(OPERATORS[number], ["x"], [f"s{number}"]))
    before = "x"
    for number in range(branches):
        made = "y" if number == branches - 1 else f"a{number}"
        nodes.append(helper.make_node("Sub", [before, f"s{number}"], [made]))
        before = made
    model = model_of(nodes, {"x": np.ones((64, 64), "f")})
    options: dict[str, Any] = {"plan": plan, "fusion": "none", "launches": "many"}
    compiled = davinci.compile(model, timing_only=True, cache=False, **options)
    compiled.run()
    return compiled


@pytest.fixture(scope="module")
def executable() -> Any:
    return run("time")


def test_plans_of_the_record(executable: Any) -> None:
    record = executable.profile
    plans = record["memory"]["plans"]
    first, *layered, taken = plans
    assert (first["plan"], taken["plan"]) == ("sequential", "time")
    names = [plan["plan"] for plan in layered]
    assert len(names) > 2 and names == sorted(names, reverse=True) and names[-1] == "groups=1"
    assert (taken["launches"], taken["more_cycles"]) == (record["launches"], 0)
    assert taken["arena_bytes"] == record["memory"]["arena_bytes"]
    launches = [plan["launches"] for plan in plans[:-1]]
    assert launches == sorted(set(launches), reverse=True)
    more = [plan["more_cycles"] for plan in plans]
    assert more == sorted(more, reverse=True) and more[0] > 10_000


@pytest.mark.parametrize("plan", ["sequential", "groups=1", "groups=2"])
def test_plans_are_as_estimated(plan: str, executable: Any) -> None:
    """A plan that is compared is what it is where it is asked for."""
    points = {point["plan"]: point for point in executable.profile["memory"]["plans"]}
    record = run(plan).profile
    assert record["launches"] == points[plan]["launches"]
    assert record["memory"]["arena_bytes"] == points[plan]["arena_bytes"]
    more = (record["time_us"] - executable.profile["time_us"]) * record["clock_mhz"]
    assert points[plan]["more_cycles"] == pytest.approx(more, rel=0.1, abs=500)


def test_page(executable: Any) -> None:
    record = {"model": "", "precision": "mixed", **executable.profile}
    page = as_html(executable.machine, record, executable.launches)
    circles = re.findall(r'<circle class="plan (\w*)" cx="([\d.]+)" cy="([\d.]+)"', page)
    others = len(record["memory"]["plans"]) - 1
    assert [kind for kind, _, _ in circles] == ["taken", *[""] * others]
    assert float(circles[0][1]) < float(circles[-1][1])
    assert "time: " in page and "(simulated, the plan that ran)" in page
    chart = plan_chart(record)
    assert chart is not None
    for point in chart.points:
        assert chart.left < point.x < chart.right and chart.top < point.y < chart.bottom


def test_a_chain_has_one_plan() -> None:
    for compiled in (run("time", branches=1), run("sequential")):
        assert compiled.profile["memory"]["plans"] == []
        assert plan_chart(compiled.profile) is None
