"""Sums, maxima and minima along one dimension.

Along the innermost dimension, rows are folded in halves until a repeat holds one, and an
instruction reduces each repeat; of rows that are one block each, eight at a time. Along another
one, its rows are combined in halves, in the buffer that the other compiler gives for it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.isa import Instruction
from davinci.mlir import Op
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.elementwise import issue
from davinci.passes.hir_to_hivm.transfers import move
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView
from davinci.units import BLOCK_BYTES, MAX_REPEAT, REPEAT_BYTES


@dataclass(frozen=True)
class ReductionKind:
    """A reduction: the instruction that combines two arrays, the one that reduces a repeat, and the
    one that reduces each block of it."""

    combine: str
    reduce: str
    blocks: str


KINDS = {
    "sum": ReductionKind("vadd", "vcadd", "vcgadd"),
    "max": ReductionKind("vmax", "vcmax_value", "vcgmax"),
    "min": ReductionKind("vmin", "vcmin_value", "vcgmin"),
}


@lowering("vreduce")
def lower_reduce(translator: Translator, op: Op) -> None:
    """Along one dimension of a static array."""
    (source,), targets, *more = translator.groups(op)
    name = word(op, "arith")
    if name not in KINDS or len(targets) != 1:
        raise Unsupported(f"vreduce {name}")
    src, dst = translator.view(op, source), translator.view(op, targets[0])
    scratch = translator.view(op, more[0][0]) if more and more[0] else None
    dims = attribute(op, "reduce_dims")
    if not (src.static and dst.static) or len(dims) != 1:
        raise Unsupported("vreduce of a size that the program computes, or of several dimensions")
    if src.kind not in ("f16", "f32"):
        raise Unsupported(f"vreduce {name} of {src.kind}")
    (dim,) = dims
    if math.prod(src.shape[dim + 1 :]) > 1:
        reduce_rows(translator, KINDS[name], src, dst, scratch, dim)
    else:
        reduce_lanes(translator, KINDS[name], src, dst, scratch, dim)


def part(view: MemrefView, dim: int, begin: int, size: int) -> MemrefView:
    """`size` elements of a static view along a dimension, from `begin` on."""
    shape = [*view.shape]
    shape[dim] = size
    return view.at(Shift(begin * view.steps[dim] * view.itemsize)).with_dims(shape, view.steps)


def halves(size: int, most: int) -> list[tuple[int, int]]:
    """Steps that fold `size` to at most `most`: (what stays, what is added to its beginning)."""
    steps = []
    while size > most:
        kept = 1 << (size - 1).bit_length() - 1
        steps.append((kept, size - kept))
        size = kept
    return steps


def fold(
    translator: Translator,
    record: Instruction,
    src: MemrefView,
    scratch: MemrefView | None,
    dim: int,
    most: int,
) -> MemrefView:
    """Combines halves along `dim` until at most `most` are left, in `scratch` from the first on.

    Raises:
        Unsupported: the buffer is too small.
    """
    steps = halves(src.shape[dim], most)
    if not steps:
        return src
    shape = [*src.shape]
    shape[dim] = steps[0][0]
    lanes = BLOCK_BYTES // src.itemsize
    pitch = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        width = shape[i + 1] * pitch[i + 1]
        pitch[i] = -(-width // lanes) * lanes if i == len(shape) - 2 else width
    needed = shape[0] * pitch[0]
    if scratch is None or needed > math.prod(scratch.shape):
        have = 0 if scratch is None else math.prod(scratch.shape)
        raise Unsupported(f"vreduce with a buffer of {have} elements that needs {needed}")
    target = MemrefView(scratch.root, scratch.shift, tuple(shape), tuple(pitch), src.kind)
    current = src
    for number, (kept, added) in enumerate(steps):
        combined = [part(target, dim, 0, added), part(current, dim, 0, added)]
        issue(translator, record, [*combined, part(current, dim, kept, added)])
        if number == 0 and kept > added:
            rest = part(current, dim, added, kept - added)
            move(translator, rest, part(target, dim, added, kept - added))
        translator.barrier()
        current = part(target, dim, 0, kept)
    return current


def reduce_lanes(
    translator: Translator,
    kind: ReductionKind,
    src: MemrefView,
    dst: MemrefView,
    scratch: MemrefView | None,
    dim: int,
) -> None:
    """Along the innermost dimension that has more than one element."""
    if src.steps[dim] != 1:
        raise Unsupported("vreduce along elements that lie apart")
    outer, steps = collapse(src, dim)
    inner = src.with_dims((*outer, src.shape[dim]), (*steps, 1))
    lanes = REPEAT_BYTES // src.itemsize
    combine = translator.record(kind.combine, src.kind)
    if not outer and scratch is not None and needs(inner, lanes) > math.prod(scratch.shape):
        by_repeats(translator, translator.record(kind.reduce, src.kind), inner, dst, scratch)
        return
    done = 0
    if outer and inner.shape[1] == inner.steps[0] == BLOCK_BYTES // src.itemsize:
        done = by_blocks(translator, translator.record(kind.blocks, src.kind), inner, dst)
        if done == inner.shape[0]:
            return
    folded = fold(translator, combine, inner, scratch, len(outer), lanes)
    record = translator.record(kind.reduce, src.kind)
    translator.set_mask(folded.shape[-1])
    rows = folded.shape[0] if outer else 1
    step = folded.steps[0] if outer else 0
    results, gap = collapse(dst, len(dst.shape))
    apart = gap[0] if results else 1
    if step * src.itemsize % BLOCK_BYTES:
        raise Unsupported("vreduce of rows that do not begin blocks")
    stride = step * src.itemsize // BLOCK_BYTES
    limits = {f.name: f.limit for f in record.fields}
    most = MAX_REPEAT
    if stride > limits["src_rep_stride"] or apart > limits["dst_rep_stride"]:
        most = 1
    for begin in range(done, rows, most):
        count = min(most, rows - begin)
        at = [
            dst.at(Shift(begin * apart * dst.itemsize)).address,
            folded.at(Shift(begin * step * src.itemsize)).address,
        ]
        fields = (
            {"src_rep_stride": stride, "dst_rep_stride": apart}
            if count > 1
            else {
                "src_rep_stride": 0,
                "dst_rep_stride": 1,
            }
        )
        translator.instruction(record, at, **fields, src_blk_stride=1, repeat=count)


def by_blocks(
    translator: Translator, record: Instruction, rows: MemrefView, dst: MemrefView
) -> int:
    """Reduces rows of one block each where eight of them are a repeat.

    Returns:
        How many rows from the first on; none if their results lie apart.
    """
    _, gap = collapse(dst, len(dst.shape))
    if gap != [1]:
        return 0
    together = REPEAT_BYTES // BLOCK_BYTES
    repeats = rows.shape[0] // together
    translator.set_mask(REPEAT_BYTES // rows.itemsize)
    for begin in range(0, repeats, MAX_REPEAT):
        first = begin * together
        at = [
            dst.at(Shift(first * dst.itemsize)).address,
            rows.at(Shift(first * BLOCK_BYTES)).address,
        ]
        fields = {"src_rep_stride": together, "dst_rep_stride": 1, "src_blk_stride": 1}
        translator.instruction(record, at, **fields, repeat=min(MAX_REPEAT, repeats - begin))
    return repeats * together


def needs(row: MemrefView, lanes: int) -> int:
    """Elements of a buffer in which a row is folded to `lanes`."""
    steps = halves(row.shape[0], lanes)
    return steps[0][0] if steps else 0


def by_repeats(
    translator: Translator,
    record: Instruction,
    row: MemrefView,
    dst: MemrefView,
    scratch: MemrefView,
) -> None:
    """Reduces each repeat of a row to an element of the buffer, and these again, until one is left.

    Raises:
        Unsupported: the buffer is too small.
    """
    lanes = REPEAT_BYTES // row.itemsize
    block = BLOCK_BYTES // row.itemsize
    size, begin = row.shape[0], 0
    source = row
    while True:
        count = -(-size // lanes)
        have = math.prod(scratch.shape)
        if count > 1 and begin + count > have:
            raise Unsupported(f"vreduce with a buffer of {have} elements")
        target = dst if count == 1 else scratch.at(Shift(begin * row.itemsize))
        whole, rest = divmod(size, lanes)
        pieces = [(i, min(MAX_REPEAT, whole - i), lanes) for i in range(0, whole, MAX_REPEAT)]
        pieces += [(whole, 1, rest)] if rest else []
        for first, repeat, active in pieces:
            translator.set_mask(active)
            at = [
                target.at(Shift(first * row.itemsize)).address,
                source.at(Shift(first * REPEAT_BYTES)).address,
            ]
            fields = {"dst_rep_stride": 1, "src_blk_stride": 1, "src_rep_stride": 8}
            translator.instruction(record, at, **fields, repeat=repeat)
        if count == 1:
            return
        translator.barrier()
        source, size = target, count
        begin += -(-count // block) * block


def collapse(view: MemrefView, before: int) -> tuple[list[int], list[int]]:
    """The dimensions before `before` as one, or none if there is only one element.

    Raises:
        Unsupported: their elements are not equally far apart.
    """
    pairs = [
        (n, s) for n, s in zip(view.shape[:before], view.steps[:before], strict=True) if n != 1
    ]
    for (_, outer), (size, inner) in itertools.pairwise(pairs):
        if outer != size * inner:
            raise Unsupported("vreduce of rows that are not equally far apart")
    if not pairs:
        return [], []
    return [math.prod(n for n, _ in pairs)], [pairs[-1][1]]


def reduce_rows(
    translator: Translator,
    kind: ReductionKind,
    src: MemrefView,
    dst: MemrefView,
    scratch: MemrefView | None,
    dim: int,
) -> None:
    """Along a dimension with others inside: rows are combined in halves."""
    outer = math.prod(src.shape[:dim])
    if outer > 1:
        raise Unsupported("vreduce along a dimension in the middle")
    inner = src.with_dims(src.shape[dim:], src.steps[dim:])
    record = translator.record(kind.combine, src.kind)
    target = dst.with_dims(dst.shape[dim:], dst.steps[dim:])
    if inner.shape[0] == 1:
        move(translator, inner, target)
        return
    left = fold(translator, record, inner, scratch, 0, 2)
    if left.shape[0] == 1:
        move(translator, left, target)
        return
    issue(translator, record, [target, part(left, 0, 0, 1), part(left, 0, 1, 1)])
