"""Products whose factors are laid out in fractals before cores meet: what they compute, and when
factors are laid out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine
from davinci.errors import InputError
from davinci.schedule.products import laid_out as schedules
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.laid_out import can_be_laid_out, laid_out_in, layout_of
from davinci.schedule.products.product import Product, ProductOperand, ProductResult
from davinci.units import ceil_div

PRODUCT = """
func.func @main(%a: tensor<{a}x{t}>, %b: tensor<{b}x{t}>) -> tensor<{m}x{n}xf32> {{
  %c = stablehlo.dot_general %a, %b, contracting_dims = [{ka}] x [{kb}]
      : (tensor<{a}x{t}>, tensor<{b}x{t}>) -> tensor<{m}x{n}xf32>
  %t = stablehlo.tanh %c : tensor<{m}x{n}xf32>
  return %t : tensor<{m}x{n}xf32>
}}
"""

PLAIN = """
func.func @main(%a: tensor<181x1604xf16>, %b: tensor<1604x511xf16>) -> tensor<181x511xf16> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<181x1604xf16>, tensor<1604x511xf16>) -> tensor<181x511xf16>
  return %c : tensor<181x511xf16>
}
"""

ROUNDED = """
func.func @main(%a: tensor<{a}xf16>, %b: tensor<{b}xf16>) -> tensor<{m}x{n}xf16> {{
  %c = stablehlo.dot_general %a, %b, contracting_dims = [{ka}] x [{kb}]
      : (tensor<{a}xf16>, tensor<{b}xf16>) -> tensor<{m}x{n}xf16>
  return %c : tensor<{m}x{n}xf16>
}}
"""

BATCH = """
func.func @main(%a: tensor<3x37x50xf16>, %b: tensor<3x50x41xf16>) -> tensor<3x37x41xf32> {
  %c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<3x37x50xf16>, tensor<3x50x41xf16>) -> tensor<3x37x41xf32>
  return %c : tensor<3x37x41xf32>
}
"""


def product(
    m: int,
    k: int,
    n: int,
    turned: tuple[bool, bool] = (False, False),
    kind: str = "f16",
    template: str = PRODUCT,
) -> tuple[str, list[Any], Any]:
    """A program, its inputs, and the product of these."""
    shapes = [(m, k), (k, n)]
    shapes = [s[::-1] if t else s for s, t in zip(shapes, turned, strict=True)]
    a, b = ("x".join(map(str, shape)) for shape in shapes)
    random = np.random.default_rng(m + k + n)
    element = np.float16 if kind == "f16" else np.float32
    arrays = [(random.standard_normal(shape) / k**0.25).astype(element) for shape in shapes]
    x, y = (
        np.float64(array).T if t else np.float64(array)
        for array, t in zip(arrays, turned, strict=True)
    )
    text = template.format(a=a, b=b, m=m, n=n, ka=int(not turned[0]), kb=int(turned[1]), t=kind)
    return text, arrays, x @ y


def given(
    text: str, folder: Path, factors: str, cores: int = 3, machine: str = "ascend910"
) -> davinci.Executable:
    """A program whose product has these factors laid out on so many cores."""
    data = json.loads(davinci.compile(text, cores=cores, machine=machine).schedules())
    for kernel in data["kernels"]:
        kernel["choices"] = [{"cores": cores, "choice": {"form": "laid-out", "factors": factors}}]
    file = folder / "schedules.json"
    file.write_text(json.dumps(data))
    return davinci.compile(text, cores=cores, machine=machine, schedules=str(file))


def laid_out(executable: davinci.Executable) -> bool:
    return any("laid out" in kernel["schedule"] for kernel in executable.profile["kernels"])


@pytest.mark.parametrize(
    ("size", "turned", "kind", "factors"),
    [
        ((17, 33, 15), (False, False), "f16", "ab"),
        ((1, 16, 40), (True, True), "f16", "ab"),
        ((48, 100, 600), (False, False), "f16", "b"),
        ((70, 61, 33), (True, False), "f32", "ab"),
        ((33, 128, 64), (False, True), "f32", "a"),
        ((300, 97, 31), (False, False), "f16", "a"),
    ],
)
def test_product(
    size: tuple[int, int, int], turned: tuple[bool, bool], kind: str, factors: str, tmp_path: Path
) -> None:
    """Twice: counters go on from run to run."""
    text, arrays, sums = product(*size, turned, kind)
    wanted = np.tanh(sums)
    executable = given(text, tmp_path, factors)
    executable.poison = True
    for _ in range(2):
        (found,) = executable.run(*arrays).values()
        np.testing.assert_allclose(found, wanted, atol=3e-3)
    assert laid_out(executable)
    assert executable.profile["launches"] == 1


@pytest.mark.parametrize(
    ("size", "turned", "rows"),
    [
        ((257, 100, 130), (False, False), "before all"),
        ((129, 77, 33), (False, False), "beside the first"),
        ((129, 77, 33), (False, False), "before all"),
        ((305, 131, 77), (True, True), "beside the first"),
        ((144, 1600, 31), (False, False), "beside the first"),
    ],
)
def test_beside_cube_cores(
    size: tuple[int, int, int],
    turned: tuple[bool, bool],
    rows: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Vector cores lay B out while cube cores wait, or multiply the first rows of A by it as it
    is."""
    if rows == "beside the first":
        monkeypatch.setattr(schedules, "before_all_rows", lambda *_: None)
    else:
        monkeypatch.setattr(schedules.FirstRows, "ways", lambda *_: iter(()))
    text, arrays, wanted = product(*size, turned, template=ROUNDED)
    executable = given(text, tmp_path, "b", machine="ascend910b")
    executable.poison = True
    for _ in range(2):
        (found,) = executable.run(*arrays).values()
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)
    kernels = executable.profile["kernels"]
    assert any(f"on 6 vector cores {rows}" in kernel["schedule"] for kernel in kernels)


def test_ragged_rows_are_laid_out_first() -> None:
    """24,000 cycles where cube cores make fractals of rows that are no whole blocks."""
    text, _, _ = product(129, 1000, 999, template=ROUNDED)
    executable = davinci.compile(text, timing_only=True, machine="ascend910b")
    executable.run()
    assert "before all rows" in executable.profile["kernels"][0]["schedule"]
    assert executable.profile["kernels"][0]["cycles"] < 17_000


def test_beside_cube_cores_where_it_pays() -> None:
    """136,004 cycles where rows of B become fractals for every tile."""
    text, _, _ = product(1024, 1024, 8192, template=ROUNDED)
    options = {"machine": "ascend910b", "core_choice": "all"}
    executable = davinci.compile(text, timing_only=True, **options)
    executable.run()
    assert laid_out(executable)
    assert executable.profile["kernels"][0]["cycles"] < 125_000


def test_batch(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((3, 37, 50), (3, 50, 41)))
    executable = given(BATCH, tmp_path, "ab")
    (found,) = executable.run(a, b).values()
    assert laid_out(executable)
    np.testing.assert_allclose(found, np.float64(a) @ np.float64(b), atol=2e-2)


@pytest.mark.parametrize(("machine", "most"), [("ascend910", 13_500), ("ascend910b", 17_000)])
def test_takes_less_time_than_rows_again_and_again(machine: str, most: int) -> None:
    """17,897 cycles on the 910 where each core brings its rows through UB; on the 910B 26,161 where
    cores share k."""
    executable = davinci.compile(PLAIN, machine=machine, timing_only=True)
    executable.run()
    assert laid_out(executable)
    assert executable.profile["total_cycles"] < most


@pytest.mark.parametrize("options", [{"cores": 1}, {"core_choice": "all"}])
def test_what_is_asked_for_is_not_laid_out(options: dict[str, Any]) -> None:
    executable = davinci.compile(PLAIN, timing_only=True, **options)
    executable.run()
    assert not laid_out(executable)


def test_given_where_it_cannot_be(tmp_path: Path) -> None:
    text, _, _ = product(17, 33, 15)
    data = json.loads(davinci.compile(text, cores=3).schedules())
    for cores in (1, 4):
        for kernel in data["kernels"]:
            kernel["choices"] = [{"cores": cores, "choice": {"form": "laid-out", "factors": "a"}}]
        file = tmp_path / "schedules.json"
        file.write_text(json.dumps(data))
        with pytest.raises(InputError, match="cannot be computed by this schedule"):
            davinci.compile(text, cores=3, schedules=str(file))


def test_which_factors_can_be() -> None:
    """Rows of floats, on cores that have a vector unit."""
    rows, columns = ProductOperand(False, 2, False), ProductOperand(False, 2, True)
    plain = Product(1, 64, 64, 64, rows, columns, ProductResult(False, 2))
    nz = Product(1, 64, 64, 64, ProductOperand(True, 2, False), columns, ProductResult(False, 2))
    described = machine.load("ascend910")
    assert can_be_laid_out(plain, described, "ab")
    assert can_be_laid_out(nz, described, "b")
    assert not can_be_laid_out(nz, described, "ab")
    assert not can_be_laid_out(plain, machine.load("ascend910b"), "b")


def test_layout_of_a_factor() -> None:
    """All blocks together are the factor, and what is estimated grows with it."""
    rows, columns = ProductOperand(False, 2, False), ProductOperand(False, 2, True)
    described = machine.load("ascend910")
    cycles = []
    for n in (100, 1000, 4000):
        made = Product(1, 64, 999, n, rows, columns, ProductResult(False, 2))
        layout = layout_of(made, "b", described, 32)
        blocks = ceil_div(63, layout.rows) * ceil_div(ceil_div(n, 16), layout.columns)
        assert layout.turns == ceil_div(blocks, 32)
        cycles.append(layout.cycles)
        assert laid_out_in(made, described, 32, "b", Wanted(), layout.cycles) is None
    assert cycles == sorted(cycles)
