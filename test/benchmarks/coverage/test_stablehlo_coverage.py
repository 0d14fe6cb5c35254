"""docs/stablehlo-coverage.md says what is so: its operators and counts, and one program of each."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from stablehlo_coverage import OUTSIDE, PAGE, judge, programs, registered
from stablehlo_forms import Form

ROW = re.compile(r"^\| (\w+) \| (?:(\d+) of (\d+))? \| ([^|]*) \| (.*) \|$", re.MULTILINE)
ROWS = {m[1]: (int(m[2] or 0), int(m[3] or 0), m[5]) for m in ROW.finditer(PAGE.read_text())}
PROGRAMS = programs()
COUNTS = Counter(form.operator for form, _ in PROGRAMS)


def sample() -> list[tuple[Form, str]]:
    """One program an operator, of different element types."""
    groups: dict[str, list[tuple[Form, str]]] = {}
    for program in PROGRAMS:
        groups.setdefault(program[0].operator, []).append(program)
    return [group[number % len(group)] for number, group in enumerate(groups.values())]


def test_every_operator_of_the_dialect_has_a_row() -> None:
    assert list(ROWS) == registered()
    assert set(OUTSIDE) <= set(registered())


def test_rows_count_the_programs_there_are() -> None:
    assert {name: total for name, (_, total, _) in ROWS.items() if total} == dict(COUNTS)
    assert [name for name, (_, total, _) in ROWS.items() if not total] == sorted(OUTSIDE)


def test_most_operators_are_right_in_all_forms() -> None:
    inside = [row for name, row in ROWS.items() if name not in OUTSIDE]
    right = [row for row in inside if row[0] == row[1]]
    assert len(right) >= 0.95 * len(inside)


@pytest.mark.parametrize(
    ("form", "element"), sample(), ids=[f"{f.operator}-{f.name}-{e}" for f, e in sample()]
)
def test_row_says_what_becomes_of_a_program(form: Form, element: str) -> None:
    right, total, others = ROWS[form.operator]
    outcome = judge(form, element)
    if right == total:
        assert (outcome.kind, outcome.detail) == ("correct", "")
    assert outcome.kind == "correct" or outcome.kind in others


@pytest.mark.parametrize(
    ("chosen", "element"),
    [
        ("^convolution $", "i32"),
        ("^convolution $", "i8"),
        ("^convolution groups$", "i32"),
        ("^scatter no updates max$", "f16"),
    ],
)
def test_kernels_of_the_cube_are_not_asked_for_what_they_lack(chosen: str, element: str) -> None:
    """Convolutions of integers to themselves go to the scalar unit; a scatter without updates
    keeps its type."""
    (form,) = {form for form, kind in programs(chosen) if kind == element}
    outcome = judge(form, element)
    assert (outcome.kind, outcome.detail) == ("correct", "")
