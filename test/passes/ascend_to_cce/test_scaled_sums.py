"""Sums of bytes that fixpipe scales on their way out of L0C: whole kernels on simulated machine
code, with all checks, against the operator in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.isa.quantize import quantised
from davinci.operators.quantize import words_of
from pairs import all_pairs
from support import compile_text

MACHINE = "ascend910b"
"""The machine whose fixpipe scales."""

NZ = ', #ascend.layout<"nz">'
DTYPES = {"f16": np.float16, "i8": np.int8}


class ScaledProduct:
    """max(0, A B^T + row), perhaps without the row or the maximum, by words of columns.

    Args:
        sizes: rows, k, columns.
        rows: whether all lies in rows; else in fractals.
    """

    def __init__(
        self, sizes: tuple[int, int, int], element: str, *, relu: bool, row: bool, rows: bool
    ) -> None:
        m, k, n = sizes
        rng = np.random.default_rng(m + k + n)
        self.element, self.relu, self.row, self.rows = element, relu, row, rows
        self.arrays = {
            "a": rng.integers(-128, 128, (m, k), np.int8),
            "b": rng.integers(-128, 128, (n, k), np.int8),
            "row": rng.integers(-(2**14), 2**14, n, np.int32),
        }
        scales = 100 / (73.0**2 * np.sqrt(k)) * rng.choice([1.0, 0.3, 0.07], n)
        self.arrays["words"] = words_of(scales, 0 if element == "f16" else 5)

    def text(self) -> str:
        (m, k), n = self.arrays["a"].shape, len(self.arrays["b"])
        layout = "" if self.rows else NZ
        a, b = (f"tensor<{size}x{k}xi8{layout}>" for size in (m, n))
        sums, made = (f"tensor<{m}x{n}x{x}{layout}>" for x in ("i32", self.element))
        given = ("a", a), ("b", b)
        lines = [
            f'%{x} = "ascend.relayout"(%{x}0) : ({t.replace(NZ, "")}) -> {t}' for x, t in given
        ]
        before = "%a0, %b0" if self.rows else "%a, %b"
        lines = [] if self.rows else lines
        lines.append(
            f'%s = "ascend.matmul"({before}) {{transpose_b = true}} : ({a}, {b}) -> {sums}'
        )
        last = "%s"
        if self.row:
            last = "%t"
            lines += [
                f'%r = "ascend.broadcast"(%row) {{dims = array<i64: 1>}} : '
                f"(tensor<{n}xi32>) -> {sums}",
                f'%t = "ascend.add"(%s, %r) : ({sums}, {sums}) -> {sums}',
            ]
        relu = "{relu = true}" if self.relu else ""
        lines.append(
            f'%y = "ascend.scale_sums"({last}, %words) {relu} : '
            f"({sums}, tensor<{n}x2xi32>) -> {made}"
        )
        result, plain = "%y", made.replace(NZ, "")
        if not self.rows:
            result = "%z"
            lines.append(f'%z = "ascend.relayout"(%y) : ({made}) -> {plain}')
        kinds = [a.replace(NZ, ""), b.replace(NZ, ""), f"tensor<{n}xi32>", f"tensor<{n}x2xi32>"]
        names = ["a0", "b0", "row", "words"]
        arguments = ", ".join(f"%{x}: {kind}" for x, kind in zip(names, kinds, strict=True))
        body = "\n  ".join([*lines, f"return {result} : {plain}"])
        return f"func.func @main({arguments}) -> {plain} {{\n  {body}\n}}"

    def wanted(self) -> Any:
        a, b, row, words = self.arrays.values()
        sums = a.astype(np.int32) @ b.T.astype(np.int32) + (row if self.row else 0)
        sums = np.maximum(sums, 0) if self.relu else sums
        wide = np.ascontiguousarray(words).view(np.int64)[:, 0]
        made = quantised(sums, wide, "f16" if self.element == "f16" else "b8")
        return made.view(DTYPES[self.element])

    def check(self, **options: Any) -> davinci.Executable:
        """Runs the kernel twice, as no flag may be left; all bits are as they should be."""
        executable: davinci.Executable = compile_text(self.text(), machine=MACHINE, **options)
        given = {f"arg{i}": x for i, x in enumerate(self.arrays.values())}
        executable.run(given)
        executable.poison = True
        (found,) = executable.run(given).values()
        np.testing.assert_array_equal(found, self.wanted())
        return executable


SIZES = [(64, 64, 96), (17, 96, 32), (1, 32, 64), (200, 256, 320), (33, 160, 1024), (500, 32, 224)]


@pytest.mark.parametrize(
    ("sizes", "rows", "element"), all_pairs(SIZES, [True, False], ["f16", "i8"]), ids=str
)
def test_product(sizes: tuple[int, int, int], rows: bool, element: str) -> None:
    """Rows that end inside a fractal, and more columns than the buffer of fixpipe has words for."""
    odd = sum(sizes) % 64 < 32
    executable = ScaledProduct(sizes, element, relu=odd, row=not odd, rows=rows).check()
    labels = [str(kernel["label"]) for kernel in executable.profile["kernels"]]
    assert sum("scale_sums" in label and "matmul" in label for label in labels) == 1
    assert not any("mul" in label.replace("matmul", "") for label in labels)


@pytest.mark.parametrize("n", [3, 5, 10, 33])
def test_columns_that_end_inside_a_fractal(n: int) -> None:
    """Words end inside a block of 32 bytes, and rows of C inside one, too."""
    ScaledProduct((40, 64, n), "f16", relu=True, row=True, rows=True).check()


@pytest.mark.parametrize("tile", [(64, 32, 32), (16, 128, 64), (32, 256, 32)])
def test_tiles(tile: tuple[int, int, int]) -> None:
    """Tiles whose words take turns in the buffer of fixpipe, and whose biases do in the table."""
    for rows in (True, False):
        case = ScaledProduct((100, 96, 608), "i8", relu=True, row=True, rows=rows)
        case.check(tile=tile, cores=2)


def test_a_tile_wider_than_the_tables() -> None:
    case = ScaledProduct((32, 32, 512), "i8", relu=False, row=False, rows=True)
    with pytest.raises(davinci.CompileError, match="n <= 256, for which the tables of biases"):
        case.check(tile=(16, 512, 32))


@pytest.mark.parametrize("element", ["f16", "i8"])
def test_scaled_by_vector_cores(element: str) -> None:
    """Where it shares no kernel with its product, the vector unit gives the same bits."""
    case = ScaledProduct((48, 64, 96), element, relu=True, row=True, rows=True)
    executable = case.check(fusion="none")
    assert not any("scale_sums" in str(k["label"]) for k in executable.profile["kernels"])


def test_words_of_more_columns_than_l1_holds() -> None:
    """L1 holds words of 16,384 columns beside factors; of more, vector cores scale."""
    case = ScaledProduct((16, 32, 16416), "f16", relu=False, row=False, rows=True)
    labels = [str(kernel["label"]) for kernel in case.check().profile["kernels"]]
    assert not any("scale_sums" in label for label in labels)
