"""The port of L1: what comes in from global memory takes cycles from the loads out of it."""

from __future__ import annotations

from collections import deque
from math import ceil

KEPT = 8
"""Transfers into L1 that are remembered: more than can be under way with a load."""

MOST_TAKEN = 0.5
"""Loads and fills take turns: fills get no more of the port's cycles."""


class L1Port:
    """When bytes come into L1.

    Args:
        stall_bytes: that come in for each cycle that a load under way waits.
    """

    def __init__(self, stall_bytes: int) -> None:
        self._stall_bytes = stall_bytes
        self._fills: deque[tuple[float, float, float]] = deque(maxlen=KEPT)

    def fill(self, start: int, end: int, size: int) -> None:
        """`size` bytes come in evenly from `start` to `end`; transfers follow each other."""
        taken = min(size / self._stall_bytes / max(end - start, 1), MOST_TAKEN)
        self._fills.append((start, end, taken))

    def stalls(self, start: int, cycles: int) -> int:
        """Cycles that a load of so many cycles takes longer if it begins at `start`."""
        now, left = float(start), float(cycles)
        for begin, end, taken in self._fills:
            if end <= now:
                continue
            if begin >= now + left:
                break
            if begin > now:
                left -= begin - now
                now = begin
            needed = left / (1 - taken)
            if now + needed <= end:
                return ceil(now + needed) - start - cycles
            left -= (end - now) * (1 - taken)
            now = end
        return ceil(now + left) - start - cycles
