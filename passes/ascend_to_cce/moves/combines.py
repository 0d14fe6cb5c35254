"""Builds the kernel that combines updates with blocks of an array, see
`davinci.schedule.moves.combines`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from davinci.dialects.cce import build as cce
from davinci.mlir import NumberType, arith, ir, memref, scf
from davinci.operators.reduce import REDUCTIONS
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves.blocks import BlockFinder, compare, part
from davinci.passes.ascend_to_cce.moves.transfers import element_of
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    TileSegment,
    for_tiles,
    mark_scalar,
    segments,
    share_blocks,
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
from davinci.schedule.moves.combines import (
    ADDED,
    OWNED,
    OWNED_BY_SCALARS,
    SCALARS,
    WINDOWS,
    CombinePlan,
    portions_of,
)
from davinci.schedule.moves.transfers import blocks_of_run

MOST_INDICES_BYTES = 32768
"""Bytes of indices that are held in UB as a whole where lines do not come one from each block."""

OF_FLOATS = {
    "add": arith.AddFOp,
    "mul": arith.MulFOp,
    "max": arith.MaximumFOp,
    "min": arith.MinimumFOp,
}
OF_INTEGERS = {
    "add": arith.AddIOp,
    "mul": arith.MulIOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
}
"""What the scalar unit makes of an element and its update."""

Line = Callable[[IndexLike, IndexLike], None]
"""Builds what is done with a line: its number in its tile, and the row of the array."""


class CombineBuilder(BlockFinder):
    """Builds the kernel of a plan.

    Args:
        arguments: the buffers of the graph's inputs, then of its output, which is the array's too.
    """

    def __init__(self, plan: CombinePlan, arguments: Sequence[ir.Value], target: Target) -> None:
        self.schedule, self.target = plan.schedule, target
        self.combine = combine = plan.schedule.combine
        self.move = combine.move
        self.block = plan.machine.vector.block_bytes // self.move.array.bytes_each
        of = dict(zip(plan.graph.inputs, arguments, strict=False))
        _, updates, indices = (of[value] for value in plan.graph.nodes[0].values)
        self.element = element_of(updates)
        rows, width = combine.rows, combine.width
        self.array = restride(arguments[-1], [rows, width], [width, 1])
        self.flat = restride(arguments[-1], [rows * width], [1])
        self.lines = restride(updates, [combine.lines, combine.run], [combine.run, 1])
        self.updates = restride(updates, [combine.lines * combine.run], [1])
        self.given = restride(indices, [self.move.count * len(self.move.axes)], [1])
        self.each = combine.lines // self.move.count
        self._stage(element_of(indices))

    def _stage(self, kind: NumberType) -> None:
        """Room for indices in UB: those of a tile where each block is one line, else all of them;
        none where these are too many."""
        count = self.move.count
        whole = count * len(self.move.axes)
        tiled = self.each == 1
        size = self.schedule.tile * len(self.move.axes) if tiled else whole
        fits = tiled or whole * kind.width // 8 <= MOST_INDICES_BYTES
        self.tiled, self.staged = tiled, fits and not self.schedule.scalar
        self.indices = alloc([size], kind, "UB") if self.staged else self.given

    def build(self) -> int:
        """Builds it at the insertion point; returns the blocks that it can take."""
        schedule = self.schedule
        if schedule.scalar:
            mark_scalar(ir.InsertionPoint.current.block.owner)
        if self.staged and not self.tiled:
            cce.copy(self.given, self.indices, round_up=True)
        parts = {
            ADDED: self._added,
            WINDOWS: self._windows,
            OWNED: self._owned,
            OWNED_BY_SCALARS: self._owned_by_scalars,
            SCALARS: self._scalars,
        }[schedule.way]()
        return max(1, share_blocks(parts, self.target))

    def _tiles(self, first: IndexLike, lines: int, build: Callable[[], None]) -> None:
        """Builds what is done with a tile of lines, whose indices are there."""
        columns = len(self.move.axes)
        if self.tiled and self.staged:
            self.first = mul(first, columns)
            source = subview(self.given, [self.first], [lines * columns])
            cce.copy(source, subview(self.indices, [0], [lines * columns]), round_up=True)
        build()
        self.first = 0

    def _each_line(self, first: IndexLike, lines: int, build: Line) -> None:
        """Builds what is done with each line of a tile that lies inside of the array."""

        def one(index: IndexLike) -> None:
            number = add(first, index)
            with self._row(number) as row:
                build(index, row)

        for_tiles(TileSegment(0, lines, 1), one)

    @contextmanager
    def _row(self, line: IndexLike) -> Iterator[IndexLike]:
        """The row of the array that a line belongs to, if it is not left out."""
        move = self.move
        item, within = divided(line, self.each), remainder(line, self.each)
        at = unflatten(within, list(move.outer))
        with self._where(item) as begin:
            place = [add(b, a) for b, a in zip(begin, [*at, 0], strict=True)]
            sizes = list(move.array.shape[: move.split + 1])
            if not self.combine.single:
                del place[-1], sizes[-1]
            row: IndexLike = 0
            for size, index in zip(sizes, place, strict=True):
                row = add(mul(row, size), index)
            yield row

    def _pieces(self, size: int, rows: int) -> list[tuple[int, int, ir.Value]]:
        """(start, length, buffer) of the whole blocks, and of the last one, of portions of
        lines."""
        pieces = blocks_of_run(size, self.block)
        return [(at, wide, alloc([rows, wide], self.element, "UB")) for at, wide in pieces]

    def _portions(
        self, build: Callable[[IndexLike, IndexLike, int], None], times: int
    ) -> list[AlikeWork]:
        """Parts of `times` pieces of work for each portion of a line: `build(number, start,
        size)`."""
        found = []
        for first, count, size in portions_of(self.combine.run, self.schedule.portion):

            def piece(
                index: IndexLike, first: int = first, count: int = count, size: int = size
            ) -> None:
                number, position = unflatten(index, [times, count])
                build(number, add(first, mul(position, size)), size)

            found.append(AlikeWork(times * count, piece))
        return found

    def _load(
        self,
        pieces: Sequence[tuple[int, int, ir.Value]],
        source: ir.Value,
        row: IndexLike,
        rows: int,
        start: IndexLike,
    ) -> None:
        for offset, wide, buffer in pieces:
            gm = part(source, [row, add(start, offset)], [rows, wide])
            cce.copy(gm, part(buffer, [0, 0], [rows, wide]))

    def _added(self) -> list[AlikeWork]:
        """Copies of lines that add. The last block of a ragged line holds -0.0 where it lies over
        the others."""
        combine, held = self.combine, {}
        for _, _, size in portions_of(combine.run, self.schedule.portion):
            held[size] = self._pieces(size, self.schedule.tile)
        parts = []
        for tiles in segments(combine.lines, self.schedule.tile):

            def tile(
                number: IndexLike, start: IndexLike, size: int, tiles: TileSegment = tiles
            ) -> None:
                first, pieces = tiles.start(number), held[size]
                self._load(pieces, self.lines, first, tiles.size, start)
                if len(pieces) > 1:
                    _, wide, buffer = pieces[-1]
                    cce.vector_dup(self._neutral(), buffer, first_lane=0, lanes=wide - size % wide)

                def line(index: IndexLike, row: IndexLike) -> None:
                    for offset, wide, buffer in pieces:
                        place = [row, add(add(combine.column, start), offset)]
                        gm = part(self.array, place, [1, wide])
                        cce.copy(part(buffer, [index, 0], [1, wide]), gm, adds=True)

                self._tiles(first, tiles.size, lambda: self._each_line(first, tiles.size, line))

            parts += self._portions(tile, tiles.count)
        return parts

    def _windows(self) -> list[AlikeWork]:
        """Lines of less than a block, each in a block that is added."""
        combine, run = self.combine, self.combine.run
        held = alloc([self.schedule.tile * run], self.element, "UB")
        blocks = alloc([self.schedule.tile, self.block], self.element, "UB")
        last = combine.rows * combine.width - self.block

        def window(row: IndexLike) -> tuple[IndexLike, IndexLike]:
            """Where the block begins, and the line in it."""
            place = add(mul(row, combine.width), combine.column)
            begin = place
            if combine.aligned:
                begin = add(place, mul(remainder(place, self.block), -1))
            begin = arith.MinSIOp(as_value(begin), as_value(last)).result
            return begin, add(place, mul(begin, -1))

        def fill(index: IndexLike, row: IndexLike) -> None:
            _, column = window(row)
            for element in range(run):
                source = [as_value(add(mul(index, run), element))]
                value = memref.LoadOp(held, source).result
                target = [as_value(index), as_value(add(column, element))]
                memref.StoreOp(value, blocks, target)

        def store(index: IndexLike, row: IndexLike) -> None:
            begin, _ = window(row)
            target = subview(self.flat, [begin], [self.block])
            cce.copy(part(blocks, [index, 0], [1, self.block]), target, adds=True)

        def parts_of(tiles: TileSegment) -> AlikeWork:
            def tile(index: IndexLike) -> None:
                first, size = tiles.start(index), tiles.size
                self._load_flat(held, mul(first, run), size * run)
                cce.vector_dup(self._neutral(), blocks)

                def both() -> None:
                    self._each_line(first, size, fill)
                    self._each_line(first, size, store)

                self._tiles(first, size, both)

            return AlikeWork(tiles.count, tile)

        return [parts_of(tiles) for tiles in segments(combine.lines, self.schedule.tile)]

    def _load_flat(self, held: ir.Value, first: IndexLike, size: int) -> None:
        source = subview(self.updates, [first], [size])
        cce.copy(source, subview(held, [0], [size]), round_up=True)

    def _owned(self) -> list[AlikeWork]:
        """Rows in UB, by the vector unit."""
        combine, schedule = self.combine, self.schedule
        operation = getattr(cce, REDUCTIONS[combine.by].step)
        sizes = {size for _, _, size in portions_of(combine.run, schedule.portion)}
        own = {size: self._pieces(size, schedule.rows) for size in sizes}
        held = {size: self._pieces(size, schedule.tile) for size in sizes}
        parts = []
        for rows in segments(combine.rows, schedule.rows):

            def unit(
                number: IndexLike, start: IndexLike, size: int, rows: TileSegment = rows
            ) -> None:
                first, column = rows.start(number), add(combine.column, start)
                self._load(own[size], self.array, first, rows.size, column)

                def line(index: IndexLike, row: IndexLike) -> None:
                    with self._among(first, rows.size, row) as mine:
                        for (_, wide, target), (_, _, update) in zip(
                            own[size], held[size], strict=True
                        ):
                            kept = part(target, [mine, 0], [1, wide])
                            new = part(update, [index, 0], [1, wide])
                            operation(kept, new, kept)

                self._all_lines(
                    lambda begin, lines: self._load(held[size], self.lines, begin, lines, start),
                    line,
                )
                for offset, wide, buffer in own[size]:
                    gm = part(self.array, [first, add(column, offset)], [rows.size, wide])
                    cce.copy(part(buffer, [0, 0], [rows.size, wide]), gm)

            parts += self._portions(unit, rows.count)
        return parts

    def _owned_by_scalars(self) -> list[AlikeWork]:
        """Rows in UB, by the scalar unit."""
        combine, schedule = self.combine, self.schedule
        run, width = combine.run, combine.width
        own = alloc([schedule.rows * width], self.element, "UB")
        held = alloc([schedule.tile * run], self.element, "UB")

        def parts_of(rows: TileSegment) -> AlikeWork:
            def unit(number: IndexLike) -> None:
                first, size = rows.start(number), rows.size * width
                kept = subview(own, [0], [size])
                gm = subview(self.flat, [mul(first, width)], [size])
                cce.copy(gm, kept, round_up=True)

                def line(index: IndexLike, row: IndexLike) -> None:
                    with self._among(first, rows.size, row) as mine:
                        start = add(mul(mine, width), combine.column)
                        with self._elements() as element:
                            target = [as_value(add(start, element))]
                            source = [as_value(add(mul(index, run), element))]
                            self._combined(own, target, held, source)

                self._all_lines(
                    lambda begin, lines: self._load_flat(held, mul(begin, run), lines * run), line
                )
                cce.copy(kept, gm, round_up=True)

            return AlikeWork(rows.count, unit)

        return [parts_of(rows) for rows in segments(combine.rows, schedule.rows)]

    def _scalars(self) -> list[AlikeWork]:
        """Everything in GM, by one core."""
        combine = self.combine

        def line(index: IndexLike, row: IndexLike) -> None:
            with self._elements() as element:
                target = [as_value(row), as_value(add(combine.column, element))]
                self._combined(self.array, target, self.lines, [as_value(index), as_value(element)])

        return [AlikeWork(1, lambda _: self._each_line(0, combine.lines, line))]

    @contextmanager
    def _elements(self) -> Iterator[IndexLike]:
        """A loop over the elements of a line, if it has several."""
        if self.combine.run == 1:
            yield 0
            return
        with for_loop(0, self.combine.run) as element:
            yield element

    def _combined(
        self,
        target: ir.Value,
        place: Sequence[ir.Value],
        updates: ir.Value,
        source: Sequence[ir.Value],
    ) -> None:
        old = memref.LoadOp(target, place).result
        new = memref.LoadOp(updates, source).result
        of = OF_FLOATS if isinstance(self.element, ir.FloatType) else OF_INTEGERS
        memref.StoreOp(of[self.combine.by](old, new).result, target, place)

    def _all_lines(self, load: Callable[[IndexLike, int], None], line: Line) -> None:
        """Builds what is done with all lines, which are loaded by tiles, in order."""
        for tiles in segments(self.combine.lines, self.schedule.tile):

            def tile(first: IndexLike, tiles: TileSegment = tiles) -> None:
                load(first, tiles.size)
                self._tiles(first, tiles.size, lambda: self._each_line(first, tiles.size, line))

            for_tiles(tiles, tile)

    @contextmanager
    def _among(self, first: IndexLike, count: int, row: IndexLike) -> Iterator[IndexLike]:
        """Builds what is done with a row if it is one of `count` from `first` on; which of them it
        is."""
        mine = as_value(add(row, mul(first, -1)))
        branch = scf.IfOp(compare("ult", mine, count))
        with ir.InsertionPoint(branch.then_block):
            yield mine
            scf.YieldOp([])

    def _neutral(self) -> ir.Value:
        """What an element stays the same with when it is added."""
        if isinstance(self.element, ir.FloatType):
            return arith.ConstantOp(self.element, ir.FloatAttr.get(self.element, -0.0)).result
        return arith.ConstantOp(self.element, ir.IntegerAttr.get(self.element, 0)).result
