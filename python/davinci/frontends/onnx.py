"""ONNX models into StableHLO, through the importer and pipelines of the torch-mlir wheel.

Steps: read and check the file; infer shapes, which must all be known; import node by node into the
torch dialect; lower to StableHLO. Operators that the importer does not know but ONNX defines by
others are replaced by that definition. A location names the ONNX node, so that reports and errors
can. Weights are inputs of the graph during the import, so that no pass touches (and copies) them;
then they become resources. `chlo.erf` and its like are kept as `stablehlo.composite`, whose name
says what its expansion computes.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from davinci.elements import dtype_of, to_attribute
from davinci.errors import CompileError, InputError
from davinci.frontends.composites import wrap_chlo
from davinci.frontends.onnx_known import fold
from davinci.frontends.onnx_rewrites import EXPANDED, rewrite
from davinci.mlir import MLIRError, ir, load_onnx_importer, run_pipeline

WEIGHT_ELEMENTS = 256
"""Initializers with fewer elements may be wanted by a conversion and stay constants."""

TO_TORCH = "func.func(convert-torch-onnx-to-torch)"
TO_CHLO = (
    "torch-lower-to-backend-contract{backend-legal-ops=},func.func(canonicalize),"
    "func.func(convert-torch-to-stablehlo{enable-i32-index=false},canonicalize,cse)"
)
TO_STABLEHLO = (
    "func.func(chlo-legalize-to-stablehlo,canonicalize,cse),"
    "torch-func-backend-type-conversion-for-stablehlo,func.func(canonicalize,"
    "torch-finalizing-backend-type-conversion-for-stablehlo),"
    "torch-verify-stablehlo-backend-contract,"
    "func.func(stablehlo-canonicalize-dynamism,stablehlo-legalize-deprecated-ops,"
    "stablehlo-aggressive-simplification,canonicalize,cse)"
)


def read(path: Path) -> onnx.ModelProto:
    """Reads a model and its external data.

    Raises:
        InputError: not an ONNX file, truncated, or external data missing.
    """
    try:
        model = onnx.load(path)
    except DecodeError:
        raise InputError("not an ONNX file, or a truncated one", where=str(path)) from None
    except (onnx.checker.ValidationError, OSError, ValueError) as error:
        text = one_line(error)
        raise InputError(f"cannot read the model: {text}", where=str(path)) from None
    if not model.graph.node and not model.graph.output:
        raise InputError(
            "not an ONNX file",
            where=str(path),
            found="neither nodes nor outputs",
            expected="a graph",
        )
    return model


def import_model(model: onnx.ModelProto, context: Any, where: str) -> Any:
    """Returns an `ir.Module` in StableHLO with `@main`.

    Its arguments and results carry the ONNX names as `ascend.name`; initializers are not arguments.

    Raises:
        InputError: the model is not valid ONNX.
        CompileError: a dynamic dimension, or an operator that cannot be imported.
    """
    model, weights = without_weights(model)
    model = prepare(model, where, set(weights))
    module = import_stablehlo(model, context, where)
    finish(module, model, weights)
    return module


def import_stablehlo(model: onnx.ModelProto, context: Any, where: str) -> Any:
    """Imports and lowers; an operator that cannot be is replaced by ONNX's definition, if any."""
    importer = load_onnx_importer(context)
    tried: set[str] = set()
    while True:
        operators = {node.op_type for node in model.graph.node}
        expanded = {op for op in operators & EXPANDED if has_definition(op, model)} - tried
        if not expanded:
            try:
                module = import_torch(importer, model, context, where)
                require_converted(module, where)
                lower(module, model, where)
                return module
            except LoweringError as error:
                expanded = {op for op in error.operators if has_definition(op, model)} - tried
                if not expanded:
                    raise
        tried |= expanded
        model = importable(expand(model, expanded, where), where)


class LoweringError(CompileError):
    """An operator cannot be imported.

    Attributes:
        operators: that may be at fault.
    """

    def __init__(self, message: str, operators: set[str], where: str, found: str = "") -> None:
        super().__init__(message, where=where, found=found)
        self.operators = operators


def require_converted(module: Any, where: str) -> None:
    """Fails if ONNX operators are still in the module."""
    missing = unconverted(module)
    if missing:
        op, node = missing[0]
        operators = {name for name, _ in missing}
        raise LoweringError("unsupported operator", operators, where, describe(op, node))


def prepare(model: onnx.ModelProto, where: str, weights: set[str]) -> onnx.ModelProto:
    """Checks the model, names its nodes, inlines its own functions and infers all shapes."""
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        text = one_line(error)
        raise InputError(f"not a valid ONNX model: {text}", where=where) from None
    initializers = weights | {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in initializers:
            check_input(value, where)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return importable(model, where)


def importable(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A copy of the model with all types, and no operator that the importer gets wrong."""
    return infer_shapes(rewrite(infer_shapes(model, where), where), where)


def without_weights(
    model: onnx.ModelProto,
) -> tuple[onnx.ModelProto, dict[str, onnx.TensorProto]]:
    """A copy whose large floating-point initializers are inputs of the graph, and those by name."""
    graph = model.graph
    weights = {t.name: t for t in graph.initializer if is_weight(t)}
    copy = onnx.ModelProto(ir_version=model.ir_version)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    copy.graph.name = graph.name
    copy.graph.node.extend(graph.node)
    copy.graph.input.extend(graph.input)
    copy.graph.output.extend(graph.output)
    copy.graph.value_info.extend(graph.value_info)
    copy.graph.initializer.extend(t for t in graph.initializer if t.name not in weights)
    copy.graph.sparse_initializer.extend(graph.sparse_initializer)
    declared = {value.name for value in graph.input}
    for name, tensor in weights.items():
        if name not in declared:
            value = onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
            copy.graph.input.append(value)
    return copy, weights


def is_weight(tensor: onnx.TensorProto) -> bool:
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    return tensor.data_type in floats and math.prod(tensor.dims) >= WEIGHT_ELEMENTS


def check_input(value: onnx.ValueInfoProto, where: str) -> None:
    """A model input must be a tensor of known shape."""
    if value.type.WhichOneof("value") != "tensor_type":
        raise CompileError(
            f"input {value.name!r} is not a tensor",
            where=where,
            found=str(value.type.WhichOneof("value")),
        )
    if not value.type.tensor_type.HasField("shape"):
        raise CompileError(f"input {value.name!r} has no shape", where=where)
    for i, dim in enumerate(value.type.tensor_type.shape.dim):
        if not dim.HasField("dim_value") or dim.dim_value < 0:
            raise CompileError(
                f"input {value.name!r} has a dynamic dimension",
                where=where,
                found=f"dimension {i} is {dim.dim_param or 'unknown'!r}",
                expected="static shapes",
                hint="fix it: python -m onnxruntime.tools.make_dynamic_shape_fixed --help",
            )


def infer_shapes(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A copy of the model with the type of every value, each node with a name."""
    try:
        model = fold(model)
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        text = one_line(error)
        raise InputError(f"shapes contradict each other: {text}", where=where) from None
    for i, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{i}"
    values = {v.name: v for v in [*model.graph.value_info, *model.graph.output]}
    for node in model.graph.node:
        for name in filter(None, node.output):
            found = values.get(name)
            if found is not None and not is_static(found):
                raise CompileError(
                    "the shape of a value depends on data",
                    where=where,
                    found=f"{describe(node.op_type, node.name)}, output {name!r}",
                    expected="static shapes",
                )
    return model


def is_static(value: onnx.ValueInfoProto) -> bool:
    if value.type.WhichOneof("value") != "tensor_type":
        return True
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim)


def import_torch(importer: Any, model: onnx.ModelProto, context: Any, where: str) -> Any:
    """The model in the torch dialect, ONNX operators converted as far as they are known."""
    with context, ir.Location.unknown():
        info = importer.ModelInfo(model)
        module = info.create_module(context=context)
        try:
            importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
            run_pipeline(module.operation, TO_TORCH)
        except importer.OnnxImportError as error:
            text = one_line(error)
            raise CompileError(f"cannot import the model: {text}", where=where) from None
        except MLIRError as error:
            raise node_error(error, model, where) from None
    return module


def unconverted(module: Any) -> list[tuple[str, str]]:
    """ONNX operators still in the module: operator and node names."""
    found: list[tuple[str, str]] = []

    def visit(op: Any) -> Any:
        if op.name == "torch.operator":
            name = str(ir.StringAttr(op.attributes["name"]).value).removeprefix("onnx.")
            found.append((name, location_name(op.location)))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def has_definition(op_type: str, model: onnx.ModelProto) -> bool:
    """Whether ONNX defines the operator by simpler ones."""
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
    try:
        schema: Any = onnx.defs.get_schema(op_type, version)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def expand(model: onnx.ModelProto, operators: set[str], where: str) -> onnx.ModelProto:
    """A copy of the model with `operators` replaced by their definitions."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    # The inliner asks for the type of every input, also of one that is left out (its name is "").
    left_out = onnx.helper.make_tensor_value_info("", onnx.TensorProto.FLOAT, None)
    copy.graph.value_info.append(left_out)
    functions = [("", operator) for operator in sorted(operators)]
    try:
        copy = onnx.inliner.inline_selected_functions(copy, functions, inline_schema_functions=True)
    except RuntimeError as error:
        text = str(error).strip().splitlines()[0]
        raise CompileError(
            f"cannot expand {', '.join(sorted(operators))}: {text}", where=where
        ) from None
    values = copy.graph.value_info
    for value in [value for value in values if not value.name]:
        values.remove(value)
    return copy


def lower(module: Any, model: onnx.ModelProto, where: str) -> None:
    try:
        run_pipeline(module.operation, TO_CHLO)
        wrap_chlo(module)
        run_pipeline(module.operation, TO_STABLEHLO)
    except MLIRError as error:
        raise node_error(error, model, where) from None


def node_error(error: Any, model: onnx.ModelProto, where: str) -> LoweringError:
    """Turns MLIR's diagnostics into a sentence that names the ONNX node they are about."""
    nodes = {node.name: node.op_type for node in model.graph.node}
    for diagnostic in error.error_diagnostics:
        name = location_name(diagnostic.location)
        if name in nodes:
            # What comes behind the colon is the operation as the importer's dialect prints it.
            reason = diagnostic.message.partition(": %")[0]
            described = describe(nodes[name], name)
            if "'torch." in reason:
                reason = "the operator, or this form of it, is not supported"
            return LoweringError(f"{described} cannot be lowered: {reason}", {nodes[name]}, where)
    text = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
    operators = set(nodes.values())
    return LoweringError(f"the model cannot be lowered: {text}", operators, where)


def location_name(location: Any) -> str:
    """Name of the ONNX node in a location, or its text."""
    text = str(location)
    found = re.search(r'"([^"]*)"(?!:)', text)
    return found[1] if found else text


def one_line(error: Exception) -> str:
    """The text of an error of the onnx package, which may be several lines."""
    return " ".join(str(error).split())


def describe(op_type: str, node: str) -> str:
    return f"operator {op_type} of node {node!r}"


def finish(module: Any, model: onnx.ModelProto, weights: dict[str, onnx.TensorProto]) -> None:
    """Renames the function to `main`, puts weights in, names its arguments and results."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [v.name for v in model.graph.input if v.name not in initializers]
    outputs = [v.name for v in model.graph.output]
    function = next(
        op
        for op in module.body.operations
        if op.operation.name == "func.func" and "sym_visibility" not in op.attributes
    )
    with module.context:
        function.attributes["sym_name"] = ir.StringAttr.get("main")
        for name in list(function.attributes):
            if name.startswith("torch."):
                del function.attributes[name]
        block = function.regions[0].blocks[0]
        for number in reversed(range(len(inputs))):
            if inputs[number] in weights:
                with ir.Location.name(inputs[number]), ir.InsertionPoint.at_block_begin(block):
                    constant = weight_constant(weights[inputs[number]])
                block.arguments[number].replace_all_uses_with(constant)
                block.erase_argument(number)
        kept = [name for name in inputs if name not in weights]
        results = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
        types = ir.FunctionType.get([a.type for a in block.arguments], results)
        function.attributes["function_type"] = ir.TypeAttr.get(types)
        for key, names in (("arg_attrs", kept), ("res_attrs", outputs)):
            attributes = [{"ascend.name": ir.StringAttr.get(name)} for name in names]
            function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])


def weight_constant(tensor: onnx.TensorProto) -> Any:
    half = tensor.data_type == onnx.TensorProto.FLOAT16
    element = ir.F16Type.get() if half else ir.F32Type.get()
    if tensor.HasField("raw_data"):
        array = np.frombuffer(tensor.raw_data, dtype_of(element)).reshape(tuple(tensor.dims))
    else:
        array = onnx.numpy_helper.to_array(tensor)
    attr = to_attribute(array, element, tensor.name)
    return ir.Operation.create("stablehlo.constant", [attr.type], [], {"value": attr}).result
