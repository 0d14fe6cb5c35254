"""Which operators of a kernel each part of attention serves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from davinci.operators.vector_program import joined
from davinci.schedule.attention.terms import (
    AttentionResult,
    Difference,
    Empty,
    Known,
    Row,
    ScoreBooleans,
    Seen,
    Statistic,
    Weight,
)

Numbers = tuple[int, ...]

STATISTICS = {"max": "highest", "sum": "sums", "inverse": "quotient"}
"""The part that finds a statistic."""

ROWS = {"max": "difference", "sum": "quotient", "inverse": "quotient"}
"""The part that combines scores with a statistic."""


@dataclass(frozen=True)
class Members:
    """Numbers of operators of the kernel, by what computes them.

    Attributes:
        q, k, v: what brings the factors, and what they are brought for.
        scores: the first product.
        highest, difference, exponential, sums, quotient: softmax.
        product: the second product.
        leaving: what is done to its result.
        extras: of each extra of the chain, what is done to it alone.
    """

    q: Numbers = ()
    k: Numbers = ()
    v: Numbers = ()
    scores: Numbers = ()
    highest: Numbers = ()
    difference: Numbers = ()
    exponential: Numbers = ()
    sums: Numbers = ()
    quotient: Numbers = ()
    product: Numbers = ()
    leaving: Numbers = ()
    extras: tuple[Numbers, ...] = ()


@dataclass
class Found:
    """Collects members while a group is read.

    Attributes:
        parts: by the names of `Members`.
        inputs: of what is done to inputs alone, by their numbers.
    """

    parts: dict[str, Numbers] = field(default_factory=lambda: defaultdict(tuple))
    inputs: dict[int, Numbers] = field(default_factory=lambda: defaultdict(tuple))

    def note(self, members: Numbers, result: Known) -> None:
        """Notes what an operator between the products has made."""
        if isinstance(result, Seen | ScoreBooleans):
            self.inputs[result.number] = joined(self.inputs[result.number], members)
        elif isinstance(result, Statistic):
            self.add(STATISTICS[result.kind], members)
        elif isinstance(result, Row):
            self.add(ROWS[result.kind], members)
        elif isinstance(result, Difference):
            self.add("difference", members)
        elif isinstance(result, Weight):
            self.add("quotient" if result.divided else "exponential", members)
        elif isinstance(result, Empty):
            self.add("quotient", members)
        elif isinstance(result, AttentionResult):
            self.add("leaving", members)

    def add(self, part: str, members: Numbers) -> None:
        self.parts[part] = joined(self.parts[part], members)

    def members(
        self, factors: tuple[int, int, int], extras: tuple[int, ...], scaling: Numbers
    ) -> Members:
        """The members of the attention that was found.

        Args:
            factors: numbers of the inputs Q, K and V.
            extras: of those that the chain combines scores with.
            scaling: members whose work is done to Q.
        """
        q, k, v = (self.inputs[number] for number in factors)
        scores, product = self.parts["scores"], self.parts["product"]
        return Members(
            q=joined(q, scores, scaling),
            k=joined(k, scores),
            v=joined(v, product),
            extras=tuple(self.inputs[number] for number in extras),
            **self.parts,
        )
