"""Global memory as one core sees it: what it gets of the bandwidth of the memory and of the L2.

All cores share the memory and the L2 before it. The machine file gives a core's share of each with
all cores at work; fewer cores share the same total, as fast as their ports are. Reads and writes of
a core count against one share. Everything passes the L2; what it has not, or has no room for,
passes the memory too, at the same time: a transfer is over when both are done with it. A core that
used less than its share catches up later: others used it, and they leave it theirs, but not for
longer than `gm.idle_credit_cycles`, by which cores drift apart.

Cores that read one line at the same time wait for each other: `gm.same_line_percent` longer for
each other core.

How much the L2 has changes while a launch runs (`l2.L2`): each part of a launch has its own rates.
They apply to all transfers of all blocks in that part alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from davinci.machine import Machine
from davinci.simulator.timing.l2 import UNCACHED, Traffic

KEPT = 64
"""Transfers of a pipe that are remembered: more than a queue holds."""


@dataclass(frozen=True)
class PartRates:
    """Cycles a byte, read and written, that one core's transfers take of its share of the memory
    and of the L2, in one part of a launch, and the part of the lines read that the L2 has not."""

    memory: tuple[float, float]
    l2: tuple[float, float]
    missing: float


@dataclass(frozen=True)
class Rates:
    """What each of `cores` cores at work gets, in equal parts of its block's bytes one after the
    other; and how much longer reads take than alone for the lines they have in common."""

    cores: float
    parts: tuple[PartRates, ...]
    block_bytes: int
    stretch: float
    idle_credit_cycles: int

    @property
    def needs(self) -> tuple[bool, bool]:
        """Whether the share of the memory and that of the L2 ever holds a transfer up; a share that
        is never scarcer than the other one does not."""
        memory = l2 = False
        for part in self.parts:
            for a, b in zip(part.memory, part.l2, strict=True):
                memory |= a > b
                l2 |= b >= a
        return memory, l2


def rates_of(
    machine: Machine,
    cores: float,
    traffic: Traffic = UNCACHED,
    parts: Sequence[Traffic] = (),
    block_bytes: int = 0,
) -> Rates:
    """What each of `cores` cores at work gets.

    Args:
        machine: which one.
        cores: how many, in units of the machine's cores: a vector core of a 910B is half of one.
        traffic: how the L2 serves the launch.
        parts: the same of its parts one after the other; none: `traffic` throughout.
        block_bytes: that the block moves in all of them.
    """
    gm, l2, used = machine.gm, machine.l2, cores / machine.cores
    stretch = 1 + traffic.others * gm.same_line_percent / 100

    def part(served: Traffic) -> PartRates:
        read, written = served.miss_rate, served.write_back_rate
        return PartRates(
            (used * read / gm.read_bytes_per_cycle, used * written / gm.write_bytes_per_cycle),
            (used / l2.read_bytes_per_cycle, used / l2.write_bytes_per_cycle),
            served.missing,
        )

    return Rates(
        cores,
        tuple(part(served) for served in parts or (traffic,)),
        block_bytes,
        stretch,
        gm.idle_credit_cycles,
    )


def competing(size: int, sizes: Sequence[int]) -> float:
    """How many cores share the bandwidth while one of them moves `size` bytes, on average.

    All get the same until they have what they want: a core that moves less is there for part of
    the time only.

    Args:
        size: bytes of the core, at least 1.
        sizes: bytes of all cores that run at the same time, it among them.
    """
    return sum(min(size, other) for other in sizes) / size


class Share:
    """A core's use of its shares while it runs one block.

    Transfers of one pipe follow each other. They pass in the time that those of other pipes, which
    were issued before, have left.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        memory, l2 = rates.needs
        self._memory: _Lane | None = _Lane() if memory else None
        self._l2: _Lane | None = _Lane() if l2 else None
        self._first: int | None = None
        self._done = 0
        self._part = rates.parts[0]

    @property
    def missing(self) -> float:
        """Part of the lines read that the L2 has not, as of the last transfer."""
        return self._part.missing

    def claim(self, pipe: int, start: int, read: int, write: int) -> int:
        """Cycle at which the bytes of a transfer of `pipe` that begins at `start` have passed."""
        if self._first is None:
            self._first = start
        rates = self._rates
        if len(rates.parts) > 1:
            last = len(rates.parts) - 1
            place = self._done * len(rates.parts) // max(rates.block_bytes, 1)
            self._part = rates.parts[min(place, last)]
            self._done += read + write
        now = max(float(self._first), start - rates.idle_credit_cycles)
        end = 0.0
        if self._memory is not None:
            a, b = self._part.memory
            end = self._memory.claim(pipe, now, read * a + write * b)
        if self._l2 is not None:
            a, b = self._part.l2
            end = max(end, self._l2.claim(pipe, now, read * a + write * b))
        return ceil(end)


class _Lane:
    """One share: when transfers of each pipe use it, the last ones."""

    def __init__(self) -> None:
        self._taken: dict[int, deque[tuple[float, float]]] = {}

    def claim(self, pipe: int, now: float, left: float) -> float:
        if not left:
            return now
        own = self._taken.get(pipe)
        if own is None:
            own = self._taken[pipe] = deque(maxlen=KEPT)
        if own and own[-1][1] > now:
            now = own[-1][1]
        begin = now
        for other, intervals in self._taken.items():
            if other != pipe:
                now, left = _pass_by(intervals, now, left)
        own.append((begin, now + left))
        return now + left


def _pass_by(
    intervals: Iterable[tuple[float, float]], now: float, left: float
) -> tuple[float, float]:
    """Uses the gaps between intervals: the time after the last one that matters, and what is left
    to do then."""
    for begin, end in intervals:
        if end <= now:
            continue
        if begin - now >= left:
            break
        left -= max(begin - now, 0.0)
        now = end
    return now, left
