"""Computes nodes whose operands are all known, by ONNX's reference implementation.

What a network computes of shapes and constants is gone before anything is compiled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from davinci.frontends.onnx.node import OnnxNode
from davinci.frontends.onnx.tensor import ELEMENTS, Array, OnnxTensor

KNOWN_ELEMENTS = 1 << 16
"""Larger values are not computed here: they are weights, not shapes or masks."""

WINDOW_ELEMENTS = 1 << 20
"""Elements that all windows of a pool or convolution may read: the reference implementation takes
them one by one."""

NOT_EVALUATED = frozenset(
    {
        *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike", "If", "Loop", "Scan", "SequenceMap"),
        "DequantizeLinear",
    }
)
"""Random, with graphs of their own, which are imported, or read by products of bytes."""

GROWING = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Tile": (1,),
    "Range": (0, 1),
    "Resize": (2, 3),
    "Upsample": (1,),
    "Pad": (1,),
}
"""Operators whose result may be much larger than their operands, and which of these say so."""


def evaluate(node: OnnxNode, operands: list[OnnxTensor | None], opsets: Mapping[str, int]) -> Any:
    """Arrays of the results of `node`, or None if an operand is not known, or it is too large."""
    given = [x for x in operands if x is not None]
    if node.op_type in NOT_EVALUATED or not given:
        return None
    if any(x.known is None or x.count > KNOWN_ELEMENTS for x in given):
        return None
    if any(_is_large(operands[i]) for i in GROWING.get(node.op_type, ()) if i < len(operands)):
        return None
    if _window(node) * max(x.count for x in given) > WINDOW_ELEMENTS:
        return None
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(operands)]
    values = {n: x.known for n, x in zip(names, operands, strict=True) if x is not None}
    return run(node.proto, names, values, opsets)


def run(
    proto: onnx.NodeProto,
    names: list[str],
    values: dict[str, Any],
    opsets: Mapping[str, int],
    most: int | None = KNOWN_ELEMENTS,
) -> list[Array] | None:
    """Runs one node; None if the reference implementation cannot, or a result is no array.

    Args:
        most: elements that a result may have.
    """
    alone = onnx.NodeProto()
    alone.CopyFrom(proto)
    alone.input[:] = names
    alone.output[:] = [f"y{i}" if name else "" for i, name in enumerate(proto.output)]
    undefined = onnx.TypeProto()
    graph = onnx.helper.make_graph(
        [alone],
        "node",
        [onnx.helper.make_value_info(name, undefined) for name in values],
        [onnx.helper.make_value_info(name, undefined) for name in alone.output if name],
    )
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = onnx.helper.make_model(graph, opset_imports=imports)
            results = ReferenceEvaluator(model).run(None, values)
    except Exception:  # whatever is wrong, the node's lowering will say it
        return None
    arrays = [np.asarray(result) for result in results]
    usual = all(a.dtype in ELEMENTS and a.size <= (most or a.size) for a in arrays)
    return arrays if usual else None


def _window(node: OnnxNode) -> int:
    """Elements of the window of a pool or convolution, 1 of other operators."""
    sizes = next((entry.ints for entry in node.proto.attribute if entry.name == "kernel_shape"), ())
    return math.prod(sizes)


def _is_large(count: OnnxTensor | None) -> bool:
    """Whether the numbers of a shape, or a number of repetitions, come to too many elements."""
    if count is None or count.known is None:
        return False
    sizes = np.maximum(1, np.abs(count.known.astype(np.float64)))
    return float(np.prod(sizes)) > KNOWN_ELEMENTS
