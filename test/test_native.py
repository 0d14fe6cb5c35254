"""Functions of a part of Python as native code: they do what Python does."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.native import (
    Bytes,
    Floats,
    Halves,
    Ints,
    Library,
    Singles,
    bytes_at,
    floats_at,
    interleaved,
    ints_at,
    multiply_add,
    put_row,
    row,
    rows,
    spread,
    unrolled,
)

LIBRARY = Library()
LIMIT = 100


@LIBRARY.function
def clipped(x: int, low: float) -> float:
    """A double, unless it is below `low`."""
    return max(x / 2, low)


@LIBRARY.entry
def mixed(values: Ints, count: int, low: float) -> int:
    """Branches, loops, calls, choices and all operators."""
    found = 0
    for i in range(1, count, 2):
        value = values[i]
        if value == 5 or (7 <= value < 9 and value != 8):
            continue
        if value > LIMIT:
            break
        found += ceil(clipped(value, low)) * 3 - (1 if value & 1 else i)
    while found < 10:
        found += 4
    values[0] = (found << 2 | 1) ^ found >> 1
    return min(found, max(1000, count // 3 % 7))


@LIBRARY.entry
def copied(values: Floats, marks: Bytes, count: int) -> float:
    """The sum of values, and their signs as bytes."""
    total = 0.0
    for i in range(count):
        marks[i] = 255 if values[i] < 0.0 else 1
        total += values[i]
    return total


@LIBRARY.entry
def far(address: int) -> int:
    """The first elements of arrays whose addresses are in an array."""
    places = ints_at(address)
    return ints_at(places[0])[1] + bytes_at(places[1])[1] + ceil(floats_at(places[2])[1])


@LIBRARY.entry
def converted(halves: Halves, singles: Singles, back: Halves, count: int) -> int:
    """Halves as singles, x * x - x of those above one; how often a loop in a loop turns."""
    turns = 0
    for i in range(count):
        singles[i] = halves[i]
        back[i] = singles[i] * singles[i] - halves[i] if singles[i] > 1.0 else 0.0
    for _ in range(3):
        for _ in range(5):
            turns += 1
    return turns


@LIBRARY.entry
def in_rows(values: Singles, result: Singles, count: int) -> None:
    """All that there is for rows."""
    kept = rows(2)
    for i in range(count):
        kept[0] = row(values, 16 * i)
        for j in unrolled(2):
            kept[1] = multiply_add(kept[j], spread(values[i + j]), kept[0] - spread(0.5))
            put_row(result, 32 * i + 16 * j, interleaved(kept[1], kept[0] * kept[0], j))


@given(st.lists(st.integers(0, 150), min_size=1, max_size=20), st.floats(-10, 100))
def test_as_in_python(values: list[int], low: float) -> None:
    array, other = np.array(values), np.array(values)
    assert LIBRARY.call("mixed", array, len(values), low) == mixed(other, len(values), low)
    assert array.tolist() == other.tolist()


def test_doubles_and_bytes() -> None:
    values = np.array([1.5, -2.0, 3.25])
    marks = np.zeros(3, dtype=np.uint8)
    assert LIBRARY.call("copied", values, marks, 3) == 2.75
    assert marks.tolist() == [1, 255, 1]


def test_arrays_at_addresses() -> None:
    arrays = np.array([1, 20]), np.array([1, 200], dtype=np.uint8), np.array([0.0, 2.5])
    places = np.array([array.ctypes.data for array in arrays])
    assert LIBRARY.call("far", places.ctypes.data) == 20 + 200 + 3


def test_halves_and_singles() -> None:
    halves = np.array([1.5, -2.0, 3.25, 200, 0.1] * 9, np.float16)
    found, wanted = (
        (np.zeros(halves.size, np.float32), np.zeros(halves.size, np.float16)) for _ in range(2)
    )
    assert LIBRARY.call("converted", halves, *found, halves.size) == 15
    assert converted(halves, *wanted, halves.size) == 15
    assert found[0].tolist() == halves.tolist() == wanted[0].tolist()
    assert found[1].tolist() == wanted[1].tolist()


def test_rows() -> None:
    values = np.arange(64, dtype=np.float32)
    found, wanted = np.zeros(128, np.float32), np.zeros(128, np.float32)
    LIBRARY.call("in_rows", values, found, 4)
    in_rows(values, wanted, 4)
    assert found.tolist() == wanted.tolist()


def test_what_there_is_not() -> None:
    library = Library()

    @library.entry
    def wrong(x: int) -> int:
        return [x][0]

    with pytest.raises(SyntaxError, match=r"wrong: no such expression in native code: \[x\]"):
        library.call("wrong", 1)


@LIBRARY.entry
def swapped(values: Ints, times: int) -> int:
    """Several values to as many targets: all are computed before any is stored."""
    a, b = values[0], values[1]
    for _i in range(times):
        a, b = b, a + b
    values[0], values[1] = b, a
    return a


def test_several_targets() -> None:
    values = np.array([1, 1])
    assert LIBRARY.call("swapped", values, 5) == 8
    assert values.tolist() == [13, 8]


def test_a_prepared_library_compiles_nothing_when_it_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library()

    @library.entry
    def doubled(x: int) -> int:
        return 2 * x

    library.prepare()
    monkeypatch.delattr("davinci.native.library.compiled")
    assert library.call("doubled", 21) == 42
