"""How the model foretells: each group of measurements by a machine file made without it.

    python benchmarks/fidelity/foretelling.py

A number of the machine file that rows of a group gave is set again from the rows of other groups
that say something about it, so that their mean error is none; where there are none it has the value
that it would have from other sources alone. `validate_timing.py` writes the table into its page.
"""

from __future__ import annotations

import argparse
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import published
import published_attention
import published_convolution
import published_memory
import published_products
import published_vector
from published import Row
from published_memory import RATE

from davinci.machine.reader import parse

SINGLE, FITS = "isolated vector operations", "fits of isolated vector operations"
SEVERAL, BANKS = "operations of several instructions", "bank conflicts"
MADS, LOADS = "chained mads", "GM to UB"
V1, PTO, V7 = "V1 product of 8192", "PTO product of 3072", "V7 other products"
CONVOLUTION, ATTENTION = published_convolution.GROUP, published_attention.GROUP
GRID = published_attention.GRID_GROUP
V4, V5 = "V4 addition of 8192 x 8192 f16", "V5 reading"

Rows = Callable[[], Iterator[Row]]

ITERATIONS = 4
"""Of a secant: times are all but linear in each number."""


def single(*names: str) -> Rows:
    cases = [case for case in published_vector.SINGLE if not names or case[0] in names]
    return partial(published_vector.isolated, cases, [])


def fits(*names: str) -> Rows:
    cases = [case for case in published_vector.FITS if not names or case[0] in names]
    return partial(published_vector.isolated, [], cases)


def of_group(rows: Rows, group: str, *names: str) -> Rows:
    """Those of a group, and of these names."""

    def found() -> Iterator[Row]:
        for row in rows():
            if row.group == group and (not names or row.name in names):
                yield row

    return found


def versions(pipe: str, *names: str) -> Rows:
    """A pipe of versions of V1."""
    cases = [case for case in published_products.PRODUCTS if case[0].split(",")[0] in names]

    def found() -> Iterator[Row]:
        for row in published_products.products(cases):
            if row.name.endswith(f": {pipe}"):
                yield row

    return found


def readings(*names: str) -> Rows:
    cases = [case for case in published_memory.READINGS if case[0] in names]
    return partial(published_memory.data_copy, cases)


def others(*names: str) -> Rows:
    cases = [case for case in published_products.TUNING if case[0] in names]
    return partial(published_products.tuning, cases)


@dataclass(frozen=True)
class Number:
    """A number of the machine file that measurements gave.

    Attributes:
        key: where it is, by section, table and name.
        without: what it is from other sources alone; None: there is no such key.
        rows: of each group that says something about it.
        given: groups whose rows it was set from.
    """

    key: tuple[str, ...]
    without: float | None
    rows: Mapping[str, Rows] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        return self.given or tuple(self.rows)


def _depth(mnemonic: str, *groups: str, **rows: Rows) -> Number:
    named = {SINGLE if name == "single" else FITS: each for name, each in rows.items()}
    return Number(("vector", "fixed_cycles_of", mnemonic), None, named, groups or (FITS,))


NUMBERS: list[Number] = [
    Number(
        ("cube", "occupancy_cycles"),
        0,
        {MADS: published.chained_mads, V1: versions("cube", "C8")},
    ),
    Number(("cube", "latency_cycles"), 11, given=(V1,)),
    Number(("mte1", "stall_bytes"), 1_000_000, given=(V1,)),
    Number(("mte1", "overlap_cycles"), 0, given=(PTO,)),
    Number(("mte1", "load3d", "fixed_cycles"), 46, given=(CONVOLUTION,)),
    Number(("l2", "separate_writes"), 0, given=(ATTENTION,)),
    Number(("mte2", "start_cycles"), 220, given=(LOADS,)),
    Number(("mte2", "nd2nz_fixed_cycles"), 0, given=(V1,)),
    Number(
        ("mte2", "nd2nz_row_cycles"), 0, {V7: others("128 x 256 x 64", "large transfers")}, (V1,)
    ),
    Number(
        ("mte2", "nd2nz_block_cycles"),
        1,
        {V5: readings("to L1, rows of 12287"), V7: others("24 cores, rows of B not aligned")},
    ),
    Number(("mte2", "row_miss_cycles"), 0, given=(V5,)),
    Number(("mte2", "nd2nz_row_miss_cycles"), 0, given=(V5,)),
    Number(("mte3", "start_cycles"), 265, given=(V4,)),
    Number(("scalar", "ub_access_cycles"), 1, given=(V4,)),
    Number(
        ("fixpipe", "port_bytes_per_cycle"),
        121,
        {PTO: of_group(published_products.pto_product, PTO, "fixpipe")},
        (V1,),
    ),
    Number(
        ("gm", "read_bytes_per_cycle"),
        32,
        {
            V4: of_group(published_memory.vector_addition, V4, *published_memory.PAST_THE_L2),
            V5: readings(
                *(name for name, *_, keys in published_memory.READINGS if keys == RATE),
            ),
        },
    ),
    Number(
        ("gm", "same_line_percent"),
        0,
        {
            V1: versions("MTE2", "C3"),
            V5: readings("to L1, all by all cores, in the same order"),
        },
    ),
    Number(("gm", "same_line_request_cycles"), 0, given=(V5,)),
    Number(("vector", "fixed_cycles"), 22, {FITS: fits("TADD f32")}, (BANKS,)),
    Number(("vector", "head_cycles"), 7, {FITS: fits("TMUL f32", "TADD f32")}, (BANKS,)),
    Number(("vector", "completion_cycles"), 0, {FITS: fits("TADD f32")}, (SINGLE,)),
    Number(("vector", "overlap_cycles"), 0, given=(SEVERAL,)),
    Number(("vector", "copy_bytes_per_cycle"), 256, given=(SEVERAL,)),
    Number(("vector", "copy_bursts_at_once"), 1, given=(SEVERAL,)),
    Number(
        ("sync", "barrier_cycles"),
        20,
        {GRID: partial(published_attention.grid, {128: published_attention.GRID[128][:2]})},
        (SEVERAL,),
    ),
    *(_depth(name, SEVERAL) for name in ("copy_ubuf_to_ubuf", "vector_dup", "scatter_vnchwconv")),
    *(_depth(name, SINGLE) for name in ("vsqrt", "vbrcb", "vgather", "vadd.s32", "vmul.s32")),
    *(
        _depth(name)
        for name in (
            "vmax",
            "vand",
            "vrelu",
            "vmaxs",
            "vlrelu",
            "vmuls",
            "vln",
            "vcadd",
            "vcmax",
            "vconv",
        )
    ),
    _depth("vmul", single=single("TMUL f32")),
    _depth("vexp", single=single("TEXP f32")),
    _depth("vdiv", single=single("TDIV f32")),
    _depth("vrsqrt", single=single("TRSQRT f16")),
    Number(("vector", "cycles_per_repeat", "vexp.f16"), 4, given=(SINGLE,)),
]
"""What was fitted. That `vdiv` takes 4 cycles a repeat both groups of it say."""

GROUPS: dict[str, Rows] = {
    SINGLE: single(),
    FITS: fits(),
    SEVERAL: published_vector.several,
    BANKS: of_group(published_vector.bank_conflicts, BANKS),
    MADS: published.chained_mads,
    LOADS: published.transfers,
    V1: published_products.products,
    PTO: published_products.pto_product,
    CONVOLUTION: published_convolution.pto_convolution,
    ATTENTION: published_attention.pto_attention,
    V7: published_products.tuning,
    V4: published_memory.vector_addition,
    V5: published_memory.data_copy,
}
"""All groups that gave a number."""

BEFORE: dict[str, tuple[float, float]] = {
    SINGLE: (0.014, 0.663),
    FITS: (0.028, 0.133),
    SEVERAL: (0.581, 0.818),
    BANKS: (0.040, 0.060),
    MADS: (0.015, 0.022),
    LOADS: (0.071, 0.112),
    V1: (0.145, 0.902),
    PTO: (0.026, 0.054),
    CONVOLUTION: (0.114, 0.132),
    ATTENTION: (0.040, 0.203),
    V7: (0.225, 0.282),
    V4: (0.070, 0.790),
    V5: (0.093, 0.523),
}
"""Foretold median and worst errors of the groups that this page had before its third round of
measurements, with fewer rows in the first three (12, 42, 3): docs/validation.md at 063f7d76."""


def with_number(data: dict[str, Any], key: Sequence[str], value: float | None) -> dict[str, Any]:
    """A machine's data with another number; None: without it."""
    new = copy.deepcopy(data)
    *names, last = key
    section = new
    for name in names:
        section = section[name]
    if value is None:
        section.pop(last, None)
    else:
        old = section.get(last)
        is_bool, is_int = isinstance(old, bool), isinstance(old, int)
        section[last] = bool(value) if is_bool else round(value) if is_int else value
    return new


def rows_on(data: dict[str, Any], rows: Rows) -> list[Row]:
    """The rows on a machine with these data."""
    before = published.MACHINE
    published.MACHINE = parse(data, "foretelling")
    try:
        return list(rows())
    finally:
        published.MACHINE = before


def fitted(data: dict[str, Any], number: Number, rows: Sequence[Rows]) -> dict[str, Any]:
    """The data with the number at which rows have no mean error, by a secant from its own value."""

    def mean_error(value: float) -> float:
        changed = with_number(data, number.key, value)
        found = [row.error for each in rows for row in rows_on(changed, each)]
        return sum(found) / len(found)

    low = _value(data, number.key) or 0.0
    high = low * 1.25 + 1
    error_low, error_high = mean_error(low), mean_error(high)
    for _ in range(ITERATIONS):
        if error_high == error_low:
            break
        low, high = high, max(high - error_high * (high - low) / (error_high - error_low), 0.0)
        if abs(high - low) < 0.01 * max(abs(low), 0.1):
            break
        error_low, error_high = error_high, mean_error(high)
    return with_number(data, number.key, high)


def without(group: str) -> tuple[dict[str, Any], list[Number]]:
    """The machine's data without what a group gave, and the numbers that differ."""
    data = published.MACHINE.model_dump()
    changed = [number for number in NUMBERS if group in number.groups]
    for number in changed:
        rows = [rows for name, rows in number.rows.items() if name != group]
        plain = with_number(data, number.key, number.without)
        data = fitted(data, number, rows) if rows else plain
    return data, changed


def foretold(seen: Sequence[Row]) -> Iterator[str]:
    """Lines of Markdown: the errors of each group with its numbers and without them.

    Args:
        seen: all rows of the machine, with its file as it is; groups that gave no number stand
            last.
    """
    yield (
        "| group | rows | numbers it gave | median error, fitted | worst | foretold | worst "
        "| foretold, round before | worst |"
    )
    yield "|---|---:|---|---:|---:|---:|---:|---:|---:|"
    for group, rows in GROUPS.items():
        data, changed = without(group)
        own = [abs(row.error) for row in seen if row.group == group]
        new = [abs(row.error) for row in rows_on(data, rows) if row.group == group]
        names = ", ".join(changes(data, changed))
        yield (
            f"| {group} | {len(own)} | {names} | {median(own):.1%} | {max(own):.1%} | "
            f"{median(new):.1%} | {max(new):.1%} | {before(group)} |"
        )
    for group in dict.fromkeys(row.group for row in seen):
        if group not in GROUPS:
            own = [abs(row.error) for row in seen if row.group == group]
            errors = f"{median(own):.1%} | {max(own):.1%}"
            yield f"| {group} | {len(own)} | none | {errors} | {errors} | {before(group)} |"


def before(group: str) -> str:
    """The last two cells of a group's row."""
    return " | ".join(f"{error:.1%}" for error in BEFORE.get(group, ())) or "- | -"


def changes(data: Mapping[str, Any], numbers: Sequence[Number]) -> Iterator[str]:
    """Numbers, with their own values and those in some data; those that are gone by their table."""
    gone = Counter(number.key[:2] for number in numbers if _value(data, number.key) is None)
    for number in numbers:
        new = _value(data, number.key)
        if new is not None:
            old = _value(published.MACHINE.model_dump(), number.key)
            before = "none" if old is None else f"{old:g}"
            yield f"`{'.'.join(number.key[-2:])}` {before} → {new:g}"
    for key, count in gone.items():
        yield f"`{'.'.join(key)}` of {count} instruction{'s' * (count > 1)} → none"


def _value(data: Mapping[str, Any], key: Sequence[str]) -> float | None:
    section: Any = data
    for name in key:
        section = section.get(name) if isinstance(section, Mapping) else None
    return None if section is None else float(section)


def main() -> None:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    seen = [row for rows in GROUPS.values() for row in rows()]
    for line in foretold(seen):
        print(line, flush=True)


if __name__ == "__main__":
    main()
