"""Bounds of a value: an interval that its elements lie in, cut in pieces, and how far they are off.

A bound is plain data. A value that is computed element by element from one other value, its *root*,
has an interval for each piece of the root's range: of x (a x + b) / (x (c x + d) + e) the pieces
keep numerator and denominator together, which one interval each would not. Pieces are of what is
computed, rounding included; `error` is the largest difference between that and what real numbers
would give, so `low - error` to `high + error` holds the exact value.

    >>> x = Bound.of(0.0, 2.0)
    >>> x.low, x.high, x.is_finite
    (array([0.]), array([2.]), True)
    >>> x.in_pieces(root=0).pieces > 80
    True
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

EVEN_PIECES = 64
"""Pieces of equal width that a range is cut into."""

OCTAVES, STEPS = 24, 4
"""Powers of two below the largest magnitude in which it is cut as well, each in as many steps:
quotients are steep near zero."""


@dataclass(frozen=True)
class Bound:
    """What is known of the elements of a value.

    Attributes:
        low, high: of each piece, the least and the largest number that is computed.
        error: of each piece, the most that a number is off what real arithmetic gives.
        root: what the pieces belong to; None where there is one piece that belongs to nothing.
    """

    low: Floats
    high: Floats
    error: Floats
    root: Hashable = None

    @classmethod
    def of(cls, low: float, high: float, error: float = 0.0) -> Bound:
        """A bound of one piece."""
        return cls(np.array([low]), np.array([high]), np.array([error]))

    @property
    def pieces(self) -> int:
        return max(self.low.size, self.high.size, self.error.size)

    @property
    def least(self) -> float:
        return float(self.low.min())

    @property
    def most(self) -> float:
        return float(self.high.max())

    @property
    def magnitude(self) -> float:
        """The largest magnitude of an element."""
        return float(max(self.high.max(), -self.low.min()))

    @property
    def smallest(self) -> float:
        """The smallest magnitude of an element that is not zero, as far as that is known; else 0.
        Pieces that are only zero do not count."""
        low, high = self.low, self.high
        sizes = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
        sizes = sizes[(low != 0) | (high != 0)]
        return float(sizes.min()) if sizes.size else 0.0

    @property
    def most_error(self) -> float:
        return float(self.error.max())

    @property
    def relative_error(self) -> float:
        """The largest error as a share of the exact value; infinite where that may be zero."""
        low, high = self.low, self.high
        size = np.where(low > 0, low, np.where(high < 0, -high, 0.0)) - self.error
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.error == 0, 0.0, self.error / np.maximum(size, 0.0))
        return float(np.where(size > 0, share, np.where(self.error == 0, 0.0, np.inf)).max())

    @property
    def is_finite(self) -> bool:
        """Whether no element is infinite or no number."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    def joined(self) -> Bound:
        """The same as one piece of no root."""
        return Bound.of(self.least, self.most, self.most_error)

    def moved(self, root: Hashable) -> Bound:
        """The same pieces, of elements that have gone to other places; one of no root stays so."""
        return self if self.root is None else replace(self, root=root)

    def in_pieces(self, root: Hashable) -> Bound:
        """The range of a new root in pieces; as it is where there is no range to cut."""
        low, high = self.least, self.most
        if not self.is_finite or low == high:
            return self
        edges = np.unique(_cuts(low, high))
        error = np.full(edges.size - 1, self.most_error)
        return Bound(edges[:-1], edges[1:], error, root)

    def within(self, low: float = -np.inf, high: float = np.inf) -> Bound:
        """The same of a value whose numbers, computed and exact, are known to lie in an interval.

        A difference is no longer than the interval.
        """
        width = high - low
        return replace(
            self,
            low=np.clip(self.low, low, high),
            high=np.clip(self.high, low, high),
            error=np.minimum(self.error, width),
        )

    def rounded(self, relative: float, absolute: float) -> Bound:
        """The same of numbers that have been rounded; signs stay, and so do zeros."""
        if not relative and not absolute:
            return self
        off_low = relative * np.abs(self.low) + absolute
        off_high = relative * np.abs(self.high) + absolute
        low, high = self.low - off_low, self.high + off_high
        low = np.where((self.low >= 0) & (low < 0), 0.0, low)
        high = np.where((self.high <= 0) & (high > 0), 0.0, high)
        zero = (self.low == 0) & (self.high == 0)
        error = self.error + np.where(zero, 0.0, np.maximum(off_low, off_high))
        return replace(self, low=low, high=high, error=error)


UNKNOWN = Bound.of(-np.inf, np.inf, np.inf)


def _cuts(low: float, high: float) -> Floats:
    """Where a range is cut: evenly, at powers of two and at zero."""
    most = max(abs(low), abs(high))
    powers = most * np.exp2(-np.arange(OCTAVES * STEPS + 1.0) / STEPS)
    found = np.concatenate([powers, -powers, [0.0], np.linspace(low, high, EVEN_PIECES + 1)])
    inside: Floats = found[(found > low) & (found < high)]
    return np.concatenate([[low], inside, [high]])


def aligned(bounds: Iterable[Bound]) -> list[Bound]:
    """Bounds with the same pieces: as they are if they have one root, else each as one piece."""
    found = list(bounds)
    roots = {bound.root for bound in found} - {None}
    return found if len(roots) <= 1 else [bound.joined() for bound in found]


def hull(bounds: Iterable[Bound]) -> Bound:
    """The bound of values of which each element is one of these elements."""
    found = aligned(bounds)
    root = next((bound.root for bound in found if bound.root is not None), None)
    return Bound(
        np.min(np.broadcast_arrays(*(b.low for b in found)), axis=0),
        np.max(np.broadcast_arrays(*(b.high for b in found)), axis=0),
        np.max(np.broadcast_arrays(*(b.error for b in found)), axis=0),
        root,
    )
