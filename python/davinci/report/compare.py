"""Two records of `--json` side by side: which kernels became faster or slower."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from davinci.errors import InputError
from davinci.report.names import shortened
from davinci.report.record import SCHEMA_VERSION, Record
from davinci.report.terminal import Heading, table_of

TOTALS = ("total_cycles", "launch_overhead_us", "time_us")

MOST_KEYS = 12
"""Keys of two machine files that are named where they differ."""


@dataclass(frozen=True)
class KernelChange:
    """One line of the comparison; None where only the other record has the kernel.

    Attributes:
        name: that tells the kernel from others.
        label: what it computes; both labels where they differ.
        nodes: the first node of the model that it computes, and how many more there are.
        macs: multiplications of it, which tell products from others of the same label.
    """

    name: str
    before: float | None
    after: float | None
    label: str = ""
    nodes: str = ""
    macs: int = 0

    @property
    def ratio(self) -> float | None:
        """The cycles after divided by those before; None where one of them is missing."""
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


def changes(before: Record, after: Record) -> list[KernelChange]:
    """The kernels of both records, the largest difference in cycles first."""
    found = []
    for old, new in pairs(before["kernels"], after["kernels"]):
        rows = [each for each in (old, new) if each]
        first, second = (each["cycles"] if each else None for each in (old, new))
        label = " -> ".join(dict.fromkeys(row.get("label", "") for row in rows))
        nodes = shortened(rows[0].get("operators") or ())
        found.append(KernelChange(rows[0]["name"], first, second, label, nodes, macs_of(rows[0])))
    return sorted(found, key=lambda x: (-abs((x.after or 0) - (x.before or 0)), x.name))


def pairs(
    before: Sequence[Record], after: Sequence[Record]
) -> Iterator[tuple[Record | None, Record | None]]:
    """Kernels of both records that compute the same, and None beside those of one record only.

    Names number kernels that read alike, and labels leave out what two products contract: a name or
    label alone pairs only what has as many multiplications. Products whose work is not the same
    (after a change of the precision, say) are paired where they compute the same nodes of the model
    in as many multiplications.
    """
    old, new = list(before), list(after)
    for key in (_exact, _alike, _same_nodes, _named):
        rest = list(new)
        for row in list(old):
            other = next((each for each in rest if key(each) == key(row)), None)
            if other is not None:
                yield row, other
                old.remove(row)
                rest.remove(other)
        new = rest
    yield from ((row, None) for row in old)
    yield from ((None, row) for row in new)


def macs_of(row: Record) -> int:
    """Multiplications of a kernel; 0 where it has none, or nobody said."""
    return int((row.get("work") or {}).get("macs", 0))


def _exact(row: Record) -> object:
    return row["name"], row.get("label"), row.get("work")


def _alike(row: Record) -> object:
    return (row["label"], row.get("work")) if row.get("label") else row["name"]


def _same_nodes(row: Record) -> object:
    """The nodes and multiplications of a product; equal to nothing else of any other kernel."""
    nodes, macs = tuple(row.get("operators") or ()), macs_of(row)
    return (nodes, macs) if nodes and macs else id(row)


def _named(row: Record) -> object:
    return row["name"], macs_of(row)


def titled(changes: Sequence[KernelChange], among: Sequence[KernelChange]) -> list[str]:
    """What the lines of some kernels begin with: their labels. Those of one label are told apart by
    their nodes, and if they share these too, by their names and multiplications."""
    labels = Counter(change.label for change in among)
    places = Counter((change.label, change.nodes) for change in among)
    titles = []
    for change in changes:
        if change.label and labels[change.label] == 1:
            titles.append(change.label)
        elif change.label and change.nodes and places[change.label, change.nodes] == 1:
            titles.append(f"{change.label} ({change.nodes})")
        else:
            titles.append(change.name + (f" ({change.macs:,} MACs)" if change.macs else ""))
    return titles


def print_comparison(before: Record, after: Record, console: Any) -> None:
    """Prints kernels and totals to a `rich.console.Console`."""
    titles = {"cycles before": 3, "cycles after": 3, "difference": 2, "ratio": 1}
    numbers = (Heading(title, worth=worth) for title, worth in titles.items())
    headings = (Heading("kernel", True, 4), *numbers)
    rows = []
    found = changes(before, after)
    different = [change for change in found if change.before != change.after]
    for change, title in zip(different, titled(different, found), strict=True):
        rows.append([title, *cells_of(change)])
    sections = [len(rows)]
    rows += ([name, *cells_of(KernelChange(name, before[name], after[name]))] for name in TOTALS)
    console.print(table_of(headings, rows, console.width, sections=sections))
    if equal := len(found) - len(different):
        console.print(f"{equal} kernel{'s' * (equal > 1)} with the same cycles in both")
    for name in ("model", "machine", "cores", "precision"):
        if before.get(name) != after.get(name):
            console.print(f"{name}: {before.get(name)} before, {after.get(name)} after")
    for line in machine_differences(before, after):
        console.print(line, markup=False)


def machine_differences(before: Record, after: Record) -> list[str]:
    """What two machine files of one name say differently, a line for each key and one in front; of
    many keys the first. Empty where they are equal, have different names, or are not known."""
    digests = [record.get("machine_digest") for record in (before, after)]
    if before["machine"] != after["machine"] or None in digests or len(set(digests)) < 2:
        return []
    old, new = (record.get("machine_file") or {} for record in (before, after))
    keys = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
    lines = [f"machine: two files called {before['machine']} that say different things"]
    for key in keys[:MOST_KEYS]:
        said = (str(values.get(key, "nothing")) for values in (old, new))
        lines.append("  {}: {} before, {} after".format(key, *said))
    if more := len(keys) - MOST_KEYS:
        lines += [f"  and {more} more keys"] if more > 0 else []
    return lines


def cells_of(change: KernelChange) -> list[str]:
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
