"""Plans of all algorithms: nothing that is live together overlaps, and they are low enough."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.planning import ALGORITHMS, QUICK, SEARCH, Budget, Buffer, Problem, faults, run, solve

BUFFERS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 20), st.integers(1, 8)).map(
        lambda drawn: Buffer(drawn[0], drawn[1], drawn[1] + drawn[2])
    ),
    max_size=24,
)

STACKED = (Buffer(3, 0, 4), Buffer(2, 0, 2), Buffer(4, 2, 6), Buffer(2, 4, 8), Buffer(5, 6, 8))


def conflicts_of(buffers: list[Buffer], numbers: list[int]) -> frozenset[tuple[int, int]]:
    """Pairs of different buffers, as many as `numbers` allow."""
    count = len(buffers)
    drawn = zip(numbers[::2], numbers[1::2], strict=False)
    return frozenset((i % count, j % count) for i, j in drawn if count and i % count != j % count)


@given(BUFFERS, st.sampled_from([1, 32, 512]), st.lists(st.integers(0, 30), max_size=12))
def test_nothing_overlaps(buffers: list[Buffer], align: int, numbers: list[int]) -> None:
    problem = Problem(tuple(buffers), align, conflicts_of(buffers, numbers))
    for name in ALGORITHMS:
        plan = run(name, problem)
        assert not faults(problem, plan.offsets)
        assert plan.height <= sum(problem.sizes)
    best = solve(problem, Budget(2_000))
    assert not faults(problem, best.offsets)
    assert best.height <= min(run(name, problem).height for name in ALGORITHMS)


def least_height(problem: Problem) -> int:
    """The height of the lowest plan: buffers in every order, each as low as it fits on others."""
    best = sum(problem.sizes)
    for order in permutations(range(len(problem.buffers))):
        offsets: dict[int, int] = {}
        for i in order:
            below = [offsets[j] + problem.sizes[j] for j in offsets if problem.overlaps[i, j]]
            offsets[i] = max(below, default=0)
        best = min(best, max(offsets[i] + problem.sizes[i] for i in order))
    return int(best)


@given(st.lists(BUFFERS.filter(bool).map(lambda b: b[0]), min_size=1, max_size=6))
def test_a_search_to_its_end_finds_the_least_height(buffers: list[Buffer]) -> None:
    problem = Problem(tuple(b for b in buffers if b.size))
    if not problem.buffers:
        return
    plan = solve(problem, Budget(1_000_000))
    assert plan.optimal
    assert plan.height == least_height(problem)


def test_the_search_improves_on_the_others_and_is_the_same_each_time() -> None:
    # Eight staggered towers whose lower bound is met only by one of many orders.
    buffers = [Buffer(64 + 37 * i % 101, i, i + 5 + i * i % 7) for i in range(60)]
    problem = Problem(tuple(buffers))
    quick, searched = solve(problem, QUICK), solve(problem, Budget(20_000))
    assert searched.height < quick.height
    assert searched.algorithm == SEARCH
    assert not faults(problem, searched.offsets)
    assert solve(problem, Budget(20_000)).offsets == searched.offsets


def test_a_plan_within_the_capacity_is_not_made_lower() -> None:
    problem = Problem(STACKED)
    assert solve(problem, capacity=100).algorithm == next(iter(ALGORITHMS))


def test_declared_conflicts_keep_buffers_apart() -> None:
    buffers = (Buffer(10, 0, 1), Buffer(10, 1, 2))
    assert solve(Problem(buffers)).height == 10
    assert solve(Problem(buffers, conflicts=frozenset([(0, 1)]))).height == 20


def test_greedy_takes_the_smallest_gap() -> None:
    # Gaps of 30, 10 and 10 bytes between what is placed first; the last one fits the first of 10.
    large = [Buffer(100, 0, 9), Buffer(90, 0, 9), Buffer(80, 0, 9)]
    holes = [Buffer(30, 0, 1), Buffer(20, 2, 3)]
    problem = Problem((*large, *holes))
    assert not faults(problem, run("greedy-by-size", problem).offsets)
    assert run("greedy-by-size", problem).offsets == (0, 100, 190, 270, 270)


@pytest.mark.parametrize("buffers", [(), (Buffer(0, 0, 1),), (Buffer(0, 0, 1), Buffer(0, 0, 1))])
def test_nothing_to_place(buffers: tuple[Buffer, ...]) -> None:
    plan = solve(Problem(buffers))
    assert (plan.height, plan.ratio, plan.optimal) == (0, 1.0, True)


def test_faults_are_found() -> None:
    problem = Problem((Buffer(10, 0, 2, "x"), Buffer(10, 1, 3, "y")), align=4)
    assert faults(problem, (0, 12)) == []
    assert "overlap" in faults(problem, (0, 8))[0]
    assert "multiple of 4" in faults(problem, (0, 13))[0]
    assert faults(problem, (0,))
