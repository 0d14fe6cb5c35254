"""Builds hivm instructions: addresses, loops of instructions, and the vector mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from davinci.dialects.hivm import ops as hivm
from davinci.errors import CompileError
from davinci.isa import INSTRUCTIONS, Instruction, Space
from davinci.isa.fixpipe_tables import FPC_SCALES_SHIFT, SCALE_UNIT
from davinci.isa.strides import SharedDim
from davinci.machine import Machine
from davinci.machine.legality import align_bytes
from davinci.mlir import Op, arith, ir, location_text
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Address, Addresses, Shift, constant_i64, scaled
from davinci.passes.pipeline.base import fail
from davinci.units import BLOCK_BYTES

MOST_UNROLLED = 8
"""Instructions of one cce operation that are written out; more become a loop."""

Body = Callable[[Sequence[Address]], None]


class Emitter:
    """State of lowering one kernel.

    Attributes:
        machine: limits and costs.
        addresses: of the kernel's memrefs.
        mask: the vector mask at this point of straight code, None if unknown.
        image: the fields of FMATRIX, the same.
        padding: the bits of what lies outside of images, the same.
        scales: the address that DEQSCALE names, in bytes, the same.
        words: the address in FB that FPC names, in bytes, the same.
        pointers: to constant addresses on chip, of each block around this point.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.addresses = Addresses()
        self.mask: int | None = None
        self.image: Mapping[str, int | ir.Value] | None = None
        self.padding: int | None = None
        self.scales: int | None = None
        self.words: int | None = None
        self.pointers: list[dict[tuple[Space, int], ir.Value]] = []

    @contextmanager
    def block(self) -> Iterator[None]:
        """Operations are built in a block inside the current one, if there is one."""
        self.pointers.append({})
        yield
        self.pointers.pop()

    def pointer(self, address: Address) -> ir.Value:
        """The `!llvm.ptr` of an address, of a constant one on chip that is there already."""
        if address.place is None:
            return address.pointer()
        key = address.space, address.place
        for known in self.pointers:
            if key in known:
                return known[key]
        found = self.pointers[-1][key] = address.pointer()
        return found

    def forget(self) -> None:
        """Registers are unknown from here on."""
        self.mask = self.image = self.padding = self.scales = self.words = None

    def record(self, op: Op, name: str, kind: str = "") -> Instruction:
        """The record of an instruction the lowering of `op` needs."""
        mnemonic = f"{name}.{kind}" if kind else name
        found = INSTRUCTIONS.get(mnemonic)
        if found is None:
            fail(op, f"needs the instruction {mnemonic}, which the machine has not")
        return found

    def instruction(
        self, record: Instruction, addresses: Sequence[Address], fields: Mapping[str, Any]
    ) -> None:
        """Builds one instruction; a field is an int or an i64 value."""
        for operand, address in zip(record.operands, addresses, strict=True):
            role = f"address of operand {operand.name} of {record.mnemonic}"
            space = operand.space
            if space is not Space.GM and self.machine.buffers.of(space.name) is None:
                raise CompileError(
                    f"{role} is in a memory that {self.machine.name} has not",
                    where=location_text(ir.Location.current),
                    found=space.name,
                )
            self.require_aligned(role, address, align_bytes(self.machine, operand))
        pointers = [self.pointer(address) for address in addresses]
        hivm.build(record.name, record.type, pointers, fields)

    def require_aligned(self, role: str, address: Address, align: int) -> None:
        """Fails where the address is known and no multiple of `align`; the simulator checks others.

        Raises:
            CompileError: at the location of the operation that is lowered.
        """
        found = address.place
        if found is not None and found % align:
            raise CompileError(
                f"misaligned {role}",
                where=location_text(ir.Location.current),
                found=f"{address.space.name} {found:#x}",
                expected=f"a multiple of {align} bytes ({self.machine.name})",
            )

    def set_mask(self, mask: int) -> None:
        """Sets the vector mask unless it is known to be `mask`."""
        if mask != self.mask:
            self.mask = mask
            fields = {"low": mask & ((1 << 64) - 1), "high": mask >> 64}
            hivm.build("set_vector_mask", "", [], fields)

    def set_image(self, fields: Mapping[str, int | ir.Value]) -> None:
        """Sets FMATRIX unless it is known to hold these fields."""
        if fields != self.image:
            self.image = fields
            hivm.build("set_fmatrix", "", [], fields)

    def set_padding(self, bits: int) -> None:
        """Sets the padding of images unless it is known to be `bits`."""
        if bits != self.padding:
            self.padding = bits
            hivm.build("set_padding", "", [], {"bits": bits})

    def set_scales(self, address: Address) -> None:
        """Has DEQSCALE name scales in UB unless it is known to."""
        if address.place is None or address.place != self.scales:
            self.scales = address.place
            self._name_place("set_deqscale", "scales", address, BLOCK_BYTES)

    def set_words(self, address: Address) -> None:
        """Has FPC name the words of columns in FB unless it is known to."""
        if address.place is None or address.place != self.words:
            self.words = address.place
            self._name_place("set_fpc", "words", address, SCALE_UNIT, FPC_SCALES_SHIFT)

    def _name_place(
        self, register: str, what: str, address: Address, unit_bytes: int, shift: int = 0
    ) -> None:
        """Sets a register to an address in units of so many bytes, `shift` bits from its lowest.

        Raises:
            CompileError: the address is known and no whole number of units.
        """
        self.require_aligned(f"address of {what}", address, unit_bytes)
        bits: IndexLike
        if address.place is not None:
            bits = address.place // unit_bytes << shift
        elif 1 << shift < unit_bytes:
            bits = arith.DivUIOp(address.integer(), constant_i64(unit_bytes >> shift)).result
        else:
            bits = arith.MulIOp(address.integer(), constant_i64((1 << shift) // unit_bytes)).result
        hivm.build(register, "", [], {"bits": bits})

    def loops(
        self,
        dims: Sequence[SharedDim],
        itemsizes: Sequence[int],
        addresses: Sequence[Address],
        body: Body,
    ) -> None:
        """Calls `body` with the addresses at each point of `dims`, written out if they are few."""
        count = 1
        for dim in dims:
            count *= dim.size
        if not dims:
            body(addresses)
            return
        dim, rest = dims[0], dims[1:]
        widths = [s * size for s, size in zip(dim.strides, itemsizes, strict=True)]
        if count <= MOST_UNROLLED:
            for i in range(dim.size):
                self.loops(rest, itemsizes, move(addresses, [Shift(i * w) for w in widths]), body)
            return
        with builder.for_loop(0, dim.size) as index, self.block():
            shifts = [Shift(0, scaled(index, w)) if w else Shift() for w in widths]
            self.loops(rest, itemsizes, move(addresses, shifts), body)


def move(addresses: Sequence[Address], shifts: Sequence[Shift]) -> list[Address]:
    return [a.plus(s) for a, s in zip(addresses, shifts, strict=True)]


def is_constant(value: ir.Value) -> int | None:
    """The value of an integer constant, None if it is not one."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)
