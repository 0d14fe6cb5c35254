"""Lines of units: how the rows of all matrices of O are dealt out, with what is known of each line.

As many lines as possible have rows of one matrix. What is left of each matrix follows each other in
lines of the same length, which take rows of several; which of their units are of the same matrix is
known of each line, so what these share comes once.

    32 rows of fractals a matrix, lines of 12, units of at most 6
        6 6, 6 6 of each matrix, 4 4 | 4 of the first and second, 4 4 | 4 of the third and second
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from davinci.units import ceil_div


@dataclass(frozen=True)
class UnitRows:
    """Rows of a unit; sizes in fractals.

    Attributes:
        matrix, start: where they begin, from where the line begins.
        rows: how many.
    """

    matrix: int
    start: int
    rows: int


@dataclass(frozen=True)
class LinesOfUnits:
    """`count` lines of one form.

    Attributes:
        each: line i begins at the matrix i // each * step, and i % each lines below its first row.
        parts: the units.
    """

    count: int
    each: int
    step: int
    parts: tuple[UnitRows, ...]

    @property
    def rows(self) -> int:
        """Rows of all units together."""
        return sum(part.rows for part in self.parts)

    @property
    def matrices(self) -> int:
        """That the units are of."""
        return len({part.matrix for part in self.parts})

    def alike(self, each: int) -> bool:
        """Whether all units are of matrices whose number, divided by `each`, is the same."""
        places = {part.matrix for part in self.parts}
        known = self.count == 1 or each % self.step == 0
        return len(places) == 1 or (known and len({place // each for place in places}) == 1)


def lines_of(
    rows: int, batch: int, length: int, most: int, ragged: bool = False, mixed: bool = True
) -> list[LinesOfUnits]:
    """Lines of `length`, in units of at most `most` rows; sizes in fractals.

    Args:
        rows: of a matrix.
        ragged: whether the last fractal is not whole, so that lines that have it are alike.
        mixed: whether lines may have rows of several matrices; else what is left is a line.

    >>> for line in lines_of(32, 12, 12, 6):
    ...     print(line.count, *((part.matrix, part.start, part.rows) for part in line.parts))
    24 (0, 0, 6) (0, 6, 6)
    4 (0, 24, 4) (0, 28, 4) (1, 24, 4)
    4 (2, 24, 4) (2, 28, 4) (1, 28, 4)
    """
    length = min(length, rows * (batch if mixed else 1))
    whole, left = divmod(rows, length)
    alone = int(ragged and not left and whole > 0)
    found = []
    if whole > alone:
        found.append(
            LinesOfUnits(batch * (whole - alone), whole - alone, 1, _units(0, 0, length, most))
        )
    if alone:
        found.append(LinesOfUnits(batch, 1, 1, _units(0, rows - length, length, most)))
    if not left:
        return found
    if not mixed:
        return [*found, LinesOfUnits(batch, 1, 1, _units(0, rows - left, left, most))]
    step = length // math.gcd(left, length)
    times, rest = divmod(batch, step)

    def line(start: int, stop: int) -> tuple[UnitRows, ...]:
        """What is left of matrices, from one number of rows of that to another; most of a matrix
        comes first, so that there is time for the next one's K."""
        spans = []
        while start < stop:
            matrix, at = divmod(start, left)
            size = min(stop - start, left - at)
            spans.append((matrix, rows - left + at, size))
            start += size
        spans.sort(key=lambda span: -span[2])
        return tuple(part for span in spans for part in _units(*span, most))

    def cut(total: int) -> list[tuple[UnitRows, ...]]:
        starts = range(0, total, length)
        return [line(start, min(total, start + length)) for start in starts]

    if times:
        found += [LinesOfUnits(times, 1, step, parts) for parts in cut(step * left)]
    found += [_moved(parts, times * step) for parts in cut(rest * left)]
    return found


def _units(matrix: int, start: int, size: int, most: int) -> tuple[UnitRows, ...]:
    """Rows of a matrix in units, as even as can be."""
    count = ceil_div(size, most)
    cuts = pairwise(size * i // count for i in range(count + 1))
    return tuple(UnitRows(matrix, start + a, b - a) for a, b in cuts)


def _moved(parts: tuple[UnitRows, ...], matrices: int) -> LinesOfUnits:
    """One line of these units, each so many matrices further on."""
    return LinesOfUnits(
        1, 1, 1, tuple(UnitRows(part.matrix + matrices, part.start, part.rows) for part in parts)
    )
