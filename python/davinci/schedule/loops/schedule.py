"""Schedules of loops: which part of the states a core has, and where right factors lie.

rows      the rows of the states are shared by the cores; a core does all steps of its own
lanes     or their lanes are: a core has all rows, and the columns of right factors that give its
          lanes; in each step the cores meet before a product, whose left factor each has a part of
L1        all right factors of a core, from the beginning on
L0B       all of them too where they fit, or those of states, which cores wait for; else blocks that
          take turns, loaded in each step
L0A       or these blocks are the left operand of the cube: the path there is the wider one, but the
          results are columns, which the vector unit turns (`turned_results`); what L0B has room for
          stays there, as the right operand of the first products

Where cores share lanes, right factors stay in L0B and the states have one row, that comes to L0A
straight from global memory: the cube takes a left factor of one row as a vector, of which a fractal
holds 256 numbers.

On a split machine a core is a cube core, which has the right factors, with the vector cores beside
it, which have the states: they share its rows, or else its lanes (`of_vector_core`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.machine import VECTOR_CORE, Machine, for_vector
from davinci.operators.vector_program import JOIN, PART
from davinci.schedule.loops.group import HANDED, LoopGroup, StepProduct
from davinci.schedule.loops.loop_layout import LoopLayout
from davinci.schedule.vector.tile_layout import VectorTile
from davinci.units import FRACTAL_BYTES, REPEAT_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE

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
        apart: whether a core is a cube core with vector cores beside it, which have the states.
        kept: where right factors are the cube's left operand, how many columns of fractals of them,
            the first ones of a step, are not, but its right operand, and stay in L0B.
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
    apart: bool = False
    kept: int = 0

    slots = 1
    slots_held = 1

    @property
    def fractal_rows(self) -> int:
        return ceil_div(self.rows, SIDE)

    def __str__(self) -> str:
        where = "L0B" if self.resident else "L1"
        kind = "cube cores, with vector cores beside" if self.apart else "cores"
        where += ", those of rows in L1" if self.passing else ""
        part = f"{self.lanes} lanes" if self.shares_lanes else f"{self.rows} rows"
        joined = ", results side by side" if self.joined else ""
        joined += ", on the left of the cube" if self.turned else ""
        joined += f", {self.kept * SIDE} columns on the right and in L0B" if self.kept else ""
        joined += ", rows as vectors" if self.vector else ""
        behind = f", {self.delay} steps behind the first loop" if self.delay else ""
        steps = f"{self.steps} steps, {part} each of {self.units} {kind}"
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
    left = schedule.kept
    for place in range(len(found)):
        kept = min(left, ceil_div(found[place].n, SIDE))
        found[place], left = replace(found[place], kept=kept), left - kept
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
    cube at most, unless all of it is resident there; in the order of k. Without the columns that
    stay in L0B beside others (`kept_of`)."""
    most = most_fractals(schedule, machine)
    rows, columns = ceil_div(product.k, SIDE), ceil_div(product.n, SIDE)
    if schedule.stays(product.a):
        return [BlockOfB(0, columns, 0, rows)]
    columns -= product.kept
    if not columns:
        return []
    if product.kept:
        # Beside them has the left factor a place.
        most = max(depth, most - rows)
    # Of one size: what is loaded into a buffer waits for the product with what was there before.
    width = ceil_div(columns, ceil_div(columns, most // depth))
    return [
        BlockOfB(column, min(width, columns - column), row, min(depth, rows - row))
        for column in range(0, columns, width)
        for row in range(0, rows, depth)
    ]


def kept_of(product: StepProduct) -> BlockOfB:
    """The columns of a right factor that stay in L0B while others take turns."""
    columns = ceil_div(product.n, SIDE)
    return BlockOfB(columns - product.kept, product.kept, 0, ceil_div(product.k, SIDE))


def most_kept(products: Sequence[StepProduct], schedule: LoopSchedule, machine: Machine) -> int:
    """How many columns of fractals of right factors, the first ones of a step, L0B has room for
    beside left factors; 0 if a left factor does not fit a buffer of blocks in L0A."""
    inner = {term.a: term.k for term in terms_of(products)}
    if any(ceil_div(k, SIDE) > most_fractals(schedule, machine) for k in inner.values()):
        return 0
    room = machine.buffers.L0B.bytes - sum(schedule.left_bytes(a, k) for a, k in inner.items())
    found = 0
    for product in products:
        whole = ceil_div(product.n, SIDE)
        each = sum(ceil_div(term.k, SIDE) for term in product.terms) * FRACTAL_BYTES
        columns = min(whole, max(0, room) // each)
        found, room = found + columns, room - columns * each
        if columns < whole:
            break
    return found


def layout_of(group: LoopGroup, schedule: LoopSchedule, rows: int, machine: Machine) -> LoopLayout:
    """Values of a step in UB, for so many rows, by a schedule of the core that has them."""
    sizes = [axis.size for axis in group.space.axes]
    if schedule.axis is not None:
        sizes[schedule.axis] = rows
    sizes[group.program.lane] = schedule.lanes
    form, tile = group.form(machine, schedule.joined), VectorTile(tuple(sizes), schedule.pitch)
    in_rows = schedule.turned or schedule.apart
    return LoopLayout(group, form, tile, for_vector(machine), in_rows)


def lanes_apart(group: LoopGroup) -> bool:
    """Whether each lane is computed without the others, but for products, and what is stored has
    lanes: cores may share them."""
    program, space = group.program, group.space
    if space.axes[-1].reduced or program.lane != len(space.axes) - 1:
        return False
    if any(program.lane not in space.order[number] for number in group.graph.outputs):
        return False
    return not any(step.name in (JOIN, PART, "iota") for step in program.steps)


def of_vector_core(
    group: LoopGroup, schedule: LoopSchedule, rows: int, machine: Machine
) -> tuple[LoopSchedule, int]:
    """The schedule of a vector core beside a cube core that has so many rows, and how many such
    cores have work: all, if they can have as many rows each, or as many blocks of 16 lanes that
    are computed apart; else the first."""
    cores, lanes = machine.core_types[VECTOR_CORE].count, schedule.lanes
    if rows % cores == 0:
        rows //= cores
    elif lanes % (cores * SIDE) == 0 and lanes_apart(group):
        lanes //= cores
    else:
        cores = 1
    return replace(schedule, rows=rows, lanes=lanes, pitch=pitch_of(group, lanes)), cores


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


def pitch_of(group: LoopGroup, width: int) -> int:
    """Lanes of a row of so many: whole fractals, and where statistics are combined with rows,
    repeats."""
    program = group.program
    repeat = REPEAT_BYTES // 4
    whole = all(form is None or program.lane in form for form in program.forms.values())
    block = max(SIDE, program.row_block, program.lane_block)
    return round_up(width, block if whole or width <= repeat // 2 else repeat)
