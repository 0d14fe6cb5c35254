"""Time lines in Chrome's trace format; Perfetto and chrome://tracing open them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.simulator.profile import LaunchProfile

LANES = {f"PIPE_{pipe.name}": int(pipe) for pipe in Pipe}


def write_trace(path: Path, machine: Machine, launches: Iterable[LaunchProfile]) -> None:
    """Writes the launches one after the other, a process for each core and a lane for each pipe.

    Args:
        path: file to write.
        machine: gives the clock; times in the file are microseconds.
        launches: profiles with rows, see `Device.launch(timeline=True)`.
    """
    path.write_text(json.dumps({"traceEvents": trace_events(machine, launches)}), encoding="utf-8")


def trace_events(machine: Machine, launches: Iterable[LaunchProfile]) -> list[dict[str, Any]]:
    """The events of `write_trace`."""
    events: list[dict[str, Any]] = []
    lanes: set[tuple[int, str]] = set()
    begin = 0.0
    for launch in launches:
        for row in launch.rows:
            lanes.add((row.core, row.pipe))
            event = {
                "name": row.mnemonic,
                "ph": "X",
                "ts": begin + row.start / machine.clock_mhz,
                "dur": (row.end - row.start) / machine.clock_mhz,
                "pid": row.core,
                "tid": LANES[row.pipe],
                "args": {"kernel": launch.name, "index": row.index, "location": row.location},
            }
            events.append(event)
        begin += launch.cycles / machine.clock_mhz + machine.launch.overhead_us
    names = [
        {"name": "thread_name", "ph": "M", "pid": core, "tid": LANES[pipe], "args": {"name": pipe}}
        for core, pipe in sorted(lanes)
    ]
    cores = [
        {"name": "process_name", "ph": "M", "pid": core, "args": {"name": f"core {core}"}}
        for core in sorted({core for core, _ in lanes})
    ]
    return [*cores, *names, *events]
