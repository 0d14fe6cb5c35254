"""Numbers into L1, as the 910B's MTE2 writes them: what pads rows that are no whole fractals."""

from __future__ import annotations

from collections.abc import Sequence

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
from davinci.units import BLOCK_BYTES

FIELDS = (
    Field("n_burst", 0, 14, doc="number of bursts; 0: no operation"),
    Field("len_burst", 16, 30, doc="length of a burst in 32-byte blocks; 0: no operation"),
    Field("dst_gap", 32, 46, doc="32-byte blocks from the end of a burst to the next one"),
)


def regions_of(element: np.dtype[np.generic]) -> Regions:
    """Nothing is read; bursts of L1 are written."""

    def regions(values: Values, registers: Registers) -> Accesses:
        length = values["len_burst"]
        dims = ((values["n_burst"], (length + values["dst_gap"]) * BLOCK_BYTES),)
        run = length * BLOCK_BYTES // element.itemsize
        return [], [Access(Space.L1, values["dst"], dims, run, element)]

    return regions


def filled(element: np.dtype[np.generic]) -> Compute:
    """`compute`: the number, as often as it is written."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        run = values["len_burst"] * BLOCK_BYTES // element.itemsize
        return [np.full((values["n_burst"], run), values["value"], element)]

    return compute


for bits in (16, 32):
    element = DTYPES[f"u{bits}"]
    value = Field("value", 0, bits - 1, word=1, doc=f"the {bits} bits that are written")
    define(
        Instruction(
            name="create_cbuf_matrix",
            type=f"b{bits}",
            pipe=Pipe.MTE2,
            operands=(Operand("dst", Space.L1, True),),
            fields=(*FIELDS, value),
            accesses=regions_of(element),
            compute=filled(element),
            timing="l1_fill",
            doc=f"Fills bursts of L1 with a number of {bits} bits.",
            source="docs/hardware.md c (Fill)",
        )
    )
