"""Sets of bytes: what is taken away is gone, and nothing else but what the docstring allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from davinci.passes.analysis.regions import StridedRegion, span, without


@st.composite
def regions(draw: st.DrawFn) -> StridedRegion:
    run, count = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    stride = draw(st.integers(run, 24)) if count > 1 else 0
    return StridedRegion(draw(st.integers(0, 30)), count, stride, run)


def bytes_of(*found: StridedRegion) -> set[int]:
    return {
        region.start + i * region.stride + byte
        for region in found
        for i in range(region.count)
        for byte in range(region.run)
    }


@given(regions(), regions())
def test_never_too_little_is_left(region: StridedRegion, taken: StridedRegion) -> None:
    left = bytes_of(*without([region], taken))
    assert bytes_of(region) - bytes_of(taken) <= left <= bytes_of(region)


@given(regions(), st.integers(0, 40), st.integers(1, 40))
def test_a_run_is_taken_out_of_a_run(region: StridedRegion, start: int, size: int) -> None:
    whole, taken = span(region.start, region.end - region.start), span(start, size)
    assert bytes_of(*without([whole], taken)) == bytes_of(whole) - bytes_of(taken)


@given(regions())
def test_a_region_takes_itself_away(region: StridedRegion) -> None:
    assert without([region], region) == []
    assert without([region], span(region.start, region.end - region.start)) == []


def test_runs_of_the_same_stride() -> None:
    rows = StridedRegion(0, 8, 100, 40)
    assert without([rows], StridedRegion(200, 3, 100, 50)) == [
        StridedRegion(0, 2, 100, 40),
        rows.part(5, 3),
    ]
    assert without([rows], StridedRegion(210, 3, 100, 50)) == [rows]  # only parts of the runs


def test_runs_are_taken_out_of_a_longer_one() -> None:
    assert without([span(0, 100)], StridedRegion(0, 2, 60, 20)) == [span(20, 40), span(80, 20)]
