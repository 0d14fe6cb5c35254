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

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import count
from typing import NamedTuple

from davinci.schedule.products.events import (
    Ask,
    Block,
    Event,
    Fill,
    Held,
    Leave,
    Load,
    Mad,
    Span,
    TileOfC,
    spans,
)
from davinci.schedule.products.product import Pieces, Product, ProductSchedule, Share
from davinci.units import ceil_div

ORDERS_KEPT = 64
"""Orders that are asked for again: to play a schedule, for its length, and when it is written."""


class Places:
    """Buffers that are filled in turn, the oldest content making room."""

    def __init__(self, count: int) -> None:
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
        while self._used[self._next] == step:
            self._next = (self._next + 1) % len(self._keys)
        slot = self._next
        self._next = (slot + 1) % len(self._keys)
        before, self._used[slot] = self._used[slot], step
        self._slots.pop(self._keys[slot], None)
        self._keys[slot], self._slots[key] = key, slot
        return slot, before


class Step(NamedTuple):
    """One mad, and the blocks of A and B it multiplies."""

    tile: TileOfC
    k: Span
    a: Block
    b: Block


def groups_of(share: Share, product: Product, schedule: ProductSchedule) -> list[list[TileOfC]]:
    """The tiles of a share, those that take turns together, in their order."""
    times, rows = product.rows_of_tiles(share, schedule.tile)
    along_m = [(i, m) for i in range(share.batch) for m in spans(share.m, schedule.tile.m)]
    columns = spans(share.n, schedule.tile.n)
    down, across = schedule.beside
    lefts = [columns[i : i + across] for i in range(0, len(columns), across)]
    slots, groups = count(), []
    for time in range(times):
        own = along_m[time * rows : (time + 1) * rows]
        tops = [own[i : i + down] for i in range(0, rows, down)]
        if schedule.outer == "m":
            corners = [(ms, ns) for ms in tops for ns in lefts]
        else:
            corners = [(ms, ns) for ns in lefts for ms in tops]
        for ms, ns in corners:
            places = [(i, m, n) for i, m in ms for n in ns]
            groups.append([TileOfC(*place, next(slots) % schedule.l0c) for place in places])
    return groups


def steps_of(
    groups: Sequence[Sequence[TileOfC]], k: int, product: Product, schedule: ProductSchedule
) -> list[Step]:
    """The mads of all tiles, `k` fractals deep, in their order."""
    along_k = spans(k, schedule.tile.k)
    turns = [along_k[i : i + schedule.turn] for i in range(0, len(along_k), schedule.turn)]
    return [
        Step(
            tile,
            span,
            Block(tile.batch, span, tile.m),
            Block(product.matrix(tile.batch), span, tile.n),
        )
        for tiles in groups
        for turn in turns
        for tile in tiles
        for span in turn
    ]


def pieces_of(block: Block, pieces: Pieces, k: int, other: int) -> list[Block]:
    """The pieces that cover a block of an operand of k x other fractals."""

    def covering(span: Span, size: int, total: int) -> list[Span]:
        first, last = span.start // size, ceil_div(span.stop, size)
        return [Span(i * size, min(total, (i + 1) * size)) for i in range(first, last)]

    return [
        Block(block.batch, along_k, along_other)
        for along_k in covering(block.k, pieces.k, k)
        for along_other in covering(block.other, pieces.other, other)
    ]


def order(share: Share, product: Product, schedule: ProductSchedule) -> list[list[Event]]:
    """All that is done for a share of C, in the order of issue, whatever is done to C then.

    Returns:
        What comes before the first mad, what goes with each one, and what follows the last.
    """
    return _order(share, replace(product, epilogue=None), schedule)


@lru_cache(ORDERS_KEPT)
def _order(share: Share, product: Product, schedule: ProductSchedule) -> list[list[Event]]:
    k = product.fractals.k
    groups = groups_of(share, product, schedule)
    steps = steps_of(groups, k, product, schedule)
    plan = _Plan(steps, schedule)
    for side in (
        _Side("a", product.a.k_rows, schedule.a, schedule.l0a, share.m),
        _Side("b", product.b.k_rows, schedule.b, schedule.l0b, share.n),
    ):
        plan.bring(side, k)
    plan.leave([tile for group in groups for tile in group])
    return plan.events()


def parts_of(tile: TileOfC, part: tuple[int, int]) -> list[tuple[Span, Span]]:
    """Columns and rows of the parts in which a tile leaves L0C."""
    columns, rows = part
    return [(n, m) for m in spans(tile.m.size, rows) for n in spans(tile.n.size, columns)]


def with_extras(
    parts: Sequence[tuple[int, Leave]], schedule: ProductSchedule
) -> Iterator[tuple[int, Ask | Leave]]:
    """Parts with the steps before which they leave, in their order, and in front of each what a
    later one asks for, so that all buffers are in use; the first ask some steps before."""
    ahead = schedule.loads - 1
    tiles = [None, *(part.tile for _, part in parts)]
    asks = [Ask(part, part.tile != before) for (_, part), before in zip(parts, tiles, strict=False)]
    for ask in asks[:ahead]:
        yield max(0, parts[0][0] - schedule.ahead), ask
    for number, (step, part) in enumerate(parts):
        for ask in asks[number + ahead : number + ahead + 1]:
            yield step, ask
        yield step, part


@dataclass(frozen=True)
class _Side:
    """An operand of the share: its pieces, buffers of L0, fractals along m or n."""

    name: str
    k_rows: bool
    pieces: Pieces
    buffers: int
    other: int

    def block(self, step: Step) -> Block:
        return step.a if self.name == "a" else step.b

    def transfers(self, piece: Block) -> list[Block]:
        """What of a piece comes at once: some of the rows that are stored."""
        stored, size = (piece.k if self.k_rows else piece.other), self.pieces.rows
        cut = [
            Span(start, min(stored.stop, start + size))
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


class _Plan:
    """Events by the step that they go with."""

    def __init__(self, steps: Sequence[Step], schedule: ProductSchedule) -> None:
        self.steps, self.schedule = steps, schedule
        self._loads: list[list[Load]] = [[] for _ in steps]
        self._buffers: list[list[int]] = [[] for _ in steps]
        self._fills: list[_Wanted] = []
        self._leaves: list[tuple[int, Leave]] = []

    def bring(self, side: _Side, k: int) -> None:
        """Plans the fills and loads of an operand."""
        l1, l0, needed = Places(side.pieces.slots), Places(side.buffers), -1

        @cache
        def pieces(block: Block) -> list[Block]:
            return pieces_of(block, side.pieces, k, side.other)

        for number, step in enumerate(self.steps):
            block = side.block(step)
            slot = l0.find(block, number)
            if slot is None:
                slot, _ = l0.put(block, number)
                for piece in pieces(block):
                    place = l1.find(piece, number)
                    if place is None:
                        place, before = l1.put(piece, number)
                        self._fill(side, Held(piece, place), (needed, number), before)
                        needed = number
                    self._loads[number].append(Load(side.name, Held(piece, place), block, slot))
            self._buffers[number].append(slot)

    def _fill(self, side: _Side, held: Held, steps: tuple[int, int], before: int) -> None:
        """Plans the transfers of a piece, spread over the steps since the piece before was needed.

        Args:
            steps: the one that needed the piece before, and the one that needs this piece.
            before: the last step that uses what is in its place.
        """
        start, number = steps
        ahead, first = self.schedule.ahead, self.steps[number].k.start
        transfers = side.transfers(held.piece)
        time = max(0, number - ahead - start)
        for turn, block in enumerate(transfers, 1):
            later = max(0, block.k.start - first) // self.schedule.tile.k if side.k_rows else 0
            at = min(start + ceil_div(time * turn, len(transfers)), number + later - ahead)
            fill = Fill(side.name, held, block)
            self._fills.append(_Wanted(number + later, max(at, before, -1), fill))

    def leave(self, tiles: Sequence[TileOfC]) -> None:
        """Plans the parts of all tiles: after the tile's last mad and the one that follows it, and
        before the mad that needs the buffer in L0C again."""
        last = {step.tile: number for number, step in enumerate(self.steps)}
        first = {step.tile: number for number, step in reversed(list(enumerate(self.steps)))}
        for number, tile in enumerate(tiles):
            following = tiles[number + self.schedule.l0c :]
            latest = first[following[0]] if following else len(self.steps)
            for turn, (n, m) in enumerate(parts_of(tile, self.schedule.part)):
                step = min(last[tile] + 2 + turn, latest, len(self.steps))
                slot = len(self._leaves) % self.schedule.loads
                self._leaves.append((step, Leave(tile, n, m, slot, number % 2)))

    def events(self) -> list[list[Event]]:
        """Of each step: parts of C that leave, loads, fills for later steps, its mad.

        What came last is loaded first: the pipes work in order, so one flag then tells of all.
        """
        fills: dict[int, list[_Wanted]] = {}
        for wanted in self._fills:
            fills.setdefault(wanted.at, []).append(wanted)
        came: dict[tuple[str, Held], int] = {}
        turns = count()

        def bring(step: int) -> list[Fill]:
            wanted = sorted(fills.get(step, []), key=lambda wanted: wanted.step)
            for each in wanted:
                came[each.fill.operand, each.fill.held] = next(turns)
            return [each.fill for each in wanted]

        leaving: dict[int, list[Ask | Leave]] = {}
        for at, event in with_extras(self._leaves, self.schedule):
            leaving.setdefault(at, []).append(event)
        found: list[list[Event]] = [list(bring(-1))]
        for number, step in enumerate(self.steps):
            loads = sorted(self._loads[number], key=lambda load: -came[load.operand, load.held])
            a, b = self._buffers[number]
            mad = Mad(step.tile, step.k, step.k.start == 0, a, b)
            found.append([*leaving.get(number, []), *loads, *bring(number), mad])
        return [*found, list(leaving.get(len(self.steps), []))]
