"""A bitonic network on the vector unit: a tile of keys in UB, sorted by whole blocks.

A compare-exchange takes the keys whose places differ in one bit, so it is an operation on blocks of
32 bytes where that bit of a place counts blocks, and none where it counts the 8 lanes of a block.
So lanes have what is compared last, or not at all, and change with blocks between:

    natural    blocks [8 outer][q], lanes the 8 lowest places     as keys lie in global memory
    turned     blocks [every other place], lanes the 8 outer      rows, or eighths of one row

Eights of rows are sorted while they are turned. Of a single row eighths are sorted like that; then
pairs of them, of pairs and of fours are merged, the compare-exchanges of outer places in the
natural order, those of all others in the turned one. A change is two transpositions of words of 16
bits.

While keys are turned, bits of a block's place move from one exchange to the next: the bit that is
exchanged is the highest one of the address and becomes the fourth, those between move up by one, so
the next bit is the highest one then (Stone, 1971). Each exchange is so an instruction that reads
two halves from front to end; the upper half begins some blocks later, so that what is read
together lies in different banks. The three lowest bits of an address are those that are exchanged
least, and stay; in small tiles all may move, as it takes fewer instructions (`SortTile.low`).

All exchanges put the smaller key first; what has to be in descending order meanwhile (half of the
keys, each merge other ones) has its sign changed.

Where only the first k keys of a row are wanted, runs of k, rounded up to a power of two, are
sorted; then of two such runs the smaller keys stay, k of them, which are sorted again, until one
run is left. Half of the keys are gone with each of these steps.

A key is one or more *planes*. One plane is s32, exchanged by vmin and vmax. Several are numbers in
f32 that are compared one after the other, exact in all that is done with them; e and f say by how
much a key is more than the smaller one, as far as planes were compared:

    low0 = min(a0, b0)         high0 = max(a0, b0)
    e = a0 - low0              f = b0 - low0
    e = e + a1, f = f + b1     low1 = min(e, f)     high1 = b1 + (a1 - low1)
    e = e - low1, f = f - low1, and so on

Each plane is integers below 2^25 times a power of two, 2^25 times that of the next one: the first
difference that is not 0 decides, since it is more than all that is added behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from operator import mul

from davinci.isa.strides import merge_dims
from davinci.schedule.sorts.places import LANES, LOW, Steps, bits_of, placed, skew_of, turned_places
from davinci.schedule.vector.steps import View

OUTER = 8
"""Rows, or eighths of a row, that turn into lanes."""

TURN = 16
"""Blocks that a transposition turns."""

LEAST = OUTER * TURN * LANES
"""Keys of the smallest tile, and of the smallest eight rows."""

APART = float(2**25)
"""What the numbers of a plane are times those of the next one: more than any difference of two."""

SUMMED = 1
"""The plane of which the sum of two numbers is exact in f32."""

KEYS, SPARE, WORK, NUMBERS, SHARED = "keys", "spare", "work", "one", "shared"
"""Names of the buffers: two for all planes, one for a plane, and constants, a block each; and the
numbers of a row's keys, if all rows have the same."""

MINUS_ONE = "-1"
"""Name of the constant s32 -1."""

CONSTANT = 4 * LANES
"""Elements of the place of a constant: three blocks hold it, the first of which is an even one."""


@dataclass(frozen=True)
class NetworkStep:
    """One cce operation.

    Attributes:
        name: without the dialect.
        operands: sources, then the destination.
        kinds: the type of each.
        scalar: the operand before the destination, if the operation takes one.
        round: of a conversion.
    """

    name: str
    operands: tuple[View, ...]
    kinds: tuple[str, ...]
    scalar: float | None = None
    round: str | None = None


@dataclass(frozen=True)
class Span:
    """Keys of a row that lie side by side: the first one's number and place, and how many."""

    first: int
    place: int
    count: int


@dataclass(frozen=True)
class SortTile:
    """Keys that are sorted together in UB.

    Attributes:
        elements: keys, those that fill up to a power of two included.
        rows: 8, 16, 32 or 64, or 1.
        planes: numbers that a key is.
        constants: names of constants, in the order of their blocks.
        kept: first keys of a row that are wanted; 0: all.
        used: bits of the first places of each row, or eighth of one, that hold keys; 0: all.
        low: lowest bits of an address in the turned order that stay where they are.
        shared: whether the keys of all rows have the same numbers, which lie in UB once.
    """

    elements: int
    rows: int
    planes: int
    constants: tuple[str, ...]
    kept: int = 0
    used: int = 0
    low: int = LOW
    shared: bool = False

    @property
    def width(self) -> int:
        """Places of a row."""
        return self.elements // self.rows

    @property
    def lanes(self) -> int:
        """Places of a row that may hold keys; what is in the others is of no account."""
        return min(self.width, 1 << self.used) if self.rows > 1 and self.used else self.width

    @property
    def blocks(self) -> int:
        """Blocks of a plane."""
        return self.elements // LANES

    @property
    def kind(self) -> str:
        """The type of planes."""
        return "s32" if self.planes == 1 else "f32"

    @property
    def turned(self) -> int:
        """Elements from plane to plane in the turned order."""
        skews = 1 + (0 < self.used < self.in_row)
        return self.elements + skews * skew_of(self.blocks)

    @property
    def groups(self) -> int:
        """Eights of rows."""
        return max(1, self.rows // OUTER)

    @property
    def in_row(self) -> int:
        """Bits of the places of a row, or of an eighth of one."""
        return bits_of(self.blocks // self.groups)

    def sizes(self) -> dict[str, int]:
        """Elements of the buffers."""
        return {
            KEYS: self.planes * self.turned,
            SPARE: self.planes * self.turned,
            WORK: self.turned,
            NUMBERS: CONSTANT * len(self.constants),
            **({SHARED: self.width} if self.shared else {}),
        }

    @property
    def bytes(self) -> int:
        return sum(count * 4 for count in self.sizes().values())

    def spans(self, count: int) -> list[Span]:
        """The first keys of a row, so many, by where they lie together: first keys of a row are in
        the first places, those of a single row in the first ones of each eighth."""
        lie = 1 << self.used
        if self.rows > 1 or not self.used or OUTER * lie == self.elements:
            return [Span(0, 0, count)]
        apart = self.elements // OUTER
        return [
            Span(first, first // lie * apart, min(lie, count - first))
            for first in range(0, count, lie)
        ]

    def constant(self, name: str, shape: tuple[int, ...], by_turns: bool = False) -> View:
        """A constant in all lanes of blocks [.., lanes]; of [2, blocks, lanes] `by_turns` those
        that are even and those that are odd have one each, in a block of the other kind."""
        strides = [*[0] * (len(shape) - 1), 1]
        first = self.constants.index(name) * CONSTANT
        if by_turns:
            strides[0], first = LANES, first + LANES
        return View(NUMBERS, shape, tuple(strides), first)

    @property
    def come(self) -> str:
        """The buffer into which keys are loaded: the one from which a single plane is sorted."""
        return KEYS if self.planes == 1 else SPARE

    @property
    def left(self) -> str:
        """The buffer in which sorted keys are: the one from which a single plane is stored."""
        return SPARE if self.planes == 1 else KEYS

    def steps(self) -> Iterator[NetworkStep]:
        """The network: keys in the natural order, in their buffer, become sorted ones in `left`."""
        return _Network(self).all()


class _Network:
    """Writes the network down.

    Bits of places are numbered from the lowest one of a row's places; in the turned order those
    that say which eight rows, at most `LOW`, are behind them.

    Args:
        tile: what is sorted.

    Attributes:
        source, target: buffers that hold the keys, and that the next exchange writes.
        steps: where the blocks of the source are.
        bits: how many bits are of places in a row.
        plane: elements from plane to plane.
        used: bits of the places of keys in a row, of `in_row` that there are.
        wanted: bits of the places of the wanted keys.
    """

    def __init__(self, tile: SortTile) -> None:
        self.tile = tile
        self.source, self.target = KEYS, SPARE
        self.groups, self.in_row = tile.groups, tile.in_row
        self.used = tile.used or self.in_row
        self.natural = self._natural()
        self.turned = turned_places(self.used, self.in_row, bits_of(self.groups), tile.low)
        self.wanted = min(bits_of(tile.kept or 1 << self.used), self.used)
        self._are_natural()

    def _natural(self) -> Steps:
        """Where blocks are as keys lie in global memory; of a single row those of used places."""
        tile = self.tile
        if tile.rows > 1:
            return tuple(LANES << i for i in range(bits_of(tile.blocks)))
        blocks = (LANES << i for i in range(self.used - bits_of(LANES)))
        return (*blocks, *(tile.elements // OUTER << i for i in range(bits_of(OUTER))))

    def _are_natural(self) -> None:
        self.steps, self.bits, self.plane = self.natural, len(self.natural), self.tile.elements

    def _are_turned(self, bits: int) -> None:
        """Keys are turned, of which the first so many bits of a row's places are of account."""
        self.steps, self.bits, self.plane = self._first(bits), bits, self.tile.turned

    def _first(self, bits: int) -> Steps:
        """Where the first keys of rows are as turned keys come and go."""
        return self.turned[:bits] + self.turned[self.in_row :]

    def _placed(self, last: int, bits: int) -> Steps:
        return placed(last, bits, self.tile.low)

    def all(self) -> Iterator[NetworkStep]:
        """All steps; sorted keys may be in the other buffer at last, from where they are copied."""
        if self.tile.rows > 1:
            yield from self._rows()
        else:
            yield from self._one_row()
        if self.source != self.tile.left:
            size = self.tile.planes * self.tile.elements
            views = [View(name, (size,), (1,)) for name in (self.source, self.source, self.target)]
            yield NetworkStep("vmax", tuple(views), (self.tile.kind,) * 3)

    def _rows(self) -> Iterator[NetworkStep]:
        """The steps that sort all rows of a tile at once: keys are turned so that rows are lanes,
        sorted in runs, halved until the wanted ones are left, and turned back."""
        yield from self._turn()
        yield from self._runs()
        if self.wanted < self.used:
            first = self._first(self.wanted)
            runs = self._placed(self.wanted - 1, len(first)) if self.wanted else first
            yield from self._halved(runs)
            yield from self._bitonic(self.wanted, first)
        yield from self._turn_back()

    def _one_row(self) -> Iterator[NetworkStep]:
        """Eighths, every other one in descending order, and three merges."""
        outer = len(self.natural) - 3  # the lowest bit of outer places, in the natural order
        if self.wanted < self.used:
            yield from self._first_of_row(outer)
            return
        yield from self._change_signs(None, outer)
        yield from self._turn()
        yield from self._runs()
        for merge in range(3):
            yield from self._turn_back()
            yield from self._change_signs(outer + merge, outer + merge + 1)
            for bit in reversed(range(outer, outer + merge + 1)):
                yield from self._exchange(bit, self.natural)
            yield from self._turn()
            yield from self._bitonic(self.bits, self._first(self.bits))
        yield from self._turn_back()

    def _first_of_row(self, outer: int) -> Iterator[NetworkStep]:
        """The wanted keys of each eighth, then of pairs of eighths, of fours, and of all, in front
        of the first of these eighths; what is elsewhere is of no account."""
        yield from self._turn()
        yield from self._runs()
        yield from self._halved(self._first(self.wanted))
        yield from self._turn_back()
        yield from self._change_signs(None, outer)
        run = range(self.wanted - bits_of(LANES))
        for bit in range(outer, outer + 3):
            yield from self._first_runs()
            yield from self._change_signs(bit, None)
            others = (*run, *range(bit + 1, outer + 3))
            yield from self._compared(bit, {other: self.steps[other] for other in others})
            yield from self._change_signs(None, bit + 1)
        yield from self._first_runs()

    def _first_runs(self) -> Iterator[NetworkStep]:
        """Sorts the bitonic run of the wanted length that each eighth begins with."""
        yield from self._turn()
        self._are_turned(self.wanted)
        for bit in reversed(range(self.wanted)):
            yield from self._exchange(bit, self.steps)
        yield from self._turn_back()

    def _runs(self) -> Iterator[NetworkStep]:
        """Sorts runs of the wanted length while keys are turned. They come in no order, so which
        bit of their places is which is free to choose, where there are keys in all of them."""
        bits = len(self.steps)
        if self.used == self.in_row:
            self.steps = self._placed(0, bits)
        for level in range(1, self.wanted + 1):
            yield from self._change_signs(level - 1 if level > 1 else None, level)
            after = self._placed(level, bits) if level < self.used else self._first(self.used)
            yield from self._bitonic(level, after)

    def _halved(self, after: Steps) -> Iterator[NetworkStep]:
        """Of pairs of sorted runs of the wanted length the smaller keys, again and again while keys
        are turned, until one run is left: a bitonic one, not sorted, in the places `after`."""
        bit = self.wanted
        while self.bits > bit:
            left = len(self.steps) - 1
            last = self.bits == bit + 1
            places = after if last else self._placed(max(bit - 1, 0), left)
            if bit:
                yield from self._change_signs(bit, None)
            others = (other for other in range(left + 1) if other != bit)
            yield from self._compared(bit, dict(zip(others, places, strict=True)))
            self.steps, self.bits = places, self.bits - 1
            if bit and not last:
                yield from self._change_signs(None, bit)
                yield from self._bitonic(bit, self._placed(bit, left))

    def _bitonic(self, bits: int, after: Steps) -> Iterator[NetworkStep]:
        """Sorts bitonic runs of 2^bits blocks while keys are turned; they are in the places `after`
        then."""
        for bit in reversed(range(bits)):
            yield from self._exchange(bit, self._placed(bit - 1, len(after)) if bit else after)

    def _change_signs(self, old: int | None, new: int | None) -> Iterator[NetworkStep]:
        """Changes the signs of keys so that those with bit `new` are negative instead of those with
        bit `old`; None, and bits that no place has, are in no key."""
        changed = [bit for bit in (old, new) if bit is not None and bit < self.bits]
        if not changed:
            return
        apart = [self.steps[bit] for bit in changed]
        others = [step for bit, step in enumerate(self.steps) if bit not in changed]
        steps = [max(apart) - min(apart), *sorted(others, reverse=True)][2 - len(changed) :]
        tile = self.tile
        strides, shape = [*steps, 1], [*[2] * len(steps), LANES]
        dims = merge_dims(shape, [strides, [0] * len(steps) + [1]])
        sizes = tuple(dim.size for dim in dims)
        for plane in range(tile.planes):
            first = plane * self.plane + min(apart)
            keys = View(self.source, sizes, tuple(dim.strides[0] for dim in dims), first)
            if tile.planes > 1:
                yield NetworkStep("vmuls", (keys, keys), ("f32", "f32"), -1.0)
            else:
                minus = tile.constant(MINUS_ONE, sizes)
                yield NetworkStep("vsub", (minus, keys, keys), ("s32",) * 3)

    def _exchange(self, bit: int, after: Steps) -> Iterator[NetworkStep]:
        """Compare-exchanges of the keys whose blocks differ in a bit, which have other places
        afterwards."""
        others = {other: step for other, step in enumerate(after) if other != bit}
        yield from self._compared(bit, others, after[bit])
        self.steps = after

    def _compared(
        self, bit: int, others: dict[int, int], apart: int | None = None
    ) -> Iterator[NetworkStep]:
        """The smaller ones of the keys whose blocks differ in a bit, in the target.

        Args:
            others: bits of the keys that are compared, and how far apart results are in them.
            apart: how far behind the smaller keys the others go, if they are wanted.
        """
        order = sorted(others, key=lambda other: -self.steps[other])
        strides = [[*(steps[other] for other in order), 1] for steps in (self.steps, others)]
        dims = merge_dims([*[2] * len(order), LANES], strides)
        shape = tuple(dim.size for dim in dims)
        read, written = (tuple(dim.strides[i] for dim in dims) for i in (0, 1))
        half = self.steps[bit]

        def both(name: str, plane: int = 0) -> View:
            return View(name, (2, *shape), (half, *read), plane * self.plane)

        work = [View(WORK, shape, read, i * half) for i in (0, 1)]
        more, kinds = both(self.source), (self.tile.kind,) * 3
        low = View(self.target, shape, written)
        for plane in range(self.tile.planes):
            if plane:
                smaller = View(low.buffer, (2, *shape), (0, *written), low.offset)
                yield NetworkStep("vsub", (more, smaller, both(WORK)), kinds)
                more = both(WORK)
                yield NetworkStep("vadd", (more, both(self.source, plane), more), kinds)
            first = plane * self.plane
            a, b = (View(self.source, shape, read, first + i * half) for i in (0, 1))
            low = View(self.target, shape, written, first)
            compared = tuple(work) if plane else (a, b)
            yield NetworkStep("vmin", (*compared, low), kinds)
            if apart is None:
                continue
            high = View(self.target, shape, written, first + apart)
            if plane == SUMMED:  # without a wait for the smaller ones
                yield NetworkStep("vadd", (a, b, high), kinds)
                yield NetworkStep("vsub", (high, low, high), kinds)
            elif plane:
                yield NetworkStep("vsub", (a, low, high), kinds)
                yield NetworkStep("vadd", (high, b, high), kinds)
            else:
                yield NetworkStep("vmax", (a, b, high), kinds)
        self.source, self.target = self.target, self.source

    def _turn(self) -> Iterator[NetworkStep]:
        """Transpositions that bring the keys of `source` from the natural order, rows one behind
        the other, to the turned one, in which an exchange takes whole blocks.

        First 16 neighbouring blocks are transposed together, then 16 that lie apart. The turned
        keys are in `source` again.
        """
        yield self._transposed(self._tiles(self.source), self._tiles(self.target))
        self._are_turned(self.in_row)
        for words, places in self._words():
            yield self._transposed(
                replace(words, buffer=self.target), replace(places, buffer=self.source)
            )
        self._are_turned(self.used)

    def _turn_back(self) -> Iterator[NetworkStep]:
        """The transpositions of `_turn` backwards: keys of `source` are in rows again."""
        for words, places in self._words():
            yield self._transposed(
                replace(places, buffer=self.source), replace(words, buffer=self.target)
            )
        yield self._transposed(self._tiles(self.target), self._tiles(self.source))
        self._are_natural()

    def _transposed(self, source: View, target: View) -> NetworkStep:
        return NetworkStep("vnchwconv", (source, target), (self.tile.kind,) * 2)

    def _tiles(self, name: str) -> View:
        """A buffer as rows of 16 blocks of 32 bytes, which a transposition reads and writes."""
        count = self.tile.planes * self.tile.blocks // TURN
        return View(name, (TURN, count, LANES), (LANES, TURN * LANES, 1))

    def _words(self) -> Iterator[tuple[View, View]]:
        """Words of 16 bits of all outer places and both halves, each in 16 blocks, and the 16
        blocks of the turned order that have them, for all lanes and all blocks 16 apart.

        Of bits of places that are of no account one block stands for all."""
        tile, lanes = self.tile, bits_of(LANES)
        known = max(self.bits, lanes)
        steps = [*self.turned[:known], *[0] * (self.in_row - known), *self.turned[self.in_row :]]
        rows, far = steps[lanes : lanes + 4], steps[lanes + 4 :]
        inner = tile.blocks // self.groups // OUTER // TURN
        in_groups = [TURN * LANES << i for i in range(bits_of(inner))]
        groups = [tile.elements // self.groups << i for i in range(bits_of(self.groups))]
        shape, outer = (OUTER, 2, LANES, LANES), (inner * TURN * LANES, LANES, 2 * LANES, 1)
        places = (*[2] * len(rows), LANES, LANES)
        strides = (*reversed(rows), steps[0], 1)
        for plane in range(tile.planes):
            for chosen in product((0, 1), repeat=len(far)):
                first = sum(map(mul, chosen, (*in_groups, *groups)))
                place = sum(map(mul, chosen, far))
                yield (
                    View("", shape, outer, plane * tile.elements + first),
                    View("", places, strides, plane * tile.turned + place),
                )
