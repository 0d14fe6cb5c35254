"""Every pair of values is there, in fewer cases than all."""

from __future__ import annotations

import itertools

from pairs import all_pairs, in_turn


def test_all_pairs() -> None:
    parameters = ["abc", range(4), [False, True], "xyz"]
    cases = all_pairs(*parameters)
    for i, j in itertools.combinations(range(4), 2):
        wanted = set(itertools.product(parameters[i], parameters[j]))
        assert {(case[i], case[j]) for case in cases} == wanted
    assert len(cases) < 20
    assert all_pairs("ab") == []
    assert all_pairs("ab", "c") == [("a", "c"), ("b", "c")]


def test_in_turn() -> None:
    assert in_turn("abc", [1, 32]) == [("a", 1), ("b", 32), ("c", 1)]
    cases = in_turn(range(5), [1, 2], "xy")
    assert [(one, other) for _, one, other in cases] == [
        *((1, "x"), (1, "y"), (2, "x"), (2, "y"), (1, "x"))
    ]
