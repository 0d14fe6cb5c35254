"""convert-stablehlo-to-ascend: replaces StableHLO operations by ascend operators on tensors.

before:
    %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : ... -> tensor<8x4xf32>
    %1 = stablehlo.power %x, %y : tensor<8x4xi32>
after:
    %0 = "ascend.matmul"(%a, %w) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = call @power_0(%x, %y) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
    func.func private @power_0(%a: tensor<8x4xi32>, %b: tensor<8x4xi32>) -> .. { .. }

Needs static shapes, and calls inlined. An operation that has no ascend operator, or one that the
vector unit has no instructions for on these types, nor on wider ones (`wider_integers`), becomes a
call of a function for the scalar unit. Operations on small constants are computed at once.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import partial

from davinci import machine as machines
from davinci.dialects.ascend import call_of, record_of
from davinci.dialects.base import attribute
from davinci.element_types import DTYPES
from davinci.machine import Machine
from davinci.mlir import Op, callee_of, ir, operations, symbols
from davinci.operators.core import SCALAR
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    merge_equal,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.passes.stablehlo_to_ascend import CONVERSIONS
from davinci.passes.stablehlo_to_ascend.index_wrapping import unwrap_indices
from davinci.passes.stablehlo_to_ascend.refusals import refuse_by_name, refuse_target
from davinci.passes.stablehlo_to_ascend.scalar_calls import ScalarCalls
from davinci.passes.stablehlo_to_ascend.stablehlo_outline_loops import TARGET as LOOP
from davinci.passes.stablehlo_to_ascend.wider_integers import in_words

FAMILIES = (
    *("elementwise", "movement", "reductions", "blocks", "sort", "reduce_window", "dot_general"),
    "convolution",
)

MARKERS = frozenset({"stablehlo.optimization_barrier"})
"""Operations that return their operands."""


@register_pass
@dataclass(frozen=True)
class ConvertStablehloToAscendPass(Pass):
    """Replace StableHLO operations by ascend operators, others by scalar calls."""

    NAME = "convert-stablehlo-to-ascend"

    machine: str = option("ascend910", "machine file whose UB says what rows can be sorted there")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for family in FAMILIES:
            importlib.import_module(f"davinci.passes.stablehlo_to_ascend.{family}")
        require_inlined(op)
        calls = ScalarCalls(op)
        for function in tensor_functions(op):
            convert_function(function, calls, machine)
        calls.erase_unused_functions()


def require_inlined(module: Op) -> None:
    """Fails at a call of a function that has calls itself: recursion, once calls are inlined."""
    functions = {name: op for name, op in symbols(module) if op.name == "func.func"}
    for function in tensor_functions(module):
        for call in operations(function, "func.call"):
            callee = callee_of(call)
            if callee in functions and operations(functions[callee], "func.call"):
                hint = "run inline first; recursion cannot be compiled"
                fail(call, "calls a function that has calls itself", found=f"@{callee}", hint=hint)


def convert_function(function: Op, calls: ScalarCalls, machine: Machine | None = None) -> None:
    """Converts the operations of a function on tensors, in place."""
    if not function.regions[0].blocks:
        fail(function, "has no body", expected="a function with a body")
    for argument in function.regions[0].blocks[0].arguments:
        require_array(argument, function)
    unwrap_indices(function.regions[0].blocks[0])
    for operation in list(function.regions[0].blocks[0].operations):
        op = operation.operation
        dialect = op.name.split(".")[0]
        if op.name in ("func.return", "func.call") or dialect == "ascend" or is_loop(op):
            continue
        with op.location, ir.InsertionPoint(op):
            results = convert(op, calls, machine)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
    merge_equal(function.regions[0].blocks[0])


def is_loop(op: Op) -> bool:
    """Whether an operation stands for a loop, see `stablehlo-outline-loops`."""
    return op.name == "stablehlo.custom_call" and attribute(op, "call_target_name") == LOOP


def convert(op: Op, calls: ScalarCalls, machine: Machine | None) -> list[ir.Value]:
    """Values that replace the results of `op`."""
    if op.name in MARKERS:
        return list(op.operands)
    name = op.name.removeprefix("stablehlo.")
    if op.name == "arith.constant" and isinstance(op.result.type, ir.RankedTensorType):
        name = "constant"
    refuse_by_name(op)
    require_static(op)
    results = by_operators(op, name, machine)
    if results is None:
        results = in_words(op, partial(by_operators, name=name, machine=machine), machine)
    if results is not None:
        return results
    if op.name == "stablehlo.custom_call":
        refuse_target(op)
    if not op.name.startswith("stablehlo."):
        fail(op, "cannot be converted to ascend", expected="StableHLO operations on tensors")
    return calls.call(op)


def by_operators(op: Op, name: str, machine: Machine | None) -> list[ir.Value] | None:
    """The results of `op` by operators that need no scalar kernel; None if there are none.

    Args:
        name: what the conversion is registered for.
    """
    pattern = CONVERSIONS.get(name)
    ops = TensorOps(machine)
    results = pattern(op, ops) if pattern else None
    if results is not None and all(is_legal(built) for built in ops.built):
        return list(results)
    for built in reversed(ops.built):
        built.erase()
    return None


def is_legal(built: Op) -> bool:
    """Whether an operation just built needs no scalar kernel."""
    return record_of(built).unit_of(call_of(built)) != SCALAR


def require_static(op: Op) -> None:
    for value in [*op.operands, *op.results]:
        require_array(value, op)


def require_array(value: ir.Value, op: Op) -> None:
    """Fails at `op` unless `value` is a tensor of static shape, of numbers or booleans."""
    shaped = isinstance(value.type, ir.RankedTensorType)
    if not shaped or not value.type.has_static_shape:
        memref = isinstance(value.type, ir.MemRefType)
        fail(
            op,
            "has an operand or result that is not a static tensor",
            found=str(value.type),
            expected="a tensor of static shape",
            hint="a function of the host on memrefs needs the attribute ascend.entry; a kernel "
            "without a host is called by davinci.kernel_from"
            if memref
            else "",
        )
    if str(value.type.element_type) not in DTYPES:
        fail(
            op,
            "has an element type that kernels cannot hold",
            found=str(value.type.element_type),
            expected=f"one of {', '.join(DTYPES)}",
        )
