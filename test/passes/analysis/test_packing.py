"""Placement of buffers: no two that live at once overlap, and the result is reasonably small."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from davinci.passes.analysis.packing import Item, pack
from davinci.units import round_up

ITEMS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 20), st.integers(0, 20)).map(
        lambda x: Item(x[0], min(x[1], x[2]), max(x[1], x[2]))
    ),
    max_size=30,
)


def overlap(a: Item, b: Item) -> bool:
    together = a.first <= b.last and b.first <= a.last
    return together and a.size > 0 and b.size > 0 and a.offset < b.end and b.offset < a.end


@given(ITEMS, st.sampled_from([1, 32, 512]))
def test_no_overlap(items: list[Item], align: int) -> None:
    end = pack(items, align)
    assert not any(overlap(a, b) for a, b in combinations(items, 2))
    assert all(item.offset % align == 0 for item in items)
    assert end == max((item.end for item in items if item.size), default=0)
    assert end <= sum(round_up(item.size, align) for item in items)


@given(ITEMS)
def test_same_every_time(items: list[Item]) -> None:
    again = [Item(item.size, item.first, item.last) for item in items]
    pack(items, 32)
    pack(again, 32)
    assert items == again


def test_disjoint_lifetimes_share() -> None:
    items = [Item(100, 0, 1), Item(100, 2, 3), Item(60, 1, 2)]
    assert pack(items, 4) == 160
    assert [item.offset for item in items] == [0, 0, 100]


def test_smallest_gap_that_fits() -> None:
    fixed = [Item(10, 0, 9, 0), Item(10, 0, 9, 40), Item(10, 0, 9, 60), Item(10, 0, 9, 100)]
    small = Item(8, 0, 9)
    assert pack([*fixed, small], 1) == 110
    assert small.offset == 50


def test_given_offsets_stay() -> None:
    items = [Item(100, 0, 5, 32), Item(32, 0, 5), Item(64, 0, 5)]
    assert pack(items, 32) == 224
    assert [item.offset for item in items] == [32, 0, 160]
