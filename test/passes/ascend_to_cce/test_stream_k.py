"""Products of which the last rows have their k split between all cores: what they compute, and
when."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import davinci
from davinci.errors import InputError
from davinci.operators import Tensor
from davinci.passes.ascend import product_grouping
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.rows import graph_of_rows, row_axes
from davinci.schedule.vector.space import NoSpace

MACHINE, CORES = "ascend910b", 3

PRODUCT = """
func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{b}xf16>{more}) -> tensor<{m}x{n}x{t}> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [{kb}]
      : (tensor<{m}x{k}xf16>, tensor<{b}xf16>) -> tensor<{m}x{n}xf32>
  {rest}
}}
"""

TAILS = {
    "f32": ("", "return %0 : tensor<{m}x{n}xf32>"),
    "f16": (
        "",
        """%1 = stablehlo.convert %0 : (tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf16>
  return %1 : tensor<{m}x{n}xf16>""",
    ),
    "bias": (
        ", %r: tensor<{n}xf32>",
        """%1 = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<{n}xf32>) -> tensor<{m}x{n}xf32>
  %2 = stablehlo.add %0, %1 : tensor<{m}x{n}xf32>
  %3 = stablehlo.convert %2 : (tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf16>
  return %3 : tensor<{m}x{n}xf16>""",
    ),
    "residual": (
        ", %r: tensor<{m}x{n}xf32>",
        """%1 = stablehlo.add %0, %r : tensor<{m}x{n}xf32>
  %2 = stablehlo.tanh %1 : tensor<{m}x{n}xf32>
  return %2 : tensor<{m}x{n}xf32>""",
    ),
    "column": (
        ", %r: tensor<{m}xf32>",
        """%1 = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<{m}xf32>) -> tensor<{m}x{n}xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<{m}x{n}xf32>
  return %2 : tensor<{m}x{n}xf32>""",
    ),
}
"""What is taken in besides, and done behind the product."""


def product(
    size: tuple[int, int, int], tail: str, turned: bool = False
) -> tuple[str, list[Any], Any]:
    """A program, its inputs and what it gives."""
    m, k, n = size
    random = np.random.default_rng(m + k + n)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    a = (a / np.sqrt(k)).astype(np.float16)
    sums, arrays = np.float64(a) @ np.float64(b), [a, b.T.copy() if turned else b]
    if tail in ("bias", "residual", "column"):
        shape = {"bias": (n,), "residual": (m, n), "column": (m,)}[tail]
        arrays.append(random.standard_normal(shape).astype(np.float32))
    if tail == "bias":
        sums = sums + arrays[2]
    if tail == "residual":
        sums = np.tanh(sums + arrays[2])
    if tail == "column":
        sums = sums * arrays[2][:, None]
    more, rest = (text.format(m=m, n=n) for text in TAILS[tail])
    stored = f"{n}x{k}" if turned else f"{k}x{n}"
    kind = "f16" if tail in ("f16", "bias") else "f32"
    text = PRODUCT.format(m=m, k=k, n=n, b=stored, kb=int(turned), more=more, rest=rest, t=kind)
    return text, arrays, sums


def given(text: str, folder: Path, rows: int, parts: int, cores: int = CORES) -> davinci.Executable:
    """A program with so many first rows, and so many parts of k of the others; what follows is in
    the kernel whatever the estimates say."""
    with mock.patch.object(product_grouping, "pays", return_value=True):
        return compiled(text, folder, rows, parts, cores)


def compiled(text: str, folder: Path, rows: int, parts: int, cores: int) -> davinci.Executable:
    options: dict[str, Any] = {"machine": MACHINE, "cores": cores}
    data = json.loads(davinci.compile(text, **options).schedules())
    for kernel in data["kernels"]:
        choice = {"form": "stream-k", "rows": rows, "parts": parts}
        kernel["choices"] = [{"cores": cores, "choice": choice}]
    file = folder / "schedules.json"
    file.write_text(json.dumps(data))
    return davinci.compile(text, schedules=str(file), **options)


@pytest.mark.parametrize(
    ("size", "rows", "parts", "tail", "turned"),
    [
        ((64, 96, 48), 48, 2, "f32", False),
        ((67, 100, 51), 48, 3, "f16", False),
        ((35, 130, 40), 16, 2, "bias", True),
        ((65, 1000, 33), 48, 3, "bias", False),
        ((50, 96, 64), 48, 3, "residual", False),
        ((100, 90, 48), 64, 2, "residual", True),
        ((61, 200, 16), 32, 2, "column", False),
        ((17, 47, 15), 16, 3, "f32", True),
    ],
)
def test_product(
    size: tuple[int, int, int], rows: int, parts: int, tail: str, turned: bool, tmp_path: Path
) -> None:
    """Ragged in all dimensions, with what follows. Twice: counters go on from run to run."""
    text, arrays, wanted = product(size, tail, turned)
    executable = given(text, tmp_path, rows, parts)
    executable.poison = True
    for _ in range(2):
        (found,) = executable.run(*arrays).values()
        np.testing.assert_allclose(found, wanted, atol=5e-3)
    (kernel,) = (k for k in executable.profile["kernels"] if "whole" in k["schedule"])
    said = f"the first {rows} of {size[0]} rows whole, of the others k in {parts} parts on 3 cores"
    assert kernel["schedule"].startswith(said)


def test_chosen_where_rounds_are_lost(tmp_path: Path) -> None:
    """49 tiles of 128 x 256 on 24 cores are two rounds and one tile, or two and 1 / 24 of them."""
    text, _, _ = product((896, 4096, 896), "f16")
    executable = davinci.compile(text, machine=MACHINE, timing_only=True)
    executable.run()
    (kernel,) = executable.profile["kernels"]
    assert re.match(r"the first \d+ of 896 rows whole, of the others k in \d+", kernel["schedule"])
    saved = tmp_path / "saved.json"
    saved.write_text(executable.schedules())
    again = davinci.compile(text, machine=MACHINE, timing_only=True, schedules=str(saved))
    again.run()
    assert again.profile["total_cycles"] == executable.profile["total_cycles"]


def test_not_where_no_round_is_lost() -> None:
    """24 tiles of 128 x 256 keep all cores at work to the end."""
    text, _, _ = product((768, 1024, 1024), "f16")
    executable = davinci.compile(text, machine=MACHINE, timing_only=True)
    executable.run()
    assert all("rows whole" not in k["schedule"] for k in executable.profile["kernels"])


@pytest.mark.parametrize(("rows", "parts"), [(40, 2), (64, 2), (48, 4), (48, 1)])
def test_cannot_be_given(rows: int, parts: int, tmp_path: Path) -> None:
    """Rows that are no whole fractals, or all; more parts than cores, or one."""
    text, _, _ = product((64, 96, 48), "f32")
    with pytest.raises(InputError, match=r"rows|parts"):
        given(text, tmp_path, rows, parts)


def group(*nodes: Node, shapes: list[tuple[int, ...]]) -> Graph:
    arrays = [Tensor(shape, "f32") for shape in shapes]
    return Graph(arrays, list(nodes), [0, 1], [len(shapes) - 1])


def test_rows_of_a_group() -> None:
    """A row that is broadcast has none of the rows; a residual has."""
    product, spread = Node("matmul", (0, 1), 2), Node("broadcast", (3,), 4, {"dims": (1,)})
    adds = Node("add", (2, 4), 6), Node("add", (6, 5), 7)
    shapes: list[tuple[int, ...]]
    shapes = [(64, 32), (32, 48), (64, 48), (48,), (64, 48), (64, 48), (64, 48), (64, 48)]
    graph = group(product, spread, *adds, shapes=shapes)
    axes = row_axes(graph)
    assert axes == {0: 0, 2: 0, 4: 0, 5: 0, 6: 0, 7: 0}
    made = [array.shape for array in graph_of_rows(graph, axes, 48, 64).arrays]
    assert made == [(16, 32), (32, 48), (16, 48), (48,), *[(16, 48)] * 4]


def test_rows_that_need_others() -> None:
    product = Node("matmul", (0, 1), 2)
    over_rows = Node("reduce", (2,), 3, {"kind": "add", "dims": (0,)})
    with pytest.raises(NoSpace, match="reduce of rows"):
        row_axes(group(product, over_rows, shapes=[(64, 32), (32, 48), (64, 48), (48,)]))
    turned = Node("matmul", (0, 1), 2, {"transpose_a": True})
    with pytest.raises(NoSpace, match="A does not lie in rows"):
        row_axes(group(turned, shapes=[(32, 64), (32, 48), (64, 48)]))
