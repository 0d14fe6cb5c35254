"""Weights as int8: a scale for each channel; mean and variance corrected."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.quantization.records import Array, QuantizedWeight
from davinci.quantization.weights import quantized_weight


def floats_of(weight: QuantizedWeight, axis: int) -> Array:
    scales = np.moveaxis(weight.scales[(...,) + (None,) * (weight.integers.ndim - 1)], 0, axis)
    return np.asarray(weight.integers * scales.astype(np.float64))


@pytest.mark.parametrize(("shape", "axis"), [((16, 3, 5, 5), 0), ((17, 13), 1), ((1, 1), 0)])
@pytest.mark.parametrize("corrected", [False, True])
def test_each_channel_has_its_scale(shape: tuple[int, ...], axis: int, corrected: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-6, 6, shape[axis])
    values = rng.standard_normal(shape).astype(np.float32)
    values = np.moveaxis(np.moveaxis(values, axis, -1) * sizes, -1, axis).astype(np.float32)
    made = quantized_weight(values, axis, corrected)
    assert made.integers.shape == shape and made.integers.dtype == np.int8
    assert np.abs(made.integers.astype(int)).max() == 127
    error = np.moveaxis(floats_of(made, axis) - values, axis, 0).reshape(shape[axis], -1)
    # To nearest; where the mean is corrected some are rounded the other way, and scales change.
    assert (np.abs(error).max(axis=1) <= made.scales * (0.9 if corrected else 0.501)).all()


def test_correction_restores_mean_and_variance() -> None:
    rng = np.random.default_rng(1)
    values = (rng.standard_normal((32, 99)) + 0.3).astype(np.float32)
    weights = [quantized_weight(values, 0, corrected) for corrected in (False, True)]
    plain, made = (floats_of(weight, 0) for weight in weights)
    factor = weights[1].scales / weights[0].scales
    wanted = values.mean(axis=1, dtype=np.float64) * factor
    # Half a step of one weight.
    assert (np.abs(made.mean(axis=1) - wanted) <= weights[1].scales * 0.501 / 99).all()
    assert np.abs(plain.mean(axis=1) - values.mean(axis=1)).max() > weights[0].scales.max() / 99
    spread = np.abs(made.std(axis=1) / values.std(axis=1) - 1)
    assert spread.max() < 1e-6 < np.abs(plain.std(axis=1) / values.std(axis=1) - 1).max()


def test_channels_of_zeros_and_of_one_value() -> None:
    values = np.array([[0, 0, 0], [5, 5, 5], [-1e-44, 0, 0]], np.float32)
    made = quantized_weight(values, 0, corrected=True)
    np.testing.assert_allclose(floats_of(made, 0), values, rtol=1e-6, atol=1e-36)
