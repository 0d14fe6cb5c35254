"""Gathers: elements or blocks of UB from the byte offsets that another operand holds.

The offsets are data: `accesses` has what is read of them, `finds` what they name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
    Finds,
    Instruction,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.vector_regions import check_repeats, ub, unary_fields
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS, REPEAT_BYTES

SOURCE = "docs/hardware.md b2 (time), c (other instructions); encoding assumed"
OFFSET = DTYPES["u32"]
MOST_BYTES = 1 << 20
"""More than any UB has: an offset from here on is out of bounds, and all there is to find."""

OFFSETS = "offsets: bytes from src, u32, one after the other"


def lane_regions(dtype: str) -> Regions:
    """Regions of vgather: the offsets of the active lanes, dst as [repeat, lanes]."""
    element = DTYPES[dtype]
    count = REPEAT_BYTES // element.itemsize

    def regions(values: Values, registers: Registers) -> Accesses:
        active, mask = registers.lanes(count)
        repeat = values["repeat"] if active else 0
        rows = ((repeat, count * OFFSET.itemsize),)
        read = Access(Space.UB, values["offsets"], rows, active, OFFSET, mask)
        rows = ((repeat, values["dst_rep_stride"] * BLOCK_BYTES),)
        return [read], [Access(Space.UB, values["dst"], rows, active, element, mask)]

    return regions


def block_regions(dtype: str) -> Regions:
    """Regions of vgatherb: the offsets, dst as [repeat, blocks, lanes of a block]."""
    element = DTYPES[dtype]

    def regions(values: Values, registers: Registers) -> Accesses:
        repeat = values["repeat"]
        rows = ((repeat, REPEAT_BLOCKS * OFFSET.itemsize),)
        read = Access(Space.UB, values["offsets"], rows, REPEAT_BLOCKS, OFFSET)
        dims = (
            (repeat, values["dst_rep_stride"] * BLOCK_BYTES),
            (REPEAT_BLOCKS, values["dst_blk_stride"] * BLOCK_BYTES),
        )
        run = BLOCK_BYTES // element.itemsize
        return [read], [Access(Space.UB, values["dst"], dims, run, element)]

    return regions


def places(offsets: Array, mask: Array | None, size: int) -> tuple[Array, Array]:
    """Which of the parts of `size` bytes behind src are read: all numbers, and those that count.

    Raises:
        ValueError: an offset is no multiple of the size.
    """
    taken = offsets[np.broadcast_to(True if mask is None else mask, offsets.shape)]
    odd = taken[taken % size != 0]
    if odd.size:
        raise ValueError(f"offset {int(odd[0])} is no multiple of {size}")
    return offsets // size, taken // size


def finding(dtype: str, size: int, masked: bool) -> Finds:
    """`finds`: what lies between the lowest and the highest place, less what is not named."""
    element = DTYPES[dtype]
    run = size // element.itemsize

    def finds(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Access]:
        mask = registers.lanes(REPEAT_BYTES // element.itemsize)[1] if masked else None
        _, taken = places(arrays[0], mask, size)
        if not taken.size:
            return [Access(Space.UB, values["src"], ((0, size),), run, element)]
        low, high = int(taken.min()), int(taken.max())
        if high * size >= MOST_BYTES:
            low, taken = high, np.full(1, high)
        named = np.zeros((high - low + 1, 1), dtype=bool)
        named[taken.astype(np.int64) - low] = True
        dims = ((high - low + 1, size),)
        return [Access(Space.UB, values["src"] + low * size, dims, run, element, named)]

    return finds


def taking(dtype: str, size: int, masked: bool) -> Compute:
    """`compute`: parts of `size` bytes by their places; those of masked lanes are any."""
    lanes = REPEAT_BYTES // DTYPES[dtype].itemsize

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        offsets, source = arrays
        mask = registers.lanes(lanes)[1] if masked else None
        found, taken = places(offsets, mask, size)
        if not taken.size:
            return [np.zeros((*offsets.shape, source.shape[-1])[: 3 - masked], source.dtype)]
        index = found.astype(np.int64) - int(taken.min())
        if mask is not None:
            index = np.where(mask, index, 0)
        return [source[index, 0] if masked else source[index]]

    return compute


BASE = "what the offsets count from"

for dtype in ("b16", "b32"):
    size = DTYPES[dtype].itemsize
    lanes = REPEAT_BYTES // size
    define(
        Instruction(
            name="vgather",
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst"), ub("offsets", OFFSETS), ub("src", BASE)),
            fields=unary_fields("dst", blocks=False),
            accesses=lane_regions(dtype),
            compute=taking(dtype, size, masked=True),
            finds=finding(dtype, size, masked=True),
            timing="vector",
            doc=f"dst[r, i] = the element at offsets[r, i] bytes behind src, {lanes} a repeat; "
            f"offsets are multiples of {size}. Masked lanes read no element.",
            source=SOURCE,
            check=check_repeats,
        )
    )

for dtype in ("b16", "b32"):
    define(
        Instruction(
            name="vgatherb",
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst"), ub("offsets", OFFSETS), ub("src", BASE)),
            fields=unary_fields("dst"),
            accesses=block_regions(dtype),
            compute=taking(dtype, BLOCK_BYTES, masked=False),
            finds=finding(dtype, BLOCK_BYTES, masked=False),
            timing="vector",
            doc="dst[r, b] = the block of 32 bytes at offsets[r, b] bytes behind src, 8 a repeat; "
            "offsets are multiples of 32. The vector mask has no effect (assumed).",
            source=SOURCE,
            check=check_repeats,
        )
    )
