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
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from davinci.errors import CompileError
from davinci.frontends.onnx_known import constant_node, static_shape

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
SMALL_INTEGERS = (TensorProto.INT8, TensorProto.UINT8)
ELEMENTS = (*FLOATS, *SIGNED, TensorProto.UINT8, TensorProto.UINT32, TensorProto.BOOL)
"""Element types that can be imported; of some others the importer dies."""

EXPANDED = frozenset({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "SpaceToDepth"})
"""Operators replaced by ONNX's own definition, since the importer's is wrong."""

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
    """Builds the nodes that replace one node; `types` are those of the graph's values."""

    types: dict[str, onnx.TypeProto]
    where: str
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

    def refuse(self, message: str, expected: str = "") -> None:
        raise CompileError(
            message,
            where=self.where,
            found=f"operator {self.node.op_type} of node {self.node.name!r}",
            expected=expected,
        )


def rewrite(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A copy of `model`, with all types inferred, in which every operator can be imported.

    Raises:
        CompileError: an element type or operator that cannot be imported.
    """
    graph = model.graph
    types = {v.name: v.type for v in [*graph.input, *graph.value_info, *graph.output]}
    rewriter = Rewriter(types, where)
    constants = {t.name: t.data_type for t in graph.initializer}
    for node in graph.node:
        rewriter.node = node
        if node.domain not in ("", "ai.onnx"):
            rewriter.refuse(f"unsupported operator of domain {node.domain!r}")
        check_elements(rewriter, constants)
        function = REWRITES.get(node.op_type)
        if function is None or not function(rewriter, node):
            rewriter.nodes.append(node)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(rewriter.nodes)
    return copy


def check_elements(rewriter: Rewriter, constants: dict[str, int]) -> None:
    """Refuses a node of values whose element type cannot be imported."""
    for name in [*rewriter.node.input, *rewriter.node.output]:
        element = rewriter.element(name) or constants.get(name, 0)
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
    """Booleans are reduced as integers."""
    if r.element(node.input[0]) != TensorProto.BOOL:
        return False
    data = r.make("Cast", node.input[0], to=TensorProto.INT32)
    reduced = r.make(node.op_type, data, *node.input[1:], **attributes_of(node))
    r.make("Cast", reduced, result=node.output[0], to=TensorProto.BOOL)
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
