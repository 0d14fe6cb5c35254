"""The source's formulas, constraints and choice of tiles, without any IR."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci import machine
from davinci.errors import CompileError
from davinci.passes.ascend_to_cce.matmul_strategies import (
    Limits,
    Size,
    choose,
    even_cuts,
    reads,
    violation,
)

MACHINE = machine.load("ascend910")
LIMITS = Limits.of(MACHINE)
SOURCE = Size(512 // 16, 768 // 16, 768 // 16)


def chosen(
    strategy: str, whole: Size, wanted: tuple[int, int, int] = (0, 0, 0), cores: int = 1
) -> Size:
    return choose(strategy, whole, wanted, MACHINE, 1, cores)


def test_limits_are_those_of_the_source() -> None:
    """m n <= 2^15, n k <= 2^15, m k <= 2^16 elements on the machine the source used."""
    assert (LIMITS.a * 256, LIMITS.b * 256, LIMITS.c * 256) == (2**15, 2**15, 2**16)


def test_smallest_s_of_the_source() -> None:
    """S = 2,359,296 for (512, 768, 768), with output stationary m = k = 256."""
    tile = chosen("os", SOURCE)
    assert (tile.m, tile.k) == (16, 16)
    assert reads("os", SOURCE, tile) == 2_359_296
    assert all(reads(s, SOURCE, chosen(s, SOURCE)) >= 2_359_296 for s in ("os", "is", "ws"))


@pytest.mark.parametrize("strategy", ["os", "is", "ws"])
def test_reads_equal_the_formulas(strategy: str) -> None:
    m, n, k = 512, 768, 768
    tm, tn, tk = 32, 768, 64
    formula = {
        "is": m * n + m * n * k / tm,
        "ws": k * n + m * n * k / tk,
        "os": m * n * k * (tm + tk) / (tm * tk),
    }[strategy]
    assert reads(strategy, SOURCE, Size(tm // 16, tn // 16, tk // 16)) == formula


@pytest.mark.parametrize(
    ("strategy", "tile", "broken"),
    [
        ("os", (1024, 48, 16), "m n <= 32768"),
        ("os", (16, 48, 1024), "n k <= 32768"),
        ("os", (512, 32, 256), "m k <= 65536"),
        ("is", (32, 128, 64), "k = K or n = N for input stationary"),
        ("ws", (32, 128, 64), "m = M or n = N for weight stationary"),
    ],
)
def test_violations_are_named(strategy: str, tile: tuple[int, int, int], broken: str) -> None:
    whole = Size(64, 64, 64)
    with pytest.raises(CompileError, match="no tile") as error:
        choose(strategy, whole, tile, MACHINE, 1, 1)
    assert error.value.expected == broken
    assert error.value.exit_code == 3


def test_bad_options() -> None:
    with pytest.raises(CompileError, match="multiple of 16"):
        chosen("os", SOURCE, (40, 0, 0))
    with pytest.raises(CompileError, match="unknown matmul strategy"):
        chosen("outer", SOURCE)


def test_given_sizes_are_kept_and_clipped() -> None:
    assert chosen("os", SOURCE, (128, 256, 128)) == Size(8, 16, 8)
    assert chosen("os", Size(1, 2, 3), (128, 256, 128)) == Size(1, 2, 3)
    assert chosen("is", SOURCE, (32, 768, 32)) == Size(2, 48, 2)


def test_blocks_share_what_is_large_and_leave_what_is_small() -> None:
    """The memory is shared, so more blocks do not help where they only read more."""
    tile = chosen("os", SOURCE, cores=32)
    assert (tile.m, tile.k) in ((16, 8), (8, 16))
    tile = chosen("os", Size(8, 48, 48), cores=32)
    assert (tile.m, tile.k) == (8, 6)
    tile = choose("os", Size(8, 4, 8), (0, 0, 0), MACHINE, 12, 32)
    assert (tile.m, tile.k) == (8, 8)


dims = st.integers(1, 300)


@given(dims, dims, dims, st.sampled_from([1, 2, 32]))
def test_choice_keeps_the_constraints(m: int, n: int, k: int, cores: int) -> None:
    whole = Size(m, n, k)
    tile = chosen("os", whole, cores=cores)
    assert violation("os", whole, tile, LIMITS) == ""
    assert tile.m <= m and tile.n <= n and tile.k <= k


@given(st.integers(1, 500), st.integers(1, 500))
def test_even_cuts(total: int, most: int) -> None:
    cuts = even_cuts(total, most)
    assert cuts[-1] == 1 and cuts[0] <= most
    assert cuts == sorted(set(cuts), reverse=True)
