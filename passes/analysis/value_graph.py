"""A block of `ascend` operators as plain data: what analyses of ranges and errors read.

Nodes are numbered in order; arguments come first. A product with a known operand has that operand's
sums instead of its elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ARGUMENT, OTHER = "argument", "other"
"""Names of nodes that are no operators of `ascend`."""

CONSTANTS = ("full", "constant")
PRODUCTS = ("matmul", "batch_matmul", "conv")


@dataclass(frozen=True)
class KnownElements:
    """What is known of the elements of a constant.

    Attributes:
        low, high: the least and the largest.
        smallest: the least magnitude of those that are not zero.
        exact: whether f16 has the digits of all of them, whatever their exponents.
    """

    low: float
    high: float
    smallest: float
    exact: bool

    @classmethod
    def of(cls, array: Array) -> KnownElements | None:
        """What is known of an array; None if it is empty or has elements that are no numbers."""
        found = np.asarray(array, np.float64)
        if not found.size or np.isnan(found).any():
            return None
        sizes = np.abs(found)
        fraction = np.frexp(np.where(np.isfinite(found), found, 0.0))[0] * 2**HALF_DIGITS
        return cls(
            float(found.min()),
            float(found.max()),
            float(sizes.min(initial=np.inf, where=sizes > 0)) if sizes.any() else 0.0,
            bool((fraction == np.round(fraction)).all()),
        )


HALF_DIGITS = 11
"""Binary digits of an f16."""


@dataclass(frozen=True)
class OperandSums:
    """Sums of the elements of a known operand of a product, one of each row or column that is
    multiplied: of those above zero, and of those below.

    Attributes:
        side: which operand it is, 0 or 1.
        terms: how many products one element of the result is the sum of.
    """

    side: int
    above: Array
    below: Array
    terms: int


@dataclass(frozen=True)
class ValueNode:
    """A value and what computes it.

    Attributes:
        name: an operator of `ascend`, `ARGUMENT`, or `OTHER` for what nothing is known of.
        operands: numbers of the nodes that it reads.
        element: the element type, `f32` of what may be rounded.
        terms: how many elements one of the result is combined from, of sums and products.
        known: of constants.
        sums: of products with a known operand.
        fixed: whether it depends on constants only, so that it is computed at compile time.
        place: where it comes from, for people.
    """

    name: str
    operands: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    element: str = "f32"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    terms: int = 1
    known: KnownElements | None = None
    sums: OperandSums | None = None
    fixed: bool = False
    place: str = ""

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class ValueGraph:
    """The nodes of a block.

    Attributes:
        results: nodes that the function returns.
        ranges: declared or measured ranges of arguments, by node.
    """

    nodes: list[ValueNode]
    results: tuple[int, ...]
    ranges: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def readers(self) -> list[list[int]]:
        """The nodes that read each node, once for each use; results are not readers."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for operand in node.operands:
                found[operand].append(number)
        return found
