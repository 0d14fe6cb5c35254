"""Networks whose values lie in rows or nz as the pass decides give what NumPy gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto

import davinci
from davinci import zoo
from davinci.arrays import random_inputs
from davinci.dialects.ascend_types import tensor_of
from davinci.frontends import load
from davinci.mlir import ir, make_context, operations
from davinci.operators.tensors import NZ
from davinci.passes.ascend.layout_support import last_makers
from davinci.passes.pipeline import runner
from davinci.zoo.graph import OnnxGraph
from davinci.zoo.layers import Images
from onnx_support import reference
from support import compile_text

Array = npt.NDArray[Any]

ALL = "builtin.module(ascend-absorb-transposes,ascend-propagate-layouts,ascend-fold-constants)"
TWICE = f"builtin.module({2 * 'ascend-absorb-transposes,ascend-propagate-layouts,'}canonicalize)"
ONCE = "builtin.module(ascend-absorb-transposes,ascend-propagate-layouts,canonicalize)"


def types(**shapes: str) -> dict[str, str]:
    return {name: f"tensor<{shape}>" for name, shape in shapes.items()}


def attention(s: int, heads: int, d: int) -> str:
    """softmax without its reductions: relu(q k' + mask) v, projected, with a residual."""
    h = heads * d
    t = types(
        x=f"{s}x{h}xf16", w=f"{h}x{h}xf16", y=f"{s}x{h}xf32", split=f"1x{s}x{heads}x{d}xf16"
    ) | types(
        turned=f"1x{heads}x{s}x{d}xf16",
        keys=f"1x{heads}x{d}x{s}xf16",
        q=f"{heads}x{s}x{d}xf16",
        k=f"{heads}x{d}x{s}xf16",
        scores=f"{heads}x{s}x{s}xf32",
        p=f"{heads}x{s}x{s}xf16",
        merged=f"{s}x{heads}x{d}xf16",
    )
    return f"""
func.func @main(%x: {t["x"]}, %w: {t["w"]}) -> {t["y"]} {{
  %0 = "ascend.matmul"(%x, %w) : ({t["x"]}, {t["w"]}) -> {t["x"]}
  %1 = "ascend.reshape"(%0) : ({t["x"]}) -> {t["split"]}
  %2 = "ascend.transpose"(%1) {{permutation = array<i64: 0, 2, 1, 3>}}
    : ({t["split"]}) -> {t["turned"]}
  %q = "ascend.reshape"(%2) : ({t["turned"]}) -> {t["q"]}
  %3 = "ascend.transpose"(%1) {{permutation = array<i64: 0, 2, 3, 1>}}
    : ({t["split"]}) -> {t["keys"]}
  %k = "ascend.reshape"(%3) : ({t["keys"]}) -> {t["k"]}
  %4 = "ascend.batch_matmul"(%q, %k) : ({t["q"]}, {t["k"]}) -> {t["scores"]}
  %5 = "ascend.relu"(%4) : ({t["scores"]}) -> {t["scores"]}
  %6 = "ascend.cast"(%5) : ({t["scores"]}) -> {t["p"]}
  %7 = "ascend.batch_matmul"(%6, %q) : ({t["p"]}, {t["q"]}) -> {t["q"]}
  %8 = "ascend.transpose"(%7) {{permutation = array<i64: 1, 0, 2>}} : ({t["q"]}) -> {t["merged"]}
  %9 = "ascend.reshape"(%8) : ({t["merged"]}) -> {t["x"]}
  %10 = "ascend.matmul"(%9, %w) : ({t["x"]}, {t["w"]}) -> {t["y"]}
  %11 = "ascend.cast"(%x) : ({t["x"]}) -> {t["y"]}
  %12 = "ascend.add"(%10, %11) : ({t["y"]}, {t["y"]}) -> {t["y"]}
  return %12 : {t["y"]}
}}"""


def attended(x: Array, w: Array, heads: int) -> Array:
    s, h = x.shape
    wide = w.astype(np.float32)
    first = (x.astype(np.float32) @ wide).astype(np.float16)
    q = first.reshape(s, heads, h // heads).transpose(1, 0, 2).astype(np.float32)
    scores = np.maximum(q @ q.transpose(0, 2, 1), 0).astype(np.float16).astype(np.float32)
    context = (scores @ q).astype(np.float16).transpose(1, 0, 2).reshape(s, h)
    return context.astype(np.float32) @ wide + x.astype(np.float32)


@pytest.mark.parametrize(
    ("s", "heads", "d"),
    [(1, 1, 16), (15, 2, 16), (17, 3, 32), (16, 2, 64), (33, 2, 24), (31, 1, 7), (128, 3, 48)],
)
def test_attention(s: int, heads: int, d: int) -> None:
    """Heads of whole fractals are views, others are transposed in rows; both compute the same."""
    random = np.random.default_rng(s)
    x = (random.standard_normal((s, heads * d)) / 4).astype(np.float16)
    w = (random.standard_normal((heads * d, heads * d)) / (heads * d)).astype(np.float16)
    executable = compile_text(attention(s, heads, d), cores=3)
    (found,) = executable.run(x, w).values()
    np.testing.assert_allclose(found, attended(x, w, heads), rtol=2e-3, atol=2e-3)
    names = [launch.name.partition("_")[0] for launch in executable.launches]
    assert ("transpose" in names) == (d % 16 != 0 and heads > 1)


def feed_forward(m: int, n: int, k: int, activation: str) -> str:
    x, w, u = f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>", f"tensor<{n}x{k}xf16>"
    wide, half, y = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}xf16>", f"tensor<{m}x{k}xf32>"
    nz = f'tensor<{m}x{k}xf32, #ascend.layout<"nz">>'
    return f"""
func.func @main(%x: {x}, %w: {w}, %u: {u}) -> {nz} {{
  %0 = "ascend.matmul"(%x, %w) : ({x}, {w}) -> {wide}
  %1 = "ascend.full"() {{value = 0.5 : f32}} : () -> {wide}
  %2 = "ascend.{activation}"(%0, %1) : ({wide}, {wide}) -> {wide}
  %3 = "ascend.cast"(%2) : ({wide}) -> {half}
  %4 = "ascend.matmul"(%3, %u) : ({half}, {u}) -> {y}
  %5 = "ascend.cast"(%x) : ({x}) -> {y}
  %6 = "ascend.sub"(%4, %5) : ({y}, {y}) -> {y}
  %7 = "ascend.relayout"(%6) : ({y}) -> {nz}
  return %7 : {nz}
}}"""


@pytest.mark.parametrize("activation", ["mul", "add", "max"])
@pytest.mark.parametrize("shape", [(1, 16, 16), (17, 33, 5), (16, 48, 32), (64, 100, 48)], ids=str)
def test_padding_stays_zero(shape: tuple[int, int, int], activation: str) -> None:
    """Also behind operators that make something else of zero, and in results."""
    m, n, k = shape
    random = np.random.default_rng(m)
    x, w, u = (random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n, k)))
    (found,) = compile_text(feed_forward(m, n, k, activation), cores=2).run(x, w, u).values()
    inner = x.astype(np.float32) @ w.astype(np.float32)
    choose = {"mul": np.multiply, "add": np.add, "max": np.maximum}[activation]
    active = choose(inner, np.float32(0.5)).astype(np.float16).astype(np.float32)
    expected = active @ u.astype(np.float32) - x.astype(np.float32)
    matrix = np.moveaxis(found, 0, -2).reshape(found.shape[1] * 16, found.shape[0] * 16)
    np.testing.assert_allclose(matrix[:m, :k], expected, rtol=2e-3, atol=2e-2)
    assert not matrix[m:].any() and not matrix[:, k:].any()


def attention_with_softmax(heads: int, s: int, d: int) -> str:
    """softmax(q k' + mask) v, and the result brought to mean 0 by its rows."""
    q, scores = f"tensor<{heads}x{s}x{d}xf16>", f"tensor<{heads}x{s}x{s}xf32>"
    rows, half = f"tensor<{heads}x{s}xf32>", f"tensor<{heads}x{s}x{s}xf16>"
    y, mask = f"tensor<{heads}x{s}x{d}xf32>", f"tensor<{s}xf32>"
    return f"""
func.func @main(%q: {q}, %k: {q}, %v: {q}, %m: {mask}) -> {y} {{
  %0 = "ascend.batch_matmul"(%q, %k) {{transpose_b}} : ({q}, {q}) -> {scores}
  %1 = "ascend.broadcast"(%m) {{dims = array<i64: 2>}} : ({mask}) -> {scores}
  %2 = "ascend.add"(%0, %1) : ({scores}, {scores}) -> {scores}
  %3 = "ascend.reduce"(%2) {{kind = "max", dims = array<i64: 2>}} : ({scores}) -> {rows}
  %4 = "ascend.broadcast"(%3) {{dims = array<i64: 0, 1>}} : ({rows}) -> {scores}
  %5 = "ascend.sub"(%2, %4) : ({scores}, {scores}) -> {scores}
  %6 = "ascend.exp"(%5) : ({scores}) -> {scores}
  %7 = "ascend.reduce"(%6) {{kind = "add", dims = array<i64: 2>}} : ({scores}) -> {rows}
  %8 = "ascend.broadcast"(%7) {{dims = array<i64: 0, 1>}} : ({rows}) -> {scores}
  %9 = "ascend.div"(%6, %8) : ({scores}, {scores}) -> {scores}
  %10 = "ascend.cast"(%9) : ({scores}) -> {half}
  %11 = "ascend.batch_matmul"(%10, %v) : ({half}, {q}) -> {y}
  %12 = "ascend.reduce"(%11) {{kind = "add", dims = array<i64: 2>}} : ({y}) -> {rows}
  %13 = "ascend.full"() {{value = {1 / d} : f32}} : () -> {rows}
  %14 = "ascend.mul"(%12, %13) : ({rows}, {rows}) -> {rows}
  %15 = "ascend.broadcast"(%14) {{dims = array<i64: 0, 1>}} : ({rows}) -> {y}
  %16 = "ascend.sub"(%11, %15) : ({y}, {y}) -> {y}
  %17 = "ascend.cast"(%16) : ({y}) -> {q}
  %18 = "ascend.batch_matmul"(%17, %k) {{transpose_b}} : ({q}, {q}) -> {scores}
  %19 = "ascend.cast"(%18) : ({scores}) -> {half}
  %20 = "ascend.batch_matmul"(%19, %v) : ({half}, {q}) -> {y}
  return %20 : {y}
}}"""


def soft_attention(q: Array, k: Array, v: Array, mask: Array) -> Array:
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) + mask
    p = np.exp(scores - scores.max(-1, keepdims=True))
    half = (p / p.sum(-1, keepdims=True)).astype(np.float16).astype(np.float32)
    y = half @ v
    centred = (y - y.mean(-1, keepdims=True)).astype(np.float16).astype(np.float32)
    last = (centred @ k.swapaxes(1, 2)).astype(np.float16).astype(np.float32)
    return np.asarray(last @ v)


@pytest.mark.parametrize(
    ("heads", "s", "d", "fusion"),
    [
        (1, 16, 16, "all"),
        (3, 32, 48, "none"),
        (2, 17, 33, "all"),
        (2, 17, 33, "none"),
        (1, 128, 64, "all"),
        (5, 1, 16, "none"),
    ],
)
def test_softmax(heads: int, s: int, d: int, fusion: str) -> None:
    """In nz where fractals are whole; without groups, through rows."""
    random = np.random.default_rng(s)
    q, k, v = ((random.standard_normal((heads, s, d)) / 2).astype(np.float16) for _ in range(3))
    mask = np.where(np.arange(s) % 7 == 5, -1e4, 0).astype(np.float32)
    executable = compile_text(attention_with_softmax(heads, s, d), cores=3, fusion=fusion)
    (found,) = executable.run(q, k, v, mask).values()
    np.testing.assert_allclose(found, soft_attention(q, k, v, mask), rtol=1e-2, atol=2e-2)
    names = [launch.name.partition("_")[0] for launch in executable.launches]
    inside = names[names.index("batch") : len(names) - names[::-1].index("batch")]
    changes = [name for name in inside if name in ("fractalize", "defractalize")]
    if fusion == "all" and s % 16 == 0 and d % 16 == 0:
        assert len(changes) <= 1, "v is changed where it is used first"


def test_an_encoder_has_no_relayouts() -> None:
    """Products take and give rows where those are next to them, and nz elsewhere; attention is one
    of five kernels of a layer."""
    model = zoo.build("bert,layers=2,hidden=96,heads=3,seq=48,vocab=50").proto
    executable = davinci.compile(model, timing_only=True)
    executable.run(random_inputs(executable.inputs, seed=0))
    names = [launch.name for launch in executable.launches]
    assert sum("matmul" in name or "attention" in name for name in names) == 2 * 5 + 1
    assert not [name for name in names if "fractalize" in name]


def lowered(model: str, pipeline: str) -> str:
    module = load(zoo.build(model).proto, make_context())
    runner.run(module.operation, "builtin.module(stablehlo-to-ascend,ascend-legalize-precision)")
    runner.run(module.operation, pipeline)
    return str(module.operation.get_asm(large_elements_limit=4, large_resource_limit=4))


@pytest.mark.parametrize("model", ["mlp", "bert-tiny", "bert,layers=1,hidden=36,heads=3,seq=17"])
def test_a_second_run_changes_nothing(model: str) -> None:
    assert lowered(model, TWICE) == lowered(model, ONCE)


def test_weights_are_laid_out_at_compile_time() -> None:
    module = load(zoo.build("bert-tiny").proto, make_context())
    runner.run(module.operation, "builtin.module(stablehlo-to-ascend,ascend-legalize-precision)")
    runner.run(module.operation, ALL)
    for product in operations(module.operation, "ascend.matmul"):
        weight = product.operands[1].owner
        assert weight.name == "ascend.constant"
        assert tensor_of(weight.results[0].type).layout == NZ
    for relayout in operations(module.operation, "ascend.relayout"):
        source = relayout.operands[0]
        assert isinstance(source, ir.BlockArgument) or source.owner.name != "ascend.constant"


def test_a_bias_beside_a_convolution_stays_a_row() -> None:
    """Also where the pixels of an image are no whole fractals."""
    graph = OnnxGraph("convolutions", 0)
    images = Images(graph, graph.input("x", TensorProto.FLOAT, [1, 32, 21, 21]), 32)
    images = images.conv(32, 3, padded=False).relu().conv(64, 3).relu()
    graph.output(images.value, "y", [1, 64, 19, 19])
    module = load(graph.model(), make_context())
    runner.run(module.operation, "builtin.module(stablehlo-to-ascend,ascend-legalize-precision)")
    runner.run(module.operation, ALL)
    biases = [tensor_of(op.result.type) for op in operations(module.operation, "ascend.constant")]
    assert [math.prod(b.shape) for b in biases if b.element == "f32"] == [32, 64]


def test_a_residual_goes_with_the_product_it_is_added_to() -> None:
    """What is done to each element of a product's result leads to it, a reduction does not."""
    t = "tensor<16x16xf16>"
    text = f"""func.func @main(%x: {t}) -> tensor<16xf16> {{
  %0 = "ascend.matmul"(%x, %x) : ({t}, {t}) -> {t}
  %1 = "ascend.relu"(%0) : ({t}) -> {t}
  %2 = "ascend.matmul"(%1, %x) : ({t}, {t}) -> {t}
  %3 = "ascend.add"(%1, %2) : ({t}, {t}) -> {t}
  %4 = "ascend.reduce"(%3) {{kind = "add", dims = array<i64: 1>}} : ({t}) -> tensor<16xf16>
  return %4 : tensor<16xf16>
}}"""
    with make_context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        found = {op.name: number for op, number in last_makers(block, ["ascend.matmul"]).items()}
    assert found == {"ascend.relu": 0, "ascend.matmul": 2, "ascend.add": 2}


@pytest.mark.parametrize(("channels", "kernel"), [(50, 1), (36, 3)])
def test_a_convolution_leaves_in_rows_where_channels_are_no_whole_fractals(
    channels: int, kernel: int
) -> None:
    """The mean over positions takes rows then, and no kernel changes the layout between them."""
    graph = OnnxGraph("tail", 0)
    images = Images(graph, graph.input("x", TensorProto.FLOAT, [1, 32, 7, 7]), 32)
    images = images.conv(32, 3).relu().conv(channels, kernel).relu()
    graph.output(images.averages(), "y", [1, channels])
    model = graph.model()
    executable = davinci.compile(model, cores=4)
    inputs = random_inputs(executable.inputs, seed=0)
    (found,) = executable.run(inputs).values()
    (expected,) = reference(model, inputs).values()
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3)
    assert not any("defractalize" in launch.name for launch in executable.launches)
