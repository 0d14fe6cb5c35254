"""What the vector instructions share: field layouts, the regions that their strides describe, and
the records of those that work lane by lane.

A repeat covers `lanes` elements. Each operand holds them in blocks of 32 bytes: `blk_stride` is the
distance from block to block inside a repeat and `rep_stride` from repeat to repeat, both in blocks.
The vector mask says which lanes take part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
)
from davinci.units import BLOCK_BYTES, MAX_REPEAT, REPEAT_BYTES

FLOATS = ("f16", "f32")

REPEAT = Field("repeat", 56, 63, maximum=MAX_REPEAT, doc="number of repeats; 0: no operation")
SCALAR = Field("value", 0, 31, word=1, doc="the scalar: raw bits of an element, the lowest first")

BLOCK_DOC = "32-byte blocks from one block of a repeat to the next"
REPEAT_DOC = "32-byte blocks from one repeat to the next"


def binary_fields(*names: str) -> tuple[Field, ...]:
    """Stride fields of the operands `names`, a byte each, and the repeat count.

    The block stride of operand i is in byte i of word 0, its repeat stride in byte 3 + i.
    """
    strides = [
        Field(f"{name}_blk_stride", 8 * i, 8 * i + 7, minimum=int(name == "dst"), doc=BLOCK_DOC)
        for name, i in zip(names, _positions(names), strict=True)
    ] + [
        Field(f"{name}_rep_stride", 24 + 8 * i, 31 + 8 * i, doc=REPEAT_DOC)
        for name, i in zip(names, _positions(names), strict=True)
    ]
    return (*strides, REPEAT)


def _positions(names: Sequence[str]) -> list[int]:
    return [("dst", "src0", "src1").index(name) for name in names]


def unary_fields(*names: str, dst_rep_doc: str = "", blocks: bool = True) -> tuple[Field, ...]:
    """Stride fields of `names`, out of dst and src, and the repeat count.

    Args:
        dst_rep_doc: unit of the destination's repeat stride where it is not blocks.
        blocks: whether the destination has a block stride.
    """
    fields = []
    for name in names:
        i = ("dst", "src").index(name)
        if name == "src" or blocks:
            low = int(name == "dst")
            fields += [Field(f"{name}_blk_stride", 16 * i, 16 * i + 15, minimum=low, doc=BLOCK_DOC)]
        doc = dst_rep_doc if name == "dst" and dst_rep_doc else REPEAT_DOC
        fields += [Field(f"{name}_rep_stride", 32 + 8 * i, 39 + 8 * i, doc=doc)]
    return (*fields, REPEAT)


def check_repeats(values: Values) -> str:
    """Repeats must not all write the same place: which of them is last is not defined."""
    if values["repeat"] > 1 and values["dst_rep_stride"] == 0:
        return f"{values['repeat']} repeats write the same blocks: found dst_rep_stride 0"
    return ""


def ub(name: str, doc: str = "", align_bytes: int = 0) -> Operand:
    """A vector operand: written if it is called dst."""
    return Operand(name, Space.UB, name == "dst", doc, align_bytes)


class Side:
    """One operand of a vector instruction: where its lanes lie, from its name and element type."""

    def __init__(self, name: str, dtype: str, lanes: int) -> None:
        self.name, self.dtype = name, DTYPES[dtype]
        self.blk, self.rep = f"{name}_blk_stride", f"{name}_rep_stride"
        self.blocks = lanes * self.dtype.itemsize // BLOCK_BYTES
        self.block_lanes = BLOCK_BYTES // self.dtype.itemsize


@dataclass(frozen=True)
class Lanes:
    """The sides of an instruction that works lane by lane, and the lanes of a repeat.

    `sides` are the destination, if memory is written, and then the sources.
    """

    sides: tuple[Side, ...]
    count: int
    reads: tuple[Side, ...]
    writes: tuple[Side, ...]

    def regions(self, values: Values, registers: Registers) -> Accesses:
        """Regions of all sides, equally shaped but for the split of a repeat into blocks.

        One contiguous run where all strides allow it; [repeat, lanes] where blocks are contiguous;
        [repeat, blocks, lanes of a block] otherwise. A side without repeat stride has one repeat.
        """
        repeat = values["repeat"]
        active, mask = registers.lanes(self.count)
        if active == 0:
            repeat = 0
        dense = mask is None and (repeat == 1 or active == self.count)
        rows = True
        for side in self.sides:
            if values[side.blk] != 1:
                dense = rows = False
                break
            if repeat > 1 and values[side.rep] != side.blocks:
                dense = False
        if not rows and active != self.count and mask is None:
            mask = np.arange(self.count) < active
        make = self._dense if dense else self._rows if rows else self._blocks
        return (
            [make(side, values, repeat, active, mask) for side in self.reads],
            [make(side, values, repeat, active, mask) for side in self.writes],
        )

    def _dense(
        self, side: Side, values: Values, repeat: int, active: int, mask: Array | None
    ) -> Access:
        return Access(Space.UB, values[side.name], (), repeat * active, side.dtype)

    def _rows(
        self, side: Side, values: Values, repeat: int, active: int, mask: Array | None
    ) -> Access:
        dims = ((repeat, values.get(side.rep, 0) * BLOCK_BYTES),)
        return Access(Space.UB, values[side.name], dims, active, side.dtype, mask)

    def _blocks(
        self, side: Side, values: Values, repeat: int, active: int, mask: Array | None
    ) -> Access:
        dims = (
            (repeat, values.get(side.rep, 0) * BLOCK_BYTES),
            (side.blocks, values[side.blk] * BLOCK_BYTES),
        )
        if mask is not None:
            mask = mask.reshape(side.blocks, side.block_lanes)
        return Access(Space.UB, values[side.name], dims, side.block_lanes, side.dtype, mask)


def elementwise(**types: str) -> Lanes:
    """`Lanes` of operands of these element types: as many as the widest fills a repeat with."""
    count = REPEAT_BYTES // max(DTYPES[dtype].itemsize for dtype in types.values())
    sides = tuple(Side(name, dtype, count) for name, dtype in types.items())
    return Lanes(
        sides,
        count,
        tuple(s for s in sides if s.name != "dst"),
        tuple(s for s in sides if s.name == "dst"),
    )


def lanewise(function: Callable[..., Array], dtype: str) -> Compute:
    """`compute` of an instruction that applies a NumPy function to each lane."""
    result = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        return [function(*arrays).astype(result, copy=False)]

    return compute


def define_lanewise(
    name: str,
    dtype: str,
    lanes: Lanes,
    compute: Compute,
    doc: str,
    source: str,
    scalar: bool = False,
) -> None:
    """Defines an instruction of the vector unit that works lane by lane.

    Args:
        dtype: what its mnemonic says of element types, if anything.
        lanes: of its operands: dst, with src or with src0 and src1.
        scalar: whether a scalar comes besides.
    """
    names = [side.name for side in lanes.sides]
    fields = binary_fields(*names) if "src0" in names else unary_fields(*names)
    define(
        Instruction(
            name=name,
            type=dtype,
            pipe=Pipe.V,
            operands=tuple(map(ub, names)),
            fields=(*fields, SCALAR) if scalar else fields,
            accesses=lanes.regions,
            compute=compute,
            timing="vector",
            doc=doc,
            source=source,
            check=check_repeats,
        )
    )
