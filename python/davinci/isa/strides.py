"""Dimensions that several operands share, and the fewest that walk all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SharedDim:
    """A dimension that several operands share: its size and each operand's stride (elements)."""

    size: int
    strides: tuple[int, ...]


def merge_dims(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[SharedDim]:
    """The fewest dimensions, outermost first, that walk all operands in the same order.

    Dimensions of size 1 vanish; neighbours merge where in every operand the outer one's stride is
    the inner one's size times its stride. Empty for a single element.

    >>> [d.size for d in merge_dims([4, 1, 8], [[8, 8, 1], [8, 8, 1]])]
    [32]
    """
    dims: list[SharedDim] = []
    for i, size in enumerate(shape):
        if size == 1:
            continue
        dim = SharedDim(size, tuple(s[i] for s in strides))
        if dims and all(
            outer == size * inner
            for outer, inner in zip(dims[-1].strides, dim.strides, strict=True)
        ):
            dims[-1] = SharedDim(dims[-1].size * size, dim.strides)
        else:
            dims.append(dim)
    return dims


def split_run(dims: Sequence[SharedDim]) -> tuple[list[SharedDim], int]:
    """Splits merged dimensions into the outer ones and the innermost contiguous run (elements)."""
    if dims and all(stride == 1 for stride in dims[-1].strides):
        return list(dims[:-1]), dims[-1].size
    return list(dims), 1
