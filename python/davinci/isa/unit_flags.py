"""The unit flag, by which the cube and fixpipe hand L0C to each other fractal by fractal.

Each unit of L0C, 16 x 16 sums of 32 bits, has a flag that is clear at first. An instruction whose
field `unit_flag` is not 0 does with each of its units what the flag of that unit allows, and waits
for it until then:

    mad       writes a unit whose flag is clear; with FLIP it sets the flag behind
    fixpipe   reads a unit whose flag is set; with FLIP it clears the flag behind

A product in several mads has KEEP in all but the last one, which has FLIP as fixpipe has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from davinci.isa.core import Array, Field, Instruction, Pipe, Space, Values
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

OFF, RESERVED, KEEP, FLIP = range(4)
"""Values of the field."""

UNIT_BYTES = SIDE * SIDE * 4
"""Bytes of a unit. What is published says 512; which half of a fractal comes first does not matter
as long as instructions have whole fractals (assumed: those that they touch)."""

UNIT_GIVERS = {Pipe.M: Pipe.FIX, Pipe.FIX: Pipe.M}
"""By pipe the one that hands units of L0C over to it."""

DOC = (
    "0: no unit flags; 2: each unit of L0C when its flag allows it; 3: the same, and the flag is "
    "changed behind it"
)


def unit_flag_field(lo: int, word: int) -> Field:
    """The field at two bits of a configuration word."""
    return Field("unit_flag", lo, lo + 1, word=word, doc=DOC, optional=True)


def check_unit_flag(values: Values) -> str:
    """Why the field of an instruction that reads L0C is not legal, or ""."""
    flag = values.get("unit_flag", OFF)
    if flag == RESERVED:
        return f"unit_flag {flag} is reserved: expected {OFF}, {KEEP} or {FLIP}"
    if flag and "src_stride" in values and values["n_size"] > SIDE and values["src_stride"] % SIDE:
        return (
            f"unit flags are of whole fractals: found src_stride {values['src_stride']}, expected "
            f"a multiple of {SIDE}"
        )
    return ""


class UnitBlocks(NamedTuple):
    """The units of L0C that a mad or fixpipe has to do with, in the order in which it takes them.

    Attributes:
        flag: its field.
        blocks, rows: blocks of 16 columns, and the units of each.
        pitch: units from one block to the next.
    """

    flag: int = OFF
    blocks: int = 0
    rows: int = 0
    pitch: int = 0

    @property
    def size(self) -> int:
        return self.blocks * self.rows

    def numbers(self, address: int) -> Array:
        """Their numbers in L0C, from an address there on."""
        first = address // UNIT_BYTES + self.pitch * np.arange(self.blocks)
        return (first[:, None] + np.arange(self.rows)).reshape(-1)


def l0c_word(record: Instruction) -> int:
    """The word of a record that holds an address in L0C if the record has unit flags, else 0."""
    if record.field_named("unit_flag") is None:
        return 0
    return 1 + next(i for i, o in enumerate(record.operands) if o.space is Space.L0C)


def unit_blocks(record: Instruction, values: Values) -> UnitBlocks:
    """The units of an instruction, none if its record has no unit flags."""
    if record.field_named("unit_flag") is None:
        return UnitBlocks()
    if record.timing == "cube":
        some = values["m"] and values["k"] and values["n"]
        rows = ceil_div(values["m"], SIDE)
        columns, pitch = values["n"], rows
    else:
        rows, columns = ceil_div(values["m_size"], SIDE), values["n_size"]
        some, pitch = rows and columns, values["src_stride"] // SIDE
    if not some:
        return UnitBlocks(values["unit_flag"])
    return UnitBlocks(values["unit_flag"], ceil_div(columns, SIDE), rows, pitch)
