"""Reads ONNX models and checks what the importer relies on."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from davinci.errors import CompileError, InputError
from davinci.frontends.onnx.errors import one_line

FIX = "fix it: python -m onnxruntime.tools.make_dynamic_shape_fixed --help"

WEIGHT_ELEMENTS = 256
"""Initializers with fewer elements may be shapes, which the checks look into."""

MOST_ELEMENTS = 1 << 48
"""Of an input; numbers of bytes stay within 64 bits."""


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


def check(model: onnx.ModelProto, where: str) -> None:
    """Checks a model as far as that needs no lowering.

    Raises:
        InputError: not valid ONNX, or initializers of the wrong size.
        CompileError: an input that is no tensor of known shape.
    """
    for tensor in model.graph.initializer:
        if not is_large(tensor):
            check_size(tensor, where)
    light = without_weights(model)
    try:
        onnx.checker.check_model(light)
    except onnx.checker.ValidationError as error:
        text = one_line(error)
        raise InputError(f"not a valid ONNX model: {text}", where=where) from None
    for value in inputs_of(model):
        check_input(value, where)


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs of the graph that are not initializers."""
    graph = model.graph
    made = {tensor.name for tensor in graph.initializer}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in made]


def is_large(tensor: onnx.TensorProto) -> bool:
    """Whether an initializer is looked at only where it is read: each look copies its bytes."""
    return bool(math.prod(tensor.dims) >= WEIGHT_ELEMENTS)


def check_size(tensor: onnx.TensorProto, where: str) -> None:
    """The data of an initializer, also from a file of its own, must be as much as its shape."""
    if not tensor.HasField("raw_data") or tensor.data_type not in BYTES:
        return
    expected = math.prod(tensor.dims) * BYTES[tensor.data_type]
    if len(tensor.raw_data) != expected:
        raise InputError(
            f"initializer {tensor.name!r} has the wrong size",
            where=where,
            found=f"{len(tensor.raw_data)} bytes",
            expected=f"{expected} bytes for shape {list(tensor.dims)}",
        )


KIND = onnx.TensorProto
BYTES: dict[int, int] = {
    **dict.fromkeys((KIND.FLOAT, KIND.INT32, KIND.UINT32), 4),
    **dict.fromkeys((KIND.FLOAT16, KIND.BFLOAT16, KIND.INT16, KIND.UINT16), 2),
    **dict.fromkeys((KIND.DOUBLE, KIND.INT64, KIND.UINT64), 8),
    **dict.fromkeys((KIND.INT8, KIND.UINT8, KIND.BOOL), 1),
}
"""Bytes of an element in `raw_data`."""


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose large initializers are inputs: checks copy their model, and end at 2 GB."""
    graph = model.graph
    weights = [tensor for tensor in graph.initializer if is_large(tensor)]
    names = {tensor.name for tensor in weights}
    copy = onnx.ModelProto(ir_version=model.ir_version)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    copy.graph.name = graph.name or "graph"
    copy.graph.node.extend(graph.node)
    copy.graph.input.extend(graph.input)
    copy.graph.output.extend(graph.output)
    for value in copy.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.shape.SetInParent()  # what it is, the graph says
    copy.graph.initializer.extend(t for t in graph.initializer if t.name not in names)
    copy.graph.sparse_initializer.extend(graph.sparse_initializer)
    declared = {value.name for value in graph.input}
    for tensor in weights:
        if tensor.name not in declared:
            value = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            copy.graph.input.append(value)
    return copy


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
