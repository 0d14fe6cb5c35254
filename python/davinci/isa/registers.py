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
from davinci.isa.halves import of_type
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
