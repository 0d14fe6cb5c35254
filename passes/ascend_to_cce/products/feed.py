"""Operands of a product on their way from GM to L1, and where blocks of them are there.

Fractals (Nz) go straight to L1, rows cross UB (`rows`). A piece lies in L1 as
[k / together][other][together] fractals, whatever is stored in GM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.mlir import ir, memref
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, MatrixRows, RowRing, RowsToFractals
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import IndexLike, add, alloc, mul, restride, subview, viewed
from davinci.schedule.products.dense_rows import WORD_BYTES
from davinci.schedule.products.events import Block, Fill, FractalSpan, Held
from davinci.schedule.products.product import Pieces, ProductOperand
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


@dataclass(frozen=True)
class StagingBuffers:
    """Buffers in UB that the operands in rows share: rows as they came, fractals in f16, and what
    parts dense rows, by name."""

    inbox: RowRing
    outbox: RowRing
    parting: Mapping[str, ir.Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Range:
    """A range of a dimension that a share takes.

    Attributes:
        start: its first fractal.
        elements: how many; the last fractal may have less than 16.
        last: whether it may end where the matrix does.
    """

    start: IndexLike
    elements: int
    last: bool


@dataclass(frozen=True)
class ShareRegion:
    """What of an operand a share takes.

    Attributes:
        batch: its first matrix.
    """

    batch: IndexLike
    k: Range
    other: Range


@dataclass(frozen=True)
class FractalGroup:
    """Fractals along k that are moved together: of each of `count` groups the first `size`.

    Attributes:
        start: of the first, counted from the block that they are a part of.
        offset: of the first in L1, from where the piece begins, in fractals.
        together: fractals along k that lie side by side in L1, one after another along `other`.
    """

    start: int
    count: int
    size: int
    offset: int
    together: int


class Feed:
    """Fills L1 with pieces of one operand, and says where blocks of them are.

    Args:
        staging: of rows.
        direct: see `RowsToFractals`.

    Attributes:
        l1: the slots, as words of 16 bits.
        rows_in_l1: the same as elements of rows that come without staging.
        words: of 16 bits, of each of those elements.
    """

    words = 1

    def __init__(
        self,
        gm: ir.Value,
        operand: ProductOperand,
        pieces: Pieces,
        staging: StagingBuffers | None,
        direct: bool = False,
    ) -> None:
        self.gm, self.operand, self.pieces = gm, operand, pieces
        self.to_fractals: RowsToFractals | None = None
        if staging is not None:
            parting = staging.parting if pieces.dense else None
            self.to_fractals = RowsToFractals(
                gm, staging.inbox, staging.outbox, direct, parting, staging.parting
            )
        slots = [self._slot(pieces.fractals * FRACTAL) for _ in range(pieces.slots)]
        self.l1 = [words for words, _ in slots]
        self.rows_in_l1 = [rows for _, rows in slots]

    def _slot(self, words: int) -> tuple[ir.Value, ir.Value]:
        """A buffer in L1 as so many words of 16 bits, and as the elements of rows."""
        made = alloc([words], ir.F16Type.get(), "L1")
        return made, made

    def fill(self, fill: Fill, region: ShareRegion) -> None:
        """Brings a part of a piece to its place; blocks count from the region's first fractals."""
        if self.operand.direct and not self.operand.nz:
            self.come(fill.held, fill.block, region)
            return
        stored = self.stored(fill.block, region)
        move = cce.copy if space_name(stored.type) == "GM" else cce.copy_l1
        for group in self.groups(fill.held.piece, fill.block.k):
            move(self.source(stored, group), self.target(fill.held, fill.block, group))

    def come(self, held: Held, block: Block, region: ShareRegion) -> None:
        """Brings rows of GM that become fractals on their way; what a matrix lacks of its last
        fractals is zero.

        Columns of fractals lie one after the other in L1: each has all rows of the piece.
        """
        piece = held.piece
        along = [(block.k, region.k, piece.k), (block.other, region.other, piece.other)]
        rows, columns = along if self.operand.k_rows else along[::-1]
        (row, height), (column, width) = elements(*rows[:2]), elements(*columns[:2], self.words)
        batch = add(region.batch, block.batch)
        source = subview(self.gm, [batch, row, column], [1, height, width], drop=[0])
        pitch = rows[2].size * FRACTAL
        first = (columns[0].start - columns[2].start) * pitch
        first += (rows[0].start - rows[2].start) * FRACTAL
        lanes = SIDE // self.words
        shape, strides = [ceil_div(width, lanes), height, lanes], [pitch // self.words, lanes, 1]
        target = restride(self.rows_in_l1[held.slot], shape, strides, first // self.words)
        cce.nd2nz(source, target)
        if rest := -height % SIDE:
            place = [shape[0], rest * SIDE], [pitch, 1], first + height * SIDE
            cce.clear_l1(restride(self.l1[held.slot], *place))

    def stored(self, block: Block, region: ShareRegion) -> ir.Value:
        """A block as fractals [columns][rows][16][16]: in GM, or, of rows, in UB."""
        batch = add(region.batch, block.batch)
        along = [(block.k, region.k), (block.other, region.other)]
        rows, columns = along if self.operand.k_rows else along[::-1]
        if self.to_fractals is None:
            row, column = (add(whole.start, span.start) for span, whole in (rows, columns))
            shape = [1, columns[0].size, rows[0].size, SIDE, SIDE]
            return subview(self.gm, [batch, column, row, 0, 0], shape, drop=[0])
        last = rows[1].last and rows[0].stop * SIDE >= rows[1].elements
        (row, height), (column, width) = elements(*rows), elements(*columns)
        return self.to_fractals.made_of(MatrixRows(batch, row, column, height, width, last))

    def groups(self, piece: Block, k: FractalSpan) -> Iterator[FractalGroup]:
        """The part `k` of a piece as whole groups of `together` fractals, and parts of groups."""
        size, others = self.pieces.together, piece.other.size
        at, stop = k.start - piece.k.start, k.stop - piece.k.start
        whole = piece.k.size // size * size
        while at < stop:
            first = at // size * size
            width = min(size, piece.k.size - first)
            count = max(0, min(stop, whole) - at) // size if at == first else 0
            taken = count * size or min(stop, first + width) - at
            offset = first * others + at - first
            start = at + piece.k.start - k.start
            yield FractalGroup(start, max(1, count), taken // max(1, count), offset, width)
            at += taken

    def source(self, stored: ir.Value, group: FractalGroup) -> ir.Value:
        """The part of an operand stored as [columns][rows][16][16] that goes to `group`; k is seen
        as [groups][fractals of a group]."""
        sizes, dim = list(ir.MemRefType(stored.type).shape), int(self.operand.k_rows)
        start = [0, 0, 0, 0]
        if sizes[dim] != group.count * group.size:
            start[dim], sizes[dim] = group.start, group.count * group.size
            stored = subview(stored, start, sizes)
        if group.count == 1:
            return stored
        sizes[dim : dim + 1] = [group.count, group.size]
        return expanded(stored, sizes, dim)

    def target(self, held: Held, block: Block, group: FractalGroup) -> ir.Value:
        """The place of `group` in L1, in the order of `source`."""
        others = held.piece.other.size
        offset = group.offset + (block.other.start - held.piece.other.start) * group.together
        shape, strides = [group.size], [1]
        if group.count > 1:
            shape, strides = [group.count, *shape], [others * group.together, *strides]
        other = ([block.other.size], [group.together])
        if self.operand.k_rows:
            shape, strides = other[0] + shape, other[1] + strides
        else:
            shape, strides = shape + other[0], strides + other[1]
        steps = [*(stride * FRACTAL for stride in strides), SIDE, 1]
        place: ir.Value = restride(
            self.l1[held.slot], [*shape, SIDE, SIDE], steps, offset * FRACTAL
        )
        return place

    def loads(self, held: Held, block: Block, k_first: bool) -> Iterator[tuple[Block, ir.Value]]:
        """What a piece in L1 has of `block`, as [k][other] or [other][k] of fractals; in parts
        where k reaches over groups that lie apart."""
        piece = held.piece
        k, other = common(piece.k, block.k), common(piece.other, block.other)
        for group in self.groups(piece, k):
            for i in range(group.count if group.size > 1 else 1):
                size = group.count if group.size == 1 else group.size
                step = piece.other.size * group.together if group.size == 1 else 1
                offset = group.offset + i * piece.other.size * group.together
                offset += (other.start - piece.other.start) * group.together
                start = k.start + group.start + i * group.size
                shape, strides = [size, other.size], [step, group.together]
                if not k_first:
                    shape, strides = shape[::-1], strides[::-1]
                steps = [*(stride * FRACTAL for stride in strides), SIDE, 1]
                view = restride(self.l1[held.slot], [*shape, SIDE, SIDE], steps, offset * FRACTAL)
                yield Block(block.batch, FractalSpan(start, start + size), other), view

    def load(self, held: Held, block: Block, l0: ir.Value, k_first: bool) -> None:
        """What a piece in L1 has of `block` to a buffer of L0A, [other][k] of fractals, or L0B,
        [k][other]; what one operation writes is contiguous."""
        for part, source in self.loads(held, block, k_first):
            k, other = part.k.start - block.k.start, part.other.start - block.other.start
            i, j, width = (k, other, block.other.size) if k_first else (other, k, block.k.size)
            shape = ir.MemRefType(source.type).shape
            strides = [width * FRACTAL, FRACTAL, SIDE, 1]
            target = restride(l0, shape, strides, (i * width + j) * FRACTAL)
            cce.load2d(source, target, transpose=self.operand.k_rows)


class SinglesFeed(Feed):
    """Fills L1 with rows of f32 that are multiplied as they are."""

    words = 2

    def _slot(self, words: int) -> tuple[ir.Value, ir.Value]:
        raw = alloc([words * WORD_BYTES], element_type("s8"), "L1")
        rows = viewed(raw, [words // self.words], ir.F32Type.get())
        return viewed(raw, [words], ir.F16Type.get()), rows


def elements(span: FractalSpan, whole: Range, words: int = 1) -> tuple[IndexLike, int]:
    """The first element of a span of fractals of `whole`, and how many there are.

    Args:
        words: of each element.
    """
    count = min(whole.elements, span.stop * SIDE) - span.start * SIDE
    return mul(add(whole.start, span.start), SIDE // words), count // words


def common(a: FractalSpan, b: FractalSpan) -> FractalSpan:
    return FractalSpan(max(a.start, b.start), min(a.stop, b.stop))


def expanded(view: ir.Value, shape: list[int], dim: int) -> ir.Value:
    """`view` with its dimension `dim` split in two; `shape` is that of the result."""
    kind = ir.MemRefType(view.type)
    strides, offset = kind.get_strides_and_offset()
    steps = [*strides[:dim], strides[dim] * shape[dim + 1], *strides[dim:]]
    layout, element = ir.StridedLayoutAttr.get(offset, steps), kind.element_type
    result = ir.MemRefType.get(shape, element, layout=layout, memory_space=kind.memory_space)
    groups = [[i] if i < dim else [i + 1] for i in range(len(shape) - 1)]
    groups[dim] = [dim, dim + 1]
    made: ir.Value = memref.ExpandShapeOp(result, view, groups, [], shape).result
    return made
