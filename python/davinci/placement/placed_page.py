"""A placed network as one self-contained page: a lane for each device and each route."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from davinci.placement.page import rendered
from davinci.placement.player import PlacementTimeline
from davinci.placement.problem import Placement


@dataclass(frozen=True)
class LaneBlock:
    """What a lane is busy with for a while: percent of the whole time, and what is said of it."""

    left: float
    width: float
    title: str


@dataclass(frozen=True)
class TimeLane:
    """A device, or a route between two of them.

    Attributes:
        busy: milliseconds, with the unit.
        share: of the whole time, with the unit.
        note: how many layers or values.
    """

    name: str
    is_route: bool
    busy: str
    share: str
    note: str
    blocks: tuple[LaneBlock, ...]


Interval = tuple[str, float, float]
"""What takes from one second to another."""


def as_html(name: str, timeline: PlacementTimeline, single: Placement) -> str:
    """The page.

    Args:
        name: of the model.
        timeline: the plan as it was played.
        single: the fastest plan on one device.
    """
    plan = timeline.plan
    tasks, names = plan.problem.tasks, plan.problem.devices
    whole = max(plan.latency, 1e-30)
    lanes = [
        lane_of(
            device,
            False,
            [(tasks[i].name, plan.starts[i], plan.ends[i]) for i in queue],
            whole,
        )
        for device, queue in zip(names, plan.queues, strict=True)
    ]
    routes: dict[tuple[int, int], list[Interval]] = {}
    for move in timeline.moves:
        producer = tasks[plan.problem.tensors[move.tensor].producer].name
        found = routes.setdefault((move.source, move.target), [])
        found.append((f"result of {producer}", move.start, move.end))
    for (source, target), moves in sorted(routes.items()):
        lanes.append(lane_of(f"{names[source]} to {names[target]}", True, moves, whole))
    order = sorted(range(len(tasks)), key=lambda i: (plan.starts[i], plan.ends[i]))
    most = max(single.queues, key=len)
    alone = f"{milliseconds(single.latency)} on {names[single.queues.index(most)]} alone"
    return rendered(
        "placed.html.j2",
        title=f"{Path(name).name} on {len(names)} devices",
        subtitle=f"Placed by {plan.algorithm}; each layer runs alone, a launch included.",
        verdict=f"{milliseconds(plan.latency)} ms; {alone}, "
        f"{single.latency / whole:.2f} times as long. {plan.remark}".strip(),
        whole=f"{milliseconds(plan.latency)} ms",
        lanes=lanes,
        rows=[
            (
                tasks[i].name,
                names[plan.devices[i]],
                milliseconds(plan.starts[i]),
                milliseconds(plan.ends[i]),
            )
            for i in order
        ],
    )


def lane_of(name: str, is_route: bool, intervals: list[Interval], whole: float) -> TimeLane:
    """A lane of what a device or a route does in `whole` seconds."""
    busy = sum(end - start for _, start, end in intervals)
    return TimeLane(
        name,
        is_route,
        f"{milliseconds(busy)} ms",
        f"{100 * busy / whole:.1f} %",
        f"{len(intervals)} {'moves' if is_route else 'layers'}",
        tuple(
            LaneBlock(
                round(100 * start / whole, 3),
                round(100 * (end - start) / whole, 3),
                f"{what}: {milliseconds(start)} to {milliseconds(end)} ms",
            )
            for what, start, end in intervals
        ),
    )


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
