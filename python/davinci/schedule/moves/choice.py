"""How a group of operators that only move elements is computed: pieces, and the way of each.

Every output is an array put together of pieces (`index_maps`). It can be made

    by pieces     each on its own: by runs, by squares of 16 x 16 words, or by the scalar unit
    by words      all of them together, a tile at a time (`word_moves`)
    painted       filled with a number, which the other pieces are then stored over
    as fractals   from rows, or the other way (`fractal_moves`)

and takes what the estimate says takes least time. What has the outermost dimension in parts that
lie one after the other is chosen part by part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.operators import Tensor
from davinci.operators.tensors import NZ
from davinci.operators.vector_program import DTYPE_OF
from davinci.schedule.graph import Graph, KeyedGraph, Scalar
from davinci.schedule.moves.fractal_moves import IMPROVED, FractalMove, fractal_move
from davinci.schedule.moves.index_maps import Pieces, ValueBox, reshaped
from davinci.schedule.moves.painted import Painted, Painting
from davinci.schedule.moves.piece_rules import RULES, from_array, pieces_of, to_array
from davinci.schedule.moves.portions import longest_share
from davinci.schedule.moves.simple_pieces import simple_boxes
from davinci.schedule.moves.squares import Squares, squares_of
from davinci.schedule.moves.transfers import (
    MOVABLE,
    Runs,
    Scalars,
    Small,
    Transfer,
    TransferCosts,
    by_scalars,
    is_small,
    runs_of,
)
from davinci.schedule.moves.word_moves import WIDTHS, WordMove
from davinci.schedule.moves.word_pieces import RowsOfPieces
from davinci.schedule.moves.word_ways import word_move
from davinci.schedule.vector.space import NoSpace

MOST_LOADED = 8
"""Pieces that are moved together by words."""

SCHEDULES_KEPT = 1024
"""Schedules that are kept: of groups, on each number of cores that is weighed."""

Way = Runs | Small | Scalars | Squares | WordMove | Painted | FractalMove


@dataclass(frozen=True)
class MoveSchedule:
    """How a group that moves elements is computed.

    Attributes:
        outputs: the ways of each output's pieces.
        cores: blocks of the launch.
        cycles: estimated.
    """

    outputs: tuple[tuple[Way, ...], ...]
    cores: int
    cycles: int

    @property
    def ways(self) -> tuple[Way, ...]:
        return tuple(way for ways in self.outputs for way in ways)

    @property
    def scalar(self) -> bool:
        """Whether the scalar unit moves any of it."""
        return any(map(uses_scalars, self.ways))

    def __str__(self) -> str:
        counted = dict.fromkeys(map(str, self.ways))
        return f"{'; '.join(counted)}; {self.cores} cores"


@dataclass(frozen=True)
class MovePlan:
    """A group that moves elements, and how."""

    graph: Graph
    schedule: MoveSchedule
    machine: Machine


def uses_scalars(way: Way) -> bool:
    return isinstance(way, Scalars) or (
        isinstance(way, Painted) and any(map(uses_scalars, way.ways))
    )


def is_move(graph: Graph) -> bool:
    """Whether operators of a group only move elements, of whole arrays."""
    return not graph.windows and all(node.name in RULES for node in graph.nodes)


def move_plan(graph: Graph, machine: Machine, cores: int, algorithm: str = IMPROVED) -> MovePlan:
    """The ways of fewest cycles.

    Args:
        algorithm: of fractalisation.

    Raises:
        NoSpace: an operator does more than move elements, or there are too many pieces.
    """
    known = KeyedGraph(graph.key(), graph)
    return MovePlan(graph, _schedule(known, machine, cores, algorithm), machine)


@lru_cache(maxsize=SCHEDULES_KEPT)
def _schedule(known: KeyedGraph, machine: Machine, cores: int, algorithm: str) -> MoveSchedule:
    """The schedule of a group's plan: passes weigh a group alone and as a part of others, on
    several numbers of cores, and ask again when its kernel is built."""
    graph, outputs = known.graph, []
    for value, pieces in zip(graph.outputs, pieces_of(graph), strict=True):
        chooser = _MoveChooser(graph, graph.arrays[value], machine, cores, algorithm)
        outputs.append(chooser.best(pieces))
    ways = [way for found in outputs for way in found]
    units = sum(way.units for way in ways)
    return MoveSchedule(
        tuple(outputs), max(1, min(units, cores)), int(time_of(ways, cores, machine))
    )


def time_of(ways: Sequence[Way], cores: int, machine: Machine) -> float:
    """Cycles of the core that has most to do. What a way loads first comes while the one before is
    still stored."""
    return longest_share(ways, cores, prices.writing(machine).start_cycles)


class _MoveChooser:
    """Weighs the ways of one output."""

    def __init__(
        self, graph: Graph, array: Tensor, machine: Machine, cores: int, algorithm: str
    ) -> None:
        self.graph, self.array = graph, array
        self.machine, self.cores, self.algorithm = machine, cores, algorithm
        self.itemsize, self.shape = array.bytes_each, array.stored_shape
        self.total = math.prod(self.shape)
        self.movable = array.element in MOVABLE

    def best(self, pieces: Pieces) -> tuple[Way, ...]:
        """The ways, one behind the other, in which the pieces of a result are moved in the fewest
        cycles."""
        if not pieces:
            return ()
        flat = reshaped(pieces, self.shape, (self.total,))
        if not self.movable:
            return tuple(by_scalars(Transfer.of(p, self.itemsize), self.machine) for p in flat)
        fractals = self._fractals(flat)
        if fractals is not None:
            return fractals
        whole = self._words(pieces, 0, self.total)
        found = [whole] if whole is not None else []
        parts = list(segments(flat))
        by_parts = [way for part in parts for way in self._part(part, len(parts) > 1)]
        found.append(tuple(by_parts))
        return self._least(found)

    def _least(self, found: Sequence[tuple[Way, ...]]) -> tuple[Way, ...]:
        """What takes least time; the scalar unit is for what nothing else moves."""
        return min(
            found, key=lambda w: (any(map(uses_scalars, w)), time_of(w, self.cores, self.machine))
        )

    def _part(self, flat: Pieces, apart: bool) -> tuple[Way, ...]:
        """The ways of pieces that take a stretch of the array alone."""
        transfers = [Transfer.of(piece, self.itemsize) for piece in flat]
        found = [tuple(map(self._alone, transfers))]
        if len(transfers) > 1:
            total = sum(t.count for t in transfers)
            found.append(tuple(self._alone(t, t.count / total) for t in transfers))
        first, end = min(t.place for t in transfers), max(t.end for t in transfers)
        if apart and sum(t.count for t in transfers) == end - first:
            moved = self._words(flat, first, end)
            found += [moved] if moved is not None else []
        if any(uses_scalars(way) for way in found[0]):
            found += self._painted(transfers)
        return self._least(found)

    def _alone(self, transfer: Transfer, part: float = 1.0) -> Way:
        """The best way of a piece by itself, on a part of the cores."""
        ways: list[Way | None] = [
            runs_of(transfer, self.machine, self.cores, part=part),
            squares_of(transfer, self.machine, self.cores),
        ]
        source = 0
        if not transfer.filled:
            source = math.prod(self.graph.arrays[transfer.array].stored_shape)
        if is_small(transfer, source, self.total, self.machine):
            starts = TransferCosts(self.machine, 1).starts
            ways.append(Small(transfer, starts, starts))
        found = [way for way in ways if way is not None]
        if not found:
            return by_scalars(transfer, self.machine)
        return min(found, key=lambda way: time_of([way], self.cores, self.machine))

    def _words(self, pieces: Pieces, first: int, end: int) -> tuple[Way, ...] | None:
        """The way that moves all pieces together by words; None if they cannot go that way."""
        numbers = {p.source for p in pieces if isinstance(p.source, Scalar)}
        moved = [p for p in pieces if not isinstance(p.source, Scalar)]
        usable = self.itemsize in WIDTHS and len(numbers) <= 1 and 0 < len(moved) <= MOST_LOADED
        if not usable:
            return None
        shape: tuple[int, ...] = self.shape
        if end - first < self.total:
            shape = (end - first,)
            moved = [replace_start(p, first) for p in moved]
        found = simple_boxes(tuple(moved), shape)
        if found is None:
            return None
        boxes, sizes = found
        totals = tuple(math.prod(self.graph.arrays[p.array].stored_shape) for p in boxes)
        number = self._bits(next(iter(numbers))) if numbers else None
        move = RowsOfPieces(sizes, boxes, totals, self.itemsize, number, first)
        way = word_move(move, self.machine, self.cores, end - first == self.total)
        return (way,) if way is not None else None

    def _bits(self, number: Scalar) -> int:
        """Bits of a number; of a byte those of the f16 that it is moved as."""
        value = np.asarray(number.value).astype(DTYPES[DTYPE_OF[self.array.element]])
        if self.itemsize == 1:
            value = value.view(np.int8).astype(np.float16)
        return int(value.view(f"u{value.itemsize}")[()])

    def _painted(self, transfers: Sequence[Transfer]) -> Iterator[tuple[Painted | Runs, ...]]:
        """Ways that fill everything with a number first."""
        numbers = [t for t in transfers if t.filled]
        over = [t for t in transfers if not t.filled]
        if len({t.source for t in numbers}) != 1:
            return
        first, end = min(t.place for t in transfers), max(t.end for t in transfers)
        yield from Painting(numbers, over, first, end, self.machine, self.cores).ways()

    def _fractals(self, flat: Pieces) -> tuple[Way, ...] | None:
        """The conversion between rows and fractals of one matrix, if it is nothing else."""
        if self.itemsize == 8:
            return None
        sources = {p.source for p in flat if not isinstance(p.source, Scalar)}
        if len(sources) != 1:
            return None
        (number,) = sources
        assert isinstance(number, int), "what is no scalar is the number of an array"
        source = self.graph.arrays[number]
        if (source.layout == NZ) == (self.array.layout == NZ):
            return None
        matrix = self.array if source.layout == NZ else source
        if matrix.rank < 2 or source.shape != self.array.shape:
            return None
        try:
            way = fractal_move(
                number, matrix, source.layout == NZ, self.machine, self.cores, self.algorithm
            )
            direct = to_array(from_array(source, number), self.array)
            same = set(reshaped(direct, self.shape, (self.total,))) == set(flat)
        except NoSpace:
            return None
        return (way,) if same and way is not None else None


def replace_start(piece: ValueBox, first: int) -> ValueBox:
    """A piece of a flat array, counted from `first`."""
    (extent,) = piece.dims
    return ValueBox(piece.source, piece.offset, (extent.moved(-first),))


def segments(flat: Pieces) -> Iterator[Pieces]:
    """Pieces whose places overlap, stretch by stretch."""
    ordered = sorted(flat, key=lambda p: p.dims[0].start)
    found, end = [ordered[0]], ordered[0].dims[0].start + ordered[0].dims[0].reach
    for piece in ordered[1:]:
        (extent,) = piece.dims
        if extent.start > end:
            yield tuple(found)
            found = []
        found.append(piece)
        end = max(end, extent.start + extent.reach)
    yield tuple(found)
