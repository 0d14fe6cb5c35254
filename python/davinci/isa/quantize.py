"""Fixpipe that quantises: results out of L0C times a scale, to f16 or 8 bits.

What CCE calls modes of quantisation, types here; `v` where each column has a word of its own:

    s322f16, s322f16v          DEQF16, VDEQF16             f16(sum * scale), limited to its range
    f322b8, f322b8v            QF322B8_PRE, VQF322B8_PRE   round(sum * scale + offset), limited to
    s322b8, s322b8v            REQ8, VREQ8                 s8 or u8

A word has the scale in bits 13 to 31, the upper 19 of an f32; bits 37 to 45 are the offset, and
bit 46 says that results have a sign. Words of columns lie in FB, that of all in QUANT_PRE.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Instruction,
    Operand,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.fixpipe import (
    FIELDS,
    Leave,
    check_blocks_of,
    check_sizes,
    convert,
    rectified,
    regions,
)
from davinci.isa.fixpipe_tables import scales_address
from davinci.isa.halves import converted
from davinci.isa.results_to_l1 import L1_FIELDS, blocks_of, check_blocks, to_l1
from davinci.units import FRACTAL_SIDE as SIDE

SCALE_MASK = 0xFFFFE000
OFFSET_SHIFT, OFFSET_BITS = 37, 9
SIGN_SHIFT = 46
"""Where a word has what; offsets are signed (assumed)."""

HALF_LIMIT = float(np.finfo(np.float16).max)
SOURCE = "docs/hardware.md c (quantisation), a3 (rates)"


def word(scale: float, offset: int = 0, signed: bool = True) -> int:
    """The word by which fixpipe multiplies by a scale, cut to 19 bits, and adds an offset."""
    bits = int(np.float32(scale).view(np.uint32)) & SCALE_MASK
    return bits | (offset & (1 << OFFSET_BITS) - 1) << OFFSET_SHIFT | int(signed) << SIGN_SHIFT


def quantised(sums: Array, words: Array, dst_type: str) -> Array:
    """Sums times the scales of words, which are broadcast to them, as f16 or bytes."""
    words = words.astype(np.uint64)
    scales = (words & np.uint64(SCALE_MASK)).astype(np.uint32).view(np.float32)
    scaled = sums.astype(np.float32) * scales
    if dst_type == "f16":
        return converted(np.clip(scaled, -HALF_LIMIT, HALF_LIMIT), DTYPES["f16"])
    top = 1 << OFFSET_BITS - 1
    offsets = (words >> np.uint64(OFFSET_SHIFT) & np.uint64(2 * top - 1)).astype(np.int64)
    shifted = np.nan_to_num(scaled + ((offsets ^ top) - top).astype(np.float32), nan=0.0)
    rounded = np.copysign(np.floor(np.abs(shifted) + np.float32(0.5)), shifted)
    signed = (words >> np.uint64(SIGN_SHIFT) & np.uint64(1)).astype(bool)
    low, high = np.where(signed, -128, 0), np.where(signed, 127, 255)
    found: Array = np.clip(rounded, low, high).astype(np.int64).astype(np.uint8)
    return found


def leaves(dst_type: str) -> Leave:
    """How sums leave: relu, if asked to, then the scale (their order is assumed)."""

    def leave(values: Values, registers: Registers, arrays: Sequence[Array]) -> Array:
        """Blocks [n/16, m, 16] of sums, with words [n/16, 16] of their columns, or one word."""
        blocks, *words = arrays
        found: Array = np.array([[registers.quant_pre]], np.uint64)
        if words:
            found = np.zeros(blocks.shape[0] * SIDE, np.uint64)
            found[: words[0].size] = words[0].reshape(-1).view(np.uint64)
            found = found.reshape(-1, SIDE)
        return quantised(rectified(blocks, values), found[:, None], dst_type)

    return leave


def words_of_columns(values: Values, registers: Registers) -> Accesses:
    """The words in FB of all columns."""
    columns = values["n_size"] if values["m_size"] else 0
    return [Access(Space.FB, scales_address(registers), (), columns, DTYPES["s64"])], ()


def with_words(of: Regions) -> Regions:
    """Regions of a fixpipe that reads the words of its columns besides its sums."""

    def accesses(values: Values, registers: Registers) -> Accesses:
        (sums, *there), writes = of(values, registers)
        words, _ = words_of_columns(values, registers)
        return [sums, *words, *there], writes

    return accesses


MODES = [("s322f16", "s32", "f16"), ("f322b8", "f32", "b8"), ("s322b8", "s32", "b8")]
"""(type of the record, elements in L0C, elements that are written)."""

for kind, src_type, dst_type in MODES:
    for by_columns in (False, True):
        scaled_by = "the words of their columns" if by_columns else "the word in QUANT_PRE"
        doc = f"a matrix of {src_type}, quantised to {dst_type} by {scaled_by}"
        to_gm, to_near = regions(src_type, dst_type), to_l1(src_type, dst_type)
        define(
            Instruction(
                name="fixpipe",
                type=kind + "v" * by_columns,
                pipe=Pipe.FIX,
                operands=(Operand("dst", Space.GM, True), Operand("src", Space.L0C, False)),
                fields=FIELDS,
                accesses=with_words(to_gm) if by_columns else to_gm,
                compute=convert(dst_type, leaves(dst_type), int(by_columns)),
                timing="fixpipe",
                doc=f"Moves {doc}, from L0C to GM, Nz or row-major.",
                source=SOURCE,
                check=check_blocks_of(dst_type, check_sizes),
            )
        )
        define(
            Instruction(
                name="fixpipe_to_l1",
                type=kind + "v" * by_columns,
                pipe=Pipe.FIX,
                operands=(Operand("dst", Space.L1, True), Operand("src", Space.L0C, False)),
                fields=L1_FIELDS,
                accesses=with_words(to_near) if by_columns else to_near,
                compute=blocks_of(dst_type, leaves(dst_type)),
                timing="fixpipe_to_l1",
                doc=f"Moves {doc}, from L0C to L1, Nz.",
                source=SOURCE,
                check=check_blocks_of(dst_type, check_blocks),
            )
        )
