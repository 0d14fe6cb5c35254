"""Maps the dimensions of an elementwise operation onto the axes of vector instructions.

One instruction walks lanes (a contiguous run, or blocks at a stride), and repeats at a stride.
What is left becomes a loop of instructions. Every assignment of dimensions to axes is tried; the
one that takes least time wins, counted as a fixed cost an instruction and a cycle a repeat.

Pure arithmetic: no IR is read or built here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from davinci.isa.strides import Dim, merge_dims, split_run
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import REPEAT_BLOCKS as BLOCKS

FULL_MASK = (1 << REPEAT_BYTES // 2) - 1
"""One bit for each 16-bit lane of a repeat; wider types use the lowest bits only."""


@dataclass(frozen=True)
class Limits:
    """Largest repeat count and strides (in blocks) of an instruction, strides per operand."""

    repeat: int
    blk_stride: tuple[int, ...]
    rep_stride: tuple[int, ...]
    fixed_cycles: int


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
    if 0 in shape:
        return []
    outer, run = split_run(merge_dims(shape, strides))
    best: list[Nest] = []
    best_cost = -1
    for segments in candidates(outer, run, itemsizes, limits):
        nests = [nest for s in segments for nest in choose_repeat(s, itemsizes, limits)]
        cost = cost_of(nests, limits)
        if best_cost < 0 or cost < best_cost:
            best, best_cost = nests, cost
    return best


def cost_of(nests: Sequence[Nest], limits: Limits) -> int:
    return sum(nest.count * (limits.fixed_cycles + nest.issue.repeat) for nest in nests)


def candidates(
    outer: list[Dim], run: int, itemsizes: Sequence[int], limits: Limits
) -> Iterator[list[Segment]]:
    """Ways to fill the lanes: with the contiguous run, or with blocks of an outer dimension."""
    yield run_segments(outer, run, itemsizes)
    block = BLOCK_BYTES // max(itemsizes)
    if run > block or min(itemsizes) != max(itemsizes):
        return
    for i, dim in enumerate(outer):
        blk_stride = tuple(s // block for s in dim.strides)
        if all(s <= most for s, most in zip(blk_stride, limits.blk_stride, strict=True)):
            yield block_segments(dim, outer[:i] + outer[i + 1 :], run, block)


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


def block_segments(dim: Dim, others: list[Dim], run: int, block: int) -> list[Segment]:
    """Eight blocks at a time of the dimension `dim`, then what is left of it."""
    full, tail = divmod(dim.size, BLOCKS)
    blk_stride = tuple(s // block for s in dim.strides)
    segments = []
    if full:
        pieces = Dim(full, tuple(BLOCKS * s for s in dim.strides))
        mask = FULL_MASK if run == block else block_mask(BLOCKS, run, block)
        start = (0,) * len(dim.strides)
        segments.append(Segment(start, mask, blk_stride, (*others, pieces)))
    if tail:
        start = tuple(full * BLOCKS * s for s in dim.strides)
        mask = block_mask(tail, run, block)
        segments.append(Segment(start, mask, blk_stride, tuple(others)))
    return segments


def block_mask(blocks: int, run: int, block: int) -> int:
    """The first `run` lanes of each of `blocks` blocks."""
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
            if cost_of(found, limits) < cost_of(best, limits):
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
