"""Weights as int8: symmetric, a scale for each output channel, mean and variance corrected.

Rounding moves mean and variance of a channel. With u = E[w] - E[q] and
z = |w - E[w]| / |q - E[q]| a channel becomes z (q + u), as in MindSpore Lite. The factor z is part
of the scale. What u adds is less than a step, which no integer can hold, so as many weights as it
is worth are rounded the other way: those that are nearest to a half.
"""

from __future__ import annotations

import numpy as np

from davinci.quantization.records import Array, QuantizedWeight

LARGEST = 127


def quantized_weight(values: Array, axis: int, corrected: bool) -> QuantizedWeight:
    """The integers of `values` and the scale of each index of `axis`."""
    rows = np.moveaxis(values, axis, 0)
    exact = rows.reshape(rows.shape[0], -1).astype(np.float64)
    largest = np.abs(exact).max(axis=1, initial=0.0)
    tiny = np.finfo(np.float32).tiny
    scales = np.where(largest > 0, np.maximum(largest / LARGEST, tiny), 1.0)
    steps = exact / scales[:, None]
    integers = np.rint(steps)
    if corrected:
        integers = same_mean(steps, integers)
        scales = scales * variance_factor(steps, integers)
    back = np.moveaxis(integers.astype(np.int8).reshape(rows.shape), 0, axis)
    return QuantizedWeight(np.ascontiguousarray(back), scales.astype(np.float32))


def same_mean(steps: Array, integers: Array) -> Array:
    """Rounded numbers whose rows have the sums of `steps`, to half a step.

    Args:
        steps: [channels, weights], in units of the channel's scale.
        integers: the same, rounded to nearest.
    """
    rounded_up = integers - steps
    excess = np.rint(rounded_up.sum(axis=1))[:, None]
    order = np.argsort(rounded_up, axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(order.shape[1])[None, :], axis=1)
    lowered = place >= order.shape[1] - excess
    raised = place < -excess
    # Only what lies above its number is lowered, so nothing leaves -127..127.
    return np.asarray(integers - lowered + raised)


def variance_factor(steps: Array, integers: Array) -> Array:
    """What a scale is multiplied by so that its row varies as much as before rounding."""
    before = np.linalg.norm(steps - steps.mean(axis=1, keepdims=True), axis=1)
    after = np.linalg.norm(integers - integers.mean(axis=1, keepdims=True), axis=1)
    usable = (before > 0) & (after > 0)
    return np.asarray(np.where(usable, before / np.where(usable, after, 1.0), 1.0))
