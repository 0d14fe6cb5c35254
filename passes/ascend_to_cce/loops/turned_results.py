"""Builds the way of results from columns of fractals to rows, see
`davinci.schedule.loops.turned_results`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.builder import alloc, restride
from davinci.schedule.loops.turned_results import (
    HALVES,
    LANES,
    SECTION,
    TURNED,
    LaneSection,
    halves_of,
    scratch_elements,
    sections_of,
)
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import MAX_STRIDE


@dataclass(frozen=True)
class LaneRun:
    """Neighbouring lanes of results: the first one, how many, and where their rows begin in the
    buffer that holds them."""

    lane: int
    lanes: int
    offset: int


def runs_of(runs: Sequence[LaneRun]) -> list[LaneRun]:
    """Joins runs whose lanes are neighbours in the results and in the buffer that holds rows."""
    found: list[LaneRun] = []
    for run in runs:
        last = found[-1] if found else None
        if last is not None and (last.lane + last.lanes, last.offset + last.lanes) == (
            run.lane,
            run.offset,
        ):
            found[-1] = replace(last, lanes=last.lanes + run.lanes)
        else:
            found.append(run)
    return found


def turn(lines: ir.Value, held: ir.Value, runs: Sequence[LaneRun], rows: int, pitch: int) -> None:
    """Brings lanes to rows.

    Args:
        lines: f32 in UB, flat: of each lane a line of 16 numbers.
        held: f32 in UB, in which the rows of each run are `pitch` elements apart.
    """
    for run in runs_of(runs):
        size = scratch_elements(run.lanes, rows)
        between = alloc([size], ir.F32Type.get(), "UB")
        sections = list(sections_of(run.lanes))
        places = [
            (section, half, (len(sections) * number + place) * TURNED)
            for number, half in enumerate(halves_of(rows))
            for place, section in enumerate(sections)
        ]
        for section, (row, _), start in places:
            _to_halves(lines, run, section, row, between, start)
        if rows == 1:
            _to_one_row(between, sections, held, run)
            continue
        for section, (row, count), start in places:
            target = run.offset + section.first + row * pitch
            if pitch // LANES <= MAX_STRIDE:
                _to_rows(between, start, section, held, target, (count, SIDE, pitch))
                continue
            for each in range(count):
                first = start + each * SIDE
                _to_rows(between, first, section, held, target + each * pitch, (1, 0, 0))


def _to_halves(
    lines: ir.Value, run: LaneRun, section: LaneSection, row: int, between: ir.Value, start: int
) -> None:
    """The first round, for 8 rows of a section from `row` on."""
    digits = [digit * LANES * SIDE for digit in section.digits]
    first = (run.lane + section.first) * SIDE + row
    shape = [*[2] * len(digits), LANES, LANES]
    source = restride(lines, shape, [*digits, SIDE, 1], first)
    turned = [SIDE, LANES, LANES]
    cce.vnchwconv(source, restride(between, turned, [LANES, SIDE * LANES, 1], start))


def _to_one_row(
    between: ir.Value, sections: Sequence[LaneSection], held: ir.Value, run: LaneRun
) -> None:
    """The second round for the only row, of all whole sections at once."""
    whole = sum(section.lanes == SECTION for section in sections)
    if whole:
        form = (whole, TURNED, SECTION)
        _to_rows(between, 0, sections[0], held, run.offset, form)
    for section in sections[whole:]:
        start = whole * TURNED
        _to_rows(between, start, section, held, run.offset + section.first, (1, 0, 0))


def _to_rows(
    between: ir.Value,
    start: int,
    section: LaneSection,
    held: ir.Value,
    target: int,
    repeats: tuple[int, int, int],
) -> None:
    """The second round.

    Args:
        repeats: how many there are, and elements from one to the next on both sides.
    """
    count, apart, onward = repeats
    source = [LANES, HALVES, count, LANES]
    digits = [digit * LANES for digit in section.digits]
    cce.vnchwconv(
        restride(between, source, [SIDE * LANES, LANES, apart, 1], start),
        restride(held, [*[2] * len(digits), count, LANES], [*digits, onward, 1], target),
    )
