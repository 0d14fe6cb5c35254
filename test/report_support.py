"""Launches with timelines for the tests of reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from davinci import machine
from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile
from encoded import encoded
from trace_reader import Reading, cut_off, read, rounded

S, V, M = Pipe.S, Pipe.V, Pipe.M
MTE1, MTE2, MTE3 = Pipe.MTE1, Pipe.MTE2, Pipe.MTE3
DEPTH = 32

Line = tuple[str, dict[str, int]]
Event = dict[str, Any]


def flag(src: Pipe, dst: Pipe, event: int = 0) -> list[Line]:
    fields = {"src_pipe": int(src), "dst_pipe": int(dst), "event": event}
    return [("set_flag", fields), ("wait_flag", fields)]


def dup(repeat: int) -> Line:
    return ("vector_dup.f32", {"dst": 16384, "repeat": repeat, "dst_rep_stride": 8})


def mad(size: int) -> Line:
    return ("mad.f162f32", {"m": size, "k": size, "n": size, "init": 1})


def copy_in() -> Line:
    return ("copy_gm_to_ubuf", {"dst": 0, "src": 512, "n_burst": 1, "len_burst": 256})


def busy_program() -> list[Line]:
    """Uses every pipe, with waits that are long, short and over at once."""
    load = ("load_cbuf_to_ca.f16", {"repeat": 64, "src_stride": 1})
    back = ("copy_ubuf_to_gm", {"dst": 512, "src": 0, "n_burst": 1, "len_burst": 8})
    add = (
        "vadd.f32",
        {"dst": 0, "src0": 0, "src1": 16384, "repeat": 10}
        | {f"{name}_rep_stride": 8 for name in ("dst", "src0", "src1")},
    )
    return [
        ("set_vector_mask", {"low": (1 << 64) - 1, "high": (1 << 64) - 1}),
        copy_in(),
        dup(10),
        load,
        *flag(MTE1, M),
        mad(64),
        *flag(MTE2, V),
        add,
        ("pipe_barrier", {"pipe": int(V)}),
        add,
        *flag(V, MTE3),
        *flag(V, S, 1),
        back,
        *flag(MTE3, MTE2),
        copy_in(),
        ("pipe_barrier", {"pipe": int(Pipe.ALL)}),
        dup(10),
    ]


def launch(name: str, program: Sequence[Line], **options: Any) -> LaunchProfile:
    """Runs a program without checks, with its timeline; all lines come from `k.mlir:7:3`."""
    device = Device(machine.load("ascend910"), 1 << 24, checks=False)
    device.write(device.allocate(1 << 20), np.zeros(1 << 20, dtype=np.uint8))
    rows = [encoded(mnemonic, location=1, **values) for mnemonic, values in program]
    stream = np.array(rows, dtype=np.uint64).reshape(-1, 8)

    def run(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        core.consume(stream)

    options = {"timeline": True, "locations": ["", "k.mlir:7:3"], **options}
    return device.launch(name, run, [], **options)


def of(events: list[Event], phase: str) -> list[Event]:
    return [event for event in events if event["ph"] == phase]


SETS = {"set_flag": "wait_flag", "ffts_cross_core_sync": "wait_flag_dev"}
"""What sets flags, and what waits for them."""


def check_as_read(events: list[Event]) -> Reading:
    """Perfetto loses nothing, nests nothing that has a length, and binds the arrows to flags."""
    for nanoseconds in (cut_off, rounded):
        reading = read(events, nanoseconds)
        assert reading.lost == []
        assert all(nanoseconds(event["dur"]) == 0 for event in reading.nested)
        assert len(reading.arrows) == len(of(events, "s"))
        assert {(a["name"], b["name"]) for a, b in reading.arrows} <= {*SETS.items()}
    return reading


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
    slices = defaultdict(list)
    for event in of(events, "X"):
        if event["name"] in {*SETS, *SETS.values()}:
            slices[event["name"] in SETS, event["pid"], event["tid"]].append(event)
    for number, tail in tails.items():
        head = heads[number]
        assert head["ts"] >= tail["ts"]
        for sets, point in ((True, tail), (False, head)):
            lane = slices[sets, point["pid"], point["tid"]]
            assert any(encloses(piece, point) for piece in lane), point


def encloses(piece: Event, point: Event) -> bool:
    return bool(piece["ts"] - 1e-5 <= point["ts"] <= piece["ts"] + piece["dur"] + 1e-5)
