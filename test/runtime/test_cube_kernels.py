"""Copies, fractal loads, mad and the way out of L0C on the simulated machine against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.kernel_harness import BARRIER, run, strided


def layout(shape: list[int], strides: list[int], element: str, space: str = "") -> str:
    memory = f', #cce.space<"{space}">' if space else ""
    return f"memref<{'x'.join(map(str, shape))}x{element}, strided<{strides}>{memory}>"


@st.composite
def copies(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Shape and strides in GM and UB, in f32 elements; runs are whole blocks."""
    shape = [draw(st.integers(1, 12)) for _ in range(draw(st.integers(0, 2)))]
    shape.append(8 * draw(st.integers(1, 4)))
    gm, ub = [1], [1]
    gm_extent = ub_extent = shape[-1]
    for size in reversed(shape[:-1]):
        gm_extent += draw(st.sampled_from([0, 3, 8]))  # gaps of 12 bytes need single bursts
        ub_extent += draw(st.sampled_from([0, 8]))
        gm.insert(0, 0 if draw(st.booleans()) and len(shape) > 2 else gm_extent)
        ub.insert(0, ub_extent)
        gm_extent, ub_extent = gm_extent * size, ub_extent * size
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(shape) - 1)))
        pick = [*order, len(shape) - 1]
        shape, gm, ub = ([values[i] for i in pick] for values in (shape, gm, ub))
    return shape, gm, ub


def span(shape: list[int], strides: list[int]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


@given(case=copies())
def test_copy(case: tuple[list[int], list[int], list[int]]) -> None:
    """GM to UB with gaps, then the whole of UB back to GM."""
    shape, gm, ub = case
    source_size, ub_size = span(shape, gm), -(-span(shape, ub) // 8) * 8
    source, buffer = layout(shape, gm, "f32"), layout(shape, ub, "f32", "UB")
    flat = f"memref<{ub_size}xf32>"
    flat_ub = f'memref<{ub_size}xf32, #cce.space<"UB">>'
    text = f"""
    func.func @k(%a: memref<{source_size}xf32>, %o: {flat}) attributes {{ascend.kernel}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : {flat_ub}
      "cce.copy"(%o, %u) : ({flat}, {flat_ub}) -> ()
      {BARRIER}
      %src = memref.reinterpret_cast %a to offset: [0], sizes: {shape}, strides: {gm}
        : memref<{source_size}xf32> to {source}
      %dst = memref.reinterpret_cast %u to offset: [0], sizes: {shape}, strides: {ub}
        : {flat_ub} to {buffer}
      "cce.copy"(%src, %dst) : ({source}, {buffer}) -> ()
      {BARRIER}
      "cce.copy"(%u, %o) : ({flat_ub}, {flat}) -> ()
      return
    }}"""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(source_size).astype(np.float32)
    o = rng.standard_normal(ub_size).astype(np.float32)
    found = run(text, [a, o])[1]
    strided(o, shape, ub)[...] = strided(a, shape, gm)
    np.testing.assert_array_equal(found, o)


def nz(matrix: np.ndarray, columns: int) -> np.ndarray:
    """[m, n] as [n / columns, m / 16, 16, columns]."""
    m, n = matrix.shape
    return matrix.reshape(m // 16, 16, n // columns, columns).transpose(2, 0, 1, 3).copy()


def matmul_text(
    m1: int, k1: int, n1: int, half: int, kind: str, result: str, transpose: bool
) -> str:
    """C = A * B in two steps over k, B given as rows of n so that fractals need `transpose`."""
    c = 32 if kind == "i8" else 16
    accumulator = "i32" if kind == "i8" else "f32"
    a, a1 = f"memref<{k1}x{m1}x16x{c}x{kind}>", f'memref<{k1}x{m1}x16x{c}x{kind}, #cce.space<"L1">>'
    b, b1 = f"memref<{n1}x{k1}x16x{c}x{kind}>", f'memref<{n1}x{k1}x16x{c}x{kind}, #cce.space<"L1">>'
    fractal = 16 * c
    a_view = layout([m1, half, 16, c], [fractal, m1 * fractal, c, 1], kind, "L1").replace(
        "1]>, #", "1], offset: ?>, #"
    )
    b_view = layout([half, n1, 16, c], [fractal, k1 * fractal, c, 1], kind, "L1").replace(
        "1]>, #", "1], offset: ?>, #"
    )
    l0a = f'memref<{m1}x{half}x16x{c}x{kind}, #cce.space<"L0A">>'
    l0b = f'memref<{half}x{n1}x16x{c}x{kind}, #cce.space<"L0B">>'
    l0c = f'memref<{n1}x{m1}x16x16x{accumulator}, #cce.space<"L0C">>'
    out, ub = (
        f"memref<{n1}x{m1}x16x16x{result}>",
        f'memref<{n1}x{m1}x16x16x{result}, #cce.space<"UB">>',
    )
    flag = "{transpose}" if transpose else "{}"
    return f"""
    func.func @k(%a: {a}, %b: {b}, %o: {out}) attributes {{ascend.kernel}} {{
      %a1 = memref.alloc() {{cce.address = 0 : i64}} : {a1}
      %b1 = memref.alloc() {{cce.address = 524288 : i64}} : {b1}
      %a0 = memref.alloc() {{cce.address = 0 : i64}} : {l0a}
      %b0 = memref.alloc() {{cce.address = 512 : i64}} : {l0b}
      %c0 = memref.alloc() {{cce.address = 1024 : i64}} : {l0c}
      %u = memref.alloc() {{cce.address = 64 : i64}} : {ub}
      "cce.copy"(%a, %a1) : ({a}, {a1}) -> ()
      "cce.copy"(%b, %b1) : ({b}, {b1}) -> ()
      {BARRIER}
      %zero = arith.constant 0 : index
      %step = arith.constant {half} : index
      %end = arith.constant {k1} : index
      scf.for %i = %zero to %end step %step {{
        %first = arith.cmpi eq, %i, %zero : index
        %am = arith.constant {m1 * fractal} : index
        %ao = arith.muli %i, %am : index
        %av = memref.reinterpret_cast %a1 to offset: [%ao], sizes: [{m1}, {half}, 16, {c}],
          strides: [{fractal}, {m1 * fractal}, {c}, 1] : {a1} to {a_view}
        %bm = arith.constant {fractal} : index
        %bo = arith.muli %i, %bm : index
        %bv = memref.reinterpret_cast %b1 to offset: [%bo], sizes: [{half}, {n1}, 16, {c}],
          strides: [{fractal}, {k1 * fractal}, {c}, 1] : {b1} to {b_view}
        "cce.load2d"(%av, %a0) : ({a_view}, {l0a}) -> ()
        "cce.load2d"(%bv, %b0) {flag} : ({b_view}, {l0b}) -> ()
        {BARRIER}
        "cce.mad"(%a0, %b0, %c0, %first) : ({l0a}, {l0b}, {l0c}, i1) -> ()
        {BARRIER}
      }}
      "cce.copy_l0c"(%c0, %u) : ({l0c}, {ub}) -> ()
      {BARRIER}
      "cce.copy"(%u, %o) : ({ub}, {out}) -> ()
      return
    }}"""


@pytest.mark.parametrize("result", ["f32", "f16"])
@pytest.mark.parametrize(("m1", "k1", "n1"), [(1, 2, 1), (3, 4, 2)])
def test_matmul_half(m1: int, k1: int, n1: int, result: str) -> None:
    """B is Nz with rows k: each fractal is [k, n] and must be transposed to [n, k]."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((16 * m1, 16 * k1)).astype(np.float16)
    b = rng.standard_normal((16 * k1, 16 * n1)).astype(np.float16)
    text = matmul_text(m1, k1, n1, k1 // 2, "f16", result, transpose=True)
    dtype = np.dtype(np.float32 if result == "f32" else np.float16)
    out = np.zeros((n1, m1, 16, 16), dtype)
    found = run(text, [nz(a, 16), nz(b, 16), out])[2]
    expected = nz(a.astype(np.float32) @ b.astype(np.float32), 16)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3 * 16)


def test_matmul_bytes() -> None:
    """8-bit fractals [16 n, 32 k] come ready, as [n1, k1] of them."""
    m1, k1, n1 = 2, 4, 3
    rng = np.random.default_rng(2)
    a = rng.integers(-128, 128, (16 * m1, 32 * k1)).astype(np.int8)
    b = rng.integers(-128, 128, (32 * k1, 16 * n1)).astype(np.int8)
    text = matmul_text(m1, k1, n1, 2, "i8", "i32", transpose=False)
    rows = b.T.reshape(n1, 16, k1, 32).transpose(0, 2, 1, 3).copy()
    found = run(text, [nz(a, 32), rows, np.zeros((n1, m1, 16, 16), np.int32)])[2]
    np.testing.assert_array_equal(found, nz(a.astype(np.int32) @ b.astype(np.int32), 16))
