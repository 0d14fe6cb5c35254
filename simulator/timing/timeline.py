"""Time of one core: instructions, not clock ticks.

The scalar unit issues in order, one instruction after the other. Each pipe has a queue; a pipe
starts an instruction when it is at the head of its queue, was issued, and the pipe is free. A
`wait_flag` at the head holds the pipe until the flag is there; a flag may also be set by an
instruction that is issued later, so instructions behind an unsatisfied wait are kept until then.

Each instruction notes what its issue, its start and its end waited for: the walk back along these
notes from the last instruction is the critical path (`davinci.report.critical`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from davinci.isa.core import Pipe, Space
from davinci.machine import Machine
from davinci.simulator.checks.deadlock import Deadlock, Stuck
from davinci.simulator.core.events import PIPES, Event, S
from davinci.simulator.core.forms import Form
from davinci.simulator.core.regions import Region
from davinci.simulator.timing.gm_model import Rates, Share
from davinci.simulator.timing.l1_port import L1Port
from davinci.simulator.timing.rules import Cost

UNITS = (int(Pipe.M), int(Pipe.V))
NOTHING = -1
"""In place of an instruction that something waited for."""


@dataclass(frozen=True)
class Row:
    """One instruction on the time line; cycles count from the start of the launch.

    Attributes:
        core, block, pipe: where it ran.
        start, end: from leaving its queue until it is complete.
        mnemonic, index, location: the instruction, its number in its block, where it comes from.
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
    block: int
    issued: int
    free: int
    issue_after: int
    start_after: int
    end_after: int
    fields: dict[str, int]
    accesses: tuple[tuple[Space, int, Region, bool], ...]
    shared_cycles: int


@dataclass(slots=True)
class Issued:
    """An instruction in a queue.

    `wait`, `send` and `barrier` are set for the instructions of those names; `form` and `words` if
    rows are kept, `issue_after` and `end_after` as in `Row`. `cross` sets a flag of other cores, in
    the cycle it is called with; the scalar unit does not start the instruction before `until`.
    `cross_core` holds the fields of an instruction that sets or waits for a flag of other cores.
    `direct`: its address in global memory is one that bypasses the L2.
    """

    name: str
    index: int
    location: int
    time: int
    cost: Cost
    wait: Event | None = None
    send: Event | None = None
    barrier: bool = False
    form: Form | None = None
    words: Sequence[int] = ()
    fields: dict[str, int] | None = None
    issue_after: int = NOTHING
    end_after: int = NOTHING
    cross: Callable[[int], None] | None = None
    cross_core: Mapping[str, int] | None = None
    until: int = 0
    shared: int = 0
    direct: bool = False


@dataclass(slots=True)
class Executed:
    """An instruction that was executed, as the time line of one core keeps it; see `Row`."""

    pipe: int
    start: int
    free: int
    end: int
    start_after: int
    item: Issued

    def row(self, core: int, block: int, begin: int, location: str) -> Row:
        """For a block that began at cycle `begin` of the launch."""
        item = self.item
        form, words = item.form, item.words
        assert form is not None
        return Row(
            core=core,
            pipe=f"PIPE_{Pipe(self.pipe).name}",
            start=begin + self.start,
            end=begin + self.end,
            mnemonic=item.name,
            index=item.index,
            location=location,
            block=block,
            issued=begin + item.time,
            free=begin + self.free,
            issue_after=item.issue_after,
            start_after=self.start_after,
            end_after=item.end_after,
            fields=item.fields or {},
            accesses=tuple(
                (port.space, words[port.word] + port.offset, port.region, written)
                for ports, written in ((form.reads, False), (form.writes, True))
                for port in ports
            ),
            shared_cycles=item.shared,
        )


class Timeline:
    """The clock of one core while it runs one block.

    Attributes:
        now: when the scalar unit can issue next.
        busy: cycles in which each pipe has an instruction under way.
        flag_cycles, barrier_cycles: in which it has none, held by a wait for a flag or a barrier.
        unit_cycles: cycles that instructions kept the cube or the vector unit, by mnemonic.
        rows: the instructions, in the order of their execution, if they are kept.
        rates: of its share of global memory.
        crossed: it has waited for other cores or they for it.
        log: what was issued: pipe, scalar operations before it, instruction.
    """

    def __init__(self, machine: Machine, keep_rows: bool, rates: Rates) -> None:
        self.rates, self._share = rates, Share(rates)
        self.crossed = False
        self._l1 = L1Port(machine.mte1.stall_bytes)
        self._depth = machine.sync.queue_depth
        self._flag_cycles = machine.sync.flag_cycles
        self._barrier_cycles = machine.sync.barrier_cycles
        self._issue_cycles = machine.scalar.issue_cycles
        self.now = 0
        self.busy = [0] * PIPES
        self.flag_cycles = [0] * PIPES
        self.barrier_cycles = [0] * PIPES
        self.unit_cycles: dict[str, int] = {}
        self.rows: list[Executed] | None = [] if keep_rows else None
        self.log: list[tuple[int, int, Issued]] = []
        self._free = [0] * PIPES
        self._done = [0] * PIPES
        self._kept_by = [NOTHING] * PIPES
        self._done_by = [NOTHING] * PIPES
        self._starts: list[deque[tuple[int, int]]] = [
            deque(maxlen=self._depth) for _ in range(PIPES)
        ]
        self._held: list[deque[Issued]] = [deque() for _ in range(PIPES)]
        self._flags: dict[Event, deque[tuple[int, int]]] = {}
        self._woken: deque[int] = deque()

    def issue(self, pipe: int, scalar_ops: int, item: Issued) -> None:
        """The scalar unit issues `item` to a pipe, after `scalar_ops` operations of its own.

        Raises:
            Problem: it can never be issued or executed: a deadlock.
        """
        self.log.append((pipe, scalar_ops, item))
        if item.cross_core is not None:
            self.crossed = True
        self.now += (scalar_ops + 1) * self._issue_cycles
        if pipe == S:
            self._scalar(item)
            self._wake()
            return
        starts, held = self._starts[pipe], self._held[pipe]
        behind = len(starts) + len(held) - self._depth
        if behind >= 0:
            if behind >= len(starts):
                full = f"the queue of PIPE_{Pipe(pipe).name}"
                raise self.deadlock(f"{full} is full", Stuck(f"room in {full}", item, [pipe]))
            left, by = starts[behind]
            if left > self.now:
                self.now, item.issue_after = left, by
        item.time = self.now
        if held or not self._start(pipe, item):
            held.append(item)
        self._wake()

    def barrier_all(self, scalar_ops: int, item: Issued) -> None:
        """The scalar unit and all pipes wait until everything is complete."""
        self.log.append((Pipe.ALL, scalar_ops, item))
        self.now += (scalar_ops + 1) * self._issue_cycles
        if any(self._held):
            late = [pipe for pipe, held in enumerate(self._held) if held]
            raise self.deadlock(
                "pipe_barrier(PIPE_ALL) waits for all pipes", Stuck("all pipes", item, late)
            )
        begin = item.time = self.now
        for times, owners in ((self._free, self._kept_by), (self._done, self._done_by)):
            last = max(range(PIPES), key=times.__getitem__)
            if times[last] > self.now:
                self.now, item.end_after = times[last], owners[last]
        self.now += self._barrier_cycles
        for pipe, ends in enumerate(zip(self._done, self._free, strict=True)):
            self.barrier_cycles[pipe] += self.now - max(begin, *ends)
        self._free, self._kept_by = [self.now] * PIPES, [item.index] * PIPES
        self._note(S, begin, self.now, self.now, NOTHING, item)

    def replay(self, log: Sequence[tuple[int, int, Issued]]) -> int:
        """Issues what another time line has issued; returns its cycles."""
        for pipe, scalar_ops, item in log:
            self.issue_again(pipe, scalar_ops, item)
        return self.finish()

    def issue_again(self, pipe: int, scalar_ops: int, item: Issued) -> None:
        """Issues what another time line has issued."""
        item.issue_after = item.end_after = NOTHING
        item.shared = 0
        if pipe == Pipe.ALL:
            self.barrier_all(scalar_ops, item)
        else:
            self.issue(pipe, scalar_ops, item)

    def finish(self) -> int:
        """Cycles until everything is complete.

        Raises:
            Problem: a pipe still waits for a flag: a deadlock.
        """
        if any(self._held):
            raise self.deadlock("the program has ended", None)
        return max(self.now, *self._done, *self._free)

    def _scalar(self, item: Issued) -> None:
        begin = item.time = self.now
        if item.wait is not None:
            flags = self._flags.get(item.wait)
            if not flags:
                raise self.deadlock("the scalar unit waits", Stuck("a flag", item, ()))
            flag, by = flags.popleft()
            if flag > self.now:
                self.flag_cycles[S] += flag - self.now
                self.now, item.end_after = flag, by
        elif item.send is not None:
            self._send(item.send, self.now, item.index)
        elif item.cross is not None:
            item.cross(self.now)
        waits = item.wait is not None or item.until > self.now
        self.now = max(self.now, item.until) + item.cost.occupancy
        busy = 0 if waits else self.now - begin
        self.busy[S] += busy
        self._done[S], self._done_by[S] = self.now, item.index
        self._note(S, begin, self.now, self.now, NOTHING, item)

    def _start(self, pipe: int, item: Issued) -> bool:
        """Executes the head of a queue; False if it is a wait for a flag that is not set yet."""
        start, start_after = item.time, NOTHING
        if self._free[pipe] > start:
            start, start_after = self._free[pipe], self._kept_by[pipe]
        done = self._done[pipe]
        if item.wait is not None:
            flags = self._flags.get(item.wait)
            if not flags:
                return False
            end, by = flags.popleft()
            if end > start:
                item.end_after = by
            end = self._free[pipe] = max(start, end)
            self._kept_by[pipe] = item.index
            self.flag_cycles[pipe] += max(0, end - max(start, done))
        elif item.send is not None or item.cross is not None or item.barrier:
            end = max(start, done)
            if done > start:
                item.end_after = self._done_by[pipe]
            if item.barrier:
                end = self._free[pipe] = end + self._barrier_cycles
                self._kept_by[pipe] = item.index
                self.barrier_cycles[pipe] += self._barrier_cycles
        else:
            free, end = self._work(pipe, start, item)
            self._free[pipe], self._kept_by[pipe] = free, item.index
            if pipe in UNITS:
                cycles = self.unit_cycles.get(item.name, 0)
                self.unit_cycles[item.name] = cycles + item.cost.occupancy
            if end > done:
                self.busy[pipe] += end - max(start, done)
                self._done[pipe], self._done_by[pipe] = end, item.index
        # A wait or barrier leaves the queue when it is over, anything else when it starts.
        left = end if item.barrier or item.wait is not None else start
        self._starts[pipe].append((left, item.index))
        sends = item.send is not None or item.cross is not None
        free = start if sends else self._free[pipe]
        self._note(pipe, start, free, end, start_after, item)
        if item.send is not None:
            self._send(item.send, end, item.index)
        if item.cross is not None:
            item.cross(end)
        return True

    def _work(self, pipe: int, start: int, item: Issued) -> tuple[int, int]:
        """When an instruction that begins at `start` frees its pipe, and when it is complete."""
        cost = item.cost
        free, end = start + cost.occupancy, start + cost.latency
        if cost.from_l1:
            stalled = self._l1.stalls(start, cost.occupancy)
            free, end = free + stalled, end + stalled
        if cost.gm_read or cost.gm_write:
            passed = self._share.claim(pipe, start, cost.gm_read, cost.gm_write)
            if cost.gm_read:
                held = cost.occupancy + cost.miss_cycles * self._share.missing
                passed = max(passed, start + ceil(held * self.rates.stretch))
            item.shared = max(passed - free, 0)
            free, end = free + item.shared, end + item.shared
            if cost.to_l1:
                self._l1.fill(start, free, cost.gm_read)
        return free, end

    def _send(self, event: Event, time: int, index: int) -> None:
        self._flags.setdefault(event, deque()).append((time + self._flag_cycles, index))
        self._woken.append(event[1])

    def _wake(self) -> None:
        """Executes what waited in the queues of pipes that were sent a flag, and so on."""
        while self._woken:
            pipe = self._woken.popleft()
            held = self._held[pipe]
            while held and self._start(pipe, held[0]):
                held.popleft()

    def _note(
        self, pipe: int, start: int, free: int, end: int, start_after: int, item: Issued
    ) -> None:
        if self.rows is not None:
            self.rows.append(Executed(pipe, start, free, end, start_after, item))

    def deadlock(self, why: str, scalar: Stuck | None) -> Deadlock:
        """What all pipes wait for now; see `Deadlock`."""
        held = {pipe: list(queue) for pipe, queue in enumerate(self._held) if queue}
        unused = {event: queue[0][1] for event, queue in self._flags.items() if queue}
        return Deadlock(why, held, scalar, unused)
