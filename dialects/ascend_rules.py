"""Constraints of the ascend operations that are not elementwise, one function an operation.

The constraints are numbered in the docstrings of the operations in `ascend.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from davinci.dialects.ascend_layouts import is_view
from davinci.dialects.ascend_shapes import (
    Call,
    Tensor,
    fractal_shape,
    is_integer,
    lanes,
    missing,
    pad_shape,
    reduce_shape,
    slice_shape,
)
from davinci.dialects.base import Invalid, require
from davinci.mlir import ir
from davinci.units import FRACTAL_SIDE

REDUCTIONS = ("add", "max", "min", "mul")


def require_length(name: str, values: Sequence[int], tensor: Tensor) -> None:
    require(
        len(values) == tensor.rank,
        f"number of '{name}'",
        len(values),
        f"{tensor.rank}, one a dimension of the operand",
    )


def require_dims(name: str, dims: Sequence[int], rank: int) -> None:
    """Distinct dimensions of a tensor of that rank."""
    require(
        len(set(dims)) == len(dims) and all(0 <= d < rank for d in dims),
        f"'{name}'",
        list(dims),
        f"distinct dimensions below {rank}",
    )


def check_full(call: Call) -> None:
    value = call.given("value")
    typed = isinstance(value, (ir.IntegerAttr, ir.FloatAttr, ir.BoolAttr))
    require(typed, "attribute 'value'", missing(value), "a typed integer or float")
    call.same_element("value", value.type, call.outputs[0].element)


def check_constant(call: Call) -> None:
    value = call.given("value")
    shaped = value is not None and isinstance(value.type, ir.ShapedType)
    require(shaped, "attribute 'value'", missing(value), "an elements attribute")
    if call.buffers:
        raise Invalid("has no form on buffers", "memref", "tensor; constants become globals")
    (result,) = call.outputs
    found, expected = list(value.type.shape), list(result.stored_shape)
    require(found == expected, "shape of 'value'", found, expected)
    call.same_element("'value'", value.type.element_type, result.element)


def check_iota(call: Call) -> None:
    dim = call.integer("dim")
    rank = call.outputs[0].rank
    require(0 <= dim < rank, "'dim'", dim, f"a dimension below {rank}")


def check_broadcast(call: Call) -> None:
    (operand,), (result,) = call.inputs, call.outputs
    dims = call.array("dims")
    require_length("dims", dims, operand)
    require_dims("dims", dims, result.rank)
    for size, dim in zip(operand.shape, dims, strict=True):
        require(
            size in (1, result.shape[dim]),
            f"size of dimension {dim} of the result",
            result.shape[dim],
            f"{size}, the operand's",
        )
    call.same_element("the result", result.element, operand.element)


def check_reshape(call: Call) -> None:
    (operand,), (result,) = call.inputs, call.outputs
    require(operand.count == result.count, "number of elements", result.count, operand.count)
    call.same_element("the result", result.element, operand.element)


def check_transpose(call: Call) -> None:
    (operand,) = call.inputs
    permutation = call.array("permutation")
    require_length("permutation", permutation, operand)
    require_dims("permutation", permutation, operand.rank)
    call.expect_output([operand.shape[p] for p in permutation], operand.element)


def check_reduce(call: Call) -> None:
    (operand,) = call.inputs
    call.choice("kind", REDUCTIONS)
    dims = call.array("dims")
    require_dims("dims", dims, operand.rank)
    call.expect_output(reduce_shape(operand.shape, dims), operand.element)


def check_slice(call: Call) -> None:
    (operand,) = call.inputs
    starts, limits, strides = (call.array(name) for name in ("starts", "limits", "strides"))
    for name, values in (("starts", starts), ("limits", limits), ("strides", strides)):
        require_length(name, values, operand)
    for i, size in enumerate(operand.shape):
        require(
            0 <= starts[i] <= limits[i] <= size and strides[i] > 0,
            f"range of dimension {i}",
            f"{starts[i]}:{limits[i]}:{strides[i]}",
            f"0 <= start <= limit <= {size}, stride > 0",
        )
    call.expect_output(slice_shape(starts, limits, strides), operand.element)


def check_concat(call: Call) -> None:
    first = call.inputs[0]
    dim = call.integer("dim")
    require(0 <= dim < first.rank, "'dim'", dim, f"a dimension below {first.rank}")
    for i, operand in enumerate(call.inputs):
        expected = [
            operand.shape[dim] if j == dim and operand.rank == first.rank else n
            for j, n in enumerate(first.shape)
        ]
        require(list(operand.shape) == expected, f"shape of operand {i}", operand, expected)
        call.same_element(f"operand {i}", operand.element, first.element)
    total = sum(operand.shape[dim] for operand in call.inputs)
    shape = [total if j == dim else n for j, n in enumerate(first.shape)]
    call.expect_output(shape, first.element)


def check_pad(call: Call) -> None:
    operand, value = call.inputs
    low, high, interior = (call.array(name) for name in ("low", "high", "interior"))
    for name, values in (("low", low), ("high", high), ("interior", interior)):
        require_length(name, values, operand)
    require(value.rank == 0, "rank of the padding value", value.rank, 0)
    call.same_element("the padding value", value.element, operand.element)
    require(min(interior, default=0) >= 0, "'interior'", interior, "no negative numbers")
    call.expect_output(pad_shape(operand.shape, low, high, interior), operand.element)


def check_gather(call: Call) -> None:
    table, indices = call.inputs
    require(table.rank >= 1, "rank of the table", table.rank, "at least 1")
    require(indices.rank == 1, "rank of the indices", indices.rank, 1)
    require(
        str(indices.element) in ("i32", "i64"),
        "element type of the indices",
        indices.element,
        "i32 or i64",
    )
    require(table.shape[0] > 0 or indices.count == 0, "rows of the table", 0, "at least 1")
    call.expect_output((*indices.shape, *table.shape[1:]), table.element)


def require_fractal_type(element: Any) -> None:
    require(
        (is_integer(element) or isinstance(element, ir.FloatType)) and element.width in (8, 16, 32),
        "element type",
        element,
        "8, 16 or 32 bits",
    )


def check_view(call: Call) -> None:
    (operand,), (result,) = call.inputs, call.outputs
    if call.buffers:
        raise Invalid("has no form on buffers", "memref", "tensors")
    shape, permutation = call.array("shape"), call.array("permutation")
    require(math.prod(shape) == operand.count, "elements of 'shape'", shape, operand.count)
    require(result.count == operand.count, "number of elements", result.count, operand.count)
    call.same_element("the result", result.element, operand.element)
    require(len(permutation) == len(shape), "number of 'permutation'", permutation, len(shape))
    require_dims("permutation", permutation, len(shape))
    require(
        is_view(operand, result, shape, permutation), "not a view", result, "the operand's bytes"
    )


def check_relayout(call: Call) -> None:
    (operand,) = call.inputs
    if call.buffers:
        raise Invalid("has no form on buffers", "memref", "tensors")
    require_fractal_type(operand.element)
    call.expect_output(operand.shape, operand.element)


def check_fractalize(call: Call) -> None:
    (operand,) = call.inputs
    require_buffers(call)
    require(operand.rank >= 2, "rank of the operand", operand.rank, "at least 2")
    require_fractal_type(operand.element)
    call.expect_output(fractal_shape(operand.shape, operand.element), operand.element)


def check_defractalize(call: Call) -> None:
    (operand,), (result,) = call.inputs, call.outputs
    require_buffers(call)
    require(result.rank >= 2, "rank of the result", result.rank, "at least 2")
    require_fractal_type(result.element)
    expected = fractal_shape(result.shape, result.element)
    require(operand.shape == expected, "shape of the operand", list(operand.shape), list(expected))
    call.same_element("the result", result.element, operand.element)


def require_buffers(call: Call) -> None:
    require(call.buffers, "has no form on tensors", "tensors", "memref, or ascend.relayout")


MATMUL_TYPES = {
    ("f16", "f16"): ("f32", "f16"),
    ("i8", "i8"): ("i32",),
    ("si8", "si8"): ("si32",),
}
"""Element types of A and B, and those the cube can give for them."""


def check_matmul(call: Call) -> None:
    check_product(call, batch=0)


def check_batch_matmul(call: Call) -> None:
    check_product(call, batch=1)


def check_plain_product(call: Call, batch: int) -> None:
    """[.., m, k] times [.., k, n] gives [.., m, n], whatever the layouts."""
    a, b = call.inputs
    for role, operand in (("A", a), ("B", b)):
        require(operand.rank == 2 + batch, f"rank of {role}", operand.rank, 2 + batch)
    require(a.element == b.element, "element type of B", b.element, a.element)
    require(a.shape[:batch] == b.shape[:batch], "batch of B", b.shape[:batch], a.shape[:batch])
    (m, k), (rows, n) = (
        matrix_sizes(operand.shape, call.given(flag) is not None)
        for operand, flag in ((a, TRANSPOSE_A), (b, TRANSPOSE_B))
    )
    require(k == rows, "rows of B", rows, f"{k}, A's columns")
    call.expect_output((*a.shape[:batch], m, n), call.outputs[0].element)


TRANSPOSE_A, TRANSPOSE_B = "transpose_a", "transpose_b"
"""Attributes of products whose operands are given with rows and columns exchanged."""


def matrix_sizes(shape: Sequence[int], transposed: bool) -> tuple[int, int]:
    """Rows and columns that a product takes an operand of this shape to have."""
    rows, columns = shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


def check_product(call: Call, batch: int) -> None:
    """On buffers A [.., k1, m1, 16, c] times B [.., n1, k', 16, c] gives C [.., n1, m1, 16, 16]."""
    a, b = call.inputs
    if not call.buffers:
        check_plain_product(call, batch)
        return
    for role, operand in (("A", a), ("B", b)):
        require_fractal_type(operand.element)
        require(
            operand.rank == 4 + batch
            and operand.shape[-2:] == (FRACTAL_SIDE, lanes(operand.element)),
            f"shape of {role}",
            operand,
            f"rank {4 + batch}, fractals of {FRACTAL_SIDE} x {lanes(operand.element)}",
        )
    key = (str(a.element), str(b.element))
    require(
        key in MATMUL_TYPES,
        "element types of A and B",
        " x ".join(key),
        " or ".join(" x ".join(pair) for pair in MATMUL_TYPES),
    )
    found = str(call.outputs[0].element)
    allowed = MATMUL_TYPES[key]
    require(found in allowed, "element type of the result", found, " or ".join(allowed))
    require(a.shape[:batch] == b.shape[:batch], "batch of B", b.shape[:batch], a.shape[:batch])
    (m, k), (rows, n) = (
        matrix_sizes(stored_sizes(operand), call.given(flag) is not None)
        for operand, flag in ((a, TRANSPOSE_A), (b, TRANSPOSE_B))
    )
    lane = lanes(a.element)
    require(-(-rows // lane) == -(-k // lane), "rows of B", rows, f"{k}, the columns of A")
    # Where fractals have 32 columns, the last 16 may lie beyond the matrix.
    spare = lane // FRACTAL_SIDE - 1
    most = (*a.shape[:batch], n // FRACTAL_SIDE, m // FRACTAL_SIDE, FRACTAL_SIDE, FRACTAL_SIDE)
    least = (*a.shape[:batch], *(x - spare for x in most[batch : batch + 2]), *most[-2:])
    shape = call.outputs[0].shape
    fits = len(shape) == len(most) and all(
        low <= size <= high for low, size, high in zip(least, shape, most, strict=True)
    )
    require(fits, "shape of the result", list(shape), list(most))


def stored_sizes(nz: Tensor) -> tuple[int, int]:
    """Rows and columns of the matrix that an array of fractals holds, with its padding."""
    columns, rows, side, lane = nz.shape[-4:]
    return rows * side, columns * lane
