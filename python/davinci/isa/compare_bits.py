"""Compares whose bits go to UB, selects that read them there, and extremes without lane numbers.

The 910B has these besides the compare and select of the 910, which meet in a register. A boolean
is a bit: lane i of a repeat is bit i % 8 of byte i // 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.compare import COMPARES
from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
    Instruction,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.reduce import EXTREME, ReducedRegions, reduction
from davinci.isa.vector_regions import (
    FLOATS,
    SCALAR,
    Lanes,
    binary_fields,
    check_repeats,
    elementwise,
    ub,
    unary_fields,
)
from davinci.isa.vector_scalar import scalar_of
from davinci.units import ceil_div

SOURCE = "docs/hardware.md b2 (time), c (compare and select of the 910B); encoding assumed"
BITS = 8
"""Lanes for which a byte has the booleans."""

BYTE = np.dtype(np.uint8)


def bits_at(values: Values, name: str, lanes: int, count: int, active: int) -> Access:
    """`count` bytes for each repeat at the address `name`, those of a repeat of `lanes` behind each
    other; nothing without active lanes."""
    dims = ((values["repeat"] if active else 0, lanes // BITS),)
    return Access(Space.UB, values[name], dims, count, BYTE)


def compare_regions(lanes: Lanes) -> Regions:
    """The sources that the mask lets through, and all bytes of the repeats' booleans."""

    def regions(values: Values, registers: Registers) -> Accesses:
        reads, _ = lanes.regions(values, registers)
        active, _ = registers.lanes(lanes.count)
        return reads, [bits_at(values, "dst", lanes.count, lanes.count // BITS, active)]

    return regions


def packed(found: Array, values: Values, registers: Registers, lanes: Lanes) -> Array:
    """Booleans of the active lanes as bytes [repeat, lanes / 8]; lanes without part give 0."""
    active, mask = registers.lanes(lanes.count)
    repeat = values["repeat"] if active else 0
    rows = np.zeros((repeat, lanes.count), dtype=bool)
    if found.size:
        given = found.reshape(repeat, -1)
        rows[:, : given.shape[1]] = given
    if mask is not None:
        rows &= mask
    rows[:, active:] = False
    return np.packbits(rows, axis=1, bitorder="little")


def to_bits(function: Callable[..., Array], lanes: Lanes, dtype: str, scalar: bool) -> Compute:
    """`compute` of a compare, with the field `value` where there is a scalar."""
    element = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        right = scalar_of(values, element) if scalar else arrays[1]
        return [packed(function(arrays[0], right), values, registers, lanes)]

    return compute


def select_regions(lanes: Lanes) -> Regions:
    """The regions of a lanewise instruction, and the bytes of the active lanes' booleans."""

    def regions(values: Values, registers: Registers) -> Accesses:
        reads, writes = lanes.regions(values, registers)
        active, _ = registers.lanes(lanes.count)
        bits = bits_at(values, "bits", lanes.count, ceil_div(active, BITS), active)
        return [*reads, bits], writes

    return regions


def chosen_by_bits(lanes: Lanes) -> Compute:
    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        x, y, bits = arrays
        if x.size == 0:
            return [x]
        rows = x.reshape(values["repeat"], -1)
        booleans = np.unpackbits(bits, axis=1, bitorder="little").astype(bool)
        width = rows.shape[1]
        if booleans.shape[1] < width:
            behind = ((0, 0), (0, width - booleans.shape[1]))
            booleans = np.pad(booleans, behind)
        return [np.where(booleans[:, :width], rows, y.reshape(rows.shape)).reshape(x.shape)]

    return compute


def define_compare(name: str, dtype: str, function: Callable[..., Array], doc: str) -> None:
    """Defines the compare of two arrays and that with a scalar."""
    for scalar in (False, True):
        names = ("src",) if scalar else ("src0", "src1")
        lanes = elementwise(**dict.fromkeys(names, dtype))
        fields = (*unary_fields("src"), SCALAR) if scalar else binary_fields(*names)
        meant = doc.replace("src0", "src").replace("src1", "value") if scalar else doc
        define(
            Instruction(
                name=f"vcmpvs_{name}" if scalar else f"vcmpv_{name}",
                type=dtype,
                pipe=Pipe.V,
                operands=(ub("dst", align_bytes=lanes.count // BITS), *map(ub, names)),
                fields=fields,
                accesses=compare_regions(lanes),
                compute=to_bits(function, lanes, dtype, scalar),
                timing="vector",
                doc=f"Bits of dst = {meant}, {lanes.count // BITS} bytes a repeat, one behind the "
                "other; masked lanes become 0 (assumed).",
                source=SOURCE,
            )
        )


for name, function, doc in COMPARES:
    for dtype in (*FLOATS, "s32") if name == "eq" else FLOATS:
        define_compare(name, dtype, function, doc)

for dtype in FLOATS:
    lanes = elementwise(dst=dtype, src0=dtype, src1=dtype)
    define(
        Instruction(
            name="vsel_bits",
            type=dtype,
            pipe=Pipe.V,
            operands=(
                *map(ub, ("dst", "src0", "src1")),
                ub("bits", align_bytes=lanes.count // BITS),
            ),
            fields=binary_fields("dst", "src0", "src1"),
            accesses=select_regions(lanes),
            compute=chosen_by_bits(lanes),
            timing="vector",
            doc="dst = bit ? src0 : src1, lane by lane, with the next bits for each repeat: mode 2 "
            "of vsel, where CMPMASK has the address of the bits, which is an operand here.",
            source=SOURCE,
            check=check_repeats,
        )
    )


def value_only(rows: ReducedRegions, pick: Callable[..., Array], neutral: float) -> Compute:
    """`compute` of an extreme without its lane number."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lanes = rows.source(arrays[0], registers, neutral)
        index = pick(lanes, axis=1)[:, None].astype(np.intp)
        return [np.take_along_axis(lanes, index, axis=1)]

    return compute


for dtype in FLOATS:
    single = ReducedRegions(dtype, 1, 1)
    for name, pick, neutral, doc in EXTREME:
        reduction(
            f"{name}_value",
            dtype,
            single,
            value_only(single, pick, neutral),
            f"dst[r] = {doc} active lane of repeat r: {name} with the order ONLY_VALUE.",
            "elements",
        )
