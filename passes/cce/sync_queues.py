"""The pipes of a core, numbered without gaps: `insert-sync` keeps lists by them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Queue(enum.IntEnum):
    """Pipes by the names of `isa.core.Pipe`, whose numbers are those that instructions encode; ALL,
    the last one, stands for all of them."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6
    ALL = 7


@dataclass(frozen=True)
class EventIds:
    """The number of event ids, and so of flags set at a time, of each pair of pipes.

    Attributes:
        count: of most pairs.
        fewer: of other pairs, the pipe that sets the flag first, how many.
    """

    count: int
    fewer: Mapping[tuple[Queue, Queue], int] = field(default_factory=dict)

    def of(self, src: Queue, dst: Queue) -> int:
        """The number for flags from `src` to `dst`."""
        return self.fewer.get((src, dst), self.count)
