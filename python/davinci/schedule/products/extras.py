"""What C is combined with on its way out, and what of it the cube adds to sums instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.operators.vector_program import Value, VectorProgram, joined
from davinci.schedule.products.rewrites import (
    BYTE,
    is_rounding,
    is_widening,
    only_user,
    without,
)
from davinci.units import FRACTAL_SIDE as SIDE

BUFFERS = 2
"""In L1 and UB for rows and matrices, and in L0A for columns of a matrix."""


@dataclass(frozen=True)
class Company:
    """What sums are combined with, as far as an order depends on it.

    Attributes:
        apart: whether something has the shape of C and comes part by part.
        rows: whether rows of C come before what is done to a complete tile.
        batch: whether each matrix of the batch has rows of its own.
        added: whether the cube adds a row.
        digits: whether that is a row of digits, which are added as they come.
        columns: of a matrix that the cube adds at once; 0 if none.
        tables: rows of tiles that the bias table holds, where mads begin with them; else 0.
    """

    apart: bool = False
    rows: bool = False
    batch: bool = False
    added: bool = False
    digits: bool = False
    columns: int = 0
    tables: int = 0

    @property
    def early(self) -> bool:
        """Whether what is added to a tile may be added before its mads are done."""
        return self.digits and not self.columns


WORDS_BYTES = SIDE * 8
"""Bytes of the words by which fixpipe scales the 16 columns of a fractal, of 64 bits each."""


@dataclass(frozen=True)
class FixpipeWords:
    """Room for words by which fixpipe scales columns of C, in fractals of 16 columns.

    Attributes:
        columns: of C, of all of which L1 holds the words.
        room: that the buffer of fixpipe has.
    """

    columns: int
    room: int

    @property
    def together(self) -> bool:
        """Whether the buffer of fixpipe holds the words of all columns; else they come tile by
        tile."""
        return self.columns <= self.room

    def held_bytes(self, columns: int) -> int:
        """Bytes of the buffer of fixpipe that tiles of so many fractals of columns need."""
        return (self.columns if self.together else columns) * WORDS_BYTES


@dataclass(frozen=True)
class Extra:
    """An input besides A and B.

    Attributes:
        value: of the program.
        row: whether it is one row of C; else it has the shape of C.
        batch: whether each matrix has its own.
        fractals: whether a row lies in fractals, as the first of 16 rows.
        column: whether the cube adds it to sums, so that the program does not: a row of f32, or of
            numbers that are digits of bytes (`operators.quantize.dequantize`).
        scale: whether it scales sums on their way out of L0C.
        blocks: of k that the cube adds it in.
        finite: whether it has no infinities, or sums are lost anyway where it has.
        matrix: whether the cube adds it to sums, as `column` says of a row: f16 of C's shape, times
            ones on a diagonal, which would spread infinities.
        table: fractals of a row for which the bias table has room, if mads begin with the row from
            there; else 0.
        words: of words that scale sums on their way out of L0C, the room that they take; else None.
        members: of the group that it is for.
    """

    value: Value
    row: bool
    batch: bool
    column: bool = False
    scale: bool = False
    blocks: int = 1
    finite: bool = False
    matrix: bool = False
    table: int = 0
    words: FixpipeWords | None = None
    members: tuple[int, ...] = ()
    fractals: bool = False

    @property
    def apart(self) -> bool:
        """Whether it has the shape of C and comes part by part."""
        return not self.row and not self.matrix

    @property
    def beside(self) -> bool:
        """Whether it is a row that the program reads."""
        return self.row and not (self.column or self.scale or self.table or self.words)

    @property
    def digits(self) -> bool:
        """Whether it is a row of numbers that are digits of bytes."""
        return self.column and self.value.dtype == BYTE


def added_by_cube(
    program: VectorProgram,
    sums: Value,
    extras: Sequence[Extra],
    nz: bool,
    unrounded: bool = False,
) -> tuple[VectorProgram, list[Extra]] | None:
    """The program without what the cube adds to sums, and extras that say what that is: a row of
    f32, and in fractals a matrix of f16; None if there is neither.

    Sums are rounded next, and nothing else is done with them or with what they are added to.

    Args:
        unrounded: whether sums may as well leave as they are.
    """
    found: dict[bool, Extra] = {}
    served: dict[Value, tuple[int, ...]] = {}
    while (step := only_user(sums, program)) is not None and step.name == "vadd":
        (other,) = (value for value in step.sources if value != sums)
        way, made = [step], [step for step in program.steps if step.result == other]
        if made and is_widening(made[0]):
            way, other = [*made, step], made[0].sources[0]
        extra = next((x for x in extras if x.value == other and x.row not in found), None)
        alone = all(only_user(v, program) in way for v in (other, *(s.result for s in way[:-1])))
        if extra is None or not alone or not may_be_added(extra, nz):
            break
        found[extra.row], served[extra.value] = extra, joined(*(one.members for one in way))
        program = without(program, way, step.result, sums)
    rounded = unrounded or (step is not None and is_rounding(step))
    if not found or not rounded:
        return None
    marked = [
        replace(x, column=x.row, matrix=not x.row, members=served[x.value])
        if x in found.values()
        else x
        for x in extras
    ]
    return program, marked


def may_be_added(extra: Extra, nz: bool) -> bool:
    """Whether the cube can add an extra to sums of f32."""
    if extra.row:
        return extra.value.dtype == "f32"
    return nz and extra.finite and extra.value.dtype == "f16"


def begun_with_row(
    program: VectorProgram, sums: Value, extras: Sequence[Extra], fractals: int
) -> tuple[VectorProgram, list[Extra], Value] | None:
    """The program without the addition of a row of the type of sums, if that is all that is done
    with these: mads begin with the row; extras that say so, and the value that sums then are.

    Args:
        fractals: of a row for which the bias table has room.
    """
    step = only_user(sums, program)
    if step is None or step.name != "vadd":
        return None
    (other,) = (value for value in step.sources if value != sums)
    found = next((x for x in extras if x.value == other and x.row), None)
    if found is None or other.dtype != sums.dtype or only_user(other, program) != step:
        return None
    marked = replace(found, table=fractals, members=step.members)
    changed = [marked if extra is found else extra for extra in extras]
    return without(program, [step], step.result, sums), changed, step.result
