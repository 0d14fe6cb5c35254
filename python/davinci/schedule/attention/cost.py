"""What a schedule of attention takes: bytes of its buffers, and about how many cycles."""

from __future__ import annotations

from functools import lru_cache

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.attention.attention import (
    MOST_PIXELS,
    STAGES,
    Attention,
    AttentionSchedule,
)
from davinci.schedule.attention.blocks import taking
from davinci.schedule.attention.dense import (
    is_dense,
    leaves_dense,
    packing_of,
    parting,
    pitch_of,
    run_bytes,
)
from davinci.schedule.attention.fold import (
    FIRST,
    SECOND,
    fold,
    less_highest,
    negated,
    scratch_lanes,
    spread_again,
)
from davinci.schedule.products.cost import Busy
from davinci.schedule.products.footprint import staging_bytes
from davinci.schedule.products.product import Pieces, ProductOperand
from davinci.schedule.vector.row_packing import unpacking
from davinci.schedule.vector.row_statistics import KEPT
from davinci.schedule.vector.steps import BufferStep, View, cost_of
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, MAX_REPEAT, REPEAT_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

FRACTAL = SIDE * SIDE

LINKS = 20
"""Steps of softmax that wait for the one before."""

COLUMN_STEPS = 16
"""Steps in which masks become columns, besides the factor."""

AWAY = 14
"""Steps of the vector unit, one behind the other, from the maxima of scores that come twice to the
first scores less them."""

CHAIN = 35
"""The same of a block of keys in which nothing else goes on than what waits for its maxima."""

FLAGS = 5
"""Flags that a tile waits for beside its work."""

START = 3
"""How many times the latencies of global memory pass before the first scores are there and after
the last product."""


def link_cycles(machine: Machine) -> int:
    """Cycles of a short step of the vector unit that waits for the one before."""
    return prices.short_vector(machine) + machine.sync.barrier_cycles


def pieces_of(attention: Attention, schedule: AttentionSchedule) -> dict[str, Pieces]:
    """The pieces in which Q, K and V come to L1."""
    sizes, tile, block = attention.fractals, schedule.tile, schedule.block

    def rows(operand: ProductOperand, k: int, other: int) -> int:
        along = k if operand.k_rows else other
        return along if operand.nz else min(along, schedule.feed)

    depth, columns = sizes.depth, sizes.columns
    k_slots, v_slots = schedule.pieces
    # Rows that are picked out come as columns of fractals, each by one instruction.
    together = 1 if is_direct(attention, "k") else depth
    of_q = rows(attention.q, depth, schedule.rows)
    if schedule.together and not attention.q.k_rows:
        of_q = schedule.rows
    of_v = rows(attention.v, block, columns)
    at_once = tile if schedule.windows else rows(attention.k, depth, tile)
    return {
        "q": Pieces(depth, schedule.rows, 1, of_q, STAGES, dense=is_dense(attention, "q")),
        "k": Pieces(depth, tile, together, at_once, k_slots, dense=is_dense(attention, "k")),
        "v": Pieces(block, columns, tile, of_v, v_slots, dense=is_dense(attention, "v")),
    }


def staged_bytes(
    attention: Attention, schedule: AttentionSchedule, names: str = "kv"
) -> tuple[int, int]:
    """Bytes of UB for the rows of a piece, and for the fractals made of them: as the largest of
    `names` needs, which take turns; 0 of those that come in fractals."""
    came, made = 0, 0
    for name, pieces in pieces_of(attention, schedule).items():
        if name in names and not (name == "k" and schedule.windows):
            inbox, outbox = staging_bytes(getattr(attention, name), pieces)
            came = max(came, inbox)
            if not is_direct(attention, name):
                made = max(made, outbox)
    return came, made


def is_direct(attention: Attention, name: str) -> bool:
    """Whether rows of Q, K or V, `name`, need no vector unit on their way: their fractals are
    picked out by what brings them to L1."""
    operand: ProductOperand = getattr(attention, name)
    width = attention.columns if name == "v" else attention.depth
    other = {"q": attention.rows, "k": attention.keys, "v": attention.keys}[name]
    stored = width if operand.k_rows == (name == "v") else other
    return not operand.nz and operand.itemsize == 2 and stored % SIDE == 0


def takes_windows(attention: Attention, machine: Machine) -> bool:
    """Whether K may come to L1 in rows. They are an image of one row there, whose pixels are 16
    elements; a window is a row of K."""
    return (
        "img2col_cbuf_to_ca" in machine.intrinsics
        and is_direct(attention, "k")
        and not attention.k.k_rows
        and attention.fractals.depth <= MOST_PIXELS
    )


def is_scaled(attention: Attention, schedule: AttentionSchedule) -> bool:
    """Whether Q is multiplied with something on its way."""
    return attention.scale != 1.0 or (schedule.twice and bool(attention.chain.extras))


def column_slots(attention: Attention) -> int:
    """Buffers of L1 for columns of masks: one where all units take the same."""
    return 1 if all(extra.turn.count == 1 for extra in attention.chain.extras) else STAGES


def column_bytes(attention: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of UB in which masks become columns."""
    slots = column_slots(attention)
    return schedule.block * SIDE * (2 * 4 + 4 * 2 + BLOCK_BYTES) + (slots + 1) * FRACTAL_BYTES


def column_cycles(keys: int, machine: Machine) -> float:
    """Cycles in which masks of so many keys become columns and a factor."""
    steps = COLUMN_STEPS + 2 * keys.bit_length()
    return steps * link_cycles(machine) + COLUMN_STEPS * keys * 4 / REPEAT_BYTES


def sum_lanes(attention: Attention, rows: int) -> int:
    """Elements of UB for a unit of O as it comes from L0C, its sums, and one over these."""
    return (attention.fractals.columns + 2) * rows * FRACTAL + REPEAT_BYTES // 4


def exit_bytes(attention: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of UB that O takes on its way out."""
    out = pitch_of(attention) if not attention.o.nz else attention.fractals.columns * SIDE
    made = schedule.rows * SIDE * out * attention.o.itemsize
    left = schedule.leaving * made
    if leaves_dense(attention):
        left = made + schedule.leaving * run_bytes(attention, schedule.rows)
    return sum_lanes(attention, schedule.rows) * 4 + left


def query_bytes(attention: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of UB that Q takes on its way in."""
    found = schedule.queries * sum(staged_bytes(attention, schedule, "q"))
    if is_scaled(attention, schedule) and attention.q.nz:
        found += STAGES * schedule.rows * attention.fractals.depth * FRACTAL_BYTES
    return found


def tiles_of(block: int, tile: int) -> tuple[int, ...]:
    """Keys of the tiles of a block; sizes in fractals."""
    whole, rest = divmod(block, tile)
    return (tile * SIDE,) * whole + (rest * SIDE,) * bool(rest)


def shared_bytes(attention: Attention, schedule: AttentionSchedule) -> tuple[int, int]:
    """Bytes of UB for the two buffers in which maxima are looked for; behind that, weights of f32
    lie in the first, or maxima beside tiles."""
    item, rows = schedule.itemsize(attention), schedule.rows
    tiles = tiles_of(schedule.block, schedule.tile)
    lanes = scratch_lanes(schedule.scored, tiles, schedule.dtype(attention))
    behind = schedule.weights * rows * schedule.tile * FRACTAL_BYTES if item > 2 else 0
    if schedule.together:
        behind = schedule.scored * schedule.tile * FRACTAL_BYTES
    return max(lanes[FIRST] * item, behind), lanes[SECOND] * item


@lru_cache(maxsize=KEPT)
def highest_cycles(
    rows: int, tiles: tuple[int, ...], dtype: str, twice: bool, whole: bool, machine: Machine
) -> int:
    """Cycles in which the maximum of each row is found; `whole`: of all keys at once."""
    spread = dtype == "f16" and not twice
    steps = list(fold(rows, tiles, dtype, machine, spread and whole).steps)
    if twice:
        steps.append(negated(rows))
    elif spread and not whole:
        steps.append(spread_again(rows, tiles[0], dtype))
    return sum(cost_of(step, dtype, machine)[1] + machine.sync.barrier_cycles for step in steps)


@lru_cache(maxsize=KEPT)
def less_cycles(rows: int, keys: int, dtype: str, machine: Machine) -> int:
    """Cycles in which the maxima are taken off a tile."""
    return cost_of(less_highest(rows, keys, keys, dtype), dtype, machine)[1]


@lru_cache(maxsize=KEPT)
def chain_cycles(
    name: str, rows: int, keys: int, dtype: str, masked: bool, scaled: bool, machine: Machine
) -> int:
    """Cycles of a step of the chain on a tile; `masked`: by a number for each key."""
    lanes = BLOCK_BYTES // DTYPES[dtype].itemsize
    shape = (rows, keys, SIDE // lanes, lanes)
    scores = View("scores", shape, (keys * SIDE, SIDE, lanes, 1))
    mask = View("mask", shape, (0, lanes, 0, 1)) if masked else scores
    operands = (scores, scores) if scaled else (scores, mask, scores)
    return cost_of(BufferStep(name, operands, 1.0 if scaled else None), dtype, machine)[1]


@lru_cache(maxsize=KEPT)
def taking_cycles(rows: int, columns: int, dtype: str, machine: Machine) -> int:
    """Cycles in which a block's sums are taken to those of the blocks before."""
    taken = taking(rows, columns, dtype, machine)
    parts = (taken.maxima, taken.spread, taken.sums)
    work = sum(steps.estimate(machine).cycles for steps in parts)
    return work + sum(len(steps.steps) for steps in parts) * machine.sync.barrier_cycles


@lru_cache(maxsize=KEPT)
def spread_cost(dtype: str, count: int, machine: Machine) -> tuple[int, int]:
    """Scratch bytes and cycles in which `count` numbers fill a block each."""
    work = unpacking(dtype, count, SIDE, machine)
    return work.scratch_bytes, work.estimate(machine).cycles


class UnitCosts:
    """Cycles of what one core does for a unit."""

    def __init__(self, attention: Attention, schedule: AttentionSchedule, machine: Machine) -> None:
        self.attention, self.schedule, self.machine = attention, schedule, machine
        self.units = ceil_div(schedule.line, schedule.rows)
        lines = schedule.lines(attention) if schedule.blocks(attention) == 1 else []
        # K and V come once for all units of a matrix in a line.
        self.fresh = max((line.matrices for line in lines), default=self.units) / self.units
        self.loads = self.fresh if schedule.together else 1.0

    def unit(self) -> Busy:
        """Busy cycles of each pipe for one unit of attention."""
        return Busy(self._mte2(), self._vector(), self._mte3(), self._mte1(), self._cube())

    def tiles(self) -> int:
        """Tiles of keys."""
        whole, block = divmod(self.attention.fractals.keys, self.schedule.block)
        each = ceil_div(self.schedule.block, self.schedule.tile)
        return whole * each + ceil_div(block, self.schedule.tile)

    def _operation(self, name: str, kind: str, repeats: float, count: int = 1) -> float:
        """`count` operations of so many repeats each."""
        instructions = max(1, ceil_div(int(repeats), MAX_REPEAT))
        return count * prices.vector(self.machine, name, kind, repeats, instructions)

    def _vector(self) -> float:
        """Cycles of the vector unit for a unit: softmax of its scores, its rows of O on their way
        out, and rows of Q, K and V that become fractals."""
        attention, schedule = self.attention, self.schedule
        rows, dtype = schedule.rows, schedule.dtype(attention)
        sizes, tiles = attention.fractals, tiles_of(schedule.block, schedule.tile)
        blocks = schedule.blocks(attention)
        scored, once = schedule.scored, blocks == 1
        found = float(highest_cycles(scored, tiles, dtype, schedule.twice, once, self.machine))
        if schedule.together:
            found /= self.units
        found += sum(self._tile(keys, dtype) for keys in tiles)
        found += self._masks(blocks > 1)
        fixed = prices.short_vector(self.machine)
        column = rows * FRACTAL * 4 / REPEAT_BYTES
        if blocks > 1:
            found += taking_cycles(rows, sizes.columns + 1, dtype, self.machine)
            found = blocks * (found + (sizes.columns + 1) * column + fixed)
        found += (sizes.columns + 1) * column + fixed + self._operation("vrec", "f32", column)
        found += self._operation("vmul", "f32", column, sizes.columns)
        if attention.o.itemsize == 2:
            found += self._operation("vconv", "", column, sizes.columns)
        if leaves_dense(attention):
            found += packing_of(attention, rows).packed().estimate(self.machine).cycles
        pieces = pieces_of(attention, schedule)
        for name, count in (("q", rows), ("k", sizes.keys), ("v", sizes.keys)):
            operand, width = self._operand(name)
            if is_dense(attention, name):
                times = ceil_div(count, pieces[name].rows)
                steps = parting(attention, name, pieces[name]).parted()
                found += times * steps.estimate(self.machine).cycles
            elif not operand.nz and not is_direct(attention, name):
                wide = count * width * FRACTAL * operand.itemsize / REPEAT_BYTES
                wide *= 1.0 if name == "q" else self.fresh
                found += self._operation("vconv" if operand.itemsize > 2 else "vadds", "", wide, 1)
        return found

    def _masks(self, again: bool) -> float:
        """What prepares masks for a unit; `again`: for each block of keys."""
        attention, keys = self.attention, self.schedule.block * SIDE
        if self.schedule.twice:
            many = column_slots(attention) > 1
            return many * column_cycles(keys, self.machine)
        found = 0.0
        for extra in attention.chain.extras:
            if not extra.whole and (extra.turn.count > 1 or again):
                found += spread_cost(extra.value.dtype, keys, self.machine)[1]
        return found

    def _tile(self, keys: int, dtype: str) -> float:
        """What the vector unit does to a tile of so many keys."""
        attention, schedule, machine = self.attention, self.schedule, self.machine
        chain, rows = attention.chain, schedule.rows
        wide = rows * keys * SIDE
        copies = 1 + schedule.twice
        found = copies * prices.l0c_to_ub(machine, wide * chain.itemsize)
        if not schedule.twice:
            found += less_cycles(rows, keys, dtype, machine)
        if dtype == "f32":
            found += self._operation("vconv", "", wide * 4 / REPEAT_BYTES)
        found += self._operation("vexp", "f16", wide * 2 / REPEAT_BYTES)
        masks = {extra.value for extra in chain.extras if not extra.whole}
        for step in chain.steps:
            masked, scaled = bool(masks & set(step.sources)), step.scalar is not None
            if not (masked and schedule.twice):
                found += chain_cycles(step.name, rows, keys, dtype, masked, scaled, machine)
        return found

    def _operand(self, name: str) -> tuple[ProductOperand, int]:
        sizes = self.attention.fractals
        operand: ProductOperand = getattr(self.attention, name)
        return operand, sizes.columns if name == "v" else sizes.depth

    def _mte2(self) -> float:
        """Cycles in which Q, K, V and whole masks of a unit come from global memory."""
        sizes, port = self.attention.fractals, prices.reading(self.machine)
        rate = min(port.bytes_per_cycle, self.machine.l2.read_bytes_per_cycle)
        found = 0.0
        for name, count in (("q", self.schedule.rows), ("k", sizes.keys), ("v", sizes.keys)):
            operand, width = self._operand(name)
            part = 1.0 if name == "q" else self.fresh
            size = part * count * width * FRACTAL * operand.itemsize / rate
            if operand.nz or (name == "k" and self.schedule.windows):
                found += size + part * self.tiles() * port.issue_cycles
            else:
                # Of a few buffers each is free again only when its rows came and went.
                times = ceil_div(count, self.schedule.feed) * part
                found += max(size, times * (port.start_cycles + size / times) / STAGES)
        for extra in self.attention.chain.extras:
            if extra.whole:
                item = self.schedule.itemsize(self.attention)
                found += self.schedule.rows * sizes.keys * FRACTAL * item / rate
        return found

    def _mte3(self) -> float:
        """Cycles in which weights, and rows that became fractals, go to L1, and O leaves."""
        schedule, sizes = self.schedule, self.attention.fractals
        size, count = float(schedule.rows * sizes.keys * FRACTAL_BYTES), float(schedule.rows)
        for name, number in (("q", schedule.rows), ("k", sizes.keys), ("v", sizes.keys)):
            operand, width = self._operand(name)
            if not operand.nz and not (name == "k" and self.schedule.windows):
                part = 1.0 if name == "q" else self.fresh
                size += part * number * width * FRACTAL_BYTES
                count += part * ceil_div(number, schedule.feed) * width
        out = schedule.rows * sizes.columns * FRACTAL * self.attention.o.itemsize
        leaving = prices.writing(self.machine).busy(out, 0)
        return prices.ub_to_l1(self.machine, size, count) + leaving

    def _mte1(self) -> float:
        return sum(self._loads())

    def _loads(self) -> tuple[float, float, float, float]:
        """Cycles of MTE1 for K, P, Q and V."""
        schedule, sizes = self.schedule, self.attention.fractals
        rows, tiles = schedule.rows, self.tiles()

        def load(space: str, fractals: int, instructions: int) -> float:
            return prices.load2d(self.machine, space, fractals * FRACTAL_BYTES, instructions)

        of_k = load("L0A", sizes.keys * sizes.depth, self._k_loads(tiles))
        if schedule.windows:
            of_k = self._windows(sizes.keys, tiles)
        return (
            of_k * self.loads,
            load("L0A", sizes.keys * rows, tiles),
            load("L0B", rows * sizes.depth, 1),
            load("L0B", sizes.keys * sizes.columns, tiles) * self.loads,
        )

    def _k_loads(self, tiles: int) -> int:
        """Instructions that load so many tiles of K, which are all of it."""
        return self.attention.fractals.keys if is_direct(self.attention, "k") else tiles

    def _windows(self, keys: int, tiles: int) -> float:
        """MTE1, so many fractals of keys, seen as windows of images of one row."""
        depth = self.attention.fractals.depth
        fixed = prices.load3d(self.machine, "L0A", depth, ())
        each = prices.load3d(self.machine, "L0A", depth, (1,)) - fixed
        return keys * depth * each + tiles * min(self.schedule.tile, depth) * fixed

    def later(self) -> float:
        """How much later the first tile of K is in L0A, if loads of windows take longer than what
        they are instead of."""
        schedule, machine = self.schedule, self.machine
        depth, tile = self.attention.fractals.depth, schedule.tile
        if not schedule.windows:
            return 0.0
        size = tile * depth * FRACTAL_BYTES
        instead = prices.ub_to_l1(machine, size, depth) + prices.load2d(machine, "L0A", size, tile)
        return max(0.0, self._windows(tile, 1) - instead)

    def _cube(self) -> float:
        """Cycles of the cube for a unit: its mads, and loads of L0A and L0B that have a single
        buffer, during which nothing is multiplied."""
        schedule, sizes = self.schedule, self.attention.fractals
        work = schedule.rows * sizes.keys * (sizes.depth + sizes.columns + 1 + schedule.twice)
        mads = self.tiles() * (sizes.columns + 2 + schedule.twice)
        if schedule.twice and self.attention.chain.extras:
            work, mads = work + schedule.rows * sizes.keys, mads + self.tiles()
        buffers = (*schedule.l0a, *schedule.l0b)
        # Nothing is multiplied while what it needs takes the place of what was multiplied before.
        loads = zip(self._loads(), buffers, strict=True)
        alone = sum(x for x, n in loads if n == 1) if self.tiles() > 1 else 0.0
        return alone + prices.mad(self.machine, work, instructions=mads)


def estimate(
    attention: Attention, schedule: AttentionSchedule, machine: Machine, cores: int
) -> float:
    """Cycles on that many cores."""
    lines = schedule.lines(attention)
    costs = UnitCosts(attention, schedule, machine)
    lines_each = ceil_div(sum(line.count for line in lines), cores)
    rounds = lines_each * costs.units
    busy, tiles = costs.unit(), costs.tiles()
    each, start = busy.most, START * prices.ends(machine) + costs.later()
    tile, link = FLAGS * machine.sync.flag_cycles, link_cycles(machine)
    if schedule.together:
        each += LINKS * machine.sync.barrier_cycles / costs.units
        return lines_each * (start + tiles * tile) + (busy.sum - busy.most) / 4 + rounds * each
    if schedule.scores == 1:
        # The next unit's scores cannot come while this one's maximum is looked for.
        each += LINKS * machine.sync.barrier_cycles + schedule.twice * AWAY * link
    if (blocks := schedule.blocks(attention)) > 1:
        each += blocks * CHAIN * link
    return start + (busy.sum - busy.most) / 4 + tiles * tile + rounds * each
