"""Sorting of 32 elements, and merging of sorted lists, against Python's sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.isa import DTYPES, INSTRUCTIONS, Space

DST, INDEX = 0x8000, 0x4000
ORDER = [np.inf, 3.0, 0.5, 0.0, -0.0, -0.5, -7.0, -np.inf]
"""In descending order; NaN is before it, -NaN behind."""


def structures(scores, numbers):
    """Structures of 8 bytes as 2 words each."""
    words = np.zeros((len(scores), 2), np.uint32)
    words[:, 0] = scores.view(f"u{scores.dtype.itemsize}")
    words[:, 1] = numbers
    return words


def key(score):
    """For Python's sort, descending: the place in `ORDER`, zeros by their sign."""
    if np.isnan(score):
        return (1 if np.signbit(score) else -1), 0.0
    return 0, -float(score) if score else 1e-30 * np.signbit(score)


def drawn(dtype, count, seed):
    """Scores with equal ones among them, zeros of both signs, infinities and NaN."""
    nan = np.array([np.nan, -np.nan], np.float32)
    return np.random.default_rng(seed).choice([*ORDER, *nan], count).astype(DTYPES[dtype])


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@given(repeat=st.integers(0, 3), seed=st.integers(0, 99))
def test_each_repeat_sorts_32_elements(make_bench, dtype, repeat, seed):
    bench = make_bench()
    scores = drawn(dtype, 32 * repeat, seed)
    numbers = np.random.default_rng(seed).integers(0, 2**32, 32 * repeat, dtype=np.uint32)
    bench.put(Space.UB, 0, scores)
    bench.put(Space.UB, INDEX, numbers)
    before = bench.memory[Space.UB].copy()
    bench.run(f"vbitsort.{dtype}", dst=DST, src=0, index=INDEX, repeat=repeat)
    for r in range(repeat):
        part = slice(32 * r, 32 * r + 32)
        order = sorted(range(32), key=lambda i: key(scores[part][i]))  # stable
        expected = structures(scores[part][order], numbers[part][order]).reshape(-1)
        before[DST + 256 * r : DST + 256 * (r + 1)] = expected.view(np.uint8)
    assert np.array_equal(bench.memory[Space.UB], before)


def merged(lists):
    """By the definition: the highest of all heads, of the first list that has it."""
    lists, result = [list(each) for each in lists], []
    while any(lists):
        first = min((i for i in range(len(lists)) if lists[i]), key=lambda i: (key(lists[i][0]), i))
        result.append(lists[first].pop(0))
    return result


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@given(
    counts=st.lists(st.integers(0, 17), min_size=2, max_size=4),
    seed=st.integers(0, 99),
    in_order=st.booleans(),
)
def test_lists_are_merged(make_bench, dtype, counts, seed, in_order):
    bench = make_bench()
    lists = [drawn(dtype, count, seed + i) for i, count in enumerate(counts)]
    if in_order:
        lists = [np.array(sorted(each, key=key), each.dtype) for each in lists]
    fields = {f"n{i}": 0 for i in range(4)} | {f"src{i}": 0 for i in range(4)}
    for i, each in enumerate(lists):
        fields |= {f"n{i}": len(each), f"src{i}": 0x1000 * i + 8}
        bench.put(Space.UB, 0x1000 * i + 8, structures(each, np.arange(len(each))))
    mask = (1 << len(counts)) - 1
    bench.run(f"vmrgsort4.{dtype}", dst=DST, lists=mask, repeat=1, **fields)
    found = bench.get(Space.UB, DST, (sum(counts), 2), np.uint32)
    scores = np.array(merged(lists), DTYPES[dtype]).view(f"u{DTYPES[dtype].itemsize}")
    assert np.array_equal(found[:, 0], scores)


def test_repeats_merge_what_follows(bench):
    """128 numbers: sorted 32 at a time, then four lists of 32 to one, twice."""
    scores = np.random.default_rng(1).normal(size=256).astype(np.float32)
    bench.put(Space.UB, 0, scores)
    bench.put(Space.UB, INDEX, np.arange(256, dtype=np.uint32))
    bench.run("vbitsort.f32", dst=DST, src=0, index=INDEX, repeat=8)
    fields = {f"src{i}": DST + 256 * i for i in range(4)} | {f"n{i}": 32 for i in range(4)}
    bench.run("vmrgsort4.f32", dst=0x10000, lists=15, repeat=2, **fields)
    found = bench.get(Space.UB, 0x10000, (2, 128, 2), np.uint32)
    for part, row in zip(scores.reshape(2, 128), found, strict=True):
        assert np.array_equal(row[:, 0].copy().view(np.float32), np.sort(part)[::-1])
    assert np.array_equal(scores[found[..., 1]].view(np.uint32), found[..., 0])


def test_lists_of_several_repeats_follow_each_other(bench):
    fields = {f"src{i}": 512 * i for i in range(4)} | {f"n{i}": 32 for i in range(4)}
    with pytest.raises(ValueError, match="found src1 at 0x200, expected 0x100"):
        bench.run("vmrgsort4.f32", dst=DST, lists=15, repeat=2, **fields)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lists": 5}, "found 0b0101, expected 0b0011, 0b0111 or 0b1111"),
        ({"lists": 1}, "expected 3..15"),
        ({"n2": 4096}, "found 4096, expected 0..4095"),
        ({"repeat": 2, "n3": 8}, r"2 repeats need four lists that are equally long: .*9, 9, 9, 8"),
        ({"repeat": 2, "lists": 7}, r"found \[9, 9, 9\]"),
        ({"repeat": 256}, "expected 0..255"),
    ],
)
def test_illegal_merges(changed, message):
    values = {f"src{i}": 0 for i in range(4)} | {f"n{i}": 9 for i in range(4)}
    values |= {"dst": 0, "lists": 15, "repeat": 1}
    with pytest.raises(InputError, match=message):
        INSTRUCTIONS["vmrgsort4.f32"].encode(values | changed)
