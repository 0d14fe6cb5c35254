"""How long a core takes for its shares, each event of their order played on paper.

An event takes its pipes for as long as `cost` says, one event of a pipe after the other, when what
it needs is there, its place is free, and there is an event id for a flag between a fill and a load.
Left out are the event ids of other flags, and what the scalar unit may hold up.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from davinci.machine import Machine, prices
from davinci.schedule.products import foreseen
from davinci.schedule.products.cost import Busy, ProductCosts
from davinci.schedule.products.estimate import CoreTraffic, tiles_of, traffic_of
from davinci.schedule.products.events import (
    MATRIX,
    ROWS,
    Add,
    Ask,
    Event,
    Fill,
    Leave,
    Load,
    Mad,
    TurnRows,
)
from davinci.schedule.products.image import windows_cycles
from davinci.schedule.products.order import IssueOrder, order
from davinci.schedule.products.played_buffers import PieceFlags, Place, PlayedRing
from davinci.schedule.products.product import Product, ProductSchedule, Tile
from davinci.units import FRACTAL_BYTES, ceil_div

FILLS_KEPT, MOST_TAKEN = 8, 0.5
"""How many of the last transfers from GM to L1 a load may meet, and the most of its cycles that one
of them takes."""


def fastest(
    product: Product, schedules: Sequence[ProductSchedule], machine: Machine, cores: int
) -> ProductSchedule:
    """The first of those that are played in the fewest cycles."""
    best, least, costs = schedules[0], math.inf, ProductCosts(product, machine)
    for schedule in schedules:
        cycles = played(product, schedule, machine, cores, least, costs)
        if cycles < least:
            best, least = schedule, cycles
    return best


def by_play(
    product: Product, schedules: Sequence[ProductSchedule], machine: Machine, cores: int
) -> list[ProductSchedule]:
    """Those that are played in fewer cycles first."""
    costs = ProductCosts(product, machine)
    return sorted(
        schedules, key=lambda schedule: played(product, schedule, machine, cores, math.inf, costs)
    )


def played(
    product: Product,
    schedule: ProductSchedule,
    machine: Machine,
    cores: int,
    limit: float = math.inf,
    costs: ProductCosts | None = None,
) -> float:
    """Cycles on that many cores. If they reach `limit`, a number that does, too: such a schedule is
    played no longer than until that is certain.

    Args:
        costs: of the product on one core alone, which keep what was computed for other schedules.
    """
    plain = costs or ProductCosts(product, machine)
    traffic = traffic_of(plain, schedule, cores, tiles_of(product, schedule))
    if traffic.memory >= limit:
        return traffic.memory
    player = Player(schedule, traffic)
    player.foresee()
    if (least := traffic.played(player.least)) > limit * CERTAIN:
        return least
    work = order(schedule.share, product, schedule)
    player.expect(work)
    if (least := traffic.played(player.least)) > limit * CERTAIN:
        return least
    for step in work.steps:
        player.play(step)
        if (least := traffic.played(player.least)) > limit * CERTAIN:
            return least
    first = player.end
    if traffic.turns > 1:
        for step in work.steps:
            player.play(step)
    return traffic.played(first + (traffic.turns - 1) * (player.end - first))


CERTAIN, LITTLE = 1 + 1e-9, 1e-3
"""Sums of the same numbers, in whatever order, differ by less, in parts and in cycles."""


def _least(now: float, ahead: float, after: float) -> float:
    """When all is done at the earliest that follows what a pipe still has to do; what else it does
    may have nothing behind it."""
    return now + ahead + after if ahead > LITTLE else now


class Filled(NamedTuple):
    """A transfer to L1: cycles, bytes of L1, bytes that come, and whether by way of UB."""

    busy: Busy
    held: float
    size: float
    staged: bool


class Player:
    """Pipes and buffers of a core, with when they are free, and when what they hold is there."""

    def __init__(self, schedule: ProductSchedule, traffic: CoreTraffic) -> None:
        self.schedule, self.costs = schedule, traffic.costs
        machine, product = traffic.costs.machine, traffic.costs.product
        self.machine, self.product, self.end_of = machine, product, product.end_of(schedule)
        self.flag = machine.sync.flag_cycles
        self.read_latency = prices.reading(machine).start_cycles
        self.write_latency = prices.writing(machine).start_cycles
        self.drain = prices.mad_drain(machine)
        self.lane = self.memory_lane = 0.0
        self.rate = traffic.l2_rate
        self.memory_rates = dict(zip("ab", traffic.memory_rates, strict=True))
        self.mte2 = self.v = self.mte3 = self.mte1 = self.m = self.end = 0.0
        self.inbox, self.outbox = PlayedRing(schedule.inbox), PlayedRing(schedule.outbox)
        self.leaving = PlayedRing(schedule.leaving)
        self.loaded: dict[Place, float] = {}  # of a place in L1, its last load
        self.came: dict[Place, list[tuple[int, float, int]]] = {}
        self.l0: dict[Place, float] = {}
        self.used: dict[Place, float] = {}
        self.sums: dict[int, float] = {}
        self.left: dict[int, float] = {}
        self.asked: dict[int, float] = {}
        self.there: dict[Place, float] = {}
        self.answered: dict[int, float] = {}
        self.flags = {"mte2": PieceFlags(machine), "mte3": PieceFlags(machine)}
        self.fills: deque[tuple[float, float, float]] = deque(maxlen=FILLS_KEPT)
        nz = {name: product.direct or product.operand(name).nz for name in "ab"}
        nz["a"] |= product.image is not None
        self.sources = {name: "mte2" if each else "mte3" for name, each in nz.items()}
        """Pipes that fill L1, by operand."""
        self.in_rows = {name: product.direct and not product.operand(name).nz for name in "ab"}
        self.ahead, self.after = Busy(), Busy()
        self.lane_ahead = self.memory_ahead = 0.0
        self._fill = lru_cache(None)(self._fill_cost)
        self._load = lru_cache(None)(self._load_cost)
        self._mad = lru_cache(None)(lambda m, k, n: self.costs.mad(Tile(m, k, n)).m)
        self._leave = lru_cache(None)(lambda n, m: self.costs.leave(schedule, (n, m)))
        self._over = lru_cache(None)(self._last_steps)
        self._beside = lru_cache(None)(lambda m, n: self.costs.beside(schedule, Tile(m, 1, n)))
        self._matrix = lru_cache(None)(lambda m, n: self.costs.matrix(Tile(m, 1, n), n))

    def play(self, events: Sequence[Event]) -> None:
        """Plays events in this order on the pipes' time lines; `end` is when the last of them is
        done."""
        for event in events:
            if isinstance(event, Mad):
                self.mad(event)
            elif isinstance(event, Load):
                self.load(event)
            elif isinstance(event, Fill):
                self.fill(event)
            elif isinstance(event, Ask):
                self.ask(event)
            elif isinstance(event, TurnRows):
                self.turn(event)
            elif isinstance(event, Add):
                self.add(event)
            else:
                self.leave(event)
        self.end = max(self.end, self.m + self.drain, self.v)

    def foresee(self) -> None:
        """Counts what is known of a share that begins before its order is: fills, mads, and what
        follows the last of them at least."""
        if not self.schedule.turning:
            self._count(foreseen.fills_of_share(self.product, self.schedule))
        mads = foreseen.mads_of_share(self.product, self.schedule)
        self.ahead.m += sum(self._mad(*mad) * count for mad, count in mads.items())
        mad, part = foreseen.smallest_parts(self.product, self.schedule)
        load = 0.0  # of an image a mad may load parts of several pieces
        if self.product.image is None:
            load = min(self._load("a", *mad), self._load("b", *mad))
        self.after = self._after(load, self._mad(*mad), [self._leave(*part)])

    def expect(self, work: IssueOrder) -> None:
        """Counts what pipes have to do for a share that begins: its fills, loads and mads, what
        leaves, and what follows their last."""
        self._count(work.fills)
        for leave, count in work.leaves.items():
            left = self._leave(*leave)
            self.ahead += Busy(v=left.v, mte3=left.mte3) * count
        self.ahead.mte1 += sum(self._load(*load) * count for load, count in work.loads.items())
        self.ahead.m += sum(self._mad(*mad) * count for mad, count in work.mads.items())
        loads, mad, parts = work.end
        load = min(self._load(*load.shape) for load in loads)
        leaves = [self._leave(*part.shape) for part in parts]
        self.after = self._after(load, self._mad(*mad.shape), leaves)

    def _count(self, fills: Mapping[foreseen.FillShape, int]) -> None:
        """Counts the fills of a share that begins."""
        self.ahead, self.lane_ahead, self.memory_ahead = Busy(), 0.0, 0.0
        for fill, count in fills.items():
            filled = self._fill(*fill)
            self.ahead += filled.busy * count
            self.lane_ahead += filled.size / self.rate * count
            self.memory_ahead += filled.size / self.memory_rates[fill[0]] * count

    def _after(self, load: float, mad: float, leaves: Sequence[Busy]) -> Busy:
        """What follows the last work of each pipe at least: one of the last loads, a mad, and the
        parts in which its tile leaves."""
        mte3 = self.write_latency
        v = leaves[-1].mte3 + mte3 + (0 if self.product.direct else self.flag)
        m = self.drain + self.flag + sum(leave.v for leave in leaves) + v
        mte1 = self.flag + mad + m
        # See `fill`: of rows that become fractals on their way nothing comes later.
        latency = 0 if any(self.in_rows.values()) else self.read_latency
        return Busy(latency + self.flag + load + mte1, v, mte3, mte1, m)

    @property
    def least(self) -> float:
        """When the share is done at the earliest: each pipe has to do what it is expected to."""
        ahead, after = self.ahead, self.after
        return max(
            self.m + self.drain,
            _least(self.mte2, ahead.mte2, after.mte2),
            _least(self.lane, self.lane_ahead, after.mte2),
            _least(self.memory_lane, self.memory_ahead, after.mte2),
            _least(self.v, ahead.v, after.v),
            _least(self.mte3, ahead.mte3, after.mte3),
            _least(self.mte1, ahead.mte1, after.mte1),
            _least(self.m, ahead.m, after.m),
        )

    def _fill_cost(self, name: str, k: int, other: int) -> Filled:
        """What filling a piece of A or B of k x other fractals takes: busy cycles, bytes of L1,
        bytes that are read, and whether it crosses UB."""
        operand, image = self.product.operand(name), self.product.image
        busy = self.costs.fill(name, self.schedule.pieces(name), k, other)
        held = size = k * other * FRACTAL_BYTES
        staged = self.sources[name] == "mte3"
        if name == "a" and image is not None:
            held = size = image.piece_bytes(ceil_div(k, image.elements), other)
        elif staged:
            size = size // 2 * operand.itemsize
        return Filled(busy, held, size, staged)

    def _load_cost(self, name: str, m: int, k: int, n: int) -> float:
        """Cycles of MTE1 for a tile of A or B, of m x k or k x n fractals, to L0A or L0B."""
        if name == "a" and self.product.image is not None:
            tile = self.schedule.tile.k
            part = k not in (tile, self.product.fractals.k % tile)
            return windows_cycles(self.product.image, self.machine, m, k, part)
        return self.costs.load(self.schedule, name, Tile(m, k, n)).mte1

    def _last_steps(self, n: int, m: int) -> tuple[float, float]:
        """How long before a part is done the vector unit is done with what is combined with it: of
        the shape of C, and rows."""
        steps, end = self.costs.steps_of(self.end_of, n, m), self.end_of
        left = [0.0, 0.0]
        for row in (False, True):
            values = {x.value for x in end.extras if x.row == row and not x.matrix}
            uses = [values.isdisjoint(step.sources) for step in end.program.steps]
            last = len(uses) - uses[::-1].index(False) if False in uses else 0
            left[row] = sum(steps[last:])
        return left[0], left[1]

    def read(
        self, ready: float, cycles: float, size: float, memory: float = 0.0
    ) -> tuple[float, float]:
        """A transfer of MTE2 that may begin when `ready`: when it begins, and the pipe is free.

        Args:
            memory: cycles that it takes of the core's share of the memory.
        """
        begin = max(self.mte2, ready)
        since = begin - self.machine.gm.idle_credit_cycles
        self.lane = max(self.lane, since) + size / self.rate
        self.memory_lane = max(self.memory_lane, since) + memory
        self.mte2 = max(begin + cycles, self.lane, self.memory_lane)
        return begin, self.mte2

    def fill(self, event: Fill) -> None:
        """A transfer of an operand to L1: straight, or by way of UB, where rows become fractals."""
        name, block, place = event.operand, event.block, (event.operand, event.held.slot)
        free = self.loaded.get(place, 0.0)
        cost, held, size, staged = self._fill(*event.shape)
        self.ahead.mte2 -= cost.mte2
        self.lane_ahead -= size / self.rate
        memory = size / self.memory_rates[name]
        self.memory_ahead -= memory
        if staged:
            self.ahead.v -= cost.v
            self.ahead.mte3 -= cost.mte3
            _, came = self.read(self.inbox.next, cost.mte2, size, memory)
            changed = self.cross(came + self.read_latency + self.flag, cost.v)
            self.inbox.take(changed + self.flag)
            begin = max(self.mte3, changed + self.flag, free)
            self.mte3 = begin + cost.mte3
            self.outbox.take(self.mte3 + self.flag)
            done = self.mte3
        else:
            begin, free = self.read(free, cost.mte2, size, memory)
            stall = held / self.machine.mte1.stall_bytes / max(free - begin, 1)
            self.fills.append((begin, free, min(stall, MOST_TAKEN)))
            # Rows that become fractals on their way are all there when the pipe is free.
            done = free + (0 if self.in_rows[name] else self.read_latency)
        number = self.flags[self.sources[name]].fill(place, begin)
        pieces = self.came.setdefault(place, [])
        if pieces and block.k.start <= event.held.piece.k.start and free:
            pieces.clear()
        pieces.append((block.k.start, done + self.flag, number))

    def cross(self, ready: float, cycles: float) -> float:
        """When rows that have come to UB when `ready` are fractals there."""
        self.v = max(self.v, ready, self.outbox.next) + cycles
        return self.v

    def load(self, event: Load) -> None:
        """A load from L1 to L0A or L0B, when all transfers that it reads have come."""
        name, held, block = event.operand, event.held, event.block
        place = name, held.slot
        cycles = self._load(*event.shape)
        self.ahead.mte1 -= cycles
        needed = [(t, fill) for start, t, fill in self.came[place] if start < block.k.stop]
        came = max(t for t, _ in needed)
        source = self.sources[name]
        ready = self.flags[source].load(place, max(fill for _, fill in needed))
        came = max(came, self.asked_by_mte1(source) if ready is None else ready + self.flag)
        begin = max(self.mte1, came, self.used.get((name, event.slot), 0.0))
        self.mte1 = self.stalled(begin, cycles)
        self.loaded[place] = self.mte1 + self.flag
        self.l0[name, event.slot] = self.mte1 + self.flag

    def asked_by_mte1(self, source: str) -> float:
        """When MTE1 has a flag that it has to ask for: the pipe has done all that was issued."""
        if source == "mte2":
            self.mte2 = max(self.mte2, self.mte1 + self.flag)
            return self.mte2 + self.read_latency + self.flag
        self.mte3 = max(self.mte3, self.mte1 + self.flag)
        return self.mte3 + self.flag

    def stalled(self, begin: float, cycles: float) -> float:
        """When a load that begins then is over, with what comes to L1 meanwhile."""
        now, left = begin, cycles
        for start, stop, taken in self.fills:
            if stop <= now:
                continue
            if start >= now + left:
                break
            if start > now:
                left -= start - now
                now = start
            needed = left / (1 - taken)
            if now + needed <= stop:
                return now + needed
            left -= (stop - now) * (1 - taken)
            now = stop
        return now + left

    def mad(self, event: Mad) -> None:
        """A mad, when its factors are there, and the first of a tile when its place is free."""
        tile = event.tile
        begin = max(self.m, self.l0["a", event.a], self.l0["b", event.b])
        if event.first:
            begin = max(begin, self.left.get(tile.slot, 0.0))
        if event.bias is not None:
            begin = max(begin, self.there["table", event.bias])
        cycles = self._mad(*event.shape)
        self.ahead.m -= cycles
        self.m = begin + cycles
        free = self.m + self.drain + self.flag
        self.used["a", event.a] = self.used["b", event.b] = free
        if event.bias is not None:
            self.used["table", event.bias] = free
        self.sums[tile.slot] = free

    def ask(self, event: Ask) -> None:
        """A transfer of what a part of C is combined with: rows, a matrix that the cube adds, or
        what the vector unit reads beside it."""
        part, tile = event.part, event.part.tile
        if event.kind == ROWS:
            cycles, place = self._beside(tile.m.size, tile.n.size).mte2, ("rows", part.turn)
            _, came = self.read(self.used.get(place, 0.0), cycles, 0) if cycles else (0.0, 0.0)
            latency = 0 if self.product.direct else self.read_latency  # see `fill`
            self.there[place] = came + latency + self.flag if cycles else 0.0
        elif event.kind == MATRIX:
            cycles, place = self._matrix(tile.m.size, tile.n.size).mte2, ("matrix", part.slot)
            size = tile.m.size * tile.n.size * FRACTAL_BYTES
            _, came = self.read(self.used.get(place, 0.0), cycles, size)
            self.there[place] = came + self.read_latency + self.flag
        else:
            cycles = self._leave(part.n.size, part.m.size).mte2
            _, came = self.read(self.answered.get(part.slot, 0.0), cycles, 0)
            self.asked[part.slot] = came + self.read_latency + self.flag

    def turn(self, event: TurnRows) -> None:
        """Rows become repeats, or columns in L1, or go to the bias table."""
        tile, place = event.part.tile, ("rows", event.part.turn)
        cost, came = self._beside(tile.m.size, tile.n.size), self.there[place]
        if tables := self.end_of.tables(self.schedule.tile.n):
            table = "table", event.part.turn % tables
            self.mte1 = max(self.mte1, came, self.used.get(table, 0.0)) + cost.mte1
            self.used[place] = self.there[table] = self.mte1 + self.flag
            return
        if cost.v:
            self.v = max(self.v, came) + cost.v
            came = self.used[place] = self.v + self.flag
        if cost.mte3:
            self.mte3 = max(self.mte3, came) + cost.mte3
            came = self.mte3 + self.flag
        self.there[place] = came

    def add(self, event: Add) -> None:
        """The cube's addition of a row, or of columns of a matrix, to the sums of a tile."""
        tile, rows, held = event.tile, ("rows", event.turn), ("matrix", event.held)
        end = self.m
        if self.end_of.columns and event.n.start == 0:
            cost = self._beside(tile.m.size, tile.n.size)
            begin = max(self.mte1, self.there[rows], self.used.get(("row", 0), 0.0))
            self.mte1 = begin + cost.mte1
            end = max(end, self.mte1 + self.flag) + cost.m
            self.used["row", 0] = end + self.drain + self.flag
        if self.end_of.matrices:
            cost, place = self._matrix(tile.m.size, event.n.size), ("columns", event.slot)
            begin = max(self.mte1, self.there[held], self.used.get(place, 0.0))
            self.mte1 = self.stalled(begin, cost.mte1)
            self.used[held] = self.mte1 + self.flag
            end = max(end, self.mte1 + self.flag) + cost.m
            self.used[place] = end + self.drain + self.flag
        self.m = end
        self.sums[tile.slot] = end + self.drain + self.flag

    def leave(self, event: Leave) -> None:
        """A part of a tile leaves L0C: by way of the vector unit, or straight to memory."""
        tile, (n, m) = event.tile, event.shape
        cost, rows = self._leave(n, m), ("rows", event.turn)
        self.ahead.v -= cost.v
        self.ahead.mte3 -= cost.mte3
        ready = self.sums[tile.slot]
        if self.product.direct:
            self.mte3 = max(self.mte3, ready) + cost.mte3
            self.left[tile.slot] = self.mte3 + self.write_latency + self.flag
            self.end = max(self.end, self.mte3 + self.write_latency)
            return
        ready = max(ready, self.asked.get(event.slot, 0.0), self.there.get(rows, 0.0))
        if self.product.work is not None and cost.mte2:
            _, came = self.read(0.0, cost.mte2, 0)
            ready = max(ready, came + self.read_latency + self.flag)
        begin = max(self.v, ready, self.leaving.next)
        self.v = begin + cost.v
        self.left[tile.slot] = begin + self.costs.from_l0c(n, m) + self.flag
        whole, row = self._over(n, m)
        self.answered[event.slot] = self.v - whole + self.flag
        if not self._beside(tile.m.size, tile.n.size).v:
            self.used[rows] = self.v - row + self.flag
        self.mte3 = max(self.mte3, self.v + self.flag) + cost.mte3
        self.leaving.take(self.mte3 + self.write_latency + self.flag)
        self.end = max(self.end, self.mte3 + self.write_latency)
