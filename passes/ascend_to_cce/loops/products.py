"""Builds the products of a step of a loop on a core: right factors stay there, left ones come from
UB, from all cores that share lanes, or from a loop that hands them on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.operators.vector_program import Value, joined
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.loops.left_factors import Meeting
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows
from davinci.passes.ascend_to_cce.products.kernel import flag
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, fill_zeros
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder
from davinci.passes.builder import IndexLike, add, alloc, reshaped, restride, subview
from davinci.schedule.loops.group import HANDED, LoopGroup, StepProduct
from davinci.schedule.loops.loop_layout import LoopLayout
from davinci.schedule.loops.schedule import (
    SLOTS,
    BlockOfB,
    LoopSchedule,
    blocks_of,
    depth_of,
    kept_of,
    layout_of,
    most_fractals,
    products_of,
    terms_of,
)
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major


@dataclass(frozen=True)
class Left:
    """A left factor on its way: L1 [k / 16][rows][16], L0A [rows / 16][k / 16] of fractals; or L0B
    [k / 16][rows / 16] if the right one is the cube's left operand. A vector, L0A [k], has no place
    in L1."""

    l1: ir.Value | None
    l0: ir.Value


class LoopProducts(TileBuilder):
    """The products of what one core does of a loop.

    Args:
        shared: lanes at the beginning that another core has, too, which stores them.
    """

    layout: LoopLayout

    def __init__(
        self,
        group: LoopGroup,
        schedule: LoopSchedule,
        rows: int,
        buffers: Mapping[int, ir.Value],
        target: Target,
        shared: int = 0,
    ) -> None:
        self.shared = shared
        self.group, self.schedule, self.target = group, schedule, target
        self.plan: Any = group
        self.rows, self.gm = rows, buffers
        self.layout = layout_of(group, schedule, rows, target.machine)
        self.program, self.space = self.layout.program, group.space
        self.lane = self.program.lane
        self.block = self.program.row_block
        self.buffers, self.lasting = {}, {}
        self.ordered, self.ragged = False, 0
        self.first: IndexLike = 0
        self.products = products_of(group, schedule, target.machine)
        self.parts = dict(zip((p.c for p in self.products), self.layout.arrivals, strict=True))
        self.kept_columns = {product.c: product.kept for product in self.products}
        self.first_block: IndexLike = 0
        self.meeting: Meeting | None = None
        self.height = ceil_div(rows, SIDE)
        self.turn = 0
        self.sums: dict[int, ir.Value] = {}
        self.in_fractals: dict[Value, ir.Value] = {}
        self.multiplied: set[int] = set()
        self.come: set[int] = set()
        self.left: dict[int, Left] = {}
        self.right: dict[tuple[int, int], ir.Value] = {}
        self.resident: dict[tuple[int, int], list[ir.Value]] = {}
        self.kept: dict[tuple[int, int], ir.Value] = {}
        self.ring: list[ir.Value] = []
        self.ahead: list[ir.Value] = []

    @cached_property
    def factors(self) -> dict[Value, int]:
        """The left factors that a step computes, by their values."""
        numbers = {term.a for term in terms_of(self.products)} - {HANDED}
        return {self.program.stores[a]: a for a in numbers}

    @cached_property
    def results(self) -> dict[Value, int]:
        """For the value of each product's result, the number of the first one of those that come
        together with it (`parts`)."""
        return {self.program.loads[p.c]: c for c, part in self.parts.items() for p in part}

    @property
    def loaded(self) -> list[Value]:
        """The values that a step begins with: all that it loads but results of products."""
        return [value for value in self.program.loads.values() if value not in self.results]

    @cached_property
    def lefts_in_order(self) -> list[int]:
        """The left factors that a step computes, in the order in which they are there."""
        order = (*self.loaded, *(step.result for step in self.program.steps))
        return list(dict.fromkeys(self.factors[v] for v in order if v in self.factors))

    def _bring_factors(self) -> None:
        """Right factors to L1 and what of them stays in L0B; room for left ones, zero at first."""
        f16, f32 = ir.F16Type.get(), ir.F32Type.get()
        products = self.products
        terms = terms_of(products)
        for product in products:
            for place, term in enumerate(product.terms):
                sides = [each.terms[place] for each in self.parts[product.c]]
                self.right[term.c, term.a] = self._bring_right(term, sides)
                if term.a not in self.left:
                    size = self.schedule.left_bytes(term.a, term.k) // 2
                    l0 = alloc([size], f16, self.schedule.space_of_left)
                    vector = self.schedule.is_vector(term.a)
                    self.left[term.a] = Left(None if vector else alloc([size], f16, "L1"), l0)
            columns = ceil_div(product.n, SIDE)
            self.sums[product.c] = alloc([columns * self.height * FRACTAL], f32, "L0C")
        rooms = [left.l1 for left in self.left.values() if left.l1 is not None]
        if rooms:
            with serving(*joined(*(product.members for product in products))):
                self._clear(rooms)
                self._put_ones()
        for term in terms:
            blocks = self._blocks(term)
            if self.schedule.stays(term.a):
                room = [alloc([b.rows * b.columns * FRACTAL], f16, "L0B") for b in blocks]
                self.resident[term.c, term.a] = room
                for block, l0 in zip(blocks, room, strict=True):
                    self._load_right(term, block, l0, on_left=False)
            elif term.kept:
                block = kept_of(term)
                l0 = alloc([block.rows * block.columns * FRACTAL], f16, "L0B")
                self.kept[term.c, term.a] = l0
                self._load_right(term, block, l0, on_left=False)
        if not all(self.schedule.stays(term.a) for term in terms):
            size = most_fractals(self.schedule, self.target.machine) * FRACTAL
            space = self.schedule.space_of_right
            self.ring = [alloc([size], f16, space) for _ in range(SLOTS)]

    def _clear(self, rooms: Sequence[ir.Value]) -> None:
        """Zeros in the room of left factors in L1."""
        zeros = alloc([max(map(elements_of, rooms))], ir.F16Type.get(), "UB")
        fill_zeros(zeros)
        for l1 in rooms:
            cce.copy_l1(restride(zeros, [elements_of(l1)], [1]), l1)

    def _put_ones(self) -> None:
        """Ones behind the rows that are handed on, where right factors have rows for them."""
        if HANDED not in self.left:
            return
        l1, array = self._l1_of(HANDED), self.group.rows
        if array is not None:
            columns = array.columns
        else:
            assert self.meeting is not None, "rows are handed on between cores"
            columns = self.meeting.columns_handed
        first = ceil_div(columns, SIDE) * self.height * FRACTAL
        count = elements_of(l1) - first
        if count:
            ones = alloc([count], ir.F16Type.get(), "UB")
            cce.vector_dup(scalar("f16", 1.0), ones)
            cce.copy_l1(ones, restride(l1, [count], [1], first))

    def _bring_right(self, product: StepProduct, sides: Sequence[StepProduct]) -> ir.Value:
        """A right factor in L1, [k / 16][n / 16] of fractals, or [n / 16][k / 16] if it is the
        cube's left operand; of products whose results come together, theirs side by side."""
        rows = ceil_div(product.k, SIDE)
        made = alloc([product.fractals * FRACTAL], ir.F16Type.get(), "L1")
        own = ceil_div(self.schedule.lanes, SIDE)
        down, along = self._strides_in_l1(rows, len(sides) * own)
        strides = [down, along, 1]
        for place, each in enumerate(sides):
            whole = reshaped(self.gm[each.b], [rows, ceil_div(each.n, SIDE), FRACTAL])
            columns = subview(whole, [0, self.first_block, 0], [rows, own, FRACTAL])
            with serving(*each.members):
                shape = [rows, own, FRACTAL]
                cce.copy(columns, restride(made, shape, strides, place * own * along))
        return made

    def _strides_in_l1(self, rows: int, columns: int) -> tuple[int, int]:
        """Elements from a fractal of a right factor in L1 to the next one along k, and along n."""
        if self.schedule.turned:
            return FRACTAL, rows * FRACTAL
        return columns * FRACTAL, FRACTAL

    def _blocks(self, product: StepProduct) -> list[BlockOfB]:
        depth = self._depth(product.a)
        return blocks_of(product, depth, self.schedule, self.target.machine)

    def _depth(self, a: int) -> int:
        """Fractals along k of the blocks that a left factor is multiplied in."""
        if self.schedule.stays(a):
            return ceil_div(next(p.k for p in terms_of(self.products) if p.a == a), SIDE)
        return depth_of(self.products, a, self.schedule, self.target.machine)

    def _load_right(
        self, product: StepProduct, block: BlockOfB, l0: ir.Value, on_left: bool
    ) -> None:
        """A block of B to L0B, [k / 16][n / 16] of fractals, or to L0A, [n / 16][k / 16].

        Args:
            on_left: whether it is the cube's left operand there.
        """
        down, along = self._strides_in_l1(ceil_div(product.k, SIDE), ceil_div(product.n, SIDE))
        shape, strides = [block.rows, block.columns], [down, along]
        if on_left:
            shape, strides = shape[::-1], strides[::-1]
        shape, strides = [*shape, SIDE, SIDE], [*strides, SIDE, 1]
        offset = block.row * down + block.column * along
        with serving(*product.members):
            source = restride(self.right[product.c, product.a], shape, strides, offset)
            cce.load2d(source, reshaped(l0, shape))

    def _multiply(self, a: int, time: ir.Value) -> None:
        """A is in UB, or in global memory if it is handed on: to L1 and L0A, and all products with
        it."""
        products = [term for term in terms_of(self.products) if term.a == a]
        if self.meeting is not None and not self.schedule.stays(a):
            self._load_ahead(products)
        with serving(*self._members_of(a)):
            if a != HANDED:
                self._load_left(a, products, time)
            elif self.group.rows is None:
                self._load_handed(time)
            if not self.schedule.is_vector(a):
                self._to_l0(a, ceil_div(products[0].k, SIDE))
        work = [
            (term, number, block, place == 0)
            for product in self.products
            for place, term in enumerate(product.terms)
            if term.a == a
            for number, block in enumerate(self._blocks(term))
        ]
        self._multiply_kept(a)
        for each in work:
            self._product(*each)

    def _load_ahead(self, products: Sequence[StepProduct]) -> None:
        """The first blocks of right factors to L0B, before the cores meet for the left one."""
        blocks = [(product, block) for product in products for block in self._blocks(product)]
        self.ahead = [self._to_ring(product, block) for product, block in blocks[:SLOTS]]

    def _to_ring(self, product: StepProduct, block: BlockOfB) -> ir.Value:
        """A block of a right factor to the buffer whose turn it is."""
        l0 = self.ring[self.turn % SLOTS]
        self.turn += 1
        self._load_right(product, block, l0, self.schedule.turned)
        return l0

    def _load_left(self, a: int, products: Sequence[StepProduct], time: ir.Value) -> None:
        value, k = self.program.stores[a], ceil_div(products[0].k, SIDE)
        self._fill_up(value, products[0].k)
        if self.meeting is None:
            cce.copy_l1(self._blocks_of_left(value, k), self._in_l1(a, k))
            return
        step = self.meeting.step(time)
        self._store_part(a, step)
        if self.schedule.is_vector(a):
            l0 = self.left[a].l0
            target = reshaped(l0, [elements_of(l0) // SIDE, 1, SIDE])
        else:
            target = self._in_l1(a, k)
        parts = self.meeting.part(a, step, 0, ir.MemRefType(target.type).shape[0])
        self.meeting.meet(a, time, parts, target)

    def _fill_up(self, value: Value, width: int) -> None:
        """Zeros behind the lanes of a left factor that are no whole blocks."""
        if width % SIDE:
            row, column = self._strides_of_left(value)
            last = restride(self._held(value), [self.rows, SIDE], [row, 1], width // SIDE * column)
            fill_lanes(value.dtype, last, width % SIDE, SIDE, 0)

    def _strides_of_left(self, value: Value) -> tuple[int, int]:
        """Elements from one row of a left factor in UB to the next, and from one block of 16
        columns to the next."""
        if value in self.layout.in_blocks:
            return SIDE, self.layout.block_rows * SIDE
        return self.schedule.pitch, SIDE

    def _blocks_of_left(self, value: Value, count: int, first: int = 0) -> ir.Value:
        """So many blocks of 16 columns of a left factor in UB, from one on: [blocks, rows, 16]."""
        row, column = self._strides_of_left(value)
        shape, strides = [count, self.rows, SIDE], [column, row, 1]
        return restride(self._held(value), shape, strides, first * column)

    def _load_handed(self, time: ir.Value) -> None:
        """The row that is handed on, which all cores have met behind."""
        assert self.meeting is not None, "rows are handed on between cores"
        row = self.meeting.handed(time)
        cce.copy(row, self._in_l1(HANDED, ir.MemRefType(row.type).shape[0]))

    def _room_for_row(self) -> None:
        """Room in UB for the rows of a step of the array that is nothing but left factors, as they
        are and as halves."""
        assert self.group.rows is not None, "a loop with an array of left factors"
        shape = [self.rows, self.group.rows.columns]
        element = ir.MemRefType(self.gm[self.group.rows.role.place].type).element_type
        self.row = alloc(shape, element, "UB")
        halves = element == ir.F16Type.get()
        shape = [self.group.rows.columns // SIDE, self.layout.block_rows, SIDE]
        self.halves = self.row if halves else alloc(shape, ir.F16Type.get(), "UB")

    def _bring_row(self, index: IndexLike) -> None:
        """The rows of a step of that array to UB."""
        assert self.group.rows is not None, "a loop with an array of left factors"
        gm, k = self.gm[self.group.rows.role.place], ir.MemRefType(self.row.type).shape[1]
        matrix = reshaped(gm, [self.group.steps, elements_of(gm) // self.group.steps // k, k])
        with serving(*self._members_of(HANDED)):
            load_rows(MatrixPiece(matrix, index, self.first, 0, self.rows, k), self.row)

    def _row_to_l1(self) -> None:
        """The rows that `_bring_row` brought to L1, as halves."""
        k = ir.MemRefType(self.row.type).shape[1]
        columns, row, column = k // SIDE, k, SIDE
        with serving(*self._members_of(HANDED)):
            if self.halves != self.row:
                # In blocks of 16 columns, as in L1, they leave UB in one transfer.
                row, column = SIDE, self.layout.block_rows * SIDE
                shape = [self.rows, columns, SIDE]
                halves = restride(self.halves, shape, [row, column, 1])
                cce.vconv(reshaped(self.row, shape), halves)
            blocks = restride(self.halves, [columns, self.rows, SIDE], [column, row, 1])
            cce.copy_l1(blocks, self._in_l1(HANDED, columns))

    def _members_of(self, a: int) -> tuple[int, ...]:
        """The operators of the kernel that the products with a left factor compute."""
        return joined(*(term.members for term in terms_of(self.products) if term.a == a))

    def _l1_of(self, a: int) -> ir.Value:
        """The room in L1 of a left factor that is no vector."""
        l1 = self.left[a].l1
        assert l1 is not None, "a vector has no room in L1"
        return l1

    def _in_l1(self, a: int, k: int) -> ir.Value:
        """The rows of a left factor in L1, as blocks of 16 columns."""
        return restride(self._l1_of(a), [k, self.rows, SIDE], [self.height * FRACTAL, SIDE, 1])

    def _store_part(self, a: int, step: IndexLike) -> None:
        """The lanes of this core of a left factor to global memory, of a step of all loops."""
        assert self.meeting is not None, "cores that share lanes meet"
        own, shared = (self.schedule.lanes - self.shared) // SIDE, self.shared // SIDE
        source = self._blocks_of_left(self.program.stores[a], own, shared)
        first = add(self.first_block, shared)
        cce.copy(source, self.meeting.part(a, step, first, own))

    def _to_l0(self, a: int, k: int) -> None:
        """A left factor from L1 to L0A, or to L0B as it is."""
        l1, l0, tall = self._l1_of(a), self.left[a].l0, self.height * FRACTAL
        if self.schedule.turned:
            shape = [k, self.height, SIDE, SIDE]
            cce.load2d(*(reshaped(buffer, shape) for buffer in (l1, l0)))
            return
        depth = self._depth(a) if self.height > 1 else k
        for row in range(0, k, depth):
            shape = [self.height, min(depth, k - row), SIDE, SIDE]
            source = restride(l1, shape, [FRACTAL, tall, SIDE, 1], row * tall)
            cce.load2d(source, self._of_left(a, row, shape[1]))

    def _of_left(self, a: int, row: int, rows: int) -> ir.Value:
        """Part of a left factor in L0A, of whole blocks along k, or in L0B."""
        l0 = self.left[a].l0
        if self.schedule.is_vector(a):
            shape = [1, rows, 1, SIDE]
            return restride(l0, shape, row_major(shape), row * SIDE)
        shape = [self.height, rows, SIDE, SIDE]
        if self.schedule.turned:
            shape[:2] = shape[1::-1]
        return restride(l0, shape, row_major(shape), row * self.height * FRACTAL)

    def _product(self, term: StepProduct, number: int, block: BlockOfB, first: bool) -> None:
        """A block of a product, by its number, with a left factor in L0A, or in L0B with the right
        one in L0A; added to the sum unless it belongs to the first term and begins that."""
        with serving(*term.members):
            if self.schedule.stays(term.a):
                held = self.resident[term.c, term.a][number]
            else:
                held = self.ahead.pop(0) if self.ahead else self._to_ring(term, block)
            a = self._of_left(term.a, block.row, block.rows)
            begins = first and block.row == 0
            self._mad(term, block, a, held, begins, self.schedule.turned)

    def _multiply_kept(self, a: int) -> None:
        """The products of a left factor with what stays in L0B beside others: it comes to the end
        of a buffer of blocks in L0A, which those of the same products leave free."""
        l0: ir.Value | None = None
        for product in self.products:
            for place, term in enumerate(product.terms):
                if term.a != a or not term.kept:
                    continue
                rows = ceil_div(term.k, SIDE)
                if l0 is None:
                    l0 = self._left_to_ring(a, rows)
                with serving(*term.members):
                    kept = self.kept[term.c, term.a]
                    self._mad(term, kept_of(term), l0, kept, place == 0, on_left=False)

    def _left_to_ring(self, a: int, rows: int) -> ir.Value:
        """A left factor of one row of fractals to the end of the first buffer of blocks."""
        shape, room = [1, rows, SIDE, SIDE], self.ring[0]
        target = restride(room, shape, row_major(shape), elements_of(room) - rows * FRACTAL)
        with serving(*self._members_of(a)):
            cce.load2d(reshaped(self._l1_of(a), shape), target)
        return target

    def _mad(
        self,
        term: StepProduct,
        block: BlockOfB,
        left: ir.Value,
        right: ir.Value,
        begins: bool,
        on_left: bool,
    ) -> None:
        """Multiplies a block of a right factor.

        Args:
            left: the part of the left factor, right: the block, in their memories of the cube.
            begins: whether the sum begins with it.
            on_left: whether the block is the cube's left operand.
        """
        height = self.height
        shape, first = [block.columns, height, SIDE, SIDE], block.column * height * FRACTAL
        if on_left:
            a, b = reshaped(right, [block.columns, block.rows, SIDE, SIDE]), left
            shape[:2] = shape[1::-1]
        else:
            a, b = left, reshaped(right, [block.rows, block.columns, SIDE, SIDE])
        c = restride(self.sums[term.c], shape, row_major(shape), first)
        cce.mad(a, b, c, flag(begins))


def elements_of(buffer: ir.Value) -> int:
    """Elements of a buffer."""
    return math.prod(ir.MemRefType(buffer.type).shape)
