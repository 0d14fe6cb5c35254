"""Cycles of the ways into L1 and out of L0C on cores that have a cube and no vector unit."""

from __future__ import annotations

import math

from davinci.machine import Machine, prices
from davinci.schedule.products.product import Product
from davinci.units import BLOCK_BYTES, ceil_div
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
    operand, (rows, columns) = product.operand(name), size
    whole, pitch = product.stored_rows(name), product.stored_columns(name) * operand.itemsize
    there = min(rows * SIDE, whole)
    ragged = there * columns if pitch % BLOCK_BYTES else 0
    moved = there * columns * SIDE * operand.itemsize
    cleared = prices.reading(machine, to_l1=True).issue_cycles if whole % SIDE else 0
    return prices.nd2nz(machine, there, moved, ragged, missing=missing) + cleared


def leaves(product: Product, machine: Machine, columns: int, rows: int) -> float:
    """FIX, a part of C of so many fractals from L0C to GM, and zeros that pad the last ones."""
    height, width = min(rows * SIDE, product.m), min(columns * SIDE, product.n)
    run, pitch = width * product.c.itemsize, product.n * product.c.itemsize
    if not product.c.nz and run < pitch:
        # Runs begin at multiples of their own size: so many bytes of lines on average.
        line = machine.gm.line_bytes
        run += line - math.gcd(run, pitch, line)
    busy, _ = prices.fixpipe(machine, height * width, height * run)
    if product.cleared:
        rest = -product.m % SIDE
        zeros, _ = prices.fixpipe(machine, rest * width, rest * run)
        busy += zeros / ceil_div(product.fractals.m, rows)
    words = product.end.words
    if words is not None and not words.together:
        busy += prices.l1_to_fb(machine, words.held_bytes(columns))
    return busy
