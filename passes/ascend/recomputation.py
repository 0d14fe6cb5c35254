"""Values that are computed again where they are needed late, so that they need not be kept.

before:
    %s = producer(%x)           %s is live from here
    %t = largest(..)            the peak
    %r = late(%s, %t)           to here
after:
    %s = producer(%x)
    ..
    %t = largest(..)
    %s2 = producer(%x)
    %r = late(%s2, %t)

As the recomputation of MindSpore: an operator is duplicated in front of its late user. Of what may
be computed again, the value is taken that lowers the bytes above the limit most for the time that
it costs, until none of the launches is above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.passes.ascend.host_function import Launch, Place, Storage
from davinci.planning import Buffer, live_bytes
from davinci.planning.problem import Ints

DEPTH = 3
"""How far back values are computed again that another one needs to be computed again."""

Cycles = Callable[[Launch], float | None]
"""Estimated cycles of a launch; None if nobody knows, and then it is not repeated."""


@dataclass(frozen=True)
class Recomputed:
    """Launches in order, with some of them repeated.

    Attributes:
        launches: all of them.
        repeated: how many of them are repetitions.
        cycles: estimated, of the repetitions.
    """

    launches: list[Launch]
    repeated: int = 0
    cycles: float = 0.0


def recompute(launches: Sequence[Launch], limit: int, cycles_of: Cycles) -> Recomputed:
    """Repeats launches until no more than `limit` bytes are live at once, or until nothing that
    could be repeated lowers the peak.

    Args:
        launches: one after the other, in an order in which they can run.
        limit: in bytes.
        cycles_of: what a repetition costs.
    """
    now = Recomputed(list(launches))
    while True:
        uses = _StorageUses(now.launches)
        live = uses.live_bytes()
        if not len(live) or live.max() <= limit:
            return now
        above = _above(live, limit)
        best: tuple[float, Recomputed] | None = None
        for made in _repetitions(uses, int(live.argmax()), cycles_of):
            less = above - _above(_StorageUses(made.launches).live_bytes(), limit)
            worth = less / max(made.cycles, 1.0)
            if less > 0 and (best is None or worth > best[0]):
                best = worth, made
        if best is None:
            return now
        made = best[1]
        repeated, cycles = now.repeated + made.repeated, now.cycles + made.cycles
        now = Recomputed(made.launches, repeated, cycles)


def _above(live: Ints, limit: int) -> int:
    """Bytes above the limit, summed over launches."""
    return int(np.maximum(live - limit, 0).sum())


class _StorageUses:
    """The numbers of the launches that touch each storage, and of those that write it."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = launches
        self.users: dict[Storage, list[int]] = {}
        self.writers: dict[Storage, list[int]] = {}
        for number, launch in enumerate(launches):
            inputs = len(launch.buffers) - launch.outputs
            for at, (place, _) in enumerate(launch.buffers):
                users = self.users.setdefault(place.storage, [])
                if not users or users[-1] != number:
                    users.append(number)
                if at >= inputs:
                    self.writers.setdefault(place.storage, []).append(number)

    def live_bytes(self) -> Ints:
        """Bytes of the arena that are live during each launch."""
        buffers = [
            Buffer(storage.size, users[0], users[-1] + 1)
            for storage, users in self.users.items()
            if storage.kind == "arena"
        ]
        return live_bytes(buffers, len(self.launches))


def _repetitions(uses: _StorageUses, peak: int, cycles_of: Cycles) -> list[Recomputed]:
    """The launches with one value more that is computed again behind the peak, for each that is
    only kept during it."""
    found = []
    for storage, users in uses.users.items():
        kept = users[0] < peak < users[-1] and peak not in users
        if storage.kind != "arena" or not kept:
            continue
        late = next(number for number in users if number > peak)
        for depth in range(1, DEPTH + 1):
            chain: list[int] = []
            again = {storage}
            if not _chain(uses, storage, peak, late, depth, chain, again):
                continue
            costs = [cycles_of(uses.launches[number]) for number in chain]
            cycles = [cost for cost in costs if cost is not None]
            if len(cycles) == len(costs):
                launches = _inserted(uses.launches, sorted(set(chain)), late, again)
                found.append(Recomputed(launches, len(set(chain)), sum(cycles)))
            if len(again) < depth:  # going further back finds nothing more
                break
    return found


def _chain(
    uses: _StorageUses,
    storage: Storage,
    peak: int,
    late: int,
    depth: int,
    chain: list[int],
    again: set[Storage],
) -> bool:
    """Adds to `chain` the launches that make a value, and to `again` all values that they make;
    says whether that can be done again in front of the launch `late`.

    Up to `depth` values on a path are made again; what the first of them needs is kept for longer.
    """
    writers = uses.writers.get(storage, [])
    if not writers or writers[-1] >= peak:
        return False
    for number in writers:
        launch = uses.launches[number]
        inputs = len(launch.buffers) - launch.outputs
        if any(place.storage is not storage for place, _ in launch.buffers[inputs:]):
            return False
        chain.append(number)
        for place, _ in launch.buffers[:inputs]:
            needed = place.storage
            made = uses.writers.get(needed, [])
            if needed is storage or (made and made[-1] >= number):
                return False  # it is changed in place, or later than it was read here
            if needed.kind != "arena" or needed in again or uses.users[needed][-1] >= peak:
                continue
            if depth > 1:
                again.add(needed)
                if not _chain(uses, needed, peak, late, depth - 1, chain, again):
                    return False
    return True


def _inserted(
    launches: Sequence[Launch], chain: Sequence[int], late: int, again: set[Storage]
) -> list[Launch]:
    """Launches with those of `chain` repeated in front of the one with the number `late`, which
    with all behind it takes the new values."""
    copies = {storage: replace(storage) for storage in again}

    def moved(launch: Launch) -> Launch:
        buffers = [
            (Place(copies.get(place.storage, place.storage), place.offset), kind)
            for place, kind in launch.buffers
        ]
        return replace(launch, buffers=buffers)

    front = list(launches[:late])
    repeated = [moved(launches[number]) for number in chain]
    return [*front, *repeated, *map(moved, launches[late:])]
