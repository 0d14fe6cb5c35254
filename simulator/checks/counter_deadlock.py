"""Which block waits for which when no block of a launch that counts can go on, in words."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.errors import DeviceFault
from davinci.simulator.checks.deadlock import circle_of, told
from davinci.simulator.split.counters import CounterLink, Counters, Poll
from davinci.simulator.split.cross_core import Seat

MOST_NAMED = 6
"""Blocks that a message names beside those of a circle, and lines that one of them waits for."""


def counter_deadlock(
    kernel: str, waiting: Sequence[CounterLink], counters: Counters
) -> DeviceFault:
    """The fault, with the circle of waits.

    Args:
        waiting: the blocks that have not ended: all of them wait.
        counters: as far as they have come.
    """
    alike: dict[tuple[Poll, Sequence[str]], list[CounterLink]] = {}
    for link in waiting:
        alike.setdefault((_poll_of(link), tuple(link.pipe_waits())), []).append(link)
    texts = [(links, _wait(links, waiting, counters)) for links in alike.values()]
    waits = {link.seat: text for links, text in texts for link in links}
    circle = circle_of({link.seat: _waits_for(link, waiting, counters) for link in waiting})
    message = "deadlock: no block can go on"
    if circle:
        message += f"; the circle of waits: {' -> '.join(map(str, circle))}"
    named = {links[0].seat: text for links, text in texts[:MOST_NAMED]}
    found = told(named | {seat: waits[seat] for seat in circle}, circle)
    if len(texts) > MOST_NAMED:
        found += f"; blocks wait in {len(texts) - MOST_NAMED} more ways"
    return DeviceFault(
        message,
        where=f"kernel {kernel}",
        found=found,
        hint="every block must post a counter (post_counter) for each time that others wait for it",
    )


def _wait(links: Sequence[CounterLink], waiting: Sequence[CounterLink], counters: Counters) -> str:
    """A sentence that says at which counters some blocks wait, what these hold, and why no post of
    them comes.

    Args:
        links: of the blocks, which all wait for the same.
        waiting: of all blocks that have not ended.
    """
    link, poll = links[0], _poll_of(links[0])
    others = f" and {len(links) - 1} more wait" if len(links) > 1 else " waits"
    text = f"{link.seat}{others} at {poll.place} for the {poll}"
    running = {other.seat for other in waiting}
    late = []
    for line, last in counters.left_by(poll):
        if last is None:
            late.append(f"{line:#x} was never posted")
            continue
        ended = "" if last.seat in running else ", whose program has ended"
        late.append(f"{line:#x} holds {last.post.value} of {last.seat}{ended}")
    text += f": {'; '.join(late[:MOST_NAMED])}"
    if len(late) > MOST_NAMED:
        text += f"; and {len(late) - MOST_NAMED} more"
    for seat, place in _issued(poll, waiting, counters).items():
        text += f"; the post of {seat} at {place} is in the queue of PIPE_MTE3"
    own = link.pipe_waits()
    return f"{text} ({'; '.join(own)})" if own else text


def _waits_for(
    link: CounterLink, waiting: Sequence[CounterLink], counters: Counters
) -> Sequence[Seat]:
    """Those that the block is known to wait for and that have not ended."""
    poll = _poll_of(link)
    running = [other.seat for other in waiting]
    owners = [last.seat for _, last in counters.left_by(poll) if last is not None]
    late = [*owners, *_issued(poll, waiting, counters)]
    return [seat for seat in dict.fromkeys(late) if seat in running]


def _issued(poll: Poll, waiting: Sequence[CounterLink], counters: Counters) -> dict[Seat, str]:
    """Who has issued a post that is waited for, and where, but whose MTE3 has not come to it."""
    lines = set(counters.missing(poll))
    return {
        other.seat: post.place
        for other in waiting
        for post in other.unposted
        if post.line in lines and post.value >= poll.value
    }


def _poll_of(link: CounterLink) -> Poll:
    assert link.waiting is not None, "only blocks that wait are asked"
    return link.waiting
