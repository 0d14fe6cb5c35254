"""stablehlo-sign-integers: computes with unsigned integers as signed ones of the same bits.

before:
    func.func @main(%x: tensor<8xui32>, %y: tensor<8xui32>) -> tensor<8xi1> {
      %0 = stablehlo.add %x, %y : tensor<8xui32>
      %1 = stablehlo.compare LT, %0, %y : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xi1>
after:
    func.func @main(%x: tensor<8xi32> {ascend.unsigned}, %y: tensor<8xi32> {ascend.unsigned}) .. {
      %0 = stablehlo.add %x, %y : tensor<8xi32>
      %a = stablehlo.add %0, dense<-2147483648> : tensor<8xi32>
      %b = stablehlo.add %y, dense<-2147483648> : tensor<8xi32>
      %1 = stablehlo.compare LT, %a, %b : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>

The vector unit has signed integers only. Sums, products, bits, shifts and what only moves are the
same of both; what asks for an order gets its operands with half of their range added, a conversion
to more bits has the copies of the sign cut off, divisions of up to 32 bits are those of twice as
many, and those of 64 bits divide half of the dividend. Other operations stay unsigned, between
bitcasts. Of 16, 32 and 64 bits; bytes, which the machine converts without a sign, stay as they are.
Needs calls inlined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci import elements
from davinci.mlir import Op, function_type, ir
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.integer_ranges import has_no_sign
from davinci.passes.stablehlo_to_ascend.stablehlo_legalize_element_types import mark

WIDTHS = (16, 32, 64)

SAME_BITS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("add", "subtract", "multiply", "negate", "and", "or", "xor", "not", "popcnt"),
        *("shift_left", "shift_right_logical", "shift_right_arithmetic", "select", "iota"),
        *("count_leading_zeros", "broadcast_in_dim", "broadcast", "concatenate", "dynamic_slice"),
        *("dynamic_update_slice", "gather", "optimization_barrier", "pad", "reshape", "reverse"),
        *("slice", "transpose", "sort", "while", "if", "case", "return", "reduce", "map"),
        *("reduce_window", "scatter", "select_and_scatter", "bitcast_convert", "custom_call"),
    )
) | {"func.return", "func.call"}
"""Operations whose results have the same bits whether their operands have signs or not."""

ORDERED = {f"stablehlo.{name}" for name in ("maximum", "minimum", "clamp")}
"""Operations that choose among their operands by order."""

PRODUCT = "stablehlo.dot_general"

DIVISIONS = ("stablehlo.divide", "stablehlo.remainder")

REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")

INDICES = {
    "stablehlo.dynamic_slice": slice(1, None),
    "stablehlo.dynamic_update_slice": slice(2, None),
    "stablehlo.gather": slice(1, 2),
}
"""Operands that are indices, see `index_places`."""


@register_pass
@dataclass(frozen=True)
class StablehloSignIntegersPass(Pass):
    """Compute with unsigned integers as signed ones of the same bits."""

    NAME = "stablehlo-sign-integers"

    def run(self, op: Op) -> None:
        for view in list(op.regions[0].blocks[0].operations):
            function = view.operation
            if function.name == "func.func":
                sign_function(function)


def sign_function(function: Op) -> None:
    """Makes the unsigned integers of a function signed, arguments and results too."""
    old = function_type(function)
    for block in function.regions[0].blocks:
        sign_block(block)
    for key, types in (("arg_attrs", old.inputs), ("res_attrs", old.results)):
        mark(function, key, types, unsigned_name)
    with function.context:
        inputs, results = ([signed(kind) for kind in kinds] for kinds in (old.inputs, old.results))
        new = ir.FunctionType.get(inputs, results)
        function.attributes["function_type"] = ir.TypeAttr.get(new)


def unsigned_name(shaped: ir.Type) -> dict[str, Any]:
    """Tells the runtime that an argument or result was unsigned."""
    return {"ascend.unsigned": ir.UnitAttr.get()} if is_unsigned(shaped) else {}


def sign_block(block: ir.Block) -> None:
    """Rewrites the operations of a function's block."""
    unsigned = Unsigned(set())
    for argument in block.arguments:
        if is_unsigned(argument.type):
            argument.set_type(signed(argument.type))
            unsigned.values.add(argument)
    sign_operations(block, unsigned)


@dataclass
class Unsigned:
    """Rewrites operations in place.

    Attributes:
        values: those that were unsigned.
    """

    values: set[ir.Value]

    def rewrite(self, op: Op) -> None:
        given = [v in self.values for v in op.operands]
        results = [is_unsigned(v.type) for v in op.results]
        if is_between_bitcasts(op):
            return
        if any(given) or any(results):
            with op.location, ir.InsertionPoint(op):
                self._rewrite(op, given, results)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    if is_unsigned(argument.type):
                        argument.set_type(signed(argument.type))
                        self.values.add(argument)
                sign_operations(block, self)

    def _rewrite(self, op: Op, given: list[bool], results: list[bool]) -> None:
        if op.name in ("stablehlo.constant", "arith.constant"):
            self._constant(op)
        elif op.name == "stablehlo.convert":
            self._convert(op, given[0])
        elif op.name == "stablehlo.compare":
            self._compare(op)
        elif op.name in ORDERED:
            self._order(op)
        elif op.name == PRODUCT:
            self._product(op)
        elif op.name in DIVISIONS:
            self._divide(op)
        elif op.name in REDUCTIONS and (kind := order_of_body(op)):
            for i in range(len(op.operands)):
                op.operands[i] = moved(op.operands[i])
            block = op.regions[0].blocks[0]
            assert kind in ORDERED, "a reduction to the largest or the smallest"
            for argument in block.arguments:
                argument.set_type(signed(argument.type))
            (inner, _) = [view.operation for view in block.operations]
            inner.results[0].set_type(signed(inner.results[0].type))
            self._retype(op)
            self._moved_back(op)
        elif op.name in SAME_BITS:
            self._indices(op)
            self._retype(op)
        else:
            self._bitcast(op, given)

    def _product(self, op: Op) -> None:
        """Factors of fewer bits than the result get zeros in front of them."""
        wide = op.results[0].type.element_type.width
        for i, value in enumerate(op.operands):
            if value in self.values and value.type.element_type.width < wide:
                op.operands[i] = extended(value, wide)
        self._retype(op)

    def _divide(self, op: Op) -> None:
        """Numbers of twice as many bits, zeros in front of them, are divided as signed ones."""
        kind = signed(op.results[0].type)
        if op.results[0].type.element_type.width == max(WIDTHS):
            self._replace(op, divided(op.name, *op.operands))
            return
        wide = [extended(v, 2 * v.type.element_type.width) for v in op.operands]
        found = t.op(op.name.removeprefix("stablehlo."), wide, wide[0].type)
        self._replace(op, converted(found, kind))

    def _retype(self, op: Op) -> None:
        for result in op.results:
            if is_unsigned(result.type):
                result.set_type(signed(result.type))
                self.values.add(result)

    def _replace(self, op: Op, value: ir.Value) -> None:
        """Lets `value` stand for the unsigned result of `op`, which stays without users."""
        op.results[0].replace_all_uses_with(value)
        self.values.add(value)

    def _constant(self, op: Op) -> None:
        kind = ir.RankedTensorType(signed(op.results[0].type))
        array = elements.to_array(op.attributes["value"])
        array = array.view(f"i{array.dtype.itemsize}")
        value = elements.to_attribute(array, kind.element_type)
        self._replace(op, t.op("constant", [], kind, value=value))

    def _convert(self, op: Op, unsigned: bool) -> None:
        source, kind = op.operands[0], op.results[0].type
        target = kind.element_type
        if isinstance(source.type.element_type, ir.FloatType):
            self._bitcast(op, [False])
            return
        if not unsigned:
            op.results[0].set_type(signed(kind))
            self.values.add(op.results[0])
            return
        width = source.type.element_type.width
        if isinstance(target, ir.FloatType):
            made = self._to_float(source, kind)
            if made is None:
                self._bitcast(op, [True])
            else:
                op.results[0].replace_all_uses_with(made)
            return
        made = converted(source, signed(kind))
        if target.width > width:
            made = binary("and", made, t.full(made.type, (1 << width) - 1))
        if is_unsigned(kind):
            self.values.add(made)
        op.results[0].replace_all_uses_with(made)

    def _to_float(self, source: ir.Value, kind: ir.ShapedType) -> ir.Value | None:
        """Unsigned integers in a float type, rounded once; None in f64, and of 64 bits in types
        that would round what f32 has rounded.

        Of 32 bits the upper and the lower 16 are added up, each of which f32 holds."""
        width = source.type.element_type.width
        if kind.element_type.width == 64:
            return None
        if width == 16:
            return converted(extended(source, 32), kind)
        single = ir.RankedTensorType.get(kind.shape, ir.F32Type.get())
        if width == 64:
            if not isinstance(kind.element_type, (ir.F32Type, ir.F16Type)):
                return None  # f16 ends before f32 rounds
            total = long_as_single(source, single)
            return total if total.type == kind else converted(total, kind)
        low = binary("and", source, t.full(source.type, 0xFFFF))
        high = binary("shift_right_logical", source, t.full(source.type, 16))
        scaled = binary("multiply", converted(high, single), t.full(single, 65536.0))
        total = binary("add", scaled, converted(low, single))
        return total if total.type == kind else converted(total, kind)

    def _compare(self, op: Op) -> None:
        equality = any(key in str(op.attributes["comparison_direction"]) for key in ("EQ", "NE"))
        operands = [v if equality else moved(v) for v in op.operands]
        direction = op.attributes["comparison_direction"]
        found = t.op("compare", operands, op.results[0].type, comparison_direction=direction)
        op.results[0].replace_all_uses_with(found)

    def _order(self, op: Op) -> None:
        for i, value in enumerate(op.operands):
            op.operands[i] = moved(value)
        self._retype(op)
        self._moved_back(op)

    def _moved_back(self, op: Op) -> None:
        with ir.InsertionPoint.after(op):
            back = moved(op.results[0])
        op.results[0].replace_all_uses_except(back, back.owner.operation)
        self.values.add(back)

    def _indices(self, op: Op) -> None:
        """Indices become signed ones of 64 bits, at most the largest."""
        for place in index_places(op):
            value = op.operands[place]
            if value not in self.values:
                continue
            kind = ir.RankedTensorType.get(value.type.shape, integer(64))
            if value.type.element_type.width < 64:
                mask = (1 << value.type.element_type.width) - 1
                found = binary("and", converted(value, kind), t.full(kind, mask))
            else:
                most = t.full(kind, np.iinfo(np.int64).max)
                found = binary("and", value, most)
            op.operands[place] = found

    def _bitcast(self, op: Op, given: list[bool]) -> None:
        """Leaves an operation unsigned, between bitcasts."""
        for i, unsigned in enumerate(given):
            if unsigned:
                value = op.operands[i]
                op.operands[i] = cast(value, unsigned_type(value.type))
        with ir.InsertionPoint.after(op):
            for result in op.results:
                if is_unsigned(result.type):
                    made = cast(result, signed(result.type))
                    result.replace_all_uses_except(made, made.owner.operation)
                    self.values.add(made)


def sign_operations(block: ir.Block, unsigned: Unsigned) -> None:
    """Rewrites the operations of a block, and erases those that others stand for."""
    given = list(block.operations)
    for view in given:
        unsigned.rewrite(view.operation)
    for view in reversed(given):
        op = view.operation
        replaced = ("stablehlo.constant", "arith.constant", "stablehlo.convert")
        if op.name in (*replaced, *DIVISIONS, "stablehlo.compare") and not any(
            list(v.uses) for v in op.results
        ):
            op.erase()


def index_places(op: Op) -> range:
    """The places of an operation's operands that are indices; of a scatter, the one in the middle,
    of others by their name."""
    every = range(len(op.operands))
    if op.name == "stablehlo.scatter":
        return every[len(every) // 2 :][:1]
    return every[INDICES.get(op.name, slice(0, 0))]


def is_between_bitcasts(op: Op) -> bool:
    """Whether an operation stays unsigned and has its bitcasts, or is one of these."""
    if op.name != "stablehlo.bitcast_convert":
        users = [use.owner.operation.name for v in op.results for use in v.uses]
        operands = [v for v in op.operands if is_unsigned(v.type)]
        unsigned = bool(operands) or any(is_unsigned(v.type) for v in op.results)
        made = all(is_bitcast(v.owner) for v in operands)
        return unsigned and stays(op) and made and set(users) <= {"stablehlo.bitcast_convert"}
    source, result = op.operands[0], op.results[0]
    if is_unsigned(result.type) and source.type == signed(result.type):
        uses = list(result.uses)
        return bool(uses) and all(stays(use.owner.operation) for use in uses)
    return is_unsigned(source.type) and is_operation(source.owner) and stays(source.owner)


def stays(op: Op) -> bool:
    """Whether an operation has no form for signed integers."""
    types = [v.type.element_type for v in (*op.operands, *op.results) if is_tensor(v)]
    floats = any(isinstance(element, ir.FloatType) for element in types)
    if op.name == "stablehlo.convert":
        return floats
    known = SAME_BITS | ORDERED | {"stablehlo.constant", "stablehlo.compare", "arith.constant"}
    known |= {PRODUCT, *DIVISIONS}
    return op.name not in known


def is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def is_operation(owner: Op) -> bool:
    return not isinstance(owner, ir.Block)


def is_bitcast(owner: Op) -> bool:
    return is_operation(owner) and bool(owner.name == "stablehlo.bitcast_convert")


def order_of_body(op: Op) -> str:
    """The operation by which a reduction of one operand chooses the largest or smallest, or ""."""
    inner = [view.operation for view in op.regions[0].blocks[0].operations]
    return inner[0].name if len(inner) == 2 and inner[0].name in ORDERED else ""


def integer(width: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(width)


def is_unsigned(shaped: ir.Type) -> bool:
    """Says of a type that it is a tensor of unsigned integers that are rewritten."""
    return has_no_sign(shaped) and ir.ShapedType(shaped).element_type.width in WIDTHS


def signed(shaped: ir.Type) -> ir.Type:
    """The tensor type of signed integers of the same bits; other types as they are."""
    if not isinstance(shaped, ir.RankedTensorType) or not is_unsigned(shaped):
        return shaped
    with shaped.context:
        return ir.RankedTensorType.get(shaped.shape, integer(shaped.element_type.width))


def unsigned_type(shaped: ir.ShapedType) -> ir.RankedTensorType:
    element = ir.IntegerType.get_unsigned(shaped.element_type.width)
    return ir.RankedTensorType.get(shaped.shape, element)


def cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return t.op("bitcast_convert", [value], kind)


def converted(value: ir.Value, kind: ir.Type) -> ir.Value:
    return t.op("convert", [value], kind)


def extended(value: ir.Value, width: int) -> ir.Value:
    """Integers with zeros in front of them, of so many bits."""
    found = converted(value, ir.RankedTensorType.get(value.type.shape, integer(width)))
    return binary("and", found, t.full(found.type, (1 << value.type.element_type.width) - 1))


def long_as_single(source: ir.Value, single: ir.RankedTensorType) -> ir.Value:
    """Integers of 64 bits without a sign in f32, rounded once.

    Of those from 2^48 on the lower 16 bits become one, which is set if any of them is; f32 holds
    none of them. What is left are two numbers of 24 bits, whose sum is rounded."""

    def behind(value: ir.Value, bits: int) -> ir.Value:
        return binary("shift_right_logical", value, t.full(value.type, bits))

    def in_front(value: ir.Value, bits: int) -> ir.Value:
        return binary("and", value, t.full(value.type, (1 << bits) - 1))

    def exact(value: ir.Value) -> ir.Value:
        word = ir.RankedTensorType.get(value.type.shape, integer(32))
        return converted(converted(value, word), single)

    zero = t.full(source.type, 0)
    large = t.compare("NE", behind(source, 48), zero)
    rest = converted(t.compare("NE", in_front(source, 16), zero), source.type)
    found = t.select(large, binary("or", behind(source, 16), rest), source)
    upper = binary("multiply", exact(behind(found, 24)), t.full(single, float(1 << 24)))
    total = binary("add", upper, exact(in_front(found, 24)))
    return binary(
        "multiply", total, t.select(large, t.full(single, float(1 << 16)), t.full(single, 1))
    )


def binary(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return t.op(name, [a, b], a.type)


def divided(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """The quotient or remainder of numbers without a sign, by a division of signed ones of the same
    bits. Half of the dividend has no sign, and twice its quotient is at most 1 too small; so is 0
    where the divisor's highest bit is set. By 0 the quotient has all bits, and the remainder is the
    dividend, as -1 is the quotient of signed ones.
    """
    one, zero = t.full(a.type, 1), t.full(a.type, 0)
    half = binary("divide", binary("shift_right_logical", a, one), b)
    found = t.select(t.compare("LT", b, zero), zero, binary("shift_left", half, one))
    left = binary("subtract", a, binary("multiply", found, b))
    more = t.compare("GE", moved(left), moved(b))
    if name == "stablehlo.divide":
        return binary("add", found, converted(more, a.type))
    return binary("subtract", left, t.select(more, b, zero))


def moved(value: ir.Value) -> ir.Value:
    """Integers with half of their range added, as they wrap around: in the order of signed ones."""
    return binary("add", value, t.full(value.type, -(1 << value.type.element_type.width - 1)))
