"""The timeline against the Trace Event format, and its contents against the time line's rows."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from davinci import machine
from davinci.report.program import Kernel, ProgramFacts
from davinci.report.seats import core_name
from davinci.report.trace import (
    BUSY,
    KERNEL,
    LANES,
    LAUNCHES,
    LAYERS,
    OVERHEAD,
    TRAFFIC,
    trace_events,
    trace_json,
)
from davinci.report.traffic import MOST_CHANGES, busy_cores, gm_rates
from davinci.simulator import LaunchProfile
from davinci.simulator.timing.profile import BlockProfile
from davinci.simulator.timing.timeline import NOTHING, TimelineRow
from report_support import (
    DEPTH,
    busy_program,
    check_as_read,
    check_flows,
    check_format,
    check_lanes,
    launch,
    of,
)

MACHINE = machine.load("ascend910")


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    text = trace_json(MACHINE, [launch("k", busy_program(), blocks=2), launch("k", [], blocks=1)])
    found: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return found


def test_a_launch_names_its_nodes() -> None:
    profile = launch("k", busy_program(), timeline=False)
    profile.operators = ("/a/Add", "/b/Add")
    events = of(trace_events(MACHINE, [profile]), "X")
    (found,) = (event for event in events if event["tid"] == LAUNCHES)
    assert found["args"]["operators"] == "/a/Add, /b/Add"


def test_layers_have_a_lane() -> None:
    nodes = ["/a/x/Add", "/a/x/Mul", "/b/Add", "Cast"]
    profiles = [launch("k", busy_program(), timeline=False) for _ in nodes]
    for profile, node in zip(profiles, nodes, strict=True):
        profile.operators = (node,)
    found = trace_events(MACHINE, profiles)
    check_as_read(found)
    layers = [event for event in of(found, "X") if event["tid"] == LAYERS]
    launches = [event for event in of(found, "X") if event["tid"] == LAUNCHES]
    assert [event["name"] for event in layers] == ["a/x", "b"]
    ends = [event["ts"] + event["dur"] for event in (*layers, launches[1], launches[2])]
    assert ends[0] == pytest.approx(ends[2]) and ends[1] == pytest.approx(ends[3])


def test_format(events: list[dict[str, Any]]) -> None:
    check_format(events)
    check_lanes(events)
    check_flows(events)
    assert check_as_read(events).arrows


@pytest.mark.parametrize("clock_mhz", [680, 1000, 1850])
def test_a_reader_of_whole_nanoseconds_loses_nothing(clock_mhz: int) -> None:
    """Slices that end where the next one begins still do when the reader has cut off or rounded."""
    other = MACHINE.model_copy(update={"clock_mhz": clock_mhz})
    launches = [launch("k", busy_program()) for _ in range(40)]
    check_as_read(json.loads(trace_json(other, launches))["traceEvents"])


def test_counters_say_what_and_in_which_unit(events: list[dict[str, Any]]) -> None:
    counters = check_as_read(events).counters
    assert ("core 0", "UB in use bytes") in counters
    assert max(counters["core 0", "UB in use bytes"]) <= MACHINE.buffer("UB").bytes


@pytest.mark.parametrize(
    ("machine_name", "place", "name"),
    [
        ("ascend910", 3, "core 3"),
        ("ascend910b", 0, "core 0 AIC"),
        ("ascend910b", 4, "core 1 AIV0"),
        ("ascend910b", 5, "core 1 AIV1"),
    ],
)
def test_names_of_cores(machine_name: str, place: int, name: str) -> None:
    assert core_name(machine.load(machine_name), place) == name


def test_lanes_have_the_names_of_the_field(events: list[dict[str, Any]]) -> None:
    names = defaultdict(set)
    for event in of(events, "M"):
        if event["name"] == "thread_name":
            names[event["pid"]].add(event["args"]["name"])
    assert names[0] == {"kernels", "launch overhead"}
    assert names[1] == names[2]
    assert names[1] <= {"kernel", *LANES.values(), "FLOWCTRL", "FLOWCTRL 2"}
    assert {"SCALAR", "MTE1", "MTE2", "MTE3", "CUBE", "VECTOR", "FLOWCTRL"} <= names[1]


def test_launches_lie_behind_their_overhead(events: list[dict[str, Any]]) -> None:
    device = [event for event in of(events, "X") if event["pid"] == 0]
    assert [event["tid"] for event in device] == [OVERHEAD, LAUNCHES] * 2
    # The first one waits for the host, on 2 cores of 32.
    unit = MACHINE.launch
    head = unit.head_of_all_cores_us
    assert device[0]["dur"] == pytest.approx(unit.overhead_us + head * 2 / 32, abs=1e-3)
    assert device[2]["dur"] == pytest.approx(unit.switch_us + unit.head_us + head / 32, abs=1e-3)
    for before, after in pairwise(device):
        assert before["ts"] + before["dur"] == pytest.approx(after["ts"])


def test_arguments(events: list[dict[str, Any]]) -> None:
    copy = next(event for event in of(events, "X") if event["name"] == "copy_gm_to_ubuf")
    assert copy["args"]["source"] == "k.mlir:7:3"
    assert copy["args"]["read_bytes"] == copy["args"]["written_bytes"] == 8192
    assert "n_burst=1" in copy["args"]["fields"].split()
    assert copy["args"]["complete_cycle"] > copy["args"]["start_cycle"]


def test_counters_end_at_zero(events: list[dict[str, Any]]) -> None:
    counters = defaultdict(list)
    for event in of(events, "C"):
        counters[event["pid"], event["name"]].append(event)
    assert {name for _, name in counters} >= {"UB in use", "L0C in use", TRAFFIC, BUSY}
    for series in counters.values():
        assert [event["ts"] for event in series] == sorted(event["ts"] for event in series)
        assert set(series[-1]["args"].values()) == {0}
        assert max(max(event["args"].values()) for event in series) > 0


def test_order_of_the_picture() -> None:
    """Layers, kernels, what it takes to start them; then of each core the kernel and its pipes."""
    profile = launch("k", busy_program(), blocks=2)
    profile.operators = ("/a/Add",)
    lanes = defaultdict(list)
    for event in of(trace_events(MACHINE, [profile]), "M"):
        if event["name"] == "thread_name":
            lanes[event["pid"]].append((event["tid"], event["args"]["name"]))
    order = {process: [name for _, name in sorted(found)] for process, found in lanes.items()}
    assert list(order) == [0, 1, 2]
    assert order[0] == ["layers", "kernels", "launch overhead"]
    assert order[1][:3] == ["kernel", "SCALAR", "MTE1"]


def test_kernels_have_their_labels() -> None:
    facts = ProgramFacts({"k": Kernel("matmul", "cube", label="matmul 16x16x16 f16")}, 0, 0, 0)
    facts = replace(facts, scopes={"node": "jit(f)/mlp"})
    profile = launch("k", busy_program())
    profile.operators = ("node",)
    events = of(trace_events(MACHINE, [profile], program=facts), "X")
    by_lane = {event["tid"]: event for event in events}
    own = by_lane[1000 + KERNEL]
    assert by_lane[LAUNCHES]["name"] == own["name"] == "matmul 16x16x16 f16"
    assert by_lane[LAUNCHES]["args"]["kernel"] == own["args"]["kernel"] == "k"
    assert by_lane[LAYERS]["name"] == "jit(f)/mlp"
    inside = [event for event in events if event["pid"] == 1]
    assert own["ts"] <= min(event["ts"] for event in inside)
    assert max(e["ts"] + e["dur"] for e in inside) <= own["ts"] + own["dur"] + 0.005


def test_traffic_adds_up_to_the_bytes_moved() -> None:
    profile = launch("k", busy_program())
    steps = gm_rates(profile.rows)
    moved = [0.0, 0.0]
    for (begin, *rates), (end, *_) in pairwise(steps):
        for i, rate in enumerate(rates):
            moved[i] += rate * (end - begin)
    assert moved == pytest.approx([profile.gm_read_bytes, profile.gm_write_bytes], rel=1e-3)
    assert steps[-1][1:] == (0, 0)
    events = of(trace_events(MACHINE, [profile]), "C")
    whole = next(event for event in events if event["pid"] == 0 and event["name"] == TRAFFIC)
    us = profile.cycles / MACHINE.clock_mhz
    assert whole["args"]["read bytes/us"] == pytest.approx(profile.gm_read_bytes / us, rel=1e-3)


def test_busy_cores() -> None:
    def done(*cycles: int) -> LaunchProfile:
        blocks = [BlockProfile(core, core, each, {}) for core, each in enumerate(cycles)]
        return LaunchProfile("k", len(cycles), cycles=max(cycles), per_block=blocks)

    assert busy_cores([done(10, 30, 10)]) == [(0, 3), (10, 1), (30, 0)]
    assert busy_cores([LaunchProfile("k", 0)]) == []
    many = busy_cores([done(*range(1, 101))])
    assert len(many) <= MOST_CHANGES + 2
    assert many[0] == (0, 100) and many[-1] == (100, 0)


def test_a_full_queue_is_drawn_without_overlap() -> None:
    program = [("mad.f162f32", {"m": 16, "k": 16, "n": 16, "init": 1})] * (DEPTH + 4)
    events = trace_events(MACHINE, [launch("k", program)])
    check_lanes(events)


def test_an_arrow_between_cores_begins_at_the_last_set() -> None:
    """Both vector cores of a block set the flag that the cube core waits for."""
    split = machine.load("ascend910b")
    sets = {"pipe": 5, "mode": 2, "flag": 3}
    rows = [
        between(1, "PIPE_MTE3", "ffts_cross_core_sync", 100, sets),
        between(2, "PIPE_MTE3", "ffts_cross_core_sync", 120, sets),
        between(0, "PIPE_S", "wait_flag_dev", 140, {"flag": 3}),
    ]
    profile = LaunchProfile("k", 1, cycles=140, rows=rows)
    ((tail, head),) = check_as_read(trace_events(split, [profile])).arrows
    assert (tail["pid"], head["pid"]) == (3, 1)
    all_kinds = [replace(row, fields={**row.fields, "mode": 0}) for row in rows[:2]]
    profile = LaunchProfile("k", 1, cycles=140, rows=[*all_kinds, rows[2]])
    assert check_as_read(trace_events(split, [profile])).arrows == []


def between(core: int, pipe: str, mnemonic: str, end: int, fields: dict[str, int]) -> TimelineRow:
    times = {"start": 1, "end": end, "issued": 1, "free": end if pipe == "PIPE_S" else 1}
    notes = dict.fromkeys(("issue_after", "start_after", "end_after"), NOTHING)
    what = {"mnemonic": mnemonic, "location": "", "fields": fields, "accesses": ()}
    return TimelineRow(
        core=core, block=0, place=0, pipe=pipe, index=0, shared_cycles=0, **times, **notes, **what
    )
