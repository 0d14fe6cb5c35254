"""A placed run as a timeline for Perfetto or chrome://tracing: a lane a device, a lane a route."""

from __future__ import annotations

import json
from typing import Any

from davinci.placement.player import PlacementTimeline

MICROSECONDS = 1e6


def trace_json(timeline: PlacementTimeline) -> str:
    """Slices of tasks on their devices, and of tensors on their way, in microseconds."""
    plan = timeline.plan
    problem = plan.problem
    routes = sorted({(move.source, move.target) for move in timeline.moves})
    lanes = [
        *problem.devices,
        *(f"{problem.devices[a]} to {problem.devices[b]}" for a, b in routes),
    ]
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "tid": i, "name": "thread_name", "args": {"name": name}}
        for i, name in enumerate(lanes)
    ]
    events += [
        {"ph": "M", "pid": 0, "tid": i, "name": "thread_sort_index", "args": {"sort_index": i}}
        for i in range(len(lanes))
    ]
    for task, device, start, end in zip(
        problem.tasks, plan.devices, plan.starts, plan.ends, strict=True
    ):
        events.append(_slice(task.name, device, start, end))
    for move in timeline.moves:
        producer = problem.tasks[problem.tensors[move.tensor].producer].name
        lane = len(problem.devices) + routes.index((move.source, move.target))
        events.append(_slice(f"result of {producer}", lane, move.start, move.end))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _slice(name: str, lane: int, start: float, end: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": 0,
        "tid": lane,
        "name": name,
        "ts": start * MICROSECONDS,
        "dur": (end - start) * MICROSECONDS,
    }
