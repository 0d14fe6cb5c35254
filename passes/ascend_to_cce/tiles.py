"""What the lowerings share: cutting a dimension into tiles, and sharing tiles over blocks.

Shapes are static, so a dimension that its tile does not divide is peeled: equal main tiles, then
one remainder. Work that comes in several parts (main tiles, remainders) is dealt out to the blocks
piece by piece, going on with the next part where the one before ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from davinci.mlir import Op, arith, ir, scf
from davinci.passes.analysis.kernels import kernel_around
from davinci.passes.ascend_to_cce import Target
from davinci.passes.builder import (
    IndexLike,
    add,
    as_attribute,
    as_value,
    constant_index,
    for_loop,
    mul,
    op,
)
from davinci.schedule.moves.portions import Portions


@dataclass(frozen=True)
class TileSegment:
    """`count` neighbouring tiles of `size`, the first of which starts at `first`."""

    first: int
    count: int
    size: int

    def start(self, index: IndexLike) -> IndexLike:
        """Where tile `index` of the segment starts."""
        return add(self.first, mul(index, self.size))


def segments(total: int, size: int) -> list[TileSegment]:
    """Cuts `total` into tiles of `size` and a remainder.

    >>> segments(10, 4)
    [Segment(first=0, count=2, size=4), Segment(first=8, count=1, size=2)]
    """
    count, rest = divmod(total, size)
    cut = [TileSegment(0, count, size)] if count else []
    return cut + ([TileSegment(count * size, 1, rest)] if rest else [])


def for_tiles(segment: TileSegment, build: Callable[[IndexLike], None], unroll: int = 0) -> None:
    """Builds `build(start)` for every tile of a segment, in a loop if there is more than one.

    Args:
        unroll: tiles that `multi-buffer` orders together; 0 for one after the other.
    """
    if segment.count == 1:
        build(segment.first)
        return
    with for_loop(0, segment.count) as index:
        if unroll:
            index.owner.owner.attributes["cce.unroll"] = as_attribute(unroll)
        build(segment.start(index))


def with_slots(buffer: ir.Value, slots: int) -> ir.Value:
    """A buffer, of which `multi-buffer` makes `slots`, where these are several."""
    if slots > 1:
        buffer.owner.attributes["cce.slots"] = as_attribute(slots)
    return buffer


@dataclass(frozen=True)
class AlikeWork:
    """`count` pieces of work of one static shape; `build(index)` builds piece `index`.

    Attributes:
        in_turns: whether pieces of a block may be ordered together; those of the scalar unit, which
            has no buffers, come one after the other.
    """

    count: int
    build: Callable[[IndexLike], None]
    in_turns: bool = True


def block_index(target: Target) -> ir.Value:
    """The number of the block among those that do the work."""
    if target.blocks is not None:
        return target.blocks.index
    return op("cce.get_block_idx", [], [ir.IndexType.get()]).result


def block_count(target: Target) -> ir.Value:
    """How many blocks do the work."""
    if target.blocks is not None:
        return constant_index(target.blocks.count)
    return op("cce.get_block_num", [], [ir.IndexType.get()]).result


@contextmanager
def first_blocks(count: int, cores: int, block: ir.Value | None = None) -> Iterator[ir.Value]:
    """Builds what only the first `count` of so many blocks do, without a branch if all do; the
    number of the block.

    Args:
        block: that number, where it is another one than that of the launch's blocks.
    """
    if count == cores:
        yield block or op("cce.get_block_idx", [], [ir.IndexType.get()]).result
        return
    with only_blocks(0, count, block) as (_, index):
        yield index


@contextmanager
def only_blocks(
    first: int, count: int, block: ir.Value | None = None
) -> Iterator[tuple[Op, ir.Value]]:
    """Builds what only the `count` blocks from `first` on do; the branch that holds it, and the
    number of the block among them.

    Args:
        block: as of `first_blocks`.
    """
    block = block or op("cce.get_block_idx", [], [ir.IndexType.get()]).result
    index = arith.SubIOp(block, constant_index(first)).result if first else block
    below = arith.CmpIOp(arith.CmpIPredicate.ult, index, constant_index(count)).result
    branch = scf.IfOp(below)
    with ir.InsertionPoint(branch.then_block):
        yield branch.operation, index
        scf.YieldOp([])


def share_blocks(
    parts: Iterable[AlikeWork],
    target: Target,
    alone: bool = True,
    total: int | None = None,
    unroll: int = 0,
) -> int:
    """Builds the loops over all pieces, shared by the blocks; returns how many pieces there are.

    Numbering the pieces of all parts from 0, block b does the pieces t with t mod blocks = b.

    Args:
        parts: may be made while they are taken: what making one builds stands before its loop.
        alone: whether these are all pieces of the kernel: if it is one, there is one block.
        total: how many pieces there are, if that is known before.
        unroll: pieces of a block that are ordered together; 0 for one after the other.
    """
    if total is None:
        parts = list(parts)
        total = sum(part.count for part in parts)
    few = target.blocks is None or target.blocks.count <= 1
    if target.cores <= 1 or (alone and total <= 1 and few):
        for part in parts:
            for_tiles(TileSegment(0, part.count, 1), part.build, unroll * part.in_turns)
        return total
    if alone and total <= target.cores and target.blocks is None:
        _one_each([part for part in parts if part.count], block_index(target))
        return total
    block, blocks = block_index(target), block_count(target)
    before = 0
    for part in parts:
        start: ir.Value = block
        if before:
            taken = arith.RemUIOp(as_value(before), blocks).result
            shifted = arith.SubIOp(arith.AddIOp(block, blocks).result, taken).result
            start = arith.RemUIOp(shifted, blocks).result
        if unroll and part.in_turns and alone:
            taken_by = min(total, target.cores) if target.blocks is None else target.blocks.count
            _counted(part, start, taken_by, unroll)
        else:
            with for_loop(start, part.count, blocks) as piece:
                part.build(piece)
        before += part.count
    return total


def _counted(part: AlikeWork, start: ir.Value, blocks: int, unroll: int) -> None:
    """Builds a block's pieces of a part, from piece `start` on, in loops whose trips are known.

    The first blocks have a piece more than the others where the part does not come out even: a loop
    each, of which a block takes one.
    """
    each, more = divmod(part.count, blocks)

    def build(count: int) -> None:
        pieces = TileSegment(0, count, blocks)
        for_tiles(pieces, lambda first: part.build(add(start, first)), unroll)

    if not more:
        build(each)
        return
    one_more = arith.CmpIOp(arith.CmpIPredicate.ult, start, constant_index(more)).result
    branch: scf.IfOp = scf.IfOp(one_more, has_else=each > 0)
    with ir.InsertionPoint(branch.then_block):
        build(each + 1)
        scf.YieldOp([])
    if each:
        with ir.InsertionPoint(branch.else_block):
            build(each)
            scf.YieldOp([])


def _one_each(parts: Sequence[AlikeWork], block: IndexLike, before: int = 0) -> None:
    """Builds all pieces where each block does one: branches of which a block takes one, so that
    none begins with event ids that another has left.

    Args:
        before: pieces of other parts.
    """
    part, *others = parts
    if not others:
        part.build(add(block, -before))
        return
    stop = before + part.count
    mine = arith.CmpIOp(arith.CmpIPredicate.ult, as_value(block), constant_index(stop)).result
    branch: scf.IfOp = scf.IfOp(mine, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        part.build(add(block, -before))
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        _one_each(others, block, stop)
        scf.YieldOp([])


Stretches = list[tuple[IndexLike, int]]
"""Where portions start, and their sizes."""


def stretches(portions: Portions) -> list[tuple[int, Callable[[IndexLike], Stretches]]]:
    """The portions as pieces of work of one kind: how many there are, and what each consists of.

    An overlapping tail is in one piece with the portion before it.
    """
    size, tail = portions.size, portions.tail
    full = portions.count - (1 if portions.overlaps else 0)
    end: Stretches = [(full * size, size)] if portions.overlaps else []
    found: list[tuple[int, Callable[[IndexLike], Stretches]]] = []
    if full:
        found.append((full, lambda index: [(mul(index, size), size)]))
    if tail:
        found.append((1, lambda index: [*end, (portions.tail_start, tail)]))
    return found


def portion_parts(
    portions: Portions, build: Callable[[IndexLike, IndexLike, int], None], times: int = 1
) -> list[AlikeWork]:
    """`build(repetition, start, size)` for all portions, each done for 0 .. times - 1, as parts."""

    def part(count: int, of: Callable[[IndexLike], Stretches]) -> AlikeWork:
        def piece(index: IndexLike) -> None:
            repetition, position = unflatten(index, [times, count])
            for start, size in of(position):
                build(repetition, start, size)

        return AlikeWork(times * count, piece)

    return [part(count, of) for count, of in stretches(portions)]


def unflatten(index: IndexLike, extents: Sequence[int]) -> list[IndexLike]:
    """The indices of a row-major array of `extents` that `index` counts."""
    found: list[IndexLike] = []
    rest = index
    for i in reversed(range(len(extents))):
        if extents[i] == 1:
            found.insert(0, 0)
        elif all(extent == 1 for extent in extents[:i]):
            found.insert(0, rest)
            rest = 0
        elif isinstance(rest, int):
            found.insert(0, rest % extents[i])
            rest //= extents[i]
        else:
            found.insert(0, arith.RemUIOp(rest, as_value(extents[i])).result)
            rest = arith.DivUIOp(rest, as_value(extents[i])).result
    return found


def mark_scalar(owner: Op) -> None:
    """Says that the scalar unit does the kernel's work; reports count it."""
    kernel_around(owner.operation).attributes["ascend.unit"] = ir.StringAttr.get("scalar")
