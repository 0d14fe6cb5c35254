"""Statistics between UB and how they lie in GM: one element after the other.

In UB a statistic is a block a row (`row_statistics`), in GM a run of elements. Copies move whole
blocks, so a run of n elements that are not whole blocks of b elements is moved in two pieces, the
second of which ends where the run ends:

    GM      |0 1 2 3|4 5 6 7|8 9|             n = 10, b = 4
    packed  |0 1 2 3|4 5 6 7|6 7 8 9|         then elementwise work is on 12 elements
    rows    |0 . . .|1 . . .| .. |9 . . .|    10 blocks, those of 6 and 7 from either piece

Shorter runs are one piece. Blocks of elements come to blocks of rows by two transpositions of words
of 16 bits, and back by the same two, turned round; elements of 16 bits need one.

    packed block j      |e(8j) e(8j+1) ..|       words of 16 blocks to blocks:
    turned block 2l     |low words of e(8j + l), j = 0 .. 15|       block 2l + 1: the high ones
    row 8j + l          |e e e e e e e e|        word j of blocks 2l and 2l + 1 in turn
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from davinci.isa.transpose import ROWS
from davinci.machine import Machine
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.row_steps import DIGITS, BufferBlocks, Digits, RowSteps
from davinci.schedule.vector.steps import (
    RESULT,
    SOURCE,
    STEPS_KEPT,
    TRANSPOSITION,
    BufferStep,
    BufferSteps,
    copy_of,
)
from davinci.units import MAX_REPEAT

TURNED, PARTIAL = "turned", "partial"
"""Scratch buffers."""


@dataclass(frozen=True)
class PackedRun:
    """`count` elements of a run from `first` on, which lie in UB from `place` on."""

    first: int
    place: int
    count: int


def pieces_of(count: int, block: int) -> list[PackedRun]:
    """The pieces in which a run of `count` elements is moved.

    >>> pieces_of(10, 4)
    [Piece(first=0, place=0, count=8), Piece(first=6, place=8, count=4)]
    """
    whole = count // block * block
    if count in (0, whole) or count < block:
        return [PackedRun(0, 0, count)]
    return [PackedRun(0, 0, whole), PackedRun(count - block, whole, block)]


def is_scattered(count: int, block: int, dtype: str) -> bool:
    """Whether a run that is a part of an array is moved element by element: it is shorter than a
    piece and no whole blocks, so no copy ends where it does."""
    return count < block and count % block_lanes(dtype) > 0


def packed_size(count: int, block: int) -> int:
    """Elements that a run takes in UB, of whole blocks."""
    last = pieces_of(count, block)[-1]
    return last.place + -(-last.count // block) * block


@lru_cache(maxsize=STEPS_KEPT)
def unpacking(dtype: str, count: int, block: int, machine: Machine) -> BufferSteps:
    """The packed run in `SOURCE` to all lanes of a block each in `RESULT`.

    Args:
        dtype: of 16 or 32 bits.
        block: elements of which pieces are whole numbers, whole blocks of `dtype`.
    """
    steps = RowSteps("", dtype, machine)
    for piece in pieces_of(count, block):
        whole, rest = divmod(piece.count, steps.lanes)
        place = piece.place // steps.lanes
        for first, rows in _portions(whole, steps):
            blocks = BufferBlocks(SOURCE, 1, rows, 1, 1, place + first)
            _unpack(steps, blocks, RESULT, piece.first + first * steps.lanes)
        if rest:
            partial = steps.buffer(PARTIAL, steps.lanes * steps.lanes)
            _unpack(steps, BufferBlocks(SOURCE, 1, 1, 1, 1, place + whole), partial, 0)
            _copy(steps, partial, 0, RESULT, piece.first + whole * steps.lanes, rest)
    return steps.done()


@lru_cache(maxsize=STEPS_KEPT)
def packing(dtype: str, count: int, block: int, machine: Machine) -> BufferSteps:
    """Lane 0 of blocks in `SOURCE` to the packed run in `RESULT`; arguments as of `unpacking`."""
    steps = RowSteps("", dtype, machine)
    for piece in pieces_of(count, block):
        whole, rest = divmod(piece.count, steps.lanes)
        place = piece.place // steps.lanes
        for first, rows in _portions(whole, steps):
            blocks = BufferBlocks(RESULT, 1, rows, 1, 1, place + first)
            _pack(steps, SOURCE, piece.first + first * steps.lanes, blocks)
        if rest:
            partial = steps.buffer(PARTIAL, steps.lanes * steps.lanes)
            every = steps.array(BufferBlocks(partial, 1, 1, 1, 1), ((steps.lanes, 1),))
            steps.steps.append(BufferStep("vector_dup", (every,), 0.0))
            _copy(steps, SOURCE, piece.first + whole * steps.lanes, partial, 0, rest)
            _pack(steps, partial, 0, BufferBlocks(RESULT, 1, 1, 1, 1, place + whole))
        behind = packed_size(count, block) // steps.lanes - place - whole - bool(rest)
        if len(pieces_of(count, block)) == 1 and behind:
            start = place + whole + bool(rest)
            end = steps.array(BufferBlocks(RESULT, 1, 1, 1, 1), ((behind, 1),), start)
            steps.steps.append(BufferStep("vector_dup", (end,), 0.0))
    return steps.done()


def _portions(blocks: int, steps: RowSteps) -> Iterator[tuple[int, int]]:
    """Cuts `blocks` blocks into runs that one transposition step each takes, as (first block,
    number of blocks).

    An element of one word has a single run. Wider ones have at most as many blocks as the repeats
    of one instruction reach: a second instruction would write the places that rows have in common
    (`Digits`) again.
    """
    most = ROWS * (MAX_REPEAT // steps.lanes) if steps.words > 1 else max(blocks, 1)
    for first in range(0, blocks, most):
        yield first, min(most, blocks - first)


def _copy(steps: RowSteps, source: str, first: int, result: str, place: int, rows: int) -> None:
    old = steps.array(BufferBlocks(source, 1, 1, 1, 1), ((rows, 1),), first)
    new = steps.array(BufferBlocks(result, 1, 1, 1, 1), ((rows, 1),), place)
    steps.steps.append(copy_of(old, new, steps.dtype))


def _unpack(steps: RowSteps, blocks: BufferBlocks, rows: str, first: int) -> None:
    """The elements of `blocks.rows` blocks to blocks of `rows` from `first` on."""
    into = BufferBlocks(rows, 1, 1, 1, 1, first)
    if steps.words == 1:
        source = steps.array(blocks, ((ROWS, 0), (blocks.rows, 1)))
        spread = steps.array(into, ((ROWS, 1), (blocks.rows, ROWS)))
        steps.steps.append(BufferStep(TRANSPOSITION, (source, spread)))
        return
    digits = Digits.of(blocks.rows, DIGITS)
    turned = steps.turn(blocks.buffer, blocks.offset, 1, digits)
    steps.spread_words(turned, into, digits)


def _pack(steps: RowSteps, rows: str, first: int, blocks: BufferBlocks) -> None:
    """The other way."""
    source = BufferBlocks(rows, 1, 1, 1, 1, first)
    if steps.words == 1:
        scratch = steps.buffer(TURNED, ROWS * blocks.rows * steps.lanes)
        turned = BufferBlocks(scratch, 1, ROWS, blocks.rows, blocks.rows)
        gathered = steps.array(source, ((ROWS, 1), (blocks.rows, ROWS)))
        words = steps.array(turned, ((ROWS, blocks.rows), (blocks.rows, 1)))
        steps.steps.append(BufferStep(TRANSPOSITION, (gathered, words)))
        first_words = steps.array(turned, ((blocks.rows, 1),))
        packed = steps.array(blocks, ((blocks.rows, 1),))
        steps.steps.append(copy_of(first_words, packed, steps.dtype))
        return
    digits = Digits.of(blocks.rows, DIGITS)
    repeats = digits.repeats * steps.lanes
    others = ROWS // steps.words  # copies of the words, as many as a block has elements
    size = digits.repeats * ROWS
    scratch = steps.buffer(TURNED, others * size * steps.lanes)
    turned = BufferBlocks(scratch, 1, others, size, size)
    places = (*((2, steps.lanes * s) for s in digits.strides), (repeats, 1))
    words = steps.array(turned, ((others, size), (steps.words, 1), (repeats, steps.words)))
    steps.steps.append(BufferStep(TRANSPOSITION, (steps.array(source, places), words)))
    again = steps.array(turned, ((ROWS, 1), (digits.repeats, ROWS)))
    packed = steps.array(blocks, (*((2, s) for s in digits.strides), (digits.repeats, 1)))
    steps.steps.append(BufferStep(TRANSPOSITION, (again, packed)))
