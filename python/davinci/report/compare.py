"""Two records of `--json` side by side: which kernels became faster or slower."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from davinci.errors import InputError
from davinci.report.record import SCHEMA_VERSION, Record

TOTALS = ("total_cycles", "launch_overhead_us", "time_us")


@dataclass(frozen=True)
class Change:
    """One line of the comparison; None where only the other record has the kernel.

    Attributes:
        name: that tells the kernel from others.
        label: what is printed of it.
    """

    name: str
    before: float | None
    after: float | None
    label: str = ""

    @property
    def ratio(self) -> float | None:
        """After over before."""
        if self.before is None or self.after is None:
            return None
        return self.after / self.before if self.before else None


def load_record(path: str) -> Record:
    """Reads what `--json` wrote.

    Raises:
        InputError: there is no such file, or it is something else, or of another version.
    """
    try:
        record = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", where=path) from None
    except (ValueError, RecursionError):
        raise InputError("not JSON", where=path, hint="npu-run --json writes records") from None
    if message := _problem(record):
        raise InputError(
            "not the record of a run", where=path, found=message, hint="npu-run --json writes one"
        )
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        raise InputError(
            "the record of another version of davinci",
            where=path,
            found="no schema_version" if version is None else f"schema_version {version}",
            expected=f"schema_version {SCHEMA_VERSION}",
            hint="run the model again with --json",
        )
    found: Record = record
    return found


def _problem(record: Any) -> str:
    if not isinstance(record, dict):
        return "no object at the top"
    missing = [name for name in (*TOTALS, "kernels", "machine") if name not in record]
    if missing:
        return f"no {', '.join(missing)}"
    if not all(_is_number(record[name]) for name in TOTALS):
        return "totals that are no numbers"
    kernels = record["kernels"]
    rows = kernels if isinstance(kernels, list) else [None]
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            return "kernels without names"
        if not _is_number(row.get("cycles")):
            return f"no cycles of kernel {row['name']}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def changes(before: Record, after: Record) -> list[Change]:
    """The kernels of both records, the largest difference in cycles first."""
    old = {row["name"]: row["cycles"] for row in before["kernels"]}
    new = {row["name"]: row["cycles"] for row in after["kernels"]}
    labels = {row["name"]: row.get("label", "") for row in [*before["kernels"], *after["kernels"]]}
    found = [Change(name, old.get(name), new.get(name), labels[name]) for name in {**old, **new}]
    return sorted(found, key=lambda x: (-abs((x.after or 0) - (x.before or 0)), x.name))


def print_comparison(before: Record, after: Record, console: Any) -> None:
    """Prints kernels and totals to a `rich.console.Console`."""
    from rich.table import Table

    kernels = Table()
    for column in ("kernel", "cycles before", "cycles after", "difference", "ratio"):
        kernels.add_column(column, justify="left" if column == "kernel" else "right")
    found = changes(before, after)
    different = [change for change in found if change.before != change.after]
    shown = Counter(change.label for change in found)
    for change in different:
        # Kernels that compute the same in different ways are told apart by their names.
        alone = change.label and shown[change.label] == 1
        kernels.add_row(change.label if alone else change.name, *_cells(change))
    kernels.add_section()
    for name in TOTALS:
        kernels.add_row(name, *_cells(Change(name, before[name], after[name])))
    console.print(kernels)
    if equal := len(found) - len(different):
        console.print(f"{equal} kernel{'s' * (equal > 1)} with the same cycles in both")
    for name in ("model", "machine", "cores", "precision"):
        if before.get(name) != after.get(name):
            console.print(f"{name}: {before.get(name)} before, {after.get(name)} after")


def _cells(change: Change) -> list[str]:
    before, after, ratio = change.before, change.after, change.ratio
    return [
        "only after" if before is None else _number(before),
        "only before" if after is None else _number(after),
        _number((after or 0) - (before or 0), "+"),
        "" if ratio is None else f"{ratio:.3f}",
    ]


def _number(value: float, sign: str = "") -> str:
    """Whole numbers as they are, others with two digits behind the point."""
    return f"{value:{sign},.0f}" if value == round(value) else f"{value:{sign},.2f}"
