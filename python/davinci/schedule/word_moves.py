"""Moves of elements that are no whole blocks: by words of 16 bits that become blocks and back.

An array is put together of boxes of others: a transpose or a slice of one, a concatenation of
several, a pad of one and a number. One dimension *carries* the move: of 16 rows of its points each
is moved alike. A transposition of 16 x 16 words makes a block of each word of a row, blocks are
moved by the vector unit wherever they belong, and another transposition makes rows of them:

    y[c, p] = x[p, c], 16 rows r of 2 points p of 3 elements c of one word each
    loaded   |p0c0 p0c1 p0c2 p1c0 p1c1 p1c2| of r = 0, the same of r = 1, ..
    turned   |p0c0 of all r|p0c1 of all r|p0c2 of all r|p1c0 of all r|..
    moved    |p0c0|p1c0|..   |p0c1|p1c1|..   |p0c2|p1c2|..
    turned   |p0c0 p1c0| of r = 0, of r = 1, ..    |p0c1 p1c1| of r = 0, ..       stored

What comes before the carrier on both sides is walked; what lies inside it on one side at least is
moved with it, a run for each of its dimensions that lie outside. A small array is one row as a
whole. Bytes are moved as the f16 numbers of the same value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.isa.transpose import ROWS
from davinci.machine import Machine
from davinci.schedule.row_steps import DIGITS, Digits
from davinci.schedule.vector_steps import TRANSPOSITION, Step, Steps, View
from davinci.units import BLOCK_BYTES, round_up

WORD_BYTES = 2
BLOCK_LANES = 8
"""Lanes of a block as it is moved, of 32 bits."""

TURNED, PLACED = "turned", "placed"
"""The blocks of the words that were loaded, and of those that are stored."""

SPARSE = 4
"""Points whose words are one in so many of what lies there are loaded without the rest."""

SLOTS = 2
"""Tiles that a core works on at a time."""


def loaded(box: int) -> str:
    """The buffer of what is loaded for a box."""
    return f"loaded{box}"


STORED = "stored"


@dataclass(frozen=True)
class Box:
    """A part of the result that comes from one array.

    Attributes:
        starts, sizes: along each dimension of the result.
        steps: places of the result from one element to the next.
        strides: elements from one to the next in the array; not negative.
        offset: of the first.
        total: elements of the array.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    total: int

    def covers(self, dim: int, size: int) -> bool:
        """Whether it has all of a dimension of `size` places."""
        return self.sizes[dim] == size and self.steps[dim] == 1


@dataclass(frozen=True)
class Move:
    """An array in rows, made of boxes.

    Attributes:
        shape: of the result.
        itemsize: bytes of an element, in GM.
        number: bits of the elements outside of the boxes, of bytes those of the f16 number; None:
            there are none.
    """

    shape: tuple[int, ...]
    boxes: tuple[Box, ...]
    itemsize: int
    number: int | None = None

    @property
    def words(self) -> int:
        """Words of an element in UB."""
        return max(1, self.itemsize // WORD_BYTES)


@dataclass(frozen=True)
class Load:
    """What of an array is loaded for a tile.

    Attributes:
        runs: dimensions that lie outside of the carrier there, each a run.
        pitch: elements that a point takes in UB.
        lead: elements in front of those that are wanted.
        dense: whether points follow each other without gaps in GM too.
        last_lead: the same of the last tile along the carrier, so that it ends with the array.
    """

    runs: tuple[int, ...]
    pitch: int
    lead: int
    dense: bool
    last_lead: int = 0


@dataclass(frozen=True)
class WordMove:
    """How a move is done.

    Attributes:
        carrier: the dimension whose points are shared; None: the whole is one point.
        walked: dimensions that are walked.
        runs: dimensions that lie outside of the carrier in the result, each a run.
        rows, points: rows of a tile, and points of the carrier in each.
        loads: of each box.
        pitch: elements of a point in a run of the result.
        cycles: estimated, of a core.
    """

    move: Move
    carrier: int | None
    walked: tuple[int, ...]
    runs: tuple[int, ...]
    rows: int
    points: int
    loads: tuple[Load, ...]
    pitch: int
    cycles: int = 0

    @property
    def tile(self) -> int:
        """Points of a tile."""
        return self.rows * self.points

    @property
    def last(self) -> WordMove:
        """The way of the last tile along the carrier."""
        loads = tuple(replace(load, lead=load.last_lead) for load in self.loads)
        return replace(self, loads=loads)

    def load_runs(self, box: int) -> int:
        return math.prod(self.move.boxes[box].sizes[e] for e in self.loads[box].runs)

    @property
    def store_runs(self) -> int:
        return math.prod(self.move.shape[e] for e in self.runs)

    def loaded_elements(self, box: int) -> int:
        """Elements of the buffer that a box is loaded to."""
        return self.load_runs(box) * self.tile * self.loads[box].pitch

    @property
    def stored_elements(self) -> int:
        return self.store_runs * self.tile * self.pitch

    def turned_blocks(self, box: int) -> int:
        """Words of a row of what is loaded for a box."""
        return self.loaded_elements(box) // self.rows * self.move.words

    @property
    def placed_blocks(self) -> int:
        return self.stored_elements // self.rows * self.move.words

    @property
    def scratch(self) -> dict[str, int]:
        """Lanes of the buffers of blocks."""
        turned = sum(self.turned_blocks(box) for box in range(len(self.move.boxes)))
        return {TURNED: turned * BLOCK_LANES, PLACED: self.placed_blocks * BLOCK_LANES}

    @property
    def bytes(self) -> int:
        """Bytes of UB that a tile takes."""
        moved = self.stored_elements
        moved += sum(self.loaded_elements(box) for box in range(len(self.move.boxes)))
        size = self.move.itemsize + (WORD_BYTES if self.move.itemsize == 1 else 0)
        return moved * size + sum(self.scratch.values()) * BLOCK_BYTES // BLOCK_LANES

    def steps(self) -> Steps:
        """The work of the vector unit on a tile."""
        steps: list[Step] = []
        base = 0
        for box in range(len(self.move.boxes)):
            steps += self._turn(box, base)
            base += self.turned_blocks(box)
        base = 0
        steps += self._filled()
        for box in range(len(self.move.boxes)):
            steps.append(self._place(box, base))
            base += self.turned_blocks(box)
        return Steps("s32", (*steps, *self._turn_back()), self.scratch)

    @property
    def _digits(self) -> tuple[int, ...]:
        digits = Digits.of(self.rows, DIGITS)
        assert digits.repeats == 1, "more rows than a transposition has"
        return digits.strides

    def _rows(self, buffer: str, run: int, row: int) -> View:
        """A run of rows of `row` elements, by their blocks."""
        lanes = ROWS // self.move.words
        shape = (*(2,) * DIGITS, row // lanes, lanes)
        strides = (*(row * stride for stride in self._digits), lanes, 1)
        return View(buffer, shape, strides, run * row * self.rows)

    def _blocks(self, buffer: str, first: int, count: int) -> View:
        """`count` blocks, 16 at a time."""
        lanes = BLOCK_LANES
        shape, strides = (ROWS, count // ROWS, lanes), (lanes, ROWS * lanes, 1)
        return View(buffer, shape, strides, first * lanes)

    def _turn(self, box: int, base: int) -> Iterator[Step]:
        row = self.points * self.loads[box].pitch
        count = row * self.move.words
        for run in range(self.load_runs(box)):
            blocks = self._blocks(TURNED, base + run * count, count)
            yield Step(TRANSPOSITION, (self._rows(loaded(box), run, row), blocks))

    def _turn_back(self) -> Iterator[Step]:
        row = self.points * self.pitch
        count = row * self.move.words
        for run in range(self.store_runs):
            blocks = self._blocks(PLACED, run * count, count)
            yield Step(TRANSPOSITION, (blocks, self._rows(STORED, run, row)))

    def _filled(self) -> Iterator[Step]:
        """The number outside of the boxes; behind a result that is no whole blocks anything."""
        number, words = self.move.number, self.move.words
        covered = math.prod(self.move.shape) * words
        if number is None and (self.carrier is not None or covered == self.placed_blocks):
            return
        if number is None:
            count = (self.placed_blocks - covered) * BLOCK_LANES
            yield Step("vector_dup", (View(PLACED, (count,), (1,), covered * BLOCK_LANES),), 0)
            return
        parts = [number >> 16 * i & 0xFFFF for i in range(words)]
        if len(set(parts)) == 1:
            parts = parts[:1]
        for i, word in enumerate(parts):
            twice = word | word << 16
            shape = (self.placed_blocks // len(parts), BLOCK_LANES)
            strides = (len(parts) * BLOCK_LANES, 1)
            if len(parts) == 1:
                shape, strides = (math.prod(shape),), (1,)  # type: ignore[assignment]
            signed = twice - (1 << 32) * (twice >> 31)
            yield Step("vector_dup", (View(PLACED, shape, strides, i * BLOCK_LANES),), signed)

    def _place(self, number: int, base: int) -> Step:
        """Moves the blocks of a box to those of the result."""
        box, load, words = self.move.boxes[number], self.loads[number], self.move.words
        inside = [e for e in range(len(self.move.shape)) if e not in (*self.walked, self.carrier)]
        from_run = _run_strides(load.runs, box.sizes, self.points * load.pitch * words)
        to_run = _run_strides(self.runs, self.move.shape, self.points * self.pitch * words)
        strides = result_strides(self.move.shape)
        dims = [(self.points, load.pitch * words, self.pitch * words)]
        first, place = base + load.lead * words, 0
        for e in inside:
            source = from_run[e] if e in load.runs else box.strides[e] * words
            result = to_run[e] if e in self.runs else strides[e] * words
            dims.append((box.sizes[e], source, result * box.steps[e]))
            place += box.starts[e] * result
        dims.append((words, 1, 1))
        lanes = BLOCK_LANES
        shape = (*(size for size, _, _ in dims), lanes)
        turned = View(TURNED, shape, (*(s * lanes for _, s, _ in dims), 1), first * lanes)
        placed = View(PLACED, shape, (*(s * lanes for _, _, s in dims), 1), place * lanes)
        return Step("vmax", (turned, turned, placed))


def result_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[e + 1 :]) for e in range(len(shape)))


def _run_strides(runs: Sequence[int], sizes: Sequence[int], length: int) -> dict[int, int]:
    """Blocks from run to run along each of the dimensions `runs`."""
    found = {}
    for e in reversed(runs):
        found[e] = length
        length *= sizes[e]
    return found


def word_move(move: Move, machine: Machine, cores: int) -> WordMove | None:
    """The way that takes least time; None if there is none."""
    found = [
        way
        for carrier in (None, *range(len(move.shape)))
        for dense in itertools.product((True, False), repeat=len(move.boxes))
        if (way := _Ways(move, machine, cores, carrier, dense).best()) is not None
    ]
    return min(found, key=lambda way: way.cycles, default=None)


class _Ways:
    """The ways that one carrier gives."""

    def __init__(
        self,
        move: Move,
        machine: Machine,
        cores: int,
        carrier: int | None,
        dense: tuple[bool, ...],
    ) -> None:
        self.move, self.machine, self.cores, self.carrier = move, machine, cores, carrier
        self.dense = dense
        self.unit = 2 * ROWS if move.itemsize == 1 else ROWS
        """Words that a row is a multiple of."""

    def best(self) -> WordMove | None:
        return self._whole() if self.carrier is None else self._carried(self.carrier)

    def _whole(self) -> WordMove | None:
        """The whole as one point of one row."""
        move, words = self.move, self.move.words
        if not all(self.dense):
            return None
        loads = tuple(
            Load((), round_up(box.total * words, self.unit) // words, box.offset, True, box.offset)
            for box in move.boxes
        )
        pitch = round_up(math.prod(move.shape) * words, self.unit) // words
        way = WordMove(move, None, (), (), 1, 1, loads, pitch)
        return self._weighed(way, 1) if self._fits(way, 1) else None

    def _carried(self, carrier: int) -> WordMove | None:
        move = self.move
        size, strides = move.shape[carrier], result_strides(move.shape)
        if not all(box.covers(carrier, size) and box.strides[carrier] for box in move.boxes):
            return None
        others = [e for e, n in enumerate(move.shape) if e != carrier and n > 1]
        inside = {e for e in others if e > carrier}
        inside |= {e for box in move.boxes for e in others if box.strides[e] < box.strides[carrier]}
        inside |= {e for box in move.boxes for e in others if not box.covers(e, move.shape[e])}
        walked = tuple(e for e in others if e not in inside)
        runs = tuple(sorted(e for e in inside if e < carrier))
        loads = [
            self._load(box, carrier, inside, dense)
            for box, dense in zip(move.boxes, self.dense, strict=True)
        ]
        if any(load is None for load in loads):
            return None
        pitch = strides[carrier]
        pitches = [pitch, *(load.pitch for load in loads)]  # type: ignore[union-attr]
        # A last tile that is loaded in another way needs another one before it.
        apart = any(load.last_lead != load.lead for load in loads)  # type: ignore[union-attr]
        least = self._least(pitches, ROWS)
        rows = min(ROWS, (size - apart) // least)
        if move.itemsize == 1 and rows % 2:  # two rows of 16 bytes are a block, or one of 32
            rows, least = (rows - 1, least) if rows > 1 else (1, self._least(pitches, self.unit))
        if not rows or rows * least > size - apart:
            return None
        walks = math.prod(move.shape[e] for e in walked)
        ones = tuple(e for e, n in enumerate(move.shape) if e != carrier and n == 1)
        walked = tuple(sorted((*walked, *ones)))
        way = WordMove(move, carrier, walked, runs, rows, least, tuple(loads), pitch)  # type: ignore[arg-type]
        return self._sized(way, size, walks)

    def _least(self, pitches: Sequence[int], unit: int) -> int:
        """The fewest points that are whole units of words on all sides."""
        words = self.move.words
        return math.lcm(*(unit // math.gcd(unit, pitch * words) for pitch in pitches))

    def _load(self, box: Box, carrier: int, inside: set[int], dense: bool) -> Load | None:
        words, stride = self.move.words, box.strides[carrier]
        inner = [e for e in inside if box.strides[e] < stride]
        runs = tuple(sorted(e for e in inside if e not in inner))
        span = 1 + sum((box.sizes[e] - 1) * box.strides[e] for e in inner)
        last = box.offset + sum(
            (n - 1) * s
            for e, (n, s) in enumerate(zip(box.sizes, box.strides, strict=True))
            if e not in inner
        )
        pitch = stride if dense else round_up(span * words, self.unit) // words
        if not dense and (stride < SPARSE * pitch and span <= stride):
            return None
        lead = max(0, last + pitch - box.total)
        if lead + span > pitch:
            return None
        return Load(runs, pitch, lead if lead <= box.offset else 0, dense, lead)

    def _fits(self, way: WordMove, slots: int) -> bool:
        return way.bytes * slots <= self.machine.buffers.UB.bytes

    def _sized(self, way: WordMove, size: int, walks: int) -> WordMove | None:
        """The tile as large as UB and the number of cores allow."""
        least = way.points
        if not self._fits(way, 1):
            return None
        each = way.bytes
        most = max(1, self.machine.buffers.UB.bytes // (SLOTS * each))
        share = max(1, walks * size // (self.cores * way.rows * least))
        apart = way.last != way
        times = max(1, min(most, share, (size - apart) // (way.rows * least)))
        way = replace(way, points=least * times)
        return self._weighed(way, walks * math.ceil(size / way.tile))

    def _weighed(self, way: WordMove, tiles: int) -> WordMove:
        gm, unit = self.machine.gm, self.machine.vector
        vector = way.steps().estimate(self.machine)
        moved = way.stored_elements * way.move.itemsize
        bursts = 0
        for number, load in enumerate(way.loads):
            moved += way.loaded_elements(number) * way.move.itemsize
            bursts += 0 if load.dense else way.load_runs(number) * way.tile
        waits = vector.links * self.machine.sync.barrier_cycles
        start = self.machine.mte2.start_cycles + self.machine.mte3.start_cycles
        own = math.ceil(tiles / self.cores)
        each = (
            vector.cycles + waits + unit.fixed_cycles + moved / gm.read_bytes_per_cycle + 8 * bursts
        )
        return replace(way, cycles=int(start + own * each))
