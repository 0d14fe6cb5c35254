"""Compare and select: a compare leaves a bit a lane in the CMPMASK register, a select reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import Array, Compute, Field, Instruction, Pipe, Registers, Values, define
from davinci.isa.vector_regions import (
    FLOATS,
    Lanes,
    binary_fields,
    define_lanewise,
    elementwise,
    ub,
)

SOURCE = "docs/hardware.md a1 (types), b2 (time), c (select mode 0)"

ONE_REPEAT = Field("repeat", 56, 63, maximum=1, doc="0: no operation, 1: one repeat")
COMPARE_FIELDS = (
    *(f for f in binary_fields("src0", "src1") if f.name.endswith("_blk_stride")),
    ONE_REPEAT,
)


def comparing(function: Callable[..., Array], lanes: Lanes) -> Compute:
    """`compute` of a compare: lanes that take no part become 0."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        if values["repeat"]:
            found = function(arrays[0], arrays[1]).reshape(-1)
            _, mask = registers.lanes(lanes.count)
            result = np.zeros(128, dtype=bool)
            result[: found.size] = found if mask is None else found & mask
            registers.cmpmask = result
        return []

    return compute


def selecting(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of vsel: the same CMPMASK for every repeat."""
    x, y = arrays
    if x.size == 0:
        return [x]
    rows = x.reshape(values["repeat"], -1)
    chosen = np.where(registers.cmpmask[: rows.shape[1]], rows, y.reshape(rows.shape))
    return [chosen.reshape(x.shape)]


COMPARES: list[tuple[str, Callable[..., Array], str]] = [
    ("eq", np.equal, "src0 == src1"),
    ("ne", np.not_equal, "src0 != src1"),
    ("lt", np.less, "src0 < src1"),
    ("le", np.less_equal, "src0 <= src1"),
    ("gt", np.greater, "src0 > src1"),
    ("ge", np.greater_equal, "src0 >= src1"),
]

for dtype in FLOATS:
    compared = elementwise(src0=dtype, src1=dtype)
    for name, function, doc in COMPARES:
        define(
            Instruction(
                name=f"vcmp_{name}",
                type=dtype,
                pipe=Pipe.V,
                operands=(ub("src0"), ub("src1")),
                fields=COMPARE_FIELDS,
                accesses=compared.regions,
                compute=comparing(function, compared),
                timing="vector",
                doc=f"CMPMASK = {doc}, one bit a lane of one repeat; masked lanes become 0.",
                source=SOURCE,
            )
        )
    define_lanewise(
        "vsel",
        dtype,
        elementwise(dst=dtype, src0=dtype, src1=dtype),
        selecting,
        "dst = CMPMASK ? src0 : src1, lane by lane; the same CMPMASK for each repeat.",
        SOURCE,
    )
