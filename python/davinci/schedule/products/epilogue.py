"""What is done to parts of C between L0C and GM: elementwise operators on tiles in UB.

    Nz     a part is [columns][rows][16], flat; a row of C is [columns][lanes], its 16 elements
           repeated to fill a repeat
    rows   a part is [rows][columns 16], an odd number of blocks apart; a row of C is [columns 16]
    dense  a part is [rows][width], whole rows of C without gaps; a row of C is one for each of them

A number that is the same everywhere is a repeat, or a row, of it. Sources may be read with strides
of 0, so nothing is repeated further.

In Nz bytes cross GM in fractals of 32 columns, so they lie in **pairs**, [columns / 2][rows][32],
in UB as well, and so does what they are converted from or to: f16, whose blocks may go anywhere.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.operators.vector_program import Step, Value, VectorProgram
from davinci.schedule.products.dense_rows import TURNED, DenseRows, fractal_rows, scratch_bytes
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, REPEAT_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

UNCHANGED = -0.0
"""What changes no number by addition."""

BYTE = "s8"

DEQUANTIZE = "dequantize"
"""A step that is no operation of the vector unit: sums become f16 on their way out of L0C."""

MATRIX_BUFFERS = 2
"""Columns of fractals of a matrix that L0A holds."""

PAIR = 2
"""Columns of fractals of 16 that a fractal of bytes has."""


@dataclass(frozen=True)
class Extra:
    """An input besides A and B.

    Attributes:
        value: of the program.
        row: whether it is one row of C; else it has the shape of C.
        batch: whether each matrix has its own.
        column: whether the cube adds it to sums, so that the program does not: a row of f32, or of
            numbers that are digits of bytes (`operators.quantize.dequantize`).
        scale: whether it scales sums on their way out of L0C.
        blocks: of k that the cube adds it in.
        finite: whether it has no infinities, or sums are lost anyway where it has.
        matrix: whether the cube adds it to sums, as `column` says of a row: f16 of C's shape, times
            ones on a diagonal, which would spread infinities.
    """

    value: Value
    row: bool
    batch: bool
    column: bool = False
    scale: bool = False
    blocks: int = 1
    finite: bool = False
    matrix: bool = False

    @property
    def apart(self) -> bool:
        """Whether it has the shape of C and comes part by part."""
        return not self.row and not self.matrix

    @property
    def beside(self) -> bool:
        """Whether it is a row that the program reads."""
        return self.row and not self.column and not self.scale

    @property
    def digits(self) -> bool:
        """Whether it is a row of numbers that are digits of bytes."""
        return self.column and self.value.dtype == BYTE


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
    """

    program: VectorProgram
    sums: Value
    extras: tuple[Extra, ...]
    nz: bool
    unmoved: VectorProgram
    width: int = 0

    @staticmethod
    def of(
        program: VectorProgram, sums: Value, extras: Sequence[Extra], nz: bool, cube: bool = False
    ) -> Epilogue:
        """With sums rounded to f16 in L0C where nothing else is done with them first, and brought
        to rows where they are used more than once.

        Args:
            cube: whether the cube can add a row to sums; where these are rounded then, it does.
        """
        for step in program.steps:
            if step.name == DEQUANTIZE:
                steps = [other for other in program.steps if other is not step]
                program = replace(program, steps=steps, inputs=[step.result, *program.inputs[1:]])
                return Epilogue.of(program, step.result, extras, nz)
        program = rounded_early(program)
        program = inverted(program)
        if cube and (added := added_by_cube(program, sums, extras, nz)) is not None:
            program, extras = added
        steps = list(program.steps)
        users = [step for step in steps if sums in step.sources]
        if len(users) == 1 and sums not in program.outputs and is_rounding(users[0]):
            steps.remove(users[0])
            half = users[0].result
            program = replace(program, steps=steps, inputs=[half, *program.inputs[1:]])
            return Epilogue.of(program, half, extras, nz)
        if nz:
            program = apart(program, (sums, *(extra.value for extra in extras)))
        unmoved = program
        if not nz and (len(users) != 1 or sums in program.outputs):
            moved = Value(1 + max(v.number for v in values_of(program)), sums.dtype)
            first = copied(sums, moved)
            steps = [first, *(with_source(step, sums, moved) for step in steps)]
            outputs = [moved if value == sums else value for value in program.outputs]
            program = replace(program, steps=steps, outputs=outputs)
        return Epilogue(program, sums, tuple(extras), nz, unmoved)

    def dense(self, width: int) -> Epilogue:
        """The same on dense parts."""
        return replace(self, program=self.unmoved, width=width)

    @cached_property
    def paired(self) -> frozenset[Value]:
        """Values that lie in pairs of columns of fractals."""
        if not self.nz:
            return frozenset()
        found = {extra.value for extra in self.extras} | set(self.program.outputs)
        found = {value for value in found if value.dtype == BYTE}
        for step in self.program.steps:
            if step.name == "vconv" and found.intersection((*step.sources, step.result)):
                found |= {*step.sources, step.result}
        return frozenset(found)

    @property
    def columns_together(self) -> int:
        """Columns of fractals that no part, tile or share parts."""
        values = [*(extra.value for extra in self.extras), *self.program.outputs]
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
        program = self.program
        last = {v: i for i, step in enumerate(program.steps) for v in step.sources}
        held = {step.result for step in program.steps} - set(program.outputs)
        free: dict[str, list[int]] = {}
        counts: dict[str, int] = {}
        slots: dict[Value, tuple[str, int]] = {}
        for i, step in enumerate(program.steps):
            done = [v for v in dict.fromkeys(step.sources) if v in slots and last[v] == i]
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
        return slots

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
            return columns * rows * SIDE * SIDE
        return rows * SIDE * self.pitch(columns, dtype)

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
        sums = columns * rows * SIDE * SIDE * DTYPES[self.sums.dtype].itemsize
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
        numbers = [v.dtype for v in self.program.constants.values()]
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

    @property
    def columns(self) -> int:
        """Blocks of k in which the cube adds a row."""
        return sum(extra.blocks for extra in self.extras if extra.column)

    @property
    def scale(self) -> Extra | None:
        """What scales sums on their way out of L0C."""
        return next((extra for extra in self.extras if extra.scale), None)

    @property
    def matrices(self) -> int:
        """How many matrices the cube adds."""
        return sum(extra.matrix for extra in self.extras)

    def taken(self, memory: str, m: int, n: int) -> int:
        """Fractals of L1, L0A or L0B that what the cube adds to a tile of m x n fractals takes."""
        fractals = {
            "L1": self.columns * (2 * n + 1) + self.matrices * (2 * m * n + 1),
            "L0A": (self.columns + MATRIX_BUFFERS * self.matrices) * m,
            "L0B": self.columns * n + self.matrices,
        }
        return fractals[memory]

    def column_bytes(self, columns: int) -> int:
        """Bytes of UB in which a row of a tile of so many fractal columns becomes a column, and
        ones on a diagonal are made."""
        size = self.matrices * FRACTAL_BYTES
        if any(extra.digits for extra in self.extras):
            return size + FRACTAL_BYTES
        size += self.columns * (columns * SIDE * (3 * 4 + 2 * 2 + BLOCK_BYTES) + FRACTAL_BYTES)
        return size

    def operands(self, step: Step, columns: int, rows: int) -> tuple[list[int], list[list[int]]]:
        """The shape in which a step walks a part; strides of its sources and of its result."""
        values = [*step.sources, step.result]
        if self.width:
            return [self.elements(columns, rows, "")], [[1] for _ in values]
        if self.nz:
            pairs = [value in self.paired for value in values]
            if any(pairs) and not all(pairs):
                return self._in_pairs(values, columns, rows)
            once = [self.is_repeated(value) for value in values]
            if not any(once):
                return [columns * rows * SIDE * SIDE], [[1] for _ in values]
            lanes = REPEAT_BYTES // max(DTYPES[v.dtype].itemsize for v in values)
            of_column = rows * SIDE * SIDE
            strides = [[of_column, lanes, 1] for _ in values]
            for i, value in enumerate(values):
                if value in self.program.constants.values():
                    strides[i] = [0, 0, 1]
                elif once[i]:
                    strides[i] = [self.row_elements(1, value.dtype), 0, 1]
            return [columns, of_column // lanes, lanes], strides
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
        height = rows * SIDE
        of_column = height * SIDE
        strides = []
        for value in values:
            if value in self.program.constants.values():
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
        return self.is_row(value) or value in self.program.constants.values()

    def is_row(self, value: Value) -> bool:
        return any(extra.row and extra.value == value for extra in self.extras)


def is_rounding(step: Step) -> bool:
    conversion = (step.name, step.sources[0].dtype, step.result.dtype)
    return conversion == ("vconv", "f32", "f16") and step.attributes.get("round") in (None, "none")


def copied(source: Value, result: Value) -> Step:
    """result = source."""
    if source.dtype in ("f16", "f32"):
        return Step("vadds", (source,), UNCHANGED, result, {})
    return Step("vmax", (source, source), None, result, {})


def apart(program: VectorProgram, given: Sequence[Value]) -> VectorProgram:
    """The program with copies of what is given where bytes are made of it: the copies lie in pairs.

    vconv f16 -> s8, an output   ->   vadds f16, vconv f16 -> s8
    """
    numbers = itertools.count(1 + max((v.number for v in values_of(program)), default=0))
    steps = []
    for step in program.steps:
        leaves = step.result.dtype == BYTE and step.result in program.outputs
        if leaves and step.sources[0] in given:
            copy = Value(next(numbers), step.sources[0].dtype)
            steps.append(copied(step.sources[0], copy))
            step = with_source(step, step.sources[0], copy)
        steps.append(step)
    return replace(program, steps=steps)


MONOTONE = frozenset({"vrelu"})
"""Steps that give the same of rounded numbers as rounding gives of their results."""


def rounded_early(program: VectorProgram) -> VectorProgram:
    """The program with roundings in front of what may as well be done to rounded numbers.

    vrelu f32, vconv f32 -> f16   ->   vconv f32 -> f16, vrelu f16
    """
    steps, made = list(program.steps), {step.result: step for step in program.steps}
    uses = Counter(value for step in steps for value in step.sources)
    uses.update(program.outputs)
    numbers = itertools.count(1 + max(value.number for value in values_of(program)))
    for rounding in filter(is_rounding, program.steps):
        before = made.get(rounding.sources[0])
        if before is None or before.name not in MONOTONE or uses[before.result] > 1:
            continue
        half = Value(next(numbers), rounding.result.dtype)
        steps[steps.index(before)] = replace(rounding, sources=before.sources, result=half)
        steps[steps.index(rounding)] = replace(before, sources=(half,), result=rounding.result)
    return replace(program, steps=steps)


def inverted(program: VectorProgram) -> VectorProgram:
    """The program with products for quotients by a number that are rounded to f16 and nothing else.

    vdiv f32 by n, vconv f32 -> f16   ->   vmuls f32 by 1 / n, vconv f32 -> f16

    A product is an ulp of f32 off at most, a thousandth of what rounding takes.
    """
    numbers = {value: number for (_, number), value in program.constants.items()}
    rounded = {step.sources[0] for step in program.steps if is_rounding(step)}
    uses = Counter(value for step in program.steps for value in step.sources)
    uses.update(program.outputs)

    def cheaper(step: Step) -> Step:
        legal = step.name == "vdiv" and step.result in rounded and uses[step.result] == 1
        if not legal or (number := numbers.get(step.sources[1], 0.0)) == 0:
            return step
        return replace(step, name="vmuls", sources=step.sources[:1], scalar=1 / number)

    steps = [cheaper(step) for step in program.steps]
    read = {value for step in steps for value in step.sources}
    constants = {key: value for key, value in program.constants.items() if value in read}
    return replace(program, steps=steps, constants=constants)


def added_by_cube(
    program: VectorProgram, sums: Value, extras: Sequence[Extra], nz: bool
) -> tuple[VectorProgram, list[Extra]] | None:
    """The program without what the cube adds to sums, and extras that say what that is: a row of
    f32, and in fractals a matrix of f16; None if there is neither.

    Sums of f32 are rounded next, and nothing else is done with them or with what they are added to.
    """
    wide, here = sums.dtype == "f32", sums
    found: dict[bool, Extra] = {}
    while (step := only_user(here, program)) is not None and step.name == "vadd":
        (other,) = (value for value in step.sources if value != here)
        way, made = [step], [step for step in program.steps if step.result == other]
        if made and is_widening(made[0]):
            way, other = [*made, step], made[0].sources[0]
        extra = next((x for x in extras if x.value == other and x.row not in found), None)
        alone = all(only_user(v, program) in way for v in (other, *(s.result for s in way[:-1])))
        if extra is not None and alone and may_be_added(extra, nz, wide):
            found[extra.row] = extra
            program = without(program, way, step.result, here)
        elif wide:
            break
        else:
            here = step.result
    if not found or (wide and (step is None or not is_rounding(step))):
        return None
    marked = [
        replace(x, column=x.row, matrix=not x.row) if x in found.values() else x for x in extras
    ]
    return program, marked


def only_user(value: Value, program: VectorProgram) -> Step | None:
    """The step that reads a value, if nobody else needs it."""
    users = [step for step in program.steps for source in step.sources if source == value]
    return users[0] if len(users) == 1 and value not in program.outputs else None


def may_be_added(extra: Extra, nz: bool, wide: bool) -> bool:
    """Whether the cube can add an extra to sums, `wide` ones of f32, and should."""
    if extra.row:
        return wide and extra.value.dtype == "f32"
    return wide and nz and extra.finite and extra.value.dtype == "f16"


def without(
    program: VectorProgram, steps: Sequence[Step], result: Value, instead: Value
) -> VectorProgram:
    """The program without steps, and one value instead of their result."""
    kept = [with_source(step, result, instead) for step in program.steps if step not in steps]
    outputs = [instead if value == result else value for value in program.outputs]
    return replace(program, steps=kept, outputs=outputs)


def is_widening(step: Step) -> bool:
    return (step.name, step.sources[0].dtype, step.result.dtype) == ("vconv", "f16", "f32")


def values_of(program: VectorProgram) -> list[Value]:
    results = [step.result for step in program.steps]
    return [*program.inputs, *program.constants.values(), *results]


def with_source(step: Step, old: Value, new: Value) -> Step:
    return replace(step, sources=tuple(new if v == old else v for v in step.sources))


def plain(dtype: str, nz: bool) -> Epilogue:
    """Nothing is done: sums leave as they are, rounded to `dtype`."""
    program = VectorProgram()
    sums = program.input(dtype)
    program.output(sums)
    return Epilogue.of(program, sums, (), nz)
