"""The buffers of a tile: which values of a program lie in which.

A step's result takes over the buffer of a source that ends there, or another that is free; what
adds into its first operand has that one's. Of
these it takes the one whose *half* of the bank groups suits best: the two sources of an instruction
must begin in different halves, or every repeat takes a cycle more. Halves are given to buffers when
their addresses are planned; here it is seen to that this can be done, as a graph whose edges join
what is read together must be coloured with two colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from davinci.isa.core import DTYPES
from davinci.operators.vector_program import Value
from davinci.schedule.vector.tile_program import EXPAND, MOVED, REDUCE, VIEW, TileProgram
from davinci.units import REPEAT_BYTES, round_up

NOT_IN_PLACE = MOVED | {REDUCE, EXPAND}
"""Steps that read of their sources what they have written over in a buffer of the same kind."""


@dataclass(frozen=True)
class TileBuffer:
    """A buffer of a tile.

    Attributes:
        once: whether it is the same for all tiles.
        moved: whether something comes to it from GM, or leaves from it.
        seen: whether values of another type lie in it, too.
    """

    dtype: str
    shape: tuple[int, ...]
    once: bool
    moved: bool = False
    seen: bool = False

    @property
    def bytes(self) -> int:
        """Bytes, of whole repeats."""
        return round_up(math.prod(self.shape) * DTYPES[self.dtype].itemsize, REPEAT_BYTES)


@dataclass
class Halves:
    """Buffers that must begin in the same half, or in different ones.

    Attributes:
        place: of buffers that depend on others, the set of these and whether it lies in the other
            half than the set's first.
        members: of each set.
    """

    place: dict[int, tuple[int, bool]] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)

    def of(self, buffer: int) -> tuple[int, bool]:
        """The set of those it depends on, and whether it lies in the other half than the first of
        these; of two buffers that cannot lie in different halves this is the same."""
        return self.place.get(buffer, (buffer, False))

    def part(self, a: int, b: int) -> None:
        """Two buffers lie in different halves, if they still can."""
        (first, x), (second, y) = self.of(a), self.of(b)
        if first == second:
            return
        moved = self.members.pop(first, [first])
        for buffer in moved:
            _, turned = self.of(buffer)
            self.place[buffer] = second, turned ^ (x == y)
        self.members.setdefault(second, [second]).extend(moved)


def assigned(
    program: TileProgram,
    lasting: Set[Value],
    kind: Callable[[Value], TileBuffer],
    beside: Mapping[Value, Sequence[Value]],
) -> tuple[list[TileBuffer], dict[Value, int]]:
    """The buffers, and the number of that of each value.

    Which values share one follows from which values need equal ones, whatever size these have, so
    it is found once for most tiles.

    Args:
        lasting: values that keep their buffer where steps of every tile read them.
        kind: the buffer that a value needs.
        beside: of values that have one buffer together, all of these.
    """
    kinds: dict[TileBuffer, int] = {}
    alike = {value: kinds.setdefault(kind(value), len(kinds)) for value in program.forms}
    key = tuple(alike.values()), frozenset(lasting), tuple(beside.values())
    if key not in program.assignments:
        program.assignments[key] = _BufferAssignment(program, lasting, alike, beside).run()
    found, moved, of = program.assignments[key]
    buffers = list(kinds)
    seen = {of[step.result] for step in program.steps if step.name == VIEW}
    return [
        replace(buffers[kind], moved=i in moved, seen=i in seen) for i, kind in enumerate(found)
    ], of


class _BufferAssignment:
    """Goes through the steps in order; kinds of buffers are numbers."""

    def __init__(
        self,
        program: TileProgram,
        lasting: Set[Value],
        kind: Mapping[Value, int],
        beside: Mapping[Value, Sequence[Value]],
    ) -> None:
        self.program, self.kind, self.together = program, kind, beside
        self.ended: set[Value] = set()
        self.last = program.last_uses()
        each = [step for step in program.steps if step.result not in lasting]
        self.kept = {v for step in each for v in step.sources if v in lasting}
        self.kept |= set(program.constants)
        self.moved = {*program.loads.values(), *program.stores.values()}
        self.beside: dict[Value, list[Value]] = {}
        for step in program.steps:
            for value in step.sources:
                others = (v for v in step.sources if v != value)
                self.beside.setdefault(value, []).extend(others)
        self.found: list[int] = []
        self.of_moved: set[int] = set()
        self.free: dict[int, list[int]] = {}
        self.pool: dict[Value, list[int]] = {}
        self.of: dict[Value, int] = {}
        self.halves = Halves()
        self.alike: dict[Value, list[Value]] = {}

    def run(self) -> tuple[list[int], set[int], dict[Value, int]]:
        """The kinds of the buffers, which of them are moved, and that of each value."""
        program = self.program
        for value in (*program.constants, *program.inputs):
            self._take(value)
        done = 0
        while done < len(program.steps):
            first = program.steps[done]
            count = 1
            if first.result in self.together:
                count = len(program.together.get(first.result, (first.result,)))
            self._unit(range(done, done + count))
            done += count
        return self.found, {self.of[value] for value in self.moved}, self.of

    def _unit(self, places: range) -> None:
        """Buffers of a step, or of several that are one."""
        steps = [self.program.steps[i] for i in places]
        if steps[0].name == VIEW:
            self._view(steps[0].sources[0], steps[0].result)
        sources = dict.fromkeys(source for step in steps for source in step.sources)
        ends = [value for value in sources if self.last[value] in places]
        in_place = steps[0].name not in NOT_IN_PLACE
        results = [step.result for step in steps]
        if in_place:
            for value in ends:
                self._release(value)
        for step in steps:
            if step.name != VIEW:
                self._take(step.result, self.of[step.sources[0]] if step.accumulates else None)
        if not in_place:
            for value in ends:
                self._release(value)
        for value in results:
            if self.last.get(value, len(self.program.steps)) in places:
                self._release(value)

    def _view(self, value: Value, result: Value) -> None:
        """Puts a value where another one lies; the buffer is free when both have ended."""
        alike = self.alike.setdefault(value, [value])
        alike.append(result)
        self.alike[result] = alike
        self.of[result], self.pool[result] = self.of[value], self.pool[value]
        self._part(result)

    def _release(self, value: Value) -> None:
        """Frees the buffer of a value that is needed no more, once all values beside it are not."""
        self.ended.add(value)
        row = self.together.get(value, self.alike.get(value, (value,)))
        if self.kept.isdisjoint(row) and self.ended.issuperset(row):
            self.pool[value].append(self.of[value])

    def _take(self, value: Value, place: int | None = None) -> None:
        """Gives a value a buffer, which is `place` if the step that makes it adds there."""
        wanted = self.kind[value]
        taken = next((self.of[v] for v in self.together.get(value, ()) if v in self.of), None)
        self.pool[value] = numbers = self.free.setdefault(wanted, [])
        if taken is None:
            if not numbers:
                numbers.append(len(self.found))
                self.found.append(wanted)
            taken = self._cheapest(value, numbers) if place is None else place
            numbers.remove(taken)
        self.of[value] = taken
        if value in self.moved:
            self.of_moved.add(taken)
        self._part(value)

    def _part(self, value: Value) -> None:
        """Has the buffer of a value lie in another half than those that are read with it."""
        for partner in self.beside.get(value, ()):
            if partner in self.of:
                self.halves.part(self.of[value], self.of[partner])

    def _cheapest(self, value: Value, numbers: Sequence[int]) -> int:
        """The buffer of which the fewest instructions would read two of one half; of those one
        that is moved for a value that is, and for others, which need fewer, one that is not. The
        last one released comes first."""
        if len(numbers) == 1:
            return numbers[0]
        partners = [self.of[v] for v in self.beside.get(value, ()) if v in self.of]
        halves = [self.halves.of(partner) for partner in partners]
        moved = value in self.moved

        def price(number: int) -> tuple[int, bool]:
            return halves.count(self.halves.of(number)), (number in self.of_moved) != moved

        return min(reversed(numbers), key=price)
