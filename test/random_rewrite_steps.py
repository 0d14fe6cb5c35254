"""Steps of random networks (`random_graphs`) that the compiler's rewrites replace, and how often
each is tried: arithmetic with constants, what is moved or converted and put back, products with
constant weights, parts of what was computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from random_graph_steps import STEPS as ORDINARY
from random_graphs import MINUS_INFINITY, Graph, Step, Value, tensor

MOST_WRITTEN = 600
"""Elements of a constant that is written out."""


def constant(g: Graph, shape: Sequence[int], low: float = -2.0, high: float = 2.0) -> Value:
    """A constant of numbers between `low` and `high`."""
    array = g.rng.uniform(low, high, tuple(shape)).astype(np.float32)
    text = np.array2string(array, separator=", ", threshold=array.size, floatmode="unique")
    literal = f"stablehlo.constant dense<{' '.join(text.split())}> : {tensor(shape)}"
    return g.emit(literal, shape, max(abs(low), abs(high)))


def number(g: Graph, x: Value, low: float, high: float) -> Value:
    """A constant to combine with `x`: one number, or one for each column."""
    if g.chance(0.5) or x.shape[-1] > MOST_WRITTEN:
        return g.full(float(np.float32(g.rng.uniform(low, high))), x.shape)
    return g.spread(constant(g, x.shape[-1:], low, high), x.shape, [len(x.shape) - 1])


def affine(g: Graph, x: Value) -> Value:
    """Sums, differences, products and quotients with constants, one behind the other."""
    for _ in range(g.pick((2, 3, 4))):
        name = g.pick(("add", "subtract", "multiply", "divide"))
        y = number(g, x, 0.5, 1.5)
        bound = {"multiply": 1.5 * x.bound, "divide": 2 * x.bound}.get(name, x.bound + 1.5)
        x = g.binary(name, x, y, bound)
    return x


def identity(g: Graph, x: Value) -> Value:
    """What leaves numbers as they are."""
    name = g.pick(("one", "zero", "negations", "relus", "minus"))
    if name == "one":
        return g.binary(g.pick(("multiply", "divide")), x, g.full(1.0, x.shape), x.bound)
    if name == "zero":
        return g.binary(g.pick(("add", "subtract")), x, g.full(0.0, x.shape), x.bound)
    if name == "negations":
        return g.unary("negate", g.unary("negate", x))
    if name == "minus":
        y = g.near(x.shape)
        return g.add(g.unary("negate", y), x)
    y = g.binary("maximum", x, g.full(0.0, x.shape), x.bound)
    return g.binary("maximum", y, g.full(0.0, x.shape), x.bound)


def root(g: Graph, x: Value) -> Value:
    """A quotient by a root, at every place or one for a row."""
    y = x
    if len(x.shape) > 1 and g.chance(0.5):
        y = g.reduce("maximum", g.unary("abs", x), [len(x.shape) - 1])
    size = g.add(g.unary("abs", y), g.full(0.25, y.shape))
    divisor = g.unary("sqrt", size, math.sqrt(size.bound))
    if y is not x:
        divisor = g.spread(divisor, x.shape, range(len(x.shape) - 1))
    dividend = g.full(1.0, x.shape) if g.chance(0.3) else x
    return g.binary("divide", dividend, divisor, 2 * max(1.0, x.bound))


def power(g: Graph, x: Value) -> Value:
    """A power by, or of, a constant."""
    if g.chance(0.3):
        base = g.full(g.pick((0.5, 2.0, 3.0)), x.shape)
        return g.binary("power", base, g.unary("tanh", x, 1.0), 3.0)
    positive = g.add(g.unary("abs", g.unary("tanh", x, 1.0)), g.full(0.25, x.shape))
    exponent = g.full(g.pick((0.25, 0.75, 1.5, 2.5, -0.5, 2.0)), x.shape)
    return g.binary("power", positive, exponent, 2.0)


def commuted(g: Graph, x: Value) -> Value:
    """A sum of the same two values in both orders."""
    y = g.near(x.shape)
    return g.mul(g.unary("tanh", g.add(x, y), 1.0), g.unary("tanh", g.add(y, x), 1.0))


def turned(g: Graph, x: Value) -> Value | None:
    """Transposed, computed with, and transposed back, or in another order."""
    rank = len(x.shape)
    if rank < 2:
        return None
    order = [int(i) for i in g.rng.permutation(rank)]
    back = sorted(range(rank), key=order.__getitem__)
    y = g.transpose(x, order)
    for _ in range(g.pick((0, 1, 2))):
        y = g.unary(g.pick(("tanh", "negate", "abs")), y)
        y = g.add(y, g.full(0.5, y.shape)) if g.chance(0.4) else y
    if g.chance(0.3):
        y = g.add(y, g.transpose(g.near(x.shape), order))
    return g.transpose(y, back if g.chance(0.8) else order)


def cut(g: Graph, x: Value) -> Value:
    """Parts that are joined as they were or in another order, or a part of a part."""
    dim = int(g.rng.integers(len(x.shape)))
    size = x.shape[dim]
    at = int(g.rng.integers(1, size)) if size > 1 else 0

    def part(y: Value, first: int, end: int, step: int = 1) -> Value:
        parts = [(0, n, 1) for n in y.shape]
        parts[dim] = (first, end, step)
        return g.slice(y, parts)

    if not at or g.chance(0.4):
        y = part(x, at, size, 1 + int(g.chance(0.3)))
        return part(y, y.shape[dim] // 2, y.shape[dim])
    a, b = part(x, 0, at), part(x, at, size)
    return g.concatenate(a, b, dim) if g.chance(0.7) else g.concatenate(b, a, dim)


def cast(g: Graph, x: Value) -> Value:
    """Of flags to integers and back, that choose."""
    flags, wide = tensor(x.shape, "i1"), tensor(x.shape, "i32")
    sign, zero = g.argument(x.shape), g.full(0.0, x.shape)
    p = g.emit(
        f"stablehlo.compare GT, {sign.name}, {zero.name} : ({x.type}, {x.type}) -> {flags}",
        x.shape,
        1.0,
        "i1",
    )
    n = g.emit(f"stablehlo.convert {p.name} : ({flags}) -> {wide}", x.shape, 1.0, "i32")
    none = g.emit(f"stablehlo.constant dense<0> : {wide}", x.shape, 1.0, "i32")
    q = g.emit(
        f"stablehlo.compare NE, {n.name}, {none.name} : ({wide}, {wide}) -> {flags}",
        x.shape,
        1.0,
        "i1",
    )
    return g.emit(
        f"stablehlo.select {q.name}, {x.name}, {zero.name} : {flags}, {x.type}", x.shape, x.bound
    )


def linear(g: Graph, x: Value) -> Value | None:
    """One or two layers with constant weights, biases, and factors of columns behind them."""
    k = x.shape[-1]
    if len(x.shape) != 2 or not 1 < k <= 64:
        return None
    for _ in range(g.pick((1, 2))):
        n = g.pick((1, 3, 8, 16))
        if k * n > MOST_WRITTEN:
            return None if k == x.shape[-1] else x
        x = g.product(x, constant(g, (k, n), -1, 1))
        x = Value(x.name, x.shape, 2.0 * math.sqrt(k))
        k = n
        if g.chance(0.6):
            x = g.add(x, g.spread(constant(g, (n,)), x.shape, [1]))
        if g.chance(0.6):
            x = g.mul(x, number(g, x, 0.5, 1.5))
        if g.chance(0.3):
            x = g.add(x, number(g, x, 0.5, 1.5))
    return x


def pool(g: Graph, x: Value) -> Value | None:
    """The largest of windows of a padded image, or of one that a ReLU made."""
    if len(x.shape) < 2 or min(x.shape[-2:]) < 3:
        return None
    relu = g.chance(0.5)
    y = g.binary("maximum", x, g.full(0.0, x.shape), x.bound) if relu else x
    number_ = "0.0" if relu else MINUS_INFINITY
    fill = g.emit(f"stablehlo.constant dense<{number_}> : tensor<f32>", (), 0.0)
    none = [0] * (len(x.shape) - 2)
    low, high = ([*none, *g.rng.integers(0, 2, 2).tolist()] for _ in range(2))
    shape = [n + a + b for n, a, b in zip(x.shape, low, high, strict=True)]
    padded = g.emit(
        f"stablehlo.pad {y.name}, {fill.name}, low = {low}, high = {high}, "
        f"interior = {[0] * len(shape)} : ({y.type}, tensor<f32>) -> {tensor(shape)}",
        shape,
        x.bound,
    )
    start = g.emit(f"stablehlo.constant dense<{MINUS_INFINITY}> : tensor<f32>", (), 0.0)
    sizes = [1] * len(none) + [2, 3]
    made = [n - size + 1 for n, size in zip(shape, sizes, strict=True)]
    name, place = f"%m{len(g.lines)}", ", ".join(map(str, sizes))
    return g.emit(
        f'"stablehlo.reduce_window"({padded.name}, {start.name}) ({{ ^bb0({name}a: tensor<f32>, '
        f"{name}b: tensor<f32>): {name}c = stablehlo.maximum {name}a, {name}b : tensor<f32> "
        f'"stablehlo.return"({name}c) : (tensor<f32>) -> () }}) '
        f"{{window_dimensions = array<i64: {place}>}} : ({padded.type}, tensor<f32>) -> "
        f"{tensor(made)}",
        made,
        x.bound,
    )


REWRITTEN: dict[Step, int] = {
    affine: 3,
    identity: 2,
    root: 2,
    power: 2,
    commuted: 2,
    turned: 3,
    cut: 3,
    cast: 1,
    linear: 4,
    pool: 2,
}

STEPS: dict[Step, int] = {**ORDINARY, **{step: 3 * often for step, often in REWRITTEN.items()}}
