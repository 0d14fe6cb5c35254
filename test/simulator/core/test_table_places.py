"""Places of keys in the tables by which compiled code knows forms and steps."""

from __future__ import annotations

import numpy as np

from davinci.simulator.core.columns import COUNT_SHIFT, ENTRY, KEY_WORDS
from davinci.simulator.core.execute import slot_of
from davinci.simulator.timing.layout import Word

SIZE, KEY = 64, 200
"""Entries of a table, and where its words have the key."""


def words_with(key: list[int], before: int) -> list[int]:
    """Words of which those in front of the key are all the same number."""
    words = [before] * (KEY + KEY_WORDS)
    words[Word.KEY] = KEY
    words[KEY:] = key
    return words


def test_a_key_is_found_whatever_stands_before_it() -> None:
    random = np.random.default_rng(0)
    keys = [[int(n) for n in random.integers(0, 1 << 30, KEY_WORDS)] for _ in range(20)]
    for key in keys:
        key[0] |= KEY_WORDS << COUNT_SHIFT
    table = [0] * (SIZE * ENTRY)
    places = {}
    for number, key in enumerate(keys):
        at = place_of(key, table, number)
        assert table[at] == 0
        table[at], table[at + 1 : at + ENTRY] = number + 1, key
        places[number] = at
    for number, key in enumerate(keys):
        assert place_of(key, table, number + 1000) == places[number]


def place_of(key: list[int], table: list[int], before: int) -> int:
    """The place that the rule gives, in 64-bit words as compiled code has them."""
    found: int = slot_of(words_with(key, before), table, SIZE)
    return found


def test_words_behind_the_last_one_of_a_key_do_not_matter() -> None:
    key = [3 << COUNT_SHIFT | 7, 1, 2]
    table = [0] * (SIZE * ENTRY)
    first, other = ([*key, *[rest] * (KEY_WORDS - 3)] for rest in (0, 9))
    at = place_of(first, table, 0)
    table[at], table[at + 1 : at + ENTRY] = 1, first
    assert place_of(other, table, 0) == at
    longer = [4 << COUNT_SHIFT | 7, *other[1:]]
    assert place_of(longer, table, 0) != at
