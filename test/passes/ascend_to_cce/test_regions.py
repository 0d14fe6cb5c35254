"""Slices, concatenations and pads of what a group computes, in its kernel, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from fuzz.graph_fuzz import in_f64
from random_graphs import Graph, Value
from support import compile_text

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


def rotary(shape: Shape, row_dims: Sequence[int], kind: str) -> str:
    """x cos + concat(-x2, x1) sin, with cos and sin along `row_dims`."""
    *outer, d = shape
    whole, half = ("x".join(map(str, (*outer, n, kind))) for n in (d, d // 2))
    rows = "x".join(str(shape[dim]) for dim in row_dims)
    bounds = ", ".join(f"0:{n}" for n in outer)
    dims, last = ", ".join(map(str, row_dims)), len(outer)
    spread = f"dims = [{dims}] : (tensor<{rows}x{kind}>) -> tensor<{whole}>"
    cut = f": (tensor<{whole}>) -> tensor<{half}>"
    return f"""func.func @main(%x: tensor<{whole}>, %c: tensor<{rows}x{kind}>,
        %s: tensor<{rows}x{kind}>) -> tensor<{whole}> {{
      %cos = stablehlo.broadcast_in_dim %c, {spread}
      %sin = stablehlo.broadcast_in_dim %s, {spread}
      %1 = stablehlo.slice %x [{bounds}, 0:{d // 2}] {cut}
      %2 = stablehlo.slice %x [{bounds}, {d // 2}:{d}] {cut}
      %n = stablehlo.negate %2 : tensor<{half}>
      %t = stablehlo.concatenate %n, %1, dim = {last}
        : (tensor<{half}>, tensor<{half}>) -> tensor<{whole}>
      %a = stablehlo.multiply %x, %cos : tensor<{whole}>
      %b = stablehlo.multiply %t, %sin : tensor<{whole}>
      %r = stablehlo.add %a, %b : tensor<{whole}>
      return %r : tensor<{whole}> }}"""


def spread(a: Array, rank: int, dims: Sequence[int]) -> Array:
    shape = [1] * rank
    for size, dim in zip(a.shape, dims, strict=True):
        shape[dim] = size
    return a.astype(np.float64).reshape(shape)


@pytest.mark.parametrize(
    ("shape", "row_dims", "kind", "machine", "cores"),
    [
        ((1, 12, 96, 64), (2, 3), "f16", "ascend910", 32),
        ((1, 12, 96, 64), (2, 3), "f32", "ascend310", 1),
        ((1, 96, 12, 64), (1, 3), "f32", "ascend910", 32),
        ((1, 96, 12, 64), (1, 3), "f16", "ascend310", 1),
        ((2, 3, 17, 32), (2, 3), "f16", "ascend910", 32),
        ((2, 7, 5, 128), (2, 3), "f32", "ascend910", 32),
        ((1, 2, 33, 256), (2, 3), "f32", "ascend310", 1),
        # Halves of 40 are no whole blocks of f16.
        ((3, 1, 16, 80), (2, 3), "f16", "ascend910", 32),
        ((3, 1, 16, 80), (2, 3), "f32", "ascend910", 32),
        ((1, 4, 15, 96), (2, 3), "f16", "ascend310", 1),
        ((5, 64), (0, 1), "f32", "ascend910", 32),
    ],
    ids=str,
)
def test_rotary_embedding(
    shape: Shape, row_dims: Sequence[int], kind: str, machine: str, cores: int
) -> None:
    dtype = np.float16 if kind == "f16" else np.float32
    random = np.random.default_rng(3)
    x = random.standard_normal(shape).astype(dtype)
    sizes = [shape[dim] for dim in row_dims]
    cos, sin = (random.uniform(-1, 1, sizes).astype(dtype) for _ in range(2))
    executable = compile_text(rotary(shape, row_dims, kind), machine=machine, cores=cores)
    (found,) = executable.run({"arg0": x, "arg1": cos, "arg2": sin}).values()
    half = shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], -1).astype(np.float64)
    wanted = x * spread(cos, x.ndim, row_dims) + turned * spread(sin, x.ndim, row_dims)
    limit = {"rtol": 2e-3, "atol": 4e-3} if kind == "f16" else {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(found.astype(np.float64), wanted, **limit)
    if machine == "ascend910":
        assert len(executable.profile["launches_list"]) == 1


Network = Callable[[Graph], list[Value]]


def columns(g: Graph, x: Value, first: int, last: int, dim: int = -1) -> Value:
    dim %= len(x.shape)
    bounds = [(0, n, 1) for n in x.shape]
    bounds[dim] = (first, last, 1)
    return g.slice(x, bounds)


def gate(rows: int, half: int, name: str) -> Network:
    """a act(b) of the halves of x + bias."""

    def build(g: Graph) -> list[Value]:
        x = g.argument((rows, 2 * half))
        y = g.add(x, g.spread(g.argument((2 * half,)), x.shape, (1,)))
        a, b = columns(g, y, 0, half), columns(g, y, half, 2 * half)
        return [g.mul(a, g.unary(name, b, 1.0))]

    return build


def parts_apart(rows: int, *sizes: int) -> Network:
    """exp(x) cut in columns, each a result."""

    def build(g: Graph) -> list[Value]:
        y = g.unary("exponential", g.argument((rows, sum(sizes))), 8.0)
        ends = np.cumsum(sizes).tolist()
        return [columns(g, y, end - n, end) for n, end in zip(sizes, ends, strict=True)]

    return build


def joined(dim: int, *shapes: Shape) -> Network:
    """tanh of each, one behind the other."""

    def build(g: Graph) -> list[Value]:
        first, *others = (g.unary("tanh", g.argument(shape), 1.0) for shape in shapes)
        for other in others:
            first = g.concatenate(first, other, dim)
        return [first]

    return build


def grown_cache(past: int, new: int) -> Network:
    """What is there and what is computed, along an outer dimension."""

    def build(g: Graph) -> list[Value]:
        x = g.unary("tanh", g.argument((3, new, 64)), 1.0)
        return [g.concatenate(g.argument((3, past, 64)), x, 1)]

    return build


def shifted(rows: int, lanes: int) -> Network:
    """x a + (x one row later) (1 - a), zeros in front."""

    def build(g: Graph) -> list[Value]:
        x = g.unary("tanh", g.argument((rows, lanes)), 1.0)
        before = columns(g, x, 0, rows - 1, 0)
        number = g.full(0.0)
        shape = f"tensor<{rows}x{lanes}xf32>"
        late = g.emit(
            f"stablehlo.pad {before.name}, {number.name}, low = [1, 0], high = [0, 0], "
            f"interior = [0, 0] : ({before.type}, tensor<f32>) -> {shape}",
            (rows, lanes),
            1.0,
        )
        a = g.spread(g.argument((lanes,)), x.shape, (1,))
        return [g.add(g.mul(x, a), g.binary("subtract", late, g.mul(late, a), 3.0))]

    return build


def normalised_halves(*shape: int) -> Network:
    """x / sum |x| turned by half a row: statistics of whole rows, parts of them later."""

    def build(g: Graph) -> list[Value]:
        x = g.argument(shape)
        dim, lanes = len(shape) - 1, shape[-1]
        total = g.reduce("add", g.unary("abs", x, 2.0), [dim])
        y = g.binary("divide", x, g.spread(total, x.shape, range(dim)), 1.0)
        h = lanes // 2
        return [g.concatenate(columns(g, y, h, lanes), columns(g, y, 0, h), dim)]

    return build


NETWORKS: dict[str, tuple[Network, int]] = {
    "sigmoid gate": (gate(37, 96, "logistic"), 1),
    "gate of long rows": (gate(3, 5000, "tanh"), 1),
    "gate of 17 columns": (gate(20, 17, "tanh"), 1),
    "three parts": (parts_apart(33, 64, 64, 64), 1),
    "uneven parts": (parts_apart(5, 16, 100, 17), 1),
    "joined rows": (joined(0, (5, 40), (17, 40), (1, 40)), 1),
    "joined columns": (joined(1, (20, 40), (20, 17)), 1),
    "joined matrices": (joined(1, (3, 5, 64), (3, 2, 64)), 1),
    "cache": (grown_cache(13, 1), 1),
    "cache of two": (grown_cache(1, 2), 1),
    "shifted": (shifted(31, 64), 1),
    "normalised halves": (normalised_halves(19, 64), 1),
    "normalised halves of one row": (normalised_halves(64), 1),
    "normalised halves of 80": (normalised_halves(7, 80), 1),
}


@pytest.mark.parametrize(
    ("name", "cores"), [*((name, 32) for name in NETWORKS), *((n, 3) for n in list(NETWORKS)[::2])]
)
def test_network(name: str, cores: int) -> None:
    network, kernels = NETWORKS[name]
    graph = Graph(1)
    graph.finish(network(graph))
    executable = compile_text(graph.text, cores=cores)
    found = executable.run(dict(zip(executable.input_names, graph.inputs, strict=True)))
    wanted = in_f64(graph)
    for values, exact in zip(found.values(), wanted.values(), strict=True):
        np.testing.assert_allclose(values, exact, rtol=1e-5, atol=1e-5)
    if cores == 32:  # on few, parts of a group may take longer side by side
        assert len(executable.profile["launches_list"]) == kernels


def test_rows_beside_each_other_of_which_some_are_turned() -> None:
    """Queries and keys of two sequences: parts of the same rows, and one of the results has its
    axes in another order."""
    parts = "\n".join(
        f"""
  %s{i} = stablehlo.slice %x [0:32, {32 * i}:{32 * (i + 1)}]
      : (tensor<32x96xf32>) -> tensor<32x32xf32>
  %m{i} = stablehlo.reshape %s{i} : (tensor<32x32xf32>) -> tensor<2x16x32xf32>
  %b{i} = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<32xf32>) -> tensor<2x16x32xf32>
  %a{i} = stablehlo.add %m{i}, %b{i} : tensor<2x16x32xf32>
  %r{i} = stablehlo.reshape %a{i} : (tensor<2x16x32xf32>) -> tensor<2x16x2x16xf32>
  %t{i} = stablehlo.transpose %r{i}, dims = {dims}
      : (tensor<2x16x2x16xf32>) -> tensor<2x2x16x16xf32>"""
        for i, dims in enumerate(["[0, 2, 1, 3]", "[0, 2, 3, 1]"])
    )
    text = f"""func.func @main(%x: tensor<32x96xf32>, %b: tensor<32xf32>)
    -> (tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>) {{{parts}
  return %t0, %t1 : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32>
}}"""
    random = np.random.default_rng(0)
    x, b = (random.standard_normal(shape).astype(np.float32) for shape in ((32, 96), (32,)))
    q, k = davinci.compile(text, cores=3).run(x, b).values()
    split = [(x[:, i : i + 32] + b).reshape(2, 16, 2, 16) for i in (0, 32)]
    np.testing.assert_array_equal(q, split[0].transpose(0, 2, 1, 3))
    np.testing.assert_array_equal(k, split[1].transpose(0, 2, 3, 1))


@pytest.mark.parametrize("cores", [1, 32])
@pytest.mark.parametrize(
    ("rows", "heads", "lanes", "turn"),
    [
        (64, 2, 16, (0, 1, 2)),  # a row's lanes are those of one head, not of a part
        (7, 3, 8, (0, 1, 2)),
        (32, 1, 32, (0, 1, 2)),  # parts that do have the lanes beside each other
        (64, 2, 16, (1, 0, 2)),
        (5, 2, 24, (1, 0, 2)),
    ],
)
def test_parts_of_rows_that_are_split_into_heads(
    rows: int, heads: int, lanes: int, turn: tuple[int, ...], cores: int
) -> None:
    """Queries and keys beside each other in a row, each scaled head by head and lane by lane."""
    part, split = heads * lanes, (rows, heads, lanes)
    type_, turned = (
        "x".join(map(str, shape)) + "xf32" for shape in (split, [split[i] for i in turn])
    )
    parts = "\n".join(
        f"""
  %s{i} = stablehlo.slice %x [0:{rows}, {part * i}:{part * (i + 1)}]
      : (tensor<{rows}x{3 * part}xf32>) -> tensor<{rows}x{part}xf32>
  %h{i} = stablehlo.reshape %s{i} : (tensor<{rows}x{part}xf32>) -> tensor<{type_}>
  %m{i} = stablehlo.multiply %h{i}, %cb : tensor<{type_}>
  %a{i} = stablehlo.add %m{i}, %db : tensor<{type_}>
  %r{i} = stablehlo.transpose %a{i}, dims = {list(turn)} : (tensor<{type_}>) -> tensor<{turned}>"""
        for i in range(2)
    )
    text = f"""func.func @main(%x: tensor<{rows}x{3 * part}xf32>, %c: tensor<{heads}xf32>,
    %d: tensor<{lanes}xf32>) -> (tensor<{turned}>, tensor<{turned}>) {{
  %cb = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<{heads}xf32>) -> tensor<{type_}>
  %db = stablehlo.broadcast_in_dim %d, dims = [2] : (tensor<{lanes}xf32>) -> tensor<{type_}>
{parts}
  return %r0, %r1 : tensor<{turned}>, tensor<{turned}>
}}"""
    random = np.random.default_rng(0)
    x, c, d = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((rows, 3 * part), (heads,), (lanes,))
    )
    found = davinci.compile(text, cores=cores).run(x, c, d).values()
    for i, values in enumerate(found):
        own = x[:, part * i : part * (i + 1)].reshape(split)
        np.testing.assert_allclose(
            values, (own * c[:, None] + d).transpose(turn), rtol=1e-6, atol=1e-6
        )
