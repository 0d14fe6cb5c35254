"""Keys of 32 bits as what a network sorts, and back: in steps of the vector unit.

    s32, signed      as they are
    f32, "total"     t = b < 0 ? 2^31 - 1 - b : b, which is its own inverse
    f32, "largest"   t - (2^31 - 1 - infinity): NaN below all numbers wrap around to those above
    f32, "largest", of pairs    t + mark, of which all NaN are the same; mark = t < 0
    descending       -1 - rank

The difference 2^31 - 1 - b keeps its lowest 32 bits: it is negative where b is. The mark of a pair
tells -0 from 0.

With numbers a rank r is two numbers in f32, or three where numbers have more than 14 bits:

    high = round(r / 256)     low = (r - 256 high) * 2^15 + pair     pair = 2 number + mark
    high                      low = r - 256 high                     pair

each times the power of two of its plane. r / 256 is rounded to f32 first; whatever `high` is then,
it grows with r, and `low` says what is missing: at most 192 * 2^15 + pair, so that the sum of two
is exact as well. So both together are in the order of r, and all of it is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.operators.sorting import INFINITY, LARGEST, MOST_NUMBER, NAN, SIGNED
from davinci.schedule.sorts.network import (
    APART,
    KEYS,
    SHARED,
    SPARE,
    WORK,
    NetworkStep,
    SortTile,
)
from davinci.schedule.sorts.places import LANES, SKEWED
from davinci.schedule.sorts.spacing import spaced
from davinci.schedule.vector.steps import View
from davinci.units import ceil_div

PAIR_BITS = 15
"""Bits of what goes into the lower plane with the last 8 of a rank."""

MOST_PAIR = (1 << PAIR_BITS) - 1
MOST_RANK = (1 << 31) - 1
LEAST_RANK = -(1 << 31)
PART = 256

WRAPPED = MOST_RANK - INFINITY
"""What is taken from ranks of "total" so that NaN below all numbers wrap around."""

PLACE = 1
"""The plane of the spare buffer that numbers come in and leave in."""


MOST_BELOW = {2: MOST_PAIR // 2, 3: MOST_NUMBER}
"""By planes, what numbers are less than at most."""


def planes_of(below: int | None) -> int:
    """Planes of keys with numbers less than `below`, or without numbers."""
    if below is None:
        return 1
    return 2 if 2 * below - 1 < MOST_PAIR else 3


@dataclass(frozen=True)
class Keys:
    """What keys are.

    Attributes:
        order: as in `davinci.operators.sorting`.
        descending: whether the largest is first.
        below: what all numbers are less than; None if keys have none.
    """

    order: str
    descending: bool
    below: int | None = None

    @property
    def planes(self) -> int:
        return planes_of(self.below)

    @property
    def alike(self) -> Keys:
        """The same keys with any numbers of as many planes, which are sorted by the same steps."""
        return self if self.below is None else replace(self, below=MOST_BELOW[self.planes])

    @property
    def marks_zeros(self) -> bool:
        """Whether a bit of pairs tells -0 from 0, and all NaN are the same."""
        return self.below is not None and self.order == LARGEST

    @property
    def most_pair(self) -> int:
        """What fills the places behind numbers."""
        return MOST_PAIR if self.planes == 2 else (1 << 24) - 1

    @property
    def origin(self) -> int:
        """What is taken from ranks of "total" for those that are sorted."""
        return WRAPPED if self.order == LARGEST and not self.marks_zeros else 0

    @property
    def moves_ranks(self) -> bool:
        """Whether ranks that are sorted are others than those of "total", or of marked pairs."""
        return self.descending or self.origin != 0

    def constants(self) -> dict[str, int]:
        """Constants of s32 by name."""
        numbers = [-1]
        if self.order != SIGNED:
            numbers += [0, MOST_RANK, self.origin - self.descending]
        if self.marks_zeros:
            numbers += [WRAPPED, INFINITY + 1 - WRAPPED, INFINITY, NAN - INFINITY - 1]
        if self.below is not None:
            numbers += [PART, 1 << PAIR_BITS]
        return {str(number): number for number in numbers}


@dataclass(frozen=True)
class KeySteps:
    """Steps on a tile, of which so many keys of a row are wanted at last.

    Keys alone come as bits in their buffer and leave in the spare one. Keys with numbers come and
    leave in the first plane of the spare buffer, numbers in the second one.
    """

    keys: Keys
    tile: SortTile
    kept: int
    rows: tuple[int, int, int] | None = None

    def plane(self, name: str, number: int = 0) -> View:
        """A plane; of `rows`, a count, lanes of each and how far apart they are, only these."""
        first = number * self.tile.elements
        if self.rows is None:
            return View(name, (self.tile.elements,), (1,), first)
        count, lanes, apart = self.rows
        return View(name, (count, lanes), (apart, 1), first)

    def of_keys(self) -> KeySteps:
        """Steps on the places that may hold keys only."""
        tile = self.tile
        rows = (tile.rows, tile.lanes, tile.width)
        return self if tile.lanes == tile.width else replace(self, rows=rows)

    def of_results(self) -> KeySteps:
        """Steps on the places of the wanted keys only."""
        tile, spans = self.tile, self.tile.spans(self.kept)
        lanes = ceil_div(max(span.count for span in spans), LANES) * LANES
        apart = tile.width if len(spans) == 1 else spans[1].place
        count = tile.rows * len(spans)
        return self if count * lanes == tile.elements else replace(self, rows=(count, lanes, apart))

    def step(self, name: str, *views: View) -> NetworkStep:
        return NetworkStep(name, views, ("s32",) * len(views))

    def by(self, name: str, plane: View, number: int, target: View) -> NetworkStep:
        """target = name(plane, a constant)."""
        source, constant, result = self._with_constant(plane, number, target)
        return self.step(name, source, constant, result)

    def taken_from(self, number: int, plane: View, target: View) -> NetworkStep:
        """target = a constant - plane."""
        source, constant, result = self._with_constant(plane, number, target)
        return self.step("vsub", constant, source, result)

    def _with_constant(self, plane: View, number: int, target: View) -> tuple[View, View, View]:
        """A plane, a constant and a result in blocks.

        Of many blocks every other one is computed, and then those between, each time with the
        constant from a bank that they are not in; not in place, where results would meet what is
        read in turn."""
        shape: tuple[int, ...] = (plane.shape[-1] // LANES, LANES)
        strides: tuple[int, ...] = (LANES, 1)
        by_turns = self.rows is None and shape[0] >= SKEWED and plane.buffer != target.buffer
        if by_turns:
            shape = (2, shape[0] // 2, LANES)
            strides = (LANES, 2 * LANES, 1)
        if self.rows is not None:
            shape, strides = (self.rows[0], *shape), (self.rows[2], *strides)
        source, result = (
            View(view.buffer, shape, strides, view.offset) for view in (plane, target)
        )
        return source, self.tile.constant(str(number), shape, by_turns), result

    def converted(self, source: View, target: View, kind: str, round: str = "none") -> NetworkStep:
        """target, of a type, from the other one."""
        other = "f32" if kind == "s32" else "s32"
        return NetworkStep("vconv", (source, target), (other, kind), round=round)

    def scaled(self, source: View, number: float, target: View) -> NetworkStep:
        return NetworkStep("vmuls", (source, target), ("f32", "f32"), number)

    def coming(self) -> list[NetworkStep]:
        """From bits to ranks, in place, and numbers to pairs, before rows are filled up."""
        return spaced(self.of_keys()._before())

    def sorting(self) -> list[NetworkStep]:
        """All that is done to full rows, up to the bits and numbers of the wanted keys."""
        return spaced((*self.of_keys()._digits(), *self.tile.steps(), *self._after()))

    def _before(self) -> Iterator[NetworkStep]:
        """From bits to ranks, in place; numbers to pairs."""
        keys, pair = self.keys, self.plane(SPARE, PLACE)
        rank, free = self.plane(self.tile.come), self.plane(self.tile.left)
        if keys.below is not None:
            yield self._doubled(pair)
        found = rank
        if keys.order != SIGNED:
            found = free if keys.moves_ranks else rank
            yield from self._reflected(rank, found)
        if keys.marks_zeros:
            yield from self._marked(found, rank if found is free else free, pair)
        if keys.descending:
            yield self.taken_from(keys.origin - 1, found, rank)
        elif keys.moves_ranks:
            yield self.by("vsub", found, keys.origin, rank)

    def _doubled(self, pair: View) -> NetworkStep:
        """pair = 2 number, of numbers that lie there, or of those that all rows share."""
        if not self.tile.shared:
            return self.step("vadd", pair, pair, pair)
        shape, apart = (self.tile.rows, self.tile.lanes), self.tile.width
        numbers = View(SHARED, shape, (0, 1))
        return self.step(
            "vadd", numbers, numbers, View(pair.buffer, shape, (apart, 1), pair.offset)
        )

    def _digits(self) -> Iterator[NetworkStep]:
        """From ranks and pairs to the planes of the network; ranks alone are one."""
        rank, first = self.plane(SPARE), self.plane(KEYS)
        if self.keys.below is None:
            return
        pair, work = self.plane(SPARE, PLACE), self.plane(WORK)
        second = self.plane(KEYS, 1)
        yield self.converted(rank, first, "f32")
        yield self.scaled(first, 1 / PART, first)
        yield self.converted(first, work, "s32")
        yield self.converted(work, first, "f32")
        yield self.scaled(first, APART ** (self.keys.planes - 1), first)
        yield self.by("vmul", work, PART, work)
        yield self.step("vsub", rank, work, rank)
        if self.keys.planes == 2:
            yield self.by("vmul", rank, 1 << PAIR_BITS, rank)
            yield self.step("vadd", rank, pair, rank)
        else:
            yield self.converted(pair, self.plane(KEYS, 2), "f32")
        yield self.converted(rank, second, "f32")
        if self.keys.planes > 2:
            yield self.scaled(second, APART, second)

    def _after(self) -> Iterator[NetworkStep]:
        """From the planes of the network to bits and numbers, of the wanted keys."""
        return self.of_results()._from_planes()

    def _from_planes(self) -> Iterator[NetworkStep]:
        """The steps that make keys of the sorted ranks: parts of ranks are joined, and what
        `_before` made of keys is undone."""
        keys, rank, free = self.keys, self.plane(SPARE), self.plane(KEYS)
        if keys.below is not None:
            yield from self._joined()
            free = self.plane(KEYS, 1)
        found = free if keys.moves_ranks and keys.order != SIGNED else rank
        if keys.descending:
            yield self.taken_from(keys.origin - 1, rank, found)
        elif keys.moves_ranks:
            yield self.by("vadd", rank, keys.origin, found)
        if keys.marks_zeros:
            yield from self._without_marks(found, rank if found is free else free)
        if keys.order != SIGNED:
            yield from self._reflected(found, rank)

    def _joined(self) -> Iterator[NetworkStep]:
        """Ranks and numbers from planes; marks, if there are any, in the first plane."""
        rank, number = self.plane(SPARE), self.plane(SPARE, PLACE)
        first, second, work = self.plane(KEYS), self.plane(KEYS, 1), self.plane(WORK)
        yield self.scaled(first, APART ** (1 - self.keys.planes), first)
        yield self.converted(first, rank, "s32")
        yield self.by("vmul", rank, PART, rank)
        pair = second
        if self.keys.planes == 2:
            yield self.scaled(second, 2.0**-PAIR_BITS, work)
            yield self.converted(work, first, "s32", "floor")
            yield self.step("vadd", rank, first, rank)
            yield self.by("vmul", first, 1 << PAIR_BITS, first)
            yield self.converted(second, work, "s32")
            yield self.step("vsub", work, first, pair)
        else:
            yield self.scaled(second, 1 / APART, second)
            yield self.converted(second, work, "s32")
            yield self.step("vadd", rank, work, rank)
            yield self.converted(self.plane(KEYS, 2), pair, "s32")
        yield self.converted(pair, work, "f32")
        yield self.scaled(work, 0.5, work)
        yield self.converted(work, number, "s32", "floor")
        if self.keys.marks_zeros:
            yield self.step("vadd", number, number, first)
            yield self.step("vsub", pair, first, first)

    def _reflected(self, bits: View, rank: View) -> Iterator[NetworkStep]:
        """rank = bits < 0 ? 2^31 - 1 - bits : bits, and back; both may be in one place."""
        negative = self.plane(WORK)
        yield self.taken_from(MOST_RANK, bits, negative)
        yield self.step("vrelu", bits, rank)
        yield self.by("vmin", negative, 0, negative)
        yield self.step("vadd", rank, negative, rank)

    def _marked(self, rank: View, free: View, pair: View) -> Iterator[NetworkStep]:
        """All NaN get the rank behind infinity; ranks below 0 are one more and have a mark."""
        work = self.plane(WORK)
        yield self.by("vsub", rank, WRAPPED, free)
        yield self.by("vmin", free, INFINITY + 1 - WRAPPED, work)
        yield self.by("vadd", work, WRAPPED, rank)
        yield self.by("vmin", rank, 0, work)
        yield self.by("vmax", work, -1, free)
        yield self.step("vsub", rank, free, rank)
        yield self.step("vsub", pair, free, pair)

    def _without_marks(self, rank: View, free: View) -> Iterator[NetworkStep]:
        """The rank behind infinity becomes that of the quiet NaN; ranks with a mark are one less
        again."""
        work = self.plane(WORK)
        yield self.by("vmax", rank, INFINITY, work)
        yield self.by("vsub", work, INFINITY, free)
        yield self.by("vmul", free, NAN - INFINITY - 1, work)
        yield self.step("vadd", rank, work, rank)
        yield self.step("vsub", rank, self.plane(KEYS), rank)
