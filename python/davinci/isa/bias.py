"""Products that begin with a bias, as the 910B has them."""

from __future__ import annotations

from davinci.isa.core import Instruction, Operand, Pipe, Space, define
from davinci.isa.cube import BIASED, FIELDS, WithBias
from davinci.isa.unit_flags import check_unit_flag

for type_name, a, b, c in BIASED:
    product = WithBias(a, b, c)
    k = f"k/{product.columns}"
    define(
        Instruction(
            name="mad_bias",
            type=type_name,
            pipe=Pipe.M,
            operands=(
                Operand("c", Space.L0C, True, "C, Nz: [n/16][m/16][16 m][16 n]"),
                Operand("a", Space.L0A, False, f"A, Zz: [m/16][{k}][16 m][k]"),
                Operand("b", Space.L0B, False, f"B, Zn: [{k}][n/16][16 n][k]"),
                Operand("bias", Space.BT, False, f"{c} for each column"),
            ),
            fields=tuple(field for field in FIELDS if field.name != "init"),
            accesses=product.regions,
            compute=product.compute,
            timing="cube",
            doc=f"C = bias + A*B, {a} x {b} to {c}: a mad whose C comes from the bias table (bit "
            "62 of its word), whose address CCE packs beside that of C.",
            source="docs/hardware.md c (bias), b1 (time)",
            check=check_unit_flag,
        )
    )
