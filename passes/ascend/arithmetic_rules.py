"""Rules of `ascend-simplify-arithmetic`: what an operator on numbers is replaced by.

A rule takes an operation and a builder in front of it, and returns the value that takes the place
of the result, or None where it does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS
from davinci.operators.arithmetic import is_power_of_two
from davinci.operators.tensors import is_float, is_integer
from davinci.passes.ascend.known_numbers import (
    below,
    combined,
    is_known,
    known_array,
    known_number,
    operands_of,
    rebuilt,
)
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    defining_op,
    is_f32,
    read_once,
    users_of,
)

Emit = Callable[[Op, TensorOps], ir.Value | None]


@dataclass(frozen=True)
class ArithmeticRule:
    """A rule for operators of one name.

    Attributes:
        rewrite: its name in the catalogue.
        operator: the operator it replaces.
        rounds: whether it changes how a result is rounded.
        emit: builds what takes its place.
    """

    rewrite: str
    operator: str
    rounds: bool
    emit: Emit


RULES: list[ArithmeticRule] = []
"""In the order in which they are tried."""


def rule(rewrite: str, *operators: str, rounds: bool = False) -> Callable[[Emit], Emit]:
    """Registers a rule for operators of `ascend`; one that rounds is for f32 only."""

    def register(emit: Emit) -> Emit:
        RULES.extend(ArithmeticRule(rewrite, f"ascend.{x}", rounds, emit) for x in operators)
        return emit

    return register


NEUTRAL = {"ascend.add": 0.0, "ascend.sub": 0.0, "ascend.mul": 1.0, "ascend.div": 1.0}
IDEMPOTENT = ("relu", "abs", "floor", "ceil", "round", "sign")


@rule("drop-identities", "add", "sub", "mul", "div")
def drop_neutral(op: Op, ops: TensorOps) -> ir.Value | None:
    """x + 0, x - 0, x * 1, x / 1 -> x."""
    for given, number in with_known(op):
        if known_number(number) == NEUTRAL[op.name]:
            return given
    return None


@rule("drop-identities", "neg", *IDEMPOTENT)
def drop_repeated(op: Op, ops: TensorOps) -> ir.Value | None:
    """-(-x) -> x; relu(relu(x)) -> relu(x); |-x| -> |x|."""
    inner = made_by(op.operands[0], op.name)
    if inner is not None:
        return inner.operands[0] if op.name == "ascend.neg" else inner.results[0]
    inner = made_by(op.operands[0], "ascend.neg") if op.name == "ascend.abs" else None
    return None if inner is None else ops.unary("abs", inner.operands[0])


@rule("drop-identities", "add", "sub")
def drop_negation(op: Op, ops: TensorOps) -> ir.Value | None:
    """x + -y, -y + x -> x - y; x - -y -> x + y."""
    first, second = op.operands
    pairs = [(first, second)] if op.name == "ascend.sub" else [(first, second), (second, first)]
    for given, other in pairs:
        negated = made_by(other, "ascend.neg")
        if negated is not None and read_once(other):
            name = "add" if op.name == "ascend.sub" else "sub"
            return ops.binary(name, given, negated.operands[0])
    return None


@rule("drop-identities", "min", "max")
def drop_limit(op: Op, ops: TensorOps) -> ir.Value | None:
    """min(min(x, 6), 4) -> min(x, 4)."""
    for given, limit in with_known(op):
        inner = made_by(given, op.name)
        for source, earlier in with_known(inner) if inner is not None else ():
            numbers = [x for x in map(known_number, (limit, earlier)) if x is not None]
            found = tensor_of(op.results[0].type)
            if len(numbers) == 2 and is_float(found.element) and not any(map(math.isnan, numbers)):
                name = op.name.removeprefix("ascend.")
                number = min(numbers) if name == "min" else max(numbers)
                return ops.binary(name, source, ops.full(found.shape, found.element, number))
    return None


@rule("drop-identities", "select")
def drop_choice(op: Op, ops: TensorOps) -> ir.Value | None:
    """select(flags, x, x) -> x."""
    _, first, second = op.operands
    return first if first == second else None


@rule("floored-remainders", "select")
def floored_remainder(op: Op, ops: TensorOps) -> ir.Value | None:
    """select(r < 0 != y < 0 and r != 0, r + y, r) -> remainder(x, y) {down}, with r = remainder(x,
    y): as Python's % is spelt."""
    flags, shifted, rest = op.operands
    inner, added, both = (
        made_by(value, f"ascend.{name}")
        for value, name in ((rest, "remainder"), (shifted, "add"), (flags, "and"))
    )
    if inner is None or added is None or both is None or attribute(inner, "down"):
        return None
    found = tensor_of(rest.type)
    dividend, divisor = inner.operands
    if found.element not in OPERATORS["remainder"].types or rest not in added.operands:
        return None
    if divisor not in added.operands:
        return None
    for differ, left in (both.operands, reversed(both.operands)):
        if is_compared_with_zero(left, "NE", rest) and have_other_signs(differ, rest, divisor):
            made: ir.Value = ops.emit("remainder", [dividend, divisor], found, down=True)
            return made
    return None


@rule("reciprocal-roots", "div", rounds=True)
def divide_by_root(op: Op, ops: TensorOps) -> ir.Value | None:
    """x / sqrt(y) -> x * rsqrt(y), where nothing else needs the root; 1 / sqrt(y) -> rsqrt(y)."""
    dividend, divisor = op.operands
    value, chain = below(divisor, lambda inner: read_once(inner.results[0]))
    root = made_by(value, "ascend.sqrt")
    if root is None or not read_once(value):
        return None
    inverse = rebuilt(chain, ops.unary("rsqrt", root.operands[0]), ops)
    return inverse if known_number(dividend) == 1 else ops.binary("mul", dividend, inverse)


@rule("divisions-to-products", "div", rounds=True)
def divide_by_known(op: Op, ops: TensorOps) -> ir.Value | None:
    """x / c -> x * (1 / c), unless c is a power of two, of which the kernel does the same."""
    dividend, divisor = op.operands
    if is_known(dividend) or not is_known(divisor):
        return None
    number = known_number(divisor)
    if number is not None and is_power_of_two(number):
        return None
    found = tensor_of(divisor.type)
    inverse = combined("div", ops.full(found.shape, found.element, 1.0), divisor, ops)
    return None if inverse is None else ops.binary("mul", dividend, inverse)


@rule("powers", "pow", rounds=True)
def known_power(op: Op, ops: TensorOps) -> ir.Value | None:
    """x^1.5 -> x sqrt(x), x^-0.5 -> rsqrt(x) of x that is not negative (pow(-inf, 1.5) is inf, and
    its root is none); c^x -> exp(x ln c).
    """
    base, exponent = op.operands
    number, power = known_number(base), known_number(exponent)
    if number is not None and power is None and 0 < number < math.inf and number != 1:
        found = tensor_of(exponent.type)
        factor = ops.full(found.shape, found.element, math.log(number))
        return ops.unary("exp", ops.binary("mul", exponent, factor))
    if power is None or number is not None or not is_positive(base):
        return None
    if power == -0.5:
        return ops.unary("rsqrt", base)
    if power not in (0.25, 0.75, 1.5, 2.5, 3.5):
        return None
    root = ops.unary("sqrt", base)
    made = ops.unary("sqrt", root) if power < 1 else root
    if power == 0.75:
        made = ops.binary("mul", root, made)
    for _ in range(int(power)):
        made = ops.binary("mul", made, base)
    return made


@rule("fold-scales", "mul", "div", rounds=True)
def scale_of_scale(op: Op, ops: TensorOps) -> ir.Value | None:
    """(x * c) * d -> x * (c d), where either may be a division."""
    chain = numbers_in_turn(op, "ascend.mul", "ascend.div")
    if chain is None:
        return None
    inner, source, first, second = chain
    divides = inner.name == "ascend.div", op.name == "ascend.div"
    if divides == (True, False):
        first, second = second, first
    number = combined("mul" if divides[0] == divides[1] else "div", first, second, ops)
    name = "div" if all(divides) else "mul"
    return None if number is None else ops.binary(name, source, number)


@rule("fold-scales", "add", "sub", rounds=True)
def sum_of_sum(op: Op, ops: TensorOps) -> ir.Value | None:
    """(x + c) + d -> x + (c + d), where either may be a difference."""
    chain = numbers_in_turn(op, "ascend.add", "ascend.sub")
    if chain is None:
        return None
    inner, source, first, second = chain
    number = combined("add" if inner.name == op.name else "sub", second, first, ops)
    if number is None or rounds_off(first, second):
        return None
    return ops.binary(op.name.removeprefix("ascend."), source, number)


@rule("fold-scales", "mul", rounds=True)
def scale_of_sum(op: Op, ops: TensorOps) -> ir.Value | None:
    """(x + b) * c -> x * c + b c, where x is a scaled value or a number is added next, so that of
    three or more operations two are left."""
    chain = numbers_in_turn(op, "ascend.add", "ascend.sub")
    if chain is None:
        return None
    inner, source, first, second = chain
    if is_of_integers(source) or not (is_scaled(source) or is_shifted(op)):
        return None
    offset = combined("mul", first, second, ops)
    if offset is None:
        return None
    name = inner.name.removeprefix("ascend.")
    return ops.binary(name, ops.binary("mul", source, second), offset)


@rule("fold-scales", "mul", rounds=True)
def scales_that_cancel(op: Op, ops: TensorOps) -> ir.Value | None:
    """(x * c) * (y / c) -> x * y, and (x * (y * c)) / c -> x * y, of numbers that are powers of
    two."""
    outer = operands_of(op)
    inner = made_by(outer[0], "ascend.mul") if outer is not None else op
    if inner is None or (inner is not op and not read_once(inner.results[0])):
        return None
    (first, one), (second, other) = (apart(value) for value in inner.operands)
    if one is None and other is None:
        return None
    if outer is None:
        scale = (one or 0.0) * (other or 0.0)
    else:
        scale = (one or 1.0) * (other or 1.0) * (known_number(outer[1]) or 0.0)
    return ops.binary("mul", first, second) if scale == 1 else None


def apart(value: ir.Value) -> tuple[ir.Value, float | None]:
    """What a value that is needed here only is a power of two times, and that; else the value."""
    op = made_by(value, "ascend.mul")
    known = operands_of(op) if op is not None and read_once(value) else None
    number = None if known is None else known_number(known[1])
    if known is None or number is None or not is_power_of_two(number):
        return value, None
    return known[0], number


@rule("tanh-to-logistic", "add", rounds=True)
def shifted_tangent(op: Op, ops: TensorOps) -> ir.Value | None:
    """1 + tanh(x) -> logistic(x * 2) * 2, which takes a third of the instructions and is exact
    where tanh is near -1."""
    for given, number in with_known(op):
        tangent = made_by(given, "ascend.tanh")
        if tangent is not None and read_once(given) and known_number(number) == 1:
            found = tensor_of(given.type)
            two = ops.full(found.shape, found.element, 2.0)
            doubled = ops.binary("mul", tangent.operands[0], two)
            return ops.binary("mul", ops.unary("logistic", doubled), two)
    return None


def numbers_in_turn(
    op: Op, *names: str
) -> tuple[ir.Operation, ir.Value, ir.Value, ir.Value] | None:
    """Two operators with a known operand each, one behind the other, of which the first has one of
    these names and nothing else reads it: the first one, its unknown operand, and what is known of
    the first and of the second. None where there are no such two."""
    found = operands_of(op)
    inner = made_by(found[0], *names) if found is not None else None
    known = operands_of(inner) if inner is not None and read_once(inner.results[0]) else None
    if found is None or inner is None or known is None:
        return None
    return inner, *known, found[1]


def with_known(op: Op) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The operand of an operator of two that is not known beside the one that is."""
    if op.name in ("ascend.min", "ascend.max"):
        first, second = op.operands
        yield from ((a, b) for a, b in ((first, second), (second, first)) if is_known(b))
    elif (found := operands_of(op)) is not None:
        yield found


def have_other_signs(flag: ir.Value, first: ir.Value, second: ir.Value) -> bool:
    """Whether a flag is true exactly where one of two values is less than zero and the other is
    not; signs of known numbers are compared now."""
    if is_compared_with_zero(flag, "LT", first):
        number = known_number(second)
        return number is not None and number >= 0
    unlike = made_by(flag, "ascend.compare", "ascend.xor")
    if unlike is None or (
        unlike.name == "ascend.compare" and attribute(unlike, "predicate") != "NE"
    ):
        return False
    return any(
        is_compared_with_zero(a, "LT", first) and is_compared_with_zero(b, "LT", second)
        for a, b in (unlike.operands, reversed(unlike.operands))
    )


def is_compared_with_zero(flag: ir.Value, predicate: str, value: ir.Value) -> bool:
    """Whether a flag says that a value is less than zero, or not zero, as the predicate has it."""
    number, known = known_number(value), known_number(flag)
    if number is not None and known is not None:
        return bool(known) == (number < 0 if predicate == "LT" else number != 0)
    op = made_by(flag, "ascend.compare")
    return (
        op is not None
        and attribute(op, "predicate") == predicate
        and op.operands[0] == value
        and known_number(op.operands[1]) == 0
    )


def made_by(value: ir.Value, *names: str) -> ir.Operation | None:
    """The operation that makes a value if it has one of these names, else None."""
    op = defining_op(value)
    return op.operation if op is not None and op.name in names else None


LARGEST_SHIFT = 2.0**12
"""Larger numbers may have been added to round off what lies below their last digit, and taken off
again: they are left."""


def rounds_off(*numbers: ir.Value) -> bool:
    """Whether one of these known numbers may be added for what it does to digits."""
    arrays = [known_array(value) for value in numbers]
    return any(x is None or float(np.abs(x).max(initial=0)) > LARGEST_SHIFT for x in arrays)


def is_of_integers(value: ir.Value) -> bool:
    """Whether a value is one of integers, with a scale or without: sums and bytes of quantized
    layers, which are exact until they are scaled."""
    while (op := made_by(value, "ascend.mul", "ascend.div", "ascend.reshape")) is not None:
        value = op.operands[0]
    cast = made_by(value, "ascend.cast", "ascend.dequantize")
    return cast is not None and is_integer(tensor_of(cast.operands[0].type).element)


def is_scaled(value: ir.Value) -> bool:
    """Whether a value is another times a number, and needed here only."""
    op = made_by(value, "ascend.mul", "ascend.div")
    return op is not None and read_once(value) and operands_of(op) is not None


def is_shifted(op: Op) -> bool:
    """Whether all that is done to a result is that a number is added."""
    users = users_of(op)
    return (
        len(users) == 1
        and users[0].name in ("ascend.add", "ascend.sub")
        and operands_of(users[0]) is not None
    )


def is_positive(value: ir.Value) -> bool:
    """Whether a value is known to be no less than 0, and no -0."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "ascend.add":
        first, second = op.operands
        return (is_positive(first) or is_positive_number(first)) and (
            is_positive(second) or is_positive_number(second)
        )
    if op.name == "ascend.mul":
        first, second = op.operands
        ways = ((first, second), (second, first))
        return first == second or any(is_positive(a) and is_positive_number(b) for a, b in ways)
    if op.name in ("ascend.exp", "ascend.abs", "ascend.logistic"):
        return True
    if op.name == "ascend.max":
        return any(is_positive_number(x) for x in op.operands)
    if op.name == "ascend.div":
        return is_positive(op.operands[0]) and is_positive_number(op.operands[1])
    if op.name == "ascend.reduce":
        return attribute(op, "kind") in ("add", "max") and is_positive(op.operands[0])
    if op.name == "ascend.pad":
        around = known_number(op.operands[1])
        fits = around is not None and math.copysign(1, around) > 0
        return fits and is_positive(op.operands[0])
    moves = ("ascend.reshape", "ascend.broadcast", "ascend.slice", "ascend.transpose")
    return op.name in moves and is_positive(op.operands[0])


def is_positive_number(value: ir.Value) -> bool:
    number = known_number(value)
    return number is not None and number > 0


def may_round(op: Op) -> bool:
    """Whether a rule that rounds otherwise may replace an operation: those of f32."""
    return all(is_f32(value) for value in (*op.operands, *op.results))
