"""Instructions on vector registers, as the 950 has them.

Its vector unit computes on registers of 256 bytes. What it does between loads and stores is a
function, code of its own that the scalar unit calls (`vf_call`); the instructions that the unit
then fetches follow the call in the stream, as often as its loops pass them. They are no
instructions of the scalar unit. All lanes take part: masks are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    Registers,
    Space,
    Values,
    define,
    no_compute,
    no_regions,
)
from davinci.isa.halves import converted, of_type
from davinci.isa.vector import BINARY, UNARY
from davinci.isa.vector_regions import FLOATS, SCALAR, lanewise
from davinci.isa.vector_scalar import with_scalar
from davinci.units import REPEAT_BYTES

SOURCE = "docs/hardware.md f (registers of the 950); encoding assumed"

define(
    Instruction(
        name="vf_call",
        type="",
        pipe=Pipe.V,
        operands=(),
        fields=(
            Field("count", 0, 31, minimum=1, doc="instructions on registers that it executes"),
        ),
        accesses=no_regions,
        compute=no_compute,
        timing="vector_function",
        doc="Calls a function of the vector unit: the instructions on registers that follow.",
        source=SOURCE,
    )
)


def operand(name: str, space: Space) -> Operand:
    """A register, or 256 bytes of UB, written if it is called dst."""
    return Operand(name, space, name == "dst")


def whole(
    spaces: Sequence[tuple[str, Space]], dtypes: dict[str, str]
) -> Callable[[Values, Registers], Accesses]:
    """Regions of 256 bytes of each operand."""

    def regions(values: Values, registers: Registers) -> Accesses:
        found = {
            name: Access(
                space,
                values[name],
                (),
                REPEAT_BYTES // DTYPES[dtypes[name]].itemsize,
                DTYPES[dtypes[name]],
            )
            for name, space in spaces
        }
        return [a for name, a in found.items() if name != "dst"], [found["dst"]]

    return regions


def define_register(
    name: str,
    dtype: str,
    spaces: Sequence[tuple[str, Space]],
    compute: Compute,
    doc: str,
    scalar: bool = False,
) -> None:
    """Defines an instruction on registers of one element type."""
    define(
        Instruction(
            name=name,
            type=dtype,
            pipe=Pipe.V,
            operands=tuple(operand(*each) for each in spaces),
            fields=(SCALAR_FIELD,) if scalar else (),
            accesses=whole(spaces, {each: dtype for each, _ in spaces}),
            compute=compute,
            timing="register",
            doc=doc,
            source=SOURCE,
        )
    )


SCALAR_FIELD = Field("value", SCALAR.lo, SCALAR.hi, doc=SCALAR.doc)


def same(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a load or store."""
    return [arrays[0]]


def first_lane(function: Callable[[Array], Array], dtype: str) -> Compute:
    """`compute` of a reduction: its result in lane 0, zeros in the others."""
    result = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lanes = np.zeros(arrays[0].shape, result)
        lanes[0] = np.float32(function(arrays[0].astype(np.float32))).astype(result)
        return [lanes]

    return compute


def spread(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of vdup: lane 0 in every lane."""
    return [np.broadcast_to(arrays[0][:1], arrays[0].shape)]


DST = ("dst", Space.VREG)
ONE, TWO = (DST, ("src", Space.VREG)), (DST, ("src0", Space.VREG), ("src1", Space.VREG))

MOVES: list[tuple[str, tuple[tuple[str, Space], ...], str]] = [
    ("vlds", (DST, ("src", Space.UB)), "Loads 256 bytes of UB into a register."),
    ("vsts", (("dst", Space.UB), ("src", Space.VREG)), "Stores a register into UB."),
]
UNKNOWN = ("vrec",)
"""Instructions on UB of which no twin on registers is known."""

WITH_SCALAR: list[tuple[str, Callable[..., Array], str]] = [
    ("vadds", np.add, "src + value"),
    ("vmuls", np.multiply, "src * value"),
    ("vmaxs", np.maximum, "the larger of src and value"),
    ("vmins", np.minimum, "the smaller of src and value"),
]
REDUCTIONS: list[tuple[str, Callable[[Array], Array], str]] = [
    ("vcadd", np.sum, "sum of all lanes of src"),
    ("vcmax", np.max, "largest lane of src"),
    ("vcmin", np.min, "smallest lane of src"),
]

for dtype in FLOATS:
    for name, spaces, doc in MOVES:
        define_register(name, dtype, spaces, same, doc)
    for on_ub, spaces in ((BINARY, TWO), (UNARY, ONE)):
        for name, function, dtypes, doc in on_ub:
            if dtype in dtypes and name not in UNKNOWN:
                compute = lanewise(of_type(function, dtype), dtype)
                text = f"{doc.partition(';')[0]}, of registers."
                define_register(f"{name}_reg", dtype, spaces, compute, text)
    for name, function, doc in WITH_SCALAR:
        compute = with_scalar(of_type(function, dtype), dtype)
        text = f"dst = {doc}, of registers."
        define_register(f"{name}_reg", dtype, ONE, compute, text, scalar=True)
    for name, reduce, doc in REDUCTIONS:
        text = f"Lane 0 of dst = {doc}, the others 0, of registers."
        define_register(f"{name}_reg", dtype, ONE, first_lane(reduce, dtype), text)
    define_register("vdup_reg", dtype, ONE, spread, "Lane 0 of src in every lane of dst.")


def multiplied(dtype: str) -> Compute:
    """`compute` of vmula: dst + src0 * src1, rounded after each of the two."""
    result = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        one, two, there = arrays
        return [(there + (one * two).astype(result)).astype(result)]

    return compute


def accumulating(dtype: str) -> Callable[[Values, Registers], Accesses]:
    """Regions of vmula, which reads dst too."""
    three = whole(TWO, dict.fromkeys(("dst", "src0", "src1"), dtype))

    def regions(values: Values, registers: Registers) -> Accesses:
        reads, writes = three(values, registers)
        return [*reads, *writes], writes

    return regions


for dtype in FLOATS:
    define(
        Instruction(
            name="vmula_reg",
            type=dtype,
            pipe=Pipe.V,
            operands=tuple(operand(*each) for each in TWO),
            fields=(),
            accesses=accumulating(dtype),
            compute=multiplied(dtype),
            timing="register",
            doc="dst = dst + src0 * src1, of registers; how it rounds is not published: twice.",
            source=SOURCE,
        )
    )


def halves_in_lanes(
    values: Values, registers: Registers, arrays: Sequence[Array]
) -> Sequence[Array]:
    """`compute` of vcvt to f16: in the lower half of each lane of 32 bits, zeros in the upper."""
    lanes = np.zeros(2 * arrays[0].size, np.float16)
    lanes[::2] = converted(arrays[0], DTYPES["f16"])
    return [lanes]


define(
    Instruction(
        name="vcvt_reg",
        type="f322f16",
        pipe=Pipe.V,
        operands=tuple(operand(*each) for each in ONE),
        fields=(),
        accesses=whole(ONE, {"dst": "f16", "src": "f32"}),
        compute=halves_in_lanes,
        timing="register",
        doc="Rounds 64 lanes of f32 to f16, each in the lower half of its lane of 32 bits.",
        source=SOURCE,
    )
)


def packed_regions(values: Values, registers: Registers) -> Accesses:
    """A register, of which UB gets the lower half of each lane of 32 bits."""
    half = DTYPES["b16"]
    lanes = REPEAT_BYTES // DTYPES["b32"].itemsize
    read = Access(Space.VREG, values["src"], ((lanes, 2 * half.itemsize),), 1, half)
    return [read], [Access(Space.UB, values["dst"], (), lanes, half)]


def in_a_row(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a store that packs."""
    return [arrays[0].reshape(-1)]


define(
    Instruction(
        name="vsts_pk",
        type="b32",
        pipe=Pipe.V,
        operands=(operand("dst", Space.UB), operand("src", Space.VREG)),
        fields=(),
        accesses=packed_regions,
        compute=in_a_row,
        timing="register",
        doc="Stores the lower half of each lane of 32 bits, 128 bytes, into UB.",
        source=SOURCE,
    )
)
