"""Long orders of work as loops: what repeats itself, each time so much further on, is written once.

    fill k 0, mad    fill k 4, mad    fill k 8, mad      =>      3 x (fill k 0 + 4 i, mad)

Events are the same if they do the same to the same buffers; where in the matrices they do it may
advance by the same distance from one repetition to the next. Nothing is moved: the loops, written
out, are the given order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from davinci.schedule.products.events import (
    Add,
    Ask,
    Block,
    Event,
    Fill,
    FractalSpan,
    Leave,
    Load,
    Mad,
    TurnRows,
)
from davinci.schedule.products.order import order
from davinci.schedule.products.product import Product, ProductSchedule, Share
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, round_up

WRITTEN, MOST_WRITTEN = 192, 320
"""Steps of a share that are written out without a thought of loops, and the most mads that are
written out, in loops or not."""

SHORTEST, LONGEST = 8, 96
"""Steps of a loop's body."""

FEWEST = 3
"""Repetitions that are worth a loop."""

Position = tuple[int, int, int, int]
"""Matrix of the batch, k, m, n; in fractals but for the first."""

HERE: Position = (0, 0, 0, 0)


@dataclass(frozen=True)
class EventLine:
    """Events in a straight line, each with how far it advances with the loops around it, outermost
    first."""

    events: tuple[tuple[Event, tuple[Position, ...]], ...]


@dataclass(frozen=True)
class RolledLoop:
    """`count` times the same."""

    count: int
    body: tuple[EventLine | RolledLoop, ...]


@dataclass(frozen=True)
class Edges:
    """Where the dimensions of a share end, in fractals; None if an end is like any other place."""

    k: int | None = None
    m: int | None = None
    n: int | None = None


def lines_of(
    share: Share, product: Product, schedule: ProductSchedule
) -> list[EventLine | RolledLoop]:
    """The events of a share as lines, and loops over lines that repeat."""
    edges = Edges()
    if any(size % SIDE for size in (product.m, product.k, product.n)):
        edges = Edges(product.fractals.k, share.m, share.n)
    unit = math.prod(schedule.beside) * schedule.turn
    return roll(order(share, product, schedule).steps, edges, unit, product.image is not None)


def leaves_of(lines: Sequence[EventLine | RolledLoop]) -> list[EventLine | RolledLoop]:
    """What of lines and loops brings parts of C away, in the same loops; nothing of the rest."""
    found: list[EventLine | RolledLoop] = []
    for line in lines:
        if isinstance(line, RolledLoop):
            if body := leaves_of(line.body):
                found.append(RolledLoop(line.count, tuple(body)))
        elif events := tuple(each for each in line.events if isinstance(each[0], Leave)):
            found.append(EventLine(events))
    return found


def count_leaves(lines: Sequence[EventLine | RolledLoop]) -> int:
    """The number of parts of C that leave L0C in some lines, each turn of a loop counted."""
    return sum(
        line.count * count_leaves(line.body)
        if isinstance(line, RolledLoop)
        else sum(isinstance(event, Leave) for event, _ in line.events)
        for line in lines
    )


def count_mads(product: Product, schedule: ProductSchedule) -> int:
    """The number of mads of the largest share."""
    share, tile = schedule.share, schedule.tile
    tiles = share.batch * ceil_div(share.m, tile.m) * ceil_div(share.n, tile.n)
    return tiles * ceil_div(product.fractals.k, tile.k)


def mads_written(product: Product, schedule: ProductSchedule) -> int:
    """The number of mads of the largest share that are written, in loops or not."""
    mads = count_mads(product, schedule)
    return mads if mads <= WRITTEN else mads_of(lines_of(schedule.share, product, schedule))


def may_be_short(product: Product, schedule: ProductSchedule) -> bool:
    """Whether a share is short, or so regular that loops may make it so."""
    k = product.fractals.k
    even = all(k % size == 0 for size in (schedule.tile.k, schedule.a.k, schedule.b.k))
    return even or count_mads(product, schedule) <= MOST_WRITTEN


def position(event: Event, windows: bool = False) -> Position:
    """Where in the matrices an event is at work; it matters only to what touches GM, and to loads
    of windows."""
    if isinstance(event, Fill):
        block = event.block
        along_m, along_n = (
            (block.other.start, 0) if event.operand == "a" else (0, block.other.start)
        )
        return block.batch, block.k.start, along_m, along_n
    if isinstance(event, Load) and windows and event.operand == "a":
        return 0, 0, event.block.other.start, 0
    if isinstance(event, Load | Mad | TurnRows | Add):
        return HERE
    tile = event.part.tile if isinstance(event, Ask) else event.tile
    return tile.batch, 0, tile.m.start, tile.n.start


def form(event: Event, edges: Edges) -> tuple[object, ...]:
    """Key of an event by which iterations of a loop are matched: all but its place in C."""
    if isinstance(event, Fill):
        other = edges.m if event.operand == "a" else edges.n
        ends = event.block.k.stop == edges.k, event.block.other.stop == other
        return "fill", event.operand, event.held.slot, *_within(event.block, event.held.piece), ends
    if isinstance(event, Load):
        where = _within(event.block, event.held.piece)
        return "load", event.operand, event.slot, event.held.slot, *where
    if isinstance(event, Mad):
        tile = event.tile
        sizes = tile.m.size, event.k.size, tile.n.size
        return "mad", tile.slot, event.a, event.b, event.first, event.bias, *sizes
    if isinstance(event, Add):
        tile = event.tile
        sizes = tile.m.size, tile.n.size, tile.slot
        return "add", *sizes, event.n, event.slot, event.held, event.turn
    if isinstance(event, TurnRows):
        return "turn", event.part.tile.n.size, event.part.turn
    part = event.part if isinstance(event, Ask) else event
    tile = part.tile
    kind = ("ask", event.kind) if isinstance(event, Ask) else ("leave", "")
    ends = tile.m.stop == edges.m, tile.n.stop == edges.n
    sizes = tile.m.size, tile.n.size, tile.slot
    return *kind, *sizes, part.n, part.m, part.slot, part.turn, ends


def _within(block: Block, piece: Block) -> tuple[int, ...]:
    """Sizes of a block and its piece, and where they lie to each other."""

    def along(a: FractalSpan, b: FractalSpan) -> tuple[int, ...]:
        return a.start - b.start, a.size, b.size

    return *along(block.k, piece.k), *along(block.other, piece.other)


@dataclass(frozen=True)
class _RollNode:
    """A step or a loop, while loops are looked for.

    Attributes:
        kind: a number; equal ones do the same.
        places: [events][4], of the first iterations.
        steps: that are written for it.
        count: of iterations, 1 of a step.
        body, moves: of a loop; how far each of its events advances with each iteration.
    """

    kind: int
    places: npt.NDArray[np.int64]
    steps: int
    events: tuple[Event, ...] = ()
    count: int = 1
    body: tuple[_RollNode, ...] = ()
    moves: npt.NDArray[np.int64] | None = None


def roll(
    steps: Sequence[Sequence[Event]], edges: Edges, unit: int, windows: bool = False
) -> list[EventLine | RolledLoop]:
    """Steps as lines and loops, nested at most twice; as they are if there are few.

    Args:
        edges: places that are unlike others.
        unit: steps after which tiles have all had a turn.
        windows: whether loads of A depend on their place.
    """
    kinds: dict[object, int] = {}

    def number(key: object) -> int:
        return kinds.setdefault(key, len(kinds))

    nodes = [
        _RollNode(
            number(tuple(form(event, edges) for event in events)),
            np.array([position(event, windows) for event in events], np.int64).reshape(-1, 4),
            1,
            tuple(events),
        )
        for events in steps
    ]
    whole = best = _Row(nodes)
    if len(nodes) > WRITTEN:
        longest, tried = min(LONGEST, len(nodes) // FEWEST), False
        for length in range(round_up(SHORTEST, unit), longest + 1, unit):
            found = _fold(whole, length, number)
            # Of steps that no length folds the longer ones are the same for all lengths.
            if found is whole and tried:
                continue
            tried = tried or found is whole
            for outer in range(2, len(found.nodes) // FEWEST + 1):
                found = _fold(found, outer, number)
            if found.steps < best.steps:
                best = found
    around = np.zeros((0, sum(len(node.places) for node in best.nodes), 4), np.int64)
    return _made(best.nodes, around)


def mads_of(lines: Sequence[EventLine | RolledLoop]) -> int:
    """The number of mads that lines and loops write, however often a loop is run."""
    found = 0
    for line in lines:
        if isinstance(line, RolledLoop):
            found += mads_of(line.body)
        else:
            found += sum(isinstance(event, Mad) for event, _ in line.events)
    return found


@dataclass(frozen=True, eq=False)
class _Row:
    """Nodes one behind the other."""

    nodes: Sequence[_RollNode]

    @cached_property
    def kinds(self) -> npt.NDArray[np.int64]:
        return np.array([node.kind for node in self.nodes], np.int64)

    @property
    def steps(self) -> int:
        """That are written."""
        return sum(node.steps for node in self.nodes)

    def alike(self, length: int) -> npt.NDArray[np.int64]:
        """From each on, how many equal the ones that are `length` further on."""
        count = max(0, len(self.nodes) - length)
        found = np.zeros(len(self.nodes), np.int64)
        places = np.arange(count)
        other = np.where(self.kinds[:count] == self.kinds[length:], count, places)
        found[:count] = np.minimum.accumulate(other[::-1])[::-1] - places
        return found


def _fold(row: _Row, length: int, number: Callable[[object], int]) -> _Row:
    """Loops of `length` nodes wherever they repeat themselves, from the first on; the row itself if
    there are none."""
    runs = row.alike(length)
    if runs.max() < (FEWEST - 1) * length:
        return row
    nodes, alike = row.nodes, runs.tolist()
    places = np.concatenate([node.places for node in nodes])
    starts = [0, *itertools.accumulate(len(node.places) for node in nodes)]

    def places_of(first: int) -> npt.NDArray[np.int64]:
        return places[starts[first] : starts[first + length]]

    found, first = [], 0
    while first < len(nodes):
        most, count = alike[first] // length + 1, 1
        if most >= FEWEST:
            moves = places_of(first + length) - places_of(first)
            count = 2
            while count < most and np.array_equal(
                places_of(first + count * length) - places_of(first + (count - 1) * length), moves
            ):
                count += 1
        if count < FEWEST:
            found.append(nodes[first])
            first += 1
            continue
        body = tuple(nodes[first : first + length])
        kind = number(("loop", count, tuple(node.kind for node in body), moves.tobytes()))
        steps = sum(node.steps for node in body)
        found.append(_RollNode(kind, places_of(first), steps, (), count, body, moves))
        first += count * length
    return _Row(found) if len(found) < len(nodes) else row


def _made(nodes: Sequence[_RollNode], moves: npt.NDArray[np.int64]) -> list[EventLine | RolledLoop]:
    """Lines and loops of nodes; `moves` [loops around][events][4]."""
    found: list[EventLine | RolledLoop] = []
    straight: list[tuple[Event, tuple[Position, ...]]] = []
    start = 0

    def end() -> None:
        if straight:
            found.append(EventLine(tuple(straight)))
            straight.clear()

    for node in nodes:
        around = moves[:, start : start + len(node.places)]
        start += len(node.places)
        if node.moves is not None:
            end()
            body = _made(node.body, np.concatenate([around, node.moves[None]]))
            found.append(RolledLoop(node.count, tuple(body)))
            continue
        for i, event in enumerate(node.events):
            batch, k, m, n = around[:, i].T.tolist()
            straight.append((event, tuple(zip(batch, k, m, n, strict=True))))
    end()
    return found
