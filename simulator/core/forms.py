"""Decoding: from the words of a record to a form, which is all of it but the addresses.

A program issues few different instructions very often: the same opcode and configuration words
with other addresses. Legality, regions and costs are worked out once for each such form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any

from davinci.isa.core import (
    BY_OPCODE,
    OPCODE_MASK,
    RECORD_WORDS,
    Access,
    Instruction,
    Pipe,
    Registers,
    Space,
    finds_nothing,
    no_regions,
)
from davinci.isa.stores import added_in
from davinci.isa.unit_flags import l0c_word, unit_blocks
from davinci.machine import Machine
from davinci.machine.legality import align_bytes, illegal_instruction, illegal_pipes
from davinci.machine.vector_banks import BankLayout, bank_bits
from davinci.simulator.core.half_range import computes, converts, multiplies
from davinci.simulator.core.problems import UnplacedFault, malformed
from davinci.simulator.core.regions import Region, Repeated
from davinci.simulator.timing.rules import COPIES, FLAGS, StridedOperand, UnitWork

ABSOLUTE = RECORD_WORDS
"""Index of a zero that the core appends to the words: base of regions that no operand names."""

ALL_BITS = (1 << 64) - 1

REGISTERS = frozenset(register.name for register in fields(Registers))

PROBE = 1 << 44
"""Distance of the made-up operand addresses that show which operand a region belongs to."""


WHOLE_ADDRESS = 1 << 30
"""In place of the bytes of an operand of whose address all matters for its time."""


@dataclass(frozen=True)
class TouchedRegion:
    """A region an instruction touches: at `offset` from the address in word `word`."""

    space: Space
    word: int
    offset: int
    region: Region


@dataclass(frozen=True)
class Alignment:
    """Word `word` must be a multiple of `bytes`: it is the address `name` in `space`."""

    word: int
    bytes: int
    name: str
    space: Space


class InstructionForm:
    """An instruction with everything fixed but its addresses.

    Attributes:
        record: the instruction.
        values: its fields.
        pipe: the queue it goes to.
        reads, writes: the regions it touches.
        chip_ports, far_ports: those on the chip, and those in global memory: reads, writes.
        names: of its operands, whose words are addresses.
        alignments: what its addresses must be multiples of.
        scalar: index of the word that holds the field `value`, a scalar operand; 0 if none.
        macs, repeats, gm_read_bytes, gm_write_bytes: what the profile counts.
        copies, copied_bytes: the path of a copy, as `GM_to_L1`, and what it writes; "" if none.
        moves_gm: it touches global memory.
        gm_word: index of the word that holds its address there; 0 if none does.
        gm_offset: of what it touches there, from that address.
        gm_ports: regions of global memory that are not empty, and whether they are written.
        strided_places: (word, bytes) of operands at a stride.
        entry: its opcode.
        loose: it only loads registers; its fields are data, see `fields`.
        sync: it is a flag or a barrier.
        summary: it sums up scalar accesses, whose data is in memory already.
        finds: its data names more that it reads.
        units, l0c_word: the units of L0C whose flags it obeys, and the word with their address.
        adds: element type in which it adds to global memory, as one indivisible operation, or "".
        converts_to_half, computes_half, multiplies_halves: how what it rounds may leave the range
            of f16.
    """

    def __init__(
        self,
        machine: Machine,
        entry: OpcodeForms,
        values: dict[str, int],
        reads: list[TouchedRegion],
        writes: list[TouchedRegion],
        registers: Registers,
    ) -> None:
        record = entry.record
        self.record, self.values, self.entry, self.loose = record, values, entry, entry.loose
        self.pipe = record.pipe_of(values)
        self.reads, self.writes = reads, writes
        self.scalar = entry.scalar
        self._touch()
        self.names = tuple(operand.name for operand in record.operands)
        self.alignments = entry.alignments
        self.macs = values["m"] * values["k"] * values["n"] if record.timing == "cube" else 0
        self.repeats = values.get("repeat", 0) if record.pipe == Pipe.V else 0
        self.sync = record.timing in FLAGS
        self.summary = record.timing == "scalar_access"
        self.finds = record.finds is not finds_nothing
        self.units, self.l0c_word = unit_blocks(record, values), entry.l0c_word
        reads_gm, writes_gm = self.far_ports
        self.adds = added_in(registers) if reads_gm and writes_gm else ""
        self.converts_to_half, self.multiplies_halves = converts(record), multiplies(record)
        self.computes_half = computes(record) or self.adds == "f16"
        self.gm_read_bytes = 0 if self.summary else _gm_bytes(reads)
        self.gm_write_bytes = 0 if self.summary else _gm_bytes(writes)
        self.copies, self.copied_bytes = "", 0
        if record.timing in COPIES and reads and writes:
            self.copies = f"{reads[0].space.name}_to_{writes[0].space.name}"
            self.copied_bytes = sum(port.region.size_bytes for port in writes)
        self._line = machine.gm.line_bytes
        self._machine = machine
        self._strided = _strided_operands(record, values, reads, writes)
        whole = WHOLE_ADDRESS if record.timing == "register" else 0
        self.strided_places = tuple(
            (port.word, whole or port.region.high) for port, _ in self._strided
        )
        self._layout = BankLayout.of(machine.vector)
        self._fmatrix = registers.fmatrix

    def _touch(self) -> None:
        """Finds which of its regions are where."""
        reads, writes = self.reads, self.writes
        self.chip_ports = _ports_in(reads, False), _ports_in(writes, False)
        self.far_ports = _ports_in(reads, True), _ports_in(writes, True)
        gm = self._gm = next((p for p in (*reads, *writes) if p.space == Space.GM), None)
        self.moves_gm = gm is not None
        self.gm_word = gm.word if gm is not None and gm.word != ABSOLUTE else 0
        self.gm_offset = gm.offset if gm is not None else 0
        self.gm_ports = [
            (port, written)
            for ports, written in ((reads, False), (writes, True))
            for port in ports
            if port.space == Space.GM and not port.region.empty
        ]

    def fields(self, words: Sequence[int]) -> dict[str, int]:
        """Values of the fields of a record, with those that are data."""
        if self.loose:
            return self.record.decode(words[1:])
        return {**self.values, "value": words[self.scalar]} if self.scalar else self.values

    def with_reads(self, accesses: Sequence[Access]) -> InstructionForm:
        """The same with further regions read."""
        form = copy(self)
        found = [TouchedRegion(a.space, ABSOLUTE, a.address, Region(a)) for a in accesses]
        form.reads = [*self.reads, *found]
        form.chip_ports = _ports_in(form.reads, False), self.chip_ports[1]
        form.far_ports = _ports_in(form.reads, True), self.far_ports[1]
        return form

    def summing(self, reads: list[TouchedRegion], writes: list[TouchedRegion]) -> InstructionForm:
        """This record of many scalar accesses with the regions of others, whose addresses are in
        their words, as their fields are; they never bypass the L2."""
        form = copy(self)
        form.reads, form.writes = reads, writes
        form._touch()
        form.gm_word = 0
        return form

    def repeated(self, count: int, steps: Mapping[int, int]) -> InstructionForm:
        """`count` copies in a row, as one.

        Args:
            steps: bytes from one to the next, by the words of their addresses.
        """
        form = copy(self)

        def several(ports: Sequence[TouchedRegion]) -> list[TouchedRegion]:
            return [
                replace(p, region=Repeated(p.space, p.region, count, steps[p.word])) for p in ports
            ]

        form.reads, form.writes = several(self.reads), several(self.writes)
        form.chip_ports = _ports_in(form.reads, False), _ports_in(form.writes, False)
        form.far_ports = _ports_in(form.reads, True), _ports_in(form.writes, True)
        return form

    def work(self, words: Sequence[int]) -> UnitWork:
        """The data on which the cost depends, with a few bits of addresses; see `UnitWork`."""
        bits: tuple[int, ...]
        gm = self._gm
        if gm is not None:
            bits = ((words[gm.word] + gm.offset) % self._line,)
        else:
            ub = self._layout
            bits = tuple([bank_bits(words[w], size, ub) for w, size in self.strided_places])
        return UnitWork(
            self._machine,
            self.record,
            self.values,
            [(p.space, p.region) for p in self.reads],
            [(p.space, p.region) for p in self.writes],
            [operand for _, operand in self._strided],
            bits,
            self._fmatrix,
        )


def _strided_operands(
    record: Instruction,
    values: dict[str, int],
    reads: list[TouchedRegion],
    writes: list[TouchedRegion],
) -> list[tuple[TouchedRegion, StridedOperand]]:
    """The operands of a vector instruction that are spread over blocks at a stride; all of an
    instruction on vector registers."""
    if record.timing == "register":
        return [
            (port, StridedOperand(record.operands[port.word - 1].name, 1, written))
            for ports, written in ((reads, False), (writes, True))
            for port in ports
        ]
    if record.timing != "vector":
        return []
    return [
        (port, StridedOperand(name, port.region.dtype.itemsize, written))
        for ports, written in ((reads, False), (writes, True))
        for port in ports
        if port.word <= len(record.operands)
        and f"{(name := record.operands[port.word - 1].name)}_blk_stride" in values
    ]


def _ports_in(ports: list[TouchedRegion], far: bool) -> tuple[TouchedRegion, ...]:
    return tuple(port for port in ports if (port.space == Space.GM) == far)


def _gm_bytes(ports: list[TouchedRegion]) -> int:
    return sum(port.region.size_bytes for port in ports if port.space == Space.GM)


def alignments(machine: Machine, record: Instruction) -> list[Alignment]:
    """What the addresses of `record` must be multiples of; bytes need not be listed."""
    found = []
    for word, operand in enumerate(record.operands, 1):
        size = align_bytes(machine, operand)
        if size > 1:
            found.append(Alignment(word, size, operand.name, operand.space))
    return found


def scalar_word(record: Instruction) -> int:
    """Index in a record's words of the one that is all scalar operand, 0 if there is none."""
    last = [f for f in record.fields if f.word == record.words - 1]
    alone = len(last) == 1 and last[0].name == "value" and last[0].lo == 0
    return len(record.operands) + record.words if alone else 0


@dataclass(frozen=True)
class SummedAccesses:
    """Words of a record that sums up the loads, or the stores, of the scalar unit.

    Attributes:
        count: the word with their number.
        low, high: those with the lowest address and the one behind the highest.
    """

    count: int
    low: int
    high: int

    def bytes_in(self, words: Sequence[int]) -> int | None:
        """From the lowest address of a record to the highest; None if it has no such accesses."""
        return words[self.high] - words[self.low] if words[self.count] else None


class OpcodeForms:
    """The facts that all forms of one opcode share.

    Attributes:
        illegal: why the core has not this instruction, "" if it has.
        alignments: what its addresses must be multiples of.
        first, end: its configuration words.
        scalar: index of the word that holds a scalar operand, 0 if there is none. It is data, no
            part of a form.
        unused: for each configuration word the bits that no field has.
        l0c_word: see `unit_flags.l0c_word`.
        loose: the instruction touches no memory and only loads registers. Its fields are data.
        summed, space_word: of a record that sums up scalar accesses, the words about its loads and
            its stores, and that of their memory.
    """

    def __init__(self, machine: Machine, core: str, record: Instruction) -> None:
        self.record = record
        self.illegal = illegal_instruction(machine, core, record)
        self.alignments = () if self.illegal else tuple(alignments(machine, record))
        self.first = 1 + len(record.operands)
        self.end = self.first + record.words
        used = [0] * record.words
        for f in record.fields:
            used[f.word] |= ((1 << f.width) - 1) << f.lo
        self.unused = [~bits & ALL_BITS for bits in used]
        self.scalar = scalar_word(record)
        self.l0c_word = l0c_word(record)
        self.loose = record.accesses is no_regions and record.timing == "scalar"
        self.summed: tuple[SummedAccesses, ...] = ()
        if record.timing == "scalar_access":
            word = {f.name: self.first + f.word for f in record.fields}
            self.summed = tuple(
                SummedAccesses(word[f"{kind}s"], word[f"{kind}_low"], word[f"{kind}_high"])
                for kind in ("load", "store")
            )
            self.space_word = word["space"]


class _Watched(Registers):
    """Registers that remember which of them were looked at."""

    def __init__(self, registers: Registers) -> None:
        self.seen: set[str] = set()
        for register in fields(Registers):
            setattr(self, register.name, getattr(registers, register.name))

    def __getattribute__(self, name: str) -> Any:
        if name in REGISTERS:
            self.seen.add(name)
        return super().__getattribute__(name)


class Decoder:
    """Turns words into forms, for one kind of core of the machine."""

    def __init__(self, machine: Machine, core: str) -> None:
        self._machine, self._core = machine, core
        self._entries: dict[int, OpcodeForms] = {}
        self._regions: dict[tuple[Any, ...], Region] = {}
        self._summaries: dict[tuple[int | None, int | None, int], InstructionForm] = {}

    def form(self, words: list[int], registers: Registers) -> tuple[InstructionForm, set[str]]:
        """The form of a record's words (with `ABSOLUTE` appended) under the present registers, and
        the registers on which it depends.

        Raises:
            Problem: unknown opcode, illegal field, bits set that belong to no field.
        """
        opcode = words[0] & OPCODE_MASK
        entry = self._entries.get(opcode) or self._entry(opcode)
        return self._build(entry, self._values(entry, words), registers)

    def summary(self, form: InstructionForm, words: list[int]) -> InstructionForm:
        """The form of a record that sums up scalar accesses, from one of another such record.

        Raises:
            Problem: an illegal field.
        """
        loads, stores = form.entry.summed
        key = loads.bytes_in(words), stores.bytes_in(words), words[form.entry.space_word]
        found = self._summaries.get(key)
        if found is None:
            values = self._values(form.entry, words)
            accesses = form.record.accesses(values, Registers())
            ports = [
                [TouchedRegion(a.space, summed.low, 0, self._region(a)) for a in each]
                for each, summed in zip(accesses, (loads, stores), strict=True)
            ]
            found = self._summaries[key] = form.summing(*ports)
        return found

    def _entry(self, opcode: int) -> OpcodeForms:
        record = BY_OPCODE.get(opcode)
        if record is None:
            raise UnplacedFault(
                "unknown opcode",
                found=f"{opcode:#x}",
                expected=f"1..{len(BY_OPCODE)}",
                hint="this is not machine code of this instruction set",
            )
        entry = self._entries[opcode] = OpcodeForms(self._machine, self._core, record)
        return entry

    def _values(self, entry: OpcodeForms, words: list[int]) -> dict[str, int]:
        record = entry.record
        if entry.illegal:
            raise UnplacedFault(f"illegal instruction: {entry.illegal}")
        values = record.decode(words[1:])
        if message := record.illegal(values):
            raise UnplacedFault(message)
        config = words[entry.first : entry.end]
        if any(word & unused for word, unused in zip(config, entry.unused, strict=True)):
            raise UnplacedFault(
                "bits are set that belong to no field",
                found=" ".join(f"{word:#018x}" for word in config),
                hint="see the fields of this instruction in the reference",
            )
        if message := illegal_pipes(self._machine, self._core, record, values):
            raise UnplacedFault(message)
        cross = self._machine.cross_core
        if cross is not None and values.get("flag", 0) >= cross.flag_ids:
            raise UnplacedFault(
                "no such flag between cores",
                found=str(values["flag"]),
                expected=f"0..{cross.flag_ids - 1} (cross_core.flag_ids)",
            )
        if values.get("unit_flag", 0) and self._machine.fixpipe is None:
            raise UnplacedFault(
                "no unit flags",
                found=f"unit_flag {values['unit_flag']}",
                expected=f"0: {self._machine.name} has no fixpipe that obeys them",
            )
        event = values.get("event", 0)
        if event >= self._machine.sync.event_ids:
            raise UnplacedFault(
                "no such event id",
                found=str(event),
                expected=f"0..{self._machine.sync.event_ids - 1} (sync.event_ids)",
            )
        return values

    def _build(
        self, entry: OpcodeForms, values: dict[str, int], registers: Registers
    ) -> tuple[InstructionForm, set[str]]:
        record = entry.record
        probe = dict(values)
        for word, operand in enumerate(record.operands, 1):
            probe[operand.name] = word * PROBE
        watched = _Watched(registers)
        try:
            reads, writes = record.accesses(probe, watched)
        except ValueError as error:
            raise malformed(error) from error
        form = InstructionForm(
            self._machine,
            entry,
            {f.name: values[f.name] for f in record.fields},
            [self._port(access, len(record.operands)) for access in reads],
            [self._port(access, len(record.operands)) for access in writes],
            registers,
        )
        return form, watched.seen

    def _port(self, access: Access, operands: int) -> TouchedRegion:
        region = self._region(access)
        word = (access.address + PROBE // 2) // PROBE
        if 1 <= word <= operands:
            return TouchedRegion(access.space, word, access.address - word * PROBE, region)
        return TouchedRegion(access.space, ABSOLUTE, access.address, region)

    def _region(self, access: Access) -> Region:
        if access.mask is not None:
            return Region(access)
        key = (access.dims, access.run, access.dtype)
        found = self._regions.get(key)
        if found is None:
            found = self._regions[key] = Region(access)
        return found
