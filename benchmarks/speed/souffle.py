"""The six models of Souffle's Table 4-2, with a launch of each kernel and with phases of one.

    python benchmarks/speed/souffle.py [MODEL ...] [--write]

Prints launches, bytes of global memory and time at each cost that a launch on all cores may have,
beside what the source says of its own compiler on an A100: launches, and its speed over TensorRT's.
Ours and its are different machines: what can be compared is the number of launches, and by how much
joining them shortens a run. Times only: nothing is computed. --write puts the table into
docs/souffle.md; of models that are not given, it keeps the rows that are there.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page_section import put_section

import davinci
from davinci import zoo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "souffle.md"
WAYS = ("many", "auto")


@dataclass(frozen=True)
class Row:
    """A model of the source.

    Attributes:
        network: of the zoo.
        launches: of the source's compiler, from its Table 4-4; and of TensorRT.
        faster: TensorRT's time over that of the source's compiler, from its Table 4-3.
        megabytes: of memory that its kernels read and write, from its Table 4-5.
    """

    name: str
    network: str
    launches: tuple[int, int]
    faster: float
    megabytes: float


MODELS = (
    Row("MMoE", "mmoe", (1, 20), 0.083 / 0.019, 0.058),
    Row("LSTM, 100 x 256, 10 layers", "lstm,layers=10", (1, 662), 3.42 / 0.80, 10.6),
    Row("BERT-base, 128", "bert-base", (24, 312), 2.27 / 1.32, 226.8),
    Row("EfficientNet-b0", "efficientnet", (66, 187), 1.32 / 0.66, 86.58),
    Row("Swin-T", "swin", (53, 637), 3.80 / 1.78, 282.9),
    Row("ResNeXt-101", "resnext101", (105, 2406), 22.92 / 4.43, 470.16),
)


def measured(network: str, launches: str) -> dict[str, Any]:
    """The record of a run."""
    executable = davinci.compile(zoo.find(network), launches=launches, timing_only=True)
    executable.run()
    return executable.profile


def line(row: Row, launches: str, record: dict[str, Any]) -> str:
    """A row of the table."""
    moved = sum(
        kernel["launches"] * (kernel["gm_read_bytes"] + kernel["gm_write_bytes"])
        for kernel in record["kernels"]
    )
    times = " | ".join(f"{each['time_us']:,.0f}" for each in record["launch_range"])
    ours, theirs = row.launches
    source = f"{ours} of {theirs}, {row.faster:.2f} x, {row.megabytes:g} MB"
    source = source if launches != "many" else ""
    kernels = record["ops"]["total"]
    return (
        f"| {row.name} | `{launches}` | {kernels} | {record['launches']} | {source} "
        f"| {record['meetings']} | {moved / 1e6:,.1f} | {times} |"
    )


def key_of(row: str) -> tuple[str, str]:
    """The model and the way of launches of a row of the table."""
    cells = [cell.strip(" `") for cell in row.split("|")]
    return (cells[1], cells[2]) if len(cells) > 2 else ("", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("models", nargs="*", help="networks of the zoo; by default all of them")
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    lines = []
    for row in MODELS:
        if options.models and row.network not in options.models:
            continue
        for launches in WAYS:
            lines.append(line(row, launches, measured(row.network, launches)))
            print(lines[-1], flush=True)
    if options.write:
        table = PAGE.read_text(encoding="utf-8").splitlines()
        known = {key_of(row): row for row in [*table, *lines]}
        kept = [known[row.name, way] for row in MODELS for way in WAYS if (row.name, way) in known]
        put_section(PAGE, "models", "\n".join([HEAD, *kept]))
    return 0


HEAD = (
    "| model | `--launches` | kernels | launches | Souffle | meetings | MB "
    "| us at 2.5 us | at 5 us | at 8.55 us |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)

if __name__ == "__main__":
    sys.exit(main())
