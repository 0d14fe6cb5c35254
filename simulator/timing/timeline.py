"""Time of one core: instructions, not clock ticks.

The scalar unit issues in order, one instruction after the other. Each pipe has a queue; a pipe
starts an instruction when it is at the head of its queue, was issued, and the pipe is free. A
`wait_flag` at the head holds the pipe until the flag is there; a flag may also be set by an
instruction that is issued later, so instructions behind an unsatisfied wait are kept until then.

Each instruction notes what its issue, its start and its end waited for: the walk back along these
notes from the last instruction is the critical path (`davinci.report.critical`).

The work is done by compiled code (`timing.clock`, `core.execute`) on arrays (`timing.layout`); this
is the door to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import davinci.simulator.core.execute  # noqa: F401  (compiled with the rest)
from davinci.isa.core import LOCATION_SHIFT, Pipe, Records, Space
from davinci.isa.unit_flags import UNIT_BYTES
from davinci.native import Bytes, Floats, Ints, address
from davinci.simulator.checks.deadlock import Deadlock, Issued, Stuck
from davinci.simulator.core.events import EVENTS, PIPES, Event, event_of
from davinci.simulator.core.problems import UnplacedFault
from davinci.simulator.core.regions import Region
from davinci.simulator.core.tables import Tables
from davinci.simulator.timing.beginning import Beginning, units_of
from davinci.simulator.timing.clock import FLAG_COLUMNS, STEP_MASK
from davinci.simulator.timing.gm_model import Rates
from davinci.simulator.timing.l2 import Touched
from davinci.simulator.timing.layout import (
    LIBRARY,
    NOTHING,
    QueueColumn,
    Stop,
    TimelineColumn,
    UnitColumn,
    Word,
)

LOG_ROOM = 4096
"""Instructions that a new time line has room for."""

TRANSFER_ROOM = 64
"""Transfers of global memory that a new time line has room for."""


@dataclass(frozen=True)
class TimelineRow:
    """One instruction on the time line; cycles count from the start of the launch.

    Attributes:
        core, block, pipe: where it ran.
        start, end: from leaving its queue until it is complete.
        mnemonic, index, location: the instruction, its number in its block, where it comes from.
        place: number of this location in the list of its module's; 0 is unknown.
        issued: when the scalar unit put it into the queue.
        free: when its pipe could start the next one.
        issue_after: number of the instruction that had to leave the full queue, or `NOTHING`.
        start_after: number of the one that kept the pipe, or `NOTHING`: it waited for its issue.
        end_after: number of the `set_flag` a `wait_flag` waited for, or of the instruction whose
            completion a `set_flag` or barrier waited for, or `NOTHING`.
        fields: values of its fields.
        accesses: (memory, base address, region, written) of each.
        shared_cycles: how much longer it keeps its pipe because GM serves other cores as well.
    """

    core: int
    pipe: str
    start: int
    end: int
    mnemonic: str
    index: int
    location: str
    place: int
    block: int
    issued: int
    free: int
    issue_after: int
    start_after: int
    end_after: int
    fields: dict[str, int]
    accesses: tuple[tuple[Space, int, Region, bool], ...]
    shared_cycles: int


__all__ = ["NOTHING", "Timeline", "TimelineRow"]


class Timeline:
    """The clock of one core while it runs one block.

    Attributes:
        state, doubles: see `timing.layout`.
        rates: of its share of global memory.
        common: of each read of MTE2 how much longer it takes for lines that other cores read as
            well, and the least cycles of each of its requests; None: `rates` say it of all.
        crossed: it has waited for other cores or they for it.
        records: what was executed, if rows are kept.
    """

    def __init__(
        self,
        tables: Tables,
        keep_rows: bool,
        rates: Rates,
        room: int = LOG_ROOM,
        common: Floats | None = None,
    ) -> None:
        self.tables, self.rates, self.keep_rows = tables, rates, keep_rows
        self._common = common
        self.crossed = False
        self.records: list[Records] = []
        begun = tables.begun
        if begun is None or begun.rates is not rates or begun.keep_rows != keep_rows:
            begun = tables.begun = Beginning.of(tables.machine, tables.row_blocks, keep_rows, rates)
        self.state, self.doubles = begun.begin()
        self._log: Ints = np.empty(room, dtype=np.int64)
        self._rows: Ints = np.zeros((room * keep_rows, TimelineColumn.COLUMNS), dtype=np.int64)
        self._transfers: Ints = np.empty((TRANSFER_ROOM, 2), dtype=np.int64)
        self._pointed: tuple[Ints | None, ...] = (None,) * 3

    def execute(self, records: Ints, count: int) -> Stop:
        """Executes records, int64[n, 8], up to number `count`, from `state[Word.AT]` on."""
        self._point()
        return Stop(LIBRARY.call("execute", self.state, self.doubles, records, count))

    def make_room(self, most: int) -> None:
        """Makes room for more instructions, up to `most` of them."""
        room = min(2 * len(self._log), most)
        if self.count == len(self._log):
            self._log = _grown(self._log, room)
            self._rows = _grown(self._rows, room * self.keep_rows)
        transfers = max(LOG_ROOM, 2 * len(self._transfers))
        if self.state[Word.TRANSFER_COUNT] == len(self._transfers):
            self._transfers = _grown(self._transfers, transfers)

    def replay(self, log: Ints) -> Stop:
        """Issues again what another time line has issued; see `clock.replay`."""
        self._log = log
        if self.keep_rows and len(self._rows) < len(log):
            self._rows = np.zeros((len(log), TimelineColumn.COLUMNS), dtype=np.int64)
        self._point()
        return Stop(LIBRARY.call("replay", self.state, self.doubles, len(log)))

    def _point(self) -> None:
        """Puts the addresses of arrays into the state: they move as they grow."""
        state = self.state
        self.tables.point(state)
        arrays = (self._log, self._rows, self._transfers)
        if all(array is known for array, known in zip(arrays, self._pointed, strict=True)):
            return
        self._pointed = arrays
        state[Word.LOG] = address(self._log)
        state[Word.ROW_TABLE] = address(self._rows)
        state[Word.TRANSFERS] = address(self._transfers)
        state[Word.READERS] = 0 if self._common is None else address(self._common)
        state[Word.ROOM], state[Word.TRANSFER_ROOM] = len(self._log), len(self._transfers)

    @property
    def count(self) -> int:
        """Instructions so far."""
        return int(self.state[Word.COUNT])

    @property
    def log(self) -> Ints:
        """What was issued: step and scalar operations of each instruction."""
        return self._log[: self.count]

    def steps(self, first: int = 0, end: int | None = None) -> Ints:
        """The step of each instruction, from number `first` on."""
        return self.log[first:end] & STEP_MASK

    def touched(self) -> Touched:
        """What its transfers touched in global memory."""
        count = int(self.state[Word.TRANSFER_COUNT])
        lines: Ints = np.zeros(0, dtype=np.int64)
        kinds: Bytes = np.zeros(0, dtype=np.uint8)
        sizes: Ints = np.zeros(4, dtype=np.int64)
        self._point()
        found = LIBRARY.call("lines_of", self.state, count, lines, kinds, sizes, 0)
        lines, kinds = np.zeros(found, dtype=np.int64), np.zeros(found, dtype=np.uint8)
        LIBRARY.call("lines_of", self.state, count, lines, kinds, sizes, 1)
        reads, stores, direct_reads, direct_stores = sizes.tolist()
        moved = reads, stores, direct_reads, direct_stores
        if not self.tables.machine.gm.same_line_request_cycles:
            return Touched(lines, kinds, moved)
        ends: Ints = np.zeros(0, dtype=np.int64)
        reading = LIBRARY.call("reads_of", self.state, count, ends, 0)
        ends = np.zeros(2 * reading, dtype=np.int64)
        LIBRARY.call("reads_of", self.state, count, ends, 1)
        return Touched(lines, kinds, moved, ends.reshape(-1, 2))

    def came(self) -> list[tuple[int, int]]:
        """Sets of flags for other cores that their pipes have come to since the last call: number
        of the instruction, cycle."""
        state = self.state
        first, count = int(state[Word.CAME_SETS]), int(state[Word.CAME])
        state[Word.CAME] = 0
        return [(int(i), int(c)) for i, c in state[first : first + 2 * count].reshape(-1, 2)]

    def pass_poll(self) -> None:
        """Lets a replay that stopped before the end of a poll go on."""
        self.state[Word.PASS] = 1

    @property
    def kept_rows(self) -> Ints:
        """The rows, see `TimelineColumn`, in the order of execution; none if they are not kept."""
        return self._rows[: self.row_count * self.keep_rows]

    @property
    def row_count(self) -> int:
        """Rows so far."""
        return int(self.state[Word.ROWS])

    def repeat_from(self, index: int, row: int) -> None:
        """Lets a replay go on with an instruction that it has issued before.

        Args:
            index: of the instruction.
            row: its row, which is made again with all behind it.
        """
        self.state[Word.COUNT] = index
        if self.keep_rows:
            self.state[Word.ROWS] = row

    def begin_row(self, row: int, issued: int, start: int) -> None:
        """Lets a row that was made again begin where it first did."""
        if self.keep_rows:
            self._rows[row, TimelineColumn.ISSUED] = issued
            self._rows[row, TimelineColumn.START] = start

    def issued_at(self, row: int) -> int:
        """The cycle in which the instruction of a row was issued; 0 if rows are not kept."""
        return int(self._rows[row, TimelineColumn.ISSUED]) if self.keep_rows else 0

    def each_pipe(self, place: Word) -> list[int]:
        """Numbers of the pipes: `Word.BUSY`, cycles in which each has an instruction under way;
        `FLAG_HELD`, `BARRIER_HELD`: in which it has none, held by a wait for a flag or a barrier.
        """
        found: list[int] = self.state[place : place + PIPES].tolist()
        return found

    def finish(self) -> int:
        """Cycles until everything is complete.

        Raises:
            Problem: a pipe still waits for a flag: a deadlock; or a function lacks instructions.
        """
        if left := int(self.state[Word.FUNCTION_LEFT]):
            raise UnplacedFault(
                "a function is not over at the end of the program",
                found=f"{left} instructions on registers fewer than vf_call says",
            )
        if any(self.each_pipe(Word.HELD_COUNT)):
            raise self.deadlock("the program has ended", None)
        state = self.state
        size = units_of(self.tables.machine) * UnitColumn.COLUMNS
        units = state[state[Word.UNITS] :][:size].reshape(-1, UnitColumn.COLUMNS)
        if len(left_set := np.flatnonzero(units[:, UnitColumn.SET])):
            raise UnplacedFault(
                "unit flags of L0C left set at the end of the program",
                found=f"{len(left_set)} units, the first at {left_set[0] * UNIT_BYTES:#x}, set by "
                f"#{units[left_set[0], UnitColumn.BY]}",
                hint="a fixpipe whose unit_flag is 3 clears what a mad with 3 has set: the next "
                "mad with unit flags would wait for ever",
            )
        return max(int(state[Word.NOW]), *self.each_pipe(Word.DONE), *self.each_pipe(Word.FREE))

    def rows(
        self, core: int, block: int, begin: int, locations: Sequence[str]
    ) -> Iterator[TimelineRow]:
        """The instructions in the order of their execution, for a block that began at cycle `begin`
        of the launch."""
        if not self.records:
            return  # a block that issues nothing
        records = np.concatenate(self.records)
        steps = self.steps().tolist()
        for at in self._rows[: int(self.state[Word.ROWS])].tolist():
            index = at[TimelineColumn.INDEX]
            words = [*records[index].tolist(), 0]
            form = self.tables.form_of(steps[index], words)
            self.tables.locate(form, words)
            number = words[0] >> LOCATION_SHIFT
            yield TimelineRow(
                core=core,
                pipe=f"PIPE_{Pipe(at[TimelineColumn.PIPE]).name}",
                start=begin + at[TimelineColumn.START],
                end=begin + at[TimelineColumn.END],
                mnemonic=form.record.mnemonic,
                index=index,
                location=locations[number] if number < len(locations) else "",
                place=number,
                block=block,
                issued=begin + at[TimelineColumn.ISSUED],
                free=begin + at[TimelineColumn.FREE],
                issue_after=at[TimelineColumn.ISSUE_AFTER],
                start_after=at[TimelineColumn.START_AFTER],
                end_after=at[TimelineColumn.END_AFTER],
                fields=form.fields(words),
                accesses=tuple(
                    (port.space, words[port.word] + port.offset, port.region, written)
                    for ports, written in ((form.reads, False), (form.writes, True))
                    for port in ports
                ),
                shared_cycles=at[TimelineColumn.SHARED],
            )

    def deadlock(self, why: str, scalar: Stuck | None) -> Deadlock:
        """What all pipes wait for now; see `Deadlock`."""
        state = self.state
        ring = int(state[Word.RING])
        held: dict[int, list[Issued]] = {}
        for pipe, count in enumerate(self.each_pipe(Word.HELD_COUNT)):
            for i in range(count):
                place = (int(state[Word.HELD_FIRST + pipe]) + i) % ring
                at = int(state[Word.HELD]) + (pipe * ring + place) * QueueColumn.COLUMNS
                step, index, _, _, location, *_ = state[at : at + QueueColumn.COLUMNS].tolist()
                held.setdefault(pipe, []).append(self.tables.issued(step, index, location))
        flags = state[state[Word.FLAGS] :][: EVENTS * FLAG_COLUMNS].reshape(EVENTS, FLAG_COLUMNS)
        unused: dict[Event, int] = {}
        unsent = np.flatnonzero(flags[:, 0] > flags[:, 1])
        for event in unsent[np.argsort(flags[unsent, 2])].tolist():
            taken = event * ring + int(flags[event, 1]) % ring
            unused[event_of(event)] = int(state[state[Word.FLAG_TIMES] + 2 * taken + 1])
        return Deadlock(why, held, scalar, unused)


def _grown(array: Ints, room: int) -> Ints:
    """An array of `room` rows that begins with those of another one; nothing is said of the others,
    which are written before they are read."""
    grown = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
