"""What a comparator of `stablehlo.sort` says of the order of the operands.

It compares the two elements of an operand, less or greater, as they are or with all zeros and all
NaN alike (as JAX writes it), and where they are equal those of another operand. NaN, of which a
comparison of floats says nothing, are taken for larger than all others.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from davinci import elements
from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import Op, ir
from davinci.operators.sorting import LARGEST, SIGNED, TOTAL
from davinci.operators.tensors import is_float, width_of
from davinci.passes.ascend.tensor_ops import full_value


@dataclass(frozen=True)
class Comparator:
    """The order into which a comparator of `stablehlo.sort` brings one of the operands.

    Attributes:
        order: of its elements, as in `davinci.operators.sorting`.
        operand: its number.
        unsigned: whether its elements are integers that are compared without a sign.
    """

    order: str
    descending: bool
    operand: int = 0
    unsigned: bool = False


def comparators_of(region: ir.Region) -> list[Comparator]:
    """The orders in which a comparator looks at the operands, one where all before it are equal;
    none if it is another function."""
    block = region.blocks[0]
    return orders_of(block.operations[len(block.operations) - 1].operands[0], block)


def orders_of(value: ir.Value, block: ir.Block) -> list[Comparator]:
    """The orders that a truth value in a comparator stands for; none if it is another function.

    A truth value is one comparison, or combines that of the first operand with those of the rest:

        first or (equal and rest)
        equal ? rest : first
    """
    if is_argument(value):
        return []
    op = value.owner
    if op.name == "stablehlo.compare":
        found = comparison_of(op, block)
        return [found.by] if found is not None and found.direction in ("LT", "GT") else []
    ways: list[tuple[ir.Value, ir.Value, ir.Value]] = []
    if op.name == "stablehlo.select":
        equal, rest, first = op.operands
        ways.append((first, equal, rest))
    for first, both in itertools.permutations(op.operands) if op.name == "stablehlo.or" else ():
        if not is_argument(both) and both.owner.name == "stablehlo.and":
            ways += [(first, *pair) for pair in itertools.permutations(both.owner.operands)]
    for first, equal, rest in ways:
        before, after = orders_of(first, block), orders_of(rest, block)
        if len(before) == 1 and after and is_equality(equal, before[0], block):
            return [*before, *after]
    return []


def is_equality(value: ir.Value, by: Comparator, block: ir.Block) -> bool:
    """Whether a truth value in a comparator says that neither of two elements comes first."""
    if is_argument(value) or value.owner.name != "stablehlo.compare":
        return False
    found = comparison_of(value.owner, block)
    alike = found is not None and (found.by.operand, found.by.order) == (by.operand, by.order)
    return alike and found is not None and found.direction == "EQ"


@dataclass(frozen=True)
class ComparedPair:
    """A comparison of the two elements of an operand, as one of the first with the second."""

    by: Comparator
    direction: str


def comparison_of(op: Op, block: ir.Block) -> ComparedPair | None:
    """The comparison that an operation in a comparator makes; None if it makes another one."""
    seen = [stripped(value) for value in op.operands]
    places = {argument: number for number, argument in enumerate(block.arguments)}
    numbers = [places[each.value] for each in seen if each.value in places]
    alike, moved = ({getattr(each, name) for each in seen} for name in ("alike", "moved"))
    if len(numbers) < 2 or abs(numbers[0] - numbers[1]) != 1 or len(alike) + len(moved) > 2:
        return None
    operand, element = min(numbers) // 2, tensor_of(seen[0].value.type).element
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    kind = str(op.attributes.get("compare_type", ""))
    if min(numbers) % 2 or (element.startswith("ui") and element != "ui8"):
        return None
    order = SIGNED
    if is_float(element):
        order = TOTAL if "TOTALORDER" in kind and not seen[0].alike else LARGEST
    elif "UNSIGNED" in kind and element not in ("ui8", "i1"):
        return None
    descending = (direction == "GT") != (numbers[0] > numbers[1])
    return ComparedPair(Comparator(order, descending, operand, seen[0].moved), direction)


def is_argument(value: ir.Value) -> bool:
    """Whether a value is an argument of the comparator, not what an operation computes."""
    return isinstance(value.owner, ir.Block)


@dataclass(frozen=True)
class Stripped:
    """A value in a comparator before what was done to compare it.

    Attributes:
        alike: whether all zeros and all NaN of it were made alike.
        moved: whether half of the range was added to integers without a sign.
    """

    value: ir.Value
    alike: bool = False
    moved: bool = False


def stripped(value: ir.Value) -> Stripped:
    """A value before it was made comparable."""
    if not is_argument(value) and value.owner.name == "stablehlo.add":
        a, b = value.owner.operands
        half = -(1 << (width_of(tensor_of(value.type).element) - 1))
        return Stripped(a, moved=True) if constant_of(b) == half else Stripped(value)
    alike = False
    while not is_argument(value) and value.owner.name == "stablehlo.select":
        choice, x, y = value.owner.operands
        if is_argument(choice) or choice.owner.name != "stablehlo.compare":
            break
        compare = choice.owner
        number = constant_of(x)
        direction = str(compare.attributes["comparison_direction"])
        a, b = compare.operands
        if number is None or stripped(y).value != a:
            break
        zeros = number == 0 and "EQ" in direction and constant_of(b) == 0
        if not zeros and not (math.isnan(number) and "NE" in direction and a == b):
            break
        value, alike = y, True
    return Stripped(value, alike)


def constant_of(value: ir.Value) -> float | None:
    """The number that a constant is, converted already or not."""
    if is_argument(value):
        return None
    if value.owner.name == "stablehlo.constant":
        return float(elements.to_array(value.owner.attributes["value"]).ravel()[0])
    number = full_value(value)
    return None if number is None else float(number)
