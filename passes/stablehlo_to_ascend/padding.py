"""Padding around the operands of windows."""

from __future__ import annotations

import numpy as np

from davinci.elements import Array, to_array
from davinci.mlir import Op


def edges_of(op: Op, rank: int) -> Array:
    """[rank, 2]: elements in front of and behind each dimension; negative ones are cut off."""
    if "padding" not in op.attributes:
        return np.zeros((rank, 2), np.int64)
    return to_array(op.attributes["padding"]).reshape(rank, 2)
