"""Attention of language models, as exporters spell it, in one kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from support import run_text

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


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
@pytest.mark.parametrize("least", [float(np.finfo(np.float32).min), -math.inf])
def test_attention_as_pytorch_exports_it(least: float, precision: str) -> None:
    """scaled_dot_product_attention with flags from the caller: the root of the scale on either
    factor, and zeros for weights that are no number. One row keeps no key: by the lowest f32 its
    weights are equal, by minus infinity its result is zeros."""
    net, heads = Decoder(), [BATCH, HEADS, ROWS, DEPTH]
    root = net.constant(np.float32(DEPTH**-0.25))
    q, k, v = (net.heads(net.projection("x", HIDDEN), HEADS) for _ in range(3))
    k = net.node("Mul", net.node("Transpose", k, perm=[0, 1, 3, 2]), root)
    scores = net.node("MatMul", net.node("Mul", q, root), k)
    zero, low = (net.constant(np.full((), x, np.float32)) for x in (0, least))
    scores = net.node("Add", scores, net.node("Where", "kept", zero, low))
    p = net.node("Softmax", scores, axis=-1)
    p = net.node("Where", net.node("IsNaN", p), zero, p)
    y = net.node("MatMul", p, v)
    sizes, flags = [BATCH, ROWS, HIDDEN], [BATCH, 1, ROWS, ROWS]
    graph = helper.make_graph(
        net.nodes,
        "attention",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes),
            helper.make_tensor_value_info("kept", TensorProto.BOOL, flags),
        ],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, heads)],
        net.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    rng = np.random.default_rng(1)
    x = rng.standard_normal(sizes).astype(np.float32)
    kept = rng.random(flags) < 0.6
    kept[..., 0] = True
    kept[1, 0, 5] = False
    executable = davinci.compile(model, precision=precision)
    (found,) = executable.run({"x": x, "kept": kept}).values()
    with np.errstate(invalid="ignore"):
        feed = {"x": x, "kept": kept}
        (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, feed)
    hidden = found[1, :, 5]
    if least == -math.inf or precision == "fp16":  # f16 holds no lower number than its infinity
        assert not hidden.any()
    else:
        np.testing.assert_allclose(hidden, wanted[1, :, 5], rtol=0, atol=4 * 2.0**-9)
    found[1, :, 5] = wanted[1, :, 5]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4 * 2.0**-9)
    names = [launch.name for launch in executable.launches]
    assert sum(name.startswith("attention") for name in names) == 1, names
    assert not any("softmax" in name for name in names), names


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
def test_a_mask_of_equal_values_is_a_number(precision: str) -> None:
    """Of 64 x 64 scores: what every vision transformer passes that hides nothing."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((2, 64, 32)).astype(np.float32) for _ in range(3))
    bits = np.full((64, 64), -1.5, "<f4").tobytes().hex()
    scores, rows = "tensor<2x64x64xf32>", "tensor<2x64x32xf32>"
    text = f"""
    func.func @main(%q: {rows}, %k: {rows}, %v: {rows}) -> {rows} {{
      %m = stablehlo.constant dense_resource<m> : tensor<64x64xf32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], \
contracting_dims = [2] x [2] : ({rows}, {rows}) -> {scores}
      %w = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<64x64xf32>) -> {scores}
      %x = stablehlo.add %s, %w : {scores}
      %a = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2] : \
({scores}, tensor<f32>) -> tensor<2x64xf32>
      %b = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<2x64xf32>) -> {scores}
      %d = stablehlo.subtract %x, %b : {scores}
      %e = stablehlo.exponential %d : {scores}
      %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : \
({scores}, tensor<f32>) -> tensor<2x64xf32>
      %u = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x64xf32>) -> {scores}
      %p = stablehlo.divide %e, %u : {scores}
      %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], \
contracting_dims = [2] x [1] : ({scores}, {rows}) -> {rows}
      return %o : {rows}
    }}
    {{-# dialect_resources: {{ builtin: {{ m: "0x04000000{bits}" }} }} #-}}
    """
    (found,) = run_text(text, q, k, v, cores=2, precision=precision)
    weights = np.exp(s := q @ k.transpose(0, 2, 1)) / np.exp(s).sum(-1, keepdims=True)
    np.testing.assert_allclose(found, weights @ v, atol=2e-2)


def test_a_mask_for_each_head() -> None:
    """Flags as large as the scores, behind numbers of each head that are added: as MPT has them."""
    rows = 32  # whole fractals: flags that are known lie in fractals, too
    rng, net, sizes = np.random.default_rng(4), Decoder(), [1, HEADS, rows, DEPTH]
    q, k, v = (rng.standard_normal(sizes).astype(np.float32) for _ in range(3))
    near = rng.standard_normal((HEADS, 1, rows)).astype(np.float32)
    hidden = np.broadcast_to(np.triu(np.ones((rows, rows), bool), 1), (1, HEADS, rows, rows))
    scores = net.node("MatMul", "q", net.node("Transpose", "k", perm=[0, 1, 3, 2]))
    scores = net.node("Add", scores, net.constant(near))
    low = net.constant(np.full((), np.finfo(np.float32).min, np.float32))
    scores = net.node("Where", net.constant(hidden), low, scores)
    y = net.node("MatMul", net.node("Softmax", scores, axis=-1), "v")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in "qkv"]
    result = helper.make_tensor_value_info(y, TensorProto.FLOAT, sizes)
    graph = helper.make_graph(net.nodes, "attention", values, [result], net.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    feed = {"q": q, "k": k, "v": v}
    executable = davinci.compile(model)
    (found,) = executable.run(feed).values()
    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, feed)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4 * 2.0**-9)
    names = [launch.name for launch in executable.launches]
    assert names[-1].startswith("attention"), names
