"""Time lines in Chrome's Trace Event format; Perfetto and chrome://tracing open them.

A process for each core has a lane for each pipe and counters for its memories; the process `NPU`
has the launches one after the other, each behind its overhead. A slice is the time in which an
instruction keeps its pipe, so slices of a lane never overlap; when it is complete is among its
arguments. A `set_flag` keeps no pipe: it is drawn for one cycle in the lane FLOWCTRL when it fires,
and an arrow leads to the `wait_flag` that took it.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from davinci.isa.core import Space
from davinci.machine import Machine
from davinci.simulator.occupancy import occupancy
from davinci.simulator.profile import LaunchProfile
from davinci.simulator.timing import Row

LANES = {
    "PIPE_S": "SCALAR",
    "PIPE_MTE1": "MTE1",
    "PIPE_MTE2": "MTE2",
    "PIPE_MTE3": "MTE3",
    "PIPE_M": "CUBE",
    "PIPE_V": "VECTOR",
    "PIPE_FIX": "FIXP",
}
"""Names of lanes by pipe, as the vendor's traces have them (docs/hardware.md e)."""

NUMBERS = {pipe: number for number, pipe in enumerate(LANES, 1)}
FLOW_CONTROL = 20
"""Number of the first lane FLOWCTRL; flags set in the same cycle lie in further ones."""

DEVICE, LAUNCHES, OVERHEAD = 0, 1, 2
"""Process and lanes of the launches."""

MEMORIES = ("L1", "L0A", "L0B", "L0C", "UB")
"""Whose occupation is drawn."""

SET, WAIT = "set_flag", "wait_flag"

Event = dict[str, Any]


def trace_json(machine: Machine, launches: Iterable[LaunchProfile]) -> str:
    """The text of a trace file, one event a line.

    Args:
        machine: gives the clock; times in the file are microseconds.
        launches: all of a run, in order. Those with rows (`Device.launch(timeline=True)`) are
            drawn instruction by instruction, the others as one slice.
    """
    lines = ",\n".join(
        json.dumps(event, separators=(",", ":")) for event in trace_events(machine, launches)
    )
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{lines}\n]}}\n'


def trace_events(machine: Machine, launches: Iterable[LaunchProfile]) -> list[Event]:
    """The events of `trace_json`."""
    writer = _Writer(machine)
    for launch in launches:
        writer.launch(launch)
    return [*writer.names(), *writer.events]


class _Writer:
    def __init__(self, machine: Machine) -> None:
        self.events: list[Event] = []
        self._machine = machine
        self._begin_us = 0.0
        self._flows = 0
        self._lanes: dict[tuple[int, int], str] = {
            (DEVICE, LAUNCHES): "launches",
            (DEVICE, OVERHEAD): "launch overhead",
        }
        self._sizes = {Space[name]: machine.buffer(name).bytes for name in MEMORIES}

    def launch(self, launch: LaunchProfile) -> None:
        """Adds a launch behind all before."""
        overhead = self._machine.launch.overhead_us
        self._slice(launch.name, DEVICE, OVERHEAD, self._begin_us, overhead, {})
        self._begin_us += overhead
        length = launch.cycles / self._machine.clock_mhz
        counts = {
            "blocks": launch.blocks,
            "cycles": launch.cycles,
            "instructions": sum(launch.instructions.values()),
            "gm_read_bytes": launch.gm_read_bytes,
            "gm_write_bytes": launch.gm_write_bytes,
        }
        self._slice(launch.name, DEVICE, LAUNCHES, self._begin_us, length, counts)
        by_block: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in launch.rows:
            by_block[row.core, row.block].append(row)
        for (core, _), rows in sorted(by_block.items()):
            self._block(launch.name, core + 1, rows)
        self._begin_us += length

    def names(self) -> Iterator[Event]:
        """The names of processes and lanes, in the order of the picture."""
        for process in sorted({process for process, _ in self._lanes}):
            name = "NPU" if process == DEVICE else f"core {process - 1}"
            yield self._name("process_name", process, 0, name=name)
            yield self._name("process_sort_index", process, 0, sort_index=process)
        for (process, lane), name in sorted(self._lanes.items()):
            yield self._name("thread_name", process, lane, name=name)
            yield self._name("thread_sort_index", process, lane, sort_index=lane)

    def _name(self, kind: str, process: int, lane: int, **args: Any) -> Event:
        return {"name": kind, "ph": "M", "pid": process, "tid": lane, "args": args}

    def _block(self, kernel: str, process: int, rows: Sequence[Row]) -> None:
        flags: dict[tuple[int, int, int], deque[tuple[int, Row]]] = defaultdict(deque)
        busy_until: list[int] = []
        ordered = sorted(rows, key=lambda row: row.index)
        for row in sorted((row for row in ordered if row.mnemonic == SET), key=lambda row: row.end):
            number = next((i for i, end in enumerate(busy_until) if end <= row.end), None)
            if number is None:
                number = len(busy_until)
                busy_until.append(0)
            busy_until[number] = row.end + 1
            lane = FLOW_CONTROL + number
            self._lanes[process, lane] = "FLOWCTRL" if not number else f"FLOWCTRL {number + 1}"
            self._row(kernel, process, lane, row, row.end, row.end + 1)
            flags[_flag(row)].append((lane, row))
        for row in ordered:
            if row.mnemonic == SET:
                continue
            lane = NUMBERS[row.pipe]
            self._lanes[process, lane] = LANES[row.pipe]
            start = row.start
            if row.pipe == "PIPE_S":
                start -= self._machine.scalar.issue_cycles
            self._row(kernel, process, lane, row, start, row.free)
            if row.mnemonic == WAIT and flags[_flag(row)]:
                set_lane, sender = flags[_flag(row)].popleft()
                self._arrow(process, set_lane, sender, lane, row)
        end = max(max(row.end, row.free) for row in rows)
        for space, changes in occupancy(rows, self._sizes).items():
            self._counter(process, space, [*changes, (end, 0)])

    def _row(self, kernel: str, process: int, lane: int, row: Row, start: int, end: int) -> None:
        args: Event = {
            "kernel": kernel,
            "block": row.block,
            "index": row.index,
            "source": row.location,
            "fields": " ".join(f"{name}={value}" for name, value in row.fields.items()),
            "issued_cycle": row.issued,
            "start_cycle": row.start,
            "complete_cycle": row.end,
        }
        for written, name in ((False, "read_bytes"), (True, "written_bytes")):
            if any(access[3] == written for access in row.touched):
                sizes = (region.size_bytes for _, _, region, w in row.touched if w == written)
                args[name] = sum(sizes)
        length = (end - start) / self._machine.clock_mhz
        self._slice(row.mnemonic, process, lane, self._at(start), length, args)

    def _arrow(self, process: int, set_lane: int, sender: Row, lane: int, waiter: Row) -> None:
        """From the cycle in which a flag was set to the end of the wait for it."""
        self._flows += 1
        common = {"name": "flag", "cat": "flag", "id": self._flows, "pid": process}
        self.events.append({**common, "ph": "s", "tid": set_lane, "ts": self._at(sender.end)})
        waited = waiter.end > waiter.start
        # A wait of no length cannot enclose an arrow's head: it points at what comes next.
        head: Event = {**common, "ph": "f", "tid": lane, "ts": self._at(waiter.end - waited)}
        self.events.append({**head, "bp": "e"} if waited else head)

    def _counter(self, process: int, space: Space, changes: Sequence[tuple[int, int]]) -> None:
        for time, level in changes:
            self.events.append(
                {
                    "name": f"{space.name} bytes in use",
                    "ph": "C",
                    "pid": process,
                    "tid": 0,
                    "ts": self._at(time),
                    "args": {"bytes": level},
                }
            )

    def _slice(
        self, name: str, process: int, lane: int, start_us: float, length_us: float, args: Event
    ) -> None:
        event = {"name": name, "ph": "X", "ts": round(start_us, 6), "dur": round(length_us, 6)}
        self.events.append({**event, "pid": process, "tid": lane, "args": args})

    def _at(self, cycle: int) -> float:
        return round(self._begin_us + cycle / self._machine.clock_mhz, 6)


def _flag(row: Row) -> tuple[int, int, int]:
    fields = row.fields
    return fields["src_pipe"], fields["dst_pipe"], fields["event"]
