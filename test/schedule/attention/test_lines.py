"""Lines of units of attention."""

from __future__ import annotations

from collections import Counter

import pytest

from davinci.schedule.attention.lines import LinesOfUnits, UnitRows, lines_of


def rows_of(line: LinesOfUnits, number: int) -> list[tuple[int, int]]:
    """Matrices and rows that a line of a form takes, in its order."""
    first, at = divmod(number, line.each)
    return [
        (first * line.step + part.matrix, at * line.rows + part.start + row)
        for part in line.parts
        for row in range(part.rows)
    ]


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("ragged", [True, False])
def test_every_row_is_in_one_line(mixed: bool, ragged: bool) -> None:
    for rows in (1, 2, 8, 13, 32):
        for batch in (1, 3, 12):
            for length in (1, 3, 5, 12, 40):
                for most in (1, 4, 6):
                    lines = lines_of(rows, batch, length, most, ragged, mixed)
                    found = Counter(
                        row
                        for line in lines
                        for number in range(line.count)
                        for row in rows_of(line, number)
                    )
                    every = {(matrix, row) for matrix in range(batch) for row in range(rows)}
                    assert set(found) == every and set(found.values()) == {1}
                    assert all(line.rows <= length for line in lines)
                    assert all(0 < part.rows <= most for line in lines for part in line.parts)


def test_the_last_rows_have_one_place_in_lines_of_a_form() -> None:
    """So the size of what ends inside a fractal is known."""
    for rows, length in ((8, 4), (8, 3), (13, 5), (4, 4)):
        for line in lines_of(rows, 6, length, 4, ragged=True):
            ends = {
                turn
                for number in range(line.count)
                for turn, (_, row) in enumerate(rows_of(line, number))
                if row == rows - 1
            }
            with_end = sum(
                row == rows - 1 for i in range(line.count) for _, row in rows_of(line, i)
            )
            assert with_end == len(ends) * line.count


def test_units_of_one_block_of_matrices() -> None:
    parts = (UnitRows(0, 6, 1), UnitRows(0, 7, 1), UnitRows(1, 6, 1))
    assert not LinesOfUnits(4, 1, 2, parts).alike(1)
    assert LinesOfUnits(4, 1, 2, parts).alike(12)
    assert not LinesOfUnits(4, 1, 2, parts).alike(3), "the second line has matrices 2 and 3"
    assert LinesOfUnits(1, 1, 1, parts).alike(2)
    assert LinesOfUnits(4, 2, 1, parts[:2]).alike(1)
