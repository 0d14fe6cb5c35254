"""The fastest of several ways to compute a product."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from davinci.errors import CompileError
from davinci.schedule.vector.space import NoSpace


class TimedWay(Protocol):
    """A way to compute something, with its estimated cycles."""

    @property
    def cycles(self) -> float: ...


Way = TypeVar("Way", bound=TimedWay)


def fastest_way(ways: Iterable[Callable[[float], Way | None]], most: float) -> Way | None:
    """The way of fewest cycles; None if none takes less than `most`, or none fits.

    Args:
        ways: each finds one way that takes less than so many cycles, None if there is none; it is
            given what the fastest one by then takes. Those for which nothing fits are passed over.
    """
    best: Way | None = None
    for find in ways:
        try:
            found = find(most)
        except (NoSpace, CompileError):
            continue
        if found is not None:
            best, most = found, found.cycles
    return best
