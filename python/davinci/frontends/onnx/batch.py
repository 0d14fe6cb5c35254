"""An ONNX model of one sample as a model of several.

before: input [1, 128], Reshape of it to [1, 128, 12, 64], or to [1, 128, -1, 64]
after:  input [4, 128], Reshape of it to [-1, 128, 12, 64], or to [4, 128, -1, 64]

The first dimension of every input is the batch, and from there each value has a dimension that is
longer than in the model of one sample. Exporters of one sample write shapes, indices and class
tokens without their batch: such constants are made for several samples (`_RULES`). Whether a model
means the same then is for the caller to find out: that its outputs for several samples are those of
each sample, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np
import onnx
from onnx import numpy_helper

from davinci.errors import InputError
from davinci.frontends.onnx.evaluate import run
from davinci.frontends.onnx.model import inputs_of, without_weights
from davinci.frontends.onnx.tensor import Array

Types = dict[str, onnx.TypeProto]


def batched(model: onnx.ModelProto, count: int, where: str) -> onnx.ModelProto:
    """The model for `count` samples at once.

    Raises:
        InputError: an input whose first dimension is not 1, or is none.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in inputs_of(made):
        dims = value.type.tensor_type.shape.dim
        if not dims or dims[0].dim_value not in (0, 1):
            raise InputError(
                "not a model of one sample",
                where=f"{where}: input {value.name!r}",
                found=f"{dims[0].dim_value} as its first dimension" if dims else "a number",
                expected="1",
                hint=f"export the model with a batch of {count}",
            )
        dims[0].dim_value = count
    for value in made.graph.output:
        value.type.tensor_type.shape.Clear()
    del made.graph.value_info[:]
    one, many = ModelFacts(model), ModelFacts(made)
    declared = result_types(model)
    for node in model.graph.node:
        one.infer(node, declared)
    for node in made.graph.node:
        if one.depending.intersection(node.input) and node.op_type in _RULES:
            _RULES[node.op_type](node, one, many, count)
        many.infer(node, one.types)
    return made


class ModelFacts:
    """What is known of the values of a model without running it.

    Attributes:
        types: element types and shapes of values by name.
        depending: names of the values that depend on an input.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.types: Types = {}
        for value in model.graph.input:
            self.types[value.name] = kind = onnx.TypeProto()
            kind.CopyFrom(value.type)
        for value in inputs_of(model):
            first = self.types[value.name].tensor_type.shape.dim[0]
            first.dim_value = first.dim_value or 1  # an open dimension of one sample
        self.depending = {value.name for value in inputs_of(model)}
        for node in model.graph.node:
            if self.depending.intersection(node.input):
                self.depending.update(node.output)
        self._producers = {name: node for node in model.graph.node for name in node.output}
        self._opsets = {entry.domain: entry.version for entry in model.opset_import}
        self._found: dict[str, Array | None] = {}

    @cached_property
    def constants(self) -> dict[str, onnx.TensorProto]:
        """Initializers and the tensors of `Constant` nodes by name."""
        return constant_tensors(self.model.graph)

    def shape(self, name: str) -> tuple[int, ...]:
        """Sizes of a value; 0 for what is not known, () where not even the rank is."""
        found = self.types.get(name)
        return tuple(dim.dim_value for dim in found.tensor_type.shape.dim) if found else ()

    def known(self, name: str) -> Array | None:
        """A value that depends on no input, or only on the shapes of what does; None for others."""
        if name not in self._found:
            self._found[name] = None  # of a value that would need itself
            self._found[name] = self._computed(name)
        return self._found[name]

    def _computed(self, name: str) -> Array | None:
        if name in self.constants:
            return numpy_helper.to_array(self.constants[name])
        node = self._producers.get(name)
        if node is None or len(node.output) != 1:
            return None
        operands: list[Array | None]
        if node.op_type in ("Shape", "Size") and node.input[0] in self.depending:
            sizes = self.shape(node.input[0])
            # Only the shape of the operand is read.
            operands = [np.broadcast_to(np.float32(0), sizes) if all(sizes) else None]
        else:
            operands = [self.known(key) for key in node.input if key]
        values = {f"x{i}": array for i, array in enumerate(operands) if array is not None}
        if len(values) != len(operands):
            return None
        numbers = iter(values)
        names = [next(numbers) if key else "" for key in node.input]
        results = run(node, names, values, self._opsets)
        return results[0] if results else None

    def infer(self, node: onnx.NodeProto, like: Mapping[str, onnx.TypeProto]) -> None:
        """Adds the types of what a node makes, from those of its operands; those of `like` where
        they do not follow."""
        domain = node.domain if node.domain != "ai.onnx" else ""
        try:
            schema = onnx.defs.get_schema(node.op_type, self._opsets.get(domain, 1), domain)
            given = {name: self._type(name, like) for name in node.input if name}
            data = {name: numpy_helper.from_array(sizes) for name, sizes in self._sizes(given)}
            found = onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                {name: kind for name, kind in given.items() if kind is not None},
                data,
                opset_imports=list(self.model.opset_import),
            )
        except (onnx.defs.SchemaError, onnx.shape_inference.InferenceError, RuntimeError):
            found = {}
        for name in node.output:
            kind = found.get(name, like.get(name))
            if name and kind is not None:
                self.types[name] = kind

    def _sizes(self, given: Mapping[str, onnx.TypeProto | None]) -> Iterator[tuple[str, Array]]:
        """Those operands of a node that may be a shape, as far as they are known."""
        for name, kind in given.items():
            if kind is None or kind.tensor_type.elem_type != onnx.TensorProto.INT64:
                continue
            dims = [dim.dim_value for dim in kind.tensor_type.shape.dim]
            if len(dims) <= 1 and (found := self.known(name)) is not None and found.size <= 16:
                yield name, found

    def _type(self, name: str, like: Mapping[str, onnx.TypeProto]) -> onnx.TypeProto | None:
        tensor = self.constants.get(name)
        if tensor is not None:
            return onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        return self.types.get(name, like.get(name))

    def constant(self, array: Array) -> str:
        """The name of the initializer of this value, which is made if it is not there."""
        made = numpy_helper.from_array(array)
        for name, other in self.constants.items():
            same = name.startswith("batched/") and other.dims == made.dims
            if same and other.raw_data == made.raw_data and other.data_type == made.data_type:
                return name
        made.name = f"batched/{len(self.constants)}"
        self.model.graph.initializer.append(made)
        self.constants[made.name] = made
        return str(made.name)


def _samples_axis(name: str, one: ModelFacts, many: ModelFacts, count: int) -> int | None:
    """The dimension of a value that is longer with several samples."""
    alone, together = one.shape(name), many.shape(name)
    if len(alone) != len(together):
        return None
    longer = [i for i, (a, b) in enumerate(zip(alone, together, strict=True)) if a and b != a]
    return (
        longer[0] if len(longer) == 1 and together[longer[0]] == count * alone[longer[0]] else None
    )


def _reshape(node: onnx.NodeProto, one: ModelFacts, many: ModelFacts, count: int) -> None:
    """A shape that is the same for several samples gets a dimension that takes what is left.

    before: [9, 1, 2, 32] to [9, 1, 64]
    after:  [9, 4, 2, 32] to [9, -1, 64]
    """
    data, shape = node.input[:2]
    found, wanted = many.known(shape), one.known(shape)
    if found is None or wanted is None or not np.array_equal(found, wanted):
        return
    sizes = one.shape(node.output[0])
    if not sizes or not all(sizes):
        if wanted.size and wanted[0] == 1 and -1 in wanted:
            node.input[1] = many.constant(np.array([count, *wanted[1:]], np.int64))
        return
    before = _samples_axis(data, one, many, count)
    axis = 0 if before is None else _axis_behind(one.shape(data), before, sizes)
    node.input[1] = many.constant(np.array([*sizes[:axis], -1, *sizes[axis + 1 :]], np.int64))


def _axis_behind(before: tuple[int, ...], axis: int, after: tuple[int, ...]) -> int:
    """Where a dimension is, or begins, in another shape of the same elements.

    >>> _axis_behind((9, 1, 2, 32), 1, (9, 1, 64)), _axis_behind((3, 2, 1, 8), 2, (6, 1, 8))
    (1, 1)
    """
    if after[: axis + 1] == before[: axis + 1]:
        return axis
    outer = math.prod(before[:axis])
    places = [i for i in range(len(after)) if math.prod(after[:i]) == outer]
    return next((i for i in places if after[i] == 1), (*places, 0)[0])


def _gather(node: onnx.NodeProto, one: ModelFacts, many: ModelFacts, count: int) -> None:
    """Indices along the dimension of samples count on from each sample to the next.

    before: GatherND of the mask [1, 128] at [[[[0, 0], [0, 1], ..]]]
    after:  of the mask [4, 128] at the same, then at [[[1, 0], [1, 1], ..]], ..
    """
    data, indices = node.input[:2]
    found = one.known(indices)
    dims = {entry.name: entry.i for entry in node.attribute}
    by_tuples = node.op_type == "GatherND"
    if found is None or found.ndim < 1 + by_tuples or found.shape[0] != 1:
        return
    if any(dims.values()) or _samples_axis(data, one, many, count) != 0:
        return
    length = one.shape(data)[0]
    parts = np.repeat(found.astype(np.int64), count, axis=0)
    first = parts[..., 0] if by_tuples else parts
    first %= length
    first += length * np.arange(count).reshape(-1, *[1] * (first.ndim - 1))
    node.input[1] = many.constant(parts)


def _join(node: onnx.NodeProto, one: ModelFacts, many: ModelFacts, count: int) -> None:
    """What is the same for every sample, as a class token, is repeated for each.

    before: Concat of a constant [1, 1, 64] and patches [1, 16, 64] along 1
    after:  Concat of a constant [4, 1, 64] and patches [4, 16, 64]
    """
    along = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
    axes = {_samples_axis(name, one, many, count) for name in node.input if one.known(name) is None}
    axis = axes.pop() if len(axes) == 1 else None
    rank = len(one.shape(node.output[0]))
    if axis is not None and rank and along % rank != axis:
        _repeat(node, range(len(node.input)), axis, one, many, count)


def _recurrent(node: onnx.NodeProto, one: ModelFacts, many: ModelFacts, count: int) -> None:
    """The state in which sequences begin is repeated: [1, 1, 64] becomes [1, 4, 64]."""
    layout = next((entry.i for entry in node.attribute if entry.name == "layout"), 0)
    if _samples_axis(node.input[0], one, many, count) == 1 - layout:
        _repeat(node, range(5, len(node.input)), 1 - layout, one, many, count)


def _repeat(
    node: onnx.NodeProto, operands: range, axis: int, one: ModelFacts, many: ModelFacts, count: int
) -> None:
    """Repeats constant operands of length 1 along an axis for each sample."""
    for i in operands:
        found = one.known(node.input[i]) if node.input[i] else None
        if found is not None and found.ndim > axis and found.shape[axis] == 1:
            node.input[i] = many.constant(np.repeat(found, count, axis))


_RULES: dict[str, Callable[[onnx.NodeProto, ModelFacts, ModelFacts, int], None]] = {
    "Concat": _join,
    "GRU": _recurrent,
    "Gather": _gather,
    "GatherElements": _join,
    "GatherND": _gather,
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "Reshape": _reshape,
}
"""How constant operands of an operator become those of several samples: changes the node, given
what is known of one sample and of several, and their number."""


def constant_tensors(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Initializers and the tensors of `Constant` nodes by name."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return found


def result_types(model: onnx.ModelProto) -> Types:
    """Types of values by name, as far as they are known; a dimension that is not is 0."""
    inferred = onnx.shape_inference.infer_shapes(without_weights(model), data_prop=True).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    return {value.name: value.type for value in values}
