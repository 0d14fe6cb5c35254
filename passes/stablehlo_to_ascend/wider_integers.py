"""Integers of 8 and 16 bits in words of 32, where the vector unit does not take them as they are.

before:
    %r = stablehlo.reduce_window(%x, %zero) .. stablehlo.add .. : tensor<3x40xi8>
between:
    %w = "ascend.cast"(%x) : (tensor<3x40xi8>) -> tensor<3x40xi32>
    %s = stablehlo.reduce_window(%w, %zero) .. stablehlo.add .. : tensor<3x40xi32>
    %r = "the low byte of"(%s) : (tensor<3x40xi32>) -> tensor<3x40xi8>

Sums, products and bits have the same low bits whatever is in front of them; an order, and a
division, is that of the words that hold the same numbers. A function that an operation applies many
times is one or the other throughout: nothing is cut off between its operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci import elements
from davinci.dialects.ascend_types import tensor_of
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators.tensors import is_integer, width_of
from davinci.passes.ascend.tensor_ops import TensorOps

NARROW = frozenset({"i8", "ui8", "i16"})
WORD = "i32"

Convert = Callable[[Op], "list[ir.Value] | None"]
"""Makes the results of an operation by operators of the cube and the vector unit, if it can."""


def stablehlo(*names: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in names)


LOW_BITS = stablehlo("add", "and", "multiply", "negate", "not", "or", "shift_left", "subtract")
LOW_BITS |= stablehlo("power", "xor")
"""Operations on integers whose low bits depend on those of their operands only."""

ORDERED = stablehlo("and", "clamp", "compare", "constant", "maximum", "minimum", "or", "select")
"""Operations whose results are some of their operands, or say how these are ordered."""

APPLYING = stablehlo("reduce", "reduce_window")
"""Operations that apply a function to elements."""

COUNT = "stablehlo.count_leading_zeros"

IN_FRONT = {
    COUNT: False,
    "stablehlo.popcnt": False,
    "stablehlo.shift_right_arithmetic": True,
    "stablehlo.shift_right_logical": False,
}
"""Operations that see the bits in front of a number: whether these are its sign, or zeros."""

ELEMENTWISE = LOW_BITS | ORDERED | stablehlo("abs", "divide", "remainder", "sign") | {*IN_FRONT}
"""Operations of which the low bits of words are the result."""


def in_words(op: Op, convert: Convert, machine: Machine | None) -> list[ir.Value] | None:
    """The results of an operation that is computed in words; None if that is another function, or
    the vector unit has no operators for it in words either."""
    if not any(is_narrow(v) for v in (*op.operands, *op.results)) or not may_widen(op):
        return None
    ops = TensorOps(machine)
    wide = widened(op, [in_word(v, IN_FRONT.get(op.name), ops) for v in op.operands])
    results = convert(wide)
    wide.erase()
    if results is not None:
        if op.name == COUNT:  # the zeros in front of the narrow number are none of it
            (found,) = results
            more = width_of(WORD) - width_of(tensor_of(op.operands[0].type).element)
            results = [ops.binary("sub", found, ops.full(tensor_of(found.type).shape, WORD, more))]
        kinds = [tensor_of(v.type).element for v in op.results]
        return [low_bits(v, kind, ops) for v, kind in zip(results, kinds, strict=True)]
    for built in reversed(ops.built):
        built.erase()
    return None


def may_widen(op: Op) -> bool:
    """Whether the low bits of what words give are an operation's results."""
    if op.name not in APPLYING:
        return op.name in ELEMENTWISE
    names = {view.operation.name for view in op.regions[0].blocks[0].operations}
    names -= stablehlo("return")
    return names <= LOW_BITS or names <= ORDERED


def is_narrow(value: ir.Value) -> bool:
    return tensor_of(value.type).element in NARROW


def in_word(value: ir.Value, signed: bool | None, ops: TensorOps) -> ir.Value:
    """A value as words, if its integers are narrower.

    Args:
        signed: whether the bits in front are the highest one or zeros; None: as numbers have them.
    """
    if not is_narrow(value):
        return value
    found = tensor_of(value.type)
    word = ops.cast(value, WORD)
    if signed is None or signed == (not found.element.startswith("u")):
        return word
    return lowest(word, width_of(found.element), signed, ops)


def widened(op: Op, operands: Sequence[ir.Value]) -> Op:
    """A copy of an operation on words: narrow integers are words in its regions, too."""
    copy = op.clone().operation
    for number, value in enumerate(operands):
        copy.operands[number] = value
    for result in copy.results:
        widen_type(result)
    for region in copy.regions:
        for block in region.blocks:
            for argument in block.arguments:
                widen_type(argument)
            for inner in block.operations:
                widen_inside(inner.operation)
    return copy


def widen_inside(op: Op) -> None:
    """Makes the narrow results of an operation in a region words."""
    if op.name == "stablehlo.constant" and is_narrow(op.results[0]):
        array = elements.to_array(op.attributes["value"]).astype("int32")
        with op.context:
            word = ir.IntegerType.get_signless(width_of(WORD))
            op.attributes["value"] = elements.to_attribute(array, word)
    for result in op.results:
        widen_type(result)


def widen_type(value: ir.Value) -> None:
    """Gives a value the type of words, if its integers are narrower."""
    if is_narrow(value):
        with value.type.context:
            word = ir.IntegerType.get_signless(width_of(WORD))
            value.set_type(ir.RankedTensorType.get(value.type.shape, word))


def low_bits(value: ir.Value, element: str, ops: TensorOps) -> ir.Value:
    """Integers in a type, of which the lowest bits are kept if it has fewer."""
    found = tensor_of(value.type)
    if width_of(element) > 8 or found.element in ("i1", element) or not is_integer(found.element):
        return ops.cast(value, element)
    byte = lowest(ops.cast(value, WORD), 8, element == "i8", ops)
    return ops.cast(byte, element)


def lowest(word: ir.Value, bits: int, signed: bool, ops: TensorOps) -> ir.Value:
    """The number that the lowest bits of words stand for, with a sign or without."""
    shape = tensor_of(word.type).shape
    half = ops.full(shape, WORD, 1 << bits - 1 if signed else 0)
    mask = ops.full(shape, WORD, (1 << bits) - 1)
    return ops.binary("sub", ops.binary("and", ops.binary("add", word, half), mask), half)
