"""Makes the time lines of programs that wait for each other's flags again, all of them together.

What a program issues does not depend on times, so neither does which set a wait has seen: the
programs take turns in the order in which they ran first, and flags only carry other times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from davinci.machine import CrossCore
from davinci.simulator.split.cross_core import Count, Flags, Seat
from davinci.simulator.timing.timeline import Issued, Timeline


@dataclass(frozen=True)
class Replay:
    """A program that is timed again.

    Attributes:
        seat: of the program.
        begin: cycle of the launch at which it begins.
        log: what it issued.
        timeline: the new one, still empty.
    """

    seat: Seat
    begin: int
    log: Sequence[tuple[int, int, Issued]]
    timeline: Timeline

    def turns(self, flags: Flags) -> Iterator[int]:
        """Issues everything; yields the flag of another core that it waits for."""
        waits = 0
        for pipe, scalar_ops, first in self.log:
            # Programs that issue the same share a log, but not the times in it.
            item, fields = replace(first), first.cross_core
            if fields is not None and item.cross is not None:
                item.cross = partial(self._set, flags, fields["mode"], fields["flag"])
            elif fields is not None:
                flag = fields["flag"]
                waits += 1
                while (count := flags.take(self.seat, flag, waits)) is None:
                    yield flag
                item.until = count.time - self.begin
            self.timeline.issue_again(pipe, scalar_ops, item)

    def _set(self, flags: Flags, mode: int, flag: int, cycle: int) -> None:
        flags.set_flag(self.seat, mode, flag, Count(self.begin + cycle, {}))


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
