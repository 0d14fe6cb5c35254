"""Moves of elements as several moves one after the other, each a kernel of its own.

A transposition of blocks of dimensions takes any permutation apart into exchanges of two
neighbouring blocks, each of which is a transposition of matrices of runs:

    [x, y, c] -> [c, y, x]    as    [x, y, c] -> [x, c, y] -> [c, y, x]

Pads and slices treat every dimension on its own, so they can do so dimension by dimension:

    [480, 6, 197, 1] -> [481, 13, 200, 6]    as    .. -> [480, 6, 200, 6] -> [481, 13, 200, 6]

What is done so far is a state; steps lead from one to another, and the search finds the steps of
least total time from the operand to the result.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

State = tuple[int, ...]
"""Of a transposition the dimensions of the operand in their order; of pads and slices the
dimensions that are treated."""


@dataclass(frozen=True)
class MoveStep:
    """A move of elements by one operator.

    Attributes:
        source, result: shapes.
    """

    name: str
    attributes: Mapping[str, Any]
    source: tuple[int, ...]
    result: tuple[int, ...]


Steps = Iterator[tuple[State, MoveStep]]
"""States that follow, and the step to each."""


@dataclass(frozen=True)
class TransposeSteps:
    """The steps of a transposition.

    Args:
        shape: of the operand.
        permutation: whose dimension i is dimension `permutation[i]` of the operand.
    """

    shape: tuple[int, ...]
    permutation: tuple[int, ...]

    @property
    def start(self) -> State:
        return tuple(range(len(self.shape)))

    @property
    def goal(self) -> State:
        return self.permutation

    def after(self, state: State) -> Steps:
        """Neighbouring blocks exchanged, or all the rest at once; what stays together in the result
        and lies together is not taken apart."""
        found = dict.fromkeys([*self._exchanged(self._blocks(state)), self.goal])
        for order in found:
            if order not in (state, self.start):
                yield order, self._step(state, order)

    def _blocks(self, state: State) -> list[State]:
        """The dimensions in blocks that lie together here and in the result."""
        follows = dict(itertools.pairwise(self.permutation))
        blocks: list[State] = []
        for dim in state:
            if blocks and follows.get(blocks[-1][-1]) == dim:
                blocks[-1] = (*blocks[-1], dim)
            else:
                blocks.append((dim,))
        return blocks

    def _exchanged(self, blocks: Sequence[State]) -> Iterator[State]:
        for first, middle, end in itertools.combinations(range(len(blocks) + 1), 3):
            parts = (blocks[:first], blocks[middle:end], blocks[first:middle], blocks[end:])
            yield tuple(dim for part in parts for block in part for dim in block)

    def _step(self, state: State, order: State) -> MoveStep:
        permutation = tuple(state.index(dim) for dim in order)
        source, result = (tuple(self.shape[dim] for dim in dims) for dims in (state, order))
        return MoveStep("transpose", {"permutation": permutation}, source, result)


@dataclass(frozen=True)
class DimensionSteps:
    """The steps of an operator that treats each dimension on its own: a pad or a slice.

    Args:
        attributes: a number for each dimension.
        source, result: shapes.
    """

    name: str
    attributes: Mapping[str, tuple[int, ...]]
    source: tuple[int, ...]
    result: tuple[int, ...]

    @property
    def start(self) -> State:
        return ()

    @property
    def goal(self) -> State:
        """The dimensions that are changed: their size, or where their elements lie."""
        shifts = self.attributes["low" if self.name == "pad" else "starts"]
        every = enumerate(zip(self.source, self.result, shifts, strict=True))
        return tuple(dim for dim, (size, made, shift) in every if size != made or shift)

    def after(self, state: State) -> Steps:
        """Some more of the dimensions treated."""
        rest = [dim for dim in self.goal if dim not in state]
        for count in range(1, len(rest) + 1):
            for dims in itertools.combinations(rest, count):
                yield tuple(sorted((*state, *dims))), self._step(state, dims)

    def _step(self, state: State, dims: State) -> MoveStep:
        """The step of the movement that does it to some dimensions, after those in `state`: its
        attributes are neutral for all others."""
        source, result = self._shape(state), self._shape((*state, *dims))
        attributes = {}
        for key, numbers in self.attributes.items():
            neutral = source if key == "limits" else (int(key == "strides"),) * len(source)
            every = enumerate(zip(numbers, neutral, strict=True))
            attributes[key] = tuple(own if dim in dims else none for dim, (own, none) in every)
        return MoveStep(self.name, attributes, source, result)

    def _shape(self, state: State) -> tuple[int, ...]:
        """The shape once some dimensions are treated."""
        every = enumerate(zip(self.source, self.result, strict=True))
        return tuple(made if dim in state else size for dim, (size, made) in every)


def cheapest_steps(
    search: TransposeSteps | DimensionSteps,
    cycles_of: Callable[[MoveStep], float | None],
    least: float,
    most: float,
) -> list[MoveStep]:
    """The steps of least total time; none where those found take as long as `most`.

    Args:
        cycles_of: of a step with its launch; None of what is not to be.
        least: cycles that every step takes.
    """
    costs: dict[State, float] = {search.start: 0.0}
    behind: dict[State, tuple[State, MoveStep]] = {}
    queue, done = [(least, search.start)], set[State]()
    while queue:
        _, state = heapq.heappop(queue)
        if state == search.goal:
            return _path(search, behind)
        if state in done:
            continue
        done.add(state)
        for after, step in search.after(state):
            left = 0.0 if after == search.goal else least
            bound = min(most, costs.get(after, math.inf), costs.get(search.goal, math.inf) - left)
            if costs[state] + least + left >= bound:
                continue
            cycles = cycles_of(step)
            if cycles is not None and costs[state] + cycles + left < bound:
                costs[after], behind[after] = costs[state] + cycles, (state, step)
                heapq.heappush(queue, (costs[after] + left, after))
    return []


def _path(
    search: TransposeSteps | DimensionSteps, behind: Mapping[State, tuple[State, MoveStep]]
) -> list[MoveStep]:
    """The steps from the start to the goal."""
    found, state = [], search.goal
    while state != search.start:
        state, step = behind[state]
        found.append(step)
    return found[::-1]
