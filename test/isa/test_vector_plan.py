"""The plan of an elementwise operation touches every element exactly once, within the limits."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa.vector_plan import BLOCKS, InstructionLimits, Nest, plan_vector

BLOCK = 8  # elements of 4 bytes
LIMITS = InstructionLimits(255, (255, 255), (255, 255), 22, 16)


def touched(nest: Nest, operand: int, itemsizes: tuple[int, int]) -> Counter[int]:
    """Element offsets of one operand, with how often they are touched."""
    issue = nest.issue
    found: Counter[int] = Counter()
    block = 32 // itemsizes[operand]
    count = BLOCKS * 32 // max(itemsizes)
    lanes = [
        lane // block * issue.blk_stride[operand] * block + lane % block
        for lane in range(count)
        if issue.mask >> lane & 1
    ]
    for point in itertools.product(*(range(loop.size) for loop in nest.loops)):
        base = issue.offsets[operand] + sum(
            i * loop.strides[operand] for i, loop in zip(point, nest.loops, strict=True)
        )
        assert base % block == 0, "not at a block"
        for repeat in range(issue.repeat):
            start = base + repeat * issue.rep_stride[operand] * block
            found.update(start + lane for lane in lanes)
    return found


Case = tuple[list[int], list[list[int]], tuple[int, int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    itemsizes = draw(st.sampled_from([(4, 4), (2, 2), (2, 4), (4, 2)]))
    block = 32 // min(itemsizes)
    shape = [
        draw(st.sampled_from([0, 1, 2, 7, 8, 9, 20, 300])) for _ in range(draw(st.integers(0, 2)))
    ]
    shape.append(draw(st.sampled_from([1, 5, 8, 16, 32, 48, 64, 65, 160, 200])))
    strides = []
    for operand in range(2):
        steps, extent = [1], -(-shape[-1] // block) * block
        for size in reversed(shape[:-1]):
            extent += draw(st.sampled_from([0, block, 300 * block]))
            broadcast = operand == 1 and draw(st.booleans())
            steps.insert(0, 0 if broadcast else extent)
            extent *= size
        strides.append(steps)
    return shape, strides, itemsizes


@given(case=cases())
def test_every_element_once(case: Case) -> None:
    shape, strides, itemsizes = case
    nests = plan_vector(shape, strides, itemsizes, LIMITS)
    for operand, steps in enumerate(strides):
        expected = Counter(
            sum(i * s for i, s in zip(point, steps, strict=True))
            for point in itertools.product(*(range(n) for n in shape))
        )
        found = sum((touched(nest, operand, itemsizes) for nest in nests), Counter())
        assert found == expected


@pytest.mark.parametrize(
    ("shape", "strides", "instructions", "repeats"),
    [
        # 17 blocks: one instruction of 17 repeats of a block is cheaper than 2 repeats and a rest.
        ([17 * BLOCK], [[1], [1]], 1, 17),
        ([20 * BLOCK], [[1], [1]], 1, 4),
        # A statistic a row of 8 units: blocks of 8 rows on the lanes would meet in one bank group.
        ([24, 64, BLOCK], [[64 * BLOCK, BLOCK, 1], [BLOCK, 0, 1]], 8, 8 * 24),
        # Rows that lie an odd number of blocks apart do not.
        ([24, 65, BLOCK], [[65 * BLOCK, BLOCK, 1], [BLOCK, 0, 1]], 3, 3 * 65),
        # A statistic for each unit: all rows are one instruction.
        ([24, 8, 8, BLOCK], [[512, 64, 8, 1], [64, 8, 0, 1]], 1, 192),
    ],
)
def test_fewest_cycles(
    shape: list[int], strides: list[list[int]], instructions: int, repeats: int
) -> None:
    nests = plan_vector(shape, strides, (4, 4), LIMITS)
    assert sum(nest.count for nest in nests) == instructions
    assert sum(nest.count * nest.issue.repeat for nest in nests) == repeats


@given(case=cases())
def test_limits(case: Case) -> None:
    for nest in plan_vector(*case, LIMITS):
        issue = nest.issue
        assert 1 <= issue.repeat <= LIMITS.repeat
        assert all(0 <= s <= 255 for s in (*issue.blk_stride, *issue.rep_stride))
        assert issue.blk_stride[0] >= 1


def test_rows_of_two_blocks_become_lanes_of_half_rows() -> None:
    """Rows of 16 f32 that lie apart in one operand: eight blocks a repeat, not two."""
    nests = plan_vector([64, 4, 16], [[17 * 8, 16, 1], [16, 1024, 1]], (4, 4), LIMITS)
    assert sum(nest.count * nest.issue.repeat for nest in nests) == 64 * 4 * 16 // 64


def test_conversion_into_fractals() -> None:
    """Rows of f32 to columns of fractals of f16, 17 blocks apart: whole repeats."""
    nests = plan_vector([16, 32, 16], [[33 * 16, 16, 1], [16, 256, 1]], (2, 4), LIMITS)
    assert sum(nest.count * nest.issue.repeat for nest in nests) == 16 * 32 * 16 // 64
    assert sum(nest.count for nest in nests) == 4


@pytest.mark.parametrize(("columns", "repeats"), [(16, 96), (8, 48), (10, 96), (2, 48)])
def test_bytes_of_columns(columns: int, repeats: int) -> None:
    """Pairs of columns as bytes, columns of f16 apart: eight columns a repeat, both ways."""
    wide, narrow = [2 * 800, 16, 800, 1], [50 * 32, 32, 16, 1]
    for strides, sizes in (([wide, narrow], (2, 1)), ([narrow, wide], (1, 2))):
        nests = plan_vector([columns // 2, 48, 2, 16], strides, sizes, LIMITS)
        assert {nest.issue.repeat for nest in nests} == {48}
        assert all(min(nest.issue.blk_stride) > 0 for nest in nests), "a result's is 1 or more"
        assert sum(nest.count * nest.issue.repeat for nest in nests) == repeats
        masks = sum(nest.count * nest.issue.mask.bit_count() for nest in nests)
        assert masks == 16 * columns


def test_lanes_keep_clear_of_bank_conflicts() -> None:
    """Columns are the lanes, though fewer instructions would do with eight rows of one group."""
    nests = plan_vector([48, 16, 16], [[17 * 16, 16, 1], [16, 48 * 16, 1]], (2, 2), LIMITS)
    assert {nest.issue.blk_stride for nest in nests} == {(17, 1)}
