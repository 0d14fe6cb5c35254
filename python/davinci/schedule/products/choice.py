"""The schedule of a product: of all candidates the one of fewest estimated cycles."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from functools import partial
from operator import itemgetter

from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.schedule.core_count import Weighed
from davinci.schedule.products.candidates import Candidates, Wanted
from davinci.schedule.products.cost import ProductCosts
from davinci.schedule.products.estimate import (
    Fewest,
    LeastCycles,
    estimate_of,
    least_on,
    shares_of,
    tiles_of,
    traffic_of,
)
from davinci.schedule.products.memory import goes_backwards
from davinci.schedule.products.play import by_play, fastest, played
from davinci.schedule.products.product import Product, ProductSchedule, Tile
from davinci.schedule.products.refined import along_k
from davinci.schedule.products.rolls import (
    MOST_WRITTEN,
    WRITTEN,
    count_mads,
    mads_written,
    may_be_short,
)
from davinci.units import FRACTAL_SIDE as SIDE

STRATEGIES = {"os": "output stationary", "is": "input stationary", "ws": "weight stationary"}

RANKED = 96
"""Schedules that are ranked for a tuner."""

TRIED, ALIKE = 4, 200
"""How many of the best schedules may turn out to be too long to be written; and the fraction of
their time by which schedules differ that are not alike."""

FEWEST_PLAYED, PLAYED, PLAYED_MADS = 10, 64, 4000
"""Schedules that are played on paper after the estimate has sorted all, so many mads of which take
a fifth of a second; the fewest, too, where the memory takes longer, whatever cores do."""

FAR = 1.25
"""How many times as long as the fastest a schedule takes by estimate that is not played."""

QUICKLY_PLAYED, ENDED_PLAYED = 4, 16
"""Schedules that are played to weigh a number of cores: of any product, and of one whose rows of C
end inside a block, whose ends take longer or shorter by share, so that all shares are weighed."""


class FewCandidates(Candidates):
    """Candidates of the most promising shares only: the best of these takes one percent longer at
    most, and is found three times as fast."""

    shares_kept = 2


def choose(product: Product, machine: Machine, cores: int, wanted: Wanted) -> ProductSchedule:
    """The schedule of fewest estimated cycles on that many cores.

    Args:
        product: without empty dimensions.

    Raises:
        CompileError: unknown strategy, or no schedule that fits the memories.
    """
    ways, count = candidates(product, machine, cores, wanted, PLAYED)
    best = fastest(product, [*ways[:count], *others_of(product, ways, count)], machine, cores)
    best = replace(best, backwards=goes_backwards(product, machine))
    others = Candidates(product, machine, cores, wanted).other_parts(best)
    best = fastest(product, [best, *others], machine, cores)
    others = [x for x in along_k(product, best) if mads_written(product, x) <= WRITTEN]
    best = fastest(product, [best, *others], machine, cores)
    if mads_written(product, best) <= MOST_WRITTEN:
        return best
    ways = [*by_play(product, ways[:count], machine, cores), *ways[count:]]
    for schedule in ways[:TRIED]:
        if mads_written(product, schedule) <= MOST_WRITTEN:
            return schedule
    if may_be_short(product, ways[0]):
        return min(ways[:TRIED], key=partial(mads_written, product))
    # Of others loops are not looked for, which takes long where there are none.
    straight = (each for each in ways if count_mads(product, each) <= MOST_WRITTEN)
    return next(straight, None) or min(ways, key=partial(mads_written, product))


def others_of(product: Product, ways: list[ProductSchedule], count: int) -> list[ProductSchedule]:
    """Schedules behind the first `count` that are played as well, on cores whose C leaves L0C for
    memory: the first ones with tiles that are beside each other in another way, or have all of L0C
    where others leave room for the next one. A tile that has all of L0C, and those that take turns
    in it, are estimated to take about the same, and what one of them waits for is known only when
    it is played."""
    if not product.direct:
        return []
    first = {(schedule.beside, schedule.l0c == 1): schedule for schedule in reversed(ways)}
    return [first[way] for way in first if first[way] not in ways[:count]]


def ranked(product: Product, machine: Machine, cores: int) -> list[ProductSchedule]:
    """Schedules: the one that `choose` takes, then others by estimated cycles.

    Raises:
        CompileError: as of `choose`.
    """
    best = choose(product, machine, cores, Wanted())
    ways, count = candidates(product, machine, cores, Wanted(), RANKED)
    ways = [*by_play(product, ways[:count], machine, cores), *ways[count:RANKED]]
    short = [each for each in ways if mads_written(product, each) <= MOST_WRITTEN]
    return list(dict.fromkeys([best, *short]))


def quickly(
    product: Product, machine: Machine, cores: int, wanted: Wanted, most: float
) -> Weighed | None:
    """About what `choose` finds on that many cores: the best of a few schedules as they are played;
    None if none is estimated to take less than `most` cycles.

    Raises:
        CompileError: as of `choose`.
    """
    cycles, best = quick_schedule(product, machine, cores, wanted, most) or (math.inf, None)
    return None if best is None else Weighed(cycles, shares_of(product, best))


def quick_schedule(
    product: Product, machine: Machine, cores: int, wanted: Wanted, most: float
) -> tuple[float, ProductSchedule] | None:
    """The estimated cycles and the schedule that `quickly` finds.

    Raises:
        CompileError: as of `choose`.
    """
    costs = ProductCosts(product, machine)
    if least_on(costs, cores) > most:
        return None
    kind, count = (Candidates, ENDED_PLAYED) if product.ragged else (FewCandidates, QUICKLY_PLAYED)
    try:
        ways, _ = candidates(product, machine, cores, wanted, count, most, kind)
    except CompileError:
        if most < math.inf:
            return None
        # None of the few fits, as where L1 is very small.
        ways, _ = candidates(product, machine, cores, wanted, count)
    best, least = ways[0], math.inf
    others = others_of(product, ways, count)
    alone = [schedule for schedule in others if schedule.beside == (1, 1)]
    for schedule in (*ways[:count], *alone):
        cycles = played(product, schedule, machine, cores, least, costs)
        if cycles < least:
            best, least = schedule, cycles
    return least, best


def candidates(
    product: Product,
    machine: Machine,
    cores: int,
    wanted: Wanted,
    kept: int,
    most: float = math.inf,
    kind: type[Candidates] = Candidates,
) -> tuple[list[ProductSchedule], int]:
    """Schedules that fit the memories, by estimated cycles, and how many of them are to be played;
    if any may be short, no others. Those are missing that certainly take longer than the best of
    the most promising shares does as it is played.

    Args:
        kept: of the others the first so many are all there; of those behind some may be missing.
        most: those that certainly take as many cycles may be missing, too.
        kind: where they come from.

    Raises:
        CompileError: as of `choose`.
    """
    if wanted.strategy not in STRATEGIES:
        raise CompileError(
            "unknown matmul strategy", found=repr(wanted.strategy), expected=" or ".join(STRATEGIES)
        )
    costs = ProductCosts(product, machine)
    found = _estimated(costs, cores, wanted, kept, most, kind)
    if not found:
        raise no_schedule(product, machine, wanted)
    best = min(cycles for cycles, _ in found)
    # Sorting is stable: of schedules that are about as fast the first ones come first.
    found.sort(key=lambda each: int(each[0] / best * ALIKE))
    near = sum(cycles <= best * FAR for cycles, _ in found)
    every = [each for _, each in found]
    every = [each for each in every if may_be_short(product, each)] or every
    traffic = traffic_of(costs, every[0], cores, tiles_of(product, every[0]))
    most = FEWEST_PLAYED if traffic.longer_than_cores(best) else PLAYED
    most = min(most, near, PLAYED_MADS // count_mads(product, every[0]))
    count = max(FEWEST_PLAYED, most)
    return every, count


def _estimated(
    costs: ProductCosts,
    cores: int,
    wanted: Wanted,
    kept: int,
    most: float,
    kind: type[Candidates],
) -> list[tuple[float, ProductSchedule]]:
    """The schedules of `candidates` with their estimated cycles, in no order; where none fits as it
    should be, shallow ones, or else ones with a single buffer of each kind."""
    product, machine = costs.product, costs.machine
    found: list[tuple[float, ProductSchedule]] = []
    fewest = Fewest(kept, 2 / ALIKE, FAR)
    least, enough = LeastCycles(costs, cores), [most]
    ways: Candidates | None = None
    for shallow, lean in ((False, False), (True, False), (True, True)):
        # Where schedules are too slow for `most`, room is not what is missing.
        if found or (most < math.inf and (lean or (ways and ways.fits))):
            break
        ways = kind(product, machine, cores, wanted, shallow, lean)
        ways.hopeless = lambda schedule: least.of(schedule) > min(*enough, fewest.limit)
        for number, share in enumerate(ways.shares()):
            if number == FewCandidates.shares_kept:
                first = [each for each in found if may_be_short(product, each[1])]
                for cycles, schedule in heapq.nsmallest(QUICKLY_PLAYED, first, itemgetter(0)):
                    at_most = played(product, schedule, machine, cores, min(enough), costs)
                    enough.append(max(cycles, at_most))
            for schedule in ways.of(share):
                cycles = estimate_of(costs, schedule, cores)
                found.append((cycles, schedule))
                if cycles < fewest.limit and may_be_short(product, schedule):
                    fewest.add(cycles)
    return found


def no_schedule(product: Product, machine: Machine, wanted: Wanted) -> CompileError:
    """The error of a product that no schedule fits: which of the wanted sizes are too large for a
    memory, or which memories there are if the user asked for nothing."""
    whole = product.fractals
    broken = ""
    for name, size, memory, item in (
        ("m k", wanted.m * wanted.k, "L0A", 2),
        ("k n", wanted.k * wanted.n, "L0B", 2),
        ("m n", wanted.m * wanted.n, "L0C", 4),
    ):
        most = machine.buffer(memory).bytes // item
        if size * SIDE * SIDE > most:
            broken = broken or f"{name} <= {most}"
    most = product.end.most_columns
    if most and wanted.n > most:
        broken = (
            broken or f"n <= {most * SIDE}, for which the tables of biases and scales have room"
        )
    if wanted == Wanted():
        rooms = {name: machine.buffer(name).bytes for name in ("L1", "L0A", "L0B", "L0C", "UB")}
        return CompileError(
            f"no schedule of a product of (M, N, K) = {whole.text()} and what shares its "
            f"kernel fits the memories of {machine.name}",
            found=", ".join(f"{name} of {size} bytes" for name, size in rooms.items()),
            expected="larger memories (buffers of the machine file)",
            hint="or try --fusion none",
        )
    asked = Tile(wanted.m, wanted.k, wanted.n)
    return CompileError(
        f"no tile (m, n, k) for the {STRATEGIES[wanted.strategy]} strategy and (M, N, K) = "
        f"{whole.text()}",
        found=asked.text() + ("" if wanted.m and wanted.k and wanted.n else ", 0 is free"),
        expected=broken or "sizes that fit L1, L0A, L0B and L0C",
        hint="give smaller tile sizes, leave them 0, or use matmul-strategy=os",
    )
