"""Copies between GM and the core that do more than move 32-byte blocks, as the 910B has them.

`copy_gm_to_cbuf_multi_nd2nz` turns rows into fractals on the way to L1; the `_align` copies move
bursts of any number of bytes between GM and UB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.mte import move
from davinci.isa.stores import store, stored
from davinci.units import BLOCK_BYTES, ceil_div

MOST_ROWS = 16384
MOST_BURST_BYTES = 2097151

ND2NZ_FIELDS = (
    Field("nd_num", 4, 15, doc="number of matrices; 0: no operation"),
    Field("n_value", 16, 31, maximum=MOST_ROWS, doc="rows of a matrix; 0: no operation"),
    Field("d_value", 32, 47, doc="columns of a matrix; 0: no operation"),
    Field("src_nd_matrix_stride", 48, 63, doc="elements from one matrix in GM to the next"),
    Field("src_d_value", 0, 15, word=1, doc="elements from one row in GM to the next"),
    Field(
        "dst_nz_c0_stride",
        16,
        31,
        word=1,
        maximum=MOST_ROWS,
        doc="32-byte blocks from one block of columns in L1 to the next",
    ),
    Field(
        "dst_nz_n_stride",
        32,
        47,
        word=1,
        maximum=MOST_ROWS,
        doc="32-byte blocks from one row to the next inside a block of columns",
    ),
    Field("dst_nz_matrix_stride", 48, 63, word=1, doc="elements from one matrix in L1 to the next"),
)


def check_nd2nz(values: Values) -> str:
    """Rows in L1 must not lie on each other."""
    if values["n_value"] > 1 and not values["dst_nz_n_stride"]:
        return "rows in L1 overlap: found dst_nz_n_stride 0, expected at least 1"
    return ""


def nd2nz_regions(dtype: str) -> Regions:
    """Rows of GM; in L1 one run of 32 bytes for each row and block of columns."""
    element = DTYPES[dtype]
    size = element.itemsize
    lanes = BLOCK_BYTES // size

    def accesses(values: Values, registers: Registers) -> Accesses:
        count, rows, columns = values["nd_num"], values["n_value"], values["d_value"]
        if not (count and rows and columns):
            count = 0
        source = (
            (count, values["src_nd_matrix_stride"] * size),
            (rows, values["src_d_value"] * size),
        )
        target = (
            (count, values["dst_nz_matrix_stride"] * size),
            (ceil_div(columns, lanes), values["dst_nz_c0_stride"] * BLOCK_BYTES),
            (rows, values["dst_nz_n_stride"] * BLOCK_BYTES),
        )
        read = Access(Space.GM, values["src"], source, columns, element)
        return [read], [Access(Space.L1, values["dst"], target, lanes, element)]

    return accesses


def to_fractals(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute`: rows [count, n, d] to blocks of columns [count, d/c, n, c], zeros behind d."""
    (rows,) = arrays
    count, n, d = rows.shape
    lanes = BLOCK_BYTES // rows.itemsize
    blocks = ceil_div(d, lanes)
    padded = np.zeros((count, n, blocks * lanes), rows.dtype)
    padded[..., :d] = rows
    return [padded.reshape(count, n, blocks, lanes).transpose(0, 2, 1, 3)]


for dtype in ("b8", "b16", "b32"):
    define(
        Instruction(
            name="copy_gm_to_cbuf_multi_nd2nz",
            type=dtype,
            pipe=Pipe.MTE2,
            operands=(Operand("dst", Space.L1, True), Operand("src", Space.GM, False)),
            fields=ND2NZ_FIELDS,
            accesses=nd2nz_regions(dtype),
            compute=to_fractals,
            timing="nd2nz",
            doc=f"Copies row-major matrices of {dtype} elements from GM to L1 as Nz; columns are "
            "filled with zeros to a whole block, rows are not.",
            source="docs/hardware.md a3 (rates), c (ND2NZ)",
            check=check_nd2nz,
        )
    )


ALIGN_FIELDS = (
    Field("n_burst", 4, 15, doc="number of bursts; 0: no operation"),
    Field(
        "len_burst",
        16,
        36,
        maximum=MOST_BURST_BYTES,
        doc="bytes of a burst, a multiple of the element's; 0: no operation",
    ),
    Field("src_gap", 0, 31, word=1, doc="behind a source burst: bytes in GM, 32-byte blocks in UB"),
    Field("dst_gap", 32, 63, word=1, doc="behind a written burst: the same"),
)


def check_length(size: int) -> Callable[[Values], str]:
    def check(values: Values) -> str:
        length = values["len_burst"]
        if length % size:
            return f"len_burst: found {length} bytes, expected a multiple of {size}"
        return ""

    return check


def aligned_regions(src: Space, dst: Space, dtype: str) -> Regions:
    """Bursts of any length; in UB each begins at the next whole block."""
    element = DTYPES[dtype]

    def step(space: Space, length: int, gap: int) -> int:
        if space == Space.GM:
            return length + gap
        return (ceil_div(length, BLOCK_BYTES) + gap) * BLOCK_BYTES

    def accesses(values: Values, registers: Registers) -> Accesses:
        count, length = values["n_burst"], values["len_burst"]
        run = length // element.itemsize
        reads = ((count, step(src, length, values["src_gap"])),)
        writes = ((count, step(dst, length, values["dst_gap"])),)
        return (
            [Access(src, values["src"], reads, run, element)],
            [Access(dst, values["dst"], writes, run, element)],
        )

    return accesses


for name, src, dst, pipe, timing in [
    ("copy_gm_to_ubuf_align", Space.GM, Space.UB, Pipe.MTE2, "mte2"),
    ("copy_ubuf_to_gm_align", Space.UB, Space.GM, Pipe.MTE3, "mte3"),
]:
    for dtype in ("b8", "b16", "b32"):
        regions = aligned_regions(src, dst, dtype)
        to_gm = dst == Space.GM
        define(
            Instruction(
                name=name,
                type=dtype,
                pipe=pipe,
                operands=(Operand("dst", dst, True), Operand("src", src, False)),
                fields=ALIGN_FIELDS,
                accesses=store(regions) if to_gm else regions,
                compute=stored if to_gm else move,
                timing=timing,
                doc=f"Copies bursts of {dtype} elements from {src.name} to {dst.name}, exact to "
                "the byte. In UB a burst begins at a whole 32-byte block; what lies in its last "
                "block behind it is undefined afterwards and not touched here.",
                source="docs/hardware.md c (DataCopyPad)",
                check=check_length(DTYPES[dtype].itemsize),
            )
        )
