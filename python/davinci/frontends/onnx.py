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
from davinci.frontends.onnx_errors import (
    HINT,
    LoweringError,
    Nodes,
    describe,
    form_of,
    location_name,
    named,
    one_line,
    plain,
)
from davinci.frontends.onnx_known import fold, used_names
from davinci.frontends.onnx_rewrites import EXPANDED, rewrite
from davinci.frontends.scopes import mark_scopes
from davinci.mlir import (
    MLIRError,
    function_type,
    ir,
    load_onnx_importer,
    operations,
    run_pipeline,
)

WEIGHT_ELEMENTS = 256
"""Initializers with fewer elements may be wanted by a conversion and stay constants."""

FIX = "fix it: python -m onnxruntime.tools.make_dynamic_shape_fixed --help"

MOST_ELEMENTS = 1 << 48
"""Of an input; numbers of bytes stay within 64 bits."""

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
    check_sizes(weights, where)
    typed = prepare(model, where, set(weights))
    importer = Importer(context, where, Nodes(typed))
    module = importer.stablehlo(importable(typed, where))
    finish(module, typed, weights)
    mark_scopes(module, typed)
    return module


class Importer:
    """Imports and lowers models; errors name the nodes that the model's author knows."""

    def __init__(self, context: Any, where: str, nodes: Nodes) -> None:
        self._bindings = load_onnx_importer(context)
        self._context, self._where, self._nodes = context, where, nodes

    def stablehlo(self, model: onnx.ModelProto) -> Any:
        """The model as StableHLO; what cannot be imported is replaced by its definition, if any.

        Raises:
            LoweringError: an operator can neither be imported nor replaced.
        """
        tried: set[str] = set()
        while True:
            operators = {node.op_type for node in model.graph.node}
            expanded = {op for op in operators & EXPANDED if has_definition(op, model)} - tried
            if not expanded:
                try:
                    return self._lowered(model)
                except LoweringError as error:
                    expanded = {op for op in error.operators if has_definition(op, model)} - tried
                    if not expanded:
                        raise (error if error.node else self._culprit(model, error)) from None
            tried |= expanded
            model = expand(model, expanded, self._where)
            model = importable(infer_shapes(model, self._where), self._where)

    def _lowered(self, model: onnx.ModelProto) -> Any:
        """The model as StableHLO, or a `LoweringError`."""
        with self._context, ir.Location.unknown():
            info = self._bindings.ModelInfo(model)
            module = info.create_module(context=self._context)
            graph = self._bindings.NodeImporter.define_function(info.main_graph, module.operation)
            try:
                graph.import_all()
                run_pipeline(module.operation, TO_TORCH)
                missing = unconverted(module)
                if missing:
                    raise self._error(missing[0][1], "", {name for name, _ in missing})
                run_pipeline(module.operation, TO_CHLO)
                wrap_chlo(module)
                run_pipeline(module.operation, TO_STABLEHLO)
            except self._bindings.OnnxImportError as error:
                reason = one_line(error).partition(". ")[0]
                raise self._error("", reason, operators_of(model)) from None
            except MLIRError as error:
                names = {node.name for node in model.graph.node}
                name, reason = named(error, names)
                operators = {n.op_type for n in model.graph.node if name in ("", n.name)}
                first = next((d.message for d in error.error_diagnostics), str(error))
                raise self._error(name, reason or first, operators) from None
        return module

    def _error(self, name: str, reason: str, operators: set[str]) -> LoweringError:
        """The error of a node, or of the model if `name` is empty."""
        if not name:
            message = f"the model cannot be lowered: {reason}"
            names = f"operators {', '.join(sorted(operators))}"
            return LoweringError(message, operators, self._where, names, reason=reason)
        node = self._nodes.describe(name, min(operators))
        if not reason:
            message, found = "unsupported operator", f"{node}, {self._nodes.form(name)}"
        else:
            message, found = f"{node} cannot be lowered: {reason}", self._nodes.form(name)
        return LoweringError(message, operators, self._where, found.rstrip(", "), node=name)

    def _culprit(self, model: onnx.ModelProto, error: LoweringError) -> LoweringError:
        """The error of the first node that cannot be lowered on its own, else `error`."""
        types = {v.name: v for v in [*model.graph.input, *model.graph.value_info]}
        tried: set[tuple[str, str]] = set()
        for node in model.graph.node:
            form = (node.op_type, form_of(node, {name: v.type for name, v in types.items()}))
            if node.op_type == "Constant" or form in tried:
                continue
            tried.add(form)
            try:
                self._lowered(alone(model, node))
            except LoweringError as found:
                if found.node:
                    return found
                return self._error(node.name, plain(found.reason), {node.op_type})
        return error


def prepare(model: onnx.ModelProto, where: str, weights: set[str]) -> onnx.ModelProto:
    """Checks the model, inlines its own functions, names its nodes and infers all shapes."""
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
    name_nodes(model)
    check_axes(model, where)
    return infer_shapes(model, where)


def check_axes(model: onnx.ModelProto, where: str) -> None:
    """Axes must be those of the operand: the importer takes others, and loops or computes anything.

    Other contradictions are found by the lowering, which names more of the operator.
    """
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        text = one_line(error)
        if re.search(r"\b(axis|axes)\b", text):
            raise InputError(f"not a valid ONNX model: {text}", where=where) from None


def check_sizes(weights: dict[str, onnx.TensorProto], where: str) -> None:
    """The data of an initializer, also from a file of its own, must be as much as its shape."""
    for name, tensor in weights.items():
        item = 2 if tensor.data_type == onnx.TensorProto.FLOAT16 else 4
        expected = math.prod(tensor.dims) * item
        if tensor.HasField("raw_data") and len(tensor.raw_data) != expected:
            raise InputError(
                f"initializer {name!r} has the wrong size",
                where=where,
                found=f"{len(tensor.raw_data)} bytes",
                expected=f"{expected} bytes for shape {list(tensor.dims)}",
            )


def importable(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A typed model without operators that the importer gets wrong."""
    return infer_shapes(rewrite(model, where), where)


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
            expected="tensors of numbers",
        )
    if not value.type.tensor_type.HasField("shape"):
        raise CompileError(
            f"input {value.name!r} has no shape", where=where, expected="static shapes", hint=FIX
        )
    dims = value.type.tensor_type.shape.dim
    if math.prod(dim.dim_value for dim in dims) > MOST_ELEMENTS:
        raise CompileError(f"input {value.name!r} is too large for any memory", where=where)
    for i, dim in enumerate(dims):
        if not dim.HasField("dim_value") or dim.dim_value < 0:
            raise CompileError(
                f"input {value.name!r} has a dynamic dimension",
                where=where,
                found=f"dimension {i} is {dim.dim_param or 'unknown'!r}",
                expected="static shapes",
                hint=FIX,
            )


def infer_shapes(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A copy of the model with the type of every value, each node with a name."""
    try:
        model = fold(model)
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        text = one_line(error)
        raise InputError(f"shapes contradict each other: {text}", where=where) from None
    name_nodes(model)
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
                    hint="make constants of the values that give the shape",
                )
    return model


def name_nodes(model: onnx.ModelProto) -> None:
    """Gives nodes without a name their operator and place in the graph as one."""
    for i, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{i}"


def is_static(value: onnx.ValueInfoProto) -> bool:
    if value.type.WhichOneof("value") != "tensor_type":
        return True
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim)


def unconverted(module: Any) -> list[tuple[str, str]]:
    """ONNX operators still in the module: operator and node names."""
    return [
        (
            str(ir.StringAttr(op.attributes["name"]).value).removeprefix("onnx."),
            location_name(op.location),
        )
        for op in operations(module.operation, "torch.operator")
    ]


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
        culprits = [describe(n.op_type, n.name) for n in model.graph.node if n.op_type in operators]
        raise CompileError(
            f"an operator cannot be replaced by its definition: {one_line(error)}",
            where=where,
            found=", ".join(culprits),
            hint=HINT,
        ) from None
    name_expanded(copy, [node for node in model.graph.node if node.op_type in operators])
    values = copy.graph.value_info
    for value in [value for value in values if not value.name]:
        values.remove(value)
    return copy


def name_expanded(model: onnx.ModelProto, expanded: list[onnx.NodeProto]) -> None:
    """Names the nodes of definitions after the nodes that they replace, which come in order."""
    remaining = [set(filter(None, node.output)) for node in expanded]
    number = 0
    for node in model.graph.node:
        if node.name:
            continue
        node.name = expanded[number].name
        remaining[number] -= set(node.output)
        if not remaining[number] and number + 1 < len(expanded):
            number += 1


def operators_of(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def alone(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.ModelProto:
    """A model of this node and the constants it takes; other values are inputs."""
    used, graph = used_names([node]), model.graph
    constants = [n for n in graph.node if n.op_type == "Constant" and used & set(n.output)]
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    made = {tensor.name for tensor in tensors} | {name for n in constants for name in n.output}
    values = {v.name: v for v in [*graph.input, *graph.value_info, *graph.output]}
    inputs = [values[name] for name in sorted(used - made) if name in values]
    outputs = [values[name] for name in node.output if name in values]
    copy = onnx.helper.make_graph([*constants, node], "node", inputs, outputs, tensors)
    return onnx.helper.make_model(
        copy, opset_imports=list(model.opset_import), ir_version=model.ir_version
    )


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
        results = function_type(function).results
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
