"""Which matrix of an array belongs to a matrix of scores."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixTurn:
    """Which matrix of an array belongs to matrix i of the scores: i // each % count."""

    each: int
    count: int

    def of(self, matrix: int) -> int:
        """The matrix of the array."""
        return matrix // self.each % self.count
