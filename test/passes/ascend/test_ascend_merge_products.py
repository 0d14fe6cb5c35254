"""Merged products give what NumPy gives for each of them, from slices that are views."""

from __future__ import annotations

import numpy as np
import pytest

from support import compile_text


def network(m: int, k: int, widths: tuple[int, ...]) -> str:
    """(x w_i + b_i) w_i'; w_i counts rows or columns, halved i times, b_i columns."""
    x, lines, results = f"tensor<{m}x{k}xf16>", [], []
    for i, n in enumerate(widths):
        w, wide, y = f"tensor<{k}x{n}xf16>", f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}xf16>"
        lines += [
            f'%n{i} = "ascend.iota"() {{dim = {i % 2} : i64}} : () -> {w}',
            f'%f{i} = "ascend.full"() {{value = {2.0**-i} : f16}} : () -> {w}',
            f'%w{i} = "ascend.mul"(%n{i}, %f{i}) : ({w}, {w}) -> {w}',
            f'%b{i} = "ascend.iota"() {{dim = 0 : i64}} : () -> tensor<{n}xf32>',
            f'%c{i} = "ascend.broadcast"(%b{i}) {{dims = array<i64: 1>}} : (tensor<{n}xf32>)'
            f" -> {wide}",
            f'%p{i} = "ascend.matmul"(%x, %w{i}) : ({x}, {w}) -> {wide}',
            f'%s{i} = "ascend.add"(%p{i}, %c{i}) : ({wide}, {wide}) -> {wide}',
            f'%h{i} = "ascend.cast"(%s{i}) : ({wide}) -> {y}',
            f'%r{i} = "ascend.matmul"(%h{i}, %w{i}) {{transpose_b}} : ({y}, {w})'
            f" -> tensor<{m}x{k}xf32>",
        ]
        results.append(f"%r{i}")
    returned = ", ".join([f"tensor<{m}x{k}xf32>"] * len(widths))
    body = "\n".join(lines)
    return (
        f"func.func @main(%x: {x}) -> ({returned}) {{\n{body}\n"
        f"return {', '.join(results)} : {returned}\n}}"
    )


@pytest.mark.parametrize(
    ("m", "k", "widths"),
    [
        (1, 5, (16, 16, 16)),
        (40, 5, (16, 16, 16)),
        (15, 33, (48, 16)),
        (40, 33, (48, 16)),
        (17, 16, (32, 32)),
        (1, 7, (16, 15, 32)),
        (17, 7, (16, 15, 32)),
    ],
    ids=str,
)
def test_merged(m: int, k: int, widths: tuple[int, ...]) -> None:
    x = (np.random.default_rng(m).standard_normal((m, k)) / 8).astype(np.float16)
    executable = compile_text(network(m, k, widths), cores=2)
    found = list(executable.run(x).values())
    for i, (n, result) in enumerate(zip(widths, found, strict=True)):
        w = (np.indices((k, n))[i % 2] * 2.0**-i).astype(np.float32)
        inner = (x.astype(np.float32) @ w + np.arange(n)).astype(np.float16).astype(np.float32)
        # What f16 rounds differently where sums in f32 do: a last digit of one term.
        np.testing.assert_allclose(result, inner @ w.T, rtol=2e-3, atol=0.1)
    names = [launch.name for launch in executable.launches]
    apart = sum(n % 16 != 0 for n in widths)
    assert sum("matmul" in name for name in names) == len(widths) + 1 + apart
    assert not any("slice" in name or "concat" in name for name in names)
