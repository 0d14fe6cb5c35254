"""Values that left the range of f16: how many, where, and what to do; and inputs that left theirs.

The simulator counts them while the program runs (`LaunchProfile.lost`), the compiler where it
rounds constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.isa.halves import LEAST_NORMAL
from davinci.report.program import ProgramFacts
from davinci.simulator.timing.profile import LaunchProfile

Record = dict[str, Any]

LOST = ("overflows", "underflows", "subnormals")

COUNTS = (*LOST, "converted")

UNDERFLOWS_SHARE = 0.01
"""Share of the values that a kernel converts above which lost ones are reported; fewer lie beside
others that they do not matter to."""

SUBNORMALS_SHARE = 0.5
"""The same of values that lost digits: of a kernel that sums up parts, as attention does, some may
be small beside others."""

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
        if any(getattr(lost, key) for key in LOST):
            empty = {"name": launch.name, "operators": [], **dict.fromkeys(COUNTS, 0)}
            row = kernels.setdefault(launch.name, empty)
            row["operators"] += [x for x in launch.operators if x not in row["operators"]]
            for key in COUNTS:
                row[key] += getattr(lost, key)
    rows = sorted(kernels.values(), key=lambda row: (-row["overflows"], -row["underflows"]))
    totals = {key: sum(row[key] for row in rows) for key in LOST}
    return {**totals, "kernels": rows}


def range_summary(record: Record) -> str:
    """Says in a line what was lost; "" if no value became infinite and too few vanished to
    matter."""
    constants = record.get("range_of_constants", [])
    places = [*constants, *record.get("range", {}).get("kernels", [])]
    parts = []
    outside = [outside_text(row) for row in record.get("range", {}).get("inputs", [])]
    for key, became, least in (
        ("overflows", "became infinite", 0),
        ("underflows", "became 0", UNDERFLOWS_SHARE),
        ("subnormals", f"below {LEAST_NORMAL:.1e} lost digits", SUBNORMALS_SHARE),
    ):
        found = [p for p in places if p.get(key) and p[key] >= least * p["converted"]]
        if count := sum(place[key] for place in found):
            names = [place_name(place) for place in found]
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            noun = "value" if count == 1 else "values"
            parts.append(f"{count:,} {noun} {became} in {', '.join(names[:MOST_NAMED])}{more}")
    remedy = "" if record.get("precision") == "fp32" else ": --precision fp32 keeps them"
    lost = f"rounded to f16, {'; '.join(parts)}{remedy}" if parts else ""
    return "; ".join(filter(None, [*outside, lost]))


def outside_ranges(
    inputs: Mapping[str, npt.NDArray[Any]], ranges: Sequence[Record]
) -> list[Record]:
    """The key `range.inputs` of the record: inputs of a run with elements that are not in the range
    that values were scaled for.

    Args:
        ranges: the key `input_ranges` of the record.
    """
    rows = []
    for row in ranges:
        values = np.asarray(inputs[row["name"]])
        inside = (values >= row["low"]) & (values <= row["high"])
        if not inside.all():
            found = values[~inside].astype(np.float64)
            known = found[~np.isnan(found)]
            low, high = (known.min(), known.max()) if known.size else (row["low"], row["high"])
            ends = {"found_low": float(low), "found_high": float(high)}
            rows.append({**row, "outside": int(found.size), **ends})
    return rows


def outside_text(row: Record) -> str:
    """Says of an input that a run has left the range it was compiled for."""
    noun = "value is" if row["outside"] == 1 else "values are"
    ends = sorted({f"{row['found_low']:g}", f"{row['found_high']:g}"}, key=float)
    return (
        f"input {row['name']!r}: {row['outside']:,} {noun} outside of {row['low']:g}:"
        f"{row['high']:g} ({' to '.join(ends)}), so f16 may overflow"
    )


def scaling_summary(record: Record) -> str:
    """Says in a line what the policy that scales values did; "" with others."""
    scaling = record.get("scaling")
    if not scaling:
        return ""
    left = scaling["left"]
    parts = [f"{scaling['halves']} values are f16, {scaling['scaled']} of them scaled"]
    errors = [row["max_abs_err"] for row in scaling["outputs"]]
    known = [error for error in errors if error is not None]
    if known:
        parts.append(f"error at most {max(known):.3g}")
    if len(known) < len(errors):
        parts.append(f"{len(errors) - len(known)} of {len(errors)} outputs without a bound")
    if left:
        named = [f"{row['operator']} at {row['place']}, {row['reason']}" for row in left]
        more = f"; and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        parts.append(f"{len(left)} stay f32: {'; '.join(named[:MOST_NAMED])}{more}")
    return "; ".join(parts)


def place_name(place: Record) -> str:
    """A kernel with the operators of the model that it computes, as many as a line takes."""
    operators = place.get("operators", [])
    if not operators:
        return str(place["name"])
    more = ", .." if len(operators) > MOST_NAMED else ""
    return f"{place['name']} ({', '.join(operators[:MOST_NAMED])}{more})"
