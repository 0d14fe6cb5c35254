"""Races between the blocks of one launch: nothing orders them, so no byte of GM that one block
writes may be touched by another, of the same kernel or of one that shares the launch.

Stores that add elements of one type are indivisible: blocks may add to the same bytes, as long as
they do nothing else with them. Where a launch says so, blocks may also store to the same bytes, as
long as all of them leave the same there: which of them is the last one decides on nothing.

What the scalar unit did is known as bounds only and takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import permutations
from typing import NamedTuple, Protocol

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa import Space
from davinci.native import Bytes, Ints
from davinci.simulator.checks.races import GmAccess, Party, members
from davinci.simulator.core.core import Core
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.regions import first_common, union

Ranges = tuple[Ints, Ints]
"""Starts and ends of ranges of bytes: sorted, disjoint, maximal."""


class BlockBytes(NamedTuple):
    """Bytes of global memory that a block touches.

    Attributes:
        reads, writes: by what only reads, and by what only writes.
        adds: by stores that add, by element type.
    """

    reads: Ranges
    writes: Ranges
    adds: Mapping[str, Ranges]


SHARED = -1
"""In the place of a block: bytes that several blocks write."""

READS, WRITES, ADDS = "reads", "writes", "adds to"
"""What messages say that a block does to a byte."""


@dataclass(frozen=True)
class BlockConflict:
    """A byte of GM to which block `first` `did`, and block `second` `does` what may not both be."""

    byte: int
    first: int
    did: str
    second: int
    does: str


def conflict(blocks: Mapping[int, BlockBytes]) -> BlockConflict | None:
    """What two blocks may not do both, if there is any.

    Args:
        blocks: by number, what each reads and writes.
    """
    found = _of_writes(blocks)
    if found is None and any(each.adds for each in blocks.values()):
        return _of_adds(blocks)
    return found


def _of_writes(blocks: Mapping[int, BlockBytes]) -> BlockConflict | None:
    """A byte that one block writes and another one writes or reads."""
    starts, ends, owners = _joined({block: each.writes for block, each in blocks.items()})
    order = np.argsort(starts, kind="stable")
    starts, ends, owners = starts[order], ends[order], owners[order]
    if starts.size > 1:
        reach = np.maximum.accumulate(ends)
        hit = np.flatnonzero(reach[:-1] > starts[1:])
        if hit.size:
            later = int(hit[0]) + 1
            before = int(np.flatnonzero(ends[:later] > starts[later])[0])
            byte = int(starts[later])
            return BlockConflict(byte, int(owners[before]), WRITES, int(owners[later]), WRITES)
    low, high, readers = _joined({block: each.reads for block, each in blocks.items()})
    # The written ranges are disjoint: those that a read meets are neighbours.
    first = np.searchsorted(ends, low, side="right")
    last = np.searchsorted(starts, high, side="left")
    met = np.flatnonzero(last > first)
    first, last, readers = first[met], last[met], readers[met]
    # Neighbours with one owner have one number here.
    runs = np.cumsum(np.diff(owners, prepend=owners[:1]) != 0)
    hit = np.flatnonzero((owners[first] != readers) | (runs[first] != runs[last - 1]))
    if not hit.size:
        return None
    i, block = int(hit[0]), int(readers[hit[0]])
    writer = next(j for j in range(int(first[i]), int(last[i])) if owners[j] != block)
    byte = int(max(low[met[i]], starts[writer]))
    return BlockConflict(byte, int(owners[writer]), WRITES, block, READS)


def _of_adds(blocks: Mapping[int, BlockBytes]) -> BlockConflict | None:
    """A byte to which one block adds, and which another one reads, writes, or adds to as elements
    of another type."""
    for (first, one), (second, other) in permutations(blocks.items(), 2):
        for kind, ranges in one.adds.items():
            foreign = [(READS, other.reads), (WRITES, other.writes)]
            foreign += [(ADDS, found) for own, found in other.adds.items() if own != kind]
            for does, theirs in foreign:
                if theirs[0].size and (common := first_common(*ranges, *theirs)) is not None:
                    return BlockConflict(common[0], first, ADDS, second, does)
    return None


def touched_by(reads: Sequence[GmAccess], writes: Sequence[GmAccess]) -> BlockBytes:
    """The bytes of a block's accesses. A store that adds is in both lists."""
    kinds = {access.party.form.adds for access in writes} - {""}
    return BlockBytes(
        merged([access for access in reads if not access.party.form.adds]),
        merged([access for access in writes if not access.party.form.adds]),
        {k: merged([access for access in writes if access.party.form.adds == k]) for k in kinds},
    )


def touched(core: Core) -> BlockBytes:
    """What the program that ran last on a core that checks did to global memory."""
    return touched_by(core.gm_reads, core.gm_writes)


class Accessed(Protocol):
    """A core that has run a program, or what is known of it; see `Core`."""

    @property
    def gm_reads(self) -> list[GmAccess]: ...

    @property
    def gm_writes(self) -> list[GmAccess]: ...

    @property
    def describer(self) -> Callable[[], Callable[[Party], str]]: ...

    @property
    def memory(self) -> Callable[[Space], Memory]: ...


class BlockRaces:
    """Collects what each block did to global memory.

    Args:
        kernel: its name, for messages; of several kernels their names.
        named: what messages call a block of that number.
        alike: blocks may store the same to the same bytes.
    """

    def __init__(
        self,
        kernel: str,
        named: Callable[[int], str] = lambda block: f"block {block}",
        alike: bool = False,
    ) -> None:
        self._kernel, self._named, self._alike = kernel, named, alike
        self._left: dict[int, StoredBytes] = {}
        self._logs: dict[int, tuple[list[GmAccess], list[GmAccess]]] = {}
        self._describe: dict[int, Callable[[Party], str]] = {}

    def add(self, block: int, core: Accessed) -> None:
        """Takes over the accesses of a program of that block that has ended."""
        reads, writes = self._logs.setdefault(block, ([], []))
        reads += core.gm_reads
        writes += core.gm_writes
        self._describe[block] = core.describer()
        if self._alike:
            stored = merged([a for a in core.gm_writes if not a.party.form.adds])
            memory = core.memory(Space.GM).data
            self._left[block] = StoredBytes(stored, digest(memory, stored), memory)

    def check(self) -> None:
        """Compares all blocks.

        Raises:
            DeviceFault: two blocks write the same byte, one reads what another writes, or one adds
                to what another one does not add to.
        """
        logs = self._logs.items()
        blocks = {block: touched_by(reads, writes) for block, (reads, writes) in logs}
        found = conflict(blocks)
        if found is not None and self._alike and all(s.unchanged() for s in self._left.values()):
            found = conflict(apart(blocks))
        if found is not None:
            raise self._fault(found)

    def _fault(self, found: BlockConflict) -> DeviceFault:
        byte = found.byte
        if found.first == SHARED:
            owners = (b for b, left in self._left.items() if b != found.second and left.has(byte))
            found = replace(found, first=next(owners))
        first = self._touching(found.first, found.did, byte)
        second = self._touching(found.second, found.does, byte)
        return DeviceFault(
            f"race between blocks: {self._named(found.second)} {found.does} GM byte {byte:#x} "
            f"({second}), which {self._named(found.first)} {found.did} ({first})",
            where=f"kernel {self._kernel}",
            expected="blocks that write different bytes and read none that another block writes",
            hint="nothing orders the blocks of one launch: change the split, or use two launches",
        )

    def _touching(self, block: int, does: str, byte: int) -> str:
        """The first instruction of a block that does so to a byte, in words."""
        for access in self._logs[block][does != READS]:
            if bool(access.party.form.adds) != (does == ADDS):
                continue
            for region, address, party in members(access.region, access.address, access.party):
                starts, lengths = region.runs
                starts = starts + address
                if ((starts <= byte) & (byte < starts + lengths)).any():
                    return self._describe[block](party)
        return "unknown instruction"


class StoredBytes(NamedTuple):
    """The bytes of global memory that a block stored, as they were when it ended.

    Attributes:
        ranges: where.
        values: the digest of the bytes there.
        memory: the whole of it.
    """

    ranges: Ranges
    values: bytes
    memory: Bytes

    def unchanged(self) -> bool:
        """Whether the bytes are there still: no other block has stored others."""
        return self.values == digest(self.memory, self.ranges)

    def has(self, byte: int) -> bool:
        """Whether a byte is among them."""
        starts, ends = self.ranges
        return bool(((starts <= byte) & (byte < ends)).any())


def digest(memory: Bytes, ranges: Ranges) -> bytes:
    """Tells the bytes of ranges from others."""
    found = sha256()
    for low, high in zip(*map(Ints.tolist, ranges), strict=True):
        found.update(memory[low:high].data)
    return found.digest()


def apart(blocks: Mapping[int, BlockBytes]) -> dict[int, BlockBytes]:
    """The same, with bytes that several blocks write as those of `SHARED` instead."""
    starts, ends, owners = _joined({block: each.writes for block, each in blocks.items()})
    places = np.unique(np.concatenate([starts, ends]))
    count = np.zeros(places.size, dtype=np.int64)
    owner = np.zeros(places.size, dtype=np.int64)
    for where, sign in ((starts, 1), (ends, -1)):
        at = np.searchsorted(places, where)
        np.add.at(count, at, sign)
        np.add.at(owner, at, sign * owners)
    count, owner = np.cumsum(count), np.cumsum(owner)
    owner = np.where(count > 1, SHARED, owner)
    nothing: Ranges = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    found = {SHARED: BlockBytes(nothing, nothing, {})}
    for block, each in {**found, **blocks}.items():
        mine = np.flatnonzero((count > 0) & (owner == block))
        found[block] = each._replace(writes=(places[mine], places[mine + 1]))
    return found


def merged(log: Sequence[GmAccess]) -> Ranges:
    """The bytes that a log touches."""
    return union((access.region, access.address) for access in log)


def _joined(blocks: dict[int, Ranges]) -> tuple[Ints, Ints, Ints]:
    starts = np.concatenate([low for low, _ in blocks.values()])
    ends = np.concatenate([high for _, high in blocks.values()])
    owners = np.concatenate([np.full(low.size, b) for b, (low, _) in blocks.items()])
    return starts, ends, owners
