"""Reads a trace as Perfetto's importer of Trace Event JSON does, and counts what it would lose.

The rules are those of Perfetto's `json_trace_parser`, `slice_tracker` and `flow_tracker`: times are
whole nanoseconds; events are taken in order of time, equal ones as they stand in the file; threads
are told apart by number; a slice that begins inside the one before it on its thread and ends behind
it is dropped; an arrow is bound to the slice that was begun last on its thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
Nanoseconds = Callable[[float], int]


def cut_off(microseconds: float) -> int:
    """As Perfetto did until it rounded."""
    return int(microseconds * 1000)


def rounded(microseconds: float) -> int:
    return round(microseconds * 1000)


@dataclass
class Reading:
    """What is in the viewer.

    Attributes:
        lanes: slices by the names of their process and thread.
        nested: slices that lie inside others.
        arrows: pairs of slices.
        counters: values by the names of their process and counter.
        lost: events of which nothing is shown.
    """

    lanes: dict[tuple[str, str], list[Event]] = field(default_factory=lambda: defaultdict(list))
    nested: list[Event] = field(default_factory=list)
    arrows: list[tuple[Event, Event]] = field(default_factory=list)
    counters: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    lost: list[Event] = field(default_factory=list)


def read(events: list[Event], nanoseconds: Nanoseconds) -> Reading:
    """Reads the events of a trace.

    Args:
        events: the value of `traceEvents`.
        nanoseconds: how the reader makes whole nanoseconds of a time in microseconds.
    """
    reading = Reading()
    processes: dict[int, str] = {}
    threads: dict[int, tuple[int, str]] = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
        if event["ph"] == "M" and event["name"] == "thread_name":
            assert event["tid"] not in threads, "two lanes have one number"
            assert event["tid"] != event["pid"], "drawn above the others, as a main thread"
            threads[event["tid"]] = (event["pid"], event["args"]["name"])
    stacks: dict[int, list[tuple[int, int, Event]]] = defaultdict(list)
    tails: dict[int, Event] = {}
    timed = [event for event in events if event["ph"] != "M"]
    for event in sorted(timed, key=lambda event: nanoseconds(event["ts"])):
        process, lane = threads[event["tid"]]
        assert process == event["pid"], "a lane of another process"
        stack, start = stacks[event["tid"]], nanoseconds(event["ts"])
        if event["ph"] == "X":
            end = start + nanoseconds(event["dur"])
            while stack and (stack[-1][1] < start or _meets(stack[-1], start, end)):
                stack.pop()
            if any(start < until < end for _, until, _ in stack):
                reading.lost.append(event)
                continue
            reading.nested.extend([event] if stack else [])
            reading.lanes[processes[process], lane].append(event)
            stack.append((start, end, event))
        elif event["ph"] == "C":
            for name, value in event["args"].items():
                reading.counters[processes[process], f"{event['name']} {name}"].append(value)
        elif not stack:
            reading.lost.append(event)
        elif event["ph"] == "s":
            tails[event["id"]] = stack[-1][2]
        else:
            assert event["ph"] == "f" and event["bp"] == "e"
            reading.arrows.append((tails[event["id"]], stack[-1][2]))
    return reading


def _meets(before: tuple[int, int, Event], start: int, end: int) -> bool:
    """A slice that ends where the next one begins is over, unless both have no length."""
    return before[1] == start and not (before[0] == before[1] and start == end)
