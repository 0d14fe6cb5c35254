"""Orders, layers and groups of steps, held against brute force on random graphs."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from davinci.planning import (
    Step,
    Work,
    can_run,
    in_groups,
    layers,
    lowest,
    one_by_one,
    peak_bytes,
    problem_of,
)


@st.composite
def works(draw: st.DrawFn, most: int = 6) -> Work:
    """Steps that each write a tensor, and read some of those written before; some wait for others
    besides, and some write a tensor of another step again."""
    count = draw(st.integers(0, most))
    steps = []
    for number in range(count):
        earlier = st.frozensets(st.integers(0, number - 1), max_size=3) if number else st.just([])
        writes = (number, *draw(st.one_of(st.just(()), earlier.map(lambda s: tuple(s)[:1]))))
        reads = tuple(sorted(draw(earlier)))
        needs = frozenset(draw(st.one_of(st.just(()), earlier)))
        steps.append(Step(reads, writes, needs))
    sizes = tuple(draw(st.integers(0, 50)) for _ in range(count))
    return Work(sizes, tuple(steps))


def live_bytes(work: Work, stages: list[tuple[int, ...]]) -> int:
    """The most bytes live during a stage, counted tensor by tensor and stage by stage."""
    most = 0
    for at in range(len(stages)):
        total = 0
        for tensor, size in enumerate(work.sizes):
            when = [
                place
                for place, stage in enumerate(stages)
                for number in stage
                if tensor in work.steps[number].reads or tensor in work.steps[number].writes
            ]
            if when and min(when) <= at <= max(when):
                total += size
        most = max(most, total)
    return most


def waits(work: Work, number: int, other: int) -> bool:
    """Says that step `number` must come behind the earlier step `other`."""
    one, before = work.steps[number], work.steps[other]
    touches, touched = {*one.reads, *one.writes}, {*before.reads, *before.writes}
    shared = touched & set(one.writes) or touches & set(before.writes)
    return bool(shared) or other in one.needs


def legal(work: Work, order: tuple[int, ...]) -> bool:
    place = {number: at for at, number in enumerate(order)}
    return all(
        place[other] < place[number]
        for number in range(len(order))
        for other in range(number)
        if waits(work, number, other)
    )


@given(works())
def test_the_exact_order_has_the_least_peak_of_all_orders(work: Work) -> None:
    found = lowest(work)
    orders = [o for o in permutations(range(len(work.steps))) if legal(work, o)]
    least = min(live_bytes(work, one_by_one(order)) for order in orders)
    assert found.exact
    assert found.peak == least == live_bytes(work, one_by_one(found.steps))
    assert legal(work, found.steps)


@given(works(most=14))
def test_without_an_exact_search_an_order_is_legal_and_no_worse_than_the_given_one(
    work: Work,
) -> None:
    found = lowest(work, states=0)
    given_order = tuple(range(len(work.steps)))
    assert legal(work, found.steps) and can_run(work, one_by_one(found.steps))
    assert sorted(found.steps) == list(given_order)
    assert work.least_bytes <= found.peak <= live_bytes(work, one_by_one(given_order))
    assert found.peak >= lowest(work).peak


@given(works(most=12), st.integers(1, 4))
def test_layers_are_those_of_the_longest_path_and_groups_part_them(work: Work, groups: int) -> None:
    found = layers(work)
    assert can_run(work, found)

    def longest(number: int) -> int:
        behind = [longest(o) + 1 for o in range(number) if waits(work, number, o)]
        return max(behind, default=0)

    for level, layer in enumerate(found):
        assert layer and all(longest(number) == level for number in layer)
    cut = in_groups(found, groups)
    assert can_run(work, cut)
    assert [n for stage in cut for n in stage] == [n for layer in found for n in layer]
    assert len(cut) <= groups * len(found)
    sizes = {-(-len(layer) // groups) for layer in found}
    assert all(len(stage) <= max(sizes) for stage in cut)


@given(works(most=10), st.integers(1, 3))
def test_the_problem_of_stages_counts_what_is_live_during_each(work: Work, groups: int) -> None:
    stages = in_groups(layers(work), groups)
    assert peak_bytes(work, stages) == live_bytes(work, stages)
    problem = problem_of(work, stages)
    touched = {t for step in work.steps for t in step.touches}
    for i in touched:
        for j in touched - {i}:
            together = any(
                {i, j} <= {t for n in stage for t in work.steps[n].touches} for stage in stages
            )
            assert not together or problem.overlaps[i, j]


@given(works(most=8))
def test_a_step_in_front_of_what_it_waits_for_cannot_run(work: Work) -> None:
    order = tuple(range(len(work.steps)))
    for number in order:
        for other in range(number):
            if waits(work, number, other):
                swapped = list(order)
                swapped[number], swapped[other] = other, number
                assert not can_run(work, one_by_one(swapped))
                together = [s for s in one_by_one(order) if s not in ((number,), (other,))]
                assert not can_run(work, [*together, (other, number)])
    assert can_run(work, one_by_one(order))
    assert not order or not can_run(work, one_by_one(order[1:]))


def test_branches_that_shrink_are_taken_one_by_one() -> None:
    """Four branches from a small tensor over a large one to a small one: side by side the large
    ones are live together, one branch after the other only one of them is."""
    sizes = [10]
    steps = [Step((), (0,))]
    for branch in range(4):
        sizes += [100, 1]
        steps.append(Step((0,), (1 + 2 * branch,)))
    steps += [Step((1 + 2 * b,), (2 + 2 * b,)) for b in range(4)]
    sizes.append(1)
    steps.append(Step(tuple(2 + 2 * b for b in range(4)), (9,)))
    work = Work(tuple(sizes), tuple(steps))
    assert peak_bytes(work, one_by_one(range(len(steps)))) == 4 * 100 + 10
    # The large tensor of the last branch is made beside the small one and three results.
    assert lowest(work).peak == lowest(work, states=0).peak == 10 + 3 + 100
