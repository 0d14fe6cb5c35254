"""Where transpositions put blocks of words."""

from __future__ import annotations

import itertools

import pytest

from davinci.schedule.moves.block_banks import APART, best_apart, parted, spread

PIXELS = [(3, 448, 4), (2, 224, 2), (112, 2, 16), (2, 1, 1)]
"""Channels, rows and columns of 2 x 2 pixels, of which each makes 12 of 16 words."""


def test_squares_cover_all_words() -> None:
    """Every word of three runs of 448 comes to its own block, in few instructions."""
    found = parted(PIXELS, 3 * 448, 5)
    assert found is not None
    assert (found.words.sizes, found.words.strides) == ((8, 2), (16, 1))
    assert (found.repeats.size, found.repeats.stride, len(found.others)) == (14, 128, 6)
    places = {}
    for first, block in found.others:
        for t in range(found.repeats.size):
            for i, index in enumerate(itertools.product(*map(range, found.words.sizes))):
                inside = sum(a * b for a, b in zip(index, found.words.strides, strict=True))
                word = 16 * (first + t * found.repeats.step) + i
                places[word] = block + t * found.repeats.stride + inside
    wanted = {}
    for index in itertools.product(*(range(n) for n, _, _ in PIXELS)):
        word = sum(i * s for i, (_, s, _) in zip(index, PIXELS, strict=True))
        wanted[word] = 5 + sum(i * s for i, (_, _, s) in zip(index, PIXELS, strict=True))
    assert places == wanted


@pytest.mark.parametrize(
    "dims",
    [[(8, 1, 1), (8, 12, 8)], [(12, 1, 1), (4, 12, 16)], [(8, 1, 1)]],
    ids=["words between", "no whole dimension", "half a square"],
)
def test_no_squares(dims: list[tuple[int, int, int]]) -> None:
    assert parted(dims, 96, 0) is None


def test_apart() -> None:
    """Only walks from each square to equal blocks of others need them in other banks."""
    assert best_apart([([(112, 16), (3, 4), (2, 2)], 0)]) == APART
    assert best_apart([([(112, 2), (2, 1)], 0)]) == 16
    assert best_apart([([(112, 16), (3, 8)], 0)]) == 16
    assert spread(33, APART) == 35
