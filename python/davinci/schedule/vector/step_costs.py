"""Estimated cycles of the steps of a tile, and what it moves."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import InstructionLimits, cost_of, plan_vector
from davinci.machine import Machine, Vector, prices
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.tile_layout import TileLayout, ragged_lanes
from davinci.schedule.vector.tile_program import MOVED, REDUCE
from davinci.units import (
    BLOCK_BYTES,
    MAX_REPEAT,
    MAX_STRIDE,
    REPEAT_BYTES,
    ceil_div,
    round_up,
    row_major,
)


def turns_cycles(
    machine: Machine, count: float, vector: float, read: float, write: float, slots: int
) -> float:
    """Cycles of `count` tiles of a core, one after the other, that take turns on the buffers of
    `slots`: of the unit that takes longest for each; behind the first ones also of a buffer, which
    is free again when it was loaded and read, or written and stored.

    Args:
        vector: cycles of computing a tile.
        read: of moving its inputs, without the time until a transfer begins.
        write: the same of its outputs.
    """
    busy = max(vector, read, write)
    late = max(0.0, count - slots)
    return (count - late) * busy + late * turn_cycles(machine, vector, read, write, slots)


def turn_cycles(machine: Machine, vector: float, read: float, write: float, slots: int) -> float:
    """Cycles of a tile that waits for the buffers of the one so many slots before it, as
    `turns_cycles` has them."""
    loaded = prices.reading(machine).start_cycles + read + vector if read else 0.0
    stored = vector + prices.writing(machine).start_cycles + write if write else 0.0
    return max(vector, read, write, max(loaded, stored) / slots)


def moving_cycles(
    values: Iterable[int],
    layout: TileLayout,
    cores: int,
    load: bool,
    once: bool = False,
    known: Collection[int] = (),
) -> float:
    """Cycles that a tile's values take to or from GM, of those that are the same for all tiles or
    of the others: the longest of bytes that come from memory and those that come from the L2, at a
    core's share of each, and of the lines that they touch at the rate of the port. What several
    tiles read comes from memory for one of them.

    Args:
        cores: that are at work, and share what GM and the L2 can do.
        known: values that the L2 has.
    """
    held = layout.program.loads if load else layout.program.stores
    total = new = lines = 0.0
    for number in values:
        if layout.once(held[number]) == once:
            size, touched = _transfer(number, held[number], layout)
            total += size
            new += 0 if number in known else size / _readers(number, layout)
            lines += touched
    touched = lines * layout.machine.gm.line_bytes
    return prices.moving(layout.machine, cores, load, total, new, touched)


def _readers(number: int, layout: TileLayout) -> int:
    """Tiles that read the same part of a value."""
    own, axes = layout.space.order[number], enumerate(layout.space.axes)
    return math.prod(
        math.ceil(axis.size / layout.tile.sizes[i]) for i, axis in axes if i not in own
    )


def _transfer(number: int, value: Value, layout: TileLayout) -> tuple[int, float]:
    """Bytes of the tile of a value in GM, and the lines that they touch, on average over the places
    where runs may begin. Of values beside each other the first moves all."""
    row = layout.beside.get(value, (value,))
    if value != row[0]:
        return 0, 0
    space, sizes, item = layout.space, layout.tile.sizes, DTYPES[value.dtype].itemsize
    strides, line = space.strides(number), layout.machine.gm.line_bytes
    total = math.prod(sizes[axis] for axis in space.of(number)) * len(row) * item
    if layout.lane not in strides:
        return total, 0
    turned = value in layout.program.turned
    inside = {layout.lane, *(space.inside if turned else ())}
    run = math.prod(sizes[axis] for axis in inside.intersection(strides)) * len(row)
    outer = sorted((strides[a], sizes[a]) for a in strides if a not in inside and sizes[a] > 1)
    dense = turned or layout.tile.pitch == sizes[layout.lane]
    for stride, size in outer:
        if stride != run or not dense:
            break
        run *= size
    runs = total // (run * item)
    if runs == 1 and run * item >= line:
        return total, total / line
    apart = [stride * item for stride, _ in outer]
    beside, *ends = _row_pieces(layout)
    parts = [run if not ends else beside, *ends]
    touched = sum(
        prices.touched_bytes(layout.machine, lanes * item, lanes * item, *apart) for lanes in parts
    )
    return total, runs * touched / line


def _row_pieces(layout: TileLayout) -> tuple[int, ...]:
    """Lanes of the pieces that a row of a tile is moved in: its whole blocks, and a block that ends
    where the row does."""
    lanes = layout.tile.sizes[layout.lane]
    ragged = ragged_lanes(layout.space, layout.program, layout.tile.sizes)
    return (lanes - ragged, layout.program.row_block) if ragged else (lanes,)


def transfers(number: int, value: Value, layout: TileLayout) -> int:
    """Transfers that bring the tile of a value. Each moves runs at equal distances of whole blocks:
    rows that are one and a half blocks apart take two, of every second row each; rows that end
    inside a block take twice as many."""
    strides, sizes, lane = layout.space.strides(number), layout.tile.sizes, layout.lane
    turned = value in layout.program.turned
    joined = turned or lane not in strides or layout.tile.pitch == sizes[lane]
    dims: list[tuple[int, int]] = []  # stride in GM and size, neighbours joined where they are one
    for axis in layout.space.order[number] if turned else layout.space.of(number):
        stride, size = strides[axis], sizes[axis]
        if dims and dims[-1][0] == stride * size and (joined or axis != lane):
            dims[-1] = stride, dims[-1][1] * size
        elif size > 1:
            dims.append((stride, size))
    pieces = len(_row_pieces(layout)) if lane in strides else 1
    apart = [(size, stride) for stride, size in dims if stride > 1]
    if not apart:
        return pieces
    most, stride = max(apart)
    alike = BLOCK_BYTES // math.gcd(stride * DTYPES[value.dtype].itemsize, BLOCK_BYTES)
    return pieces * math.prod(size for size, _ in apart) // most * min(alike, most)


def issuing_cycles(
    values: Iterable[int], layout: TileLayout, load: bool, once: bool = False
) -> float:
    """Cycles by which the transfers of a tile are apart at least, of values that are the same for
    all tiles or of the others; values beside each other have the transfers of one. A row's last
    block is stored before its others, which write a part of it again."""
    machine = layout.machine
    port = prices.reading(machine) if load else prices.writing(machine)
    held = layout.program.loads if load else layout.program.stores
    moved = {layout.beside.get(held[n], (held[n],))[0]: n for n in values}
    moved = {value: n for value, n in moved.items() if layout.once(value) == once}
    found = sum(transfers(n, value, layout) for value, n in moved.items()) * port.issue_cycles
    if load or len(_row_pieces(layout)) == 1:
        return found
    twice = sum(layout.lane in layout.space.order[n] for n in moved.values())
    return found + twice * (port.start_cycles + machine.sync.barrier_cycles)


def once_cycles(
    inputs: Iterable[int], outputs: Iterable[int], layout: TileLayout, cores: int, once: bool = True
) -> float:
    """Cycles of the transfers before the first tile and behind the last one, for which nothing is
    computed meanwhile: of their bytes or of their number, whichever takes longer; and those in
    which rows that are the same for all tiles are repeated.

    Args:
        once: whether the values are those that are the same for all tiles, or the others.
    """
    repeated = (layout.table_cycles(v) for v in layout.tables if layout.once(v) == once)
    return sum(repeated) + sum(
        max(
            moving_cycles(values, layout, cores, load, once),
            issuing_cycles(values, layout, load, once),
        )
        for values, load in ((inputs, True), (outputs, False))
    )


def filling_cycles(values: Iterable[Value], layout: TileLayout) -> float:
    """Cycles of the vector unit for the lanes behind the rows that are loaded."""
    *_, last = pieces = _row_pieces(layout)
    width, pitch = sum(pieces), layout.tile.pitch
    total = 0.0
    for value in values:
        rows = layout.lane in (layout.program.forms[value] or ())
        if rows and value not in layout.program.turned:
            end = width - last + round_up(last, block_lanes(value.dtype))
            repeats = ceil_div((pitch - end) * DTYPES[value.dtype].itemsize, REPEAT_BYTES)
            repeats *= math.prod(layout.shape(value)[:-1])
            total += prices.vector(layout.machine, "", "", repeats) if repeats else 0
    return total


def cycles_of_scalars(layout: TileLayout) -> float:
    """Cycles of elements that the scalar unit moves: runs shorter than a block."""
    held = {**layout.program.loads, **layout.program.stores}
    count = sum(
        layout.run(layout.space.of(number))
        for number, value in held.items()
        if value in layout.moved_by_scalars
    )
    of_gm, of_ub = (prices.scalar_accesses(layout.machine, count, s) for s in ("GM", "UB"))
    return of_gm + of_ub


def fold_cycles(shape: Sequence[int], axis: int, dtype: str, machine: Machine) -> int:
    """Cycles of the levels in which an axis of a tile is folded in halves."""
    unit, sizes = machine.vector, (DTYPES[dtype].itemsize,) * 3
    limits = limits_of(3, unit, *unit.price("", dtype))

    def part(count: int) -> tuple[int, ...]:
        return (*shape[:axis], count, *shape[axis + 1 :])

    def level(count: int, source: int, result: int) -> int:
        strides = [row_major(part(held)) for held in (result, source, source)]
        return cost_of(plan_vector(part(count), strides, sizes, limits), sizes, limits)

    total = shape[axis]
    half = total // 2
    cycles = level(half, total, half) + (level(1, total, half) if total % 2 else 0)
    count = half
    while count > 1:
        cycles += level(count // 2, half, half)
        count -= count // 2
    return cycles


def limits_of(operands: int, unit: Vector, fixed: int, each: int) -> InstructionLimits:
    """Limits of an instruction that has so many operands.

    Args:
        fixed, each: cycles of an instruction, and of a repeat besides.
    """
    strides = (MAX_STRIDE,) * operands
    return InstructionLimits(MAX_REPEAT, strides, strides, fixed, unit.bank_groups, each)


def inner_waits(step: TileStep, layout: TileLayout) -> int:
    """Waits for the instruction before within a step of several."""
    if step.name in MOVED:
        return layout.moving(step).estimate(layout.machine).links - 1
    if step.name != REDUCE:
        return 0
    fold, shape = layout.fold(step), layout.shape(step.sources[0])
    levels = sum((shape[axis] - 1).bit_length() for axis in fold.axes)
    return levels + (fold.lanes.work.estimate(layout.machine).links if fold.lanes else 0) - 1


def waiting_cycles(steps: Iterable[TileStep], layout: TileLayout) -> float:
    """Cycles of steps whose instructions each wait for the one before."""
    wait = layout.machine.sync.barrier_cycles
    return sum(step_cycles(s, layout) + wait * (1 + inner_waits(s, layout)) for s in steps)


def step_cycles(step: TileStep, layout: TileLayout) -> float:
    """Cycles of a step on a tile, barriers apart."""
    machine = layout.machine
    unit = machine.vector
    if step.name in MOVED:
        return layout.moving(step).estimate(machine).cycles
    if step.name == REDUCE:
        fold = layout.fold(step)
        found = fold.lanes.work.estimate(machine).cycles if fold.lanes else 0
        shape = layout.shape(step.sources[0])
        for axis in fold.axes:
            found += fold_cycles(shape, axis, step.result.dtype, machine)
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
        return found
    width = layout.width(step)
    if not width:
        return 0
    widest = max(DTYPES[v.dtype].itemsize for v in (step.result, *step.sources))
    *outer, lanes = layout.shape(step.result)
    shape = (*outer, lanes * width)
    repeats = math.ceil(math.prod(shape) * widest / REPEAT_BYTES)
    issues = math.ceil(repeats / MAX_REPEAT)
    fixed, each = unit.price(*step.instruction)
    if step.name == "vcmpsel":  # a comparison and a selection for each repeat
        return 2 * repeats * (fixed + each)
    form, values = layout.form(step.result), (*step.sources, step.result)
    placed = next((v for v in values if v in layout.placed and layout.form(v) != form), None)
    if placed is not None:
        return layout.use_cycles(step, placed, width)
    apart = any(layout.form(value) not in (form, None) for value in step.sources)
    beside = width == 1 and any(value in layout.beside for value in values)
    if form is None or not (apart or beside):
        return issues * fixed + repeats * each
    limits = limits_of(len(values), unit, fixed, each)
    block = block_lanes(step.result.dtype)
    strides = [tuple(layout.strides(value, form)) for value in values]
    items = tuple(DTYPES[value.dtype].itemsize for value in values)
    nests = plan_vector((*shape[:-1], shape[-1] // block, block), strides, items, limits)
    return cost_of(nests, items, limits)
