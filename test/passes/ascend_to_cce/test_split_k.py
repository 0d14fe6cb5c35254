"""Products whose k is split between cores that meet: what they compute, and when they are split."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import InputError
from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.split_k import PartsOfK, sums_of

PRODUCT = """
func.func @main(%a: tensor<{a}x{t}>, %b: tensor<{b}x{t}>, %bias: tensor<{n}xf32>)
    -> tensor<{m}x{n}xf32> {{
  %c = stablehlo.dot_general %a, %b, contracting_dims = [{ka}] x [{kb}]
      : (tensor<{a}x{t}>, tensor<{b}x{t}>) -> tensor<{m}x{n}xf32>
  %r = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<{n}xf32>) -> tensor<{m}x{n}xf32>
  %s = stablehlo.add %c, %r : tensor<{m}x{n}xf32>
  %t = stablehlo.tanh %s : tensor<{m}x{n}xf32>
  return %t : tensor<{m}x{n}xf32>
}}
"""


def product(
    m: int, k: int, n: int, turned: tuple[bool, bool] = (False, False), kind: str = "f16"
) -> tuple[str, list[Any], Any]:
    """A program, its inputs and what it gives."""
    shapes = [(m, k), (k, n)]
    shapes = [s[::-1] if t else s for s, t in zip(shapes, turned, strict=True)]
    a, b = ("x".join(map(str, shape)) for shape in shapes)
    ka, kb = int(not turned[0]), int(turned[1])
    random = np.random.default_rng(m + k + n)
    element = np.float16 if kind == "f16" else np.float32
    arrays = [random.standard_normal(shape).astype(element) for shape in shapes]
    arrays[0] = (arrays[0] / np.sqrt(k)).astype(element)
    arrays.append(random.standard_normal(n).astype(np.float32))
    x, y = (
        np.float64(array).T if t else np.float64(array)
        for array, t in zip(arrays, turned, strict=False)
    )
    wanted = np.tanh(x @ y + arrays[2])
    text = PRODUCT.format(a=a, b=b, m=m, n=n, ka=ka, kb=kb, t=kind)
    return text, arrays, wanted


def split(executable: davinci.Executable) -> bool:
    return any("which meet" in kernel["schedule"] for kernel in executable.profile["kernels"])


CHAIN = """
func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>, %c: tensor<{n}x48xf16>)
    -> tensor<{m}x48xf32> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf32>
  %1 = stablehlo.tanh %0 : tensor<{m}x{n}xf32>
  %2 = stablehlo.convert %1 : (tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf16>
  %3 = stablehlo.dot_general %2, %c, contracting_dims = [1] x [0]
      : (tensor<{m}x{n}xf16>, tensor<{n}x48xf16>) -> tensor<{m}x48xf32>
  return %3 : tensor<{m}x48xf32>
}}
"""


@pytest.mark.parametrize(
    ("m", "k", "n", "machine"),
    [
        (16, 16384, 64, "ascend910"),
        (48, 9000, 32, "ascend910"),
        (16, 16000, 16, "ascend310p"),
        (16, 16384, 64, "ascend910b"),
    ],
)
def test_result_in_fractals(m: int, k: int, n: int, machine: str) -> None:
    """What another product takes stays in fractals, which the partial products are, too."""
    random = np.random.default_rng(k)
    shapes = ((m, k), (k, n), (n, 48))
    a, b, c = (random.standard_normal(shape).astype(np.float16) for shape in shapes)
    a = (a / np.sqrt(k)).astype(np.float16)
    executable = davinci.compile(CHAIN.format(m=m, k=k, n=n), machine=machine)
    executable.poison = True
    (found,) = executable.run(a, b, c).values()
    assert split(executable)
    wanted = np.tanh(np.float64(a) @ np.float64(b)) @ np.float64(c)
    np.testing.assert_allclose(found, wanted, atol=5e-3)


@pytest.mark.parametrize(
    ("bias", "dims"), [((32,), (1,)), ((1, 32), (0, 1)), ((16,), (0,)), ((1, 1), (0, 1))]
)
def test_bias_of_a_result_in_fractals(bias: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Rows, columns and numbers are broadcast to blocks of 16 columns."""
    random = np.random.default_rng(1)
    shapes = ((16, 16384), (16384, 32), (32, 48), bias)
    a, b, c, d = (random.standard_normal(shape).astype(np.float16) for shape in shapes)
    a = (a / 128).astype(np.float16)
    of_bias = f"tensor<{'x'.join(map(str, bias))}xf16>"
    text = CHAIN.format(m=16, k=16384, n=32).replace(
        "%c: tensor<32x48xf16>", f"%c: tensor<32x48xf16>, %d: {of_bias}"
    )
    text = text.replace(
        "%1 = stablehlo.tanh %0",
        f"""%d32 = stablehlo.convert %d : ({of_bias}) -> {of_bias.replace("f16", "f32")}
  %wide = stablehlo.broadcast_in_dim %d32, dims = {list(dims)}
      : ({of_bias.replace("f16", "f32")}) -> tensor<16x32xf32>
  %sum = stablehlo.add %0, %wide : tensor<16x32xf32>
  %1 = stablehlo.tanh %sum""",
    )
    executable = davinci.compile(text)
    executable.poison = True
    (found,) = executable.run(a, b, c, d).values()
    wide = d[:, None] if dims == (0,) else d
    wanted = np.tanh(np.float64(a) @ np.float64(b) + wide) @ np.float64(c)
    np.testing.assert_allclose(found, wanted, atol=1e-2)


@pytest.mark.parametrize(
    ("size", "turned", "kind"),
    [
        ((64, 8192, 64), (False, False), "f16"),
        ((48, 16384, 64), (False, True), "f16"),
        ((17, 8192, 33), (False, False), "f32"),
        ((64, 16384, 32), (True, False), "f16"),
        ((1, 16384, 40), (True, True), "f16"),
        ((33, 8191, 41), (False, False), "f16"),
        ((48, 16396, 64), (False, True), "f16"),
        ((16, 8213, 31), (True, False), "f32"),
        ((30, 9001, 17), (True, True), "f16"),
        ((32, 8176, 48), (False, False), "f16"),
    ],
)
def test_product(size: tuple[int, int, int], turned: tuple[bool, bool], kind: str) -> None:
    """Twice: counters go on from run to run. The last parts of some k are shorter, or end inside a
    fractal."""
    text, arrays, wanted = product(*size, turned, kind)
    executable = davinci.compile(text)
    executable.poison = True
    for _ in range(2):
        (found,) = executable.run(*arrays).values()
        np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert split(executable)
    assert executable.profile["launches"] == 1


@pytest.mark.parametrize(
    ("size", "turned", "kind"),
    [
        ((128, 3072, 768), (False, False), "f16"),
        ((33, 8191, 41), (False, False), "f16"),
        ((48, 8213, 64), (True, False), "f16"),
        ((1, 9001, 40), (True, True), "f16"),
    ],
)
def test_cube_cores_tell_their_vector_cores(
    size: tuple[int, int, int], turned: tuple[bool, bool], kind: str
) -> None:
    """Twice: what the cores hand to each other lies where it lay before."""
    text, arrays, wanted = product(*size, turned, kind)
    executable = davinci.compile(text, machine="ascend910b", core_choice="all")
    executable.poison = True
    for _ in range(2):
        (found,) = executable.run(*arrays).values()
        np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert split(executable)


def test_one_part_and_a_rest() -> None:
    """The first part ends inside a block, which is not stored over the second."""
    text, arrays, wanted = product(17, 4001, 17)
    executable = davinci.compile(text, cores=2)
    (found,) = executable.run(*arrays).values()
    assert split(executable)
    assert np.abs(found - wanted).max() < 2e-3


@pytest.mark.parametrize(("rows", "most"), [(64, 4500), (16, 4000)])
def test_takes_less_time_than_on_few_cores(rows: int, most: int) -> None:
    """18,481 cycles of the product alone on four cores."""
    text = f"""
func.func @main(%a: tensor<{rows}x8192xf16>, %b: tensor<8192x64xf16>) -> tensor<{rows}x64xf32> {{
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{rows}x8192xf16>, tensor<8192x64xf16>) -> tensor<{rows}x64xf32>
  return %c : tensor<{rows}x64xf32> }}"""
    executable = davinci.compile(text, timing_only=True)
    executable.run()
    assert executable.profile["total_cycles"] < most


@pytest.mark.parametrize(("size", "most"), [((256, 2048, 256), 11_700), ((64, 8192, 64), 6900)])
def test_takes_less_time_on_cube_and_vector_cores(size: tuple[int, int, int], most: int) -> None:
    """On cube cores alone 21,046 and 52,073 cycles."""
    m, k, n = size
    text = f"""
func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
  return %c : tensor<{m}x{n}xf16> }}"""
    executable = davinci.compile(text, machine="ascend910b", core_choice="all", timing_only=True)
    executable.run()
    assert executable.profile["total_cycles"] < most


@pytest.mark.parametrize("options", [{"cores": 1}, {"tile": (32, 32, 32)}])
def test_what_is_asked_for_is_not_split(options: dict[str, Any]) -> None:
    text, arrays, wanted = product(32, 4096, 32)
    executable = davinci.compile(text, **options)
    (found,) = executable.run(*arrays).values()
    np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert not split(executable)


def test_short_products_are_not_split() -> None:
    text, arrays, wanted = product(64, 256, 64)
    executable = davinci.compile(text)
    (found,) = executable.run(*arrays).values()
    np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert not split(executable)


@pytest.mark.parametrize(
    ("k", "most", "parts"),
    [
        (8192, 32, PartsOfK(32, 256, 0)),
        (8176, 32, PartsOfK(31, 256, 240)),
        (3707, 32, PartsOfK(28, 128, 123)),
        (33, 8, PartsOfK(2, 16, 1)),
        (16, 8, PartsOfK(1, 16, 0)),
    ],
)
def test_parts_of_k(k: int, most: int, parts: PartsOfK) -> None:
    found = PartsOfK.of(k, most)
    assert found == parts
    assert found.count * found.size + found.rest == k
    assert PartsOfK.of(k, found.total) == found


def test_given_again(tmp_path: Path) -> None:
    """The schedule that is saved makes the same kernel; one that cannot be is refused."""
    text, arrays, wanted = product(64, 8192, 64)
    executable = davinci.compile(text)
    file = tmp_path / "schedules.json"
    executable.run(*arrays)
    file.write_text(executable.schedules())
    again = davinci.compile(text, schedules=str(file))
    for each in (executable, again):
        (found,) = each.run(*arrays).values()
        np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert again.profile["total_cycles"] == executable.profile["total_cycles"]
    data = re.sub(r'"parts": \d+', '"parts": 33', file.read_text())
    file.write_text(data)
    with pytest.raises(InputError, match="33 parts of a k of 8192"):
        davinci.compile(text, schedules=str(file))
    file.write_text(re.sub(r'"cores": \d+', '"cores": 33', data))
    with pytest.raises(InputError, match="on 33 cores, of 32"):
        davinci.compile(text, schedules=str(file))


def test_what_stands_in_front_of_the_product() -> None:
    """A bias is made wider before the product that it is added to."""
    graph = Graph()
    a, b, bias = (graph.add(Tensor(shape, "f16")) for shape in ((64, 8192), (8192, 64), (64,)))
    wide, c, out = (graph.add(Tensor((64, 64), "f32")) for _ in range(3))
    row = graph.add(Tensor((64,), "f32"))
    graph.nodes = [
        Node("cast", (bias,), row),
        Node("broadcast", (row,), wide, {"dims": (1,)}),
        product_node := Node("matmul", (a, b), c),
        Node("add", (c, wide), out),
    ]
    graph.inputs, graph.outputs = [a, b, bias], [out]
    sums, inputs = sums_of(graph, product_node, 8, fractals=False)
    assert inputs == (bias,)
    assert [node.name for node in sums.nodes] == ["reduce", "cast", "broadcast", "add"]


def test_what_takes_as_long_as_the_memory_is_not_split() -> None:
    """115,273 cycles where it is not, 122,813 where it is."""
    text = """
func.func @main(%a: tensor<16x4096xf16>, %b: tensor<4096x11008xf16>) -> tensor<16x11008xf16> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<16x4096xf16>, tensor<4096x11008xf16>) -> tensor<16x11008xf16>
  return %c : tensor<16x11008xf16> }"""
    executable = davinci.compile(text, machine="ascend910b", core_choice="all", timing_only=True)
    executable.run()
    assert not split(executable)
