"""Counters in global memory by which blocks of a launch on a coupled machine wait for each other.

See `davinci.isa.counters` for what a program does. Each line belongs to one block and only grows,
so what a poll finds in the end does not depend on the order in which blocks run: the first number
in each line that is large enough. Each post carries the time at which the line is in memory and
what its block knows to be complete, so that clocks and race checks go on where it is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from davinci.isa.core import Pipe
from davinci.isa.counters import LINE_BYTES
from davinci.simulator.core.problems import UnplacedFault
from davinci.simulator.split.cross_core import Count, Knowledge, Seat, join


@dataclass(frozen=True)
class Post:
    """That a block has stored a counter: address of its line, the number, and the place."""

    line: int
    value: int
    place: str = ""


@dataclass(frozen=True)
class Poll:
    """That a block waits until counters in lines that follow each other have reached a number.

    Attributes:
        first: address of the first line.
        count: of lines.
        value: that all must reach.
        place: the instruction that reads them.
    """

    first: int
    count: int
    value: int
    place: str = ""

    @property
    def lines(self) -> range:
        """Addresses of the lines."""
        return range(self.first, self.first + self.count * LINE_BYTES, LINE_BYTES)

    def __str__(self) -> str:
        last = self.first + self.count * LINE_BYTES
        lines = f"counter at GM {self.first:#x}"
        if self.count > 1:
            lines = f"{self.count} counters at GM [{self.first:#x}, {last:#x})"
        return f"{lines} to reach {self.value}"


@dataclass(frozen=True)
class EndPoll:
    """That the scalar unit has looked; whether what it saw is as much as it waits for."""

    enough: bool


Talk = Mapping[int, Post | Poll | EndPoll]
"""What a program does with counters, by number of its instruction."""


@dataclass(frozen=True)
class Posted:
    """A counter that has come to its line: the number, who stored it, and when it was there."""

    post: Post
    seat: Seat
    count: Count


@dataclass
class CounterLine:
    """The numbers that came to a line, in order."""

    posted: list[Posted] = field(default_factory=list)

    def reaching(self, value: int) -> Posted | None:
        """The first number that is large enough, if it has come."""
        return next((each for each in self.posted if each.post.value >= value), None)


class Counters:
    """The lines of a launch.

    Attributes:
        memory: addresses of all lines that were posted or polled.
    """

    def __init__(self) -> None:
        self._lines: dict[int, CounterLine] = {}
        self.memory: set[int] = set()

    def post(self, seat: Seat, post: Post, count: Count) -> None:
        """A counter has come to its line.

        Raises:
            Problem: it has not grown, or another block stores there too.
        """
        line = self._lines.setdefault(post.line, CounterLine())
        self.memory.add(post.line)
        if line.posted:
            last = line.posted[-1]
            if last.seat is not seat:
                raise UnplacedFault(
                    "two blocks count in one line",
                    found=f"GM {post.line:#x}, of {last.seat} and of {seat}",
                    expected="a line of 32 bytes for each block",
                )
            if post.value <= last.post.value:
                raise UnplacedFault(
                    "a counter that other blocks wait for does not grow",
                    found=f"GM {post.line:#x}: {last.post.value}, then {post.value}",
                    expected="a larger number with each post",
                    hint="a block that waits could not tell the new number from the old one",
                )
        line.posted.append(Posted(post, seat, count))

    def seen(self, poll: Poll) -> Count | None:
        """When all counters of a poll are large enough, and what their blocks knew; None if not all
        have come."""
        found = [self.line(address).reaching(poll.value) for address in poll.lines]
        posted = [each.count for each in found if each is not None]
        if len(posted) < poll.count:
            return None
        return Count(max(c.time for c in posted), join(c.knowledge for c in posted))

    def missing(self, poll: Poll) -> list[int]:
        """Lines of a poll whose counters are not large enough."""
        return [line for line in poll.lines if self.line(line).reaching(poll.value) is None]

    @property
    def posted(self) -> set[int]:
        """Addresses of the lines to which a counter has come."""
        return {address for address, line in self._lines.items() if line.posted}

    def line(self, address: int) -> CounterLine:
        """What came to a line."""
        return self._lines.get(address, CounterLine())

    def left_by(self, poll: Poll) -> Iterable[tuple[int, Posted | None]]:
        """The lines that a poll misses, and the last number in each."""
        for line in self.missing(poll):
            posted = self.line(line).posted
            yield line, posted[-1] if posted else None


class CounterLink:
    """The counters as one block has them: a poll gives way to other blocks until all have come.

    Attributes:
        seat: of the block's program.
        talk: what it has done with counters.
        waiting: the poll it waits for, or None.
        pipe_waits: what its pipes wait for meanwhile, in words.
        unposted: posts that were issued, but that MTE3 has not come to.
    """

    def __init__(self, counters: Counters, seat: Seat, give_way: Callable[[], None]) -> None:
        self.seat = seat
        self.talk: dict[int, Post | Poll | EndPoll] = {}
        self.waiting: Poll | None = None
        self.pipe_waits: Callable[[], Sequence[str]] = list
        self.unposted: list[Post] = []
        self._counters, self._give_way = counters, give_way
        self._poll: tuple[Poll, Count] | None = None

    @property
    def ready(self) -> bool:
        """Whether the program can go on."""
        return self.waiting is None or self._counters.seen(self.waiting) is not None

    def post(self, index: int, post: Post, knowledge: Knowledge) -> Callable[[int], None]:
        """A post was issued.

        Returns:
            What to do in the cycle in which its pipe comes to it.
        """
        self.talk[index] = post
        self.unposted.append(post)
        self._counters.memory.add(post.line)

        def come(cycle: int) -> None:
            self.unposted.remove(post)
            self._counters.post(self.seat, post, Count(cycle, knowledge))

        return come

    def poll(self, index: int, poll: Poll, pipe_waits: Callable[[], Sequence[str]]) -> None:
        """Waits until all counters are on their way."""
        self.talk[index] = poll
        self._counters.memory.update(poll.lines)
        self.waiting, self.pipe_waits = poll, pipe_waits
        while (count := self._counters.seen(poll)) is None:
            self._give_way()
        self.waiting, self.pipe_waits = None, list
        self._poll = poll, count

    def end_poll(self, index: int, value: int) -> Knowledge | None:
        """The scalar unit has looked.

        Returns:
            What the block knows from now on; None if it has not seen enough.

        Raises:
            Problem: there is no poll that this could end.
        """
        if self._poll is None:
            raise UnplacedFault(
                "the end of a poll without its beginning",
                hint="poll_counters stands in front of the load of the lines",
            )
        poll, count = self._poll
        self._poll = None
        self.talk[index] = EndPoll(value >= poll.value)
        return count.knowledge if value >= poll.value else None


PIPE = int(Pipe.MTE3)
"""The pipe whose knowledge a post carries."""
