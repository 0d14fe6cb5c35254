"""Solutions of triangular systems by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci


def text_of(a: Any, b: Any, options: str) -> str:
    kinds = [f"tensor<{'x'.join(map(str, x.shape))}xf32>" for x in (a, b)]
    return f"""
        func.func @main(%a: {kinds[0]}, %b: {kinds[1]}) -> {kinds[1]} {{
          %0 = "stablehlo.triangular_solve"(%a, %b) <{{{options}}}>
            : ({kinds[0]}, {kinds[1]}) -> {kinds[1]}
          return %0 : {kinds[1]}
        }}"""


@pytest.mark.parametrize(
    ("batch", "rows", "columns", "left", "lower", "unit", "transposed"),
    [
        ((), 70, 5, True, True, False, False),
        ((3,), 33, 9, True, False, False, True),
        ((2, 2), 20, 16, False, True, True, False),
        ((), 64, 3, False, False, False, True),
    ],
)
def test_blocks_solve_what_rows_solve(
    batch: tuple[int, ...],
    rows: int,
    columns: int,
    left: bool,
    lower: bool,
    unit: bool,
    transposed: bool,
) -> None:
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((*batch, rows, rows)) / rows**0.5 + 2 * np.eye(rows)
    a = a.astype(np.float32)
    b = rng.standard_normal((*batch, *((rows, columns) if left else (columns, rows))))
    b = b.astype(np.float32)
    kind = "TRANSPOSE" if transposed else "NO_TRANSPOSE"
    options = (
        f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, "
        f"unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {kind}>"
    )
    executable = davinci.compile(text_of(a, b, options), machine="ascend910")
    (found,) = executable.run({"arg0": a, "arg1": b}).values()
    triangle = (np.tril(a) if lower else np.triu(a)).astype(np.float64)
    if unit:
        triangle[..., range(rows), range(rows)] = 1
    triangle = np.swapaxes(triangle, -1, -2) if transposed else triangle
    if left:
        wanted = np.linalg.solve(triangle, b)
    else:
        wanted = np.swapaxes(
            np.linalg.solve(np.swapaxes(triangle, -1, -2), np.swapaxes(b, -1, -2)), -1, -2
        )
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
