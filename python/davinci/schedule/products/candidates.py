"""Schedules of a product that may be good: shares, tiles, loops over them, pieces, parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.machine.views import loads_rectangles
from davinci.schedule.products.footprint import (
    arriving_bytes,
    dense_rows,
    footprint,
    rows_at_once,
)
from davinci.schedule.products.image import windows_cycles
from davinci.schedule.products.legality import faults_of_matrices
from davinci.schedule.products.pieces import PieceWays
from davinci.schedule.products.product import (
    DENSE,
    Pieces,
    Product,
    ProductSchedule,
    Share,
    Tile,
)
from davinci.schedule.products.rough import BESIDE, Rough, TimedTile
from davinci.units import FRACTAL_BYTES, SUM_BYTES, ceil_div, even_cuts, round_up
from davinci.units import FRACTAL_SIDE as SIDE

MOST_MADS = 2048
"""Mads of a share."""

MOST_BLOCKS = 4
"""Buffers of L0A and of L0B."""

AHEAD = 4
"""Steps that fills come ahead; half as many more where two tiles take turns."""

INBOX, OUTBOX, LOADS = (4, 3), 2, 2
"""Buffers in UB: for rows that came, with an epilogue of few steps and with one that needs the
room; for fractals that go to L1; for what parts of C are combined with."""

FEW_STEPS = 2
"""Steps of an epilogue in whose time a part does not leave."""

ENDED_PARTS = 4
"""How many times larger the parts of C may be whose rows end inside a block: the ends of each leave
by transfers of their own, once its rows have left."""

PARTS = 2, 4
"""How many times larger the parts of C are with which the fastest one is played as well."""


@dataclass(frozen=True)
class Wanted:
    """What a user asks for: a strategy, and fractals of a tile's m, k and n, 0 where free."""

    strategy: str = "os"
    m: int = 0
    k: int = 0
    n: int = 0


FEW = 4
"""Pieces in turn of cores whose L1 is small."""

STAGING_SHARES, DIRECT = 10, 8
"""Of how many equal parts of UB one is for rows that cross it at once, and of L1 for those that
become fractals on their way there."""

LARGEST_SIDE = 32
"""Fractals of a tile's rows, and of its columns, at most."""


class Candidates:
    """Schedules of a product that may be good.

    Attributes:
        shares_kept, tiles_kept: shares of C, and tiles of each, that are looked at closely.
        lean_times: how many times as many if `lean`.
        hopeless: whether a schedule is left out, whatever its slots are.
        fits: whether the memories have room for one, left out or not.

    Args:
        shallow: whether a mad takes no more of k than rows of an operand that UB has room for; for
            machines whose UB is small beside L0A and L0B.
        lean: whether whatever is filled has one buffer; for machines with little room.
    """

    shares_kept, tiles_kept, tiles_after, tiles_shared = 8, 4, 2, 2
    lean_times = 8

    def __init__(
        self,
        product: Product,
        machine: Machine,
        cores: int,
        wanted: Wanted,
        shallow: bool = False,
        lean: bool = False,
    ) -> None:
        self.product, self.machine, self.cores, self.wanted = product, machine, cores, wanted
        self.shallow, self.lean = shallow, lean
        self.hopeless: Callable[[ProductSchedule], bool] = lambda schedule: False
        self.fits = False
        self.whole = product.fractals
        self.rooms = {
            name: machine.buffer(name).bytes // FRACTAL_BYTES for name in ("L0A", "L0B", "L1")
        }
        self.sums = machine.buffer("L0C").bytes // SUM_BYTES
        self.staged = machine.buffer("UB").bytes // STAGING_SHARES
        if product.direct:
            self.staged = machine.buffer("L1").bytes // DIRECT
        if lean:  # what is good is of no use if it does not fit
            self.shares_kept *= self.lean_times
            self.tiles_kept *= self.lean_times
            self.staged = min(self.staged, machine.buffer("L1").bytes // 4)
        self.together = product.columns_together
        self.ways = PieceWays(product, machine, self.staged)
        self._pieces: dict[tuple[str, int, int], Sequence[Pieces]] = {}
        self._parts: dict[tuple[object, ...], tuple[int, int]] = {}
        # What is on its way between two pipes has a flag of its own, so there is no more of it.
        self.turns = machine.sync.event_ids
        self.few_slots = (self.turns, FEW, 2, 1) if product.direct else (self.turns, 2, 1)

    def all(self) -> Iterator[ProductSchedule]:
        return itertools.chain.from_iterable(map(self.of, self.shares()))

    def of(self, share: Share) -> Iterator[ProductSchedule]:
        """The schedules of a share."""
        for tile in self.tiles(share):
            for outer, beside in self.loops(share, tile):
                yield from self.completed(share, tile, outer, beside)

    def shares(self) -> list[Share]:
        """Shares of C, those that keep the busiest core's pipes busy for the shortest time."""
        rough = Rough(self.ways, self.cores)
        sizes = itertools.product(
            even_cuts(self.product.batch, self.product.batch),
            self.cuts(self.whole.m, self.wanted.m, "is"),
            self.cuts(self.whole.n, self.wanted.n, "ws"),
        )
        legal = [share for share in itertools.starmap(Share, sizes) if self.is_share(share)]
        found = [(rough.cycles(share), share) for share in legal]
        found.sort(key=lambda item: (item[0], item[1].n, item[1].m))
        return [share for _, share in found[: self.shares_kept]]

    def cuts(self, total: int, wanted: int, unless: str) -> list[int]:
        """Sizes of a share; whole tiles of what the user wants, all of it where an operand has to
        stay for all that it is multiplied with."""
        if self.wanted.strategy not in ("os", unless):
            return [total]
        if not wanted or wanted >= total:
            return even_cuts(total, total) if not wanted else [total]
        tiles = ceil_div(total, wanted)
        return [min(total, wanted * size) for size in even_cuts(tiles, tiles)]

    def is_share(self, share: Share) -> bool:
        """Whether it may be one: of whole columns that belong together, and with enough of the last
        columns to leave in blocks."""
        if share.n % self.together:
            return False
        if any(wrong for wrong, _ in faults_of_matrices(self.product, share)):
            return False
        if self.product.narrow(share.n):
            return False
        return self.wanted.strategy != "os" or self.few(share)

    def few(self, share: Share) -> bool:
        """Whether a share of that size is not too many mads."""
        # Straight out of L0C a tile may have all of it.
        wanted, most = self.wanted, max(1, self.sums // (1 if self.product.direct else 2))
        if wanted.m or wanted.n:
            rows = min(share.m, wanted.m or max(1, most // wanted.n))
            columns = min(share.n, wanted.n or max(1, most // wanted.m))
            tiles = share.batch * ceil_div(share.m, rows) * ceil_div(share.n, columns)
        else:
            tiles = ceil_div(share.batch * share.m * share.n, most)
        return tiles <= 2 or tiles * ceil_div(self.whole.k, wanted.k or 4) <= MOST_MADS

    def tiles(self, share: Share) -> list[Tile]:
        """Tiles that keep the cube busiest beside the loads that each mad takes.

        Straight out of L0C a tile leaves in a part of the time that its mads take, so it may have
        all of it to itself.
        """
        found = list(self._timed_tiles(share))
        ways = [self._best([timed for timed in found if timed.fits_twice])]
        if self.product.direct:
            ways.append(self._best(found))
        return list(dict.fromkeys(tile for way in ways for tile in way))

    def _best(self, found: Sequence[TimedTile]) -> list[Tile]:
        """Tiles that keep the cube busiest: alone, with what stays in L0A or L0B for the next one,
        and beside others."""
        alone = sorted(found, key=lambda timed: timed.alone)[: self.tiles_kept]
        most = alone[-1].alone if alone else 0.0
        after = [timed for timed in found if timed.after < most and timed not in alone]
        after = sorted(after, key=lambda timed: timed.after)[: self.tiles_after]
        shared = sorted(found, key=lambda timed: timed.shared)[: self.tiles_shared]
        return [timed.tile for timed in (*alone, *after, *shared)]

    def _timed_tiles(self, share: Share) -> Iterator[TimedTile]:
        """Tiles of a share that fit L0C, and their cycles."""
        wanted, k = self.wanted, self.whole.k
        rows = [min(wanted.m, share.m)] if wanted.m else even_cuts(share.m, LARGEST_SIDE)
        columns = [min(wanted.n, share.n)] if wanted.n else even_cuts(share.n, LARGEST_SIDE)
        columns = [n for n in columns if n % self.together == 0] or [self.together]
        if most := self.product.end.most_columns:
            columns = [n for n in columns if n <= most]
        whole = [n for n in columns if not self.product.narrow(share.n, n)]
        if self.lean:  # narrow columns are slow, and better than none
            whole = [n for n in whole if n <= min(self.room("L0B", n), self.sums)]
        columns = whole or columns
        for m in rows:
            for n in columns:
                tiles = ceil_div(share.m, m) * ceil_div(share.n, n) * share.batch
                sums = self.sums - n * self.product.cleared
                twice = m * n * min(2, tiles) <= sums
                if not twice and (not self.product.direct or m * n > sums):
                    continue
                ways = self.beside(share, m, n)
                for depth in self.depths(m, n):
                    mads = tiles * ceil_div(k, depth)
                    a, b = self.loads(m, n, depth)
                    waits = a * (2 * m * depth > self.room("L0A", m))
                    waits += b * (2 * n * depth > self.room("L0B", n))
                    mad = prices.mad(self.machine, m * n * depth) + waits
                    own = a + b - self._kept(share, Tile(m, depth, n), a, b)
                    least = min(a / across + b / down for down, across in ways)
                    times = (mads * max(mad, loads) for loads in (a + b, own, least))
                    yield TimedTile(Tile(m, depth, n), twice, *times)

    def _kept(self, share: Share, tile: Tile, a: float, b: float) -> float:
        """Cycles of loads that a mad does without, on average, where L0A or L0B has room for all
        of k of a tile's rows or columns: these stay for the next tile.

        Args:
            a, b: cycles of the loads of A and of B for a mad.
        """
        steps = ceil_div(self.whole.k, tile.k)
        kept = [0.0]
        for cycles, memory, size, others in (
            (a, "L0A", tile.m, ceil_div(share.n, tile.n)),
            (b, "L0B", tile.n, ceil_div(share.m, tile.m)),
        ):
            if self.blocks(memory, size, tile.k) >= steps:
                kept.append(cycles * (1 - 1 / others))
        return max(kept)

    def blocks(self, memory: str, other: int, k: int) -> int:
        """Buffers of L0A or L0B for blocks of k x `other` fractals."""
        return max(1, min(MOST_BLOCKS, self.room(memory, other) // (other * k)))

    def beside(self, share: Share, m: int, n: int) -> list[tuple[int, int]]:
        """Rows and columns of tiles of m x n fractals that may be in L0C together."""
        rows = share.batch * ceil_div(share.m, m)
        columns = ceil_div(share.n, n)
        least = min(2, rows * columns)
        return [
            (down, across)
            for down, across in BESIDE
            if down <= rows
            and across <= columns
            and m * n * max(least, down * across) <= 2 * self.sums
        ]

    def room(self, memory: str, other: int) -> int:
        """Fractals of L0A or L0B for factors of tiles of `other` rows or columns."""
        taken = self.product.end.taken(memory, other, other) + self.product.cleared
        return self.rooms[memory] - taken

    def loads(self, m: int, n: int, depth: int) -> tuple[float, float]:
        """Cycles of the loads of A and of B for a mad, about."""
        a, b = (
            prices.load2d(self.machine, space, size * depth * FRACTAL_BYTES)
            for space, size in (("L0A", m), ("L0B", n))
        )
        if self.product.image is None:
            return a, b
        return windows_cycles(self.product.image, self.machine, m, depth), b

    def depths(self, m: int, n: int) -> list[int]:
        """How much of k a mad may take: as much as two buffers of each operand hold, and less."""
        k = self.whole.k
        if self.wanted.k:
            return [min(self.wanted.k, k)]
        a, b = self.room("L0A", m), self.room("L0B", n)
        most = min(k, a // (2 * m), b // (2 * n)) or min(k, a // m, b // n)
        if self.shallow:
            widest = max(self.product.a.itemsize, self.product.b.itemsize)
            most = min(most, max(1, self.staged // (SIDE * SIDE * widest)))
        if self.lean:
            most = min(most, max(1, self.rooms["L1"] // (m + n) // 2))
        found = {ceil_div(k, ceil_div(k, d)) for d in (most, most // 2) if d > 0}
        if self.product.image is not None and loads_rectangles(self.machine, "L0A"):
            found |= self.product.image.whole_depths(most)
        return sorted(found, reverse=True)

    def loops(self, share: Share, tile: Tile) -> Iterator[tuple[str, tuple[int, int]]]:
        """The outer loop, and which tiles take turns."""
        rows, columns = self.product.rows_of_tiles(share, tile)[1], ceil_div(share.n, tile.n)
        if self.wanted.strategy != "os":
            yield "m" if self.wanted.strategy == "is" else "n", (1, 1)
            return
        for down, across in self.beside(share, tile.m, tile.n):
            if down <= rows:
                both = rows > down and columns > across
                for outer in ("m", "n") if both else ("n",) if rows > down else ("m",):
                    yield outer, (down, across)

    def completed(
        self, share: Share, tile: Tile, outer: str, beside: tuple[int, int]
    ) -> Iterator[ProductSchedule]:
        """Pieces, buffers and parts for a share and its tiles."""
        for ragged in self.ways_out(tile):
            for a, b in itertools.product(self.pieces("a", tile), self.pieces("b", tile)):
                plain = self.schedule(share, tile, outer, beside, (a, b), ragged)
                if self.product.work is not None and not self.has_room(plain):
                    continue  # what is done to rows that have no room takes no time that is known
                # It is the same with all slots for which L1 has room.
                hopeless = self.hopeless(plain)
                if (hopeless and self.fits) or not self.has_room(plain) or hopeless:
                    continue
                # A mad may take parts of several pieces of an image, all of which are in L1.
                most = min(ceil_div(self.whole.k, a.k), (tile.k + a.k - 2) // a.k + 1)
                for slots in self.slots((a, b), share, tile, outer, beside):
                    if a.held and slots[0] < most:
                        continue
                    yield replace(plain, a=a.with_slots(slots[0]), b=b.with_slots(slots[1]))

    def pieces(self, name: str, tile: Tile) -> Sequence[Pieces]:
        """Ways in which L1 holds an operand."""
        key = name, tile.k, tile.m if name == "a" else tile.n
        if key not in self._pieces:
            self._pieces[key] = tuple(self.ways.pieces(name, tile))
        return self._pieces[key]

    def has_room(self, schedule: ProductSchedule) -> bool:
        """Whether the memories have room for a schedule; notes that they have for one."""
        room = not footprint(self.product, schedule).excess(self.machine)
        self.fits |= room
        return room

    def ways_out(self, tile: Tile) -> list[str]:
        """How rows of C that are no whole blocks may leave."""
        if not self.product.ragged:
            return [""]
        dense = [DENSE] if tile.n == self.whole.n else []
        if self.product.n <= SIDE and dense:
            return dense
        return [*dense, ""]

    def schedule(
        self,
        share: Share,
        tile: Tile,
        outer: str,
        beside: tuple[int, int],
        pieces: tuple[Pieces, Pieces],
        ragged: str,
    ) -> ProductSchedule:
        """The rest of a schedule but for slots: buffers, and the part of C that leaves at once."""
        product = self.product
        tiles = share.batch * ceil_div(share.m, tile.m) * ceil_div(share.n, tile.n)
        a, b = pieces
        came, leaving = self._staged()
        l0a = self.blocks("L0A", tile.m, tile.k)
        l0b = self.blocks("L0B", tile.n, tile.k)
        together = math.prod(beside)
        sums = self.sums - tile.n * product.cleared
        room = sums // (tile.m * tile.n) if product.direct else tiles
        key = tile, share.n, a, b, ragged  # the rest of what a part follows from is the product's
        made = ProductSchedule(
            share,
            tile,
            outer,
            beside,
            1 if together == 1 else l0b if beside[0] > 1 else l0a,
            a,
            b,
            self._parts.get(key, (1, 1)),
            l0a=l0a,
            l0b=l0b,
            l0c=min(max(2, together), tiles, max(room, together)),
            ahead=AHEAD * (1 + together) // 2,
            inbox=came,
            outbox=OUTBOX,
            loads=LOADS,
            leaving=leaving,
            ragged=ragged,
        )
        if self.lean:
            made = replace(made, l0a=1, l0b=1, inbox=1, outbox=1, loads=1, leaving=1, ahead=1)
        if key in self._parts:
            return made
        ended = product.ragged and not ragged
        self._parts[key] = self.part(made, self._most_leaving(tile, ended))
        return replace(made, part=self._parts[key])

    @property
    def _long(self) -> bool:
        """Whether what follows the product has more than a few steps."""
        return len(self.product.end.program.steps) > FEW_STEPS

    def _staged(self) -> tuple[int, int]:
        """Buffers in UB for rows that came, and for parts of C that leave: as many as the flags
        between pipes allow, which what comes to be combined with C needs as well."""
        product, end, long = self.product, self.product.end, self._long
        rows = not (product.direct or (product.a.nz and product.b.nz))
        came = self.turns - product.meets - any(not extra.matrix for extra in end.extras)
        leaving = max(1, self.turns - (OUTBOX + end.columns if rows else end.columns))
        return max(1, min(INBOX[long], came)), min(2, leaving) if long else leaving

    def _most_leaving(self, tile: Tile, ended: bool) -> int:
        """Fractals of C that leave at once, at most: all of a tile where much is done to them, else
        a sixteenth of UB, or more where rows of C end inside a block (`ended`)."""
        if self._long:
            return tile.m * tile.n
        ub, sums = self.machine.buffer("UB").bytes, DTYPES[self.product.end.sums.dtype].itemsize
        return max(1, ub // 16 // (SIDE * SIDE * sums)) * (ENDED_PARTS if ended else 1)

    def other_parts(self, schedule: ProductSchedule) -> list[ProductSchedule]:
        """Schedules that differ from one only in that larger parts of C leave at once."""
        size = math.prod(schedule.part)
        parts = {self.part(schedule, size * times): None for times in PARTS}
        return [replace(schedule, part=part) for part in parts if part != schedule.part]

    def slots(
        self,
        pieces: tuple[Pieces, Pieces],
        share: Share,
        tile: Tile,
        outer: str,
        beside: tuple[int, int],
    ) -> list[tuple[int, int]]:
        """Slots of A and B for which L1 has room: with all of an operand that is used again, and
        with a few pieces in turn; the more of them the better."""
        times, rows = self.product.rows_of_tiles(share, tile)
        tiles = rows, ceil_div(share.n, tile.n)
        held = {"m": (beside[0], tiles[1]), "n": (tiles[0], beside[1])}[outer]
        few, stay = [], []
        for i in (0, 1):
            panels = ceil_div(self.whole.k, pieces[i].k)
            total = panels * tiles[i] * times
            few.append([min(total, beside[i] * turns) for turns in self.few_slots])
            again = ceil_div(tiles[1 - i], beside[1 - i])
            more = [min(total, panels * (held[i] + beside[i])), panels * held[i]]
            stay.append(more if again > 1 else [])
        ways = [(stay[0], few[1]), (few[0], stay[1]), (stay[0], stay[1]), (few[0], few[1])]
        if self.wanted.strategy != "os":
            kept = 0 if self.wanted.strategy == "is" else 1
            ways = [way for way in ways if way[kept] is stay[kept] or not stay[kept]]
        room = self.rooms["L1"] - self.product.end.taken("L1", tile.m, tile.n)
        room -= self.product.cleared
        found: dict[tuple[int, int], None] = {}
        for way in ways:
            fits = (
                (a, b)
                for a, b in itertools.product(*way)
                if a * pieces[0].fractals + b * pieces[1].fractals <= room
            )
            if best := max(fits, key=lambda slots: min(slots[0], slots[1]), default=None):
                found[best] = None
        return list(found)

    def part(self, schedule: ProductSchedule, most: int) -> tuple[int, int]:
        """Columns and rows of C that leave at once: as much as fits UB, at most so many fractals.

        Little is done to a small part, so the next one is not held up.
        """
        product, tile, share = self.product, schedule.tile, schedule.share
        if product.direct:
            return tile.n, tile.m
        if product.work is not None:
            return tile.n, rows_at_once(product, schedule, self.machine)
        end, ub = product.end, self.machine.buffer("UB").bytes
        staged = arriving_bytes(product, schedule)
        loads, leaving = schedule.loads, schedule.leaving
        if schedule.ragged == DENSE:
            return tile.n, dense_rows(product, tile, ub - staged, (loads, leaving))
        room = ub - staged - end.tile_bytes(tile.n, tile.m)
        # In Nz whole columns are single runs of GM, else whole rows are.
        first, second = (tile.n, tile.m) if end.nz else (tile.m, tile.n)
        together = (self.together, 1) if end.nz else (1, self.together)
        while True:
            columns, rows = (first, second) if end.nz else (second, first)
            fits = end.of_parts(columns).part_bytes(columns, rows, loads, leaving) <= room
            least = (first, second) == together
            alone = self.product.narrow(share.n, tile.n, columns)
            if (fits and columns * rows <= most and not alone) or least:
                return columns, rows
            if first > together[0]:
                first = round_up(ceil_div(first, 2), together[0])
            else:
                second = round_up(ceil_div(second, 2), together[1])
