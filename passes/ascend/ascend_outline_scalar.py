"""ascend-outline-scalar: makes kernels of the functions that @main calls.

before:
    %1 = call @exponential_0(%0) : (tensor<8xf64>) -> tensor<8xf64>
    func.func private @exponential_0(%a: tensor<8xf64>) -> tensor<8xf64> {
      .. stablehlo.exponential .. }
after:
    %1 = call @exponential_0(%0) : (tensor<8xf64>) -> tensor<8xf64>
    func.func private @exponential_0(tensor<8xf64>) -> tensor<8xf64>
    module @kernels {
      func.func @exponential_0(%a: memref<8xf64>, %r: memref<8xf64>)
          attributes {ascend.kernel, ascend.op = "exponential", ascend.unit = "scalar"} {
        scf.for .. }
    }

The scalar unit loads and stores GM element by element: correct and slow, and counted in reports.
Temporaries of a kernel become further results of the call, which nobody uses; constant arrays
that it reads become further operands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from davinci.errors import CompileError
from davinci.mlir import (
    MLIRError,
    Op,
    callee_of,
    func,
    function_type,
    ir,
    kernels_module,
    location_text,
    operations,
    symbols,
)
from davinci.passes import builder
from davinci.passes.ascend.scalar_kernels import build_kernel
from davinci.passes.ascend.tensor_ops import TensorOps, tensor_functions
from davinci.passes.pipeline.base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class AscendOutlineScalarPass(Pass):
    """Lower functions called on tensors to kernels for the scalar unit."""

    NAME = "ascend-outline-scalar"

    def run(self, op: Op) -> None:
        calls: dict[str, list[Op]] = defaultdict(list)
        for entry in tensor_functions(op):
            for call in operations(entry, "func.call"):
                calls[callee_of(call)].append(call)
        functions = dict(symbols(op))
        for name, same in calls.items():
            if functions[name].regions[0].blocks:
                outline(op, functions[name], name, same)


def outline(root: Op, function: Op, name: str, calls: list[Op]) -> None:
    """Makes the kernel of `function`, leaves a declaration, and adapts its calls."""
    op_name = re.sub(r"_\d+$", "", name)
    with root.context, function.location:
        try:
            temporaries, constants = build_kernel(function, kernels_module(root), name, op_name)
        except MLIRError as error:
            first = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise CompileError(
                f"operator '{op_name}' is not supported: no unit has a kernel for it, and upstream "
                f"MLIR cannot bring it to loops: {first}",
                where=location_text(calls[0].location),
            ) from None
        old = function_type(function)
        inputs = [*old.inputs, *(constant.type for constant in constants)]
        types = (inputs, [*old.results, *temporaries])
        with ir.InsertionPoint(function):
            declaration = func.FuncOp("", types, visibility="private")
        function.erase()
        declaration.attributes["sym_name"] = ir.StringAttr.get(name)
    for call in calls:
        with call.location, ir.InsertionPoint(call):
            callee = call.attributes["callee"]
            made = [TensorOps().constant_attribute(constant) for constant in constants]
            new = builder.op("func.call", [*call.operands, *made], types[1], callee=callee)
        for before, after in zip(call.results, new.results, strict=False):
            before.replace_all_uses_with(after)
        call.erase()
