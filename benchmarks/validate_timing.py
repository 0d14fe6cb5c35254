"""Holds the simulator's times against measurements that others have published.

    python benchmarks/validate_timing.py

Prints the table and writes docs/validation.md. Takes one to two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import published
import published_memory
import published_products
import published_vector
from published import Row

PAGE = Path(__file__).parent.parent / "docs" / "validation.md"

GROUPS: list[Callable[[], Iterator[Row]]] = [
    published_vector.isolated,
    published_vector.bank_conflicts,
    published_vector.addition_times,
    published.chained_mads,
    published.transfers,
    published_products.products,
    published_products.tuning,
    published_memory.vector_addition,
    published_memory.data_copy,
]

INTRODUCTION = """\
# Simulated and measured times

Made by `benchmarks/validate_timing.py`; do not edit. The measurements are those of
[hardware.md](hardware.md) (b, d), all of the 910B generation; the programs are written by hand in
`benchmarks/published*.py` and run without data on the machine `ascend910b`. An error is simulated /
measured - 1. For the 910 and 310 no measurements of single instructions are public: their files
carry the mechanisms over.

A row is *fitted* if a parameter of the model comes from it, and *independent* if the model was made
without it. From the vector rows come: the fixed part of 22 cycles and the depth of 15 of an
addition (no conflict; one block apart; one block of the other source), 2 cycles until results are
visible (single TADD), what other operations differ by (constants of the fits, single TMUL), and
rates that differ from the official ones. Independent are the slopes of TADD, all other conflicts,
copies and the vector times of V4; the single TEXP, TDIV and TRSQRT are of the publication that the
fits are from.

From the rows of memory and cube come, as their marks say: what a transfer to fractals and each of
its rows take (C0, C1), what rows take that the L2 has not (V5, staggered), blocks of rows that
are not aligned (V5 and V7 together), loads that wait for L1 (C8), the wait for one line (between
C3 and V5 in the same order; C2 was not used), accesses of the scalar unit (V4). That a row has a
cost of its own was seen in C4 and C8, so their MTE2 times were known when the form of the rule
was chosen, but gave none of its numbers. The cube's 11 cycles come from C0 and the chained mads
together. Ports, the shares of memory and L2, the start of a transfer and the rates of MTE1 are
the vendor's or PTO's.

How the programs were rebuilt where the publication leaves it open:

* Operands of the isolated operations lie 16 KB apart, in one bank; the time is from issue to
  completion. How many repeats `vbrcb` had, and which types `vconv`, is not said.
* Bank conflicts, strided copies and the vector times of V4 have the published addresses; ticks of
  50 MHz are taken as 36 cycles, as the case without conflicts is 22 + 64.
* V1: B is stored with k along its rows. C0 to C3 have one buffer in L1, so transfers and loads
  take turns; from C4 on everything has two. Blocks of C are computed row by row. Of each core one
  row of blocks is simulated, with the L2 as the transfers of two rows before leave it, and taken
  for all of them; on one core two columns (four of C0) stand for all. Pipe times are averages
  over the cores, the task is the longest core.
* V4 on one core waits for the first operand before it loads the second, as its published MTE2
  time of twice a single transfer shows; the same program is used for all versions. 1/16 of its
  tiles stand for all, with the scalar unit 1/1024. The program runs twice and the second time
  counts, as repeated measurements do.
* V5 has the published order and waits for nothing. V7: how the rows and columns are split, and
  the steps of its large transfers (4 and 4), are not published.
"""

NOT_MODELLED = """\
## What is not modelled

* Banks and channels of the memory, refresh; the time of a miss against that of a hit but for rows.
* Transfers that wait while loads read from L1.
* Launches whose cores exchange flags: their times are made as if the L2 held nothing, and as if
  cube cores and vector cores had the memory to themselves.
* The unit flag, by which fixpipe starts before a mad is complete.
* Vector masks: masked lanes keep their banks. The 16 extra cycles of tiles that are not whole
  repeats: it is not known whether they are the unit's or those of setting the mask.
* Why conversions take 2 cycles a repeat, not the official 1; taken as measured.
* `vreducev2` has the official 2 cycles a repeat; PTO gives 14.
* Instructions whose regions depend on data (`vgather`, `vmrgsort4`), sorting (`vbitsort`), and
  `vmulconv`, whose rounding is not certain, do not exist.
* Caches of instructions and scalar data; the scalar unit issues one operation a cycle.
* Which core an access comes from: all cores are equally far from the L2.
* Clocks that slow down under load.
"""


def table(rows: list[Row]) -> Iterator[str]:
    """Lines of Markdown, a table for each group."""
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            yield f"\n## {group[0].upper()}{group[1:]}\n"
            yield f"| case | measured, {row.unit} | simulated | error | target | evidence |"
            yield "|---|---:|---:|---:|---|---|"
        digits = 0 if row.measured >= 1000 else 1 if row.measured >= 10 else 2
        good = "" if row.good else " **outside**"
        yield (
            f"| {row.name} | {row.measured:,.{digits}f} | {row.simulated:,.{digits}f} | "
            f"{row.error:+.1%} | {row.target:.0%}{good} | {row.evidence} |"
        )


def outside(rows: list[Row]) -> Iterator[str]:
    """Lines that say what the rows outside their targets lack."""
    bad = [row for row in rows if not row.good]
    yield f"\n{len(rows) - len(bad)} of {len(rows)} rows are within their targets.\n"
    yield "## Rows outside their targets\n"
    for row in bad:
        yield f"* {row.group}, {row.name} ({row.error:+.1%}): {row.missing or 'not explained'}."
    yield ""


def main() -> int:
    rows: list[Row] = []
    for group in GROUPS:
        for row in group():
            rows.append(row)
            mark = "" if row.good else "  outside"
            print(
                f"{row.group:34} {row.name:46} {row.measured:10.1f} {row.simulated:10.1f} "
                f"{row.error:+7.1%}{mark}",
                flush=True,
            )
    lines = [INTRODUCTION, *table(rows), *outside(rows), NOT_MODELLED]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    return int(any(not row.good and not row.missing for row in rows))


if __name__ == "__main__":
    sys.exit(main())
