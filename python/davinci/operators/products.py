"""Products of matrices: C[m, n] += A[m, k] B[k, n].

Each of them has any layout.
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
from davinci.operators.layouts import any_layout
from davinci.operators.tensors import Tensor, is_integer
from davinci.operators.windows import WindowAxis, WindowDim, Windows
from davinci.operators.work import OperatorWork

CUBE_TYPES = {
    ("f16", "f16"): ("f32", "f16"),
    ("f32", "f32"): ("f32",),
    ("i8", "i8"): ("i32",),
    ("si8", "si8"): ("si32",),
}
"""Element types of A and B, and those the cube can give for them; f32 where the machine
`multiplies_f32`."""

FACTORS = ("f16", "f32", "i8")
"""Element types of factors on tensors; `ascend-legalize-precision` brings f32 to f16 where the cube
does not take it."""

TYPES = frozenset({*FACTORS, "i32", "si8", "si32"})

TRANSPOSE_A, TRANSPOSE_B = "transpose_a", "transpose_b"
"""Attributes of products whose operands are given with rows and columns exchanged."""


@dataclass(frozen=True)
class BatchedProduct:
    """The constraints and facts of products with `batch` leading dimensions."""

    batch: int

    def ranks_of_factors(self, call: Call) -> None:
        """A and B have rank 2, of `batch_matmul` one more."""
        for role, operand in zip(("A", "B"), call.inputs, strict=True):
            require(operand.rank == 2 + self.batch, f"rank of {role}", operand.rank, 2 + self.batch)

    def types(self, call: Call) -> None:
        """A and B have one element type."""
        a, b = call.inputs
        require(a.element == b.element, "element type of B", b.element, a.element)

    def same_batch(self, call: Call) -> None:
        """A and B have the same batch."""
        a, b = (x.shape[: self.batch] for x in call.inputs)
        require(a == b, "batch of B", b, a)

    def matrices(self, call: Call) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows and columns of A and of B, as they are multiplied."""
        a, b = call.inputs
        turned_a, turned_b = (bool(call.attributes.get(x)) for x in (TRANSPOSE_A, TRANSPOSE_B))
        return matrix_sizes(a.shape, turned_a), matrix_sizes(b.shape, turned_b)

    def same_inner(self, call: Call) -> None:
        """B has as many rows as A has columns."""
        (_, k), (rows, _) = self.matrices(call)
        require(k == rows, "rows of B", rows, f"{k}, A's columns")

    def shape_of_result(self, call: Call) -> None:
        """C is [m, n]."""
        found = call.outputs[0].shape
        expected = (*call.inputs[0].shape[: self.batch], *self.sizes(call)[-3:-1])
        require(found == expected, "shape of the result", list(found), list(expected))

    def windows(self, call: Call) -> Windows:
        """Axes m, n and k."""
        front = tuple(map(WindowDim, range(self.batch)))
        batch = tuple(map(WindowAxis, call.inputs[0].shape[: self.batch]))
        at = self.batch
        (m, k), (_, n) = self.matrices(call)
        axes = (*batch, WindowAxis(m), WindowAxis(n), WindowAxis(k, "add"))
        rows, columns, inner = WindowDim(at), WindowDim(at + 1), WindowDim(at + 2)
        a, b = (
            pair[::-1] if call.attributes.get(flag) else pair
            for pair, flag in (((rows, inner), TRANSPOSE_A), ((inner, columns), TRANSPOSE_B))
        )
        return Windows(axes, (*front, rows, columns), ((*front, *a), (*front, *b)))

    def sizes(self, call: Call) -> tuple[int, ...]:
        """[batch, m, n, k]."""
        (m, k), (_, n) = self.matrices(call)
        return (*call.inputs[0].shape[: self.batch], m, n, k)

    def work(self, call: Call) -> OperatorWork:
        *front, m, n, k = self.sizes(call)
        count, a, c = math.prod(front), call.inputs[0], call.outputs[0]
        return OperatorWork(
            macs=count * m * n * k,
            factor_bits=8 * a.bytes_each,
            read_bytes=count * (m * k + k * n) * a.bytes_each,
            write_bytes=count * m * n * c.bytes_each,
        )


def matrix_sizes(shape: Sequence[int], transposed: bool) -> tuple[int, int]:
    """Rows and columns that a product takes an operand of this shape to have."""
    rows, columns = shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


def multiplied(a: Array, b: Array, transpose_a: bool, transpose_b: bool, result: Tensor) -> Any:
    """The product of matrices, summed in f32 or i32."""
    wide = np.int32 if is_integer(result.element) else np.float32
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.matmul(left.astype(wide), right.astype(wide))


SINGLE, BATCHED = BatchedProduct(0), BatchedProduct(1)
PRODUCTS = {"matmul": SINGLE, "batch_matmul": BATCHED}


def product_name(rank: int) -> str:
    """The product of matrices of this rank."""
    return "batch_matmul" if rank == 3 else "matmul"


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
    return multiplied(a, b, transpose_a, transpose_b, result)


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
    return multiplied(a, b, transpose_a, transpose_b, result)
