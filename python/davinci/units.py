"""What the instruction set counts in, counting in whole units, and in rows.

Fields, masks and fractal shapes encode these numbers, so they are the same on every machine; what
differs from machine to machine is in its file.

Sources: docs/hardware.md a1 (block, cube), c (repeat, mask, fractals).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCK_BYTES = 32
"""A block: unit of copies and of the strides of vector instructions."""

REPEAT_BLOCKS = 8
"""Blocks of one operand that a vector instruction handles in a repeat."""

REPEAT_BYTES = REPEAT_BLOCKS * BLOCK_BYTES
"""One repeat of a vector instruction, its mask all set."""

BYTE_BITS = 8

MAX_REPEAT = 255
"""What the field of the repeat count holds."""

MAX_STRIDE = 255
"""What a field of a stride of vector instructions holds, in blocks: from block to block, or from
repeat to repeat."""

FRACTAL_SIDE = 16
"""Rows of a fractal; its columns for 16-bit elements and for results of the cube."""

FRACTAL_BYTES = FRACTAL_SIDE * BLOCK_BYTES
"""A fractal of the cube's operands: each of its rows is a block."""

SUM_BYTES = 2 * FRACTAL_BYTES
"""A fractal of sums in L0C, of 32 bits each."""


def ceil_div(value: float, unit: float) -> int:
    """How many units hold `value`: value / unit, rounded up."""
    return int(-(-value // unit))


def round_up(value: int, unit: int) -> int:
    """The smallest multiple of `unit` that is no less than `value`."""
    return ceil_div(value, unit) * unit


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension of a contiguous array in rows.

    >>> row_major([2, 3, 4])
    (12, 4, 1)
    """
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def even_cut(total: int, most: int) -> int:
    """The smallest size that cuts `total` into as few pieces as `most` does; at least 1.

    >>> even_cut(32, 10)
    8
    """
    return max(1, ceil_div(total, max(1, ceil_div(total, max(1, most)))))


def even_cuts(total: int, most: int) -> list[int]:
    """The different sizes ceil(total / i) up to `most`, largest first.

    >>> even_cuts(10, 8)
    [5, 4, 3, 2, 1]
    """
    sizes = {ceil_div(total, i) for i in range(1, total + 1)}
    return sorted((size for size in sizes if size <= most), reverse=True)
