"""The matrix unit of the 950, whose L0A holds Nz: blocks of columns, as they lie in L1."""

from __future__ import annotations

from davinci.isa.cube import TYPES, define_mad

NZ_TYPES = ("f162f32", "bf162f32", "s82s32")

for types in TYPES:
    if types[0] in NZ_TYPES:
        define_mad("mad_nz", types, True, source="docs/hardware.md f (L0A of the 950), b1, c")
