"""stablehlo-doubles-as-integers: moves and orders f64 as integers of the same bits.

before:
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>
    %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<3x2xf64>) -> tensor<1x2xf64>
after:
    %a = stablehlo.bitcast_convert %x : (tensor<2x3xf64>) -> tensor<2x3xi64>
    %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xi64>) -> tensor<3x2xi64>
    %b = stablehlo.slice %0 [0:1, 0:2] : (tensor<3x2xi64>) -> tensor<1x2xi64>
    %1 = stablehlo.bitcast_convert %b : (tensor<1x2xi64>) -> tensor<1x2xf64>

The vector unit has no f64, but integers of 64 bits as pairs of words. Bitcasts between the two are
views. What asks for an order (comparisons, extremes, sorts) takes integers that are in the order of
the numbers (`double_order`). Sums, differences, products, quotients, roots, whole numbers and
conversions (`double_conversions`) are operators on bits (`davinci.operators.doubles`,
`double_rounding`), products of matrices are all terms, added up (`double_products`). Other
operations that compute with f64, and those of few numbers, stay those of
the scalar unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.base import attribute
from davinci.elements import to_array
from davinci.mlir import Op, ir
from davinci.operators.sorting import TOTAL
from davinci.passes import builder
from davinci.passes.ascend.tensor_ops import tensor_functions
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import double_order as order
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.arg_reduce import chooses
from davinci.passes.stablehlo_to_ascend.comparators import Comparator, comparators_of
from davinci.passes.stablehlo_to_ascend.double_conversions import (
    as_integers,
    bits_from,
    halved,
    is_double,
    operator,
    other_of,
)
from davinci.passes.stablehlo_to_ascend.double_products import product_of
from davinci.passes.stablehlo_to_ascend.elementwise_regions import overwrites
from davinci.passes.stablehlo_to_ascend.reductions import kind_of_body
from davinci.passes.stablehlo_to_ascend.stablehlo_legalize_element_types import MOVES
from davinci.passes.stablehlo_to_ascend.stablehlo_sign_integers import order_of_body

ORDERED = frozenset(
    f"stablehlo.{name}"
    for name in ("abs", "clamp", "compare", "is_finite", "maximum", "minimum", "negate", "sign")
)
"""Operations that follow from the order of their operands."""

COMPUTED = {
    "stablehlo.add": "double_add",
    "stablehlo.subtract": "double_add",
    "stablehlo.multiply": "double_mul",
    "stablehlo.divide": "double_div",
    "stablehlo.sqrt": "double_sqrt",
    "stablehlo.rsqrt": "double_sqrt",
    "stablehlo.ceil": "double_floor",
    "stablehlo.floor": "double_floor",
    "stablehlo.round_nearest_afz": "double_round",
    "stablehlo.round_nearest_even": "double_round_even",
}
"""Operators of the bits of f64."""

COMBINED = {"add": "double_add", "mul": "double_mul"}
"""Operators by which reductions combine two numbers, by the kind of the reduction."""

STEP = {"double_add": "add", "double_mul": "multiply"}
"""The operations of StableHLO that they stand for."""

NEUTRAL = {"double_add": 0.0, "double_mul": 1.0}
"""Numbers with which these leave others as they are, -0 apart."""

ASKING = ORDERED | {*COMPUTED} | {"stablehlo.convert", "stablehlo.reduce", "stablehlo.sort"}
"""Operations that follow from the bits of their operands, as far as these are many."""

FEW_ORDERED = 64
"""Numbers that the scalar unit compares in the time that a tile takes the vector unit, about 4,400
cycles on the 910 at 75 a number."""

FEW = {"stablehlo.sort": 8, "stablehlo.multiply": 160, "stablehlo.divide": 210}
FEW |= dict.fromkeys(["stablehlo.add", "stablehlo.subtract"], 112)
FEW |= dict.fromkeys(["stablehlo.sqrt", "stablehlo.rsqrt"], 210)
"""Numbers up to which the scalar unit is faster, for operations where these are not FEW_ORDERED: at
111 cycles a sum, product or quotient on the 910, where a tile of sums takes 11,900, one of products
18,600 and one of quotients 23,600."""


@register_pass
@dataclass(frozen=True)
class StablehloDoublesAsIntegersPass(Pass):
    """Move and order f64 as integers of 64 bits."""

    NAME = "stablehlo-doubles-as-integers"

    def run(self, op: Op) -> None:
        for function in tensor_functions(op):
            rewriting = Doubles()
            for block in function.regions[0].blocks:
                for view in list(block.operations):
                    with function.context:
                        rewriting.rewrite(view.operation)


class Doubles:
    """Rewrites the operations of a function, but not those in regions, which loops of the scalar
    unit come from.

    Attributes:
        bits: of values of f64 met so far, as integers.
    """

    def __init__(self) -> None:
        self.bits: dict[ir.Value, ir.Value] = {}

    def rewrite(self, op: Op) -> None:
        if not any(is_double(value.type) for value in (*op.operands, *op.results)):
            return
        with op.location, ir.InsertionPoint(op):
            if op.name in MOVES or (op.name == "stablehlo.scatter" and overwrites(op.regions[0])):
                self._move(op)
            elif op.name in ASKING and most_elements(op) > FEW.get(op.name, FEW_ORDERED):
                self._order(op)
            elif op.name == "stablehlo.dot_general" and is_double(op.results[0].type):
                self._product(op)
            elif op.name == "stablehlo.scatter" and len(op.results) == 1 and order_of_body(op):
                self._extremes_at(op)

    def _order(self, op: Op) -> None:
        if op.name in ORDERED:
            self._ordered(op)
        elif op.name == "stablehlo.sort":
            self._sort(op)
        elif op.name == "stablehlo.convert":
            self._converted(op)
        elif op.name in COMPUTED:
            self._computed(op)
        elif len(op.results) == 2:
            self._extreme_and_place(op)
        elif len(op.results) == 1 and order_of_body(op):
            self._reduce(op)
        elif (kind := kind_of_body(op)) in COMBINED:
            self._combined(op, COMBINED[kind])

    def _computed(self, op: Op) -> None:
        """A sum, difference, product, quotient, root or whole number."""
        bits = [self.bits_of(value) for value in op.operands]
        kind = bits[0].type
        if op.name in ("stablehlo.subtract", "stablehlo.ceil"):
            bits[-1] = order.negated(bits[-1])
        made = operator(COMPUTED[op.name], bits, kind)
        if op.name == "stablehlo.rsqrt":
            one = t.full(kind, order.ONE)
            made = operator(COMPUTED["stablehlo.divide"], [one, made], kind)
        if op.name == "stablehlo.ceil":
            made = order.negated(made)
        self._replace(op, made)

    def _product(self, op: Op) -> None:
        """A product of matrices, if both are of f64."""
        if all(is_double(value.type) for value in op.operands):
            made = product_of(op, *map(self.bits_of, op.operands))
            if made is not None:
                self._replace(op, made)

    def _converted(self, op: Op) -> None:
        """Numbers as f64, or f64 as others."""
        source, kind = op.operands[0], op.results[0].type
        double = is_double(source.type)
        made = other_of(self.bits_of(source), kind) if double else bits_from(source)
        if made is not None:
            self._replace(op, made)

    def _replace(self, op: Op, bits: ir.Value) -> None:
        """Puts a value, or what has the bits of its f64, in place of an operation."""
        self._stand_in(op.results[0], bits)
        op.operation.erase()

    def _stand_in(self, old: ir.Value, new: ir.Value) -> None:
        """Lets a value stand for another one: itself, or the f64 whose bits it is."""
        found = new
        if old.type != new.type:
            found = t.op("bitcast_convert", [new], old.type)
            self.bits[found] = new
        old.replace_all_uses_with(found)

    def _ordered(self, op: Op) -> None:
        """An elementwise operation."""
        name = op.name.removeprefix("stablehlo.")
        bits = [self.bits_of(value) for value in op.operands]
        if name == "compare":
            direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
            if "TOTALORDER" in str(op.attributes.get("compare_type", "")):
                made = t.compare(direction, *map(order.in_total_order, bits))
            else:
                made = order.compared(direction, *bits)
        elif name == "is_finite":
            made = order.related("LT", order.magnitude(bits[0]), order.INFINITY)
        else:
            self._replace(op, self._chosen(name, bits))
            return
        self._replace(op, made)

    def _chosen(self, name: str, bits: list[ir.Value]) -> ir.Value:
        """The bits of a result that is a number."""
        if name == "abs":
            return order.magnitude(bits[0])
        if name == "negate":
            return order.negated(bits[0])
        if name == "sign":
            return order.sign(bits[0])
        if name == "clamp":
            low, x, high = (spread(each, bits[1].type) for each in bits)
            return order.extreme("minimum", order.extreme("maximum", x, low), high)
        return order.extreme(name, *bits)

    def _reduce(self, op: Op) -> None:
        """The extreme along dimensions."""
        self._of_keys(op, range(len(op.operands)))

    def _extremes_at(self, op: Op) -> None:
        """A scatter that leaves the greater or lesser numbers."""
        self._of_keys(op, (0, 2))

    def _of_keys(self, op: Op, places: Sequence[int]) -> None:
        """An operation whose function chooses the greater or lesser number, of integers in order in
        place of the operands at `places`."""
        name = order_of_body(op).removeprefix("stablehlo.")
        keys = {i: order.in_extreme_order(self.bits_of(op.operands[i]), name) for i in places}
        chosen = op.operation.clone(ir.InsertionPoint(op))
        for place, key in keys.items():
            chosen.operands[place] = key
        block = chosen.regions[0].blocks[0]
        inner = block.operations[0].results
        for value in (*chosen.results, *block.arguments, *inner):
            value.set_type(as_integers(value.type))
        self._replace(op, order.from_total_order(chosen.results[0]))

    def _extreme_and_place(self, op: Op) -> None:
        """The largest or smallest values along a dimension and their places, of integers in order:
        zeros are alike, and NaN is the extreme."""
        x, places, start, _ = op.operands
        dims = attribute(op, "dimensions")
        if not is_double(x.type) or len(dims) != 1 or not counts_along(places, dims[0]):
            return
        stored = np.dtype(np.float64)
        begun = {-math.inf: "max", math.inf: "min"}
        numbers = [known_number(value) for value in op.operands[2:]]
        if numbers[0] not in begun or numbers[1] != 0:
            return
        kind = begun[numbers[0]]
        if not chooses(op, kind, stored, stored):
            return
        of_nan, least = (order.MOST, order.LEAST) if kind == "max" else (order.LEAST, order.MOST)
        keys = order.in_value_order(self.bits_of(x), of_nan)
        begin = t.full(as_integers(start.type), least)
        given = [keys, places, begin, op.operands[3]]
        made = ir.Operation.create(
            "stablehlo.reduce",
            results=[as_integers(op.results[0].type), op.results[1].type],
            operands=given,
            attributes={"dimensions": op.attributes["dimensions"]},
            regions=1,
        )
        scalars = [value.type for value in given[2:]] * 2
        block = made.regions[0].blocks.append(*scalars, arg_locs=[op.location] * len(scalars))
        with ir.InsertionPoint(block):
            a, i, b, j = block.arguments
            first = t.compare("LT", i, j)
            better = t.compare("GT" if kind == "max" else "LT", a, b)
            same = t.compare("EQ", a, b)
            chosen = order.combined("or", better, order.combined("and", same, first))
            builder.op("stablehlo.return", [t.select(chosen, a, b), t.select(chosen, i, j)])
        value, place = made.results
        op.results[1].replace_all_uses_with(place)
        self._replace(op, order.from_value_order(value, of_nan))

    def _combined(self, op: Op, name: str) -> None:
        """The sum or product along dimensions, of halves until one number is left, and then with
        what it begins with; by the scalar unit where that takes less time than so many steps."""
        shape, dims = op.operands[0].type.shape, attribute(op, "dimensions")
        number = known_number(op.operands[1])
        steps = sum((shape[dim] - 1).bit_length() for dim in dims) + (number != NEUTRAL[name])
        if math.prod(shape) <= steps * FEW[f"stablehlo.{STEP[name]}"]:
            return
        bits, start = (self.bits_of(value) for value in op.operands)
        for dim in dims:
            bits = halved(name, bits, dim)
        kind = as_integers(op.results[0].type)
        bits = t.op("reshape", [bits], kind)
        if number != NEUTRAL[name]:
            bits = operator(name, [spread(start, kind), bits], kind)
        elif number == 0 and not math.copysign(1, number) < 0:
            negative_zero = order.related("EQ", bits, order.LEAST)  # which 0 + -0 is not
            bits = t.select(negative_zero, t.full(kind, 0), bits)
        self._replace(op, bits)

    def _sort(self, op: Op) -> None:
        """Sorts the operands by integers in front of them, which are in the order in which the
        comparator looks at them."""
        arguments = op.regions[0].blocks[0].arguments
        if not any(list(each.uses) for each in arguments if is_double(each.type)):
            self._move(op)
            return
        compared = comparators_of(op.regions[0])
        if not compared or any(is_other_float(op.operands[each.operand]) for each in compared):
            return
        keys = []
        for each in compared:
            key = op.operands[each.operand]
            if is_double(key.type):
                key = self._key(key, each.order)
            keys.append(key)
        values = [self.bits_of(v) if is_double(v.type) else v for v in op.operands]
        given = [*keys, *values]
        made = ir.Operation.create(
            "stablehlo.sort",
            results=[value.type for value in given],
            operands=given,
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=1,
        )
        scalars = [
            ir.RankedTensorType.get([], v.type.element_type) for v in given for _ in range(2)
        ]
        block = made.regions[0].blocks.append(*scalars, arg_locs=[op.location] * len(scalars))
        with ir.InsertionPoint(block):
            builder.op("stablehlo.return", [first_of(block, compared)])
        for old, new in zip(op.results, list(made.results)[len(keys) :], strict=True):
            self._stand_in(old, new)
        op.operation.erase()

    def _key(self, value: ir.Value, by: str) -> ir.Value:
        """Integers in an order of `davinci.operators.sorting`."""
        bits = self.bits_of(value)
        return order.in_total_order(bits) if by == TOTAL else order.in_value_order(bits, order.MOST)

    def bits_of(self, value: ir.Value) -> ir.Value:
        """A value of f64 as integers of the same bits."""
        if value not in self.bits:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.name == "stablehlo.constant":
                array = to_array(owner.attributes["value"])
                made = t.constant(array.view("i8"), ir.IntegerType.get_signless(64))
            else:
                made = t.op("bitcast_convert", [value], as_integers(value.type))
            self.bits[value] = made
        return self.bits[value]

    def _move(self, op: Op) -> None:
        """Puts the operation on integers in front of one, and its results as f64 in its place."""
        operands = [self.bits_of(v) if is_double(v.type) else v for v in op.operands]
        moved = op.operation.clone(ir.InsertionPoint(op))
        for place, value in enumerate(operands):
            moved.operands[place] = value
        values = [*moved.results]
        for region in moved.regions:
            values += [value for block in region.blocks for value in block.arguments]
        for value in values:
            if is_double(value.type):
                value.set_type(as_integers(value.type))
        for old, new in zip(op.results, moved.results, strict=True):
            self._stand_in(old, new)
        op.operation.erase()


def counts_along(value: ir.Value, dim: int) -> bool:
    """Whether integers count along a dimension from 0."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "stablehlo.broadcast_in_dim":
        inner = list(attribute(owner, "broadcast_dimensions")) == [dim]
        return inner and counts_along(owner.operands[0], 0)
    return owner.name == "stablehlo.iota" and bool(attribute(owner, "iota_dimension") == dim)


def known_number(value: ir.Value) -> float | None:
    """The number of a constant of rank 0; None of other values."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "stablehlo.constant":
        return None
    return float(to_array(owner.attributes["value"]))


def most_elements(op: Op) -> int:
    """Elements of the largest operand, 0 if there is none."""
    return max((math.prod(value.type.shape) for value in op.operands), default=0)


def is_other_float(value: ir.Value) -> bool:
    """Whether a value is a tensor of floats of fewer than 64 bits."""
    return isinstance(value.type.element_type, ir.FloatType) and not is_double(value.type)


def spread(value: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """A number repeated to a tensor type, a tensor of it as it is."""
    return value if value.type == kind else t.broadcast(value, kind, [])


def first_of(block: ir.Block, compared: Sequence[Comparator]) -> ir.Value:
    """Whether the first of two rows of keys, arguments of a block in pairs, comes first: by the
    last keys where those before are equal."""
    found: ir.Value | None = None
    for number, by in reversed(list(enumerate(compared))):
        pair = block.arguments[2 * number], block.arguments[2 * number + 1]
        first = t.compare("GT" if by.descending else "LT", *pair)
        found = first if found is None else t.select(t.compare("EQ", *pair), found, first)
    assert found is not None, "a sort has a key"
    return found
