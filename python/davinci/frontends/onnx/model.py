"""Reads ONNX models and checks what the importer relies on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from davinci.errors import CompileError, InputError
from davinci.frontends.onnx.errors import one_line
from davinci.stand_ins import has_stand_in

FIX = "fix it: python -m onnxruntime.tools.make_dynamic_shape_fixed --help"

WEIGHT_ELEMENTS = 256
"""Initializers with fewer elements may be shapes, which the checks look into."""

MOST_ELEMENTS = 1 << 48
"""Most elements of an input, so that numbers of bytes stay within 64 bits."""


def read(path: Path, values: bool = True) -> onnx.ModelProto:
    """Reads a model and its external data.

    Args:
        values: False: `weights_of` the model stay where they are, if that is a file of their own.

    Raises:
        InputError: not an ONNX file, truncated, or external data missing.
    """
    try:
        model = onnx.load(path, load_external_data=values)
        if not values:
            read_external(model, path.parent, weights_of(model.graph))
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


WEIGHING = frozenset({"Conv", "ConvTranspose", "FusedConv", "Gemm", "GRU", "LSTM", "MatMul", "RNN"})
"""Operators that multiply with their weights, and do nothing else with them."""


def weights_of(graph: onnx.GraphProto) -> frozenset[str]:
    """Large initializers on whose values no time depends, as nothing but products reads them; what
    others read, a mask for example, may decide what is computed at all."""
    large = {
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type in BYTES
        and has_stand_in(tensor.dims, onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    }
    large -= {value.name for value in graph.output}
    for node in nodes_of(graph):
        if node.op_type not in WEIGHING:
            large -= set(node.input)
    return frozenset(large)


def is_elsewhere(tensor: onnx.TensorProto) -> bool:
    """Whether the values of an initializer are not in the model, nor were read."""
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def read_external(model: onnx.ModelProto, folder: Path, left_out: Set[str]) -> None:
    """Reads initializers and attributes from files of their own, of `left_out` only the sizes."""
    kept = [x for x in model.graph.initializer if x.name in left_out and is_elsewhere(x)]
    for tensor in kept:
        info = onnx.external_data_helper.ExternalDataInfo(tensor)
        needed = (info.offset or 0) + math.prod(tensor.dims) * BYTES[tensor.data_type]
        if (size := (folder / info.location).stat().st_size) < needed:
            name = tensor.name
            raise ValueError(f"{info.location} has {size} bytes, {name!r} ends at {needed}")
        tensor.data_location = onnx.TensorProto.DEFAULT
    onnx.external_data_helper.load_external_data_for_model(model, str(folder))
    for tensor in kept:
        tensor.data_location = onnx.TensorProto.EXTERNAL


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
    move_extensions(light)
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
    if is_elsewhere(tensor) or not tensor.HasField("raw_data") or tensor.data_type not in BYTES:
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


EXTENSIONS = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 1 << 31}
"""Operators that onnxruntime puts into ONNX's domain, and the version from which ONNX has them."""


def move_extensions(model: onnx.ModelProto) -> None:
    """Gives nodes that only onnxruntime has in ONNX's domain its own one, which is not checked."""
    version = max((x.version for x in model.opset_import if x.domain in ("", "ai.onnx")), default=1)
    moved = [
        node
        for node in nodes_of(model.graph)
        if node.domain in ("", "ai.onnx") and version < EXTENSIONS.get(node.op_type, 0)
    ]
    for node in moved:
        node.domain = "com.microsoft"
    if moved and all(x.domain != "com.microsoft" for x in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of those that its nodes hold."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_of(inner)


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
