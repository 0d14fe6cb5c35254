"""Keeps operators that StableHLO expands in name: `chlo.erf` becomes a `stablehlo.composite`.

before:
    %1 = chlo.erf %0 : tensor<4xf32>
after:
    %1 = stablehlo.composite "chlo.erf" %0 {decomposition = @chlo.erf_0} : ...
    func.func private @chlo.erf_0(%x: tensor<4xf32>) -> tensor<4xf32> { .. chlo.erf .. }

`chlo-legalize-to-stablehlo` then expands the body of the function only.
"""

from __future__ import annotations

from typing import Any

from davinci.mlir import Op, func, ir, operations

NAMES = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "erf_inv", "sinh")
KEPT = frozenset(f"chlo.{name}" for name in NAMES)
"""Operators for which the ascend dialect has one of its own."""


def wrap_chlo(module: ir.Module) -> None:
    """Wraps every operation of `module` in `KEPT` that is not yet alone in a private function."""
    functions: dict[tuple[str, Any], str] = {}
    for op in operations(module.operation, *KEPT):
        key = (op.name, op.operands[0].type)
        if key not in functions:
            functions[key] = f"{op.name}_{len(functions)}"
            _define(module, op, functions[key])
        with module.context, op.location, ir.InsertionPoint(op):
            composite = ir.Operation.create(
                "stablehlo.composite",
                [op.result.type],
                [op.operands[0]],
                {
                    "name": ir.StringAttr.get(op.name),
                    "decomposition": ir.FlatSymbolRefAttr.get(functions[key]),
                },
            )
        op.result.replace_all_uses_with(composite.result)
        op.erase()


def _define(module: ir.Module, op: Op, name: str) -> None:
    types = ([op.operands[0].type], [op.result.type])
    with module.context, op.location, ir.InsertionPoint(module.body):
        function = func.FuncOp(name, types, visibility="private")
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            inner = ir.Operation.create(op.name, [op.result.type], [block.arguments[0]])
            func.ReturnOp([inner.result])
