"""Steps that read and write tensors, and the memory that an order of them takes: plain data.

A network's graph is here a list of steps, operators or kernels. A tensor is live from the step that
writes it first to the last one that touches it; what is live at once must have places of its own.
Steps may be taken in *stages*: all steps of a stage run at the same time, so everything that a
stage touches is live during all of it (F(t1, t2) = 1 of "Memory and parallel execution of a
network's graph", 2021).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.planning.problem import Buffer, Problem

Stages = Sequence[Sequence[int]]
"""Numbers of steps that run at the same time, in the order in which that happens."""


@dataclass(frozen=True)
class Step:
    """One operator or kernel.

    Attributes:
        reads: numbers of tensors.
        writes: numbers of tensors.
        needs: numbers of steps before it that it waits for, besides those that write what it reads
            or touch what it writes.
        name: for messages.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    needs: frozenset[int] = frozenset()
    name: str = ""

    @functools.cached_property
    def touches(self) -> frozenset[int]:
        """Numbers of all tensors that it reads or writes."""
        return frozenset((*self.reads, *self.writes))


@dataclass(frozen=True)
class Work:
    """Steps in an order in which they can run, and the tensors that they touch.

    Attributes:
        sizes: of the tensors, in bytes.
        steps: those that write a tensor come before those that only read it.
        names: of the tensors, for messages; none, or as many as there are sizes.
    """

    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    names: tuple[str, ...] = ()

    @functools.cached_property
    def needs(self) -> tuple[frozenset[int], ...]:
        """Numbers of the steps that each waits for: a step waits for those before it that touch
        what it writes, and for those that write what it reads."""
        writers: dict[int, list[int]] = {}
        readers: dict[int, list[int]] = {}
        found = []
        for number, step in enumerate(self.steps):
            before = set(step.needs)
            for tensor in step.touches:
                before.update(writers.get(tensor, ()))
            for tensor in step.writes:
                before.update(readers.get(tensor, ()))
            found.append(frozenset(before))
            for tensor in step.reads:
                readers.setdefault(tensor, []).append(number)
            for tensor in step.writes:
                writers.setdefault(tensor, []).append(number)
        return tuple(found)

    @functools.cached_property
    def users(self) -> tuple[frozenset[int], ...]:
        """Numbers of the steps that touch each tensor."""
        found: list[set[int]] = [set() for _ in self.sizes]
        for number, step in enumerate(self.steps):
            for tensor in step.touches:
                found[tensor].add(number)
        return tuple(map(frozenset, found))

    @property
    def least_bytes(self) -> int:
        """The most bytes that a single step touches: no order of these steps takes less."""
        return max((sum(self.sizes[t] for t in step.touches) for step in self.steps), default=0)


def can_run(work: Work, stages: Stages) -> bool:
    """Says whether every step is in one stage, behind the stages of all steps that it waits for."""
    place = {number: at for at, stage in enumerate(stages) for number in stage}
    count = sum(map(len, stages))
    if count != len(work.steps) or len(place) != count:
        return False
    return all(place[need] < at for number, at in place.items() for need in work.needs[number])


def problem_of(work: Work, stages: Stages, align: int = 1) -> Problem:
    """The problem of placing the tensors that steps touch, at times that are numbers of stages.

    Buffers stand in the order of tensors; one that no step touches takes no bytes.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, stage in enumerate(stages):
        for number in stage:
            for tensor in work.steps[number].touches:
                first.setdefault(tensor, at)
                last[tensor] = at
    names = work.names or tuple(map(str, range(len(work.sizes))))
    buffers = tuple(
        Buffer(size, first[tensor], last[tensor] + 1, names[tensor])
        if tensor in first
        else Buffer(0, 0, 1, names[tensor])
        for tensor, size in enumerate(work.sizes)
    )
    return Problem(buffers, align)


def peak_bytes(work: Work, stages: Stages) -> int:
    """The most bytes that are live during one stage."""
    return problem_of(work, stages).lower_bound


def one_by_one(order: Sequence[int]) -> list[tuple[int, ...]]:
    """Stages of one step each."""
    return [(number,) for number in order]


def layers(work: Work) -> list[tuple[int, ...]]:
    """Steps with equally many others on the longest path that leads to them: each layer's steps do
    not wait for each other, and layer i holds the steps whose longest path has i edges."""
    depth: list[int] = []
    for needs in work.needs:
        depth.append(max((depth[need] + 1 for need in needs), default=0))
    found: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for number, level in enumerate(depth):
        found[level].append(number)
    return [tuple(layer) for layer in found]


def in_groups(stages: Stages, groups: int) -> list[tuple[int, ...]]:
    """Each stage cut in at most so many groups of equal size, the last one maybe smaller.

    >>> in_groups([(0,), (1, 2, 3, 4, 5)], 2)
    [(0,), (1, 2, 3), (4, 5)]
    """
    found = []
    for stage in stages:
        size = -(-len(stage) // groups)
        found += [tuple(stage[at : at + size]) for at in range(0, len(stage), size)]
    return found
