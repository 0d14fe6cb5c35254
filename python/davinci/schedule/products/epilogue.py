"""What is done to parts of C between L0C and GM: elementwise operators on tiles in UB.

    Nz     a part is [columns][rows][16], flat; a row of C is [columns][lanes], its 16 elements
           repeated to fill a repeat
    rows   a part is [rows][columns 16], an odd number of blocks apart; a row of C is [columns 16]
    dense  a part is [rows][width], whole rows of C without gaps; a row of C is one for each of them

A number that is the same everywhere is a repeat, or a row, of it. Sources may be read with strides
of 0, so nothing is repeated further.

In Nz bytes cross GM in fractals of 32 columns, so they lie in **pairs**, [columns / 2][rows][32],
in UB as well. What they are converted from or to lies in pairs too, or, in parts of many columns,
**apart**, as sums come: a repeat of a conversion then takes 16 elements of each of 8 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.operators.vector_program import TileStep, Value, VectorProgram
from davinci.schedule.products.dense_rows import TURNED, DenseRows, fractal_rows, scratch_bytes
from davinci.schedule.products.extras import (
    BUFFERS,
    WORDS_BYTES,
    Company,
    Extra,
    FixpipeWords,
    added_by_cube,
)
from davinci.schedule.products.rewrites import (
    BYTE,
    begun,
    copied,
    in_pairs,
    inverted,
    is_rounding,
    multiply_added,
    only_user,
    rounded_early,
    values_of,
    with_source,
)
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, REPEAT_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE

DEQUANTIZE = "dequantize"
SCALE_SUMS, SCALE_SUMS_OF_RELU = "scale_sums", "scale_sums_of_relu"
ON_LEAVING = (DEQUANTIZE, SCALE_SUMS, SCALE_SUMS_OF_RELU)
"""Steps that are no operations of the vector unit: sums are scaled on their way out of L0C, to UB
as f16, or by fixpipe as f16 or bytes, perhaps with negative ones made 0 before."""

MATRIX_FRACTALS = 32
"""Fractals of a matrix that go to L0A at once where a column has no fewer, so that the fixed cycles
of a load matter little."""

PAIR = 2
"""Columns of fractals of 16 that a fractal of bytes has."""

APART = 2
"""Blocks between columns besides their own: those of a repeat are in every other bank group, and
those of the next repeat in the others, where what is written meanwhile does not meet them."""

COLUMNS = 8
"""Columns of f16 of which a repeat of a conversion takes a block each."""


@dataclass(frozen=True)
class Epilogue:
    """A program for parts of C.

    Attributes:
        program: its outputs are what leaves.
        sums: the value that comes from L0C.
        extras: its other inputs.
        nz: whether C lies in fractals.
        unmoved: the program without what brings sums to rows.
        width: elements of a row of C, where parts are dense.
        rectified: whether negative sums become 0 on their way out of L0C.
        apart: whether what becomes bytes, or is made of them, lies in columns of 16.
    """

    program: VectorProgram
    sums: Value
    extras: tuple[Extra, ...]
    nz: bool
    unmoved: VectorProgram
    width: int = 0
    rectified: bool = False
    apart: bool = False

    @staticmethod
    def of(
        program: VectorProgram,
        sums: Value,
        extras: Sequence[Extra],
        nz: bool,
        cube: bool = False,
        pairs: bool = False,
        unrounded: bool = False,
    ) -> Epilogue:
        """With sums rounded to f16 in L0C where nothing else is done with them first, and brought
        to rows where they are used more than once.

        Args:
            cube: whether the cube can add a row to sums; where these are rounded then, it does.
            pairs: whether sums come in pairs where bytes are made of them.
            unrounded: whether the cube adds to sums, too, that are not rounded next.
        """
        for step in program.steps:
            if step.name in ON_LEAVING:
                made = Epilogue.of(begun(program, step), step.result, extras, nz)
                return replace(made, rectified=step.name == SCALE_SUMS_OF_RELU)
        program = rounded_early(program)
        program = inverted(program)
        added = added_by_cube(program, sums, extras, nz, unrounded) if cube else None
        if added is not None:
            program, extras = added
        first = only_user(sums, program)
        if first is not None and is_rounding(first):
            return Epilogue.of(begun(program, first), first.result, extras, nz)
        users = [step for step in program.steps if sums in step.sources]
        unmoved = program
        if nz:
            given = [extra.value for extra in extras]
            program = in_pairs(program, given if pairs else [sums, *given])
        if not nz and (len(users) != 1 or sums in program.outputs):
            moved = Value(1 + max(v.number for v in values_of(program)), sums.dtype)
            others = (with_source(step, sums, moved) for step in program.steps)
            steps = [copied(sums, moved, program.readers(sums)), *others]
            outputs = [moved if value == sums else value for value in program.outputs]
            program = replace(program, steps=steps, outputs=outputs)
        return Epilogue(program, sums, tuple(extras), nz, unmoved)

    def rectify(self, rows: bool = False) -> Epilogue:
        """The same with negative sums made 0 on their way out of L0C where that is what is done
        with them first.

        Args:
            rows: whether that may be on the way to rows as well, not to fractals alone.
        """
        step = only_user(self.sums, self.program)
        legal = (self.nz or rows) and self.scale is None and self.words is None
        if step is None or step.name != "vrelu" or not legal:
            return self
        made = Epilogue.of(begun(self.program, step), step.result, self.extras, self.nz)
        return replace(made, rectified=True)

    @property
    def changes(self) -> bool:
        """Whether sums that are 0 may leave as something else."""
        added = self.columns + self.matrices > 0 or self.bias is not None
        return bool(self.program.steps) or self.rectified or added

    def dense(self, width: int) -> Epilogue:
        """The epilogue of parts whose rows of `width` elements follow each other without gaps."""
        return replace(self, program=self.unmoved, width=width)

    def of_parts(self, columns: int) -> Epilogue:
        """The same for parts of so many columns: in Nz, bytes lie as that takes fewer repeats."""
        if not self.nz or self.columns_together == 1:
            return self
        other = self._in_columns
        share = columns / round_up(columns, COLUMNS)
        each = [1 / share if step.name == "vconv" else 1 for step in other.program.steps]
        return other if sum(each) <= len(self.program.steps) else self

    @cached_property
    def _in_columns(self) -> Epilogue:
        rows = [extra.value for extra in self.extras if extra.row]
        return replace(self, program=multiply_added(self.unmoved, rows), apart=True)

    @cached_property
    def paired(self) -> frozenset[Value]:
        """Values that lie in pairs of columns of fractals."""
        if not self.nz:
            return frozenset()
        found = {extra.value for extra in self.extras} | set(self.program.outputs)
        found = {value for value in found if value.dtype == BYTE}
        if self.apart:
            return frozenset(found)
        for step in self.program.steps:
            if step.name == "vconv" and found.intersection((*step.sources, step.result)):
                found |= {*step.sources, step.result}
        return frozenset(found)

    def lanes(self, value: Value) -> int:
        """Columns of a fractal of a value of C."""
        return PAIR * SIDE if value in self.paired else SIDE

    @property
    def columns_together(self) -> int:
        """Columns of fractals that no part, tile or share parts: bytes have two in one. What the
        cube adds as a column has its own fractals, of 16 columns each."""
        extras = (extra.value for extra in self.extras if not extra.column)
        values = [*extras, *self.program.outputs]
        return PAIR if any(value.dtype == BYTE for value in values) else 1

    def packing(self, columns: int, rows: int) -> DenseRows:
        """How sums, [columns][rows][16], become dense."""
        height, itemsize = rows * SIDE, DTYPES[self.sums.dtype].itemsize
        pitch = SIDE * itemsize // BLOCK_BYTES
        way = fractal_rows(height, columns, self.width, itemsize, pitch, height * pitch)
        return replace(way, places=way.places[: ceil_div(self.width * itemsize, BLOCK_BYTES)])

    def repeating(self, rows: int, dtype: str) -> DenseRows:
        """How a row becomes dense rows that are all alike."""
        itemsize = DTYPES[dtype].itemsize
        blocks = ceil_div(self.width * itemsize, BLOCK_BYTES)
        return DenseRows(rows * SIDE, self.width, itemsize, tuple(range(blocks)), 0, same=True)

    def scratch(self, columns: int, rows: int) -> dict[str, int]:
        """Bytes of the buffers in UB in which parts become dense, or rows end with a block."""
        if not self.width:
            return {TURNED: 2 * rows * SIDE * BLOCK_BYTES}
        ways = [self.repeating(rows, x.value.dtype) for x in self.extras if x.beside]
        return scratch_bytes([self.packing(columns, rows), *ways])

    def slots(self) -> dict[Value, tuple[str, int]]:
        """Buffers (type, number) of what is neither input nor output nor constant."""
        program, places = self.program, dict[Value, Value]()
        for step in program.steps:
            if step.accumulates:
                places[step.result] = places.get(step.sources[0], step.sources[0])
        last = {places.get(v, v): i for i, step in enumerate(program.steps) for v in step.sources}
        held = {step.result for step in program.steps} - {*program.outputs, *places}
        free: dict[str, list[int]] = {}
        counts: dict[str, int] = {}
        slots: dict[Value, tuple[str, int]] = {}
        for i, step in enumerate(program.steps):
            sources = dict.fromkeys(places.get(v, v) for v in step.sources)
            done = [v for v in sources if v in slots and last[v] == i]
            # What lies in another order than what it is made of is not written over that.
            alike = [v for v in done if (v in self.paired) == (step.result in self.paired)]
            for source in alike:
                free[source.dtype].append(slots[source][1])
            if step.result in held:
                numbers, dtype = free.setdefault(step.result.dtype, []), step.result.dtype
                if not numbers:
                    numbers.append(counts.get(dtype, 0))
                    counts[dtype] = numbers[0] + 1
                slots[step.result] = dtype, numbers.pop()
            for source in done:
                if source not in alike:
                    free[source.dtype].append(slots[source][1])
        return slots | {value: slots[at] for value, at in places.items() if at in slots}

    @cached_property
    def _held(self) -> tuple[str, ...]:
        """Types of the buffers of what is neither input nor output nor constant."""
        return tuple(dtype for dtype, _ in set(self.slots().values()))

    def pitch(self, columns: int, dtype: str) -> int:
        """Elements from row to row of a part in rows: an odd number of blocks."""
        itemsize = DTYPES[dtype].itemsize
        return (ceil_div(columns * SIDE * itemsize, BLOCK_BYTES) | 1) * BLOCK_BYTES // itemsize

    def elements(self, columns: int, rows: int, dtype: str) -> int:
        """Elements of a buffer for `columns` x `rows` fractals."""
        if self.width:
            return rows * SIDE * self.width
        if self.nz:
            return columns * self.of_column(rows)
        return rows * SIDE * self.pitch(columns, dtype)

    def of_column(self, rows: int) -> int:
        """Elements from one column of fractals of a part to the next, of 16 lanes each."""
        return (rows * SIDE + APART * self.apart) * SIDE

    @property
    def cycles_each(self) -> int:
        """Cycles of the vector unit for a fractal of sums, at a repeat a cycle."""
        kinds = [[v.dtype for v in (*step.sources, step.result)] for step in self.program.steps]
        widths = [max(DTYPES[dtype].itemsize for dtype in dtypes) for dtypes in kinds]
        return (DTYPES["f32"].itemsize + sum(widths)) * SIDE * SIDE // REPEAT_BYTES

    def part_bytes(self, columns: int, rows: int, loads: int, leaving: int) -> int:
        """Bytes of UB for parts.

        Args:
            loads: buffers of each extra of the shape of C.
            leaving: of each output.
        """
        scratch = 0 if self.nz else sum(self.scratch(columns, rows).values())

        def size(values: Sequence[str]) -> int:
            return sum(DTYPES[v].itemsize * self.elements(columns, rows, v) for v in values)

        outputs = self.program.outputs
        sums = columns * self.of_column(rows) * DTYPES[self.sums.dtype].itemsize
        turns = leaving if self.sums in outputs else 1
        if self.width:
            sums += turns * size([self.sums.dtype])
        else:
            sums *= turns
        return (
            sums
            + scratch
            + loads * size([x.value.dtype for x in self.extras if x.apart])
            + size(self._held)
            + leaving * size([v.dtype for v in outputs if v != self.sums])
        )

    def row_elements(self, columns: int, dtype: str) -> int:
        """Elements of a buffer for a row of C of so many fractals: in Nz a repeat for each."""
        return columns * (REPEAT_BYTES // DTYPES[dtype].itemsize if self.nz else SIDE)

    def tile_bytes(self, columns: int, part_rows: int = 0) -> int:
        """Bytes of UB for rows of a tile of so many fractal columns, two of each, and numbers; of
        dense parts one of each, for all rows of a part."""
        rows = [x.value.dtype for x in self.extras if x.beside]
        numbers = [v.dtype for v in self.program.constants]
        if self.width:
            each = [self.elements(columns, part_rows, v) for v in (*rows, *numbers)]
            each += [columns * SIDE for _ in rows]
            kinds = (*rows, *numbers, *rows)
            size = sum(DTYPES[v].itemsize * n for v, n in zip(kinds, each, strict=True))
            return size + self.column_bytes(columns)
        rows *= 2
        size = self.column_bytes(columns)
        size += sum(2 * columns * BLOCK_BYTES for extra in self.extras if extra.scale)
        size += sum(DTYPES[v].itemsize * self.row_elements(columns, v) for v in rows)
        wide = 1 if self.nz else columns
        return size + sum(DTYPES[v].itemsize * self.row_elements(wide, v) for v in numbers)

    @cached_property
    def columns(self) -> int:
        """Blocks of k in which the cube adds a row."""
        return sum(extra.blocks for extra in self.extras if extra.column)

    @cached_property
    def scale(self) -> Extra | None:
        """The operand that scales sums on their way out of L0C, if there is one."""
        return next((extra for extra in self.extras if extra.scale), None)

    @cached_property
    def words(self) -> FixpipeWords | None:
        """The room that words of columns take by which fixpipe scales sums, if it does."""
        return next((extra.words for extra in self.extras if extra.words), None)

    @cached_property
    def most_columns(self) -> int:
        """Fractals of columns of a tile for which tables have room that are filled for each tile;
        0 if there are none."""
        rooms = [extra.table for extra in self.extras if extra.table]
        if self.words is not None and not self.words.together:
            rooms.append(self.words.room)
        return min(rooms, default=0)

    @cached_property
    def bias(self) -> Extra | None:
        """The row that mads begin with, if there is one."""
        return next((extra for extra in self.extras if extra.table), None)

    def tables(self, columns: int) -> int:
        """Rows of tiles of so many fractals that the bias table holds, which take turns; 0 where
        mads begin with none."""
        return 0 if self.bias is None else min(BUFFERS, self.bias.table // columns)

    @cached_property
    def matrices(self) -> int:
        """How many matrices the cube adds."""
        return sum(extra.matrix for extra in self.extras)

    def company(self, rows: int, columns: int) -> Company:
        """What tiles of so many rows and columns of fractals are combined with."""
        return Company(
            apart=any(extra.apart for extra in self.extras),
            rows=any(extra.row and not (extra.table or extra.words) for extra in self.extras),
            batch=any(extra.row and extra.batch for extra in self.extras),
            added=self.columns > 0,
            digits=any(extra.digits for extra in self.extras),
            columns=self.matrix_columns(rows),
            tables=self.tables(columns),
        )

    def matrix_columns(self, rows: int) -> int:
        """Columns of a matrix that the cube adds at once to tiles of so many rows of fractals."""
        return max(1, MATRIX_FRACTALS // rows) if self.matrices else 0

    def taken(self, memory: str, m: int, n: int) -> int:
        """Fractals of L1, L0A or L0B that what the cube adds to a tile of m x n fractals takes."""
        if not (self.columns or self.matrices or self.bias or self.words):
            return 0
        rows = BUFFERS * ceil_div(self.row_bytes(n), FRACTAL_BYTES)
        if self.words is not None:
            rows += ceil_div(self.words.columns * WORDS_BYTES, FRACTAL_BYTES)
        fractals = {
            "L1": self.columns * (2 * n + 1) + self.matrices * (2 * m * n + 1) + rows,
            "L0A": (self.columns + BUFFERS * self.matrix_columns(m)) * m,
            "L0B": self.columns * n + self.matrices,
        }
        return fractals[memory]

    def row_bytes(self, columns: int) -> int:
        """Bytes of so many fractals of the row that mads begin with."""
        return 0 if self.bias is None else columns * SIDE * DTYPES[self.bias.value.dtype].itemsize

    def column_bytes(self, columns: int) -> int:
        """Bytes of UB in which a row of a tile of so many fractal columns becomes a column, and
        ones on a diagonal are made."""
        size = self.matrices * FRACTAL_BYTES
        if any(extra.digits for extra in self.extras):
            return size + FRACTAL_BYTES
        size += self.columns * (columns * SIDE * (3 * 4 + 2 * 2 + BLOCK_BYTES) + FRACTAL_BYTES)
        return size

    def operands(
        self, step: TileStep, columns: int, rows: int
    ) -> tuple[list[int], list[list[int]]]:
        """The shape in which a step walks a part; strides of its operands."""
        values = step.operands
        if self.width:
            return [self.elements(columns, rows, "")], [[1] for _ in values]
        if self.nz:
            pairs = [value in self.paired for value in values]
            if any(pairs) and not all(pairs):
                return self._in_pairs(values, columns, rows)
            once = [self.is_repeated(value) for value in values]
            size, of_column = rows * SIDE * SIDE, self.of_column(rows)
            if not any(once):
                return [columns, size], [[of_column, 1] for _ in values]
            lanes = REPEAT_BYTES // max(DTYPES[v.dtype].itemsize for v in values)
            strides = [[of_column, lanes, 1] for _ in values]
            for i, value in enumerate(values):
                if value in self.program.constants:
                    strides[i] = [0, 0, 1]
                elif once[i]:
                    strides[i] = [self.row_elements(1, value.dtype), 0, 1]
            return [columns, size // lanes, lanes], strides
        strides = [[self.pitch(columns, value.dtype), SIDE, 1] for value in values]
        for i, value in enumerate(values):
            if value == self.sums:
                strides[i] = [SIDE, rows * SIDE * SIDE, 1]
            elif self.is_repeated(value):
                strides[i] = [0, SIDE, 1]
        return [rows * SIDE, columns, SIDE], strides

    def _in_pairs(
        self, values: Sequence[Value], columns: int, rows: int
    ) -> tuple[list[int], list[list[int]]]:
        """A walk over [columns / 2][rows][2][16] of values of which some lie in pairs."""
        height, of_column = rows * SIDE, self.of_column(rows)
        strides = []
        for value in values:
            if value in self.program.constants:
                strides.append([0, 0, 0, 1])
            elif self.is_row(value):
                row = self.row_elements(1, value.dtype)
                strides.append([PAIR * row, 0, row, 1])
            elif value in self.paired:
                strides.append([PAIR * of_column, PAIR * SIDE, SIDE, 1])
            else:
                strides.append([PAIR * of_column, SIDE, of_column, 1])
        return [columns // PAIR, height, PAIR, SIDE], strides

    def is_repeated(self, value: Value) -> bool:
        """Whether a value is one row or one number."""
        return self.is_row(value) or value in self.program.constants

    def is_row(self, value: Value) -> bool:
        return any(extra.row and extra.value == value for extra in self.extras)


def plain(dtype: str, nz: bool, extras: Sequence[Extra] = ()) -> Epilogue:
    """Nothing is done: sums leave as they are, rounded or scaled to `dtype`.

    Args:
        extras: what the cube adds to them, or fixpipe scales them by.
    """
    program = VectorProgram()
    sums = program.input(dtype)
    program.output(sums)
    return Epilogue.of(program, sums, extras, nz)
