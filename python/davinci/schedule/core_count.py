"""How many cores a kernel takes: as many as pay, with the price of launching it on them.

A launch takes longer the more cores it is for (`LaunchPrice`), so work that n cores do in
w / n cycles is done soonest by fewer than all of them. Every kind of kernel is weighed here:
whoever knows its schedules says what it takes on some number of cores, and how many have work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.vector.space import NoSpace

STEPS = (1, 1.5)
"""Numbers of cores between one and twice as many that are weighed, in parts of the lower one."""


@dataclass(frozen=True)
class Weighed:
    """A kernel on some number of cores.

    Attributes:
        cycles: estimated.
        blocks: cores that have work.
        schedule: of the kernel, where it is all that was looked for; None to look again.
        apart: whether the kernel has a launch of its own where others are phases of one: its
            scalar unit stores to global memory.
        beside: parts side by side of which each has that number of cores.
    """

    cycles: float
    blocks: int
    schedule: object = None
    apart: bool = False
    beside: int = 1

    def on(self, count: int) -> int:
        """Cores of the launch that have work if the kernel has that number of them."""
        return min(count * self.beside, self.blocks)


@dataclass(frozen=True)
class CoreCount:
    """The number of cores that was chosen, and the cycles of the kernel on them with its launch.

    Attributes:
        schedule: of the kernel on them, see `Weighed`.
        useful: cores that would have work if there were no price.
        tried: the numbers of cores that were weighed, and what was found.
    """

    cores: int
    total: float
    schedule: object = None
    useful: int = 0
    tried: Mapping[int, Weighed] = field(default_factory=dict, compare=False, repr=False)

    def at_most(self, blocks: int, price: LaunchPrice) -> tuple[int, Weighed] | None:
        """The number of cores of fewest cycles, as a phase, among those that were weighed and have
        no more blocks; None if there is none."""
        ways = [(n, found) for n, found in self.tried.items() if found.on(n) <= blocks]

        def cycles(way: tuple[int, Weighed]) -> tuple[float, int]:
            return way[1].cycles + way[1].apart * price.apart(blocks), way[0]

        return min(ways, key=cycles, default=None)


Weigh = Callable[[int, float], Weighed | None]
"""Weighs a kernel on a number of cores; None where it certainly takes so many cycles or more."""


def cheapest(price: LaunchPrice, cores: int, weigh: Weigh, uneven: bool = False) -> CoreCount:
    """The number of cores, at most `cores`, on which a kernel and its launch take least time.

    Totals mostly fall and then rise with the number of cores. All and a quarter of them tell about
    where they are lowest; from there the search goes on to whichever side is lower, and to half and
    twice as many cores: work that 8 and 16 cores share evenly may leave some of 12 without.

    Args:
        price: of launching it.
        uneven: whether totals may have several low places, as those of kernels of pieces do, which
            on few cores may be other ones; then an eighth of the cores is tried as well.

    Raises:
        NoSpace: no kernel on that many cores.
    """
    search = _Search(price, cores, weigh, uneven)
    return search.found() if cores > 1 else search.all_of_them()


class _Search:
    """Weighs a kernel on one number of cores after the other, each of them once."""

    def __init__(self, price: LaunchPrice, cores: int, weigh: Weigh, uneven: bool) -> None:
        self._price, self._cores, self._weigh, self._uneven = price, cores, weigh, uneven
        self._ladder = counts(cores)
        self._found: dict[int, Weighed] = {}
        self._useful = 0
        self._totals: dict[int, float] = {}

    def all_of_them(self) -> CoreCount:
        """The count of all cores, of which those without work cost nothing, unless a smaller one
        that was weighed already is faster."""
        found = self._weigh(self._cores, math.inf)
        assert found is not None, "a limit without one"
        self._useful = min(found.blocks, self._cores)
        self._note(self._cores, found)
        return self._best()

    def found(self) -> CoreCount:
        """The count of fewest cycles among those that were weighed: it climbs down from the best
        one so far, to neighbours in the ladder, to half and to twice as many, until none of them is
        new."""
        most = self.all_of_them()
        quarter = self._at_most(self._cores / 4)
        self._try(quarter)
        self._try(self._at_most(self._guess(quarter, most.cores)))
        if self._uneven:
            self._try(self._at_most(self._cores / 8))
        while True:
            best = self._best().cores
            place = self._ladder.index(best)
            beside = self._ladder[max(0, place - 1) : place + 2]
            doubles = [n for n in self._ladder if n in (best // 2, 2 * best)]
            ways = ([n for n in found if n not in self._totals] for found in (beside, doubles))
            new = next(filter(None, ways), [])
            if not new:
                return self._best()
            for count in new:
                self._try(count)

    def _guess(self, few: int, many: int) -> float:
        """Where a + w / n + (price of a core) n is lowest, by cycles on two numbers of cores."""
        if few == many or few not in self._found:
            return many
        work = (self._found[few].cycles - self._found[many].cycles) / (1 / few - 1 / many)
        return math.sqrt(max(work, 0.0) / _of_a_core(self._price))

    def _at_most(self, count: float) -> int:
        """The largest number of the ladder that is no larger."""
        return max(n for n in self._ladder if n <= max(1.0, count))

    def _try(self, count: int) -> None:
        """Weighs the kernel on so many cores, unless it has been; a count that is certainly slower
        than the best one, or that has no kernel, costs infinitely much."""
        if count in self._totals:
            return
        limit = self._best().total - self._price.cycles(count)
        try:
            found = self._weigh(count, limit)
        except NoSpace:  # as parts that are more than so few cores
            found = None
        if found is None:
            self._totals[count] = math.inf
        else:
            self._note(count, found)

    def _note(self, count: int, found: Weighed) -> None:
        """Remembers what was weighed for a count, with its cycles and those of its launch."""
        self._found[count] = found
        cores = found.on(count)
        price = self._price.cycles(cores) + found.apart * self._price.apart(cores)
        self._totals[count] = found.cycles + price

    def _best(self) -> CoreCount:
        count = min(self._totals, key=lambda n: (self._totals[n], n))
        schedule = self._found[count].schedule
        return CoreCount(count, self._totals[count], schedule, self._useful, self._found)


def _of_a_core(price: LaunchPrice) -> float:
    """Cycles by which a launch takes longer for one more core."""
    return max(price.cycles(2) - price.cycles(1), 1e-9)


def counts(cores: int) -> list[int]:
    """Numbers of cores that are weighed, in rising order.

    >>> counts(32)
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    """
    found = {cores}
    whole = 1
    while whole <= cores:
        found |= {n for step in STEPS if (n := int(whole * step)) <= cores}
        whole *= 2
    return sorted(found)
