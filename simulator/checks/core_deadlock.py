"""Which core waits for which when no core of a split machine can go on, in words.

A core waits for a flag that others have not set: because the set is in a queue behind a wait, or
because the core that would set it waits itself before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.errors import DeviceFault
from davinci.isa.core import Pipe
from davinci.simulator.checks.deadlock import circle_of, told
from davinci.simulator.split.cross_core import IN_TURN, BlockTurn, CrossCoreFlags, Link, Seat

MOST_NAMED = 6
"""Cores that a message names beside those of a circle."""


def deadlock(kernel: str, waiting: Sequence[Link], flags: CrossCoreFlags) -> DeviceFault:
    """The fault, with the circle of waits.

    Args:
        waiting: the cores whose programs have not ended: all of them wait.
        flags: as far as they were set.
    """
    waits = {link.seat: _wait(link, waiting, flags) for link in waiting}
    circle = circle_of({link.seat: _waits_for(link, waiting, flags) for link in waiting})
    message = "deadlock: no core can go on"
    if circle:
        message += f"; the circle of waits: {' -> '.join(map(str, circle))}"
    named = dict(list(waits.items())[:MOST_NAMED]) | {seat: waits[seat] for seat in circle}
    found = told(named, circle)
    if len(waits) > len(named):
        found += f"; {len(waits) - len(named)} more cores wait"
    return DeviceFault(
        message,
        where=f"kernel {kernel}",
        found=found,
        hint="each wait_flag_dev needs an ffts_cross_core_sync of every core of its mode, issued "
        "before anything that waits for it in turn",
    )


def _wait(link: Link, waiting: Sequence[Link], flags: CrossCoreFlags) -> str:
    assert link.waiting is not None, "only cores that wait are asked"
    if isinstance(link.waiting, BlockTurn):
        before = f"block {link.waiting.block - 1} has not passed on"
        return f"{link.seat} waits at {link.waiting_at} for {link.waiting}, which {before}"
    text = f"{link.seat} waits at {link.waiting_at} for flag {link.waiting}"
    there, late = flags.late(link.seat, link.waiting)
    issued = _issued(link, waiting, flags)
    running = [other.seat for other in waiting]
    if there:
        text += f", which {_names(there)} set, but not {_names(late)}"
        ended = [seat for seat in late if seat not in running]
        text += f" ({_names(ended)}: the program has ended)" if ended else ""
    elif not issued:
        able = flags.able(link.seat)
        text += ", which nobody has set"
        if could := [seat for seat in able if seat in running]:
            text += f"; {_names(could)} could, but wait too"
        if could := [seat for seat in able if seat not in running and _near(seat, link.seat)]:
            text += f"; {_names(could)} could have, but the program has ended"
    for seat, (pipe, place) in issued.items():
        text += f"; the set of {seat} at {place} is in the queue of PIPE_{Pipe(pipe).name}"
    own = link.pipe_waits()
    return f"{text} (on {link.seat}: {'; '.join(own)})" if own else text


def _waits_for(link: Link, waiting: Sequence[Link], flags: CrossCoreFlags) -> Sequence[Seat]:
    """Those of which at least one must go on before the core can.

    Of a flag that nobody has set these are all that could, unless one near by has ended: that may
    be the one that forgot it.
    """
    assert link.waiting is not None, "only cores that wait are asked"
    running = [other.seat for other in waiting]
    if isinstance(link.waiting, BlockTurn):
        return [seat for seat in running if seat.block == link.waiting.block - 1]
    _, late = flags.late(link.seat, link.waiting)
    issued = _issued(link, waiting, flags)
    if late or issued:
        return [seat for seat in (*late, *issued) if seat in running]
    able = flags.able(link.seat)
    if any(_near(seat, link.seat) and seat not in running for seat in able):
        return []
    return [seat for seat in able if seat in running]


def _near(seat: Seat, other: Seat) -> bool:
    return seat.group == other.group


def _issued(
    link: Link, waiting: Sequence[Link], flags: CrossCoreFlags
) -> dict[Seat, tuple[int, str]]:
    """Who has issued a set that the core waits for, pipe and place, but has not come to it."""
    return {
        other.seat: (unset.pipe, unset.place)
        for other in waiting
        for unset in other.unset
        if unset.mode != IN_TURN
        and unset.flag == link.waiting
        and flags.receives(link.seat, other.seat, unset.mode)
    }


def _names(seats: Sequence[Seat]) -> str:
    named = ", ".join(map(str, seats[:MOST_NAMED]))
    return named if len(seats) <= MOST_NAMED else f"{named} and {len(seats) - MOST_NAMED} more"
