"""Pipes and flags of one core by their numbers; how often each flag was set and waited for."""

from __future__ import annotations

from davinci.isa.core import Pipe
from davinci.simulator.core.problems import Problem

PIPES = int(max(Pipe)) + 1
"""Length of lists that are indexed by pipes."""

S, ALL = int(Pipe.S), int(Pipe.ALL)

Event = tuple[int, int, int]
"""Source pipe, destination pipe, event id."""


def name_of(event: Event) -> str:
    """`event 0 from PIPE_MTE2 to PIPE_V`."""
    source, destination, number = event
    return f"event {number} from PIPE_{Pipe(source).name} to PIPE_{Pipe(destination).name}"


class Events:
    """Flags of one core: a flag holds one event, so it is not set again before a wait clears it."""

    def __init__(self) -> None:
        self._set: dict[Event, int] = {}

    def set_flag(self, event: Event) -> None:
        """Counts a `set_flag`.

        Raises:
            Problem: the flag is set already.
        """
        count = self._set.get(event, 0)
        if count > 0:
            raise Problem(
                "flag set twice without a wait between",
                found=name_of(event),
                hint="wait for it before setting it again, or use another event id",
            )
        self._set[event] = count + 1

    def wait_flag(self, event: Event) -> None:
        """Counts a `wait_flag`; it may come before its `set_flag`."""
        self._set[event] = self._set.get(event, 0) - 1

    def finish(self) -> None:
        """Checks that no flag is left set.

        Raises:
            Problem: one is.
        """
        left = [name_of(event) for event, count in self._set.items() if count > 0]
        if left:
            raise Problem(
                "flags left set at the end of the program",
                found=", ".join(left),
                hint="every set_flag needs a wait_flag: the next kernel would find the flag set",
            )
