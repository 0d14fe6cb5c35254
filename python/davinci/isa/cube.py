"""The matrix unit: mad multiplies fractals of L0A and L0B into L0C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Field,
    Instruction,
    Operand,
    Pipe,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.halves import converted
from davinci.isa.unit_flags import check_unit_flag, unit_flag_field
from davinci.native import (
    Halves,
    Library,
    Singles,
    interleaved,
    multiply_add,
    put_row,
    row,
    rows,
    spread,
    unrolled,
)
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

FIELDS = (
    Field("m", 0, 11, doc="rows of A and C, in elements; 0: no operation; 1: A is a vector"),
    Field("k", 12, 23, doc="columns of A, rows of B, in elements; 0: no operation"),
    Field("n", 24, 35, doc="columns of B and C, in elements; 0: no operation"),
    unit_flag_field(55, 0),
    Field("init", 63, 63, doc="1: C = A*B; 0: C += A*B"),
)

K_ALIGN = Field(
    "k_align",
    61,
    61,
    doc="1: rows of A in L0A have whole pairs of fractals, of which the last one may not take part",
)
"""Of f32 only: what transposing loads of squares of 16 x 16 leave in L0A."""

EXACT_FRACTALS = 16
"""Fractals of k, 32 bytes each, up to which sums of products of bytes need at most the 24 bits that
single precision keeps: 255 * 128 * 512 < 2**24."""


class MadLayouts:
    """Layouts of one mad: A is Zz, B is Zn, C is Nz.

    A is [m1, k1, 16 m, c k], B [k1, n1, 16 n, c k], C [n1, m1, 16 m, 16 n], where c is 32 bytes'
    worth of elements and m, k, n are rounded up to whole fractals. With `a_nz` A is Nz,
    [k1, m1, 16 m, c k]. With the field `k_align` k1 is even in A, and only there.

    A of one row, m = 1, is no fractals but a vector, [k1, c k]: the rest of C's fractals is not
    meant to be read then. With `a_nz` it is fractals all the same.
    """

    def __init__(self, a: str, b: str, c: str, a_nz: bool = False) -> None:
        self.a, self.b, self.c = DTYPES[a], DTYPES[b], DTYPES[c]
        self.a_nz = a_nz
        self.columns = BLOCK_BYTES // self.a.itemsize

    def sizes(self, values: Values) -> tuple[int, int, int]:
        """(m1, k1, n1), all 0 if there is nothing to do."""
        m, k, n = values["m"], values["k"], values["n"]
        if not (m and k and n):
            return 0, 0, 0
        return ceil_div(m, SIDE), ceil_div(k, self.columns), ceil_div(n, SIDE)

    def is_vector(self, values: Values) -> bool:
        """True if A is one row, which L0A holds as a vector and not as fractals."""
        return values["m"] == 1 and not self.a_nz

    @staticmethod
    def pitch(values: Values, k1: int) -> int:
        """Fractals from one row of fractals of A in L0A to the next."""
        return k1 + k1 % 2 if values.get("k_align") else k1

    def regions(self, values: Values, registers: Registers) -> Accesses:
        m1, k1, n1 = self.sizes(values)
        fractal = SIDE * self.columns
        pitch = self.pitch(values, k1)
        dims = ((m1, pitch * FRACTAL_BYTES),) if pitch != k1 else ()
        count = k1 * fractal if dims else m1 * k1 * fractal
        if self.is_vector(values):
            dims, count = (), k1 * self.columns
        a = Access(Space.L0A, values["a"], dims, count, self.a)
        b = Access(Space.L0B, values["b"], (), k1 * n1 * fractal, self.b)
        c = Access(Space.L0C, values["c"], (), m1 * n1 * SIDE * SIDE, self.c)
        return ([a, b] if values["init"] else [a, b, c]), [c]

    def compute(
        self, values: Values, registers: Registers, arrays: Sequence[Array]
    ) -> Sequence[Array]:
        m1, k1, n1 = self.sizes(values)
        a, b = arrays[0], arrays[1]
        if self.is_vector(values):
            fractals: Array = np.zeros((k1, SIDE, self.columns), self.a)
            fractals[:, 0] = a.reshape(k1, self.columns)
            a = fractals.reshape(-1)
        if self.a_nz:
            by_columns = a.reshape(k1, m1, SIDE * self.columns)
            a = np.ascontiguousarray(by_columns.transpose(1, 0, 2)).reshape(-1)
        start: Array = np.zeros(m1 * n1 * SIDE * SIDE, self.c) if values["init"] else arrays[2]
        if self.a == np.float32:
            return [self._in_single_precision(a, b, start, (m1, k1, n1))]
        space: Array = np.empty(a.size + 2 * b.size, np.float32)
        if self.a == np.float16:
            sums = start.astype(np.float32)
            LIBRARY.call("multiply_halves", a, b, sums, space, m1, k1, n1)
            return [converted(sums, self.c) if self.c == np.float16 else sums]
        space[: a.size], space[a.size + b.size :] = a, b
        LIBRARY.call("turn", space, a.size + b.size, a.size, k1 * n1, self.columns)
        total = start.copy()
        if self.c == np.float32:
            LIBRARY.call("multiply", space, total, m1, k1, n1, self.columns, 0, k1)
            return [total]
        for first in range(0, k1, EXACT_FRACTALS):
            sums = np.zeros(total.size, np.float32)
            last = min(first + EXACT_FRACTALS, k1)
            LIBRARY.call("multiply", space, sums, m1, k1, n1, self.columns, first, last)
            total += sums.astype(np.int32)
        return [total]

    def _in_single_precision(
        self, a: Array, b: Array, start: Array, sizes: tuple[int, int, int]
    ) -> Array:
        """C + A * B of f32: products and sums of a fractal in f32, then added to C."""
        m1, k1, n1 = sizes
        left = a.reshape(m1, k1, SIDE, self.columns)
        right = b.reshape(k1, n1, SIDE, self.columns)
        total = start.reshape(n1, m1, SIDE, SIDE).copy()
        for k in range(k1):
            total += np.einsum("mik,njk->nmij", left[:, k], right[k])
        return total.reshape(-1)


class WithBias(MadLayouts):
    """Layouts of a mad that begins with a bias: a number of the type of C for each column, in BT,
    of whole fractals."""

    def regions(self, values: Values, registers: Registers) -> Accesses:
        (a, b), written = super().regions({**values, "init": 1}, registers)
        _, _, n1 = self.sizes(values)
        return [a, b, Access(Space.BT, values["bias"], (), n1 * SIDE, self.c)], written

    def compute(
        self, values: Values, registers: Registers, arrays: Sequence[Array]
    ) -> Sequence[Array]:
        a, b, bias = arrays
        m1, _, n1 = self.sizes(values)
        start = np.broadcast_to(bias.reshape(n1, 1, SIDE), (n1, m1 * SIDE, SIDE)).reshape(-1)
        return super().compute({**values, "init": 0}, registers, [a, b, start])


LIBRARY = Library()

GROUP = 8
"""Rows of C that are computed together: their sums of a fractal stay in registers."""


@LIBRARY.entry
def turn(space: Singles, source: int, result: int, fractals: int, columns: int) -> None:
    """Transposes fractals of [16 n, columns k], in squares of 16: four times, lines of the upper
    half are interleaved with those of the lower one."""
    lines = rows(SIDE)
    mixed = rows(SIDE)
    for _ in range(fractals):
        for _ in range(columns // SIDE):
            for n in unrolled(SIDE):
                lines[n] = row(space, source + n * columns)
            for _ in unrolled(4):
                for n in unrolled(SIDE // 2):
                    mixed[2 * n] = interleaved(lines[n], lines[n + SIDE // 2], 0)
                    mixed[2 * n + 1] = interleaved(lines[n], lines[n + SIDE // 2], 1)
                for n in unrolled(SIDE):
                    lines[n] = mixed[n]
            for k in unrolled(SIDE):
                put_row(space, result + k * SIDE, lines[k])
            source += SIDE
            result += SIDE * SIDE
        source += SIDE * columns - columns


@LIBRARY.entry
def multiply(
    space: Singles, c: Singles, m1: int, k1: int, n1: int, columns: int, first: int, last: int
) -> None:
    """C += A * B, for fractals of k from number `first` to `last`.

    The products of a fractal are added in their order, then their sum to C, as the cube does: how k
    is cut into instructions does not change the sum. Products of halves and of bytes are exact.

    Args:
        space: A[m1, k1, 16 m, columns k], then B[k1, n1, columns k, 16 n].
        c: [n1, m1, 16 m, 16 n].
    """
    sums = rows(GROUP)
    total = rows(GROUP)
    b = m1 * k1 * SIDE * columns
    for n in range(n1):
        for group in range(m1 * SIDE // GROUP):
            m = group * GROUP
            at_c = (n * m1 * SIDE + m) * SIDE
            for i in unrolled(GROUP):
                total[i] = row(c, at_c + i * SIDE)
            for k in range(first, last):
                at_a = ((m // SIDE * k1 + k) * SIDE + m % SIDE) * columns
                at_b = b + (k * n1 + n) * columns * SIDE
                for i in unrolled(GROUP):
                    sums[i] = spread(0.0)
                for _ in range(columns // SIDE):
                    for j in range(SIDE):
                        line = row(space, at_b + j * SIDE)
                        for i in unrolled(GROUP):
                            factor = spread(space[at_a + i * columns + j])
                            sums[i] = multiply_add(factor, line, sums[i])
                    at_a += SIDE
                    at_b += SIDE * SIDE
                for i in unrolled(GROUP):
                    total[i] = total[i] + sums[i]
            for i in unrolled(GROUP):
                put_row(c, at_c + i * SIDE, total[i])


@LIBRARY.entry
def multiply_halves(
    a: Halves, b: Halves, c: Singles, space: Singles, m1: int, k1: int, n1: int
) -> None:
    """As `multiply`, of all fractals; B has fractals of [16 n, 16 k]. `space` is written."""
    fractal = SIDE * SIDE
    last = m1 * k1 * fractal
    for i in range(last):
        space[i] = a[i]
    turned = last + k1 * n1 * fractal
    for i in range(k1 * n1 * fractal):
        space[turned + i] = b[i]
    turn(space, turned, last, k1 * n1, SIDE)
    multiply(space, c, m1, k1, n1, SIDE, 0, k1)


TYPES: list[tuple[str, str, str, str]] = [
    ("f162f32", "f16", "f16", "f32"),
    ("f162f16", "f16", "f16", "f16"),
    ("s82s32", "s8", "s8", "s32"),
    ("u8s82s32", "u8", "s8", "s32"),
    ("bf162f32", "bf16", "bf16", "f32"),
    ("f322f32", "f32", "f32", "f32"),
]
"""(type of the record, A, B, C)."""


def define_product(
    name: str,
    type_name: str,
    product: MadLayouts,
    fields: Sequence[Field],
    further: Sequence[Operand] = (),
    *,
    doc: str,
    source: str,
) -> None:
    """Defines an instruction that multiplies fractals in L0A and L0B.

    Args:
        further: operands besides A, B and C.
    """
    k = f"k/{product.columns}"
    layout = f"Nz: [{k}][m/16][16 m][k]" if product.a_nz else f"Zz: [m/16][{k}][16 m][k]"
    layout += "" if product.a_nz else "; of one row the row itself"
    define(
        Instruction(
            name=name,
            type=type_name,
            pipe=Pipe.M,
            operands=(
                Operand("c", Space.L0C, True, "C, Nz: [n/16][m/16][16 m][16 n]"),
                Operand("a", Space.L0A, False, f"A, {layout}"),
                Operand("b", Space.L0B, False, f"B, Zn: [{k}][n/16][16 n][k]"),
                *further,
            ),
            fields=tuple(fields),
            accesses=product.regions,
            compute=product.compute,
            timing="cube",
            doc=doc,
            source=source,
            check=check_unit_flag,
        )
    )


def define_mad(name: str, types: tuple[str, str, str, str], a_nz: bool, *, source: str) -> None:
    """Defines a mad of one type; with `a_nz` A is Nz, as L0A of the 950 holds it."""
    type_name, a, b, c = types
    how = "exact, sums wrap" if c == "s32" else f"f32 sums, fractal by fractal of k, stored as {c}"
    define_product(
        name,
        type_name,
        MadLayouts(a, b, c, a_nz),
        (*FIELDS, K_ALIGN) if a == "f32" else FIELDS,
        doc=f"C = A*B or C += A*B, {a} x {b} to {c}; {how}. Sizes round up to whole fractals "
        "of 512 bytes, whose padding takes part.",
        source=source,
    )


for types in TYPES:
    define_mad(
        "mad", types, False, source="docs/hardware.md a1 (types), b1 (time), c (sizes, layouts)"
    )


BIASED = [types for types in TYPES if types[0] in ("f162f32", "bf162f32", "f322f32", "s82s32")]
"""Types of products that begin with a bias."""
