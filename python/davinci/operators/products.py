"""Products of matrices: C[m, n] += A[m, k] B[k, n].

Tensors have any layout. Each buffer is rows, of 16-bit elements, or an array of fractals:
A [m, k] or [k1, m1, 16, c], B [k, n] or [n1, k1, 16, c], C [m, n] or [n1, m1, 16, 16]. A fractal of
bytes has c = 32 columns: for each of B's, C has two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import CUBE, Array, operator
from davinci.operators.fractals import from_nz, require_fractal_type, to_nz
from davinci.operators.layouts import any_layout
from davinci.operators.tensors import Tensor, is_integer, lanes
from davinci.operators.windows import Axis, Dim, Windows, in_order, whole
from davinci.operators.work import Work
from davinci.units import FRACTAL_SIDE, ceil_div

CUBE_TYPES = {
    ("f16", "f16"): ("f32", "f16"),
    ("i8", "i8"): ("i32",),
    ("si8", "si8"): ("si32",),
}
"""Element types of A and B, and those the cube can give for them."""

FACTORS = ("f16", "f32", "i8")
"""Element types of factors on tensors; `ascend-legalize-precision` brings f32 to f16."""

TYPES = frozenset({*FACTORS, "i32", "si8", "si32"})

TRANSPOSE_A, TRANSPOSE_B = "transpose_a", "transpose_b"
"""Attributes of products whose operands are given with rows and columns exchanged."""

SIZES = "ascend.sizes"
"""Attribute of a product of fractals: its [m, n, k] without padding."""


@dataclass(frozen=True)
class Size:
    """Rows or columns of a matrix; of fractals with their padding, a multiple of `unit`."""

    count: int
    unit: int = 1

    def agrees(self, other: Size) -> bool:
        """Whether both may be the same, but for the padding of the one that has more."""
        unit = max(self.unit, other.unit)
        return ceil_div(self.count, unit) == ceil_div(other.count, unit)


@dataclass(frozen=True)
class Product:
    """The constraints and facts of products with `batch` leading dimensions."""

    batch: int

    def ranks_of_factors(self, call: Call) -> None:
        """A and B have rank 2; on buffers also rank 4 and fractals of 16 x c, c the lanes of their
        type, which bytes must have.

        Of `batch_matmul` one more.
        """
        for role, operand in zip(("A", "B"), call.inputs, strict=True):
            if self.rows(operand) and (not call.buffers or operand.bytes_each == 2):
                continue
            require(call.buffers, f"rank of {role}", operand.rank, 2 + self.batch)
            require_fractal_type(operand.element)
            fractal = (FRACTAL_SIDE, lanes(operand.element))
            legal = operand.rank == 4 + self.batch and operand.shape[-2:] == fractal
            expected = f"rank {4 + self.batch}, fractals of {fractal[0]} x {fractal[1]}"
            require(legal, f"shape of {role}", operand, expected)

    def types(self, call: Call) -> None:
        """A and B have one element type; on buffers f16 gives f32 or f16, i8 gives i32."""
        a, b = call.inputs
        if not call.buffers:
            require(a.element == b.element, "element type of B", b.element, a.element)
            return
        key, found = (a.element, b.element), call.outputs[0].element
        known = " or ".join(" x ".join(pair) for pair in CUBE_TYPES)
        require(key in CUBE_TYPES, "element types of A and B", " x ".join(key), known)
        allowed = CUBE_TYPES[key]
        require(found in allowed, "element type of the result", found, " or ".join(allowed))

    def same_batch(self, call: Call) -> None:
        """A and B have the same batch."""
        a, b = (x.shape[: self.batch] for x in call.inputs)
        require(a == b, "batch of B", b, a)

    def rows(self, operand: Tensor) -> bool:
        """Whether an operand is rows, or on tensors has any layout."""
        return operand.rank == 2 + self.batch

    def stored(self, operand: Tensor) -> tuple[Size, Size]:
        """Rows and columns of what is stored."""
        if self.rows(operand):
            rows, columns = operand.shape[-2:]
            return Size(rows), Size(columns)
        rows, columns = stored_sizes(operand)
        return Size(rows, FRACTAL_SIDE), Size(columns, operand.shape[-1])

    def matrices(self, call: Call) -> tuple[tuple[Size, Size], tuple[Size, Size]]:
        """Rows and columns of A and of B, as they are multiplied."""
        a, b = (self.stored(x) for x in call.inputs)
        a = a[::-1] if call.attributes.get(TRANSPOSE_A) else a
        return a, b[::-1] if call.attributes.get(TRANSPOSE_B) else b

    def same_inner(self, call: Call) -> None:
        """B has as many rows as A has columns, if one is fractals but for padding."""
        (_, k), (rows, _) = self.matrices(call)
        require(k.agrees(rows), "rows of B", rows.count, f"{k.count}, A's columns")

    def shape_of_result(self, call: Call) -> None:
        """C is [m, n], on buffers also [n1, m1, 16, 16], but for padding."""
        (m, _), (_, n) = self.matrices(call)
        front, found = call.inputs[0].shape[: self.batch], call.outputs[0]
        square = (FRACTAL_SIDE, FRACTAL_SIDE)
        expected = (*front, m.count, n.count)
        if not self.rows(found):
            blocks = (ceil_div(size.count, FRACTAL_SIDE) for size in (n, m))
            expected = (*front, *blocks, *square)
        fits = len(found.shape) == len(expected) and found.shape[: self.batch] == front
        if fits and not self.rows(found):
            fits = call.buffers and found.shape[-2:] == square
        sizes = zip((m, n), self.stored(found), strict=True) if fits else ()
        fits = fits and all(size.agrees(given) for size, given in sizes)
        require(fits, "shape of the result", list(found.shape), list(expected))

    def windows(self, call: Call) -> Windows:
        """Axes m, n, k of rows; of fractals those of C, and all of k."""
        front = tuple(map(Dim, range(self.batch)))
        batch = tuple(map(Axis, call.inputs[0].shape[: self.batch]))
        at = self.batch
        if not any(map(self.rows, call.values)):
            return self._windows_of_fractals(call, front)
        if not all(map(self.rows, call.values)):
            return Windows(
                tuple(map(Axis, call.outputs[0].shape)),
                in_order(call.outputs[0].rank),
                (None, None),
            )
        (m, k), (_, n) = self.matrices(call)
        axes = (*batch, Axis(m.count), Axis(n.count), Axis(k.count, "add"))
        rows, columns, inner = Dim(at), Dim(at + 1), Dim(at + 2)
        a, b = (
            pair[::-1] if call.attributes.get(flag) else pair
            for pair, flag in (((rows, inner), TRANSPOSE_A), ((inner, columns), TRANSPOSE_B))
        )
        return Windows(axes, (*front, rows, columns), ((*front, *a), (*front, *b)))

    def _windows_of_fractals(self, call: Call, front: tuple[Dim, ...]) -> Windows:
        """A fractal of C takes its row of fractals of A and its column of B, all of their lanes.

        Of bytes, where two fractals of C belong to one of B, all of A and B.
        """
        a, b = (x.shape[self.batch :] for x in call.inputs)
        axes = tuple(map(Axis, call.outputs[0].shape))
        result = in_order(len(axes))
        aligned = lanes(call.inputs[0].element) == FRACTAL_SIDE
        columns, rows = result[self.batch : self.batch + 2] if aligned else (None, None)
        flags = (call.attributes.get(flag, False) for flag in (TRANSPOSE_A, TRANSPOSE_B))
        turned_a, turned_b = flags
        of_a = fractal_dims(a, 0 if turned_a else 1, rows)
        of_b = fractal_dims(b, 1 if turned_b else 0, columns)
        return Windows(axes, result, ((*front, *of_a), (*front, *of_b)))

    def sizes(self, call: Call) -> tuple[int, ...]:
        """[batch, m, n, k]; m, n and k with padding if nothing else is known."""
        front = call.inputs[0].shape[: self.batch]
        if SIZES in call.attributes:
            return (*front, *call.attributes[SIZES])
        (m, k), (rows, n) = self.matrices(call)
        of_c = self.stored(call.outputs[0])
        pairs = ((m, of_c[0]), (n, of_c[1]), (k, rows))
        return (*front, *(min(pair, key=lambda size: size.unit).count for pair in pairs))

    def work(self, call: Call) -> Work:
        *front, m, n, k = self.sizes(call)
        count, a, c = math.prod(front), call.inputs[0], call.outputs[0]
        return Work(
            macs=count * m * n * k,
            factor_bits=8 if a.bytes_each == 1 else 16,  # the cube has no wider factors
            read_bytes=count * (m * k + k * n) * a.bytes_each,
            write_bytes=count * m * n * c.bytes_each,
        )


def matrix_sizes(shape: Sequence[int], transposed: bool) -> tuple[int, int]:
    """Rows and columns that a product takes an operand of this shape to have."""
    rows, columns = shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


def stored_sizes(nz: Tensor) -> tuple[int, int]:
    """Rows and columns of the matrix that an array of fractals holds, with its padding."""
    columns, rows, side, lane = nz.shape[-4:]
    return rows * side, columns * lane


def fractal_dims(shape: tuple[int, ...], place: int, outer: Dim | None) -> tuple[Dim, ...]:
    """All of an array of fractals, but in dimension `place` what `outer` says, if it does."""
    dims = [whole(size) for size in shape]
    if outer is not None:
        dims[place] = outer
    return tuple(dims)


def multiplied(
    a: Array, b: Array, batch: int, transpose_a: bool, transpose_b: bool, result: Tensor
) -> Any:
    """The product of matrices, or of fractals, summed in f32 or i32."""
    wide = np.int32 if is_integer(result.element) else np.float32
    left, right = (all_of(x) if x.ndim == 4 + batch else x for x in (a, b))
    left = np.swapaxes(left, -1, -2) if transpose_a else left
    right = np.swapaxes(right, -1, -2) if transpose_b else right
    inner = min(left.shape[-1], right.shape[-2])
    product = np.matmul(left[..., :inner].astype(wide), right[..., :inner, :].astype(wide))
    if result.rank == 2 + batch:  # which ends where fractals may not
        return product[..., : result.shape[-2], : result.shape[-1]]
    columns, rows = result.shape[batch : batch + 2]  # of bytes the last may be absent
    return to_nz(product, FRACTAL_SIDE)[..., :columns, :rows, :, :]


def all_of(nz: Array) -> Array:
    """The matrices that arrays of fractals hold, with their padding."""
    columns, rows, side, lane = nz.shape[-4:]
    return from_nz(nz, (rows * side, columns * lane))


SINGLE, BATCHED = Product(0), Product(1)
PRODUCTS = {"matmul": SINGLE, "batch_matmul": BATCHED}


@operator(
    windows=SINGLE.windows,
    constraints=(
        SINGLE.ranks_of_factors,
        SINGLE.types,
        SINGLE.same_inner,
        SINGLE.shape_of_result,
    ),
    unit=CUBE,
    types=TYPES,
    work=SINGLE.work,
    layouts=any_layout,
)
def matmul(
    a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False, result: Tensor
) -> Any:
    """A [m, k] times B [k, n] is C [m, n].

    With `transpose_a` A is given as [k, m], with `transpose_b` B as [n, k].
    """
    return multiplied(a, b, 0, transpose_a, transpose_b, result)


@operator(
    windows=BATCHED.windows,
    constraints=(
        BATCHED.ranks_of_factors,
        BATCHED.types,
        BATCHED.same_inner,
        BATCHED.shape_of_result,
        BATCHED.same_batch,
    ),
    unit=CUBE,
    types=TYPES,
    work=BATCHED.work,
    layouts=any_layout,
)
def batch_matmul(
    a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False, result: Tensor
) -> Any:
    """`matmul` of equal leading batch dimensions."""
    return multiplied(a, b, 1, transpose_a, transpose_b, result)
