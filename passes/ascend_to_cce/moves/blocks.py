"""Builds the kernel that moves blocks of an array, see `davinci.schedule.moves.blocks`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir, memref, scf
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.transfers import element_of
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    Stretches,
    TileSegment,
    for_tiles,
    mark_scalar,
    portion_parts,
    segments,
    share_blocks,
    stretches,
    unflatten,
)
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    divided,
    for_loop,
    mul,
    remainder,
    restride,
    subview,
)
from davinci.schedule.moves.blocks import BY_RUNS, IN_LINES, IN_UB, BlockMove, BlockPlan
from davinci.schedule.moves.portions import Portions
from davinci.schedule.moves.transfers import blocks_of_run
from davinci.units import round_up, row_major

Place = list[IndexLike]
"""Where something begins, along each dimension."""


class BlockFinder:
    """Finds where blocks begin, from indices in GM."""

    move: BlockMove
    indices: ir.Value
    first: IndexLike = 0
    """The number among all of the first index in `indices`."""

    @contextmanager
    def _where(self, item: IndexLike) -> Iterator[Place]:
        """Builds what is done with a block, if it is not left out; where it begins, along the
        dimensions up to the first of its runs."""
        move = self.move
        begin: Place = list(move.starts)
        inside: ir.Value | None = None
        for d, inner in enumerate(move.batch):
            if inner:
                begin[d] = remainder(divided(item, inner), move.array.shape[d])
        for column, axis in enumerate(move.axes):
            index = self._index(add(mul(item, len(move.axes)), column))
            size, most = move.array.shape[axis], move.array.shape[axis] - move.block[axis]
            if move.wrap[column]:
                negative = compare("slt", index, 0)
                from_end = arith.AddIOp(index, as_value(size)).result
                index = arith.SelectOp(negative, from_end, index).result
            if move.skip:
                fits = compare("ule", index, most)
                inside = fits if inside is None else arith.AndIOp(inside, fits).result
            else:
                low = arith.MaxSIOp(index, as_value(0)).result
                index = arith.MinSIOp(low, as_value(most)).result
            begin[axis] = index
        place = begin[: move.split + 1]
        if inside is None:
            yield place
            return
        branch = scf.IfOp(inside)
        with ir.InsertionPoint(branch.then_block):
            yield place
            scf.YieldOp([])

    def _index(self, position: IndexLike) -> ir.Value:
        """An index, by its number among all."""
        position = add(position, mul(self.first, -1))
        value = memref.LoadOp(self.indices, [as_value(position)]).result
        return arith.IndexCastOp(ir.IndexType.get(), value).result


class BlockBuilder(BlockFinder):
    """Builds the kernel of a plan.

    Args:
        arguments: the buffers of the graph's inputs, then of its output. Of an update the array's
            buffer is the output's: only that one is touched.
    """

    def __init__(self, plan: BlockPlan, arguments: Sequence[ir.Value], target: Target) -> None:
        self.schedule, self.target = plan.schedule, target
        self.move = move = plan.schedule.move
        self.block = plan.machine.vector.block_bytes // move.array.bytes_each
        of = dict(zip(plan.graph.inputs, arguments, strict=False))
        array, *moved, self.indices = (of[value] for value in plan.graph.nodes[0].values)
        if move.update:
            array = arguments[-1]
        else:
            moved = [arguments[-1]]
        self.element = element_of(array)
        lines = [*move.array.shape[: move.split], move.line]
        self.array = restride(array, lines, row_major(lines))
        runs = [move.count, *move.outer, move.run]
        self.moved = restride(moved[0], runs, row_major(runs))
        columns = [move.count * len(move.axes)]
        self.indices = restride(self.indices, columns, [1])

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        schedule = self.schedule
        if schedule.scalar:
            mark_scalar(ir.InsertionPoint.current.block.owner)
            parts = self._scalar_parts()
        elif schedule.way == IN_UB:
            parts = ElementsInUb(self).parts()
        else:
            self.buffers = {size: self._buffers(size) for size in self._sizes()}
            parts = self._parts()
        return max(1, share_blocks(parts, self.target))

    def _sizes(self) -> list[int]:
        """Lengths of the portions of a run."""
        if self.schedule.way == IN_LINES:
            return [self.block]
        return sorted({size for _, of in stretches(self.schedule.run) for _, size in of(0)})

    def _buffers(self, size: int) -> list[ir.Value]:
        """Buffers for the pieces of a portion of a run, each [items, ..tile, piece]."""
        schedule = self.schedule
        behind = self.move.outer[schedule.level + 1 :]
        items = schedule.items.largest if schedule.way == BY_RUNS else 1
        front = [items, *[1] * schedule.level, schedule.chunk, *behind]
        pieces = blocks_of_run(size, self.block)
        return [alloc([*front, wide], self.element, "UB") for _, wide in pieces]

    def _parts(self) -> list[AlikeWork]:
        """Tiles of the dimensions outside of runs, by portions of the runs; of a gather also by
        portions of the blocks."""
        schedule, outer = self.schedule, self.move.outer
        level, before = schedule.level, list(outer[: schedule.level])
        found = []
        for rows in segments(outer[level], schedule.chunk):
            tile = [*[1] * level, rows.size, *outer[level + 1 :]]
            for count, of in self._shared_items():

                def build(
                    number: IndexLike,
                    start: IndexLike,
                    size: int,
                    rows: TileSegment = rows,
                    tile: list[int] = tile,
                    count: int = count,
                    of: Callable[[IndexLike], Stretches] | None = of,
                ) -> None:
                    *front, position, item = unflatten(number, [*before, rows.count, count])
                    at = [*front, rows.start(position), *[0] * (len(outer) - level - 1)]
                    if of is None:
                        for_portions(
                            self.schedule.items,
                            lambda first, items: self._tile(at, tile, first, items, start, size),
                        )
                        return
                    for first, items in of(item):
                        self._tile(at, tile, first, items, start, size)

                times = math.prod(before) * rows.count * count
                found += portion_parts(schedule.run, build, times)
        return found

    def _shared_items(self) -> list[tuple[int, Callable[[IndexLike], Stretches] | None]]:
        """The blocks of a gather as pieces of work; those of an update are done in order by all."""
        return [(1, None)] if self.move.update else [*stretches(self.schedule.items)]

    def _tile(
        self, at: Place, tile: list[int], first: IndexLike, items: int, start: IndexLike, size: int
    ) -> None:
        """Moves a tile of some blocks: a portion of their runs from `start` on."""
        if self.schedule.way == IN_LINES:
            with self._where(first) as begin:
                self._in_lines(at, tile, first, begin)
            return
        pieces = list(zip(blocks_of_run(size, self.block), self.buffers[size], strict=True))

        def together() -> None:
            for (offset, wide), buffer in pieces:
                shape = [items, *tile, wide]
                place = [first, *at, add(start, offset)]
                gm = part(self.moved, place, shape)
                self._copy(part(buffer, [0] * len(shape), shape), gm, load=self.move.update)

        def one(index: IndexLike) -> None:
            with self._where(add(first, index)) as begin:
                where = self._in_array(at, begin, start)
                for (offset, wide), buffer in pieces:
                    held = part(buffer, [index, *[0] * (len(tile) + 1)], [1, *tile, wide])
                    place = [*where[:-1], add(where[-1], offset)]
                    gm = part(self.array, place, [*tile, wide])
                    self._copy(held, gm, load=not self.move.update)

        if self.move.update:
            together()
        for_tiles(TileSegment(0, items, 1), one)
        if not self.move.update:
            together()

    def _in_lines(self, at: Place, tile: list[int], item: IndexLike, begin: Place) -> None:
        """Changes a block of 32 bytes of each line of a tile."""
        *front, place = self._in_array(at, begin, 0)
        last = as_value(self.move.line - self.block)
        window = arith.MinSIOp(as_value(place), last).result
        column = arith.SubIOp(as_value(place), window).result
        (buffer,) = self.buffers[self.block]
        shape = [*tile, self.block]
        held = part(buffer, [0] * (len(shape) + 1), [1, *shape])
        gm = part(self.array, [*front, window], shape)
        self._copy(held, gm, load=True)

        def store(row: Place) -> None:
            with for_loop(0, self.move.run) as element:
                source = [item, *(add(a, r) for a, r in zip(at, row, strict=True)), element]
                value = memref.LoadOp(self.moved, [as_value(i) for i in source]).result
                target = [0, *row, add(column, element)]
                memref.StoreOp(value, buffer, [as_value(i) for i in target])

        nest(tile, store)
        self._copy(held, gm, load=False)

    def _scalar_parts(self) -> list[AlikeWork]:
        """Blocks by single elements: one piece of work each; those of an update together."""
        move = self.move

        def block(item: IndexLike) -> None:
            with self._where(item) as begin:

                def element(place: Place) -> None:
                    *at, column = place
                    where = [as_value(i) for i in self._in_array(at, begin, column)]
                    source = [as_value(i) for i in (item, *place)]
                    pairs = [(self.moved, source), (self.array, where)]
                    (read, there), (written, here) = pairs if move.update else pairs[::-1]
                    memref.StoreOp(memref.LoadOp(read, there).result, written, here)

                nest([*move.outer, move.run], element)

        if move.update:
            return [AlikeWork(1, lambda _: for_tiles(TileSegment(0, move.count, 1), block))]
        return [AlikeWork(move.count, block)]

    @staticmethod
    def _copy(ub: ir.Value, gm: ir.Value, load: bool) -> None:
        cce.copy(*((gm, ub) if load else (ub, gm)))

    def _in_array(self, at: Place, begin: Place, start: IndexLike) -> Place:
        """Where element `start` of the run at `at` of a block lies in the array."""
        split = self.move.split
        front = [add(b, a) for b, a in zip(begin[:split], at, strict=True)]
        return [*front, add(mul(begin[split], self.move.inner), start)]


class ElementsInUb:
    """A gather of single elements of what is copied to UB, of the blocks of a builder."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder, self.schedule = builder, builder.schedule
        move, tile = builder.move, builder.schedule.items.largest
        self.move, self.columns = move, len(move.axes)
        self.row = move.array.count // move.array.shape[1]
        self.by_rows = builder.schedule.rows < move.array.shape[1]
        self.held = builder.schedule.held(builder.block)
        whole = round_up(move.array.count, builder.block)
        self.given, self.array = builder.indices, restride(builder.array, [whole], [1])
        self.last = whole - self.held
        self.moved = restride(builder.moved, [move.count * move.each], [1])
        index = element_of(self.given)
        self.own = alloc([self.held], builder.element, "UB")
        self.indices = alloc([tile * self.columns], index, "UB")
        self.tile = alloc([tile * move.each], builder.element, "UB")

    def parts(self) -> list[AlikeWork]:
        """Tiles of blocks; what all of them read is copied before."""
        self.builder.indices = self.indices
        if not self.by_rows:
            cce.copy(self.array, self.own)
        size = self.schedule.items.largest
        return [self._tiles(tiles) for tiles in segments(self.move.count, size)]

    def _tiles(self, tiles: TileSegment) -> AlikeWork:
        columns, each = self.columns, self.move.each

        def tile(number: IndexLike) -> None:
            first, size = tiles.start(number), tiles.size
            begun: IndexLike = 0
            if self.by_rows:
                start = mul(divided(first, self.move.per_row), self.row)
                start = add(start, mul(remainder(start, self.builder.block), -1))
                begun = arith.MinSIOp(as_value(start), as_value(self.last)).result
                cce.copy(subview(self.array, [begun], [self.held]), self.own)
            indices = subview(self.given, [mul(first, columns)], [size * columns])
            cce.copy(indices, subview(self.indices, [0], [size * columns]), round_up=True)
            self.builder.first = mul(first, columns)
            for_tiles(TileSegment(0, size, 1), lambda index: self._block(first, index, begun))
            self.builder.first = 0
            self._fill_block(size * each)
            gm = subview(self.moved, [mul(first, each)], [size * each])
            cce.copy(subview(self.tile, [0], [size * each]), gm, round_up=True)

        return AlikeWork(tiles.count, tile)

    def _fill_block(self, end: int) -> None:
        """Writes what is left of the last block of a tile, which is copied as a whole."""
        block = self.builder.block
        if end % block:
            kind = self.builder.element
            of = ir.FloatAttr if isinstance(kind, ir.FloatType) else ir.IntegerAttr
            nothing = arith.ConstantOp(kind, of.get(kind, 0)).result
            with for_loop(end, round_up(end, block)) as place:
                memref.StoreOp(nothing, self.tile, [as_value(place)])

    def _block(self, first: IndexLike, index: IndexLike, begun: IndexLike) -> None:
        """Moves the elements of a block, of an array that begins at one of its elements in UB."""
        move = self.move
        sizes = [*move.outer, move.run]
        lines = row_major([*move.array.shape[: move.split], move.line])
        with self.builder._where(add(first, index)) as begin:

            def element(place: Place) -> None:
                *at, column = place
                where: IndexLike = mul(begun, -1)
                for stride, position in zip(
                    lines, self.builder._in_array(at, begin, column), strict=True
                ):
                    where = add(where, mul(position, stride))
                target = mul(index, move.each)
                for stride, position in zip(row_major(sizes), place, strict=True):
                    target = add(target, mul(position, stride))
                value = memref.LoadOp(self.own, [as_value(where)]).result
                memref.StoreOp(value, self.tile, [as_value(target)])

            nest(sizes, element)


def for_portions(portions: Portions, build: Callable[[IndexLike, int], None]) -> None:
    """Builds `build(start, size)` for all portions, in order."""
    for count, of in stretches(portions):

        def piece(index: IndexLike, of: Callable[[IndexLike], Stretches] = of) -> None:
            for first, size in of(index):
                build(first, size)

        for_tiles(TileSegment(0, count, 1), piece)


def compare(predicate: str, index: ir.Value, number: int) -> ir.Value:
    """Whether an index is so to a number."""
    kind = getattr(arith.CmpIPredicate, predicate)
    return arith.CmpIOp(kind, index, as_value(number)).result


def part(source: ir.Value, place: Place, shape: list[int]) -> ir.Value:
    """A part of an array without its dimensions of size 1; the last one stays."""
    drop = [d for d, size in enumerate(shape[:-1]) if size == 1]
    return subview(source, place, shape, drop=drop)


def nest(sizes: Sequence[int], build: Callable[[Place], None], at: Place | None = None) -> None:
    """Builds loops over all places of an array of these sizes."""
    at = at or []
    if len(at) == len(sizes):
        build(at)
    elif sizes[len(at)] == 1:
        nest(sizes, build, [*at, 0])
    else:
        with for_loop(0, sizes[len(at)]) as index:
            nest(sizes, build, [*at, index])
