"""Cutting a one-dimensional array into portions that fit UB, and sharing them between blocks.

    full 0 | full 1 | ... | full n-1 | tail            the end is a whole number of quanta
    full 0 | full 1 | ... |     [tail ]                it is not: the tail is moved back, overlaps
                        full n-1 |                     the last full portion and is computed twice

The overlapping tail belongs to the block of its predecessor, so no two blocks write one byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from davinci.errors import CompileError

LEAST_BYTES = 4096
"""Bytes below which a portion is not cut further to occupy more cores: the start of a transfer
(docs/hardware.md b3) would take longer than the data."""


SLOTS = 2
"""Pieces of work whose buffers a core has at a time, where UB has room for them."""


@dataclass(frozen=True)
class Portions:
    """`count` portions of `size` elements, then `tail` elements that end at `total`.

    The tail is 0 if there is none. With `count` 0 the tail is the whole array, of any size; else it
    is a whole number of quanta and `overlaps` the portion before where it had to be moved back.
    """

    total: int
    size: int
    count: int
    tail: int

    @property
    def tail_start(self) -> int:
        return self.total - self.tail

    @property
    def overlaps(self) -> bool:
        return self.tail_start < self.count * self.size

    @property
    def units(self) -> int:
        """Pieces of work: a portion, or two that overlap."""
        return self.count - self.overlaps + bool(self.tail)

    @property
    def tiles(self) -> int:
        """How many there are, the tail too."""
        return self.count + bool(self.tail)

    @property
    def largest(self) -> int:
        return max(self.size if self.count else 0, self.tail)


class AlikePieces:
    """A way to do work that is dealt out in pieces, all of them alike but for the longest.

    Attributes:
        cycles: of a piece by itself.
        further: of each that the same core does behind it.
    """

    cycles: float
    further: float

    def time(self, units: int) -> float:
        """Estimated cycles of a core that does so many pieces, the longest among them."""
        return self.cycles + self.further * (units - 1)


class SharedWork(Protocol):
    """Work in `units` pieces, of which `time` says how long a core needs for some."""

    @property
    def units(self) -> int: ...

    def time(self, units: int) -> float: ...


def longest_share(works: Sequence[SharedWork], cores: int, saved: float = 0.0) -> float:
    """Estimated cycles of the core that has most to do, where the pieces of several works are dealt
    out to the cores in turn. Pieces of one work overlap on a core, those of different ones do not.

    Args:
        saved: cycles by which work behind other work overlaps it nevertheless.
    """
    busy, before = [0.0] * cores, 0
    for work in works:
        own, rest = divmod(work.units, cores)
        for core in range(cores):
            units = own + ((core - before) % cores < rest)
            if units:
                busy[core] += work.time(units) - (saved if busy[core] else 0)
        before += work.units
    return max(busy)


def cut(total: int, quantum: int, granule: int, most: int, least: int, cores: int) -> Portions:
    """Cuts `total` elements into equal portions, as many for each core as for the others, and a
    smaller last one.

    Args:
        quantum: the tail of a cut array is a multiple of this (a 32-byte block).
        granule: full portions are multiples of this (a whole repeat), itself a multiple of quantum.
        most: elements that fit UB.
        least: elements below which a portion is not cut to occupy more cores.
        cores: blocks that could share the work.

    Raises:
        CompileError: not even one granule fits.
    """
    limit = most // granule * granule
    if limit == 0:
        raise CompileError(
            "a single row of vectors does not fit UB",
            found=f"room for {most} elements",
            expected=f"at least {granule}",
        )
    share = -(-total // cores)
    even = -(-share // -(-share // limit))
    size = min(limit, -(-max(even, least) // granule) * granule)
    if total <= size:
        return Portions(total, size, 0, total)
    count, rest = divmod(total, size)
    return Portions(total, size, count, -(-rest // quantum) * quantum)


def in_blocks(portions: Portions, block: int) -> Portions:
    """The same portions; a single ragged one longer than a block becomes whole blocks and a last
    block that overlaps them."""
    total = portions.total
    if portions.count or total % block == 0 or total < block:
        return portions
    return Portions(total, total // block * block, 1, block)
