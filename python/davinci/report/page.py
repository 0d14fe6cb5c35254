"""A run as one self-contained page: tables, rooflines, and what each kernel's pipes waited for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from davinci.machine import Machine
from davinci.report.arena import arena_of
from davinci.report.comparison import comparison
from davinci.report.drawing import Chart, rooflines
from davinci.report.groups import LaunchGroup, Scope, sharing_of, time_by_layer, time_by_operator
from davinci.report.names import percent, plural, shortened
from davinci.report.nodes import drawn_launches
from davinci.report.plan_chart import plan_chart
from davinci.report.record import Record, sync_summary
from davinci.report.tables import (
    COLUMNS,
    NO_NODE,
    WHOLE_NODE,
    gain_cells,
    summary_rows,
    sync_text,
    waits_text,
)
from davinci.report.timeline import MOST_ROWS, Numbers, timelines
from davinci.report.trace import LANES
from davinci.report.value_range import range_summary
from davinci.report.verdict import launch_shares, losses, verdict
from davinci.simulator.timing.profile import LaunchProfile

FOLDER = Path(__file__).parent

SCRIPTS = ("page.js", "network.js")

MOST_NODES = 12
"""Nodes that the hint of a kernel names."""

MOST_LISTED = 16
"""Nodes that are listed of the chosen kernel."""

MOST_BARS = 20
"""Bars of a chart; what is left is one more."""


@dataclass(frozen=True)
class Cell:
    """A cell of the kernel table: its text and what it is sorted by."""

    text: str
    key: str | float
    wide: bool = False


MOST_GAINS = 20
"""Changes of the machine that the page names."""


def as_html(
    machine: Machine,
    record: Record,
    launches: Sequence[LaunchProfile],
    baseline: Record | None = None,
) -> str:
    """The page.

    Args:
        machine: that the run was on.
        record: of the run.
        launches: of the run; the first block of each kernel's first launch with rows is drawn.
        baseline: the record of an earlier run, which the page compares this one with.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["share"] = lambda part: f"{100 * part:.1f} %"
    environment.filters["percent"] = percent
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%")
    charts: list[Chart] = rooflines(record)
    layers = time_by_layer(record)
    return environment.get_template("page.html.j2").render(
        title=f"{models(record)} on {record['machine']}",
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        script="".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS),
        subtitle=subtitle(record),
        verdict=verdict(record),
        tiles=tiles(record),
        losses=losses(record),
        gains=[gain_cells(row) for row in record.get("what_if", [])[:MOST_GAINS]],
        alert=range_summary(record),
        comparison=comparison(baseline, record) if baseline is not None else None,
        operators=bars(time_by_operator(record)),
        layers=bars(layers) if len(layers) > 1 else [],
        summary=summary_rows(record),
        columns=[column.title for column in COLUMNS],
        kernels=[(row["name"], cells(record, row), hint(row)) for row in record["kernels"]],
        charts=charts,
        pipes=[(name[5:], LANES[name], pipe["ratio"]) for name, pipe in record["pipes"].items()],
        data=embedded(details(machine, record, launches)),
        network=embedded(network(machine, record, layers)),
        about=embedded({row["name"]: about(row) for row in record["kernels"]}),
        arena=arena_of(record),
        plans=plan_chart(record),
        nodes=embedded({row["name"]: node_lines(row) for row in record["kernels"]}),
    )


@dataclass(frozen=True)
class Bar:
    """A bar of a chart: a group's share of the longest one's, in kernels and to launch them."""

    name: str
    unit: str
    kernel_percent: float
    launch_percent: float
    share: float
    hint: str


def models(record: Record) -> str:
    """Names the model, or those of several runs, without folders."""
    runs = [run["model"] for run in record.get("runs", ())] or [record.get("model")]
    names = dict.fromkeys(Path(str(model)).name for model in runs if model)
    return ", ".join(names) or "a program"


def subtitle(record: Record) -> str:
    """Says in a line on what machine and how the model ran."""
    parts = [
        f"{record['machine']}, {plural(record['cores'], 'core', 'cores')}",
        f"{record['clock_mhz']} MHz",
        *([f"precision {record['precision']}"] if record.get("precision") else []),
        plural(record["launches"], "launch", "launches"),
        plural(len(record["kernels"]), "kernel", "kernels"),
    ]
    return " \u00b7 ".join(parts)


def tiles(record: Record) -> list[tuple[str, str, str]]:
    """Figure, what it is, and what it is made of, for the most important ones."""
    time_us = max(record["time_us"], 1e-9)
    kernels_us = record["total_cycles"] / record["clock_mhz"]
    scalar = [row for row in record["kernels"] if row["unit"] == "scalar"]
    scalar_us = sum(row["cycles"] for row in scalar) / record["clock_mhz"]
    launches = plural(record["launches"], "launch", "launches")
    shares = launch_shares(record)
    between = f", {percent(shares[0])} to {percent(shares[-1])} by their cost" if shares else ""
    reached = record["bound_cycles"] / max(1, record["total_cycles"])
    half_idle = percent(record["idle"]["half_idle_ratio"])
    return [
        (f"{time_us:,.1f} us", "time", f"{kernels_us:,.1f} us in kernels"),
        (
            percent(record["launch_overhead_us"] / time_us),
            "of it launching",
            f"{launches}{between}",
        ),
        (
            percent(scalar_us / time_us),
            "of it on the scalar unit",
            plural(len(scalar), "kernel", "kernels"),
        ),
        (percent(record["idle"]["ratio"]), "of the cores idle", f"at least half in {half_idle}"),
        (percent(reached), "of the kernels' time at best", "at the machine's limits"),
    ]


def bars(groups: Sequence[LaunchGroup]) -> list[Bar]:
    """Bars for groups, the longest as wide as the chart; short ones are summed up."""
    shown, others = list(groups[:MOST_BARS]), groups[MOST_BARS:]
    if others:
        rest = LaunchGroup(f"{len(others)} others")
        for group in others:
            rest.kernel_us += group.kernel_us
            rest.launch_us += group.launch_us
            rest.launches += group.launches
        shown.append(rest)
    widest = max((group.time_us for group in shown), default=0) or 1
    total = sum(group.time_us for group in shown) or 1
    return [
        Bar(
            group.name,
            group.unit,
            100 * group.kernel_us / widest,
            100 * group.launch_us / widest,
            group.time_us / total,
            f"{group.name}: {group.kernel_us:,.1f} us in kernels, {group.launch_us:,.1f} us to "
            f"start {plural(group.launches, 'launch', 'launches')}",
        )
        for group in shown
    ]


def network(machine: Machine, record: Record, layers: Sequence[Scope]) -> dict[str, Any]:
    """Data for the drawing of the whole run: its launches on one axis.

    A launch is [start in us, length in us, number of its kernel, number of its layer, number of its
    nodes' text, bytes of GM traffic in a nanosecond]; a kernel [name, label, unit, cores at work on
    average].
    """
    numbers = {row["name"]: i for i, row in enumerate(record["kernels"])}
    parts = sum(core.count for core in machine.core_types.values())
    layer_of = {number: i for i, layer in enumerate(layers) for number in layer.all_numbers()}
    nodes = Numbers()
    placed = [
        (launch, place, sharing)
        for sharing in sharing_of(record)
        for place, launch in enumerate(sharing)
    ]
    launches = [
        [
            launch["start_us"],
            round(launch["end_us"] - launch["start_us"], 4),
            numbers[launch["kernel"]],
            layer_of[number],
            nodes[", ".join(launch["operators"])],
            round(gm_rate(launch), 1),
            place,
            len(sharing),
        ]
        for number, (launch, place, sharing) in enumerate(placed)
    ]
    return {
        "total_us": record["time_us"],
        "clock_mhz": record["clock_mhz"],
        "cores": record["cores"],
        "launches": launches,
        "layers": [layer.name for layer in layers],
        "nodes": nodes.texts,
        "kernels": [
            [row["name"], row["label"], row["unit"], round(cores_at_work(row, parts), 2)]
            for row in record["kernels"]
        ],
    }


def gm_rate(launch: Record) -> float:
    """Bytes that a launch moved from and to GM in a nanosecond."""
    length_us = max(launch["end_us"] - launch["start_us"], 1e-6)
    moved = launch["gm_read_bytes"] + launch["gm_write_bytes"]
    return float(moved / length_us / 1000)


def cores_at_work(row: Record, parts: int) -> float:
    """Returns how many cores work on average while a kernel runs.

    Args:
        parts: of a core that count as cores of their own, the vector cores of a split machine.
    """
    working = row["core_cycles"] - row["idle_core_cycles"]
    return float(working / max(1, row["cycles"]) / parts)


def cells(record: Record, row: Record) -> list[Cell]:
    """Returns the cells of a kernel's line, in the order of `COLUMNS`."""
    values = [(column, column.value(record, row)) for column in COLUMNS]
    return [Cell(column.shown(value), value, column.text) for column, value in values]


def details(
    machine: Machine, record: Record, launches: Sequence[LaunchProfile]
) -> dict[str, list[dict[str, Any]]]:
    """Data for the drawings of kernels, longest first: a time line for each core."""
    drawn = drawn_launches(launches)
    left = MOST_ROWS
    found: dict[str, list[dict[str, Any]]] = {}
    for row in record["kernels"]:
        if row["name"] in drawn:
            found[row["name"]] = timelines(machine, drawn[row["name"]], left)
            left -= sum(len(core["rows"]) for core in found[row["name"]])
    return found


def hint(row: Record) -> str:
    """A kernel's symbol and the nodes that it computes, as many as a hint has room for."""
    nodes = named(row["operators"], MOST_NODES)
    return f"{row['name']}: {nodes}" if nodes else row["name"]


def named(nodes: Sequence[str], most: int) -> str:
    """Names of nodes, and of how many there is no room for the names."""
    more = f" and {len(nodes) - most} more" if len(nodes) > most else ""
    return ", ".join(nodes[:most]) + more


def about(row: Record) -> list[tuple[str, str]]:
    """Text above a kernel's timeline: its operators, its schedule, and its bound."""
    share = percent(row["bound_cycles"] / max(1, row["cycles"]))
    held = waits_text(row)
    lines = [
        ("kernel", row["name"]),
        ("nodes", named(row["operators"], MOST_LISTED)),
        ("schedule", row["schedule"]),
        (
            "limit",
            f"{row['bound_cycles']:,} of {row['cycles']:,} cycles ({share}), "
            f"set by {BOUNDS[row['bound_by']]}",
        ),
        ("busiest", row["bottleneck"] + (f"; held by {held}" if held else "")),
        ("event ids", sync_text({"sync": sync_summary([row])})),
    ]
    return [(name, text) for name, text in lines if text]


def node_lines(row: Record) -> list[list[Any]]:
    """[node, all nodes, operators, cycles, pipes] of each line of a kernel's `node_cycles`."""
    return [
        [
            shortened(line["nodes"], WHOLE_NODE) or (NO_NODE if not line["operators"] else ""),
            named(line["nodes"], MOST_NODES),
            ", ".join(line["operators"]),
            line["cycles"],
            {LANES[pipe]: cycles for pipe, cycles in line["pipes"].items()},
        ]
        for line in row["node_cycles"]
    ]


BOUNDS = {"cube": "the cube", "vector": "the vector unit", "memory": "moving bytes"}
"""Names in words for what sets a limit."""


def embedded(data: Any) -> str:
    """Writes data as JSON that may stand inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
