"""The timeline against the Trace Event format, and its contents against the time line's rows."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from davinci import machine
from davinci.simulator.trace import LANES, trace_events, trace_json
from report_support import DEPTH, busy_program, launch

MACHINE = machine.load("ascend910")
Event = dict[str, Any]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    text = trace_json(MACHINE, [launch("k", busy_program(), blocks=2), launch("k", [], blocks=1)])
    found: list[Event] = json.loads(text)["traceEvents"]
    return found


def of(events: list[Event], phase: str) -> list[Event]:
    return [event for event in events if event["ph"] == phase]


def check_format(events: list[Event]) -> None:
    """What any reader of the format relies on."""
    for event in events:
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert event["ph"] in "XMCsf"
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0


def check_lanes(events: list[Event]) -> None:
    """Slices of one lane do not overlap."""
    lanes = defaultdict(list)
    for event in of(events, "X"):
        lanes[event["pid"], event["tid"]].append(event)
    for lane in lanes.values():
        lane.sort(key=lambda event: (event["ts"], event["ts"] + event["dur"]))
        for before, after in pairwise(lane):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-5, (before, after)


def check_flows(events: list[Event]) -> None:
    """Every arrow has one tail inside a set_flag and one head at a wait_flag, not before it."""
    tails = {event["id"]: event for event in of(events, "s")}
    heads = {event["id"]: event for event in of(events, "f")}
    assert len(tails) == len(of(events, "s")) and tails.keys() == heads.keys()
    slices = of(events, "X")
    for number, tail in tails.items():
        head = heads[number]
        assert head["ts"] >= tail["ts"]
        sets = [s for s in slices if s["name"] == "set_flag" and encloses(s, tail)]
        waits = [s for s in slices if s["name"] == "wait_flag" and encloses(s, head)]
        assert len(sets) == 1 and len(waits) >= 1


def encloses(piece: Event, point: Event) -> bool:
    same = (piece["pid"], piece["tid"]) == (point["pid"], point["tid"])
    return same and piece["ts"] - 1e-5 <= point["ts"] <= piece["ts"] + piece["dur"] + 1e-5


def test_format(events: list[Event]) -> None:
    check_format(events)
    check_lanes(events)
    check_flows(events)
    assert of(events, "s")


def test_lanes_have_the_names_of_the_field(events: list[Event]) -> None:
    names = defaultdict(set)
    for event in of(events, "M"):
        if event["name"] == "thread_name":
            names[event["pid"]].add(event["args"]["name"])
    assert names[0] == {"launches", "launch overhead"}
    assert names[1] == names[2]
    assert names[1] <= {*LANES.values(), "FLOWCTRL", "FLOWCTRL 2"}
    assert {"SCALAR", "MTE1", "MTE2", "MTE3", "CUBE", "VECTOR", "FLOWCTRL"} <= names[1]


def test_launches_lie_behind_their_overhead(events: list[Event]) -> None:
    device = [event for event in of(events, "X") if event["pid"] == 0]
    assert [event["tid"] for event in device] == [2, 1, 2, 1]
    assert device[0]["dur"] == MACHINE.launch.overhead_us
    for before, after in pairwise(device):
        assert before["ts"] + before["dur"] == pytest.approx(after["ts"])


def test_arguments(events: list[Event]) -> None:
    copy = next(event for event in of(events, "X") if event["name"] == "copy_gm_to_ubuf")
    assert copy["args"]["source"] == "k.mlir:7:3"
    assert copy["args"]["read_bytes"] == copy["args"]["written_bytes"] == 8192
    assert "n_burst=1" in copy["args"]["fields"].split()
    assert copy["args"]["complete_cycle"] > copy["args"]["start_cycle"]


def test_counters_end_at_zero(events: list[Event]) -> None:
    counters = defaultdict(list)
    for event in of(events, "C"):
        counters[event["pid"], event["name"]].append(event)
    assert {name for _, name in counters} >= {"UB bytes in use", "L0C bytes in use"}
    for series in counters.values():
        assert [event["ts"] for event in series] == sorted(event["ts"] for event in series)
        assert series[-1]["args"]["bytes"] == 0
        assert max(event["args"]["bytes"] for event in series) > 0


def test_a_full_queue_is_drawn_without_overlap() -> None:
    program = [("mad.f162f32", {"m": 16, "k": 16, "n": 16, "init": 1})] * (DEPTH + 4)
    events = trace_events(MACHINE, [launch("k", program)])
    check_lanes(events)
