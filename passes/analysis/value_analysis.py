"""Bounds of all values of a graph: exact ones, or those of what a plan of f16 values computes.

Without a plan the bounds are of real arithmetic, and errors are zero. With one they are of numbers
as the device rounds them: an f16 of unit roundoff 2^-11 that holds x 2^e is off by at most
2^-11 |x|, and by 2^-25 2^-e where it is subnormal; f32 by 2^-24 |x|, and by a little more behind
functions. So both overflow and the error of a result are decided here: see `ScalePlan`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from davinci.passes.analysis.bound_rules import RULES
from davinci.passes.analysis.value_bounds import UNKNOWN, Bound
from davinci.passes.analysis.value_graph import ARGUMENT, CONSTANTS, PRODUCTS, ValueGraph, ValueNode

HALF_ROUNDOFF = 2.0**-11
HALF_FLOOR = 2.0**-25
"""Half of the distance of subnormal f16 numbers."""

LEAST_NORMAL = 2.0**-14

MEASURED_FLOOR = 2.0**-37
"""Half of the distance of subnormal numbers, as a share of a row's largest number in [2^13, 2^15).
"""

LARGEST_HALF = 65504.0

WHOLE_HALVES = 2048.0
"""Whole numbers up to this are f16 numbers."""

SINGLE_ROUNDOFF, SINGLE_FLOOR = 2.0**-23, 2.0**-126
"""Relative error of an operation in f32 and the least normal number; twice the unit roundoff, for
a kernel may take another order of operations."""

FUNCTION_ROUNDOFF, FUNCTION_FLOOR = 2.0**-19, 2.0**-35
"""The same of functions that kernels compute in f32 by several instructions."""

EXPONENTIAL_ROUNDOFF = 2.0**-10
"""Of instructions that compute exponentials, logarithms and roots of f16."""

MOVED = frozenset({"reshape", "transpose", "broadcast", "slice", "relayout", "copy", "view"})

EXACT = frozenset(
    {*MOVED, "neg", "abs", "relu", "sign", "max", "min", "clamp", "select", "concat", "pad"}
    | {"gather", "gather_elements", "compare", "and", "or", "xor", "not"}
    | {"floor", "ceil", "round", "round_away"}
)
"""Operators whose results need no rounding where operands are f16 or f32."""

ARITHMETIC = frozenset({"add", "sub", "mul", "div", "sqrt", "cast", "pow"})

SUMS = ("reduce", "pool")

REPEATING = ("broadcast", "reshape", "relayout")
"""Operators between what is computed of a row and what that is done to."""

OF_ROWS = frozenset({"reshape", "relayout", "add", "mul", "div", "sqrt", "rsqrt"})
"""Operators between the sum of a row and what a normalisation divides by."""

MOST_COMPARED = 1 << 23
"""Elements of which the rows are compared, in an array of indices."""

Rows = npt.NDArray[np.int64]

ROUNDED_UP = 1 + 2.0**-6
"""What roundings may add to a value that is divided by a root of its own squares."""


@dataclass
class ScalePlan:
    """Which values are f16, and the powers of two that they are multiplied by.

    Attributes:
        exponents: e of each value that is stored as f16, which then holds 2^e times it; other
            values are f32.
        reads: e with which an operator reads an operand as f16, by its node and the operand's
            position; other operands are read as f32.
        measured: operands of products that are read as f16 times powers of two that are found
            while the program runs, one of each row or column: the largest of these is about 2^14.
    """

    exponents: dict[int, int] = field(default_factory=dict)
    reads: dict[tuple[int, int], int] = field(default_factory=dict)
    measured: set[tuple[int, int]] = field(default_factory=set)

    def reads_half(self, edge: tuple[int, int]) -> bool:
        """Whether an operand is read as f16."""
        return edge in self.reads or edge in self.measured


def is_sum(node: ValueNode) -> bool:
    """Whether a node adds elements, of rows or of windows."""
    return node.name in SUMS and node.attributes.get("kind") == "add"


def bounds_of(graph: ValueGraph, plan: ScalePlan | None = None) -> list[Bound]:
    """The bound of each node; see the head of the module."""
    found: list[Bound] = []
    for number, node in enumerate(graph.nodes):
        bound = _bound(graph, number, node, found, plan)
        if node.name not in CONSTANTS and bound.root is None:
            bound = bound.in_pieces(number)
        found.append(bound)
    return found


def _bound(
    graph: ValueGraph, number: int, node: ValueNode, found: Sequence[Bound], plan: ScalePlan | None
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


def read(
    node: ValueNode, number: int, bound: Bound, plan: ScalePlan | None, edge: tuple[int, int]
) -> Bound:
    """The bound of a value as an operator reads it."""
    if plan is not None and edge in plan.measured:
        return bound.rounded(HALF_ROUNDOFF, bound.magnitude * MEASURED_FLOOR)
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
    graph: ValueGraph, number: int, operands: Sequence[Bound], bound: Bound, plan: ScalePlan
) -> Bound:
    """The bound of a result that an operator computes, with its roundings."""
    node = graph.nodes[number]
    halves = [plan.reads_half((number, place)) for place in range(len(operands))]
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


def _is_exact_cast(graph: ValueGraph, node: ValueNode, bound: Bound) -> bool:
    """Whether a node makes floats of integers that f16 holds."""
    if node.name != "cast":
        return False
    integers = "i" in graph.nodes[node.operands[0]].element
    return integers and bound.magnitude <= WHOLE_HALVES and not bound.most_error


def _keeps_kind(node: ValueNode) -> bool:
    """Whether a node takes the largest or least of elements."""
    return node.name in SUMS and not is_sum(node)


def _total(node: ValueNode, operands: Sequence[Bound]) -> float:
    """A bound of the sum of the magnitudes that one element of a product is summed from."""
    a, b = operands
    if node.sums is None:
        return node.terms * a.magnitude * b.magnitude
    other = (b, a)[node.sums.side]
    return float((node.sums.above - node.sums.below).max()) * other.magnitude


def related(graph: ValueGraph, number: int, node: ValueNode, bound: Bound) -> Bound:
    """What follows from where operands come from.

    In a softmax, differences from the largest of a row are no more than 0, and a sum of
    exponentials of these is 1 at least. In a normalisation, d / sqrt(c (d1 d1 + d2 d2 + ..) + e)
    is at most 1 / sqrt(c), since no square is larger than their sum.
    """
    if node.name == "sub" and is_below_largest(graph, node):
        return bound.within(high=0.0)
    if is_sum(node) and node.name == "reduce":
        exp = graph.nodes[moved(graph, node.operands[0])]
        if exp.name == "exp":
            shifted = graph.nodes[moved(graph, exp.operands[0])]
            if shifted.name == "sub" and _same_rows(graph, node, shifted):
                return bound.within(low=1.0)
    if node.name in ("mul", "div") and (most := _normalised(graph, node)) is not None:
        return bound.within(-most, most)
    return bound


def moved(graph: ValueGraph, number: int) -> int:
    """What a value is a reshaped or relaid form of."""
    while graph.nodes[number].name in ("reshape", "relayout"):
        number = graph.nodes[number].operands[0]
    return number


def through(graph: ValueGraph, number: int) -> int:
    """What a value is a reshaped or repeated form of."""
    while graph.nodes[number].name in REPEATING:
        number = graph.nodes[number].operands[0]
    return number


def is_below_largest(graph: ValueGraph, node: ValueNode) -> bool:
    """Whether a difference is one from the maximum of its own row."""
    value, largest = node.operands
    found = graph.nodes[through(graph, largest)]
    if found.name != "reduce" or found.attributes.get("kind") != "max":
        return False
    (source,) = found.operands
    return moved(graph, source) == moved(graph, value) and rows_meet(graph, largest, found, node)


def rows_meet(graph: ValueGraph, number: int, reduced: ValueNode, node: ValueNode) -> bool:
    """Whether each element of a node meets what is computed of its own row.

    Args:
        number: the operand of the node that repeats what is computed of rows.
        reduced: the reduction that makes rows, of a value with the elements of the node.
    """
    shape = graph.nodes[reduced.operands[0]].shape
    if node.count > MOST_COMPARED or math.prod(shape) != node.count:
        return False
    rows = np.arange(reduced.count).reshape(reduced.shape)
    own = np.broadcast_to(np.expand_dims(rows, tuple(reduced.attributes["dims"])), shape)
    met = _rows_of(graph, number, reduced, rows)
    return met is not None and bool((met == own.reshape(met.shape)).all())


def _rows_of(graph: ValueGraph, number: int, reduced: ValueNode, rows: Rows) -> Rows | None:
    """The row that each element of a value comes from, as far as moves and elementwise operators
    lead to a reduction; None where they do not."""
    node = graph.nodes[number]
    if node is reduced:
        return rows
    if node.name == "broadcast":
        inner = _rows_of(graph, node.operands[0], reduced, rows)
        if inner is None:
            return None
        shape = [1] * len(node.shape)
        for dim, size in zip(node.attributes["dims"], inner.shape, strict=True):
            shape[dim] = size
        return np.broadcast_to(inner.reshape(shape), node.shape)
    computed = [x for x in node.operands if graph.nodes[x].known is None]
    if len(computed) != 1 or node.name not in OF_ROWS:
        return None
    inner = _rows_of(graph, computed[0], reduced, rows)
    return None if inner is None else inner.reshape(node.shape)


def _same_rows(graph: ValueGraph, total: ValueNode, shifted: ValueNode) -> bool:
    """Whether a sum goes along the dimensions of the maximum that a difference is taken from."""
    if not is_below_largest(graph, shifted):
        return False
    largest = graph.nodes[through(graph, shifted.operands[1])]
    shapes = {graph.nodes[n.operands[0]].shape for n in (largest, total)}
    return len(shapes) == 1 and list(largest.attributes["dims"]) == list(total.attributes["dims"])


def _normalised(graph: ValueGraph, node: ValueNode) -> float | None:
    """The largest magnitude of a value over the root of the mean of squares of its row."""
    first, second = node.operands
    orders = [(first, second)] if node.name == "div" else [(first, second), (second, first)]
    wanted = "sqrt" if node.name == "div" else "rsqrt"
    for value, root in orders:
        found = graph.nodes[through(graph, root)]
        if found.name != wanted:
            continue
        factor, total = _sum_of_squares(graph, found.operands[0], value)
        if factor and total is not None and rows_meet(graph, root, total, node):
            return ROUNDED_UP / math.sqrt(factor)
    return None


def _sum_of_squares(graph: ValueGraph, number: int, value: int) -> tuple[float, ValueNode | None]:
    """c and the sum of c (d1 d1 + d2 d2 + ..) + e, with e >= 0, of the elements d of a value; 0 and
    None of anything else."""
    node, factor = graph.nodes[through(graph, number)], 1.0
    while node.name in ("add", "mul", "div"):
        known = [graph.nodes[operand].known for operand in node.operands]
        place = 0 if known[1] is not None else 1
        other = known[1 - place]
        if other is None or other.low <= 0 or (node.name == "div" and place == 1):
            return 0.0, None
        if node.name != "add":
            factor *= other.low if node.name == "mul" else 1 / other.high
        node = graph.nodes[through(graph, node.operands[place])]
    if node.name != "reduce" or not is_sum(node):
        return 0.0, None
    square = graph.nodes[moved(graph, node.operands[0])]
    power = graph.nodes[square.operands[1]].known if square.name == "pow" else None
    twice = square.name == "mul" and square.operands[0] == square.operands[1]
    if not twice and (power is None or not power.low == power.high == 2):
        return 0.0, None
    same = moved(graph, square.operands[0]) == moved(graph, value)
    return (factor, node) if same else (0.0, None)


def overflows(graph: ValueGraph, plan: ScalePlan, bounds: Sequence[Bound]) -> Iterator[int]:
    """Nodes of which an f16 may leave its range, stored or as somebody reads it."""
    for number, exponent in plan.exponents.items():
        if not bounds[number].magnitude * 2.0**exponent <= LARGEST_HALF:
            yield number
    for (number, place), exponent in plan.reads.items():
        operand = graph.nodes[number].operands[place]
        found = read(graph.nodes[operand], operand, bounds[operand], plan, (number, place))
        if not found.magnitude * 2.0**exponent <= LARGEST_HALF:
            yield number
