"""Forms of Winograd's convolutions by tiles, as matrices, and what they do to errors.

An m x m tile of the result needs a tile d of (m + 2) x (m + 2) pixels of the image, and is

    Y = A (sum over channels of (G g G') * (B d B')) A'    g: the weights, *: element by element

so (m + 2)^2 multiplications stand for 9 m^2: 16 for 36, or 36 for 144.

Error. Factors are rounded to f16, u = 2^-11, and summed in f32. A direct convolution rounds each x
and w once, |error| <= 2 u sum |x| |w|. Here x, its transforms along columns and along rows, G g G'
and the sums over channels are rounded, so to first order

    |error| <= 5 u |A| (sum over channels of (|G| |g| |G'|) * (|B| |x| |B'|)) |A'|

and, with all of |x| <= X and |w| <= W, at most `WinogradForm.growth` times the 18 u C X W that
direct ones are bound by: 18 times with 2x2 tiles, 209 times with 4x4. Those are worst cases, where
all signs meet: of random numbers the error is 2.5 and 7 times that of a direct one. The result is
rounded to f16 once more on its way through memory. f32 sums add 2^-24 for each term, as anywhere.

Sources: S. Winograd, Arithmetic Complexity of Computations (1980); A. Lavin, S. Gray, Fast
Algorithms for Convolutional Neural Networks, arXiv:1509.09308.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from davinci.elements import Array

KERNEL = (3, 3)
"""Kernel sizes of the convolutions that there are forms for."""


@dataclass(frozen=True)
class WinogradForm:
    """F(m x m, 3x3) by its matrices: Y = A ((G g G') * (B d B')) A'.

    Attributes:
        name: the option's value.
        b: [m + 2, m + 2], of tiles of the image, exact in f16.
        g: [m + 2, 3], of weights.
        a: [m, m + 2], of the result, exact in f16.
    """

    name: str
    b: Array
    g: Array
    a: Array

    @property
    def size(self) -> int:
        """Side of a tile of the result."""
        return int(self.a.shape[0])

    @property
    def reach(self) -> int:
        """Side of a tile of the image."""
        return int(self.a.shape[1])

    @property
    def growth(self) -> float:
        """How many times the bound of the error is that of a direct convolution, where all that is
        known of pixels and weights is how large they are."""
        terms = np.abs(self.a) @ (np.abs(self.g).sum(1) * np.abs(self.b).sum(1))
        return float(5 * terms.max() ** 2 / (2 * math.prod(KERNEL)))


def form_of(name: str, points: Sequence[Fraction]) -> WinogradForm:
    """The form that multiplies polynomials by their values at points and at infinity (Toom, Cook).

    With p the points, N[j] the product of p[j] - p[k] over all other k, and M[j](x) that of
    x - p[k]: A[i, j] = p[j]^i, G[j, i] = p[j]^i / N[j], and B[j] are the coefficients of M[j]. At
    infinity they are those of the highest power. B and G are scaled by a power of two for each j,
    so that no number of a tile is much larger than the pixels.
    """
    order = len(points)
    size = order + 1 - (KERNEL[0] - 1)
    b, g = np.zeros((order + 1, order + 1)), np.zeros((order + 1, KERNEL[0]))
    a = np.zeros((size, order + 1))
    for j, point in enumerate(points):
        others = [p for p in points if p != point]
        a[:, j] = [float(point**i) for i in range(size)]
        norm = math.prod(point - p for p in others)
        g[j] = [float(point**i / norm) for i in range(KERNEL[0])]
        b[j, :order] = coefficients(others)
    a[-1, -1], g[-1, -1], b[-1] = 1, 1, coefficients(points)
    scale = 2.0 ** np.round(np.log2(np.abs(b).sum(1, keepdims=True) / 2))
    return WinogradForm(name, b / scale, g * scale, a)


def coefficients(roots: Sequence[Fraction]) -> list[float]:
    """Coefficients of the product of all (x - root), those of low powers first.

    >>> coefficients([Fraction(1), Fraction(-1)])
    [-1.0, 0.0, 1.0]
    """
    found = [Fraction(1)]
    for root in roots:
        pairs = zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)
        found = [lower - root * own for lower, own in pairs]
    return [float(number) for number in found]


FORMS = (
    form_of("2x2", [Fraction(0), Fraction(1), Fraction(-1)]),
    form_of("4x4", [Fraction(n, 4) for n in (0, 3, -3, 6, -6)]),
)
"""With 0, 1, -1, 2, -2 instead 4x4 tiles have twice the error."""
