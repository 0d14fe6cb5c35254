"""What kernels beside tuned ones compute: models of ONNX, and the same in NumPy (`tuned.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

Array = npt.NDArray[Any]
Sizes = tuple[int, ...]
Values = Callable[..., Array]


@dataclass(frozen=True)
class Operators:
    """A model of arrays, and what it computes.

    Attributes:
        inputs: names and shapes, for given sizes.
        nodes: of ONNX, the last of which makes `y`.
        values: the same in NumPy, of f32 arrays in the order of the inputs.
        weights: names of inputs that are constants of the model.
        result: shape of `y`, for given sizes; by default the sizes themselves.
        types: of inputs, and of `y`, that are not f16.
    """

    inputs: Callable[[Sizes], dict[str, Sizes]]
    nodes: tuple[onnx.NodeProto, ...]
    values: Values
    weights: tuple[str, ...] = ()
    result: Callable[[Sizes], Sizes] = lambda sizes: sizes
    types: Mapping[str, type[np.generic]] = field(default_factory=dict)

    def arrays(self, sizes: Sizes) -> dict[str, Array]:
        """Random arrays; those of constants are small, as weights of networks are, and bytes are
        all that there are."""
        random = np.random.default_rng(0)
        arrays: dict[str, Array] = {}
        for name, shape in self.inputs(sizes).items():
            kind = self.types.get(name, np.float16)
            if kind is np.int8:
                arrays[name] = random.integers(-128, 128, shape, np.int8)
            else:
                scale = 0.05 if name in self.weights else 1.0
                arrays[name] = (random.standard_normal(shape) * scale).astype(kind)
        return arrays

    def model(self, sizes: Sizes, arrays: Mapping[str, Array]) -> onnx.ModelProto:
        given = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in arrays.items()
            if name not in self.weights
        ]
        kept = [onnx.numpy_helper.from_array(arrays[name], name) for name in self.weights]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.types.get("y", np.float16)))
        output = helper.make_tensor_value_info("y", kind, self.result(sizes))
        graph = helper.make_graph(list(self.nodes), "tuned", given, [output], kept)
        opset = helper.make_opsetid("", 23)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))))


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    apart = x - x.mean(-1, keepdims=True)
    return np.asarray(apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5) * scale + bias)


def rms_norm(x: Array, scale: Array) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale)


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) / sqrt(q.shape[-1])
    return np.asarray(softmax(scores) @ v)


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) / sqrt(q.shape[-1])
    seen = np.tril(np.ones(scores.shape[-2:], dtype=np.bool_))
    return np.asarray(softmax(np.where(seen, scores, -np.inf)) @ v)


def convolution(x: Array, w: Array) -> Array:
    """A convolution with filters of 3 x 3, its image padded with one zero on each side."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = (
        np.einsum("nc,bchw->bnhw", w[:, :, i, j], padded[:, :, i : i + height, j : j + width])
        for i in range(3)
        for j in range(3)
    )
    return np.asarray(sum(parts))


def node(operator: str, inputs: str, result: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [result], name=operator, **attributes)


def operands(sizes: Sizes) -> dict[str, Sizes]:
    m, k, n = sizes
    return {"a": (m, k), "b": (k, n)}


def outer(sizes: Sizes) -> Sizes:
    """The shape of a product."""
    return sizes[0], sizes[2]


def one_batch(sizes: Sizes) -> Sizes:
    return (1, *sizes)


def heads(sizes: Sizes) -> dict[str, Sizes]:
    return dict.fromkeys("qkv", (1, *sizes))


def filters(sizes: Sizes) -> dict[str, Sizes]:
    """Shapes of an image, given as batch, channels, height and width, and of its filters."""
    return {"x": sizes, "w": (sizes[1], sizes[1], 3, 3)}


PRODUCT = Operators(operands, (node("MatMul", "a b"),), lambda a, b: a @ b, result=outer)
BY_WEIGHTS = replace(PRODUCT, weights=("b",))
"""Products whose B is a constant, which the compiler lays out in fractals."""
FLOATS = replace(BY_WEIGHTS, types=dict.fromkeys("aby", np.float32))
BY_COLUMNS = Operators(
    lambda sizes: {"a": sizes[:2], "b": (sizes[2], sizes[1])},
    (node("Gemm", "a b", transB=1),),
    lambda a, b: a @ b.T,
    result=outer,
)
WITH_GELU = Operators(
    lambda sizes: {**operands(sizes), "bias": sizes[2:]},
    (
        node("MatMul", "a b", "c"),
        node("Add", "c bias", "d"),
        node("Gelu", "d", approximate="tanh"),
    ),
    lambda a, b, bias: gelu(a @ b + bias),
    ("b", "bias"),
    outer,
)
ATTENTION = Operators(heads, (node("Attention", "q k v"),), attention, result=one_batch)
SHORT = replace(
    ATTENTION,
    inputs=lambda sizes: {
        "q": (1, 1, sizes[0], sizes[2]),
        **dict.fromkeys("kv", (1, 1, *sizes[1:])),
    },
    result=lambda sizes: (1, 1, sizes[0], sizes[2]),
)
"""Attention of one head, given as queries, keys and elements."""
CAUSAL = Operators(
    heads, (node("Attention", "q k v", is_causal=1),), causal_attention, result=one_batch
)
LAYER_NORM = Operators(
    lambda sizes: {"x": sizes, "scale": sizes[1:], "bias": sizes[1:]},
    (node("LayerNormalization", "x scale bias", axis=-1),),
    layer_norm,
)
RMS_NORM = Operators(
    lambda sizes: {"x": sizes, "scale": sizes[1:]},
    (node("RMSNormalization", "x scale", axis=-1),),
    rms_norm,
)
ADDITION = Operators(
    lambda sizes: dict.fromkeys("ab", sizes), (node("Add", "a b"),), lambda a, b: a + b
)
SOFTMAX = Operators(lambda sizes: {"x": sizes}, (node("Softmax", "x", axis=-1),), softmax)
GELU = Operators(lambda sizes: {"x": sizes}, (node("Gelu", "x", approximate="tanh"),), gelu)
CONVOLUTION = Operators(
    filters,
    (node("Conv", "x w", pads=[1, 1, 1, 1]),),
    convolution,
    ("w",),
)


def scaled(a: Array, b: Array, columns: Array, rows: Array) -> Array:
    """A product of bytes times a number a column and one a row."""
    return np.asarray(a @ b * columns * rows)


def scaled_gelu(a: Array, b: Array, columns: Array, rows: Array) -> Array:
    """The same with GELU as x / (1 + exp(-1.702 x))."""
    x = scaled(a, b, columns, rows)
    return np.asarray(x / (1 + np.exp(-1.702 * x)))


def bytes_of(sizes: Sizes) -> dict[str, Sizes]:
    *batch, m, k, n = sizes
    return {"a": (*batch, m, k), "b": (*batch, k, n), "q": (*batch, 1, n), "r": (*batch, m, 1)}


SCALED = Operators(
    bytes_of,
    (
        node("MatMulInteger", "a b", "sums"),
        node("Cast", "sums", "floats", to=TensorProto.FLOAT),
        node("Mul", "floats q", "scaled"),
        node("Mul", "scaled r", "x"),
        node("Cast", "x", to=TensorProto.FLOAT16),
    ),
    scaled,
    ("b", "q"),
    lambda sizes: (*sizes[:-2], sizes[-1]),
    {"a": np.int8, "b": np.int8, "q": np.float32, "r": np.float32},
)
SCALED_GELU = replace(
    SCALED,
    nodes=(
        *SCALED.nodes[:-1],
        node("Constant", "", "slope", value_float=1.702),
        node("Mul", "x slope", "z"),
        node("Sigmoid", "z", "s"),
        node("Mul", "x s", "g"),
        node("Cast", "g", to=TensorProto.FLOAT16),
    ),
    values=scaled_gelu,
)

WIDE_CONVOLUTION = replace(
    CONVOLUTION,
    inputs=lambda sizes: {"x": sizes, "w": (12 * sizes[1], sizes[1], 3, 3)},
    result=lambda sizes: (sizes[0], 12 * sizes[1], *sizes[2:]),
)
"""With twelve times as many filters as channels."""
