"""Data movement: bursts between memories, fractals into L0A and L0B, results out of L0C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.halves import converted
from davinci.isa.stores import store, stored
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_SIDE

L0C_ELEMENTS = FRACTAL_SIDE * FRACTAL_SIDE


def burst_fields(unit: str) -> tuple[Field, ...]:
    """Fields of all burst copies; lengths and gaps count `unit`."""
    return (
        Field("n_burst", 4, 15, doc="number of bursts; 0: no operation"),
        Field("len_burst", 16, 31, doc=f"length of a burst in {unit}; 0: no operation"),
        Field("src_gap", 32, 47, doc=f"{unit} from the end of a source burst to the next one"),
        Field("dst_gap", 48, 63, doc=f"{unit} from the end of a written burst to the next one"),
    )


def bursts(
    src: tuple[Space, str, int],
    dst: tuple[Space, str, int],
) -> Regions:
    """Regions of a burst copy; each side is (memory, element type, elements of a unit)."""
    (src_space, src_type, unit), (dst_space, dst_type, _) = src, dst
    src_dtype, dst_dtype = DTYPES[src_type], DTYPES[dst_type]
    src_bytes, dst_bytes = unit * src_dtype.itemsize, unit * dst_dtype.itemsize

    def regions(values: Values, registers: Registers) -> Accesses:
        count, length = values["n_burst"], values["len_burst"]
        src_gap, dst_gap = values["src_gap"], values["dst_gap"]
        run = length * unit
        if count == 1 or (src_gap == 0 and dst_gap == 0):
            read = Access(src_space, values["src"], (), count * run, src_dtype)
            write = Access(dst_space, values["dst"], (), count * run, dst_dtype)
        else:
            src_dims = ((count, (length + src_gap) * src_bytes),)
            dst_dims = ((count, (length + dst_gap) * dst_bytes),)
            read = Access(src_space, values["src"], src_dims, run, src_dtype)
            write = Access(dst_space, values["dst"], dst_dims, run, dst_dtype)
        return [read], [write]

    return regions


def move(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a copy."""
    return arrays


COPIES: list[tuple[str, Space, Space, Pipe, str]] = [
    ("copy_gm_to_ubuf", Space.GM, Space.UB, Pipe.MTE2, "mte2"),
    ("copy_gm_to_cbuf", Space.GM, Space.L1, Pipe.MTE2, "mte2"),
    ("copy_ubuf_to_gm", Space.UB, Space.GM, Pipe.MTE3, "mte3"),
    ("copy_ubuf_to_cbuf", Space.UB, Space.L1, Pipe.MTE3, "mte3"),
    ("copy_cbuf_to_ubuf", Space.L1, Space.UB, Pipe.MTE1, "mte1_copy"),
    ("copy_ubuf_to_ubuf", Space.UB, Space.UB, Pipe.V, "ub_to_ub"),
]

for name, src, dst, pipe, timing in COPIES:
    regions = bursts((src, "u8", BLOCK_BYTES), (dst, "u8", BLOCK_BYTES))
    to_gm = dst == Space.GM
    define(
        Instruction(
            name=name,
            type="",
            pipe=pipe,
            operands=(Operand("dst", dst, True), Operand("src", src, False)),
            fields=burst_fields("32-byte blocks"),
            accesses=store(regions) if to_gm else regions,
            compute=stored if to_gm else move,
            timing=timing,
            doc=f"Copies bursts of 32-byte blocks from {src.name} to {dst.name}. "
            "Addresses in GM need no alignment.",
            source="docs/hardware.md a1 (paths), c (DataCopy)",
        )
    )


def load2d(src: Space, dst: Space, dtype: str) -> Regions:
    """Regions of a 2-D load: fractals at a stride from `src`, one after the other into `dst`."""
    element = DTYPES[dtype]
    fractal = FRACTAL_BYTES // element.itemsize

    def regions(values: Values, registers: Registers) -> Accesses:
        repeat, stride = values["repeat"], values["src_stride"]
        address = values["src"] + values["start_index"] * FRACTAL_BYTES
        write = Access(dst, values["dst"], (), repeat * fractal, element)
        if repeat == 1 or stride == 1:
            return [Access(src, address, (), repeat * fractal, element)], [write]
        dims = ((repeat, stride * FRACTAL_BYTES),)
        return [Access(src, address, dims, fractal, element)], [write]

    return regions


def load_fractals(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a 2-D load; with `transpose` each 16 x 16 fractal is transposed."""
    (source,) = arrays
    if values.get("transpose"):
        source = source.reshape(-1, FRACTAL_SIDE, FRACTAL_SIDE).transpose(0, 2, 1)
    return [source.reshape(-1)]


TRANSPOSE = Field("transpose", 40, 40, doc="1: transpose each fractal (16-bit types only)")

LOADS = [
    ("load_cbuf_to_ca", Space.L1, Space.L0A, Pipe.MTE1, "mte1_load2d"),
    ("load_cbuf_to_cb", Space.L1, Space.L0B, Pipe.MTE1, "mte1_load2d"),
    ("load_gm_to_ca", Space.GM, Space.L0A, Pipe.MTE2, "mte2"),
    ("load_gm_to_cb", Space.GM, Space.L0B, Pipe.MTE2, "mte2"),
]

for name, src, dst, pipe, timing in LOADS:
    from_gm = src == Space.GM
    for dtype in ("f16", "s8", "u8", *(() if from_gm else ("f32",))):
        turns = replace(TRANSPOSE, maximum=int(DTYPES[dtype].itemsize == 2))
        define(
            Instruction(
                name=name,
                type=dtype,
                pipe=pipe,
                operands=(Operand("dst", dst, True), Operand("src", src, False)),
                fields=(
                    Field("start_index", 0, 15, doc="fractals to skip at the source"),
                    Field("src_stride", 24, 39, doc="fractals from one source fractal to the next"),
                    *(() if from_gm else (turns,)),
                    Field("repeat", 56, 63, doc="number of fractals; 0: no operation"),
                ),
                accesses=load2d(src, dst, dtype),
                compute=load_fractals,
                timing=timing,
                doc=f"Loads fractals of 512 bytes from {src.name} to {dst.name}, one after the "
                "other.",
                source="docs/hardware.md c (load2d); time assumed: that of a burst to L1"
                if from_gm
                else "docs/hardware.md a1 (rates), c (load2d)",
            )
        )


def narrow(dtype: str) -> Compute:
    """`compute` of a copy that converts to `dtype`."""
    element: np.dtype[np.generic] = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        (source,) = arrays
        return [source if source.dtype == element else converted(source, element)]

    return compute


def from_l0c(src_type: str, dst_type: str) -> Regions:
    """Regions of a copy of fractals from L0C to UB."""
    return bursts((Space.L0C, src_type, L0C_ELEMENTS), (Space.UB, dst_type, L0C_ELEMENTS))


def define_l0c_copy(kind: str, accesses: Regions, compute: Compute, doc: str, source: str) -> None:
    """A type of the copies of fractals from L0C to UB."""
    define(
        Instruction(
            name="copy_matrix_cc_to_ubuf",
            type=kind,
            pipe=Pipe.V,
            operands=(Operand("dst", Space.UB, True), Operand("src", Space.L0C, False)),
            fields=burst_fields("fractals of 256 elements of their side"),
            accesses=accesses,
            compute=compute,
            timing="l0c_to_ub",
            doc=doc,
            source=source,
        )
    )


L0C_TYPES = {
    "f32": ("f32", "f32"),
    "f16": ("f16", "f16"),
    "s32": ("s32", "s32"),
    "f322f16": ("f32", "f16"),
}
"""Types of fractals in L0C and UB, by the types of copies that do not scale them."""

for kind, (src_type, dst_type) in L0C_TYPES.items():
    define_l0c_copy(
        kind,
        from_l0c(src_type, dst_type),
        narrow(dst_type),
        f"Copies 16 x 16 fractals of {src_type} from L0C to UB as {dst_type}.",
        source="docs/hardware.md a1 (rates), c (L0C to UB goes through the vector pipe)",
    )
