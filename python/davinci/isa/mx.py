"""Products of numbers of 8 and 4 bits that share scales, as the 950 has them (MX formats).

Along k each 32 numbers of A and of B have one scale, a power of two of 8 bits (e8m0). Scales lie in
memories of their own beside L0A and L0B, as fractals of 16 rows by 2 scales: [m/16][k/64][16][2].
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import numpy.typing as npt

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Field,
    Instruction,
    Operand,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.cube import FIELDS
from davinci.isa.gm_formats import ND2NZ_FIELDS, check_nd2nz
from davinci.isa.unit_flags import check_unit_flag
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

SCALED, PAIR = 32, 2
"""Numbers along k that share a scale, and scales of a row in a fractal."""

SCALE_FRACTAL = SIDE * PAIR
"""Bytes of a fractal of scales."""

SOURCE = "docs/hardware.md f (MX formats of the 950); encoding assumed"
BYTES = DTYPES["u8"]
ALL_BYTES: Array = np.arange(256, dtype=np.uint8)


def of_a_byte(dtype: npt.DTypeLike) -> Array:
    """The numbers that a byte of fp8 stands for, [256, 1] f32."""
    return ALL_BYTES.view(np.dtype(dtype)).astype(np.float32)[:, None]


def of_halves(values: Sequence[float]) -> Array:
    """The two numbers that a byte of fp4 stands for, the lower half first, [256, 2] f32."""
    signed: Array = np.array([*values, *(-value for value in values)], dtype=np.float32)
    return np.stack([signed[ALL_BYTES & 15], signed[ALL_BYTES >> 4]], axis=1)


FORMATS: dict[str, Array] = {
    "e4m3": of_a_byte(ml_dtypes.float8_e4m3fn),
    "e5m2": of_a_byte(ml_dtypes.float8_e5m2),
    "e2m1": of_halves([0, 0.5, 1, 1.5, 2, 3, 4, 6]),
    "e1m2": of_halves([number / 4 for number in range(8)]),
}
"""What each byte stands for, by format: one number of 8 bits or two of 4."""

SCALES: Array = ALL_BYTES.view(np.dtype(ml_dtypes.float8_e8m0fnu)).astype(np.float32)


class ScaledProduct:
    """Layouts of a product: A Nz, B Zn, C Nz, as of `mad_nz`, with scales."""

    def __init__(self, kind: str) -> None:
        self.table = FORMATS[kind]
        self.columns = BLOCK_BYTES * self.table.shape[1]

    def sizes(self, values: Values) -> tuple[int, int, int, int]:
        """(m1, k1, n1, fractals of scales along k), all 0 if there is nothing to do."""
        m, k, n = values["m"], values["k"], values["n"]
        if not (m and k and n):
            return 0, 0, 0, 0
        scales = ceil_div(k, SCALED * PAIR)
        return ceil_div(m, SIDE), ceil_div(k, self.columns), ceil_div(n, SIDE), scales

    def regions(self, values: Values, registers: Registers) -> Accesses:
        m1, k1, n1, scales = self.sizes(values)
        fractal = SIDE * BLOCK_BYTES
        a = Access(Space.L0A, values["a"], (), m1 * k1 * fractal, BYTES)
        b = Access(Space.L0B, values["b"], (), k1 * n1 * fractal, BYTES)
        a_mx = Access(Space.L0A_MX, values["a_mx"], (), m1 * scales * SCALE_FRACTAL, BYTES)
        b_mx = Access(Space.L0B_MX, values["b_mx"], (), n1 * scales * SCALE_FRACTAL, BYTES)
        c = Access(Space.L0C, values["c"], (), m1 * n1 * SIDE * SIDE, DTYPES["f32"])
        read = [a, b, a_mx, b_mx]
        return (read if values["init"] else [*read, c]), [c]

    def matrix(self, fractals: Array, scales: Array, rows: int, k1: int) -> Array:
        """Numbers times their scales, [16 rows, k], of fractals [k1, rows, 16, 32 bytes]."""
        numbers = self.table[fractals.reshape(k1, rows, SIDE, BLOCK_BYTES)]
        numbers = numbers.reshape(k1, rows * SIDE, self.columns).transpose(1, 0, 2)
        groups = scales.size // max(rows * SCALE_FRACTAL, 1)
        factors = SCALES[scales.reshape(rows, groups, SIDE, PAIR).transpose(0, 2, 1, 3)]
        each = np.repeat(factors.reshape(rows * SIDE, groups * PAIR), SCALED, axis=1)
        whole: Array = numbers.reshape(rows * SIDE, k1 * self.columns)
        found: Array = whole * each[:, : whole.shape[1]]
        return found

    def compute(
        self, values: Values, registers: Registers, arrays: Sequence[Array]
    ) -> Sequence[Array]:
        m1, k1, n1, _ = self.sizes(values)
        a, b, a_mx, b_mx, *start = arrays
        left, right = self.matrix(a, a_mx, m1, k1), self.matrix(b, b_mx, n1, k1)
        sums = (left @ right.T).reshape(m1, SIDE, n1, SIDE).transpose(2, 0, 1, 3).reshape(-1)
        return [sums + start[0] if start else sums]


for kind in FORMATS:
    product = ScaledProduct(kind)
    define(
        Instruction(
            name="mad_mx",
            type=kind,
            pipe=Pipe.M,
            operands=(
                Operand("c", Space.L0C, True, "C, Nz: [n/16][m/16][16 m][16 n] of f32"),
                Operand("a", Space.L0A, False, f"A, Nz: [k/{product.columns}][m/16][16 m][k]"),
                Operand("b", Space.L0B, False, f"B, Zn: [k/{product.columns}][n/16][16 n][k]"),
                Operand("a_mx", Space.L0A_MX, False, "scales of A: [m/16][k/64][16 m][2]"),
                Operand("b_mx", Space.L0B_MX, False, "scales of B: [n/16][k/64][16 n][2]"),
            ),
            fields=FIELDS,
            accesses=product.regions,
            compute=product.compute,
            timing="cube",
            doc=f"C = A*B or C += A*B of {kind}, each 32 numbers along k times a scale of e8m0; "
            "how sums are rounded is not published: f32 is assumed.",
            source=SOURCE,
            check=check_unit_flag,
        )
    )

LOAD_FIELDS = (
    Field("x_step", 0, 7, doc="rows of fractals of scales; 0: no operation"),
    Field("y_step", 8, 15, doc="fractals of a row; 0: no operation"),
    Field("src_stride", 16, 31, doc="fractals from one row in L1 to the next"),
    Field("dst_stride", 32, 47, doc="fractals from one row at the destination to the next"),
)


def load_regions(dst: Space) -> Regions:
    """Rows of fractals of 32 bytes."""

    def regions(values: Values, registers: Registers) -> Accesses:
        rows, run = values["x_step"], values["y_step"] * SCALE_FRACTAL
        reads = ((rows, values["src_stride"] * SCALE_FRACTAL),)
        writes = ((rows, values["dst_stride"] * SCALE_FRACTAL),)
        return (
            [Access(Space.L1, values["src"], reads, run, BYTES)],
            [Access(dst, values["dst"], writes, run, BYTES)],
        )

    return regions


def moved(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a load."""
    return arrays


for name, space in (("load_cbuf_to_ca_mx", Space.L0A_MX), ("load_cbuf_to_cb_mx", Space.L0B_MX)):
    define(
        Instruction(
            name=name,
            type="",
            pipe=Pipe.MTE1,
            operands=(Operand("dst", space, True), Operand("src", Space.L1, False)),
            fields=LOAD_FIELDS,
            accesses=load_regions(space),
            compute=moved,
            timing="mte1_scales",
            doc=f"Loads fractals of 16 rows by 2 scales from L1 to {space.name}.",
            source=SOURCE,
        )
    )


def dn2nz_regions(values: Values, registers: Registers) -> Accesses:
    """Rows of GM; in L1 one run of 32 bytes for 16 rows and each of their elements."""
    pair = DTYPES["b16"]
    count, rows, columns = values["nd_num"], values["n_value"], values["d_value"]
    if not (count and rows and columns):
        count = 0
    source = (
        (count, values["src_nd_matrix_stride"] * pair.itemsize),
        (rows, values["src_d_value"] * pair.itemsize),
    )
    target = (
        (count, values["dst_nz_matrix_stride"] * pair.itemsize),
        (ceil_div(rows, SIDE), values["dst_nz_c0_stride"] * BLOCK_BYTES),
        (columns, values["dst_nz_n_stride"] * BLOCK_BYTES),
    )
    read = Access(Space.GM, values["src"], source, columns, pair)
    return [read], [Access(Space.L1, values["dst"], target, SIDE, pair)]


def turned(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute`: rows [count, n, d] to [count, n/16, d, 16], zeros behind n."""
    (rows,) = arrays
    count, n, d = rows.shape
    blocks = ceil_div(n, SIDE)
    padded = np.zeros((count, blocks * SIDE, d), rows.dtype)
    padded[:, :n] = rows
    return [padded.reshape(count, blocks, SIDE, d).transpose(0, 1, 3, 2)]


define(
    Instruction(
        name="copy_gm_to_cbuf_multi_dn2nz",
        type="b16",
        pipe=Pipe.MTE2,
        operands=(Operand("dst", Space.L1, True), Operand("src", Space.GM, False)),
        fields=ND2NZ_FIELDS,
        accesses=dn2nz_regions,
        compute=turned,
        timing="nd2nz",
        doc="Copies matrices of 16-bit elements from GM to L1, 16 rows side by side: of pairs of "
        "scales it makes fractals of scales. Fields name rows and columns as they lie in GM.",
        source=SOURCE,
        check=check_nd2nz,
    )
)
