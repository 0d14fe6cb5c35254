"""The instructions behind cce operations: element types, memories and pipes, from the records.

An operation that has an instruction's name stands for it; the others are listed here.
"""

from __future__ import annotations

import re

from davinci.isa import BY_NAME, DTYPES, Instruction, Space, fixpipe, quantize
from davinci.isa.fixpipe_tables import BIAS_UNIT, SCALE_UNIT

NAMES = {
    "copy_rows": "copy_gm_to_ubuf_align",
    "copy_l0c": "copy_matrix_cc_to_ubuf",
    "copy_l1": "copy_ubuf_to_cbuf",
    "dequantize_l0c": "copy_matrix_cc_to_ubuf",
    "fixpipe_scaled": "fixpipe",
    "nd2nz": "copy_gm_to_cbuf_multi_nd2nz",
    "clear_l1": "create_cbuf_matrix",
    "load2d": "load_cbuf_to_ca",
    "load3d": "img2col_cbuf_to_ca",
    "mad_l1": "mad",
    "vcmpsel": "vsel",
    "set_core_flag": "ffts_cross_core_sync",
    "wait_core_flag": "wait_flag_dev",
    "vconv": "vconv_f162f32",
    "vnchwconv": "scatter_vnchwconv",
}
"""An instruction of each operation that has none of its name; all of them take one pipe, but
for stores of `copy_rows` (loads of `mad_l1` are ordered by flags of its own)."""

BINARY = ("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vand", "vor")
UNARY = ("vexp", "vln", "vsqrt", "vrsqrt", "vrec", "vabs", "vrelu", "vnot")
BITWISE = ("vand", "vor", "vnot")
"""Operations on bits, which take any elements of 16 and 32 bits."""
WITH_SCALAR = ("vadds", "vmuls", "vaxpy")
MULTIPLY_ADD = ("vmla", "vmadd")
"""Operations that read their destination, besides `vaxpy`."""
ELEMENTWISE = (*BINARY, *UNARY, *WITH_SCALAR, *MULTIPLY_ADD, "vector_dup")
"""Operations that are one instruction, element by element."""


def types_of(name: str) -> tuple[str, ...]:
    """Element types of the operation `name`, which has the name of its instruction."""
    return tuple(BY_NAME[name])


def pipe_of(name: str) -> str:
    """The pipe of the operation `name`; of a copy see `COPIES`."""
    return next(iter(BY_NAME[NAMES.get(name, name)].values())).pipe.name


def named_types(text: str) -> tuple[str, ...]:
    """The element types in a record's name or type: `f322f16` has f32 and f16."""
    return tuple(re.findall("|".join(sorted(DTYPES, key=len, reverse=True)), text))


def copies() -> dict[tuple[str, str], Instruction]:
    """Instructions that move bytes, by the memories that they connect: source, destination."""
    found = {}
    for name, records in BY_NAME.items():
        if name.startswith("copy_") and "" in records:
            dst, src = records[""].operands
            found[src.space.name, dst.space.name] = records[""]
    return found


FRACTAL_COPIES = {"L0A": "load_gm_to_ca", "L0B": "load_gm_to_cb"}
"""What `cce.copy` becomes from global memory into memories of fractals."""

COPIES = copies() | {
    ("GM", space): next(iter(BY_NAME[name].values())) for space, name in FRACTAL_COPIES.items()
}
"""What `cce.copy` becomes, and `cce.copy_l1`."""

COPY_BYTES = {Space.BT.name: BIAS_UNIT, Space.FB.name: SCALE_UNIT}
"""Bytes that copies into a memory move at once, where these are no blocks."""

CROSSING = "UB", "L1"
"""Memories between which tiles of the vector unit go to the cube."""

LOADS = {
    next(iter(BY_NAME[name].values())).operands[0].space.name: name
    for name in ("load_cbuf_to_ca", "load_cbuf_to_cb")
}
"""What `cce.load2d` becomes, by the memory of the destination."""

WINDOW_LOADS = {
    next(iter(BY_NAME[name].values())).operands[0].space.name: name
    for name in ("img2col_cbuf_to_ca", "img2col_cbuf_to_cb")
}
"""What `cce.load3d` becomes."""

RECTANGLE_LOADS = {
    next(iter(BY_NAME[name].values())).operands[0].space.name: name
    for name in ("img2colv2_cbuf_to_ca", "img2colv2_cbuf_to_cb")
}
"""The same where a load takes a rectangle of windows and elements of the kernel."""

CONVERSIONS = {named_types(name) for name in BY_NAME if name.startswith("vconv_")}
"""Element types that `cce.vconv` converts between."""

SCALED = "s32", "f16"
"""Element types in L0C and UB of copies that scale sums."""

L0C_TYPES = {
    (found[0], found[-1]) for found in map(named_types, BY_NAME["copy_matrix_cc_to_ubuf"])
} - {SCALED}
"""Element types in L0C and UB of `cce.copy_l0c`."""

FIXPIPE_TYPES = {
    (sums, results)
    for _, sums, results in fixpipe.FIXPIPE_TYPES
    if results != "bf16"  # which operations of cce have no name of
}
"""Element types in L0C and GM of `cce.fixpipe`, which does not quantise."""

SCALED_TYPES = {
    (sums, result): kind
    for kind, sums, element in quantize.MODES
    for result in (("s8", "u8") if element == "b8" else (element,))
}
"""Element types in L0C and GM of `cce.fixpipe_scaled`, and the type of their record for a word that
all columns share; that for words of columns ends in `v`."""

MAD_TYPES = {(found[0], found[-2], found[-1]) for found in map(named_types, BY_NAME["mad"])}
"""Element types of A, B and C of `cce.mad`."""

BIASED_TYPES = {
    (found[0], found[-2], found[-1])
    for found in map(named_types, BY_NAME["mad_bias"])
    if (found[0], found[-2], found[-1]) in MAD_TYPES
}
"""Element types of A, B and C of `cce.mad_bias`."""
