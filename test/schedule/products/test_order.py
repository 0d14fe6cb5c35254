"""The order of a product's steps, and the buffers that they fill in turn."""

from __future__ import annotations

from davinci.schedule.products.order import TurningBuffers


def test_the_oldest_content_makes_room() -> None:
    places = TurningBuffers(3)
    assert [places.put(key, step) for step, key in enumerate("abc")] == [(0, -1), (1, -1), (2, -1)]
    assert places.find("a", 3) == 0
    assert places.put("d", 3) == (1, 1), "the first place is in use, the second holds the oldest"
    assert [places.find(key, 4) for key in "abcd"] == [0, None, 2, 1]


def test_places_are_filled_in_a_circle() -> None:
    places = TurningBuffers(2)
    assert [places.put(key, key)[0] for key in range(5)] == [0, 1, 0, 1, 0]
    assert places.find(2, 5) is None and places.find(3, 5) == 1


def test_what_was_used_longest_ago_makes_room() -> None:
    """As where k goes back and forth: what a tile ended with is what the next one begins with."""
    places = TurningBuffers(2, used=True)
    assert [places.put(key, key) for key in range(3)] == [(0, -1), (1, -1), (0, 0)]
    assert places.find(2, 3) == 0 and places.find(1, 4) == 1
    assert places.put(0, 5) == (0, 3), "the place of what was needed first"
