"""Who waits for whom when nothing can go on: the circle of waits, in words.

A pipe waits at a `wait_flag` for a pipe that has not set the flag. That one either has the
`set_flag` in its queue, behind a wait of its own, or the scalar unit has not issued it: then that
is what is waited for. The scalar unit waits for a flag, for room in a queue, or for all pipes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from davinci.isa.core import Pipe
from davinci.simulator.core.events import Event, S
from davinci.simulator.core.problems import UnplacedFault

Place = Callable[[int], str]
"""Text of a location id."""

Waiter = TypeVar("Waiter", bound=Hashable)


def circle_of(waits_for: Mapping[Waiter, Sequence[Waiter]]) -> list[Waiter]:
    """A shortest circle of waits, the first waiter again at the end; empty if there is none.

    Args:
        waits_for: for each waiter those that must go on before it can; one that waits for itself
            makes no circle.
    """
    best: list[Waiter] = []
    for first in waits_for:
        paths, seen = deque([[first]]), {first}
        while paths and not (best and len(paths[0]) + 1 >= len(best)):
            path = paths.popleft()
            follow = waits_for.get(path[-1], ())
            if len(path) > 1 and first in follow:
                best = [*path, first]
                break
            paths += [[*path, step] for step in follow if step not in seen]
            seen.update(follow)
    return best


def told(waits: Mapping[Waiter, str], circle: Sequence[Waiter]) -> str:
    """The waits in words, those of the circle first and in its order."""
    if not circle:
        return "; ".join(waits.values())
    text = "in the circle: " + "; ".join(waits[waiter] for waiter in circle[:-1])
    beside = [text for waiter, text in waits.items() if waiter not in circle]
    return f"{text}; beside it: {'; '.join(beside)}" if beside else text


@dataclass(frozen=True)
class Issued:
    """An instruction in a queue: its number in the block, its source location, and the event if it
    is a `wait_flag` or `set_flag`; the pipe whose unit flags it obeys, if it does."""

    name: str
    index: int
    location: int
    wait: Event | None = None
    send: Event | None = None
    units: int | None = None


@dataclass(frozen=True)
class Stuck:
    """The scalar unit, where it cannot go on.

    Attributes:
        doing: what it waits for, in words.
        item: the instruction that it cannot issue, or the `wait_flag` at which it waits.
        pipes: that must go on before it can; none at a wait for a flag.
    """

    doing: str
    item: Issued
    pipes: Sequence[int]


class Deadlock(UnplacedFault):
    """Nothing can go on.

    Args:
        why: what shows it.
        held: instructions in the queues of the pipes that wait; a `wait_flag` is first.
        scalar: the scalar unit, if it waits too; None if the program has ended.
        unused: flags that are set, with the number of their `set_flag`.
    """

    def __init__(
        self,
        why: str,
        held: Mapping[int, Sequence[Issued]],
        scalar: Stuck | None,
        unused: Mapping[Event, int],
    ) -> None:
        super().__init__(
            f"deadlock: {why}",
            hint="each wait_flag needs a set_flag of the same pipes and event, issued before "
            "anything that waits for it in turn",
        )
        self._held, self._scalar, self._unused = held, scalar, unused
        waiters = [*held, *([S] if scalar is not None else [])]
        self._circle = circle_of({pipe: self._waits_for(pipe) for pipe in waiters})
        if self._circle:
            names = " -> ".join(f"PIPE_{Pipe(pipe).name}" for pipe in self._circle)
            self.message += f"; the circle of waits: {names}"

    def pipes(self, place: Place) -> dict[int, str]:
        """The waits of the pipes but the scalar one, with the places of the instructions."""
        return {pipe: self._wait(pipe, queue[0], place) for pipe, queue in self._held.items()}

    def describe(self, place: Place) -> str:
        """Which pipes wait for what, with the places of the instructions, as text."""
        waits = self.pipes(place)
        if self._scalar is not None:
            item = self._scalar.item
            if not self._scalar.pipes:
                waits[S] = self._wait(S, item, place)
            else:
                at = f"#{item.index} {item.name} ({place(item.location)})"
                waits[S] = f"PIPE_S, the scalar unit, waits at {at} for {self._scalar.doing}"
        return told(waits, self._circle)

    def _wait(self, pipe: int, item: Issued, place: Place) -> str:
        if item.wait is None and item.units is not None:
            return (
                f"PIPE_{Pipe(pipe).name} waits at #{item.index} {item.name} "
                f"({place(item.location)}) for unit flags of PIPE_{Pipe(item.units).name}"
            )
        assert item.wait is not None, "what holds a pipe up waits for a flag"
        source, _, event = item.wait
        text = (
            f"PIPE_{Pipe(pipe).name} waits at #{item.index} wait_flag ({place(item.location)}) "
            f"for event {event} of PIPE_{Pipe(source).name}"
        )
        answer = self._answer(item)
        if answer is not None:
            first = self._held[source][0]
            return (
                f"{text}, whose set_flag #{answer.index} ({place(answer.location)}) is in the "
                f"queue behind #{first.index} {first.name}"
            )
        if self._scalar is not None:
            text += ", whose set_flag the scalar unit has not issued"
        else:
            text += ", which no set_flag sets"
        others = [
            f"event {other[2]} at #{index}"
            for other, index in self._unused.items()
            if other[:2] == item.wait[:2]
        ]
        return f"{text} (but it set {' and '.join(others)})" if others else text

    def _answer(self, item: Issued) -> Issued | None:
        """The set_flag that `item` waits for, if it was issued."""
        assert item.wait is not None, "what holds a pipe up waits for a flag"
        queue = self._held.get(item.wait[0], ())
        return next((other for other in queue if other.send == item.wait), None)

    def _waits_for(self, pipe: int) -> Sequence[int]:
        """The pipes that must go on before `pipe` can."""
        scalar = self._scalar
        if pipe == S and scalar is not None:
            if scalar.pipes or scalar.item.wait is None:
                return scalar.pipes
            item = scalar.item
        else:
            item = self._held[pipe][0]
        if item.wait is None and item.units is not None:
            return [item.units] if item.units in self._held else [S] if scalar is not None else []
        assert item.wait is not None, "what holds a pipe up waits for a flag"
        if self._answer(item) is not None:
            return [item.wait[0]]
        return [S] if scalar is not None else []
