"""Makes the time lines of programs that wait for each other's flags again, all of them together.

What a program issues does not depend on times, so neither does which set a wait has seen: the
programs take turns in the order in which they ran first, and flags only carry other times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from davinci.machine import CrossCore
from davinci.native import Ints
from davinci.simulator.split.cross_core import Count, Flags, Seat
from davinci.simulator.timing.clock import STEP_MASK
from davinci.simulator.timing.layout import Stop, Word
from davinci.simulator.timing.timeline import Timeline


@dataclass(frozen=True)
class Replay:
    """A program that is timed again.

    Attributes:
        seat: of the program.
        begin: cycle of the launch at which it begins.
        log: what it issued, see `Timeline.log`.
        timeline: the new one, still empty.
    """

    seat: Seat
    begin: int
    log: Ints
    timeline: Timeline

    def turns(self, flags: Flags) -> Iterator[int]:
        """Issues everything; yields the flag of another core that it waits for."""
        waits, state = 0, self.timeline.state
        while (stop := self.timeline.replay(self.log)) != Stop.END:
            if stop == Stop.CAME:
                for index, cycle in self.timeline.came():
                    values = self._values(index)
                    count = Count(self.begin + cycle, {})
                    flags.set_flag(self.seat, values["mode"], values["flag"], count)
                continue
            assert stop == Stop.CROSS_WAIT, "the program ended when it ran first"
            flag = self._values(self.timeline.count)["flag"]
            waits += 1
            while (taken := flags.take(self.seat, flag, waits)) is None:
                yield flag
            state[Word.UNTIL] = max(taken.time - self.begin, 0)

    def _values(self, index: int) -> Mapping[str, int]:
        """Fields of an instruction between cores."""
        return self.timeline.tables.forms_of_steps[int(self.log[index]) & STEP_MASK].values


def replay_together(replays: Sequence[Replay], limits: CrossCore) -> list[int]:
    """Times programs that ran at the same time.

    Args:
        replays: all of them.
        limits: of the flags between cores.

    Returns:
        The cycles of each.
    """
    order = sorted(replays, key=lambda replay: replay.seat.number)
    flags = Flags([replay.seat for replay in order], limits)
    running = [(replay, replay.turns(flags)) for replay in order]
    waiting: dict[Seat, int] = {}
    while running:
        left = []
        moved = False
        for replay, turns in running:
            seat = replay.seat
            if seat in waiting and not flags.has(seat, waiting[seat]):
                left.append((replay, turns))
                continue
            moved = True
            flag = next(turns, None)
            if flag is not None:
                waiting[seat] = flag
                left.append((replay, turns))
        # Sets and waits follow the order in which programs issue, and no times: since all programs
        # ended when they took these turns first, they end again.
        assert moved, "cores wait for flags that came when they ran first: " + ", ".join(
            f"{replay.seat} for flag {waiting[replay.seat]}" for replay, _ in left
        )
        running = left
    return [replay.timeline.finish() for replay in replays]
