"""Flags between the cores of a split machine, and what a core knows of the others.

A set counts on its receivers once all of its group have set; a wait takes one count. Each count
carries the time it arrives and what its senders know to be complete, so that clocks and race checks
go on where the flag was set. Two sets that count on one receiver must come in a known order, or
nobody could say which of them a wait has seen.

In a lock the blocks of a launch have their turns in order, also those that run in a later round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from davinci.isa.core import Pipe
from davinci.isa.cross_core import (
    ALL_OF_A_KIND,
    CUBE_AND_VECTOR_CORES,
    VECTOR_CORES_OF_A_GROUP,
)
from davinci.machine import CrossCore
from davinci.simulator.core.problems import UnplacedFault

Knowledge = Mapping[int, Sequence[int]]
"""By number of a seat: for each of its pipes, how many instructions are known to be complete."""

MODES = (ALL_OF_A_KIND, VECTOR_CORES_OF_A_GROUP, CUBE_AND_VECTOR_CORES)
IN_TURN = -1
"""In the place of a mode: the block behind has its turn."""

WAITS = int(Pipe.ALL)
"""In the place of all pipes: how many waits of the core for others are known to be over."""


@dataclass(frozen=True)
class Seat:
    """One program of a launch and the core that runs it.

    Attributes:
        number: of the seat in its launch.
        core: "AIC" or "AIV"; on a coupled machine "AICORE".
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
        if self.core == "AICORE":
            return f"block {self.block}"
        which = f" {self.sub_block}" if self.core == "AIV" else ""
        return f"{self.core}{which} of block {self.block}"


@dataclass(frozen=True)
class Set:
    """That a core sets a flag: seat of the core, pipe, the set's number there, and its place."""

    seat: Seat
    pipe: int
    number: int
    place: str

    def __str__(self) -> str:
        return f"{self.seat} at {self.place}"


@dataclass(frozen=True)
class Count:
    """One count of a flag, or one set of its group.

    Attributes:
        time: when it arrives.
        knowledge: what its setters knew; nothing if there are no checks.
        sets: that it is made of; none if there are no checks.
    """

    time: int
    knowledge: Knowledge
    sets: Sequence[Set] = ()

    def follows(self, other: Set) -> bool:
        """Says whether this set is certain to come after another one."""
        clock = self.knowledge.get(other.seat.number)
        return clock is not None and clock[other.pipe] >= other.number


Group = tuple[tuple[Seat, ...], int, int]
"""Who must set a flag before it counts, mode, flag."""


@dataclass
class FlagCounter:
    """The state of a cross-core flag on one receiver.

    Attributes:
        counts: that no wait has taken.
        arrived: how many there were.
        last: the one that arrived last.
        waits: for each wait so far, how many waits the core has done with it.
    """

    counts: deque[Count] = field(default_factory=deque)
    arrived: int = 0
    last: Count | None = None
    waits: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class BlockTurn:
    """The turn of a block in a lock."""

    lock: int
    block: int

    def __str__(self) -> str:
        return f"its turn in lock {self.lock}"


Turns = dict[BlockTurn, Count]
"""The turns that have come, in all rounds of a launch."""


class CrossCoreFlags:
    """The flags between the cores that run at the same time.

    Attributes:
        crossed: whether a flag went from one block to another.

    Args:
        turns: that came in earlier rounds; those of this one are added.
    """

    def __init__(
        self, seats: Sequence[Seat], limits: CrossCore, turns: Turns | None = None
    ) -> None:
        self._seats, self._limits = list(seats), limits
        self._turns = {} if turns is None else turns
        self._pending: dict[Group, dict[Seat, deque[Count]]] = {}
        self._last_sets: dict[tuple[Group, Seat], Set] = {}
        self._counters: dict[tuple[Seat, int], FlagCounter] = {}
        self.crossed = False

    def set_flag(self, seat: Seat, mode: int, flag: int, count: Count) -> None:
        """`seat` sets a flag; `count.time` is when all earlier instructions of its pipe were done.

        Raises:
            Problem: nobody receives it, a counter may overflow, or it may come before an earlier
                set.
        """
        senders, receivers = self._scope(seat, mode)
        if not receivers:
            raise UnplacedFault(
                "a flag between cores that nobody receives",
                found=f"mode {mode}, set by {seat}",
                hint="mode 1 is for vector cores; mode 2 needs a program on the cube core and on "
                "the vector cores",
            )
        group = senders, mode, flag
        for own in count.sets:
            before = self._last_sets.get((group, seat))
            if before is not None and not count.follows(before):
                raise _either_order(flag, before, own)
            self._last_sets[group, seat] = own
        queues = self._pending.setdefault(group, {s: deque() for s in senders})
        queues[seat].append(count)
        if len(queues[seat]) > self._limits.depth:
            raise self._too_far(flag, seat)
        if not all(queues.values()):
            return
        parts = [queue.popleft() for queue in queues.values()]
        joined = Count(
            max(part.time for part in parts) + self._limits.flag_cycles,
            join(part.knowledge for part in parts),
            [own for part in parts for own in part.sets],
        )
        for receiver in receivers:
            self.crossed |= receiver.block != seat.block
            self._arrive(receiver, flag, joined)

    def pass_turn(self, seat: Seat, lock: int, count: Count) -> None:
        """`seat` lets the block behind its own have its turn in a lock.

        Raises:
            Problem: it has passed it on before.
        """
        turn = BlockTurn(lock, seat.block + 1)
        if turn in self._turns:
            raise UnplacedFault(
                "a turn in a lock is passed on twice",
                found=f"lock {lock}, by block {seat.block}",
                expected="one sync_block_unlock of each block: the blocks have one turn each",
            )
        self.crossed = True
        time = count.time + self._limits.flag_cycles
        self._turns[turn] = Count(time, count.knowledge, count.sets)

    def has_turn(self, turn: BlockTurn) -> Count | None:
        """When a turn came and what is known with it; None as long as it has not."""
        return self._turns.get(turn) if turn.block else Count(0, {})

    def _arrive(self, receiver: Seat, flag: int, count: Count) -> None:
        counter = self._counters.setdefault((receiver, flag), FlagCounter())
        for before in counter.last.sets if counter.last is not None else ():
            if not count.follows(before):
                raise _either_order(flag, before, count.sets[-1])
        counter.counts.append(count)
        counter.last = count
        counter.arrived += 1
        # So many waits must be over before it arrives, in whatever order the cores run.
        over = counter.arrived - self._limits.depth
        if over <= 0:
            return
        clock = count.knowledge.get(receiver.number)
        known = len(counter.waits) >= over and (
            not count.sets or (clock is not None and clock[WAITS] >= counter.waits[over - 1])
        )
        if not known:
            raise self._too_far(flag, receiver)

    def take(self, seat: Seat, flag: int, waits: int) -> Count | None:
        """Counts a flag of `seat` down, in the core's wait of that number; None if it is 0."""
        counter = self._counters.get((seat, flag))
        if counter is None or not counter.counts:
            return None
        counter.waits.append(waits)
        return counter.counts.popleft()

    def has(self, seat: Seat, flag: int) -> bool:
        """Says whether `take` would return a set."""
        counter = self._counters.get((seat, flag))
        return counter is not None and bool(counter.counts)

    def late(self, seat: Seat, flag: int) -> tuple[list[Seat], list[Seat]]:
        """Who has set a flag for `seat` to receive, and who of the same group has not."""
        for (senders, mode, number), queues in self._pending.items():
            if number == flag and any(queues.values()) and self.receives(seat, senders[0], mode):
                return [s for s in senders if queues[s]], [s for s in senders if not queues[s]]
        return [], []

    def able(self, seat: Seat) -> list[Seat]:
        """Which others could set a flag that `seat` receives."""
        return [
            other
            for other in self._seats
            if other is not seat and any(self.receives(seat, other, mode) for mode in MODES)
        ]

    def receives(self, seat: Seat, setter: Seat, mode: int) -> bool:
        """Whether a flag that `setter` sets counts on `seat`."""
        return seat in self._scope(setter, mode)[1]

    def left(self) -> list[str]:
        """Flags that are still set, in words."""
        found = [f"flag {flag} on {s}" for (s, flag), c in self._counters.items() if c.counts]
        for (*_, flag), queues in self._pending.items():
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

    def _too_far(self, flag: int, seat: Seat) -> UnplacedFault:
        most = self._limits.depth
        return UnplacedFault(
            "a flag between cores may count too far",
            found=f"flag {flag} of {seat}: {most + 1} sets, with no wait known to be over between",
            expected=f"at most {most} (cross_core.depth)",
            hint="let the setting core wait for the other one now and then",
        )


def _either_order(flag: int, first: Set, second: Set) -> UnplacedFault:
    return UnplacedFault(
        "sets of a flag between cores may come in either order",
        found=f"flag {flag}, set by {first} and by {second}",
        expected="an order between them: a wait would not know which of the two it has seen",
        hint="use another flag for one of them, set both on the same pipe, or order the two by "
        "flags and barriers",
    )


def join(parts: Iterable[Knowledge]) -> Knowledge:
    """What is known to anyone of several."""
    found: dict[int, Sequence[int]] = {}
    for part in parts:
        for number, clock in part.items():
            known = found.get(number)
            found[number] = clock if known is None else list(map(max, known, clock))
    return found


@dataclass(frozen=True)
class Unset:
    """A set of a flag between cores: its mode, the flag, its pipe, and its place; of a turn in a
    lock the mode is `IN_TURN` and the flag the lock."""

    mode: int
    flag: int
    pipe: int
    place: str


class Link:
    """The flags as one core has them: a wait gives way to other cores until its flag is set.

    Attributes:
        seat: of the core's program.
        begin: cycle of the launch at which it began.
        waiting: the flag it waits for, or None.
        waiting_at: the instruction that waits.
        pipe_waits: what its pipes wait for meanwhile, in words.
        unset: sets that were issued, but that their pipes have not come to.
    """

    def __init__(
        self, flags: CrossCoreFlags, seat: Seat, begin: int, give_way: Callable[[], None]
    ) -> None:
        self.seat, self.begin = seat, begin
        self.waiting: int | BlockTurn | None = None
        self.waiting_at = ""
        self.pipe_waits: Callable[[], Sequence[str]] = list
        self.unset: list[Unset] = []
        self._flags, self._give_way = flags, give_way
        self._waits = 0

    @property
    def ready(self) -> bool:
        """Says whether what the program waits for has come."""
        if isinstance(self.waiting, BlockTurn):
            return self._flags.has_turn(self.waiting) is not None
        return self.waiting is None or self._flags.has(self.seat, self.waiting)

    def set_flag(
        self, unset: Unset, knowledge: Knowledge, sets: Sequence[Set]
    ) -> Callable[[int], None]:
        """A set was issued; see `CrossCoreFlags.set_flag` and `Count`.

        Returns:
            What to do in the cycle, from the start of the program, in which its pipe comes to it.
        """
        self.unset.append(unset)

        def come(cycle: int) -> None:
            self.unset.remove(unset)
            count = Count(self.begin + cycle, knowledge, sets)
            if unset.mode == IN_TURN:
                self._flags.pass_turn(self.seat, unset.flag, count)
            else:
                self._flags.set_flag(self.seat, unset.mode, unset.flag, count)

        return come

    def wait_flag(self, flag: int, place: str, pipe_waits: Callable[[], Sequence[str]]) -> Count:
        """The instruction at `place` waits for a flag.

        The time in the result counts from the start of the program.
        """
        self._waits += 1
        waits = self._waits
        self.waiting, self.waiting_at, self.pipe_waits = flag, place, pipe_waits
        return self._until(lambda: self._flags.take(self.seat, flag, waits))

    def await_turn(self, lock: int, place: str, pipe_waits: Callable[[], Sequence[str]]) -> Count:
        """The instruction at `place` waits for the block's turn in a lock; see `wait_flag`."""
        turn = BlockTurn(lock, self.seat.block)
        self.waiting, self.waiting_at, self.pipe_waits = turn, place, pipe_waits
        return self._until(lambda: self._flags.has_turn(turn))

    def _until(self, come: Callable[[], Count | None]) -> Count:
        """Gives way until what the program waits for has come; the time counts from its start."""
        while (count := come()) is None:
            self._give_way()
        self.waiting, self.pipe_waits = None, list
        return Count(count.time - self.begin, count.knowledge)
