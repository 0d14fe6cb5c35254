"""What random networks are made of, see `random_graphs`, and how often each is tried."""

from __future__ import annotations

import math
from collections.abc import Sequence

from random_graphs import EPSILON, SIZES, Graph, Step, Value, numbers, tensor


def activation(g: Graph, x: Value) -> Value:
    name = g.pick(("tanh", "logistic", "abs", "negate", "cosine", "relu", "root", "gelu", "exp"))
    if name == "relu":
        return g.binary("maximum", x, g.full(0.0, x.shape), x.bound)
    if name == "root":
        positive = g.add(g.unary("abs", x), g.full(1.0, x.shape))
        return g.unary(g.pick(("sqrt", "rsqrt", "log")), positive, max(1.0, positive.bound))
    if name == "exp":
        return g.unary("exponential", g.unary("tanh", x, 1.0), math.e)
    if name == "gelu":
        return gelu(g, x)
    return g.unary(name, x, {"tanh": 1.0, "logistic": 1.0, "cosine": 1.0}.get(name, x.bound))


def gelu(g: Graph, x: Value) -> Value:
    """By tanh."""
    cube = g.mul(x, g.mul(x, x))
    inner = g.add(x, g.scale(cube, 0.044715))
    gate = g.add(g.unary("tanh", g.scale(inner, 0.79788456), 1.0), g.full(1.0, x.shape))
    return Value(g.mul(g.scale(x, 0.5), gate).name, x.shape, x.bound)


def combine(g: Graph, x: Value) -> Value:
    """With a value of the same shape, or one of fewer dimensions."""
    name = g.pick(("add", "subtract", "multiply", "maximum", "minimum"))
    kept = [i for i in range(len(x.shape)) if g.chance(0.5)] if g.chance(0.6) else None
    if kept is None:
        y = g.near(x.shape)
    else:
        y = g.spread(g.near(tuple(x.shape[i] for i in kept)), x.shape, kept)
    a, b = (x, y) if g.chance(0.5) else (y, x)
    bound = x.bound * y.bound if name == "multiply" else x.bound + y.bound
    return g.binary(name, a, b, bound)


def choose(g: Graph, x: Value) -> Value:
    """By the sign of an input."""
    sign = g.argument(x.shape if g.chance(0.5) else x.shape[-1:])
    zero, y = g.full(0.0, sign.shape), g.near(x.shape)
    text = f"stablehlo.compare {g.pick(('LT', 'GE', 'GT'))}, {sign.name}, {zero.name}"
    flags = tensor(sign.shape, "i1")
    p = g.emit(f"{text} : ({sign.type}, {sign.type}) -> {flags}", sign.shape, 1.0, "i1")
    if sign.shape != x.shape:
        wide = tensor(x.shape, "i1")
        dims = f"dims = [{len(x.shape) - 1}]"
        text = f"stablehlo.broadcast_in_dim {p.name}, {dims} : ({flags}) -> {wide}"
        p = g.emit(text, x.shape, 1.0, "i1")
    text = f"stablehlo.select {p.name}, {x.name}, {y.name} : {p.type}, {x.type}"
    return g.emit(text, x.shape, max(x.bound, y.bound))


def some_dims(g: Graph, x: Value) -> list[int]:
    """Dimensions to reduce: most often the last one."""
    last = len(x.shape) - 1
    if g.chance(0.6):
        return [last]
    return sorted({int(i) for i in g.rng.integers(len(x.shape), size=g.pick((1, 1, 2)))})


def reduction(g: Graph, x: Value) -> Value:
    dims, kind = some_dims(g, x), g.pick(("add", "maximum", "minimum"))
    y = g.reduce(kind, x, dims)
    if kind == "add":
        return g.scale(y, 1 / math.prod(x.shape[i] for i in dims))
    return y


def softmax(g: Graph, x: Value) -> Value:
    return softmax_of(g, x, some_dims(g, x))


def softmax_of(g: Graph, x: Value, dims: Sequence[int]) -> Value:
    shifted = g.binary("subtract", x, g.statistic("maximum", x, dims), 2 * x.bound)
    exp = g.unary("exponential", shifted, 1.0)
    kept = [i for i in range(len(x.shape)) if i not in dims]
    total = g.spread(g.reduce("add", exp, dims), x.shape, kept)
    return g.binary("divide", exp, total, 1.0)


def normalisation(g: Graph, x: Value) -> Value:
    """Layer norm or RMS norm, by rsqrt or by sqrt and division, some with scale and shift."""
    return normalised(g, x, some_dims(g, x), g.chance(0.7), g.chance(0.3))


def normalised(g: Graph, x: Value, dims: Sequence[int], centred: bool, late: bool = False) -> Value:
    """Over `dims`; `late`: what comes after the variance is computed at every place of a row."""
    d = x
    if centred:
        d = g.binary("subtract", x, g.statistic("add", x, dims), 2 * x.bound)
    kept = [i for i in range(len(x.shape)) if i not in dims]
    count = math.prod(x.shape[i] for i in dims)
    square = g.mul(d, d)
    variance = g.scale(g.reduce("add", square, dims), 1 / count)
    variance = Value(variance.name, variance.shape, square.bound)
    if late:
        variance = g.spread(variance, x.shape, kept)
    variance = g.add(variance, g.full(EPSILON, variance.shape))
    multiplied = g.chance(0.5)
    factor = g.unary("rsqrt" if multiplied else "sqrt", variance)
    factor = factor if late else g.spread(factor, x.shape, kept)
    y = g.binary("multiply" if multiplied else "divide", d, factor, math.sqrt(count))
    if g.chance(0.6):
        last = (len(x.shape) - 1,)
        y = g.mul(y, g.spread(g.argument(x.shape[-1:]), x.shape, last))
        y = g.add(y, g.spread(g.argument(x.shape[-1:]), x.shape, last))
    return y


def product(g: Graph, x: Value) -> Value | None:
    """By a matrix, most often with a bias."""
    if len(x.shape) < 2:
        return None
    n = g.pick(SIZES)
    if math.prod(x.shape[:-1]) * n > g.most:
        return None
    rows = math.prod(x.shape[:-1])
    flat = x if len(x.shape) == 2 else g.reshape(x, (rows, x.shape[-1]))
    y = g.product(flat, g.near((x.shape[-1], n)))
    if g.chance(0.7):
        y = g.add(y, g.spread(g.argument((n,)), y.shape, (1,)))
    if g.chance(0.5):
        y = activation(g, g.limited(y))
    return y if len(x.shape) == 2 else g.reshape(y, (*x.shape[:-1], n))


def attention(g: Graph, x: Value) -> Value | None:
    """softmax(q k^T) v on heads that columns are split into."""
    if len(x.shape) < 2 or math.prod(x.shape[:-1]) > 130:
        return None
    s, columns = math.prod(x.shape[:-1]), x.shape[-1]
    heads = g.pick([h for h in (1, 2, 3, 4, 8) if columns % h == 0])
    if heads * s * s > g.most:
        return None
    return attention_of(g, x, g.near(x.shape), g.near(x.shape), heads)


def attention_of(g: Graph, q: Value, k: Value, v: Value, heads: int) -> Value:
    """On matrices whose columns are those of the heads, one after the other."""
    shape, columns = q.shape, q.shape[-1]
    split = (math.prod(shape[:-1]), heads, columns // heads)
    q, k, v = (g.transpose(g.reshape(p, split), (1, 0, 2)) for p in (q, k, v))
    scores = g.limited(g.product(q, g.transpose(k, (0, 2, 1))))
    exp = g.unary("exponential", g.unary("tanh", scores, 1.0), math.e)
    total = g.spread(g.reduce("add", exp, [2]), exp.shape, (0, 1))
    y = g.product(g.binary("divide", exp, total, 1.0), v)
    return g.reshape(g.transpose(y, (1, 0, 2)), shape)


def rotary(g: Graph, x: Value) -> Value | None:
    """x cos + (-x2, x1) sin, with the halves x1 and x2 of the last dimension."""
    n = x.shape[-1]
    if n % 2 or len(x.shape) < 2:
        return None
    whole = [(0, size, 1) for size in x.shape[:-1]]
    first = g.slice(x, [*whole, (0, n // 2, 1)])
    second = g.slice(x, [*whole, (n // 2, n, 1)])
    turned = g.concatenate(g.unary("negate", second), first, len(x.shape) - 1)
    cos, sin = (
        g.spread(g.argument(x.shape[-2:]), x.shape, range(len(x.shape) - 2, len(x.shape)))
        for _ in range(2)
    )
    return g.add(g.mul(x, cos), g.mul(turned, sin))


def reshaped(g: Graph, x: Value) -> Value | None:
    """Dimensions merged, or one split."""
    shape = list(x.shape)
    if len(shape) > 1 and g.chance(0.5):
        i = int(g.rng.integers(len(shape) - 1))
        return g.reshape(x, (*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :]))
    i = int(g.rng.integers(len(shape))) if shape else 0
    if not shape or len(shape) > 4:
        return None
    part = g.pick([n for n in range(1, shape[i] + 1) if shape[i] % n == 0])
    return g.reshape(x, (*shape[:i], part, shape[i] // part, *shape[i + 1 :]))


def transposed(g: Graph, x: Value) -> Value | None:
    if len(x.shape) < 2:
        return None
    return g.transpose(x, [int(i) for i in g.rng.permutation(len(x.shape))])


def part(g: Graph, x: Value) -> Value | None:
    if not x.shape:
        return None
    parts = []
    for size in x.shape:
        first = int(g.rng.integers(size)) if g.chance(0.4) else 0
        end = int(g.rng.integers(first + 1, size + 1)) if g.chance(0.4) else size
        parts.append((first, end, g.pick((1, 1, 1, 1, 2, 3))))
    return g.slice(x, parts)


def joined(g: Graph, x: Value) -> Value | None:
    if not x.shape:
        return None
    dim = int(g.rng.integers(len(x.shape)))
    other = list(x.shape)
    other[dim] = g.pick(SIZES)
    if math.prod(x.shape) + math.prod(other) > g.most:
        return None
    y = g.full(g.pick((0.0, 1.5)), other) if g.chance(0.2) else g.near(tuple(other))
    return g.concatenate(*((x, y) if g.chance(0.5) else (y, x)), dim)


def padded(g: Graph, x: Value) -> Value | None:
    low, high = ([g.pick((0, 0, 1, 3)) for _ in x.shape] for _ in range(2))
    shape = [size + a + b for size, a, b in zip(x.shape, low, high, strict=True)]
    if math.prod(shape) > g.most:
        return None
    number = g.full(g.pick((0.0, 1.5)))
    return g.emit(
        f"stablehlo.pad {x.name}, {number.name}, low = [{numbers(low)}], high = [{numbers(high)}], "
        f"interior = [{numbers([0] * len(low))}] : ({x.type}, tensor<f32>) -> {tensor(shape)}",
        shape,
        max(x.bound, 1.5),
    )


def rounded(g: Graph, x: Value) -> Value:
    g.f16 = True
    half = tensor(x.shape, "f16")
    y = g.emit(f"stablehlo.convert {x.name} : ({x.type}) -> {half}", x.shape, x.bound, "f16")
    return g.emit(f"stablehlo.convert {y.name} : ({half}) -> {x.type}", x.shape, x.bound)


STEPS: dict[Step, int] = {
    activation: 6,
    combine: 6,
    choose: 1,
    reduction: 2,
    softmax: 2,
    normalisation: 3,
    product: 3,
    attention: 1,
    rotary: 1,
    reshaped: 2,
    transposed: 2,
    part: 2,
    joined: 1,
    padded: 1,
    rounded: 1,
}


def split(g: Graph, x: Value) -> Value | None:
    """Parts along a dimension, what is done to some of them, and some or all joined again."""
    dims = [i for i, size in enumerate(x.shape) if size > 1]
    if not dims:
        return None
    dim = g.pick(dims)
    size = x.shape[dim]
    even = [n for n in (2, 3, 4) if size % n == 0]
    if even and g.chance(0.7):
        count = g.pick(even)
        ends = [size // count * (i + 1) for i in range(count)]
    else:
        ends = sorted({int(g.rng.integers(1, size)), size})
    whole = [(0, n, 1) for n in x.shape]
    parts = []
    for first, end in zip([0, *ends], ends, strict=False):
        parts.append(g.slice(x, [*whole[:dim], (first, end, 1), *whole[dim + 1 :]]))
    made = [activation(g, p) if g.chance(0.6) else p for p in parts]
    made = [made[int(i)] for i in g.rng.permutation(len(made))]
    if g.chance(0.3) and len({p.shape for p in made}) == 1:
        return g.add(made[0], made[-1])
    return all_joined(g, made, dim)


def all_joined(g: Graph, parts: Sequence[Value], dim: int) -> Value:
    y = parts[0]
    for other in parts[1:]:
        y = g.concatenate(y, other, dim)
    return y


def branches(g: Graph, x: Value) -> Value | None:
    """Several products of one value beside each other, in columns or in front of each other."""
    matrix = x.shape if len(x.shape) == 2 else (math.prod(x.shape[:-1]), x.shape[-1])
    if len(x.shape) < 2 or matrix[0] * 300 > g.most:
        return None
    flat = x if len(x.shape) == 2 else g.reshape(x, matrix)
    dim, columns = g.pick((0, 1, 1)), g.pick((16, 32, 48, 17))
    made = []
    for _ in range(g.pick((2, 2, 3))):
        own = columns if dim == 0 else g.pick((16, 32, 48, 7))
        y = g.product(flat, g.argument((matrix[1], own)))
        made.append(activation(g, g.limited(y)) if g.chance(0.6) else y)
    if dim == 1 and len(x.shape) == 3 and g.chance(0.6):  # images, one behind the other
        made = [g.reshape(y, (*x.shape[:-1], y.shape[-1])) for y in made]
        dim = 2
    return all_joined(g, made, dim)


def projections(g: Graph, x: Value) -> Value | None:
    """Queries, keys and values by one product, whose columns are split."""
    rows = math.prod(x.shape[:-1])
    heads, width = g.pick((1, 2, 4)), g.pick((8, 16, 32))
    columns = heads * width
    if len(x.shape) < 2 or rows > 130 or rows * 3 * columns > g.most or heads * rows**2 > g.most:
        return None
    flat = x if len(x.shape) == 2 else g.reshape(x, (rows, x.shape[-1]))
    y = g.limited(g.product(flat, g.argument((x.shape[-1], 3 * columns))))
    q, k, v = (g.slice(y, [(0, rows, 1), (i * columns, (i + 1) * columns, 1)]) for i in range(3))
    return attention_of(g, q, k, v, heads)


def residual(g: Graph, x: Value) -> Value | None:
    """x and what two products make of it: the sum may lie where x does."""
    if len(x.shape) != 2 or x.shape[0] * 64 > g.most:
        return None
    inner = g.pick((16, 33, 64))
    y = activation(g, g.limited(g.product(x, g.argument((x.shape[1], inner)))))
    y = g.limited(g.product(g.limited(y), g.argument((inner, x.shape[1]))))
    return g.add(x, y)


def product_of_halves(g: Graph, x: Value) -> Value | None:
    """[x, y] W, or x U + y V, which is the same with U above V in W; then perhaps joined with one
    of the two, and added to a product of what that makes."""
    if len(x.shape) < 2:
        return None
    rows, own = math.prod(x.shape[:-1]), x.shape[-1]
    other, columns = g.pick((16, 17, 32, 48)), g.pick((16, 32, 33, 64))
    if rows * (own + other + 2 * columns) > g.most:
        return None
    x = x if len(x.shape) == 2 else g.reshape(x, (rows, own))
    y = g.near((rows, other))
    if g.chance(0.5):
        z = g.product(g.concatenate(x, y, 1), g.argument((own + other, columns)))
    else:
        halves = [g.product(half, g.argument((half.shape[1], columns))) for half in (x, y)]
        z = g.add(*halves)
    if g.chance(0.6):
        z = g.add(z, g.spread(g.argument((columns,)), z.shape, (1,)))
    if g.chance(0.5):
        z = activation(g, g.limited(z))
    if g.chance(0.4):
        return z
    half = g.pick((x, y))
    both = g.limited(g.concatenate(*((z, half) if g.chance(0.5) else (half, z)), 1))
    return g.add(both, g.product(both, g.argument((both.shape[1], both.shape[1]))))


VIEWS: dict[Step, int] = {
    **STEPS,
    product_of_halves: 4,
    split: 6,
    branches: 4,
    projections: 3,
    residual: 4,
    reshaped: 4,
    transposed: 4,
    part: 3,
    joined: 4,
}
"""Networks rich in what may lie in the bytes of other values, or be a part of them."""
