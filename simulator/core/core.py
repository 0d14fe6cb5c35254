"""One core: executes the records of a block in program order.

For each record: decode, check addresses, check that what is read was written, check for races,
compute the data, and tell the time line. The first fault ends the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa.core import (
    LOCATION_SHIFT,
    MOST_SCALAR_OPS,
    RECORD_WORDS,
    SCALAR_OPS_SHIFT,
    Array,
    Pipe,
    Records,
    Registers,
    Space,
)
from davinci.machine import Machine
from davinci.simulator.checks.deadlock import Deadlock, Stuck
from davinci.simulator.checks.races import GmAccess, Party, Race, Races
from davinci.simulator.core.events import ALL, Events
from davinci.simulator.core.forms import Decoder, Form
from davinci.simulator.core.half_range import (
    NOTHING,
    Lost,
    lost_by_arithmetic,
    lost_by_conversion,
    taking_part,
)
from davinci.simulator.core.memory import GlobalMemory, Memory, on_chip
from davinci.simulator.core.problems import Problem
from davinci.simulator.split.cross_core import Knowledge, Link, Set, Unset
from davinci.simulator.timing.gm_model import Rates
from davinci.simulator.timing.timeline import Issued, Timeline


class Core:
    """The part of a core that outlives a block: memories and forms; and the block under way."""

    def __init__(
        self,
        machine: Machine,
        kind: str,
        gm: GlobalMemory,
        decoder: Decoder,
        checks: bool,
        data: bool = True,
    ) -> None:
        self._machine, self._decoder, self._checks, self._data = machine, decoder, checks, data
        chip = on_chip(machine, kind, shadowed=data)
        self._memories: list[Memory] = [gm, gm, *(chip[s] for s in list(Space)[1:])]
        # Addresses from here on are those of global memory again, but bypass the L2.
        self._bypass = machine.l2.bypass_offset_bytes or 1 << 64
        self._races = Races([Pipe[name] for name in machine.sync.sequential_pipes])
        self.counts: dict[Form, int] = {}

    def memory(self, space: Space) -> Memory:
        """A memory as this core sees it; its `.data` and `.written` are shared."""
        return self._memories[space]

    @property
    def sub_block(self) -> int:
        """Which of its block's vector cores this is."""
        return 0 if self._link is None else self._link.seat.sub_block

    def begin(
        self,
        kernel: str,
        block: int,
        rates: Rates,
        locations: Sequence[str],
        keep_rows: bool,
        link: Link | None = None,
    ) -> None:
        """Starts a block with nothing in the on-chip memories.

        Args:
            kernel, block: names for messages.
            rates: bandwidth of global memory.
            locations: source locations by id.
            keep_rows: keep the time line's rows.
            link: flags between the cores of a split machine.
        """
        # Instructions write through their forms, the scalar unit only UB.
        used = {port.space for form in self.counts for port in form.writes} | {Space.UB}
        for memory in self._memories[Space.L1 :]:
            if self._data and memory.space in used:
                memory.forget()
        self._kernel, self._block, self._locations = kernel, block, locations
        self._link = link
        self._registers = Registers()
        self._races.reset()
        self._events = Events()
        self.timeline = Timeline(self._machine, keep_rows, rates)
        self.counts = {}
        self.gm_reads: list[GmAccess] = []
        self.gm_writes: list[GmAccess] = []
        self.scalar_accesses = 0
        self.lost = NOTHING
        self._index = -1
        self._words: list[int] = []
        self._form: Form | None = None

    def consume(self, records: Records) -> None:
        """Executes records, in program order.

        Args:
            records: uint64[n, 8], see `davinci.isa.core`.

        Raises:
            DeviceFault: the program did something illegal.
        """
        if records.ndim != 2 or records.shape[1] != RECORD_WORDS or records.dtype != np.uint64:
            raise DeviceFault(
                "not a stream of records",
                where=f"kernel {self._kernel}",
                found=f"{records.dtype}{list(records.shape)}",
                expected=f"uint64[n, {RECORD_WORDS}]",
            )
        try:
            with np.errstate(all="ignore"):
                for words in records.tolist():
                    self._index += 1
                    words.append(0)
                    self._words, self._form = words, None
                    self._execute(words)
        except Problem as problem:
            raise self._fault(problem) from None

    def finish(self) -> int:
        """Ends the block. Returns its cycles.

        Raises:
            DeviceFault: deadlock, or flags left set.
        """
        self._words = []
        try:
            cycles = self.timeline.finish()
            self._events.finish()
        except Problem as problem:
            raise self._fault(problem) from None
        return cycles

    def describe(self, party: Party) -> str:
        """An instruction in a message."""
        form = party.form
        place = self._location(party.location)
        return f"#{party.index} {form.record.mnemonic} of PIPE_{form.pipe.name} at {place}"

    def _execute(self, words: list[int]) -> None:
        form = self._form = self._decoder.form(words, self._registers)
        self.counts[form] = self.counts.get(form, 0) + 1
        head = words[0]
        name = form.record.name
        location = head >> LOCATION_SHIFT
        item = Issued(form.record.mnemonic, self._index, location, 0, form.cost(words))
        if form.moves_gm:
            item.form, item.words = form, words
            if words[form.gm_word] >= self._bypass and form.gm_word:
                words[form.gm_word] -= self._bypass
                item.direct = True
        if self.timeline.rows is not None:
            item.form, item.words, item.fields = form, words, self._fields(form, words)
        scalar_ops = head >> SCALAR_OPS_SHIFT & MOST_SCALAR_OPS
        if form.sync:
            self._synchronise(name, form, scalar_ops, item)
            return
        if form.reads or form.writes:
            self._bounds(form, words)
            if self._checks:
                self._check(form, words)
        self._compute(form, words)
        self.timeline.issue(form.pipe, scalar_ops, item)

    def _synchronise(self, name: str, form: Form, scalar_ops: int, item: Issued) -> None:
        values = form.values
        if name == "pipe_barrier":
            if self._checks:
                self._races.barrier(values["pipe"])
            if values["pipe"] == ALL:
                self.timeline.barrier_all(scalar_ops, item)
                return
            item.barrier = True
        elif name == "ffts_cross_core_sync":
            item.cross, item.cross_core = self._cross_core_flag(values), values
        elif name == "wait_flag_dev":
            assert self._link is not None, "only split machines have it"
            stuck = Stuck("a flag of another core", item, ())
            count = self._link.wait_flag(
                values["flag"], self._place(), lambda: self._pipe_waits(stuck)
            )
            if self._checks:
                self._races.receive(count.knowledge, self._link.seat.number)
            item.until, item.cross_core = count.time, values
        else:
            event = (values["src_pipe"], values["dst_pipe"], values["event"])
            if name == "set_flag":
                self._events.set_flag(event)
                if self._checks:
                    self._races.set_flag(event, self._index)
                item.send = event
            else:
                self._events.wait_flag(event)
                if self._checks:
                    self._races.wait_flag(event, self._index)
                item.wait = event
        self.timeline.issue(form.pipe, scalar_ops, item)

    def _cross_core_flag(self, values: Mapping[str, int]) -> Callable[[int], None]:
        """What to do in the cycle in which the flag is set."""
        link = self._link
        assert link is not None, "only split machines have it"
        pipe, mode, flag = values["pipe"], values["mode"], values["flag"]
        knowledge: Knowledge = {}
        sets: list[Set] = []
        if self._checks:
            knowledge, number = self._races.send(pipe, link.seat.number)
            sets.append(Set(link.seat, pipe, number, self._place()))
        return link.set_flag(Unset(mode, flag, pipe, self._place()), knowledge, sets)

    def _bounds(self, form: Form, words: list[int]) -> None:
        for want in form.alignments:
            if words[want.word] % want.bytes:
                raise Problem(
                    f"misaligned address of operand {want.name}",
                    found=f"{want.space.name} {words[want.word]:#x}",
                    expected=f"a multiple of {want.bytes}",
                )
        for port in (*form.reads, *form.writes):
            region = port.region
            memory = self._memories[port.space]
            base = words[port.word] + port.offset
            if base + region.high > memory.size and not region.empty:
                raise Problem(
                    "out of bounds",
                    found=f"{port.space.name} [{base + region.low:#x}, {base + region.high:#x})",
                    expected=f"addresses below {memory.size:#x} (the size of {port.space.name})",
                    hint="check the address, the repeat count and the strides",
                )

    def _check(self, form: Form, words: list[int]) -> None:
        exact = not form.summary
        if exact:
            self._check_written(form, words)
        party = Party(self._index, form, words[0] >> LOCATION_SHIFT)
        self._races.access(party, words)
        if form.moves_gm and exact:
            number, known = self._races.number(int(form.pipe)), self._races.foreign
            for ports, log in ((form.reads, self.gm_reads), (form.writes, self.gm_writes)):
                for port in ports:
                    if port.space == Space.GM:
                        address = words[port.word] + port.offset
                        log.append(GmAccess(port.region, address, party, number, known))

    def _check_written(self, form: Form, words: list[int]) -> None:
        for port in form.reads:
            region, base = port.region, words[port.word] + port.offset
            byte = self._memories[port.space].first_unwritten(region, base)
            if byte is not None:
                raise Problem(
                    "it reads bytes that nobody wrote",
                    found=f"{port.space.name} byte {byte:#x}, the first unwritten one of "
                    f"[{base + region.low:#x}, {base + region.high:#x})",
                    hint="write them before, or narrow the access by mask, repeat or length",
                )

    def _compute(self, form: Form, words: list[int]) -> None:
        values = form.values
        names = form.names
        if names:
            values = values.copy()
            for word, name in enumerate(names, 1):
                values[name] = words[word]
            if form.scalar:
                values["value"] = words[form.scalar]
        if form.summary:
            self.scalar_accesses += values["loads"] + values["stores"]
            return
        if not self._data and (form.reads or form.writes):
            return
        memories = self._memories
        try:
            arrays = [
                memories[port.space].view(port.region, words[port.word] + port.offset)
                for port in form.reads
            ]
            results = form.record.compute(values, self._registers, arrays)
            if form.converts_to_half or form.computes_half:
                self.lost += lost(form, arrays, results[0])
            for port, result in zip(form.writes, results, strict=True):
                base = words[port.word] + port.offset
                memories[port.space].store(port.region, base, result)
        except (ValueError, TypeError, IndexError, ArithmeticError) as error:
            raise Problem(f"malformed instruction: {error}") from error

    def _fields(self, form: Form, words: list[int]) -> dict[str, int]:
        values = form.values
        return {**values, "value": words[form.scalar]} if form.scalar else values

    def _pipe_waits(self, stuck: Stuck) -> list[str]:
        """What each pipe waits for while the scalar unit waits for another core."""
        return list(self.timeline.deadlock("", stuck).pipes(self._location).values())

    def _place(self) -> str:
        """The instruction under way, in a message of another core."""
        location = self._location(self._words[0] >> LOCATION_SHIFT)
        return f"instruction #{self._index} ({location})"

    def _location(self, number: int) -> str:
        known = 0 < number < len(self._locations)
        return self._locations[number] if known else "unknown location"

    def _fault(self, problem: Problem) -> DeviceFault:
        where = f"kernel {self._kernel}, block {self._block}"
        if self._link is not None:
            where = f"kernel {self._kernel}, {self._link.seat}"
        if self._words:
            where += f", instruction #{self._index}"
            if self._form is not None:
                where += f" {self._form.record.mnemonic} of PIPE_{self._form.pipe.name}"
            where += f" at {self._location(self._words[0] >> LOCATION_SHIFT)}"
        message = problem.message
        if isinstance(problem, Race):
            message = problem.between(self.describe(problem.before))
        found = problem.found
        if isinstance(problem, Deadlock):
            found = problem.describe(self._location)
        return DeviceFault(
            message,
            where=where,
            found=found,
            expected=problem.expected,
            hint=problem.hint,
        )


def lost(form: Form, sources: Sequence[Array], result: Array) -> Lost:
    """What the lanes that take part in an instruction lost of what is rounded to f16."""
    masks = [port.region.mask for port in form.reads]
    taken = [taking_part(x, mask) for x, mask in zip(sources, masks, strict=True)]
    result = taking_part(result, form.writes[0].region.mask)
    if form.converts_to_half:
        return lost_by_conversion(taken[0], result)
    return lost_by_arithmetic(taken, result)
