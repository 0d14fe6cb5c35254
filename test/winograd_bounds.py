"""The bound of the error of convolutions by tiles, in NumPy: magnitudes and errors by steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from convolution_support import Conv
from davinci.passes.ascend.winograd_forms import WinogradForm

Array = npt.NDArray[np.float64]

HALF, SINGLE = 2.0**-11, 2.0**-24
"""Unit roundoffs."""

SMALLEST = 2.0**-14
"""The smallest normal number of f16: below, errors are absolute."""


@dataclass(frozen=True)
class Bounded:
    """Bounds of numbers and of their errors."""

    most: Array
    error: Array

    def rounded(self) -> Bounded:
        """To f16."""
        found = self.most + self.error
        return Bounded(self.most, self.error + HALF * np.maximum(found, SMALLEST))

    def summed(self, terms: int) -> Bounded:
        """What sums of so many products in f32 add."""
        return Bounded(self.most, self.error + terms * SINGLE * (self.most + self.error))

    def transformed(self, left: Array, axes: str) -> Bounded:
        """By a matrix, along an axis: its magnitudes."""
        sizes = np.abs(left)
        most, error = (np.einsum(axes, sizes, x) for x in (self.most, self.error))
        return Bounded(most, error).summed(left.shape[1])


def exact(values: Array) -> Bounded:
    return Bounded(np.abs(values), np.zeros_like(values, np.float64))


def bound_of_direct(case: Conv, x: Array, w: Array) -> Array:
    """Of products of factors of f16 summed in f32."""
    magnitudes = case.values(np.abs(x), np.abs(w))
    terms = w.shape[1] * 9
    tiny = HALF * SMALLEST * case.values(np.ones_like(x), np.abs(w).max() + np.ones_like(w))
    return np.asarray((2 * HALF + HALF**2 + terms * SINGLE) * magnitudes + tiny)


def bound_of_tiles(form: WinogradForm, case: Conv, x: Array, w: Array) -> Array:
    """Of each result: what is rounded to f16 is each pixel, its transforms along columns and rows,
    the transformed weights, and sums over channels; and the result."""
    (top, bottom), (left, right) = case.pads
    _, _, rows, columns = case.result
    size, reach = form.size, form.reach
    tiles = [-(-count // size) for count in (rows, columns)]
    more = [
        n * size + 2 - s - a - b for n, s, (a, b) in zip(tiles, x.shape[2:], case.pads, strict=True)
    ]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom + more[0]), (left, right + more[1])))
    windows = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), axis=(2, 3))
    parts = exact(windows[:, :, ::size, ::size][:, :, : tiles[0], : tiles[1]]).rounded()
    parts = parts.transformed(form.b, "ik,nctukl->nctuil").rounded()
    parts = parts.transformed(form.b, "jl,nctuil->nctuij").rounded()
    weights = exact(w).transformed(form.g, "ik,ockl->ocil")
    weights = weights.transformed(form.g, "jl,ocil->ocij").rounded()

    def product(a: Array, b: Array) -> Array:
        return np.asarray(np.einsum("nctuij,ocij->notuij", a, b))

    most = product(parts.most, weights.most)
    error = product(parts.error, weights.most + weights.error)
    error += product(parts.most, weights.error)
    sums = Bounded(most, error).summed(w.shape[1]).rounded()
    made = sums.transformed(form.a, "ai,notuij->notuaj").transformed(form.a, "bj,notuaj->notaub")
    n, o, t, a, u, b = made.error.shape
    return made.error.reshape(n, o, t * a, u * b)[:, :, :rows, :columns]
