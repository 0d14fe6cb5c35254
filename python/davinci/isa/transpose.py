"""The transpose of 16 x 16 blocks, and the VA registers that hold its 16 + 16 row addresses."""

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
    Pipe,
    Registers,
    Space,
    Values,
    define,
    no_regions,
)
from davinci.isa.vector_regions import REPEAT
from davinci.units import BLOCK_BYTES

ROWS = 16
"""Rows of the square that one instruction transposes, and its columns of 16 bits."""

HALF_ROWS = 4
"""Row addresses that one set_va_reg takes; a VA register holds two such halves."""

ROW_TYPE = DTYPES["b16"]
SOURCE = "docs/hardware.md b2 (time), c (TransDataTo5HD); layout of the words assumed"


def set_va_reg(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    start = HALF_ROWS * values["half"]
    registers.va = registers.va.copy()  # others may hold the former addresses
    registers.va[values["va"], start : start + HALF_ROWS] = [
        values[f"address{i}"] * BLOCK_BYTES for i in range(HALF_ROWS)
    ]
    return ()


define(
    Instruction(
        name="set_va_reg",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field("va", 0, 2, doc="number of the VA register"),
            Field("half", 3, 3, doc="0: addresses 0..3 of the register, 1: addresses 4..7"),
            *(
                Field(
                    f"address{i}",
                    16 * i,
                    16 * i + 15,
                    word=1,
                    doc=f"row address {i} of the half, in 32-byte blocks of UB",
                )
                for i in range(HALF_ROWS)
            ),
        ),
        accesses=no_regions,
        compute=set_va_reg,
        timing="scalar",
        doc="Sets four of the eight row addresses of a VA register.",
        source=SOURCE,
    )
)


def addresses_of(values: Values, registers: Registers, side: str) -> list[int]:
    """Those of the 16 rows of "src" or "dst"."""
    low, high = values[f"{side}_va0"], values[f"{side}_va1"]
    return [*registers.va[low].tolist(), *registers.va[high].tolist()]


def evenly_spaced(addresses: list[int]) -> bool:
    """Whether rows that never go back are one region."""
    first, step = addresses[0], addresses[1] - addresses[0]
    return step >= 0 and addresses == [first + i * step for i in range(ROWS)]


def rows(space_dims: tuple[int, int], addresses: list[int]) -> list[Access]:
    """One region [16, repeat, 16] if the row addresses are evenly spaced, else one a row."""
    if evenly_spaced(addresses):
        step = addresses[1] - addresses[0]
        return [Access(Space.UB, addresses[0], ((ROWS, step), space_dims), ROWS, ROW_TYPE)]
    return [Access(Space.UB, address, (space_dims,), ROWS, ROW_TYPE) for address in addresses]


def transpose_regions(values: Values, registers: Registers) -> Accesses:
    repeat = values["repeat"]
    found = []
    for side in ("src", "dst"):
        # With one repeat the strides are ignored.
        stride = values[f"{side}_stride"] * BLOCK_BYTES if repeat > 1 else 0
        found.append(rows((repeat, stride), addresses_of(values, registers, side)))
    return found[0], found[1]


def transpose(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    source = arrays[0] if len(arrays) == 1 else np.stack(arrays)
    result = source.transpose(2, 1, 0)
    # Row by row the source, which may be a view of memory, would change under the later rows.
    one = evenly_spaced(addresses_of(values, registers, "dst"))
    return [result] if one else list(result.copy())


define(
    Instruction(
        name="scatter_vnchwconv",
        type="b16",
        pipe=Pipe.V,
        operands=(),
        fields=(
            Field("dst_va0", 0, 3, maximum=7, doc="VA register of destination rows 0..7"),
            Field("dst_va1", 4, 7, maximum=7, doc="VA register of destination rows 8..15"),
            Field("src_va0", 8, 11, maximum=7, doc="VA register of source rows 0..7"),
            Field("src_va1", 12, 15, maximum=7, doc="VA register of source rows 8..15"),
            Field("dst_stride", 16, 31, doc="32-byte blocks from one repeat to the next"),
            Field("src_stride", 32, 47, doc="32-byte blocks from one repeat to the next"),
            REPEAT,
        ),
        accesses=transpose_regions,
        compute=transpose,
        timing="vnchwconv",
        doc="Transposes 16 x 16 blocks of 16-bit elements: dst row i, lane j = src row j, lane i. "
        "Rows are at the addresses in the VA registers, moved by the strides after each repeat; "
        "with one repeat the strides are ignored. The vector mask has no effect.",
        source=SOURCE,
    )
)
