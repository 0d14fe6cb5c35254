"""Values that left the range of f16: how many, where, and what to do.

The simulator counts them while the program runs (`LaunchProfile.lost`), the compiler where it
rounds constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from davinci.simulator.profile import LaunchProfile

Record = dict[str, Any]

MOST_NAMED = 3
"""Kernels and constants that the line names."""


def value_range(launches: Sequence[LaunchProfile]) -> Record:
    """The key `range` of the record: what instructions lost when they rounded to f16."""
    kernels: dict[str, Record] = {}
    for launch in launches:
        lost = launch.lost
        if lost.overflows or lost.underflows:
            empty = {"name": launch.name, "operators": [], "overflows": 0, "underflows": 0}
            row = kernels.setdefault(launch.name, empty)
            row["operators"] += [x for x in launch.operators if x not in row["operators"]]
            row["overflows"] += lost.overflows
            row["underflows"] += lost.underflows
    rows = sorted(kernels.values(), key=lambda row: (-row["overflows"], -row["underflows"]))
    return {**_sums(rows), "kernels": rows}


def range_summary(record: Record) -> str:
    """One line for people; "" if every value that was rounded to f16 has a place there."""
    constants = record.get("range_of_constants", [])
    places = [*constants, *record.get("range", {}).get("kernels", [])]
    total = _sums(places)
    parts = []
    for key, became in (("overflows", "became infinite"), ("underflows", "became 0")):
        if count := total[key]:
            names = [place_name(place) for place in places if place[key]]
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


def _sums(places: Iterable[Record]) -> Record:
    found = list(places)
    return {key: sum(place[key] for place in found) for key in ("overflows", "underflows")}
