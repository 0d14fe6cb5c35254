"""Global memory as the cores see it: what each of them gets of the bandwidth, and the L2.

All cores share the memory and the L2 before it. The machine file gives a core's share of each with
all cores at work; fewer cores share the same total, as fast as their ports are. Reads and writes of
a core count against one share. A core that used less than its share catches up later: others used
it, and they leave it theirs, but not for longer than `gm.idle_credit_cycles`, by which cores drift
apart.

Cores that read one line at the same time wait for each other: `gm.same_line_percent` longer, for
that part of the lines.

The L2 keeps lines in the order in which they came in (first in, first out). Lines that were
written go to memory when they leave. Hits of one launch are counted over the streams of its blocks
merged in time, and apply to all of its transfers alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from davinci.machine import Machine
from davinci.simulator.regions import Region

Lines = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

CHUNKS = 8
"""Parts of the L2's capacity that are looked up at once: hits inside a part are always hits."""


KEPT = 64
"""Transfers of a pipe that are remembered: more than a queue holds."""


@dataclass(frozen=True)
class Touched:
    """Numbers of the lines that a block touches, in order, which of them it writes, and how many
    bytes it reads and writes: rows need not use all of a line."""

    lines: Lines
    writes: Flags
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class Traffic:
    """What a launch moved between its cores and the L2, and between the L2 and the memory.

    What is not used of a line that comes in was read from the memory all the same. `common_share`
    is the part of the lines read that several cores read at about the same time.
    """

    read_bytes: int = 1
    write_bytes: int = 1
    filled_bytes: int = 1
    written_back_bytes: int = 1
    common_share: float = 0.0

    @property
    def miss_rate(self) -> float:
        """Bytes from the memory for each byte read."""
        return self.filled_bytes / self.read_bytes if self.read_bytes else 0.0

    @property
    def read_hit_rate(self) -> float:
        """Share of the bytes read that the L2 had."""
        return max(0.0, 1.0 - self.miss_rate)

    @property
    def write_back_rate(self) -> float:
        """Bytes to the memory for each byte written."""
        return self.written_back_bytes / self.write_bytes if self.write_bytes else 0.0


@dataclass(frozen=True)
class Rates:
    """Cycles a byte, read and written, that one core's transfers take of its share, `cores` of
    them being at work; and how much longer reads take than alone for the lines they have in
    common."""

    cores: float
    read: float
    write: float
    stretch: float
    idle_credit_cycles: int


UNCACHED = Traffic()
"""All of a launch's bytes pass the memory."""


def rates_of(machine: Machine, cores: float, traffic: Traffic = UNCACHED) -> Rates:
    """What each of `cores` cores at work gets.

    Bytes that the L2 has pass at its rate, others at that of the memory; a stream alternates
    between the two.

    Args:
        machine: which one.
        cores: how many, in units of the machine's cores: a vector core of a 910B is half of one.
        traffic: how the L2 serves the launch.
    """
    gm, l2, used = machine.gm, machine.l2, cores / machine.cores
    missed, back = traffic.miss_rate, traffic.write_back_rate
    hits, kept = max(1 - missed, 0), max(1 - back, 0)
    stretch = 1 + traffic.common_share * gm.same_line_percent / 100
    return Rates(
        cores,
        used * (missed / gm.read_bytes_per_cycle + hits / l2.read_bytes_per_cycle) * stretch,
        used * (back / gm.write_bytes_per_cycle + kept / l2.write_bytes_per_cycle),
        stretch,
        gm.idle_credit_cycles,
    )


class Share:
    """A core's use of its share while it runs one block.

    Transfers of one pipe follow each other. They pass in the time that those of other pipes, which
    were issued before, have left.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._taken: dict[int, deque[tuple[float, float]]] = {}
        self._first: int | None = None

    def claim(self, pipe: int, start: int, read: int, write: int) -> int:
        """Cycle at which the bytes of a transfer of `pipe` that begins at `start` have passed."""
        own = self._taken.setdefault(pipe, deque(maxlen=KEPT))
        if self._first is None:
            self._first = start
        now = max(float(self._first), start - self._rates.idle_credit_cycles)
        if own:
            now = max(now, own[-1][1])
        begin, left = now, read * self._rates.read + write * self._rates.write
        for other, intervals in self._taken.items():
            if other != pipe:
                now, left = _pass_by(intervals, now, left)
        own.append((begin, now + left))
        return ceil(now + left)


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


class L2:
    """Which lines of global memory are in the L2, from launch to launch; empty at first."""

    def __init__(self, machine: Machine, gm_bytes: int) -> None:
        self._line = machine.gm.line_bytes
        self._capacity = machine.l2.bytes // self._line
        self._count = -(-gm_bytes // self._line) + 1
        self.flush()

    def flush(self) -> None:
        """Empties it."""
        self._present: Flags = np.zeros(self._count, dtype=np.bool_)
        self._dirty: Flags = np.zeros(self._count, dtype=np.bool_)
        # The lines in the order in which they came in, as a ring; 0 is never used by a buffer.
        self._ring: Lines = np.zeros(self._capacity, dtype=np.int64)
        self._next = 0

    def launch(self, rounds: Sequence[Sequence[Touched]]) -> Traffic:
        """Passes the transfers of a launch through the L2.

        Args:
            rounds: the blocks that run at the same time, and those that run after them.
        """
        filled = back = common = read = 0
        for blocks in rounds:
            lines, writes, owners = _merged(blocks, self._capacity)
            size = max(self._capacity // CHUNKS, 1)
            for i in range(0, lines.size, size):
                chunk, stores = lines[i : i + size], writes[i : i + size]
                if len(blocks) > 1:
                    pairs = np.unique(chunk[~stores] * len(blocks) + owners[i : i + size][~stores])
                    _, counts = np.unique(pairs // len(blocks), return_counts=True)
                    common += int(counts[counts > 1].sum())
                    read += pairs.size
                absent = np.flatnonzero(~self._present[chunk])
                coming, places = np.unique(chunk[absent], return_index=True)
                filled += int(np.count_nonzero(~stores[absent[places]]))
                back += self._fill(coming)
                self._dirty[chunk[stores]] = True
        return Traffic(
            sum(block.read_bytes for blocks in rounds for block in blocks),
            sum(block.write_bytes for blocks in rounds for block in blocks),
            filled * self._line,
            back * self._line,
            common / read if read else 0.0,
        )

    def _fill(self, lines: Lines) -> int:
        """Brings lines in; returns how many others had to be written to memory."""
        slots = (self._next + np.arange(lines.size)) % self._capacity
        self._next = (self._next + lines.size) % self._capacity
        leaving = self._ring[slots]
        back = int(np.count_nonzero(self._dirty[leaving]))
        self._dirty[leaving] = self._present[leaving] = False
        self._ring[slots] = lines
        self._present[lines] = True
        return back


def _merged(blocks: Sequence[Touched], capacity: int) -> tuple[Lines, Flags, Lines]:
    """The lines that concurrent blocks touch, in time, whether they write them, and which block:
    each block moves on at an even pace."""
    lines = np.concatenate([block.lines for block in blocks])
    writes = np.concatenate([block.writes for block in blocks])
    owners = np.repeat(np.arange(len(blocks)), [block.lines.size for block in blocks])
    if lines.size > capacity // CHUNKS:
        time = np.concatenate([np.linspace(0, 1, block.lines.size) for block in blocks])
        order = np.argsort(time, kind="stable")
        lines, writes, owners = lines[order], writes[order], owners[order]
    return lines, writes, owners


def touched(accesses: Iterable[tuple[Region, int, bool]], line_bytes: int) -> Touched:
    """The lines that a block's transfers touch.

    Args:
        accesses: region, address, and whether it is written, in order.
        line_bytes: size of a line.
    """
    first: list[int] = []
    last: list[int] = []
    stores: list[bool] = []
    size = [0, 0]
    for region, address, written in accesses:
        size[written] += region.size_bytes
        if region.contiguous:
            first.append((address + region.low) // line_bytes)
            last.append((address + region.high - 1) // line_bytes)
            stores.append(written)
        else:
            starts, lengths = region.runs
            first += ((starts + address) // line_bytes).tolist()
            last += ((starts + (lengths - 1) + address) // line_bytes).tolist()
            stores += [written] * starts.size
    begins = np.array(first, dtype=np.int64)
    counts = np.maximum(np.array(last, dtype=np.int64) - begins + 1, 0)
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    writes = np.repeat(np.array(stores, dtype=np.bool_), counts)
    return Touched(np.repeat(begins, counts) + inside, writes, *size)
