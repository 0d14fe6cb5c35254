"""The most that tuning could win, kernel by kernel, and when too little of it is left.

A kernel that takes c cycles by the cost model's first way, and never fewer than l, can win
(c - l) times the number of its launches. l is the machine's limit for what its operators mean, on
the cores that its ways take: of cube, vector unit and memory, behind the latency of the first bytes
and in front of that of the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from davinci.machine import Machine, prices
from davinci.report.limits import limits, macs_of

WORTH = 0.005
"""Share of all cycles below which a gain is little, if nothing else is asked for."""

PATIENCE = 4
"""Ways of a kernel that are measured without a gain before it is left alone."""

SEEN = 1 / 3
"""Share of what could be won from which on gains so far tell what is to be expected."""


def least_cycles(work: Mapping[str, int], machine: Machine, cores: int) -> int:
    """Cycles that a kernel takes at least on some cores.

    Args:
        work: that its operators mean, as `ascend.work` has it.
    """
    best = limits(machine, cores)
    busy: tuple[float, ...] = (
        work.get("macs", 0) / macs_of(best, work),
        work.get("vector_repeats", 0) / best["vector_repeats"],
        work.get("read_bytes", 0) / best["l2_read_bytes"],
        work.get("write_bytes", 0) / best["l2_write_bytes"],
    )
    ends = prices.writing(machine).start_cycles
    if work.get("read_bytes"):
        ends += prices.reading(machine).start_cycles
    longest: int = math.ceil(max(busy))
    return longest + ends


@dataclass(frozen=True)
class Prospect:
    """A kernel before it is tuned.

    Attributes:
        launches: of it in a run.
        cycles: of a launch, computed by the cost model's first way.
        least: cycles that a launch takes in any way.
    """

    launches: int
    cycles: int
    least: int

    @property
    def total(self) -> int:
        """Cycles of all launches."""
        return self.launches * self.cycles

    @property
    def most(self) -> int:
        """Cycles that could be won at most."""
        return self.launches * max(0, self.cycles - self.least)


@dataclass
class Account:
    """Cycles of a network's kernels, and the cycles that tuning has won.

    Attributes:
        total: cycles of all kernels as the cost model computes them.
        most: that could be won at most.
        worth: share of the total below which a gain is little.
        seen: part of `most` of the kernels that were tuned.
        won: cycles by which these became shorter.
    """

    total: int
    most: int
    worth: float
    seen: int = 0
    won: int = 0

    def tuned(self, prospect: Prospect, best: int) -> None:
        """A kernel takes `best` cycles a launch now."""
        self.seen += prospect.most
        self.won += prospect.launches * max(0, prospect.cycles - best)

    @property
    def little(self) -> float:
        """Cycles that are not worth looking for."""
        return self.worth * self.total

    def reason_to_stop(self) -> str:
        """Why the kernels that are left are not worth tuning; "" if they are."""
        left = self.most - self.seen
        if left < self.little:
            return f"what is left can win {_share(left, self.total)} at most"
        if self.seen < SEEN * self.most:
            return ""
        expected = left * self.won / max(1, self.seen)
        if expected < self.little:
            return (
                f"kernels that could win {_share(self.seen, self.total)} won "
                f"{_share(self.won, self.total)}, so that "
                f"{_share(expected, self.total)} more is to be expected"
            )
        return ""

    def opening(self, kernels: int) -> str:
        """Text about the most that could be won, for before anything is tried."""
        return (
            f"{kernels} kernels that can be computed in several ways take {self.total:,} cycles; "
            f"at most {_share(self.most, self.total)} of these can be won"
        )

    def closing(self) -> str:
        """Text about the cycles that were won."""
        return f"{self.total:,} -> {self.total - self.won:,} cycles"


def has_patience(cycles: Mapping[int, int | None], worth: float) -> bool:
    """Says whether to measure more ways of a kernel: one of the last few was shorter.

    Args:
        cycles: by the number of the way, in the order in which they were measured; None of a way
            that is none.
        worth: share of the kernel's cycles below which a gain is little.
    """
    best: float = math.inf
    since = 0
    for found in cycles.values():
        since += 1
        if found is not None and (best == math.inf or best - found > worth * best):
            best, since = found, 0
    return since < PATIENCE


def _share(part: float, whole: float) -> str:
    return f"{part / max(1, whole):.1%}"
