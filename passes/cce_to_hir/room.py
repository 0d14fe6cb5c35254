"""Buffers at addresses, and those that take the room behind all others in UB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import Op, arith, ir, operations
from davinci.passes.cce_to_hir.operations import NoCounterpart, build
from davinci.units import BLOCK_BYTES, BYTE_BITS, ceil_div, round_up

GLOBAL = "gm"
SPACES = {"UB": "ub", "L1": "cbuf", "L0C": "cc"}
"""Names of memories there, by ours."""

BITS = {"i1": 1, "i8": 8, "f16": 16, "f32": 32, "i16": 16, "i32": 32}
"""Bits of elements."""


@dataclass(frozen=True)
class FreeRoom:
    """The part of UB behind all buffers of a kernel.

    Attributes:
        begin, end: addresses in bytes.
    """

    begin: int
    end: int

    @staticmethod
    def of(kernel: Op, ub_bytes: int) -> FreeRoom:
        """The part of UB behind the last buffer of a kernel."""
        allocs = operations(kernel, "memref.alloc")
        ends = [
            attribute(alloc, "cce.address", 0) + bytes_in(alloc.results[0])
            for alloc in allocs
            if space_of(alloc.results[0]) == "ub"
        ]
        return FreeRoom(round_up(max(ends, default=0), BLOCK_BYTES), ub_bytes)

    def elements(self, like: ir.MemRefType, count: int) -> ir.Value:
        """A buffer of so many elements of a type.

        Raises:
            NoCounterpart: it does not fit.
        """
        return self.several(
            [ir.MemRefType.get([count], like.element_type, None, like.memory_space)]
        )[0]

    def words(self, count: int) -> ir.Value:
        """A buffer of so many words of 16 bits in UB.

        Raises:
            NoCounterpart: it does not fit.
        """
        space = ir.Attribute.parse('#cce.space<"UB">')
        return self.elements(ir.MemRefType.get([1], ir.F16Type.get(), None, space), count)

    def several(self, kinds: Sequence[ir.MemRefType]) -> list[ir.Value]:
        """Buffers of these types, one behind the other.

        Raises:
            NoCounterpart: they do not fit.
        """
        *places, end = self.places(kinds)
        if end > self.end:
            raise NoCounterpart("an operation of several steps without room for what is between")
        return [pointer_cast(place, kind) for place, kind in zip(places, kinds, strict=True)]

    def holds(self, kinds: Sequence[ir.MemRefType]) -> bool:
        """True if there is room in UB for buffers of these types, one behind the other."""
        return self.places(kinds)[-1] <= self.end

    def places(self, kinds: Sequence[ir.MemRefType]) -> list[int]:
        """Addresses of buffers of these types, one behind the other, and that behind the last."""
        places = [self.begin]
        for kind in kinds:
            bits = math.prod(kind.shape) * BITS[str(kind.element_type)]
            places.append(places[-1] + round_up(ceil_div(bits, BYTE_BITS), BLOCK_BYTES))
        return places


def bytes_in(value: ir.Value) -> int:
    """Bytes of the elements of a buffer or view of a static shape."""
    buffer = buffer_of(value)
    return buffer.size * buffer.itemsize


def pointer_cast(address: int, kind: ir.Type) -> ir.Value:
    """A buffer at an address."""
    i64 = ir.IntegerType.get_signless(64)
    at = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, address))
    sizes = {"operandSegmentSizes": "array<i32: 1, 0>"}
    return build("pointer_cast", sizes, [at.result], kind).result


def space_of(value: ir.Value) -> str:
    """The memory of a buffer as AscendNPU-IR names it."""
    space = ir.MemRefType(value.type).memory_space
    if space is None:
        return GLOBAL
    name = str(space).partition('"')[2].partition('"')[0]
    return SPACES.get(name, name)
