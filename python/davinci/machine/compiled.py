"""Requirements of the compiler on a machine that it makes kernels for.

A machine file that lacks some of it is still one that kernels written by hand run on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from davinci.errors import CompileError, shipped
from davinci.isa import BY_NAME
from davinci.machine.legality import missing_units
from davinci.machine.schema import Machine
from davinci.machine.views import for_cube, for_vector
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES

REAL = ("f16", "f32")
NUMBERS = (*REAL, "s32")

NEEDED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("vadd", "vsub", "vmul", "vmax", "vmin", "vrelu"), NUMBERS),
    **dict.fromkeys(("vdiv", "vexp", "vln", "vsqrt", "vrsqrt", "vrec", "vabs"), REAL),
    **dict.fromkeys(("vadds", "vmuls", "vsel", "vcadd"), REAL),
    **{f"vcmp_{relation}": REAL for relation in ("eq", "ne", "lt", "le", "gt", "ge")},
    **dict.fromkeys(("vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin"), ("f16",)),
    **dict.fromkeys(("vand", "vor", "vnot"), ("s16",)),
    "vector_dup": (*NUMBERS, "s16"),
    **dict.fromkeys(("vconv_f162f32", "vconv_f322f16", "vconv_s322f32"), ("",)),
    **{f"vconv_{of}2s32{way}": ("",) for of in REAL for way in "rafcz"},
    "scatter_vnchwconv": ("b16",),
    **dict.fromkeys(("set_va_reg", "set_vector_mask"), ("",)),
    "mad": ("f162f32",),
    "copy_matrix_cc_to_ubuf": (*NUMBERS, "f322f16"),
    **dict.fromkeys(("load_cbuf_to_ca", "load_cbuf_to_cb"), ("f16",)),
    **dict.fromkeys(("img2col_cbuf_to_ca", "img2col_cbuf_to_cb"), ("f16",)),
    **dict.fromkeys(("set_fmatrix", "set_padding"), ("",)),
    **dict.fromkeys(("copy_gm_to_ubuf", "copy_gm_to_cbuf", "copy_ubuf_to_gm"), ("",)),
    **dict.fromkeys(("copy_ubuf_to_cbuf", "copy_cbuf_to_ubuf", "copy_ubuf_to_ubuf"), ("",)),
    **dict.fromkeys(("set_flag", "wait_flag", "pipe_barrier"), ("",)),
}
"""Instructions and types that kernels of floats are made of. Those for bytes and for other sums are
asked for where a model needs them. Vector cores need only those of units that they have; an
operator for the cube is refused there when it is encoded."""

NEEDED_OF_CUBE_CORES: dict[str, tuple[str, ...]] = {
    "mad": ("f162f32",),
    "fixpipe": ("f32", "f322f16"),
    **dict.fromkeys(("copy_gm_to_cbuf_multi_nd2nz", "create_cbuf_matrix"), ("b16",)),
    **dict.fromkeys(("load_cbuf_to_ca", "load_cbuf_to_cb"), ("f16",)),
    **dict.fromkeys(("copy_gm_to_cbuf", "set_flag", "wait_flag", "pipe_barrier"), ("",)),
}
"""The same of cores that have a cube and no vector unit."""

MOST_ALIGN = {
    "L1": BLOCK_BYTES,
    "UB": BLOCK_BYTES,
    "L0A": FRACTAL_BYTES,
    "L0B": FRACTAL_BYTES,
    "L0C": FRACTAL_BYTES,
}
"""Addresses of operands in kernels are multiples of this, at least."""


def not_compilable(machine: Machine) -> CompileError | None:
    """Why the compiler makes no kernels for a machine like this, with the key of its file; None if
    it does.

    On a split machine kernels are for vector cores or for cube cores.
    """
    limits = [_limits(for_vector(machine), NEEDED)]
    if machine.split:
        limits.append(_limits(for_cube(machine), NEEDED_OF_CUBE_CORES))
    for key, found, expected in itertools.chain(*limits):
        return CompileError(
            f"the compiler makes no kernels for {machine.name} as its file describes it in {key}",
            found=found,
            expected=expected,
            hint="change the machine file, or write kernels by hand, see "
            f"{shipped('hand_written.mlir')}",
        )
    return None


def _limits(
    machine: Machine, needed: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str, str]]:
    """Keys of a coupled machine's file that leave the compiler without what it needs, with what was
    found and expected there."""
    vector_only = "M" not in machine.core_types["AICORE"].pipes
    for name, types in needed.items():
        for kind in types:
            if vector_only and missing_units(machine, "AICORE", BY_NAME[name][kind]):
                continue
            if kind not in machine.intrinsics.get(name, ()):
                of_type = f" of type {kind}" if kind else ""
                yield "[intrinsics]", f"no {name}{of_type}", f"{name}{of_type}"
    for memory, most in MOST_ALIGN.items():
        align_bytes = machine.buffer(memory).align_bytes
        if align_bytes > most:
            yield f"buffers.{memory}.align_bytes", str(align_bytes), f"at most {most}"
    if machine.gm.align_bytes > 1:
        yield "gm.align_bytes", str(machine.gm.align_bytes), "1, as rows begin at any element"
