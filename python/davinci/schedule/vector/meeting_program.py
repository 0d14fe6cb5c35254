"""The program of cores that share a tile, each of which sees its own pieces only.

A reduction of the axis in pieces is one of the core's own pieces, and cores **meet** to combine
what each has found:

    m = reduce max x           m' = reduce max x;  m = meet max m'

Exponentials of differences to a maximum, and their sum, need not wait for it. With any number r of
the core, exp(x - m) = exp(x - r) exp(r - m); so a softmax takes one meeting, not two:

    m = reduce max x           m' = reduce max x;  r = finite m'
    e = exp(x - m)             e' = exp(x - r);    s' = reduce add e'
    s = reduce add e           m = meet max m';    s = rescale s', r, m: the sum of s' exp(r - m)
    e * (1 / s)                e' * (1 / s * exp(r - m))

r is the core's own maximum where that is finite. Of pieces that are -inf everywhere it is the least
number, so that their exponentials are 0; of pieces with inf or NaN it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.tile_program import MEET, PLACE, REDUCE, RESCALE, TileProgram

LARGEST = float(np.finfo(np.float32).max)

LIMITING = frozenset({"vmax", "vmin", "vabs", "vcmpsel", "vconv"})
"""Steps that limit a maximum before it is subtracted: to finite numbers, say."""


@dataclass(frozen=True, eq=False)
class SharedExponentials:
    """Exponentials of differences to a maximum, whose sum cores share.

    Attributes:
        reference: the statistic that is subtracted: the maximum, or that limited.
        own_reference: the number r that the core subtracts.
        own_exponential: exp(x - r).
        own_total: the sum of those of the core's pieces.
    """

    reference: Value
    own_reference: Value
    own_exponential: Value
    own_total: Value


def meeting_program(program: TileProgram, axis: int) -> TileProgram:
    """The program of a core that sees its own pieces of an axis, and meets those of the others."""
    return _MeetingProgram(program, axis).made()


class _MeetingProgram:
    """Writes the program.

    Attributes:
        level: of a value of the program, how many reductions of the axis must follow each other
            until it is known.
        own: of the result of such a reduction, that of the core's own pieces.
        sums: the sums of exponentials, by their results.
        exponentials: the same by what they sum.
    """

    def __init__(self, program: TileProgram, axis: int) -> None:
        self.old, self.axis = program, axis
        self.maker = {step.result: step for step in program.steps}
        self.level = dict.fromkeys((*program.inputs, *program.constants), 0)
        for step in program.steps:
            known = max(self.level[source] for source in step.sources)
            self.level[step.result] = known + self._gathers(step)
        # Choices among the few numbers of statistics are never made by masks.
        self.new = replace(program.copied(), steps=[], placed=dict(program.placed), masks=False)
        self.new.packed = set(program.packed)
        self.own: dict[Value, Value] = {}
        self.sums: dict[Value, SharedExponentials] = {}
        self.exponentials: dict[Value, SharedExponentials] = {}

    def made(self) -> TileProgram:
        """The program in which each core reduces its own pieces, and cores meet to combine what
        each of them has."""
        first = self._reductions(0)
        second = self._reductions(1)
        together = bool(second) and all(self._reference(step) is not None for step in second)
        if together:
            self._write_together(first, second)
        found = [v for s in self.sums.values() for v in (s.own_reference, s.own_total)]
        for step in self.old.steps:
            if together and not self.level[step.result]:
                continue
            if step in second and together:
                total = self.sums[step.result]
                sources = (total.own_total, total.own_reference, total.reference)
                self._write(replace(step, name=RESCALE, sources=sources))
            elif self._gathers(step):
                if step.result not in self.own:
                    self._write_own(step)
                told = dict.fromkeys([self.own[step.result], *found * (step in first)])
                self._write(replace(step, name=MEET, sources=tuple(told)))
            elif not self._write_scaled(step):
                self._write(step)
        self.new.drop_unused()
        return self.new

    def _gathers(self, step: TileStep) -> bool:
        """True if a step reduces its source along the axis whose pieces the cores share."""
        before, after = (self.old.forms[v] or () for v in (step.sources[0], step.result))
        return step.name == REDUCE and self.axis in before and self.axis not in after

    def _reductions(self, level: int) -> list[TileStep]:
        """The reductions of the axis of what is known at a level."""
        steps = (step for step in self.old.steps if self._gathers(step))
        return [step for step in steps if self.level[step.sources[0]] == level]

    def _write(self, step: TileStep) -> None:
        self.new.steps.append(step)

    def _write_own(self, step: TileStep) -> None:
        """Writes a reduction as one of the core's own pieces."""
        value = step.result
        self.own[value] = self.new.made(value.dtype, self.old.forms[value])
        self._write(replace(step, result=self.own[value]))

    def _reference(self, total: TileStep) -> Value | None:
        """What the maximum is subtracted as in the exponentials that a reduction sums; None if it
        is no such sum."""
        exponential = self.maker.get(total.sources[0])
        if total.attributes["kind"] != "add" or exponential is None or exponential.name != "vexp":
            return None
        difference = self.maker.get(exponential.sources[0])
        if difference is None or difference.name != "vsub" or difference.result.dtype != "f32":
            return None
        x, reference = difference.sources
        place = self.maker.get(reference)
        reference = place.sources[0] if place is not None and place.name == PLACE else reference
        maximum = self._maximum(reference)
        if self.level[x] or maximum is None:
            return None
        (of,) = self.maker[maximum].sources
        same = self._unconverted(of) == self._unconverted(x)
        return reference if same and exponential.result not in self.old.together else None

    def _unconverted(self, value: Value) -> Value:
        made = self.maker.get(value)
        return made.sources[0] if made is not None and made.name == "vconv" else value

    def _maximum(self, value: Value) -> Value | None:
        """The reduced maximum that a statistic is, limited or not; None if it is another one. No
        limit is below what the maximum can be: exponentials of differences would overflow."""
        made = self.maker.get(value)
        if made is None:
            return None
        if self._gathers(made):
            return value if made.attributes["kind"] == "max" else None
        numbers = [self.old.constants[v] for v in made.sources if v in self.old.constants]
        if made.name not in LIMITING or (made.name == "vmin" and min(numbers, default=0) < LARGEST):
            return None
        found = {self._maximum(v) for v in made.sources if v not in self.old.constants}
        return found.pop() if len(found) == 1 else None

    def _write_together(self, first: list[TileStep], second: list[TileStep]) -> None:
        """Writes what a core computes until it has its own maxima and sums of exponentials."""
        for step in self.old.steps:
            if step in first:
                self._write_own(step)
            elif not self.level[step.result]:
                self._write(step)
        for step in second:
            reference, exponential = self._reference(step), self.maker[step.sources[0]]
            assert reference is not None, "a sum of exponentials"
            maximum = self._maximum(reference)
            assert maximum is not None, "differences to a maximum"
            difference = self.maker[exponential.sources[0]]
            self.new.serving = step.members
            own_reference = self._finite(self.own[maximum])
            of_difference = self.new.sub(difference.sources[0], own_reference)
            own = self.new.unary("vexp", of_difference)
            self._write_own(replace(step, sources=(own,)))
            total = SharedExponentials(reference, own_reference, own, self.own[step.result])
            self.sums[step.result] = self.exponentials[exponential.result] = total

    def _finite(self, maximum: Value) -> Value:
        """A finite number in place of the core's own maximum, in f32."""
        wide = self.new.convert(maximum, "f32")
        return self.new.choose("lt", wide, np.inf, self.new.max(wide, -LARGEST), 0.0)

    def _write_scaled(self, step: TileStep) -> bool:
        """Writes a product of exponentials with a statistic that is known behind the meeting as one
        of the core's own exponentials; False if a step is another one."""
        if step.name != "vmul" or step.sources[0] not in self.exponentials:
            return False
        total, placed = self.exponentials[step.sources[0]], step.sources[1]
        place = self.maker.get(placed)
        if place is None or self.axis in (self.old.forms[placed] or ()):
            return False
        statistic = place.sources[0] if place.name == PLACE else placed
        if self.level[statistic] < 2:
            return False
        self.new.serving = step.members
        # Above 0 only where the maximum is infinite; 1 / sum is 0 or NaN then, and stays so.
        least = self.new.min(self.new.sub(total.own_reference, total.reference), 0.0)
        factor = self.new.unary("vexp", least)
        self.new.mul(total.own_exponential, self.new.mul(statistic, factor))
        self._write(replace(self.new.steps.pop(), result=step.result))
        return True
