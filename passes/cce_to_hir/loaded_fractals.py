"""Where the fractals in L0A and L0B that products read were loaded from.

A factor may be made by several loads, each of a rectangle of its fractals, and be a part of what a
load leaves. The load that wrote a fractal last is found by going back from the product, out of the
loops around it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.effects import effects_of
from davinci.dialects.cce.windows import LoadedWindows
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.analysis.lifetimes import viewed_buffer
from davinci.units import FRACTAL_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

LOADS = ("cce.load2d", "cce.load3d")
RELEASES = ("cce.set_core_flag", "cce.sync_cores", "cce.sync_and_copy", "cce.read_counter")
"""Operations behind which another core may overwrite what was read in front of them."""

Fractals = dict[int, tuple[int, int]]
"""Row and column in a view, by the number of the fractal in its buffer."""


@dataclass(frozen=True)
class LoadedFractals:
    """The fractals that a load writes to L0A or L0B, and where in L1 each of them lies.

    Attributes:
        op: the load.
        places: of its fractals in L0A or L0B.
        source, words: the buffer in L1, and its elements as the load has them.
        offset: of the first fractal in it, in elements.
        steps: from a row of fractals to the next, and from a column to the next, in elements.
        lanes: elements of a row of a fractal.
        turned: whether fractals are transposed.
    """

    op: Op
    places: Fractals
    source: ir.Value
    words: ir.Value
    offset: int
    steps: tuple[int, int]
    lanes: int
    turned: bool

    @staticmethod
    def of(load: Op) -> LoadedFractals | None:
        """What a load makes; None if it takes windows of more than one pixel, or its source is no
        view at a known place."""
        source, target = load.operands[0], list(load.operands)[-1]
        places = fractals_of(target)
        if places is None or not plain_view(source):
            return None
        view = buffer_of(source)
        offset, steps = view.offset or 0, (view.strides[0], view.strides[1])
        if load.name == "cce.load3d":
            windows, first = LoadedWindows.of(load), first_pixel(load)
            pixels = windows.height * windows.width
            one = (1, 1)
            if (windows.kernel, windows.strides, windows.left, windows.right) != (one, one, 0, 0):
                return None
            if first is None or first + windows.windows * SIDE > pixels:
                return None
            offset += first * view.block + windows.element * view.strides[0]
            steps = (SIDE * view.block, view.strides[0])
            if buffer_of(target).space == "L0B":
                steps = steps[::-1]
        turned = bool(attribute(load, "transpose", False))
        buffer, words = viewed_buffer(source), source.owner.operands[0]
        return LoadedFractals(load, places, buffer, words, offset, steps, view.block, turned)

    def part(
        self, first: tuple[int, int], sizes: tuple[int, int], across: bool, lanes: int
    ) -> ir.Value:
        """A view in L1 of some of the fractals.

        Args:
            first: row and column of the first one.
            sizes: rows and columns.
            across: whether columns come first in the view.
            lanes: elements of a row of a fractal in the view; twice as many as were loaded are
                bytes of words.
        """
        offset = self.offset + sum(i * step for i, step in zip(first, self.steps, strict=True))
        order, ratio = (1, 0) if across else (0, 1), lanes // self.lanes
        shape = [*(sizes[i] for i in order), SIDE, lanes]
        strides = [*(ratio * self.steps[i] for i in order), lanes, 1]
        source = self.words if ratio == 1 else self.source
        return builder.restride(source, shape, strides, ratio * offset)


@dataclass(frozen=True)
class LoadedPart:
    """A rectangle of the fractals of a factor, which one load made.

    Attributes:
        rows, columns: of the factor.
        moved: what is added to them for the rows and columns of the load.
        load: that made it.
    """

    rows: range
    columns: range
    moved: tuple[int, int]
    load: LoadedFractals

    def view(self, rows: range, columns: range, across: bool, lanes: int) -> ir.Value:
        """Some of its rows and columns, see `LoadedFractals.part`."""
        first = rows.start + self.moved[0], columns.start + self.moved[1]
        return self.load.part(first, (len(rows), len(columns)), across, lanes)


class BlockOrders:
    """The operations of each block of a kernel in their order, and what they do to memory.

    `given` are arguments that none of the programs of a launch writes to.
    """

    def __init__(self, kernel: Op, given: Container[ir.Value] = ()) -> None:
        self._given = given
        self._lines: dict[ir.Block, list[ir.Operation]] = {}
        self._places: dict[ir.Operation, int] = {}
        self._loads: dict[ir.Operation, LoadedFractals | None] = {}
        for op in operations(kernel):
            for region in op.regions:
                for block in region:
                    line = [view.operation for view in block.operations]
                    self._lines[block] = line
                    self._places |= {each: number for number, each in enumerate(line)}
            if op.name in LOADS:
                self._loads[op.operation] = LoadedFractals.of(op)
        self._filled = filled_buffers(kernel)

    def parts_of(self, mad: Op, factor: ir.Value) -> list[LoadedPart] | None:
        """What a product reads as rectangles of one load each; None if something else wrote it, or
        different loads in different turns of a loop."""
        missing = fractals_of(factor)
        if missing is None:
            return None
        buffer = viewed_buffer(factor)
        found: list[LoadedPart] = []
        for op, inside in self._in_front_of(mad):
            writers = [each for each in operations(op) if buffer in written(each)]
            for writer in writers:
                load = self._loads.get(writer.operation)
                own = fractals_of(list(writer.operands)[-1])
                if own is not None and not own.keys() & missing.keys():
                    continue
                if load is None or inside or writer.operation != op:
                    return None
                part = rectangle(missing, load)
                if part is None:
                    return None
                found.append(part)
                missing = {n: place for n, place in missing.items() if n not in load.places}
            if not missing:
                return self._with_fills_joined(found)
        return None

    def _with_fills_joined(self, parts: list[LoadedPart]) -> list[LoadedPart]:
        """Parts that were loaded from a buffer full of one number, often from the same place of it,
        are one part where the buffer is as large as they are together."""
        others = [part for part in parts if part.load.source not in self._filled]
        for source in {part.load.source: None for part in parts if part not in others}:
            alike = [part for part in parts if part.load.source == source]
            joined = joined_fill(alike, self._filled[source])
            others += alike if joined is None else [joined]
        return others

    def _in_front_of(self, mad: Op) -> Iterator[tuple[ir.Operation, bool]]:
        """Operations that may run before a product, the last one first, out of the blocks around
        it. Loops around it come whole, marked."""
        at = mad.operation
        while True:
            for op in reversed(self._lines[at.block][: self._places[at]]):
                yield op, False
            parent = at.parent
            if parent is None or parent.operation.name == "func.func":
                return
            at = parent.operation
            yield at, True

    def overwriting(self, load: LoadedFractals, mad: Op) -> list[ir.Operation] | None:
        """Operations of the block of a load that overwrite what it read before a product behind it
        comes; None if one is inside of what is around the product."""
        around = self._around(mad, load.op)
        first, last = self._places[load.op.operation], self._places[around]
        line = self._lines[around.block][first + 1 : last]
        if around != mad.operation and any(load.source in written(op) for op in operations(around)):
            return None
        return [op for op in line if any(load.source in written(each) for each in operations(op))]

    def _around(self, mad: Op, load: Op) -> ir.Operation:
        """The operation that holds a product, in the block of a load in front of it: the product
        itself, or the outermost loop or branch around it there."""
        around = mad.operation
        while around.block != load.operation.block:
            parent = around.parent
            assert parent is not None, "the load is in front of the product"
            around = parent.operation
        return around

    def sink(self, op: ir.Operation, mad: Op) -> bool:
        """Moves an operation behind a product, or what is around that in the same block; False, and
        nothing is done, if it may not pass what lies between."""
        around = self._around(mad, op)
        line = self._lines[op.block]
        first, last = self._places[op], self._places[around]
        if last < first:
            return True
        if not all(self._may_pass(op, other) for other in line[first + 1 : last + 1]):
            return False
        op.move_after(around)
        line[first : last + 1] = [*line[first + 1 : last + 1], op]
        self._places |= {each: number for number, each in enumerate(line)}
        return True

    def _may_pass(self, op: Op, other: Op) -> bool:
        """Whether an operation may come behind another one that is behind it now."""
        inside = operations(other)
        writes = {buffer for each in operations(op) for buffer in written(each)}
        reads = {buffer for each in operations(op) for buffer in read(each)}
        if any(each.name in RELEASES for each in inside):
            return all(buffer in self._given for buffer in reads)
        return not any(written(each) & (writes | reads) or read(each) & writes for each in inside)


def written(op: Op) -> set[ir.Value]:
    """The buffers that an operation writes to."""
    found = effects_of(op)
    return set() if found is None else {viewed_buffer(value) for value in found.writes}


def read(op: Op) -> set[ir.Value]:
    """The buffers that an operation reads from."""
    found = effects_of(op)
    return set() if found is None else {viewed_buffer(value) for value in found.reads}


def filled_buffers(kernel: Op) -> dict[ir.Value, int]:
    """For buffers in L1 that only one operation writes to, which fills them from their beginning on
    with one number, how many elements it fills."""
    writers: dict[ir.Value, list[Op]] = {}
    for op in operations(kernel, "cce"):
        for buffer in written(op):
            writers.setdefault(buffer, []).append(op)
    found = {}
    for buffer, those in writers.items():
        if len(those) == 1 and those[0].name == "cce.clear_l1":
            view = buffer_of(those[0].operands[0])
            if (view.shape[0], view.offset) == (1, 0):
                found[buffer] = view.shape[1]
    return found


def joined_fill(parts: Sequence[LoadedPart], elements: int) -> LoadedPart | None:
    """One part for some that were loaded from a buffer of so many equal elements; None if they are
    no rectangle, or the buffer is smaller."""
    spans = [
        range(min(each.start for each in ranges), max(each.stop for each in ranges))
        for ranges in ([part.rows for part in parts], [part.columns for part in parts])
    ]
    rows, columns = spans
    count = sum(len(part.rows) * len(part.columns) for part in parts)
    load = parts[0].load
    fractal = SIDE * load.lanes
    if count != len(rows) * len(columns) or count * fractal > elements:
        return None
    steps = (len(columns) * fractal, fractal)
    return LoadedPart(
        rows, columns, (-rows.start, -columns.start), replace(load, offset=0, steps=steps)
    )


def rectangle(wanted: Fractals, load: LoadedFractals) -> LoadedPart | None:
    """The part of a factor that a load made; None if it is no rectangle, or its rows lie otherwise
    in the factor than in what the load made."""
    common = wanted.keys() & load.places.keys()
    pairs = [(wanted[number], load.places[number]) for number in common]
    rows, columns = ({place[i] for place, _ in pairs} for i in range(2))
    moves = {(own[0] - place[0], own[1] - place[1]) for place, own in pairs}
    if len(moves) > 1 or len(rows) * len(columns) != len(pairs):
        return None
    across, along = (range(min(each), max(each) + 1) for each in (rows, columns))
    if len(across) * len(along) != len(pairs):
        return None
    return LoadedPart(across, along, moves.pop(), load)


def fractals_of(value: ir.Value) -> Fractals | None:
    """The fractals of a view of L0A or L0B; None if its place is one that the program computes."""
    view = buffer_of(value)
    if view.offset is None or len(view.shape) != len(("row", "column", "i", "j")):
        return None
    elements = FRACTAL_BYTES // view.itemsize
    first, rest = divmod(view.offset, elements)
    row, column = view.strides[0] // elements, view.strides[1] // elements
    if rest:
        return None
    return {
        first + r * row + c * column: (r, c)
        for r in range(view.shape[0])
        for c in range(view.shape[1])
    }


def see_bytes(kernel: Op) -> None:
    """Makes buffers of words in L1 views of buffers of bytes."""
    for alloc in operations(kernel, "memref.alloc"):
        kind = ir.MemRefType(alloc.results[0].type)
        view = buffer_of(alloc.results[0])
        if view.space == "L1" and view.itemsize > 1:
            with ir.InsertionPoint(alloc), alloc.location:
                i8 = ir.IntegerType.get_signless(8)
                raw = builder.alloc([math.prod(view.shape) * view.itemsize], i8, view.space)
                words = builder.viewed(raw, kind.shape, kind.element_type)
            alloc.results[0].replace_all_uses_with(words)
            alloc.erase()


def first_pixel(load: Op) -> int | None:
    """The pixel at which a load of windows of one pixel begins, None if the program computes it."""
    first, top = (known(value) for value in list(load.operands)[1:3])
    if first is None or top is None or top < 0:
        return None
    return first + top * int(buffer_of(load.operands[0]).shape[2])


def known(value: ir.Value) -> int | None:
    """The number that a constant is."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def plain_view(value: ir.Value) -> bool:
    """Whether a value is a `memref.reinterpret_cast`, with a constant place, of what another
    operation makes."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "memref.reinterpret_cast":
        return False
    return len(owner.operands) == 1 and not isinstance(owner.operands[0].owner, ir.Block)
