"""The matrix unit: mad multiplies fractals of L0A and L0B into L0C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

FIELDS = (
    Field("m", 0, 11, doc="rows of A and C, in elements; 0: no operation"),
    Field("k", 12, 23, doc="columns of A, rows of B, in elements; 0: no operation"),
    Field("n", 24, 35, doc="columns of B and C, in elements; 0: no operation"),
    Field("init", 63, 63, doc="1: C = A*B; 0: C += A*B"),
)


class Product:
    """Layouts of one mad: A is Zz, B is Zn, C is Nz.

    A is [m1, k1, 16 m, c k], B [k1, n1, 16 n, c k], C [n1, m1, 16 m, 16 n], where c is 32 bytes'
    worth of elements and m, k, n are rounded up to whole fractals.
    """

    def __init__(self, a: str, b: str, c: str) -> None:
        self.a, self.b, self.c = DTYPES[a], DTYPES[b], DTYPES[c]
        self.columns = BLOCK_BYTES // self.a.itemsize
        # Sums of 8-bit products need more than the 24 bits that float32 keeps exact.
        self.work: np.dtype[Any] = np.dtype(np.float64 if self.c.kind == "i" else np.float32)

    def sizes(self, values: Values) -> tuple[int, int, int]:
        """(m1, k1, n1), all 0 if there is nothing to do."""
        m, k, n = values["m"], values["k"], values["n"]
        if not (m and k and n):
            return 0, 0, 0
        return ceil_div(m, SIDE), ceil_div(k, self.columns), ceil_div(n, SIDE)

    def regions(self, values: Values, registers: Registers) -> Accesses:
        m1, k1, n1 = self.sizes(values)
        fractal = SIDE * self.columns
        a = Access(Space.L0A, values["a"], (), m1 * k1 * fractal, self.a)
        b = Access(Space.L0B, values["b"], (), k1 * n1 * fractal, self.b)
        c = Access(Space.L0C, values["c"], (), m1 * n1 * SIDE * SIDE, self.c)
        return ([a, b] if values["init"] else [a, b, c]), [c]

    def compute(
        self, values: Values, registers: Registers, arrays: Sequence[Array]
    ) -> Sequence[Array]:
        m1, k1, n1 = self.sizes(values)
        m, n = m1 * SIDE, n1 * SIDE
        fractals = arrays[0].astype(self.work).reshape(m1, k1, SIDE, self.columns)
        a = fractals.swapaxes(0, 1).reshape(k1, m, self.columns)
        b = arrays[1].astype(self.work).reshape(k1, n, self.columns).swapaxes(1, 2).copy()
        # One fractal of k after another, as the cube does: how k is cut into instructions does not
        # change the sum. The library of linear algebra adds the few products of a fractal in their
        # order, longer rows in another one.
        terms = np.empty((k1 + 1, m, n), self.work)
        terms[0] = 0
        if not values["init"]:
            c = arrays[2].reshape(n1, m, SIDE).swapaxes(0, 1)
            terms[0].reshape(m, n1, SIDE)[...] = c
        np.matmul(a, b, out=terms[1:])
        sums = np.add.reduce(terms, axis=0)
        if self.c.kind == "i":
            sums = sums.astype(np.int64)
        c = sums.reshape(m, n1, SIDE).swapaxes(0, 1).reshape(-1)
        return [c.astype(self.c, copy=False)]


TYPES: list[tuple[str, str, str, str]] = [
    ("f162f32", "f16", "f16", "f32"),
    ("f162f16", "f16", "f16", "f16"),
    ("s82s32", "s8", "s8", "s32"),
    ("u8s82s32", "u8", "s8", "s32"),
]
"""(type of the record, A, B, C)."""

for type_name, a, b, c in TYPES:
    product = Product(a, b, c)
    how = "exact, sums wrap" if c == "s32" else f"f32 sums, fractal by fractal of k, stored as {c}"
    define(
        Instruction(
            name="mad",
            type=type_name,
            pipe=Pipe.M,
            operands=(
                Operand("c", Space.L0C, True, "C, Nz: [n/16][m/16][16 m][16 n]"),
                Operand("a", Space.L0A, False, f"A, Zz: [m/16][k/{product.columns}][16 m][k]"),
                Operand("b", Space.L0B, False, f"B, Zn: [k/{product.columns}][n/16][16 n][k]"),
            ),
            fields=FIELDS,
            accesses=product.regions,
            compute=product.compute,
            timing="cube",
            doc=f"C = A*B or C += A*B, {a} x {b} to {c}; {how}. Sizes round up to whole fractals "
            "of 512 bytes, whose padding takes part.",
            source="docs/hardware.md a1 (types), b1 (time), c (sizes, layouts)",
        )
    )
