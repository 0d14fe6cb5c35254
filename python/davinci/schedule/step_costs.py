"""Estimated cycles of the steps of a tile, and what it moves."""

from __future__ import annotations

import math
from collections.abc import Iterable

from davinci.isa.core import DTYPES
from davinci.operators.vector_program import Step
from davinci.schedule.tile_layout import TileLayout
from davinci.schedule.tile_program import EXPAND, MOVED, REDUCE
from davinci.units import MAX_REPEAT, REPEAT_BYTES


def moved_bytes(values: Iterable[int], layout: TileLayout, once: bool = False) -> int:
    """Bytes of a tile's values that lie in GM, and are the same for all tiles or not."""
    held = {**layout.program.loads, **layout.program.stores}
    return sum(
        math.prod(layout.tile.sizes[axis] for axis in layout.space.of(number))
        * DTYPES[held[number].dtype].itemsize
        for number in values
        if layout.once(held[number]) == once
    )


def step_cycles(step: Step, layout: TileLayout) -> float:
    """Cycles of a step on a tile, barriers apart."""
    machine = layout.machine
    unit = machine.vector
    if step.name in MOVED:
        return layout.moving(step).estimate(machine).cycles
    if step.name == REDUCE:
        fold = layout.fold(step)
        found = fold.lanes.work.estimate(machine).cycles if fold.lanes else 0
        size = math.prod(layout.shape(step.sources[0])) * DTYPES[step.result.dtype].itemsize
        levels = sum(
            math.ceil(math.log2(layout.shape(step.sources[0])[axis])) for axis in fold.axes
        )
        return found + levels * unit.fixed_cycles + size / REPEAT_BYTES * bool(fold.axes)
    widest = max(DTYPES[v.dtype].itemsize for v in (step.result, *step.sources))
    shape = layout.shape(step.result)
    repeats = math.ceil(math.prod(shape) * widest / REPEAT_BYTES)
    issues = math.ceil(repeats / MAX_REPEAT)
    form = layout.form(step.result)
    forms = [layout.form(v) for v in step.sources]
    if step.name == EXPAND or any(f not in (form, None) for f in forms):
        rows = math.prod(shape[:-1])
        if not any(v in layout.placed for v in step.sources):
            issues = max(issues, min(rows, math.ceil(repeats / max(1, rows))))
    kind = step.result.dtype
    fixed = unit.cycles_of(unit.fixed_cycles_of, step.name, kind, unit.fixed_cycles)
    each = unit.cycles_of(unit.cycles_per_repeat, step.name, kind, 1)
    return issues * fixed + repeats * each
