"""What a faster machine would gain: what a run on it really gains."""

from __future__ import annotations

from typing import Any

import pytest

import davinci
from davinci.arrays import random_inputs
from davinci.errors import InputError
from davinci.machine import Machine
from davinci.report.launching import cycles_of
from davinci.report.what_if import read
from davinci.simulator import Device
from davinci.zoo import build

CHANGES = [
    "mte2.l1_port=2x",
    "sync.flag_cycles=0",
    "gm=2x",
    "l2=2x",
    "vector.fixed_cycles=0",
    "vector.head_cycles=1",
    "cube.occupancy_cycles=0",
    "mte1.fixed_cycles=100",
    "scalar.issue_cycles=3",
    "vector.fixed_cycles_of.vconv=1",
    "mte3.start_cycles=2x",
]


@pytest.fixture(scope="module")
def network() -> Any:
    net = build("bert,layers=1,hidden=64,heads=2,seq=32")
    executable = davinci.compile(net.proto, timing_only=True, launches="many")
    executable.run(random_inputs(executable.inputs, 0))
    return executable


def run_on(machine: Machine, network: Any) -> list[int]:
    """Cycles of each launch of the same programs on a machine."""
    device = Device(machine, 1 << 26, data=False)
    return [
        cycles_of(device.profile_of(launch, [0] * len(launch.kernels)))
        for launch in network._host.launches
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_as_on_a_changed_machine(network: Any, change: str) -> None:
    (row,) = network.what_if(change)
    changed = read(change, network.machine, []).machine
    assert changed != network.machine
    assert row["cycles"] == sum(run_on(changed, network))
    assert row["saved_cycles"] == network.profile["total_cycles"] - row["cycles"]


def test_several_changes_and_one_kernel(network: Any) -> None:
    kernel = network.profile["kernels"][0]["name"]
    question = f"gm=2x, flag_cycles=0, kernel={kernel}:barrier_cycles=0"
    rows = {row["change"]: row for row in network.what_if(question)}
    assert list(rows)[-1] == "all of them"
    changed = read("barrier_cycles=0", network.machine, []).machine
    names = [launch.name for launch in network.launches]
    old, new = run_on(network.machine, network), run_on(changed, network)
    expected = sum(b if name == kernel else a for a, b, name in zip(old, new, names, strict=True))
    assert rows[f"kernel={kernel}:barrier_cycles=0"]["cycles"] == expected
    together = rows["all of them"]["saved_us"]
    assert together > max(row["saved_us"] for name, row in rows.items() if name != "all of them")


def test_a_pipe_and_launches(network: Any) -> None:
    (pipe,) = network.what_if("v=2x")
    assert 0 < pipe["saved_cycles"] < network.profile["total_cycles"] / 2
    (same,) = network.what_if("v=1x")
    assert same["saved_cycles"] == 0 and same["saved_us"] == pytest.approx(0, abs=1e-9)
    (launch,) = network.what_if("launch.overhead_us=0")
    assert launch["saved_us"] == pytest.approx(network.machine.launch.overhead_us)
    assert launch["saved_cycles"] == 0
    (half,) = network.what_if("launch=2x")
    assert half["saved_us"] == pytest.approx(network.profile["launch_overhead_us"] / 2)
    (head,) = network.what_if("launch.head_us=2x")
    queued = network.profile["ops"]["total"] - 1
    assert head["saved_us"] == pytest.approx(queued * network.machine.launch.head_us / 2)


def test_ranking(network: Any) -> None:
    rows = network.what_if("all")
    saved = [row["saved_us"] for row in rows]
    assert saved == sorted(saved, reverse=True) and saved[-1] > 0
    names = [row["change"] for row in rows]
    assert "v=2x" in names and "sync.flag_cycles=0" in names
    assert any(name.startswith("kernel=") for name in names)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("mte7=2x", "no time or rate"),
        ("l2.bytes=2x", "no time or rate"),
        ("vector.f=0", "several keys"),
        ("v=3", "a pipe has no number"),
        ("gm=fast", "no change of times"),
        ("v=0x", "no change of times"),
        ("kernel=nobody:v=2x", "no such kernel"),
        ("scalar.issue_cycles=0", "bad value"),
    ],
)
def test_what_is_no_change(network: Any, question: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        network.what_if(question)
