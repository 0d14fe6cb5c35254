"""Builds the two programs of loops on a split machine: that of cube cores, which keep the right
factors, and that of the vector cores beside them, which keep the states.

    cube core                                       vector cores
      right factors to L1, and to L0B if they fit     states and fixed values to UB
      for step:                                       for step:
        for each left factor:                           slices to UB; as soon as it is there, a
          wait for it; all cube cores meet                left factor to global memory
          to L1, L0A; C = A B to global memory          C to UB; the other steps of the program
                                                      states, and outputs of the last step, to GM

What they hand to each other is in `loops.crossing`. Vector cores share the rows of their cube core,
or else its lanes; where they cannot, the second one only answers flags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from davinci.dialects.cce import build as cce
from davinci.mlir import Op, func, ir
from davinci.passes.analysis.kernels import BLOCKS, MEETS
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.exchange import add_arguments
from davinci.passes.ascend_to_cce.loops.crossing import (
    AHEAD,
    LEFT,
    MADE,
    TAKEN,
    LoopCrossing,
    crossing_of,
    left_types,
    meet,
    result_types,
)
from davinci.passes.ascend_to_cce.loops.kernel import LoopCore
from davinci.passes.ascend_to_cce.loops.products import LoopProducts, elements_of
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import only_blocks
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.builder import (
    IndexLike,
    add,
    as_attribute,
    choose,
    divided,
    for_loop,
    mul,
    reshaped,
    restride,
    subview,
)
from davinci.passes.programs import vector_program
from davinci.schedule.loops.choice import meetings_of
from davinci.schedule.loops.group import LoopGroup, StepProduct
from davinci.schedule.loops.schedule import (
    SLOTS,
    LoopPart,
    LoopSchedule,
    of_vector_core,
    parts_of,
    products_of,
    terms_of,
)
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, round_up

Loops = Sequence[tuple[LoopGroup, LoopSchedule]]


def build_loops_beside(
    loops: Loops, buffers: Mapping[int, ir.Value], kernel: Op, target: Target
) -> int:
    """Builds both programs of loops side by side; returns how many blocks share them.

    Args:
        buffers: arguments of the kernel in GM, by place.
    """
    machine = target.machine
    lefts = [left_types(*loop) for loop in loops]
    results = [result_types(*loop, machine) for loop in loops]
    add_arguments(kernel, [kind for each in lefts for kind in each])
    other = vector_program(kernel, [kind for each in results for kind in each])
    own, block = (each.regions[0].blocks[0] for each in (kernel, other))

    def crossings(arguments: Sequence[ir.Value]) -> list[LoopCrossing]:
        """The crossing of each loop, made of the last arguments of a program."""
        handed = iter(arguments[-sum(map(len, (*lefts, *results))) :])
        factors, sums = (
            [[next(handed) for _ in each] for each in some] for some in (lefts, results)
        )
        return [
            crossing_of(*loop, machine, *arrays)
            for loop, *arrays in zip(loops, factors, sums, strict=True)
        ]

    units = _build_cube_cores(loops, crossings(list(own.arguments)), buffers, target)
    if any(meetings_of_loop(*loop) for loop in loops):
        kernel.attributes[MEETS] = ir.UnitAttr.get()
    with ir.InsertionPoint(block):
        theirs = {n: block.arguments[ir.BlockArgument(v).arg_number] for n, v in buffers.items()}
        _build_vector_cores(loops, crossings(list(block.arguments)), theirs, target)
        func.ReturnOp([])
    other.attributes[BLOCKS] = as_attribute(units)
    return units


def _build_cube_cores(
    loops: Loops,
    crossings: Sequence[LoopCrossing],
    buffers: Mapping[int, ir.Value],
    target: Target,
) -> int:
    """Builds the program of cube cores; returns how many blocks share it. All of them meet equally
    often, those of other loops and those without work with nothing to do."""
    meetings = [meetings_of_loop(*loop) for loop in loops]

    def build(number: int, part: LoopPart, unit: IndexLike, place: IndexLike) -> None:
        group, schedule = loops[number]
        core = LoopCubeCore(group, schedule, rows_of(schedule, part), buffers, target)
        core.place(crossings[number], unit, place)
        core.build()
        meet_often(max(meetings) - meetings[number])

    units = _for_parts(loops, build)
    if max(meetings):
        with only_blocks(units, target.machine.cores - units):
            meet_often(max(meetings))
    return units


def _build_vector_cores(
    loops: Loops,
    crossings: Sequence[LoopCrossing],
    buffers: Mapping[int, ir.Value],
    target: Target,
) -> None:
    """Builds the program of the vector cores beside them.

    Args:
        buffers: arguments of that program in GM, by place.
    """
    lane = cce.get_sub_block_idx()

    def build(number: int, part: LoopPart, unit: IndexLike, place: IndexLike) -> None:
        group, of_cube = loops[number]
        rows = rows_of(of_cube, part)
        schedule, count = of_vector_core(group, of_cube, rows, target.machine)
        core = LoopVectorCore(group, schedule, schedule.rows, buffers, target)
        core.place(crossings[number], unit, place, of_cube, rows, lane if count > 1 else 0)
        if count > 1:
            core.build(core.first)
        else:
            choose(lane, 0, lambda: core.build(core.first), core.answer)

    _for_parts(loops, build)


def _for_parts(loops: Loops, build: Callable[[int, LoopPart, IndexLike, IndexLike], None]) -> int:
    """Builds what the blocks of each part of each loop do; how many blocks there are.

    Args:
        build: given the number of the loop, the part, which unit of the loop a block is, and the
            row or lane that it begins with.
    """
    done = 0
    for number, (group, schedule) in enumerate(loops):
        before = 0
        for part in parts_of(group, schedule):
            with only_blocks(done, part.units) as (_, index):
                place = add(part.first, mul(index, part.each))
                build(number, part, add(before, index), place)
            done, before = done + part.units, before + part.units
    return done


def rows_of(schedule: LoopSchedule, part: LoopPart) -> int:
    """Rows of each core of a part."""
    return schedule.rows if schedule.shares_lanes else part.each


def meetings_of_loop(group: LoopGroup, schedule: LoopSchedule) -> int:
    """The number of times that a loop's cube cores meet in all of its steps."""
    return group.steps * meetings_of(group) if schedule.shares_lanes else 0


def meet_often(times: int) -> None:
    """Meets so often, with nothing to do."""
    if times:
        with for_loop(0, times):
            meet()


class LoopCubeCore(LoopProducts):
    """Builds what a cube core does: the products of all steps."""

    def place(self, crossing: LoopCrossing, unit: IndexLike, place: IndexLike) -> None:
        """Says where the core is.

        Args:
            unit: which one of its loop it is.
            place: its first row, or its first lane if cores share these.
        """
        self.crossing, self.unit = crossing, unit
        self.first_block = _blocks(place) if self.schedule.shares_lanes else 0

    def build(self) -> None:
        """Everything."""
        self._bring_factors()
        with for_loop(0, self.group.steps) as time:
            cce.wait_core_flag(flag=TAKEN)
            for a in self.lefts_in_order:
                self._multiply(a, time)
                for product in self.products:
                    if product.a == a:
                        self._leave(product, time)
        time.owner.owner.attributes["cce.unroll"] = as_attribute(SLOTS)
        for _ in range(min(AHEAD, self.group.steps)):
            cce.wait_core_flag(flag=TAKEN)

    def _multiply(self, a: int, time: ir.Value) -> None:
        if not self.schedule.stays(a):
            self._load_ahead([term for term in terms_of(self.products) if term.a == a])
        super()._multiply(a, time)

    def _clear(self, rooms: Sequence[ir.Value]) -> None:
        for room in rooms:
            cce.clear_l1(reshaped(room, [1, elements_of(room)]))

    def _load_left(self, a: int, products: Sequence[StepProduct], time: ir.Value) -> None:
        """A left factor, as soon as all vector cores that have a part of it have stored that."""
        cce.wait_core_flag(flag=LEFT)
        if self.schedule.shares_lanes:
            meet()
        blocks = ceil_div(products[0].k, SIDE)
        if self.schedule.is_vector(a):
            l0 = self.left[a].l0
            blocks = elements_of(l0) // SIDE
            target = reshaped(l0, [blocks, 1, SIDE])
        else:
            target = self._in_l1(a, blocks)
        cce.copy(self.crossing.left(a, self.unit, time, [0, 0], [blocks, self.rows]), target)

    def _leave(self, product: StepProduct, time: ir.Value) -> None:
        """The result of a product to global memory."""
        with serving(*product.members):
            place = self.crossing.made(product.c, self.unit, time)
            target = subview(place, [0, 0], [self.rows, ir.MemRefType(place.type).shape[1]])
            shape = [ceil_div(product.n, SIDE), self.height, SIDE, SIDE]
            cce.fixpipe(reshaped(self.sums[product.c], shape), target)
            cce.set_core_flag(pipe="FIX", flag=MADE)


class LoopVectorCore(LoopCore):
    """Builds what a vector core does: all but the products."""

    def place(
        self,
        crossing: LoopCrossing,
        unit: IndexLike,
        place: IndexLike,
        schedule: LoopSchedule,
        rows: int,
        lane: IndexLike,
    ) -> None:
        """Says where the core is.

        Args:
            unit, place: of its cube core, see `LoopCubeCore.place`.
            schedule, rows: of that.
            lane: which of the cores that share these it is.
        """
        self.crossing, self.unit = crossing, unit
        self.of_cube = schedule
        self.first_row: IndexLike = mul(lane, self.rows) if self.rows < rows else 0
        self.first_lane: IndexLike = 0
        if self.schedule.lanes < schedule.lanes:
            self.first_lane = mul(lane, self.schedule.lanes)
        if schedule.shares_lanes:
            self.first_block, self.first = _blocks(place), self.first_row
        else:
            self.first = add(place, self.first_row)
        self.first_block = add(self.first_block, _blocks(self.first_lane))
        order = self.lefts_in_order
        made = products_of(self.group, schedule, self.target.machine)
        self.arrivals = [product for a in order for product in made if product.a == a]

    def build(self, first: IndexLike) -> None:
        self._take_none()
        super().build(first)

    def answer(self) -> None:
        """Flags, by a core that has nothing else to do."""
        self._take_none()
        with for_loop(0, self.group.steps):
            for a in self.lefts_in_order:
                cce.set_core_flag(pipe="MTE3", flag=LEFT)
                for product in self.arrivals:
                    if product.a == a:
                        cce.wait_core_flag(flag=MADE)
            cce.set_core_flag(pipe="MTE2", flag=TAKEN)

    def _take_none(self) -> None:
        """Says that the places of the first steps are free."""
        for _ in range(min(AHEAD, self.group.steps)):
            cce.set_core_flag(pipe="MTE2", flag=TAKEN)

    def _bring_factors(self) -> None:
        """They are the cube core's."""

    def _one(self, time: ir.Value) -> None:
        self.time, self.waited = time, 0
        super()._one(time)
        self._wait_until(len(self.arrivals))
        cce.set_core_flag(pipe="MTE2", flag=TAKEN)

    def _multiply(self, a: int, time: ir.Value) -> None:
        """Hands a left factor to the cube core."""
        value = self.program.stores[a]
        k = next(term.k for term in terms_of(self.products) if term.a == a)
        with serving(*self._members_of(a)):
            self._fill_up(value, k)
            blocks = ceil_div(self.schedule.lanes, SIDE)
            source = self._blocks_of_left(value, blocks)
            first = [self.first_block, self.first_row]
            cce.copy(source, self.crossing.left(a, self.unit, time, first, [blocks, self.rows]))
            cce.set_core_flag(pipe="MTE3", flag=LEFT)

    def _wait_until(self, count: int) -> None:
        """Waits for the first results of a step, so many, unless they were waited for."""
        for _ in range(self.waited, count):
            cce.wait_core_flag(flag=MADE)
        self.waited = max(self.waited, count)

    def _come(self, number: int) -> None:
        """The results of products that come together to UB, in rows."""
        values = [self.program.loads[product.c] for product in self.parts[number]]
        place = next(i for i, product in enumerate(self.arrivals) if product.c == number)
        self._wait_until(place + 1)
        lanes, pitch = self.schedule.lanes, self.schedule.pitch
        wide, held = round_up(lanes, SIDE), self._held(values[0])
        if wide < pitch:
            rows = restride(held, [self.rows * len(values), pitch], [pitch, 1])
            fill_lanes(values[0].dtype, rows, wide, pitch, 0)
        first = [self.first_row, 0, self.first_lane]
        size = [self.rows, len(values), wide]
        source = self.crossing.taken(number, self.unit, self.time, first, size)
        row, each = (of(values[0])[-1] for of in (self.layout.held_shape, self.layout.shape))
        cce.copy(source, restride(held, size, [row, each, 1]))


def _blocks(lane: IndexLike) -> IndexLike:
    """Lanes in blocks of 16, of which they are a multiple."""
    return divided(lane, SIDE)
