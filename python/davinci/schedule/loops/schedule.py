"""Schedules of loops on a core: rows that a core has, and where right factors lie.

rows      the rows of the states are shared by the cores; a core does all steps of its own
L1        all right factors, from the beginning on
L0B       all of them too where they fit, else blocks that take turns, loaded in each step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from davinci.machine import Machine, prices
from davinci.operators.vector_program import Value
from davinci.schedule.loops.group import Factors, LoopGroup
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.step_costs import step_cycles
from davinci.schedule.vector.tile_buffers import NOT_IN_PLACE, Buffer, assigned
from davinci.schedule.vector.tile_layout import Tile, TileLayout
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import REPEAT_BYTES, ceil_div, round_up

FRACTAL_BYTES = 2 * SIDE * SIDE
SUM_BYTES = 4 * SIDE * SIDE

MOVED = frozenset({"f16", "f32", "s32"})
"""Types of rows that are moved."""

SLOTS = 2
"""Buffers of slices, and copies of the body of the loop."""


class LoopLayout(TileLayout):
    """The values of a step in UB: fixed ones and states keep their buffers.

    Attributes:
        fixed: values that are the same in all steps.
        states: of the value of each state the one that takes its place.
    """

    def __init__(self, group: LoopGroup, tile: Tile, machine: Machine) -> None:
        super().__init__(group.space, group.program, tile, machine)
        program = group.program
        self.fixed = {program.loads[n] for n in group.inputs("fixed")}
        self.fixed |= set(program.constants.values())
        for step in program.steps:
            if self.fixed.issuperset(step.sources):
                self.fixed.add(step.result)
        following = {group.roles[n].state: program.stores[n] for n in group.outputs("state")}
        self.states = {
            program.loads[n]: following[group.roles[n].state] for n in group.inputs("state")
        }

    def once(self, value: Value) -> bool:
        """Whether a value is the same in all steps."""
        return value in self.fixed

    @cached_property
    def buffers(self) -> tuple[list[Buffer], dict[Value, int]]:
        """As of tiles; a state is computed in its own buffer where its last use allows that."""
        program = self.program
        lasting = frozenset(self.fixed | set(self.states))

        def kind(value: Value) -> Buffer:
            return Buffer(value.dtype, self.held_shape(value), value in self.fixed)

        found, of = assigned(program, lasting, kind, {})
        last = {v: i for i, step in enumerate(program.steps) for v in step.sources}
        made = {step.result: i for i, step in enumerate(program.steps)}
        taken: set[Value] = set()
        for old, new in self.states.items():
            if new in taken or new not in made or kind(old) != kind(new):
                continue
            place, end = made[new], last.get(old, -1)
            if end < place or (end == place and program.steps[place].name not in NOT_IN_PLACE):
                of[new] = of[old]
                taken.add(new)
        return found, of

    @cached_property
    def copied(self) -> list[tuple[Value, Value]]:
        """States that are copied to their buffers when a step ends: buffer of, and value."""
        of = self.buffers[1]
        return [(old, new) for old, new in self.states.items() if of[old] != of[new]]


@dataclass(frozen=True)
class LoopSchedule:
    """How a loop is computed.

    Attributes:
        axis: of the rows; None if there is one.
        rows: of a core; the last one may have fewer.
        units: cores at work.
        resident: whether right factors stay in L0B.
        pitch: lanes of a row in UB.
        cycles: estimated.
    """

    axis: int | None
    rows: int
    units: int
    resident: bool
    pitch: int
    steps: int
    cycles: int

    slots = 1
    slots_held = 1

    @property
    def fractal_rows(self) -> int:
        return ceil_div(self.rows, SIDE)

    def __str__(self) -> str:
        where = "L0B" if self.resident else "L1"
        rows = f"{self.rows} rows each of {self.units} cores"
        return f"{self.steps} steps, {rows}, factors in {where}"


@dataclass(frozen=True)
class BlockOfB:
    """Fractals of a right factor that L0B holds at a time: columns and rows, from a place on."""

    column: int
    columns: int
    row: int
    rows: int


def depth_of(group: LoopGroup, a: int, machine: Machine) -> int:
    """Fractals along k of the blocks of right factors of a left one: whole rows of them lie beside
    each other."""
    most = machine.buffers.L0B.bytes // SLOTS // FRACTAL_BYTES
    products = [product for product in group.products if product.a == a]
    widest = max(ceil_div(product.n, SIDE) for product in products)
    return min(ceil_div(products[0].k, SIDE), max(1, most // widest))


def blocks_of(product: Factors, depth: int, machine: Machine) -> list[BlockOfB]:
    """A right factor in blocks, one of which fills half of L0B at most; in the order of k."""
    most = machine.buffers.L0B.bytes // SLOTS // FRACTAL_BYTES
    rows, columns = ceil_div(product.k, SIDE), ceil_div(product.n, SIDE)
    width = min(columns, most // depth)
    return [
        BlockOfB(column, min(width, columns - column), row, min(depth, rows - row))
        for column in range(0, columns, width)
        for row in range(0, rows, depth)
    ]


def schedule_of(group: LoopGroup, machine: Machine, cores: int) -> LoopSchedule:
    """The schedule of a loop.

    Raises:
        NoSpace: its states, or what they are multiplied by, do not fit a core.
    """
    axis = _row_axis(group)
    rows = 1 if axis is None else group.space.axes[axis].size
    each = ceil_div(rows, min(rows, cores))
    units = ceil_div(rows, each)
    pitch = _pitch(group)
    fractals = sum(product.fractals for product in group.products)
    resident = fractals * FRACTAL_BYTES <= machine.buffers.L0B.bytes
    schedule = LoopSchedule(axis, each, units, resident, pitch, group.steps, 0)
    _require_room(group, schedule, machine, fractals)
    cycles = _cycles(group, schedule, machine)
    return LoopSchedule(axis, each, units, resident, pitch, group.steps, cycles)


def layout_of(group: LoopGroup, schedule: LoopSchedule, rows: int, machine: Machine) -> LoopLayout:
    """Values of a step in UB, for so many rows."""
    sizes = [axis.size for axis in group.space.axes]
    if schedule.axis is not None:
        sizes[schedule.axis] = rows
    return LoopLayout(group, Tile(tuple(sizes), schedule.pitch), machine)


def parts_of(group: LoopGroup, schedule: LoopSchedule) -> list[tuple[int, int, int]]:
    """First row, rows of a unit and number of units; of the last unit apart if it has fewer."""
    if schedule.axis is None:
        return [(0, 1, 1)]
    count, rest = divmod(group.space.axes[schedule.axis].size, schedule.rows)
    found = [(0, schedule.rows, count)]
    return [*found, (count * schedule.rows, rest, 1)] if rest else found


def _row_axis(group: LoopGroup) -> int | None:
    """The axis that is not lanes."""
    axes, lane = group.space.axes, group.program.lane
    if len(axes) > 2 or axes[lane].size == 1:
        raise NoSpace(f"a loop on values of {len(axes)} axes, {axes[lane].size} lanes")
    for number in (*group.graph.inputs, *group.graph.outputs):
        if group.space.order[number] != group.space.of(number):
            raise NoSpace("a value of a loop that is turned")
    if lane == 0:
        return None
    if axes[0].reduced:
        raise NoSpace("rows that are summed up in a loop")
    for number in group.graph.outputs:
        if 0 not in group.space.order[number]:
            raise NoSpace("a value of a loop that all rows have in common")
    return 0


def _pitch(group: LoopGroup) -> int:
    """Lanes of a row: whole fractals, and where statistics are combined with rows, repeats."""
    program, width = group.program, group.space.axes[-1].size
    repeat = REPEAT_BYTES // 4
    whole = all(form is None or program.lane in form for form in program.forms.values())
    block = max(SIDE, program.row_block, program.lane_block)
    return round_up(width, block if whole or width <= repeat // 2 else repeat)


def _require_room(
    group: LoopGroup, schedule: LoopSchedule, machine: Machine, fractals: int
) -> None:
    """Fails unless everything fits the memories."""
    program, lanes = group.program, group.space.axes[-1].size
    _require_rows(group)
    made = {step.result for step in program.steps}
    made |= {program.loads[n] for n in group.inputs("product")}
    if any(program.stores[n] not in made for n in group.outputs("state")):
        raise NoSpace("a state that is another one")
    for product in group.products:
        if (product.n, product.k) != (lanes, lanes):
            raise NoSpace("a product of other sizes than the states")
        for number in (product.a, product.c):
            form = group.space.order[number]
            if program.lane not in form or (schedule.axis is not None and len(form) < 2):
                raise NoSpace("a product of something else than rows")
    height, buffers = schedule.fractal_rows, machine.buffers
    inner = {product.a: ceil_div(product.k, SIDE) for product in group.products}
    left = height * sum(inner.values()) * FRACTAL_BYTES
    sums = height * sum(ceil_div(product.n, SIDE) for product in group.products) * SUM_BYTES
    # Sums come to UB in fractals, those of all products at a time at most.
    held = _ub_bytes(group, schedule, machine) + sums
    needs = (
        ("L1", fractals * FRACTAL_BYTES + left, buffers.L1.bytes),
        ("L0A", left, buffers.L0A.bytes),
        ("L0C", sums, buffers.L0C.bytes),
        ("UB", held, buffers.UB.bytes),
    )
    for name, size, room in needs:
        if size > room:
            raise NoSpace(f"a loop that needs {size} bytes of {name}")


def _require_rows(group: LoopGroup) -> None:
    """Fails unless what lies in GM is rows that can be moved, or statistics of whole arrays."""
    program, graph = group.program, group.graph
    for number, value in (*program.loads.items(), *program.stores.items()):
        window = graph.windows.get(number)
        if value in program.packed:
            if window is not None:
                raise NoSpace("a part of an array of statistics in a loop")
            continue
        if value.dtype not in MOVED:
            raise NoSpace(f"rows of {value.dtype} in a loop")
        if window is not None:
            width = graph.arrays[number].shape[-1]
            *_, pitch, step = (window.offset + width, *window.strides)
            whole = width == group.space.axes[-1].size
            if step != 1 or not whole or window.offset + width > pitch:
                raise NoSpace("a part of an array that is no columns")


def _ub_bytes(group: LoopGroup, schedule: LoopSchedule, machine: Machine) -> int:
    layout = layout_of(group, schedule, schedule.rows, machine)
    buffers, of = layout.buffers
    slices = {of[group.program.loads[n]] for n in group.inputs("slice")}
    size = sum(b.bytes * (SLOTS if i in slices else 1) for i, b in enumerate(buffers))
    zeros = max((p.k for p in group.products), default=0) * SIDE * 2 * schedule.fractal_rows
    return size + sum(map(layout.scratch_bytes, group.program.steps)) + zeros


def _cycles(group: LoopGroup, schedule: LoopSchedule, machine: Machine) -> int:
    """Estimated cycles. A step's products come one after the other, and the vector unit computes
    with each while those behind it are multiplied: with the last one nothing else goes on."""
    layout = layout_of(group, schedule, schedule.rows, machine)
    steps = [step for step in group.program.steps if not layout.once(step.result)]
    vector = sum(step_cycles(step, layout) + machine.sync.barrier_cycles for step in steps)
    loads = cube = 0.0
    height = schedule.fractal_rows
    for product in group.products:
        cube += prices.mad(machine, product.fractals * height)
        if not schedule.resident:
            count = len(blocks_of(product, depth_of(group, product.a, machine), machine))
            loads += prices.load2d(machine, "L0B", product.fractals * FRACTAL_BYTES, count)
        sums = ceil_div(product.n, SIDE) * height * SUM_BYTES
        vector += prices.l0c_to_ub(machine, sums, 0)
    start = prices.ends(machine)
    factors: Mapping[int, Factors] = {p.b: p for p in group.products}
    filled = sum(p.fractals for p in factors.values()) * FRACTAL_BYTES
    once = start + filled / machine.l2.read_bytes_per_cycle
    parts = max(1, len(group.products))
    first, then = max(loads, cube) / parts, vector / parts
    each = first + (parts - 1) * max(first, then) + then + prices.writing(machine).start_cycles
    return int(once + group.steps * each)
