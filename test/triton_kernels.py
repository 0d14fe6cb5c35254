# ruff: noqa: E741, N803 -- names are those of kernels of Triton, constants in capitals
"""Kernels of Triton for the tests, written for them; each is small and hurts somewhere."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    tl.store(out + at, a + b, mask=inside)


@triton.jit
def silu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside).to(tl.float32)
    tl.store(out + at, a / (1 + tl.exp(-a)), mask=inside)


@triton.jit
def scale_and_clamp(x, out, n, factor, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside) * factor
    tl.store(out + at, tl.minimum(tl.maximum(a, low), high), mask=inside)


@triton.jit
def leaky(x, out, n, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    tl.store(out + at, tl.where(a > 0, a, a * slope), mask=inside)


@triton.jit
def swiglu(x, gate, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    g = tl.load(gate + at, mask=inside)
    tl.store(out + at, a * g * tl.sigmoid(g), mask=inside)


@triton.jit
def roots(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.abs(tl.load(x + at, mask=inside, other=1.0))
    tl.store(out + at, tl.sqrt(a) + tl.log(a + 1.0), mask=inside)


@triton.jit
def integers(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    tl.store(out + at, a * 3 + b - 7, mask=inside)


@triton.jit
def to_half(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside).to(tl.float16), mask=inside)


@triton.jit
def persistent_copy(x, out, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < n
        tl.store(out + at, tl.load(x + at, mask=inside) * 2, mask=inside)


@triton.jit
def row_sums(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(a, axis=0))


@triton.jit
def row_maxima(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + at, mask=at < columns, other=float("-inf"))
    tl.store(out + row, tl.max(a, axis=0))


@triton.jit
def tile_row_sums(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    a = tl.load(x + i[:, None] * columns + j[None, :], mask=inside, other=0.0)
    tl.store(out + i, tl.sum(a, axis=1), mask=i < rows)


@triton.jit
def tile_column_sums(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    a = tl.load(x + i[:, None] * columns + j[None, :], mask=inside, other=0.0)
    tl.store(out + j, tl.sum(a, axis=0), mask=j < columns)


@triton.jit
def softmax(x, out, rows, columns, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        a = tl.load(x + row * stride + at, mask=inside, other=float("-inf"))
        e = tl.exp(a - tl.max(a, axis=0))
        tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=inside)


@triton.jit
def log_softmax(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    a = tl.load(x + row * stride + at, mask=inside, other=float("-inf"))
    a = a - tl.max(a, axis=0)
    tl.store(out + row * stride + at, a - tl.log(tl.sum(tl.exp(a), axis=0)), mask=inside)


@triton.jit
def layer_norm(x, scale, shift, out, columns, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    a = tl.load(x + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(a, axis=0) / columns
    centred = tl.where(inside, a - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    w = tl.load(scale + at, mask=inside).to(tl.float32)
    b = tl.load(shift + at, mask=inside).to(tl.float32)
    made = centred / tl.sqrt(variance + eps) * w + b
    tl.store(out + row * stride + at, made.to(tl.float16), mask=inside)


@triton.jit
def rms_norm(x, scale, out, columns, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        a = tl.load(x + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
        squares += a * a
    factor = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        a = tl.load(x + row * stride + at, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(scale + at, mask=inside).to(tl.float32)
        tl.store(out + row * stride + at, a * factor * w, mask=inside)


@triton.jit
def add_row(x, row, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    at = i[:, None] * columns + j[None, :]
    a = tl.load(x + at, mask=inside)
    b = tl.load(row + j, mask=j < columns)
    tl.store(out + at, a + b[None, :], mask=inside)


@triton.jit
def scale_rows(x, factors, out, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    at = i[:, None] * COLUMNS + j[None, :]
    tl.store(out + at, tl.load(x + at) * tl.load(factors + i)[:, None])


@triton.jit
def rotary(x, cosine, sine, out, HALF: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, HALF)
    a = tl.load(x + row * 2 * HALF + at)
    b = tl.load(x + row * 2 * HALF + HALF + at)
    c = tl.load(cosine + row * HALF + at)
    s = tl.load(sine + row * HALF + at)
    tl.store(out + row * 2 * HALF + at, a * c - b * s)
    tl.store(out + row * 2 * HALF + HALF + at, b * c + a * s)


@triton.jit
def dropout(x, keep, out, n, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    k = tl.load(keep + at, mask=inside, other=0.0)
    tl.store(out + at, tl.where(k > p, a / (1 - p), 0.0), mask=inside)


@triton.jit
def add_up(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(out + tl.arange(0, BLOCK), a)


@triton.jit
def shares(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.store(out + at, a * (n // tl.sum(a)))


@triton.jit
def matmul(
    a, b, c, m, n, k, sam, sak, sbk, sbn, scm, scn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(n, N)
    i = tl.program_id(0) // across * M + tl.arange(0, M)
    j = tl.program_id(0) % across * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, k, K):
        l = first + tl.arange(0, K)
        left = (i[:, None] < m) & (l[None, :] < k)
        right = (l[:, None] < k) & (j[None, :] < n)
        x = tl.load(a + i[:, None] * sam + l[None, :] * sak, mask=left, other=0.0)
        y = tl.load(b + l[:, None] * sbk + j[None, :] * sbn, mask=right, other=0.0)
        total = tl.dot(x, y, total)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(c + i[:, None] * scm + j[None, :] * scn, total.to(tl.float16), mask=inside)


@triton.jit
def product(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TA: tl.constexpr, TB: tl.constexpr
):  # fmt: skip
    i, j, l = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if TA:
        x = tl.trans(tl.load(a + l[:, None] * M + i[None, :]))
    else:
        x = tl.load(a + i[:, None] * K + l[None, :])
    if TB:
        y = tl.trans(tl.load(b + j[:, None] * K + l[None, :]))
    else:
        y = tl.load(b + l[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y))


@triton.jit
def matmul_bias_relu(a, b, bias, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    l = tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + l[None, :])
    y = tl.load(b + l[:, None] * N + j[None, :])
    made = tl.dot(x, y) + tl.load(bias + j)[None, :]
    tl.store(c + i[:, None] * N + j[None, :], tl.maximum(made, 0.0))


@triton.jit
def attention(
    q, k, v, out, scale, ROWS: tl.constexpr, LENGTH: tl.constexpr, DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, DEPTH)
    head = tl.program_id(1) * LENGTH * DEPTH
    query = tl.load(q + head + i[:, None] * DEPTH + d[None, :])
    most = tl.full([ROWS], float("-inf"), dtype=tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    made = tl.zeros([ROWS, DEPTH], dtype=tl.float32)
    for first in range(0, LENGTH, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        keys = tl.load(k + head + j[:, None] * DEPTH + d[None, :])
        values = tl.load(v + head + j[:, None] * DEPTH + d[None, :])
        scores = tl.dot(query, tl.trans(keys)) * scale
        if CAUSAL:
            scores = tl.where(i[:, None] >= j[None, :], scores, -1.0e6)
        higher = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        less = tl.exp(most - higher)
        total = total * less + tl.sum(p, 1)
        made = made * less[:, None]
        made = tl.dot(p.to(tl.float16), values, made)
        most = higher
    made = made / total[:, None]
    tl.store(out + head + i[:, None] * DEPTH + d[None, :], made.to(tl.float16))


@triton.jit
def gather_rows(table, rows, out, WIDTH: tl.constexpr):
    i = tl.program_id(0)
    j = tl.arange(0, WIDTH)
    row = tl.load(rows + i)
    tl.store(out + i * WIDTH + j, tl.load(table + row * WIDTH + j))


@triton.jit
def gather_elements(table, places, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    place = tl.load(places + at, mask=inside, other=0)
    tl.store(out + at, tl.load(table + place, mask=inside), mask=inside)


@triton.jit
def running_sums(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, tl.cumsum(a, axis=0), mask=at < n)


@triton.jit
def transposed(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    a = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(out + j[:, None] * ROWS + i[None, :], tl.trans(a))


@triton.jit
def first_largest(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
    tl.store(out + row, tl.argmax(a, axis=0))


@triton.jit
def sorted_rows(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + row * BLOCK + at, tl.sort(tl.load(x + row * BLOCK + at)))


@triton.jit
def printed(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.device_print("x", a)
    tl.store(out + at, a + a)


@triton.jit
def of_pointers(arrays, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(arrays).to(tl.pointer_type(tl.float32))
    tl.store(out + at, tl.load(a + at))


@triton.jit
def picked(x, places, out, count):
    for i in range(count):
        tl.store(out + i, tl.load(x + tl.load(places + i)).to(tl.float32) * 2)
