"""The checks of one core while it runs: unwritten bytes, and races inside a block.

A part of a stream that is known (`core.parts`) was legal on the chip, and is again. It is only
checked in global memory; its instructions' clocks are those of the first time. Where the stream
goes on otherwise, what was passed over is noted first.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from davinci.isa.core import LOCATION_SHIFT, Pipe, Space
from davinci.simulator.checks.races import GmAccess, InstructionRun, Party, Races
from davinci.simulator.core.forms import InstructionForm, TouchedRegion
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.parts import Order
from davinci.simulator.core.plan import StreamPart
from davinci.simulator.core.problems import UnplacedFault
from davinci.simulator.core.tables import Tables, event_named
from davinci.simulator.timing.beginning import units_of


class Checker:
    """Checks of one core.

    Args:
        tables: of its kind of core.
        memories: by number of their space.

    Attributes:
        races: of the block.
        gm_reads, gm_writes: what the block touched in global memory, and in memories on the chip
            that other cores reach too.
    """

    def __init__(self, tables: Tables, memories: Sequence[Memory]) -> None:
        self._tables, self._memories = tables, memories
        sequential = [Pipe[name] for name in tables.machine.sync.sequential_pipes]
        self.races = Races(sequential, units_of(tables.machine))

    def begin(self, foreign: bool = False, shared: Mapping[Space, int] | None = None) -> None:
        """Starts a block.

        Args:
            foreign: see `KernelCall`.
            shared: memories that other cores reach too, see `shared_memory.shared_places`.
        """
        self.races.reset(foreign)
        self._foreign = foreign
        self._places = {Space.GM: 0, **(shared or {})}
        self.gm_reads: list[GmAccess] = []
        self.gm_writes: list[GmAccess] = []
        self._acquiring: list[int] = []
        self._passed: list[StreamPart] = []
        self._part: StreamPart | None = None
        self._order: Order = []
        self._next = -1

    @property
    def passes_over(self) -> bool:
        """The present part is checked in global memory only."""
        return self._next >= 0

    def begin_part(self, part: StreamPart, order: Order | None) -> None:
        """Starts with instructions that compiled code has executed.

        Args:
            order: of a part that was checked before, behind the same beginning.
        """
        self._part = part
        self._order, self._next = [], -1
        if order is not None:
            self._order, self._next = order, 0
        else:
            self._catch_up()

    def end_part(self) -> Order:
        """Everything since `begin_part` was legal. Returns its order."""
        assert self._part is not None, "a part was begun"
        if self.passes_over:
            self._passed.append(self._part)
        self._part = None
        return self._order

    def synchronise(self, form: InstructionForm, index: int) -> None:
        """Notes a flag or barrier inside the core.

        Raises:
            Problem: a flag may be set again before the wait for it is over.
        """
        name, values = form.record.name, form.values
        if name == "pipe_barrier":
            self.races.barrier(values["pipe"])
        elif name == "set_flag":
            self.races.set_flag(event_named(values), index)
        elif name == "wait_flag":
            self.races.wait_flag(event_named(values), index)

    def access(self, form: InstructionForm, words: list[int], index: int) -> None:
        """Checks an instruction that touches memory.

        Raises:
            Problem: it reads what nobody wrote, or races.
        """
        exact = not form.summary
        if exact:
            self.written(form.reads, words)
        party = Party(index, form, words[0] >> LOCATION_SHIFT)
        self.races.access(party, words)
        if form.moves_gm or (exact and len(self._places) > 1):
            pipe = int(form.pipe)
            order = self.races.number(pipe), self.races.clock(pipe)
            self._order.append(order)
            if exact:
                self._note_gm(party, words, order[0])

    def access_gm(self, form: InstructionForm, words: list[int], index: int) -> None:
        """Checks what an instruction touches in global memory, in a part that is passed over.

        Raises:
            Problem: it reads what nobody wrote, or races.
        """
        if not form.summary:
            self.written(form.far_ports[0], words)
        party = Party(index, form, words[0] >> LOCATION_SHIFT)
        number, clock = self._order[self._next]
        self._next += 1
        if not self.races.access_gm(party, words, number, clock):
            self._catch_up(index)
            self.races.access(party, words)
            raise AssertionError("the order of a part that is known is another one")
        if not form.summary:
            self._note_gm(party, words, number)

    def run_gm(self, run: InstructionRun, words: list[int]) -> bool:
        """Checks what instructions in a row touch in global memory, in a part that is passed over.

        Args:
            words: of the first.

        Returns:
            Whether they are legal; if not, `access_gm` says which of them is not.
        """
        form = run.form
        for port in form.far_ports[0]:
            region, base = port.region, words[port.word] + port.offset
            if self._memories[port.space].first_unwritten(region, base) is not None:
                return False
        last = self._next + len(run.records) - 1
        number, clock = self._order[last]
        if not self.races.access_gm(run, words, number, clock):
            return False
        self._next = last + 1
        self._note_gm(run, words, number)
        return True

    def written(self, ports: Sequence[TouchedRegion], words: list[int]) -> None:
        """Checks regions that are read.

        Raises:
            Problem: nobody wrote a byte of them.
        """
        for port in ports:
            region, base = port.region, words[port.word] + port.offset
            byte = self._memories[port.space].first_unwritten(region, base)
            if byte is not None:
                raise UnplacedFault(
                    "it reads bytes that nobody wrote",
                    found=f"{port.space.name} byte {byte:#x}, the first unwritten one of "
                    f"[{base + region.low:#x}, {base + region.high:#x})",
                    hint="write them before, or narrow the access by mask, repeat or length",
                )

    def end_poll(self, enough: bool) -> None:
        """The scalar unit has looked at counters of other cores, and if that is enough the core
        knows what they say: so do loads that began when those of the counters were complete."""
        self.races.end_poll()
        known = self.races.foreign
        for place in self._acquiring if enough else ():
            self.gm_reads[place] = self.gm_reads[place]._replace(known=known)
        self._acquiring.clear()

    def _note_gm(self, party: Party, words: list[int], number: int) -> None:
        known = self.races.foreign
        first = len(self.gm_reads)
        stored = self._stored(party, words) if self._foreign else ""
        for ports, log in zip(
            (party.form.reads, party.form.writes), (self.gm_reads, self.gm_writes), strict=True
        ):
            for port in ports:
                place = self._places.get(port.space)
                if place is not None:
                    address = place + words[port.word] + port.offset
                    log.append(GmAccess(port.region, address, party, number, known, stored))
        if self.races.is_behind_poll(int(party.form.pipe)):
            self._acquiring += range(first, len(self.gm_reads))

    def _stored(self, party: Party, words: list[int]) -> str:
        """What a copy from UB to global memory is about to leave there, for `GmAccess`."""
        form = party.form
        if form.adds or len(form.reads) != 1 or len(form.writes) != 1:
            return ""
        (source,), (target,) = form.reads, form.writes
        if (source.space, target.space) != (Space.UB, Space.GM):
            return ""
        region, total = target.region, 0
        records = party.records.tolist() if isinstance(party, InstructionRun) else [words]
        for record in records:
            at = record[source.word] + source.offset
            found = self._memories[Space.UB].view(source.region, at)
            total = zlib.crc32(found.tobytes(), total)
        return f"{len(records)} {region.low} {region.dims} {region.run_bytes} {total:x}"

    def _catch_up(self, end: int | None = None) -> None:
        """Notes what was passed over; of the present part what is before instruction `end`."""
        passed, self._passed = self._passed, []
        if end is not None and self._part is not None:
            passed.append(self._part)
        for part in passed:
            for index, (step, record) in enumerate(
                zip(part.steps.tolist(), part.records.tolist(), strict=True), part.first
            ):
                if index == end:
                    return
                words = [*record, 0]
                form = self._tables.form_of(step, words)
                if form.sync:
                    self.synchronise(form, index)
                elif form.reads or form.writes:
                    self.races.access_on_chip(Party(index, form, words[0] >> LOCATION_SHIFT), words)
