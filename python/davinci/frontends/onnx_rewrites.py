"""Replaces ONNX operators that the importer gets wrong, or dies of, by others that mean the same.

before:
    %r = Mod(%a, %b)                      // the importer takes the sign of a
after:
    %t = Mod(%a, %b) {fmod = 1}
    %r = Where(t != 0 and (t < 0) != (b < 0), t + b, t)

Found with the node tests of the onnx package (benchmarks/onnx_coverage.py). What has no replacement
is refused here, since some of it would end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import TensorProto, helper

from davinci.errors import CompileError
from davinci.frontends.onnx_errors import HINT, describe, form_of
from davinci.frontends.onnx_known import Array, constant_node, constants_of, run, static_shape

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
SMALL_INTEGERS = (TensorProto.INT8, TensorProto.UINT8)
ELEMENTS = (*FLOATS, *SIGNED, TensorProto.UINT8, TensorProto.UINT32, TensorProto.BOOL)
"""Element types that can be imported; of some others the importer dies."""

EXPANDED = frozenset({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "SpaceToDepth"})
"""Operators replaced by ONNX's own definition, since the importer's is wrong."""

RESIZE_OPSET = 19
"""The version whose reference implementation gives the weights of Resize."""

Rewrite = Callable[["Rewriter", onnx.NodeProto], bool]
REWRITES: dict[str, Rewrite] = {}


def rewrites(*operators: str) -> Callable[[Rewrite], Rewrite]:
    """Registers a function that replaces a node, and says whether it did."""

    def register(function: Rewrite) -> Rewrite:
        REWRITES.update(dict.fromkeys(operators, function))
        return function

    return register


@dataclass
class Rewriter:
    """Builds the nodes that replace one node.

    Attributes:
        types: of the graph's values.
        where: the model, for messages.
        known: the constants of the graph.
    """

    types: dict[str, onnx.TypeProto]
    where: str
    known: dict[str, Array] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    node: onnx.NodeProto = field(default_factory=onnx.NodeProto)

    def element(self, name: str) -> int:
        found = self.types.get(name)
        return int(found.tensor_type.elem_type) if found is not None else 0

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value; every value that is rewritten has one."""
        return static_shape(self.types.get(name)) or ()

    def make(self, operator: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Appends a node and returns its result; nodes keep the name of the one they replace."""
        name = result or f"{self.node.output[0]}/{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], self.node.name, **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"{self.node.output[0]}/{len(self.nodes)}"
        self.nodes.append(constant_node(name, np.asarray(array)))
        return name

    def number(self, value: float, like: str) -> str:
        """A scalar of the element type of the value `like`."""
        return self.constant(np.asarray(value, helper.tensor_dtype_to_np_dtype(self.element(like))))

    def refuse(self, message: str, expected: str = "") -> NoReturn:
        node = describe(self.node.op_type, self.node.name)
        raise CompileError(
            message,
            where=self.where,
            found=f"{node}, {form_of(self.node, self.types)}",
            expected=expected,
            hint=HINT,
        )


def rewrite(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A copy of `model`, with all types inferred, in which every operator can be imported.

    Raises:
        CompileError: an element type or operator that cannot be imported.
    """
    graph = model.graph
    types = {v.name: v.type for v in [*graph.input, *graph.value_info, *graph.output]}
    for tensor in graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    rewriter = Rewriter(types, where, constants_of(model))
    for node in graph.node:
        rewriter.node = node
        if node.domain not in ("", "ai.onnx"):
            rewriter.refuse(f"unsupported operator of domain {node.domain!r}")
        check_elements(rewriter)
        function = REWRITES.get(node.op_type)
        if function is None or not function(rewriter, node):
            rewriter.nodes.append(node)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(rewriter.nodes)
    return copy


def check_elements(rewriter: Rewriter) -> None:
    """Refuses a node of values whose element type cannot be imported."""
    for name in [*rewriter.node.input, *rewriter.node.output]:
        element = rewriter.element(name)
        if element and element not in ELEMENTS:
            kind = TensorProto.DataType.Name(element)
            rewriter.refuse(
                f"value {name!r} has element type {kind}",
                ", ".join(TensorProto.DataType.Name(e) for e in ELEMENTS),
            )


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


@rewrites("Mod")
def rewrite_mod(r: Rewriter, node: onnx.NodeProto) -> bool:
    """The sign of the result is that of the divisor, not of the dividend."""
    if attributes_of(node).get("fmod") or r.element(node.input[0]) not in (*FLOATS, *SIGNED):
        return False
    divisor = node.input[1]
    zero = r.number(0, divisor)
    # Of floats, the importer makes a remainder of this; fmod = 1 it computes with a quotient.
    rest = r.make("Mod", *node.input, fmod=int(r.element(divisor) in SIGNED))
    differ = r.make("Xor", r.make("Less", rest, zero), r.make("Less", divisor, zero))
    moved = r.make("And", differ, r.make("Not", r.make("Equal", rest, zero)))
    r.make("Where", moved, r.make("Add", rest, divisor), rest, result=node.output[0])
    return True


@rewrites("ReduceMax", "ReduceMin")
def rewrite_boolean_reduction(r: Rewriter, node: onnx.NodeProto) -> bool:
    """Booleans are reduced as integers; those of nothing are the least or greatest integer."""
    if r.element(node.input[0]) != TensorProto.BOOL:
        return False
    data = r.make("Cast", node.input[0], to=TensorProto.INT32)
    reduced = r.make(node.op_type, data, *node.input[1:], **attributes_of(node))
    zero = r.constant(np.array(0, np.int32))
    r.make("Greater", reduced, zero, result=node.output[0])
    return True


@rewrites("LpNormalization")
def rewrite_lp_normalization(r: Rewriter, node: onnx.NodeProto) -> bool:
    """Zeros divided by a norm of zero are zeros."""
    given = attributes_of(node)
    axis, data = given.get("axis", -1), node.input[0]
    powered = r.make("Abs", data) if given.get("p", 2) == 1 else r.make("Mul", data, data)
    norm = r.make("ReduceSum", powered, r.constant([axis]), keepdims=1)
    if given.get("p", 2) == 2:
        norm = r.make("Sqrt", norm)
    empty = r.make("Equal", norm, r.number(0, data))
    divisor = r.make("Where", empty, r.number(1, data), norm)
    r.make("Div", data, divisor, result=node.output[0])
    return True


@rewrites("MaxPool")
def rewrite_max_pool(r: Rewriter, node: onnx.NodeProto) -> bool:
    """`ceil_mode` becomes padding; bytes are pooled as floats."""
    given = attributes_of(node)
    data, result = node.input[0], node.output[0]
    small = r.element(data) in SMALL_INTEGERS
    if len(node.output) > 1 or not (given.get("ceil_mode") or small):
        return False
    pool_attributes = {k: v for k, v in given.items() if k not in ("ceil_mode", "auto_pad")}
    pool_attributes["pads"] = window_pads(r, node)
    if not small:
        r.make("MaxPool", data, result=result, **pool_attributes)
        return True
    wide = r.make("Cast", data, to=TensorProto.FLOAT)
    pooled = r.make("MaxPool", wide, **pool_attributes)
    r.make("Cast", pooled, result=result, to=r.element(data))
    return True


def window_pads(r: Rewriter, node: onnx.NodeProto) -> list[int]:
    """Padding, first all begins, with which windows give the result's shape without `ceil_mode`."""
    given = attributes_of(node)
    sizes, results = r.shape(node.input[0])[2:], r.shape(node.output[0])[2:]
    rank = len(sizes)
    kernel, ones = given["kernel_shape"], [1] * rank
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    pads = list(given.get("pads", [0] * 2 * rank))
    auto = given.get("auto_pad", b"NOTSET")
    begins, ends = [], []
    for i in range(rank):
        extent = (kernel[i] - 1) * dilations[i] + 1
        total = max(0, (results[i] - 1) * strides[i] + extent - sizes[i])
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            begin = total // 2 if auto == b"SAME_UPPER" else total - total // 2
        else:
            begin = pads[i]
        begins.append(begin)
        ends.append(max(0, total - begin))
    return begins + ends


USUAL_POOL = {"auto_pad": b"NOTSET", "ceil_mode": 0}
"""Attributes of an AveragePool that the importer understands."""


@rewrites("AveragePool", "LpPool")
def rewrite_sum_pool(r: Rewriter, node: onnx.NodeProto) -> bool:
    """Three-dimensional, Lp, and some other pooling become convolutions with ones."""
    given = attributes_of(node)
    data, shape = node.input[0], r.shape(node.input[0])
    spatial = len(shape) - 2
    averages = node.op_type == "AveragePool"
    odd = any(given.get(key, usual) != usual for key, usual in USUAL_POOL.items())
    if averages and spatial < 3 and not odd and set(given.get("dilations", [1])) == {1}:
        return False
    kernel = given["kernel_shape"]
    window: dict[str, Any] = {k: given[k] for k in ("strides", "dilations") if k in given}
    window["pads"] = window_pads(r, node)
    ones = r.constant(np.ones([1, 1, *kernel], helper.tensor_dtype_to_np_dtype(r.element(data))))
    count, channels = shape[:2]

    def sums(value: str) -> str:
        return r.make("Conv", value, ones, kernel_shape=kernel, **window)

    def apart(value: str) -> str:
        return r.make("Reshape", value, r.constant([count * channels, 1, *shape[2:]]))

    back = r.constant(list(r.shape(node.output[0])))
    if not averages:
        p = given.get("p", 2)
        magnitude = r.make("Abs", data)
        total = sums(apart(r.make("Pow", magnitude, r.number(p, data))))
        root = r.make("Pow", total, r.number(1 / p, data))
        r.make("Reshape", root, back, result=node.output[0])
        return True
    total = sums(apart(data))
    counts = window_counts(r, node, window["pads"])
    divisor = r.constant(counts.astype(helper.tensor_dtype_to_np_dtype(r.element(data))))
    r.make("Reshape", r.make("Div", total, divisor), back, result=node.output[0])
    return True


def window_counts(r: Rewriter, node: onnx.NodeProto, pads: Sequence[int]) -> np.ndarray[Any, Any]:
    """How many elements each window averages over, [1, 1, results..]."""
    given = attributes_of(node)
    sizes, results = r.shape(node.input[0])[2:], r.shape(node.output[0])[2:]
    rank = len(sizes)
    ones = [1] * rank
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    own = [0] * 2 * rank
    if given.get("count_include_pad"):
        explicit = given.get("auto_pad", b"NOTSET") == b"NOTSET"
        own = list(given.get("pads", own) if explicit else pads)
    counts = np.ones([1] * (2 + rank))
    for i in range(rank):
        starts = np.arange(results[i])[:, None] * strides[i] - pads[i]
        taken = starts + np.arange(given["kernel_shape"][i])[None, :] * dilations[i]
        inside = (taken >= -own[i]) & (taken < sizes[i] + own[rank + i])
        along = [1] * (2 + rank)
        along[2 + i] = results[i]
        counts = counts * inside.sum(axis=1).reshape(along)
    return counts


@rewrites("Einsum")
def refuse_scalar_einsum(r: Rewriter, node: onnx.NodeProto) -> bool:
    """The importer runs out of memory on operands of rank 0."""
    if any(static_shape(r.types.get(name)) == () for name in node.input):
        r.refuse("an operand has no dimensions", "multiply by it instead")
    return False


@rewrites("GridSample")
def refuse_nearest(r: Rewriter, node: onnx.NodeProto) -> bool:
    """The importer rounds halves away from zero."""
    if attributes_of(node).get("mode") == b"nearest":
        r.refuse("mode 'nearest' cannot be imported", "mode 'linear'")
    return False


@rewrites("Pad")
def rewrite_wrapping_pad(r: Rewriter, node: onnx.NodeProto) -> bool:
    """Padding by wrapping around gathers along each axis; the importer would never end."""
    if attributes_of(node).get("mode") != b"wrap":
        return False
    value, sizes = node.input[0], r.shape(node.input[0])
    pads = r.known.get(node.input[1])
    axes = np.arange(len(sizes))
    if len(node.input) > 3 and node.input[3]:
        axes = r.known.get(node.input[3], axes)
    if pads is None:
        r.refuse("padding that wraps around is not known", "constant pads")
    for axis, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        if low or high:
            indices = np.arange(-low, sizes[axis] + high) % sizes[axis]
            value = r.make("Gather", value, r.constant(indices), axis=int(axis))
    r.make("Identity", value, result=node.output[0])
    return True


@rewrites("QuantizeLinear")
def rewrite_quantize(r: Rewriter, node: onnx.NodeProto) -> bool:
    """round(x / scale) + zero point, saturated."""
    data, scale, *zero = node.input
    element = r.element(node.output[0])
    aligned = along_axis(r, node, data)
    if element not in (*SMALL_INTEGERS, TensorProto.INT16) or aligned is None:
        return False
    result = r.make("Round", r.make("Div", data, aligned(scale)))
    if zero and zero[0]:
        result = r.make("Add", result, r.make("Cast", aligned(zero[0]), to=r.element(data)))
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(element))
    result = r.make("Clip", result, r.number(limits.min, data), r.number(limits.max, data))
    r.make("Cast", result, result=node.output[0], to=element)
    return True


@rewrites("DequantizeLinear")
def rewrite_dequantize(r: Rewriter, node: onnx.NodeProto) -> bool:
    """(x - zero point) * scale."""
    data, scale, *zero = node.input
    aligned = along_axis(r, node, data)
    if r.element(data) not in (*SMALL_INTEGERS, *SIGNED) or aligned is None:
        return False
    element = r.element(scale)
    number = r.make("Cast", data, to=element)
    if zero and zero[0]:
        number = r.make("Sub", number, r.make("Cast", aligned(zero[0]), to=element))
    r.make("Mul", number, aligned(scale), result=node.output[0])
    return True


def along_axis(r: Rewriter, node: onnx.NodeProto, data: str) -> Callable[[str], str] | None:
    """What brings a scale or zero point to a shape that spreads over `data`; None for blocks."""
    given = attributes_of(node)
    rank, count = len(r.shape(data)), r.shape(node.input[1])
    if given.get("block_size") or len(count) > 1 or r.element(node.input[1]) not in FLOATS:
        return None
    shape = [1] * rank
    if count not in ((), (1,)):
        shape[given.get("axis", 1)] = count[0]
    return lambda name: r.make("Reshape", name, r.constant(np.array(shape, np.int64)))


@rewrites("Resize")
def rewrite_resize(r: Rewriter, node: onnx.NodeProto) -> bool:
    """Every resized axis is multiplied by the matrix of its weights, or gathered if nearest."""
    given = attributes_of(node)
    unusual = given.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    data, sizes, results = node.input[0], r.shape(node.input[0]), r.shape(node.output[0])
    if unusual or r.element(data) not in FLOATS or not results:
        return False
    changed = [i for i, (n, m) in enumerate(zip(sizes, results, strict=True)) if n != m]
    scales = r.known.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    axes = given.get("axes", range(len(sizes)))
    if scales is None and given.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return False
    value = data
    for axis in changed:
        scale = results[axis] / sizes[axis]
        if scales is not None and scales.size:
            scale = float(scales[list(axes).index(axis)])
        weights = resize_weights(node, sizes[axis], scale)
        if weights is None or weights.shape[1] != results[axis]:
            return False
        value = resized(r, value, axis, len(sizes), weights, given.get("mode", b"nearest"))
    r.make("Identity", value, result=node.output[0])
    return True


def resize_weights(node: onnx.NodeProto, size: int, scale: float) -> Any:
    """[size, result]: how much each element adds to each result along one axis."""
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    del alone.input[:]
    alone.input.extend(["x", "", "scales"])
    kept = [a for a in node.attribute if a.name not in ("axes", "keep_aspect_ratio_policy")]
    del alone.attribute[:]
    alone.attribute.extend(kept)
    inputs = {"x": np.eye(size, dtype=np.float32), "scales": np.array([1, scale], np.float32)}
    found = run(alone, inputs, [helper.make_opsetid("", RESIZE_OPSET)])
    return None if found is None else found[node.output[0]]


def resized(r: Rewriter, value: str, axis: int, rank: int, weights: Any, mode: bytes) -> str:
    if mode == b"nearest":
        return r.make("Gather", value, r.constant(weights.argmax(axis=0)), axis=axis)
    order = [i for i in range(rank) if i != axis] + [axis]
    last = r.make("Transpose", value, perm=order)
    dtype = helper.tensor_dtype_to_np_dtype(r.element(r.node.input[0]))
    product = r.make("MatMul", last, r.constant(weights.astype(dtype)))
    return r.make("Transpose", product, perm=[order.index(i) for i in range(rank)])
