"""Modules of ascend operators on tensors for tests of passes, and what they compute."""

from __future__ import annotations

from typing import Any

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_type
from davinci.mlir import func, ir, make_context
from davinci.operators import OPERATORS, Tensor
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, definition


def build(shapes: list[tuple[int, ...]], body: Any) -> ir.Module:
    """A module whose @main takes arrays of f32 and returns what `body` makes of them."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        kinds = [tensor_type(Tensor(shape, "f32")) for shape in shapes]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", (kinds, []))
        with ir.InsertionPoint(function.add_entry_block()):
            results = body(TensorOps(), list(function.entry_block.arguments))
            func.ReturnOp(results)
        types = ir.FunctionType.get(kinds, [value.type for value in results])
        function.attributes["function_type"] = ir.TypeAttr.get(types)
    module.operation.verify()
    return module


def values(module: ir.Module, inputs: list[Any]) -> list[Any]:
    """What @main returns, by the records of its operators."""
    block = module.body.operations[0].regions[0].blocks[0]
    known: dict[Any, Any] = dict(zip(block.arguments, inputs, strict=True))
    for operation in block.operations:
        op = operation.operation
        if op.name == "func.return":
            return [known[value] for value in op.operands]
        if definition(op.results[0]) is not None:
            known[op.results[0]] = constant_array(op)
            continue
        call = call_of(op)
        assert OPERATORS[op.name.removeprefix("ascend.")].check(call) is None
        operands = [known[value] for value in op.operands]
        record = OPERATORS[op.name.removeprefix("ascend.")]
        made = record.values(operands, call.outputs[0], call.attributes)
        assert made.shape == call.outputs[0].shape
        known[op.results[0]] = made
    raise AssertionError("no return")
