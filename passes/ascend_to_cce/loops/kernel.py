"""Builds the kernel of a loop that stays on a core.

    right factors to L1, and to L0B if they fit; states and fixed values to UB
    for step:                                             cce.unroll
      slices to UB                                        buffers with cce.slots
      left factor to L1, L0A; C = A B; C to UB            of each product, as soon as A is there
      the other steps of the program
      outputs to GM
    states to GM

The rows of the states are shared by the cores; or their lanes are, and then each core stores its
part of a left factor in global memory and meets the others before it loads all of it
(`loops.left_factors`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import ir
from davinci.operators.vector_program import Step, Value, joined
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.loops.left_factors import Exchange, Meeting
from davinci.passes.ascend_to_cce.moves.matrix_rows import Piece, load_rows, store_rows
from davinci.passes.ascend_to_cce.moves.packed_runs import load_run, store_run
from davinci.passes.ascend_to_cce.products.kernel import flag
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, change, fill_zeros
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import block_index, only_blocks
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder, tile_buffer
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_attribute,
    as_value,
    for_loop,
    mul,
    op,
    reshaped,
    restride,
    subview,
)
from davinci.schedule.loops.group import Factors, LoopGroup, Role
from davinci.schedule.loops.schedule import (
    SLOTS,
    BlockOfB,
    LoopLayout,
    LoopSchedule,
    blocks_of,
    depth_of,
    layout_of,
    products_of,
)
from davinci.schedule.loops.schedule import parts_of as units_of
from davinci.schedule.vector.steps import copying
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major


def build_loops(
    loops: Sequence[tuple[LoopGroup, LoopSchedule]],
    buffers: Mapping[int, ir.Value],
    target: Target,
    exchange: Exchange | None = None,
) -> int:
    """Builds the kernel of loops side by side; returns how many blocks share it.

    Args:
        buffers: arguments of the kernel in GM, by place.
        exchange: by which cores that share lanes tell each other left factors.
    """
    done = 0
    parts = [
        (number, *loop, *part) for number, loop in enumerate(loops) for part in units_of(*loop)
    ]
    for number, group, schedule, first, rows, count in parts:
        unit = _Unit(group, schedule, rows, buffers, target)
        if exchange is not None:
            with only_blocks(done, count) as (_, index):
                unit.build_lanes(index, exchange, exchange.parts[number])
            done += count
            continue
        if len(parts) == 1:
            unit.build(mul(block_index(target), rows) if count > 1 else 0)
            return count
        with only_blocks(done, count) as (_, index):
            unit.build(add(first, mul(index, rows)) if count > 1 else first)
        done += count
    return done


@dataclass(frozen=True)
class Left:
    """A left factor on its way: L1 [k / 16][rows][16], L0A [rows / 16][k / 16] of fractals."""

    l1: Any
    l0: Any


class _Unit(TileBuilder):
    """Builds what one core does: some rows of the states, all steps."""

    layout: LoopLayout

    def __init__(
        self,
        group: LoopGroup,
        schedule: LoopSchedule,
        rows: int,
        buffers: Mapping[int, ir.Value],
        target: Target,
    ) -> None:
        self.group, self.schedule, self.target = group, schedule, target
        self.plan: Any = group
        self.rows, self.gm = rows, buffers
        self.layout = layout_of(group, schedule, rows, target.machine)
        self.program, self.space = self.layout.program, group.space
        self.lane = self.program.lane
        self.block = self.program.row_block
        self.buffers = {}
        self.ordered, self.ragged = False, 0
        self.first: IndexLike = 0
        self.products = products_of(group, schedule, target.machine)
        self.parts = dict(zip((p.c for p in self.products), self.layout.arrivals, strict=True))
        self.first_block: IndexLike = 0
        self.meeting: Meeting | None = None
        self.height = ceil_div(rows, SIDE)
        self.turn = 0
        self.sums: dict[int, Any] = {}
        self.in_fractals: dict[Value, Any] = {}
        self.left: dict[int, Left] = {}
        self.right: dict[int, Any] = {}
        self.resident: dict[int, list[Any]] = {}
        self.ring: list[Any] = []

    def build_lanes(self, index: IndexLike, exchange: Exchange, parts: dict[int, Any]) -> None:
        """The kernel of the lanes of the core of a number."""
        self.first_block = mul(index, self.schedule.lanes // SIDE)
        self.meeting = Meeting(exchange, parts)
        self.build(0)

    def build(self, first: IndexLike) -> None:
        """The kernel of the rows from `first` on."""
        self.first = first
        self._bring_factors()
        held, of = self.layout.buffers
        inside = {of[self.program.loads[n]] for n in self.group.inputs("slice")}
        kept = {of[v] for v in (*self.layout.fixed, *self.layout.states) if v in of}
        for number, buffer in enumerate(held):
            if number in kept:
                self.buffers[number] = tile_buffer(buffer, 0)
        self._write_constants()
        for number in (*self.group.inputs("fixed"), *self.group.inputs("state")):
            self._bring(number, 0)
        for step in self.program.steps:
            if self.layout.once(step.result):
                self._step(step, once=True)
        with for_loop(0, self.group.steps) as time:
            for number, buffer in enumerate(held):
                if number not in kept:
                    self.buffers[number] = tile_buffer(buffer, SLOTS if number in inside else 0)
            self._one(time)
        time.owner.owner.attributes["cce.unroll"] = as_attribute(SLOTS)
        states = {self.group.roles[n].state: n for n in self.group.inputs("state")}
        for number in self.group.outputs("state"):
            state = states[self.group.roles[number].state]
            self._take(number, 0, self.program.loads[state])

    # Factors.

    def _bring_factors(self) -> None:
        """Right factors to L1 and what of them stays in L0B; room for left ones, zero at first."""
        f16, f32 = ir.F16Type.get(), ir.F32Type.get()
        machine = self.target.machine
        products = self.products
        for product in products:
            self.right[product.c] = self._bring_right(product)
            if product.a not in self.left:
                k = ceil_div(product.k, SIDE)
                size = k * self.height * FRACTAL
                self.left[product.a] = Left(alloc([size], f16, "L1"), alloc([size], f16, "L0A"))
            columns = ceil_div(product.n, SIDE)
            self.sums[product.c] = alloc([columns * self.height * FRACTAL], f32, "L0C")
        if products:
            size = max(ceil_div(p.k, SIDE) for p in products) * self.height * FRACTAL
            zeros = alloc([size], f16, "UB")
            with serving(*joined(*(product.members for product in products))):
                fill_zeros(zeros)
                for left in self.left.values():
                    count = _count(left.l1)
                    cce.copy_l1(restride(zeros, [count], [1]), left.l1)
        for product in products:
            blocks = self._blocks(product)
            if self.schedule.resident:
                room = [alloc([b.rows * b.columns * FRACTAL], f16, "L0B") for b in blocks]
                self.resident[product.c] = room
                for block, l0 in zip(blocks, room, strict=True):
                    self._load_right(product, block, l0)
        if products and not self.schedule.resident:
            size = machine.buffers.L0B.bytes // SLOTS // DTYPES["f16"].itemsize
            self.ring = [alloc([size], f16, "L0B") for _ in range(SLOTS)]

    def _bring_right(self, product: Factors) -> Any:
        """A right factor in L1, [k / 16][n / 16] of fractals; of products whose results come
        together, theirs side by side."""
        part, rows = self.parts[product.c], ceil_div(product.k, SIDE)
        made = alloc([product.fractals * FRACTAL], ir.F16Type.get(), "L1")
        own = ceil_div(self.schedule.lanes, SIDE)
        strides = [len(part) * own * FRACTAL, FRACTAL, 1]
        for place, each in enumerate(part):
            whole = reshaped(self.gm[each.b], [rows, ceil_div(each.n, SIDE), FRACTAL])
            columns = subview(whole, [0, self.first_block, 0], [rows, own, FRACTAL])
            with serving(*each.members):
                shape = [rows, own, FRACTAL]
                cce.copy(columns, restride(made, shape, strides, place * own * FRACTAL))
        return made

    def _blocks(self, product: Factors) -> list[BlockOfB]:
        resident, machine = self.schedule.resident, self.target.machine
        return blocks_of(product, self._depth(product.a), machine, resident)

    def _depth(self, a: int) -> int:
        """Fractals along k of the blocks that a left factor is multiplied in."""
        if self.schedule.resident:
            return ceil_div(next(p.k for p in self.products if p.a == a), SIDE)
        return depth_of(self.products, a, self.target.machine)

    def _load_right(self, product: Factors, block: BlockOfB, l0: Any) -> None:
        """A block of B to L0B, [k / 16][n / 16] of fractals as in L1."""
        columns = ceil_div(product.n, SIDE)
        shape = [block.rows, block.columns, SIDE, SIDE]
        strides = [columns * FRACTAL, FRACTAL, SIDE, 1]
        offset = (block.row * columns + block.column) * FRACTAL
        with serving(*product.members):
            source = restride(self.right[product.c], shape, strides, offset)
            cce.load2d(source, reshaped(l0, shape))

    def _multiply(self, a: int, time: ir.Value) -> None:
        """A is in UB: to L1 and L0A, and all products with it."""
        products = [product for product in self.products if product.a == a]
        with serving(*joined(*(product.members for product in products))):
            self._load_left(a, products, time)
        for product in products:
            with serving(*product.members):
                self._product(product, self.left[a].l0)

    def _load_left(self, a: int, products: Sequence[Factors], time: ir.Value) -> None:
        value, left = self.program.stores[a], self.left[a]
        width, pitch = products[0].k, self.schedule.pitch
        k, held = ceil_div(width, SIDE), self._held(value)
        rows = restride(held, [self.rows, pitch], [pitch, 1])
        if width % SIDE:
            fill_lanes(value.dtype, rows, width, k * SIDE, 0)
        shape = [k, self.rows, SIDE]
        tall = self.height * FRACTAL
        in_l1 = restride(left.l1, shape, [tall, SIDE, 1])
        if self.meeting is None:
            cce.copy_l1(restride(held, shape, [SIDE, pitch, 1]), in_l1)
        else:
            own = self.schedule.lanes // SIDE
            source = restride(held, [own, self.rows, SIDE], [SIDE, pitch, 1])
            cce.copy(source, self.meeting.part(a, time, self.first_block, own))
            self.meeting.meet(a, time)
            cce.copy(self.meeting.part(a, time, 0, k), in_l1)
        depth = self._depth(a) if self.height > 1 else k
        for row in range(0, k, depth):
            shape = [self.height, min(depth, k - row), SIDE, SIDE]
            source = restride(left.l1, shape, [FRACTAL, tall, SIDE, 1], row * tall)
            cce.load2d(source, self._of_left(left.l0, row, shape[1]))

    def _of_left(self, l0: Any, row: int, rows: int) -> Any:
        """Part of a left factor in L0A, of whole blocks along k."""
        shape = [self.height, rows, SIDE, SIDE]
        return restride(l0, shape, row_major(shape), row * self.height * FRACTAL)

    def _product(self, product: Factors, l0a: Any) -> None:
        height = self.height
        for number, block in enumerate(self._blocks(product)):
            if self.schedule.resident:
                l0b = self.resident[product.c][number]
            else:
                l0b = self.ring[self.turn % SLOTS]
                self.turn += 1
                self._load_right(product, block, l0b)
            a = self._of_left(l0a, block.row, block.rows)
            b = reshaped(l0b, [block.rows, block.columns, SIDE, SIDE])
            shape = [block.columns, height, SIDE, SIDE]
            tall = height * FRACTAL
            strides = [tall, FRACTAL, SIDE, 1]
            c = restride(self.sums[product.c], shape, strides, block.column * tall)
            cce.mad(a, b, c, flag(block.row == 0))

    def _come(self, number: int) -> None:
        """The results of products that come together from L0C to UB: to rows, unless the step that
        reads them takes fractals."""
        values = [self.program.loads[product.c] for product in self.parts[number]]
        columns, pitch = ceil_div(self.schedule.lanes, SIDE), self.schedule.pitch
        shape = [len(values) * columns, self.height, SIDE, SIDE]
        scratch = alloc([math.prod(shape)], ir.F32Type.get(), "UB")
        cce.copy_l0c(reshaped(self.sums[number], shape), reshaped(scratch, shape))
        if self.layout.direct.issuperset(values):
            self.in_fractals |= dict.fromkeys(values, scratch)
            return
        held = self._held(values[0])
        rows = restride(held, [self.rows * len(values), pitch], [pitch, 1])
        if columns * SIDE < pitch:
            fill_lanes(values[0].dtype, rows, columns * SIDE, pitch, 0)
        for place, value in enumerate(values):
            source = self._in_fractals(scratch, [self.rows, columns], place * columns)
            row = self.layout.held_shape(value)[-1]
            shape, first = [self.rows, columns, SIDE], self.layout.held_offset(value)
            change(source, restride(held, shape, [row, SIDE, 1], first))

    def _in_fractals(self, scratch: Any, shape: Sequence[int], first: int = 0) -> Any:
        """Rows by blocks of 16 columns of a result in fractals, from a block on."""
        strides = [SIDE, self.height * FRACTAL, 1]
        return restride(scratch, [*shape, SIDE], strides, first * self.height * FRACTAL)

    def _views(self, values: Sequence[Value], width: int) -> list[Any]:
        """As of tiles; where a result of a product is read in fractals, the others as blocks of 16
        lanes as well."""
        direct = [value for value in values if value in self.in_fractals]
        if not direct:
            return super()._views(values, width)
        form = self.layout.form(values[-1])
        assert form is not None, "what is computed of a product has axes"
        blocks = width * self.schedule.pitch // SIDE
        found = []
        for value in values:
            if value in self.in_fractals:
                # The first of those that come together is the first of the scratch buffer.
                found.append(self._in_fractals(self.in_fractals[value], [self.rows, blocks]))
                continue
            *outer, block, lane = self.layout.strides(value, form)
            strides = [*(outer or [0]), SIDE if block else 0, lane]
            found.append(self._view(value, [self.rows, blocks, SIDE], strides))
        return found

    # A step.

    def _one(self, time: ir.Value) -> None:
        """One step of the loop."""
        group, program = self.group, self.program
        for number in group.inputs("slice"):
            self._bring(number, self._index(group.roles[number], time))
        factors = {program.stores[product.a]: product.a for product in self.products}
        results = {program.loads[p.c]: c for c, part in self.parts.items() for p in part}
        sources = {step.result: step.sources for step in program.steps}
        of_product = {product.c: product.members for product in self.products}
        multiplied: set[int] = set()
        come: set[int] = set()
        self.in_fractals = {}

        def multiply(value: Value) -> None:
            if value in factors and factors[value] not in multiplied:
                multiplied.add(factors[value])
                self._multiply(factors[value], time)

        def need(value: Value) -> None:
            if value in results and results[value] not in come:
                come.add(results[value])
                with serving(*of_product[results[value]]):
                    self._come(results[value])

        for value in program.loads.values():
            if value not in results:
                multiply(value)
        for step in program.steps:
            if self.layout.once(step.result):
                multiply(step.result)
                continue
            for other in self.program.together.get(step.result, (step.result,)):
                for source in sources[other]:
                    need(source)
            self._step(step, once=False)
            multiply(step.result)
        for value in program.stores.values():
            need(value)
        for number in group.outputs("slice"):
            place = self._index(group.roles[number], time)
            self._take(number, place, program.stores[number])
        for number in group.outputs("last"):
            self._take(number, 0, program.stores[number])
        for old, new in self.layout.copied:
            self._copy(new, old)

    def _step(self, step: Step, once: bool) -> None:
        super()._step(step, once=True)

    def _index(self, role: Role, time: ir.Value) -> IndexLike:
        """Which part of an array a step has."""
        if not role.backwards:
            return time
        return add(as_value(self.group.steps - 1), mul(time, -1))

    def _copy(self, source: Value, to: Value) -> None:
        name, number = copying(to.dtype)
        old, new = (restride(self._held(v), [_count(self._held(v))], [1]) for v in (source, to))
        other = old if number is None else scalar(to.dtype, number)
        op(f"cce.{name}", [old, other, new])

    # Between GM and UB.

    def _bring(self, number: int, index: IndexLike) -> None:
        with serving(*self.program.readers(self.program.loads[number])):
            self._bring_rows(number, index)

    def _bring_rows(self, number: int, index: IndexLike) -> None:
        value = self.program.loads[number]
        held = self._held(value)
        if value in self.program.packed:
            start, count, array = self._run(number, index)
            load_run(array, start, count, held, self.layout.packed_block)
            return
        piece = self._piece(number, index)
        lanes = piece.columns - piece.columns % piece.block()
        rows = restride(held, [piece.rows, self.schedule.pitch], [self.schedule.pitch, 1])
        if lanes < self.schedule.pitch:
            fill_lanes(value.dtype, rows, lanes, self.schedule.pitch, 0)
        load_rows(piece, rows)

    def _take(self, number: int, index: IndexLike, value: Value) -> None:
        with serving(*self.program.makers(value)):
            self._take_rows(number, index, value)

    def _take_rows(self, number: int, index: IndexLike, value: Value) -> None:
        held = self._held(value)
        if value in self.program.packed:
            start, count, array = self._run(number, index)
            store_run(array, start, count, held, self.layout.packed_block)
            return
        piece = self._piece(number, index)
        store_rows(
            restride(held, [piece.rows, self.schedule.pitch], [self.schedule.pitch, 1]), piece
        )

    def _piece(self, number: int, index: IndexLike) -> Piece:
        """Where in GM the rows of a value lie."""
        graph, role = self.group.graph, self.group.roles[number]
        form = self.space.of(number)
        lanes, window = self.space.axes[self.lane].size, graph.windows.get(number)
        gm = self.gm[role.place]
        steps = self.group.steps if role.kind == "slice" else 1
        width, offset = lanes, 0
        if window is not None:
            # A row of its own is all that there is of a step.
            row = len(window.strides) == 1
            width, offset = _count(gm) // steps if row else window.strides[-2], window.offset
        matrix = reshaped(gm, [steps, _count(gm) // steps // width, width])
        own = self.schedule.axis is not None and self.schedule.axis in form
        first = self.first if own else 0
        column = add(offset, mul(self.first_block, SIDE))
        return Piece(matrix, index, first, column, self.rows if own else 1, self.schedule.lanes)

    def _run(self, number: int, index: IndexLike) -> tuple[IndexLike, int, Any]:
        """Where in GM the elements of a statistic lie: the first, how many, and the array."""
        role = self.group.roles[number]
        gm = self.gm[role.place]
        total, steps = _count(gm), self.group.steps if role.kind == "slice" else 1
        own = bool(self.space.of(number))
        start = mul(index, total // steps)
        if own:
            start = add(start, self.first)
        return start, self.rows if own else 1, reshaped(gm, [total])


def _count(buffer: ir.Value) -> int:
    """Elements of a buffer."""
    return math.prod(ir.MemRefType(buffer.type).shape)
