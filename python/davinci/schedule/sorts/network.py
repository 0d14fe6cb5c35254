"""A bitonic network on the vector unit: a tile of keys in UB, sorted by whole blocks.

A compare-exchange takes the keys whose places differ in one bit, so it is an operation on blocks of
32 bytes where that bit of a place counts blocks, and none where it counts the 8 lanes of a block.
So lanes have what is compared last, or not at all, and change with blocks between:

    natural    blocks [8 outer][q], lanes the 8 lowest places     as keys lie in global memory
    turned     blocks [every other place], lanes the 8 outer      rows, or eighths of one row

Eight rows are sorted while they are turned. Of a single row eighths are sorted like that; then
pairs of them, of pairs and of fours are merged, the compare-exchanges of outer places in the
natural order, those of all others in the turned one. A change is two transpositions of words of 16
bits.

All exchanges put the smaller key first; what has to be in descending order meanwhile (half of the
keys, each merge other ones) has its sign changed.

Where only the first k keys of a row are wanted, runs of k, rounded up to a power of two, are
sorted; then of two such runs the smaller keys stay, k of them, which are sorted again, until one
run is left. Half of the keys are gone with each of these steps.

A key is one or more *planes*. One plane is s32, exchanged by vmin and vmax. Several are numbers in
f32 that are compared one after the other, exact in all that is done with them:

    d = a - b, of all planes         sign = d0 + d1 + d2 > 0 ? 1 : 0
    a = a - sign * d, b = b + sign * d

Each plane is integers below 2^25 times a power of two, 2^25 times that of the next one: the first
difference that is not 0 decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.schedule.vector.steps import View
from davinci.units import BLOCK_BYTES

LANES = BLOCK_BYTES // 4
"""Keys of a block."""

OUTER = 8
"""Rows, or eighths of a row, that turn into lanes."""

TURN = 16
"""Blocks that a transposition turns."""

LEAST = OUTER * TURN * LANES
"""Keys of the smallest tile."""

APART = float(2**25)
"""What the numbers of a plane are times those of the next one: more than any difference of two."""

KEYS, SPARE, DIFFERENCE, SIGN, WORK, NUMBERS = "keys", "spare", "difference", "sign", "work", "one"
"""Names of the buffers: two for all planes, one for half of all planes, one for half of a plane,
one for a plane, and constants, a block each."""

MINUS_ONE, ONE = "-1", "1.0"
"""Names of constants: s32 -1 and f32 1."""


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
class SortTile:
    """Keys that are sorted together in UB.

    Attributes:
        elements: keys, those that fill up to a power of two included.
        rows: 8 rows, or 1.
        planes: numbers that a key is.
        constants: names of constants, in the order of their blocks.
        kept: first keys of a row that are wanted; 0: all.
    """

    elements: int
    rows: int
    planes: int
    constants: tuple[str, ...]
    kept: int = 0

    @property
    def width(self) -> int:
        """Places of a row."""
        return self.elements // self.rows

    @property
    def blocks(self) -> int:
        """Blocks of a plane."""
        return self.elements // LANES

    @property
    def kind(self) -> str:
        """The type of planes."""
        return "s32" if self.planes == 1 else "f32"

    def sizes(self) -> dict[str, int]:
        """Elements of the buffers."""
        half = self.elements // 2
        found = {
            KEYS: self.planes * self.elements,
            SPARE: self.planes * self.elements,
            WORK: self.elements,
            NUMBERS: LANES * len(self.constants),
        }
        if self.planes > 1:
            found |= {DIFFERENCE: self.planes * half, SIGN: half}
        return found

    @property
    def bytes(self) -> int:
        return sum(count * 4 for count in self.sizes().values())

    def constant(self, name: str, shape: tuple[int, ...]) -> View:
        """A constant in all lanes of blocks [.., lanes]."""
        strides = (*[0] * (len(shape) - 1), 1)
        return View(NUMBERS, shape, strides, self.constants.index(name) * LANES)

    def steps(self) -> Iterator[NetworkStep]:
        """The network: keys in the natural order become sorted ones, in the same buffer."""
        return _Network(self).all()


class _Network:
    """Writes the steps down.

    Args:
        tile: what is sorted.
    """

    def __init__(self, tile: SortTile) -> None:
        self.tile = tile
        self.source, self.target = KEYS, SPARE
        self._all_places()
        most = 1 << self.top
        self.wanted = (min(tile.kept or most, most) - 1).bit_length()

    def _all_places(self) -> None:
        """Exchanges work on all blocks, with places of so many bits."""
        self.blocks = self.tile.blocks
        self.top = (self.blocks - 1).bit_length()

    def all(self) -> Iterator[NetworkStep]:
        """All steps; sorted keys may be left in the spare buffer, from where they are copied."""
        if self.tile.rows == OUTER:
            yield from self._rows()
        else:
            yield from self._one_row()
        if self.source != KEYS:
            size = self.tile.planes * self.tile.elements
            views = [View(name, (size,), (1,)) for name in (self.source, self.source, KEYS)]
            yield NetworkStep("vmax", tuple(views), (self.tile.kind,) * 3)

    def _rows(self) -> Iterator[NetworkStep]:
        yield from self._turn()
        for level in range(1, self.wanted + 1):
            yield from self._merge(level)
        if self.wanted < self.top:
            yield from self._halved()
            yield from self._bitonic()
        yield from self._turn_back()

    def _one_row(self) -> Iterator[NetworkStep]:
        """Eighths, every other one in descending order, and three merges."""
        outer = self.top - 3  # the lowest bit of outer places, in the natural order
        if self.wanted < self.top:
            yield from self._first_of_row(outer)
            return
        yield from self._negated(self._odd(outer))
        yield from self._turn()
        for level in range(1, self.top + 1):
            yield from self._merge(level)
        for merge in range(3):
            yield from self._turn_back()
            yield from self._change_signs(outer + merge, outer + merge + 1)
            for bit in reversed(range(outer, outer + merge + 1)):
                yield from self._exchange(bit)
            yield from self._turn()
            for bit in reversed(range(self.top)):
                yield from self._exchange(bit)
        yield from self._turn_back()

    def _first_of_row(self, outer: int) -> Iterator[NetworkStep]:
        """The wanted keys of each eighth, then of pairs of eighths, of fours, and of all, in front
        of the first of these eighths; what is elsewhere is of no account."""
        yield from self._turn()
        for level in range(1, self.wanted + 1):
            yield from self._merge(level)
        yield from self._halved()
        yield from self._turn_back()
        self._all_places()
        yield from self._negated(self._odd(outer))
        for bit in range(outer, outer + 3):
            yield from self._first_runs()
            yield from self._change_signs(bit, None)
            a, b, low = self._halves(bit, max(LANES, 1 << self.wanted), 2 * LANES << bit)
            yield from self._smaller(a, b, low)
            yield from self._change_signs(None, bit + 1)
        yield from self._first_runs()

    def _first_runs(self) -> Iterator[NetworkStep]:
        """Sorts the bitonic run of the wanted length that each eighth begins with."""
        yield from self._turn()
        self.blocks, self.top = 1 << self.wanted, self.wanted
        yield from self._bitonic()
        yield from self._turn_back()
        self._all_places()

    def _halved(self) -> Iterator[NetworkStep]:
        """Of pairs of sorted runs of the wanted length the smaller keys, again and again while keys
        are turned, until one run is left: a bitonic one, not sorted."""
        bit = self.wanted
        while True:
            if bit:
                yield from self._change_signs(bit, None)
            yield from self._smaller(*self._halves(bit, LANES << bit, LANES << bit))
            self.blocks, self.top = self.blocks // 2, self.top - 1
            if self.top == bit:
                return
            if bit:
                yield from self._change_signs(None, bit)
            yield from self._bitonic()

    def _halves(self, bit: int, size: int, apart: int) -> tuple[View, View, View]:
        """The first `size` keys of runs whose blocks differ in a bit, without it and with it; and
        places in the target, so far apart."""
        run, groups = LANES << bit, self.blocks >> bit + 1
        shape, plane = (self.tile.planes, groups, size), self.tile.elements
        a, b = (View(self.source, shape, (plane, 2 * run, 1), n * run) for n in (0, 1))
        return a, b, View(self.target, shape, (plane, apart, 1))

    def _bitonic(self) -> Iterator[NetworkStep]:
        """Sorts bitonic runs of the wanted length."""
        for bit in reversed(range(self.wanted)):
            yield from self._exchange(bit)

    def _merge(self, level: int) -> Iterator[NetworkStep]:
        """Merges runs of 2^(level - 1) blocks while keys are turned."""
        yield from self._change_signs(level - 1 if level > 1 else None, level)
        for bit in reversed(range(level)):
            yield from self._exchange(bit)

    def _change_signs(self, old: int | None, new: int | None) -> Iterator[NetworkStep]:
        """Changes the signs of keys so that those with bit `new` are negative instead of those with
        bit `old`, the one below it; None, and bits that no place has, are in no key."""
        old, new = (bit if bit is not None and bit < self.top else None for bit in (old, new))
        if old is None or new is None:
            for bit in (old, new):
                yield from [] if bit is None else self._negated(self._odd(bit))
            return
        run = LANES << old
        yield from self._negated((self.blocks >> new + 1, 4 * run, run, 2 * run))

    def _odd(self, bit: int) -> tuple[int, int, int, int]:
        """Keys whose places have a bit: how many runs, how far apart, the first, and their size."""
        run = LANES << bit
        return self.blocks >> bit + 1, 2 * run, run, run

    def _negated(self, runs: tuple[int, int, int, int]) -> Iterator[NetworkStep]:
        count, apart, first, size = runs
        tile, name = self.tile, self.source
        if tile.planes > 1:
            shape, strides = (tile.planes, count, size), (tile.elements, apart, 1)
            keys = View(name, shape, strides, first)
            yield NetworkStep("vmuls", (keys, keys), ("f32", "f32"), -1.0)
            return
        blocks = (count, size // LANES, LANES)
        keys = View(name, blocks, (apart, LANES, 1), first)
        minus = tile.constant(MINUS_ONE, blocks)
        yield NetworkStep("vsub", (minus, keys, keys), ("s32",) * 3)

    def _exchange(self, bit: int) -> Iterator[NetworkStep]:
        """Compare-exchanges of the keys whose blocks differ in a bit."""
        run = LANES << bit
        a, b, low = self._halves(bit, run, 2 * run)
        yield from self._smaller(a, b, low, replace(low, offset=run))

    def _smaller(
        self, a: View, b: View, low: View, high: View | None = None
    ) -> Iterator[NetworkStep]:
        """The smaller keys of two views of the source, and the others; in views of the target."""
        planes, groups, run = a.shape
        if planes == 1:
            yield NetworkStep("vmin", (a, b, low), ("s32",) * 3)
            if high is not None:
                yield NetworkStep("vmax", (a, b, high), ("s32",) * 3)
        else:
            many, size = ("f32",) * 3, groups * run
            apart = View(DIFFERENCE, a.shape, (size, run, 1))
            yield NetworkStep("vsub", (a, b, apart), many)
            yield from self._signs(size)
            every = View(DIFFERENCE, (planes, size), (size, 1))
            sign = View(SIGN, (planes, size), (0, 1))
            yield NetworkStep("vmul", (sign, every, every), many)
            yield NetworkStep("vsub", (a, apart, low), many)
            if high is not None:
                yield NetworkStep("vadd", (b, apart, high), many)
        self.source, self.target = self.target, self.source

    def _signs(self, size: int) -> Iterator[NetworkStep]:
        """1 where a difference is more than 0, else 0."""
        sign, many = View(SIGN, (size,), (1,)), ("f32",) * 3
        first, *planes = (
            View(DIFFERENCE, (size,), (1,), i * size) for i in range(self.tile.planes)
        )
        for plane in planes:
            yield NetworkStep("vadd", (first, plane, sign), many)
            first = sign
        yield NetworkStep("vrelu", (sign, sign), many[:2])
        blocks = (size // LANES, LANES)
        held = View(SIGN, blocks, (LANES, 1))
        yield NetworkStep("vmin", (held, self.tile.constant(ONE, blocks), held), many)

    def _turn(self) -> Iterator[NetworkStep]:
        """From the natural order to the turned one."""
        yield self._transposed(self._tiles(self.source), self._tiles(self.target))
        for words, places in self._words():
            yield self._transposed(self._at(self.target, words), self._at(self.source, places))

    def _turn_back(self) -> Iterator[NetworkStep]:
        """From the turned order to the natural one."""
        for words, places in self._words():
            yield self._transposed(self._at(self.source, places), self._at(self.target, words))
        yield self._transposed(self._tiles(self.target), self._tiles(self.source))

    def _transposed(self, source: View, target: View) -> NetworkStep:
        return NetworkStep("vnchwconv", (source, target), (self.tile.kind,) * 2)

    def _tiles(self, name: str) -> View:
        """A buffer as rows of 16 blocks of 32 bytes, which a transposition reads and writes."""
        count = self.tile.planes * self.tile.blocks // TURN
        return View(name, (TURN, count, LANES), (LANES, TURN * LANES, 1))

    def _at(self, name: str, view: View) -> View:
        return View(name, view.shape, view.strides, view.offset)

    def _words(self) -> Iterator[tuple[View, View]]:
        """Words of 16 bits of all outer places and both halves, each in 16 blocks, and the 16
        blocks of the turned order that have them, for all lanes and all blocks 16 apart."""
        inner = self.tile.blocks // OUTER // TURN
        lanes = (LANES, 2 * LANES, LANES)
        apart = (inner, TURN * LANES, TURN * LANES * LANES)
        for plane in range(self.tile.planes):
            first = plane * self.tile.elements
            (size, step, jump), (count, more, far) = (
                (lanes, apart) if inner <= LANES else (apart, lanes)
            )
            for i in range(count):
                outer = (inner * TURN * LANES, LANES, step, 1)
                words = View("", (OUTER, 2, size, LANES), outer, first + i * more)
                blocks = View("", (TURN, size, LANES), (LANES * LANES, jump, 1), first + i * far)
                yield words, blocks
