"""Bounds of all values of a graph: exact ones, or those of what a plan of f16 values computes.

Without a plan the bounds are of real arithmetic, and errors are zero. With one they are of numbers
as the device rounds them: an f16 of unit roundoff 2^-11 that holds x 2^e is off by at most
2^-11 |x|, and by 2^-25 2^-e where it is subnormal; f32 by 2^-24 |x|, and by a little more behind
functions. So both overflow and the error of a result are decided here: see `Plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from davinci.passes.analysis.bound_rules import RULES
from davinci.passes.analysis.value_bounds import UNKNOWN, Bound
from davinci.passes.analysis.value_graph import ARGUMENT, CONSTANTS, PRODUCTS, Graph, Node

HALF_ROUNDOFF = 2.0**-11
HALF_FLOOR = 2.0**-25
"""Half of the distance of subnormal f16 numbers."""

LEAST_NORMAL = 2.0**-14

LARGEST_HALF = 65504.0

WHOLE_HALVES = 2048.0
"""Whole numbers up to this are f16 numbers."""

SINGLE_ROUNDOFF, SINGLE_FLOOR = 2.0**-23, 2.0**-126
"""Of f32, with room for a kernel that takes another order."""

FUNCTION_ROUNDOFF, FUNCTION_FLOOR = 2.0**-19, 2.0**-35
"""The same of functions that kernels compute in f32 by several instructions."""

EXPONENTIAL_ROUNDOFF = 2.0**-10
"""Of instructions that compute exponentials, logarithms and roots of f16."""

MOVED = frozenset({"reshape", "transpose", "broadcast", "slice", "relayout", "copy", "view"})

EXACT = frozenset(
    {*MOVED, "neg", "abs", "relu", "sign", "max", "min", "clamp", "select", "concat", "pad"}
    | {"gather", "compare", "and", "or", "xor", "not", "floor", "ceil", "round", "round_away"}
)
"""Operators whose results need no rounding where operands are f16 or f32."""

ARITHMETIC = frozenset({"add", "sub", "mul", "div", "sqrt", "cast", "pow"})

SUMS = ("reduce", "pool")

LARGEST = ("broadcast", "reshape", "relayout")
"""Operators between the maximum of a row and what it is taken from."""


@dataclass
class Plan:
    """Which values are f16, and the powers of two that they are multiplied by.

    Attributes:
        exponents: e of each value that is stored as f16, which then holds 2^e times it; other
            values are f32.
        reads: e with which an operator reads an operand as f16, by its node and the operand's
            position; other operands are read as f32.
    """

    exponents: dict[int, int] = field(default_factory=dict)
    reads: dict[tuple[int, int], int] = field(default_factory=dict)


def is_sum(node: Node) -> bool:
    """Whether a node adds elements, of rows or of windows."""
    return node.name in SUMS and node.attributes.get("kind") == "add"


def bounds_of(graph: Graph, plan: Plan | None = None) -> list[Bound]:
    """The bound of each node; see the head of the module."""
    found: list[Bound] = []
    for number, node in enumerate(graph.nodes):
        bound = _bound(graph, number, node, found, plan)
        if node.name not in CONSTANTS and bound.root is None:
            bound = bound.in_pieces(number)
        found.append(bound)
    return found


def _bound(
    graph: Graph, number: int, node: Node, found: Sequence[Bound], plan: Plan | None
) -> Bound:
    if node.name == ARGUMENT:
        given = graph.ranges.get(number)
        return _of_type(node.element) if given is None else Bound.of(*given)
    if node.known is not None:
        return Bound.of(node.known.low, node.known.high)
    if node.name not in RULES:
        return _of_type(node.element)
    operands = [
        read(graph.nodes[operand], operand, found[operand], plan, (number, place))
        for place, operand in enumerate(node.operands)
    ]
    with np.errstate(all="ignore"):
        bound = RULES[node.name](node, operands)
        bound = related(graph, number, node, bound)
        if plan is None or (node.fixed and node.name in MOVED):
            return bound
        return _rounded(graph, number, operands, bound, plan)


def _of_type(element: str) -> Bound:
    """The range of an element type, of integers up to 16 bits."""
    if element == "i1":
        return Bound.of(0.0, 1.0)
    unsigned = element.startswith("u")
    width = element.lstrip("sui")
    if element.startswith("f") or not width.isdigit() or int(width) > 16:
        return UNKNOWN
    bits = int(width)
    return (
        Bound.of(0.0, 2.0**bits - 1)
        if unsigned
        else Bound.of(-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
    )


def read(node: Node, number: int, bound: Bound, plan: Plan | None, edge: tuple[int, int]) -> Bound:
    """The bound of a value as an operator reads it."""
    if plan is None or edge not in plan.reads:
        return bound
    exponent = plan.reads[edge]
    floor = HALF_FLOOR * 2.0**-exponent
    stored = plan.exponents.get(number)
    if stored is not None:
        # Only what becomes subnormal loses digits.
        return bound if exponent >= stored else bound.rounded(0.0, floor)
    if node.known is not None:
        known = node.known
        small = known.smallest * 2.0**exponent < LEAST_NORMAL
        return bound.rounded(0.0 if known.exact else HALF_ROUNDOFF, floor if small else 0.0)
    return bound.rounded(HALF_ROUNDOFF, floor)


def _rounded(
    graph: Graph, number: int, operands: Sequence[Bound], bound: Bound, plan: Plan
) -> Bound:
    """The bound of a result that an operator computes, with its roundings."""
    node = graph.nodes[number]
    halves = [(number, place) in plan.reads for place in range(len(operands))]
    if node.name in PRODUCTS:
        if not all(halves):
            return replace(bound, error=np.full_like(bound.error, np.inf))
        bound = bound.rounded(0.0, node.terms * HALF_ROUNDOFF * 2.0**-13 * _total(node, operands))
    elif is_sum(node):
        total = node.terms * operands[0].magnitude
        bound = bound.rounded(0.0, node.terms * 2.0**-24 * total)
    elif _is_exact_cast(graph, node, bound):
        return bound
    elif not any(halves) and node.element.startswith("f") and node.name not in EXACT:
        simple = node.name in ARITHMETIC
        bound = bound.rounded(
            SINGLE_ROUNDOFF if simple else FUNCTION_ROUNDOFF,
            SINGLE_FLOOR if simple else FUNCTION_FLOOR,
        )
    exponent = plan.exponents.get(number)
    if exponent is None or (node.name in EXACT and any(halves)) or _keeps_kind(node):
        return bound
    if node.name in ("add", "sub") and any(halves):
        return bound.rounded(HALF_ROUNDOFF, 0.0)
    near = node.name in ARITHMETIC or node.name in PRODUCTS
    roundoff = HALF_ROUNDOFF if near else EXPONENTIAL_ROUNDOFF
    return bound.rounded(roundoff, HALF_FLOOR * 2.0**-exponent)


def _is_exact_cast(graph: Graph, node: Node, bound: Bound) -> bool:
    """Whether a node makes floats of integers that f16 holds."""
    if node.name != "cast":
        return False
    integers = "i" in graph.nodes[node.operands[0]].element
    return integers and bound.magnitude <= WHOLE_HALVES and not bound.most_error


def _keeps_kind(node: Node) -> bool:
    """Whether a node takes the largest or least of elements."""
    return node.name in SUMS and not is_sum(node)


def _total(node: Node, operands: Sequence[Bound]) -> float:
    """A bound of the sum of the magnitudes that one element of a product is summed from."""
    a, b = operands
    if node.sums is None:
        return node.terms * a.magnitude * b.magnitude
    other = (b, a)[node.sums.side]
    return float((node.sums.above - node.sums.below).max()) * other.magnitude


def related(graph: Graph, number: int, node: Node, bound: Bound) -> Bound:
    """What follows from where operands come from, in a softmax: differences from the largest of a
    row are no more than 0, and a sum of exponentials of these is 1 at least."""
    if node.name == "sub" and largest_of(graph, node.operands[1]) == moved(graph, node.operands[0]):
        return bound.within(high=0.0)
    if is_sum(node) and node.name == "reduce":
        exp = graph.nodes[moved(graph, node.operands[0])]
        if exp.name == "exp":
            shifted = graph.nodes[moved(graph, exp.operands[0])]
            if shifted.name == "sub" and _same_rows(graph, node, shifted):
                return bound.within(low=1.0)
    return bound


def moved(graph: Graph, number: int) -> int:
    """What a value is a reshaped or relaid form of."""
    while graph.nodes[number].name in ("reshape", "relayout"):
        number = graph.nodes[number].operands[0]
    return number


def largest_of(graph: Graph, number: int) -> int | None:
    """What a value is the repeated maximum along some dimensions of; None if it is none."""
    while graph.nodes[number].name in LARGEST:
        number = graph.nodes[number].operands[0]
    node = graph.nodes[number]
    if node.name != "reduce" or node.attributes.get("kind") != "max":
        return None
    return moved(graph, node.operands[0])


def _same_rows(graph: Graph, total: Node, shifted: Node) -> bool:
    """Whether a sum goes along the dimensions of the maximum that a difference is taken from."""
    source = largest_of(graph, shifted.operands[1])
    if source is None or source != moved(graph, shifted.operands[0]):
        return False
    number = shifted.operands[1]
    while graph.nodes[number].name in LARGEST:
        number = graph.nodes[number].operands[0]
    largest = graph.nodes[number]
    shapes = {graph.nodes[n.operands[0]].shape for n in (largest, total)}
    return len(shapes) == 1 and list(largest.attributes["dims"]) == list(total.attributes["dims"])


def overflows(graph: Graph, plan: Plan, bounds: Sequence[Bound]) -> Iterator[int]:
    """Nodes of which an f16 may leave its range, stored or as somebody reads it."""
    for number, exponent in plan.exponents.items():
        if not bounds[number].magnitude * 2.0**exponent <= LARGEST_HALF:
            yield number
    for (number, place), exponent in plan.reads.items():
        operand = graph.nodes[number].operands[place]
        found = read(graph.nodes[operand], operand, bounds[operand], plan, (number, place))
        if not found.magnitude * 2.0**exponent <= LARGEST_HALF:
            yield number
