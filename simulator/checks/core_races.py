"""Races between the cores of one launch on a split machine: accesses to the same bytes of GM, or of
a memory on the chip that several cores reach, one of them a write, that no flag between cores
orders.

An access knows, by the flags its core has waited for, up to which instruction each pipe of each
other core was complete. Of the accesses of another pipe, those behind that point which do not know
this one either are unordered: a window of them, since both grow in program order.

Where a launch says so, reads of a program that nothing leaves are no party to a race: AscendNPU-IR
has the second vector core of a block do all that the first one does but for the stores, and what it
reads stays with it. Stores that leave the same at the same place are none, either: both vector
cores of a block hand the cube core the same scalar.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import combinations

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa import Space
from davinci.isa.counters import LINE_BYTES
from davinci.simulator.checks.block_races import merged
from davinci.simulator.checks.races import GmAccess, add_alike, store_alike
from davinci.simulator.checks.shared_memory import in_words
from davinci.simulator.core.core import Core
from davinci.simulator.core.regions import Ints
from davinci.simulator.split.cross_core import Seat

BY_FLAGS = (
    "set a flag after the first access (ffts_cross_core_sync, on its pipe) and wait for it before "
    "the second (wait_flag_dev)"
)
BY_COUNTERS = "let the blocks meet between the two (cce.sync_cores; post_counter, poll_counters)"


class PipeLog:
    """The accesses of one pipe of one core, reads or writes, in program order."""

    def __init__(self, accesses: list[GmAccess]) -> None:
        self.accesses = accesses
        self.numbers = np.array([a.number for a in accesses], dtype=np.int64)
        self.lows = np.array([a.address + a.region.low for a in accesses], dtype=np.int64)
        self.highs = np.array([a.address + a.region.high for a in accesses], dtype=np.int64)

    def known(self, seat: int, pipe: int) -> Ints:
        """How many instructions of a pipe of another core each access knows to be complete."""
        clocks = [access.known.get(seat) for access in self.accesses]
        return np.array([0 if clock is None else clock[pipe] for clock in clocks], dtype=np.int64)


class GmAccesses:
    """Some accesses of a program to global memory, and the ranges that they touch."""

    def __init__(self, reads: list[GmAccess], writes: list[GmAccess]) -> None:
        self.reads, self.writes = by_pipe(reads), by_pipe(writes)
        self.read_ranges, self.write_ranges = merged(reads), merged(writes)


class GmLog:
    """What one program has read and written in global memory.

    Attributes:
        plain: its accesses.
        counting: those of lines of counters, which are unordered only with plain ones.

    Args:
        counters: addresses of lines of counters.
        vain: leave out reads of a program that nothing leaves.
    """

    def __init__(
        self, seat: Seat, core: Core, counters: Collection[int] = (), vain: bool = False
    ) -> None:
        self.seat, self.describe = seat, core.describer()
        parts: list[tuple[list[GmAccess], list[GmAccess]]] = [([], []), ([], [])]
        for number, accesses in enumerate((core.gm_reads, core.gm_writes)):
            for access in accesses:
                parts[bool(counters) and counts(access, counters)][number].append(access)
        if vain and reads_in_vain(core):
            parts = [([], writes) for _, writes in parts]
        self.plain, self.counting = (GmAccesses(reads, writes) for reads, writes in parts)


def reads_in_vain(core: Core) -> bool:
    """Whether nothing that a program's units read can reach another core, or decide what it does:
    it writes no memory that others see, and its scalar unit accesses global memory only to load."""
    if core.gm_writes:
        return False
    steps = np.unique(core.timeline.steps()).tolist()
    forms = [core.timeline.tables.forms_of_steps[step] for step in steps]
    scalar = [form for form in forms if form.summary]
    return not any(
        form.writes or any(port.space == Space.UB for port in form.reads) for form in scalar
    )


def counts(access: GmAccess, counters: Collection[int]) -> bool:
    """Whether an access touches lines of counters only."""
    low, high = access.address + access.region.low, access.address + access.region.high
    first = low - low % LINE_BYTES
    return high > low and all(line in counters for line in range(first, high, LINE_BYTES))


def by_pipe(accesses: Iterable[GmAccess]) -> dict[int, PipeLog]:
    """A log of each pipe."""
    found: dict[int, list[GmAccess]] = {}
    for access in accesses:
        if not access.region.empty:
            found.setdefault(int(access.party.form.pipe), []).append(access)
    return {pipe: PipeLog(entries) for pipe, entries in found.items()}


class CoreRaces:
    """Collects what the programs of a launch did to global memory.

    Args:
        kernel: its name, for messages.
        counters: addresses of the lines of counters, which blocks wait for without being ordered
            with their stores; more may be added.
        vain: leave out reads of programs that nothing leaves.
    """

    def __init__(self, kernel: str, counters: Collection[int] = (), vain: bool = False) -> None:
        self._kernel, self._counters, self._vain = kernel, counters, vain
        self._sides: list[GmLog] = []

    def add(self, seat: Seat, core: Core) -> None:
        """Takes over the accesses of a program that has ended."""
        self._sides.append(GmLog(seat, core, self._counters, self._vain))

    def check_blocks(self) -> None:
        """Compares the programs of each block.

        Raises:
            DeviceFault: a race.
        """
        blocks: dict[int, list[GmLog]] = {}
        for side in self._sides:
            blocks.setdefault(side.seat.block, []).append(side)
        for sides in blocks.values():
            self._compare_all(sides)

    def check_all(self) -> None:
        """Compares all programs of the launch.

        Raises:
            DeviceFault: a race.
        """
        self._compare_all(self._sides)

    def _compare_all(self, sides: list[GmLog]) -> None:
        for a, b in combinations(sides, 2):
            for one, other in (
                (a.plain, b.plain),
                (a.plain, b.counting),
                (a.counting, b.plain),
            ):
                self._compare_some(a, one, b, other)

    def _compare_some(self, a: GmLog, one: GmAccesses, b: GmLog, other: GmAccesses) -> None:
        if meet(one.write_ranges, other.write_ranges):
            self._compare(a, one.writes, b, other.writes, "writes", "writes")
        if meet(one.write_ranges, other.read_ranges):
            self._compare(a, one.writes, b, other.reads, "writes", "reads")
        if meet(one.read_ranges, other.write_ranges):
            self._compare(a, one.reads, b, other.writes, "reads", "writes")

    def _compare(
        self,
        a: GmLog,
        logs: dict[int, PipeLog],
        b: GmLog,
        others: dict[int, PipeLog],
        did: str,
        does: str,
    ) -> None:
        """Holds accesses of two cores against each other that touch the same bytes with no order
        between them: neither pipe knew, when it began, that the other one was done.

        Args:
            logs, others: accesses of `a` and of `b`, by pipe.
            did, does: what they do, "reads" or "writes", for the message.

        Raises:
            DeviceFault: a race.
        """
        for pipe, log in logs.items():
            for other_pipe, other in others.items():
                first = np.searchsorted(log.numbers, other.known(a.seat.number, pipe), "right")
                knows = log.known(b.seat.number, other_pipe)
                last = np.searchsorted(knows, other.numbers, "left")
                for i in np.flatnonzero(first < last).tolist():
                    window = range(int(first[i]), int(last[i]))
                    self._compare_one(a, log, window, b, other.accesses[i], did, does)

    def _compare_one(
        self, a: GmLog, log: PipeLog, window: range, b: GmLog, late: GmAccess, did: str, does: str
    ) -> None:
        """Holds an access of `b` against those of `a` that nothing orders with it."""
        low, high = late.address + late.region.low, late.address + late.region.high
        part = slice(window.start, window.stop)
        near = (log.lows[part] < high) & (log.highs[part] > low)
        for j in (np.flatnonzero(near) + window.start).tolist():
            before = log.accesses[j]
            if add_alike(before.party, late.party) or store_alike(before, late):
                continue
            common = late.region.overlaps(late.address, before.region, before.address)
            if common is not None:
                raise DeviceFault(
                    f"race between cores: {b.seat} {does} {in_words(*common)} "
                    f"({b.describe(late.party)}), which {a.seat} {did} "
                    f"({a.describe(before.party)}), without an order between them",
                    where=f"kernel {self._kernel}",
                    expected="an order between the cores",
                    hint=BY_COUNTERS if b.seat.core == "AICORE" else BY_FLAGS,
                )


def meet(ranges: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> bool:
    """Says whether two lists of disjoint, sorted ranges have a byte in common."""
    (starts, ends), (other_starts, other_ends) = ranges, others
    first = np.searchsorted(other_ends, starts, side="right")
    last = np.searchsorted(other_starts, ends, side="left")
    return bool((last > first).any())
