"""Moves of elements that are no whole blocks: by words of 16 bits that become blocks and back.

An array is put together of pieces of others (`index_maps`). One dimension *carries* the move: of 16
rows of its points each is moved alike. A transposition of 16 x 16 words makes a block of each word
of a row, blocks are moved by the vector unit wherever they belong, and another transposition makes
rows of them:

    y[c, p] = x[p, c], 16 rows r of 2 points p of 3 elements c of one word each
    loaded   |p0c0 p0c1 p0c2 p1c0 p1c1 p1c2| of r = 0, the same of r = 1, ..
    turned   |p0c0 of all r|p0c1 of all r|p0c2 of all r|p1c0 of all r|..
    moved    |p0c0|p1c0|..   |p0c1|p1c1|..   |p0c2|p1c2|..
    turned   |p0c0 p1c0| of r = 0, of r = 1, ..    |p0c1 p1c1| of r = 0, ..       stored

Where 16 words are whole dimensions the first transposition puts their blocks there at once.

Pieces that lie in the same points of an array, as those of what is turned round, are loaded and
turned once.

What comes before the carrier on both sides is walked; what lies inside it on one side at least is
moved with it, a run for each of its dimensions that lie outside. A small array is one row as a
whole. Bytes are moved as the f16 numbers of the same value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from davinci.isa.transpose import ROWS
from davinci.schedule.moves.block_banks import Parted, best_apart, parted, spread
from davinci.schedule.moves.portions import AlikePieces, Portions
from davinci.schedule.moves.word_pieces import WORD_BYTES, RowsOfPieces, WordLoad
from davinci.schedule.vector.row_steps import DIGITS, Digits
from davinci.schedule.vector.steps import TRANSPOSITION, BufferStep, BufferSteps, View
from davinci.units import BLOCK_BYTES, ceil_div, row_major

WIDTHS = (1, 2, 4, 8)
"""Bytes of elements that can be moved."""

BLOCK_LANES = 8
"""Lanes of a block as it is moved, of 32 bits."""

TURNED, PLACED = "turned", "placed"
"""The blocks of the words that were loaded, and of those that are stored."""


def loaded(piece: int) -> str:
    """The buffer of what is loaded for a piece."""
    return f"loaded{piece}"


STORED = "stored"


@dataclass(frozen=True)
class WordMove(AlikePieces):
    """How a move is done.

    Attributes:
        carrier: the dimension whose points are shared; None: the whole is one point.
        walked: dimensions that are walked.
        runs: dimensions that lie outside of the carrier in the result, each a run.
        rows, points: rows of a tile, and points of the carrier in each.
        loads: of each piece.
        pitch: elements of a point in a run of the result.
        cycles: estimated, of a tile by itself.
        further: of each tile that the same core does behind it.
        apart: whether blocks of several transpositions of which equal ones are moved at once lie
            apart (`block_banks`).
        direct: whether the first transposition puts blocks where they belong.
        slots: of what is loaded and stored, where a core does several tiles.
    """

    move: RowsOfPieces
    carrier: int | None
    walked: tuple[int, ...]
    runs: tuple[int, ...]
    rows: int
    points: int
    loads: tuple[WordLoad, ...]
    pitch: int
    cycles: float = 0.0
    further: float = 0.0
    apart: bool = False
    direct: bool = False
    slots: int = 1

    @property
    def tile(self) -> int:
        """Points of a tile."""
        return self.rows * self.points

    @property
    def portions(self) -> Portions:
        """The tiles along the carrier."""
        assert self.carrier is not None, "only tiles cut along a carrier have portions"
        total, apart = self.move.shape[self.carrier], self.last != self
        count, rest = divmod(total - apart, self.tile)
        return Portions(total, self.tile, count, self.tile if rest or apart else 0)

    @property
    def walks(self) -> list[int]:
        """Sizes of the dimensions that are walked."""
        return [self.move.shape[e] for e in self.walked]

    @property
    def units(self) -> int:
        """Pieces of work."""
        return 1 if self.carrier is None else math.prod(self.walks) * self.portions.units

    def time(self, units: int) -> float:
        """Estimated cycles of a core that does so many pieces of work, the longest among them."""
        tiles = units
        if self.carrier is not None and self.portions.overlaps:
            tiles += ceil_div(units, self.portions.units)
        return super().time(tiles)

    def __str__(self) -> str:
        if self.carrier is None:
            return "words, all at once"
        return f"words, {self.rows} rows of {self.points} a tile"

    @property
    def last(self) -> WordMove:
        """The way of the last tile along the carrier."""
        loads = tuple(replace(load, lead=load.last_lead) for load in self.loads)
        return replace(self, loads=loads)

    def load_runs(self, piece: int) -> int:
        return math.prod(self.move.pieces[piece].sizes[e] for e in self.loads[piece].runs)

    @property
    def store_runs(self) -> int:
        return math.prod(self.move.shape[e] for e in self.runs)

    def loaded_elements(self, piece: int) -> int:
        """Elements of the buffer that a piece is loaded to."""
        return self.load_runs(piece) * self.tile * self.loads[piece].pitch

    @property
    def stored_elements(self) -> int:
        return self.store_runs * self.tile * self.pitch

    @property
    def numbers(self) -> range:
        """The numbers of the pieces."""
        return range(len(self.move.pieces))

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """For each piece the first one that loads the same, which loads for both."""
        first: dict[Any, int] = {}
        return tuple(first.setdefault(self._loaded(number), number) for number in self.numbers)

    def _loaded(self, number: int) -> Any:
        """Equal for pieces that load the same."""
        piece, load = self.move.pieces[number], self.loads[number]
        if load.lead != load.last_lead or not load.dense:
            return number
        outer = [] if self.carrier is None else [*self.walked, *load.runs, self.carrier]
        dims = [piece.strides[e] for e in outer], [piece.sizes[e] for e in load.runs]
        return piece.array, piece.offset - load.lead, load.pitch, str(dims)

    @property
    def loading(self) -> list[int]:
        """The numbers of the pieces that are loaded."""
        return list(dict.fromkeys(self.holders))

    def turned_run(self, piece: int) -> int:
        """Words of a row of a run of what is loaded for a piece."""
        return self.points * self.loads[piece].pitch * self.move.words

    def turned_blocks(self, piece: int) -> int:
        """Words of all runs of what is loaded for a piece, one block each once they are turned."""
        return self.load_runs(piece) * self.turned_run(piece)

    @property
    def placed_blocks(self) -> int:
        return self.stored_elements // self.rows * self.move.words

    @property
    def scratch(self) -> dict[str, int]:
        """Lanes of the buffers of blocks."""
        placed = {PLACED: spread(self.placed_blocks, self._apart[PLACED]) * BLOCK_LANES}
        if self.direct:
            return placed
        turned = sum(map(self.turned_blocks, self.loading))
        return {TURNED: spread(turned, self._apart[TURNED]) * BLOCK_LANES, **placed}

    @cached_property
    def _apart(self) -> dict[str, int]:
        """Blocks from those of one transposition to those of the next, in each buffer."""
        if not self.apart:
            return {TURNED: ROWS, PLACED: ROWS}
        walks = [self._walk(piece) for piece in self.numbers]
        turned = [([(n, s) for n, s, _ in dims], first) for dims, first, _ in walks]
        placed = [([(n, s) for n, _, s in dims], place) for dims, _, place in walks]
        return {TURNED: best_apart(turned), PLACED: best_apart(placed)}

    @property
    def bytes(self) -> int:
        """Bytes of UB that tiles take."""
        moved = self.stored_elements + sum(map(self.loaded_elements, self.loading))
        size = self.move.itemsize * self.slots + (WORD_BYTES if self.move.itemsize == 1 else 0)
        return moved * size + sum(self.scratch.values()) * BLOCK_BYTES // BLOCK_LANES

    def steps(self) -> BufferSteps:
        """The work of the vector unit on a tile."""
        if self.direct:
            placed = [step for piece in self.numbers for step in self._put(piece)]
        else:
            sizes = map(self.turned_blocks, self.loading)
            bases = dict(zip(self.loading, itertools.accumulate(sizes, initial=0), strict=False))
            placed = [step for piece, base in bases.items() for step in self._turn(piece, base)]
            placed += [self._place(n, bases[holder]) for n, holder in enumerate(self.holders)]
        return BufferSteps("s32", (*placed, *self._turn_back()), self.scratch)

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
        lanes, apart = BLOCK_LANES, self._apart[buffer]
        shape, strides = (ROWS, count // ROWS, lanes), (lanes, apart * lanes, 1)
        return View(buffer, shape, strides, spread(first, apart) * lanes)

    def _turn(self, piece: int, base: int) -> Iterator[BufferStep]:
        """The transpositions that turn the loaded rows of a piece: words behind each other become
        blocks of 16 points.

        Args:
            base: first block of the turned ones.
        """
        count = self.turned_run(piece)
        row = count // self.move.words
        for run in range(self.load_runs(piece)):
            blocks = self._blocks(TURNED, base + run * count, count)
            yield BufferStep(TRANSPOSITION, (self._rows(loaded(piece), run, row), blocks))

    def parted(self, piece: int) -> Parted | None:
        """The words of what is loaded for a piece, as transpositions put their blocks where they
        belong; None if these do not lie at equal distances."""
        dims, first, place = self._walk(piece)
        if first:
            return None
        return parted(dims, self.turned_blocks(piece), place)

    def _put(self, number: int) -> Iterator[BufferStep]:
        """Blocks of the words of a piece, where they belong in the result."""
        found = self.parted(number)
        assert found is not None, "blocks at different distances"
        count, words, apart = self.turned_run(number), self.move.words, self._apart[PLACED]
        row, lanes, per_run = count // words, ROWS // words, count // ROWS

        def source(t: int) -> int:
            """The place of the squares `t` in what is loaded."""
            return t // per_run * row * self.rows + t % per_run * lanes

        sizes = (*found.words.sizes, found.repeats.size, BLOCK_LANES)
        blocks = (*found.words.strides, found.repeats.stride)
        strides = (*(spread(s, apart) * BLOCK_LANES for s in blocks), 1)
        rows = (*(2,) * DIGITS, found.repeats.size, lanes)
        apart_rows = (*(row * stride for stride in self._digits), source(found.repeats.step), 1)
        for t, block in found.others:
            loads = View(loaded(self.holders[number]), rows, apart_rows, source(t))
            placed = View(PLACED, sizes, strides, spread(block, apart) * BLOCK_LANES)
            yield BufferStep(TRANSPOSITION, (loads, placed))

    def _turn_back(self) -> Iterator[BufferStep]:
        """The transpositions that turn placed blocks into rows of the result, to be stored."""
        row = self.points * self.pitch
        count = row * self.move.words
        for run in range(self.store_runs):
            blocks = self._blocks(PLACED, run * count, count)
            yield BufferStep(TRANSPOSITION, (blocks, self._rows(STORED, run, row)))

    def filled(self) -> BufferSteps:
        """The number outside of the pieces, where no tile puts anything; behind a result that is no
        whole blocks anything."""
        number, words = self.move.number, self.move.words
        covered, apart = math.prod(self.move.shape) * words, self._apart[PLACED]
        total = self.scratch[PLACED]
        if number is None:
            first = spread(covered, apart) * BLOCK_LANES
            if self.carrier is not None or first >= total:
                return BufferSteps("s32", (), {})
            view = View(PLACED, (total - first,), (1,), first)
            return BufferSteps("s32", (BufferStep("vector_dup", (view,), 0),), {})
        parts = [number >> 16 * i & 0xFFFF for i in range(words)]
        if len(set(parts)) == 1:
            parts = parts[:1]
        steps = []
        for i, word in enumerate(parts):
            twice = word | word << 16
            each, lanes = len(parts), BLOCK_LANES
            shape: tuple[int, ...] = (self.placed_blocks // ROWS, ROWS // each, lanes)
            strides: tuple[int, ...] = (apart * lanes, each * lanes, 1)
            if each == 1:
                shape, strides = (total,), (1,)
            signed = twice - (1 << 32) * (twice >> 31)
            steps.append(
                BufferStep("vector_dup", (View(PLACED, shape, strides, i * lanes),), signed)
            )
        return BufferSteps("s32", tuple(steps), {})

    def _place(self, number: int, base: int) -> BufferStep:
        """Moves the blocks of a piece to those of the result."""
        dims, first, place = self._walk(number)
        lanes, of, to = BLOCK_LANES, self._apart[TURNED], self._apart[PLACED]
        shape = (*(size for size, _, _ in dims), lanes)
        sources = (*(spread(s, of) * lanes for _, s, _ in dims), 1)
        results = (*(spread(s, to) * lanes for _, _, s in dims), 1)
        turned = View(TURNED, shape, sources, spread(base + first, of) * lanes)
        placed = View(PLACED, shape, results, spread(place, to) * lanes)
        return BufferStep("vmax", (turned, turned, placed))

    def _walk(self, number: int) -> tuple[list[tuple[int, int, int]], int, int]:
        """The blocks of a piece: sizes, and how far apart they lie as turned and as placed; which
        of its own is the first, and where that is placed."""
        piece, load, words = self.move.pieces[number], self.loads[number], self.move.words
        inside = [e for e in range(len(self.move.shape)) if e not in (*self.walked, self.carrier)]
        from_run = _run_strides(load.runs, piece.sizes, self.points * load.pitch * words)
        to_run = _run_strides(self.runs, self.move.shape, self.points * self.pitch * words)
        strides = row_major(self.move.shape)
        dims = [(self.points, load.pitch * words, self.pitch * words)]
        first, place = load.lead * words, 0
        for e in inside:
            source = from_run[e] if e in load.runs else piece.strides[e] * words
            result = to_run[e] if e in self.runs else strides[e] * words
            dims.append((piece.sizes[e], source, result * piece.steps[e]))
            place += piece.starts[e] * result
        dims.append((words, 1, 1))
        return dims, first, place


def _run_strides(runs: Sequence[int], sizes: Sequence[int], length: int) -> dict[int, int]:
    """Blocks from run to run along each of the dimensions `runs`."""
    found = {}
    for e in reversed(runs):
        found[e] = length
        length *= sizes[e]
    return found
