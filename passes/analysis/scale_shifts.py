"""Which scales values may have, and how the scale of one is changed for nothing.

A constant takes any scale that f16 holds it with. What is multiplied on its way to f16 is
multiplied by another number. A value that one operator reads takes another scale where one of its
own operands does, as the operator has it: of a product one factor, of a sum all terms, of a root
the square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from davinci.passes.analysis.value_analysis import LEAST_NORMAL, MOVED, SUMS, ScalePlan
from davinci.passes.analysis.value_bounds import Bound
from davinci.passes.analysis.value_graph import PRODUCTS, ValueGraph, ValueNode

HIGHEST = 2.0**15
"""What a scaled value may reach by its exact bound: rounding may double it."""

LOWEST = 2.0**-8
"""What a scaled value reaches at least: subnormal numbers are then 2^-6 of the largest or less."""

MOST = 2.0**31
"""Bounds beyond this tell nothing: numbers that are likely would be subnormal."""

LARGEST_SCALE = 40
"""The largest exponent: what is smaller may be subnormal."""

LEAST = LOWEST * 2.0**-LARGEST_SCALE
"""Bounds below this are of values that no scale brings up far enough."""

KEEPING = MOVED | {"neg", "abs", "relu"}
"""Operators of one operand whose result has its scale."""

ALIKE = {
    "add": (0, 1), "sub": (0, 1), "max": (0, 1), "min": (0, 1), "select": (1, 2),
    "clamp": (0, 1, 2), "concat": (0, 1), "pad": (0, 1), "compare": (0, 1),
}  # fmt: skip
"""Operators whose operands at these positions have one scale, which the result has too."""

ROOTS = {"sqrt": 1, "rsqrt": -1}
"""Operators that halve a scale, and the sign that they give it."""


@dataclass(frozen=True)
class ShiftLimits:
    """Exponents with which f16 holds a value."""

    low: int
    high: int

    def __contains__(self, exponent: int) -> bool:
        return self.low <= exponent <= self.high

    @property
    def nearest(self) -> int:
        """The scale closest to 1."""
        return min(max(0, self.low), self.high)


@dataclass
class ScaledGraph:
    """A graph with a plan in the making.

    Attributes:
        exact: bounds of real arithmetic.
        converted: nodes that are computed in f32, multiplied by their scale and rounded.
    """

    graph: ValueGraph
    exact: Sequence[Bound]
    plan: ScalePlan = field(default_factory=ScalePlan)
    converted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.readers = self.graph.readers()
        self.results = set(self.graph.results)
        pairs = zip(self.graph.nodes, self.exact, strict=True)
        self.limits = [self._limits(node, bound) for node, bound in pairs]

    @staticmethod
    def _limits(node: ValueNode, bound: Bound) -> ShiftLimits | None:
        """Exponents for a value; None if it is not f32 or there are none."""
        most = bound.magnitude
        if node.element != "f32" or not most <= MOST or 0 < most < LEAST:
            return None
        if most == 0:
            return ShiftLimits(-LARGEST_SCALE, LARGEST_SCALE)
        high = min(math.floor(math.log2(HIGHEST / most)), LARGEST_SCALE)
        least = node.known.smallest if node.known is not None else bound.smallest
        low = math.ceil(math.log2(LOWEST / most))
        if least > 0:
            whole = math.ceil(math.log2(LEAST_NORMAL / least))
            low = min(low, whole) if node.known is not None else max(low, whole)
        return ShiftLimits(min(low, high), high)

    def is_fixed(self, number: int) -> bool:
        """Whether a value is known at compile time."""
        node = self.graph.nodes[number]
        return node.fixed or node.known is not None

    def natural(self, number: int, signs: tuple[int, int]) -> int:
        """The scale that a product or quotient has by those of its operands.

        Args:
            signs: 1, and of a quotient -1 for the divisor.
        """
        return sum(signs[place] * self.plan.reads.get((number, place), 0) for place in (0, 1))

    def edge_may_shift(self, number: int, place: int, delta: int) -> bool:
        """Whether an operand may be read with another scale for nothing."""
        operand = self.graph.nodes[number].operands[place]
        limits = self.limits[operand]
        now = self.plan.reads.get((number, place))
        if limits is None or now is None or now + delta not in limits:
            return False
        if self.is_fixed(operand):
            return True
        stored = self.plan.exponents.get(operand)
        if stored is None:
            return now != 0 and now + delta != 0 and len(self.readers[operand]) == 1
        if stored != now:
            return now + delta != stored
        return self.may_shift(operand, delta)

    def may_shift(self, number: int, delta: int) -> bool:
        """Whether a value may be stored with another scale for nothing."""
        node, limits = self.graph.nodes[number], self.limits[number]
        now = self.plan.exponents[number]
        if limits is None or now + delta not in limits:
            return False
        if len(self.readers[number]) != 1 or number in self.results:
            return False
        if number in self.converted:
            natural = self.natural(number, (1, 1)) if node.name in PRODUCTS else 0
            return natural not in (now, now + delta)
        if node.name in ALIKE:
            return all(self.edge_may_shift(number, p, delta) for p in ALIKE[node.name])
        if node.name == "mul" or node.name in PRODUCTS:
            return any(self.edge_may_shift(number, p, delta) for p in (0, 1))
        if node.name == "div":
            return self.edge_may_shift(number, 0, delta) or self.edge_may_shift(number, 1, -delta)
        if node.name in KEEPING or node.name == "gather" or node.name in SUMS:
            return self.edge_may_shift(number, 0, delta)
        if node.name in ROOTS:
            return self.edge_may_shift(number, 0, 2 * ROOTS[node.name] * delta)
        return False

    def shift_edge(self, number: int, place: int, delta: int) -> None:
        """Does what `edge_may_shift` allows."""
        operand = self.graph.nodes[number].operands[place]
        now = self.plan.reads[number, place]
        stored = self.plan.exponents.get(operand)
        self.plan.reads[number, place] = now + delta
        if stored == now and not self.is_fixed(operand):
            self._shift(operand, delta)

    def _shift(self, number: int, delta: int) -> None:
        """Does what `may_shift` allows."""
        node = self.graph.nodes[number]
        self.plan.exponents[number] += delta
        if number in self.converted:
            return
        if node.name in ALIKE:
            for place in ALIKE[node.name]:
                self.shift_edge(number, place, delta)
        elif node.name == "mul" or node.name in PRODUCTS:
            fixed = sorted((0, 1), key=lambda p: not self.is_fixed(node.operands[p]))
            place = next(p for p in fixed if self.edge_may_shift(number, p, delta))
            self.shift_edge(number, place, delta)
        elif node.name == "div":
            if self.edge_may_shift(number, 0, delta):
                self.shift_edge(number, 0, delta)
            else:
                self.shift_edge(number, 1, -delta)
        elif node.name in ROOTS:
            self.shift_edge(number, 0, 2 * ROOTS[node.name] * delta)
        else:
            self.shift_edge(number, 0, delta)
