"""Values that left the range of f16: how many, where, and what to do.

The simulator counts them while the program runs (`LaunchProfile.lost`), the compiler where it
rounds constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from davinci.report.program import ProgramFacts
from davinci.simulator.timing.profile import LaunchProfile

Record = dict[str, Any]

COUNTS = ("overflows", "underflows", "converted")

UNDERFLOWS_SHARE = 0.01
"""Share of the values that a kernel converts above which lost ones are reported; fewer lie beside
others that they do not matter to."""

EXACT = frozenset({"half_part"})
"""Operators whose results say together what each of them loses."""

MOST_NAMED = 3
"""Kernels and constants that the line names."""


def value_range(launches: Sequence[LaunchProfile], program: ProgramFacts) -> Record:
    """The key `range` of the record: what instructions lost when they rounded to f16."""
    kernels: dict[str, Record] = {}
    for launch in launches:
        if program.kernels[launch.name].op in EXACT:
            continue
        lost = launch.lost
        if lost.overflows or lost.underflows:
            empty = {"name": launch.name, "operators": [], **dict.fromkeys(COUNTS, 0)}
            row = kernels.setdefault(launch.name, empty)
            row["operators"] += [x for x in launch.operators if x not in row["operators"]]
            for key in COUNTS:
                row[key] += getattr(lost, key)
    rows = sorted(kernels.values(), key=lambda row: (-row["overflows"], -row["underflows"]))
    totals = {key: sum(row[key] for row in rows) for key in ("overflows", "underflows")}
    return {**totals, "kernels": rows}


def range_summary(record: Record) -> str:
    """Says in a line what was lost; "" if no value became infinite and too few became 0 to
    matter."""
    constants = record.get("range_of_constants", [])
    places = [*constants, *record.get("range", {}).get("kernels", [])]
    parts = []
    for key, became, least in (
        ("overflows", "became infinite", 0),
        ("underflows", "became 0", UNDERFLOWS_SHARE),
    ):
        found = [p for p in places if p[key] and p[key] >= least * p["converted"]]
        if count := sum(place[key] for place in found):
            names = [place_name(place) for place in found]
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            noun = "value" if count == 1 else "values"
            parts.append(f"{count:,} {noun} {became} in {', '.join(names[:MOST_NAMED])}{more}")
    if not parts:
        return ""
    return f"rounded to f16, {'; '.join(parts)}: --precision fp32 keeps them"


def place_name(place: Record) -> str:
    """A kernel with the operators of the model that it computes, as many as a line takes."""
    operators = place.get("operators", [])
    if not operators:
        return str(place["name"])
    more = ", .." if len(operators) > MOST_NAMED else ""
    return f"{place['name']} ({', '.join(operators[:MOST_NAMED])}{more})"
