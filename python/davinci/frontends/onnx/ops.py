"""StableHLO as functions on `Tensor`: what lowerings of ONNX operators are written in.

Shapes of results are computed here; axes may be negative. Functions named as NumPy's mean the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from davinci.frontends.onnx.tensor import (
    Invalid,
    Operand,
    Tensor,
    binary,
    bounds,
    broadcast,
    constant,
    emit,
    emit_all,
    is_float,
    spread,
    typed,
    unary,
)

BOOL = np.dtype(np.bool_)


def axis_of(axis: int, rank: int) -> int:
    """`axis` counted from the front.

    Raises:
        Invalid: it is not one of `rank` dimensions.
    """
    if not -rank <= axis < rank:
        raise Invalid(
            f"axis {axis} is not one of a tensor of rank {rank}", f"{-rank} to {rank - 1}"
        )
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front, in ascending order.

    Raises:
        Invalid: one is none of `rank` dimensions, or given twice.
    """
    found = sorted(axis_of(int(axis), rank) for axis in axes)
    if len(set(found)) != len(found):
        raise Invalid(f"axes {list(axes)} name a dimension twice")
    return found


# Elementwise.


def full(shape: Sequence[int], dtype: Any, value: Any) -> Tensor:
    return broadcast(constant(np.asarray(value).astype(dtype)), shape)


def like(x: Tensor, value: Any) -> Tensor:
    """A tensor of the shape and type of `x` with one value everywhere."""
    return full(x.shape, x.dtype, value)


def maximum(a: Operand, b: Operand) -> Tensor:
    return binary("maximum", a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    return binary("minimum", a, b)


def power(a: Operand, b: Operand) -> Tensor:
    return binary("power", a, b)


def remainder(a: Operand, b: Operand) -> Tensor:
    """With the sign of the dividend, as C's fmod."""
    return binary("remainder", a, b)


def absolute(x: Tensor) -> Tensor:
    return x if x.is_unsigned or x.dtype == BOOL else unary("abs", x)


def exp(x: Tensor) -> Tensor:
    return unary("exponential", x)


def log(x: Tensor) -> Tensor:
    return unary("log", x)


def sqrt(x: Tensor) -> Tensor:
    return unary("sqrt", x)


def tanh(x: Tensor) -> Tensor:
    return unary("tanh", x)


def sigmoid(x: Tensor) -> Tensor:
    return unary("logistic", x)


def floor(x: Tensor) -> Tensor:
    return unary("floor", x)


def round_half_even(x: Tensor) -> Tensor:
    return unary("round_nearest_even", x)


def erf(x: Tensor) -> Tensor:
    return unary("chlo.erf", x)


def compare(direction: str, a: Operand, b: Operand) -> Tensor:
    """Booleans; `direction` is EQ, NE, LT, LE, GT or GE."""
    a, b = spread(*typed(a, b))
    return emit(
        "compare",
        [a, b],
        BOOL,
        a.shape,
        comparison_direction=f"#stablehlo<comparison_direction {direction}>",
    )


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """Elements of `a` where `condition` holds, else of `b`; all three broadcast."""
    a, b = typed(a, b)
    condition, a, b = spread(condition, a, b)
    return emit("select", [condition, a, b], a.dtype, a.shape)


def clip(x: Tensor, low: Operand, high: Operand) -> Tensor:
    """Elements between `low` and `high`, each a number or of rank 0 or the shape of `x`."""
    x, low, high = typed(x, low, high)
    return minimum(maximum(x, low), high)


def is_nan(x: Tensor) -> Tensor:
    return compare("NE", x, x)


def is_zero(x: Tensor) -> Tensor:
    return compare("EQ", x, 0)


def as_bool(x: Tensor) -> Tensor:
    """Whether elements are not zero; NaN is not."""
    return x if x.dtype == BOOL else compare("NE", x, 0)


def bitcast(x: Tensor, dtype: Any) -> Tensor:
    """The same bits as another type of the same width."""
    return emit("bitcast_convert", [x], dtype, x.shape)


# Shapes.


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same elements, row-major.

    Raises:
        Invalid: `shape` holds another number of elements.
    """
    if math.prod(shape) != x.count:
        raise Invalid(f"{x.count} elements cannot take the shape {list(shape)}")
    return x if x.shape == tuple(shape) else emit("reshape", [x], x.dtype, shape)


def expand_dims(x: Tensor, axes: Sequence[int]) -> Tensor:
    """`x` with dimensions of size 1 at `axes` of the result."""
    rank = x.rank + len(axes)
    new, sizes = axes_of(axes, rank), iter(x.shape)
    return reshape(x, [1 if i in new else next(sizes) for i in range(rank)])


def squeeze(x: Tensor, axes: Sequence[int]) -> Tensor:
    """`x` without the dimensions `axes`, which have size 1."""
    gone = axes_of(axes, x.rank)
    if any(x.shape[i] != 1 for i in gone):
        raise Invalid(f"dimensions {gone} of shape {list(x.shape)} are not all of size 1")
    return reshape(x, [size for i, size in enumerate(x.shape) if i not in gone])


def transpose(x: Tensor, order: Sequence[int]) -> Tensor:
    """Dimension i of the result is dimension order[i] of `x`."""
    if list(order) == list(range(x.rank)):
        return x
    if sorted(order) != list(range(x.rank)):
        raise Invalid(f"{list(order)} is no order of {x.rank} dimensions")
    return emit("transpose", [x], x.dtype, [x.shape[i] for i in order], permutation=list(order))


def move_axis(x: Tensor, source: int, target: int) -> Tensor:
    order = [i for i in range(x.rank) if i != axis_of(source, x.rank)]
    order.insert(axis_of(target, x.rank), axis_of(source, x.rank))
    return transpose(x, order)


def cut(
    x: Tensor,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tensor:
    """A slice with non-negative bounds and positive strides, for every dimension."""
    steps = list(strides or [1] * x.rank)
    shape = [max(0, -((a - b) // s)) for a, b, s in zip(starts, limits, steps, strict=True)]
    if tuple(shape) == x.shape:
        return x
    limits = [max(a, b) for a, b in zip(starts, limits, strict=True)]
    return emit(
        "slice",
        [x],
        x.dtype,
        shape,
        start_indices=list(starts),
        limit_indices=list(limits),
        strides=steps,
    )


def cut_axis(x: Tensor, axis: int, start: int, limit: int, stride: int = 1) -> Tensor:
    """A slice of one dimension."""
    at = axis_of(axis, x.rank)
    starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[at], limits[at], strides[at] = start, limit, stride
    return cut(x, starts, limits, strides)


def split(x: Tensor, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    """Parts of these sizes along an axis."""
    if sum(sizes) != x.shape[axis]:
        raise Invalid(f"parts of {list(sizes)} do not make {x.shape[axis]}")
    ends = np.cumsum([0, *sizes]).tolist()
    return [cut_axis(x, axis, a, b) for a, b in pairwise(ends)]


def unstack(x: Tensor, axis: int) -> list[Tensor]:
    """The slices of an axis, without it."""
    return [squeeze(part, [axis]) for part in split(x, axis, [1] * x.shape[axis])]


def concat(parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of one type behind each other along an axis."""
    parts = typed(*parts)
    at = axis_of(axis, parts[0].rank)
    if len({t.shape[:at] + t.shape[at + 1 :] for t in parts}) > 1:
        text = ", ".join(str(list(t.shape)) for t in parts)
        raise Invalid(f"shapes {text} differ outside of axis {at}")
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[at] = sum(t.shape[at] for t in parts)
    return emit("concatenate", parts, parts[0].dtype, shape, dimension=at)


def stack(parts: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    at = axis_of(axis, parts[0].rank + 1)
    return concat([expand_dims(part, [at]) for part in parts], at)


def pad(
    x: Tensor,
    low: Sequence[int],
    high: Sequence[int],
    value: Operand = 0,
    interior: Sequence[int] | None = None,
) -> Tensor:
    """`x` with `value` around it (negative padding cuts) and between its elements."""
    inner = list(interior or [0] * x.rank)
    if not any(low) and not any(high) and not any(inner):
        return x
    shape = [
        n + a + b + max(0, n - 1) * i for n, a, b, i in zip(x.shape, low, high, inner, strict=True)
    ]
    x, filler = typed(x, value)
    return emit(
        "pad",
        [x, filler],
        x.dtype,
        shape,
        edge_padding_low=list(low),
        edge_padding_high=list(high),
        interior_padding=inner,
    )


def reverse(x: Tensor, axes: Sequence[int]) -> Tensor:
    return emit("reverse", [x], x.dtype, x.shape, dimensions=axes_of(axes, x.rank))


def iota(dtype: Any, shape: Sequence[int], axis: int) -> Tensor:
    """The index along an axis."""
    return emit("iota", [], dtype, shape, iota_dimension=axis)


# Reductions.


def lowest(dtype: Any) -> Any:
    """The neutral element of a maximum: -inf, or the least value."""
    if np.dtype(dtype) == BOOL:
        return False
    return -np.inf if is_float(dtype) else bounds(dtype)[0]


def highest(dtype: Any) -> Any:
    """The neutral element of a minimum."""
    if np.dtype(dtype) == BOOL:
        return True
    return np.inf if is_float(dtype) else bounds(dtype)[1]


NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: 0,
    "multiply": lambda dtype: 1,
    "maximum": lowest,
    "minimum": highest,
    "and": lambda dtype: True,
    "or": lambda dtype: False,
}


def reduce(name: str, x: Tensor, axes: Sequence[int], keepdims: bool = False) -> Tensor:
    """Over some axes, with `add`, `multiply`, `maximum`, `minimum`, `and` or `or`.

    Over no elements the result is the neutral one.
    """
    gone = axes_of(axes, x.rank)
    kept = [size for i, size in enumerate(x.shape) if i not in gone]
    result = x
    if gone:
        start = constant(np.asarray(NEUTRAL[name](x.dtype)).astype(x.dtype))
        scalar = (x.dtype, ())
        body = ([scalar, scalar], lambda a, b: [binary(name, a, b)])
        results = [(x.dtype, kept)]
        result = emit_all("reduce", [x, start], results, [body], dimensions=gone)[0]
    return expand_dims(result, gone) if keepdims else result


def mean(x: Tensor, axes: Sequence[int], keepdims: bool = False) -> Tensor:
    """Average over some axes, of floats."""
    count = math.prod(x.shape[i] for i in axes_of(axes, x.rank))
    return reduce("add", x, axes, keepdims) / count


def softmax(x: Tensor, axis: int) -> Tensor:
    shifted = exp(x - reduce("maximum", x, [axis], keepdims=True))
    return shifted / reduce("add", shifted, [axis], keepdims=True)


# Products.


def dot_general(
    a: Tensor,
    b: Tensor,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    dtype: Any = None,
) -> Tensor:
    """StableHLO's product: [batch.., free of a.., free of b..].

    Args:
        contract, batch: dimensions of `a` and of `b`.
        dtype: of the result, that of `a` if not given.
    """

    def free(x: Tensor, side: int) -> list[int]:
        taken = {*contract[side], *batch[side]}
        return [size for i, size in enumerate(x.shape) if i not in taken]

    shape = [*(a.shape[i] for i in batch[0]), *free(a, 0), *free(b, 1)]
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    numbers = ", ".join(
        f"{name}_dimensions = {list(dims)}"
        for name, dims in zip(names, (*batch, *contract), strict=True)
        if dims
    )
    return emit(
        "dot_general",
        [a, b],
        dtype or a.dtype,
        shape,
        dot_dimension_numbers=f"#stablehlo.dot<{numbers}>",
    )


def matmul(a: Tensor, b: Tensor, dtype: Any = None) -> Tensor:
    """NumPy's matmul: stacks of matrices broadcast, vectors are rows and columns.

    Raises:
        Invalid: the shapes do not fit.
    """
    if not a.rank or not b.rank:
        raise Invalid("a factor has no dimensions", "vectors or matrices")
    rows = a if a.rank > 1 else expand_dims(a, [0])
    columns = b if b.rank > 1 else expand_dims(b, [1])
    if rows.shape[-1] != columns.shape[-2]:
        raise Invalid(f"{rows.shape[-1]} columns and {columns.shape[-2]} rows do not fit")
    product = _stacks(rows, columns, dtype)
    gone = ([] if a.rank > 1 else [product.rank - 2]) + ([] if b.rank > 1 else [product.rank - 1])
    return squeeze(product, gone)


def _stacks(a: Tensor, b: Tensor, dtype: Any) -> Tensor:
    """A product of matrices; one matrix on the right (a weight) is not repeated for the stack."""
    if math.prod(b.shape[:-2]) == 1:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:])
        left, right = reshape(a, shape), reshape(b, b.shape[-2:])
        return dot_general(left, right, ([left.rank - 1], [0]), dtype=dtype)
    try:
        stack_shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise Invalid(f"shapes {list(a.shape)} and {list(b.shape)} do not broadcast") from None
    a = broadcast(a, (*stack_shape, *a.shape[-2:]))
    b = broadcast(b, (*stack_shape, *b.shape[-2:]))
    rank = a.rank
    dims = list(range(rank - 2))
    return dot_general(a, b, ([rank - 1], [rank - 2]), (dims, dims), dtype)


# Indexing.


def take(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """NumPy's `take`: [..before axis, ..shape of indices, ..behind axis].

    Indices outside of [-n, n) are the caller's fault: they are clamped, as StableHLO does.
    """
    at = axis_of(axis, x.rank)
    shape = [*x.shape[:at], *indices.shape, *x.shape[at + 1 :]]
    offsets = [*range(at), *range(at + indices.rank, len(shape))]
    sizes = [1 if i == at else size for i, size in enumerate(x.shape)]
    numbers = (
        f"offset_dims = {offsets}, collapsed_slice_dims = [{at}], "
        f"start_index_map = [{at}], index_vector_dim = {indices.rank}"
    )
    return gather(x, indices, numbers, sizes, shape)


def gather(
    x: Tensor, indices: Tensor, numbers: str, sizes: Sequence[int], shape: Sequence[int]
) -> Tensor:
    """StableHLO's gather; `numbers` is the text inside of `#stablehlo.gather<..>`."""
    return emit(
        "gather",
        [x, indices],
        x.dtype,
        shape,
        dimension_numbers=f"#stablehlo.gather<{numbers}>",
        slice_sizes=list(sizes),
    )


def wrap_indices(indices: Tensor, size: int) -> Tensor:
    """Negative indices count from the end."""
    if indices.known is not None:
        return constant(np.where(indices.known < 0, indices.known + size, indices.known))
    return where(compare("LT", indices, 0), indices + size, indices)


def scatter(
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    numbers: str,
    combine: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """StableHLO's scatter; `combine(old, update)` gives what is stored."""
    scalar = (x.dtype, ())
    body = ([scalar, scalar], lambda old, new: [combine(old, new)])
    return emit_all(
        "scatter",
        [x, indices, updates],
        [(x.dtype, x.shape)],
        [body],
        scatter_dimension_numbers=f"#stablehlo.scatter<{numbers}>",
    )[0]


def sort(
    operands: Sequence[Tensor], axis: int, before: Callable[..., Tensor], stable: bool = True
) -> list[Tensor]:
    """Sorts tensors of one shape together along an axis.

    Args:
        before: whether an element comes first; takes two elements of each operand, in turn.
    """
    arguments = [(t.dtype, ()) for t in operands for _ in range(2)]
    return emit_all(
        "sort",
        operands,
        [(t.dtype, t.shape) for t in operands],
        [(arguments, lambda *elements: [before(*elements)])],
        dimension=axis_of(axis, operands[0].rank),
        is_stable=stable,
    )


def while_loop(
    holds: Callable[..., Tensor],
    step: Callable[..., Sequence[Tensor]],
    start: Sequence[Tensor],
) -> list[Tensor]:
    """Repeats `step` on what it carries while `holds` gives true; shapes do not change."""
    carried = [(t.dtype, t.shape) for t in start]
    return emit_all("while", start, carried, [(carried, lambda *x: [holds(*x)]), (carried, step)])


def branch(
    condition: Tensor,
    then: Callable[[], Sequence[Tensor]],
    otherwise: Callable[[], Sequence[Tensor]],
    results: Sequence[tuple[Any, Sequence[int]]],
) -> list[Tensor]:
    """What `then` builds if `condition` (rank 0) holds, else what `otherwise` does."""
    return emit_all("if", [condition], results, [([], then), ([], otherwise)])
