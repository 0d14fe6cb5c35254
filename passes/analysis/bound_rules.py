"""Bounds of the results of operators, from bounds of their operands: intervals and errors.

A rule computes with real numbers; what rounding adds is `Bound.rounded`. Errors are those of
operands, carried through: |a b - a' b'| <= |a'| |b - b'| + |b'| |a - a'| + .., where a' is computed
and a exact. Where a rule cannot say anything its result is `UNKNOWN`; so is that of an operator
without a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from davinci.passes.analysis.value_bounds import UNKNOWN, Bound, Floats, aligned, hull
from davinci.passes.analysis.value_graph import ValueNode

Rule = Callable[[ValueNode, Sequence[Bound]], Bound]

RULES: dict[str, Rule] = {}
"""The rule of each operator that has one."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def made(low: Floats, high: Floats, error: Floats, operands: Sequence[Bound]) -> Bound:
    """A bound with the root of its operands; `UNKNOWN` where a number is none."""
    if np.isnan(low).any() or np.isnan(high).any():
        return UNKNOWN
    root = next((x.root for x in operands if x.root is not None), None)
    low, high, error = np.broadcast_arrays(low, high, np.where(np.isnan(error), np.inf, error))
    return Bound(low, high, error, root)


def size(bound: Bound) -> Floats:
    """The largest magnitude of each piece."""
    found: Floats = np.maximum(np.abs(bound.low), np.abs(bound.high))
    return found


def distance(bound: Bound) -> Floats:
    """How far each piece, exact values among it, is from zero at least; 0 if it may be zero."""
    found: Floats = np.maximum(np.maximum(bound.low, -bound.high) - bound.error, 0.0)
    return found


def product(a: Floats, b: Floats | float) -> Floats:
    """a b, where zero times infinity is zero: an error or number that is zero makes none."""
    with np.errstate(invalid="ignore"):
        found: Floats = np.where((a == 0) | (np.asarray(b) == 0), 0.0, a * b)
    return found


def corners(a: Bound, b: Bound, combine: Callable[[Floats, Floats], Floats]) -> list[Floats]:
    return [combine(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]


@rule("add")
def add(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    a, b = aligned(operands)
    return made(a.low + b.low, a.high + b.high, a.error + b.error, (a, b))


@rule("sub")
def sub(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    a, b = aligned(operands)
    return made(a.low - b.high, a.high - b.low, a.error + b.error, (a, b))


@rule("mul")
def mul(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    a, b = aligned(operands)
    found = corners(a, b, product)
    low, high = np.minimum.reduce(found), np.maximum.reduce(found)
    if node.operands[0] == node.operands[1]:
        low = np.where((a.low <= 0) & (a.high >= 0), 0.0, low)
    error = product(size(a), b.error) + product(size(b), a.error) + product(a.error, b.error)
    return made(low, high, error, (a, b))


@rule("div")
def div(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Nothing is known of a quotient whose divisor may be zero, and nothing of its error where the
    exact divisor may be.

    |a / b - a' / b'| <= (|a - a'| + |a' / b'| |b - b'|) / |b|
    """
    a, b = aligned(operands)
    if ((b.low <= 0) & (b.high >= 0)).any():
        return UNKNOWN
    found = corners(a, b, np.divide)
    low, high = np.minimum.reduce(found), np.maximum.reduce(found)
    most = np.maximum(np.abs(low), np.abs(high))
    return made(low, high, quotient(a.error + product(most, b.error), distance(b)), (a, b))


@rule("max")
def max_(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    a, b = aligned(operands)
    low, high = np.maximum(a.low, b.low), np.maximum(a.high, b.high)
    return made(low, high, np.maximum(a.error, b.error), (a, b))


@rule("min")
def min_(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    a, b = aligned(operands)
    low, high = np.minimum(a.low, b.low), np.minimum(a.high, b.high)
    return made(low, high, np.maximum(a.error, b.error), (a, b))


@rule("clamp")
def clamp(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    low, x, high = operands
    return min_(node, (max_(node, (low, x)), high))


@rule("relu")
def relu(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    return max_(node, (operands[0], Bound.of(0.0, 0.0)))


@rule("neg")
def neg(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    (a,) = operands
    return made(-a.high, -a.low, a.error, (a,))


@rule("abs")
def abs_(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    (a,) = operands
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return made(low, size(a), a.error, (a,))


@rule("sign")
def sign(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    (a,) = operands
    unsure = (a.error > 0) & (distance(a) == 0)
    return made(np.sign(a.low), np.sign(a.high), np.where(unsure, 2.0, 0.0), (a,))


@rule("compare")
def compare(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """0 or 1; off by 1 where errors may turn the comparison."""
    a, b = aligned(operands)
    off = a.error + b.error
    apart = np.maximum(a.low - b.high, b.low - a.high) > off
    error = np.where((off == 0) | apart, 0.0, 1.0)
    return made(np.zeros_like(error), np.ones_like(error), error, (a, b))


@rule("and", "or", "xor", "not")
def flags(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    if node.element != "i1":
        return UNKNOWN
    return Bound.of(0.0, 1.0, max(x.most_error for x in operands))


@rule("select")
def select(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Either; where errors may turn the condition, off by as much as the two differ."""
    condition, a, b = aligned(operands)
    found = hull((a, b))
    low = np.minimum(a.low - a.error, b.low - b.error)
    high = np.maximum(a.high + a.error, b.high + b.error)
    error = np.where(condition.error > 0, high - low, found.error)
    return made(found.low, found.high, error, (a, b, condition))


def monotone(
    function: Callable[[Floats], Floats], error: Callable[[Bound], Floats], least: float = -np.inf
) -> Rule:
    """The rule of a function that grows.

    Args:
        error: of the result, from a bound of the operand.
        least: operands below this make no number.
    """

    def apply(node: ValueNode, operands: Sequence[Bound]) -> Bound:
        (a,) = operands
        if a.least < least:
            return UNKNOWN
        with np.errstate(all="ignore"):
            return made(function(a.low), function(a.high), error(a), (a,))

    return apply


def slope(most: float) -> Callable[[Bound], Floats]:
    """The error behind a function that is nowhere steeper than `most`."""
    return lambda a: most * a.error


def steps(a: Bound) -> Floats:
    """The error behind a function that jumps from one whole number to the next."""
    return np.where(a.error > 0, a.error + 1.0, 0.0)


def quotient(numerator: Floats, divisor: Floats) -> Floats:
    """An error over a distance from zero; 0 of no error, infinite where there is no distance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(numerator == 0, 0.0, numerator / np.maximum(divisor, 0.0))
    return found


def error_of_root(a: Bound) -> Floats:
    """|sqrt a - sqrt a'| <= |a - a'| / (sqrt a + sqrt a'), and <= sqrt |a - a'|."""
    low = np.maximum(a.low, 0.0)
    both = np.sqrt(low) + np.sqrt(np.maximum(low - a.error, 0.0))
    return np.minimum(np.sqrt(a.error), quotient(a.error, both))


ERF_SLOPE = 2 / math.sqrt(math.pi)

MONOTONE: dict[str, Rule] = {
    "exp": monotone(np.exp, lambda a: product(np.exp(a.high), np.expm1(a.error))),
    "expm1": monotone(np.expm1, lambda a: product(np.exp(a.high), np.expm1(a.error))),
    "log": monotone(np.log, lambda a: quotient(a.error, a.low - a.error), 0.0),
    "log1p": monotone(np.log1p, lambda a: quotient(a.error, 1.0 + a.low - a.error), -1.0),
    "sqrt": monotone(np.sqrt, error_of_root, 0.0),
    "cbrt": monotone(np.cbrt, lambda a: 2 ** (2 / 3) * np.cbrt(a.error)),
    "asinh": monotone(np.arcsinh, slope(1.0)),
    "sinh": monotone(np.sinh, lambda a: product(np.exp(size(a)), np.expm1(a.error))),
    "tanh": monotone(np.tanh, slope(1.0)),
    "erf": monotone(np.vectorize(math.erf, otypes=[np.float64]), slope(ERF_SLOPE)),
    "logistic": monotone(lambda a: 1 / (1 + np.exp(-a)), slope(0.25)),
    "floor": monotone(np.floor, steps),
    "ceil": monotone(np.ceil, steps),
    "round": monotone(np.round, steps),
    "round_away": monotone(lambda a: np.trunc(a + np.copysign(0.5, a)), steps),
}
RULES.update(MONOTONE)


@rule("rsqrt")
def rsqrt(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    (a,) = operands
    if a.least <= 0:
        return UNKNOWN
    error = quotient(0.5 * a.error, distance(a) ** 1.5)
    return made(1 / np.sqrt(a.high), 1 / np.sqrt(a.low), error, (a,))


@rule("sine", "cosine")
def wave(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    (a,) = operands
    most = np.minimum(size(a), 1.0) if node.name == "sine" else np.ones_like(a.low)
    return made(-most, most, np.minimum(a.error, 2.0), (a,))


@rule("gelu", "hard_swish")
def bent(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """At most the rectifier, and little below zero."""
    (a,) = operands
    dip, steepest = (0.17, 1.13) if node.name == "gelu" else (0.375, 1.5)
    low = np.where(a.low >= 0, 0.0, -np.minimum(dip, np.abs(a.low)))
    return made(low, np.maximum(a.high, 0.0), steepest * a.error, (a,))


@rule("pow")
def pow_(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Of a number as exponent only, and of a base below zero whole ones only."""
    a, b = aligned(operands)
    power = b.least
    if b.most != power or b.most_error > 0:
        return UNKNOWN
    whole = power == int(power) if math.isfinite(power) else False
    if (a.least < 0 and not whole) or (power < 0 and not (distance(a) > 0).all()):
        return UNKNOWN
    with np.errstate(all="ignore"):
        ends = np.power(a.low, power), np.power(a.high, power)
        low, high = np.minimum(*ends), np.maximum(*ends)
        inside = (a.low <= 0) & (a.high >= 0)
        low = np.where(inside & (power > 0), np.minimum(low, 0.0), low)
        reach = size(a) + a.error if power >= 1 else distance(a)
        steepest = abs(power) * np.power(reach, power - 1)
        return made(low, high, product(a.error, steepest), (a,))


@rule("cast")
def cast(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Floats keep their numbers; integers lose what is behind the point."""
    (a,) = operands
    if node.element.startswith("f") or not a.is_finite:
        return a
    if node.element == "i1":
        unsure = (a.error > 0) & (distance(a) == 0)
        return made(np.zeros_like(a.low), np.ones_like(a.low), np.where(unsure, 1.0, 0.0), (a,))
    return made(np.trunc(a.low), np.trunc(a.high), steps(a), (a,))


@rule("quantize")
def quantize(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    (a,) = operands
    low, high = (0.0, 255.0) if node.element.startswith("ui") else (-128.0, 127.0)
    zero = float(node.attributes.get("zero", 0))
    found = MONOTONE["round"](node, (a,))
    return made(found.low + zero, found.high + zero, found.error, (found,)).within(low, high)


@rule("reshape", "transpose", "broadcast", "slice", "relayout", "copy", "view")
def move(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Elements in other places: functions of one value, moved alike, stay together."""
    (a,) = operands
    how = tuple(sorted((key, repr(value)) for key, value in node.attributes.items()))
    return a.moved((node.name, a.root, how, node.shape))


@rule("concat", "pad")
def either(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    return hull(x.joined() for x in operands)


@rule("gather", "gather_elements")
def gather(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    return operands[0].joined()


@rule("reduce", "pool")
def reduce(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Of windows that padding cuts, one element at least is left."""
    a, kind, terms = operands[0].joined(), node.attributes["kind"], node.terms
    if kind in ("max", "min"):
        return a
    if kind != "add":
        return UNKNOWN
    fewest = terms if node.name == "reduce" else 1
    low, high = (
        a.low * (terms if a.least < 0 else fewest),
        a.high * (terms if a.most > 0 else fewest),
    )
    return Bound(low, high, a.error * terms)


@rule("matmul", "batch_matmul", "conv")
def products(node: ValueNode, operands: Sequence[Bound]) -> Bound:
    """Sums of products: with a known operand column by column, of its positive and negative
    elements; padding of images is zeros."""
    a, b = (x.joined() for x in operands)
    terms = node.terms
    if node.sums is not None:
        side = node.sums.side
        x, other = (b, a) if side == 0 else (a, b)
        least = min(x.least, 0.0) if node.name == "conv" else x.least
        most = max(x.most, 0.0) if node.name == "conv" else x.most
        above, below = node.sums.above, node.sums.below
        high = product(above, most) + product(below, least)
        low = product(above, least) + product(below, most)
        total = above - below
        error = product(total, x.most_error) + terms * product(
            np.array([x.magnitude + x.most_error]), other.error
        )
        return made(np.array([low.min()]), np.array([high.max()]), np.array([error.max()]), ())
    found = corners(a, b, product)
    low, high = np.minimum.reduce(found), np.maximum.reduce(found)
    if node.name == "conv":
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    error = product(size(a), b.error) + product(size(b), a.error) + product(a.error, b.error)
    return made(terms * low, terms * high, terms * error, ())
