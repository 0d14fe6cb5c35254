"""Cycles of the ways into L1 and out of L0C on cores that have a cube and no vector unit."""

from __future__ import annotations

from davinci.machine import Machine
from davinci.schedule.products.product import Product
from davinci.units import BLOCK_BYTES, round_up
from davinci.units import FRACTAL_SIDE as SIDE


def comes(
    product: Product, machine: Machine, name: str, size: tuple[int, int], missing: float
) -> float:
    """MTE2, rows of A or B that become fractals on their way to L1, and what clears the rest of the
    last ones.

    Args:
        size: rows and columns, in fractals.
        missing: part of the rows that the L2 has not.
    """
    operand, unit, (rows, columns) = product.operand(name), machine.mte2, size
    fixed, each, rate = (
        unit.nd2nz_fixed_cycles,
        unit.nd2nz_row_cycles,
        unit.nd2nz_bytes_per_cycle,
    )
    late, block = unit.nd2nz_row_miss_cycles, unit.nd2nz_block_cycles
    assert fixed is not None and each is not None and rate is not None, "no path of rows to L1"
    assert late is not None and block is not None, "no path of rows to L1"
    whole, pitch = product.stored_rows(name), product.stored_columns(name) * operand.itemsize
    there = min(rows * SIDE, whole)
    moved = there * columns * SIDE * operand.itemsize / rate
    if pitch % BLOCK_BYTES:
        moved = there * columns * block
    cleared = unit.issue_cycles if whole % SIDE else 0
    return fixed + there * (each + late * missing) + moved + cleared


def leaves(product: Product, machine: Machine, columns: int, rows: int) -> float:
    """FIX, a part of C of so many fractals from L0C to GM."""
    unit = machine.fixpipe
    assert unit is not None, "no path from L0C to GM"
    height, width = min(rows * SIDE, product.m), min(columns * SIDE, product.n)
    run, pitch = width * product.c.itemsize, product.n * product.c.itemsize
    if not product.c.nz and run < pitch:
        run = round_up(run, machine.gm.line_bytes)
    elements = height * width / unit.elements_per_cycle
    return unit.fixed_cycles + max(elements, height * run / unit.port_bytes_per_cycle)
