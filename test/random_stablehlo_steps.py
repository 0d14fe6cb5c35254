"""The steps of random StableHLO programs: one function a kind of operation."""

from __future__ import annotations

import numpy as np

from random_stablehlo import FLOATS, MOST_ELEMENTS, Program, Step, Value, array, tensor


def reducer(kind: str, name: str) -> str:
    """The region of a reduction by one operation."""
    t = tensor((), kind)
    return f""" ({{
    ^bb0(%l: {t}, %r: {t}):
      %s = stablehlo.{name} %l, %r : {t}
      stablehlo.return %s : {t}
  }})"""


def unary(p: Program, x: Value) -> None:
    if x.kind in FLOATS:
        names = ["negate", "abs", "tanh", "logistic", "exponential", "sine", "cbrt"]
        if x.exact:
            names += ["floor", "ceil", "sign", "round_nearest_even", "round_nearest_afz"] * 2
        name = p.pick(names)
        exact = x.exact and name not in names[2:7]
    else:
        if x.kind == "i1":
            names = ["not"]
        elif x.kind.startswith("u"):
            names = ["not", "popcnt", "count_leading_zeros"]
        else:
            names = ["negate", "abs", "sign", "not", "popcnt", "count_leading_zeros"]
        name, exact = p.pick(names), True
    p.op(name, [x], x.shape, x.kind, exact)


def binary(p: Program, x: Value) -> None:
    y = p.argument(x.shape, x.kind)
    names = ["add", "subtract", "multiply", "maximum", "minimum"]
    if x.kind == "i1":
        names = ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]
    elif x.kind not in FLOATS:
        names += ["and", "or", "xor", "power", "shift_left", "shift_right_logical"]
        names += ["shift_right_arithmetic"]
    name = p.pick(names)
    if p.chance(0.5):
        x, y = y, x
    exact = (
        x.exact
        and y.exact
        and (x.kind not in FLOATS or name in ("maximum", "minimum") or x.kind == "f32")
    )
    p.op(name, [x, y], x.shape, x.kind, exact)


def quotient(p: Program, x: Value) -> None:
    """By a constant that is not zero."""
    if x.kind == "i1":
        return
    c = p.pick((1, 2, 3, 7) if x.kind.startswith("u") else (1, 2, -1, -3, 7))
    y = (
        p.emit(
            f"stablehlo.constant dense<{c}{'.0' if x.kind in FLOATS else ''}> : ",
            x.shape,
            x.kind,
            True,
            typed=False,
        )
        if np.prod(x.shape)
        else p.argument(x.shape, x.kind)
    )
    name = p.pick(("divide", "remainder") if x.exact else ("divide",))
    p.op(name, [x, y], x.shape, x.kind, x.kind not in FLOATS)


def compare(p: Program, x: Value) -> None:
    y = p.argument(x.shape, x.kind)
    if not (x.exact and y.exact):
        return
    unsigned = x.kind[0] == "u" or x.kind == "i1"
    how = "FLOAT" if x.kind in FLOATS else "UNSIGNED" if unsigned else "SIGNED"
    predicate = p.pick(("EQ", "NE", "LT", "LE", "GT", "GE"))
    p.op(
        "compare",
        [x, y],
        x.shape,
        "i1",
        True,
        comparison_direction=f"#stablehlo<comparison_direction {predicate}>",
        compare_type=f"#stablehlo<comparison_type {how}>",
    )


def select(p: Program, x: Value) -> None:
    y = p.argument(x.shape, x.kind)
    c = p.argument(x.shape if p.chance(0.8) else (), "i1")
    p.op("select", [c, x, y], x.shape, x.kind)


def clamp(p: Program, x: Value) -> None:
    if x.kind == "i1":
        return
    bounds = [p.argument(x.shape if p.chance(0.4) else (), x.kind) for _ in range(2)]
    p.op("clamp", [bounds[0], x, bounds[1]], x.shape, x.kind)


def convert(p: Program, x: Value) -> None:
    kind = p.kind()
    if kind not in FLOATS and not x.exact:
        return
    if x.kind in FLOATS and kind not in (*FLOATS, "i32", "i64", "i1"):
        return
    p.op("convert", [x], x.shape, kind)


def transpose(p: Program, x: Value) -> None:
    order = p.rng.permutation(len(x.shape))
    p.op("transpose", [x], [x.shape[i] for i in order], x.kind, permutation=array(order))


def reshape(p: Program, x: Value) -> None:
    count = int(np.prod(x.shape))
    shapes = [s for s in (p.shape() for _ in range(30)) if np.prod(s) == count]
    shapes += [(count,), (1, *x.shape), (*x.shape, 1), (count, 1)]
    p.op("reshape", [x], p.pick(shapes), x.kind)


def broadcast(p: Program, x: Value) -> None:
    rank = p.draw(len(x.shape), 4)
    dims = p.rng.permutation(rank)[: len(x.shape)]
    if p.chance(0.7):
        dims = np.sort(dims)
    shape = [p.pick((1, 2, 3, 5, 17)) for _ in range(rank)]
    for d, n in zip(dims, x.shape, strict=True):
        shape[d] = n if n != 1 else shape[d]
    if np.prod(shape) <= MOST_ELEMENTS:
        p.op("broadcast_in_dim", [x], shape, x.kind, broadcast_dimensions=array(dims))


def cut(p: Program, x: Value) -> None:
    starts = [p.draw(0, n) for n in x.shape]
    limits = [p.draw(s, n) for s, n in zip(starts, x.shape, strict=True)]
    strides = [p.pick((1, 1, 2, 3)) for _ in x.shape]
    shape = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
    p.op(
        "slice",
        [x],
        shape,
        x.kind,
        start_indices=array(starts),
        limit_indices=array(limits),
        strides=array(strides),
    )


def pad(p: Program, x: Value) -> None:
    low, high = ([p.pick((0, 0, 1, 2, -1)) for _ in x.shape] for _ in range(2))
    inner = [p.pick((0, 0, 0, 1)) for _ in x.shape]
    sizes = zip(x.shape, low, high, inner, strict=True)
    shape = [n + max(0, n - 1) * i + a + b for n, a, b, i in sizes]
    if min(shape, default=0) >= 0 and np.prod(shape) <= MOST_ELEMENTS:
        p.op(
            "pad",
            [x, p.scalar(x.kind)],
            shape,
            x.kind,
            edge_padding_low=array(low),
            edge_padding_high=array(high),
            interior_padding=array(inner),
        )


def concatenate(p: Program, x: Value) -> None:
    if not x.shape:
        return
    dim = p.draw(0, len(x.shape) - 1)
    parts = [x]
    for _ in range(p.draw(0, 2)):
        shape = list(x.shape)
        shape[dim] = p.pick((0, 1, 2, shape[dim]))
        parts.append(p.argument(tuple(shape), x.kind))
    parts = [parts[i] for i in p.rng.permutation(len(parts))]
    shape = list(x.shape)
    shape[dim] = sum(v.shape[dim] for v in parts)
    p.op("concatenate", parts, shape, x.kind, dimension=f"{dim} : i64")


def iota(p: Program, x: Value) -> None:
    if x.shape and x.kind != "i1":
        dim = p.draw(0, len(x.shape) - 1)
        p.op("iota", [], x.shape, x.kind, True, iota_dimension=f"{dim} : i64")


def reverse(p: Program, x: Value) -> None:
    dims = [i for i in range(len(x.shape)) if p.chance(0.5)]
    p.op("reverse", [x], x.shape, x.kind, dimensions=array(dims))


def reduce(p: Program, x: Value) -> None:
    dims = [i for i in range(len(x.shape)) if p.chance(0.5)]
    shape = [n for i, n in enumerate(x.shape) if i not in dims]
    names = ["and", "or"] if x.kind == "i1" else ["add", "maximum", "minimum", "multiply"]
    name = p.pick(names)
    start = p.scalar(x.kind)
    exact = x.exact and start.exact and (x.kind not in FLOATS or name in names[1:3])
    p.op("reduce", [x, start], shape, x.kind, exact, reducer(x.kind, name), dimensions=array(dims))


def reduce_window(p: Program, x: Value) -> None:
    if not x.shape or 0 in x.shape:
        return
    window, strides = ([p.pick((1, 2, 3)) for _ in x.shape] for _ in range(2))
    low, high = ([p.pick((0, 0, 1)) for _ in x.shape] for _ in range(2))
    sizes = zip(x.shape, window, strides, low, high, strict=True)
    shape = [(n + a + b - w) // s + 1 for n, w, s, a, b in sizes]
    if min(shape) < 1:
        return
    names = ["and", "or"] if x.kind == "i1" else ["add", "maximum", "minimum"]
    name = p.pick(names)
    start = p.scalar(x.kind)
    exact = x.exact and start.exact and (x.kind not in FLOATS or name in names[1:3])
    padding = ", ".join(f"[{a}, {b}]" for a, b in zip(low, high, strict=True))
    p.op(
        "reduce_window",
        [x, start],
        shape,
        x.kind,
        exact,
        reducer(x.kind, name),
        window_dimensions=array(window),
        window_strides=array(strides),
        padding=f"dense<[{padding}]> : tensor<{len(shape)}x2xi64>",
    )


def dot(p: Program, x: Value) -> None:
    """Batch, contracting and free dimensions anywhere."""
    if x.kind == "i1":
        return
    roles = [p.pick("bcf") for _ in x.shape]
    batch = [i for i, r in enumerate(roles) if r == "b"]
    contract = [i for i, r in enumerate(roles) if r == "c"]
    free = [i for i, r in enumerate(roles) if r == "f"]
    other = [("b", x.shape[i]) for i in batch] + [("c", x.shape[i]) for i in contract]
    other += [("f", p.pick((1, 3, 16, 17))) for _ in range(p.draw(0, max(0, 4 - len(other))))]
    order = p.rng.permutation(len(other))
    shape = tuple(other[i][1] for i in order)
    count = len(batch)
    place = {int(i): at for at, i in enumerate(order)}
    batch2, contract2 = (
        [place[i] for i in range(count)],
        [place[count + i] for i in range(len(contract))],
    )
    free2 = [at for at, i in enumerate(order) if other[i][0] == "f"]
    result = [x.shape[i] for i in batch] + [x.shape[i] for i in free] + [shape[i] for i in free2]
    if max(np.prod(shape), np.prod(result)) > MOST_ELEMENTS:
        return
    y = p.argument(shape, x.kind)
    numbers = [
        ("lhs_batching_dimensions", batch),
        ("rhs_batching_dimensions", batch2),
        ("lhs_contracting_dimensions", contract),
        ("rhs_contracting_dimensions", contract2),
    ]
    fields = ", ".join(f"{key} = {list(map(int, v))}" for key, v in numbers)
    p.op(
        "dot_general",
        [x, y],
        result,
        x.kind,
        x.kind not in FLOATS,
        dot_dimension_numbers=f"#stablehlo.dot<{fields}>",
    )


def convolution(p: Program, x: Value) -> None:
    if len(x.shape) != 4 or x.kind not in ("f32", "f16", "i32") or 0 in x.shape:
        return
    n, h, w, c = x.shape
    if c > 17 or h < 2 or w < 2:
        return
    kh, kw, o = p.draw(1, 2), p.draw(1, 2), p.pick((1, 3, 16))
    y = p.argument((kh, kw, c, o), x.kind)
    stride, low = p.draw(1, 2), p.draw(0, 1)
    shape = (n, (h + low - kh) // stride + 1, (w + low - kw) // stride + 1, o)
    p.op(
        "convolution",
        [x, y],
        shape,
        x.kind,
        x.kind not in FLOATS,
        window_strides=array([stride, stride]),
        padding=f"dense<[[{low}, 0], [{low}, 0]]> : tensor<2x2xi64>",
        dimension_numbers="#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
        feature_group_count="1 : i64",
        batch_group_count="1 : i64",
    )


def dynamic_slice(p: Program, x: Value) -> None:
    sizes = [p.draw(min(1, n), n) for n in x.shape]
    kind = p.pick(("i32", "i64"))
    starts = [p.scalar(kind) for _ in x.shape]
    if p.chance(0.5):
        p.op("dynamic_slice", [x, *starts], sizes, x.kind, slice_sizes=array(sizes))
    else:
        y = p.argument(tuple(sizes), x.kind)
        p.op("dynamic_update_slice", [x, y, *starts], x.shape, x.kind)


def gather(p: Program, x: Value) -> None:
    if not x.shape or 0 in x.shape:
        return
    axis = p.draw(0, len(x.shape) - 1)
    count = p.pick((1, 2, 5, 16, 17))
    indices = p.argument((count, 1), p.pick(("i32", "i64")))
    rest = [n for i, n in enumerate(x.shape) if i != axis]
    if count * np.prod(rest) > MOST_ELEMENTS:
        return
    at = p.draw(0, len(rest))
    offsets = [i for i in range(len(x.shape)) if i != at]
    sizes = [1 if i == axis else n for i, n in enumerate(x.shape)]
    p.op(
        "gather",
        [x, indices],
        [*rest[:at], count, *rest[at:]],
        x.kind,
        dimension_numbers=f"#stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = "
        f"[{axis}], start_index_map = [{axis}], index_vector_dim = 1>",
        slice_sizes=array(sizes),
        indices_are_sorted="false",
    )


def scatter(p: Program, x: Value) -> None:
    if len(x.shape) < 1 or 0 in x.shape or x.kind == "i1":
        return
    count = p.pick((1, 2, 5))
    indices = p.argument((count, 1), "i32")
    updates = p.argument((count, *x.shape[1:]), x.kind)
    windows = list(range(1, len(x.shape)))
    exact = x.exact and updates.exact and x.kind not in FLOATS
    p.op(
        "scatter",
        [x, indices, updates],
        x.shape,
        x.kind,
        exact,
        reducer(x.kind, p.pick(("add", "maximum"))),
        scatter_dimension_numbers=f"#stablehlo.scatter<update_window_dims = {windows}, "
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
        indices_are_sorted="false",
        unique_indices="false",
    )


STEPS: tuple[Step, ...] = (
    unary,
    unary,
    binary,
    binary,
    binary,
    quotient,
    compare,
    select,
    clamp,
    convert,
    convert,
    transpose,
    reshape,
    broadcast,
    broadcast,
    cut,
    pad,
    concatenate,
    iota,
    reverse,
    reduce,
    reduce,
    reduce,
    reduce_window,
    dot,
    dot,
    convolution,
    dynamic_slice,
    gather,
    scatter,
)
