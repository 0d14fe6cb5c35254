"""Time lines in Chrome's Trace Event format; Perfetto and chrome://tracing open them.

The process `NPU`, which is the first one, has the layers of the model, below them the kernels one
after the other by their labels, those that share a launch in lanes of their own, what it takes to
start them, and counters of GM traffic and busy cores. A process for each core has the kernel on
top, a lane for each pipe, and counters of its memories and of its own GM traffic. A slice of a pipe
is the time in which an instruction keeps it, so slices of a lane never overlap; when it is complete
is among its arguments. A `set_flag` keeps no pipe: it is drawn for a nanosecond at least in the
lane FLOWCTRL when it fires, and an arrow leads to the `wait_flag` that took it. So are flags from a
cube core to its vector cores and back; other flags between cores have no arrows, since not all of
their cores need be drawn.

Perfetto reads times as whole nanoseconds and drops a slice that begins before the one to its left
is over and ends behind it. So every time is rounded to nanoseconds here, once, and a length is the
difference of two such times. Its threads are told apart by number alone, and one whose number is
that of its process is drawn above the others; so a lane has a number of its own.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from davinci.isa.core import Space
from davinci.isa.cross_core import CUBE_AND_VECTOR_CORES
from davinci.machine import Machine
from davinci.report.critical import WAIT_FOR_A_CORE
from davinci.report.launching import LAUNCHING, Sharing, cycles_of, gaps_us, launches_of
from davinci.report.names import scope_of
from davinci.report.occupancy import occupancy
from davinci.report.program import NO_FACTS, ProgramFacts
from davinci.report.seats import core_name, seat
from davinci.report.traffic import busy_cores, gm_rates
from davinci.simulator.timing.profile import LaunchProfile
from davinci.simulator.timing.timeline import TimelineRow

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

DEVICE, LAYERS, LAUNCHES, OVERHEAD = 0, 1, 2, 900
"""Process of the launches and its lanes, from the top; below that of the launches are those of the
kernels that share a launch with another one."""

KERNEL = 0
"""Number of the lane of a core that says which kernel runs; it lies above those of its pipes."""

TRAFFIC, BUSY = "GM traffic", "busy"
"""Counters: bytes that are read and written in a microsecond, and cores that have work. Viewers put
the unit behind the name: `busy cores`."""

LANES_OF_A_PROCESS = 1000
"""How far apart the numbers of the lanes of two processes are."""

MEMORIES = ("L1", "L0A", "L0B", "L0C", "UB")
"""Memories whose bytes in use are drawn."""

SET, WAIT = "set_flag", "wait_flag"
SET_FOR_CORES = "ffts_cross_core_sync"

Event = dict[str, Any]


def trace_json(
    machine: Machine,
    launches: Sequence[LaunchProfile],
    launching: str = LAUNCHING[0],
    program: ProgramFacts = NO_FACTS,
) -> str:
    """The text of a trace file, one event a line.

    Args:
        machine: gives the clock; times in the file are microseconds.
        launches: all of a run, in order. Those with rows (`Device.launch(timeline=True)`) are
            drawn instruction by instruction, the others as one slice.
        launching: see `launching.gaps_us`.
        program: gives the labels of kernels and the scopes of nodes; kernels that it does not know
            have their names.
    """
    lines = ",\n".join(
        json.dumps(event, separators=(",", ":"))
        for event in trace_events(machine, launches, launching, program)
    )
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{lines}\n]}}\n'


def trace_events(
    machine: Machine,
    launches: Sequence[LaunchProfile],
    launching: str = LAUNCHING[0],
    program: ProgramFacts = NO_FACTS,
) -> list[Event]:
    """Returns the events of `trace_json`."""
    writer = _Writer(machine, program)
    gaps = gaps_us(machine, launches, launching)
    for launch, gap in zip(launches_of(launches), gaps, strict=True):
        writer.launch(launch, gap)
    writer.end_layer()
    return [*writer.names(), *writer.events]


def microseconds(nanoseconds: int) -> float:
    """The least number of microseconds that a reader who cuts off turns into `nanoseconds`."""
    exact = nanoseconds / 1000
    return exact if int(exact * 1000) == nanoseconds else math.nextafter(exact, math.inf)


class _Writer:
    def __init__(self, machine: Machine, program: ProgramFacts) -> None:
        self.events: list[Event] = []
        self._machine, self._program = machine, program
        self._begin_us = 0.0
        self._flows = 0
        self._layer, self._layer_begin = "", 0
        self._set_lanes: dict[tuple[int, int, int], int] = {}
        self._lanes: dict[tuple[int, int], str] = {
            (DEVICE, LAUNCHES): "kernels",
            (DEVICE, OVERHEAD): "launch overhead",
        }
        # What is drawn of a flag; a cycle may be shorter than a nanosecond.
        self._flag_cycles = math.ceil(machine.clock_mhz / 1000)
        self._sizes = {Space[name]: machine.buffer(name).bytes for name in MEMORIES}

    def launch(self, launch: Sharing, gap_us: float) -> None:
        """Adds a launch behind all before, with its overhead in front."""
        begin = self._at(0)
        self._enter(scope_of(launch[0].operators, self._program.scopes), begin)
        self._begin_us += gap_us
        label = " | ".join(map(self._label, launch))
        self._slice(label, DEVICE, OVERHEAD, begin, self._at(0), {})
        self._levels(launch)
        for number, kernel in enumerate(launch):
            self._kernel(kernel, LAUNCHES + number)
        self._begin_us += cycles_of(launch) / self._machine.clock_mhz

    def _label(self, kernel: LaunchProfile) -> str:
        known = self._program.kernels.get(kernel.name)
        return (known and known.label) or kernel.name

    def _kernel(self, launch: LaunchProfile, lane: int) -> None:
        """Draws a kernel of the launch under way."""
        label = self._label(launch)
        if lane > LAUNCHES:
            self._lanes[DEVICE, lane] = f"kernels {lane - LAUNCHES + 1}"
        counts = {
            "kernel": launch.name,
            "operators": ", ".join(launch.operators),
            "blocks": launch.blocks,
            "cycles": launch.cycles,
            "instructions": sum(launch.instructions.values()),
            "gm_read_bytes": launch.gm_read_bytes,
            "gm_write_bytes": launch.gm_write_bytes,
        }
        self._slice(label, DEVICE, lane, self._at(0), self._at(launch.cycles), counts)
        by_block: dict[tuple[int, int], list[TimelineRow]] = defaultdict(list)
        for row in launch.rows:
            by_block[row.core, row.block].append(row)
        for (core, _), rows in sorted(by_block.items()):
            self._block(launch.name, label, core + 1, rows)
        self._between_cores(by_block)
        self._set_lanes.clear()

    def _levels(self, launch: Sharing) -> None:
        """GM traffic, on average over the launch, and the cores that have work."""
        cycles = cycles_of(launch)
        us = max(cycles / self._machine.clock_mhz, 1e-6)
        moved = (sum(x.gm_read_bytes for x in launch), sum(x.gm_write_bytes for x in launch))
        rates = [round(size / us, 1) for size in moved]
        for cycle, values in ((0, rates), (cycles, [0, 0])):
            self._counter(DEVICE, TRAFFIC, cycle, _traffic(*values))
        for cycle, cores in busy_cores(launch):
            self._counter(DEVICE, BUSY, cycle, {"cores": cores})

    def _enter(self, layer: str, now: int) -> None:
        """Launches of one layer that follow each other are one slice of the lane of layers."""
        if layer != self._layer:
            self.end_layer()
            self._layer, self._layer_begin = layer, now

    def end_layer(self) -> None:
        """Draws the layer that the launches so far lie in."""
        if self._layer:
            self._lanes[DEVICE, LAYERS] = "layers"
            self._slice(self._layer, DEVICE, LAYERS, self._layer_begin, self._at(0), {})
        self._layer = ""

    def names(self) -> Iterator[Event]:
        """The names of processes and lanes, in the order of the picture."""
        for process in sorted({process for process, _ in self._lanes}):
            name = "NPU" if process == DEVICE else core_name(self._machine, process - 1)
            lane = self._first_lane(process)
            yield self._name("process_name", process, lane, name=name)
            yield self._name("process_sort_index", process, lane, sort_index=process)
        for (process, lane), name in sorted(self._lanes.items()):
            yield self._name("thread_name", process, lane, name=name)
            yield self._name("thread_sort_index", process, lane, sort_index=lane)

    def _name(self, kind: str, process: int, lane: int, **args: Any) -> Event:
        return {"name": kind, "ph": "M", **_where(process, lane), "args": args}

    def _first_lane(self, process: int) -> int:
        return min(lane for owner, lane in self._lanes if owner == process)

    def _block(self, kernel: str, label: str, process: int, rows: Sequence[TimelineRow]) -> None:
        flags: dict[tuple[int, int, int], deque[TimelineRow]] = defaultdict(deque)
        busy_until: list[int] = []
        ordered = sorted(rows, key=lambda row: row.index)
        sets = [row for row in ordered if row.mnemonic in (SET, SET_FOR_CORES)]
        for row in sorted(sets, key=lambda row: row.end):
            number = next((i for i, end in enumerate(busy_until) if end <= row.end), None)
            if number is None:
                number = len(busy_until)
                busy_until.append(0)
            busy_until[number] = end = row.end + self._flag_cycles
            lane = FLOW_CONTROL + number
            self._lanes[process, lane] = "FLOWCTRL" if not number else f"FLOWCTRL {number + 1}"
            self._row(kernel, process, lane, row, row.end, end)
            self._set_lanes[_place(row)] = lane
            if row.mnemonic == SET:
                flags[_flag(row)].append(row)
        for row in ordered:
            if _place(row) in self._set_lanes:
                continue
            lane = NUMBERS[row.pipe]
            self._lanes[process, lane] = LANES[row.pipe]
            start = row.start
            if row.pipe == "PIPE_S":
                start -= self._machine.scalar.issue_cycles
            self._row(kernel, process, lane, row, start, row.free)
            if row.mnemonic == WAIT and flags[_flag(row)]:
                self._arrow(flags[_flag(row)].popleft(), row)
        end = max(max(row.end, row.free) for row in rows)
        begin = min(row.issued for row in rows) - self._machine.scalar.issue_cycles
        self._lanes[process, KERNEL] = "kernel"
        block = {"kernel": kernel, "block": rows[0].block, "cycles": end - begin}
        self._slice(label, process, KERNEL, self._at(begin), self._at(end), block)
        for space, changes in occupancy(rows, self._sizes).items():
            for cycle, level in (*changes, (end, 0)):
                self._counter(process, f"{space.name} in use", cycle, {"bytes": level})
        clock = self._machine.clock_mhz
        for cycle, read, written in gm_rates(rows):
            rates = _traffic(round(read * clock, 1), round(written * clock, 1))
            self._counter(process, TRAFFIC, cycle, rates)

    def _row(
        self, kernel: str, process: int, lane: int, row: TimelineRow, start: int, end: int
    ) -> None:
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
            if any(access[3] == written for access in row.accesses):
                sizes = (region.size_bytes for _, _, region, w in row.accesses if w == written)
                args[name] = sum(sizes)
        self._slice(row.mnemonic, process, lane, self._at(start), self._at(end), args)

    def _between_cores(self, by_block: Mapping[tuple[int, int], Sequence[TimelineRow]]) -> None:
        """Arrows between the cube core of a block and its vector cores, from the last set."""
        sets: dict[tuple[int, int], dict[int, list[TimelineRow]]] = defaultdict(
            lambda: defaultdict(list)
        )
        waits: dict[tuple[int, int, int], list[TimelineRow]] = defaultdict(list)
        unclear = set()
        for (core, block), rows in by_block.items():
            for row in sorted(rows, key=lambda row: row.index):
                if row.mnemonic == SET_FOR_CORES:
                    sets[block, row.fields["flag"]][core].append(row)
                    if row.fields["mode"] != CUBE_AND_VECTOR_CORES:
                        unclear.add(row.fields["flag"])
                elif row.mnemonic == WAIT_FOR_A_CORE:
                    waits[core, block, row.fields["flag"]].append(row)
        for (core, block, flag), rows in waits.items():
            kind = seat(self._machine, core)[1]
            senders = [
                rows_of
                for sender, rows_of in sets[block, flag].items()
                if seat(self._machine, sender)[1] != kind
            ]
            if senders and flag not in unclear:
                for waiter, *parts in zip(rows, *senders, strict=False):
                    self._arrow(max(parts, key=lambda row: row.end), waiter)

    def _arrow(self, sender: TimelineRow, waiter: TimelineRow) -> None:
        """Draws an arrow from the cycle in which a flag was set to the end of the wait for it."""
        self._flows += 1
        common = {"name": "flag", "cat": "flag", "id": self._flows}
        tail = _where(sender.core + 1, self._set_lanes[_place(sender)])
        head = _where(waiter.core + 1, NUMBERS[waiter.pipe])
        time = microseconds(self._at(sender.end))
        self.events.append({**common, "ph": "s", **tail, "ts": time})
        # The head lies in the wait's last nanosecond: at its end the next slice begins.
        end = max(self._at(waiter.start), self._at(waiter.end) - 1)
        self.events.append({**common, "ph": "f", "bp": "e", **head, "ts": microseconds(end)})

    def _counter(self, process: int, name: str, cycle: int, values: Event) -> None:
        """Notes the values that a counter has from a cycle on."""
        where = _where(process, self._first_lane(process))
        time = microseconds(self._at(cycle))
        self.events.append({"name": name, "ph": "C", **where, "ts": time, "args": values})

    def _slice(self, name: str, process: int, lane: int, start: int, end: int, args: Event) -> None:
        """Adds a slice between two times in nanoseconds."""
        times = {"ts": microseconds(start), "dur": microseconds(end - start)}
        self.events.append(
            {"name": name, "ph": "X", **times, **_where(process, lane), "args": args}
        )

    def _at(self, cycle: int) -> int:
        """Returns the nanosecond in which a cycle of the launch under way begins."""
        return round(1000 * (self._begin_us + cycle / self._machine.clock_mhz))


def _traffic(read: float, written: float) -> Event:
    """The values of a counter `TRAFFIC`."""
    return {"read bytes/us": read, "written bytes/us": written}


def _where(process: int, lane: int) -> Event:
    """Returns the numbers by which the file knows a lane."""
    return {"pid": process, "tid": LANES_OF_A_PROCESS * process + lane}


def _place(row: TimelineRow) -> tuple[int, int, int]:
    """Returns what tells a row from all others of its launch."""
    return row.core, row.block, row.index


def _flag(row: TimelineRow) -> tuple[int, int, int]:
    fields = row.fields
    return fields["src_pipe"], fields["dst_pipe"], fields["event"]
