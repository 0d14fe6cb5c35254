"""Products that begin with a bias, as the 910B has them."""

from __future__ import annotations

from davinci.isa.core import Operand, Space
from davinci.isa.cube import BIASED, FIELDS, WithBias, define_product

for type_name, a, b, c in BIASED:
    define_product(
        "mad_bias",
        type_name,
        WithBias(a, b, c),
        [field for field in FIELDS if field.name != "init"],
        [Operand("bias", Space.BT, False, f"{c} for each column")],
        doc=f"C = bias + A*B, {a} x {b} to {c}: a mad whose C comes from the bias table (bit "
        "62 of its word), whose address CCE packs beside that of C.",
        source="docs/hardware.md c (bias), b1 (time)",
    )
