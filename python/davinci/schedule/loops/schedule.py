"""Schedules of loops: which part of the states a core has, and where right factors lie.

rows      the rows of the states are shared by the cores; a core does all steps of its own
lanes     or their lanes are: a core has all rows, and the columns of right factors that give its
          lanes; in each step the cores meet before a product, whose left factor each has a part of
L1        all right factors of a core, from the beginning on
L0B       all of them too where they fit, or those of states, which cores wait for; else blocks that
          take turns, loaded in each step
L0A       or these blocks are the left operand of the cube: the path there is the wider one, but the
          results are columns, which the vector unit turns (`turned_results`)

Where cores share lanes, right factors stay in L0B and the states have one row, that comes to L0A
straight from global memory: the cube takes a left factor of one row as a vector, of which a fractal
holds 256 numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from davinci.isa.counters import LINE_BYTES
from davinci.machine import Machine, prices
from davinci.schedule.loops.group import HANDED, LoopGroup, StepProduct
from davinci.schedule.loops.loop_layout import LoopLayout
from davinci.schedule.loops.step_form import barriers_of
from davinci.schedule.loops.turned_results import MOST_ROWS, scratch_elements, turning_cycles
from davinci.schedule.meetings import meeting_cycles
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.step_costs import step_cycles
from davinci.schedule.vector.tile_buffers import TileBuffer
from davinci.schedule.vector.tile_layout import VectorTile
from davinci.units import FRACTAL_BYTES, REPEAT_BYTES, SUM_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE

MOVED = frozenset({"f16", "f32", "s32"})
"""Types of rows that are moved."""

SLOTS = 2
"""Buffers of slices, and copies of the body of the loop."""


@dataclass(frozen=True)
class LoopSchedule:
    """How a loop is computed.

    Attributes:
        axis: of the rows; None if there is one.
        rows: of a core; the last one may have fewer.
        lanes: of a core; fewer than there are where cores share them.
        units: cores at work.
        resident: whether right factors stay in L0B.
        passing: whether those of rows that are handed on do not, and take turns beside the others.
        pitch: lanes of a row in UB.
        cycles: estimated.
        shares_lanes: whether cores share lanes and meet in each step, or share rows.
        joined: whether results of products that are used alike lie beside each other.
        turned: whether right factors are the cube's left operand, and results its columns.
        vector: whether left factors that cores tell each other are vectors to the cube, which come
            to its memory from global memory.
        delay: steps that other loops have done before its first one, which hand rows on to it.
        rest: steps that other loops do behind its last one.
    """

    axis: int | None
    rows: int
    lanes: int
    units: int
    resident: bool
    pitch: int
    steps: int
    cycles: int
    shares_lanes: bool = False
    joined: bool = False
    turned: bool = False
    delay: int = 0
    rest: int = 0
    passing: bool = False
    vector: bool = False

    slots = 1
    slots_held = 1

    @property
    def fractal_rows(self) -> int:
        return ceil_div(self.rows, SIDE)

    def __str__(self) -> str:
        where = "L0B" if self.resident else "L1"
        where += ", those of rows in L1" if self.passing else ""
        part = f"{self.lanes} lanes" if self.shares_lanes else f"{self.rows} rows"
        joined = ", results side by side" if self.joined else ""
        joined += ", on the left of the cube" if self.turned else ""
        joined += ", rows as vectors" if self.vector else ""
        behind = f", {self.delay} steps behind the first loop" if self.delay else ""
        steps = f"{self.steps} steps, {part} each of {self.units} cores"
        return f"{steps}, factors in {where}{joined}{behind}"

    def stays(self, a: int) -> bool:
        """Whether the right factors of a left one stay in L0B."""
        return self.resident and not (self.passing and a == HANDED)

    def is_vector(self, a: int) -> bool:
        """True if the cube takes this left factor, of one row, as a vector from L0A."""
        return self.vector and a != HANDED

    def left_bytes(self, a: int, k: int) -> int:
        """Bytes of a left factor of so many columns in its memory of the cube: whole fractals."""
        if self.is_vector(a):
            return round_up(2 * k, FRACTAL_BYTES)
        return self.fractal_rows * ceil_div(k, SIDE) * FRACTAL_BYTES

    @property
    def space_of_right(self) -> str:
        """The memory of the cube that right factors go to."""
        return "L0A" if self.turned else "L0B"

    @property
    def space_of_left(self) -> str:
        """The memory of the cube that left factors go to."""
        return "L0B" if self.turned else "L0A"


@dataclass(frozen=True)
class BlockOfB:
    """Fractals of a right factor that L0B holds at a time: columns and rows, from a place on."""

    column: int
    columns: int
    row: int
    rows: int


def products_of(
    group: LoopGroup, schedule: LoopSchedule, machine: Machine
) -> tuple[StepProduct, ...]:
    """The products of a core, in the order in which they are multiplied: of all columns of right
    factors, or of those of its lanes. Those whose results come to the vector unit together are one,
    whose right factor is theirs side by side."""
    found = []
    for part in group.form(machine, schedule.joined).arrivals:
        own = schedule.lanes if len(part) == 1 else len(part) * round_up(schedule.lanes, SIDE)
        members = tuple(sorted({number for product in part for number in product.members}))
        found.append(replace(part[0], n=own, members=members))
    return tuple(found)


def terms_of(products: Sequence[StepProduct]) -> list[StepProduct]:
    """The products of which the results of products are sums."""
    return [term for product in products for term in product.terms]


def depth_of(
    products: Sequence[StepProduct], a: int, schedule: LoopSchedule, machine: Machine
) -> int:
    """Fractals along k of the blocks of right factors of a left one: whole rows of them lie beside
    each other, or whole columns if they are the cube's left operand."""
    most = most_fractals(schedule, machine)
    own = [term for term in terms_of(products) if term.a == a]
    depth = ceil_div(own[0].k, SIDE)
    if schedule.turned:
        return min(depth, most)
    widest = max(ceil_div(product.n, SIDE) for product in own)
    return min(depth, max(1, most // widest))


def most_fractals(schedule: LoopSchedule, machine: Machine) -> int:
    """Fractals of the largest block of a right factor, which take turns; beside those that stay,
    in half of the memory."""
    share = SLOTS * 2 if schedule.passing else SLOTS
    return machine.buffer(schedule.space_of_right).bytes // share // FRACTAL_BYTES


def blocks_of(
    product: StepProduct, depth: int, schedule: LoopSchedule, machine: Machine
) -> list[BlockOfB]:
    """A right factor of one left factor in blocks, one of which fills half of its memory of the
    cube at most, unless all of it is resident there; in the order of k."""
    most = most_fractals(schedule, machine)
    rows, columns = ceil_div(product.k, SIDE), ceil_div(product.n, SIDE)
    if schedule.stays(product.a):
        return [BlockOfB(0, columns, 0, rows)]
    # Of one size: what is loaded into a buffer waits for the product with what was there before.
    width = ceil_div(columns, ceil_div(columns, most // depth))
    return [
        BlockOfB(column, min(width, columns - column), row, min(depth, rows - row))
        for column in range(0, columns, width)
        for row in range(0, rows, depth)
    ]


def schedule_with(
    group: LoopGroup,
    machine: Machine,
    axis: int | None,
    rows: int,
    lanes: int,
    units: int,
    meeting: int = 0,
    rest: int = 0,
) -> LoopSchedule:
    """The fastest schedule in which a core has so many rows and lanes, by estimated cycles: right
    factors in L0B, some or none of them, results side by side or not, on either side of the cube.

    Args:
        axis: that rows are counted along; None if there is one row.
        rows, lanes: of each core, in elements; the last core may have fewer.
        units: cores at work.
        meeting: lines of counters that a core looks at; 0 if cores share rows and do not meet.
        rest: steps of other loops before and behind those of this one.

    Raises:
        NoSpace: none of them fits into the memories of a core.
    """
    shares = meeting > 0
    pitch = _pitch(group, lanes)
    apart = LoopSchedule(axis, rows, lanes, units, False, pitch, group.steps, 0, shares)
    apart = replace(apart, rest=rest)
    terms = terms_of(products_of(group, apart, machine))
    fractals = sum(term.fractals for term in terms)
    resident = fractals * FRACTAL_BYTES <= machine.buffers.L0B.bytes
    apart = replace(apart, resident=resident)
    found: list[LoopSchedule] = []
    refused: NoSpace | None = None
    ways = [apart]
    of_states = sum(term.fractals for term in terms if term.a != HANDED)
    if not resident and 2 * of_states * FRACTAL_BYTES <= machine.buffers.L0B.bytes:
        ways.append(replace(apart, resident=True, passing=True))
    if group.form(machine, joined=True).rows:
        ways += [replace(schedule, joined=True) for schedule in ways]
    if _can_be_turned(group, apart):
        ways += [replace(way, turned=True) for way in ways if not way.resident]
    if shares and rows == 1 and "f16" in machine.intrinsics.get("load_gm_to_ca", ()):
        ways += [replace(way, vector=True) for way in ways if way.resident]
    for schedule in ways:
        try:
            _require_room(group, schedule, machine, fractals, meeting)
        except NoSpace as error:
            refused = error
            continue
        found.append(replace(schedule, cycles=_cycles(group, schedule, machine, meeting)))
    if not found:
        assert refused is not None, "no way and no reason"
        raise refused
    return min(found, key=lambda schedule: schedule.cycles)


def _can_be_turned(group: LoopGroup, schedule: LoopSchedule) -> bool:
    """Whether right factors may be the cube's left operand: they do not stay there, and the rows
    are columns of one fractal, of f32."""
    results = [group.program.loads[product.c].dtype for product in group.products]
    few = schedule.rows <= MOST_ROWS
    return few and not schedule.resident and bool(results) and set(results) == {"f32"}


def layout_of(group: LoopGroup, schedule: LoopSchedule, rows: int, machine: Machine) -> LoopLayout:
    """Values of a step in UB, for so many rows."""
    sizes = [axis.size for axis in group.space.axes]
    if schedule.axis is not None:
        sizes[schedule.axis] = rows
    sizes[group.program.lane] = schedule.lanes
    form = group.form(machine, schedule.joined)
    return LoopLayout(
        group, form, VectorTile(tuple(sizes), schedule.pitch), machine, schedule.turned
    )


@dataclass(frozen=True)
class LoopPart:
    """Neighbouring rows or lanes of cores.

    Attributes:
        first: row or lane of the first core.
        each: of a core.
        units: cores.
        shared: lanes at the beginning that another core has, too.
    """

    first: int
    each: int
    units: int
    shared: int = 0


def parts_of(group: LoopGroup, schedule: LoopSchedule) -> list[LoopPart]:
    """The parts of cores, that of the last one apart if it has fewer rows. One with fewer lanes
    has some of its neighbour's, too: cores that do as much come at the same time, and need not look
    for each other again."""
    whole, each = group.space.axes[-1].size, schedule.lanes
    if not schedule.shares_lanes:
        if schedule.axis is None:
            return [LoopPart(0, 1, 1)]
        whole, each = group.space.axes[schedule.axis].size, schedule.rows
    count, rest = divmod(whole, each)
    found = [LoopPart(0, each, count)]
    if rest and schedule.shares_lanes:
        found.append(LoopPart(whole - each, each, 1, each - rest))
    elif rest:
        found.append(LoopPart(count * each, rest, 1))
    return found


def _pitch(group: LoopGroup, width: int) -> int:
    """Lanes of a row of so many: whole fractals, and where statistics are combined with rows,
    repeats."""
    program = group.program
    repeat = REPEAT_BYTES // 4
    whole = all(form is None or program.lane in form for form in program.forms.values())
    block = max(SIDE, program.row_block, program.lane_block)
    return round_up(width, block if whole or width <= repeat // 2 else repeat)


def _require_room(
    group: LoopGroup, schedule: LoopSchedule, machine: Machine, fractals: int, meeting: int
) -> None:
    """Fails unless everything fits the memories, and the counters of cores that meet."""
    program, lanes = group.program, group.space.axes[-1].size
    _require_rows(group)
    made = {step.result for step in program.steps}
    made |= {program.loads[n] for n in group.inputs("product")}
    if any(program.stores[n] not in made for n in group.outputs("state")):
        raise NoSpace("a state that is another one")
    if group.rows is not None and group.rows.columns % SIDE:
        raise NoSpace("rows of an array that are no whole blocks")
    for term in terms_of(group.products):
        handed = term.a == HANDED
        if term.n != lanes or term.k != (round_up(term.k, SIDE) if handed else lanes):
            raise NoSpace("a product of other sizes than the states")
        for number in (term.c,) if handed else (term.a, term.c):
            form = group.space.order[number]
            if program.lane not in form or (schedule.axis is not None and len(form) < 2):
                raise NoSpace("a product of something else than rows")
    height, buffers = schedule.fractal_rows, machine.buffers
    inner = {term.a: term.k for term in terms_of(group.products)}
    left = sum(schedule.left_bytes(a, k) for a, k in inner.items())
    through = sum(schedule.left_bytes(a, k) for a, k in inner.items() if not schedule.is_vector(a))
    columns = [ceil_div(product.n, SIDE) for product in products_of(group, schedule, machine)]
    sums = height * sum(columns) * SUM_BYTES
    # Sums come to UB in fractals, those of all products at a time at most.
    held = _ub_bytes(group, schedule, machine) + sums
    if schedule.turned:
        parts = layout_of(group, schedule, schedule.rows, machine).arrivals
        each = scratch_elements(ceil_div(schedule.lanes, SIDE) * SIDE, schedule.rows)
        held += 4 * each * sum(map(len, parts))
    # Of each core two lines at most, and its own.
    held += 2 * (machine.cores + 1) * LINE_BYTES if meeting else 0
    needs = (
        ("L1", fractals * FRACTAL_BYTES + through, buffers.L1.bytes),
        (schedule.space_of_left, left, machine.buffer(schedule.space_of_left).bytes),
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
    widest = max((term.k for term in terms_of(group.products)), default=0)
    zeros = widest * SIDE * 2 * schedule.fractal_rows
    if group.rows is not None:
        shape = (schedule.rows, group.rows.columns)
        kinds = {group.rows.element, "f16"}
        size += sum(TileBuffer(element, shape, once=False).bytes for element in kinds)
    return size + sum(map(layout.scratch_bytes, layout.program.steps)) + zeros


def _cycles(group: LoopGroup, schedule: LoopSchedule, machine: Machine, meeting: int) -> int:
    """Estimated cycles. A step's products come one after the other, and the vector unit computes
    with each while those behind it are multiplied: with the last one nothing else goes on. Nor does
    anything while cores that share lanes meet, and load a left factor, but for products of rows
    that are handed on, which are there before."""
    layout = layout_of(group, schedule, schedule.rows, machine)
    steps = [s for s in layout.program.steps if not layout.once(s.result) and layout.width(s)]
    vector = sum(step_cycles(step, layout) for step in steps)
    vector += barriers_of(steps) * machine.sync.barrier_cycles
    height = schedule.fractal_rows
    products = products_of(group, schedule, machine)
    terms = terms_of(products)
    cube = early = 0.0
    busy = [0.0, 0.0]
    for own in (False, True):
        loads = mads = 0.0
        for term in terms:
            if (term.a != HANDED) != own:
                continue
            mads += prices.mad(machine, term.fractals * height)
            if not schedule.stays(term.a):
                depth = depth_of(products, term.a, schedule, machine)
                count = len(blocks_of(term, depth, schedule, machine))
                size, space = term.fractals * FRACTAL_BYTES, schedule.space_of_right
                loads += prices.load2d(machine, space, size, count)
        cube, early = max(loads, mads), cube
        busy = [busy[0] + loads, busy[1] + mads]
    for part in layout.arrivals:
        columns = len(part) * ceil_div(schedule.lanes, SIDE)
        vector += prices.l0c_to_ub(machine, columns * height * SUM_BYTES, 0)
        if schedule.turned:
            vector += turning_cycles(machine, columns * SIDE, schedule.rows)
            continue
        # In fractals an instruction takes 16 lanes of a repeat.
        vector += schedule.rows * columns
        if group.program.loads[part[0].c] not in layout.direct:
            vector += prices.vector(machine, "vadds", "f32", 0) + machine.sync.barrier_cycles
    start = prices.ends(machine)
    factors: Mapping[int, StepProduct] = {term.b: term for term in terms}
    filled = sum(p.fractals for p in factors.values()) * FRACTAL_BYTES
    once = start + filled / machine.l2.read_bytes_per_cycle
    parts = max(1, len(layout.arrivals))
    first, then = cube / parts, vector / parts
    each = (parts - 1) * max(first, then) + then + prices.writing(machine).start_cycles
    if meeting:
        for a, k in {term.a: term.k for term in terms if term.a != HANDED}.items():
            size = schedule.rows * k * FRACTAL_BYTES // (SIDE * SIDE)
            each += meeting_cycles(machine, meeting, loaded=size)
            if schedule.resident and not schedule.is_vector(a):
                # Else loads of right factors take its time.
                each += prices.load2d(machine, "L0A", schedule.left_bytes(a, k))
                each += machine.sync.flag_cycles
    each = max(first + each, first + early, *busy)
    return int(once + (group.steps + schedule.delay + schedule.rest) * each)
