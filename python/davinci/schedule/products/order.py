"""The order in which a core computes its share of a product: fills of L1, loads, mads, parts of C.

The work of a share is a row of tiles, the work of a tile a row of steps, one mad each. Tiles that
are `beside` each other take turns, a few steps at a time, so that what they have in common is
loaded once. A step uses pieces of A and B that are in L1, and blocks of them in L0A and L0B; both
memories hold a few of each and take the oldest one's place. What is asked for again while it is
still there is not moved again: a piece that stays in L1 for a row of tiles is just that.

Fills come `ahead` steps before the step that needs them, or as soon as their place is free; the
parts of a tile leave while the next tile is multiplied. Nothing here knows of MLIR.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import count
from typing import NamedTuple

from davinci.schedule.products.ends import Ends, Mads, Timed, after_tiles, before_tiles
from davinci.schedule.products.events import (
    Block,
    Event,
    Fill,
    FractalSpan,
    Held,
    Leave,
    Load,
    Mad,
    TileOfC,
    spans,
)
from davinci.schedule.products.product import Pieces, Product, ProductSchedule, Share
from davinci.units import ceil_div

ORDERS_KEPT = 64
"""Orders that are asked for again: to play a schedule, for its length, and when it is written."""


class TurningBuffers:
    """Buffers that are filled in turn, the oldest content making room.

    Args:
        used: whether what was used longest ago makes room instead.
    """

    def __init__(self, count: int, used: bool = False) -> None:
        self._by_use = used
        self._keys: list[Hashable | None] = [None] * count
        self._slots: dict[Hashable, int] = {}
        self._used = [-1] * count
        self._next = 0

    def find(self, key: Hashable, step: int) -> int | None:
        """Where `key` is, which `step` uses; None if it is not there."""
        slot = self._slots.get(key)
        if slot is not None:
            self._used[slot] = step
        return slot

    def put(self, key: Hashable, step: int) -> tuple[int, int]:
        """Takes the next place for `key`, which `step` uses; the place, and the step that used it
        last before, -1 if none."""
        assert min(self._used) < step, "fewer places than one step uses"
        if self._by_use:
            self._next = self._used.index(min(self._used))
        while self._used[self._next] == step:
            self._next = (self._next + 1) % len(self._keys)
        slot = self._next
        self._next = (slot + 1) % len(self._keys)
        before, self._used[slot] = self._used[slot], step
        self._slots.pop(self._keys[slot], None)
        self._keys[slot], self._slots[key] = key, slot
        return slot, before


class MadStep(NamedTuple):
    """One mad, and the blocks of A and B it multiplies."""

    tile: TileOfC
    k: FractalSpan
    a: Block
    b: Block

    @property
    def shape(self) -> tuple[int, int, int]:
        """Fractals along m, k and n."""
        return self.tile.m.size, self.k.size, self.tile.n.size


def groups_of(share: Share, product: Product, schedule: ProductSchedule) -> list[list[TileOfC]]:
    """The tiles of a share, those that take turns together, in their order."""
    times, rows = product.rows_of_tiles(share, schedule.tile)
    along_m = [(i, m) for i in range(share.batch) for m in spans(share.m, schedule.tile.m)]
    columns = spans(share.n, schedule.tile.n)
    down, across = schedule.beside
    lefts = [columns[i : i + across] for i in range(0, len(columns), across)]
    slots, groups = count(), list[list[tuple[int, FractalSpan, FractalSpan]]]()
    for time in range(times):
        own = along_m[time * rows : (time + 1) * rows]
        tops = [own[i : i + down] for i in range(0, rows, down)]
        if schedule.outer == "m":
            corners = [(ms, ns) for ms in tops for ns in lefts]
        else:
            corners = [(ms, ns) for ns in lefts for ms in tops]
        groups += [[(i, m, n) for i, m in ms for n in ns] for ms, ns in corners]
    if schedule.backwards:
        groups.reverse()
    return [[TileOfC(*place, next(slots) % schedule.l0c) for place in group] for group in groups]


def steps_of(
    groups: Sequence[Sequence[TileOfC]], k: int, product: Product, schedule: ProductSchedule
) -> list[MadStep]:
    """The mads of all tiles, `k` fractals deep, in their order: the tiles of a group take turns,
    each with `schedule.turn` steps of k."""
    along_k = spans(k, schedule.tile.k)
    turns = [along_k[i : i + schedule.turn] for i in range(0, len(along_k), schedule.turn)]
    back = [turn[::-1] for turn in reversed(turns)]
    return [
        MadStep(
            tile,
            span,
            Block(tile.batch, span, tile.m),
            Block(product.matrix(tile.batch), span, tile.n),
        )
        for number, tiles in enumerate(groups)
        for turn in (back if schedule.turning and number % 2 else turns)
        for tile in tiles
        for span in turn
    ]


def covering(span: FractalSpan, size: int, total: int) -> list[FractalSpan]:
    """The pieces, `size` fractals of `total` each, that cover a span of a dimension."""
    first, last = span.start // size, ceil_div(span.stop, size)
    return [FractalSpan(i * size, min(total, (i + 1) * size)) for i in range(first, last)]


class IssueOrder:
    """What is done for a share of C, in the order of issue; how often is known before the order."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan

    @cached_property
    def steps(self) -> list[list[Event]]:
        """What comes before the first mad, what goes with each one, and what follows the last."""
        return self._plan.events()

    @property
    def events(self) -> Iterator[Event]:
        return (event for step in self.steps for event in step)

    @cached_property
    def fills(self) -> Counter[tuple[str, int, int]]:
        """The number of fills of both operands by their shape; `loads`, `mads` and `leaves` count
        those events likewise."""
        return sum((feed.fill_shapes for feed in self._plan.feeds), Counter())

    @cached_property
    def loads(self) -> Counter[tuple[str, int, int, int]]:
        return sum((feed.load_shapes for feed in self._plan.feeds), Counter())

    @cached_property
    def mads(self) -> Counter[tuple[int, int, int]]:
        return Counter(step.shape for step in self._plan.steps)

    @cached_property
    def leaves(self) -> Counter[tuple[int, int]]:
        return Counter(leave.shape for leave in self._plan.leaves)

    @cached_property
    def end(self) -> tuple[list[Load], MadStep, list[Leave]]:
        """The loads of the last step that has any, the last mad, and the parts in which its tile
        leaves."""
        plan = self._plan
        loads = next(found for n in range(len(plan.steps)) if (found := plan.loads(-1 - n)))
        mad = plan.steps[-1]
        return loads, mad, [leave for leave in plan.leaves if leave.tile == mad.tile]


def order(share: Share, product: Product, schedule: ProductSchedule) -> IssueOrder:
    """What a schedule has to be done for a share of C.

    Schedules that differ in nothing that an order follows from have the same one; what comes of an
    operand is planned once for all that differ in the other one only.
    """
    company = product.end_of(schedule).company(schedule.tile.m, schedule.tile.n)
    plain = replace(
        schedule,
        a=_ANY,
        b=_ANY,
        part=(1, 1),
        ragged="",
        l0a=1,
        l0b=1,
        inbox=1,
        outbox=1,
        loads=1,
        leaving=1,
    )
    work = _Work(share, product.alone, plain)
    a, b = (Pieces(p.k, p.other, 1, p.rows, p.slots) for p in (schedule.a, schedule.b))
    sides = (
        _Side("a", product.a.k_rows, a, schedule.l0a, share.m),
        _Side("b", product.b.k_rows, b, schedule.l0b, share.n),
    )
    return _order(work, sides, Ends(schedule.part, schedule.loads, schedule.ahead, company))


_ANY = Pieces(1, 1, 1, 1, 1)


class _Work(NamedTuple):
    """What mads follow from: of the schedule nothing but tiles, loops over them and `ahead`."""

    share: Share
    product: Product
    schedule: ProductSchedule


@lru_cache(ORDERS_KEPT)
def _order(work: _Work, sides: tuple[_Side, _Side], ends: Ends) -> IssueOrder:
    """The order in which instructions of a share are issued, from panels of both sides and tiles of
    C.

    Args:
        ends: what the tiles of C do when they are complete.
    """
    tiles, steps = _steps(work)
    plan = _Plan(steps, [_feed(work, side) for side in sides])
    plan.leave(tiles, work.schedule.l0c, ends)
    return IssueOrder(plan)


@lru_cache(ORDERS_KEPT)
def _steps(work: _Work) -> tuple[list[TileOfC], list[MadStep]]:
    """Tiles and mads of a share."""
    groups = groups_of(*work)
    steps = steps_of(groups, work.product.fractals.k, work.product, work.schedule)
    return [tile for group in groups for tile in group], steps


@dataclass(frozen=True)
class _Side:
    """An operand of the share: its pieces, buffers of L0, fractals along m or n."""

    name: str
    k_rows: bool
    pieces: Pieces
    buffers: int
    other: int

    def block(self, step: MadStep) -> Block:
        return step.a if self.name == "a" else step.b

    def transfers(self, piece: Block) -> list[Block]:
        """What of a piece comes at once: some of the rows that are stored."""
        stored, size = (piece.k if self.k_rows else piece.other), self.pieces.rows
        cut = [
            FractalSpan(start, min(stored.stop, start + size))
            for start in range(stored.start, stored.stop, size)
        ]
        if self.k_rows:
            return [Block(piece.batch, span, piece.other) for span in cut]
        return [Block(piece.batch, piece.k, span) for span in cut]


class _Wanted(NamedTuple):
    """A fill, the step that needs it, and the step after whose loads it comes; -1: before all."""

    step: int
    at: int
    fill: Fill


@dataclass
class _Feed:
    """What comes of an operand: loads of each step, the buffer of L0 that its mad takes, and fills
    by the step after whose loads they come."""

    loads: list[list[Load]]
    buffers: list[int]
    fills: dict[int, list[_Wanted]]

    @cached_property
    def fill_shapes(self) -> Counter[tuple[str, int, int]]:
        """The number of fills of the operand by their shape."""
        return Counter(each.fill.shape for wanted in self.fills.values() for each in wanted)

    @cached_property
    def load_shapes(self) -> Counter[tuple[str, int, int, int]]:
        """The number of loads of the operand by their shape."""
        return Counter(load.shape for loads in self.loads for load in loads)


@lru_cache(ORDERS_KEPT)
def _feed(work: _Work, side: _Side) -> _Feed:
    """Plans the fills and loads of an operand."""
    _, steps = _steps(work)
    turning, needed = work.schedule.turning, -1
    l1, l0 = (TurningBuffers(count, turning) for count in (side.pieces.slots, side.buffers))
    feed = _Feed([], [], {})
    along_k, along_other = (
        cache(partial(covering, size=size, total=total))
        for size, total in (
            (side.pieces.k, work.product.fractals.k),
            (side.pieces.other, side.other),
        )
    )

    for number, step in enumerate(steps):
        block = side.block(step)
        slot, loads = l0.find(block, number), []
        if slot is None:
            slot, _ = l0.put(block, number)
            for spans in itertools.product(along_k(block.k), along_other(block.other)):
                piece = Block(block.batch, *spans)
                place = l1.find(piece, number)
                if place is None:
                    place, before = l1.put(piece, number)
                    held = Held(piece, place)
                    for wanted in _fill(work, side, held, (needed, number), step.k.start, before):
                        feed.fills.setdefault(wanted.at, []).append(wanted)
                    needed = number
                loads.append(Load(side.name, Held(piece, place), block, slot))
        feed.loads.append(loads)
        feed.buffers.append(slot)
    return feed


def _fill(
    work: _Work, side: _Side, held: Held, steps: tuple[int, int], first: int, before: int
) -> Iterator[_Wanted]:
    """The transfers of a piece, spread over the steps since the piece before was needed.

    Args:
        steps: the one that needed the piece before, and the one that needs this piece.
        first: where k begins in that.
        before: the last step that uses what is in its place.
    """
    (start, number), ahead = steps, work.schedule.ahead
    transfers = side.transfers(held.piece)
    time = max(0, number - ahead - start)
    for turn, block in enumerate(transfers, 1):
        later = max(0, block.k.start - first) // work.schedule.tile.k if side.k_rows else 0
        at = min(start + ceil_div(time * turn, len(transfers)), number + later - ahead)
        yield _Wanted(number + later, max(at, before, -1), Fill(side.name, held, block))


class _Plan:
    """Events by the step that they go with."""

    def __init__(self, steps: Sequence[MadStep], feeds: Sequence[_Feed]) -> None:
        self.steps, self.feeds = steps, feeds
        self._ends: Sequence[Timed] = ()
        self._tables: dict[TileOfC, int] = {}

    def leave(self, tiles: Sequence[TileOfC], l0c: int, ends: Ends) -> None:
        """Plans what tiles begin with, and what follows their mads: before the one that needs the
        buffer in L0C again it is done."""
        last = {step.tile: number for number, step in enumerate(self.steps)}
        first = {step.tile: number for number, step in reversed(list(enumerate(self.steps)))}
        again = [*tiles[l0c:], *[None] * l0c]
        mads = [
            Mads(first[tile], last[tile], len(self.steps) if other is None else first[other])
            for tile, other in zip(tiles, again, strict=False)
        ]
        self._ends = after_tiles(tiles, mads, ends)
        if ends.company.tables:
            begun, self._tables = before_tiles(tiles, mads, ends)
            self._ends = [*begun, *self._ends]

    @cached_property
    def leaves(self) -> list[Leave]:
        """The parts in which tiles leave."""
        return [event for _, event in self._ends if isinstance(event, Leave)]

    def loads(self, number: int) -> list[Load]:
        """The loads of a step."""
        return [load for feed in self.feeds for load in feed.loads[number]]

    def events(self) -> list[list[Event]]:
        """The events of each step: parts of C that leave, loads, fills for later steps, its mad.

        What came last is loaded first: the pipes work in order, so one flag then tells of all.
        """
        came: dict[tuple[str, Held], int] = {}
        turns = count()

        def bring(step: int) -> list[Fill]:
            wanted = [wanted for feed in self.feeds for wanted in feed.fills.get(step, ())]
            wanted.sort(key=lambda wanted: wanted.step)
            for each in wanted:
                came[each.fill.operand, each.fill.held] = next(turns)
            return [each.fill for each in wanted]

        leaving: dict[int, list[Event]] = {}
        for at, event in self._ends:
            leaving.setdefault(at, []).append(event)
        found: list[list[Event]] = [[*leaving.get(-1, []), *bring(-1)]]
        begun: set[TileOfC] = set()
        for number, step in enumerate(self.steps):
            loads = self.loads(number)
            loads.sort(key=lambda load: -came[load.operand, load.held])
            a, b = (feed.buffers[number] for feed in self.feeds)
            begins = step.tile not in begun
            begun.add(step.tile)
            table = self._tables.get(step.tile) if begins else None
            mad = Mad(step.tile, step.k, begins, a, b, table)
            found.append([*leaving.get(number, []), *loads, *bring(number), mad])
        return [*found, list(leaving.get(len(self.steps), []))]
