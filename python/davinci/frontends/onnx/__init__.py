"""ONNX models into StableHLO, node by node, without any other importer in between.

`model.py` reads and checks the file, `importer.py` walks the graph, `operators/` holds a lowering
for each operator that is not defined by others, written in the functions of `ops.py` on the
`OnnxTensor`s of `tensor.py`. All shapes are known while the graph is walked. A location names the
ONNX node, so that reports and errors can; weights are resources, never copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from davinci.errors import CompileError
from davinci.frontends.composites import wrap_chlo
from davinci.frontends.onnx.errors import HINT, describe, name_of
from davinci.frontends.onnx.importer import Importer, Scope
from davinci.frontends.onnx.model import check, inputs_of, read, weights_of
from davinci.frontends.onnx.tensor import OnnxTensor, Refused
from davinci.frontends.own_kernels import OwnKernel
from davinci.frontends.scopes import mark_scopes
from davinci.mlir import func, ir, run_pipeline

__all__ = ["import_model", "read"]

CLEAN_UP = "func.func(chlo-legalize-to-stablehlo,canonicalize,cse)"


def import_model(
    model: onnx.ModelProto,
    context: Any,
    where: str,
    values: bool = True,
    kernels: Sequence[OwnKernel] = (),
) -> Any:
    """Returns an `ir.Module` in StableHLO with `@main`.

    Its arguments and results carry the ONNX names as `ascend.name`; initializers are not arguments.

    Args:
        values: False: arrays that take no memory stand in for weights, for runs that find times.
        kernels: of the user's own, called by nodes of other domains than ONNX's.

    Raises:
        InputError: the model is not valid ONNX.
        CompileError: a dynamic dimension, or an operator that is not supported.
    """
    check(model, where)
    with context, ir.Location.name(model.graph.name or "graph"):
        module = ir.Module.create()
        build(module, model, where, values, kernels)
        wrap_chlo(module)
        run_pipeline(module.operation, CLEAN_UP)
    mark_scopes(module, model)
    return module


def build(
    module: Any,
    model: onnx.ModelProto,
    where: str,
    values: bool = True,
    kernels: Sequence[OwnKernel] = (),
) -> None:
    """Adds `@main` of a checked model to `module`."""
    inputs = [input_of(value, model.graph, where) for value in inputs_of(model)]
    names = [value.name for value in inputs_of(model)]
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", ([x.type for x in inputs], []))
    block = main.add_entry_block([ir.Location.name(name) for name in names])
    scope: Scope = {
        name: OnnxTensor(x.dtype, x.shape, value)
        for name, x, value in zip(names, inputs, block.arguments, strict=True)
    }
    with ir.InsertionPoint(block):
        left_out = frozenset[str]() if values else weights_of(model.graph)
        outputs = Importer(model, where, left_out, kernels).graph(model.graph, scope)
        results = [
            result_of(x, v.name, where) for x, v in zip(outputs, model.graph.output, strict=True)
        ]
        func.ReturnOp([x.value for x in results])
    types = ir.FunctionType.get([x.type for x in inputs], [x.type for x in results])
    main.attributes["function_type"] = ir.TypeAttr.get(types)
    main.attributes["arg_attrs"] = named(names)
    main.attributes["res_attrs"] = named([value.name for value in model.graph.output])


def input_of(value: onnx.ValueInfoProto, graph: onnx.GraphProto, where: str) -> OnnxTensor:
    """The type of an input, as a tensor without a value; a refusal names the node that takes it."""
    kind = value.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    tensor = OnnxTensor(dtype, tuple(dim.dim_value for dim in kind.shape.dim))
    try:
        tensor.type  # noqa: B018  refused if no tensor has such elements
    except Refused as refused:
        raise CompileError(
            refused.message,
            where=f"{where}: input {value.name!r}",
            found=taker_of(value.name, graph),
            expected=refused.expected,
            hint=HINT,
        ) from None
    return tensor


def taker_of(name: str, graph: onnx.GraphProto) -> str:
    """The first node that takes a value, as messages name it."""
    takers = (
        describe(node.op_type, name_of(node, number))
        for number, node in enumerate(graph.node)
        if name in node.input
    )
    return next(takers, "")


def result_of(value: Any, name: str, where: str) -> OnnxTensor:
    if not isinstance(value, OnnxTensor):
        found = "a sequence" if isinstance(value, list) else "an optional value left out"
        raise CompileError(
            f"output {name!r} is not a tensor", where=where, found=found, expected="a tensor"
        )
    return value


def named(names: list[str]) -> Any:
    return ir.ArrayAttr.get(
        [ir.DictAttr.get({"ascend.name": ir.StringAttr.get(name)}) for name in names]
    )
