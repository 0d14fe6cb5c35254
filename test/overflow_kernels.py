# ruff: noqa: N803 -- names are those of kernels of Triton, constants in capitals
"""Kernels whose buffers do not fit, written anew from what people reported of them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_blocks(x, y, out, n, BLOCK: tl.constexpr):
    """triton-ascend 302: a block of 48,000 numbers, two of which need 3,072,000 bits."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    tl.store(out + at, a + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def reversed_rows(x, y, out, BLOCK: tl.constexpr):
    """triton-ascend 1638: a column put in, the rows reversed between two functions."""
    at = tl.arange(0, BLOCK)
    where = at[:, None] * BLOCK + at[None, :]
    a = tl.load(x + where)
    b = tl.load(y + where)
    a = tl.exp(tl.where(at[None, :] == 3, b, a))
    tl.store(out + where, tl.exp(tl.flip(a, 1)))


@triton.jit
def chosen_sums(x, y, out, BLOCK: tl.constexpr):
    """triton-ascend 1640: a tile as one row, as one column, its sum, chosen where y is positive."""
    at = tl.arange(0, BLOCK)
    where = at[:, None] * BLOCK + at[None, :]
    a = tl.load(x + where)
    b = tl.load(y + where)
    column = tl.trans(tl.reshape(tl.ravel(a), (1, BLOCK * BLOCK)))
    total = tl.sum(tl.sum(tl.sqrt(tl.exp2(column)), 0), 0)
    full = tl.zeros((BLOCK, BLOCK), tl.float32) + total
    tl.store(out + at, tl.sum(tl.where(b > 0, full, b), 1))


@triton.jit
def log_of_sums(x, out, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    """triton-ascend 2246: a long row in bf16, block by block in a loop that is unrolled."""
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for first in tl.static_range(0, LENGTH, BLOCK):
        at = first + tl.arange(0, BLOCK)
        a = tl.load(x + row * LENGTH + at, mask=at < LENGTH, other=-float("inf"))
        a = a.to(tl.float32)
        new = tl.maximum(top, tl.max(a, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(a - new), 0)
        top = new
    tl.store(out + row, top + tl.log(total))
