"""The difference between two runs as tables of a page."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.report.compare import (
    TOTALS,
    KernelChange,
    cells_of,
    changes,
    machine_differences,
    titled,
)
from davinci.report.names import plural
from davinci.report.record import Record

MOST_LINES = 40
"""Kernels of the comparison on a page, the largest differences first."""


@dataclass(frozen=True)
class ComparisonLine:
    """A line of the table; `kind` says how it is drawn: "faster", "slower" or "equal", with
    "total" in front where it is bold."""

    name: str
    kind: str
    cells: list[str]


@dataclass(frozen=True)
class Comparison:
    """The section of a page: a paragraph, and the lines of a table."""

    about: str
    lines: list[ComparisonLine]


def comparison(before: Record, after: Record) -> Comparison:
    """The totals of two runs, then the kernels whose cycles are others, the largest first."""
    totals = [KernelChange(name, before[name], after[name]) for name in TOTALS]
    found = changes(before, after)
    different = [change for change in found if change.before != change.after]
    lines = [
        ComparisonLine(change.name, f"total {kind_of(change)}", cells_of(change))
        for change in totals
    ]
    titles = titled(different[:MOST_LINES], found)
    lines += [
        ComparisonLine(title, kind_of(change), cells_of(change))
        for title, change in zip(titles, different[:MOST_LINES], strict=True)
    ]
    parts = [f"Before: {told(before)}. After: {told(after)}."]
    if differences := machine_differences(before, after):
        first, *keys = differences
        said = f": {'; '.join(key.strip() for key in keys)}" if keys else ""
        parts.append(f"{first.replace('machine: two', 'Two', 1)}{said}.")
    if equal := len(found) - len(different):
        parts.append(f"{plural(equal, 'kernel takes', 'kernels take')} the same cycles in both.")
    if more := len(different) - MOST_LINES:
        parts.append(f"{plural(more, 'kernel', 'kernels')} more differ." if more > 0 else "")
    return Comparison(" ".join(filter(None, parts)), lines)


def told(record: Record) -> str:
    """Names the model, the machine, the precision and the cores of a record."""
    names = ("model", "machine", "precision")
    parts = [str(record[name]) for name in names if record.get(name)]
    cores = record.get("cores")
    return ", ".join([*parts, *([plural(cores, "core", "cores")] if cores else [])])


def kind_of(change: KernelChange) -> str:
    difference = (change.after or 0) - (change.before or 0)
    return "faster" if difference < 0 else "slower" if difference else "equal"
