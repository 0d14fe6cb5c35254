"""List scheduling: orders are legal, no worse than what was given, and fill waiting time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from davinci.passes.cce.list_scheduler import (
    PipeTask,
    SchedulerLimits,
    TaskOrder,
    critical_paths,
    greedy,
    in_order,
    mixed,
    plain,
)

FREE = SchedulerLimits()


def schedule(tasks: list[PipeTask], limits: SchedulerLimits) -> TaskOrder:
    return mixed(tasks, limits, plain(tasks, limits))


@st.composite
def lines(draw: st.DrawFn) -> list[PipeTask]:
    tasks = []
    for number in range(draw(st.integers(0, 25))):
        busy = draw(st.integers(0, 30))
        earlier = st.tuples(st.integers(0, max(number - 1, 0)), st.integers(0, 50))
        after = draw(st.lists(earlier, max_size=3 if number else 0, unique_by=lambda e: e[0]))
        result = busy + draw(st.integers(0, 20))
        blocks = draw(st.booleans())
        tasks.append(PipeTask(draw(st.integers(0, 2)), busy, result, 1, tuple(after), blocks))
    return tasks


@given(lines())
def test_every_task_comes_after_those_it_follows(tasks: list[PipeTask]) -> None:
    plan = schedule(tasks, FREE)
    place = {number: at for at, number in enumerate(plan.order)}
    assert sorted(plan.order) == list(range(len(tasks)))
    assert all(
        place[earlier] < place[number]
        for number, task in enumerate(tasks)
        for earlier, _ in task.after
    )


@given(lines(), st.integers(1, 5))
def test_tasks_stay_in_their_window(tasks: list[PipeTask], window: int) -> None:
    order = schedule(tasks, SchedulerLimits(window=window)).order
    assert sorted(order) == list(range(len(tasks)))
    for at, number in enumerate(order):
        first = min(set(range(len(tasks))).difference(order[:at]))
        assert number < first + window


@given(lines())
def test_never_later_than_in_order(tasks: list[PipeTask]) -> None:
    assert schedule(tasks, FREE).cycles <= in_order(tasks, FREE).cycles


@given(lines())
def test_the_end_is_no_earlier_than_the_work(tasks: list[PipeTask]) -> None:
    cycles = schedule(tasks, FREE).cycles
    for pipe in range(3):
        assert cycles >= sum(task.busy for task in tasks if task.pipe == pipe)
    assert cycles >= max(critical_paths(tasks), default=0)


def test_two_chains_fill_each_others_latency() -> None:
    """Two chains of five tasks of 10 cycles, 30 from one link to the next."""
    chain = [PipeTask(0, 10, 10, 0, ()), *(PipeTask(0, 10, 10, 0, ((i, 30),)) for i in range(4))]
    moved = [
        PipeTask(t.pipe, t.busy, t.result, 0, tuple((e + 5, c) for e, c in t.after)) for t in chain
    ]
    tasks = [*chain, *moved]
    assert in_order(tasks, FREE).cycles == 130 + 130
    assert schedule(tasks, FREE).cycles == 140


def test_the_longer_chain_goes_first() -> None:
    short, long = PipeTask(0, 10, 10, 0, ()), PipeTask(0, 10, 10, 0, ())
    tail = PipeTask(1, 100, 100, 0, ((1, 10),))
    assert greedy([short, long, tail], [0, 1, 2], FREE).cycles == 120
    assert schedule([short, long, tail], FREE).order[0] == 1


@given(lines())
def test_no_later_than_by_one_rank(tasks: list[PipeTask]) -> None:
    ranks = [range(len(tasks)), [-path for path in critical_paths(tasks)]]
    least = min(greedy(tasks, rank, FREE).cycles for rank in ranks)
    assert schedule(tasks, FREE).cycles <= least


def test_nothing_is_issued_while_the_scalar_unit_waits() -> None:
    tasks = [PipeTask(0, 50, 50, 1, (), blocks=True), PipeTask(1, 10, 10, 1, ())]
    assert in_order(tasks, FREE).cycles == 62


def test_the_memory_serves_one_after_the_other() -> None:
    """Loads of 10 cycles on the pipe and 30 of the memory, which catches up after a pause."""
    load = PipeTask(0, 10, 20, 0, (), of_memory=30)
    assert in_order([load, load], FREE).cycles == 30 + 30 + 10
    later = PipeTask(0, 10, 20, 0, ((0, 200),), of_memory=30)
    assert in_order([load, later, later], FREE).cycles == 220 + 30 + 30 + 10
    assert in_order([load, later, later], SchedulerLimits(credit=10)).cycles == 220 + 30 + 30
    assert in_order([load, later, later], SchedulerLimits(credit=45)).cycles == 220 + 10 + 20


def test_who_is_told_waits_for_all_in_front() -> None:
    """A store that could start first goes behind a copy that another pipe waits for."""
    vector, transfer, cube = 0, 1, 2
    tasks = [
        PipeTask(vector, 20, 20, 1, ()),
        PipeTask(vector, 20, 20, 1, ((0, 30),)),
        PipeTask(transfer, 25, 25, 1, ((1, 30),)),
        PipeTask(transfer, 25, 230, 1, ((0, 30),)),
        PipeTask(cube, 100, 100, 1, ((2, 35),)),
    ]
    assert greedy(tasks, range(5), FREE).cycles == 371
    found = plain(tasks, FREE)
    assert found.order.index(2) < found.order.index(3) and found.cycles < 371
