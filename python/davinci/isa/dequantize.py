"""Results out of L0C that are changed on their way to UB: scaled as f16, and made not negative.

What CCE calls modes of `copy_matrix_cc_to_ubuf`, types here. Sums of bytes (s32) become f16 times a
scale that the register DEQSCALE holds:

    s322f16     bits 0..15 of the register are the scale, f16
    s322f16v    bits 0..14 are the address of 16 scales of f16 in UB, in blocks of 32 bytes, one for
                each column of the fractals; bit 15: negative results become 0

A product is rounded once: dst = f16(f32(src) * f32(scale)), to nearest, halves to even; overflow
gives infinity. That is assumed: what is published says no more than which types there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
    Field,
    Instruction,
    Pipe,
    Registers,
    Space,
    Values,
    define,
    no_regions,
)
from davinci.isa.halves import converted
from davinci.isa.mte import L0C_TYPES, define_l0c_copy, from_l0c, narrow
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

SOURCE = "docs/hardware.md a1 (rates), c (L0C to UB)"

SCALE_BITS = 16
"""Bits of DEQSCALE that hold the scale."""

RELU_BIT = 15
"""The bit of DEQSCALE that makes negative results 0, where the rest holds an address."""

HALF = DTYPES["f16"]


def set_deqscale(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    registers.deqscale = values["bits"]
    return ()


define(
    Instruction(
        name="set_deqscale",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field(
                "bits",
                0,
                SCALE_BITS - 1,
                doc="bits of a scale, f16; or the address of 16 of them in UB, in 32-byte blocks, "
                "and 1 << 15 to make negative results 0; 0 at the start of a program",
            ),
        ),
        accesses=no_regions,
        compute=set_deqscale,
        timing="scalar",
        doc="Sets DEQSCALE, by which copies scale what leaves L0C. They take it when they are "
        "issued (assumed, as of other registers).",
        source=SOURCE,
    )
)


def dequantized(sums: Array, scale: Array) -> Array:
    """i32 times f16, rounded to f16 once."""
    return converted(sums.astype(np.float32) * scale.astype(np.float32), HALF)


def by_number(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a copy that scales by the number in DEQSCALE."""
    scale = np.array(registers.deqscale & 0xFFFF, np.uint16).view(HALF)
    return [dequantized(arrays[0], scale)]


def by_columns(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a copy that scales by the columns of fractals."""
    sums, scales = arrays
    if not sums.size:
        return [sums.astype(HALF)]
    made = dequantized(sums.reshape(-1, SIDE), scales).reshape(sums.shape)
    if registers.deqscale >> RELU_BIT & 1:
        made = np.where(made < 0, HALF.type(0), made)
    return [made]


OF_SUMS = from_l0c("s32", "f16")


def with_scales(values: Values, registers: Registers) -> Accesses:
    """The regions of a copy, and the scales that DEQSCALE names."""
    reads, writes = OF_SUMS(values, registers)
    blocks = registers.deqscale & (1 << RELU_BIT) - 1
    here = Access(Space.UB, blocks * BLOCK_BYTES, (), SIDE, HALF)
    nothing = writes[0].span_bytes == 0
    return [*reads, replace(here, run=0) if nothing else here], writes


def not_negative(compute: Compute) -> Compute:
    """`compute` of a copy of whose results negative ones become 0."""

    def made(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        (found,) = compute(values, registers, arrays)
        return [np.where(found < 0, found.dtype.type(0), found)]

    return made


for kind, (src_type, dst_type) in L0C_TYPES.items():
    define_l0c_copy(
        f"{kind}relu",
        from_l0c(src_type, dst_type),
        not_negative(narrow(dst_type)),
        f"Copies 16 x 16 fractals of {src_type} from L0C to UB as {dst_type}; negative values "
        "become 0.",
        SOURCE,
    )

define_l0c_copy(
    "s322f16",
    OF_SUMS,
    by_number,
    "Copies 16 x 16 fractals of s32 from L0C to UB as f16, times the number in DEQSCALE, rounded "
    "once, to nearest, halves to even (assumed).",
    SOURCE,
)
define_l0c_copy(
    "s322f16v",
    with_scales,
    by_columns,
    "Copies 16 x 16 fractals of s32 from L0C to UB as f16, their columns times the 16 numbers of "
    "f16 in UB that DEQSCALE names, rounded once, to nearest, halves to even (assumed); negative "
    "ones become 0 if it says so.",
    SOURCE,
)
