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
They apply to all transfers of all blocks in that part alike, and to a transfer that is in several
parts byte by byte. Parts are equal parts of a block's bytes; or, where cube and vector cores wait
for each other, what each block moves between two cycles (`pace.Paces`). What is written back to
make room passes the memory with what comes in for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.machine import Machine
from davinci.native import Floats
from davinci.simulator.timing.l2 import UNCACHED, LaunchTraffic


@dataclass(frozen=True)
class PartRates:
    """Cycles a byte, read and written, that one core's transfers take of its share of the memory
    and of the L2, in one part of a launch; the part of the lines read that the L2 has not; and the
    bytes that the block has moved at the end of the part."""

    memory: tuple[float, float]
    l2: tuple[float, float]
    missing: float
    end: float


@dataclass(frozen=True)
class Rates:
    """What each of `cores` cores at work gets, in parts of its block's bytes one after the other;
    and how much longer reads take than alone for the lines they have in common."""

    cores: float
    parts: tuple[PartRates, ...]
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
    traffic: LaunchTraffic = UNCACHED,
    parts: Sequence[LaunchTraffic] = (),
    ends: Sequence[float] = (),
) -> Rates:
    """What each of `cores` cores at work gets.

    Args:
        machine: which one.
        cores: how many, in units of the machine's cores: a vector core of a 910B is half of one.
        traffic: how the L2 serves the launch.
        parts: the same of its parts one after the other; none: `traffic` throughout.
        ends: bytes that the block has moved at the end of each part.
    """
    gm, l2, used = machine.gm, machine.l2, cores / machine.cores
    stretch = 1 + traffic.others * gm.same_line_percent / 100

    def part(number: int, reading: LaunchTraffic, writing: LaunchTraffic) -> PartRates:
        read = reading.miss_rate / gm.read_bytes_per_cycle
        read += reading.read_back_rate / gm.write_bytes_per_cycle
        written = writing.write_back_rate / gm.write_bytes_per_cycle
        return PartRates(
            (used * read, used * written),
            (used / l2.read_bytes_per_cycle, used / l2.write_bytes_per_cycle),
            reading.missing,
            ends[number] if ends else 0.0,
        )

    served = parts or (traffic,)
    reading = nearest([bool(each.read_bytes) for each in served])
    writing = nearest([bool(each.write_bytes) for each in served])
    places = zip(reading, writing, strict=True)
    return Rates(
        cores,
        tuple(part(i, served[r], served[w]) for i, (r, w) in enumerate(places)),
        stretch,
        gm.idle_credit_cycles,
    )


def in_common(machine: Machine, requests: Floats | None) -> Floats | None:
    """How much longer each of some reads takes for lines that other cores read as well, and the
    least cycles of each of its requests, as these lines serve one after the other.

    Args:
        machine: which one.
        requests: of each of them its lines, and how often all cores together read these.
    """
    gm = machine.gm
    if requests is None or not gm.same_line_request_cycles:
        return None
    own, all_of_them = requests.T
    readers = np.maximum(all_of_them / np.maximum(own, 1), 1)
    longer = 1 + (readers - 1) * gm.same_line_percent / 100
    found = np.stack([longer, readers * gm.same_line_request_cycles], axis=1)
    return np.ascontiguousarray(found)


def nearest(has: Sequence[bool]) -> list[int]:
    """For each place the last one up to it that has something, else the first one; itself if none
    has. Bytes and lines of a block go apart a little, so a part may see what it has none of."""
    there = [place for place, each in enumerate(has) if each]
    if not there:
        return list(range(len(has)))
    found, last = [], there[0]
    for place, each in enumerate(has):
        last = place if each else last
        found.append(last)
    return found


def competing(size: int, sizes: Sequence[int]) -> float:
    """How many cores share the bandwidth while one of them moves `size` bytes, on average.

    All get the same until they have what they want: a core that moves less is there for part of
    the time only.

    Args:
        size: bytes of the core, at least 1.
        sizes: bytes of all cores that run at the same time, it among them.
    """
    return sum(min(size, other) for other in sizes) / size
