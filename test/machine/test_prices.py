"""The price list: on a machine on which everything takes twice as long, all estimates are doubled,
so none of them holds a number of cycles of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from davinci import frontends, zoo
from davinci import machine as machines
from davinci.compiler import lower
from davinci.machine import Machine, prices
from davinci.mlir import make_context
from davinci.passes.analysis.kernels import kernels
from davinci.passes.analysis.loop_graph import loop_graph_of, loops_of
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.groups import group_of, is_group
from davinci.passes.pipeline import pipelines
from davinci.schedule.loops.choice import schedule_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "speed"))
from costs import estimate_of

NAME = "ascend910"
SLOWER = 2
ALMOST = 0.02
"""Estimates are rounded, and blocks that meet in a bank of UB cost a cycle on any machine."""


def slower(data: Any, key: str = "") -> Any:
    """Tables of a machine file with all times doubled and all rates halved."""
    if isinstance(data, dict):
        kind = "_cycles" if key in ("fixed_cycles_of", "cycles_per_repeat") else ""
        return {name: slower(value, kind or name) for name, value in data.items()}
    if key.endswith(("_cycles", "_us")):
        return data * SLOWER
    if key.endswith(("_per_cycle", "stall_bytes")) or key.startswith("k_b"):
        return data // SLOWER
    return data


def slower_machine() -> Machine:
    data = slower(machines.read(machines.DIRECTORY / f"{NAME}.toml"))
    repeats = data["vector"]["cycles_per_repeat"]
    families = {name.partition("_")[0] for name in data["intrinsics"] if name.startswith("v")}
    data["vector"]["cycles_per_repeat"] = dict.fromkeys(families, SLOWER) | repeats
    return Machine.model_validate(data)  # the depth of the cube is none that can be encoded


@pytest.mark.parametrize(
    "spec", ["bert,layers=1,hidden=128,heads=2,seq=32", "lstm", "resnet18,resolution=32"]
)
def test_no_estimate_has_cycles_of_its_own(spec: str) -> None:
    machine, slow = machines.load(NAME), slower_machine()
    module = frontends.load(zoo.build(spec).proto, make_context(), None)
    stages = pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")]
    lower(module, pipelines.Options(NAME, machine.cores), lambda text: None, stages)
    weighed = 0
    for function in kernels(module.operation):
        if loops := loops_of(function):
            groups = [loop_graph_of(function, loop).group() for loop in loops]
            first, second = (
                max(schedule_of(group, each, machine.cores).cycles for group in groups)
                for each in (machine, slow)
            )
        elif is_group(function):
            graph = group_of(function, machine).graph
            (_, first), (_, second) = (
                estimate_of(graph, Target(each, 8)) for each in (machine, slow)
            )
        else:
            continue
        weighed += 1
        assert second == pytest.approx(SLOWER * first, rel=ALMOST), str(function.name)
    assert weighed


def test_prices_are_linear() -> None:
    machine = machines.load(NAME)
    one, both = (prices.load2d(machine, "L0B", 512 * n, n) for n in (1, 3))
    assert both == 3 * one
    assert prices.mad(machine, 8, instructions=2) == 2 * prices.mad(machine, 4)


def test_a_transfer_takes_the_distance_of_two_at_least() -> None:
    port = prices.reading(machines.load(NAME))
    assert port.busy(1, 4) == 4 * port.issue_cycles
    assert port.busy(1 << 20, 4) == (1 << 20) / port.bytes_per_cycle
    assert port.result(0) == port.start_cycles
