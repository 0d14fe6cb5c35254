"""matmul and batch_matmul as tiled loops on the cube.

Names are the source's, see `matmul_strategies`: A is M x N, B is N x K, C is M x K, a tile is
(m, n, k) with n the contracted dimension; all three lie in GM in Nz, counted in fractals here.

    A  GM [N, M, 16, 16] -> L1 [m, n, 16, 16] -> L0A (Zz) by one load2d
    B  GM [K, N, 16, 16] -> L1 [n, k, 16, 16] -> L0B (Zn) by one load2d, which turns the fractals
    C  L0C [k, m, 16, 16] (Nz, f32) -> UB in slices, cast on the way if the result is f16 -> GM

An operand given transposed lies in GM as L1 wants it, and load2d turns its fractals where it does
not turn the others.

Output stationary, and the others where one tile spans a whole dimension:

    for tile (x, y) of this block:               for panel x of this block:        (is, n = N)
      for s: a = A(x, s); b = B(s, y)              a = A(x)
             mad(a, b, c, init = (s == 0))         for y: b = B(y); mad(a, b, c, true)
      C(x, y) = c                                         C(x, y) = c

Input stationary with k = K is the left form with one y; weight stationary mirrors it. Each tile
passes along N in two halves with buffers of their own. Tiles that do not divide the matrices are
peeled in all three dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from davinci.errors import CompileError
from davinci.mlir import arith, ir
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.matmul_strategies import Size, choose
from davinci.passes.ascend_to_cce.tiles import (
    Part,
    Segment,
    for_tiles,
    segments,
    share_blocks,
    unflatten,
)
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    for_loop,
    op,
    reshaped,
    restride,
    row_major,
    subview,
)
from davinci.passes.pipeline.base import fail
from davinci.units import FRACTAL_SIDE as SIDE

FRACTAL = SIDE * SIDE


@dataclass(frozen=True)
class Span:
    """A tile of one dimension: where it starts and how many fractals it has."""

    start: IndexLike
    size: int


@lowering("matmul", "batch_matmul")
def lower_matmul(operation: Any, target: Target) -> int:
    """C = A B on the cube; returns how many blocks can share the work.

    Raises:
        CompileError: element types the cube or load2d cannot take, or no legal tile.
    """
    a, b, c = operation.operands
    check_types(operation, a, b, c)
    turned = Turned(*(flag in operation.attributes for flag in (TRANSPOSE_A, TRANSPOSE_B)))
    batch, n, m = nz_shape(a)[:3]
    if turned.a:
        n, m = m, n
    k = nz_shape(c)[1]
    whole = Size(m, n, k)
    if not (batch and m and n and k):
        return fill_with_zeros(c, target)
    strategy, cores = target.matmul_strategy, target.cores
    try:
        tile = choose(strategy, whole, target.tile, target.machine, batch, cores)
    except CompileError as error:
        fail(operation, error.message, found=error.found, expected=error.expected, hint=error.hint)
    tensors = Tensors(batched(a), batched(b), batched(c), turned)
    product = Product(whole, batch, tile, tensors, target)
    if strategy == "is" and tile.n == n:
        return product.input_stationary()
    if strategy == "ws" and tile.n == n:
        return product.weight_stationary()
    return product.output_stationary()


def fill_with_zeros(c: Any, target: Target) -> int:
    """The product of empty matrices: whatever C has is zero."""
    kind = ir.MemRefType(c.type)
    total = math.prod(kind.shape)
    if total == 0:
        return 1
    size = min(total, target.machine.buffer("UB").bytes * 8 // int(kind.element_type.width))
    ub = alloc([size], kind.element_type, "UB")
    op("cce.vector_dup", [arith.ConstantOp(kind.element_type, 0.0).result, ub])
    flat = restride(c, [total], [1])
    for start, length in pieces(total, size):
        op("cce.copy", [subview(ub, [0], [length]), subview(flat, [start], [length])])
    return 1


def check_types(operation: Any, a: Any, b: Any, c: Any) -> None:
    """f16 x f16 to f32 or f16."""
    types = tuple(str(ir.MemRefType(v.type).element_type) for v in (a, b, c))
    if types[:2] != ("f16", "f16") or types[2] not in ("f32", "f16"):
        fail(
            operation,
            "cannot be lowered for these element types",
            found=" x ".join(types[:2]) + f" to {types[2]}",
            expected="f16 x f16 to f32 or f16",
            hint="load2d transposes 16-bit fractals only, so an 8-bit B in Nz cannot reach L0B; "
            "cast the operands to f16",
        )


def nz_shape(value: Any) -> list[int]:
    """[batch, columns / 16, rows / 16, 16, 16] of an Nz operand; batch is 1 if it has none."""
    shape = list(ir.MemRefType(value.type).shape)
    return shape if len(shape) == 5 else [1, *shape]


def batched(value: Any) -> Any:
    """An Nz operand with its batch dimension, added if it has none."""
    return reshaped(value, nz_shape(value))


def swapped(buffer: Any) -> Any:
    """A contiguous array with its first two dimensions exchanged."""
    rows, columns, *fractal = ir.MemRefType(buffer.type).shape
    strides = row_major([rows, columns, *fractal])
    return restride(buffer, [columns, rows, *fractal], [strides[1], strides[0], *strides[2:]])


def halves(n: int) -> list[tuple[int, int]]:
    """(start, size) of the two parts in which a tile passes along N, in turn through two sets of
    buffers, so that one is loaded while the other is multiplied. One part if n is 1."""
    first = -(-n // 2)
    return [(0, first), (first, n - first)] if n > 1 else [(0, n)]


def parts_of(span: Span) -> list[Span]:
    """A tile of N as the parts of `halves`."""
    return [Span(add(span.start, start), size) for start, size in halves(span.size)]


@dataclass(frozen=True)
class Turned:
    """Which operands are given transposed."""

    a: bool
    b: bool


@dataclass(frozen=True)
class Tensors:
    """The operands in GM, each with a batch dimension."""

    a: Any
    b: Any
    c: Any
    turned: Turned


class Product:
    """Builds the kernel of one product: buffers, moves of tiles, and the loops of a strategy."""

    def __init__(
        self, whole: Size, batch: int, tile: Size, tensors: Tensors, target: Target
    ) -> None:
        self.whole, self.batch, self.tile = whole, batch, tile
        self.tensors, self.target = tensors, target
        sizes = ((whole.m, tile.m), (whole.n, tile.n), (whole.k, tile.k))
        self.loops = math.prod(len(segments(total, size)) for total, size in sizes)
        f16, f32 = ir.F16Type.get(), ir.F32Type.get()
        result = ir.MemRefType(tensors.c.type).element_type
        self.l1_a, self.l1_b, self.l0_a, self.l0_b = ([] for _ in range(4))
        for _, n in halves(tile.n):
            a, b = [tile.m, n, SIDE, SIDE], [n, tile.k, SIDE, SIDE]
            self.l1_a.append(alloc(a, f16, "L1"))
            self.l1_b.append(alloc(b, f16, "L1"))
            self.l0_a.append(alloc(a, f16, "L0A"))
            self.l0_b.append(alloc(b, f16, "L0B"))
        self.l0_c = alloc([tile.k, tile.m, SIDE, SIDE], f32, "L0C")
        self.slice = slice_of_c(tile, target, 2 if result == f16 else 4)
        buffers = 1 if self.slice == (tile.k, tile.m) else 2
        self.ub = [alloc([*self.slice, SIDE, SIDE], result, "UB") for _ in range(buffers)]

    def output_stationary(self) -> int:
        """Every tile of C is a unit of work and is complete when it leaves."""
        parts = []
        for xs in segments(self.whole.m, self.tile.m):
            for ys in segments(self.whole.k, self.tile.k):

                def build(index: IndexLike, xs: Segment = xs, ys: Segment = ys) -> None:
                    n, i, j = unflatten(index, (self.batch, xs.count, ys.count))
                    x, y = Span(xs.start(i), xs.size), Span(ys.start(j), ys.size)
                    self.accumulate(n, x, y)
                    self.store(n, x, y)

                parts.append(Part(self.batch * xs.count * ys.count, build))
        return share_blocks(parts, self.target)

    def input_stationary(self) -> int:
        """Every row panel A(x), all of N wide, is a unit of work; B walks past it."""
        parts = []
        for xs in segments(self.whole.m, self.tile.m):

            def build(index: IndexLike, xs: Segment = xs) -> None:
                n, i = unflatten(index, (self.batch, xs.count))
                x, s = Span(xs.start(i), xs.size), Span(0, self.whole.n)
                for half, part in enumerate(parts_of(s)):
                    self.copy_a(half, n, x, part)
                    self.load_a(half, x, part)
                for ys in segments(self.whole.k, self.tile.k):

                    def step(start: IndexLike, ys: Segment = ys) -> None:
                        y = Span(start, ys.size)
                        for half, part in enumerate(parts_of(s)):
                            self.copy_b(half, n, part, y)
                            self.load_b(half, part, y)
                            self.mad(half, x, part, y, flag(half == 0))
                        self.store(n, x, y)

                    for_tiles(ys, step)

            parts.append(Part(self.batch * xs.count, build))
        return share_blocks(parts, self.target)

    def weight_stationary(self) -> int:
        """Every column panel B(y), all of N high, is a unit of work; A walks past it."""
        parts = []
        for ys in segments(self.whole.k, self.tile.k):

            def build(index: IndexLike, ys: Segment = ys) -> None:
                n, j = unflatten(index, (self.batch, ys.count))
                y, s = Span(ys.start(j), ys.size), Span(0, self.whole.n)
                for half, part in enumerate(parts_of(s)):
                    self.copy_b(half, n, part, y)
                    self.load_b(half, part, y)
                for xs in segments(self.whole.m, self.tile.m):

                    def step(start: IndexLike, xs: Segment = xs) -> None:
                        x = Span(start, xs.size)
                        for half, part in enumerate(parts_of(s)):
                            self.copy_a(half, n, x, part)
                            self.load_a(half, x, part)
                            self.mad(half, x, part, y, flag(half == 0))
                        self.store(n, x, y)

                    for_tiles(xs, step)

            parts.append(Part(self.batch * ys.count, build))
        return share_blocks(parts, self.target)

    def accumulate(self, n: IndexLike, x: Span, y: Span) -> None:
        """Sums the products of all tiles along N into L0C; the first one overwrites it."""
        for segment in segments(self.whole.n, self.tile.n):

            def step(start: IndexLike, init: Any, size: int = segment.size) -> None:
                for half, part in enumerate(parts_of(Span(start, size))):
                    self.load_pair(half, n, x, part, y)
                    self.mad(half, x, part, y, flag(False) if half else init)

            if segment.count == 1:
                step(segment.first, flag(segment.first == 0))
                continue
            with for_loop(0, segment.count) as i:
                zero = arith.ConstantOp(ir.IndexType.get(), 0).result
                step(segment.start(i), arith.CmpIOp(arith.CmpIPredicate.eq, i, zero).result)

    def load_pair(self, half: int, n: IndexLike, x: Span, s: Span, y: Span) -> None:
        """A(x, s) and B(s, y) to L0A and L0B.

        Apart, each is loaded as soon as it has come, and its place in L1 is free as soon as it is
        loaded. That takes two event ids in each direction and half, all that there are; so where
        several loops share them, B, copied last, is loaded first, and one id orders both.
        """
        if self.loops == 1:
            self.copy_a(half, n, x, s)
            self.load_a(half, x, s)
            self.copy_b(half, n, s, y)
            self.load_b(half, s, y)
            return
        self.copy_a(half, n, x, s)
        self.copy_b(half, n, s, y)
        self.load_b(half, s, y)
        self.load_a(half, x, s)

    def copy_a(self, half: int, n: IndexLike, x: Span, s: Span) -> None:
        """A(x, s) to L1."""
        buffer = reshaped(self.l1_a[half], [x.size, s.size, SIDE, SIDE])
        copy_in(self.tensors.a, n, x, s, buffer, not self.tensors.turned.a)

    def copy_b(self, half: int, n: IndexLike, s: Span, y: Span) -> None:
        """B(s, y) to L1."""
        buffer = reshaped(self.l1_b[half], [s.size, y.size, SIDE, SIDE])
        copy_in(self.tensors.b, n, s, y, buffer, not self.tensors.turned.b)

    def load_a(self, half: int, x: Span, s: Span) -> None:
        """A(x, s) to L0A in Zz."""
        shape = [x.size, s.size, SIDE, SIDE]
        buffers = [reshaped(self.l1_a[half], shape), reshaped(self.l0_a[half], shape)]
        load_fractals(buffers, self.tensors.turned.a)

    def load_b(self, half: int, s: Span, y: Span) -> None:
        """B(s, y) to L0B in Zn: the fractals of Nz are transposed."""
        shape = [s.size, y.size, SIDE, SIDE]
        buffers = [reshaped(self.l1_b[half], shape), reshaped(self.l0_b[half], shape)]
        load_fractals(buffers, not self.tensors.turned.b)

    def mad(self, half: int, x: Span, s: Span, y: Span, init: Any) -> None:
        """L0C (+)= L0A * L0B for tiles of these sizes."""
        operands = [
            reshaped(self.l0_a[half], [x.size, s.size, SIDE, SIDE]),
            reshaped(self.l0_b[half], [s.size, y.size, SIDE, SIDE]),
            reshaped(self.l0_c, [y.size, x.size, SIDE, SIDE]),
        ]
        op("cce.mad", [*operands, init])

    def store(self, n: IndexLike, x: Span, y: Span) -> None:
        """C(x, y) from L0C to GM in slices that take turns in the UB buffers."""
        tile = reshaped(self.l0_c, [y.size, x.size, SIDE, SIDE])
        slices = [
            (column, row)
            for column in pieces(y.size, self.slice[0])
            for row in pieces(x.size, self.slice[1])
        ]
        for turn, ((column, columns), (row, rows)) in enumerate(slices):
            shape = [columns, rows, SIDE, SIDE]
            ub = reshaped(self.ub[turn % len(self.ub)], shape)
            op("cce.copy_l0c", [subview(tile, [column, row, 0, 0], shape), ub])
            start = [n, add(y.start, column), add(x.start, row), 0, 0]
            op("cce.copy", [ub, subview(self.tensors.c, start, [1, *shape], drop=[0])])


def copy_in(
    matrix: Any, n: IndexLike, rows: Span, columns: Span, buffer: Any, by_columns: bool
) -> None:
    """A piece of an operand to L1, [rows, columns, 16, 16], from GM where columns are outermost."""
    first, second = (columns, rows) if by_columns else (rows, columns)
    start = [n, first.start, second.start, 0, 0]
    source = subview(matrix, start, [1, first.size, second.size, SIDE, SIDE], drop=[0])
    op("cce.copy", [source, swapped(buffer) if by_columns else buffer])


def load_fractals(buffers: list[Any], transpose: bool) -> None:
    """L1 to L0A or L0B."""
    if transpose:
        op("cce.load2d", buffers, transpose=True)
    else:
        op("cce.load2d", buffers)


def slice_of_c(tile: Size, target: Target, itemsize: int) -> tuple[int, int]:
    """Columns and rows, in fractals, of the slices in which a tile of C leaves through UB.

    Two slices take turns, so each has at most half of UB; plan-memory refuses less than a fractal.
    """
    most = max(1, target.machine.buffer("UB").bytes // (2 * FRACTAL * itemsize))
    if tile.m > most:
        return 1, most
    return min(tile.k, most // tile.m), tile.m


def pieces(total: int, size: int) -> list[tuple[int, int]]:
    """(start, size) of the pieces of at most `size` that make up `total`."""
    return [(start, min(size, total - start)) for start in range(0, total, size)]


def flag(value: bool) -> Any:
    """A constant of type i1."""
    return arith.ConstantOp(ir.IntegerType.get_signless(1), int(value)).result
