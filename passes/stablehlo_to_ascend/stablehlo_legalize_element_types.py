"""stablehlo-legalize-element-types: computes with types that no unit has in wider ones.

before:
    func.func @main(%x: tensor<8xbf16>) -> tensor<8xbf16> {
      %0 = stablehlo.exponential %x : tensor<8xbf16>
after:
    func.func @main(%x: tensor<8xi16> {ascend.element = "bf16"})
        -> (tensor<8xi16> {ascend.element = "bf16"}) {
      %0 = stablehlo.custom_call @ascend.from_bfloat(%x) : (tensor<8xi16>) -> tensor<8xf32>
      %1 = stablehlo.exponential %0 : tensor<8xf32>
      %2 = stablehlo.custom_call @ascend.to_bfloat(%1) : (tensor<8xf32>) -> tensor<8xi16>

A value of a narrow float has up to two forms: its bits, which arguments and results have, and f32,
which arithmetic works on. Rounding happens where the model converts to the type, and at results; in
between, values keep the precision of f32. Those of bf16 keep it through the model's conversions
too, unless the policy is `fp32`: other policies round to f16 where it pays, which is finer.
Integers of fewer than 8 bits are bytes of the same value; what leaves their range wraps around.
Needs calls inlined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from davinci import elements
from davinci.mlir import Op, function_type, ir
from davinci.narrow import NARROW, Array, NarrowFloat, NarrowInteger, to_stored
from davinci.passes import builder
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.narrow_conversions import (
    Body,
    Conversions,
    Elements,
    doubled,
    integer,
    lowest_bits,
    rounded,
    saturated,
    signs_in_front,
    widened,
    wrapped,
    zeros_in_front,
)
from davinci.passes.stablehlo_to_ascend.singles_to_round import single_to_round

MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("concatenate", "dynamic_slice", "dynamic_update_slice", "gather", "pad", "reshape"),
        *("optimization_barrier", "reverse", "select", "slice", "transpose", "broadcast_in_dim"),
    )
)
"""Operations that only carry values, so can carry bits."""

KEEP_RANGE = (
    frozenset(
        f"stablehlo.{name}"
        for name in (
            *("and", "or", "xor", "clamp", "maximum", "minimum", "remainder", "sign"),
            *("sort", "while", "if", "case", "reduce", "reduce_window"),
            *("scatter", "select_and_scatter", "map", "constant", "return"),
        )
    )
    | MOVES
)
"""Operations on integers whose results need not be wrapped, their regions aside."""

BITS_OF: dict[str, Callable[[Elements, NarrowInteger], Elements]] = {
    "stablehlo.count_leading_zeros": zeros_in_front,
    "stablehlo.popcnt": zeros_in_front,
    "stablehlo.shift_right_logical": zeros_in_front,
    "stablehlo.shift_right_arithmetic": signs_in_front,
}
"""Operations that see the bits in front of those of a narrow integer, and what these must be."""

BRAIN = "bf16"
"""The narrow float that the vector unit converts (`davinci.operators.bfloat`)."""

WIDE_INTEGERS = 16
"""Integers of more bits than this are no f32."""


@register_pass
@dataclass(frozen=True)
class StablehloLegalizeElementTypesPass(Pass):
    """Compute with narrow floats in f32, and with integers below 8 bits in bytes."""

    NAME = "stablehlo-legalize-element-types"

    precision: str = option("mixed", "fp32 rounds where the model converts to bf16", PRECISIONS)

    def run(self, op: Op) -> None:
        conversions = Conversions(op)
        for view in list(op.regions[0].blocks[0].operations):
            function = view.operation
            if function.name == "func.func" and function.regions[0].blocks:
                Legalizer(conversions, self.precision == "fp32").run(function)


@dataclass
class Narrow:
    """What stands for a value of a narrow type.

    Attributes:
        kind: its type.
        bits: the tensor of its bits; of an integer, the only form.
        number: the tensor of f32.
        array: its elements, if it is a constant, from which either is made.
    """

    kind: NarrowFloat | NarrowInteger
    bits: ir.Value | None = None
    number: ir.Value | None = None
    array: Array | None = None


@dataclass
class Legalizer:
    """Rewrites one function in place, block by block.

    Attributes:
        rounds: whether conversions to bf16 round; else values keep the precision of f32.
        forms: of the values of narrow types met so far, by the value that they replace.
        dead: operations that were replaced; erased at the end, so that no value is ever mistaken.
    """

    conversions: Conversions
    rounds: bool = True
    forms: dict[ir.Value, Narrow] = field(default_factory=dict)
    dead: list[Op] = field(default_factory=list)

    def run(self, function: Op) -> None:
        old = function_type(function)
        block = function.regions[0].blocks[0]
        for argument in block.arguments:
            if (kind := narrow_type(argument.type)) is not None:
                argument.set_type(tensor_of(argument.type, kind.stored))
                self.forms[argument] = Narrow(kind, bits=argument)
        self.block(block)
        for op in reversed(self.dead):
            op.erase()
        for key, types in (("arg_attrs", old.inputs), ("res_attrs", old.results)):
            mark(function, key, types, narrow_name)
        with function.context:
            new = ir.FunctionType.get(
                [stored_type(t) for t in old.inputs], [stored_type(t) for t in old.results]
            )
            function.attributes["function_type"] = ir.TypeAttr.get(new)

    def block(self, block: ir.Block) -> None:
        for view in list(block.operations):
            op = view.operation
            narrow = any(value in self.forms for value in op.operands)
            if narrow or any(narrow_type(value.type) for value in op.results):
                self.rewrite(op)
            for region in op.regions:
                for inner in region.blocks:
                    self.region(inner)

    def region(self, block: ir.Block) -> None:
        """A block inside an operation, whose arguments have the form that arithmetic works on."""
        for argument in block.arguments:
            if (kind := narrow_type(argument.type)) is not None:
                argument.set_type(tensor_of(argument.type, kind.computed))
                self.forms[argument] = computed(kind, argument)
        self.block(block)

    def rewrite(self, op: Op) -> None:
        """Rewrites an operation with narrow operands or results."""
        with op.location, ir.InsertionPoint(op):
            if op.name in ("stablehlo.constant", "arith.constant"):
                kind = narrow_type(op.results[0].type)
                assert kind is not None, "only operations with a narrow type are rewritten"
                array = elements.to_array(op.attributes["value"])
                self.forms[op.results[0]] = Narrow(kind, array=array)
                self.dead.append(op)
            elif op.name == "stablehlo.convert":
                self.replace(op, self.converted(op.operands[0], op.results[0].type))
            elif op.name == "stablehlo.bitcast_convert":
                self.replace(op, self.reinterpreted(op))
            elif op.name == "func.return":
                for i, value in enumerate(op.operands):
                    if value in self.forms:
                        op.operands[i] = self.bits(value)
            else:
                self.retype(op)

    def replace(self, op: Op, new: ir.Value | Narrow) -> None:
        """Lets `new`, a value or the forms of one, stand for the result of `op`."""
        if isinstance(new, Narrow):
            self.forms[op.results[0]] = new
        else:
            op.results[0].replace_all_uses_with(new)
        self.dead.append(op)

    def retype(self, op: Op) -> None:
        """Gives `op` operands and results of one form, in place."""
        carried = op.name in MOVES and self.carries_bits(op)
        kinds = [narrow_type(value.type) for value in op.results]
        inner = next((self.forms[v].kind for v in op.operands if v in self.forms), None)
        for i, value in enumerate(op.operands):
            if value in self.forms:
                op.operands[i] = self.bits(value) if carried else self.number(value)
                if i == 0 and isinstance(inner, NarrowInteger) and op.name in BITS_OF:
                    op.operands[i] = self.in_front(op, op.operands[i], inner)
        if "algorithm" in op.attributes:  # of a product; it names the types of the operands
            del op.attributes["algorithm"]
        for result, kind in zip(op.results, kinds, strict=True):
            if kind is None:
                continue
            result.set_type(tensor_of(result.type, kind.stored if carried else kind.computed))
            if isinstance(kind, NarrowFloat):
                form = Narrow(kind, bits=result) if carried else Narrow(kind, number=result)
            else:
                form = Narrow(kind, bits=result)
                if op.name not in KEEP_RANGE:
                    form = Narrow(kind, bits=self.in_range(op, result, kind))
            self.forms[result] = form

    def carries_bits(self, op: Op) -> bool:
        """Whether `op` should carry bits: its results are no larger than its operands, all bits."""
        forms = [(self.forms[v], v) for v in op.operands if v in self.forms]
        known = [(form, value) for form, value in forms if form.array is None]
        count = sum(elements_of(value.type) for _, value in known)
        return (
            bool(known)
            and all(form.number is None for form, _ in known)
            and count >= sum(elements_of(value.type) for value in op.results)
        )

    def in_range(self, op: Op, result: ir.Value, kind: NarrowInteger) -> ir.Value:
        """The result of arithmetic in bytes, wrapped to the range of the type."""
        with ir.InsertionPoint.after(op):
            if op.name == "stablehlo.count_leading_zeros":
                body = partial(shorter, kind=kind)
                return self.apply(f"leading_zeros_{kind.name}", result, kind.computed, body)
            body = partial(wrapped, kind=kind)
            return self.apply(f"wrap_{kind.name}", result, kind.computed, body)

    def in_front(self, op: Op, value: ir.Value, kind: NarrowInteger) -> ir.Value:
        """An operand of an operation in `BITS_OF`, with the bits in front that it needs."""
        fill = BITS_OF[op.name]
        name = f"{fill.__name__}_{kind.name}"
        return self.apply(name, value, kind.computed, lambda x: fill(x, kind))

    def apply(self, name: str, value: ir.Value, element: str, body: Body) -> ir.Value:
        return self.conversions.apply(name, value, ir.Type.parse(element), body)

    def bits(self, value: ir.Value) -> ir.Value:
        """The bits of a value of a narrow type."""
        form = self.forms[value]
        if form.bits is None:
            if form.array is not None:
                form.bits = self.constant(value, to_stored(form.array), form.kind.stored)
            else:
                assert isinstance(form.kind, NarrowFloat), "values without bits are floats"
                assert form.number is not None, "what has no bits is an array or a number"
                with after(form.number):
                    form.bits = self.narrowed(form.number, form.kind)
        return form.bits

    def number(self, value: ir.Value) -> ir.Value:
        """The tensor on which arithmetic with a value of a narrow type works."""
        form = self.forms[value]
        if isinstance(form.kind, NarrowInteger):
            return self.bits(value)
        if form.number is None:
            if form.array is not None:
                form.number = self.constant(value, form.array.astype(np.float32), "f32")
            else:
                assert form.bits is not None, "what is no number is an array or bits"
                with after(form.bits):
                    form.number = self.widened(form.bits, form.kind)
        return form.number

    def constant(self, value: ir.Value, array: Array, element: str) -> ir.Value:
        with after(value):
            attr = elements.to_attribute(array, ir.Type.parse(element))
            return builder.op("stablehlo.constant", [], [attr.type], value=attr).result

    def converted(self, value: ir.Value, wanted: ir.RankedTensorType) -> ir.Value | Narrow:
        """`value` as the tensor type `wanted`, of which one type or the other is narrow."""
        kind = narrow_type(wanted)
        if kind is None:
            found: ir.Value = self.number(value)
            if found.type == wanted and found not in self.forms:
                return found
            # What arithmetic gives in place still stands for the narrow value: the wide one is
            # another, or whoever reads it (a return, a bitcast) would take the narrow one's bits.
            return convert(found, wanted.element_type)
        source = self.forms.get(value)
        if source is not None and source.kind == kind:
            return source
        number = value if source is None else self.number(value)
        if isinstance(kind, NarrowInteger):
            return Narrow(kind, bits=self.cut(number, kind))
        if source is None or source.array is None:
            if not self.rounds and kind.name == BRAIN and is_single(number):
                return Narrow(kind, number=number)
            return Narrow(kind, bits=self.narrowed(number, kind))
        with np.errstate(over="ignore", invalid="ignore"):
            return Narrow(kind, array=source.array.astype(np.float32).astype(kind.dtype))

    def cut(self, number: ir.Value, kind: NarrowInteger) -> ir.Value:
        """The lowest bits of integers; floats saturated."""
        source = number.type.element_type

        def body(x: Elements) -> Elements:
            if isinstance(source, ir.FloatType):
                return saturated(x, kind)
            return wrapped(x.to(integer(8)), kind)

        return self.apply(f"convert_{source}_to_{kind.name}", number, kind.computed, body)

    def narrowed(self, number: ir.Value, kind: NarrowFloat) -> ir.Value:
        """The bits of the narrow floats nearest to a tensor of other numbers."""
        if kind.name == BRAIN and in_function() and not is_single(number):
            number = single_to_round(number) or number
        if kind.name == BRAIN and is_single(number) and in_function():
            return t.op(
                "custom_call",
                [number],
                tensor_of(number.type, kind.stored),
                call_target_name="ascend.to_bfloat",
            )
        name = f"convert_{number.type.element_type}_to_{kind.name}"
        return self.apply(name, number, kind.stored, lambda x: rounded(as_float(x), kind))

    def widened(self, bits: ir.Value, kind: NarrowFloat) -> ir.Value:
        """The f32 of the bits of narrow floats."""
        if kind.name == BRAIN and in_function():
            single = tensor_of(bits.type, kind.computed)
            return t.op("custom_call", [bits], single, call_target_name="ascend.from_bfloat")
        return self.apply(f"convert_{kind.name}_to_f32", bits, "f32", partial(widened, kind=kind))

    def reinterpreted(self, op: Op) -> ir.Value | Narrow:
        """The result of a `bitcast_convert`."""
        value, wanted = op.operands[0], op.results[0].type
        source, kind = self.forms.get(value), narrow_type(wanted)
        before = value.type.element_type.width if source is None else source.kind.bits
        target = wanted.element_type.width
        if min(before, target) < 8 and before != target:
            fail(
                op,
                "changes the number of elements of a type of less than a byte",
                found=f"from {before} bits to {target}",
                expected="as many bits",
            )
        found = value if source is None else self.bits(value)
        result = wanted if kind is None else tensor_of(wanted, kind.stored)
        if kind is not None and kind.bits < 8:
            body = partial(lowest_bits, kind=kind)
            found = self.apply(f"bits_to_{kind.name}", found, kind.stored, body)
        elif found.type != result:
            found = builder.op("stablehlo.bitcast_convert", [found], [result]).result
        return found if kind is None else Narrow(kind, bits=found)


def in_function() -> bool:
    """Whether what is built now belongs to a function, not to a region of an operation."""
    return bool(ir.InsertionPoint.current.block.owner.operation.name == "func.func")


def is_single(value: ir.Value) -> bool:
    return isinstance(value.type.element_type, ir.F32Type)


def as_float(x: Elements) -> Elements:
    """Numbers as f32 or f64 that round to a narrow float as they do themselves."""
    if isinstance(x.element, ir.FloatType):
        return x.to(ir.F32Type.get()) if x.element.width == 16 else x
    if x.element.width == 64:
        return doubled(x)
    return x.to(ir.F64Type.get() if x.element.width > WIDE_INTEGERS else ir.F32Type.get())


def shorter(x: Elements, kind: NarrowInteger) -> Elements:
    """Leading zeros of a byte as those of its lowest bits."""
    return x - (8 - kind.bits)


def computed(kind: NarrowFloat | NarrowInteger, value: ir.Value) -> Narrow:
    """The forms of a value in the form that arithmetic works on."""
    if isinstance(kind, NarrowFloat):
        return Narrow(kind, number=value)
    return Narrow(kind, bits=value)


def convert(value: ir.Value, element: ir.Type) -> ir.Value:
    result = ir.RankedTensorType.get(value.type.shape, element)
    return builder.op("stablehlo.convert", [value], [result]).result


def after(value: ir.Value) -> ir.InsertionPoint:
    """The place behind the definition of a value, from where all its users see what is there."""
    if isinstance(value, ir.BlockArgument):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


def narrow_type(shaped: ir.Type) -> NarrowFloat | NarrowInteger | None:
    """The narrow type of the elements of a tensor type, if they have one."""
    if not isinstance(shaped, ir.RankedTensorType):
        return None
    return NARROW.get(str(shaped.element_type))


def tensor_of(shaped: ir.ShapedType, element: str) -> ir.RankedTensorType:
    with shaped.context:
        return ir.RankedTensorType.get(shaped.shape, ir.Type.parse(element))


def stored_type(shaped: ir.Type) -> ir.Type:
    kind = narrow_type(shaped)
    return shaped if kind is None else tensor_of(ir.ShapedType(shaped), kind.stored)


def elements_of(shaped: ir.ShapedType) -> int:
    return int(np.prod(shaped.shape, dtype=np.int64)) if shaped.has_static_shape else 0


def mark(
    function: Op,
    key: str,
    types: list[ir.Type],
    names_of: Callable[[ir.Type], dict[str, ir.Attribute]],
) -> None:
    """Adds attributes to arguments or results for the runtime, which makes them by their types.

    Args:
        key: `arg_attrs` or `res_attrs`.
        types: of all of them.
        names_of: the attributes that one of a type has.
    """
    given = function.attributes[key] if key in function.attributes else [{}] * len(types)
    with function.context:
        if not any(names_of(shaped) for shaped in types):
            return
        marked = [
            ir.DictAttr.get({**{x.name: x.attr for x in attributes}, **names_of(shaped)})
            for attributes, shaped in zip(given, types, strict=True)
        ]
        function.attributes[key] = ir.ArrayAttr.get(marked)


def narrow_name(shaped: ir.Type) -> dict[str, Any]:
    """Tells the runtime the narrow type that an argument or result has."""
    kind = narrow_type(shaped)
    return {} if kind is None else {"ascend.element": ir.StringAttr.get(kind.name)}
