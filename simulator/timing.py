"""Time of one core: instructions, not clock ticks.

The scalar unit issues in order, one instruction after the other. Each pipe has a queue; a pipe
starts an instruction when it is at the head of its queue, was issued, and the pipe is free. A
`wait_flag` at the head holds the pipe until the flag is there; a flag may also be set by an
instruction that is issued later, so instructions behind an unsatisfied wait are kept until then.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.simulator.problems import Problem
from davinci.simulator.races import PIPES, Event, S
from davinci.simulator.timing_rules import Cost


@dataclass(frozen=True)
class Row:
    """One instruction on the time line; cycles count from the start of the launch."""

    core: int
    pipe: str
    start: int
    end: int
    mnemonic: str
    index: int
    location: str


@dataclass(slots=True)
class Issued:
    """An instruction in a queue.

    `wait`, `send` and `barrier` are set for the instructions of those names.
    """

    name: str
    index: int
    location: int
    time: int
    cost: Cost
    wait: Event | None = None
    send: Event | None = None
    barrier: bool = False


class Timeline:
    """The clock of one core while it runs one block.

    Attributes:
        now: when the scalar unit can issue next.
        busy: cycles in which each pipe has an instruction under way.
        rows: (pipe, start, end, name, index, location id), if they are kept.
    """

    def __init__(self, machine: Machine, keep_rows: bool) -> None:
        self._depth = machine.sync.queue_depth
        self._flag_cycles = machine.sync.flag_cycles
        self._barrier_cycles = machine.sync.barrier_cycles
        self._issue_cycles = machine.scalar.issue_cycles
        self.now = 0
        self.busy = [0] * PIPES
        self.rows: list[tuple[int, int, int, str, int, int]] | None = [] if keep_rows else None
        self._free = [0] * PIPES
        self._done = [0] * PIPES
        self._starts: list[deque[int]] = [deque(maxlen=self._depth) for _ in range(PIPES)]
        self._held: list[deque[Issued]] = [deque() for _ in range(PIPES)]
        self._flags: dict[Event, deque[int]] = {}

    def issue(self, pipe: int, scalar_ops: int, item: Issued) -> None:
        """The scalar unit issues `item` to a pipe, after `scalar_ops` operations of its own.

        Raises:
            Problem: it can never be issued or executed: a deadlock.
        """
        self.now += (scalar_ops + 1) * self._issue_cycles
        if pipe == S:
            self._scalar(item)
            return
        starts, held = self._starts[pipe], self._held[pipe]
        behind = len(starts) + len(held) - self._depth
        if behind >= 0:
            if behind >= len(starts):
                raise self._deadlock(f"the queue of PIPE_{Pipe(pipe).name} is full")
            self.now = max(self.now, starts[behind])
        item.time = self.now
        if held or not self._start(pipe, item):
            held.append(item)

    def barrier_all(self, scalar_ops: int, item: Issued) -> None:
        """The scalar unit and all pipes wait until everything is complete."""
        self.now += (scalar_ops + 1) * self._issue_cycles
        if any(self._held):
            raise self._deadlock("pipe_barrier(PIPE_ALL) waits for all pipes")
        begin = self.now
        self.now = max(self.now, *self._done, *self._free) + self._barrier_cycles
        self._free = [self.now] * PIPES
        self._note(S, begin, self.now, item)

    def finish(self) -> int:
        """Cycles until everything is complete.

        Raises:
            Problem: a pipe still waits for a flag: a deadlock.
        """
        if any(self._held):
            raise self._deadlock("the program has ended")
        return max(self.now, *self._done, *self._free)

    def _scalar(self, item: Issued) -> None:
        begin = self.now
        if item.wait is not None:
            flags = self._flags.get(item.wait)
            if not flags:
                raise self._deadlock("the scalar unit waits", (S, item))
            self.now = max(self.now, flags.popleft())
        elif item.send is not None:
            self._send(item.send, self.now)
        self.now += item.cost.occupancy
        busy = self.now - begin if item.wait is None else 0
        self.busy[S] += busy
        self._done[S] = self.now
        self._note(S, begin, self.now, item)

    def _start(self, pipe: int, item: Issued) -> bool:
        """Executes the head of a queue; False if it is a wait for a flag that is not set yet."""
        start = max(item.time, self._free[pipe])
        done = self._done[pipe]
        if item.wait is not None:
            flags = self._flags.get(item.wait)
            if not flags:
                return False
            end = self._free[pipe] = max(start, flags.popleft())
        elif item.send is not None:
            end = max(start, done)
        elif item.barrier:
            end = self._free[pipe] = max(start, done) + self._barrier_cycles
        else:
            self._free[pipe] = start + item.cost.occupancy
            end = start + item.cost.latency
            if end > done:
                self.busy[pipe] += end - max(start, done)
                self._done[pipe] = end
        # A wait or barrier leaves the queue when it is over, anything else when it starts.
        self._starts[pipe].append(end if item.barrier or item.wait is not None else start)
        self._note(pipe, start, end, item)
        if item.send is not None:
            self._send(item.send, end)
        return True

    def _send(self, event: Event, time: int) -> None:
        self._flags.setdefault(event, deque()).append(time + self._flag_cycles)
        pipe = event[1]
        held = self._held[pipe]
        while held and self._start(pipe, held[0]):
            held.popleft()

    def _note(self, pipe: int, start: int, end: int, item: Issued) -> None:
        if self.rows is not None:
            self.rows.append((pipe, start, end, item.name, item.index, item.location))

    def _deadlock(self, why: str, scalar: tuple[int, Issued] | None = None) -> Problem:
        waiting = [(pipe, held[0]) for pipe, held in enumerate(self._held) if held]
        if scalar is not None:
            waiting.append(scalar)
        texts = []
        for pipe, item in waiting:
            assert item.wait is not None
            source, _, event = item.wait
            texts.append(
                f"PIPE_{Pipe(pipe).name} waits at instruction #{item.index} for event {event} "
                f"of PIPE_{Pipe(source).name}, which nothing before has set"
            )
        return Problem(
            f"deadlock: {why}",
            found="; ".join(texts),
            hint="each wait_flag needs a set_flag of the same pipes and event that can be reached",
        )
