"""What compiled code has learnt of the instructions of one kind of core; see `core.execute`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from davinci.isa.atomic import SET_ATOMIC
from davinci.isa.core import (
    OPCODE_MASK,
    Instruction,
    Pipe,
    Registers,
)
from davinci.isa.unit_flags import UNIT_GIVERS
from davinci.machine import Machine
from davinci.machine.vector_banks import BankLayout
from davinci.native import Floats, Ints
from davinci.simulator.checks.deadlock import Issued
from davinci.simulator.core.columns import (
    BY_ATOMIC,
    BY_DEQSCALE,
    BY_FMATRIX,
    BY_MASK,
    BY_VA,
    COUNT_SHIFT,
    ENTRY,
    KEY_HEAD,
    Effect,
    FormColumn,
    OpcodeColumn,
)
from davinci.simulator.core.compared import ComparedWords
from davinci.simulator.core.events import Event, number_of
from davinci.simulator.core.forms import ABSOLUTE, Decoder, InstructionForm, OpcodeForms
from davinci.simulator.timing.beginning import Beginning
from davinci.simulator.timing.layout import LIBRARY, Kind, StepColumn, Word
from davinci.simulator.timing.rules import PipeCycles, UnitWork, cost_of

EFFECTS = {
    "set_vector_mask": Effect.MASK,
    "set_fmatrix": Effect.FMATRIX,
    "set_va_reg": Effect.VA,
    "set_deqscale": Effect.DEQSCALE,
    "set_fpc": Effect.FPC,
    **{name: Effect.ATOMIC + number for name, number in SET_ATOMIC.items()},
}
"""Instructions that load the registers on which regions depend."""

KINDS = {
    "set_flag": Kind.SET,
    "wait_flag": Kind.WAIT,
    "pipe_barrier": Kind.BARRIER,
    "vf_call": Kind.FUNCTION,
    "ffts_cross_core_sync": Kind.CROSS_SET,
    "wait_flag_dev": Kind.CROSS_WAIT,
    "pass_turn": Kind.CROSS_SET,
    "await_turn": Kind.CROSS_WAIT,
    "post_counter": Kind.POST,
    "poll_counters": Kind.POLL,
    "end_poll": Kind.END_POLL,
}

DEPENDENCES = {
    BY_MASK: {"mask_low", "mask_high"},
    BY_FMATRIX: {"fmatrix"},
    BY_VA: {"va"},
    BY_DEQSCALE: {"deqscale"},
    BY_ATOMIC: {"atomic", "fpc"},
}
"""Registers on which the forms of an opcode may depend."""

BY_RULE = {
    "mte1_load3d": BY_FMATRIX,
    "vnchwconv": BY_VA,
    "l0c_to_ub": BY_DEQSCALE,
    "mte3": BY_ATOMIC,
    "fixpipe": BY_ATOMIC,
    "fixpipe_to_l1": BY_ATOMIC,
}
"""Registers on which instructions with a timing rule of their own depend; others depend at most
on the vector mask."""


class Tables:
    """Forms and steps by number, and the arrays in which compiled code finds them.

    Attributes:
        forms: by number.
        forms_of_steps: their forms, by number of the step.
        costs: of steps.
        scalar_accesses: of steps, their loads and stores.
        row_blocks: see `vector_banks.BankLayout`.
        begun: what the time line of the last block began with.
    """

    def __init__(self, machine: Machine, decoder: Decoder) -> None:
        self.machine, self._decoder = machine, decoder
        self.forms: list[InstructionForm] = []
        self.forms_of_steps: list[InstructionForm] = []
        self.costs: list[PipeCycles] = []
        self.scalar_accesses: list[int] = []
        self._works: list[UnitWork] = []
        self._opcodes: Ints = _ints(OPCODE_MASK + 1, OpcodeColumn.COLUMNS)
        self._steps: Ints = _ints(64, StepColumn.COLUMNS)
        self._misses: Floats = np.zeros(64)
        self._forms: Ints = _ints(64, FormColumn.COLUMNS)
        self._details: Ints = np.zeros(1024, dtype=np.int64)
        self._detail_count = self._entries = 0
        self.begun: Beginning | None = None
        self.row_blocks = BankLayout.of(machine.vector).row_blocks
        self._bypass = machine.l2.bypass_offset_bytes or 1 << 64
        self._table: Ints = _ints(256, ENTRY)
        self._pointed: tuple[Any, ...] = (None,) * 6
        self._addresses: Ints = np.zeros(0, dtype=np.int64)

    def point(self, state: Ints) -> None:
        """Puts the addresses of the tables, which move as they grow, into a time line's state."""
        arrays = (
            self._steps, self._misses, self._opcodes, self._forms, self._details, self._table,
        )  # fmt: skip
        if any(array is not known for array, known in zip(arrays, self._pointed, strict=True)):
            self._pointed = arrays
            addresses = [array.ctypes.data for array in arrays]
            self._addresses = np.array([*addresses, len(self._table)], dtype=np.int64)
        state[Word.STEPS : Word.TABLE_SIZE + 1] = self._addresses

    def learn_form(self, state: Ints, words: list[int], registers: Registers) -> InstructionForm:
        """Learns the form of a record, whose key is in `state`.

        Raises:
            Problem: it is illegal.
        """
        form, seen = self._decoder.form(words, registers)
        entry = form.entry
        opcode = entry.record.opcode
        if not self._opcodes[opcode, OpcodeColumn.KNOWN]:
            self._opcodes[opcode] = _opcode_row(entry)
            return form  # its key is made now
        key = state[state[Word.KEY] :]
        if seen:
            registers_known = DEPENDENCES[int(self._opcodes[opcode, OpcodeColumn.DEPENDS])]
            assert seen <= registers_known, f"{entry.record.mnemonic}: regions depend on {seen}"
        else:
            self._opcodes[opcode, OpcodeColumn.PLAIN] = 1
            key[0] = opcode | key[0] >> COUNT_SHIFT << COUNT_SHIFT
            key[1:KEY_HEAD] = 0
        self._insert(state, len(self.forms))
        self._add_form(form)
        return form

    def learn_step(self, state: Ints, words: list[int], form: InstructionForm) -> None:
        """Learns the step of a record of that form, whose key is in `state`."""
        number = int(state[state[Word.KEY] + 1])
        self._insert(state, self._add_step(number, form, form.work(words)))

    def form_of(self, step: int, words: list[int]) -> InstructionForm:
        """The form of a record that was executed as a step."""
        form = self.forms_of_steps[step]
        return self._decoder.summary(form, words) if form.summary else form

    def moved_bytes(self, steps: Ints) -> Ints:
        """Bytes of global memory that each of some steps reads and writes."""
        found: Ints = self._steps[steps][:, [StepColumn.GM_READ, StepColumn.GM_WRITE]].sum(axis=1)
        return found

    def compared(self, steps: Ints) -> ComparedWords:
        """Which words of records, executed as these steps, tell them from others."""
        forms = self._forms[self._steps[steps, StepColumn.FORM]]
        summaries = steps[forms[:, FormColumn.SUMMARY] != 0]
        summary = self.forms_of_steps[summaries[0]].entry if summaries.size else None
        return ComparedWords(forms, summary)

    def locate(self, form: InstructionForm, words: list[int]) -> bool:
        """Makes the address in global memory one without the bit that bypasses the L2; returns
        whether it had it."""
        direct = bool(form.gm_word) and words[form.gm_word] >= self._bypass
        if direct:
            words[form.gm_word] -= self._bypass
        return direct

    def located(self, addresses: list[int]) -> list[int]:
        """Addresses in global memory without the bit that bypasses the L2."""
        return [each - self._bypass if each >= self._bypass else each for each in addresses]

    def issued(self, step: int, index: int, location: int) -> Issued:
        """An instruction for messages."""
        form = self.forms_of_steps[step]
        name = form.record.name
        wait = event_named(form.values) if name == "wait_flag" else None
        send = event_named(form.values) if name == "set_flag" else None
        units = int(UNIT_GIVERS[form.pipe]) if form.units.flag else None
        return Issued(form.record.mnemonic, index, location, wait, send, units)

    def decode(self, words: list[int], registers: Registers) -> InstructionForm:
        """The form of a record under these registers.

        Raises:
            Problem: it is illegal.
        """
        return self._decoder.form(words, registers)[0]

    def _insert(self, state: Ints, number: int) -> None:
        self._entries += 1
        if self._entries * 2 > len(self._table):
            old = self._table[self._table[:, 0] > 0]
            self._table = _ints(2 * len(self._table), ENTRY)
            place = int(state[Word.KEY])
            key = state[place : place + ENTRY - 1].copy()
            self.point(state)
            for row in old:
                state[place : place + ENTRY - 1] = row[1:]
                LIBRARY.call("insert", state, int(row[0]) - 1)
            state[place : place + ENTRY - 1] = key
        LIBRARY.call("insert", state, number)

    def _add_step(self, number: int, form: InstructionForm, work: UnitWork) -> int:
        count, cost = len(self.costs), cost_of(work)
        if count == len(self._misses):
            self._steps = _grown(self._steps)
            self._misses = np.concatenate([self._misses, np.zeros(count)])
        record, values = form.record, form.values
        other = Kind.REGISTER if record.timing == "register" else Kind.WORK
        kind, event = KINDS.get(record.name, other), cost.event
        if kind in (Kind.SET, Kind.WAIT):
            event = number_of(event_named(values))
        elif kind == Kind.BARRIER and values["pipe"] == Pipe.ALL:
            kind = Kind.BARRIER_ALL
        moves = form.moves_gm and not form.summary and bool(cost.gm_read or cost.gm_write)
        self._steps[count, StepColumn.KIND : StepColumn.OCCUPANCY] = kind, int(form.pipe), event
        self._steps[count, StepColumn.FORM : StepColumn.OVERLAP] = number, moves
        self.costs.append(cost)
        self._works.append(work)
        self.forms_of_steps.append(self.forms[number])
        self._note_cost(count)
        self.scalar_accesses.append(values["loads"] + values["stores"] if form.summary else 0)
        return count

    def _note_cost(self, step: int) -> None:
        cost = self.costs[step]
        self._steps[step, StepColumn.OCCUPANCY : StepColumn.FORM] = (
            cost.occupancy, cost.latency, cost.gm_read, cost.gm_write, cost.from_l1, cost.to_l1,
        )  # fmt: skip
        self._steps[step, StepColumn.OVERLAP] = cost.overlap
        self._steps[step, StepColumn.REQUESTS] = cost.requests
        units = self.forms_of_steps[step].units
        if units.flag:
            head = cost.occupancy - cost.unit_cycles
            reads = self.forms_of_steps[step].pipe == Pipe.FIX
            late = 0 if reads else cost.latency - cost.unit_cycles
            self._steps[step, StepColumn.UNIT_FLAG : StepColumn.COLUMNS] = (
                *units, head if reads else 0, cost.unit_cycles, late,
            )  # fmt: skip
        self._misses[step] = cost.miss_cycles

    def changed(self, machine: Machine, faster: Mapping[int, float]) -> Tables:
        """Tables of the same steps with the costs of another machine.

        Args:
            machine: the same but for times.
            faster: by pipe, how many times as fast its instructions are.
        """
        other = copy(self)
        other.machine, other._pointed = machine, (None,) * 6
        other._steps, other._misses = self._steps.copy(), self._misses.copy()
        other.costs = []
        for step, (work, form) in enumerate(zip(self._works, self.forms_of_steps, strict=True)):
            cost = cost_of(replace(work, machine=machine))
            times = faster.get(int(form.pipe), 1)
            if times != 1 and not form.sync:
                cost = replace(
                    cost, occupancy=ceil(cost.occupancy / times), latency=ceil(cost.latency / times)
                )
            other.costs.append(cost)
            other._note_cost(step)
        return other

    def _add_form(self, form: InstructionForm) -> None:
        number = len(self.forms)
        if number == len(self._forms):
            self._forms = _grown(self._forms)
        self.forms.append(form)
        row = self._forms[number]
        fixed = not form.summary and not form.moves_gm and not form.strided_places
        row[FormColumn.EFFECT] = EFFECTS.get(form.record.name, Effect.NONE)
        row[FormColumn.SUMMARY] = form.summary
        row[FormColumn.FINDS] = form.finds
        row[FormColumn.LENGTH] = 1 + len(form.record.operands) + form.record.words
        row[FormColumn.UNITS] = form.l0c_word if form.units.flag else 0
        row[FormColumn.GM_WORD] = form.gm_word
        row[FormColumn.SCALAR] = 0 if form.loose else form.scalar
        row[FormColumn.GM_OFFSET] = form.gm_offset
        details: list[int] = []
        for want in form.alignments:
            assert want.bytes & want.bytes - 1 == 0, "compiled code looks at the lowest bits"
            details += [want.word, want.bytes]
        ports = [] if form.summary else [p for p in (*form.reads, *form.writes)
                                         if not p.region.empty]  # fmt: skip
        for port in ports:
            word = 0 if port.word == ABSOLUTE else port.word
            details += [word, port.offset, port.region.high, int(port.space)]
        row[FormColumn.ALIGNMENTS], row[FormColumn.PORTS] = len(form.alignments), len(ports)
        if form.pipe == Pipe.V and not form.sync:
            row[FormColumn.WRITES] = sum(not port.region.empty for port in form.writes)
        row[FormColumn.STRIDES] = self._detail_count + len(details)
        row[FormColumn.STRIDED] = len(form.strided_places)
        for word, size in form.strided_places:
            details += [word, size]
        gm = [] if form.summary else form.gm_ports
        row[FormColumn.GM_PORTS] = self._detail_count + len(details)
        row[FormColumn.GM_PORT_COUNT] = len(gm)
        runs: list[int] = []
        first = self._detail_count + len(details) + 5 * len(gm)
        for port, written in gm:
            assert port.word == form.gm_word, "one address in global memory"
            starts, lengths = port.region.runs
            details += [
                port.offset, written, port.region.size_bytes, starts.size, first + len(runs)
            ]  # fmt: skip
            runs += np.stack([starts, lengths], axis=1).reshape(-1).tolist()
        row[FormColumn.DETAILS] = self._add_details([*details, *runs])
        row[FormColumn.STEP] = -1
        if fixed:
            row[FormColumn.STEP] = self._add_step(number, form, form.work([0] * (ABSOLUTE + 1)))

    def _add_details(self, details: list[int]) -> int:
        first, end = self._detail_count, self._detail_count + len(details)
        while end > len(self._details):
            self._details = _grown(self._details)
        self._details[first:end] = details
        self._detail_count = end
        return first


def event_named(values: Mapping[str, int]) -> Event:
    """The event in the fields of a flag."""
    return values["src_pipe"], values["dst_pipe"], values["event"]


def _ints(rows: int, columns: int) -> Ints:
    return np.zeros((rows, columns), dtype=np.int64)


def _grown(array: Ints) -> Ints:
    return np.concatenate([array, np.zeros_like(array)])


def _opcode_row(entry: OpcodeForms) -> list[int]:
    """What compiled code knows of an opcode. Addresses and data are no part of a form."""
    record = entry.record
    row = [0] * OpcodeColumn.COLUMNS
    row[OpcodeColumn.KNOWN] = 1
    row[OpcodeColumn.FIRST], row[OpcodeColumn.END] = entry.first, entry.end
    for word in range(entry.first, entry.end):
        row[word] = -1
    if entry.scalar:
        row[entry.scalar] = 0
        row[OpcodeColumn.SCALAR] = entry.scalar
        row[OpcodeColumn.UNUSED] = _signed(entry.unused[-1])
    if entry.loose:
        for word in _free_words(record):
            row[word] = 0
    row[OpcodeColumn.DEPENDS] = BY_RULE.get(record.timing, BY_MASK)
    if record.timing == "scalar_access":
        row[OpcodeColumn.SUMMARY] = 1
        for f in record.fields:
            row[entry.first + f.word] = -1 if f.name == "space" else 0
    return row


def _free_words(record: Instruction) -> list[int]:
    """Words of an instruction that only loads registers in which anything is legal."""
    if record.check is not Instruction.__dataclass_fields__["check"].default:
        return []
    free = []
    for word in range(record.words):
        fields = [f for f in record.fields if f.word == word]
        limited = any(f.minimum or f.limit != (1 << f.width) - 1 for f in fields)
        if sum(f.width for f in fields) == 64 and not limited:
            free.append(1 + len(record.operands) + word)
    return free


def _signed(word: int) -> int:
    """A word of 64 bits as compiled code has it."""
    return word - (1 << 64) if word >> 63 else word
