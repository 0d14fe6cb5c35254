"""What the cube and fixpipe of the 910B add to sums and multiply them by: the bias table (BT) and
the buffer of fixpipe (FB), which are filled from L1, and two registers of fixpipe.

    BT            a number for each column of a product, which `mad_bias` begins with
    FB            a word of 64 bits for each column, by which fixpipe quantises (`isa.quantize`)
    QUANT_PRE     one such word for all columns
    FPC           where the words of columns begin in FB: bits 8..15, in units of 128 bytes
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.isa.core import (
    Array,
    Field,
    Instruction,
    Operand,
    Pipe,
    Registers,
    Space,
    Values,
    define,
    no_regions,
)
from davinci.isa.mte import burst_fields, bursts, move

BIAS_UNIT, SCALE_UNIT = 64, 128
"""Bytes that lengths of copies into BT and FB count."""

FPC_SCALES_SHIFT, FPC_SCALES_BITS = 8, 8
"""Where FPC holds the address of words of columns."""

COPIES = (
    ("copy_cbuf_to_bt", Space.BT, BIAS_UNIT, Pipe.MTE1, "l1_to_bt"),
    ("copy_cbuf_to_fbuf", Space.FB, SCALE_UNIT, Pipe.FIX, "l1_to_fb"),
)

for name, space, unit, pipe, timing in COPIES:
    define(
        Instruction(
            name=name,
            type="",
            pipe=pipe,
            operands=(Operand("dst", space, True), Operand("src", Space.L1, False)),
            fields=burst_fields(f"{unit} bytes"),
            accesses=bursts((Space.L1, "u8", unit), (space, "u8", unit)),
            compute=move,
            timing=timing,
            doc=f"Copies bursts from L1 to {space.name}.",
            source="docs/hardware.md a3 (rates), c (quantisation); places of the fields assumed",
        )
    )


def set_quant_pre(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    registers.quant_pre = values["bits"]
    return ()


def set_fpc(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    registers.fpc = values["bits"]
    return ()


REGISTERS = (
    ("set_quant_pre", set_quant_pre, 64, "Sets the word by which fixpipe quantises all columns."),
    (
        "set_fpc",
        set_fpc,
        FPC_SCALES_SHIFT + FPC_SCALES_BITS,
        "Sets FPC: where in FB the words lie by which fixpipe quantises columns.",
    ),
)
"""Instructions that set a register, with its bits."""

for name, compute, width, doc in REGISTERS:
    define(
        Instruction(
            name=name,
            type="",
            pipe=Pipe.S,
            operands=(),
            fields=(Field("bits", 0, width - 1, doc="the register; 0 at the start of a program"),),
            accesses=no_regions,
            compute=compute,
            timing="scalar",
            doc=f"{doc} Fixpipe takes it when it is issued (assumed, as of other registers).",
            source="docs/hardware.md c (quantisation)",
        )
    )


def scales_address(registers: Registers) -> int:
    """Byte address in FB of the word of the first column, as FPC has it."""
    return (registers.fpc >> FPC_SCALES_SHIFT & (1 << FPC_SCALES_BITS) - 1) * SCALE_UNIT
