"""Random ONNX networks whose cores have reason to meet, held against onnxruntime over launches.

What is drawn is what makes a core wait for another: recurrent layers one upon the other, products
with a long k, convolutions and pools behind each other, attention, normalisations over rows,
residual sums. Each network runs on one machine with several numbers of cores, as phases of few
launches, with as many as the compiler thinks best, and with a launch of each kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import TensorProto

import davinci
from davinci import machine as machines
from davinci.reference import check
from davinci.zoo.graph import OnnxGraph
from onnx_support import Arrays

MACHINES = ("ascend910", "ascend910b", "ascend910", "ascend310p")
CORES = (1, 3, 8, 32)
"""More than a machine has are all of its."""

LAUNCHES = ("joined", "many", "joined", "auto")
SIZES = (1, 3, 15, 16, 17, 32, 33, 64, 100, 128, 130, 200, 256)
LONG = (1000, 2048, 4099, 8192)
CHANNELS = (1, 3, 16, 17, 32, 64)
SIDES = (5, 7, 8, 14, 16)
UNARY = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Erf", "Softplus")
LARGEST_ERROR = 0.02
"""As a share of an output's largest value: networks are short, and their layers keep the range."""

CANCELLED = 1e-6
"""An error that is always allowed: roundings of values around 1, which are all that is left of an
output where equal values are subtracted, such as the mean of equal elements from each."""

T = TypeVar("T")
Shape = tuple[int, ...]


@dataclass(frozen=True)
class RandomModel:
    """A drawn network, and what it is run on.

    Attributes:
        ways: options of `davinci.compile`.
        text: a line that says what it is.
    """

    kind: str
    model: onnx.ModelProto
    inputs: Arrays
    ways: tuple[dict[str, Any], ...]
    text: str

    def check(self) -> None:
        """Asserts that all ways give what onnxruntime does, twice: counters go on between runs."""
        wanted = check.reference_onnx(self.model, self.inputs)
        for way in self.ways:
            executable = davinci.compile(self.model, **way)
            executable.poison = True
            for _ in range(2):
                errors = check.compare(executable.run(self.inputs), wanted)
                said = ", ".join(f"{key} {value:.3g}" for key, value in errors.items())
                alike = errors["max_abs_err"] <= CANCELLED
                assert alike or errors["max_rel_err"] <= LARGEST_ERROR, f"{way}: {said}"


class Draw:
    """A network under construction.

    Args:
        seed: of all that is left to chance.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.graph = OnnxGraph("random", seed)
        self.made: list[tuple[str, Shape]] = []
        self.steps: list[str] = []

    def pick(self, values: tuple[T, ...]) -> T:
        return values[int(self.rng.integers(len(values)))]

    def model(self) -> RandomModel:
        kind = self.pick(tuple(KINDS))
        shape, steps = KINDS[kind](self)
        value = self.graph.input("x", TensorProto.FLOAT, shape)
        given = self.rng.uniform(-1, 1, shape).astype(np.float32)
        said = [f"x{list(shape)}"]
        self.made.append((value, shape))
        for _ in range(int(self.rng.integers(1, 6))):
            step = self.pick(steps)
            value, shape = step(self, *self.made[-1])
            self.made.append((value, shape))
            said.append(f"{step.__name__}{list(shape)}")
        self.graph.output(value, "y", shape)
        ways = tuple(self._ways())
        text = f"{' '.join(said)} on {ways[0]['machine']}"
        return RandomModel(kind, self.graph.model(), {"x": given}, ways, text)

    def _ways(self) -> list[dict[str, Any]]:
        machine = MACHINES[self.seed % len(MACHINES)]
        most, start = machines.load(machine).cores, int(self.rng.integers(len(CORES)))
        counts = [CORES[(start + n) % len(CORES)] for n in range(len(LAUNCHES))]
        return [
            {"machine": machine, "cores": min(most, cores), "launches": launches}
            for cores, launches in zip(counts, LAUNCHES, strict=True)
        ]


Step = Callable[[Draw, str, Shape], tuple[str, Shape]]


def activation(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    return draw.graph.node(draw.pick(UNARY), x), shape


def residual(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """With a value of before, or with numbers of its last dimension."""
    known = [name for name, other in draw.made if other == shape]
    other = known[int(draw.rng.integers(len(known)))]
    if other == x:
        other = draw.graph.weight(f"b{len(draw.made)}", shape[-1], std=1.0)
    return draw.graph.node(draw.pick(("Add", "Mul", "Max")), x, other), shape


def normalisation(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    scale = draw.graph.constant(np.ones(shape[-1], np.float32))
    shift = draw.graph.weight(f"b{len(draw.made)}", shape[-1], std=0.3)
    return draw.graph.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=0.1), shape


def softmax(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """Times the length of a row, so that what follows has something to see."""
    axis = int(draw.rng.integers(len(shape)))
    length = draw.graph.constant(np.float32(shape[axis]))
    return draw.graph.node("Mul", draw.graph.node("Softmax", x, axis=axis), length), shape


def product(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    k, n = shape[-1], draw.pick(SIZES)
    weight = draw.graph.weight(f"w{len(draw.made)}", k, n, std=k**-0.5)
    return draw.graph.node("MatMul", x, weight), (*shape[:-1], n)


def long_product(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """To many columns and back: the second one has a long k."""
    k, n = shape[-1], draw.pick(LONG)
    first = draw.graph.weight(f"u{len(draw.made)}", k, n, std=k**-0.5)
    second = draw.graph.weight(f"d{len(draw.made)}", n, k, std=n**-0.5)
    inner = draw.graph.node("Relu", draw.graph.node("MatMul", x, first))
    return draw.graph.node("MatMul", inner, second), shape


def attention(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """Adds attention of one head, whose queries, keys and values are the same rows."""
    keys, _ = turned(draw, x, shape)
    factor = draw.graph.constant(np.float32(shape[-1] ** -0.5))
    scores = draw.graph.node("Mul", draw.graph.node("MatMul", x, keys), factor)
    return draw.graph.node("MatMul", draw.graph.node("Softmax", scores, axis=-1), x), shape


def centred(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """Less the mean along a dimension."""
    axis = int(draw.rng.integers(len(shape)))
    mean = draw.graph.node("ReduceMean", x, axes=[axis], keepdims=1)
    return draw.graph.node("Sub", x, mean), shape


def turned(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """The last two dimensions."""
    perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return draw.graph.node("Transpose", x, perm=perm), tuple(shape[i] for i in perm)


def recurrent(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    """An LSTM, GRU or RNN upon [steps, batch, features], of one direction or two."""
    steps, batch, features = shape
    operator, gates = draw.pick((("LSTM", 4), ("GRU", 3), ("LSTM", 4), ("RNN", 1)))
    hidden, directions = draw.pick((16, 32, 48, 64, 100, 128, 256)), draw.pick((1, 1, 1, 2))
    rows, std, number = gates * hidden, hidden**-0.5, len(draw.made)
    w = draw.graph.weight(f"w{number}", directions, rows, features, std=features**-0.5)
    r = draw.graph.weight(f"r{number}", directions, rows, hidden, std=std)
    b = draw.graph.weight(f"b{number}", directions, 2 * rows, std=std)
    how: dict[str, Any] = {"linear_before_reset": 1} if operator == "GRU" else {}
    way = "forward" if directions == 1 else "bidirectional"
    states = draw.graph.node(operator, x, w, r, b, hidden_size=hidden, direction=way, **how)
    beside = draw.graph.node("Transpose", states, perm=[0, 2, 1, 3])
    shape = (steps, batch, directions * hidden)
    return draw.graph.node("Reshape", beside, draw.graph.constant(np.array(shape, np.int64))), shape


def convolution(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    images, channels, height, width = shape
    side, out = draw.pick((1, 3, 3, 5)), draw.pick(CHANNELS)
    inputs = channels * side * side
    weight = draw.graph.weight(f"w{len(draw.made)}", out, channels, side, side, std=inputs**-0.5)
    bias = draw.graph.weight(f"b{len(draw.made)}", out, std=0.3)
    y = draw.graph.node("Conv", x, weight, bias, kernel_shape=[side] * 2, pads=[side // 2] * 4)
    return y, (images, out, height, width)


def pool(draw: Draw, x: str, shape: Shape) -> tuple[str, Shape]:
    name = draw.pick(("MaxPool", "AveragePool"))
    y = draw.graph.node(name, x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    return y, shape


ON_ROWS = (activation, residual, normalisation, softmax, attention, centred, turned)

KINDS: dict[str, Callable[[Draw], tuple[Shape, tuple[Step, ...]]]] = {
    "matrices": lambda draw: (
        (draw.pick(SIZES), draw.pick((*SIZES, *LONG))),
        (*[product] * 2, long_product, *ON_ROWS),
    ),
    "recurrent": lambda draw: (
        (draw.pick((1, 2, 3, 5, 9)), draw.pick((1, 1, 2, 3)), draw.pick((16, 32, 100))),
        (recurrent, recurrent, recurrent, product, activation, residual, normalisation),
    ),
    "images": lambda draw: (
        (draw.pick((1, 1, 2)), draw.pick(CHANNELS), draw.pick(SIDES), draw.pick(SIDES)),
        (convolution, convolution, pool, activation, residual, centred),
    ),
}
