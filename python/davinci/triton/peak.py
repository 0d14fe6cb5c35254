"""Which buffers of a kernel are live at the same time, where they do not fit.

The vendor's compiler says how many bytes a kernel needs and has, and stops. What it printed before
it planned addresses has the buffers: their sizes, the operations that use them, and the lines of
Python these come from. A buffer is live from the first operation that uses it to the last; what is
used inside of a loop and made outside of it is live through the whole loop. The result of an
operation that goes element by element takes the place of an operand that ends there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.frontends.hivm import kernels_of, parse
from davinci.mlir import Op, ir, location_text, make_context
from davinci.units import BLOCK_BYTES, ceil_div

ALLOCATION = "memref.alloc"
IN_PLACE = re.compile(
    r"^hir\.v(?!brc|reduce|transpose|cumsum|cumprod|concat|interleave|deinter)\w+$"
)
"""Operations of which each element of the result depends on the same elements of the operands."""

BITS = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class LiveBuffer:
    """A buffer of a kernel.

    Attributes:
        size: in bytes, whole blocks.
        kind: its shape and element type, `64x64xf32`.
        place: file, line and column that it belongs to, "" where the text has none.
        first, last: numbers of the operations between which it is live.
    """

    size: int
    kind: str
    place: str
    first: int
    last: int


class BufferAccount:
    """Buffers of one memory in a function, by the operations that use them."""

    def __init__(self, function: Op, space: str) -> None:
        self.space = space
        self.count = 0
        self.roots: dict[ir.Value, tuple[ir.Value, ...]] = {}
        """Buffers that a value may be in."""
        self.buffers: dict[ir.Value, LiveBuffer] = {}
        self.replaced: dict[ir.Value, ir.Value] = {}
        self.made: dict[ir.Value, tuple[int, ...]] = {}
        """For each buffer the loops around its allocation, by the number of their first
        operation."""
        self.loops: list[int] = []
        for block in function.regions[0]:
            self.block(block)

    def block(self, block: ir.Block) -> None:
        for view in block.operations:
            self.operation(view.operation)

    def operation(self, op: Op) -> None:
        """Notes what an operation makes and uses, then those inside it."""
        self.count += 1
        if op.name == ALLOCATION:
            self.allocate(op)
            return
        used = {root for operand in op.operands for root in self.roots.get(operand, ())}
        for root in used:
            self.use(root, op)
        if IN_PLACE.match(op.name):
            self.put_in_place(op)
        if used:
            for result in op.results:
                if isinstance(result.type, ir.MemRefType):
                    self.roots[result] = tuple(used)
        begin = self.count
        if op.name.startswith("scf.for") or op.name == "scf.while":
            self.loops.append(begin)
            self.regions(op, tuple(used))
            self.loops.pop()
            self.through(begin)
        elif op.regions:
            self.regions(op, tuple(used))

    def regions(self, op: Op, used: tuple[ir.Value, ...]) -> None:
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    if isinstance(argument.type, ir.MemRefType):
                        self.roots[argument] = used
                self.block(block)

    def allocate(self, op: Op) -> None:
        (value,) = op.results
        kind = ir.MemRefType(value.type)
        if self.space not in str(kind.memory_space or ""):
            return
        size = ceil_div(elements_of(kind) * bits_of(kind.element_type), 8)
        text = "x".join([*map(str, kind.shape), str(kind.element_type)])
        place = known(location_text(op.location))
        self.roots[value] = (value,)
        self.made[value] = tuple(self.loops)
        whole = ceil_div(size, BLOCK_BYTES) * BLOCK_BYTES
        self.buffers[value] = LiveBuffer(whole, text, place, 0, 0)

    def use(self, root: ir.Value, op: Op) -> None:
        """A buffer is live here; in loops that it was made outside of, from their begin on."""
        outside = [at for at in self.loops if at not in self.made[root]]
        here = min([self.count, *outside])
        found = self.buffers[root]
        place = found.place or known(location_text(op.location))
        first = min(found.first or here, here)
        self.buffers[root] = replace(found, place=place, first=first, last=self.count)

    def through(self, begin: int) -> None:
        """Buffers from outside of a loop that ends here are live to its end."""
        for root, buffer in self.buffers.items():
            if buffer.last >= begin and begin not in self.made[root]:
                self.buffers[root] = replace(buffer, last=self.count)

    def put_in_place(self, op: Op) -> None:
        """The last operand is the result: it may take the place of another that ends here."""
        roots = [self.roots.get(operand, ()) for operand in op.operands]
        memories = [each[0] for each in roots if len(each) == 1]
        if len(memories) > 1 and self.buffers[memories[-1]].first == self.count:
            for source in memories[:-1]:
                if self.buffers[source].size >= self.buffers[memories[-1]].size:
                    self.replaced[memories[-1]] = source
                    return

    def live(self) -> list[LiveBuffer]:
        """All buffers; where one takes the place of another, that one ends before."""
        ends = dict(self.buffers)
        for result, source in self.replaced.items():
            if ends[source].last == self.buffers[result].first:
                ends[source] = replace(ends[source], last=ends[source].last - 1)
        return [buffer for buffer in ends.values() if buffer.first]


def elements_of(kind: ir.MemRefType) -> int:
    return math.prod(kind.shape) if kind.has_static_shape else 0


def bits_of(element: ir.Type) -> int:
    matched = BITS.search(str(element))
    return int(matched.group(1)) if matched else 64


def known(place: str) -> str:
    """A place in a file, "" for any other."""
    return place if re.search(r":\d+:\d+$", place) else ""


def at_peak(buffers: list[LiveBuffer]) -> list[LiveBuffer]:
    """The buffers that are live when most bytes are in use, the largest first."""
    moments = {buffer.first for buffer in buffers}
    best: list[LiveBuffer] = []
    for moment in sorted(moments):
        live = [buffer for buffer in buffers if buffer.first <= moment <= buffer.last]
        if sum(b.size for b in live) > sum(b.size for b in best):
            best = live
    return sorted(best, key=lambda buffer: (-buffer.size, buffer.first))


def live_buffers(text: str, space: str) -> list[LiveBuffer]:
    """The buffers that are live at the peak of a memory.

    Args:
        text: a log with text of AscendNPU-IR before addresses are planned.
        space: the memory as that text names it, `ub`, `cbuf` or `cc`.
    """
    module = parse(text, make_context())
    found = [
        at_peak(BufferAccount(function.operation, space).live())
        for kernel in kernels_of(module)
        for function in kernel.functions.values()
    ]
    return max(found, key=lambda each: sum(b.size for b in each), default=[])


def listed(buffers: list[LiveBuffer], most: int = 6) -> Iterator[str]:
    """Buffers in words, those of one line together: `2 of 131072xf32 (1,048,576 bytes) of
    k.py:14`."""
    groups = Counter((b.place.rpartition(":")[0], b.kind, b.size) for b in buffers)
    for (place, kind, size), count in list(groups.items())[:most]:
        many = f"{count} of " if count > 1 else ""
        owner = f" of {place}" if place else ""
        yield f"{many}{kind} ({count * size:,} bytes){owner}"
    left = sum(list(groups.values())[most:])
    if left:
        yield f"{left} smaller ones"
