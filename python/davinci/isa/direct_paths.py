"""The path from a cube core to its vector cores, as the 950 has it: fixpipe writes into their UB.

The cube core addresses the UB of its vector cores as one memory, the second one's behind the first
one's. Vector cores write into L1 of their cube core by `copy_ubuf_to_cbuf`.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from davinci.isa.fixpipe import COMMON_FIELDS, FIXPIPE_TYPES, check_source, read_region, stored
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

ROWS, COLUMNS = 1, 2
"""Values of `split`: which half of the matrix the second vector core gets."""

UB_FIELDS = (
    *COMMON_FIELDS,
    Field("dst_stride", 32, 63, doc="elements from one row in UB to the next"),
    Field("split", 40, 41, word=1, maximum=COLUMNS, doc="1: rows, 2: columns in two halves"),
    Field("core_stride", 0, 19, word=2, doc="32-byte blocks from UB of a core to the next one's"),
)


def check_halves(values: Values) -> str:
    """Limits of a matrix that goes to UB."""
    n, m, split = values["n_size"], values["m_size"], values["split"]
    if n % SIDE:
        return f"n_size on the way to UB: found {n}, expected a multiple of {SIDE}"
    for name, size, unit, how in (("m_size", m, 2, ROWS), ("n_size", n, 2 * SIDE, COLUMNS)):
        if split == how and size % unit:
            return f"{name} of two halves: found {size}, expected a multiple of {unit}"
    if split and not values["core_stride"]:
        return "halves in UB lie on each other: found core_stride 0, expected at least 1"
    columns = n // 2 if split == COLUMNS else n
    if m > 1 and values["dst_stride"] < columns:
        found = values["dst_stride"]
        return f"rows in UB overlap: found dst_stride {found}, expected at least {columns}"
    return check_source(values)


def halves_of(values: Values) -> tuple[int, int, int]:
    """How many vector cores get a part, and its rows and columns; 0 of them: nothing to do."""
    n, m, split = values["n_size"], values["m_size"], values["split"]
    if not n or not m:
        return 0, 0, 0
    rows = m // 2 if split == ROWS else m
    columns = n // 2 if split == COLUMNS else n
    return (2 if split else 1), rows, columns


def to_ub(src_type: str, dst_type: str) -> Regions:
    """L0C is read in blocks of 16 columns; each vector core gets rows."""
    dst = DTYPES[dst_type]

    def accesses(values: Values, registers: Registers) -> Accesses:
        cores, rows, columns = halves_of(values)
        dims = (
            (cores, values["core_stride"] * BLOCK_BYTES),
            (rows, values["dst_stride"] * dst.itemsize),
        )
        written = Access(Space.UB, values["dst"], dims, columns, dst)
        return [read_region(src_type, values)], [written]

    return accesses


def rows_of_halves(dst_type: str) -> Compute:
    """`compute`: relu, then the type, then rows for each vector core."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        blocks = stored(arrays[0], values, dst_type)
        n1, m, _ = blocks.shape
        cores, rows, columns = halves_of(values)
        whole = blocks.transpose(1, 0, 2).reshape(m, n1 * SIDE)
        if values["split"] == COLUMNS:
            return [whole.reshape(rows, cores, columns).transpose(1, 0, 2)]
        return [whole.reshape(cores, rows, columns)]

    return compute


for type_name, src_type, dst_type in FIXPIPE_TYPES:
    define(
        Instruction(
            name="fixpipe_to_ub",
            type=type_name,
            pipe=Pipe.FIX,
            operands=(Operand("dst", Space.UB, True), Operand("src", Space.L0C, False)),
            fields=UB_FIELDS,
            accesses=to_ub(src_type, dst_type),
            compute=rows_of_halves(dst_type),
            timing="fixpipe_to_ub",
            doc=f"Moves a matrix of {src_type} from L0C (Nz) to UB of a vector core, or halves of "
            f"it to both, as rows of {dst_type}; CCE calls it copy_matrix_cc_to_ub.",
            source="docs/hardware.md f (L0C to UB); encoding assumed",
            check=check_halves,
        )
    )
