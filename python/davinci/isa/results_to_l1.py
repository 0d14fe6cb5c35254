"""Results out of L0C back into L1, as the 910B has it: what a product leaves is a factor again."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.isa.core import (
    DTYPES,
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
from davinci.isa.fixpipe import (
    COMMON_FIELDS,
    FIXPIPE_TYPES,
    Leave,
    as_stored,
    check_source,
    column_blocks,
    in_blocks,
    overlap,
    read_region,
)
from davinci.units import FRACTAL_SIDE as SIDE

HALVES = [each for each in FIXPIPE_TYPES if DTYPES[each[2]].itemsize == 2]
"""Types of 16 bits, of which a block of 16 columns is as wide in L1 as in L0C."""

L1_FIELDS = (
    *COMMON_FIELDS,
    Field(
        "dst_stride", 32, 63, doc="32-byte blocks in L1 from one block of 16 columns to the next"
    ),
)


def check_blocks(values: Values) -> str:
    """Limits of a matrix that goes to L1."""
    n = values["n_size"]
    if n % SIDE:
        return f"n_size on the way to L1: found {n}, expected a multiple of {SIDE}"
    return check_source(values) or overlap(values, "dst_stride", "L1")


def to_l1(src_type: str, dst_type: str) -> Regions:
    """L0C is read, and L1 written, in blocks of 16 columns."""

    def accesses(values: Values, registers: Registers) -> Accesses:
        return [read_region(src_type, values)], [column_blocks(Space.L1, dst_type, values)]

    return accesses


def blocks_of(dst_type: str, leave: Leave) -> Compute:
    """`compute`: how sums leave, in blocks of columns."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        return [in_blocks(leave(values, registers, arrays), dst_type)]

    return compute


for type_name, src_type, dst_type in HALVES:
    define(
        Instruction(
            name="fixpipe_to_l1",
            type=type_name,
            pipe=Pipe.FIX,
            operands=(Operand("dst", Space.L1, True), Operand("src", Space.L0C, False)),
            fields=L1_FIELDS,
            accesses=to_l1(src_type, dst_type),
            compute=blocks_of(dst_type, as_stored(dst_type)),
            timing="fixpipe_to_l1",
            doc=f"Moves a matrix of {src_type} from L0C to L1 as {dst_type}, Nz in both; CCE calls "
            "it copy_matrix_cc_to_cbuf.",
            source="docs/hardware.md a3 (rates), c (fixpipe to L1); encoding assumed",
            check=check_blocks,
        )
    )
