"""Products with elementwise operators, softmaxes, norms and maxima of rows behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from onnx_support import Arrays, model_of

EPILOGUES = {
    "gelu": ("Add c bias d", "Gelu d y"),
    "silu": ("Sigmoid c d", "Mul c d y"),
    "residual": ("Add c bias d", "Relu d e", "Add e r y"),
    "both": ("Neg c d", "Tanh d y"),
    "softmax": ("Add c r d", "Softmax d y"),
    "probabilities": ("Softmax c y",),
    "layer norm": ("Add c bias d", "Add d r e", "LayerNormalization e scale shift y"),
    "norm of a residual": ("Add c r d", "LayerNormalization d scale shift y"),
    "maxima": ("Add c r d", "ReduceMax d last y"),
}
"""Nodes behind a product."""

OTHERS = {"both": "c", "norm of a residual": "d"}
"""For each name, the value that leaves the kernel beside the result of the last node."""

Sizes = tuple[int, ...]


def followed(sizes: Sizes, name: str) -> tuple[onnx.ModelProto, Arrays]:
    """A product of some sizes, batch in front, with what follows it."""
    *batch, m, k, n = sizes
    random = np.random.default_rng(sum(sizes))

    def array(*shape: int) -> npt.NDArray[Any]:
        return random.standard_normal(shape).astype(np.float16)

    given = {"a": array(*batch, m, k), "r": array(*batch, m, n)}
    kept = {"b": (array(k, n) / np.sqrt(k)).astype(np.float16), "bias": array(n)}
    kept |= {"scale": array(n), "shift": array(n), "last": np.array([-1])}
    nodes = [helper.make_node("MatMul", ["a", "b"], ["c"])]
    for text in EPILOGUES[name]:
        kind, *operands, result = text.split()
        nodes.append(helper.make_node(kind, operands, [result]))
    used = {value for node in nodes for value in node.input}
    arrays = {key: value for key, value in given.items() if key in used}
    outputs = ("y", *OTHERS.get(name, ""))
    constants = {key: value for key, value in kept.items() if key in used}
    return model_of(nodes, arrays, outputs, constants), arrays
