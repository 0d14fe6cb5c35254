"""Between which numbers the elements of integers lie, as far as the operations that make them tell.

A range is a pair of Python's integers, the lowest and the highest. What could leave the range of
its element type wraps around, and may then be any number of the type; so may arguments, and results
of operations that are not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from davinci.dialects.base import attribute
from davinci.elements import to_array
from davinci.mlir import Op, ir

Range = tuple[int, int]

BIT: Range = (0, 1)

ELEMENTS_OF_FIRST = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast_in_dim", "dynamic_slice", "gather", "reshape", "reverse", "slice"),
        "transpose",
    )
)
"""Operations whose results are elements of their first operand."""

ELEMENTS_OF = {
    "stablehlo.concatenate": slice(None),
    "stablehlo.dynamic_update_slice": slice(0, 2),
    "stablehlo.pad": slice(None),
    "stablehlo.select": slice(1, 3),
}
"""Operations whose results are elements of several operands: of which."""

REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})


def _corners(combine: Callable[[int, int], int], a: Range, b: Range) -> Range:
    found = [combine(x, y) for x in a for y in b]
    return min(found), max(found)


def _product(a: Range, b: Range) -> Range:
    return _corners(lambda x, y: x * y, a, b)


def _quotient(a: Range, b: Range) -> Range | None:
    """Rounded towards zero; None where the divisor may be zero."""
    if b[0] <= 0 <= b[1]:
        return None
    found = _corners(lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), a, b)
    return (min(found[0], 0), max(found[1], 0)) if a[0] < 0 < a[1] else found


def _remainder(a: Range, b: Range) -> Range | None:
    """With the sign of the dividend; None where the divisor may be zero."""
    if b[0] <= 0 <= b[1]:
        return None
    most = max(map(abs, b)) - 1
    return max(min(a[0], 0), -most), min(max(a[1], 0), most)


def _bits(a: Range, b: Range) -> Range | None:
    """The range of `or` and `xor`, which set no bit above the highest of their operands; None where
    an operand may be negative."""
    if min(a[0], b[0]) < 0:
        return None
    return 0, (1 << max(a[1], b[1]).bit_length()) - 1


def _and(a: Range, b: Range) -> Range | None:
    unsigned = [r[1] for r in (a, b) if r[0] >= 0]
    return (0, min(unsigned)) if unsigned else None


def _shift(combine: Callable[[int, int], int]) -> Callable[[Range, Range], Range | None]:
    def found(a: Range, b: Range) -> Range | None:
        return _corners(combine, a, b) if 0 <= b[0] and b[1] < 64 else None

    return found


BINARY: dict[str, Callable[[Range, Range], Range | None]] = {
    "stablehlo.add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "stablehlo.subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "stablehlo.multiply": _product,
    "stablehlo.maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "stablehlo.minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "stablehlo.divide": _quotient,
    "stablehlo.remainder": _remainder,
    "stablehlo.and": _and,
    "stablehlo.or": _bits,
    "stablehlo.xor": _bits,
    "stablehlo.shift_left": _shift(lambda x, y: x << y),
    "stablehlo.shift_right_arithmetic": _shift(lambda x, y: x >> y),
}

UNARY: dict[str, Callable[[Range], Range]] = {
    "stablehlo.negate": lambda a: (-a[1], -a[0]),
    "stablehlo.abs": lambda a: (max(a[0], -a[1], 0), max(a[1], -a[0])),
    "stablehlo.sign": lambda a: (max(-1, min(1, a[0])), max(-1, min(1, a[1]))),
    "stablehlo.not": lambda a: (~a[1], ~a[0]),
}


def is_integer(kind: ir.Type) -> bool:
    """Whether a type is a tensor of integers, booleans among them."""
    return isinstance(kind, ir.RankedTensorType) and isinstance(kind.element_type, ir.IntegerType)


def has_no_sign(kind: ir.Type) -> bool:
    """Whether a type is a tensor of unsigned integers."""
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else None
    return isinstance(element, ir.IntegerType) and element.is_unsigned


def range_of_type(kind: ir.ShapedType) -> Range:
    """The least and the largest number that an element of a tensor of integers can be."""
    width = kind.element_type.width
    if width == 1:
        return BIT
    if has_no_sign(kind):
        return 0, (1 << width) - 1
    return -(1 << width - 1), (1 << width - 1) - 1


def inside(a: Range, b: Range) -> bool:
    return b[0] <= a[0] and a[1] <= b[1]


def joined(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


class IntegerRanges:
    """Ranges of values, of operations in the order in which they are noted."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Range] = {}

    def of(self, value: ir.Value) -> Range:
        """The range of a tensor of integers."""
        return self._known.get(value) or range_of_type(value.type)

    def keep(self, value: ir.Value, found: Range) -> None:
        """Notes the range of a value."""
        self._known[value] = found

    def forget(self, value: ir.Value) -> None:
        """Leaves out a value whose operation goes."""
        self._known.pop(value, None)

    def note(self, op: Op) -> None:
        """Finds the ranges of an operation's results from those of its operands."""
        for number, result in enumerate(op.results):
            if not is_integer(result.type):
                continue
            found = self._found(op, number)
            if found is not None and inside(found, range_of_type(result.type)):
                self._known[result] = found

    def _found(self, op: Op, number: int) -> Range | None:
        name, operands = op.name, list(op.operands)
        if name == "stablehlo.constant":
            array = to_array(op.attributes["value"])
            return (int(array.min()), int(array.max())) if array.size else (0, 0)
        if name == "stablehlo.iota":
            return 0, max(0, op.results[0].type.shape[int(attribute(op, "iota_dimension"))] - 1)
        if name == "stablehlo.sort":
            return self.of(operands[number])
        if name in REDUCTIONS:
            return self._reduced(op, number)
        if name in ELEMENTS_OF_FIRST:
            return self.of(operands[0])
        if name in ELEMENTS_OF:
            return joined(*map(self.of, operands[ELEMENTS_OF[name]]))
        if not all(is_integer(value.type) for value in operands):
            return None
        ranges = list(map(self.of, operands))
        if name == "stablehlo.convert":
            return None if op.results[0].type.element_type.width == 1 else ranges[0]
        if name == "stablehlo.clamp":
            least, given, most = ranges
            low, high = (min(max(given[i], least[i]), most[i]) for i in range(2))
            return low, high
        if name in BINARY:
            return BINARY[name](*ranges)
        return UNARY[name](*ranges) if name in UNARY else None

    def _reduced(self, op: Op, number: int) -> Range | None:
        """The range of a reduction to a sum, or to elements that it chooses; None of others."""
        half = len(op.operands) // 2
        values, init = self.of(op.operands[number]), self.of(op.operands[half + number])
        body = op.regions[0].blocks[0]
        returned = body.operations[len(body.operations) - 1].operands[number]
        arguments = body.arguments[number], body.arguments[half + number]
        if _chosen(returned, arguments):
            return joined(values, init)
        owner = returned.owner
        if owner.name != "stablehlo.add" or {*owner.operands} != {*arguments}:
            return None
        if op.name == "stablehlo.reduce":
            shape = op.operands[0].type.shape
            count = math.prod(shape[dim] for dim in attribute(op, "dimensions"))
        else:
            count = math.prod(attribute(op, "window_dimensions"))
        each = joined(values, init, (0, 0))  # windows begin and end with what they begin with
        terms = count if init == (0, 0) else count + 1
        return each[0] * terms, each[1] * terms


def _chosen(value: ir.Value, among: tuple[ir.Value, ...]) -> bool:
    """Whether a value of a block is one of some arguments, whichever way it is chosen."""
    if value in among:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    places = {"stablehlo.select": slice(1, 3), "stablehlo.maximum": slice(None)}
    places["stablehlo.minimum"] = slice(None)
    if owner.name not in places:
        return False
    return all(_chosen(operand, among) for operand in list(owner.operands)[places[owner.name]])
