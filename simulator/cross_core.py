"""Flags between the cores of a split machine, and what a core knows of the others.

A set counts on its receivers once all of its group have set; a wait takes one count. Each count
carries the time it arrives and what its senders know to be complete, so that clocks and race checks
go on where the flag was set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from davinci.isa.cross_core import ALL_OF_A_KIND, CUBE_AND_VECTOR_CORES
from davinci.machine import CrossCore
from davinci.simulator.problems import Problem

Knowledge = Mapping[int, Sequence[int]]
"""By number of a seat: for each of its pipes, how many instructions are known to be complete."""


@dataclass(frozen=True)
class Seat:
    """One program of a launch and the core that runs it.

    Attributes:
        number: of the seat in its launch.
        core: "AIC" or "AIV".
        block: that it runs.
        sub_block: which of its block's vector cores; 0 for a cube core.
        group: cube core it is or belongs to.
        place: number of the core on the machine, cube core and vector cores of a group in order.
    """

    number: int
    core: str
    block: int
    sub_block: int
    group: int
    place: int

    def __str__(self) -> str:
        which = f" {self.sub_block}" if self.core == "AIV" else ""
        return f"{self.core}{which} of block {self.block}"


@dataclass(frozen=True)
class Count:
    """One count of a flag: when it arrives, what its senders knew."""

    time: int
    knowledge: Knowledge


class Flags:
    """The flags between the cores that run at the same time.

    Attributes:
        crossed: whether a flag went from one block to another.
    """

    def __init__(self, seats: Sequence[Seat], limits: CrossCore) -> None:
        self._seats, self._limits = list(seats), limits
        self._pending: dict[tuple[tuple[Seat, ...], int], dict[Seat, deque[Count]]] = {}
        self._counts: dict[tuple[Seat, int], deque[Count]] = {}
        self.crossed = False

    def set_flag(self, seat: Seat, mode: int, flag: int, count: Count) -> None:
        """`seat` sets a flag; `count.time` is when all earlier instructions of its pipe were done.

        Raises:
            Problem: nobody receives it, or a counter overflows.
        """
        senders, receivers = self._scope(seat, mode)
        if not receivers:
            raise Problem(
                "a flag between cores that nobody receives",
                found=f"mode {mode}, set by {seat}",
                hint="mode 1 is for vector cores; mode 2 needs a program on the cube core and on "
                "the vector cores",
            )
        queues = self._pending.setdefault((senders, flag), {s: deque() for s in senders})
        queues[seat].append(count)
        self._limit(queues[seat], flag, seat)
        if not all(queues.values()):
            return
        parts = [queue.popleft() for queue in queues.values()]
        time = max(part.time for part in parts) + self._limits.flag_cycles
        joined = Count(time, join(part.knowledge for part in parts))
        for receiver in receivers:
            self.crossed |= receiver.block != seat.block
            counts = self._counts.setdefault((receiver, flag), deque())
            counts.append(joined)
            self._limit(counts, flag, receiver)

    def take(self, seat: Seat, flag: int) -> Count | None:
        """Counts a flag of `seat` down; None if it is 0."""
        counts = self._counts.get((seat, flag))
        return counts.popleft() if counts else None

    def has(self, seat: Seat, flag: int) -> bool:
        """Whether `take` would give something."""
        return bool(self._counts.get((seat, flag)))

    def missing(self, seat: Seat, flag: int) -> str:
        """Who has not set a flag that others of its group have, for `seat` to receive it."""
        for (senders, number), queues in self._pending.items():
            if number != flag or not any(queues.values()):
                continue
            if seat in self._scope_of(senders, seat):
                late = ", ".join(str(s) for s, queue in queues.items() if not queue)
                return f"set by some, but not by {late}"
        return "which nobody has set"

    def left(self) -> list[str]:
        """Flags that are still set, in words."""
        found = [f"flag {flag} on {s}" for (s, flag), counts in self._counts.items() if counts]
        for (_, flag), queues in self._pending.items():
            found += [f"flag {flag} set by {s}" for s, queue in queues.items() if queue]
        return found

    def _scope(self, seat: Seat, mode: int) -> tuple[tuple[Seat, ...], list[Seat]]:
        """Who must set the flag, and on whom it counts then."""
        kin = [s for s in self._seats if s.core == seat.core]
        if mode == ALL_OF_A_KIND:
            return tuple(kin), kin
        near = [s for s in kin if s.group == seat.group]
        if mode == CUBE_AND_VECTOR_CORES:
            others = [s for s in self._seats if s.core != seat.core and s.group == seat.group]
            return tuple(near), others
        return (tuple(near), near) if seat.core == "AIV" and len(near) > 1 else ((), [])

    def _scope_of(self, senders: tuple[Seat, ...], seat: Seat) -> list[Seat]:
        if seat in senders:
            return list(senders)
        return [s for s in self._seats if s.group == senders[0].group]

    def _limit(self, counts: deque[Count], flag: int, seat: Seat) -> None:
        if len(counts) > self._limits.depth:
            raise Problem(
                "a flag between cores counts too far",
                found=f"flag {flag} of {seat}: {len(counts)} sets without a wait",
                expected=f"at most {self._limits.depth} (cross_core.depth)",
                hint="let the setting core wait for the other one now and then",
            )


def join(parts: Iterable[Knowledge]) -> Knowledge:
    """What is known to anyone of several."""
    found: dict[int, Sequence[int]] = {}
    for part in parts:
        for number, clock in part.items():
            known = found.get(number)
            found[number] = clock if known is None else list(map(max, known, clock))
    return found


class Link:
    """The flags as one core has them: a wait gives way to other cores until its flag is set.

    Attributes:
        seat: of the core's program.
        begin: cycle of the launch at which it began.
        waiting: the flag it waits for, or None.
        waiting_at: the instruction that waits.
    """

    def __init__(self, flags: Flags, seat: Seat, begin: int, give_way: Callable[[], None]) -> None:
        self.seat, self.begin = seat, begin
        self.waiting: int | None = None
        self.waiting_at = ""
        self._flags, self._give_way = flags, give_way

    @property
    def ready(self) -> bool:
        """Whether the program can go on."""
        return self.waiting is None or self._flags.has(self.seat, self.waiting)

    def set_flag(self, mode: int, flag: int, cycle: int, knowledge: Knowledge) -> None:
        """See `Flags.set_flag`; `cycle` counts from the start of the core's program."""
        self._flags.set_flag(self.seat, mode, flag, Count(self.begin + cycle, knowledge))

    def wait_flag(self, flag: int, place: str) -> Count:
        """The instruction at `place` waits for a flag.

        The time in the result counts from the start of the program.
        """
        self.waiting, self.waiting_at = flag, place
        while (count := self._flags.take(self.seat, flag)) is None:
            self._give_way()
        self.waiting = None
        return Count(count.time - self.begin, count.knowledge)
