"""Simulated allocation: which range a buffer takes, what lies below what, and pushed addresses."""

from __future__ import annotations

from davinci.planning import Buffer, Problem, faults, run


def offsets(*buffers: Buffer, conflicts: frozenset[tuple[int, int]] = frozenset()) -> list[int]:
    """Offsets of the buffers by simulated allocation, which is no wrong plan."""
    problem = Problem(buffers, conflicts=conflicts)
    plan = run("simulated", problem)
    assert not faults(problem, plan.offsets)
    return list(plan.offsets)


def test_the_smallest_free_range_that_holds_a_buffer_is_taken() -> None:
    placed = [Buffer(30, 0, 1), Buffer(1, 0, 9), Buffer(20, 0, 1), Buffer(1, 0, 9)]
    assert offsets(*placed, Buffer(15, 1, 9)) == [0, 30, 31, 51, 31]


def test_free_ranges_that_touch_become_one() -> None:
    pair = [Buffer(10, 0, 1), Buffer(10, 0, 2)]
    assert offsets(*pair, Buffer(5, 0, 9), Buffer(20, 2, 9)) == [0, 10, 20, 0]


def test_the_largest_free_range_grows_and_what_lies_above_moves_up() -> None:
    placed = [Buffer(10, 0, 1), Buffer(5, 0, 9)]
    assert offsets(*placed, Buffer(12, 1, 9)) == [0, 12, 0]


def test_a_buffer_without_anything_below_it_falls_to_the_bottom() -> None:
    # The last one is directly above nothing: what was below its range has never been live with it.
    placed = [Buffer(10, 0, 1), Buffer(10, 0, 2), Buffer(4, 2, 3)]
    assert offsets(*placed) == [0, 10, 0]


def test_declared_conflicts_are_pushed_apart() -> None:
    assert offsets(Buffer(10, 0, 1), Buffer(10, 1, 2)) == [0, 0]
    apart = frozenset([(0, 1)])
    assert sorted(offsets(Buffer(10, 0, 1), Buffer(10, 1, 2), conflicts=apart)) == [0, 10]
