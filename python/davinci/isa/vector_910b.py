"""Vector instructions that the 910B has besides those of the 910."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Field,
    Instruction,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.mte import move
from davinci.isa.vector import relu
from davinci.isa.vector_regions import (
    FLOATS,
    check_repeats,
    define_lanewise,
    elementwise,
    lanewise,
    ub,
    unary_fields,
)
from davinci.isa.vector_scalar import with_scalar
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS

BRCB_ELEMENTS = 8
SOURCE = "docs/hardware.md b2 (time), c (vector instructions of the 910B); encoding assumed"


def leaky_relu(x: Array, slope: Array) -> Array:
    """x where it is not negative, else x * slope."""
    return np.where(x >= 0, x, x * slope)


WITH_SCALAR: list[tuple[str, Callable[..., Array], tuple[str, ...], str]] = [
    ("vmaxs", np.maximum, (*FLOATS, "s16", "s32"), "dst = the larger of src and value."),
    ("vmins", np.minimum, (*FLOATS, "s16", "s32"), "dst = the smaller of src and value."),
    ("vlrelu", leaky_relu, FLOATS, "dst = src where src >= 0, else src * value."),
]

for name, function, dtypes, doc in WITH_SCALAR:
    for dtype in dtypes:
        lanes, compute = elementwise(dst=dtype, src=dtype), with_scalar(function, dtype)
        define_lanewise(name, dtype, lanes, compute, doc, SOURCE, scalar=True)

RELU_OF: list[tuple[str, Callable[..., Array], str]] = [
    ("vaddrelu", lambda x, y: relu(x + y), "dst = max(src0 + src1, 0)."),
    ("vsubrelu", lambda x, y: relu(x - y), "dst = max(src0 - src1, 0)."),
]

for name, function, doc in RELU_OF:
    for dtype in (*FLOATS, "s16"):
        lanes = elementwise(dst=dtype, src0=dtype, src1=dtype)
        define_lanewise(name, dtype, lanes, lanewise(function, dtype), doc, SOURCE)


def broadcast_regions(dtype: str) -> Regions:
    """Regions of vbrcb: elements read as [repeat, 8], dst as [repeat, 8, lanes of a block]."""
    element = DTYPES[dtype]

    def regions(values: Values, registers: Registers) -> Accesses:
        repeat = values["repeat"]
        step = BRCB_ELEMENTS * element.itemsize
        read = Access(Space.UB, values["src"], ((repeat, step),), BRCB_ELEMENTS, element)
        dims = (
            (repeat, values["dst_rep_stride"] * BLOCK_BYTES),
            (BRCB_ELEMENTS, values["dst_blk_stride"] * BLOCK_BYTES),
        )
        lanes = BLOCK_BYTES // element.itemsize
        return [read], [Access(Space.UB, values["dst"], dims, lanes, element)]

    return regions


def broadcast(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    return [arrays[0][..., None]]


for dtype in ("b16", "b32"):
    lanes = elementwise(dst=dtype, src=dtype)
    define_lanewise("vcopy", dtype, lanes, move, "dst = src.", SOURCE)
    define(
        Instruction(
            name="vbrcb",
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst"), ub("src")),
            fields=unary_fields("dst"),
            accesses=broadcast_regions(dtype),
            compute=broadcast,
            timing="vector",
            doc="dst[r, b] = src[8 r + b] in every lane of block b of repeat r. The vector mask "
            "has no effect.",
            source=SOURCE,
            check=check_repeats,
        )
    )

PATTERNS: list[tuple[int, int]] = [(2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3), (1, 0)]
"""Patterns 1 to 7 of vreducev2: of how many elements one is kept, and which."""

PATTERN = Field(
    "pattern",
    48,
    50,
    minimum=1,
    doc="1, 2: even or odd elements; 3 to 6: the first to fourth of every four; 7: all",
)


def kept_regions(dtype: str) -> Regions:
    """Regions of vreducev2: src as [repeat, blocks, lanes of a block], dst as one run."""
    element = DTYPES[dtype]
    width = BLOCK_BYTES // element.itemsize

    def regions(values: Values, registers: Registers) -> Accesses:
        repeat = values["repeat"]
        dims = (
            (repeat, values["src_rep_stride"] * BLOCK_BYTES),
            (REPEAT_BLOCKS, values["src_blk_stride"] * BLOCK_BYTES),
        )
        read = Access(Space.UB, values["src"], dims, width, element)
        count = repeat * REPEAT_BLOCKS * width // PATTERNS[values["pattern"] - 1][0]
        return [read], [Access(Space.UB, values["dst"], (), count, element)]

    return regions


def keep(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    step, first = PATTERNS[values["pattern"] - 1]
    return [arrays[0].reshape(-1)[first::step]]


for dtype in ("b16", "b32"):
    define(
        Instruction(
            name="vreducev2",
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst"), ub("src")),
            fields=(*unary_fields("src"), PATTERN),
            accesses=kept_regions(dtype),
            compute=keep,
            timing="vector",
            doc="dst = the elements of src that the pattern keeps, one after the other. The vector "
            "mask has no effect.",
            source=SOURCE,
        )
    )
