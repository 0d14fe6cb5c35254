"""Ranges of activations that become the 256 values of int8.

Methods are those of MindSpore Lite's full quantization: MAX_MIN, removal of outliers, and the range
whose quantized distribution diverges least (Kullback and Leibler). A range holds 0, so that padding
and what a Relu cut are exact; values outside of it become its ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from davinci.quantization.records import Array, Observed, Scale

BINS = 2048
"""Parts of the range of a tensor in which its values are counted: 8 for each integer."""

LEVELS = 256
LOWEST, HIGHEST = -128, 127

SEARCH = (0.3, 0.01)
"""The smallest range that the search for the least divergence tries, as a share of the whole one,
and its step. A range that is wider than the data is only coarser: the search ends at 1."""


def max_min(seen: Observed, central: float) -> tuple[float, float]:
    """From the least to the largest value."""
    return seen.low, seen.high


def outliers(seen: Observed, central: float) -> tuple[float, float]:
    """The range that holds the central share of all values in order, to a part of a bin."""
    counts = seen.counts.astype(np.float64)
    edges = np.linspace(seen.low, seen.high, BINS + 1)
    at_zero = min(BINS - 1, int(np.searchsorted(edges, 0.0, side="right")) - 1)
    counts[at_zero] += seen.zeros
    below = np.concatenate([[0.0], np.cumsum(counts)]) / max(1.0, counts.sum())
    cut = (1 - central) / 2
    low, high = np.interp([cut, 1 - cut], below, edges)
    # As far as there are values: of equal shares np.interp takes any end.
    return max(float(low), seen.low), min(float(high), seen.high)


def kl(seen: Observed, central: float) -> tuple[float, float]:
    """The share of the whole range whose values, as integers, diverge least from what they were.

    Values that are 0 are exact in any range, and not counted.
    """
    smallest, step = SEARCH
    shares = np.arange(1.0, smallest - step / 2, -step)
    found = [divergence(seen, float(share)) for share in shares]
    best = float(shares[int(np.argmin(found))])
    return best * seen.low, best * seen.high


def divergence(seen: Observed, share: float) -> float:
    """Between counts whose outliers are moved to the ends of a range, and counts that are the same
    for all bins of an integer (S. Migacz, "8-bit inference with TensorRT", 2017), in nats."""
    at_zero = -seen.low / (seen.high - seen.low) * BINS
    first = int(np.rint(at_zero * (1 - share)))
    last = max(first + 1, int(np.rint(at_zero + (BINS - at_zero) * share)))
    inside = seen.counts[first:last].astype(np.float64)
    wanted = inside.copy()
    wanted[0] += seen.counts[:first].sum()
    wanted[-1] += seen.counts[last:].sum()
    level = np.arange(len(inside)) * LEVELS // len(inside)
    filled = inside > 0
    total = np.bincount(level, inside, LEVELS)
    bins = np.bincount(level, filled, LEVELS)
    made = np.where(filled, (total / np.maximum(bins, 1))[level], 0.0)
    # An end that only outliers reach counts as one value, or the divergence would have no bound.
    made[(wanted > 0) & ~filled] = 1.0
    some = wanted > 0
    p, q = wanted[some] / wanted.sum(), made[some] / made.sum()
    return float((p * np.log(p / q)).sum())


METHODS: dict[str, Callable[[Observed, float], tuple[float, float]]] = {
    "max_min": max_min,
    "outliers": outliers,
    "kl": kl,
}
"""From what was observed, and the share that stays where outliers are removed, to a range."""


def scale_of(seen: Observed, method: str, central: float) -> Scale:
    """Scale and zero point of a tensor; asymmetric."""
    if is_flat(seen):
        return Scale(1.0, 0)
    low, high = METHODS[method](seen, central)
    low, high = min(low, 0.0), max(high, 0.0)
    # What a share of the values spans may be 0; the step is then as small as a normal float.
    scale = np.maximum(np.float32((high - low) / (LEVELS - 1)), np.finfo(np.float32).tiny)
    zero = int(np.clip(np.rint(LOWEST - low / float(scale)), LOWEST, HIGHEST))
    return Scale(float(scale), zero)


def is_flat(seen: Observed) -> bool:
    """Whether all values are 0, or so small that no part of them is a normal f32."""
    return bool(seen.high - seen.low < BINS * np.finfo(np.float32).tiny)


def observed(low: float, high: float) -> Observed:
    """A range of which nothing was counted yet."""
    return Observed(low, high, np.zeros(0, np.int64))


def counted(seen: Observed, values: Array) -> Observed:
    """With more values; all of them lie in the range."""
    zeros = int((values == 0).sum())
    counts, _ = np.histogram(values[values != 0], BINS, (seen.low, seen.high))
    before = seen.counts if len(seen.counts) else 0
    return Observed(seen.low, seen.high, before + counts, seen.zeros + zeros)
