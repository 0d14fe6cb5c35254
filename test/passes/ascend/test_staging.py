"""Kernels that share a launch: what is decided, what it computes, and what is found if the decision
were wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import InputError
from davinci.passes.ascend import staging
from davinci.runtime.executable import Executable
from davinci.schedule import stages
from fuzz import stage_mutation

TWO = """
func.func @main(%a: tensor<64x96xf32>, %b: tensor<96x64xf32>, %c: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %x = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x96xf32>, tensor<96x64xf32>) -> tensor<64x64xf32>
  %y = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %z : tensor<64x64xf32>
}
"""
"""Two products that do not wait for each other, and one that waits for both."""


def shared(executable: Executable) -> list[list[str]]:
    """The kernels of each launch of the last run."""
    found: dict[int, list[str]] = {}
    for entry in executable.profile["launches_list"]:
        found.setdefault(entry["launch"], []).append(entry["kernel"])
    return list(found.values())


def run(plan: str, **options: Any) -> tuple[Executable, Any]:
    executable = davinci.compile(TWO, plan=plan, launches="many", **options)
    random = np.random.default_rng(1)
    arrays = [random.standard_normal(spec.shape).astype(np.float32) for spec in executable.inputs]
    (found,) = executable.run(*arrays).values()
    a, b, c = arrays
    np.testing.assert_allclose(found, (a @ b) @ (c @ c), rtol=0.05, atol=2)
    return executable, found


def test_independent_kernels_share_a_launch() -> None:
    apart, wanted = run("sequential")
    together, found = run("time")
    np.testing.assert_array_equal(found, wanted)
    assert max(map(len, shared(apart))) == 1
    assert max(map(len, shared(together))) > 1
    assert together.profile["time_us"] < apart.profile["time_us"]
    assert together.profile["launches"] < apart.profile["launches"] == len(shared(apart))
    assert together.profile["ops"] == apart.profile["ops"]


def test_kernels_that_share_no_launch_are_not_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a split machine, whatever plan is taken: all orders of launches take equally long."""
    monkeypatch.setattr(staging, "ways_of", None)
    for plan in ("time", "memory", "balanced"):
        executable, _ = run(plan, machine="ascend910b")
        assert max(map(len, shared(executable))) == 1


def test_layers_are_taken_where_a_search_misses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "fastest", stages.sequential)
    executable, _ = run("time")
    assert max(map(len, shared(executable))) > 1


def test_they_run_at_the_same_time_on_cores_of_their_own() -> None:
    executable, _ = run("time")
    begins = [i for i, each in enumerate(executable.launches) if not each.begins_launch]
    assert begins
    first, second = executable.launches[begins[0] - 1 : begins[0] + 1]
    cores = [{block.core for block in each.per_block} for each in (first, second)]
    assert not cores[0] & cores[1]
    entries = executable.profile["launches_list"][begins[0] - 1 : begins[0] + 1]
    assert entries[0]["start_us"] == entries[1]["start_us"]
    total = executable.profile["total_cycles"]
    assert total < sum(each.cycles for each in executable.launches)


def test_trace_and_page_show_them_side_by_side(tmp_path: Path) -> None:
    executable, _ = run("time")
    executable.trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 0}
    assert {"kernels", "kernels 2"} <= names
    executable.report(tmp_path / "r.html")
    assert '"launches":' in (tmp_path / "r.html").read_text()


def test_several_processes_find_the_same() -> None:
    one, wanted = run("time")
    executable = davinci.compile(TWO, plan="time", launches="many")
    executable.processes = 2
    random = np.random.default_rng(1)
    arrays = [random.standard_normal(spec.shape).astype(np.float32) for spec in executable.inputs]
    (found,) = executable.run(*arrays).values()
    np.testing.assert_array_equal(found, wanted)
    assert [x.cycles for x in executable.launches] == [x.cycles for x in one.launches]


@pytest.mark.parametrize("plan", ["memory", "balanced", "groups=1", "groups=2"])
def test_other_plans_compute_the_same(plan: str) -> None:
    _, wanted = run("sequential")
    executable, found = run(plan)
    np.testing.assert_array_equal(found, wanted)
    assert executable.profile["memory"]["arena_bytes"] >= 64 * 64 * 2


def test_groups_of_a_layer_are_launches() -> None:
    one, two = run("groups=1")[0], run("groups=2")[0]
    assert one.profile["launches"] < two.profile["launches"]


@pytest.mark.parametrize("plan", ["fast", "groups=0", "groups=", "groups=x", ""])
def test_no_such_plan(plan: str) -> None:
    with pytest.raises(InputError, match="bad value") as caught:
        davinci.compile(TWO, plan=plan)
    assert "groups=N" in str(caught.value)


def test_saved_programs_keep_their_launches(tmp_path: Path) -> None:
    executable, _ = run("time")
    executable.save(tmp_path / "n.davinci")
    loaded = davinci.load(tmp_path / "n.davinci")
    loaded.run(*[np.ones(spec.shape, np.float32) for spec in loaded.inputs])
    assert shared(loaded) == shared(executable)


def test_what_if_one_of_them_were_faster() -> None:
    executable, _ = run("time")
    (names,) = [names for names in shared(executable) if len(names) > 1]
    answers = executable.what_if(f"kernel={names[0]}:all=2x,gm=2x")
    assert all(answer["saved_cycles"] >= 0 for answer in answers)


def test_kernels_that_wait_for_each_other_are_a_race() -> None:
    """Launches of small networks put together: what waits is found, what does not is let be."""
    counts = stage_mutation.judge(seed=3, models=2)
    assert counts["escaped"] == counts["false alarm"] == 0
    assert counts["found"] > 0 and counts["let be"] > 0
