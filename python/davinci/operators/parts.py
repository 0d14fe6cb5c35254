"""Operators that cut tensors, put them together, and pad them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.constraints import require_dim, require_length
from davinci.operators.core import Array, operator
from davinci.operators.layouts import joined_in_layout, one_layout
from davinci.operators.tensors import Tensor
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import partly_read
from davinci.units import ceil_div


def one_each(*names: str) -> Callable[[Call], None]:
    """The constraint that these attributes are lists with an entry for each dimension."""

    def constraint(call: Call) -> None:
        for name in names:
            require_length(name, call.array(name), call.inputs[0])

    listed = ", ".join(f"`{name}`" for name in names)
    constraint.__doc__ = f"{listed} have an entry for each dimension."
    return constraint


def ranges(call: Call) -> list[tuple[int, int, int]]:
    names = ("starts", "limits", "strides")
    return list(zip(*(call.array(name) for name in names), strict=True))


def ranges_inside(call: Call) -> None:
    """0 <= start <= limit <= size and stride > 0."""
    sizes = call.inputs[0].shape
    for i, (size, (start, limit, stride)) in enumerate(zip(sizes, ranges(call), strict=True)):
        require(
            0 <= start <= limit <= size and stride > 0,
            f"range of dimension {i}",
            f"{start}:{limit}:{stride}",
            f"0 <= start <= limit <= {size}, stride > 0",
        )


def slice_shape(
    starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """Shape of what is left."""
    bounds = zip(starts, limits, strides, strict=True)
    return tuple(ceil_div(limit - start, stride) for start, limit, stride in bounds)


def sliced_shape(call: Call) -> None:
    """The result has the sliced shape and the operand's element type."""
    shape = slice_shape(*(call.array(name) for name in ("starts", "limits", "strides")))
    call.expect_output(shape, call.inputs[0].element)


def stepped(call: Call) -> Windows:
    read = (WindowDim(i, stride, offset=start) for i, (start, _, stride) in enumerate(ranges(call)))
    return Windows(axes_of_result(call), in_order(call.outputs[0].rank), (tuple(read),))


@operator(
    windows=stepped,
    constraints=(one_each("starts", "limits", "strides"), ranges_inside, sliced_shape),
    work=partly_read,
    layouts=one_layout,
)
def slice_(
    a: Array, *, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> Array:
    """Elements starts[i], starts[i] + strides[i], ... below limits[i]."""
    bounds = zip(starts, limits, strides, strict=True)
    return a[tuple(slice(*bound) for bound in bounds)]


def dim_of_operands(call: Call) -> None:
    """`dim` is a dimension of the operands."""
    require_dim(call, call.inputs[0].rank)


def equal_but_for_dim(call: Call) -> None:
    """Operands have equal shapes but for `dim`, and equal element types."""
    first, dim = call.inputs[0], call.integer("dim")
    for i, operand in enumerate(call.inputs):
        expected = list(first.shape)
        if operand.rank == first.rank:
            expected[dim] = operand.shape[dim]
        require(list(operand.shape) == expected, f"shape of operand {i}", operand, expected)
        call.same_element(f"operand {i}", operand.element, first.element)


def joined_shape(call: Call) -> None:
    """The result is as long as both along `dim`."""
    first, dim = call.inputs[0], call.integer("dim")
    shape = list(first.shape)
    shape[dim] = sum(operand.shape[dim] for operand in call.inputs)
    call.expect_output(shape, first.element)


def joined(call: Call) -> Windows:
    """Each operand begins where the one before ends."""
    dim, dims = call.integer("dim"), in_order(call.outputs[0].rank)
    read, start = [], 0
    for operand in call.inputs:
        read.append((*dims[:dim], WindowDim(dim, offset=-start), *dims[dim + 1 :]))
        start += operand.shape[dim]
    return Windows(axes_of_result(call), dims, tuple(read))


@operator(
    windows=joined,
    constraints=(dim_of_operands, equal_but_for_dim, joined_shape),
    layouts=joined_in_layout,
)
def concat(a: Array, b: Array, *, dim: int) -> Array:
    """The second operand behind the first along `dim`."""
    return np.concatenate([a, b], dim)


def value_of_rank_zero(call: Call) -> None:
    """The value has rank 0 and the operand's element type."""
    operand, value = call.inputs
    require(value.rank == 0, "rank of the padding value", value.rank, 0)
    call.same_element("the padding value", value.element, operand.element)


def interior_not_negative(call: Call) -> None:
    """`interior` is not negative."""
    interior = call.array("interior")
    require(min(interior, default=0) >= 0, "'interior'", interior, "no negative numbers")


def pad_shape(
    shape: Sequence[int], low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> tuple[int, ...]:
    """Shape of a padded array."""
    return tuple(
        n + before + after + max(0, n - 1) * between
        for n, before, after, between in zip(shape, low, high, interior, strict=True)
    )


def padded_shape(call: Call) -> None:
    """The result has the padded shape and the operand's element type."""
    operand: Tensor = call.inputs[0]
    lists = (call.array(name) for name in ("low", "high", "interior"))
    call.expect_output(pad_shape(operand.shape, *lists), operand.element)


def shifted(call: Call) -> Windows:
    """Windows of a pad: the elements that a part shows, or all of a dimension whose elements are
    drawn apart."""
    (operand, _), (result,) = call.inputs, call.outputs
    places = zip(operand.shape, call.array("low"), call.array("interior"), strict=True)
    read = (
        whole(size) if between else WindowDim(i, offset=-low)
        for i, (size, low, between) in enumerate(places)
    )
    return Windows(axes_of_result(call), in_order(result.rank), (tuple(read), ()))


@operator(
    windows=shifted,
    constraints=(
        one_each("low", "high", "interior"),
        value_of_rank_zero,
        interior_not_negative,
        padded_shape,
    ),
)
def pad(
    a: Array,
    value: Array,
    *,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int],
    result: Tensor,
) -> Any:
    """Puts `low` values before, `high` after and `interior` between; negative ones cut off."""
    spread = [max(0, n + max(0, n - 1) * i) for n, i in zip(a.shape, interior, strict=True)]
    opened = np.full(spread, value, a.dtype)
    opened[tuple(slice(None, None, i + 1) for i in interior)] = a
    padded = np.full(result.shape, value, a.dtype)
    source = [
        slice(max(0, -lo), min(n, -lo + size))
        for lo, n, size in zip(low, spread, result.shape, strict=True)
    ]
    target = [slice(s.start + lo, s.stop + lo) for s, lo in zip(source, low, strict=True)]
    if all(s.stop > s.start for s in source):
        padded[tuple(target)] = opened[tuple(source)]
    return padded
