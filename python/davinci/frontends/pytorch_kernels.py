"""Operators of PyTorch that kernels of the user's own compute, as ONNX.

before, of `torch.library.custom_op("mine::swiglu", ..)` and a kernel `swiglu`:
    torch.ops.mine.swiglu.default(x, gate)
after:
    y = davinci.kernels.swiglu(x, gate)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx

from davinci.frontends.own_kernels import OwnKernel

DOMAIN = "davinci.kernels"
"""The domain of ONNX's nodes that stand for kernels."""

PYTORCHS_OWN = ("aten", "prim", "prims", "higher_order")
"""Namespaces whose operators are never a user's."""


def calls_of(program: Any, kernels: Sequence[OwnKernel]) -> dict[Any, Callable[..., Any]]:
    """Translations of the operators in an exported program that are called like a kernel."""
    named = {kernel.name: kernel for kernel in kernels}
    found: dict[Any, Callable[..., Any]] = {}
    for node in program.graph.nodes if named else ():
        parts = str(node.target).split(".")  # mine.swiglu.default
        if len(parts) == 3 and parts[1] in named and parts[0] not in PYTORCHS_OWN:
            found[node.target] = translation_of(named[parts[1]])
    return found


def translation_of(kernel: OwnKernel) -> Callable[..., Any]:
    """What the exporter calls for such an operator, with its operands."""
    from onnxscript import values

    call = values.Op(values.Opset(DOMAIN, 1), kernel.name, schema_of(kernel))
    return lambda *operands: call(*operands)


def schema_of(kernel: OwnKernel) -> onnx.defs.OpSchema:
    """ONNX's description of an operator: as many operands and results as the kernel has."""
    schema = onnx.defs.OpSchema
    every = sorted(onnx.defs.get_schema("Identity").inputs[0].types)
    names = [f"x{n}" for n in range(len(kernel.inputs))]
    results = [f"y{n}" for n in range(len(kernel.outputs))]
    return schema(
        kernel.name,
        DOMAIN,
        1,
        inputs=[schema.FormalParameter(name, f"T{name}") for name in names],
        outputs=[schema.FormalParameter(name, f"T{name}") for name in results],
        type_constraints=[(f"T{name}", every, "") for name in (*names, *results)],
    )
