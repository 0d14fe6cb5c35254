"""An executable as Python and notebooks show it: model, inputs and outputs, the last run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from davinci.report.tables import summary_rows
from davinci.runtime.arguments import Spec

LONGEST_KERNELS = 5
MOST_SPECS = 6
"""Inputs or outputs that are listed one by one."""


def listed(specs: Sequence[Spec]) -> str:
    """`x: float32[2, 3], y: int64[4] and 12 more`."""
    text = ", ".join(f"{spec.name}: {spec}" for spec in specs[:MOST_SPECS]) or "none"
    left = len(specs) - MOST_SPECS
    return f"{text} and {left} more" if left > 0 else text


def facts(executable: Any) -> list[tuple[str, str]]:
    """Names and values of lines: what it is, and what the last run took, if there was one."""
    machine, details = executable.machine, executable.details
    precision = details.get("precision", "")
    rows = [
        ("machine", f"{machine.name}, {executable.cores} cores{precision and ', '}{precision}"),
        ("inputs", listed(executable.inputs)),
        ("outputs", listed(executable.outputs)),
    ]
    if not executable.has_run:
        return [*rows, ("last run", "none yet")]
    summary = dict(summary_rows(executable.profile))
    return [*rows, *((name, summary[name]) for name in ("time", "limit", "operators"))]


def title(executable: Any) -> str:
    return str(executable.details.get("model") or "a program")


def as_text(executable: Any) -> str:
    """Text for `repr`: a line for each fact."""
    rows = facts(executable)
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:{width}}  {value}" for name, value in rows]
    return "\n".join([f"<davinci.Executable {title(executable)}", *lines]) + ">"


def as_html(executable: Any) -> str:
    """HTML for notebooks: the facts as a table, and the longest kernels of the last run."""
    parts = [f"<b>{escape(title(executable))}</b>", table(facts(executable))]
    if executable.has_run:
        record = executable.profile
        total = max(1, record["total_cycles"])
        rows = [
            (row["name"], row["unit"], f"{row['cycles']:,}", f"{row['cycles'] / total:.0%}")
            for row in record["kernels"][:LONGEST_KERNELS]
        ]
        parts.append(table([("longest kernels", "unit", "cycles", "share"), *rows], header=True))
    return f"<div>{''.join(parts)}</div>"


def table(rows: Sequence[Sequence[str]], header: bool = False) -> str:
    """An HTML table; the first row is a header, or else the first column is."""
    lines = []
    for number, row in enumerate(rows):
        cells = [
            ("th" if (number == 0 if header else column == 0) else "td", escape(text))
            for column, text in enumerate(row)
        ]
        text = "".join(f'<{tag} style="text-align:left">{text}</{tag}>' for tag, text in cells)
        lines.append(f"<tr>{text}</tr>")
    return f"<table>{''.join(lines)}</table>"
