"""The L2: which lines of global memory it holds, and what a launch moves through it.

The lines that were not used for longest leave it first; those that were written go to memory then.
A transfer that bypasses the L2 brings nothing in; what is there all the same it reads and writes
there. Blocks that run at the same time have their transfers merged in time: each block moves on at
an even pace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from davinci.machine import Machine
from davinci.simulator.core.regions import Region
from davinci.units import ceil_div

Lines = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]

WRITTEN, DIRECT = 1, 2
"""Bits of a kind of access: it writes; it bypasses the L2."""
READS, STORES, DIRECT_READS, DIRECT_STORES = range(4)

CHUNKS = 8
"""Parts of the L2's capacity that are looked up at once: hits inside a part are always hits."""

Transfer = tuple[Region, int, bool, bool]
"""Region, address, whether it is written, whether it bypasses the L2."""


@dataclass(frozen=True)
class Touched:
    """Numbers of the lines that a block touches, in order, the kind of each access, and the bytes
    of each kind: rows need not use all of a line."""

    lines: Lines
    kinds: Kinds
    sizes: tuple[int, int, int, int]

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes)


@dataclass(frozen=True)
class Traffic:
    """What a launch moved between its cores and the L2, and between the L2 and the memory.

    What is not used of a line that comes in was read from the memory all the same. `others` says
    how many other cores read a line at about the same time as one does, on average; `missing` is
    the part of the lines read that the L2 had not.
    """

    read_bytes: float = 1
    write_bytes: float = 1
    filled_bytes: float = 1
    written_back_bytes: float = 1
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
    def write_back_rate(self) -> float:
        """Bytes to the memory for each byte written."""
        return self.written_back_bytes / self.write_bytes if self.write_bytes else 0.0


UNCACHED = Traffic()
"""All of a launch's bytes pass the memory."""


@dataclass(frozen=True)
class Served:
    """How the L2 served a launch: all in all, and the parts of each round, one after the other."""

    traffic: Traffic
    rounds: Sequence[Sequence[Traffic]]


class L2:
    """Which lines of global memory are in the L2, from launch to launch; empty at first."""

    def __init__(self, machine: Machine, gm_bytes: int) -> None:
        self._line = machine.gm.line_bytes
        self._capacity = machine.l2.bytes // self._line
        self._count = ceil_div(gm_bytes, self._line) + 1
        self.flush()

    def flush(self) -> None:
        """Empties it."""
        self._dirty: npt.NDArray[np.bool_] = np.zeros(self._count, dtype=np.bool_)
        # The number of the step in which a line was last used; 0: it is not there.
        self._used: Lines = np.zeros(self._count, dtype=np.int64)
        self._steps: deque[tuple[int, Lines]] = deque()
        self._step = self._held = 0

    def launch(self, rounds: Sequence[Sequence[Touched]]) -> Served:
        """Passes the transfers of a launch through the L2.

        Args:
            rounds: the blocks that run at the same time, and those that run after them.
        """
        served = [list(self._round(blocks)) for blocks in rounds]
        parts = [part for round_ in served for part, _, _ in round_]
        common = sum(common for round_ in served for _, common, _ in round_)
        read = sum(read for round_ in served for _, _, read in round_)
        read_bytes = sum(
            b.sizes[READS] + b.sizes[DIRECT_READS] for blocks in rounds for b in blocks
        )
        missed = sum(part.missing * part.read_bytes for part in parts)
        total = Traffic(
            read_bytes,
            sum(b.sizes[STORES] + b.sizes[DIRECT_STORES] for blocks in rounds for b in blocks),
            round(sum(part.filled_bytes for part in parts)),
            round(sum(part.written_back_bytes for part in parts)),
            common / read if read else 0.0,
            missed / read_bytes if read_bytes else 0.0,
        )
        return Served(total, [[part for part, _, _ in round_] for round_ in served])

    def _round(self, blocks: Sequence[Touched]) -> Iterator[tuple[Traffic, int, int]]:
        """The parts of a round: traffic, other cores that read the same line, line reads."""
        lines, kinds, owners = _merged(blocks, self._capacity)
        sizes = np.sum([block.sizes for block in blocks], axis=0)
        each = sizes / np.maximum(np.bincount(kinds, minlength=4), 1)
        size = max(self._capacity // CHUNKS, 1)
        for i in range(0, lines.size, size):
            chunk, kind = lines[i : i + size], kinds[i : i + size]
            stores, cached = kind & WRITTEN != 0, kind < DIRECT
            common = read = 0
            if len(blocks) > 1:
                pairs = np.unique(chunk[~stores] * len(blocks) + owners[i : i + size][~stores])
                _, counts = np.unique(pairs // len(blocks), return_counts=True)
                common, read = int((counts * (counts - 1)).sum()), pairs.size
            absent = self._used[chunk] == 0
            wanted = np.flatnonzero(absent & cached)
            coming, places = np.unique(chunk[wanted], return_index=True)
            filled = int(np.count_nonzero(~stores[wanted[places]]))
            back = self._use(coming, chunk[~absent])
            kept = chunk[stores]
            self._dirty[kept[self._used[kept] > 0]] = True
            passing = np.bincount(kind[self._used[chunk] == 0], minlength=4)
            moved = (np.bincount(kind, minlength=4) * each).tolist()
            passed = (passing * each).tolist()
            part = Traffic(
                moved[READS] + moved[DIRECT_READS],
                moved[STORES] + moved[DIRECT_STORES],
                filled * self._line + passed[DIRECT_READS],
                back * self._line + passed[DIRECT_STORES],
                common / read if read else 0.0,
                (filled + passing[DIRECT_READS]) / max(int(np.count_nonzero(~stores)), 1),
            )
            yield part, common, read

    def _use(self, coming: Lines, present: Lines) -> int:
        """Brings lines in, notes that others are used; returns how many had to be written to
        memory for that."""
        self._step += 1
        self._used[coming] = self._used[present] = self._step
        self._steps.append((self._step, np.concatenate([coming, present])))
        self._held += coming.size
        back = 0
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


def _merged(blocks: Sequence[Touched], capacity: int) -> tuple[Lines, Kinds, Lines]:
    """The lines that concurrent blocks touch, in time, the kinds of the accesses, and whose they
    are."""
    lines = np.concatenate([block.lines for block in blocks])
    kinds = np.concatenate([block.kinds for block in blocks])
    owners = np.repeat(np.arange(len(blocks)), [block.lines.size for block in blocks])
    if lines.size > capacity // CHUNKS:
        time = np.concatenate([np.linspace(0, 1, block.lines.size) for block in blocks])
        order = np.argsort(time, kind="stable")
        lines, kinds, owners = lines[order], kinds[order], owners[order]
    return lines, kinds, owners


def lines_touched(transfers: Iterable[Transfer], line_bytes: int) -> Touched:
    """The lines that a block's transfers touch.

    Args:
        transfers: in order.
        line_bytes: size of a line.
    """
    first: list[int] = []
    last: list[int] = []
    kinds: list[int] = []
    sizes = [0, 0, 0, 0]
    for region, address, written, direct in transfers:
        kind = written * WRITTEN + direct * DIRECT
        sizes[kind] += region.size_bytes
        if region.contiguous:
            first.append((address + region.low) // line_bytes)
            last.append((address + region.high - 1) // line_bytes)
            kinds.append(kind)
        else:
            starts, lengths = region.runs
            first += ((starts + address) // line_bytes).tolist()
            last += ((starts + (lengths - 1) + address) // line_bytes).tolist()
            kinds += [kind] * starts.size
    begins = np.array(first, dtype=np.int64)
    counts = np.maximum(np.array(last, dtype=np.int64) - begins + 1, 0)
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    each = np.repeat(np.array(kinds, dtype=np.uint8), counts)
    reads, stores, direct_reads, direct_stores = sizes
    return Touched(
        np.repeat(begins, counts) + inside, each, (reads, stores, direct_reads, direct_stores)
    )
