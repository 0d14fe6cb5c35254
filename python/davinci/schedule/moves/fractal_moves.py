"""Between rows and fractals (Nz) by pieces of matrices, in the two ways of the main source.

    dst[i][j][k][l] = src[j * 16 + k][i * c + l]           c = 16 (16- and 32-bit), 32 (8-bit)

A piece is p strips of 16 rows by w fractal columns. 16-bit types are transposed in squares of
16 x 16, twice (`fractalize` option; both ways are the source's):

    naive     p = 1: gather the blocks of a strip, transposed; transpose each back; w blocks leave
    improved  as many strips as fit UB and leave no block idle. Row r of the piece is (a, b) with
              r = a * p + b, so that one instruction of repeat p * w gathers
              S[a][b][t][l] -> T[b][t][l][a], and one a strip scatters
              T[b][t][l][a] -> R[t][a][b][l], which is Nz: p blocks leave per burst

Other types move by copies whose stride in UB changes the layout: of 32 bits on the vector unit, so
that whole fractals cross GM, of 8 bits as they cross it.

Rows that are no whole blocks cross GM as the runs that they are there, and are parted in UB, or put
together (`DenseRows`), where all of their columns fit it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from davinci.machine import Machine, prices
from davinci.operators.tensors import Tensor, fractal_shape
from davinci.schedule.moves.portions import SLOTS, AlikePieces
from davinci.schedule.moves.transfers import TransferCosts
from davinci.schedule.products.dense_rows import DenseRows, fractal_rows, scratch_bytes
from davinci.schedule.vector.step_costs import turn_cycles
from davinci.units import BLOCK_BYTES, MAX_REPEAT, REPEAT_BYTES, ceil_div, even_cut
from davinci.units import FRACTAL_SIDE as SIDE

IMPROVED, NAIVE = "improved", "naive"

SPLIT_BYTES = 16384
"""Smallest piece worth cutting in two: below, a transfer is shorter than its start."""


@dataclass(frozen=True)
class FractalMove(AlikePieces):
    """Matrices between rows and fractals.

    Attributes:
        source: number of the array.
        back: whether from fractals to rows.
        batch, m, n: matrices, and their sizes.
        c: columns of a fractal.
        itemsize: bytes of an element.
        strips, columns: of a piece, in fractals.
        dense: whether rows cross GM as one run, of 16 and 32 bits; then a piece has all columns.
        halves: whether pieces are cut in two with buffers of their own: then one half is loaded
            while the other is stored. Blocks with several pieces fill UB with each instead, and
            rows that must be written from left to right stay whole.
        slots: pieces of work whose buffers a core has at a time.
        cycles: of a piece of work by itself.
        further: of each that the same core does behind it.
    """

    source: int
    back: bool
    batch: int
    m: int
    n: int
    c: int
    itemsize: int
    strips: int = 1
    columns: int = 1
    dense: bool = False
    halves: bool = False
    slots: int = 1
    cycles: float = 0.0
    further: float = 0.0

    @property
    def transposes(self) -> bool:
        return self.itemsize == 2 and not self.dense

    @property
    def rearranges(self) -> bool:
        """Whether the vector unit copies rows to fractals in UB, or back."""
        return self.itemsize == 4 and not self.dense

    @property
    def pad(self) -> int:
        """Elements of a block."""
        return BLOCK_BYTES // self.itemsize

    @property
    def pitch(self) -> int:
        """Elements from fractal column to fractal column in UB, where the vector unit copies."""
        return self.strips * SIDE * self.c + self.pad

    @property
    def rows(self) -> DenseRows:
        """The rows of a piece as they follow each other in GM, and as fractals in UB."""
        height, row = self.strips * SIDE, self.c * self.itemsize // BLOCK_BYTES
        return fractal_rows(height, self.columns, self.n, self.itemsize, row, height * row + 1)

    @property
    def dense_bytes(self) -> int:
        """Bytes of UB that a piece of dense rows takes."""
        runs = self.strips * SIDE * self.n * self.itemsize
        fractals = self.pitch * self.columns * self.itemsize
        return runs + fractals + sum(scratch_bytes([self.rows]).values())

    @property
    def ragged(self) -> bool:
        """Whether rows are no whole blocks."""
        return self.n * self.itemsize % BLOCK_BYTES != 0

    @property
    def whole_strips(self) -> bool:
        """Whether a piece of work is a strip in its whole width."""
        return self.back and self.ragged and not self.dense

    @property
    def units(self) -> int:
        """Pieces of work."""
        strips = ceil_div(self.m, self.strips * SIDE)
        columns = 1 if self.whole_strips else ceil_div(self.n, self.columns * self.c)
        return self.batch * strips * columns

    def __str__(self) -> str:
        halves = " in halves" if self.halves else ""
        rows = ", rows as one run" if self.dense else ""
        return f"fractals, {self.strips} x {self.columns} a piece{halves}{rows}"


def fractal_move(
    source: int, matrix: Tensor, back: bool, machine: Machine, cores: int, algorithm: str
) -> FractalMove | None:
    """How matrices are moved; None of 8-bit elements with padding, which the vector unit cannot
    fill, and of matrices without elements.

    Args:
        matrix: shape and element type.
    """
    *lead, m, n = matrix.shape
    *_, c = fractal_shape(matrix.shape, matrix.element)
    batch, itemsize = math.prod(lead), matrix.bytes_each
    if not matrix.count or (itemsize == 1 and (m % SIDE or n % c)):
        return None
    way = FractalMove(source, back, batch, m, n, c, itemsize)
    found = [_in_pieces(way, machine, cores, algorithm, 1)]
    if algorithm == IMPROVED:
        found += [_in_pieces(way, machine, cores, algorithm, SLOTS), _dense(way, machine, cores)]
    ways = [w for w in found if w is not None]
    return min(ways, key=lambda w: w.time(ceil_div(w.units, cores)))


def _in_pieces(
    way: FractalMove, machine: Machine, cores: int, algorithm: str, slots: int
) -> FractalMove | None:
    """The move by pieces, of which a core has the buffers of so many at a time; None where one core
    does one, or they are none that could take turns."""
    strips, columns = _piece(way, machine, cores, algorithm, slots)
    size = strips * columns * SIDE * way.c * way.itemsize
    way = replace(way, strips=strips, columns=columns, slots=slots)
    alone = way.units <= cores
    if slots > 1 and (alone or way.whole_strips):
        return None
    halves = algorithm == IMPROVED and alone and size >= SPLIT_BYTES and way.n % way.c == 0
    ways = [_weighed(replace(way, halves=each), machine, cores) for each in {halves, False}]
    return min(ways, key=lambda w: w.cycles)


def _dense(way: FractalMove, machine: Machine, cores: int) -> FractalMove | None:
    """The move of ragged rows by runs; None of others, and where no strip of them fits UB."""
    if not way.ragged or way.itemsize not in (2, 4):
        return None
    all_strips = ceil_div(way.m, SIDE)
    strips = even_cut(all_strips, ceil_div(all_strips * way.batch, cores))
    way = replace(way, dense=True, columns=ceil_div(way.n, way.c), strips=strips)
    while way.dense_bytes > machine.buffer("UB").bytes:
        if way.strips == 1:
            return None
        way = replace(way, strips=ceil_div(way.strips, 2))
    costs = TransferCosts(machine, min(way.units, cores))
    run = way.strips * SIDE * way.n * way.itemsize
    steps = way.rows.packed() if way.back else way.rows.parted()
    estimate = steps.estimate(machine)
    vector = estimate.cycles + estimate.links * machine.sync.barrier_cycles
    read, write = costs.read(1, run), _in_columns(way, costs.write)
    if way.back:
        read, write = _in_columns(way, costs.read), costs.write(1, run)
    slots = SLOTS if SLOTS * way.dense_bytes <= machine.buffer("UB").bytes else 1
    further = turn_cycles(machine, vector, read, write, slots)
    cycles = costs.starts + read + vector + write
    return replace(way, slots=slots, cycles=cycles, further=further)


def _in_columns(way: FractalMove, moved: Callable[..., float]) -> float:
    """Cycles that the fractals of a piece take from or to GM, a run each column."""
    fractal = SIDE * way.c * way.itemsize
    return moved(way.columns, way.strips * fractal, pitch=fractal)


def _piece(
    way: FractalMove, machine: Machine, cores: int, algorithm: str, slots: int
) -> tuple[int, int]:
    """Strips and fractal columns of a piece: what fits UB and one instruction, shared evenly.

    16-bit pieces need two buffers and one gather of repeat p * w; others one buffer and a column
    of zeros; each of them for every slot. Blocks without work make the pieces smaller: first in
    strips, then in columns, unless a ragged row has to be written from left to right by one block.
    """
    all_strips, all_columns = ceil_div(way.m, SIDE), ceil_div(way.n, way.c)
    fractals = machine.buffer("UB").bytes // (slots * SIDE * way.c * way.itemsize)
    most = min(machine.vector.max_repeat, fractals // 2) if way.transposes else fractals
    if way.rearranges:
        # A block more for each fractal at most.
        most = fractals * (SIDE * way.c) // (2 * SIDE * way.c + way.pad)
    spare = 0 if way.transposes else 1
    columns = even_cut(all_columns, most - spare)
    strips = min(all_strips, most // (columns + spare))
    if algorithm == NAIVE:
        strips = 1
    pieces = way.batch * ceil_div(all_columns, columns)
    strips = even_cut(all_strips, min(strips, ceil_div(all_strips * pieces, cores)))
    pieces = way.batch * ceil_div(all_strips, strips)
    if pieces < cores and way.n % way.c == 0:
        columns = min(columns, ceil_div(all_columns * pieces, cores))
    return strips, columns


def _weighed(way: FractalMove, machine: Machine, cores: int) -> FractalMove:
    """The move with the estimated cycles of a piece of work."""
    costs = TransferCosts(machine, min(way.units, cores))
    parts = 1 + (way.halves and way.columns > 1)
    rows, width = way.strips * SIDE, way.columns * way.c * way.itemsize / parts
    pitch = math.gcd(way.n * way.itemsize, int(width))
    if way.columns * way.c >= way.n and parts == 1 and not way.ragged:
        # Whole rows, which follow each other.
        rows, width = 1, rows * way.n * way.itemsize
    read, write = parts * costs.read(rows, width, pitch=pitch), _in_columns(way, costs.write)
    if way.back:
        read, write = _in_columns(way, costs.read), parts * costs.write(rows, width, pitch)
    squares, vector = way.strips * way.columns, 0.0
    if way.transposes:
        issues = ceil_div(squares, MAX_REPEAT) + min(way.strips, way.columns)
        vector = prices.vector(machine, "scatter_vnchwconv", "b16", 2 * squares, issues)
        vector += machine.sync.barrier_cycles
    if way.rearranges:
        size = squares * SIDE * way.c * way.itemsize
        issues = ceil_div(size, MAX_REPEAT * REPEAT_BYTES)
        vector = prices.vector(machine, "vmuls", "f16", size / REPEAT_BYTES, issues)
        vector += machine.sync.barrier_cycles
    if way.ragged:  # rows go one by one; each is stored when the one before it is
        each = prices.writing(machine).start_cycles + machine.sync.barrier_cycles
        times = min(way.strips * SIDE, way.m)
        read += 0 if way.back else times * prices.reading(machine).issue_cycles
        write += times * each if way.back else 0
    if way.whole_strips:
        cycles = ceil_div(way.n, way.columns * way.c) * (costs.starts + read + vector + write)
        return replace(way, cycles=cycles, further=cycles)
    work = read + vector + write
    cycles = costs.starts + work / parts + (parts - 1) * max(read, vector, write) / parts
    further = turn_cycles(machine, vector, read, write, way.slots)
    if not way.rearranges:  # what is stored lies where it was loaded
        further = max(further, (costs.starts + work) / way.slots)
    return replace(way, cycles=cycles, further=further)
