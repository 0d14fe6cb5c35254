"""When on-chip buffers of a kernel hold something that is still needed.

A buffer may hold several values one after the other. Between the last read of a value and the
first write of the next, which covers what is read later, it holds nothing, also from one iteration
of a loop to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.effects import Effects, effects_of
from davinci.mlir import Op, ir
from davinci.passes.analysis.accesses import Accesses, ByteAccess
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.regions import MOST_RUNS, StridedRegion, span, without
from davinci.passes.pipeline.base import fail

VIEWS = frozenset(
    [
        "memref.subview",
        "memref.reinterpret_cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.cast",
        "memref.view",
    ]
)
"""Operations whose result is another view of their first operand."""


def viewed_buffer(value: ir.Value) -> ir.Value:
    """The buffer or argument behind all views that a memref is made of."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
        value = value.owner.operands[0]
    return value


@dataclass(eq=False)
class AllocatedBuffer:
    """A `memref.alloc` in an on-chip memory.

    Attributes:
        alloc: the operation.
        space: "UB", "L1", ...
        size_bytes: without rounding.
        live: a bit for each time at which it holds something; times count operations, their
            beginnings and ends, in textual order.
        pipes: that work on it.
        filled_by: pipes that write it.
        scope: the times of the innermost branch that its alloc is in, which is all of the time that
            there is for it; -1: of the kernel.
        stretches: the times of the loops and branches that its uses are in, and of what lies in
            between where they are there: what shares its place only outside of these waits once,
            not in every iteration.
    """

    alloc: Op
    space: str
    size_bytes: int
    live: int = 0
    pipes: frozenset[str] = frozenset()
    filled_by: frozenset[str] = frozenset()
    scope: int = -1
    stretches: int = -1


def lifetimes(kernel: Op) -> list[AllocatedBuffer]:
    """The on-chip buffers of a kernel, in order of their allocs."""
    walk = _Walk()
    walk.block(kernel.regions[0].blocks[0])
    for uses in walk.uses.values():
        buffer = uses.buffer
        _scan(uses.touches, uses.depth, buffer, [])
        buffer.pipes = frozenset(touch.pipe for touch in uses.touches)
        buffer.filled_by = frozenset(touch.pipe for touch in uses.touches if touch.fills)
        buffer.stretches = _stretches(uses)
    return [uses.buffer for uses in walk.uses.values()]


@dataclass(eq=False)
class _Stretch:
    """A loop or branch, or all operations between two of them in a block, from time `start` to time
    `end`."""

    start: int
    end: int = 0


@dataclass(eq=False)
class _Statement:
    """An operation of a block, from time `start` to time `end`."""

    op: Op
    block: ir.Block
    stretch: _Stretch
    start: int
    end: int = 0


@dataclass(frozen=True)
class _Touch:
    """What an operation does to a buffer.

    Attributes:
        path: the statements around it, outermost first, and itself.
        pipe: that does it.
        reads: bytes that it may need.
        writes: bytes that it writes for sure.
        fills: whether it writes at all.
    """

    path: tuple[_Statement, ...]
    pipe: str
    reads: tuple[StridedRegion, ...] = ()
    writes: tuple[StridedRegion, ...] = ()
    fills: bool = False


@dataclass(eq=False)
class _BufferUses:
    """A buffer, how many statements are around its alloc, and what touches it in textual order."""

    buffer: AllocatedBuffer
    depth: int
    touches: list[_Touch] = field(default_factory=list)


class _Walk:
    """One walk over the operations of a kernel in textual order.

    Attributes:
        uses: of the buffers, by the result of their alloc.
    """

    def __init__(self) -> None:
        self.uses: dict[ir.Value, _BufferUses] = {}
        self._accesses = Accesses(Forms(), planned=False)
        self._time = 0
        self._path: list[_Statement] = []
        self._roots: dict[ir.Value, _BufferUses] = {}

    def block(self, block: ir.Block) -> None:
        first, start = len(self.uses), self._time
        stretch = _Stretch(start)
        for view in block.operations:
            op, now = view.operation, self._tick()
            nested = len(op.regions) > 0
            if nested:
                stretch = _Stretch(now)
            statement = _Statement(op, block, stretch, now)
            self._path.append(statement)
            self._visit(op)
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)
            self._path.pop()
            statement.end = stretch.end = self._tick()
            if nested:
                stretch = _Stretch(self._time)
        if block.owner.operation.name == "scf.if":
            for uses in [*self.uses.values()][first:]:
                if uses.buffer.scope < 0:
                    uses.buffer.scope = _times(start, self._time - 1)

    def _tick(self) -> int:
        self._time += 1
        return self._time - 1

    def _visit(self, op: Op) -> None:
        if op.name == "memref.alloc":
            space = space_name(op.result.type)
            if space != "GM":
                uses = _BufferUses(AllocatedBuffer(op, space, alloc_bytes(op)), len(self._path) - 1)
                self.uses[op.result] = self._roots[op.result] = uses
            return
        used = [value for value in op.operands if value in self._roots]
        if used and op.name in VIEWS:
            self._roots[op.result] = self._roots[op.operands[0]]
            return
        if used and any(isinstance(result.type, ir.MemRefType) for result in op.results):
            fail(op, "makes a view that lifetimes do not follow", expected=", ".join(sorted(VIEWS)))
        effects = effects_of(op)
        path = tuple(self._path)
        if effects is None:
            for value in used:
                uses = self._roots[value]
                everything = span(0, uses.buffer.size_bytes)
                uses.touches.append(_Touch(path, "", (everything,)))
            return
        for uses in dict.fromkeys(self._roots[value] for value in used):
            uses.touches.append(self._touch(op, effects, uses, path))

    def _touch(
        self, op: Op, effects: Effects, uses: _BufferUses, path: tuple[_Statement, ...]
    ) -> _Touch:
        reads: list[StridedRegion] = []
        writes: list[StridedRegion] = []
        size = uses.buffer.size_bytes
        mine = [value for value in effects.writes if self._roots.get(value) is uses]
        for value in effects.reads:
            if self._roots.get(value) is uses:
                found = _regions(self._access(value, op, self._accesses.of_view))
                reads += [span(0, size)] if found is None else found
        for value in mine if effects.whole else ():
            writes += _regions(self._access(value, op, self._accesses.of_elements)) or []
        return _Touch(path, effects.pipe, tuple(reads), tuple(writes), bool(mine))

    def _access(
        self, value: ir.Value, op: Op, whole: Callable[[ir.Value, Op], ByteAccess]
    ) -> ByteAccess:
        if op.name == "memref.load":
            return self._accesses.of_element(value, list(op.operands)[1:], op)
        if op.name == "memref.store":
            return self._accesses.of_element(value, list(op.operands)[2:], op)
        return whole(value, op)


def _regions(access: ByteAccess) -> list[StridedRegion] | None:
    """The bytes of an access, None if it is not known where they are or they are many pieces."""
    count = math.prod(n for n, _ in access.dims[1:])
    if access.offset.terms or count > MOST_RUNS:
        return None
    found = [span(access.offset.constant, access.run)] if access.run else []
    for number, (size, stride) in enumerate(access.dims):
        if not number:
            found = [StridedRegion(one.start, size, stride, one.run) for one in found]
            continue
        found = [
            StridedRegion(one.start + i * stride, one.count, one.stride, one.run)
            for one in found
            for i in range(size)
        ]
    return found


def _stretches(uses: _BufferUses) -> int:
    """The times of the stretches of the alloc's block that a buffer is used or needed in."""
    times = uses.buffer.live
    for stretch in dict.fromkeys(touch.path[uses.depth].stretch for touch in uses.touches):
        times |= _times(stretch.start, stretch.end)
    return times


def _scan(
    touches: Sequence[_Touch], depth: int, buffer: AllocatedBuffer, after: list[StridedRegion]
) -> list[StridedRegion]:
    """Marks when a buffer is live in a block.

    Args:
        touches: in the block.
        depth: statements around the block.
        after: what is needed of the buffer after the block.

    Returns:
        What is needed of it before the block.
    """
    groups = groupby(touches, lambda touch: touch.path[depth])
    live, later = after, None
    for statement, group in reversed([(statement, list(group)) for statement, group in groups]):
        if live and later is not None:
            _mark(buffer, statement.end, later.start)
        later = statement
        if group[0].path[-1] is statement:
            _mark(buffer, statement.start, statement.end)
            live = _before(group[0], live)
        else:
            live = _nested(statement, group, depth, buffer, live)
    return live


def _before(touch: _Touch, live: list[StridedRegion]) -> list[StridedRegion]:
    for region in touch.writes:
        live = without(live, region)
    return list(dict.fromkeys([*live, *touch.reads]))


def _nested(
    statement: _Statement,
    group: list[_Touch],
    depth: int,
    buffer: AllocatedBuffer,
    live: list[StridedRegion],
) -> list[StridedRegion]:
    """`_scan` of a loop or branch.

    What is needed after it, or by a later iteration, is there all the time; a value that is written
    and read in one iteration is not.
    """
    groups = groupby(group, lambda touch: touch.path[depth + 1].block)
    blocks = {block: list(touches) for block, touches in groups}
    if statement.op.name == "scf.if":
        before = []
        for region in statement.op.regions:
            touches = blocks.get(next(iter(region.blocks), None), [])
            before += _scan(touches, depth + 1, buffer, live)
    else:
        before = list(live)
        for touches in blocks.values():
            before += _scan(touches, depth + 1, buffer, [])
    if before or live:
        _mark(buffer, statement.start, statement.end)
    return list(dict.fromkeys(before))


def _mark(buffer: AllocatedBuffer, first: int, last: int) -> None:
    buffer.live |= _times(first, last)


def _times(first: int, last: int) -> int:
    """The times from one to another as bits."""
    return ((1 << (last - first + 1)) - 1) << first


def alloc_bytes(alloc: Op) -> int:
    """Bytes of an alloc, which must have a static shape and identity layout."""
    buffer_type = alloc.result.type
    if not buffer_type.has_static_shape or isinstance(buffer_type.layout, ir.StridedLayoutAttr):
        fail(
            alloc,
            "cannot be given an address",
            found=str(buffer_type),
            expected="a static shape and no layout",
        )
    size_bits: int = math.prod(buffer_type.shape) * buffer_type.element_type.width
    return size_bits // 8
