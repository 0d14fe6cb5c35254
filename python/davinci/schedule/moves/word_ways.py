"""The ways to put an array together by words (`word_moves`), and the fastest of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from davinci.isa.strides import SharedDim
from davinci.isa.transpose import ROWS
from davinci.machine import Machine, prices
from davinci.schedule.moves.index_maps import ValueBox
from davinci.schedule.moves.portions import SLOTS
from davinci.schedule.moves.transfers import TransferCosts, together
from davinci.schedule.moves.word_moves import WordMove
from davinci.schedule.moves.word_pieces import WORD_BYTES, RowsOfPieces, WordLoad
from davinci.schedule.vector.step_costs import turn_cycles
from davinci.units import ceil_div, round_up, row_major

SPARSE = 4
"""Points whose words are one in so many of what lies there are loaded without the rest."""

MOST_MIXED = 4
"""Pieces of which each may be loaded in a way of its own."""

MOVES_KEPT = 256
"""Moves whose ways are kept: each is weighed on several numbers of cores, alone and in groups."""


def word_move(move: RowsOfPieces, machine: Machine, cores: int, whole: bool) -> WordMove | None:
    """The way that takes least time; None if there is none.

    Args:
        whole: whether the result is all of an array in GM: then it may be stored in whole blocks.
    """
    sizing = _Sizing(machine, cores)
    found = map(sizing.of, _ways(move, machine, whole))
    return min(found, key=lambda way: way.time(ceil_div(way.units, cores)), default=None)


@lru_cache(maxsize=MOVES_KEPT)
def _ways(move: RowsOfPieces, machine: Machine, whole: bool) -> tuple[WordMove, ...]:
    """All ways that fit UB, in their smallest tiles: the same for any number of cores."""
    count = len(move.pieces)
    some = (True,) * count, (False,) * count
    every = list(itertools.product((True, False), repeat=count)) if count <= MOST_MIXED else some
    arrays = {piece.source for piece in move.pieces}
    found = dict.fromkeys(
        _WayOfCarrier(move, machine, carrier, dense, shared).least()
        for carrier in (*([None] if whole else []), *range(len(move.shape)))
        for dense in every
        for shared in (False, True)[: 1 + (len(arrays) < count)]
    )
    return tuple(way for way in found if way is not None and _fits(way, machine))


def _fits(way: WordMove, machine: Machine) -> bool:
    return way.bytes <= machine.buffers.UB.bytes


class _WayOfCarrier:
    """The way that one carrier gives.

    Args:
        dense: of each piece, whether its points are loaded with what lies between them.
        shared: whether pieces of one array are loaded by whole points, so that they may share
            them.
    """

    def __init__(
        self,
        move: RowsOfPieces,
        machine: Machine,
        carrier: int | None,
        dense: tuple[bool, ...],
        shared: bool,
    ) -> None:
        self.move, self.machine, self.carrier = move, machine, carrier
        self.dense, self.shared = dense, shared
        self.unit = 2 * ROWS if move.itemsize == 1 else ROWS
        """Words that a row is a multiple of."""

    def least(self) -> WordMove | None:
        """The way in its smallest tiles; None if there is none."""
        return self._whole() if self.carrier is None else self._carried(self.carrier)

    def _whole(self) -> WordMove | None:
        """The whole as one point of one row."""
        move, words = self.move, self.move.words
        if not all(self.dense):
            return None
        loads = tuple(
            WordLoad(
                (), round_up(total * words, self.unit) // words, piece.offset, True, piece.offset
            )
            for piece, total in zip(move.pieces, move.totals, strict=True)
        )
        pitch = round_up(math.prod(move.shape) * words, self.unit) // words
        return WordMove(move, None, (), (), 1, 1, loads, pitch)

    def _carried(self, carrier: int) -> WordMove | None:
        """The move whose transpositions have 16 places along the dimension `carrier` in their rows;
        None where a piece does not cover it, or a tile of the fewest places does not fit."""
        move = self.move
        size, strides = move.shape[carrier], row_major(move.shape)
        if not all(p.dims[carrier].covers(size) and p.strides[carrier] for p in move.pieces):
            return None
        others = [e for e, n in enumerate(move.shape) if e != carrier and n > 1]
        inside = {e for e in others if e > carrier}
        for piece in move.pieces:
            inside |= {e for e in others if piece.strides[e] < piece.strides[carrier]}
            inside |= {e for e in others if not piece.dims[e].covers(move.shape[e])}
        walked = tuple(e for e in others if e not in inside)
        runs = tuple(sorted(e for e in inside if e < carrier))
        loads: list[WordLoad] = []
        for piece, total, dense in zip(move.pieces, move.totals, self.dense, strict=True):
            load = self._load(piece, total, carrier, inside, dense)
            if load is None:
                return None
            loads.append(load)
        pitch = strides[carrier]
        pitches = [pitch, *(load.pitch for load in loads)]
        # A last tile that is loaded in another way needs another one before it.
        apart = any(load.last_lead != load.lead for load in loads)
        least = self._least(pitches, ROWS)
        rows = min(ROWS, (size - apart) // least)
        if move.itemsize == 1 and rows % 2:  # two rows of 16 bytes are a block, or one of 32
            rows, least = (rows - 1, least) if rows > 1 else (1, self._least(pitches, self.unit))
        if not rows or rows * least > size - apart:
            return None
        ones = tuple(e for e, n in enumerate(move.shape) if e != carrier and n == 1)
        walked = tuple(sorted((*walked, *ones)))
        way = WordMove(move, carrier, walked, runs, rows, least, tuple(loads), pitch)
        while not _fits(way, self.machine) and way.rows % 4 == 0:  # fewer rows, as many points
            way = replace(way, rows=way.rows // 2)
        return way

    def _least(self, pitches: Sequence[int], unit: int) -> int:
        """The fewest points that are whole units of words on all sides."""
        words = self.move.words
        return math.lcm(*(unit // math.gcd(unit, pitch * words) for pitch in pitches))

    def _load(
        self, piece: ValueBox, total: int, carrier: int, inside: set[int], dense: bool
    ) -> WordLoad | None:
        """How a piece is loaded for a carrier: which dimensions are runs of their own, and elements
        from place to place; None where rows would be mostly what is not wanted.

        Args:
            total: elements of the array that the piece is of.
            inside: dimensions whose elements lie inside a row.
            dense: whether rows come without what rounds them up to blocks.
        """
        words, stride = self.move.words, piece.strides[carrier]
        inner = [e for e in inside if piece.strides[e] < stride]
        runs = tuple(sorted(e for e in inside if e not in inner))
        span = 1 + sum((piece.sizes[e] - 1) * piece.strides[e] for e in inner)
        last = piece.offset + sum(
            (n - 1) * s
            for e, (n, s) in enumerate(zip(piece.sizes, piece.strides, strict=True))
            if e not in inner
        )
        pitch = stride if dense else round_up(span * words, self.unit) // words
        if not dense and (stride < SPARSE * pitch and span <= stride):
            return None
        lead = max(0, last + pitch - total)
        place = piece.offset % pitch
        if dense and self.shared and lead <= place <= pitch - span:
            return WordLoad(runs, pitch, place, dense, place)
        if lead + span > pitch:
            return None
        return WordLoad(runs, pitch, lead if lead <= piece.offset else 0, dense, lead)


class _Sizing:
    """Gives ways tiles for a number of cores, and weighs them."""

    def __init__(self, machine: Machine, cores: int) -> None:
        self.machine, self.cores = machine, cores

    def of(self, way: WordMove) -> WordMove:
        """A way that fits UB, with the tiles that are best on these cores, and its cycles."""
        return self._weighed(way if way.carrier is None else self._sized(way, way.carrier))

    def _sized(self, way: WordMove, carrier: int) -> WordMove:
        """The tile as large as UB and the number of cores allow."""
        size, least = way.move.shape[carrier], way.points
        walks = math.prod(way.move.shape[e] for e in way.walked)
        each = way.bytes
        most = max(1, self.machine.buffers.UB.bytes // (SLOTS * each))
        share = max(1, walks * size // (self.cores * way.rows * least))
        apart = way.last != way
        times = max(1, min(most, share, (size - apart) // (way.rows * least)))
        tiles = ceil_div(size - apart, way.rows * least * times)  # evenly, where the last overlaps
        times = ceil_div((size - apart) // (way.rows * least), tiles)
        way = replace(way, points=least * times)
        ways = [way, replace(way, apart=True)]
        if all(map(way.parted, way.numbers)):
            ways.append(replace(way, apart=True, direct=True))
        fitting = [way for way in reversed(ways) if _fits(way, self.machine)]
        return min(fitting, key=lambda way: way.steps().estimate(self.machine).cycles)

    def _weighed(self, way: WordMove) -> WordMove:
        """The way with the cycles of a tile by itself, and of each that a core does behind it."""
        machine, itemsize = self.machine, way.move.itemsize
        costs = TransferCosts(machine, min(way.units, self.cores))
        loaded = sum(way.loaded_elements(number) for number in way.loading) * itemsize
        stored = way.stored_elements * itemsize
        read = sum(self._read(way, number, costs) for number in way.loading)
        row = together(
            _dims_of(way.runs, way.move.shape, row_major(way.move.shape)), way.tile * way.pitch, 0
        )
        write = costs.write(ceil_div(way.stored_elements, row), row * itemsize)
        steps = way.steps().estimate(machine)
        vector: float = steps.cycles + steps.links * machine.sync.barrier_cycles
        vector += prices.vector(machine, "vmuls", "f16", 0)
        if itemsize == 1:  # numbers of 16 bits for a while
            repeats = (loaded + stored) * WORD_BYTES / machine.vector.repeat_bytes
            vector += prices.vector(machine, "vconv", "f16", repeats, 0)
        in_turns = replace(way, slots=SLOTS)
        way = in_turns if _fits(in_turns, machine) else way
        further = turn_cycles(machine, vector, read, write, way.slots)
        return replace(way, cycles=costs.starts + read + vector + write, further=further)

    def _read(self, way: WordMove, number: int, costs: TransferCosts) -> float:
        """Cycles that what is loaded for a piece takes: its points, together or apart."""
        piece, load = way.move.pieces[number], way.loads[number]
        elements, row = way.loaded_elements(number), load.pitch
        if load.dense:
            tile = way.tile * load.pitch
            row = together(_dims_of(load.runs, piece.sizes, piece.strides), tile, 0)
        return costs.read(ceil_div(elements, row), row * way.move.itemsize)


def _dims_of(
    chosen: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> list[SharedDim]:
    """Some of an array's dimensions as those of one side of a copy."""
    return [SharedDim(sizes[e], (strides[e],)) for e in chosen]
