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
    RECORD_WORDS,
    Pipe,
    Records,
    Registers,
    Space,
)
from davinci.machine import Machine
from davinci.simulator.checks.bounds import check_bounds
from davinci.simulator.checks.checker import Checker
from davinci.simulator.checks.deadlock import Issued, Stuck
from davinci.simulator.checks.placed import placed
from davinci.simulator.checks.races import GmAccess, InstructionRun, Party
from davinci.simulator.checks.shared_memory import shared_places
from davinci.simulator.core.columns import VA_WORDS
from davinci.simulator.core.counting import Counter, alone
from davinci.simulator.core.events import EVENTS, flags_left, out_of_order, set_before
from davinci.simulator.core.forms import ALL_BITS, InstructionForm
from davinci.simulator.core.half_range import NOTHING, Lost
from davinci.simulator.core.memory import GlobalMemory, Memory, NearMemories, on_chip
from davinci.simulator.core.parts import KnownPart, KnownParts, Order
from davinci.simulator.core.plan import Operation, PartPlan, StreamPart, sources_of
from davinci.simulator.core.problems import MALFORMED, UnplacedFault, located, malformed, too_many
from davinci.simulator.core.tables import Tables, event_named
from davinci.simulator.split.counters import CounterLink
from davinci.simulator.split.cross_core import IN_TURN, Knowledge, Link, Set, Unset
from davinci.simulator.timing.gm_model import Rates
from davinci.simulator.timing.layout import Stop, Word
from davinci.simulator.timing.timeline import LOG_ROOM, Timeline

MOST_INSTRUCTIONS = 20_000_000
"""Instructions of a block, unless the caller says otherwise."""

TURNS_AN_INSTRUCTION = 50
"""Turns of loops that a scalar program may take for each instruction that it may issue."""

LEARNING = (Stop.ROOM, Stop.UNKNOWN_FORM, Stop.UNKNOWN_STEP)
"""Stops at which compiled code only lacks something."""


class Core:
    """The part of a core that outlives a block: memories and forms; and the block under way."""

    def __init__(
        self,
        machine: Machine,
        kind: str,
        gm: GlobalMemory,
        tables: Tables,
        checks: bool,
        data: bool = True,
        most_instructions: int = MOST_INSTRUCTIONS,
        near: NearMemories | None = None,
    ) -> None:
        self._tables, self._data, self._most = tables, data, most_instructions
        near = near or NearMemories(on_chip(machine, kind, shadowed=data), {})
        self._shared = near.shared
        self._memories: list[Memory] = [gm, gm, *(near.chip[s] for s in list(Space)[1:])]
        self._checker = Checker(tables, self._memories) if checks else None
        self._parts = KnownParts(tables, self._memories)
        self._used: set[Space] = set()

    def memory(self, space: Space) -> Memory:
        """A memory as this core sees it; its `.data` and `.written` are shared."""
        return self._memories[space]

    @property
    def sub_block(self) -> int:
        """Which of its block's vector cores this is."""
        return 0 if self._link is None else self._link.seat.sub_block

    @property
    def most_turns(self) -> int:
        """How many turns the loops of a scalar program may take."""
        return TURNS_AN_INSTRUCTION * self._most

    def begin(
        self,
        kernel: str,
        block: int,
        rates: Rates,
        locations: Sequence[str],
        keep_rows: bool,
        link: Link | None = None,
        counters: CounterLink | None = None,
        foreign: bool = False,
        alone: bool = False,
    ) -> None:
        """Starts a block with nothing in the on-chip memories.

        Args:
            kernel, block: names for messages.
            rates: bandwidth of global memory.
            locations: source locations by id.
            keep_rows: keep the time line's rows.
            link: flags between the cores of a split machine.
            counters: by which blocks of a coupled machine wait for each other.
            foreign, alone: see `KernelCall`; and that it does not cross.
        """
        # Instructions write through their forms, the scalar unit only UB. What others reach too is
        # forgotten for the group as a whole.
        for memory in self._memories[Space.L1 :]:
            used = memory.space in self._used | {Space.UB}
            if self._data and used and memory.space not in self._shared:
                memory.forget()
        self._used = set()
        self._kernel, self._block, self._locations = kernel, block, locations
        self._link, self.counters = link, counters
        self._counter: Counter | None = None
        if counters is not None:
            self._counter = Counter(counters, self._memories, self._data, self._checker)
        self.registers = Registers()
        self._parts.begin(alone=alone or (link is None and counters is None))
        if self._checker is not None:
            self._checker.begin(foreign, shared_places(self._shared, block))
        self.timeline = Timeline(self._tables, keep_rows, rates, min(LOG_ROOM, self._most))
        sizes = int(self.timeline.state[Word.SIZES])
        for space in Space:
            self.timeline.state[sizes + space] = self._memories[space].size
        self._coming: dict[int, Callable[[int], None]] = {}
        self.lost = NOTHING
        self._index = -1
        self._words: list[int] = []
        self._form: InstructionForm | None = None

    def consume(self, records: Records) -> None:
        """Executes records, in program order.

        Compiled code runs ahead, up to what needs the core: then data and checks catch up with it.

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
        timeline, state = self.timeline, self.timeline.state
        if timeline.keep_rows:
            timeline.records.append(records)
        words = np.ascontiguousarray(records).view(np.int64)
        first, done = timeline.count, 0
        state[Word.AT] = 0
        try:
            while True:
                stop = timeline.execute(words, len(records))
                at = int(state[Word.AT])
                if stop in LEARNING and self._learns(stop, records, at, first + at):
                    continue
                self._perform(records[done:at], first + done)
                done = at
                if stop == Stop.END:
                    break
                self._attend(stop, records, at, first + at)
        except UnplacedFault as problem:
            raise self._fault(problem) from None

    def finish(self) -> int:
        """Ends the block. Returns its cycles.

        Raises:
            DeviceFault: deadlock, or flags left set.
        """
        self._words = []
        try:
            cycles = self.timeline.finish()
            state = self.timeline.state
            flags_left(state[state[Word.EVENT_SETS] :][:EVENTS])
        except UnplacedFault as problem:
            raise self._fault(problem) from None
        return cycles

    def _learns(self, stop: Stop, records: Records, at: int, index: int) -> bool:
        """Whether a stop is over without data and checks of what comes before it."""
        try:
            self._attend(stop, records, at, index)
        except UnplacedFault:  # Something before it may be wrong too, and comes first.
            return False
        return True

    def _attend(self, stop: Stop, records: Records, at: int, index: int) -> None:
        """Does what compiled code stopped for.

        Args:
            at: record at which it stopped, or behind which it did.
            index: of that record in the block.

        Raises:
            Problem: it is illegal.
        """
        state = self.timeline.state
        if stop == Stop.CAME:
            for number, cycle in self.timeline.came():
                self._coming.pop(number)(cycle)
            return
        self._index, self._form = index, None
        words = self._words = [*records[at].tolist(), 0]
        if stop == Stop.ROOM:
            if index >= self._most:
                raise too_many(self._most)
            self.timeline.make_room(self._most)
            return
        if stop == Stop.UNKNOWN_FORM:
            form = self._form = self._tables.learn_form(state, words, self._loaded_registers())
            if form.summary:
                self._bounds(form, words)
            return
        form = self._form = self._tables.decode(words, self._loaded_registers())
        if stop == Stop.UNKNOWN_STEP:
            self._tables.learn_step(state, words, form)
        elif stop == Stop.ILLEGAL:
            self._tables.locate(form, words)
            self._bounds(form, words)
            raise AssertionError("compiled code and the core differ in what is out of bounds")
        elif stop in (Stop.SET_TWICE, Stop.FUNCTION):
            before = set_before(records, at, index, self._locations)
            raise out_of_order(form.record, form.values, before)
        elif stop == Stop.CROSS:
            self._cross(form, index)
        else:
            self._deadlock(stop, records[at : at + 1], form, index)

    def _loaded_registers(self) -> Registers:
        """The registers on which regions depend, as compiled code has them."""
        state, registers = self.timeline.state, Registers()
        registers.mask_low = int(state[Word.MASK_LOW]) & ALL_BITS
        registers.mask_high = int(state[Word.MASK_HIGH]) & ALL_BITS
        registers.fmatrix = int(state[Word.FMATRIX]) & ALL_BITS
        registers.deqscale = int(state[Word.DEQSCALE]) & ALL_BITS
        registers.atomic, registers.fpc = state[[Word.ATOMIC, Word.FPC]].tolist()
        registers.va.reshape(-1)[:] = state[state[Word.VA] :][:VA_WORDS]
        return registers

    def _perform(self, records: Records, index: int) -> None:
        """Data and checks of records that compiled code has executed.

        Args:
            index: of the first one in the block.
        """
        if not (self._data or self._checker) or not len(records):
            return
        part = StreamPart(records, self.timeline.steps(index, index + len(records)), index)
        known, checker, order = self._parts.find(part), self._checker, Order()
        if checker is not None:
            checker.begin_part(part, None if known is None else known.order)
        with np.errstate(all="ignore"):
            if known is None:
                self._one_by_one(part)
            else:
                self._follow(part, known)
        if checker is not None:
            order = checker.end_part()
        if known is None:
            self._parts.learn(part, order)

    def _one_by_one(self, part: StreamPart) -> None:
        """Data and checks of a part that is not known."""
        checker, index = self._checker, part.first
        for step, words in zip(part.steps.tolist(), part.records.tolist(), strict=True):
            words.append(0)
            self._index, self._words = index, words
            form = self._form = self._tables.form_of(step, words)
            if form.sync:
                if checker is not None:
                    checker.synchronise(form, index)
                index += 1
                continue
            self._tables.locate(form, words)
            if form.finds and self._data:
                form = self._form = self._found(form, words)
            if checker is not None and (form.reads or form.writes):
                checker.access(form, words, index)
            if self._data:
                self.compute(form, words)
            index += 1

    def _follow(self, part: StreamPart, known: KnownPart) -> None:
        """Data and checks of a part that is known."""
        plan = self._plan(part, known)
        self._used.update(plan.written)
        for item in plan.items:
            try:
                item.follow(self, part.records, part.first)
            except MALFORMED as error:
                if isinstance(item, Operation):
                    self._index, self._form = part.first + item.at, item.form
                    self._words = [*part.records[item.at].tolist(), 0]
                raise malformed(error) from error
        plan.mark()

    def _plan(self, part: StreamPart, known: KnownPart) -> PartPlan:
        """The plan of a known part, made once, for the registers that it begins with."""
        if known.plan is None:
            known.plan = PartPlan(part, self._tables, self.registers, self._memories)
        return known.plan

    def plan_of(self, program: StreamPart) -> PartPlan | None:
        """How the program that has just run is executed once more: None if it was not one part.
        Without data there is nothing to do."""
        self.registers = Registers()
        if not self._data:
            nothing = StreamPart(program.records[:0], program.steps[:0], 0)
            return self._plan(nothing, KnownPart([]))
        self._parts.begin(alone=True)
        known = self._parts.find(program)
        return None if known is None else self._plan(program, known)

    def repeat(self, plan: PartPlan, records: Records) -> Lost | None:
        """Executes a program again, with other addresses in global memory, neither timed nor
        checked.

        Returns:
            What left the range of f16; None if fields of an instruction do not fit each other.
        """
        self.registers, self.lost = Registers(), NOTHING
        found = plan.repeat(self, records)
        return None if found is None else found + self.lost

    def check_transfer(self, form: InstructionForm, words: list[int], index: int) -> None:
        """Checks an instruction of a known part that touches global memory."""
        self._index, self._words, self._form = index, words, form
        if self._checker is not None:
            self._checker.access_gm(form, words, index)

    def may_transfer(self, words: list[int], run: InstructionRun) -> bool:
        """Whether such instructions in a row are legal, together."""
        return self._checker is None or self._checker.run_gm(run, words)

    def _cross(self, form: InstructionForm, index: int) -> None:
        """Sets a flag of other cores, or waits for one; then compiled code may go on."""
        values, state = form.values, self.timeline.state
        self.timeline.crossed = True
        item = Issued(form.record.mnemonic, index, self._words[0] >> LOCATION_SHIFT)
        if form.record.timing == "counter":
            if self._counter is None:
                raise alone()
            stuck = Stuck("counters of other blocks", item, ())
            coming = self._counter.perform(
                form.record, self._words, index, self._place(), lambda: self._pipe_waits(stuck)
            )
            if coming is not None:
                self._coming[index] = coming
        elif form.record.name in ("ffts_cross_core_sync", "pass_turn"):
            self._coming[index] = self._cross_core_flag(values)
        else:
            assert self._link is not None, "only split machines have it"
            stuck = Stuck("a flag of another core", item, ())
            wait = self._link.await_turn if "lock" in values else self._link.wait_flag
            number = values.get("lock", values.get("flag", 0))
            count = wait(number, self._place(), lambda: self._pipe_waits(stuck))
            if self._checker is not None:
                self._checker.races.receive(count.knowledge, self._link.seat.number)
            state[Word.UNTIL] = max(count.time, 0)
        state[Word.PASS] = 1

    def _deadlock(self, stop: Stop, record: Records, form: InstructionForm, index: int) -> None:
        """The instruction can never be issued; what is wrong with it otherwise comes first.

        Raises:
            Problem: always.
        """
        self._perform(record, index)
        state = self.timeline.state
        event = event_named(form.values) if stop == Stop.SCALAR_WAITS else None
        item = Issued(form.record.mnemonic, index, self._words[0] >> LOCATION_SHIFT, event)
        if stop == Stop.QUEUE_FULL:
            pipe = int(state[Word.STUCK_PIPE])
            full = f"the queue of PIPE_{Pipe(pipe).name}"
            raise self.timeline.deadlock(f"{full} is full", Stuck(f"room in {full}", item, [pipe]))
        if stop == Stop.SCALAR_WAITS:
            raise self.timeline.deadlock("the scalar unit waits", Stuck("a flag", item, ()))
        late = [pipe for pipe, n in enumerate(self.timeline.each_pipe(Word.HELD_COUNT)) if n]
        raise self.timeline.deadlock(
            "pipe_barrier(PIPE_ALL) waits for all pipes", Stuck("all pipes", item, late)
        )

    def describer(self) -> Callable[[Party], str]:
        """What puts instructions of the block under way into messages, later too."""
        locations = self._locations

        def describe(party: Party) -> str:
            form, place = party.form, located(locations, party.location)
            return f"#{party.index} {form.record.mnemonic} of PIPE_{form.pipe.name} at {place}"

        return describe

    def _cross_core_flag(self, values: Mapping[str, int]) -> Callable[[int], None]:
        """Returns the action for the cycle in which the flag is set."""
        link = self._link
        assert link is not None, "only split machines have it"
        pipe, mode = values["pipe"], values.get("mode", IN_TURN)
        flag = values["lock" if mode == IN_TURN else "flag"]
        knowledge: Knowledge = {}
        sets: list[Set] = []
        if self._checker is not None:
            knowledge, number = self._checker.races.send(pipe, link.seat.number)
            sets.append(Set(link.seat, pipe, number, self._place()))
        return link.set_flag(Unset(mode, flag, pipe, self._place()), knowledge, sets)

    def _bounds(self, form: InstructionForm, words: list[int]) -> None:
        check_bounds(form, words, self._memories)

    def _found(self, form: InstructionForm, words: list[int]) -> InstructionForm:
        """The form with what its data names.

        Raises:
            Problem: that data was not written, or names what is not there.
        """
        if self._checker is not None:
            self._checker.written(form.reads, words)
        addresses = dict(zip(form.names, words[1:], strict=False))
        try:
            found = form.record.finds(
                {**form.fields(words), **addresses},
                self.registers,
                sources_of(form, words, self._memories),
            )
        except ValueError as error:
            raise UnplacedFault(f"malformed instruction: {error}") from error
        form = form.with_reads(found)
        self._bounds(form, words)
        return form

    def compute(self, form: InstructionForm, words: list[int]) -> None:
        """Computes what an instruction writes, and marks it.

        Raises:
            Problem: its fields do not fit each other.
        """
        if form.summary:
            return
        try:
            found = Operation(form, words, self._memories).run(self.registers)
        except MALFORMED as error:
            raise malformed(error) from error
        if found is not NOTHING:
            self.lost += found
        for port in form.writes:
            self._memories[port.space].mark(port.region, words[port.word] + port.offset)
            self._used.add(port.space)

    def _pipe_waits(self, stuck: Stuck) -> list[str]:
        """The events that pipes wait for while the scalar unit waits for another core."""
        return list(self.timeline.deadlock("", stuck).pipes(self._location).values())

    def _place(self) -> str:
        """The instruction under way, in a message of another core."""
        location = self._location(self._words[0] >> LOCATION_SHIFT)
        return f"instruction #{self._index} ({location})"

    def _location(self, number: int) -> str:
        return located(self._locations, number)

    @property
    def gm_reads(self) -> list[GmAccess]:
        """Ranges of global memory that the block has read."""
        assert self._checker is not None, "noted for checks"
        return self._checker.gm_reads

    @property
    def gm_writes(self) -> list[GmAccess]:
        """Ranges of global memory that the block has written."""
        assert self._checker is not None, "noted for checks"
        return self._checker.gm_writes

    def _fault(self, problem: UnplacedFault) -> DeviceFault:
        where = f"kernel {self._kernel}, block {self._block}"
        if self._link is not None:
            where = f"kernel {self._kernel}, {self._link.seat}"
        if self._words:
            where += f", instruction #{self._index}"
            if self._form is not None:
                where += f" {self._form.record.mnemonic} of PIPE_{self._form.pipe.name}"
            where += f" at {self._location(self._words[0] >> LOCATION_SHIFT)}"
        return placed(problem, where, self.describer(), self._location)
