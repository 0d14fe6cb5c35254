"""Orders of steps that need little memory at once.

The bytes that are live after a set of steps is done depend on the set only, not on the order in
which it came about, so the least peak of a set is found from those of the sets with one step less:
dynamic programming over the sets that are closed under "waits for". Sets are looked at by rising
peak, so the first time that all steps are done the peak is the least one (as Ahn et al.,
"Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks", 2020, but best
first). Finding the least peak is NP-hard, so a number of sets is given; where it does not suffice,
the best of several orders made in one pass, and of a search that keeps few sets, is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from davinci.planning.steps import Work, one_by_one, peak_bytes

STATES = 20_000
"""Sets of done steps that the exact search looks at, unless another number is given: about half a
second."""

KEPT = 16
"""Sets of equally many done steps that the beam keeps."""


@dataclass(frozen=True)
class StepOrder:
    """An order of all steps.

    Attributes:
        steps: their numbers.
        peak: the most bytes that are live at once.
        exact: whether no order has a lower peak.
    """

    steps: tuple[int, ...]
    peak: int
    exact: bool


@dataclass(frozen=True)
class _State:
    """A set of done steps.

    Attributes:
        done: the steps, as bits.
        live: bytes that are written and still to be touched.
        peak: the most bytes that were live so far.
        steps: the order in which they were done; None at the start.
    """

    done: int
    live: int
    peak: int
    steps: _Chain | None


@dataclass(frozen=True)
class _Chain:
    """A step and those done before it."""

    last: int
    before: _Chain | None


class _Space:
    """The sets that can be done, one step at a time.

    A step that leaves no more bytes live than before and needs no more than the peak so far is
    taken at once and alone: done later, all that comes between would have at least as many bytes
    live.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._needs = [_bits(needs) for needs in work.needs]
        self._users = [_bits(users) for users in work.users]
        self._touches = [sorted(step.touches) for step in work.steps]
        self.all = (1 << len(work.steps)) - 1

    def after(self, state: _State) -> list[_State]:
        """The states that one more step leads to; one where that step is best."""
        found = []
        for number, needs in enumerate(self._needs):
            if state.done >> number & 1 or needs & ~state.done:
                continue
            made = self._then(state, number)
            if made.live <= state.live and made.peak == state.peak:
                return [made]
            found.append(made)
        return found

    def _then(self, state: _State, number: int) -> _State:
        done = state.done | 1 << number
        born = freed = 0
        for tensor in self._touches[number]:
            users, size = self._users[tensor], self._work.sizes[tensor]
            if not users & state.done:
                born += size
            if not users & ~done:
                freed += size
        peak = max(state.peak, state.live + born)
        return _State(done, state.live + born - freed, peak, _Chain(number, state.steps))


def lowest(work: Work, states: int = STATES) -> StepOrder:
    """An order of steps whose peak is low, the least one where `states` sets suffice to know."""
    space = _Space(work)
    candidates = [tuple(range(len(work.steps))), *_in_one_pass(space), *_beam(space)]
    peaks = [peak_bytes(work, one_by_one(order)) for order in candidates]
    best = min(range(len(candidates)), key=peaks.__getitem__)
    order, peak = candidates[best], peaks[best]
    if peak == work.least_bytes:
        return StepOrder(order, peak, True)
    found, exact = _best_first(space, peak, states)
    return StepOrder(found or order, peak if found is None else peak_of(work, found), exact)


def peak_of(work: Work, order: Sequence[int]) -> int:
    """The most bytes that are live when steps run in an order, one after the other."""
    return peak_bytes(work, one_by_one(order))


def _best_first(space: _Space, most: int, states: int) -> tuple[tuple[int, ...] | None, bool]:
    """An order with a peak below `most`, if there is one; and whether that is known for sure."""
    start = _State(0, 0, 0, None)
    heap = [(0, 0, 0, start)]
    seen = {0}
    count = 0
    while heap:
        state = heapq.heappop(heap)[-1]
        if state.done == space.all:
            return _steps(state), True
        if state.done in seen:  # it waited in the heap twice, and came out with a lower peak before
            continue
        seen.add(state.done)
        if len(seen) > states:
            return None, False
        for made in space.after(state):
            if made.peak < most and made.done not in seen:
                count += 1
                heapq.heappush(heap, (made.peak, -made.done.bit_count(), count, made))
    return None, True


def _in_one_pass(space: _Space) -> list[tuple[int, ...]]:
    """Orders that take at each time the step that is best by a rule, and never look back."""
    rules: tuple[Callable[[_State], tuple[int, ...]], ...] = (
        lambda made: (made.live,),
        lambda made: (made.peak, made.live),
        lambda made: (made.peak, -made.done),
    )
    found = []
    for rule in rules:
        state = _State(0, 0, 0, None)
        while state.done != space.all:
            state = min(space.after(state), key=rule)
        found.append(_steps(state))
    return found


def _beam(space: _Space) -> list[tuple[int, ...]]:
    """The order found when only the best few sets of each size are kept."""
    kept = [_State(0, 0, 0, None)]
    while kept and kept[0].done != space.all:
        best: dict[int, _State] = {}
        for state in kept:
            for made in space.after(state):
                if made.done not in best or made.peak < best[made.done].peak:
                    best[made.done] = made
        kept = sorted(best.values(), key=lambda state: (state.peak, state.live))[:KEPT]
    return [_steps(state) for state in kept[:1]]


def _steps(state: _State) -> tuple[int, ...]:
    found = []
    chain = state.steps
    while chain is not None:
        found.append(chain.last)
        chain = chain.before
    return tuple(reversed(found))


def _bits(numbers: frozenset[int]) -> int:
    return sum(1 << number for number in numbers)
