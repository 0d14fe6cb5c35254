"""Holds the simulator's times against measurements that others have published.

    python benchmarks/fidelity/validate_timing.py

Prints the table and writes docs/validation.md, with what `foretelling` says. Takes some minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import experiments
import foretelling
import published
import published_950
import published_950_cube
import published_attention
import published_convolution
import published_grouped
import published_kernels
import published_memory
import published_products
import published_split
import published_vector
from published import MACHINE, MARKS, Row

ROOT = Path(__file__).parents[2]
MEDIAN_TARGET = 0.05
PAGE = ROOT / "docs" / "validation.md"
FILES = ROOT / "python" / "davinci" / "machine" / "files"

GROUPS: list[Callable[[], Iterator[Row]]] = [
    published_vector.isolated,
    published_vector.several,
    published_vector.bank_conflicts,
    published_vector.addition_times,
    published.chained_mads,
    published.transfers,
    published_products.products,
    published_products.pto_product,
    published_convolution.pto_convolution,
    published_attention.pto_attention,
    published_attention.grid,
    published_grouped.grouped,
    published_split.split_products,
    published_products.tuning,
    published_memory.vector_addition,
    published_memory.data_copy,
    published_kernels.on_310,
    published_kernels.on_910,
    published_950.addition,
    published_950.gelu_of_f32,
    published_950.reading,
    published_950_cube.products,
    published_950_cube.product_with_gelu,
    published_950_cube.scaled_products,
]

CHIPS: dict[str, str] = {
    "isolated vector operations": "910B3",
    "fits of isolated vector operations": "910B3",
    "operations of several instructions": "910B3",
    "GM to UB": "910B3",
    "PTO product of 3072": "910C (A3), 24 cores",
    "PTO convolution": "910C (A3), 24 cores",
    "PTO attention": "910B2",
    published_attention.GRID_GROUP: "910B2",
    published_split.GROUP: "910B3",
    "V7 other products": "20 cores, 910B3 or 910B4",
    published_kernels.GROUP_310: "310",
    published_kernels.GROUP_910: "910A",
    **dict.fromkeys([*published_950.GROUPS, *published_950_cube.GROUPS], "950PR"),
}
"""The chip that a group was measured on; all others were on a 910B1."""

OTHER_MACHINES = {
    published_kernels.GROUP_310,
    published_kernels.GROUP_910,
    *published_950.GROUPS,
    *published_950_cube.GROUPS,
}
"""Groups that were not measured on the 910B generation."""

INTRODUCTION = """\
# Simulated and measured times

Made by `benchmarks/fidelity/validate_timing.py`; do not edit. The measurements are those of
[hardware.md](hardware.md) (b, d, f). Most are of the 910B generation, with programs that are
written by hand in `published*.py` beside it and run without data on the machine `ascend910b`; those
of the 950 in the same way, on `ascend950`. Two groups have kernels of libraries on a 310
and a 910A, of which only the operator is known: beside them stand the kernels that this compiler
makes. An error is simulated / measured - 1. For the 910 and 310 no measurements of single
instructions are public: their files carry the mechanisms over.

A row is *fitted* if the keys of the machine file that its mark names were set with it in view, and
*seen* if it set no number but was known when the form of a mechanism that decides it was chosen.
It is *independent* if form and numbers come from elsewhere; all other rows say how well one model
agrees with them at once, not how well it foretells. Rows that are points of one published fit, a
line through measurements that were not published, count as one number.
"""

SEEN = """
Only the products with k split (catlass) were found after the model was made; all other measurements
are from the pages that it was made from, so none of their rows is independent:

* What a row of a transfer to fractals takes comes from C0 and C1; that it has a cost of its own,
  not that of its lines, was chosen after C4, C8 and V7 had been seen.
* `mte1.stall_bytes` was set with MTE1 of C3, C4 and C8 and MTE2 of C8 in view,
  `gm.same_line_percent` with MTE2 of C3 and V5 to L1 in the same order, and
  `same_line_request_cycles` with V5 to UB in the same order, when attention on 1 to 16 cores had
  been seen: of it came that requests for a line pass one after the other, but no number.
* `gm.read_bytes_per_cycle` is officially 32; 33 lies between V4, which gives 34, and V5, 32.1.
* `mte2.row_miss_cycles` and `nd2nz_row_miss_cycles` rest on one row each, V5 to UB and to L1,
  staggered; `nd2nz_block_cycles` lies between its two rows.
* C3, C5 to C7, the basic API, V7 and the variants of V5 were known while the mechanisms of the
  memory were made, V4 when L2 and memory were set side by side.
* Of the cube, 61 cycles come from C0 to C3, 11 lie between the chained mads, C8 and the basic API.
* One mechanism was sought for all bank conflicts, the slopes of the fits and the strided copies; of
  it 22 cycles, a depth of 15 and 2 until results are visible are numbers. The vector times of V4
  follow, but were known. Single TEXP, TDIV and TRSQRT are of the publication with the fits.
* `mte1.overlap_cycles`, the 20 of `vector_dup` and, together, `copy_bursts_at_once` and the 6 of
  `scatter_vnchwconv` rest on one row of PTO each, `mte1.load3d.fixed_cycles` on MTE1 of its
  convolution. A barrier's 2 cycles come from columns of maxima and sums, that the head passes
  meanwhile from sums of rows and quotients, which gave no number; nor did attention. That
  `l2.separate_writes` comes from what a product of its attention moves and takes, before it was
  simulated; the other lengths, and the other columns of the convolution, gave no number.
  Of its product of 3072 the rows but MTE1 gave no number; single TSUB neither, and TADD, whose
  numbers it has, is of the same publication. Operations of several instructions are points of
  published lines but for copies, expansion, transposition and roots.
* MTE1 of C0 to C2 is fitted: the 24 cycles of a load are those of the vendor's formula for a load
  alone, taken for loads that follow each other because these rows agree with it.

Ports, the shares of memory and L2 and what is not named here are the vendor's or PTO's.

Of the 950 eleven numbers were fitted: `mte2.start_cycles`, `mte2.issue_cycles`,
`vector.functions.window`, `gm.same_line_percent` and `mte1.stall_bytes` to one row each; the cube's
latency, the fixed part of a load, and of a transfer to fractals the fixed part and the row to C0
and C1 of its product; what a mad occupies and the port of fixpipe to C5 and C8. All others are the
vendor's, PTO's or the 910B's. Which rows of the product are shown (C0, C1, C2, C4, C5, C8) was
chosen before one was simulated. For attention on a 950 no measurement was found: PTO's kernels for
it (`kernels/manual/a5/flash_atten`, `kernels/automode/a5/flash_atten`) say "TBD", its pull request
105 says why, the vendor's examples (asc-devkit) have none, nor have the public pages, documents,
issues and source searched for it; what was measured of library kernels inside a network (pypto-lib,
issue 1054) names neither tiles nor lengths of a kernel. The kernel by hand is checked with data.

How the programs were rebuilt where the publication leaves it open:

* Operands of the isolated operations lie 16 KB apart, in one bank; the time is from issue to
  completion. How many repeats `vbrcb` had is not said.
* Bank conflicts, strided copies and the vector times of V4 have the published addresses; ticks of
  50 MHz are taken as 36 cycles, as the case without conflicts is 22 + 64.
* V1: B is stored with k along its rows. C0 to C3 have one buffer in L1, so transfers and loads
  take turns; from C4 on everything has two. Blocks of C are computed row by row. Of each core one
  row of blocks is simulated, with the L2 as the transfers of two rows before leave it, and taken
  for all of them; on one core two columns (four of C0) stand for all. Pipe times are averages
  over the cores, the task is the longest core.
* A of V1 goes to L0A by one load of windows of a pixel for each step, as Nz becomes Zz.
* V4 on one core waits for the first operand before it loads the second, as its published MTE2
  time of twice a single transfer shows; the same program is used for all versions. 1/16 of its
  tiles stand for all, with the scalar unit 1/1024. The program runs twice and the second time
  counts, as repeated measurements do.
* PTO's convolution has the published tiling, which its publication gives for another size; a core
  has an image and a sixth of the filters. How weights leave L1 is taken to be one load. It runs
  twice and the second time counts.
* PTO's attention: tiles of 512 keys, of which the publication only says that they are possible, 4
  of them ahead, 8 slots; Q, K and V are in the L2. Its clock is 1800 MHz. Products do not overlap
  with fixpipe as they do by the unit flag; scores of one slice are copied rows by rows.
* PTO's grid of attention: the same kernel as above. Of its two tables the one with an aarch64 host,
  of its queries 128, 512, 1,024 and 2,048, chosen before one was simulated.
* The grouped product: weights lie as fractals, as published; parts of 128 x 1,024 are dealt round
  all groups; what the vector cores do was rebuilt from the library's public source. It runs once,
  on an empty L2, as its 200 MB pass the L2 once.
* The product with k split: of catlass's table the rows of 256 and 512 columns, chosen before one
  was simulated; the program is that of its source, without the unit flag. It runs once, on an empty
  L2, as the example does.
* The time of a task has a head of 1 us and 7 times the share of the cores (hardware.md, b3).
* Kernels of a 910A: of its publication a product of one row (60 MB) and attention of a decode step
  are shown, other sizes and products of many rows are kept aside.
* V5 has the published order and waits for nothing. V7: how the rows and columns are split, and
  the steps of its large transfers (4 and 4), are not published.
"""

FORETELLING = """
## How it foretells

Each group is simulated by a machine file made without it: the numbers that its rows gave are set
again from rows of other groups, so that these have no mean error; a number of which no other group
says anything has the value of other sources: no such effect, another unit's, the official one.
What other rows know too (the cube, rows of fractals, lines that cores share) is foretold nearly as
well as it is fitted; what an instruction takes besides its repeats or its bytes, and the time of
rows that miss the L2, nothing but their measurement tells. The forms of all mechanisms were known.
Groups of the 910B that gave no number are foretold as they stand. The last columns are those of
the page before the third round, whose first three groups had 12, 42 and 3 rows.
"""

TRIED = """\
## What single changes would do

Of what rows outside their targets seem to lack, what can be tried: one thing is changed, and other
rows that it touches stand beside. None of it is in the machine files.
"""

NOT_MODELLED = """\
## What is not modelled

* Banks and channels of the memory, refresh; the time of a miss against that of a hit but for rows.
* What another part takes for a row of a transfer to fractals (V7). The distance of rows is not it:
  in proportion to it, rows of V7 would be right and those of PTO's product 20 % short (above).
* What matrices of one row each take in one transfer to fractals: as rows of one matrix here. None
  of the published kernels has them (catlass issues a transfer for each row where rows lie further
  apart than the field can say), and PTO's model of costs counts their bytes alone.
* The clock under load, which falls by 1 to 9 % in C5 to C7 of V1: one number is none (above).
* Rows on the way to UB that do not begin at a whole block of 32 bytes.
* Transfers that wait while loads read from L1.
* Fixpipe that adds arrays, leaky relu on its way, and its formats of 4 bits: there are no records.
* Vector masks: masked lanes keep their banks. The 16 extra cycles of tiles that are not whole
  repeats: it is not known whether they are the unit's or those of setting the mask.
* `vreducev2` has the official 2 cycles a repeat; PTO gives 14.
* Gathers are as fast wherever their elements lie, merges whatever their lists hold. `vmrgsort4`
  does not stop at an exhausted list, and PTO's 78 cycles a repeat, of lists of unknown length, are
  not used. The rounding of `vmulconv` is assumed.
* Caches of instructions and scalar data; the scalar unit issues one operation a cycle.
* Which core an access comes from: all cores are equally far from the L2.
* Clocks that slow down under load.
* What a barrier of the vector unit takes on the 910, 310 and 310P: 20 cycles are assumed there, 2
  were found on the 910B. With 2 on the 910, bert-tiny would take 28,987 cycles, not 33,421, mlp
  4,823, not 5,003.
* What flags between cores cost besides 20 cycles to arrive: a barrier of all 48 vector cores takes
  21 cycles here. Nothing public bounds it from below; from above the products with k split do,
  where all that is not modelled is 0.6 to 6.1 us with one meeting of cube and vector cores a part.
* How far apart the rows of a transfer to fractals lie, and whether they are rows of one matrix or
  of many.
* What a burst apart in UB costs on the way from and to global memory: a cycle at least is assumed.
"""


def summary(rows: list[Row]) -> Iterator[str]:
    """Lines of Markdown that count published numbers and rows by mark, and what was fitted."""
    yield "| evidence | published numbers | rows | within their targets |"
    yield "|---|---:|---:|---:|"
    for mark in (*MARKS, "all"):
        marked = [row for row in rows if mark in ("all", row.evidence.partition(":")[0])]
        numbers = {(row.group, row.published or row.name) for row in marked}
        good = sum(row.good for row in marked)
        yield f"| {mark} | {len(numbers)} | {len(marked)} | {good} |"
    bad = sum(not row.good for row in rows)
    yield f"\n{fitted_numbers()} numbers of the machine file were fitted; {bad} rows are outside."


def medians(rows: list[Row]) -> Iterator[str]:
    """Lines of Markdown: how large errors are, whatever their sign, by group and by chip."""
    yield "\nHow large the errors are, whatever their sign:\n"
    yield "| group, chip | rows | median | worst |"
    yield "|---|---:|---:|---:|"
    names = [(row.group, chip_of(row)) for row in rows]
    for group, chip in dict.fromkeys(names):
        own = [row for row, name in zip(rows, names, strict=True) if name == (group, chip)]
        yield _sizes(f"{group}, {chip}", own)
    for chip in dict.fromkeys(chip for _, chip in names):
        own = [row for row in rows if chip_of(row) == chip]
        yield _sizes(f"**all of the {chip}**", own)
    yield _sizes("**all**", rows)


def _sizes(title: str, rows: list[Row]) -> str:
    """A row of that table."""
    errors = [abs(row.error) for row in rows]
    return f"| {title} | {len(rows)} | {median(errors):.1%} | {max(errors):.1%} |"


def chip_of(row: Row) -> str:
    """The chip on which a row was measured."""
    return CHIPS.get(row.group, "910B1")


def fitted_numbers() -> int:
    """Numbers of the machine file whose comment, or that of their table, says so."""
    count, table = 0, False
    text = (FILES / f"{MACHINE.name}.toml").read_text(encoding="utf-8")
    # A comment that goes on in the next line belongs to the number before it.
    for line in re.sub(r"\n\s+#", "", text).splitlines():
        if line.startswith("["):
            table = "fitted" in line
        elif " = " in line:
            count += "fitted" in line or (table and "assumed" not in line)
    return count


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
    yield "\n## Rows outside their targets\n"
    for missing in dict.fromkeys(row.missing for row in bad):
        for row in bad:
            if row.missing == missing:
                yield f"* {row.group}, {row.name}: {row.error:+.1%}."
        yield f"\nMissing: {missing or 'not explained'}.\n"
    yield ""


def high(rows: list[Row]) -> Iterator[str]:
    """Lines that say what groups lack whose median error is above 5 %."""
    yield "## Groups with a median error above 5 %\n"
    for group in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == group]
        middle = median(abs(row.error) for row in own)
        if middle > MEDIAN_TARGET:
            (missing, *_) = [row.missing for row in own if row.missing] or ["not explained"]
            bad = any(not row.good for row in own)
            yield f"* {group}: {middle:.1%}. {'See above' if bad else f'Missing: {missing}'}."
    yield ""


def main() -> int:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
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
    on_910b = [row for row in rows if row.group not in OTHER_MACHINES]
    said = [FORETELLING, *foretelling.foretold(on_910b)]
    lacking = [*outside(rows), *high(rows), TRIED, *experiments.lines(rows), ""]
    lines = [
        INTRODUCTION,
        *summary(rows),
        *medians(rows),
        SEEN,
        *said,
        *table(rows),
        *lacking,
        NOT_MODELLED,
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    return int(any(not row.good and not row.missing for row in rows))


if __name__ == "__main__":
    sys.exit(main())
