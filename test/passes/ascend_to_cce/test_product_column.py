"""Rows that the cube adds to sums which are rounded next, against NumPy in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pairs import all_pairs
from support import compile_text

NZ = ', #ascend.layout<"nz">'
ERF = np.vectorize(math.erf, otypes=[np.float64])


def text(m: int, k: int, n: int, nz: bool, batch: int, gelu: bool) -> str:
    """round(gelu?(A B + row))"""
    lay = NZ if nz else ""
    lead = f"{batch}x" if batch else ""
    name = "batch_matmul" if batch else "matmul"
    a, b = f"tensor<{lead}{m}x{k}xf16>", f"tensor<{lead}{k}x{n}xf16>"
    row = f"tensor<{lead}{n}xf32>"
    c, half = (f"tensor<{lead}{m}x{n}x{kind}{lay}>" for kind in ("f32", "f16"))
    dims = "0, 2" if batch else "1"
    lines = [
        f'%c = "ascend.{name}"(%a, %b) : ({a}, {b}) -> {c}',
        f'%r = "ascend.broadcast"(%row) {{dims = array<i64: {dims}>}} : ({row}) -> {c}',
        f'%d = "ascend.add"(%c, %r) : ({c}, {c}) -> {c}',
    ]
    last = "%d"
    if gelu:
        lines.append(f'%e = "ascend.gelu"(%d) : ({c}) -> {c}')
        last = "%e"
    lines.append(f'%h = "ascend.cast"({last}) : ({c}) -> {half}')
    out = f"tensor<{lead}{m}x{n}xf16>"
    value = "%h"
    if nz:
        lines.append(f'%o = "ascend.relayout"(%h) : ({half}) -> {out}')
        value = "%o"
    body = "\n".join(lines)
    head = f"func.func @main(%a: {a}, %b: {b}, %row: {row}) -> {out}"
    return f"{head} {{\n{body}\nreturn {value} : {out}\n}}"


@pytest.mark.parametrize(
    ("shape", "nz", "gelu"),
    all_pairs(
        [
            (64, 16, 16, 0, 1),
            (65, 33, 17, 0, 32),
            (300, 48, 40, 0, 2),
            (128, 80, 257, 0, 1),
            (97, 64, 1000, 0, 32),
            (70, 32, 48, 3, 2),
            (256, 512, 384, 0, 4),
        ],
        [False, True],
        [False, True],
    ),
)
def test_rows(shape: tuple[int, int, int, int, int], nz: bool, gelu: bool) -> None:
    """Rows are exact to more bits than f16 has: large ones cancel what sums have in common."""
    m, k, n, batch, cores = shape
    rng = np.random.default_rng(m * n)
    lead = (batch,) if batch else ()
    a = rng.standard_normal((*lead, m, k)).astype(np.float16)
    b = (rng.standard_normal((*lead, k, n)) / math.sqrt(k)).astype(np.float16)
    a[..., 0], b[..., 0, :] = 8, 8
    row = (rng.standard_normal((*lead, n)) - 64).astype(np.float32)
    executable = compile_text(text(m, k, n, nz, batch, gelu), cores=cores)
    (found,) = executable.run(a, b, row).values()
    wanted = a.astype(np.float64) @ b.astype(np.float64) + row[..., None, :]
    if gelu:
        wanted = wanted * (1 + ERF(wanted / math.sqrt(2))) / 2
    # f16 alone would miss the rows by 0.03.
    np.testing.assert_allclose(found, wanted, rtol=2.0**-10, atol=8e-4)
