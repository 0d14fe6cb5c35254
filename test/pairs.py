"""Cases of tests with several parameters: not all combinations, but all of any two, or each case
with some of what is the same thing for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any


def all_pairs(*parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which any value of one parameter meets any value of any other.

    Each is the first of those that bring the most new pairs, so that they are always the same.
    """
    values = [list(each) for each in parameters]
    every = list(itertools.product(*map(range, map(len, values))))
    missing = {pair for numbers in every for pair in _pairs(numbers)}
    found = []
    while missing:
        best = max(every, key=lambda numbers: len(missing & _pairs(numbers)))
        missing -= _pairs(best)
        found.append(tuple(own[number] for own, number in zip(values, best, strict=True)))
    return found


def in_turn(cases: Iterable[Any], *parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Each case once, with the next of all combinations of the parameters."""
    return [
        (case, *rest) for case, rest in zip(cases, itertools.cycle(itertools.product(*parameters)))
    ]


def _pairs(numbers: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
    return set(itertools.combinations(enumerate(numbers), 2))
