"""Finds addresses for buffers of one memory; buffers that live at the same time do not overlap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from davinci.units import round_up


class Cost(Protocol):
    """What a place costs, given where others are."""

    def of(self, number: int, address: int) -> float:
        """Cycles lost with piece `number` at an address."""

    def settle(self, number: int, address: int) -> None:
        """Piece `number` stays at an address."""


class Free(Cost):
    """A cost under which all places are equally good."""

    def of(self, number: int, address: int) -> float:
        return 0

    def settle(self, number: int, address: int) -> None:
        pass


@dataclass(frozen=True)
class PlacedPiece:
    """A buffer: rounded size in bytes, a bit for each time at which it lives, address if given."""

    size: int
    live: int
    given: int = -1


@dataclass(frozen=True)
class GapSteps:
    """Places in a gap that are tried; all figures are bytes.

    Attributes:
        align: addresses are multiples of it.
        unit, units: besides the gap's beginning, the first `units` multiples of `unit`.
        far: the same from each of its multiples on; 0 for none.
        beside: besides each of these the place so much further; 0 for none.
    """

    align: int
    unit: int = 1
    units: int = 0
    far: int = 0
    beside: int = 0

    def places(self, low: int, high: int) -> Iterator[int]:
        yield round_up(low, self.align)
        starts = [low]
        if self.far:
            starts += range(round_up(low, self.far), high, self.far)
        for start in starts:
            first = round_up(start, self.unit)
            for place in range(first, first + self.units * self.unit, self.unit):
                yield place
                if self.beside:
                    yield place + self.beside


def place(
    pieces: Sequence[PlacedPiece], capacity: int, steps: GapSteps, cost: Cost
) -> list[int] | None:
    """Addresses of all pieces, None if these do not fit.

    Larger pieces come first, of equal ones those that live first, each to the place that costs
    least, of those to the lowest in the smallest gap between others. Pieces without bytes are at 0
    and in nobody's way.
    """
    found = [piece.given if piece.size else max(piece.given, 0) for piece in pieces]
    waiting = [number for number, piece in enumerate(pieces) if piece.size and piece.given < 0]
    waiting.sort(key=lambda number: (-pieces[number].size, _first(pieces[number].live)))
    placed = []
    for number, piece in enumerate(pieces):
        if piece.size and piece.given >= 0:
            placed.append(number)
            cost.settle(number, piece.given)
    for number in waiting:
        size, live = pieces[number].size, pieces[number].live
        taken = sorted(
            (found[other], found[other] + pieces[other].size)
            for other in placed
            if live & pieces[other].live
        )
        places = sorted(
            (high - low if high < capacity else capacity, address)
            for low, high in _gaps(taken, capacity)
            for address in steps.places(low, high)
            if address + size <= high
        )
        if not places:
            return None
        found[number] = _cheapest([address for _, address in places], partial(cost.of, number))
        placed.append(number)
        cost.settle(number, found[number])
    return found


def _cheapest(addresses: Sequence[int], cost: Callable[[int], float]) -> int:
    """The first of the addresses that cost least; nothing costs less than nothing."""
    best, least = addresses[0], math.inf
    for address in addresses:
        found = cost(address)
        if found < least:
            best, least = address, found
        if least <= 0:
            break
    return best


def _gaps(taken: Sequence[tuple[int, int]], capacity: int) -> Iterator[tuple[int, int]]:
    low = 0
    for start, end in taken:
        if low < start:
            yield low, start
        low = max(low, end)
    if low < capacity:
        yield low, capacity


def _first(live: int) -> int:
    """The number of the lowest bit."""
    return (live & -live).bit_length()
