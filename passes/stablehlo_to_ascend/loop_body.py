"""Takes a loop apart: what a step needs of its states, and what can be computed for all steps.

    %g = dynamic_slice %xs, %i ..          a slice of what lies outside
    %p = dot_general %g, %w                for all steps in front of the loop: [steps, ..]
    %q = dot_general %h, %r                inside
    %s = add %p, %q                        inside; takes a slice of what was computed before
    dynamic_update_slice %ys, %s, %i ..    the outputs [steps, ..] of the loop

Values of one step are facts: `KnownInteger` integers, `Fixed` for all steps, `Stepped` along the
first dimension of a value outside, `Pending` where they are made is decided by who needs them,
`Inside`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.elements import to_attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.comparison import PREDICATES
from davinci.passes import builder
from davinci.passes.stablehlo_to_ascend import tensors

Numbers = npt.NDArray[np.int64]


class Unsuitable(Exception):
    """A loop that cannot be taken apart."""


@dataclass(frozen=True, eq=False)
class KnownInteger:
    """An integer of rank 0, by step."""

    numbers: Numbers
    type: ir.RankedTensorType


@dataclass(frozen=True, eq=False)
class Fixed:
    """A value outside of the loop, the same in all steps."""

    value: ir.Value


@dataclass(frozen=True, eq=False)
class Stepped:
    """[steps, ..] outside of the loop; backwards if the first step has the last part."""

    value: ir.Value
    backwards: bool


@dataclass(frozen=True, eq=False)
class Pending:
    """An operation that costs nothing, or less inside: a constant, a broadcast."""

    op: Op
    operands: tuple[Fact, ...]


@dataclass(frozen=True, eq=False)
class Inside:
    """A value of the body."""

    value: ir.Value


Fact = KnownInteger | Fixed | Stepped | Pending | Inside

ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "ceil", "clamp", "compare", "convert", "divide", "exponential"),
        *("exponential_minus_one", "floor", "log", "log_plus_one", "logistic", "maximum"),
        *("minimum", "multiply", "negate", "not", "or", "power", "rsqrt", "select", "sign"),
        *("sqrt", "subtract", "tanh", "xor"),
    )
)
MOVES = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "concatenate", "reshape", "slice")
)
INSIDE = ELEMENTWISE | MOVES | {"stablehlo.constant", "stablehlo.dot_general", "stablehlo.reduce"}
"""What a step may do with its states."""

OF_NUMBERS: dict[str, Callable[..., Numbers]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "negate": np.negative,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "select": np.where,
    "convert": lambda x: x,
    "reshape": lambda x: x,
}


@dataclass
class StepBody:
    """A function of one step, and what of the loop it takes.

    Attributes:
        function: `(states, slices, ..) -> (states, outputs)`, arguments in the order of `roles`.
        roles: of each argument: "state", "fixed", "slice" or "backwards".
        operands: what the loop takes for each argument: of slices all of [steps, ..].
    """

    function: Op
    steps: int
    before: Op
    roles: list[str] = field(default_factory=list)
    operands: list[ir.Value] = field(default_factory=list)
    _arguments: dict[tuple[ir.Value, str], ir.Value] = field(default_factory=dict)
    _outside: dict[Fact, ir.Value] = field(default_factory=dict)
    _inside: dict[Fact, ir.Value] = field(default_factory=dict)

    @property
    def block(self) -> ir.Block:
        found: ir.Block = self.function.regions[0].blocks[0]
        return found

    def argument(self, value: ir.Value, role: str) -> ir.Value:
        """The body's argument that stands for a value outside."""
        key = (value, role)
        if key not in self._arguments:
            kind = value.type
            if role in ("slice", "backwards"):
                kind = ir.RankedTensorType.get(kind.shape[1:], kind.element_type)
            self._arguments[key] = self.block.add_argument(kind, self.function.location)
            self.roles.append(role)
            self.operands.append(value)
        return self._arguments[key]

    def state(self, value: ir.Value) -> Inside:
        """A state that begins as `value`; two that begin alike are two."""
        argument = self.block.add_argument(value.type, self.function.location)
        self.roles.append("state")
        self.operands.append(value)
        return Inside(argument)

    # Facts as values.

    def inside(self, fact: Fact) -> ir.Value:
        """The value of a fact in the body."""
        if isinstance(fact, Inside):
            return fact.value
        if fact not in self._inside:
            self._inside[fact] = self._brought(fact)
        return self._inside[fact]

    def _brought(self, fact: Fact) -> ir.Value:
        if isinstance(fact, Fixed):
            return self.argument(fact.value, "fixed")
        if isinstance(fact, Pending):
            operands = [self.inside(operand) for operand in fact.operands]
            with ir.InsertionPoint(self.block), fact.op.location:
                return cloned(fact.op, operands)
        stepped = self.stepped(fact, backwards=None)
        return self.argument(stepped.value, "backwards" if stepped.backwards else "slice")

    def outside(self, fact: Fact) -> ir.Value | None:
        """The value of a fact that is the same in all steps, in front of the loop; or None."""
        if isinstance(fact, Fixed):
            return fact.value
        if not isinstance(fact, Pending):
            return None
        if fact not in self._outside:
            found = (self.outside(operand) for operand in fact.operands)
            operands = [operand for operand in found if operand is not None]
            if len(operands) < len(fact.operands):
                return None
            with ir.InsertionPoint(self.before), fact.op.location:
                self._outside[fact] = cloned(fact.op, operands)
        return self._outside[fact]

    def stepped(self, fact: Fact, backwards: bool | None) -> Stepped:
        """A fact as a value for all steps in front of the loop.

        Args:
            backwards: its order; None for any.
        """
        with ir.InsertionPoint(self.before), self.before.location:
            if isinstance(fact, Stepped):
                if backwards not in (None, fact.backwards):
                    raise Unsuitable("steps in two orders")
                return fact
            order = bool(backwards)
            if isinstance(fact, KnownInteger):
                numbers = fact.numbers[::-1] if order else fact.numbers
                element = fact.type.element_type
                array = numbers.astype(to_array_dtype(element))
                attr = to_attribute(array, element)
                made = builder.op("stablehlo.constant", [], [attr.type], value=attr).result
                return Stepped(made, order)
            value = self.outside(fact)
            if value is not None:
                shape = [self.steps, *value.type.shape]
                kind = ir.RankedTensorType.get(shape, value.type.element_type)
                dims = ir.DenseI64ArrayAttr.get(list(range(1, len(shape))))
                name = "stablehlo.broadcast_in_dim"
                made = builder.op(name, [value], [kind], broadcast_dimensions=dims).result
                return Stepped(made, order)
        if isinstance(fact, Pending):
            steps = self.for_all_steps(fact.op, list(fact.operands), backwards)
            return self.stepped(steps, backwards)
        raise Unsuitable("a value of the body for all steps")

    def for_all_steps(self, op: Op, facts: list[Fact], backwards: bool | None = None) -> Stepped:
        """What `op` computes in all steps, computed in front of the loop."""
        orders = set().union(*map(orders_of, facts))
        if len(orders) > 1:
            raise Unsuitable("steps in two orders")
        order = orders.pop() if orders else bool(backwards)
        if op.name == "stablehlo.dot_general":
            fixed = self.outside(facts[1])
            if fixed is None:
                raise Unsuitable("a product whose second side is another in each step")
            operands = [self.stepped(facts[0], order).value, fixed]
        else:
            operands = [self.stepped(fact, order).value for fact in facts]
        (result,) = op.results
        kind = ir.RankedTensorType.get([self.steps, *result.type.shape], result.type.element_type)
        attributes = widened_attributes(op, self.steps)
        with ir.InsertionPoint(self.before), op.location:
            return Stepped(builder.op(op.name, operands, [kind], **attributes).result, order)

    def goes_in_front(self, op: Op, facts: Sequence[Fact]) -> bool:
        """Whether `for_all_steps` can compute an operation."""
        if len(set().union(*map(orders_of, facts))) > 1:
            return False
        if any(isinstance(fact, Inside) for fact in facts):
            return False
        if op.name == "stablehlo.dot_general":
            numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
            return not list(numbers.lhs_batching_dimensions) and self.outside(facts[1]) is not None
        return op.name in ELEMENTWISE | MOVES


def orders_of(fact: Fact) -> set[bool]:
    """Whether the parts come backwards that a fact is made of."""
    if isinstance(fact, Pending):
        return set().union(*map(orders_of, fact.operands))
    return {fact.backwards} if isinstance(fact, Stepped) else set()


def cloned(op: Op, operands: Sequence[ir.Value]) -> ir.Value:
    """A copy of an operation of one result on other operands, at the current place."""
    copy = op.clone()
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    return copy.results[0]


def to_array_dtype(element: ir.Type) -> np.dtype[Any]:
    width = ir.IntegerType(element).width
    return np.dtype(np.bool_ if width == 1 else f"i{width // 8}")


def widened_attributes(op: Op, steps: int) -> dict[str, Any]:
    """The attributes of an operation whose operands have one more dimension, the first."""
    found = {name: op.attributes[name] for name in op.attributes}
    array = ir.DenseI64ArrayAttr.get
    name = op.name.removeprefix("stablehlo.")
    if name == "broadcast_in_dim":
        dims = list(ir.DenseI64ArrayAttr(found["broadcast_dimensions"]))
        found["broadcast_dimensions"] = array([0, *(d + 1 for d in dims)])
    elif name == "slice":
        for key, first in (("start_indices", 0), ("limit_indices", steps), ("strides", 1)):
            found[key] = array([first, *ir.DenseI64ArrayAttr(found[key])])
    elif name == "concatenate":
        dim = ir.IntegerAttr(found["dimension"]).value
        found["dimension"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim + 1)
    elif name == "dot_general":
        numbers = stablehlo.DotDimensionNumbers(found["dot_dimension_numbers"])
        left = [dim + 1 for dim in numbers.lhs_contracting_dimensions]
        right = list(numbers.rhs_contracting_dimensions)
        found["dot_dimension_numbers"] = tensors.dimension_numbers([], [], left, right)
    return found


def computed_numbers(op: Op, facts: Sequence[Fact]) -> KnownInteger | None:
    """What an operation on known integers gives, if it can be told."""
    if len(op.results) != 1 or not is_number(op.results[0].type):
        return None
    if not facts or not all(isinstance(fact, KnownInteger) for fact in facts):
        return None
    name = op.name.removeprefix("stablehlo.")
    given = [fact.numbers for fact in facts if isinstance(fact, KnownInteger)]
    if name == "compare":
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        made = PREDICATES[direction](*given)
    elif name in OF_NUMBERS:
        made = OF_NUMBERS[name](*given)
    else:
        return None
    return KnownInteger(np.asarray(made).astype(np.int64), op.results[0].type)


def is_number(kind: ir.RankedTensorType) -> bool:
    """Whether values of a type are integers of rank 0, or flags."""
    return kind.rank == 0 and isinstance(kind.element_type, ir.IntegerType)


def of_one_dimension(starts: Sequence[Fact], sizes: Sequence[int], shape: Sequence[int]) -> int:
    """The dimension along which parts of `sizes` move by one each step, through all of an array.

    Raises:
        Unsuitable: it is otherwise.
    """
    if not all(isinstance(start, KnownInteger) for start in starts):
        raise Unsuitable("a part at a place that depends on values")
    limits = [n - size for n, size in zip(shape, sizes, strict=True)]
    placed = [
        np.clip(start.numbers, 0, limit)
        for start, limit in zip(starts, limits, strict=True)
        if isinstance(start, KnownInteger)
    ]
    moving = [dim for dim, numbers in enumerate(placed) if np.ptp(numbers)]
    if len(moving) != 1:
        raise Unsuitable("parts that do not move along one dimension")
    (dim,) = moving
    whole = all(size == n for i, (size, n) in enumerate(zip(sizes, shape, strict=True)) if i != dim)
    if sizes[dim] != 1 or not whole:
        raise Unsuitable("parts of parts")
    return dim


def order_of(start: Fact, size: int) -> bool:
    """Whether parts at these places come backwards.

    Raises:
        Unsuitable: they are not all of an array of `size` one by one.
    """
    assert isinstance(start, KnownInteger), "`moving` leaves dimensions with known starts only"
    forwards = np.arange(size)
    if len(start.numbers) == size and np.array_equal(start.numbers, forwards):
        return False
    if len(start.numbers) == size and np.array_equal(start.numbers, forwards[::-1]):
        return True
    raise Unsuitable("parts that are not all of an array, one by one")
