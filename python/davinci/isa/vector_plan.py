"""Maps the dimensions of an elementwise operation onto the axes of vector instructions.

One instruction walks lanes (a contiguous run, or blocks at a stride), and repeats at a stride.
What is left becomes a loop of instructions. Every assignment of dimensions to axes is tried; the
one that takes least time wins: a fixed cost an instruction, and for each repeat a cycle, or as many
as the most loaded bank group has blocks of one operand.

Pure arithmetic: no IR is read or built here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from davinci.isa.core import Instruction
from davinci.isa.strides import SharedDim, merge_dims, split_run
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import REPEAT_BLOCKS as BLOCKS

FULL_MASK = (1 << REPEAT_BYTES // 2) - 1
"""One bit for each 16-bit lane of a repeat; wider types use the lowest bits only."""


@dataclass(frozen=True)
class InstructionLimits:
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

    @staticmethod
    def of(
        record: Instruction, fixed_cycles: int, bank_groups: int, cycles: int
    ) -> InstructionLimits:
        """Those of an instruction's fields; an absent stride allows only the default."""
        most = {f.name: f.limit for f in record.fields}
        names = [o.name for o in record.operands]
        return InstructionLimits(
            most["repeat"],
            tuple(most.get(f"{n}_blk_stride", 1) for n in names),
            tuple(most.get(f"{n}_rep_stride", 0) for n in names),
            fixed_cycles,
            bank_groups,
            cycles,
        )


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

    loops: tuple[SharedDim, ...]
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
    axes: tuple[SharedDim, ...]


def plan_vector(
    shape: Sequence[int],
    strides: Sequence[Sequence[int]],
    itemsizes: Sequence[int],
    limits: InstructionLimits,
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
    limits: InstructionLimits,
) -> tuple[Nest, ...]:
    if 0 in shape:
        return ()
    outer, run = split_run(merge_dims(shape, strides))
    best: list[Nest] = []
    best_cost = -1
    repeats = math.ceil(math.prod(shape) * max(itemsizes) / REPEAT_BYTES)
    least = math.ceil(repeats / limits.repeat) * limits.fixed_cycles + repeats * limits.cycles
    for segments in candidates(outer, run, itemsizes, limits):
        nests = [nest for s in segments for nest in choose_repeat(s, itemsizes, limits)]
        cost = cost_of(nests, itemsizes, limits)
        if best_cost < 0 or cost < best_cost:
            best, best_cost = nests, cost
        if best_cost <= least:
            break  # all lanes of all repeats are at work
    return tuple(best)


def cost_of(nests: Sequence[Nest], itemsizes: Sequence[int], limits: InstructionLimits) -> int:
    """Cycles of the instructions."""
    total = 0
    for nest in nests:
        each = max(
            limits.cycles, beats(nest.issue.blk_stride, tuple(itemsizes), limits.bank_groups)
        )
        total += nest.count * (limits.fixed_cycles + nest.issue.repeat * each)
    return total


@lru_cache(maxsize=1024)
def beats(blk_stride: tuple[int, ...], itemsizes: tuple[int, ...], bank_groups: int) -> int:
    """Cycles that a repeat's blocks of one operand need the most loaded bank group for.

    Masked lanes use their banks too. Whether two operands meet depends on their addresses.
    """
    if not bank_groups:
        return 1
    most = 1
    for stride, size in zip(blk_stride, itemsizes, strict=True):
        blocks = BLOCKS * size // max(itemsizes)
        groups = bank_groups // math.gcd(stride, bank_groups) if stride else blocks
        most = max(most, math.ceil(blocks / max(1, groups)))
    return most


def candidates(
    outer: list[SharedDim], run: int, itemsizes: Sequence[int], limits: InstructionLimits
) -> Iterator[list[Segment]]:
    """Ways to fill the lanes: with the contiguous run, or with units of any dimension, each a block
    of the widest or of the narrowest type."""
    yield run_segments(outer, run, itemsizes)
    yield from halved_blocks(outer, run, itemsizes, limits)
    lanes = REPEAT_BYTES // max(itemsizes)
    for unit in sorted({BLOCK_BYTES // size for size in itemsizes}):
        if run > unit and run % unit:
            continue
        dims = [*outer, SharedDim(run // unit, (unit,) * len(itemsizes))] if run > unit else outer
        for i, dim in enumerate(dims):
            blk_stride, others = unit_strides(dim, unit, itemsizes), dims[:i] + dims[i + 1 :]
            if (
                blk_stride
                and within(blk_stride, limits.blk_stride)
                and all(whole_blocks(other, itemsizes) for other in others)
            ):
                for count in unit_counts(dim.size, lanes // unit):
                    apart = SharedDim(dim.size, tuple(count * s for s in dim.strides))
                    if count < dim.size and not whole_blocks(apart, itemsizes):
                        continue
                    masks = [
                        unit_mask(n, min(run, unit), unit, lanes) for n in (count, dim.size % count)
                    ]
                    yield unit_segments(dim, others, count, masks, blk_stride)


def halved_blocks(
    outer: list[SharedDim], run: int, itemsizes: Sequence[int], limits: InstructionLimits
) -> Iterator[list[Segment]]:
    """Lanes whose runs are blocks of the wide operands and parts of one of the narrow ones, which
    another dimension goes on with, at the same distances for the wide ones.

    [rows][2][16]  wide: [2 d][d][1], narrow: [r][16][1]   ->   blocks d, r apart
    """
    wide = [run * size == BLOCK_BYTES for size in itemsizes]
    if all(wide) or run * max(itemsizes) != BLOCK_BYTES:
        return
    alone = SharedDim(1, tuple(BLOCK_BYTES // size for size in itemsizes))
    for inner, dim in itertools.permutations([*outer, alone], 2):
        others = [other for other in outer if other not in (inner, dim)]
        goes_on = inner is not alone and all(
            dim is alone or dim.strides[i] == inner.size * inner.strides[i]
            if wide[i]
            else inner.strides[i] == run and inner.size * run * itemsizes[i] == BLOCK_BYTES
            for i in range(len(itemsizes))
        )
        if not goes_on or not all(whole_blocks(other, itemsizes) for other in others):
            continue
        blk_stride = in_blocks(
            SharedDim(0, tuple((inner if wide[i] else dim).strides[i] for i in range(len(wide)))),
            itemsizes,
        )
        if not within(blk_stride, limits.blk_stride):
            continue
        lanes, unit = REPEAT_BYTES // max(itemsizes), inner.size * run
        count = min(dim.size, lanes // unit)
        masks = [unit_mask(n, unit, unit, lanes) for n in (count, dim.size % count)]
        yield unit_segments(dim, others, count, masks, blk_stride)


def unit_strides(dim: SharedDim, unit: int, itemsizes: Sequence[int]) -> tuple[int, ...]:
    """Block strides of lanes that take `unit` elements at each point of `dim`; empty if there are
    none: an operand whose unit is not one block has to be contiguous."""
    found = []
    for stride, size in zip(dim.strides, itemsizes, strict=True):
        if unit * size == BLOCK_BYTES and stride * size % BLOCK_BYTES == 0:
            found.append(stride * size // BLOCK_BYTES)
        elif stride == unit:
            found.append(1)
        else:
            return ()
    return tuple(found)


def whole_blocks(dim: SharedDim, itemsizes: Sequence[int]) -> bool:
    """Says whether each step of `dim` is a whole number of blocks for every operand."""
    return all(s * size % BLOCK_BYTES == 0 for s, size in zip(dim.strides, itemsizes, strict=True))


def unit_counts(size: int, most: int) -> list[int]:
    """How many of `size` units a repeat may take: as many as fit, or fewer and no rest."""
    if size <= most:
        return [size]
    return [most, *(n for n in range(most - 1, 0, -1) if size % most and size % n == 0)]


def run_segments(outer: list[SharedDim], run: int, itemsizes: Sequence[int]) -> list[Segment]:
    """Full repeats of the run, then what is left of it under a prefix mask."""
    lanes = BLOCKS * BLOCK_BYTES // max(itemsizes)
    full, tail = divmod(run, lanes)
    ones = (1,) * len(itemsizes)
    segments = []
    if full:
        pieces = SharedDim(full, (lanes,) * len(itemsizes))
        segments.append(Segment((0,) * len(itemsizes), FULL_MASK, ones, (*outer, pieces)))
    if tail:
        start = (full * lanes,) * len(itemsizes)
        segments.append(Segment(start, (1 << tail) - 1, ones, tuple(outer)))
    return segments


def unit_segments(
    dim: SharedDim,
    others: list[SharedDim],
    count: int,
    masks: Sequence[int],
    blk_stride: tuple[int, ...],
) -> list[Segment]:
    """`count` units at a time of the dimension `dim`, then what is left of it.

    Args:
        masks: of `count` units, and of the rest.
        blk_stride: in blocks, from unit to unit, or 1 inside contiguous ones.
    """
    full, tail = divmod(dim.size, count)
    pieces = SharedDim(full, tuple(count * s for s in dim.strides))
    start = (0,) * len(dim.strides)
    segments = [Segment(start, masks[0], blk_stride, (*others, pieces))]
    if tail:
        start = tuple(full * count * s for s in dim.strides)
        segments.append(Segment(start, masks[1], blk_stride, tuple(others)))
    return segments


def unit_mask(units: int, run: int, unit: int, lanes: int) -> int:
    """The first `run` lanes of each of `units` units, of `lanes` that a repeat has."""
    if units * unit == lanes and run == unit:
        return FULL_MASK
    return sum(((1 << run) - 1) << (i * unit) for i in range(units))


def choose_repeat(
    segment: Segment, itemsizes: Sequence[int], limits: InstructionLimits
) -> list[Nest]:
    """Puts the axis that saves most instructions on the repeat; the others become loops."""
    axes = [axis for axis in segment.axes if axis.size > 1]
    best = repeat_over(segment, None, axes, limits, itemsizes)
    for i, axis in enumerate(axes):
        rep_stride = in_blocks(axis, itemsizes)
        if whole_blocks(axis, itemsizes) and within(rep_stride, limits.rep_stride):
            found = repeat_over(segment, axis, axes[:i] + axes[i + 1 :], limits, itemsizes)
            if cost_of(found, itemsizes, limits) < cost_of(best, itemsizes, limits):
                best = found
    return best


def repeat_over(
    segment: Segment,
    axis: SharedDim | None,
    loops: list[SharedDim],
    limits: InstructionLimits,
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
        chunks = SharedDim(full, tuple(limits.repeat * s for s in axis.strides))
        issue = Issue(segment.offsets, limits.repeat, segment.mask, segment.blk_stride, rep_stride)
        nests.append(Nest((*loops, chunks) if full > 1 else tuple(loops), issue))
    if tail:
        start = tuple(
            o + full * limits.repeat * s for o, s in zip(segment.offsets, axis.strides, strict=True)
        )
        issue = Issue(start, tail, segment.mask, segment.blk_stride, rep_stride)
        nests.append(Nest(tuple(loops), issue))
    return nests


def within(strides: Sequence[int], largest: Sequence[int]) -> bool:
    return all(stride <= most for stride, most in zip(strides, largest, strict=True))


def in_blocks(axis: SharedDim, itemsizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(s * size // BLOCK_BYTES for s, size in zip(axis.strides, itemsizes, strict=True))
