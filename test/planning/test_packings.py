"""The search by valleys and joined buffers: problems whose best plans have hardly a free byte."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.planning import Budget, Buffer, Problem, faults, solve
from davinci.planning.canonical import SOLVE, Outcome
from davinci.planning.seams import LIKELY, joined, smaller, spread_out
from davinci.planning.search import DISTURBED, _Kernel
from davinci.planning.valleys import FILL

CAPACITY = 60_000


def packing(random: np.random.Generator, count: int) -> Problem:
    """A memory of CAPACITY bytes by 100 times, cut at random places, in random order."""
    found = [(0, 100, 0, CAPACITY)]
    while len(found) < count:
        areas = [(last - first) * (high - low) for first, last, low, high in found]
        # Large ones are cut sooner, for sizes of a few bytes are equal by chance.
        first, last, low, high = found[number := int(np.argmax(areas * random.random(len(found))))]
        if random.random() < 0.5 and last - first > 1:
            at = int(random.integers(first + 1, last))
            parts = [(first, at, low, high), (at, last, low, high)]
        else:
            at = int(random.integers(low + 1, high)) if high - low > 1 else high
            parts = [(first, last, low, at), (first, last, at, high)]
        found[number : number + 1] = [p for p in parts if p[3] > p[2]]
    random.shuffle(found)
    return Problem(tuple(Buffer(high - low, first, last) for first, last, low, high in found))


@pytest.mark.parametrize("seed", range(60))
def test_both_searches_agree_on_whether_there_is_a_plan(seed: int) -> None:
    """Few buffers of small sizes, with and without bytes to spare; neither search is stopped."""
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 11))
    lower = random.integers(0, 6, count)
    upper = lower + random.integers(1, 5, count)
    sizes = random.integers(1, 9, count)
    buffers = tuple(map(Buffer, sizes.tolist(), lower.tolist(), upper.tolist()))
    problem = Problem(buffers)
    for spare in range(3):
        capacity = problem.lower_bound + spare
        outcomes = []
        for entry in (SOLVE, FILL):
            kernel = _Kernel(problem)
            found, _ = kernel.run(entry, capacity // kernel.unit, DISTURBED, 10_000_000)
            outcomes.append(found)
            if found is Outcome.FOUND:
                offsets = kernel.offsets()
                tops = [at + b.size for at, b in zip(offsets, buffers, strict=True)]
                assert not faults(problem, offsets) and max(tops) <= capacity
        assert outcomes[0] is outcomes[1] is not Outcome.STOPPED


@pytest.mark.parametrize("seed", range(4))
def test_packings_without_a_free_byte(seed: int) -> None:
    problem = packing(np.random.default_rng(seed), 100)
    assert problem.lower_bound == CAPACITY
    plan = solve(problem, Budget(200_000), CAPACITY)
    assert plan.height == CAPACITY and not faults(problem, plan.offsets)


def test_a_plan_of_joined_buffers_is_one_of_all() -> None:
    random = np.random.default_rng(3)
    problem = packing(random, 80)
    for likely in LIKELY:
        blocks = joined(problem, random, likely)
        assert sum(len(block.parts) for block in blocks) == len(problem.buffers)
        plan = solve(smaller(problem, blocks), Budget(0))
        assert not faults(problem, spread_out(blocks, plan.offsets))
    assert len(blocks) < len(problem.buffers) / 2
