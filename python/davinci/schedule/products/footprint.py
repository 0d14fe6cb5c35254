"""Bytes that a product's schedule takes of each memory of a core."""

from __future__ import annotations

from dataclasses import dataclass, replace

from davinci.machine import Machine
from davinci.schedule.products.dense_rows import (
    BEGUN_BYTES,
    TURNED,
    WIDE,
    DenseRows,
    parting_of,
    scratch_bytes,
)
from davinci.schedule.products.product import (
    Pieces,
    Product,
    ProductOperand,
    ProductSchedule,
    Tile,
)
from davinci.schedule.products.row_costs import held_bytes
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, SUM_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class Footprint:
    """Bytes of each memory."""

    L1: int
    L0A: int
    L0B: int
    L0C: int
    UB: int
    BT: int = 0
    FB: int = 0

    def excess(self, machine: Machine) -> str:
        """The first memory that is too small for this, "" if none."""
        for name in ("L0A", "L0B", "L0C", "L1", "UB", "BT", "FB"):
            size = getattr(self, name)
            if size and size > machine.buffer(name).bytes:
                return name
        return ""


def staging_bytes(operand: ProductOperand, pieces: Pieces) -> tuple[int, int]:
    """Bytes in UB of the rows of an operand that are loaded at once, and of the fractals that are
    made of them there; both 0 of an operand that goes to L1 without passing UB."""
    if operand.nz or operand.direct:
        return 0, 0
    columns = pieces.other if operand.k_rows else pieces.k
    rows = pieces.rows * SIDE
    return rows * columns * SIDE * operand.itemsize, columns * (rows + 1) * BLOCK_BYTES


def parting(product: Product, name: str, pieces: Pieces, rows: int) -> DenseRows:
    """The steps in UB that turn `rows` fractals of rows of A or B, which came as one run of memory,
    into fractals."""
    operand = product.operand(name)
    columns = pieces.other if operand.k_rows else pieces.k
    return parting_of(rows, columns, product.stored_columns(name), operand.itemsize)


def parting_buffers(product: Product, sides: tuple[Pieces, Pieces]) -> dict[str, int]:
    """Bytes of the buffers in UB in which dense rows are parted and ends of rows moved, those of
    both operands in turn."""
    dense = [(n, p) for n, p in zip("ab", sides, strict=True) if p.dense]
    ended = [n for n, p in zip("ab", sides, strict=True) if not p.dense and product.ends(n)]
    found = scratch_bytes([parting(product, name, pieces, pieces.rows) for name, pieces in dense])
    wide = [(product.operand(name), p) for name, p in dense if product.operand(name).itemsize > 2]
    if wide:
        found[WIDE] = max(staging_bytes(operand, pieces)[0] for operand, pieces in wide)
    if ended:
        found[TURNED] = max(found.get(TURNED, 0), BEGUN_BYTES)
    return found


def arriving_bytes(product: Product, schedule: ProductSchedule) -> int:
    """Bytes of UB for rows of A and B that become fractals there."""
    sides = [staging_bytes(product.a, schedule.a), staging_bytes(product.b, schedule.b)]
    inbox, outbox = (max(size) for size in zip(*sides, strict=True))
    parted = sum(parting_buffers(product, (schedule.a, schedule.b)).values())
    found: int = inbox * schedule.inbox + outbox * schedule.outbox + parted
    return found


def room_for_rows(product: Product, schedule: ProductSchedule) -> int:
    """Bytes of UB that a schedule leaves for pieces of rows of C."""
    work = product.work
    assert work is not None, "a product whose rows are not computed on"
    staged = work.stage_bytes(schedule.part[1] * SIDE)
    return work.machine.buffer("UB").bytes - arriving_bytes(product, schedule) - staged


def leaving_bytes(product: Product, schedule: ProductSchedule) -> int:
    """Bytes of UB for parts of C, and for what they are combined with."""
    work, rows = product.work, schedule.part[1]
    if product.direct:
        return 0
    if work is not None:
        held = held_bytes(work, rows * SIDE, room_for_rows(product, schedule))
        return work.stage_bytes(rows * SIDE) + held
    end = product.end_of(schedule)
    parts = end.part_bytes(*schedule.part, schedule.loads, schedule.leaving)
    return parts + end.tile_bytes(schedule.tile.n, rows)


def rows_at_once(product: Product, schedule: ProductSchedule, machine: Machine) -> int:
    """Rows of fractals of a tile that leave at once to be computed on: as many as UB has room
    for."""
    rows, room = schedule.tile.m, machine.buffer("UB").bytes
    while rows > 1:
        part = replace(schedule, part=(schedule.tile.n, rows))
        if arriving_bytes(product, part) + leaving_bytes(product, part) <= room:
            break
        rows = ceil_div(rows, 2)
    return rows


def footprint(product: Product, schedule: ProductSchedule) -> Footprint:
    """Bytes that the buffers of a schedule take."""
    tile, a, b, end = schedule.tile, schedule.a, schedule.b, product.end_of(schedule)
    l1, l0a, l0b = (
        end.taken(memory, tile.m, tile.n) + product.cleared for memory in ("L1", "L0A", "L0B")
    )
    return Footprint(
        (a.fractals * a.slots + b.fractals * b.slots + l1) * FRACTAL_BYTES,
        (schedule.l0a * tile.k * tile.m + l0a) * FRACTAL_BYTES,
        (schedule.l0b * tile.k * tile.n + l0b) * FRACTAL_BYTES,
        (schedule.l0c * tile.m + product.cleared) * tile.n * SUM_BYTES,
        arriving_bytes(product, schedule) + leaving_bytes(product, schedule),
        end.row_bytes(tile.n),
        0 if end.words is None else end.words.held_bytes(tile.n),
    )


def dense_rows(product: Product, tile: Tile, room: int, buffers: tuple[int, int]) -> int:
    """Rows of fractals of a part of C that leaves as dense rows: halves of those of a tile until UB
    holds it.

    Args:
        room: bytes of UB for it.
        buffers: of what it is combined with, and of what leaves.
    """
    end, rows = product.end.dense(product.n), tile.m
    while rows > 1:
        size = end.part_bytes(tile.n, rows, *buffers) + end.tile_bytes(tile.n, rows)
        if size <= room:
            break
        rows = ceil_div(rows, 2)
    return rows
