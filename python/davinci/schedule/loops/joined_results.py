"""Results of products of a loop's step that are used alike lie beside each other: what is computed
of all of them is one instruction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from davinci.machine import Machine
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.row_siblings import Beside, Siblings
from davinci.schedule.vector.tile_program import TileProgram

if TYPE_CHECKING:
    from davinci.schedule.loops.group import LoopGroup

FILLED = {"vmuls": "vmul", "vadds": "vadd", "vaxpy": "vmla"}
"""Steps with a number, and what does the same with an array that holds numbers."""


def join_results(program: TileProgram, group: LoopGroup, machine: Machine) -> list[Beside]:
    """Brings results of products that are used alike beside each other, and has steps that do the
    same to them be one; the values that lie beside each other."""
    seeds = _seeds(program, group)
    for row in seeds:
        _make_alike(program, row, machine)
    first = steps_by_source(program)
    rows = Siblings(program, seeds).joined() if seeds else []
    apart = [row for row in seeds if any(s.result not in program.together for s in first[row[0]])]
    return [row for row in rows if row not in apart]


def _seeds(program: TileProgram, group: LoopGroup) -> list[Beside]:
    """Results of products of one left factor, of which each is read once, all in the same way."""
    alike: dict[object, list[Value]] = defaultdict(list)
    readers = steps_by_source(program)
    for product in group.products:
        value = program.loads[product.c]
        if len(readers[value]) != 1 or value in program.stores.values():
            continue
        (step,) = readers[value]
        place = step.sources.index(value)
        kinds = tuple(v.dtype for v in (*step.sources, step.result))
        terms = tuple((term.a, term.k) for term in product.terms)
        alike[(terms, step.name, place, kinds)].append(value)
    return [tuple(values) for values in alike.values() if len(values) > 1]


def _make_alike(program: TileProgram, row: Sequence[Value], machine: Machine) -> None:
    """Goes along the steps on the values of a row, as long as each does what those on the others
    do, and has numbers in which they differ be arrays."""
    stored = set(program.stores.values())
    first = row[0]
    while stored.isdisjoint(row):
        readers = steps_by_source(program)
        if any(len(readers[value]) != 1 for value in row):
            return
        steps = [readers[value][0] for value in row]
        if len(set(map(id, steps))) < len(steps):
            return
        made = _with_arrays(program, row, steps, machine, first)
        if made is None:
            return
        for old, new in zip(steps, made, strict=True):
            program.steps[program.steps.index(old)] = new
        row = [step.result for step in made]


def _with_arrays(
    program: TileProgram,
    row: Sequence[Value],
    steps: Sequence[TileStep],
    machine: Machine,
    first: Value,
) -> list[TileStep] | None:
    """Steps on the values of a row that differ in numbers at most, with arrays of these where they
    do; None if they differ otherwise.

    Args:
        first: the result of a product that the first value is computed of.
    """
    names = {step.name for step in steps}
    numbers = program.constants
    kinds = {(step.result.dtype, program.forms[step.result]) for step in steps}
    if len(kinds) > 1:
        return None
    if names <= {"vrec", "vdiv"} and "vdiv" in names:
        above = [_numerator(step, value, numbers) for step, value in zip(steps, row, strict=True)]
        if None in above or all(isinstance(x, Value) for x in above):
            return None
        return [
            replace(step, name="vdiv", sources=(_array_of(program, x, step.result, first), value))
            for step, value, x in zip(steps, row, above, strict=True)
            if x is not None
        ]
    if len(names) > 1 or len({step.scalar for step in steps}) == 1:
        return list(steps) if len(names) == 1 else None
    name = FILLED.get(steps[0].name)
    if name is None or steps[0].result.dtype not in machine.intrinsics.get(name, ()):
        return None
    return [
        replace(
            step,
            name=name,
            sources=(*step.sources, program.filled(step.result.dtype, step.scalar)),
            scalar=None,
        )
        for step in steps
        if step.scalar is not None
    ]


def _numerator(step: TileStep, value: Value, numbers: dict[Value, float]) -> float | Value | None:
    """What a step divides by a value, a number or a value of the same axes as its result; None if
    it does something else."""
    if step.name == "vrec":
        return 1.0
    above, below = step.sources
    return numbers.get(above, above) if below is value else None


def _array_of(program: TileProgram, x: float | Value, like: Value, first: Value) -> Value:
    """A row of its own that holds a number, or a value; that is copied when it is there, but not
    before the steps that do not wait for the product whose result is `first`: these are behind the
    cube's left factor."""
    if not isinstance(x, Value):
        return program.filled(like.dtype, x)
    copy = program.copy(x)
    step = program.steps.pop()
    places = {other.result: place for place, other in enumerate(program.steps)}
    reader = next(i for i, other in enumerate(program.steps) if first in other.sources)
    program.steps.insert(max(places.get(x, -1) + 1, reader), step)
    return copy


def steps_by_source(program: TileProgram) -> dict[Value, list[TileStep]]:
    """The steps that read each value."""
    found: dict[Value, list[TileStep]] = defaultdict(list)
    for step in program.steps:
        for value in dict.fromkeys(step.sources):
            found[value].append(step)
    return found
