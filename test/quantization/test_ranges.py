"""Ranges of activations, on distributions whose best ranges are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.quantization.ranges import BINS, METHODS, counted, is_flat, observed, scale_of
from davinci.quantization.records import Observed, Scale


def seen_in(values: np.ndarray[Any, Any], parts: int = 1) -> Observed:
    seen = observed(min(0.0, float(values.min())), max(0.0, float(values.max())))
    for part in () if is_flat(seen) else np.array_split(values, parts):
        seen = counted(seen, part)
    return seen


def noise_of(values: np.ndarray[Any, Any], scale: Scale) -> float:
    integers = np.clip(np.rint(values / scale.scale) + scale.zero, -128, 127)
    return float((((integers - scale.zero) * scale.scale - values) ** 2).mean())


def test_max_min_spans_all_values_and_zero() -> None:
    seen = seen_in(np.array([2.0, 3.0, 5.1]))
    scale = scale_of(seen, "max_min", 1.0)
    assert scale == Scale(float(np.float32(5.1 / 255)), -128)
    seen = seen_in(np.array([-1.0, 3.0]))
    scale = scale_of(seen, "max_min", 1.0)
    assert (-128 - scale.zero) * scale.scale == pytest.approx(-1.0, abs=scale.scale / 2)
    assert (127 - scale.zero) * scale.scale == pytest.approx(3.0, abs=scale.scale / 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("values", [[0.0], [1e-44], [-7.0, 0.0], [1e30, -1e30]])
def test_zero_is_exact_in_any_range(method: str, values: list[float]) -> None:
    scale = scale_of(seen_in(np.array(values, np.float32)), method, 0.9)
    assert -128 <= scale.zero <= 127 and np.isfinite(scale.scale) and scale.scale > 0


def test_outliers_leaves_the_central_share_of_the_values() -> None:
    values = np.arange(-1000, 1001) / 10
    low, high = METHODS["outliers"](seen_in(values), 0.9)
    assert low == pytest.approx(-90, abs=0.2) and high == pytest.approx(90, abs=0.2)
    assert METHODS["outliers"](seen_in(values), 1.0) == (-100, 100)
    # Zeros count: of 95 % zeros the central 90 % are up to 0 or just above.
    values = np.concatenate([np.zeros(950), np.ones(50)])
    low, high = METHODS["outliers"](seen_in(values), 0.88)
    assert low < high < 2 / BINS


def test_counts_are_the_same_however_data_come() -> None:
    values = np.random.default_rng(0).standard_normal(10_000)
    one, many = seen_in(values), seen_in(values, 7)
    np.testing.assert_array_equal(one.counts, many.counts)
    assert one.counts.sum() == 10_000 and one.zeros == 0


def test_kl_cuts_rare_outliers_and_keeps_what_is_evenly_spread() -> None:
    rng = np.random.default_rng(0)
    even = seen_in(rng.uniform(0, 1, 200_000))
    assert METHODS["kl"](even, 0.9)[1] > 0.97 * even.high
    values = np.concatenate([rng.standard_normal(200_000), [15.0, -15.0]])
    seen = seen_in(values)
    assert METHODS["kl"](seen, 0.9)[1] < 0.5 * seen.high
    best, plain = scale_of(seen, "kl", 0.9), scale_of(seen, "max_min", 0.9)
    assert noise_of(values[:-2], best) < noise_of(values[:-2], plain) / 2


def test_kl_does_not_count_zeros() -> None:
    rng = np.random.default_rng(0)
    values = np.maximum(rng.standard_normal(100_000), 0)
    assert METHODS["kl"](seen_in(values), 0.9) == METHODS["kl"](seen_in(values[values > 0]), 0.9)
