"""What a core does when its block stores counters or waits for those of other blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import Instruction, Space
from davinci.isa.counters import LINE_BYTES
from davinci.simulator.checks.checker import Checker
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.problems import UnplacedFault
from davinci.simulator.split.counters import PIPE, CounterLink, Poll, Post
from davinci.simulator.split.cross_core import Knowledge

Coming = Callable[[int], None]
"""What is done in the cycle in which a pipe comes to an instruction."""


def alone() -> UnplacedFault:
    """A program with counters is run as one whose blocks know nothing of each other."""
    return UnplacedFault(
        "a block that runs alone waits for counters of others",
        hint="launch it with `talks`: then the blocks run together",
    )


class Counter:
    """The counters as one core sees them while it runs a block.

    Args:
        link: to those of the other blocks.
        memories: of the core, by number of their space.
        data: what instructions write is computed.
        checker: of the core, if it checks.
    """

    def __init__(
        self, link: CounterLink, memories: Sequence[Memory], data: bool, checker: Checker | None
    ) -> None:
        self._link, self._memories, self._data = link, memories, data
        self._checker = checker
        if not data:
            # What the scalar unit takes for the last counter is not that of another block.
            memories[Space.UB].data[:] = 0

    def perform(
        self,
        record: Instruction,
        words: Sequence[int],
        index: int,
        place: str,
        pipe_waits: Callable[[], Sequence[str]],
    ) -> Coming | None:
        """Does what a record says that concerns counters.

        Args:
            words: of the record.
            index: of it in the block.
            place: the same in messages.
            pipe_waits: what pipes wait for while the scalar unit waits for other blocks.

        Returns:
            What to do when its pipe comes to it; None if it has none.

        Raises:
            Problem: a post is not true, or a poll has no beginning.
        """
        values = record.decode(list(words[1:]))
        if record.name == "post_counter":
            post = Post(values["line"], values["value"], place)
            self._check(post)
            knowledge: Knowledge = {}
            if self._checker is not None:
                knowledge, _ = self._checker.races.send(PIPE, self._link.seat.number)
            return self._link.post(index, post, knowledge)
        if record.name == "poll_counters":
            poll = Poll(values["lines"], values["count"], values["value"], place)
            self._link.poll(index, poll, pipe_waits)
            if self._checker is not None:
                self._checker.races.begin_poll()
            if not self._data:
                size = values["looks"] * LINE_BYTES
                seen = self._memories[Space.UB].data[values["result"] :][:size]
                seen.view(np.int32)[:: LINE_BYTES // 4] = poll.value
            return _nothing
        known = self._link.end_poll(index, values["value"])
        if self._checker is not None:
            if known is not None:
                self._checker.races.receive(known, self._link.seat.number)
            self._checker.end_poll(known is not None)
        return None

    def _check(self, post: Post) -> None:
        """Holds a post against what its line has.

        Raises:
            Problem: that is another number, or the line lies outside of memory.
        """
        if not self._data:
            return
        found = self._memories[Space.GM].data[post.line : post.line + 4]
        held = int(found.view(np.int32)[0]) if found.size == 4 else None
        if held != post.value:
            raise UnplacedFault(
                "a counter is posted that its line does not hold",
                found=f"GM {post.line:#x} holds {held}, posted is {post.value}",
                expected="the number that was stored there",
                hint="store the line (copy_ubuf_to_gm), then post it",
            )


def _nothing(cycle: int) -> None:
    """What is done when a pipe comes to a poll: only time lines that are made again ask when."""
