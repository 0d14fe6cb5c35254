"""Errors of quantized layers and models against those of floats, over all samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx

from davinci.quantization.calibration import Sample
from davinci.quantization.records import Array, QuantizationPlan
from davinci.quantization.runs import ModelRun
from davinci.quantization.write import beside


class ErrorSums:
    """Sums of squares of a tensor's values and of their errors; of errors also for each channel."""

    def __init__(self, channels: int | None = None) -> None:
        self.channels = channels
        self.wanted = self.found = self.both = self.errors = 0.0
        self.each: Array | None = None
        self.count = 0

    def add(self, wanted: Array, found: Array) -> None:
        a, b = wanted.astype(np.float64), found.astype(np.float64)
        error = b - a
        self.wanted += float((a * a).sum())
        self.found += float((b * b).sum())
        self.both += float((a * b).sum())
        self.errors += float((error * error).sum())
        if self.channels is not None:
            others = tuple(i for i in range(a.ndim) if i != a.ndim + self.channels)
            each = error.sum(axis=others)
            self.each = each if self.each is None else self.each + each
            self.count += error.size // max(1, each.size)

    @property
    def shifts(self) -> Array:
        """The mean error of each channel."""
        assert self.each is not None, (
            "shifts are asked for behind the first sample, of values with channels"
        )
        return self.each / max(1, self.count)

    @property
    def cosine(self) -> float:
        norm = math.sqrt(self.wanted * self.found)
        return min(1.0, self.both / norm) if norm else float(self.errors == 0)

    @property
    def relative(self) -> float:
        """The length of the errors over that of the values."""
        return math.sqrt(self.errors / self.wanted) if self.wanted else float(self.errors > 0)

    def decibels(self, shifted: bool = False) -> float:
        """Ratio of signal to noise; `shifted` without the mean error of each channel."""
        noise = self.errors
        if shifted:
            noise -= self.count * float((self.shifts**2).sum())
        return decibels(self.wanted, noise)


MOST_DECIBELS = 150.0
"""What a ratio without noise counts as: f32 has no more."""


def decibels(signal: float, noise: float) -> float:
    if noise <= signal * 10 ** (-MOST_DECIBELS / 10):
        return MOST_DECIBELS
    return 10 * math.log10(signal / noise) if signal > 0 else -MOST_DECIBELS


def twin_sums(
    model: onnx.ModelProto, plan: QuantizationPlan, samples: Sequence[Sample]
) -> dict[str, ErrorSums]:
    """Errors of each layer alone, whose operands are those of the model of floats; by name."""
    both, twins = beside(model, plan)
    run = ModelRun(both, [*(layer.product for layer in plan.layers), *twins.values()])
    sums = {layer.name: ErrorSums(layer.channels) for layer in plan.layers}
    for sample in samples:
        values = run(sample)
        for layer in plan.layers:
            sums[layer.name].add(values[layer.product], values[twins[layer.name]])
    return sums


def values_of(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[Sample]
) -> Iterator[dict[str, Array]]:
    """Values by name, sample by sample."""
    run = ModelRun(model, names)
    return (run(sample) for sample in samples)


def model_sums(
    wanted: Iterable[Mapping[str, Array]],
    quantized: onnx.ModelProto,
    names: Sequence[str],
    samples: Sequence[Sample],
) -> dict[str, ErrorSums]:
    """Errors of values of a model, by name.

    Args:
        wanted: the values of the model of floats, sample by sample.
    """
    sums = {name: ErrorSums() for name in names}
    for right, found in zip(wanted, values_of(quantized, names, samples), strict=True):
        for name in names:
            if right[name].dtype.kind == "f":
                sums[name].add(right[name], found[name])
    return sums
