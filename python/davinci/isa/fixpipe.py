"""Results out of L0C to global memory, on a pipe of their own, as the 910B has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
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
from davinci.isa.halves import converted
from davinci.isa.stores import added, added_in
from davinci.isa.unit_flags import check_unit_flag, unit_flag_field
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

MOST_ND_ROWS = 8192

FIELDS = (
    Field("n_size", 4, 15, maximum=4095, doc="columns; 0: no operation"),
    Field("m_size", 16, 31, doc="rows, at most 8192 with nz2nd; 0: no operation"),
    Field(
        "dst_stride",
        32,
        63,
        doc="with nz2nd elements from one row in GM to the next, "
        "else 32-byte blocks from one block of 16 columns to the next",
    ),
    Field(
        "src_stride",
        0,
        15,
        word=1,
        doc="rows of 16 elements from one block of 16 columns in L0C to the next",
    ),
    unit_flag_field(32, 1),
    Field("relu", 39, 39, word=1, doc="1: negative values become 0"),
    Field("nz2nd", 43, 43, word=1, doc="1: rows in GM; 0: blocks of 16 columns, as in L0C"),
)

COMMON_FIELDS = tuple(field for field in FIELDS if field.name not in ("dst_stride", "nz2nd"))
"""Fields that results have on every way out of L0C."""


def overlap(values: Values, stride: str, place: str) -> str:
    """What is wrong if blocks of 16 columns lie on each other in a memory, "" if they do not.

    Args:
        stride: the field with the rows from one block to the next.
    """
    n, m, found = values["n_size"], values["m_size"], values[stride]
    if n > SIDE and found < m:
        return f"columns in {place} overlap: found {stride} {found}, expected at least m_size {m}"
    return ""


def check_source(values: Values) -> str:
    """Limits of the matrix in L0C."""
    return overlap(values, "src_stride", "L0C") or check_unit_flag(values)


def check_sizes(values: Values) -> str:
    """Limits of the two output formats."""
    n, m, stride = values["n_size"], values["m_size"], values["dst_stride"]
    if not n or not m:
        return ""
    if values["nz2nd"]:
        if m > MOST_ND_ROWS:
            return f"too many rows for nz2nd: found {m}, expected at most {MOST_ND_ROWS}"
        if m > 1 and stride < n:
            return f"rows in GM overlap: found dst_stride {stride}, expected at least n_size {n}"
    elif n % SIDE:
        return f"n_size without nz2nd: found {n}, expected a multiple of {SIDE}"
    return check_source(values)


def read_region(src_type: str, values: Values) -> Access:
    """What is read of L0C: blocks of 16 columns."""
    src = DTYPES[src_type]
    m, n = values["m_size"], values["n_size"]
    row = SIDE * src.itemsize
    dims = ((ceil_div(n, SIDE) if m else 0, values["src_stride"] * row), (m, row))
    return Access(Space.L0C, values["src"], dims, SIDE, src)


def block_columns(dst_type: str) -> int:
    """Columns of a block of results: 32 of 8 bits, else 16."""
    return BLOCK_BYTES if DTYPES[dst_type].itemsize == 1 else SIDE


def column_blocks(space: Space, dst_type: str, values: Values) -> Access:
    """The region that fixpipe writes as blocks of columns, `dst_stride` 32-byte blocks apart."""
    m, width = values["m_size"], block_columns(dst_type)
    dims = ((ceil_div(values["n_size"], width) if m else 0, values["dst_stride"] * BLOCK_BYTES),)
    return Access(space, values["dst"], dims, m * width, DTYPES[dst_type])


def check_blocks_of(dst_type: str, check: Callable[[Values], str]) -> Callable[[Values], str]:
    """Limits of results in whole blocks besides those of `check`, which knows blocks of 16."""
    width = block_columns(dst_type)

    def checked(values: Values) -> str:
        n = values["n_size"]
        if n % width and not values.get("nz2nd"):
            return f"n_size of results in blocks: found {n}, expected a multiple of {width}"
        return check(values)

    return checked if width != SIDE else check


def in_blocks(blocks: Array, dst_type: str) -> Array:
    """Blocks of 16 columns, [n/16, m, 16], as those of results, each in a row."""
    n1, m, _ = blocks.shape
    beside = block_columns(dst_type) // SIDE
    found = blocks.reshape(n1 // beside, beside, m, SIDE).swapaxes(1, 2)
    return found.reshape(n1 // beside, m * beside * SIDE)


def rectified(blocks: Array, values: Values) -> Array:
    """Sums, those below zero 0 if the field `relu` says so."""
    return np.maximum(blocks, blocks.dtype.type(0)) if values["relu"] else blocks


def stored(blocks: Array, values: Values, dst_type: str) -> Array:
    """Fixpipe applies relu to blocks of sums, if asked to, and then converts them."""
    dst = DTYPES[dst_type]
    blocks = rectified(blocks, values)
    return blocks if blocks.dtype == dst else converted(blocks, dst)


Leave = Callable[[Values, Registers, Sequence[Array]], Array]
"""How sums leave L0C: from blocks [n/16, m, 16], and further arrays read, to blocks of results."""


def as_stored(dst_type: str) -> Leave:
    """Sums that are converted."""

    def leave(values: Values, registers: Registers, arrays: Sequence[Array]) -> Array:
        return stored(arrays[0], values, dst_type)

    return leave


def regions(src_type: str, dst_type: str) -> Regions:
    """L0C is read in blocks of 16 columns; GM gets rows, or the blocks one after the other."""
    dst = DTYPES[dst_type]

    def accesses(values: Values, registers: Registers) -> Accesses:
        m, n = values["m_size"], values["n_size"]
        read = read_region(src_type, values)
        if values["nz2nd"]:
            rows = ((m, values["dst_stride"] * dst.itemsize),)
            written = Access(Space.GM, values["dst"], rows, n if m else 0, dst)
        else:
            written = column_blocks(Space.GM, dst_type, values)
        kind = added_in(registers)
        if not kind:
            return [read], [written]
        if kind != dst_type:
            raise ValueError(f"a store of {dst_type} that adds: found {kind}, expected {dst_type}")
        return [read, written], [written]

    return accesses


def convert(dst_type: str, leave: Leave, tables: int = 0) -> Compute:
    """`compute`: how sums leave, then the layout, then the addition if there is one.

    Args:
        tables: how many arrays `leave` takes besides the sums.
    """

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        blocks = leave(values, registers, arrays[: 1 + tables])
        there = arrays[1 + tables :]
        n1, m, _ = blocks.shape
        if values["nz2nd"]:
            found = blocks.transpose(1, 0, 2).reshape(m, n1 * SIDE)[:, : values["n_size"]]
        else:
            found = in_blocks(blocks, dst_type)
        return [added(found, target, dst_type) for target in there] or [found]

    return compute


FIXPIPE_TYPES = [
    ("f32", "f32", "f32"),
    ("f322f16", "f32", "f16"),
    ("s32", "s32", "s32"),
    ("f322bf16", "f32", "bf16"),
]
"""(type of the record, elements in L0C, elements that are written)."""

for type_name, src_type, dst_type in FIXPIPE_TYPES:
    define(
        Instruction(
            name="fixpipe",
            type=type_name,
            pipe=Pipe.FIX,
            operands=(Operand("dst", Space.GM, True), Operand("src", Space.L0C, False)),
            fields=FIELDS,
            accesses=regions(src_type, dst_type),
            compute=convert(dst_type, as_stored(dst_type)),
            timing="fixpipe",
            doc=f"Moves a matrix of {src_type} from L0C (Nz) to GM as {dst_type}, Nz or row-major; "
            "CCE calls it copy_matrix_cc_to_gm.",
            source="docs/hardware.md a3 (rates), c (fixpipe)",
            check=check_sizes,
        )
    )
