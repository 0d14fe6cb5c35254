"""Global memory as the cores see it: what each of them gets of the bandwidth, and the L2.

All cores share the memory and the L2 before it. The machine file gives a core's share of each with
all cores at work; fewer cores share the same total, as fast as their ports are. Reads and writes of
a core count against one share. A core that used less than its share catches up later: others used
it, and they leave it theirs, but not for longer than `gm.idle_credit_cycles`.

The L2 keeps lines in the order in which they came in (first in, first out). Lines that were
written go to memory when they leave. Hits of one launch are counted over the streams of its blocks
merged in time, and apply to all of its transfers alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from davinci.machine import Machine
from davinci.simulator.regions import Region

Lines = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

CHUNKS = 8
"""Parts of the L2's capacity that are looked up at once: hits inside a part are always hits."""


@dataclass(frozen=True)
class Touched:
    """Numbers of the lines that a block touches, in order, and which of them it writes."""

    lines: Lines
    writes: Flags


@dataclass(frozen=True)
class Traffic:
    """What a launch moved between its cores and the L2, and what of it met the memory."""

    read_bytes: int = 0
    write_bytes: int = 0
    read_hit_rate: float = 0.0
    write_back_rate: float = 1.0


@dataclass(frozen=True)
class Rates:
    """Cycles a byte, read and written, that one core's transfers take of its share, `cores` of
    them being at work."""

    cores: float
    read: float
    write: float
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
    hits, back = traffic.read_hit_rate, traffic.write_back_rate
    return Rates(
        cores,
        used * ((1 - hits) / gm.read_bytes_per_cycle + hits / l2.read_bytes_per_cycle),
        used * (back / gm.write_bytes_per_cycle + (1 - back) / l2.write_bytes_per_cycle),
        gm.idle_credit_cycles,
    )


class Share:
    """A core's use of its share while it runs one block."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._used = -1.0

    def claim(self, start: int, read: int, write: int) -> int:
        """Cycle at which the bytes of a transfer that begins at `start` have passed."""
        rates = self._rates
        used = start if self._used < 0 else max(self._used, start - rates.idle_credit_cycles)
        self._used = used + read * rates.read + write * rates.write
        return int(-(-self._used // 1))


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
        read = written = missed = back = 0
        for blocks in rounds:
            lines, writes = _merged(blocks, self._capacity)
            size = max(self._capacity // CHUNKS, 1)
            for i in range(0, lines.size, size):
                chunk, stores = lines[i : i + size], writes[i : i + size]
                absent = np.flatnonzero(~self._present[chunk])
                coming, places = np.unique(chunk[absent], return_index=True)
                missed += int(np.count_nonzero(~stores[absent[places]]))
                back += self._fill(coming)
                self._dirty[chunk[stores]] = True
                read += int(np.count_nonzero(~stores))
                written += int(np.count_nonzero(stores))
        return Traffic(
            read * self._line,
            written * self._line,
            1 - missed / read if read else 0.0,
            min(1.0, back / written) if written else 0.0,
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


def _merged(blocks: Sequence[Touched], capacity: int) -> tuple[Lines, Flags]:
    """The lines that concurrent blocks touch, in time: each block moves on at an even pace."""
    lines = np.concatenate([block.lines for block in blocks])
    writes = np.concatenate([block.writes for block in blocks])
    if lines.size > capacity // CHUNKS:
        time = np.concatenate([np.linspace(0, 1, block.lines.size) for block in blocks])
        order = np.argsort(time, kind="stable")
        lines, writes = lines[order], writes[order]
    return lines, writes


def touched(accesses: Iterable[tuple[Region, int, bool]], line_bytes: int) -> Touched:
    """The lines that a block's transfers touch.

    Args:
        accesses: region, address, and whether it is written, in order.
        line_bytes: size of a line.
    """
    first: list[int] = []
    last: list[int] = []
    stores: list[bool] = []
    for region, address, written in accesses:
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
    return Touched(np.repeat(begins, counts) + inside, np.repeat(np.array(stores, bool), counts))
