"""The order in which a core computes its share of a product: fills of L1, loads, mads, parts of C.

The work of a share is a row of tiles, the work of a tile a row of steps, one mad each. A step uses
pieces of A and B that are in L1, and tiles of them in L0A and L0B; both memories hold a few of each
and take the oldest one's place. What is asked for again while it is still there is not moved again:
a piece that stays in L1 for a row of tiles is just that.

Fills come `ahead` steps before the step that needs them, or as soon as their place is free; the
parts of a tile leave while the next tile is multiplied. Nothing here knows of MLIR.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from davinci.schedule.product import Pieces, Product, ProductSchedule, Share
from davinci.units import ceil_div


@dataclass(frozen=True)
class Span:
    """Fractals `start` to `stop` of a dimension."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Block:
    """A block of an operand, along k and along the other dimension, in one matrix of the share."""

    batch: int
    k: Span
    other: Span


@dataclass(frozen=True)
class TileOfC:
    """A tile of the share: its matrix, rows and columns, and its buffer in L0C."""

    batch: int
    m: Span
    n: Span
    slot: int


@dataclass(frozen=True)
class Held:
    """A piece of an operand and its place in L1."""

    piece: Block
    slot: int


@dataclass(frozen=True)
class Fill:
    """The part `block` of a piece of the operand "a" or "b" comes to its place in L1."""

    operand: str
    held: Held
    block: Block


@dataclass(frozen=True)
class Load:
    """What a piece in L1 has of `block` goes to a buffer of L0A or L0B."""

    operand: str
    held: Held
    block: Block
    slot: int


@dataclass(frozen=True)
class Mad:
    """C += A B, or C = A B if `first`; `a` and `b` are buffers of L0A and L0B."""

    tile: TileOfC
    k: Span
    first: bool
    a: int
    b: int


@dataclass(frozen=True)
class Leave:
    """A part of a complete tile, columns and rows in the tile, goes from L0C to GM."""

    tile: TileOfC
    n: Span
    m: Span


@dataclass(frozen=True)
class Ask:
    """What comes from GM to be combined with a part of C."""

    part: Leave


Event = Fill | Load | Mad | Ask | Leave


def spans(total: int, size: int) -> list[Span]:
    """`total` in spans of `size`, the last one perhaps shorter."""
    return [Span(start, min(total, start + size)) for start in range(0, total, size)]


Key = TypeVar("Key", bound=Hashable)


class Places:
    """Buffers that are filled in turn, the oldest content making room."""

    def __init__(self, count: int) -> None:
        self._keys: list[Hashable | None] = [None] * count
        self._used = [-1] * count
        self._next = 0

    def find(self, key: Hashable, step: int) -> int | None:
        """Where `key` is, which `step` uses; None if it is not there."""
        if key not in self._keys:
            return None
        slot = self._keys.index(key)
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
        before, self._used[slot], self._keys[slot] = self._used[slot], step, key
        return slot, before


@dataclass(frozen=True)
class Step:
    """One mad, and the blocks of A and B it multiplies."""

    tile: TileOfC
    k: Span
    a: Block
    b: Block


def tiles_of(share: Share, schedule: ProductSchedule) -> list[TileOfC]:
    """The tiles of a share, in their order."""
    rows, columns = spans(share.m, schedule.tile.m), spans(share.n, schedule.tile.n)
    if schedule.outer == "m":
        corners = [(m, n) for m in rows for n in columns]
    else:
        corners = [(m, n) for n in columns for m in rows]
    tiles = [(batch, m, n) for batch in range(share.batch) for m, n in corners]
    return [TileOfC(*tile, number % schedule.l0c) for number, tile in enumerate(tiles)]


def steps_of(tiles: Sequence[TileOfC], k: int, schedule: ProductSchedule) -> list[Step]:
    """The mads of all tiles, `k` fractals deep, in their order."""
    along_k = spans(k, schedule.tile.k)
    if schedule.outer == "k":
        # Each tile takes as many steps in a row as L0B holds blocks: those serve all tiles.
        turns = [along_k[i : i + schedule.l0b] for i in range(0, len(along_k), schedule.l0b)]
        pairs = [(tile, span) for turn in turns for tile in tiles for span in turn]
    else:
        pairs = [(tile, span) for tile in tiles for span in along_k]
    return [
        Step(tile, span, Block(tile.batch, span, tile.m), Block(tile.batch, span, tile.n))
        for tile, span in pairs
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


def order(share: Share, k: int, product: Product, schedule: ProductSchedule) -> list[Event]:
    """All that is done for a share of C, `k` fractals deep, in the order of issue.

    Parts of C leave only if that is all of k.
    """
    tiles = tiles_of(share, schedule)
    steps = steps_of(tiles, k, schedule)
    plan = _Plan(steps, schedule)
    for side in (
        _Side("a", product.a.k_rows, schedule.a, schedule.l0a, share.m),
        _Side("b", product.b.k_rows, schedule.b, schedule.l0b, share.n),
    ):
        plan.bring(side, k)
    if schedule.chunk >= product.fractals.k:
        plan.leave(tiles)
    return plan.events()


def parts_of(tile: TileOfC, part: tuple[int, int]) -> list[Leave]:
    """The parts in which a tile leaves L0C."""
    columns, rows = part
    return [
        Leave(tile, n, m) for m in spans(tile.m.size, rows) for n in spans(tile.n.size, columns)
    ]


def with_extras(
    parts: Sequence[tuple[int, Leave]], schedule: ProductSchedule
) -> Iterator[tuple[int, Ask | Leave]]:
    """Parts with the steps before which they leave, in their order, and in front of each what a
    later one asks for, so that all buffers are in use; the first ask some steps before."""
    ahead = schedule.loads - 1
    for _, part in parts[:ahead]:
        yield max(0, parts[0][0] - schedule.ahead), Ask(part)
    for number, (step, part) in enumerate(parts):
        for _, later in parts[number + ahead : number + ahead + 1]:
            yield step, Ask(later)
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


@dataclass(frozen=True)
class _Wanted:
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
        for number, step in enumerate(self.steps):
            block = side.block(step)
            slot = l0.find(block, number)
            if slot is None:
                slot, _ = l0.put(block, number)
                for piece in pieces_of(block, side.pieces, k, side.other):
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
            for turn, part in enumerate(parts_of(tile, self.schedule.part)):
                step = min(last[tile] + 2 + turn, latest, len(self.steps))
                self._leaves.append((step, part))

    def events(self) -> list[Event]:
        """Of each step: parts of C that leave, loads, fills for later steps, its mad.

        What came last is loaded first: the pipes work in order, so one flag then tells of all.
        """
        fills: dict[int, list[_Wanted]] = {}
        for wanted in self._fills:
            fills.setdefault(wanted.at, []).append(wanted)
        came: dict[tuple[str, Held], int] = {}
        found: list[Event] = []

        def bring(step: int) -> None:
            for wanted in sorted(fills.get(step, []), key=lambda wanted: wanted.step):
                came[wanted.fill.operand, wanted.fill.held] = len(came)
                found.append(wanted.fill)

        leaving: dict[int, list[Ask | Leave]] = {}
        for at, event in with_extras(self._leaves, self.schedule):
            leaving.setdefault(at, []).append(event)
        bring(-1)
        for number, step in enumerate(self.steps):
            found += leaving.get(number, [])
            loads = sorted(self._loads[number], key=lambda load: -came[load.operand, load.held])
            found += loads
            bring(number)
            a, b = self._buffers[number]
            found.append(Mad(step.tile, step.k, step.k.start == 0, a, b))
        return found + list(leaving.get(len(self.steps), []))
