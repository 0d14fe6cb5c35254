"""Attention of language models, as exporters spell it, in one kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import davinci

Array = npt.NDArray[Any]

BATCH, ROWS, HEADS, DEPTH = 2, 33, 4, 16
HIDDEN = HEADS * DEPTH


class Decoder:
    """Self-attention of a decoder, node by node."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def projection(self, x: str, columns: int) -> str:
        weight = self.rng.standard_normal((HIDDEN, columns)) / math.sqrt(HIDDEN)
        return self.node("MatMul", x, self.constant(weight.astype(np.float32)))

    def heads(self, x: str, count: int) -> str:
        """[batch, heads, rows, depth]."""
        shape = self.constant(np.array([BATCH, ROWS, count, DEPTH]))
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def repeated(self, x: str, count: int) -> str:
        """Heads of K or V for several of Q."""
        if count == HEADS:
            return x
        wide = [BATCH, count, HEADS // count, ROWS, DEPTH]
        more = self.node("Unsqueeze", x, self.constant(np.array([2])))
        more = self.node("Expand", more, self.constant(np.array(wide)))
        return self.node("Reshape", more, self.constant(np.array([BATCH, HEADS, ROWS, DEPTH])))

    def attention(self, shared: int, flags: bool) -> onnx.ModelProto:
        """With `HEADS` / `shared` heads of K and V; a mask of booleans or of numbers."""
        count = HEADS // shared
        q = self.heads(self.projection("x", HIDDEN), HEADS)
        k, v = (
            self.repeated(self.heads(self.projection("x", count * DEPTH), count), count)
            for _ in range(2)
        )
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Div", scores, self.constant(np.float32(math.sqrt(DEPTH))))
        lower = np.tril(np.ones((1, 1, ROWS, ROWS), bool))
        least = np.finfo(np.float32).min
        if flags:
            low = self.constant(np.full((), least, np.float32))
            scores = self.node("Where", self.constant(lower), scores, low)
        else:
            mask = self.constant(np.where(lower, 0, least).astype(np.float32))
            scores = self.node("Add", scores, mask)
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        shape = self.constant(np.array([BATCH, ROWS, HIDDEN]))
        y = self.node("Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]), shape)
        y = self.projection(y, HIDDEN)
        sizes = [BATCH, ROWS, HIDDEN]
        graph = helper.make_graph(
            self.nodes,
            "decoder",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, sizes)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def check(shared: int, flags: bool) -> None:
    model = Decoder().attention(shared, flags)
    x = np.random.default_rng(1).standard_normal((BATCH, ROWS, HIDDEN)).astype(np.float32)
    executable = davinci.compile(model)
    (found,) = executable.run(x).values()
    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    # Operands and weights of four products are rounded to f16.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4 * 2.0**-9)
    names = [launch.name for launch in executable.launches]
    assert sum(name.startswith("attention") for name in names) == 1, names
    assert not any("softmax" in name for name in names), names


def test_a_mask_of_booleans() -> None:
    check(shared=1, flags=True)


def test_a_mask_of_numbers() -> None:
    check(shared=1, flags=False)


def test_heads_that_share_keys() -> None:
    check(shared=2, flags=True)
