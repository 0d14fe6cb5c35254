"""The digits of transpositions cover rows exactly, and places keep rows and statistics apart."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci import machine as machines
from davinci.schedule.vector.row_places import RowPlaces, places_of
from davinci.schedule.vector.row_statistics import neutral, reduction
from davinci.schedule.vector.row_steps import Digits
from davinci.schedule.vector.steps import OF_BLOCKS, RESULT, SOURCE, SPREAD


def sums(strides: tuple[int, ...]) -> list[int]:
    bits = itertools.product((0, 1), repeat=len(strides))
    return [sum(b * s for b, s in zip(row, strides, strict=True)) for row in bits]


@given(count=st.integers(1, 300), digits=st.integers(0, 4))
def test_digits_cover_all_rows_and_no_others(count: int, digits: int) -> None:
    found = Digits.of(count, digits)
    covered = {start + t for start in sums(found.strides) for t in range(found.repeats)}
    assert covered == set(range(count))
    assert found.repeats == -(-count // 2**digits)


@given(rows=st.sampled_from([8, 16, 24, 40]), groups=st.sampled_from([1, 2, 4, 8]))
def test_rows_lie_where_their_digits_lead(rows: int, groups: int) -> None:
    """Blocks of a row are the sum of those that its digits stand for, over groups too."""
    places = RowPlaces(rows, 3, pitch=8, groups=groups)
    digits = Digits.of(rows, 4)
    for start in itertools.product(*((0, s) for s in digits.strides)):
        for t in range(digits.repeats):
            blocks = sum(map(places.block_of, start)) + places.block_of(t)
            assert blocks == places.block_of(sum(start) + t)


@given(rows=st.sampled_from([1, 7, 8, 24]), row_blocks=st.sampled_from([1, 2, 4, 8, 24, 64]))
def test_places_are_apart_and_in_the_buffer(rows: int, row_blocks: int) -> None:
    for places in places_of(rows, row_blocks):
        group, row, copy = places.strides()
        blocks = [
            g * group + r * row + c * copy
            for g in range(places.groups)
            for r in range(rows // places.groups)
            for c in range(places.copies)
        ]
        assert len(set(blocks)) == rows * places.copies
        assert max(blocks) < places.blocks
        assert row_blocks % (places.unit * places.copies) == 0


@given(
    kind=st.sampled_from(["add", "max"]),
    rows=st.integers(1, 250),
    lanes=st.integers(1, 40).map(lambda n: 8 * n),
    slices=st.integers(1, 3),
)
@pytest.mark.parametrize("name", ["ascend910", "ascend910b"])
def test_steps_stay_in_their_buffers(
    name: str, kind: str, rows: int, lanes: int, slices: int
) -> None:
    machine = machines.for_vector(machines.load(name))
    work = reduction(kind, rows, lanes, "f32", machine, slices=slices).work
    sizes = {SOURCE: slices * rows * lanes, RESULT: rows * 8, **work.scratch}
    for step in work.steps:
        for view in step.operands:
            last = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
            assert 0 <= view.offset
            assert view.offset + last < sizes[view.buffer]
        assert step.operands[-1].buffer != SOURCE


@pytest.mark.parametrize("rows", [16, 64])
@pytest.mark.parametrize("lanes", [16, 96, 512, 768])
def test_blocks_are_reduced_where_machines_have_that(rows: int, lanes: int) -> None:
    """Not by transpositions, of which each takes eight instructions of the scalar unit besides."""
    machine = machines.for_vector(machines.load("ascend910b"))
    for kind, dtype in (("add", "f32"), ("max", "f32"), ("max", "f16")):
        names = {step.name for step in reduction(kind, rows, lanes, dtype, machine).work.steps}
        assert {OF_BLOCKS[kind], SPREAD} <= names
    coupled = machines.load("ascend910")
    names = {step.name for step in reduction("add", rows, lanes, "f32", coupled).work.steps}
    assert names.isdisjoint({OF_BLOCKS["add"], SPREAD})


@pytest.mark.parametrize(
    ("kind", "dtype", "value"),
    [
        ("max", "f32", float("-inf")),
        ("min", "f16", float("inf")),
        ("max", "s32", -(2**31)),
        ("min", "s32", 2**31 - 1),
        ("mul", "s32", 1),
        ("add", "f32", 0),
    ],
)
def test_neutral_values(kind: str, dtype: str, value: float) -> None:
    assert neutral(kind, dtype) == value
