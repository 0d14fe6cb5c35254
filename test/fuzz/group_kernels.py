"""Groups of operators that become one kernel each, most with several tiles on one core.

The sizes leave tails, and make the tiles of a core take turns on several buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci import zoo
from davinci.zoo.graph import OnnxGraph
from davinci.zoo.layers import Images
from random_graph_steps import attention_of, gelu, normalised, rotary, softmax_of
from random_graphs import Graph, Value
from random_sorts import ALIKE, PLAIN, TOTAL, sort_of


@dataclass(frozen=True)
class GroupModel:
    """A network of few groups, as `recorded_kernels.record` takes networks.

    Attributes:
        proto: its StableHLO, or ONNX.
        cores: that its kernels are for.
        arguments: its inputs by name.
    """

    proto: str | onnx.ModelProto
    cores: int
    arguments: Mapping[str, npt.NDArray[Any]]

    def inputs(self, seed: int) -> Mapping[str, npt.NDArray[Any]]:
        """Its inputs, which are the same for any seed."""
        return self.arguments


def softmax(g: Graph, rows: int) -> Value:
    return softmax_of(g, g.argument((rows, 333)), [1])


def layer_norm(g: Graph, rows: int) -> Value:
    x = g.add(g.argument((rows, 384)), g.argument((rows, 384)))
    return normalised(g, x, [1], centred=True)


def gelu_with_bias(g: Graph, rows: int) -> Value:
    x = g.argument((rows, 600))
    return gelu(g, g.add(x, g.spread(g.argument((600,)), x.shape, (1,))))


def rotary_embedding(g: Graph, rows: int) -> Value:
    y = rotary(g, g.argument((3, rows, 64)))
    assert y is not None
    return y


def product_with_epilogue(g: Graph, rows: int) -> Value:
    y = g.product(g.argument((rows, 96)), g.argument((96, 200)))
    y = g.add(y, g.spread(g.argument((200,)), y.shape, (1,)))
    return g.add(gelu(g, y), g.argument(y.shape))


def product_in_fractals(g: Graph, rows: int) -> Value:
    """Between two others; its last rows pad a fractal, which it has to clear."""
    y = g.product(g.argument((rows, 96)), g.argument((96, 112)))
    y = gelu(g, g.product(y, g.argument((112, 160))))
    return g.product(y, g.argument((160, 48)))


def product_with_ragged_rows(g: Graph, rows: int) -> Value:
    """Rows of operands and result end inside a block, where the scalar unit helps."""
    y = g.product(g.argument((rows, 35)), g.argument((35, 37)))
    y = g.add(y, g.spread(g.argument((37,)), y.shape, (1,)))
    return g.add(gelu(g, y), g.argument(y.shape))


def product_by_parts_of_k(g: Graph, rows: int) -> Value:
    """Rows come by parts of k, with the first of which the cube begins."""
    return g.product(g.argument((rows, 768)), g.argument((768, 128)))


def vector_by_matrix(g: Graph, rows: int) -> Value:
    return g.product(g.argument((1, rows)), g.argument((rows, 333)))


def attention_of_heads(g: Graph, rows: int) -> Value:
    q, k, v = (g.argument((rows, 64)) for _ in range(3))
    return attention_of(g, q, k, v, heads=2)


def attention(g: Graph, rows: int) -> Value:
    """Scores stay on the core; the next unit's are computed beside this one's softmax."""
    return attention_over(g, g.argument((2, rows, 32)), keys=50)


def attention_by_blocks(g: Graph, rows: int) -> Value:
    """Of more keys than UB holds scores of."""
    return attention_over(g, g.argument((1, rows, 32)), keys=4500)


def attention_over(g: Graph, q: Value, keys: int) -> Value:
    k, v = (g.argument((q.shape[0], keys, 32)) for _ in range(2))
    scores = g.product(q, g.transpose(k, (0, 2, 1)))
    return g.product(softmax_of(g, scores, [2]), v)


def statistics_of_columns(g: Graph, rows: int) -> Value:
    """Of the first dimension, so that rows are added up."""
    return softmax_of(g, g.argument((rows, 515)), [0])


def softmax_in_phases(g: Graph, rows: int) -> Value:
    """Of rows longer than UB."""
    return softmax_of(g, g.argument((rows, 40003)), [1])


def norm_in_phases(g: Graph, rows: int) -> Value:
    return normalised(g, g.argument((rows, 70001)), [1], centred=True)


def side_by_side(g: Graph, rows: int) -> Sequence[Value]:
    """Two groups in one launch, and a third that cores share."""
    return [
        softmax_of(g, g.argument((rows, 333)), [1]),
        gelu(g, g.argument((rows, 200))),
        normalised(g, g.argument((rows, 130)), [1], centred=True),
    ]


MAKERS: dict[Callable[[Graph, int], Value | Sequence[Value]], tuple[int, int]] = {
    softmax: (150, 1),
    layer_norm: (130, 1),
    gelu_with_bias: (61, 1),
    rotary_embedding: (61, 1),
    product_with_epilogue: (61, 1),
    product_in_fractals: (61, 1),
    product_with_ragged_rows: (61, 1),
    product_by_parts_of_k: (61, 1),
    vector_by_matrix: (131, 1),
    attention_of_heads: (61, 1),
    attention: (61, 1),
    attention_by_blocks: (17, 1),
    statistics_of_columns: (61, 1),
    softmax_in_phases: (2, 1),
    norm_in_phases: (1, 3),
    side_by_side: (31, 4),
}
"""Rows, that make several tiles for a core where the compiler makes several of such arrays, and
cores."""


def strided_convolution(x: Images) -> Images:
    return x.conv(48, 3, stride=2).relu()


def convolution_with_residual(x: Images) -> Images:
    return x.conv(x.channels, 3).plus(x).relu()


def residual_that_the_cube_adds(x: Images) -> Images:
    """The next convolution reads the sum, rounded; nothing else does."""
    y = x.conv(x.channels, 1).relu()
    return y.conv(x.channels, 3).plus(y).relu().conv(16, 1)


def convolution_of_each_channel(x: Images) -> Images:
    return x.conv(x.channels, 3, groups=x.channels).relu6()


def convolutions_joined(x: Images) -> Images:
    """Each writes its channels of the result."""
    return x.conv(32, 1).beside(x.conv(16, 3))


def maxima_of_windows(x: Images) -> Images:
    return x.pool("Max", 3, 2, pad=1).relu()


def averages_of_windows(x: Images) -> Images:
    return x.pool("Average", 3, 1, pad=1)


LAYERS: dict[Callable[[Images], Images], tuple[int, int, int]] = {
    strided_convolution: (40, 23, 1),
    convolution_with_residual: (32, 19, 2),
    residual_that_the_cube_adds: (32, 17, 1),
    convolution_of_each_channel: (48, 17, 1),
    convolutions_joined: (33, 14, 1),
    maxima_of_windows: (40, 23, 1),
    averages_of_windows: (32, 17, 1),
}
"""Channels and side of an image, and cores."""

LOOPS = {
    "loop with two states": ("lstm,steps=4,batch=3,features=17,hidden=40", 1),
    "loops side by side": ("gru,steps=3,batch=2,features=16,hidden=33,directions=2", 2),
}
"""Networks of the zoo, and cores."""


SCATTER = """func.func @main(%x: tensor<{rows}x{width}xf32>, %i: tensor<{lines}x1xi32>,
    %u: tensor<{lines}x{width}xf32>) -> tensor<{rows}x{width}xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.{by} %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
    : (tensor<{rows}x{width}xf32>, tensor<{lines}x1xi32>, tensor<{lines}x{width}xf32>)
    -> tensor<{rows}x{width}xf32>
  return %r : tensor<{rows}x{width}xf32> }}"""

SCATTERS = {
    "elements added in memory": ("add", 40, 1, 60, 2),
    "ragged rows added in memory": ("add", 30, 33, 40, 2),
    "rows that a core owns": ("maximum", 30, 33, 40, 1),
    "elements that a core owns": ("multiply", 40, 1, 30, 2),
}
"""How updates are combined; rows and columns of the array, lines of updates, and cores."""


def _scatter(by: str, rows: int, width: int, lines: int, cores: int) -> GroupModel:
    random = np.random.default_rng(1)

    def numbers(rows: int) -> npt.NDArray[np.float32]:
        """Whose sums do not depend on the order of their terms."""
        return (random.integers(-128, 129, (rows, width)) / 64).astype(np.float32)

    arrays = {
        "arg0": numbers(rows),
        "arg1": random.integers(0, rows, (lines, 1)).astype(np.int32),
        "arg2": numbers(lines),
    }
    text = SCATTER.format(rows=rows, width=width, lines=lines, by=by)
    return GroupModel(text, cores, arrays)


SORTS = {
    "sorted rows": ((17, 40), PLAIN, "alone", 40, 2),
    "rows with their places": ((17, 24), ALIKE, "places", 24, 1),
    "the first of rows": ((9, 33), TOTAL, "places", 5, 2),
    "a row sorted in eighths": ((1, 130), PLAIN, "alone", 130, 1),
}
"""Shapes of keys, how they are compared, what is sorted with them, how many are kept, and cores."""


def _sort(shape: tuple[int, ...], compares: str, form: str, kept: int, cores: int) -> GroupModel:
    random = np.random.default_rng(1)
    keys = np.rint(random.standard_normal(shape) * 9).astype(np.float32)
    found = sort_of(keys, len(shape) - 1, compares, False, form, kept, random)
    return GroupModel(found.text, cores, {f"arg{i}": x for i, x in enumerate(found.inputs)})


def group_models(rows: int = 0) -> dict[str, GroupModel]:
    """The groups by name, of arrays of `rows` rows; 0: as many as `MAKERS` says."""
    found = {}
    for make, (many, cores) in MAKERS.items():
        g = Graph(seed=1)
        made = make(g, rows or many)
        g.finish([made] if isinstance(made, Value) else made)
        inputs = {f"arg{i}": data for i, data in enumerate(g.inputs)}
        found[make.__name__] = GroupModel(g.text, cores, inputs)
    for layer, (channels, side, cores) in LAYERS.items():
        found[layer.__name__] = _of_images(layer, channels, side, cores)
    for name, scatter in SCATTERS.items():
        found[name] = _scatter(*scatter)
    for name, sort in SORTS.items():
        found[name] = _sort(*sort)
    for name, (text, cores) in LOOPS.items():
        network = zoo.build(text)
        found[name] = GroupModel(network.proto, cores, network.inputs(seed=1))
    for bytewise, shape in ((convolutions_of_bytes, (1, 32, 4, 5)), (products_of_bytes, (35, 48))):
        x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
        found[bytewise.__name__] = GroupModel(bytewise(), 1, {"x": x})
    return found


def convolutions_of_bytes() -> onnx.ModelProto:
    """Two, with bytes in fractals between them; the second one has a residual."""
    return layers_of_bytes("Conv", (1, 32, 4, 5), (32, 32, 3, 3), 0, pads=[1, 1, 1, 1])


def products_of_bytes() -> onnx.ModelProto:
    """Two of matrices, with bytes between them; the second one has a residual."""
    return layers_of_bytes("MatMul", (35, 48), (48, 48), 1)


def layers_of_bytes(
    operator: str, size: Sequence[int], weights: Sequence[int], axis: int, **attributes: Any
) -> onnx.ModelProto:
    """Two layers whose operands and results are rounded to bytes.

    Args:
        size, weights: shapes of the input, which all results have, and of each layer's weights.
        axis: dimension of the weights that has a scale for each of its elements.
    """
    rng, graph = np.random.default_rng(1), OnnxGraph(f"{operator}_of_bytes", seed=1)
    x = graph.input("x", TensorProto.FLOAT, size)
    scale, zero = graph.constant(np.float32(0.03)), graph.constant(np.int8(-128))

    def rounded(value: str) -> str:
        made = graph.node("QuantizeLinear", value, scale, zero)
        return graph.node("DequantizeLinear", made, scale, zero)

    x = rounded(x)
    for residual in (False, True):
        w = graph.constant(rng.integers(-127, 128, weights).astype(np.int8))
        scales = graph.constant(rng.uniform(0.001, 0.01, weights[axis]).astype(np.float32))
        w = graph.node("DequantizeLinear", w, scales, axis=axis)
        y = graph.node(operator, x, w, **attributes)
        y = graph.node("Add", y, x) if residual else y
        x = rounded(graph.node("Relu", y))
    graph.output(x, "y", [f"size_{i}" for i in range(len(size))])
    return graph.model()


def _of_images(
    layer: Callable[[Images], Images], channels: int, side: int, cores: int
) -> GroupModel:
    graph, shape = OnnxGraph(layer.__name__, seed=1), [1, channels, side, side]
    made = layer(Images(graph, graph.input("x", TensorProto.FLOAT, shape), channels))
    graph.output(made.value, "y", ["n", "c", "h", "w"])
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    return GroupModel(graph.model(), cores, {"x": x})
