"""Random graphs whose inputs have declared ranges, with their values in float64.

Each is an ONNX model of some steps on images or matrices of numbers: elementwise operators,
products, convolutions, reductions, divisions, roots, exponentials and joins, of values that f16
often does not hold. `values` computes the same with NumPy in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import davinci

Array = npt.NDArray[Any]

RANGES = (
    (0.0, 255.0), (0.0, 255.0), (-128.0, 127.0), (0.0, 1.0), (-1.0, 1.0), (0.0, 1023.0),
    (100.0, 5000.0), (-3e4, 3e4), (1e-4, 1e-2), (-1e-3, 1e-3), (0.0, 65535.0), (0.5, 2.0),
)  # fmt: skip
"""Ranges of inputs: those of images, sensors, probabilities and small numbers."""

SHAPES = ((16, 16), (17, 33), (8, 100), (31, 15), (1, 129), (40, 48))

LARGEST = 1e8
"""Values beyond this are brought back."""

Evaluate = Callable[[Sequence[Array]], Array]


@dataclass
class RangedGraph:
    """A random graph.

    Attributes:
        ranges: of each input by name.
        steps: names of what it was made of.
    """

    seed: int
    length: int = 7
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._computed: list[tuple[str, Evaluate, list[str]]] = []
        self._samples: dict[str, Array] = {}
        self.shape = SHAPES[self._rng.integers(len(SHAPES))]
        for number in range(1 + self._rng.integers(2)):
            self.ranges[f"x{number}"] = RANGES[self._rng.integers(len(RANGES))]
        self._samples = {**self.inputs(self.seed)}
        self._values = list(self.ranges)
        for _ in range(self.length):
            step = STEPS[self._rng.integers(len(STEPS))]
            self.steps.append(step.__name__)
            self._values.append(self._held(step(self)))
        self.outputs = list(dict.fromkeys([self._values[-1], self._pick()]))
        self.outputs = [name for name in self.outputs if name not in self.ranges]

    def inputs(self, seed: int, ends: bool = False) -> dict[str, Array]:
        """Inputs in their ranges: random ones, or only the lowest and the highest of each."""
        rng = np.random.default_rng(seed)
        found = {}
        for name, (low, high) in self.ranges.items():
            given = rng.uniform(low, high, self.shape).astype(np.float32)
            limits = np.array([low, high], np.float32)
            given = np.clip(given, *limits)
            if ends:
                given = limits[rng.integers(0, 2, self.shape)]
            given.flat[0], given.flat[-1] = limits
            found[name] = given
        return found

    def values(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """The outputs in float64."""
        known = {name: array.astype(np.float64) for name, array in inputs.items()}
        for name, evaluate, operands in self._computed:
            known[name] = evaluate([known[operand] for operand in operands])
        return {name: known[name] for name in self.outputs}

    @property
    def model(self) -> onnx.ModelProto:
        def info(name: str) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, self._samples[name].shape)

        graph = helper.make_graph(
            self._nodes,
            f"ranges{self.seed}",
            [info(name) for name in self.ranges],
            [info(name) for name in self.outputs],
            self._constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    def _pick(self, shape: tuple[int, ...] | None = None) -> str:
        """A value, more likely one of the last."""
        fitting = [v for v in self._values if self._samples[v].shape == (shape or self.shape)]
        weights = np.arange(1, len(fitting) + 1)
        return str(self._rng.choice(fitting, p=weights / weights.sum()))

    def _number(self, array: Any) -> str:
        """A constant."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def _add(self, kind: str, operands: list[str], evaluate: Evaluate, **attributes: Any) -> str:
        """A node, and what it computes of its operands that are no constants."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, operands, [name], **attributes))
        constants = {
            c.name: numpy_helper.to_array(c) for c in self._constants if c.name in operands
        }
        computed = [operand for operand in operands if operand not in constants]

        def whole(given: Sequence[Array]) -> Array:
            known = dict(zip(computed, given, strict=True))
            wide = {
                key: x.astype(np.float64) if x.dtype == np.float32 else x
                for key, x in constants.items()
            }
            return evaluate([known[x] if x in known else wide[x] for x in operands])

        self._computed.append((name, whole, computed))
        self._samples[name] = whole([self._samples[x].astype(np.float64) for x in computed])
        return name

    def _held(self, name: str) -> str:
        """A value, brought back where it has grown too far."""
        largest = float(np.abs(self._samples[name]).max())
        if largest <= LARGEST:
            return name
        factor = self._number(100.0 / largest)
        return self._add("Mul", [name, factor], lambda v: v[0] * v[1])

    def _scaled_to(self, name: str, largest: float) -> str:
        """A value times a number that brings it to a size."""
        found = max(float(np.abs(self._samples[name]).max()), 1e-6)
        return self._add("Mul", [name, self._number(largest / found)], lambda v: v[0] * v[1])

    def _uniform(self, low: float, high: float, size: Any = ()) -> Array:
        return np.asarray(self._rng.uniform(low, high, size), np.float32)


def affine(g: RangedGraph) -> str:
    a, b = g._number(g._uniform(-3, 3)), g._number(g._uniform(-10, 10))
    scaled = g._add("Mul", [g._pick(), a], lambda v: v[0] * v[1])
    return g._add("Add", [scaled, b], lambda v: v[0] + v[1])


def square(g: RangedGraph) -> str:
    x = g._pick()
    return _binary(g, "Mul", x, x)


def _binary(g: RangedGraph, kind: str, x: str, y: str) -> str:
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Div": np.divide,
        "Max": np.maximum, "Min": np.minimum,
    }  # fmt: skip
    function = functions[kind]
    return g._add(kind, [x, y], lambda v: function(v[0], v[-1]))


def product(g: RangedGraph) -> str:
    return _binary(g, "Mul", g._pick(), g._pick())


def join(g: RangedGraph) -> str:
    kind = str(g._rng.choice(["Add", "Sub", "Max", "Min"]))
    return _binary(g, kind, g._pick(), g._pick())


def polynomial(g: RangedGraph) -> str:
    """x (a x + b)."""
    x = g._pick()
    a, b = g._number(g._uniform(0.1, 3)), g._number(g._uniform(0.01, 3))
    inner = g._add("Mul", [x, a], lambda v: v[0] * v[1])
    return _binary(g, "Mul", x, g._add("Add", [inner, b], lambda v: v[0] + v[1]))


def division(g: RangedGraph) -> str:
    """x / (|y| + c)."""
    x, y = g._pick(), g._add("Abs", [g._pick()], lambda v: np.abs(v[0]))
    size = max(float(np.abs(g._samples[y]).max()), 1e-3)
    c = g._number(g._uniform(0.05, 0.5) * np.float32(size))
    return _binary(g, "Div", x, g._add("Add", [y, c], lambda v: v[0] + v[1]))


def quotient(g: RangedGraph) -> str:
    """A number by x x + c."""
    squared = square(g)
    size = max(float(np.abs(g._samples[squared]).max()), 1e-3)
    c = g._number(g._uniform(0.02, 0.5) * np.float32(size))
    divisor = g._add("Add", [squared, c], lambda v: v[0] + v[1])
    number = g._number(g._uniform(1, 1000))
    return g._add("Div", [number, divisor], lambda v: v[0] / v[1])


def root(g: RangedGraph) -> str:
    x = g._add("Abs", [g._pick()], lambda v: np.abs(v[0]))
    size = max(float(np.abs(g._samples[x]).max()), 1e-3)
    c = g._number(g._uniform(0.001, 0.1) * np.float32(size))
    shifted = g._add("Add", [x, c], lambda v: v[0] + v[1])
    return g._add("Sqrt", [shifted], lambda v: np.sqrt(v[0]))


def exponential(g: RangedGraph) -> str:
    x = g._scaled_to(g._pick(), float(g._uniform(0.5, 9)))
    return g._add("Exp", [x], lambda v: np.exp(v[0]))


def logarithm(g: RangedGraph) -> str:
    x = g._add("Abs", [g._pick()], lambda v: np.abs(v[0]))
    size = max(float(np.abs(g._samples[x]).max()), 1e-3)
    c = g._number(g._uniform(0.05, 0.5) * np.float32(size))
    shifted = g._add("Add", [x, c], lambda v: v[0] + v[1])
    return g._add("Log", [shifted], lambda v: np.log(v[0]))


def saturating(g: RangedGraph) -> str:
    x = g._scaled_to(g._pick(), float(g._uniform(1, 6)))
    kind = str(g._rng.choice(["Tanh", "Sigmoid", "Relu"]))
    functions: dict[str, Callable[[Array], Array]] = {
        "Tanh": np.tanh, "Sigmoid": lambda a: 1 / (1 + np.exp(-a)), "Relu": lambda a: a * (a > 0),
    }  # fmt: skip
    function = functions[kind]
    return g._add(kind, [x], lambda v: function(v[0]))


def chosen(g: RangedGraph) -> str:
    """The larger of a value and a limit, by comparison and choice."""
    x, y = g._pick(), g._pick()
    limit = g._number(np.float32(np.median(g._samples[x])))
    low = g._add("Min", [x, limit], lambda v: np.minimum(v[0], v[1]))
    return _binary(g, "Add", low, y)


def joined(g: RangedGraph) -> str:
    """Two values beside each other, of which the middle is left."""
    x, y = g._pick(), g._pick()
    columns = g.shape[1]
    both = g._add("Concat", [x, y], lambda v: np.concatenate([v[0], v[-1]], 1), axis=1)
    half = columns // 2
    ends = [np.array([n], np.int64) for n in (half, half + columns, 1)]
    names = []
    for array in ends:
        names.append(f"c{len(g._constants)}")
        g._constants.append(numpy_helper.from_array(array, names[-1]))
    return g._add("Slice", [both, *names], lambda v: v[0][:, half : half + columns])


def normalised(g: RangedGraph) -> str:
    """What a row's mean or maximum leaves of it."""
    x = g._pick()
    if g._rng.integers(2):
        mean = g._add("ReduceMean", [x], lambda v: v[0].mean(1, keepdims=True), axes=[1])
    else:
        mean = g._add("ReduceMax", [x], lambda v: v[0].max(1, keepdims=True), axes=[1])
    return _binary(g, "Sub", x, mean)


def total(g: RangedGraph) -> str:
    """A share of each row's sum of squares."""
    x = g._pick()
    squared = _binary(g, "Mul", x, x)
    axes = f"c{len(g._constants)}"
    g._constants.append(numpy_helper.from_array(np.array([1], np.int64), axes))
    summed = g._add("ReduceSum", [squared, axes], lambda v: v[0].sum(1, keepdims=True))
    size = max(float(np.abs(g._samples[summed]).max()), 1e-6)
    return _binary(g, "Mul", g._pick(), g._scaled_to(summed, size * float(g._uniform(0.01, 1))))


def softmax(g: RangedGraph) -> str:
    x = g._scaled_to(g._pick(), float(g._uniform(1, 9)))

    def evaluate(v: Sequence[Array]) -> Array:
        e = np.exp(v[0] - v[0].max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return g._add("Softmax", [x], evaluate, axis=1)


def matmul(g: RangedGraph) -> str:
    columns = g.shape[1]
    w = g._number(g._uniform(-1, 1, (columns, columns)))
    return g._add("MatMul", [g._pick(), w], lambda v: v[0] @ v[1])


def scores(g: RangedGraph) -> str:
    """A product of two values, and one of its results and a third."""
    x, y = g._pick(), g._pick()
    turned = g._add("Transpose", [y], lambda v: v[0].T, perm=[1, 0])
    made = g._add("MatMul", [x, turned], lambda v: v[0] @ v[-1])
    made = g._scaled_to(made, 1.0)
    return g._add("MatMul", [made, g._pick()], lambda v: v[0] @ v[-1])


def convolution(g: RangedGraph) -> str:
    """A 3x3 filter of an image of one channel."""
    rows, columns = g.shape
    w = g._uniform(-1, 1, (1, 1, 3, 3))
    x, weights = g._pick(), g._number(w)

    def reshaped(name: str, shape: tuple[int, ...]) -> str:
        sizes = f"c{len(g._constants)}"
        g._constants.append(numpy_helper.from_array(np.array(shape, np.int64), sizes))
        return g._add("Reshape", [name, sizes], lambda v: v[0].reshape(shape))

    def filtered(v: Sequence[Array]) -> Array:
        padded = np.pad(v[0][0, 0], 1)
        kernel = v[1][0, 0]
        parts = [
            kernel[i, j] * padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3)
        ]
        return np.sum(parts, axis=0)[None, None]

    image = reshaped(x, (1, 1, rows, columns))
    made = g._add("Conv", [image, weights], filtered, pads=[1, 1, 1, 1])
    return reshaped(made, (rows, columns))


STEPS: tuple[Callable[[RangedGraph], str], ...] = (
    affine, square, product, join, join, polynomial, division, quotient, root, exponential,
    logarithm, saturating, chosen, joined, normalised, total, softmax, matmul, scores, convolution,
)  # fmt: skip
"""What graphs are made of."""


def lost(record: Mapping[str, Any]) -> int:
    """Number of values that became infinite in a run, constants among them."""
    constants = sum(row["overflows"] for row in record["range_of_constants"])
    return int(record["range"]["overflows"] + constants)


def findings(graph: RangedGraph, executable: davinci.Executable) -> tuple[list[str], list[float]]:
    """What is wrong with a graph under `scaled-fp16`, and of each output with a bound the largest
    error as a share of that.

    Inputs are random ones of the ranges, then their ends only.
    """
    wrong, shares = [], []
    for ends in (False, True):
        inputs = graph.inputs(graph.seed + 1, ends)
        found, wanted = executable.run(inputs), graph.values(inputs)
        record = executable.profile
        if count := lost(record):
            wrong.append(f"{count} values overflow")
        outputs = record["scaling"]["outputs"]
        for name, output in zip(executable.output_names, outputs, strict=True):
            error, bound = float(np.abs(found[name] - wanted[name]).max()), output["max_abs_err"]
            if not np.isfinite(found[name]).all():
                wrong.append(f"{name} is not finite")
            elif bound is not None:
                if error > bound:
                    wrong.append(f"{name} is off by {error:.3g}, more than {bound:.3g}")
                shares.append(error / bound if bound else 0.0)
    return wrong, shares
