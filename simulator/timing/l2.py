"""The L2: which lines of global memory it holds, and what a launch moves through it.

The lines that were not used for longest leave it first; those that were written go to memory then.
A run may find the L2 full of what runs before it left, as it is where runs follow each other: what
they wrote goes to the memory while this one runs, as what this one writes does in the next.
A transfer that bypasses the L2 brings nothing in; what is there all the same it reads and writes
there. Blocks that run at the same time have their transfers merged in time: each block moves on at
an even pace, or as a first time line says (`pace.Paces`). A round of blocks is looked up in parts,
one after the other: what is read again in a later part does not make the first time faster, and
what leaves is paid for by what takes its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from davinci.machine import Machine
from davinci.native import Floats
from davinci.simulator.timing.l2_lines import COUNTS, OWNERS_A_WORD
from davinci.simulator.timing.layout import LIBRARY
from davinci.units import ceil_div

Lines = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]
Common = npt.NDArray[np.float64]
Cut = Callable[[int], Floats]
"""Cuts a round into so many parts; see `pace.Paces.cut`."""

WRITTEN, DIRECT = 1, 2
"""Bits of a kind of access: it writes; it bypasses the L2."""
READS, STORES, DIRECT_READS, DIRECT_STORES = range(4)

CHUNKS = 8
"""Parts of the L2's capacity that are looked up at most at once: hits inside a part are always
hits. Blocks that read a line in the same one do so at about the same time."""

PARTS = 32
"""Parts of a round, if its blocks have so many accesses: assumed, so many that none is longer than
a few transfers of a kernel that fills the buffers on the chip a few times."""


@dataclass(frozen=True)
class Touched:
    """Numbers of the lines that a block touches, in order, the kind of each access, and the bytes
    of each kind: rows need not use all of a line. `reads` has the first and the last access, and
    one more, of each read of MTE2, where it matters which of them have lines in common."""

    lines: Lines
    kinds: Kinds
    sizes: tuple[int, int, int, int]
    reads: Lines = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes)


@dataclass(frozen=True)
class LaunchTraffic:
    """What a launch moved between its cores and the L2, and between the L2 and the memory.

    What is not used of a line that comes in was read from the memory all the same.
    `read_back_bytes` are those written back to make room for what is read. `others` says how many
    other cores read a line at about the same time as one does, on average; `missing` is the part
    of the lines read that the L2 had not.
    """

    read_bytes: float = 1
    write_bytes: float = 1
    filled_bytes: float = 1
    written_back_bytes: float = 1
    read_back_bytes: float = 0
    others: float = 0.0
    missing: float = 1.0

    @property
    def miss_rate(self) -> float:
        """Bytes from the memory for each byte read."""
        return self.filled_bytes / self.read_bytes if self.read_bytes else 0.0

    @property
    def read_hit_rate(self) -> float:
        """Share of the bytes read that the L2 had."""
        return max(0.0, 1.0 - self.miss_rate)

    @property
    def read_back_rate(self) -> float:
        """Bytes to the memory for each byte read."""
        return self.read_back_bytes / self.read_bytes if self.read_bytes else 0.0

    @property
    def write_back_rate(self) -> float:
        """Bytes to the memory for each byte written."""
        back = self.written_back_bytes - self.read_back_bytes
        return back / self.write_bytes if self.write_bytes else 0.0


UNCACHED = LaunchTraffic()
"""The traffic of a launch without an L2: all of its bytes pass the memory."""


@dataclass(frozen=True)
class Served:
    """How the L2 served a launch: all in all, and the parts of each round, one after the other.
    `readers` has, for each block of each round and each of its reads by MTE2, its lines, and how
    often all cores together read these; nothing where that does not matter. `ends` has the bytes
    that each block of each round has moved at the ends of parts, see `pace.Paces.cut`; nothing
    where it moves on evenly."""

    traffic: LaunchTraffic
    rounds: Sequence[Sequence[LaunchTraffic]]
    readers: Sequence[Sequence[Common]] = ()
    ends: Sequence[Floats] = ()


@dataclass(frozen=True)
class Looked:
    """A part of a round: traffic, how often two blocks read the same line, lines read by each."""

    traffic: LaunchTraffic
    common: int
    read: int


class L2:
    """Which lines of global memory are in the L2, from launch to launch; empty at first, or with
    what an earlier run left."""

    def __init__(self, machine: Machine, gm_bytes: int) -> None:
        self._line = machine.gm.line_bytes
        self._follows_readers = machine.gm.same_line_request_cycles > 0
        self._capacity = machine.l2.bytes // self._line
        self._count = ceil_div(gm_bytes, self._line) + 1
        # All zero but while accesses are looked up.
        self._fresh: Kinds = np.zeros(self._count, dtype=np.uint8)
        self._readers: Lines = np.zeros(0, dtype=np.int64)
        self.flush()

    def flush(self, dirty_share: float | None = 0.0) -> None:
        """Empties it of what was used.

        Args:
            dirty_share: of lines that an earlier run left in it, which nothing reads again, so many
                were written and go to the memory when others take their place; 0: it is empty;
                None: as many as the next launch writes of those that it touches.
        """
        self._own_share = dirty_share is None
        self._leave_behind(dirty_share or 0.0)
        self._dirty: Kinds = np.zeros(self._count, dtype=np.uint8)
        # The number of the step in which a line was last used; 0: it is not there.
        self._used: Lines = np.zeros(self._count, dtype=np.int64)
        self._steps: deque[tuple[int, Lines]] = deque()
        self._step = self._held = 0

    def _leave_behind(self, dirty_share: float) -> None:
        """Has an earlier run have left it full, with so many of its lines written; empty if 0."""
        self._dirty_share, self._left = dirty_share, self._capacity if dirty_share else 0

    def forget(self, address: int, nbytes: int) -> None:
        """Lets go of the lines of bytes that are overwritten in the memory."""
        lines = slice(address // self._line, ceil_div(address + nbytes, self._line))
        self._held -= int(np.count_nonzero(self._used[lines]))
        self._used[lines] = 0
        self._dirty[lines] = 0

    def launch(self, rounds: Sequence[Sequence[Touched]], cuts: Sequence[Cut] = ()) -> Served:
        """Passes the transfers of a launch through the L2.

        Args:
            rounds: the blocks that run at the same time, and those that run after them.
            cuts: how the blocks of each round move on; none: evenly.
        """
        if self._own_share:
            self._leave_behind(share_written([block for blocks in rounds for block in blocks]))
            self._own_share = False
        self._common: list[list[Common]] = []
        self._ends: list[Floats] = []
        served = [
            list(self._round(blocks, cuts[number] if cuts else None))
            for number, blocks in enumerate(rounds)
        ]
        found = [looked for round_ in served for looked in round_]
        parts = [looked.traffic for looked in found]
        common, read = sum(looked.common for looked in found), sum(looked.read for looked in found)
        read_bytes = sum(
            b.sizes[READS] + b.sizes[DIRECT_READS] for blocks in rounds for b in blocks
        )
        missed = sum(part.missing * part.read_bytes for part in parts)
        total = LaunchTraffic(
            read_bytes,
            sum(b.sizes[STORES] + b.sizes[DIRECT_STORES] for blocks in rounds for b in blocks),
            round(sum(part.filled_bytes for part in parts)),
            round(sum(part.written_back_bytes for part in parts)),
            sum(part.read_back_bytes for part in parts),
            common / read if read else 0.0,
            missed / read_bytes if read_bytes else 0.0,
        )
        parts_of = [[looked.traffic for looked in round_] for round_ in served]
        return Served(total, parts_of, self._common, self._ends)

    def foretell(self, rounds: Sequence[Sequence[Touched]], cuts: Sequence[Cut]) -> Served:
        """Returns what `launch` would return, and leaves the L2 as it is."""
        other = copy(self)
        other._dirty, other._used = self._dirty.copy(), self._used.copy()
        other._steps = self._steps.copy()
        return other.launch(rounds, cuts)

    def _round(self, blocks: Sequence[Touched], cut: Cut | None) -> Iterator[Looked]:
        """The parts of a round."""
        lines = np.concatenate([block.lines for block in blocks])
        kinds = np.concatenate([block.kinds for block in blocks])
        if not lines.size:
            if self._follows_readers:
                self._common.append([np.zeros((0, 2)) for _ in blocks])
            if cut is not None:
                self._ends.append(np.zeros((1, len(blocks))))
            return
        counts = np.array([block.lines.size for block in blocks])
        starts = np.cumsum(counts) - counts
        sizes = np.sum([block.sizes for block in blocks], axis=0)
        each = sizes / np.maximum(np.bincount(kinds, minlength=4), 1)
        words = 1 + ceil_div(len(blocks), OWNERS_A_WORD) if len(blocks) > 1 else 0
        if words * self._count > self._readers.size:
            self._readers = np.zeros(words * self._count, dtype=np.int64)
        chunks = ceil_div(lines.size, max(self._capacity // CHUNKS, 1))
        in_chunk = ceil_div(min(PARTS, int(counts.max())), chunks)

        noted: Lines = np.ones(lines.size if self._follows_readers else 0, dtype=np.int64)

        edges = self._edges(starts, counts, chunks * in_chunk, cut)

        def accesses(first: int, end: int) -> Lines:
            """The lines that each block touches in these parts, [blocks, 2]: first and behind the
            last."""
            return np.ascontiguousarray(edges[[first, end]].T)

        for first in range(0, chunks * in_chunk, in_chunk):
            for part in range(first, first + in_chunk):
                yield self._look_up(lines, kinds, accesses(part, part + 1), words, each)
            bounds = accesses(first, first + in_chunk)
            if self._follows_readers and words:
                LIBRARY.call(
                    "note_readers", lines, bounds, len(blocks), self._readers, words, noted
                )
            LIBRARY.call("forget_readers", lines, bounds, len(blocks), self._readers, words)
        if self._follows_readers:
            self._note_common(blocks, starts, noted)

    def _edges(self, starts: Lines, counts: Lines, parts: int, cut: Cut | None) -> Lines:
        """Where the parts of a round begin and end among its lines, [parts + 1, blocks]: each block
        has its lines in equal parts, or as `cut` says how far it is.

        Args:
            starts, counts: the first line of each block, and how many it touches.
        """
        if cut is None:
            numbers: Lines = np.arange(parts + 1)
            even: Lines = starts + counts * numbers[:, None] // parts
            return even
        moved = cut(parts)
        self._ends.append(moved)
        shares = moved / np.maximum(moved[-1], 1)
        shares[-1] = 1
        edges: Lines = starts + np.rint(counts * shares).astype(np.int64)
        return edges

    def _note_common(self, blocks: Sequence[Touched], starts: Lines, noted: Lines) -> None:
        """Notes for each read of each block how many lines it touches, and by how many blocks they
        are read in all.

        Args:
            starts: the first line of each block.
            noted: readers of each line.
        """
        sums = np.concatenate([[0], np.cumsum(noted)])
        read = [block.reads for block in blocks]
        ends = np.cumsum([len(each) for each in read])
        places = np.concatenate(read)
        there = places + np.repeat(starts, np.diff(ends, prepend=0))[:, None]
        readers = sums[there[:, 1]] - sums[there[:, 0]]
        found = np.stack([places[:, 1] - places[:, 0], readers], axis=1).astype(np.float64)
        self._common.append(np.split(found, ends[:-1]))

    def _look_up(
        self, lines: Lines, kinds: Kinds, bounds: Lines, words: int, each: npt.NDArray[np.float64]
    ) -> Looked:
        """Passes a part of a round through the L2; see `l2_lines`.

        Args:
            each: bytes of an access of each kind.
        """
        self._step += 1
        count = int((bounds[:, 1] - bounds[:, 0]).sum())
        counts: Lines = np.zeros(COUNTS, dtype=np.int64)
        coming, present = np.empty(count, np.int64), np.empty(count, np.int64)
        LIBRARY.call(
            "look_up", lines, kinds, bounds, len(bounds), self._used, self._step,
            self._readers, words, self._fresh, coming, present, counts,
        )  # fmt: skip
        came, stayed, filled, read, common, reads = counts.tolist()
        back = self._make_room(coming[:came], present[:stayed])
        accesses: Lines = np.zeros(4, dtype=np.int64)
        passing: Lines = np.zeros(4, dtype=np.int64)
        LIBRARY.call(
            "write_lines", lines, kinds, bounds, len(bounds), self._used, self._dirty, accesses,
            passing,
        )  # fmt: skip
        moved, passed = (accesses * each).tolist(), (passing * each).tolist()
        traffic = LaunchTraffic(
            moved[READS] + moved[DIRECT_READS],
            moved[STORES] + moved[DIRECT_STORES],
            filled * self._line + passed[DIRECT_READS],
            back * self._line + passed[DIRECT_STORES],
            back * self._line * filled / max(came, 1),
            missing=(filled + int(passing[DIRECT_READS])) / max(reads, 1),
        )
        return Looked(traffic, common, read)

    def _make_room(self, coming: Lines, present: Lines) -> int:
        """Makes room for what was used in this step; returns how many lines went back to memory."""
        self._steps.append((self._step, np.concatenate([coming, present])))
        self._held += coming.size
        back = self._leave(min(self._left, self._held + self._left - self._capacity))
        while self._held > self._capacity:
            step, lines = self._steps.popleft()
            leaving = np.unique(lines[self._used[lines] == step])
            over = self._held - self._capacity
            if leaving.size > over:
                self._steps.appendleft((step, leaving[over:]))
                leaving = leaving[:over]
            back += int(np.count_nonzero(self._dirty[leaving]))
            self._dirty[leaving] = False
            self._used[leaving] = 0
            self._held -= leaving.size
        return back

    def _leave(self, lines: int) -> int:
        """Lines of an earlier run make room; returns how many of them went back to memory."""
        if lines <= 0:
            return 0
        before = round(self._left * self._dirty_share)
        self._left -= lines
        return before - round(self._left * self._dirty_share)


def share_written(blocks: Sequence[Touched]) -> float:
    """The part of the lines of the L2 that blocks touch which they also write, 0 to 1."""
    nothing = Touched(np.zeros(0, np.int64), np.zeros(0, np.uint8), (0, 0, 0, 0))
    lines = np.concatenate([block.lines for block in (nothing, *blocks)])
    kinds = np.concatenate([block.kinds for block in (nothing, *blocks)])
    count = distinct(lines[kinds & DIRECT == 0])
    return distinct(lines[kinds == STORES]) / count if count else 0.0


def distinct(lines: Lines) -> int:
    """The number of different lines."""
    there = np.zeros(int(lines.max(initial=-1)) + 1, np.bool_)
    there[lines] = True
    return int(np.count_nonzero(there))
