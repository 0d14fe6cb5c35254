"""Buffers that give parts of themselves back: plans against bytes painted one by one."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from davinci.planning import (
    ALGORITHMS,
    PIECES,
    QUICK,
    Budget,
    Buffer,
    Piece,
    Plan,
    Problem,
    faults,
    live_bytes,
    pieces_of,
    run,
    solve,
)

MB = 1 << 20

USES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 40), st.integers(0, 8), st.integers(1, 4)).map(
        lambda drawn: Piece(drawn[0], drawn[0] + drawn[1], drawn[2], drawn[2] + drawn[3])
    ),
    min_size=1,
    max_size=4,
)


def buffer_of(uses: list[Piece], align: int, name: str) -> Buffer:
    """A buffer that views and overwritten ranges divide: each use is one of them."""
    size = max(use.end for use in uses)
    lower, upper = min(use.lower for use in uses), max(use.upper for use in uses)
    return Buffer(size, lower, upper, name, pieces_of(uses, size, align))


def painted_twice(plan: Plan, uses: list[list[Piece]]) -> list[tuple[int, int]]:
    """Times and bytes that two buffers need: every byte of every use is painted by itself."""
    height = max((b.size + o for b, o in zip(plan.problem.buffers, plan.offsets, strict=True)))
    owner = np.full((20, height), -1)
    found = []
    for number, (offset, mine) in enumerate(zip(plan.offsets, uses, strict=True)):
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for use in mine:
            for byte in range(use.begin, use.end):
                first[byte] = min(first.get(byte, use.lower), use.lower)
                last[byte] = max(last.get(byte, use.upper), use.upper)
        for byte, begin in first.items():
            for time in range(begin, last[byte]):
                if owner[time, offset + byte] not in (-1, number):
                    found.append((time, offset + byte))
                owner[time, offset + byte] = number
    return found


@given(st.lists(USES, max_size=8), st.sampled_from([1, 4]))
def test_nothing_that_is_needed_is_painted_twice(drawn: list[list[Piece]], align: int) -> None:
    buffers = tuple(buffer_of(uses, align, str(n)) for n, uses in enumerate(drawn))
    problem = Problem(buffers, align)
    whole = [run(name, problem) for name in ALGORITHMS]
    best = solve(problem, QUICK)
    for plan in (*whole, best, solve(problem, Budget(500))):
        assert not faults(problem, plan.offsets)
        if buffers:
            assert not painted_twice(plan, drawn)
        assert plan.height >= problem.lower_bound
    assert best.height <= min(plan.height for plan in whole)


@given(USES, st.sampled_from([1, 4, 32]))
def test_pieces_have_all_that_is_used(uses: list[Piece], align: int) -> None:
    buffer = buffer_of(uses, align, "")
    for use in uses:
        for byte in range(use.begin, use.end):
            piece = next(p for p in buffer.parts if p.begin <= byte < p.end)
            assert piece.lower <= use.lower and use.upper <= piece.upper
    ends = [(p.begin, p.end) for p in buffer.parts]
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ends))


def test_what_lies_before_and_behind_an_overwritten_range_is_given_back() -> None:
    """A write of 10 MB at 6 MB in 20 MB gives back the first 6 MB and the last 4 MB."""
    uses = [Piece(0, 20 * MB, 0, 2), Piece(6 * MB, 16 * MB, 1, 4)]
    pieces = pieces_of(uses, 20 * MB, 512)
    assert [(p.begin // MB, p.end // MB, p.upper) for p in pieces] == [
        (0, 6, 2),
        (6, 16, 4),
        (16, 20, 2),
    ]
    overwritten = Buffer(20 * MB, 0, 4, "x", pieces)
    front, back = Buffer(6 * MB, 2, 4, "front"), Buffer(4 * MB, 2, 4, "back")
    problem = Problem((overwritten, front, back), 512)
    plan = solve(problem)
    assert plan.algorithm == PIECES
    assert plan.offsets == (0, 0, 16 * MB)
    assert plan.height == problem.lower_bound == 20 * MB
    assert solve(problem.whole).height == 30 * MB
    assert list(live_bytes(problem.buffers, 4)) == [20 * MB] * 4
    larger = Problem((overwritten, Buffer(7 * MB, 2, 4, "front")), 512)
    assert solve(larger).height == 23 * MB  # above what is still needed


def test_parts_that_are_made_one_by_one_begin_to_live_one_by_one() -> None:
    """Of what is put together in place, a part takes bytes from the time it is made on."""
    joined = Buffer(
        3 * MB,
        0,
        4,
        "joined",
        pieces_of([Piece(n * MB, (n + 1) * MB, n, 4) for n in range(3)], 3 * MB, 512),
    )
    early = Buffer(2 * MB, 0, 1, "early")
    problem = Problem((joined, early), 512)
    assert solve(problem).height == 3 * MB
