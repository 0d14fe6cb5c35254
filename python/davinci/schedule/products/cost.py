"""Cycles of the parts of a product's schedule, pipe by pipe.

Rates and fixed parts are the machine file's, rules those of the simulator in short: what decides
between schedules is in them, what an order of issue may lose is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import InstructionLimits, cost_of, plan_vector
from davinci.machine import Machine, prices
from davinci.machine.views import loads_rectangles
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.products import direct
from davinci.schedule.products.dense_rows import (
    DenseRows,
    ended,
)
from davinci.schedule.products.epilogue import Epilogue
from davinci.schedule.products.footprint import parting, room_for_rows
from davinci.schedule.products.image import windows_cycles
from davinci.schedule.products.product import (
    Pieces,
    Product,
    ProductOperand,
    ProductSchedule,
    Tile,
)
from davinci.schedule.products.rewrites import copied
from davinci.schedule.products.row_costs import busy_of_rows
from davinci.schedule.products.row_work import RowWork
from davinci.schedule.vector.steps import BufferSteps
from davinci.units import (
    BLOCK_BYTES,
    FRACTAL_BYTES,
    MAX_REPEAT,
    MAX_STRIDE,
    REPEAT_BYTES,
    SUM_BYTES,
    ceil_div,
)
from davinci.units import FRACTAL_SIDE as SIDE

ONE_SOURCE_STRIDE = (1 << 16) - 1
"""Largest stride of blocks of instructions with one source; others have `MAX_STRIDE`."""


@dataclass(slots=True)
class Busy:
    """Cycles of pipes, in the order in which data passes them; who makes one may change it."""

    mte2: float = 0
    v: float = 0
    mte3: float = 0
    mte1: float = 0
    m: float = 0

    def __add__(self, other: Busy) -> Busy:
        return Busy(
            self.mte2 + other.mte2,
            self.v + other.v,
            self.mte3 + other.mte3,
            self.mte1 + other.mte1,
            self.m + other.m,
        )

    def __mul__(self, times: float) -> Busy:
        return Busy(
            self.mte2 * times,
            self.v * times,
            self.mte3 * times,
            self.mte1 * times,
            self.m * times,
        )

    @property
    def most(self) -> float:
        return max(self.mte2, self.v, self.mte3, self.mte1, self.m)

    @property
    def sum(self) -> float:
        return self.mte2 + self.v + self.mte3 + self.mte1 + self.m


class ProductCosts:
    """Cycles of what one core does for a product.

    Args:
        missing: part of the lines read that the L2 has not.
        slower: how much longer transfers from GM take because other cores read as well.
        shares: of operands of whose stored rows a core reads one run each, how many runs there are.
    """

    def __init__(
        self,
        product: Product,
        machine: Machine,
        missing: float = 0.0,
        slower: float = 1.0,
        shares: Mapping[str, int] | None = None,
    ) -> None:
        self.product, self.machine = product, machine
        self.missing, self.slower, self.shares = missing, slower, shares or {}
        self._steps_of: dict[tuple[int, bool, int, int], list[float]] = {}
        self._left: dict[tuple[int, bool, int, int, int], tuple[float, float]] = {}
        self._parted: dict[DenseRows, float] = {}

    def beside_others(
        self, missing: float, slower: float, shares: Mapping[str, int]
    ) -> ProductCosts:
        """The same where other cores read as well; for arguments see the class."""
        found = ProductCosts(self.product, self.machine, missing, slower, shares)
        found._steps_of, found._left = self._steps_of, self._left
        found._parted = self._parted
        return found

    def fill(self, name: str, pieces: Pieces, k: int, other: int) -> Busy:
        """One transfer of `k` x `other` fractals of A or B to L1."""
        operand, image = self.product.operand(name), self.product.image
        if image is not None and name == "a":
            blocks = ceil_div(k, image.elements)
            run_bytes = image.piece_bytes(1, other)
            pitch = 0 if blocks == 1 else image.geometry.image[1] * BLOCK_BYTES
            return Busy(mte2=self._read(blocks, run_bytes, pitch))
        whole = self.product.fractals.k, ceil_div(self.product.other(name), SIDE)
        instructions, bursts, run, contiguous = _bursts(operand, pieces, (k, other), whole)
        if operand.nz:
            each = self._read(bursts, run * FRACTAL_BYTES, 0 if contiguous else FRACTAL_BYTES)
            return Busy(mte2=instructions * each)
        if operand.direct:
            size = (k, other) if operand.k_rows else (other, k)
            cycles = direct.comes(self.product, self.machine, name, size, self.missing)
            return Busy(mte2=cycles * self.slower)
        mte3 = prices.ub_to_l1(self.machine, k * other * FRACTAL_BYTES, instructions)
        return self.crossed(name, pieces, k, other) + Busy(mte3=mte3)

    def crossed(self, name: str, pieces: Pieces, k: int, other: int) -> Busy:
        """`k` x `other` fractals of rows of A or B that come to UB and become fractals there."""
        operand = self.product.operand(name)
        rows, columns = (k, other) if operand.k_rows else (other, k)
        run_bytes = columns * SIDE * operand.itemsize
        pitch = self.product.stored_columns(name) * operand.itemsize
        whole = self.product.k if operand.k_rows else self.product.other(name)
        there = min(rows * SIDE, whole)
        if pieces.dense:
            read = self._read(1, rows * SIDE * pitch, 0)
            v = self._parting(parting(self.product, name, pieces, rows))
            if operand.itemsize > 2:
                v += self._change(operand, rows, columns, there)
            return Busy(read, v)
        if pitch % BLOCK_BYTES == 0:  # others come with the head of the row behind them
            run_bytes = min(run_bytes, pitch)
        apart = 0 if run_bytes == pitch else pitch
        read = self._read(there, run_bytes, apart, self.shares.get(name, 1))
        return Busy(read, self._change(operand, rows, columns, there))

    def _parting(self, way: DenseRows) -> float:
        """V, steps that part dense rows; of equal rows, which many schedules have, once."""
        if way not in self._parted:
            self._parted[way] = self._steps(way.parted())
        return self._parted[way]

    def _steps(self, steps: BufferSteps) -> float:
        """V, steps that wait for each other."""
        found = steps.estimate(self.machine)
        return found.cycles + found.links * self.machine.sync.barrier_cycles

    def load(self, schedule: ProductSchedule, operand: str, size: Tile | None = None) -> Busy:
        """A step's block of A or B from L1 to L0A or L0B; `size`: of a step that is smaller."""
        tile = size or schedule.tile
        if operand == "a" and self.product.image is not None:
            # A step takes each piece that it reaches into apart; so many on average.
            image, reached = self.product.image, self._pieces_reached(schedule, tile.k)
            whole = max(0.0, 2 - reached)
            parts = reached - whole
            cycles = whole * windows_cycles(image, self.machine, tile.m, tile.k)
            if parts:
                each = tile.k * (1 - whole) / parts
                cycles += parts * windows_cycles(image, self.machine, tile.m, each, part=True)
            return Busy(mte1=cycles)
        pieces, k_rows = schedule.pieces(operand), self.product.operand(operand).k_rows
        if operand == "a":
            other, space = tile.m, "L0A"
            instructions, one = other, pieces.together == schedule.tile.k
        else:
            other, space = tile.n, "L0B"
            instructions, one = tile.k, pieces.together == 1
        if space == "L0A" or k_rows:
            in_columns = pieces.together == (pieces.k if k_rows else 1)
            one |= in_columns and loads_rectangles(self.machine, space)
        if one or 1 in (other, tile.k):
            instructions = 1
        size_bytes = tile.k * other * FRACTAL_BYTES
        return Busy(mte1=prices.load2d(self.machine, space, size_bytes, instructions))

    @staticmethod
    def _pieces_reached(schedule: ProductSchedule, k: int) -> float:
        """Pieces of A that a step of so many fractals along k takes a part of, on average."""
        return 1 + (k - math.gcd(k, schedule.a.k)) / schedule.a.k

    def mad(self, tile: Tile) -> Busy:
        """A step's product."""
        return self._mads(tile.m * tile.n * tile.k)

    def _mads(self, fractals: int, instructions: int = 1) -> Busy:
        size = self.product.factor_bytes
        return Busy(m=prices.mad(self.machine, fractals, size, instructions))

    def leave(self, schedule: ProductSchedule, part: tuple[int, int] | None = None) -> Busy:
        """A part of C and what it is combined with; `part`: columns and rows of a smaller one."""
        columns, rows = part or schedule.part
        end = self.product.end_of(schedule)
        if self.product.direct:
            return Busy(mte3=direct.leaves(self.product, self.machine, columns, rows))
        if self.product.work is not None:
            return self._rows(self.product.work, schedule, rows)
        across = ceil_div(schedule.share.n, columns)
        key = end.width, end.apart, columns, rows, across
        if key not in self._left:
            size = columns, rows, across
            v = self.from_l0c(columns, rows)
            if end.width:
                v += self._steps(end.packing(columns, rows).packed())
            v += sum(self.steps_of(end, columns, rows)) + self._cleared(end, columns, rows)
            mte3 = sum(self._part(end, x, size, True) for x in end.program.outputs)
            if self.product.ragged and not end.width:
                ends = [self._row_ends(end, x, size) for x in end.program.outputs]
                v, mte3 = v + sum(x.v for x in ends), mte3 + sum(x.mte3 for x in ends)
            self._left[key] = v, mte3
        v, mte3 = self._left[key]
        size = columns, rows, across
        mte2 = sum(self._part(end, x.value, size) for x in end.extras if x.apart)
        return Busy(mte2=mte2, v=v, mte3=mte3)

    def _rows(self, work: RowWork, schedule: ProductSchedule, rows: int) -> Busy:
        """A part of so many rows of fractals, and what is done to its rows."""
        height, room = schedule.part[1] * SIDE, room_for_rows(self.product, schedule)
        found = busy_of_rows(work, height, min(rows * SIDE, self.product.m), room)
        v = self.from_l0c(schedule.part[0], rows) + self.machine.sync.barrier_cycles + found.v
        return Busy(mte2=found.mte2, v=v, mte3=found.mte3)

    def steps_of(self, end: Epilogue, columns: int, rows: int) -> list[float]:
        """V, each step of what is done to a part of C, and the barrier before it.

        Args:
            end: the product's, perhaps on dense parts.
        """
        key = end.width, end.apart, columns, rows
        if key not in self._steps_of:
            self._steps_of[key] = self._cycles_of_steps(end, columns, rows)
        return self._steps_of[key]

    def _cycles_of_steps(self, end: Epilogue, columns: int, rows: int) -> list[float]:
        """Cycles of each step of what follows the product on columns x rows of fractals, with the
        barrier in front of it."""
        found = []
        for step in end.program.steps:
            shape, strides = end.operands(step, columns, rows)
            if not (end.nz or end.width):
                shape[0] = min(shape[0], self.product.m)
            sizes = [DTYPES[value.dtype].itemsize for value in step.operands]
            order = [-1, *range(len(sizes) - 1)]
            each = [strides[i] for i in order], [sizes[i] for i in order]
            cycles = self._vector(step, shape, *each)
            found.append(self.machine.sync.barrier_cycles + cycles)
        return found

    def _cleared(self, end: Epilogue, columns: int, rows: int) -> float:
        """V, zeroes in the lanes behind the last column of the outputs, for an average part."""
        product, found = self.product, 0.0
        if not end.nz or not (end.changes or product.image):
            return found
        for value in end.program.outputs:
            lanes = end.lanes(value)
            if product.n % lanes:
                repeats = rows * SIDE * lanes * DTYPES[value.dtype].itemsize / REPEAT_BYTES
                each = prices.vector(self.machine, "vector_dup", value.dtype, repeats)
                parts = ceil_div(product.fractals.n, columns)
                found += (each + self.machine.sync.barrier_cycles) / parts
        return found

    def from_l0c(self, columns: int, rows: int) -> float:
        """V, sums of a part to UB; where they are scaled, an instruction for each column."""
        instructions = 1 if self.product.end.scale is None else columns
        return prices.l0c_to_ub(self.machine, columns * rows * SUM_BYTES, instructions)

    def beside(self, schedule: ProductSchedule, tile: Tile) -> Busy:
        """The rows that a tile is combined with: they come, and are repeated, become columns, which
        the cube adds, or go to the bias table."""
        end, found = self.product.end_of(schedule), Busy()
        for extra in end.extras:
            if extra.table:
                size = end.row_bytes(tile.n)
                found.mte1 += prices.l1_to_bt(self.machine, size)
                found.mte2 += prices.nd2nz(self.machine, 1, size)
                continue
            if extra.digits:
                found += self._digits(tile, extra.blocks)
            elif extra.column:
                found += self._column(tile)
            elif extra.beside and end.nz:
                found += Busy(v=self._repeated(end, extra.value, tile.n))
            if extra.column or (extra.row and not (end.width or extra.words)):
                found += Busy(mte2=prices.reading(self.machine).issue_cycles)
        return found

    def matrix(self, tile: Tile, together: int) -> Busy:
        """A matrix to L1, `together` of its columns of fractals at once to L0A, and their products
        with ones on a diagonal."""
        column, whole = tile.m * FRACTAL_BYTES, tile.m == self.product.fractals.m
        loads = ceil_div(tile.n, together)
        mte2 = self._read(tile.n, column, 0 if whole else FRACTAL_BYTES)
        mte1 = prices.load2d(self.machine, "L0A", tile.n * column, loads)
        return Busy(mte2, mte1=mte1) + self._mads(tile.n * tile.m, tile.n)

    def _repeated(self, end: Epilogue, value: Value, columns: int) -> float:
        """V, a row's fractals as repeats."""
        itemsize, lanes = DTYPES[value.dtype].itemsize, end.row_elements(1, value.dtype)
        step, waits = copied(value, value), self.machine.sync.barrier_cycles
        strides = [[lanes, SIDE, 1], *([SIDE, 0, 1] for _ in step.sources)]
        sizes = [itemsize] * len(strides)
        return waits + self._vector(step, [columns, lanes // SIDE, SIDE], strides, sizes)

    def _digits(self, tile: Tile, blocks: int) -> Busy:
        """A row of digits as blocks of B, and their product with what they count."""
        machine, size = self.machine, blocks * tile.n * FRACTAL_BYTES
        mte1 = prices.load2d(machine, "L0B", size)
        busy = Busy(prices.reading(machine).busy(size), mte1=mte1)
        return busy + self._mads(tile.m * tile.n * blocks)

    def _column(self, tile: Tile) -> Busy:
        """A row of f32 as two columns of f16, and their product with ones."""
        machine, waits = self.machine, self.machine.sync.barrier_cycles
        wide, half = Value(0, "f32"), Value(1, "f16")
        rounded, back = (
            TileStep("vconv", (here,), None, there, {})
            for here, there in ((wide, half), (half, wide))
        )
        scaled, rest = (
            TileStep(name, sources, None, wide, {})
            for name, sources in (("vmuls", (wide,)), ("vsub", (wide, wide)))
        )
        transposed = prices.vector(machine, "scatter_vnchwconv", "b16", tile.n)
        v = transposed + waits
        for step in (scaled, rounded, back, rest, rounded):
            values = [step.result, *step.sources]
            sizes = [DTYPES[value.dtype].itemsize for value in values]
            v += waits + self._vector(step, [tile.n * SIDE], [[1] for _ in values], sizes)
        size = tile.n * FRACTAL_BYTES
        busy = Busy(v=v, mte3=prices.ub_to_l1(machine, size))
        busy.mte1 = prices.load2d(machine, "L0B", size)
        return busy + self._mads(tile.m * tile.n)

    def _part(
        self, end: Epilogue, value: Value, size: tuple[int, int, int], written: bool = False
    ) -> float:
        """A part of C, or of what has its shape, from or to GM; of a share that has the last
        columns, so what moves ends of rows is that of the busiest core.

        Args:
            size: columns and rows of the part in fractals, and parts beside each other in a share.
        """
        columns, rows, across = size
        height, itemsize = rows * SIDE, DTYPES[value.dtype].itemsize
        pitch = self.product.n * itemsize
        runs, run = min(height, self.product.m), columns * SIDE * itemsize
        if end.nz:
            lanes = end.lanes(value)
            runs, run = columns * SIDE // lanes, height * lanes * itemsize
            pitch = FRACTAL_BYTES
        elif end.width:
            runs, run, pitch = 1, height * end.width * itemsize, 0
        elif pitch % BLOCK_BYTES == 0:
            run = min(run, pitch)
        move = self._write if written else self._read
        found = move(runs, run, 0 if run == pitch else pitch)
        if not end.nz and pitch % BLOCK_BYTES:
            # What is no whole fractal moves after the others.
            found += move(runs, SIDE * itemsize, pitch) / across
        return found

    def _row_ends(self, end: Epilogue, value: Value, size: tuple[int, int, int]) -> Busy:
        """Ends of ragged rows of a part become whole blocks, which leave when what they lie over
        has left; on average over the parts of a share beside each other, of which only the last has
        them; `size` as of `_part`."""
        columns, rows, across = size
        itemsize = DTYPES[value.dtype].itemsize
        width, block = self.product.n % (columns * SIDE), BLOCK_BYTES // itemsize
        if width <= block or width % block == 0:
            return Busy()
        pitch = end.pitch(columns, value.dtype) * itemsize // BLOCK_BYTES
        work = ended(rows * SIDE, itemsize, pitch, width)
        found = Busy(v=self._steps(work), mte3=prices.writing(self.machine).start_cycles)
        return found * (1 / across)

    def _read(self, runs: int, run_bytes: int, pitch_bytes: int, shares: int = 1) -> float:
        """MTE2: `runs` of `run_bytes` from GM; a pitch of 0: one after another; `shares`: of a row,
        of which one core reads each."""
        port, size, late = prices.reading(self.machine), float(runs * run_bytes), 0.0
        if pitch_bytes:
            lines = self._lines(run_bytes, pitch_bytes)
            size = runs * max(lines, self._worst(run_bytes, pitch_bytes, shares))
            late = runs * port.row_miss_cycles * self.missing
        least = port.busy(0, _transfers(runs, pitch_bytes))
        return max(size / port.bytes_per_cycle * self.slower + late, least)

    def _write(self, runs: int, run_bytes: int, pitch_bytes: int) -> float:
        """MTE3: `runs` of `run_bytes` to GM; a pitch of 0: one after another."""
        size = float(runs * run_bytes)
        if pitch_bytes:
            size = runs * self._lines(run_bytes, pitch_bytes)
        return prices.writing(self.machine).busy(size, _transfers(runs, pitch_bytes))

    def lines_of(self, name: str, schedule: ProductSchedule) -> float:
        """Bytes of the lines that are touched for a byte of A or B."""
        operand, pieces = self.product.operand(name), schedule.pieces(name)
        run = (pieces.other if operand.k_rows else pieces.k) * SIDE * operand.itemsize
        pitch = self.product.stored_columns(name) * operand.itemsize
        return 1.0 if operand.nz or run >= pitch else self._lines(run, pitch) / run

    def _lines(self, run_bytes: int, pitch_bytes: int) -> float:
        """Bytes of the lines that a run touches, on average: runs begin at multiples of their own
        size in rows that are a pitch apart."""
        return prices.touched_bytes(self.machine, run_bytes, run_bytes, pitch_bytes)

    def _worst(self, run_bytes: int, pitch_bytes: int, shares: int) -> int:
        """Bytes of the lines that a run of the worst core touches: if rows begin with a line, all
        of its runs lie as badly."""
        line = self.machine.gm.line_bytes
        if pitch_bytes % line:
            return 0
        starts = (number * run_bytes % line for number in range(min(shares, line)))
        return (
            max(ceil_div(start + run_bytes, line) * line for start in starts) if shares > 1 else 0
        )

    def _change(self, operand: ProductOperand, rows: int, columns: int, height: int) -> float:
        """V, `height` rows of elements to fractals in UB, of which there is room for `rows`."""
        here, there = Value(0, "f16" if operand.itemsize == 2 else "f32"), Value(1, "f16")
        step = TileStep("vadds" if operand.itemsize == 2 else "vconv", (here,), None, there, {})
        strides = [[(rows * SIDE + 1) * SIDE, SIDE, 1], [SIDE, columns * SIDE, 1]]
        return self._vector(step, [columns, height, SIDE], strides, [2, operand.itemsize])

    def _vector(
        self, step: TileStep, shape: list[int], strides: list[list[int]], itemsizes: list[int]
    ) -> float:
        """Cycles of a step; operands are its result and its sources."""
        unit, count = self.machine.vector, len(itemsizes)
        fixed, each = unit.price(*step.instruction)
        if step.name == "vcmpsel":  # a comparison and a selection for each repeat
            lanes = REPEAT_BYTES // max(itemsizes)
            return 2 * (fixed + each) * ceil_div(math.prod(shape), lanes)
        blocks = (ONE_SOURCE_STRIDE if count <= 2 else MAX_STRIDE,) * count
        repeats = (MAX_STRIDE,) * count
        limits = InstructionLimits(MAX_REPEAT, blocks, repeats, fixed, unit.bank_groups, each)
        return cost_of(plan_vector(shape, strides, itemsizes, limits), itemsizes, limits)


def _transfers(runs: int, pitch_bytes: int) -> int:
    """Instructions: those runs go together that begin whole blocks apart."""
    return min(runs, BLOCK_BYTES // math.gcd(pitch_bytes, BLOCK_BYTES))


def _bursts(
    operand: ProductOperand, pieces: Pieces, size: tuple[int, int], whole: tuple[int, int]
) -> tuple[int, int, int, bool]:
    """How k x other fractals [columns][rows] become [k / together][other][together].

    Args:
        size: k and other of what comes.
        whole: k and other of one matrix of the operand.

    Returns:
        Instructions, bursts of each, fractals of a burst, and whether an instruction's bursts
        follow each other at the source.
    """
    k, other = size
    together = min(pieces.together, k)
    groups = ceil_div(k, together)
    if operand.k_rows:  # stored as [other][k]
        if together > 1 or k == 1:
            return groups, other, together, other == 1 or together == whole[0]
        along_k = k >= other
        return min(k, other), max(k, other), 1, along_k or whole[0] == 1
    if together == 1:  # stored as [k][other]
        return 1, k, other, k == 1 or other == whole[1]
    least, middle, most = sorted([groups, together, other])
    return least * middle, most, 1, most == other or (most == together and whole[1] == 1)
