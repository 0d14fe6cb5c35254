"""Steps that do the same to parts of rows which lie beside each other: one step on whole rows.

a0 = x0 c0,  a1 = x1 c1          x0 x1, c0 c1 beside each other: a0 a1 are, one step
b0 = y0 s0,  b1 = x0 s1          y0 and x0 lie apart: two steps, b0 and b1 beside each other
r0 = a0 + b0,  r1 = a1 + b1      one step
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.tile_program import EXPAND, MOVED, REDUCE, TileProgram

Beside = tuple[Value, ...]
"""Values that lie beside each other, in order."""


def contiguous_values(program: TileProgram) -> set[Value]:
    """Values that steps take or give one row after the other."""
    steps = (step for step in program.steps if step.name == REDUCE or step.name in MOVED)
    return {value for step in steps for value in (*step.sources, step.result)}


class Siblings:
    """Finds the steps of a program that can be one.

    Args:
        found: values that are loaded or stored together.
    """

    def __init__(self, program: TileProgram, found: Sequence[Beside]) -> None:
        self.program = program
        self.maker = {step.result: step for step in program.steps}
        self.users: dict[Value, list[TileStep]] = defaultdict(list)
        for step in program.steps:
            for value in dict.fromkeys(step.sources):
                self.users[value].append(step)
        self.apart = contiguous_values(program)
        self.apart |= {*program.loads.values(), *program.stores.values()}
        self.rows: list[Beside] = list(found)
        self.row_of = {value: row for row in found for value in row}
        self.steps: dict[Value, tuple[TileStep, ...]] = {}
        self.number = {step.result: number for number, step in enumerate(program.steps)}
        self.needs = [
            [self.number[source] for source in step.sources if source in self.number]
            for step in program.steps
        ]

    def joined(self) -> list[Beside]:
        """The values that lie beside each other. Reorders the program's steps, so that those which
        can be one follow each other, and notes their results."""
        for row in self.rows:  # which grows
            for steps in self._candidates(row):
                self._join(steps)
        self.program.steps = self._ordered()
        self.program.together = {
            value: tuple(step.result for step in steps) for value, steps in self.steps.items()
        }
        return self.rows

    def _candidates(self, row: Beside) -> Iterator[tuple[TileStep, ...]]:
        """Steps that may do the same to the parts of a row, or make them."""
        if all(value in self.maker for value in row):
            yield tuple(self.maker[value] for value in row)
        first, *others = row
        for step in self.users[first]:
            for place, source in enumerate(step.sources):
                if source != first:
                    continue
                found = [step]
                for value in others:
                    alike = (
                        other
                        for other in self.users[value]
                        if other.sources[place : place + 1] == (value,) and _alike(step, other)
                    )
                    found += [other for other in alike if self._fits(step, other, row, value)][:1]
                if len(found) == len(row):
                    yield tuple(found)

    def _fits(self, step: TileStep, other: TileStep, row: Beside, value: Value) -> bool:
        """Whether what lies beside others already does so in the order of `row`."""
        number = row.index(value)
        for a, b in zip((*step.sources, step.result), (*other.sources, other.result), strict=True):
            known = self.row_of.get(a)
            if known is not None and (len(known) != len(row) or known[number] != b):
                return False
            if known is None and a != b and b in self.row_of:
                return False
        return True

    def _join(self, steps: tuple[TileStep, ...]) -> None:
        """Makes steps one, if they can be."""
        first = steps[0]
        if first.name in (REDUCE, EXPAND) or first.name in MOVED:
            return
        if not all(_alike(first, step) for step in steps) or len(set(map(id, steps))) < len(steps):
            return
        if any(step.result in self.steps for step in steps):
            return
        new: list[Beside] = []
        for values in zip(*((*step.sources, step.result) for step in steps), strict=True):
            if self.program.lane not in (self.program.forms[values[0]] or ()):
                if len(set(values)) > 1:
                    return
            elif self.row_of.get(values[0]) != values and values not in new:
                if not self._can_lie_beside(values, new):
                    return
                new.append(values)
        self.steps |= dict.fromkeys((step.result for step in steps), steps)
        if not self._ordered():
            for step in steps:
                del self.steps[step.result]
            return
        for row in new:
            self.rows.append(row)
            self.row_of |= dict.fromkeys(row, row)

    def _can_lie_beside(self, values: Beside, new: Sequence[Beside]) -> bool:
        """Whether values can be made as parts of one wider row: alike, made here, and in no row
        yet, nor in those of `new`."""
        forms = {(value.dtype, self.program.forms[value]) for value in values}
        taken = {value for row in new for value in row}
        free = all(value in self.maker and value not in self.row_of for value in values)
        own = len(set(values)) == len(values) and taken.isdisjoint(values)
        return len(forms) == 1 and free and own and self.apart.isdisjoint(values)

    def _ordered(self) -> list[TileStep]:
        """The steps in an order in which those that are one follow each other; empty if there is
        none."""
        units, taken = [], bytearray(len(self.needs))
        for number, step in enumerate(self.program.steps):
            if not taken[number]:
                unit = [self.number[each.result] for each in self.steps.get(step.result, (step,))]
                units.append(unit)
                for each in unit:
                    taken[each] = True
        done, found = bytearray(len(self.needs)), list[int]()
        while units:
            left = []
            for unit in units:
                if all(done[other] for each in unit for other in self.needs[each]):
                    found += unit
                    for each in unit:
                        done[each] = True
                else:
                    left.append(unit)
            if len(left) == len(units):
                return []
            units = left
        return [self.program.steps[number] for number in found]


def _alike(a: TileStep, b: TileStep) -> bool:
    """Whether two steps do the same."""
    kinds = [tuple(value.dtype for value in (*step.sources, step.result)) for step in (a, b)]
    same = (a.name, a.scalar, dict(a.attributes)) == (b.name, b.scalar, dict(b.attributes))
    return same and kinds[0] == kinds[1]
