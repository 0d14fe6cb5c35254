"""Numbers into L1, as the 910B's MTE2 writes them: what pads rows that are no whole fractals."""

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
from davinci.units import BLOCK_BYTES

ELEMENT = DTYPES["u16"]

FIELDS = (
    Field("n_burst", 0, 14, doc="number of bursts; 0: no operation"),
    Field("len_burst", 16, 30, doc="length of a burst in 32-byte blocks; 0: no operation"),
    Field("dst_gap", 32, 46, doc="32-byte blocks from the end of a burst to the next one"),
    Field("value", 0, 15, word=1, doc="the 16 bits that are written"),
)


def regions(values: Values, registers: Registers) -> Accesses:
    """Nothing is read; bursts of L1 are written."""
    length = values["len_burst"]
    dims = ((values["n_burst"], (length + values["dst_gap"]) * BLOCK_BYTES),)
    run = length * BLOCK_BYTES // ELEMENT.itemsize
    return [], [Access(Space.L1, values["dst"], dims, run, ELEMENT)]


def filled(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute`: the number, as often as it is written."""
    run = values["len_burst"] * BLOCK_BYTES // ELEMENT.itemsize
    return [np.full((values["n_burst"], run), values["value"], ELEMENT)]


define(
    Instruction(
        name="create_cbuf_matrix",
        type="b16",
        pipe=Pipe.MTE2,
        operands=(Operand("dst", Space.L1, True),),
        fields=FIELDS,
        accesses=regions,
        compute=filled,
        timing="l1_fill",
        doc="Fills bursts of L1 with a number of 16 bits.",
        source="docs/hardware.md c (Fill)",
    )
)
