"""The plan of an elementwise operation touches every element exactly once, within the limits."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa.vector_plan import BLOCKS, Limits, Nest, plan_vector

BLOCK = 8  # elements of 4 bytes
LIMITS = Limits(255, (255, 255), (255, 255), 22, 16)


def touched(nest: Nest, operand: int) -> Counter[int]:
    """Element offsets of one operand, with how often they are touched."""
    issue = nest.issue
    found: Counter[int] = Counter()
    lanes = [
        blk * issue.blk_stride[operand] * BLOCK + i
        for blk in range(BLOCKS)
        for i in range(BLOCK)
        if issue.mask >> (blk * BLOCK + i) & 1
    ]
    for point in itertools.product(*(range(loop.size) for loop in nest.loops)):
        base = issue.offsets[operand] + sum(
            i * loop.strides[operand] for i, loop in zip(point, nest.loops, strict=True)
        )
        for repeat in range(issue.repeat):
            start = base + repeat * issue.rep_stride[operand] * BLOCK
            found.update(start + lane for lane in lanes)
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    shape = [
        draw(st.sampled_from([0, 1, 2, 7, 8, 9, 20, 300])) for _ in range(draw(st.integers(0, 2)))
    ]
    shape.append(draw(st.sampled_from([1, 5, 8, 16, 64, 65, 200])))
    strides = []
    for operand in range(2):
        steps, extent = [1], -(-shape[-1] // BLOCK) * BLOCK
        for size in reversed(shape[:-1]):
            extent += draw(st.sampled_from([0, BLOCK, 300 * BLOCK]))
            broadcast = operand == 1 and draw(st.booleans())
            steps.insert(0, 0 if broadcast else extent)
            extent *= size
        strides.append(steps)
    return shape, strides


@given(case=cases())
def test_every_element_once(case: tuple[list[int], list[list[int]]]) -> None:
    shape, strides = case
    nests = plan_vector(shape, strides, (4, 4), LIMITS)
    for operand, steps in enumerate(strides):
        expected = Counter(
            sum(i * s for i, s in zip(point, steps, strict=True))
            for point in itertools.product(*(range(n) for n in shape))
        )
        assert sum((touched(nest, operand) for nest in nests), Counter()) == expected


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
def test_limits(case: tuple[list[int], list[list[int]]]) -> None:
    for nest in plan_vector(*case, (4, 4), LIMITS):
        issue = nest.issue
        assert 1 <= issue.repeat <= LIMITS.repeat
        assert all(0 <= s <= 255 for s in (*issue.blk_stride, *issue.rep_stride))
        assert issue.blk_stride[0] >= 1
