"""Rows of Q, K, V and O that are no whole blocks: they come and leave as the runs that they are in
GM, and are parted and packed in UB (`products.dense_rows`)."""

from __future__ import annotations

from collections.abc import Mapping

from davinci.schedule.attention.attention import Attention
from davinci.schedule.products.dense_rows import (
    WIDE,
    DenseRows,
    fractal_rows,
    parting_of,
    scratch_bytes,
)
from davinci.schedule.products.footprint import staging_bytes
from davinci.schedule.products.product import Pieces, ProductOperand
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


def is_dense(attention: Attention, name: str) -> bool:
    """Whether whole rows of Q, K or V, `name`, come as runs."""
    operand: ProductOperand = getattr(attention, name)
    width = attention.columns if name == "v" else attention.depth
    whole = operand.k_rows == (name == "v")
    return not operand.nz and whole and width * operand.itemsize % BLOCK_BYTES != 0


def leaves_dense(attention: Attention) -> bool:
    """Whether whole rows of O leave as runs."""
    o = attention.o
    return not o.nz and attention.columns * o.itemsize % BLOCK_BYTES != 0


def pitch_of(attention: Attention) -> int:
    """Elements from row to row of O in UB: an odd number of blocks."""
    lanes = BLOCK_BYTES // attention.o.itemsize
    return (attention.fractals.columns * SIDE // lanes | 1) * lanes


def packing_of(attention: Attention, rows: int) -> DenseRows:
    """How fractals of rows of O, which are apart in UB, become a run."""
    item = attention.o.itemsize
    pitch, beside = (n * item // BLOCK_BYTES for n in (pitch_of(attention), SIDE))
    columns = attention.fractals.columns
    return fractal_rows(rows * SIDE, columns, attention.columns, item, pitch, beside)


def run_bytes(attention: Attention, rows: int) -> int:
    """Bytes of a run of O that has so many rows of fractals."""
    return rows * SIDE * attention.columns * attention.o.itemsize


def parting(attention: Attention, name: str, pieces: Pieces) -> DenseRows:
    """How the rows of a transfer of Q, K or V are parted."""
    columns = pieces.other if getattr(attention, name).k_rows else pieces.k
    width = attention.columns if name == "v" else attention.depth
    return parting_of(pieces.rows, columns, width, getattr(attention, name).itemsize)


def dense_buffers(attention: Attention, pieces: Mapping[str, Pieces], rows: int) -> dict[str, int]:
    """Bytes of the buffers in UB in which rows are parted and packed, all in turn.

    Args:
        rows: fractals of O that leave at once.
    """
    dense = [name for name in pieces if is_dense(attention, name)]
    ways = [parting(attention, name, pieces[name]) for name in dense]
    if leaves_dense(attention):
        ways.append(packing_of(attention, rows))
    found = scratch_bytes(ways)
    wide = [name for name in dense if getattr(attention, name).itemsize > 2]
    if wide:
        found[WIDE] = max(staging_bytes(getattr(attention, n), pieces[n])[0] for n in wide)
    return found
