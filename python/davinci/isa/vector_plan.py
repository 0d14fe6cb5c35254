"""Maps the dimensions of an elementwise operation onto the axes of vector instructions.

One instruction walks lanes (a contiguous run, or blocks at a stride), and repeats at a stride.
What is left becomes a loop of instructions. Every assignment of dimensions to axes is tried; the
one that takes least time wins: a fixed cost an instruction, and for each repeat a cycle, or as many
as the most loaded bank group has blocks of one operand.

Pure arithmetic: no IR is read or built here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from davinci.isa.strides import Dim, merge_dims, split_run
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import REPEAT_BLOCKS as BLOCKS

FULL_MASK = (1 << REPEAT_BYTES // 2) - 1
"""One bit for each 16-bit lane of a repeat; wider types use the lowest bits only."""


@dataclass(frozen=True)
class Limits:
    """What an instruction can do, and its time.

    Attributes:
        repeat: largest repeat count.
        blk_stride, rep_stride: largest strides (in blocks) of each operand.
        fixed_cycles: of an instruction besides its repeats.
        bank_groups: of UB; 0 leaves them out.
        cycles: of a repeat.
    """

    repeat: int
    blk_stride: tuple[int, ...]
    rep_stride: tuple[int, ...]
    fixed_cycles: int
    bank_groups: int = 0
    cycles: int = 1


@dataclass(frozen=True)
class Issue:
    """One instruction: element offset of each operand, repeats, lane mask, strides in blocks."""

    offsets: tuple[int, ...]
    repeat: int
    mask: int
    blk_stride: tuple[int, ...]
    rep_stride: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """An instruction inside loops, outermost first; the loops' strides are in elements."""

    loops: tuple[Dim, ...]
    issue: Issue

    @property
    def count(self) -> int:
        """How many instructions it issues."""
        total = 1
        for loop in self.loops:
            total *= loop.size
        return total


@dataclass(frozen=True)
class Segment:
    """Lanes of a kind: where they start, their mask and strides, and the axes that remain."""

    offsets: tuple[int, ...]
    mask: int
    blk_stride: tuple[int, ...]
    axes: tuple[Dim, ...]


def plan_vector(
    shape: Sequence[int],
    strides: Sequence[Sequence[int]],
    itemsizes: Sequence[int],
    limits: Limits,
) -> list[Nest]:
    """The instructions for an elementwise operation.

    Args:
        shape: sizes common to all operands.
        strides: of each operand, in elements.
        itemsizes: bytes of an element of each operand.
        limits: of the instruction.
    """
    steps = tuple(tuple(operand) for operand in strides)
    return list(_planned(tuple(shape), steps, tuple(itemsizes), limits))


@lru_cache(maxsize=4096)
def _planned(
    shape: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
    itemsizes: tuple[int, ...],
    limits: Limits,
) -> tuple[Nest, ...]:
    if 0 in shape:
        return ()
    outer, run = split_run(merge_dims(shape, strides))
    best: list[Nest] = []
    best_cost = -1
    for segments in candidates(outer, run, itemsizes, limits):
        nests = [nest for s in segments for nest in choose_repeat(s, itemsizes, limits)]
        cost = cost_of(nests, itemsizes, limits)
        if best_cost < 0 or cost < best_cost:
            best, best_cost = nests, cost
    return tuple(best)


def cost_of(nests: Sequence[Nest], itemsizes: Sequence[int], limits: Limits) -> int:
    """Cycles of the instructions."""
    total = 0
    for nest in nests:
        each = max(limits.cycles, beats(nest.issue, itemsizes, limits))
        total += nest.count * (limits.fixed_cycles + nest.issue.repeat * each)
    return total


def beats(issue: Issue, itemsizes: Sequence[int], limits: Limits) -> int:
    """Cycles that a repeat's blocks of one operand need the most loaded bank group for.

    Masked lanes use their banks too. Whether two operands meet depends on their addresses.
    """
    if not limits.bank_groups:
        return 1
    most = 1
    for stride, size in zip(issue.blk_stride, itemsizes, strict=True):
        blocks = BLOCKS * size // max(itemsizes)
        groups = limits.bank_groups // math.gcd(stride, limits.bank_groups) if stride else blocks
        most = max(most, math.ceil(blocks / max(1, groups)))
    return most


def candidates(
    outer: list[Dim], run: int, itemsizes: Sequence[int], limits: Limits
) -> Iterator[list[Segment]]:
    """Ways to fill the lanes: with the contiguous run, or with blocks of any dimension."""
    block = BLOCK_BYTES // max(itemsizes)
    mixed = min(itemsizes) != max(itemsizes)
    yield run_segments(outer, run, itemsizes)
    if mixed or (run > block and run % block):
        return
    dims = outer
    if run > block:
        dims, run = [*outer, Dim(run // block, (block,) * len(itemsizes))], block
    for i, dim in enumerate(dims):
        blk_stride = tuple(s // block for s in dim.strides)
        if all(s <= most for s, most in zip(blk_stride, limits.blk_stride, strict=True)):
            for count in block_counts(dim.size):
                yield block_segments(dim, dims[:i] + dims[i + 1 :], run, block, count)


def block_counts(size: int) -> list[int]:
    """How many of `size` blocks a repeat may take: as many as fit, or fewer and no rest."""
    if size <= BLOCKS:
        return [size]
    return [BLOCKS, *(n for n in range(BLOCKS - 1, 0, -1) if size % BLOCKS and size % n == 0)]


def run_segments(outer: list[Dim], run: int, itemsizes: Sequence[int]) -> list[Segment]:
    """Full repeats of the run, then what is left of it under a prefix mask."""
    lanes = BLOCKS * BLOCK_BYTES // max(itemsizes)
    full, tail = divmod(run, lanes)
    ones = (1,) * len(itemsizes)
    segments = []
    if full:
        pieces = Dim(full, (lanes,) * len(itemsizes))
        segments.append(Segment((0,) * len(itemsizes), FULL_MASK, ones, (*outer, pieces)))
    if tail:
        start = (full * lanes,) * len(itemsizes)
        segments.append(Segment(start, (1 << tail) - 1, ones, tuple(outer)))
    return segments


def block_segments(dim: Dim, others: list[Dim], run: int, block: int, count: int) -> list[Segment]:
    """`count` blocks at a time of the dimension `dim`, then what is left of it."""
    full, tail = divmod(dim.size, count)
    blk_stride = tuple(s // block for s in dim.strides)
    pieces = Dim(full, tuple(count * s for s in dim.strides))
    start = (0,) * len(dim.strides)
    segments = [Segment(start, block_mask(count, run, block), blk_stride, (*others, pieces))]
    if tail:
        start = tuple(full * count * s for s in dim.strides)
        mask = block_mask(tail, run, block)
        segments.append(Segment(start, mask, blk_stride, tuple(others)))
    return segments


def block_mask(blocks: int, run: int, block: int) -> int:
    """The first `run` lanes of each of `blocks` blocks."""
    if blocks == BLOCKS and run == block:
        return FULL_MASK
    mask = 0
    for i in range(blocks):
        mask |= ((1 << run) - 1) << (i * block)
    return mask


def choose_repeat(segment: Segment, itemsizes: Sequence[int], limits: Limits) -> list[Nest]:
    """Puts the axis that saves most instructions on the repeat; the others become loops."""
    axes = [axis for axis in segment.axes if axis.size > 1]
    best = repeat_over(segment, None, axes, limits, itemsizes)
    for i, axis in enumerate(axes):
        rep_stride = in_blocks(axis, itemsizes)
        if all(s <= most for s, most in zip(rep_stride, limits.rep_stride, strict=True)):
            found = repeat_over(segment, axis, axes[:i] + axes[i + 1 :], limits, itemsizes)
            if cost_of(found, itemsizes, limits) < cost_of(best, itemsizes, limits):
                best = found
    return best


def repeat_over(
    segment: Segment,
    axis: Dim | None,
    loops: list[Dim],
    limits: Limits,
    itemsizes: Sequence[int],
) -> list[Nest]:
    """Instructions that repeat over `axis`, cut to the largest repeat count."""
    if axis is None:
        rep_stride = tuple(min(BLOCKS, most) for most in limits.rep_stride)
        issue = Issue(segment.offsets, 1, segment.mask, segment.blk_stride, rep_stride)
        return [Nest(tuple(loops), issue)]
    rep_stride = in_blocks(axis, itemsizes)
    full, tail = divmod(axis.size, limits.repeat)
    nests = []
    if full:
        chunks = Dim(full, tuple(limits.repeat * s for s in axis.strides))
        issue = Issue(segment.offsets, limits.repeat, segment.mask, segment.blk_stride, rep_stride)
        nests.append(Nest((*loops, chunks) if full > 1 else tuple(loops), issue))
    if tail:
        start = tuple(
            o + full * limits.repeat * s for o, s in zip(segment.offsets, axis.strides, strict=True)
        )
        issue = Issue(start, tail, segment.mask, segment.blk_stride, rep_stride)
        nests.append(Nest(tuple(loops), issue))
    return nests


def in_blocks(axis: Dim, itemsizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(s * size // BLOCK_BYTES for s, size in zip(axis.strides, itemsizes, strict=True))
