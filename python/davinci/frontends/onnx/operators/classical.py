"""Operators of the domain ai.onnx.ml, on numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Array, OnnxTensor, constant, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

ML = "ai.onnx.ml"

NUMBERS: dict[str, Any] = {"float": np.float32, "int64": np.int64}
"""Element types of LabelEncoder's attributes `keys_floats`, `values_int64s` and their like."""


@operator("Binarizer", domain=ML)
def lower_binarizer(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return convert(ops.compare("GT", convert(x, np.float32), node.attr("threshold")), x.dtype)


@operator("Scaler", domain=ML)
def lower_scaler(node: NodeCall) -> OnnxTensor:
    """(x - offset) * scale, of each feature or of all."""
    x = convert(node.take(0), np.float32)
    offset, scale = (constant(node.attr(key), np.float32) for key in ("offset", "scale"))
    return (x - offset) * scale


@operator("ArrayFeatureExtractor", domain=ML)
def lower_array_feature_extractor(node: NodeCall) -> OnnxTensor:
    x, indices = node.take(0), node.take(1)
    x = ops.expand_dims(x, [0]) if x.rank == 1 else x
    return ops.take(x, ops.reshape(indices, [indices.count]), x.rank - 1)


@operator("LabelEncoder", domain=ML)
def lower_label_encoder(node: NodeCall) -> OnnxTensor:
    """The value whose key an element equals, NaN also equals NaN; else the default."""
    x = node.take(0)
    keys, values = _labels(node, "keys"), _labels(node, "values")
    default = node.attr("default_tensor")
    if default is None:
        kind = "float" if values.dtype == np.float32 else "int64"
        default = np.asarray(node.attr(f"default_{kind}"), values.dtype)
    node.ignore("default_float", "default_int64", "default_string")
    wide, codes = ops.expand_dims(x, [x.rank]), constant(keys)
    hits = ops.compare("EQ", wide, codes)
    if x.is_float:
        hits = hits | (ops.is_nan(wide) & ops.is_nan(codes))
    count = keys.size
    places = ops.where(hits, ops.iota(np.int32, hits.shape, x.rank), count)
    place = ops.reduce("minimum", places, [x.rank])
    return ops.take(constant(np.append(values, default.ravel()[:1])), place, 0)


def _labels(node: NodeCall, name: str) -> Array:
    """Keys or values, from whichever attribute holds them."""
    if node.given(f"{name}_tensor"):
        found = np.asarray(node.attr(f"{name}_tensor"))
        return found.ravel()
    for kind, dtype in NUMBERS.items():
        if node.given(f"{name}_{kind}s"):
            return np.asarray(node.attr(f"{name}_{kind}s"), dtype)
    node.refuse(f"{name} that are no numbers", "numbers")
