"""Which kernels share a launch: the search against all that could be done, on small graphs."""

from __future__ import annotations

import functools
import random
from itertools import combinations

import pytest

from davinci import machine as machines
from davinci.schedule.stages import (
    CoresWay,
    LaunchStage,
    StagedCall,
    StagePrices,
    fastest,
    in_groups,
    partners,
    pruned,
    sequential,
)

MACHINE = machines.load("ascend910")


def task(*needs: int, work: int = 20_000, shares: bool = True) -> StagedCall:
    """Work that cores share, and a part of it that they do not."""
    ways = [CoresWay(count, 800 + work / count) for count in (1, 2, 4, 8, 16, 32)]
    return StagedCall(pruned(ways), frozenset(needs), shares=shares)


def prices(*tasks: StagedCall, cores: int = 32) -> StagePrices:
    return StagePrices(MACHINE, cores, tasks)


def total(stages: list[LaunchStage]) -> float:
    return sum(stage.cycles for stage in stages)


def require_plan(found: list[LaunchStage], given: StagePrices) -> None:
    """All tasks once, each behind what it waits for, on no more cores than there are."""
    done: set[int] = set()
    for stage in found:
        assert all(given.tasks[number].needs <= done for number in stage.tasks)
        assert not done & set(stage.tasks)
        assert sum(stage.cores) <= given.cores
        assert len(stage.cores) in (0, len(stage.tasks))
        done |= set(stage.tasks)
    assert done == set(range(len(given.tasks)))


def random_tasks(seed: int, count: int) -> list[StagedCall]:
    chance = random.Random(seed)
    tasks = []
    for number in range(count):
        needs = {chance.randrange(number) for _ in range(chance.randrange(3)) if number}
        work = chance.choice([500, 4_000, 20_000, 90_000])
        tasks.append(task(*needs, work=work, shares=chance.random() > 0.1))
    return tasks


def least(given: StagePrices) -> float:
    """The least time of all orders of all stages."""

    @functools.cache
    def left(done: frozenset[int]) -> float:
        rest = set(range(len(given.tasks))) - done
        if not rest:
            return 0.0
        ready = [number for number in rest if given.tasks[number].needs <= done]
        found = float("inf")
        for count in range(1, len(ready) + 1):
            for chosen in combinations(sorted(ready), count):
                if (stage := given.stage(chosen)) is not None:
                    found = min(found, stage.cycles + left(done | set(chosen)))
        return found

    return left(frozenset())


@pytest.mark.parametrize("seed", range(12))
def test_as_good_as_any_on_small_graphs(seed: int) -> None:
    given = prices(*random_tasks(seed, 7))
    found = fastest(given)
    require_plan(found, given)
    assert total(found) == pytest.approx(least(given))


@pytest.mark.parametrize("seed", range(2))
def test_large_graphs(seed: int) -> None:
    given = prices(*random_tasks(seed, 60))
    best, *groups = fastest(given), *(in_groups(given, n) for n in (1, 2, 3))
    for found in (best, groups[1], sequential(given)):
        require_plan(found, given)
    assert total(best) <= min(map(total, groups))


def test_two_branches_share_a_launch_and_its_price() -> None:
    given = prices(task(), task(0), task(0), task(1, 2))
    found = fastest(given)
    assert [stage.tasks for stage in found] == [(0,), (1, 2), (3,)]
    assert total(found) < total(sequential(given))


def test_a_longer_kernel_has_more_cores() -> None:
    (stage,) = fastest(prices(task(work=3_000), task(work=40_000)))
    assert stage.cores[0] < stage.cores[1]


def test_memory_that_all_wait_for_is_in_the_price() -> None:
    few, many = (StagedCall(task().ways, memory_bytes=size) for size in (0, 10**7))
    alone, together = (prices(each, each).stage((0, 1)) for each in (few, many))
    assert alone is not None and together is not None
    rate = MACHINE.gm.read_bytes_per_cycle * MACHINE.cores
    assert together.cycles > alone.cycles
    assert together.cycles >= 2 * 10**7 / rate


def test_no_more_kernels_than_cores() -> None:
    given = prices(*(task() for _ in range(5)), cores=2)
    found = fastest(given)
    require_plan(found, given)
    assert max(len(stage.tasks) for stage in found) == 2


def test_what_shares_no_launch_is_alone() -> None:
    found = fastest(prices(task(shares=False), task(), task()))
    assert {stage.tasks for stage in found} == {(0,), (1, 2)}


def test_groups_cut_layers() -> None:
    given = prices(task(), *(task(0) for _ in range(5)), task(1, 2, 3, 4, 5))
    assert [stage.tasks for stage in in_groups(given, 2)] == [(0,), (1, 2, 3), (4, 5), (6,)]
    assert [stage.tasks for stage in in_groups(given, 1)] == [(0,), (1, 2, 3, 4, 5), (6,)]


def test_a_group_without_cores_for_all_is_cut() -> None:
    given = prices(*(task() for _ in range(5)), cores=4)
    assert [stage.tasks for stage in in_groups(given, 1)] == [(0, 1), (2, 3, 4)]


def test_who_may_run_beside_whom() -> None:
    needs = [frozenset[int](), frozenset({0}), frozenset({0}), frozenset({1, 2})]
    assert partners(needs) == [0, 0b100, 0b010, 0]


def test_ways_that_cost_cores_for_nothing_are_left_out() -> None:
    assert pruned([CoresWay(8, 10), CoresWay(4, 10), CoresWay(2, 30), CoresWay(1, 20)]) == (
        CoresWay(1, 20),
        CoresWay(4, 10),
    )


def test_equal_kernels_are_priced_alike() -> None:
    """Stages of kernels that are equal but for what they wait for differ in their tasks only."""
    given = prices(task(), task(), task(work=90_000), task(0), task(1), task(work=90_000))
    for first, second in (((0, 2), (1, 5)), ((3, 4), (0, 1)), ((0, 1, 2), (3, 4, 5))):
        one, other = given.stage(first), given.stage(second)
        assert one is not None and other is not None
        assert (one.tasks, other.tasks) == (first, second)
        assert (one.cores, one.cycles) == (other.cores, other.cycles)
    mixed = given.stage((2, 3))
    assert mixed is not None and mixed.cores[0] > mixed.cores[1]
    assert mixed.cycles == prices(task(work=90_000), task()).stage((0, 1)).cycles  # type: ignore


def test_tasks_that_could_change_places_are_searched_once() -> None:
    """The search of stages tells states with 24 equal branches apart by the number of branches that
    are done, not by which they are."""
    asked = set()

    class Watched(StagePrices):
        def stage(self, tasks: tuple[int, ...]) -> LaunchStage | None:
            asked.add(tasks)
            return super().stage(tasks)

    branches = [task(0, work=4_000) for _ in range(24)]
    given = Watched(MACHINE, 32, (task(), *branches, task(*range(1, 25))))
    found = fastest(given)
    require_plan(found, given)
    assert len(found) < 26
    assert len(asked) <= 2 + 24 * 16
