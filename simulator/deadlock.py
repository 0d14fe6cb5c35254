"""Who waits for whom when nothing can go on: the circle of waits, in words.

A pipe waits at a `wait_flag` for a pipe that has not set the flag. That one either has the
`set_flag` in its queue, behind a wait of its own, or the scalar unit has not issued it: then that
is what is waited for. The scalar unit waits for a flag, for room in a queue, or for all pipes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from davinci.isa.core import Pipe
from davinci.simulator.problems import Problem
from davinci.simulator.races import Event, S

Place = Callable[[int], str]
"""Text of a location id."""


class Queued(Protocol):
    """What an instruction in a queue says of itself.

    Attributes:
        index: its number in the block.
        location: where it comes from.
        wait, send: the flag that it waits for or sets.
    """

    index: int
    location: int
    wait: Event | None
    send: Event | None


@dataclass(frozen=True)
class Stuck:
    """The scalar unit, where it cannot go on.

    Attributes:
        doing: what it waits for, in words.
        item: the `wait_flag` at which it waits, or None.
        pipes: that must go on before it can.
    """

    doing: str
    item: Queued | None
    pipes: Sequence[int]


class Deadlock(Problem):
    """Nothing can go on.

    Args:
        why: what shows it.
        held: instructions in the queues of the pipes that wait; a `wait_flag` is first.
        scalar: the scalar unit, if it waits too; None if the program has ended.
    """

    def __init__(
        self, why: str, held: Mapping[int, Sequence[Queued]], scalar: Stuck | None
    ) -> None:
        super().__init__(
            f"deadlock: {why}",
            hint="each wait_flag needs a set_flag of the same pipes and event that can be reached",
        )
        self._held, self._scalar = held, scalar
        circle = self._circle()
        if circle:
            names = " for ".join(f"PIPE_{Pipe(pipe).name}" for pipe in circle)
            self.message += f"; the circle of waits: {names}"

    def describe(self, place: Place) -> str:
        """All waits, with the places of the instructions."""
        texts = [self._wait(pipe, queue[0], place) for pipe, queue in self._held.items()]
        if self._scalar is not None:
            if self._scalar.item is not None:
                texts.append(self._wait(S, self._scalar.item, place))
            else:
                texts.append(f"PIPE_S waits for {self._scalar.doing}")
        return "; ".join(texts)

    def _wait(self, pipe: int, item: Queued, place: Place) -> str:
        assert item.wait is not None
        source, _, event = item.wait
        text = (
            f"PIPE_{Pipe(pipe).name} waits at instruction #{item.index} for event {event} of "
            f"PIPE_{Pipe(source).name} ({place(item.location)})"
        )
        answer = self._answer(item)
        if answer is not None:
            first = self._held[source][0]
            return (
                f"{text}, whose set_flag #{answer.index} ({place(answer.location)}) is in the "
                f"queue behind #{first.index}"
            )
        if self._scalar is not None:
            return f"{text}, which the scalar unit has not come to set"
        return f"{text}, which nothing before has set"

    def _answer(self, item: Queued) -> Queued | None:
        """The set_flag that `item` waits for, if it was issued."""
        assert item.wait is not None
        queue = self._held.get(item.wait[0], ())
        return next((other for other in queue if other.send == item.wait), None)

    def _waits_for(self, pipe: int) -> Sequence[int]:
        """The pipes that must go on before `pipe` can."""
        if pipe == S and self._scalar is not None and self._scalar.item is None:
            return self._scalar.pipes
        item = self._scalar.item if pipe == S and self._scalar else self._held[pipe][0]
        assert item is not None and item.wait is not None
        if self._answer(item) is not None:
            return [item.wait[0]]
        return [S] if self._scalar is not None else []

    def _circle(self) -> list[int]:
        """The pipes of a circle, the first one again at the end; empty if there is none."""
        for first in self._held:
            path: list[int] = [first]
            while follow := self._waits_for(path[-1]):
                # The scalar unit may wait for several; the one that leads back is among them.
                step = first if first in follow else follow[0]
                if step in path:
                    return [*path[path.index(step) :], step]
                path.append(step)
        return []
