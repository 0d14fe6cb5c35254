"""Ranges of activations by this project's methods and by onnxruntime's, and how well they quantize.

    python benchmarks/fidelity/calibrators.py

Values of 16 samples are drawn from five distributions. A row has the range that a method finds, and
the ratio of signal to noise, in decibels, of the values as integers of 8 bits in that range.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from onnxruntime.quantization.calibrate import HistogramCollector

from davinci.quantization import ranges

Values = npt.NDArray[np.float32]

SAMPLES, COUNT, CENTRAL = 16, 50_000, 0.9999

LEVELS, LOWEST = 256, -128


def outliers_in(values: Values) -> Values:
    found: Values = np.maximum(values, 0)
    found[0] = 30
    return found


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator], Values]] = {
    "normal": lambda r: r.standard_normal(COUNT, np.float32),
    "ReLU": lambda r: np.maximum(r.standard_normal(COUNT, np.float32), 0),
    "SiLU": lambda r: (x := r.standard_normal(COUNT, np.float32)) / (1 + np.exp(-x)),
    "Student's t, 3": lambda r: r.standard_t(3, COUNT).astype(np.float32),
    "ReLU and a pixel of 30": lambda r: outliers_in(r.standard_normal(COUNT, np.float32)),
}


def decibels(values: Values, low: float, high: float) -> float:
    """Signal to noise of values that are rounded to integers in a range that holds 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (LEVELS - 1)
    zero = round(LOWEST - low / scale)
    integers = np.clip(np.rint(values / scale) + zero, LOWEST, LOWEST + LEVELS - 1)
    noise = values - (integers - zero) * scale
    return float(10 * np.log10((values**2).sum() / (noise**2).sum()))


def own(samples: list[Values]) -> dict[str, tuple[float, float]]:
    """Ranges by `davinci.quantization`."""
    every = np.concatenate(samples)
    seen = ranges.observed(min(0.0, float(every.min())), float(every.max()))
    for values in samples:
        seen = ranges.counted(seen, values)
    return {name: method(seen, CENTRAL) for name, method in ranges.METHODS.items()}


def others(samples: list[Values]) -> dict[str, tuple[float, float]]:
    """Ranges by the calibrators of onnxruntime, with their default numbers of bins."""
    found = {}
    for name, bins in (("percentile", 2048), ("entropy", 128)):
        collector = HistogramCollector(name, False, bins, 128, 100 * CENTRAL, "same")
        with contextlib.redirect_stdout(io.StringIO()):
            for values in samples:
                collector.collect({"x": [values]})
            low, high, *_ = collector.compute_collection_result()["x"]
        found[f"onnxruntime {name}"] = float(np.ravel(low)[0]), float(np.ravel(high)[0])
    return found


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    random = np.random.default_rng(0)
    print(f"{'values':24}{'method':24}{'from':>9}{'to':>9}{'dB':>7}")
    for name, draw in DISTRIBUTIONS.items():
        samples = [draw(random) for _ in range(SAMPLES)]
        every = np.concatenate(samples)
        for method, (low, high) in {**own(samples), **others(samples)}.items():
            quality = decibels(every, low, high)
            print(f"{name:24}{method:24}{low:9.2f}{high:9.2f}{quality:7.1f}")


if __name__ == "__main__":
    main()
