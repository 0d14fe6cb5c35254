"""Makes private functions of StableHLO operations, and calls of them."""

from __future__ import annotations

from davinci.elements import scalar_attribute
from davinci.mlir import Op, func, ir, is_public, operations, symbol_name, symbols
from davinci.passes import builder
from davinci.passes.ascend.kernel_outline import is_boolean, is_unsigned
from davinci.passes.ascend.tensor_ops import full_value
from davinci.passes.stablehlo_to_ascend import tensors
from davinci.passes.stablehlo_to_ascend.integer_power import expand_integer_powers
from davinci.passes.stablehlo_to_ascend.stablehlo_widen_half import widen

PRODUCTS = frozenset({"stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution"})

SUMS = PRODUCTS | {
    f"stablehlo.{name}" for name in ("reduce", "reduce_window", "scatter", "select_and_scatter")
}
"""Operations that add up many values: in f32, also where they are stored as f16."""

FIRST_INDEX = {
    "stablehlo.gather": 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
}
"""Operations whose operands from this number on are indices."""

LAST_INDEX = 1 << 62
"""No tensor is as large; what is beyond would be negative in i64."""


class ScalarCalls:
    """The functions made so far in a module; equal operations share one."""

    def __init__(self, module: Op) -> None:
        self._module = module
        self._functions: dict[str, str] = {}
        self._names = {name for name, _ in symbols(module)}

    def call(self, op: Op) -> list[ir.Value]:
        """Builds the call of a function that holds a copy of `op`; returns its results."""
        used = list(dict.fromkeys([*op.operands, *captured(op)]))
        inlined = {v: c for v in used if (c := splat_constant(v)) is not None}
        operands = [v for v in used if v not in inlined]
        function = self._build(op, inlined, operands)
        symbol = symbol_name(function)
        function.attributes["sym_name"] = ir.StringAttr.get("")
        key = str(function)
        if key in self._functions:
            function.operation.erase()
        else:
            function.attributes["sym_name"] = ir.StringAttr.get(symbol)
            self._functions[key] = symbol
            self._names.add(symbol)
        callee = ir.FlatSymbolRefAttr.get(self._functions[key])
        types = [result.type for result in op.results]
        return list(builder.op("func.call", operands, types, callee=callee).results)

    def _build(
        self, op: Op, inlined: dict[ir.Value, ir.Attribute], operands: list[ir.Value]
    ) -> func.FuncOp:
        types = ([v.type for v in operands], [v.type for v in op.results])
        with ir.InsertionPoint(self._module.regions[0].blocks[0]):
            name = self._unique(op.name.removeprefix("stablehlo."))
            function = func.FuncOp(name, types, visibility="private")
        block = function.add_entry_block([op.location] * len(operands))
        with ir.InsertionPoint(block):
            values = {value: constant(attr) for value, attr in inlined.items()}
            values.update(zip(operands, block.arguments, strict=True))
            copy = op.clone()
            builder.replace_operands(copy, values)
            spell_out_booleans(copy)
            widen_unsigned(copy)
            func.ReturnOp(list(copy.results))
        if op.name in SUMS:
            widen(copy, {})
        expand_integer_powers(function.operation)
        return function

    def _unique(self, base: str) -> str:
        number = 0
        while f"{base}_{number}" in self._names:
            number += 1
        return f"{base}_{number}"

    def erase_unused_functions(self) -> None:
        """Erases private functions that nothing calls: decompositions of composites."""
        used = set(self._functions.values())

        def visit(op: Op) -> ir.WalkResult:
            for name in op.attributes:
                attr = op.attributes[name]
                if isinstance(attr, ir.FlatSymbolRefAttr):
                    used.add(str(attr.value))
            return ir.WalkResult.ADVANCE

        self._module.walk(visit)
        for name, op in symbols(self._module):
            private = op.name == "func.func" and not is_public(op)
            if private and name not in used:
                op.erase()


def captured(op: Op) -> list[ir.Value]:
    """Values from outside of `op` that operations in its regions use."""
    inside: set[ir.Value] = set()
    used: list[ir.Value] = []

    def visit(block: ir.Block) -> None:
        inside.update(block.arguments)
        for view in block:
            nested = view.operation
            used.extend(value for value in nested.operands if value not in inside)
            inside.update(nested.results)
            for region in nested.regions:
                for inner in region:
                    visit(inner)

    for region in op.regions:
        for block in region:
            visit(block)
    return used


def spell_out_booleans(op: Op) -> None:
    """Sums of booleans in the regions of `op` become `or`; upstream's loops add modulo 2."""
    for nested in operations(op, "stablehlo.add"):
        if nested == op or not is_boolean(nested.result.type):
            continue
        with nested.location, ir.InsertionPoint(nested):
            either = builder.op("stablehlo.or", list(nested.operands), [nested.result.type]).result
        nested.result.replace_all_uses_with(either)
        nested.erase()


def widen_unsigned(root: Op) -> None:
    """Converts unsigned operands that upstream's loops take for signed ones, at and below `root`.

    Factors of products become the type of the result, indices i64.
    """
    for op in operations(root, *PRODUCTS, *FIRST_INDEX):
        wanted = ir.IntegerType.get_signless(64)
        if op.name in PRODUCTS:
            wanted = op.results[0].type.element_type
        for i, value in list(enumerate(op.operands))[FIRST_INDEX.get(op.name, 0) :]:
            if is_unsigned(value.type):
                shaped = ir.RankedTensorType.get(value.type.shape, wanted)
                with op.location, ir.InsertionPoint(op):
                    if op.name in FIRST_INDEX and value.type.element_type.width == 64:
                        value = tensors.op(
                            "minimum", [value, tensors.full(value.type, LAST_INDEX)], value.type
                        )
                    op.operands[i] = builder.op("stablehlo.convert", [value], [shaped]).result


def splat_constant(value: ir.Value) -> ir.Attribute | None:
    """The elements attribute of an operand that is the same value everywhere, or None."""
    found = full_value(value)
    if found is None:
        return None
    number = scalar_attribute(found[()], value.type.element_type)
    return ir.DenseElementsAttr.get_splat(value.type, number)


def constant(attr: ir.Attribute) -> ir.Value:
    return builder.op("stablehlo.constant", [], [attr.type], value=attr).result
