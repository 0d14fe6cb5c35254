"""Random networks: what models are made of, in random orders on shapes that hurt, as StableHLO.

Softmaxes, normalisations, gelus, rotary embeddings, attention and products with what follows them;
elementwise operators, broadcasts and reductions along any axes; reshapes, transposes, slices,
concatenations and pads. Values feed several others, and some inside are results of the network too.

Two right computations differ by roundings only: comparisons see inputs only, what grows is held
below `MOST` by tanh, and statistics are never close to 0. `Graph.f16` says whether anything is
rounded to f16 under the policy `mixed`: products are, and casts that the network makes itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

SIZES = (1, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100, 127, 128, 129, 200, 257)
LONG = (500, 1000, 1031, 2048, 4099)
MOST_RESULTS = 6
MOST = 30.0
EPSILON = 0.1
"""In normalisations: they enlarge what went wrong before by at most 1 / sqrt(EPSILON)."""

T = TypeVar("T")
INFINITY, MINUS_INFINITY = "0x7F800000", "0xFF800000"
"""As MLIR writes them for f32."""

Shape = tuple[int, ...]
Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Value:
    """An array of the network; no element is larger than `bound`."""

    name: str
    shape: Shape
    bound: float
    kind: str = "f32"

    @property
    def type(self) -> str:
        return tensor(self.shape, self.kind)


def tensor(shape: Sequence[int], kind: str = "f32") -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


def numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


class Graph:
    """A network that is being written.

    Args:
        seed: of all that is left to chance, inputs too.
        most_elements: of an array.

    Attributes:
        text: of the module.
        inputs: in the order of its arguments.
        f16: whether values are rounded to f16 somewhere.
        steps: names of the steps taken.
        results: what the network returns.
    """

    def __init__(self, seed: int, most_elements: int = 20_000) -> None:
        self.rng = np.random.default_rng(seed)
        self.most = most_elements
        self.f16 = False
        self.lines: list[str] = []
        self.arguments: list[Value] = []
        self.inputs: list[Array] = []
        self.values: list[Value] = []
        self.steps: list[str] = []
        self.results: list[Value] = []
        self.text = ""

    def walk(self, length: int, steps: Mapping[Step, int]) -> None:
        """Takes `length` steps, each from where the last one ended or from anywhere before, and
        finishes; `steps` says how often each is tried."""
        x = self.argument(self.shape())
        self.values.append(x)
        while len(self.steps) < length:
            step = self.pick([one for one, weight in steps.items() for _ in range(weight)])
            known = len(self.lines)
            y = step(self, x if self.chance(0.75) else self.pick(self.values))
            if y is None:
                assert len(self.lines) == known, f"{step.__name__} wrote before it gave up"
                continue
            self.steps.append(step.__name__)
            x = self.limited(y if y.shape else self.reshape(y, (1,)))
            self.values.append(x)
        read = " ".join(line.partition(" = ")[2] for line in self.lines)
        made = [v for v in self.values if v not in self.arguments]
        ends = [v for v in made if f"{v.name} " not in f"{read} ".replace(",", " ")]
        inner = [v for v in made if v not in ends and self.chance(0.1)]
        self.finish(list(dict.fromkeys([*ends, *inner, x]))[:MOST_RESULTS])

    def finish(self, results: Sequence[Value]) -> None:
        """Makes the text, of a network that returns `results`."""
        self.results = list(results)
        arguments = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        names = ", ".join(v.name for v in results)
        types = ", ".join(v.type for v in results)
        body = "\n".join(f"  {line}" for line in self.lines)
        head = f"func.func @main({arguments}) -> ({types})"
        self.text = f"{head} {{\n{body}\n  return {names} : {types}\n}}\n"

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, values: Sequence[T]) -> T:
        return values[int(self.rng.integers(len(values)))]

    def shape(self) -> Shape:
        """Of two to four dimensions, most often of three; sometimes with long rows."""
        while True:
            rank = self.pick((1, 2, 2, 2, 3, 3, 4))
            sizes = [self.pick(SIZES) for _ in range(rank)]
            if self.chance(0.15):
                sizes[-1] = self.pick(LONG)
            if math.prod(sizes) <= self.most:
                return tuple(sizes)

    def argument(self, shape: Shape) -> Value:
        """Between -2 and 2."""
        value = Value(f"%a{len(self.arguments)}", shape, 2.0)
        self.arguments.append(value)
        self.inputs.append(self.rng.uniform(-2, 2, shape).astype(np.float32))
        return value

    def near(self, shape: Shape) -> Value:
        """A value of this shape: one that is there, or a new argument."""
        known = [v for v in self.values if v.shape == shape and v.kind == "f32"]
        return self.pick(known) if known and self.chance(0.6) else self.argument(shape)

    def emit(self, text: str, shape: Sequence[int], bound: float, kind: str = "f32") -> Value:
        value = Value(f"%v{len(self.lines)}", tuple(shape), bound, kind)
        self.lines.append(f"{value.name} = {text}")
        return value

    def full(self, number: float, shape: Sequence[int] = ()) -> Value:
        text = f"stablehlo.constant dense<{np.format_float_scientific(number)}> : {tensor(shape)}"
        return self.emit(text, shape, abs(number))

    def unary(self, name: str, x: Value, bound: float | None = None) -> Value:
        known = x.bound if bound is None else bound
        return self.emit(f"stablehlo.{name} {x.name} : {x.type}", x.shape, known)

    def binary(self, name: str, a: Value, b: Value, bound: float) -> Value:
        return self.emit(f"stablehlo.{name} {a.name}, {b.name} : {a.type}", a.shape, bound)

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("add", a, b, a.bound + b.bound)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("multiply", a, b, a.bound * b.bound)

    def scale(self, x: Value, number: float) -> Value:
        return self.mul(x, self.full(number, x.shape))

    def limited(self, x: Value) -> Value:
        return self.unary("tanh", x, 1.0) if x.bound > MOST else x

    def spread(self, x: Value, shape: Shape, dims: Sequence[int]) -> Value:
        """A broadcast; dimension i of `x` is `dims[i]` of the result."""
        text = f"stablehlo.broadcast_in_dim {x.name}, dims = [{numbers(dims)}]"
        return self.emit(f"{text} : ({x.type}) -> {tensor(shape)}", shape, x.bound)

    def reduce(self, kind: str, x: Value, dims: Sequence[int]) -> Value:
        shape = [n for i, n in enumerate(x.shape) if i not in dims]
        count = math.prod(x.shape[i] for i in dims)
        start = {"add": "0.0", "maximum": MINUS_INFINITY, "minimum": INFINITY}[kind]
        first = self.emit(f"stablehlo.constant dense<{start}> : tensor<f32>", (), 0.0)
        return self.emit(
            f"stablehlo.reduce({x.name} init: {first.name}) applies stablehlo.{kind} across "
            f"dimensions = [{numbers(dims)}] : ({x.type}, tensor<f32>) -> {tensor(shape)}",
            shape,
            x.bound * (count if kind == "add" else 1),
        )

    def statistic(self, kind: str, x: Value, dims: Sequence[int]) -> Value:
        """A reduction at every place that it was made from."""
        kept = [i for i in range(len(x.shape)) if i not in dims]
        small = self.reduce(kind, x, dims)
        if kind == "add":
            small = self.scale(small, 1 / math.prod(x.shape[i] for i in dims))
            small = Value(small.name, small.shape, x.bound)
        return self.spread(small, x.shape, kept)

    def reshape(self, x: Value, shape: Shape) -> Value:
        return self.emit(
            f"stablehlo.reshape {x.name} : ({x.type}) -> {tensor(shape)}", shape, x.bound
        )

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        shape = [x.shape[i] for i in order]
        text = f"stablehlo.transpose {x.name}, dims = [{numbers(order)}]"
        return self.emit(f"{text} : ({x.type}) -> {tensor(shape)}", shape, x.bound)

    def slice(self, x: Value, parts: Sequence[tuple[int, int, int]]) -> Value:
        """Parts are (first, end, step) of each dimension."""
        shape = [-(-(end - first) // step) for first, end, step in parts]
        which = ", ".join(f"{first}:{end}:{step}" for first, end, step in parts)
        text = f"stablehlo.slice {x.name} [{which}] : ({x.type}) -> {tensor(shape)}"
        return self.emit(text, shape, x.bound)

    def concatenate(self, a: Value, b: Value, dim: int) -> Value:
        shape = list(a.shape)
        shape[dim] += b.shape[dim]
        text = f"stablehlo.concatenate {a.name}, {b.name}, dim = {dim} : ({a.type}, {b.type})"
        return self.emit(f"{text} -> {tensor(shape)}", shape, max(a.bound, b.bound))

    def product(self, a: Value, b: Value) -> Value:
        """[.., m, k] by [.., k, n] over equal batches, as large as its factors on average."""
        self.f16 = True
        rank = len(a.shape)
        batch = list(range(rank - 2))
        shape = (*a.shape[:-1], b.shape[-1])
        batching = f"batching_dims = [{numbers(batch)}] x [{numbers(batch)}], " if batch else ""
        y = self.emit(
            f"stablehlo.dot_general {a.name}, {b.name}, {batching}contracting_dims = [{rank - 1}] "
            f"x [{rank - 2}] : ({a.type}, {b.type}) -> {tensor(shape)}",
            shape,
            a.bound * b.bound * a.shape[-1],
        )
        return self.scale(y, 1 / math.sqrt(a.shape[-1]))


Step = Callable[[Graph, Value], Value | None]
"""Adds operators that take a value further; None, with nothing written, if it does not suit."""
