"""Places of measured configurations among simulated ones."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def script(benchmark_script: Any) -> Any:
    return benchmark_script("tuned_configurations")


def problem(script: Any, *times: tuple[float, float]) -> Any:
    named = [script.TunedConfiguration(f"c{i}", *pair) for i, pair in enumerate(times)]
    return script.TunedProblem("p", named)


def test_the_fastest_one_is_kept(script: Any) -> None:
    found = problem(script, (5, 9), (4, 7), (9, 10), (8, 11), (7, 8))
    assert (found.quarter, found.kept, found.places, found.loss) == (2, 2, (1, 1), 0)
    assert found.is_kept and not found.needs_equals


def test_the_fastest_one_is_lost(script: Any) -> None:
    found = problem(script, (4, 9), (5, 7), (9, 10), (8, 11))
    assert (found.quarter, found.places, found.loss) == (1, (2, 2), 0.25)
    assert not found.is_kept and not found.needs_equals
    *_, total, exception = script.table([found])
    assert total.startswith("0 of 1 are in the best quarter")
    assert exception == "* p: not explained."


def test_equal_ones_at_the_end_of_the_quarter(script: Any) -> None:
    found = problem(script, (4, 7), (6, 7), (9, 10), (8, 11))
    assert (found.quarter, found.kept, found.places, found.loss) == (1, 2, (1, 2), 0.5)
    assert found.is_kept and found.needs_equals
    *lines, total, _ = script.table([found])
    assert lines[2].endswith(
        "| 4, 2 kept | c0 | 1 to 2, equal | with its equals; without, at worst 50.0% lost |"
    )
    assert total.startswith(
        "1 of 1 are in the best quarter with its equals, 0 by their place alone."
    )


def test_whole_configurations_only(script: Any) -> None:
    """Rows are points of a problem where the pattern has all of their name."""
    names = "one function", "unrolled by 6", "unrolled by 6, vector unit"
    rows = [script.Row("GELU", name, "us", 2.0, 3.0, 0.1) for name in names]
    found = list(script.configurations(rows, "one function|unrolled by 6"))
    assert found == [script.TunedConfiguration(name, 2.0, 3.0) for name in names[:2]]


def test_tiles_of_a_small_product(script: Any) -> None:
    """All cores are launched: four blocks take longer than sixteen, 32 longer than those."""
    tiles = script.published_tiles
    versions = tiles.TILES["256 x 512 x 1024 f16"]
    assert {how.launched for _, how, _ in versions} == {20}
    names = "128 x 256 x 256 by 64", "64 x 128 x 256 by 128", "64 x 64 x 256 by 128"
    times = {name: tiles.simulated(how) for name, how, _ in versions if name in names}
    assert min(times, key=times.__getitem__) == names[1]
