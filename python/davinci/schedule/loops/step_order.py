"""The order of the steps of a loop in which the cube waits least.

    a = vmul z h        c = vmuls r h
    c = vmuls r h  ->   d = vconv c        left factor of the next product
    d = vconv c         a = vmul z h       while the cube multiplies

What leads to a left factor comes before what none is made of: that is computed while the cube
multiplies. What waits for no product stays in front, as it is computed before the first one is
there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from davinci.operators.vector_program import TileStep, Value


def factors_first(
    steps: Sequence[TileStep],
    products: Set[Value],
    lefts: Set[Value],
    together: Mapping[Value, Sequence[Value]],
) -> list[TileStep]:
    """The steps with those first that lead to the first left factor, then those to the second one.

    Args:
        products: results of products.
        lefts: left factors.
        together: of values that steps side by side make as one, all of these.
    """
    earlier = _earlier(steps, together)
    late = set(products)
    for step in steps:
        if not late.isdisjoint(step.sources):
            late.add(step.result)
    made = [step.result for step in steps]
    rank: dict[Value, int] = {}
    for number, left in enumerate(value for value in made if value in lefts):
        needed = [left]
        while needed:
            value = needed.pop()
            if value not in rank:
                rank[value] = number
                needed += earlier[value]
    behind = len(lefts)

    def key(step: TileStep) -> tuple[bool, int]:
        if step.result not in late:
            return False, 0
        return True, rank.get(step.result, behind)

    return sorted(steps, key=key)


def _earlier(
    steps: Sequence[TileStep], together: Mapping[Value, Sequence[Value]]
) -> dict[Value, set[Value]]:
    """Of the result of each step those of the steps that stay before or beside it: what it reads,
    what reads a value that it adds to, and what is made with it."""
    readers: dict[Value, set[Value]] = defaultdict(set)
    found: dict[Value, set[Value]] = defaultdict(set)
    for step in steps:
        found[step.result] |= {*step.sources, *together.get(step.result, ())}
        if step.accumulates:
            found[step.result] |= readers[step.sources[0]] - {step.result}
        for value in step.sources:
            readers[value].add(step.result)
    return found
