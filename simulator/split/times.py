"""Makes the time lines of programs that wait for each other again, all of them together.

What a program issues does not depend on times, so neither does which set of a flag a wait has seen:
the programs take turns in the order in which they ran first, and flags only carry other times.

A poll of counters does depend on times, in how often it looks: the time line repeats the turn of
its loop until the load begins when all counters have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from davinci.machine import CrossCore
from davinci.native import Ints
from davinci.simulator.split.counters import Counters, EndPoll, Poll, Post, Talk
from davinci.simulator.split.cross_core import BlockTurn, Count, CrossCoreFlags, Seat, Turns
from davinci.simulator.timing.clock import STEP_MASK
from davinci.simulator.timing.layout import Stop, Word
from davinci.simulator.timing.timeline import Timeline


@dataclass(frozen=True)
class Awaited:
    """What a program waits for, in words, and whether it has come."""

    what: str
    come: Callable[[], bool]


@dataclass
class PollTurn:
    """The turn of a poll's loop that is under way.

    Attributes:
        index: number of the instruction with which it begins.
        poll: what it waits for.
        row: of that instruction on the time line.
        issued, first: cycles in which the first turn began to be issued, and to be executed.
        looked: cycle in which the load of this turn can begin.
    """

    index: int
    poll: Poll
    row: int
    issued: int
    first: int
    looked: int


@dataclass(frozen=True)
class Replay:
    """A program that is timed again.

    Attributes:
        seat: of the program.
        begin: cycle of the launch at which it begins.
        log: what it issued, see `Timeline.log`.
        timeline: the new one, still empty.
        talk: what the program does with counters.
    """

    seat: Seat
    begin: int
    log: Ints
    timeline: Timeline
    talk: Talk = field(default_factory=dict)

    def turns(self, flags: CrossCoreFlags | None, counters: Counters) -> Iterator[Awaited]:
        """Issues everything; yields what it waits for."""
        waits, state = 0, self.timeline.state
        turn: PollTurn | None = None
        while (stop := self.timeline.replay(self.log)) != Stop.END:
            if stop == Stop.CAME:
                turn = self._come(flags, counters, turn)
            elif stop == Stop.POLLED:
                assert turn is not None, "the program has polled"
                yield from self._look(counters, turn)
            else:
                assert stop == Stop.CROSS_WAIT, "the program ended when it ran first"
                assert flags is not None, "on a split machine"
                values = self._values(self.timeline.count)
                if "lock" in values:
                    turn_of = BlockTurn(values["lock"], self.seat.block)
                    while (came := flags.has_turn(turn_of)) is None:
                        yield Awaited(str(turn_of), partial(self._has_turn, flags, turn_of))
                    state[Word.UNTIL] = max(came.time - self.begin, 0)
                    continue
                flag = values["flag"]
                waits += 1
                while (taken := flags.take(self.seat, flag, waits)) is None:
                    yield Awaited(f"flag {flag}", partial(flags.has, self.seat, flag))
                state[Word.UNTIL] = max(taken.time - self.begin, 0)

    def _come(
        self, flags: CrossCoreFlags | None, counters: Counters, turn: PollTurn | None
    ) -> PollTurn | None:
        """Pipes have come to what concerns others. Returns the turn of a poll under way."""
        for index, cycle in self.timeline.came():
            told = self.talk.get(index)
            if isinstance(told, Post):
                counters.post(self.seat, told, Count(self.begin + cycle, {}))
            elif isinstance(told, Poll):
                row = self.timeline.row_count - 1
                if turn is None or turn.index != index:
                    turn = PollTurn(index, told, row, self.timeline.issued_at(row), cycle, cycle)
                turn.looked = cycle
                self.timeline.begin_row(turn.row, turn.issued, turn.first)
            else:
                assert flags is not None, "on a split machine"
                values = self._values(index)
                count = Count(self.begin + cycle, {})
                if "lock" in values:
                    flags.pass_turn(self.seat, values["lock"], count)
                else:
                    flags.set_flag(self.seat, values["mode"], values["flag"], count)
        return turn

    def _look(self, counters: Counters, turn: PollTurn) -> Iterator[Awaited]:
        """The scalar unit looks at counters: goes on, or back to the beginning of the turn."""
        timeline = self.timeline
        told = self.talk[timeline.count]
        assert isinstance(told, EndPoll), "that is what ends a poll"
        if not told.enough:
            timeline.pass_poll()
            return
        while (seen := counters.seen(turn.poll)) is None:
            yield Awaited(f"the {turn.poll}", lambda: counters.seen(turn.poll) is not None)
        if seen.time <= self.begin + turn.looked:
            timeline.pass_poll()
        else:
            timeline.repeat_from(turn.index, turn.row)

    @staticmethod
    def _has_turn(flags: CrossCoreFlags, turn: BlockTurn) -> bool:
        return flags.has_turn(turn) is not None

    def _values(self, index: int) -> Mapping[str, int]:
        """Fields of an instruction between cores."""
        return self.timeline.tables.forms_of_steps[int(self.log[index]) & STEP_MASK].values


def replay_together(
    replays: Sequence[Replay], limits: CrossCore | None, turns: Turns | None = None
) -> list[int]:
    """Times programs that ran at the same time.

    Args:
        replays: all of them.
        limits: of the flags between cores, where there are such.
        turns: of blocks in locks that came in earlier rounds.

    Returns:
        The cycles of each.
    """
    order = sorted(replays, key=lambda replay: replay.seat.number)
    flags = (
        None if limits is None else CrossCoreFlags([replay.seat for replay in order], limits, turns)
    )
    counters = Counters()
    running = [(replay, replay.turns(flags, counters)) for replay in order]
    waiting: dict[Seat, Awaited] = {}
    while running:
        left = []
        moved = False
        for replay, steps in running:
            seat = replay.seat
            if seat in waiting and not waiting[seat].come():
                left.append((replay, steps))
                continue
            moved = True
            awaited = next(steps, None)
            if awaited is not None:
                waiting[seat] = awaited
                left.append((replay, steps))
        # Sets and waits follow the order in which programs issue, and no times: since all programs
        # ended when they took these turns first, they end again.
        assert moved, "cores wait for what came when they ran first: " + ", ".join(
            f"{replay.seat} for {waiting[replay.seat].what}" for replay, _ in left
        )
        running = left
    return [replay.timeline.finish() for replay in replays]
