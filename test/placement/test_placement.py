"""Plans of placement: valid by an independent check, and as good as they claim to be."""

from __future__ import annotations

import dataclasses
import random

import pytest

pytest.importorskip("scipy")

from davinci.errors import InputError
from davinci.placement import (
    ALGORITHMS,
    NEVER,
    MovedTensor,
    PlacementProblem,
    PlacementTask,
    faults,
    place,
    play,
)
from davinci.placement.exhaustive import exhaustive
from davinci.placement.greedy import top_k
from davinci.placement.hope import integer_parts
from davinci.placement.merging import merge_short
from davinci.placement.problem import Placement
from davinci.placement.ranks import bisect, parts
from random_task_graphs import random_problem

MOVE = ((0.0, 3.0), (3.0, 0.0))


def diamond() -> PlacementProblem:
    """One task, two independent ones that each device does well, and one that reads both."""
    tasks = (
        PlacementTask("a", (2.0, NEVER)),
        PlacementTask("left", (5.0, 20.0)),
        PlacementTask("right", (20.0, 4.0)),
        PlacementTask("z", (2.0, NEVER)),
    )
    tensors = (MovedTensor(0, (1, 2), MOVE), MovedTensor(1, (3,), MOVE), MovedTensor(2, (3,), MOVE))
    return PlacementProblem(("npu", "host"), tasks, tensors)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ALGORITHMS)
def test_plans_are_valid_and_no_faster_than_the_best(name: str, seed: int) -> None:
    rng = random.Random(seed)
    problem = random_problem(rng, rng.randint(1, 8), rng.randint(2, 3))
    plan = place(problem, name)
    assert faults(plan) == []
    assert plan.latency >= exhaustive(problem).latency * (1 - 1e-6)
    assert plan.latency >= problem.latency_bound() * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(20, 32))
def test_the_integer_program_finds_the_best(seed: int) -> None:
    rng = random.Random(seed)
    problem = random_problem(rng, rng.randint(2, 7), rng.randint(2, 3))
    plan = integer_parts(problem, short=0.0, seconds=60.0)
    assert plan.proven
    assert plan.latency == pytest.approx(exhaustive(problem).latency, rel=1e-6)


def test_both_devices_work_where_that_is_faster() -> None:
    problem = diamond()
    plan = exhaustive(problem)
    # a, then left; right is moved there and back: 2 + 3 + 4 + 3 + 2.
    assert (plan.latency, plan.devices) == (14.0, (0, 0, 1, 0))
    assert place(problem, "single").latency == 29.0
    assert place(problem, "serial").latency == 19.0
    assert plan.busy() == (9.0, 4.0)


def test_a_plan_is_played_event_by_event() -> None:
    problem = diamond()
    timeline = play(problem, (0, 0, 1, 0), ((0, 1, 3), (2,)), "by hand")
    assert timeline.plan.starts == (0.0, 2.0, 5.0, 12.0)
    assert [(m.tensor, m.source, m.target, m.start, m.end) for m in timeline.moves] == [
        (0, 0, 1, 2.0, 5.0),
        (2, 1, 0, 9.0, 12.0),
    ]


def test_moves_over_one_link_may_wait_for_each_other() -> None:
    tasks = (
        PlacementTask("a", (1.0, NEVER)),
        PlacementTask("b", (NEVER, 1.0)),
        PlacementTask("c", (NEVER, 1.0)),
    )
    tensors = (MovedTensor(0, (1,), MOVE), MovedTensor(0, (2,), MOVE))
    problem = PlacementProblem(("npu", "host"), tasks, tensors)
    ends = [
        play(problem, (0, 1, 1), ((0,), (1, 2)), "by hand", exclusive_links=alone).plan.latency
        for alone in (False, True)
    ]
    assert ends == [6.0, 8.0]


def test_a_tensor_moves_once_to_all_that_read_it() -> None:
    tasks = (
        PlacementTask("a", (1.0, NEVER)),
        PlacementTask("b", (NEVER, 1.0)),
        PlacementTask("c", (NEVER, 1.0)),
    )
    problem = PlacementProblem(("npu", "host"), tasks, (MovedTensor(0, (1, 2), MOVE),))
    timeline = play(problem, (0, 1, 1), ((0,), (1, 2)), "by hand", exclusive_links=True)
    assert len(timeline.moves) == 1 and timeline.plan.latency == 6.0


def test_orders_that_contradict_the_graph_are_refused() -> None:
    with pytest.raises(ValueError, match=r"wait for each other: .*left"):
        play(diamond(), (0, 0, 1, 0), ((3, 0, 1), (2,)), "by hand")


def test_faults_are_found() -> None:
    good = exhaustive(diamond())

    def said(**changes: object) -> str:
        return " ".join(faults(dataclasses.replace(good, **changes)))  # type: ignore[arg-type]

    assert faults(good) == []
    assert "'z' is on host, which cannot run it" in said(devices=(0, 0, 1, 1))
    assert "'right' starts before it has what it reads" in said(starts=(0.0, 2.0, 4.0, 12.0))
    assert "'a' and 'left' run on npu at one time" in said(starts=(0.0, 1.0, 5.0, 12.0))
    assert "starts at -1 s" in said(starts=(-1.0, 2.0, 5.0, 12.0))
    assert "which does not exist" in said(devices=(0, 0, 1, 7))
    assert faults(Placement(diamond(), (0,), (0.0,), "x")) == ["1 devices and 1 starts for 4 tasks"]


@pytest.mark.parametrize("seed", range(6))
def test_no_part_reads_from_a_later_one(seed: int) -> None:
    problem = random_problem(random.Random(seed), 40, 2)
    pieces = parts(problem, 7)
    number = {task: i for i, tasks in enumerate(pieces) for task in tasks}
    assert sorted(number) == list(range(40))
    assert max(map(len, pieces)) <= 7
    assert all(number[p] <= number[c] for p, c, _ in problem.edges)


def test_a_graph_is_cut_where_it_is_narrow() -> None:
    """Two bundles of three tasks with one task between them: the cut is behind that one."""
    tasks = tuple(PlacementTask(str(i), (1.0, 1.0)) for i in range(9))
    links = ((0, (1, 2, 3)), (1, (4,)), (2, (4,)), (3, (4,)), (4, (5, 6, 7)), (5, (8,)))
    problem = PlacementProblem(("a", "b"), tasks, tuple(MovedTensor(p, c, MOVE) for p, c in links))
    assert bisect(problem, range(9)) == ([0, 1, 2, 3, 4], [5, 6, 7, 8])


def test_short_tasks_stay_with_what_they_read() -> None:
    tasks = (
        PlacementTask("conv", (30.0, 40.0)),
        PlacementTask("relu", (1.0, 2.0)),
        PlacementTask("conv 2", (30.0, 40.0)),
    )
    problem = PlacementProblem(
        ("a", "b"), tasks, (MovedTensor(0, (1,), MOVE), MovedTensor(1, (2,), MOVE))
    )
    merged = merge_short(problem)
    assert merged.members == ((0, 1), (2,))
    assert merged.problem.tasks[0].seconds == (31.0, 42.0)
    assert merged.unmerge(top_k(merged.problem)).latency == 61.0
    assert merge_short(problem, 0.0).members == ((0,), (1,), (2,))


def test_a_task_of_just_the_short_share_is_short() -> None:
    tasks = (PlacementTask("conv", (30.0, 40.0)), PlacementTask("relu", (15.0, 20.0)))
    problem = PlacementProblem(("a", "b"), tasks, (MovedTensor(0, (1,), MOVE),))
    assert merge_short(problem, 0.5).members == ((0, 1),)
    assert merge_short(problem, 0.49).members == ((0,), (1,))


def test_more_tasks_at_once_find_better_plans() -> None:
    """Of two ready tasks the first alone would take the device that the second needs more."""
    tasks = (PlacementTask("first", (4.0, 5.0)), PlacementTask("second", (4.0, 20.0)))
    problem = PlacementProblem(("a", "b"), tasks)
    assert [top_k(problem, k).latency for k in (1, 2)] == [8.0, 5.0]


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_no_slower_than_a_greedy_search(seed: int) -> None:
    problem = random_problem(random.Random(seed), 40, 2 + seed % 2)
    plan = place(problem, "hope:lp")
    greedy = min((place(problem, name) for name in ("hope:gs", "heft")), key=lambda p: p.latency)
    assert faults(plan) == [] and plan.latency <= greedy.latency * (1 + 1e-9)


def test_parts_that_run_out_of_time_are_said() -> None:
    problem = random_problem(random.Random(5), 60, 3)
    plan = integer_parts(problem, seconds=0.0)
    assert faults(plan) == []
    assert "time ran out" in plan.remark


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PlacementProblem((), ()), "no device"),
        (
            lambda: PlacementProblem(("a",), (PlacementTask("x", (NEVER,)),)),
            "none of the devices a runs it",
        ),
        (lambda: PlacementProblem(("a",), (PlacementTask("x", (-1.0,)),)), "bad time on a"),
        (lambda: PlacementProblem(("a",), (PlacementTask("x", (float("nan"),)),)), "bad time on a"),
        (
            lambda: PlacementProblem(("a",), (PlacementTask("x", (1.0, 2.0)),)),
            "another number of devices",
        ),
        (
            lambda: PlacementProblem(
                ("a",), (PlacementTask("x", (1.0,)),), (MovedTensor(0, (3,), ((0.0,),)),)
            ),
            "a tensor of no task",
        ),
        (
            lambda: PlacementProblem(
                ("a",), (PlacementTask("x", (1.0,)),), (MovedTensor(0, (0,), ((1.0,),)),)
            ),
            "bad time of a move from a to a",
        ),
        (
            lambda: PlacementProblem(
                ("a",),
                (PlacementTask("x", (1.0,)), PlacementTask("y", (1.0,))),
                (MovedTensor(0, (1,), ((0.0,),)), MovedTensor(1, (0,), ((0.0,),))),
            ),
            "cycle",
        ),
        (lambda: place(diamond(), "hope:ls"), "no such algorithm"),
    ],
)
def test_bad_problems_are_refused_by_name(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]
