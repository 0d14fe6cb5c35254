"""Buffers that take turns, and flags that tell of what fills them, while a schedule is played."""

from __future__ import annotations

from davinci.machine import Machine

Place = tuple[str, int]
"""A buffer of A or B or of what C is combined with, by a name and number."""


class PlayedRing:
    """Buffers that take turns, each with when it is free."""

    def __init__(self, count: int) -> None:
        self._free, self._turn = [0.0] * count, 0

    @property
    def next(self) -> float:
        """When the buffer that is next is free."""
        return self._free[self._turn]

    def take(self, until: float) -> None:
        """Takes it until then."""
        self._free[self._turn] = until
        self._turn = (self._turn + 1) % len(self._free)


class PieceFlags:
    """Flags from a pipe that fills L1 to MTE1, of which there are few event ids.

    A flag is set when the pipe knows that so many flags before it are clear: it knows of those that
    were waited for before the load that made room for one of its fills.
    """

    def __init__(self, machine: Machine) -> None:
        self._ids = machine.sync.event_ids
        self._flags = self._waited = self._clear = 0
        self._loads: dict[Place, int] = {}
        self._fills: list[tuple[int, float]] = []

    def fill(self, place: Place, begin: float) -> int:
        """The number of a fill of that place that begins then."""
        self._clear = max(self._clear, self._loads.get(place, 0))
        self._fills.append((self._clear, begin))
        return len(self._fills)

    def load(self, place: Place, fill: int) -> float | None:
        """When the flag can be set, at the earliest, of a load that needs a fill; None if not
        before MTE1 tells the pipe what it has waited for."""
        found: float | None = 0.0
        if fill > self._waited:
            needed = self._flags + 1 - self._ids
            if self._fills[fill - 1][0] < needed:
                found = next((at for clear, at in self._fills[fill:] if clear >= needed), None)
            self._waited = fill
            self._flags += 1
            if found is None:
                self._clear, self._waited = self._flags, len(self._fills)
        self._loads[place] = self._flags
        return found
