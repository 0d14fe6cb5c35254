"""ONNX models into StableHLO, through the importer and pipelines of the torch-mlir wheel.

Steps: read and check the file; infer shapes, which must all be known; import node by node into the
torch dialect; lower to StableHLO. Operators that the importer does not know but ONNX defines by
others are replaced by that definition. A location names the ONNX node, so that reports and errors
can. Weights stay binary resources from the protobuf on. `chlo.erf` and its like are kept as
`stablehlo.composite`, whose name says what its expansion computes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from davinci.errors import CompileError, InputError
from davinci.frontends.composites import wrap_chlo
from davinci.mlir import MLIRError, ir, load_onnx_importer, run_pipeline

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
        text = str(error).strip().splitlines()[0]
        raise InputError(f"cannot read the model: {text}", where=str(path)) from None
    if not model.graph.node and not model.graph.output:
        raise InputError(
            "not an ONNX file", where=str(path), found="no graph", expected="a model with a graph"
        )
    return model


def import_model(model: onnx.ModelProto, context: Any, where: str) -> Any:
    """Returns an `ir.Module` in StableHLO with `@main`.

    Its arguments and results carry the ONNX names as `ascend.name`; initializers are not arguments.

    Raises:
        InputError: the model is not valid ONNX.
        CompileError: a dynamic dimension, or an operator that cannot be imported.
    """
    model = prepare(model, where)
    importer = load_onnx_importer(context)
    tried: set[str] = set()
    while True:
        module = import_torch(importer, model, context, where)
        missing = unconverted(module)
        expandable = {op for op, _ in missing if has_definition(op, model)} - tried
        if not expandable:
            break
        tried |= expandable
        functions = [("", op) for op in sorted(expandable)]
        model = infer_shapes(
            onnx.inliner.inline_selected_functions(model, functions, inline_schema_functions=True),
            where,
        )
    if missing:
        op, node = missing[0]
        raise CompileError("unsupported operator", where=where, found=describe(op, node))
    lower(module, model, where)
    finish(module, model)
    return module


def prepare(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """Checks the model, names its nodes, inlines its own functions and infers all shapes."""
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        text = str(error).strip().splitlines()[0]
        raise InputError(f"not a valid ONNX model: {text}", where=where) from None
    initializers = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in initializers:
            check_input(value, where)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return infer_shapes(model, where)


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
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        text = str(error).strip().splitlines()[0]
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
            text = str(error).strip().splitlines()[0]
            raise CompileError(f"cannot import the model: {text}", where=where) from None
        except MLIRError as error:
            raise CompileError(*node_error(error, model), where=where) from None
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
        schema = onnx.defs.get_schema(op_type, version)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def lower(module: Any, model: onnx.ModelProto, where: str) -> None:
    try:
        run_pipeline(module.operation, TO_CHLO)
        wrap_chlo(module)
        run_pipeline(module.operation, TO_STABLEHLO)
    except MLIRError as error:
        raise CompileError(*node_error(error, model), where=where) from None


def node_error(error: Any, model: onnx.ModelProto) -> tuple[str]:
    """Turns MLIR's diagnostics into a sentence that names the ONNX node they are about."""
    nodes = {node.name: node.op_type for node in model.graph.node}
    for diagnostic in error.error_diagnostics:
        name = location_name(diagnostic.location)
        if name in nodes:
            return (f"{describe(nodes[name], name)} cannot be lowered: {diagnostic.message}",)
    text = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
    return (f"the model cannot be lowered: {text}",)


def location_name(location: Any) -> str:
    """Name of the ONNX node in a location, or its text."""
    while location.is_a_fused():
        location = location.locations[0]
    return str(location.name_str) if location.is_a_name() else str(location)


def describe(op_type: str, node: str) -> str:
    return f"operator {op_type} of node {node!r}"


def finish(module: Any, model: onnx.ModelProto) -> None:
    """Renames the function to `main` and gives its arguments and results their ONNX names."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [v.name for v in model.graph.input if v.name not in initializers]
    outputs = [v.name for v in model.graph.output]
    function = next(
        op
        for op in module.body.operations
        if op.operation.name == "func.func" and "sym_visibility" not in op.attributes
    )
    with module.context:
        for key, names in (("arg_attrs", inputs), ("res_attrs", outputs)):
            attributes = [{"ascend.name": ir.StringAttr.get(name)} for name in names]
            function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])
        for name in list(function.attributes):
            if name.startswith("torch."):
                del function.attributes[name]
        function.attributes["sym_name"] = ir.StringAttr.get("main")
