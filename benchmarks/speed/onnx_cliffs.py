"""Operators of ONNX at two sizes, against their bounds, as `cliffs_page.py` has those of StableHLO.

    python benchmarks/speed/onnx_cliffs.py [--machine NAME ..] [--only TEXT] [--write]

Each is a model of one node on about 10 thousand and on about a million elements, whose parameters
(axes, shapes, counts, indices of slices) are constants as in an exported network. `--write` puts
the tables into docs/cliffs.md, with `--printed FILE ..` those of lines that were printed before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from cliffs_page import run
from onnx import TensorProto, helper, numpy_helper

OPSET = 21

Shape = tuple[int, ...]
Arrays = Callable[[Shape], Sequence[Any]]
"""Parameters of a node for a shape."""

KINDS = {
    "float": TensorProto.FLOAT,
    "int": TensorProto.INT64,
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "uint32": TensorProto.UINT32,
}


@dataclass(frozen=True)
class Node:
    """A model of one node.

    Attributes:
        count: of operands, all of the shape of the size unless `shapes` says others.
        outputs: how many results are wanted.
        parameters: arrays behind the operands.
        shapes: of the operands, by the shape of the size.
    """

    operator: str
    count: int = 1
    kind: str = "float"
    outputs: int = 1
    parameters: Arrays = lambda shape: ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    shapes: Callable[[Shape], Sequence[Shape]] | None = None
    name: str = ""

    @property
    def title(self) -> str:
        return self.name or self.operator

    def model(self, shape: Shape) -> onnx.ModelProto:
        shapes = self.shapes(shape) if self.shapes else [shape] * self.count
        inputs = [
            helper.make_tensor_value_info(f"x{i}", KINDS[self.kind], each)
            for i, each in enumerate(shapes)
        ]
        constants = [
            numpy_helper.from_array(np.asarray(array), f"p{i}")
            for i, array in enumerate(self.parameters(shape))
        ]
        names = [*(value.name for value in inputs), *(value.name for value in constants)]
        made = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, names, made, **self.attributes)
        results = [onnx.ValueInfoProto(name=name) for name in made]
        graph = helper.make_graph([node], self.title, inputs, results, constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        model = onnx.shape_inference.infer_shapes(model)
        for value in model.graph.output:
            if value.type.WhichOneof("value") is None:  # a function's: that of its operand
                value.type.CopyFrom(model.graph.input[0].type)
        return model


def longs(*numbers: int) -> Arrays:
    """One parameter of integers, the same for all shapes."""
    return lambda shape: (np.array(numbers, np.int64),)


def image(shape: Shape) -> Sequence[Shape]:
    """Sixteen channels of a square, as many elements as a shape has."""
    side = int((shape[0] * shape[1] / 16) ** 0.5)
    return [(1, 16, side, side)]


def filters(shape: Shape) -> Sequence[Any]:
    return (np.ones((16, 16, 3, 3), np.float32),)


def sequence(shape: Shape) -> Sequence[Shape]:
    """Sixteen steps of rows of 64 inputs, as many elements as a shape has."""
    return [(16, shape[0] * shape[1] // 1024, 64)]


def cell(gates: int) -> dict[str, Any]:
    """Parameters and attributes of a recurrent node of 64 hidden numbers."""
    weights = np.full((1, 64 * gates, 64), 0.01, np.float32)
    return {"parameters": lambda shape: (weights, weights), "attributes": {"hidden_size": 64}}


def patches(shape: Shape) -> Sequence[Shape]:
    """Patches of 3 x 3 of sixteen channels, at the places of a square."""
    return [(1, 144, side_of_patches(shape) ** 2)]


def side_of_patches(shape: Shape) -> int:
    return int((shape[0] * shape[1] / 144) ** 0.5)


def offsets(shape: Shape) -> Any:
    """Of the windows of 3 x 3 of an image, which are `DeformConv`'s second operand."""
    rows, columns = image(shape)[0][2:]
    return np.full((1, 18, rows - 2, columns - 2), 0.3, np.float32)


def labels(shape: Shape) -> Sequence[Any]:
    return (np.arange(shape[0]) % shape[1],)


def resized(factor: float) -> Arrays:
    """Parameters of `Resize`: no region, and by how much rows and columns grow."""
    return lambda shape: (np.zeros(0, np.float32), np.array([1, 1, factor, factor], np.float32))


def statistics(shape: Shape) -> Sequence[Any]:
    return tuple(np.ones(16, np.float32) for _ in range(4))


UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh"),
    *("Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf"),
    *("IsNaN", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Reciprocal", "Relu", "Round"),
    *("Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign"),
    *("Sqrt", "Tan", "Tanh", "ThresholdedRelu", "Hardmax", "Transpose", "NonZero", "Size"),
)
BINARY = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "PRelu"),
    *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
)
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

NODES: tuple[Node, ...] = (
    *(Node(name) for name in UNARY if name not in ("NonZero",)),
    *(Node(name, 2) for name in BINARY),
    *(Node(name, 2, "bool") for name in ("And", "Or", "Xor")),
    Node("Not", 1, "bool"),
    *(Node(name, 2, "int", name=f"{name} of int64") for name in ("Add", "Mul", "Div", "Max")),
    Node("Mod", 2, attributes={"fmod": 1}),
    Node("Mod", 2, "int", name="Mod of int64"),
    *(Node(f"Reduce{name}", parameters=longs(1)) for name in REDUCTIONS),
    *(Node(name, attributes={"axis": 1}) for name in ("ArgMax", "ArgMin")),
    Node("Cast", attributes={"to": TensorProto.FLOAT16}),
    Node("CastLike", parameters=lambda s: (np.zeros(1, np.float16),)),
    Node("Clip", parameters=lambda s: (np.float32(-1), np.float32(1))),
    Node("Concat", 2, attributes={"axis": 1}),
    Node("CumSum", parameters=lambda s: (np.int64(1),)),
    Node("Expand", parameters=lambda s: (np.array([2, *s]),)),
    Node("EyeLike"),
    Node("Flatten"),
    Node("Gather", parameters=lambda s: (np.arange(64) * 7 % s[0],)),
    Node("GatherElements", parameters=lambda s: (np.zeros((4, s[1]), np.int64),)),
    Node("GatherND", parameters=lambda s: (np.arange(64).reshape(-1, 1) * 7 % s[0],)),
    Node("LayerNormalization", parameters=lambda s: (np.ones(s[1], np.float32),)),
    Node("MatMul", shapes=lambda s: [s, (s[1], s[1])]),
    Node("Gemm", shapes=lambda s: [s, (s[1], s[1])]),
    Node(
        "OneHot",
        kind="int",
        parameters=lambda s: (np.int64(s[1]), np.array([0, 1], np.float32)),
        shapes=lambda s: [s[:1]],
    ),
    Node("Pad", parameters=longs(1, 2, 3, 1)),
    Node("Pad", parameters=longs(1, 2, 3, 1), attributes={"mode": "reflect"}, name="Pad, reflect"),
    Node("Reshape", parameters=lambda s: (np.array([s[1], s[0]]),)),
    Node(
        "ReverseSequence",
        parameters=lambda s: (np.full(s[0], s[1] // 2),),
        attributes={"batch_axis": 0, "time_axis": 1},
    ),
    Node(
        "ScatterElements",
        parameters=lambda s: (np.zeros((1, s[1]), np.int64), np.ones((1, s[1]), np.float32)),
    ),
    Node(
        "ScatterND",
        parameters=lambda s: (np.arange(8).reshape(-1, 1), np.ones((8, s[1]), np.float32)),
    ),
    Node("Slice", parameters=lambda s: (np.array([1]), np.array([s[1] - 2]), np.array([1]))),
    Node("Split", outputs=2, attributes={"axis": 1, "num_outputs": 2}),
    Node("Tile", parameters=longs(1, 2)),
    Node("TopK", outputs=2, parameters=longs(16)),
    Node("Trilu"),
    Node("Unsqueeze", parameters=longs(0)),
    Node("Squeeze", parameters=longs(0), shapes=lambda s: [(1, *s)]),
    Node(
        "Where", parameters=lambda s: (np.ones(s, np.float32), np.zeros(s, np.float32)), kind="bool"
    ),
    Node("AveragePool", shapes=image, attributes={"kernel_shape": [3, 3], "strides": [2, 2]}),
    Node("MaxPool", shapes=image, attributes={"kernel_shape": [3, 3], "strides": [2, 2]}),
    Node("LpPool", shapes=image, attributes={"kernel_shape": [3, 3], "strides": [2, 2]}),
    *(Node(f"Global{name}Pool", shapes=image) for name in ("Average", "Lp", "Max")),
    Node("BatchNormalization", shapes=image, parameters=statistics),
    Node("Conv", shapes=image, parameters=filters),
    Node("ConvTranspose", shapes=image, parameters=filters, attributes={"strides": [2, 2]}),
    Node("DepthToSpace", shapes=image, attributes={"blocksize": 2}),
    Node(
        "GroupNormalization",
        shapes=image,
        attributes={"num_groups": 4},
        parameters=lambda s: statistics(s)[:2],
    ),
    Node("InstanceNormalization", shapes=image, parameters=lambda s: statistics(s)[:2]),
    Node("LRN", shapes=image, attributes={"size": 3}),
    Node("LpNormalization"),
    Node("MeanVarianceNormalization", shapes=image),
    *(
        Node(
            "Resize",
            shapes=image,
            attributes={"mode": mode},
            parameters=resized(factor),
            name=f"Resize, {title}",
        )
        for title, mode, factor in (
            ("nearest", "nearest", 2),
            ("linear", "linear", 2),
            ("cubic", "cubic", 2),
            ("smaller", "linear", 0.7),
        )
    ),
    Node(
        "SpaceToDepth",
        shapes=lambda s: [(1, 16, 2 * (s[1] // 32), s[0])],
        attributes={"blocksize": 2},
    ),
    Node("GridSample", shapes=lambda s: [image(s)[0], (1, *image(s)[0][2:], 2)]),
    *(Node(f"Bitwise{name}", 2, "int") for name in ("And", "Or", "Xor")),
    Node("BitwiseNot", 1, "int"),
    Node("BitShift", 2, "uint32", attributes={"direction": "LEFT"}),
    *(Node(name, 1, "int", name=f"{name} of int64") for name in ("Abs", "Sign", "Transpose")),
    *(
        Node(f"Reduce{n}", 1, "int", 1, longs(1), name=f"Reduce{n} of int64")
        for n in ("Sum", "Max")
    ),
    Node("ArgMax", 1, "int", attributes={"axis": 1}, name="ArgMax of int64"),
    Node("Cast", 1, "int", attributes={"to": TensorProto.FLOAT}, name="Cast of int64"),
    Node("Cast", attributes={"to": TensorProto.INT64}, name="Cast to int64"),
    Node("MatMul", kind="int32", shapes=lambda s: [s, (s[1], 64)], name="MatMul of int32"),
    Node("Compress", parameters=lambda s: (np.arange(s[1]) % 2 == 0,), attributes={"axis": 1}),
    Node(
        "Gather",
        parameters=lambda s: (np.arange(64) * 7 % s[1],),
        attributes={"axis": 1},
        name="Gather along rows",
    ),
    Node("TopK", 1, "float", 2, longs(16), attributes={"axis": 0}, name="TopK along columns"),
    Node(
        "MaxPool",
        shapes=image,
        outputs=2,
        attributes={"kernel_shape": [2, 2], "strides": [2, 2]},
        name="MaxPool with places",
    ),
    Node("Det", shapes=lambda s: [(s[0] * s[1] // 16, 4, 4)]),
    Node(
        "RoiAlign",
        shapes=image,
        parameters=lambda s: (
            np.array([[0, 0, 9, 9], [3, 4, 12, 14.5]] * 4, np.float32),
            np.zeros(8, np.int64),
        ),
        attributes={"output_height": 7, "output_width": 7, "sampling_ratio": 2},
    ),
    Node(
        "Col2Im",
        shapes=patches,
        parameters=lambda s: (np.array([side_of_patches(s) + 2] * 2), np.array([3, 3])),
    ),
    Node("DFT", shapes=lambda s: [(1, *s, 1)]),
    Node(
        "STFT",
        shapes=lambda s: [(1, s[0] * s[1], 1)],
        parameters=lambda s: (np.int64(128), np.ones(256, np.float32)),
    ),
    Node("DeformConv", shapes=image, parameters=lambda s: (*filters(s), offsets(s))),
    Node(
        "AffineGrid",
        shapes=lambda s: [(1, 2, 3)],
        parameters=lambda s: (np.array([1, 1, *s]),),
    ),
    Node("DynamicQuantizeLinear", outputs=3),
    Node("QuantizeLinear", parameters=lambda s: (np.float32(0.1), np.uint8(3))),
    Node("DequantizeLinear", 1, "uint8", parameters=lambda s: (np.float32(0.1), np.uint8(3))),
    Node(
        "MatMulInteger",
        kind="uint8",
        parameters=lambda s: (np.ones((s[1], s[1]), np.int8), np.uint8(2), np.int8(1)),
    ),
    Node(
        "ConvInteger",
        kind="uint8",
        shapes=image,
        parameters=lambda s: (np.ones((16, 16, 3, 3), np.int8), np.uint8(2)),
    ),
    Node("Einsum", 2, attributes={"equation": "ij,kj->ik"}),
    Node("SoftmaxCrossEntropyLoss", parameters=labels),
    Node("NegativeLogLikelihoodLoss", parameters=labels),
    Node("LSTM", shapes=sequence, **cell(4)),
    Node("GRU", shapes=sequence, **cell(3)),
    Node("RNN", shapes=sequence, **cell(1)),
)
"""Models of one node; loops, sequences, texts and random operators are left out."""

REASONS = {
    "DeformConv": "four neighbours of each place of a window are gathered one by one",
    "LSTM": "steps one after the other, each a product of one row that waits for the one before",
    "GRU": "as LSTM",
    "RNN": "as LSTM",
    "TopK": "a key with its number is two planes, and rows are sorted in powers of two of places",
}
"""Why an operator is above the line, by the beginning of its name."""


if __name__ == "__main__":
    models = {node.title: node.model for node in NODES}
    sys.exit(run(str(__doc__), models, REASONS, "onnx tables", "ONNX, "))
