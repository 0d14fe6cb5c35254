"""Pieces of an array in GM as copies between strided places, and what such copies take.

    dst[place + i0 * t0 + i1 * t1 ..] = src[offset + i0 * s0 + i1 * s1 ..]

The innermost contiguous *run* goes through UB in whole blocks of 32 bytes; where it is not a whole
number of blocks, its last block is moved once more, ending where the run ends, so nothing beside
the run is read or written:

    run  |#### #### ####|##       ->      |#### #### ####|
                                                    |## ##|

A piece of one number is written only: its buffer in UB is filled once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.isa.strides import SharedDim, split_run
from davinci.machine import Machine, prices
from davinci.schedule.graph import Scalar
from davinci.schedule.moves.index_maps import ValueBox
from davinci.schedule.moves.portions import LEAST_BYTES, SLOTS, AlikePieces, Portions, cut
from davinci.units import BLOCK_BYTES, ceil_div

MOVABLE = frozenset({"f16", "f32", "i1", "i8", "ui8", "i16", "i32", "i64"})
"""Element types that copies on the device take; others go through the scalar unit."""


TURNS = (1, 2, 4, 8)
"""Tiles of a core that are tried."""

FILLED_BYTES, FILLED_PART = 32768, 6
"""Most bytes of a buffer of one number, as filling a larger one would take longer than it saves;
and the part of UB that it is at most, as others stay beside it."""


@dataclass(frozen=True)
class Transfer:
    """A piece of a flat array.

    Attributes:
        source: number of the array that it comes from, or what it is everywhere.
        offset: of the first element there.
        place: of the first element in the result.
        dims: sizes, and strides in source and result, outermost first.
        itemsize: bytes of an element.
    """

    source: int | Scalar
    offset: int
    place: int
    dims: tuple[SharedDim, ...]
    itemsize: int

    @staticmethod
    def of(piece: ValueBox, itemsize: int) -> Transfer:
        """A piece of a value with one dimension."""
        (extent,) = piece.dims
        dims = (SharedDim(w.count, (w.stride, w.step)) for w in extent.walks)
        return Transfer(piece.source, piece.offset, extent.start, tuple(dims), itemsize)

    @property
    def array(self) -> int:
        """The number of the array that it comes from."""
        assert isinstance(self.source, int), "a number"
        return self.source

    @property
    def filled(self) -> bool:
        """Whether all elements are one number, known or in GM."""
        if isinstance(self.source, Scalar):
            return True
        return bool(self.dims) and not any(d.strides[0] for d in self.dims)

    @property
    def outer(self) -> tuple[SharedDim, ...]:
        """The dimensions outside of the run."""
        return self.dims[:-1] if self.run > 1 else self.dims

    @property
    def run(self) -> int:
        """Elements that lie together on both sides; of a number, in the result."""
        if self.filled:
            inner = self.dims[-1] if self.dims else SharedDim(1, (0, 1))
            return inner.size if inner.strides[1] == 1 else 1
        return split_run(self.dims)[1]

    @property
    def count(self) -> int:
        return math.prod(d.size for d in self.dims)

    @property
    def end(self) -> int:
        """The place in the result behind the transfer's last element."""
        return self.place + 1 + sum((d.size - 1) * d.strides[1] for d in self.dims)

    def from_index(self, first: int) -> Transfer:
        """The transfer from an index of its outermost dimension on."""
        dim, *inner = self.dims
        offset, place = (
            begin + first * stride
            for begin, stride in zip((self.offset, self.place), dim.strides, strict=True)
        )
        dims = (replace(dim, size=dim.size - first), *inner)
        return replace(self, offset=offset, place=place, dims=dims)

    def inside(self, dims: int) -> Transfer:
        """The transfer that is left for one iteration of so many outer dimensions."""
        return Transfer(self.source, self.offset, self.place, self.dims[dims:], self.itemsize)


def blocks_of_run(run: int, block: int) -> list[tuple[int, int]]:
    """(start, size) of the whole blocks of a run and, where it is ragged, of its last block."""
    whole_blocks = run // block * block
    return [(0, whole_blocks)] + ([(run - block, block)] if run > whole_blocks else [])


def tile_of(sizes: Sequence[int], wanted: int) -> tuple[int, int]:
    """The dimension to cut and how much of it a tile takes, so that it has at most `wanted` rows.

    >>> tile_of([4, 12, 128], 300)
    (1, 2)
    """
    rows = 1
    for level in reversed(range(len(sizes))):
        if rows * sizes[level] > wanted or level == 0:
            tiles = ceil_div(sizes[level], max(1, wanted // rows))
            return level, ceil_div(sizes[level], tiles)
        rows *= sizes[level]
    raise ValueError("no dimensions")


@dataclass(frozen=True)
class Runs(AlikePieces):
    """A transfer by runs of a block or more.

    Attributes:
        walked: outer dimensions whose index is given by a loop around it.
        portions: of a run; None if tiles hold several runs.
        level, chunk: the dimension that tiles are cut along, and how much of it each has.
        slots: buffers of a tile, on which the pieces of work of a core take turns.
        cycles: of a piece of work by itself.
        further: of each that the same core does behind it.
    """

    transfer: Transfer
    block: int
    walked: int = 0
    portions: Portions | None = None
    level: int = 0
    chunk: int = 1
    slots: int = 1
    cycles: float = 0.0
    further: float = 0.0

    @property
    def inner(self) -> Transfer:
        return self.transfer.inside(self.walked)

    @property
    def sizes(self) -> list[int]:
        """Sizes of the dimensions outside of a run that it walks or has in tiles."""
        return [d.size for d in self.inner.outer]

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """Start and size of what of each run is moved."""
        return blocks_of_run(self.transfer.run, self.block)

    @property
    def units(self) -> int:
        """Pieces of work."""
        if self.portions is not None:
            return self.portions.units * math.prod(self.sizes)
        tiles = ceil_div(self.sizes[self.level], self.chunk)
        return math.prod(self.sizes[: self.level]) * tiles

    def __str__(self) -> str:
        what = "fill" if self.transfer.filled else "runs"
        if self.portions is not None:
            return f"{what} of {self.transfer.run} in portions of {self.portions.largest}"
        rows = self.chunk * math.prod(self.sizes[self.level + 1 :])
        return f"{what} of {self.transfer.run}, {rows} a tile"


@dataclass(frozen=True)
class Small(AlikePieces):
    """A whole array of less than a block, with what lies behind it in its block."""

    transfer: Transfer
    cycles: float
    further: float
    units: int = 1

    def __str__(self) -> str:
        return f"all {self.transfer.count}"


@dataclass(frozen=True)
class Scalars(AlikePieces):
    """A transfer element by element on the scalar unit; its outermost dimension is shared."""

    transfer: Transfer
    walked: int
    cycles: float
    further: float

    @property
    def units(self) -> int:
        dims = self.transfer.dims[self.walked :]
        return dims[0].size if dims else 1

    def __str__(self) -> str:
        return f"{self.transfer.count} by the scalar unit"


def together(tile: Sequence[SharedDim], row: int, side: int) -> int:
    """Elements of a tile of rows that lie together, in the source or in the result."""
    length = row
    for dim in reversed(tile):
        if dim.size > 1 and dim.strides[side] != length:
            break
        length *= dim.size
    return length


class TransferCosts:
    """Cycles of pieces of work of one core, while `cores` share the memory."""

    def __init__(self, machine: Machine, cores: int) -> None:
        self.machine, self.cores = machine, max(1, cores)
        self.starts = prices.ends(machine)

    def read(
        self, rows: int, row_bytes: float, shared: bool = False, pitch: int = BLOCK_BYTES
    ) -> float:
        """Rows that lie apart in GM, to UB.

        Args:
            pitch: bytes, of which the places where rows begin are multiples.
            shared: whether what lies beside a row in its line is read too, by this core or others;
                then the L2 has most of the lines.
        """
        missed = rows * prices.reading(self.machine).row_miss_cycles if rows > 1 else 0
        if shared:
            missed *= min(1, row_bytes / self.machine.gm.line_bytes)
        return self._moved(rows, row_bytes, pitch, load=True) + missed

    def write(self, rows: int, row_bytes: float, pitch: int = BLOCK_BYTES) -> float:
        """Rows that lie apart in GM, from UB; their places as those of `read`."""
        return self._moved(rows, row_bytes, pitch, load=False)

    def _moved(self, rows: int, row_bytes: float, pitch: int, load: bool) -> float:
        """Rows touch whole lines, on average over where they begin; one alone streams."""
        touched = 0.0
        if rows != 1:
            touched = rows * prices.touched_bytes(self.machine, row_bytes, pitch)
        size = rows * row_bytes
        return prices.moving(self.machine, self.cores, load, size, touched_bytes=touched)

    def copied(
        self, transfer: Transfer, tile: Sequence[SharedDim], widths: Sequence[int], slots: int
    ) -> tuple[float, float]:
        """Cycles of a tile of rows that comes into UB and leaves again: by itself, and behind
        another one of the same core. Where all of it is one number, nothing comes in.

        Args:
            tile: the dimensions outside of a row.
            widths: elements of the pieces of a row, which are copied one after the other.
            slots: tiles that have buffers at a time.
        """
        read, write = (self._copies(transfer, tile, widths, load) for load in (True, False))
        if transfer.filled:
            return write + prices.writing(self.machine).start_cycles, write
        alone = self.starts + read + write
        return alone, max(read, write, alone / slots)

    def _copies(
        self, transfer: Transfer, tile: Sequence[SharedDim], widths: Sequence[int], load: bool
    ) -> float:
        """One way of a tile as `copied` has it, into UB or out of it."""
        rows, size = math.prod(d.size for d in tile), transfer.itemsize
        row = transfer.run if tile else sum(widths)
        run = together(tile, row, 0 if load else 1)
        port = prices.reading(self.machine) if load else prices.writing(self.machine)
        cycles: float = math.prod(d.size for d in tile[:-1]) * len(widths) * port.issue_cycles
        beside = any(d.size > 1 and d.strides[0] == transfer.run for d in transfer.dims[:-1])
        for number, width in enumerate(widths):
            bursts, length = (rows, width) if len(widths) > 1 else (rows * row // run, run)
            if load and not number:
                cycles += self.read(bursts, length * size, shared=beside or run > row)
            else:  # the lines of what is left of a row are there by then
                cycles += self._moved(bursts, length * size, BLOCK_BYTES, load)
        return cycles

    def scalars(self, elements: int) -> float:
        """Elements that are loaded and stored one by one."""
        return prices.scalar_accesses(self.machine, 2 * elements, "GM")


def runs_of(
    transfer: Transfer,
    machine: Machine,
    cores: int,
    walked: int = 0,
    share: int = 1,
    part: float = 1.0,
) -> Runs | None:
    """A transfer by runs; None if they are too short.

    Args:
        walked: outer dimensions that a loop around it walks.
        share: transfers that UB is divided among.
        part: of the cores, that is to move it, while others move what else there is.
    """
    block = machine.vector.block_bytes // transfer.itemsize
    if transfer.run < block:
        return None
    taken = max(1, round(cores * part))
    ways = [_runs(transfer, machine, cores, taken, walked, share)]
    if share == 1 and part == 1 and not transfer.filled:
        ways += [_runs(transfer, machine, cores, cores * n, walked, 1, SLOTS) for n in TURNS]
    return min(ways, key=lambda way: way.time(ceil_div(way.units, taken)))


def _runs(
    transfer: Transfer,
    machine: Machine,
    cores: int,
    tiles: int,
    walked: int,
    share: int,
    slots: int = 1,
) -> Runs:
    """A transfer by runs, in so many tiles at least, unless they become too small, while `cores`
    share the memory."""
    itemsize, run = transfer.itemsize, transfer.run
    block = machine.vector.block_bytes // itemsize
    ub_bytes = machine.buffers.UB.bytes
    room = ub_bytes // share // itemsize // slots
    if transfer.filled:
        room = min(room, min(FILLED_BYTES, ub_bytes // FILLED_PART) // itemsize)
    least, sizes = LEAST_BYTES // itemsize, [d.size for d in transfer.inside(walked).outer]
    pieces = blocks_of_run(run, block)
    row = sum(count for _, count in pieces)
    if not sizes or row > room:
        portions = cut(run, block, block, room - block, least, tiles)
        tile: tuple[SharedDim, ...] = ()
        widths = [portions.largest, *([block] if portions.tail % block else [])]
        way = Runs(transfer, block, walked, portions, slots=slots)
    else:
        part = ceil_div(math.prod(sizes), tiles)
        level, chunk = tile_of(sizes, max(1, min(room // row, max(part, least // row))))
        outer = transfer.inside(walked).outer
        tile = (SharedDim(chunk, outer[level].strides), *outer[level + 1 :])
        widths = [count for _, count in pieces]
        way = Runs(transfer, block, walked, None, level, chunk, slots)
    # Cores beyond these tiles move other pieces meanwhile.
    costs = TransferCosts(machine, min(way.units * max(1, cores // tiles), cores))
    cycles, further = costs.copied(transfer, tile, widths, slots)
    return replace(way, cycles=cycles, further=further)


def by_scalars(transfer: Transfer, machine: Machine, walked: int = 0) -> Scalars:
    """The way in which the scalar unit moves the elements of a transfer one by one.

    Args:
        walked: leading dimensions over which a loop outside goes.
    """
    dims = transfer.dims[walked:]
    each = math.prod(d.size for d in dims[1:])
    cycles = TransferCosts(machine, 1).scalars(each)
    return Scalars(transfer, walked, cycles, cycles)


def is_small(transfer: Transfer, source: int, total: int, machine: Machine) -> bool:
    """Whether it is all of two arrays of less than a block, or fills all of one.

    Args:
        source, total: elements of both arrays.
    """
    if transfer.run != total or not (transfer.filled or transfer.run == source):
        return False
    return transfer.run * transfer.itemsize < machine.vector.block_bytes
