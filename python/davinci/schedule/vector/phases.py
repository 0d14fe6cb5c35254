"""The phases of a program whose reduced axis, or several, comes in pieces.

A reduction over the axis is known when all pieces have been seen, so what depends on it is another
phase, which goes over the pieces again:

    softmax      phase 0    m = max x
                 phase 1    e = exp(x - m), s = sum e
                 phase 2    e / s

What a later phase reads is **kept**, or it is **made again**: loaded and computed once more, which
costs time and no room. A reduction gathers pieces lane by lane and folds what it has gathered at
the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.tile_program import MEET, REDUCE, TileProgram


@dataclass(frozen=True)
class Phase:
    """What is done in one turn over the pieces.

    Attributes:
        statistics: steps without the axis, done before the pieces come.
        inputs: numbers of the group's values of which pieces are loaded.
        steps: done for each piece.
        gathered: reductions that gather the pieces, folded after the last one.
        outputs: numbers of the group's values of which pieces are stored.
        told: statistics that cores which share a tile tell each other at the end.
    """

    statistics: tuple[TileStep, ...]
    inputs: tuple[int, ...]
    steps: tuple[TileStep, ...]
    gathered: tuple[TileStep, ...]
    outputs: tuple[int, ...]
    told: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Phases:
    """The phases of a program.

    Attributes:
        inputs: numbers of the group's values without the axis, loaded before all.
        phases: in order.
        statistics: steps without the axis after the last phase.
        outputs: numbers of the group's values without it, stored at the end.
        kept: values with the axis that are read in a later phase.
    """

    inputs: tuple[int, ...]
    phases: tuple[Phase, ...]
    statistics: tuple[TileStep, ...]
    outputs: tuple[int, ...]
    kept: frozenset[Value]


def phases_of(program: TileProgram, axes: Set[int], *, keep: bool) -> Phases:
    """The phases of a program.

    Args:
        axes: those that come in pieces.
        keep: whether what later phases read is kept, or made again.

    Raises:
        NoSpace: nothing comes in pieces, or a reduction leaves some of the axes.
    """
    return _Phases(program, axes, keep).found()


class _Phases:
    def __init__(self, program: TileProgram, axes: Set[int], keep: bool) -> None:
        self.program, self.axes, self.keep = program, axes, keep
        self.number = {value: number for number, value in program.loads.items()}
        self.level = self._levels()

    def has(self, value: Value) -> bool:
        """Whether a value has the axis."""
        form = self.program.forms[value]
        return form is not None and not self.axes.isdisjoint(form)

    def gathers(self, step: TileStep) -> bool:
        """Whether a step reduces the axis."""
        if step.name != REDUCE or not self.has(step.sources[0]):
            return False
        before, after = (set(self.program.forms[v] or ()) for v in (*step.sources, step.result))
        if after & self.axes and (before - after) & self.axes:
            raise NoSpace("a reduction of some of the axes that come in pieces")
        return not after & self.axes

    def _levels(self) -> dict[Value, int]:
        """The phase in which each value is first known."""
        level = dict.fromkeys((*self.program.inputs, *self.program.constants), 0)
        for step in self.program.steps:
            found = max(level[source] for source in step.sources)
            level[step.result] = found + self.gathers(step)
        return level

    def found(self) -> Phases:
        """The phases of the program: each walks over all pieces up to the next statistic.

        Raises:
            NoSpace: nothing comes in pieces.
        """
        program = self.program
        steps = [step for step in program.steps if self.has(step.result) or self.gathers(step)]
        if not steps:
            raise NoSpace("nothing comes in pieces")
        stored = {number: value for number, value in program.stores.items() if self.has(value)}
        last = max(
            [self.level[step.sources[0]] for step in steps if self.gathers(step)]
            + [self.level[value] for value in stored.values()]
        )
        phases = [self._phase(number, stored) for number in range(last + 1)]
        kept: frozenset[Value] = frozenset()
        if self.keep:
            phases, kept = self._parted(phases)
        return Phases(
            tuple(n for n, value in program.loads.items() if not self.has(value)),
            tuple(phases),
            tuple(self._statistics(last + 1)),
            tuple(number for number in program.stores if number not in stored),
            kept,
        )

    def _statistics(self, level: int) -> Iterator[TileStep]:
        """Steps without the axis that are known in a phase; those that reduce it are `gathered`."""
        for step in self.program.steps:
            apart = not self.has(step.result) and not self.gathers(step)
            if apart and self.level[step.result] == level:
                yield step

    def _phase(self, number: int, stored: dict[int, Value]) -> Phase:
        """A phase that makes all that it needs."""
        gathered = [
            step
            for step in self.program.steps
            if self.gathers(step) and self.level[step.sources[0]] == number
        ]
        outputs = [n for n, value in stored.items() if self.level[value] == number]
        needed = {step.sources[0] for step in gathered} | {stored[n] for n in outputs}
        steps: list[TileStep] = []
        for step in reversed(self.program.steps):
            if step.result in needed and self.has(step.result):
                steps.insert(0, step)
                needed |= {source for source in step.sources if self.has(source)}
        inputs = tuple(self.number[v] for v in self.program.inputs if v in needed)
        statistics = tuple(self._statistics(number))
        told = dict.fromkeys(
            source
            for step in self.program.steps
            if step.name == MEET and self.level[step.result] == number + 1
            for source in step.sources
        )
        return Phase(statistics, inputs, tuple(steps), tuple(gathered), tuple(outputs), tuple(told))

    def _parted(self, phases: list[Phase]) -> tuple[list[Phase], frozenset[Value]]:
        """The same with everything made once; what is read again is kept."""
        made: dict[Value, int] = {}
        found, kept = [], set()
        for number, phase in enumerate(phases):
            inputs = [n for n in phase.inputs if self.program.loads[n] not in made]
            steps = [step for step in phase.steps if step.result not in made]
            made |= {self.program.loads[n]: number for n in inputs}
            made |= {step.result: number for step in steps}
            reads = [source for step in (*steps, *phase.gathered) for source in step.sources]
            reads += [self.program.stores[n] for n in phase.outputs]
            kept |= {value for value in reads if made.get(value, number) < number}
            found.append(replace(phase, inputs=tuple(inputs), steps=tuple(steps)))
        return found, frozenset(kept)
