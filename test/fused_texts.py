"""Kernels with work for cube and vector unit, one program each, as text of cce: for machines whose
cores have both units they are complete, on others `split-cores` makes two programs of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

SIDE = 16


def fractals(matrix: Array) -> Array:
    """[rows, columns] as [columns / 16, rows / 16, 16, 16], ends filled up with zeros."""
    rows, columns = (-(-size // SIDE) for size in matrix.shape)
    whole = np.zeros((rows * SIDE, columns * SIDE), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(whole.reshape(rows, SIDE, columns, SIDE).transpose(2, 0, 1, 3))


@dataclass(frozen=True)
class FusedCase:
    """A kernel, what it is called with, and what it computes."""

    text: str
    inputs: tuple[Array, ...]
    wanted: Array

    @property
    def lines(self) -> str:
        """The text, an operation of cce in a line of its own."""
        return re.sub(r"\n {8,}", " ", self.text)


def _random(*shape: int, seed: int = 0) -> npt.NDArray[np.float16]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def product(name: str, c: str, a: str, b: str, m: int, k: int, n: int) -> str:
    """`c` in L0C = `a` `b` of fractals in L1, `a` [k][m], `b` [n][k], all counted in fractals."""
    return f"""
    %{name}_rows = memref.reinterpret_cast {a} to offset: [0], sizes: [{m}, {k}, 16, 16],
        strides: [256, {256 * m}, 16, 1]
        : L1<{k}x{m}x16x16xf16> to L1<{m}x{k}x16x16xf16, strided<[256, {256 * m}, 16, 1]>>
    %{name}_a = memref.alloc() : L0A<{m}x{k}x16x16xf16>
    cce.load2d %{name}_rows, %{name}_a
        : L1<{m}x{k}x16x16xf16, strided<[256, {256 * m}, 16, 1]>>, L0A<{m}x{k}x16x16xf16>
    {right(name, b, k, n)}
    {c} = memref.alloc() : L0C<{n}x{m}x16x16xf32>
    cce.mad %{name}_a, %{name}_b, {c}, %true
        : L0A<{m}x{k}x16x16xf16>, L0B<{k}x{n}x16x16xf16>, L0C<{n}x{m}x16x16xf32>, i1"""


def right(name: str, b: str, k: int, n: int) -> str:
    """The right factor [n][k] of a product goes to L0B."""
    return f"""%{name}_columns = memref.reinterpret_cast {b} to offset: [0],
        sizes: [{k}, {n}, 16, 16], strides: [256, {256 * k}, 16, 1]
        : L1<{n}x{k}x16x16xf16> to L1<{k}x{n}x16x16xf16, strided<[256, {256 * k}, 16, 1]>>
    %{name}_b = memref.alloc() : L0B<{k}x{n}x16x16xf16>
    cce.load2d %{name}_columns, %{name}_b {{transpose}}
        : L1<{k}x{n}x16x16xf16, strided<[256, {256 * k}, 16, 1]>>, L0B<{k}x{n}x16x16xf16>"""


HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %minus = arith.constant -1.0 : f32
  %one = arith.constant 1.0 : f32
  %block = cce.get_block_idx -> index
  %blocks = cce.get_block_num -> index"""


def product_swish(
    rows: int = 272, k: int = 48, n: int = 64, tile: int = 64, blocks: int = 2, slots: int = 2
) -> FusedCase:
    """x sigmoid(x) of x = a b + bias, in tiles of rows, the last of which may be shorter."""
    m1, k1, n1 = -(-rows // SIDE), k // SIDE, n // SIDE
    whole, rest = divmod(rows, tile)

    def body(height: int, name: str) -> str:
        m = -(-height // SIDE)
        kind, flat = f"UB<{n1}x{m}x16x16xf32>", f"[16, {256 * m}, 1]"
        rows_type = f"{height}x{n1}x16xf32"
        return f"""
    %{name}_l1 = memref.alloc() : L1<{k1}x{m}x16x16xf16>
    %{name}_gm = memref.subview %a[0, %{name}_at, 0, 0] [{k1}, {m}, 16, 16] [1, 1, 1, 1]
        : memref<{k1}x{m1}x16x16xf16>
        to memref<{k1}x{m}x16x16xf16, strided<[{256 * m1}, 256, 16, 1], offset: ?>>
    cce.copy %{name}_gm, %{name}_l1
        : memref<{k1}x{m}x16x16xf16, strided<[{256 * m1}, 256, 16, 1], offset: ?>>,
          L1<{k1}x{m}x16x16xf16>
    {product(name, f"%{name}_c", f"%{name}_l1", "%b_l1", m, k1, n1)}
    %{name}_x = memref.alloc() {{cce.slots = {slots} : i64}} : {kind}
    %{name}_y = memref.alloc() {{cce.slots = {slots} : i64}} : {kind}
    cce.copy_l0c %{name}_c, %{name}_x : L0C<{n1}x{m}x16x16xf32>, {kind}
    %{name}_row = memref.reinterpret_cast %bias_ub to offset: [0], sizes: [{n1}, {m}, 16, 16],
        strides: [16, 0, 0, 1] : UB<{n}xf32> to UB<{n1}x{m}x16x16xf32, strided<[16, 0, 0, 1]>>
    cce.vadd %{name}_x, %{name}_row, %{name}_x
        : {kind}, UB<{n1}x{m}x16x16xf32, strided<[16, 0, 0, 1]>>, {kind}
    cce.vmuls %{name}_x, %minus, %{name}_y : {kind}, f32, {kind}
    cce.vexp %{name}_y, %{name}_y : {kind}
    cce.vadds %{name}_y, %one, %{name}_y : {kind}, f32, {kind}
    cce.vdiv %{name}_x, %{name}_y, %{name}_x : {kind}
    %{name}_lines = memref.reinterpret_cast %{name}_x to offset: [0], sizes: [{height}, {n1}, 16],
        strides: {flat} : {kind} to UB<{rows_type}, strided<{flat}>>
    %{name}_first = arith.muli %{name}_at, %side : index
    %{name}_out = memref.subview %lines[%{name}_first, 0, 0] [{height}, {n1}, 16] [1, 1, 1]
        : memref<{rows}x{n1}x16xf32> to memref<{rows_type}, strided<[{n}, 16, 1], offset: ?>>
    cce.copy %{name}_lines, %{name}_out
        : UB<{rows_type}, strided<{flat}>>, memref<{rows_type}, strided<[{n}, 16, 1], offset: ?>>"""

    tail = ""
    if rest:
        tail = f"""
  %last = arith.cmpi eq, %block, %c0 : index
  scf.if %last {{
    %r_at = arith.constant {whole * tile // SIDE} : index{body(rest, "r")}
  }}"""
    text = f"""
func.func @product_swish(%a: memref<{k1}x{m1}x16x16xf16>, %b: memref<{n1}x{k1}x16x16xf16>,
    %bias: memref<{n}xf32>, %out: memref<{rows}x{n}xf32>)
    attributes {{ascend.blocks = {blocks} : i64}} {{{HEAD}
  %side = arith.constant 16 : index
  %high = arith.constant {tile // SIDE} : index
  %tiles = arith.constant {whole} : index
  %lines = memref.expand_shape %out [[0], [1, 2]] output_shape [{rows}, {n1}, 16]
      : memref<{rows}x{n}xf32> into memref<{rows}x{n1}x16xf32>
  %bias_ub = memref.alloc() : UB<{n}xf32>
  cce.copy %bias, %bias_ub : memref<{n}xf32>, UB<{n}xf32>
  %b_l1 = memref.alloc() : L1<{n1}x{k1}x16x16xf16>
  cce.copy %b, %b_l1 : memref<{n1}x{k1}x16x16xf16>, L1<{n1}x{k1}x16x16xf16>
  scf.for %i = %block to %tiles step %blocks {{
    %t_at = arith.muli %i, %high : index{body(tile, "t")}
  }} {{cce.unroll = {slots} : i64, cce.order}}{tail}
  return
}}"""
    a, b = _random(rows, k), _random(k, n, seed=1)
    bias = _random(n, seed=2).astype(np.float32)
    x = a.astype(np.float32) @ b.astype(np.float32) + bias
    return FusedCase(text, (fractals(a), fractals(b), bias), x / (1 + np.exp(-x)))


def exponential_product(
    tiles: int = 5, m: int = 2, k: int = 3, n: int = 2, blocks: int = 1
) -> FusedCase:
    """exp(a) b of tiles of fractals: what the vector unit makes is a factor of the cube."""
    kind, sums = f"UB<{k}x{m}x16x16xf16>", f"{n}x{m}x16x16xf32"
    text = f"""
func.func @exponential_product(%a: memref<{tiles}x{k}x{m}x16x16xf16>,
    %b: memref<{n}x{k}x16x16xf16>, %out: memref<{tiles}x{sums}>)
    attributes {{ascend.blocks = {blocks} : i64}} {{{HEAD}
  %tiles = arith.constant {tiles} : index
  %b_l1 = memref.alloc() : L1<{n}x{k}x16x16xf16>
  cce.copy %b, %b_l1 : memref<{n}x{k}x16x16xf16>, L1<{n}x{k}x16x16xf16>
  scf.for %i = %block to %tiles step %blocks {{
    %x = memref.alloc() : {kind}
    %a_i = memref.subview %a[%i, 0, 0, 0, 0] [1, {k}, {m}, 16, 16] [1, 1, 1, 1, 1]
        : memref<{tiles}x{k}x{m}x16x16xf16>
        to memref<{k}x{m}x16x16xf16, strided<[{256 * m}, 256, 16, 1], offset: ?>>
    cce.copy %a_i, %x
        : memref<{k}x{m}x16x16xf16, strided<[{256 * m}, 256, 16, 1], offset: ?>>, {kind}
    cce.vexp %x, %x : {kind}
    %x_l1 = memref.alloc() : L1<{k}x{m}x16x16xf16>
    cce.copy_l1 %x, %x_l1 : {kind}, L1<{k}x{m}x16x16xf16>
    {product("p", "%c", "%x_l1", "%b_l1", m, k, n)}
    %y = memref.alloc() : UB<{sums}>
    cce.copy_l0c %c, %y : L0C<{sums}>, UB<{sums}>
    %out_i = memref.subview %out[%i, 0, 0, 0, 0] [1, {n}, {m}, 16, 16] [1, 1, 1, 1, 1]
        : memref<{tiles}x{sums}> to memref<{sums}, strided<[{256 * m}, 256, 16, 1], offset: ?>>
    cce.copy %y, %out_i
        : UB<{sums}>, memref<{sums}, strided<[{256 * m}, 256, 16, 1], offset: ?>>
  }}
  return
}}"""
    a, b = (_random(tiles, m * SIDE, k * SIDE) / 4).astype(np.float16), _random(k * SIDE, n * SIDE)
    made = np.exp(a.astype(np.float32)).astype(np.float16).astype(np.float32)
    wanted = np.stack([fractals(x @ b.astype(np.float32)) for x in made])
    return FusedCase(text, (np.stack([fractals(x) for x in a]), fractals(b)), wanted)


def attention(
    tiles: int = 4, rows: int = 2, keys: int = 4, depth: int = 2, blocks: int = 1
) -> FusedCase:
    """softmax(q k^T) v of tiles of rows, all counted in fractals: scores of keys by rows, so that
    maxima and sums are those of whole blocks."""
    scores, lines = f"UB<{rows}x{keys}x16x16xf16>", f"UB<{rows}x{keys * 16}x16xf16>"
    sums = f"{depth}x{rows}x16x16xf32"

    def fold(name: str, into: str) -> str:
        """`into`[r][16] = what an operation makes of the lines of %p."""
        size = keys * 16
        parts = [f"cce.copy %p, %{into}_all : {scores}, {scores}"]
        while size > 1:
            size //= 2
            kind = f"UB<{rows}x{size}x16xf16, strided<[{keys * 256}, 16, 1]{{}}>>"
            low, high = kind.format(""), kind.format(f", offset: {size * 16}")
            parts += [
                f"%{into}_{size}_low = memref.reinterpret_cast %{into}_all to offset: [0], "
                f"sizes: [{rows}, {size}, 16], strides: [{keys * 256}, 16, 1] : {scores} to {low}",
                f"%{into}_{size}_high = memref.reinterpret_cast %{into}_all to "
                f"offset: [{size * 16}], sizes: [{rows}, {size}, 16], "
                f"strides: [{keys * 256}, 16, 1] : {scores} to {high}",
                f"cce.{name} %{into}_{size}_low, %{into}_{size}_high, %{into}_{size}_low "
                f": {low}, {high}, {low}",
            ]
        every = f"UB<{rows}x{keys * 16}x16xf16, strided<[{keys * 256}, 0, 1]>>"
        parts += [
            f"%{into} = memref.reinterpret_cast %{into}_all to offset: [0], "
            f"sizes: [{rows}, {keys * 16}, 16], strides: [{keys * 256}, 0, 1] "
            f": {scores} to {every}"
        ]
        return "\n    ".join(parts)

    every = f"UB<{rows}x{keys * 16}x16xf16, strided<[{keys * 256}, 0, 1]>>"
    text = f"""
func.func @attention(%q: memref<{tiles}x{rows}x{depth}x16x16xf16>,
    %k: memref<{depth}x{keys}x16x16xf16>, %v: memref<{depth}x{keys}x16x16xf16>,
    %out: memref<{tiles}x{sums}>) attributes {{ascend.blocks = {blocks} : i64}} {{{HEAD}
  %tiles = arith.constant {tiles} : index
  %k_l1 = memref.alloc() : L1<{depth}x{keys}x16x16xf16>
  cce.copy %k, %k_l1 : memref<{depth}x{keys}x16x16xf16>, L1<{depth}x{keys}x16x16xf16>
  %v_l1 = memref.alloc() : L1<{depth}x{keys}x16x16xf16>
  cce.copy %v, %v_l1 : memref<{depth}x{keys}x16x16xf16>, L1<{depth}x{keys}x16x16xf16>
  scf.for %i = %block to %tiles step %blocks {{
    %q_l1 = memref.alloc() : L1<{rows}x{depth}x16x16xf16>
    %q_i = memref.subview %q[%i, 0, 0, 0, 0] [1, {rows}, {depth}, 16, 16] [1, 1, 1, 1, 1]
        : memref<{tiles}x{rows}x{depth}x16x16xf16>
        to memref<{rows}x{depth}x16x16xf16, strided<[{256 * depth}, 256, 16, 1], offset: ?>>
    cce.copy %q_i, %q_l1
        : memref<{rows}x{depth}x16x16xf16, strided<[{256 * depth}, 256, 16, 1], offset: ?>>,
          L1<{rows}x{depth}x16x16xf16>
    {product("s", "%s", "%k_l1", "%q_l1", keys, depth, rows)}
    %p_fractals = memref.alloc() : {scores}
    %p = memref.cast %p_fractals : {scores} to {scores}
    cce.copy_l0c %s, %p_fractals : L0C<{rows}x{keys}x16x16xf32>, {scores}
    %top_all = memref.alloc() : {scores}
    %sum_all = memref.alloc() : {scores}
    %p_lines = memref.reinterpret_cast %p to offset: [0], sizes: [{rows}, {keys * 16}, 16],
        strides: [{keys * 256}, 16, 1] : {scores} to {lines}
    {fold("vmax", "top")}
    cce.vsub %p_lines, %top, %p_lines : {lines}, {every}, {lines}
    cce.vexp %p_lines, %p_lines : {lines}
    {fold("vadd", "sum")}
    cce.vdiv %p_lines, %sum, %p_lines : {lines}, {every}, {lines}
    %p_l1 = memref.alloc() : L1<{rows}x{keys}x16x16xf16>
    cce.copy_l1 %p_fractals, %p_l1 : {scores}, L1<{rows}x{keys}x16x16xf16>
    %p_a = memref.alloc() : L0A<{rows}x{keys}x16x16xf16>
    cce.load2d %p_l1, %p_a {{transpose}}
        : L1<{rows}x{keys}x16x16xf16>, L0A<{rows}x{keys}x16x16xf16>
    {right("o", "%v_l1", keys, depth)}
    %o = memref.alloc() : L0C<{sums}>
    cce.mad %p_a, %o_b, %o, %true
        : L0A<{rows}x{keys}x16x16xf16>, L0B<{keys}x{depth}x16x16xf16>, L0C<{sums}>, i1
    %y = memref.alloc() : UB<{sums}>
    cce.copy_l0c %o, %y : L0C<{sums}>, UB<{sums}>
    %out_i = memref.subview %out[%i, 0, 0, 0, 0] [1, {depth}, {rows}, 16, 16] [1, 1, 1, 1, 1]
        : memref<{tiles}x{sums}> to memref<{sums}, strided<[{256 * rows}, 256, 16, 1], offset: ?>>
    cce.copy %y, %out_i
        : UB<{sums}>, memref<{sums}, strided<[{256 * rows}, 256, 16, 1], offset: ?>>
  }}
  return
}}"""
    q = _random(tiles, rows * SIDE, depth * SIDE) / 4
    k, v = (_random(keys * SIDE, depth * SIDE, seed=seed) for seed in (1, 2))
    s = q.astype(np.float32) @ k.T.astype(np.float32)
    p = np.exp(s - s.max(-1, keepdims=True))
    wanted = (p / p.sum(-1, keepdims=True)) @ v.astype(np.float32)
    # B of the first product is q^T, [rows][depth] of fractals whose rows are those of k.
    inputs = np.stack([fractals(np.ascontiguousarray(x.T)) for x in q])
    return FusedCase(
        text, (inputs, fractals(k), fractals(v)), np.stack([fractals(x) for x in wanted])
    )
