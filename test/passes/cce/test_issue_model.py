"""The model of queues: when instructions start, and orders that keep what must be kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from davinci.passes.cce.issue_model import ENDLESS, Item, Rules, by_start, starts

RULES = Rules(depth=4, issue=1, flag=10, barrier=20)
A, B = 1, 2


def work(pipe: int, busy: int) -> Item:
    return Item(pipe, "work", None, 1, busy, busy)


def test_a_full_queue_holds_up_what_comes_behind() -> None:
    items = [*(work(A, 100) for _ in range(8)), work(B, 10)]
    given, _ = starts(items, RULES)
    # The ninth is issued when the fourth has started.
    assert given[:3] == [1, 101, 201] and given[-1] == given[3] + 1
    assert starts(items, replace(RULES, depth=ENDLESS))[0][-1] == len(items)


def test_flags_and_barriers() -> None:
    flag = (A, B, 0)
    items = [work(A, 50), Item(A, "set", flag), Item(B, "wait", flag), work(B, 5)]
    assert starts(items, RULES)[0][2:] == [1 + 50 + 10, 61]
    assert starts([work(A, 50), Item(A, "barrier"), work(A, 5)], RULES)[0][1:] == [71, 71]


def test_what_gains_nothing_stays() -> None:
    assert by_start([work(A, 5), work(B, 5)], RULES, repeated=False) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("repeated", [False, True])
def test_pipes_keep_their_order_and_waits_their_sets(seed: int, repeated: bool) -> None:
    random = np.random.default_rng(seed)
    items: list[Item] = []
    for number in range(40):
        pipe, other = (int(p) for p in random.permutation([1, 2, 3])[:2])
        items += [work(pipe, int(random.integers(1, 200))) for _ in range(random.integers(1, 8))]
        flag = (pipe, other, number)
        items += [Item(pipe, "set", flag), Item(other, "wait", flag)]
    order = by_start(items, RULES, repeated)
    if order is None:
        return
    assert sorted(order) == list(range(len(items)))
    for pipe in (1, 2, 3):
        own = [number for number in order if items[number].pipe == pipe]
        assert own == sorted(own)
    place = {number: i for i, number in enumerate(order)}
    for number, item in enumerate(items):
        if item.kind == "wait":
            assert place[number - 1] < place[number]
    turns = 2 if repeated else 1
    found = starts([items[number] for number in order] * turns, RULES)[1]
    assert found < starts(items * turns, RULES)[1]
