"""A run as one self-contained page: tables, rooflines, and what each kernel's pipes waited for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from davinci.machine import Machine
from davinci.report.drawing import Chart, rooflines
from davinci.report.record import Record
from davinci.report.tables import COLUMNS, summary_rows
from davinci.report.timeline import MOST_ROWS, timelines
from davinci.simulator.profile import LaunchProfile
from davinci.simulator.trace import LANES

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Cell:
    """A cell of the kernel table: its text and what it is sorted by."""

    text: str
    key: str | float


def as_html(machine: Machine, record: Record, launches: Sequence[LaunchProfile]) -> str:
    """The page.

    Args:
        machine: that the run was on.
        record: of the run.
        launches: of the run; the first block of each kernel's first launch with rows is drawn.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["share"] = lambda part: f"{100 * part:.1f} %"
    charts: list[Chart] = rooflines(record)
    return environment.get_template("page.html.j2").render(
        title=f"{Path(record.get('model') or 'a program').name} on {record['machine']}",
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        script=(FOLDER / "page.js").read_text(encoding="utf-8"),
        summary=summary_rows(record),
        columns=[column.title for column in COLUMNS],
        kernels=[(row["name"], cells(record, row)) for row in record["kernels"]],
        charts=charts,
        pipes=[(name[5:], LANES[name], pipe["ratio"]) for name, pipe in record["pipes"].items()],
        data=embedded(details(machine, record, launches)),
    )


def cells(record: Record, row: Record) -> list[Cell]:
    """A kernel's line, in the order of `COLUMNS`."""
    values = [(column, column.value(record, row)) for column in COLUMNS]
    return [Cell(column.shown(value), value) for column, value in values]


def details(
    machine: Machine, record: Record, launches: Sequence[LaunchProfile]
) -> dict[str, list[dict[str, Any]]]:
    """What the page's script draws of each kernel, longest first: a time line for each core."""
    drawn: dict[str, LaunchProfile] = {}
    for launch in launches:
        if launch.rows and launch.name not in drawn:
            drawn[launch.name] = launch
    left = MOST_ROWS
    found: dict[str, list[dict[str, Any]]] = {}
    for row in record["kernels"]:
        if row["name"] in drawn:
            found[row["name"]] = timelines(machine, drawn[row["name"]], left)
            left -= sum(len(core["rows"]) for core in found[row["name"]])
    return found


def embedded(data: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
