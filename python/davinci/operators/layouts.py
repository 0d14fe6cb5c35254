"""Layouts of operands and results on tensors, what is a mere view, and the rules of operators.

A value takes an array in GM whose order is its layout's. Each of its dimensions is a list of
factors (size, stride), the major one first, strides counted in elements of that array:

    512x768 in rows: [(512, 768)] [(768, 1)]
    512x768 in nz:   [(512, 16)] [(48, 8192), (16, 1)]

Reshapes, transposes and slices regroup, permute and shorten factors. If that gives the factors of
the result, the bytes lie where the result wants them: it is a view of its operand. So heads are
split in nz: [512, 768] -> [512, 12, 64] -> [12, 512, 64].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.tensors import ND, NZ, Tensor, lanes
from davinci.units import FRACTAL_SIDE, ceil_div, row_major

VIEWS_KEPT = 1024
"""Reshapes that are asked about again and again."""


@dataclass(frozen=True)
class Factor:
    """A part of a dimension.

    Attributes:
        size: how many indices.
        stride: from one to the next, in elements.
        run: 0; or indices i lie at i // run * stride + i % run, and the last run is not full.
    """

    size: int
    stride: int
    run: int = 0


Factors = list[list[Factor]]
"""The factors of each dimension."""


@dataclass(frozen=True)
class NeighbourSteps:
    """How far apart neighbours lie in an array, in elements.

    Attributes:
        strides: of each dimension; in nz, of the last one that of its runs.
        run: 0 in rows; in nz how many indices of the last dimension lie side by side.
    """

    strides: tuple[int, ...]
    run: int = 0


def steps(tensor: Tensor) -> NeighbourSteps:
    """The steps through the array that stores a value."""
    if tensor.layout == ND:
        return NeighbourSteps(row_major(tensor.shape))
    stored, batch = tensor.stored_shape, tensor.rank - 2
    *leading, column = row_major(stored)[: batch + 1]
    return NeighbourSteps((*leading, stored[-1], column), stored[-1])


def factors(shape: Sequence[int], at: NeighbourSteps) -> Factors:
    """Where the elements of a tensor of that shape lie, if it is or is part of an array."""
    found = [normal([Factor(size, step)]) for size, step in zip(shape, at.strides, strict=True)]
    if at.run:
        n, column = shape[-1], at.strides[-1]
        ragged = n > at.run and n % at.run
        parts = [Factor(ceil_div(n, at.run), column), Factor(min(n, at.run), 1)]
        found[-1] = normal([Factor(n, column, at.run)] if ragged else parts)
    return found


def normal(dimension: Sequence[Factor]) -> list[Factor]:
    """Without factors of one index, neighbours joined where they are one."""
    found: list[Factor] = []
    for factor in dimension:
        if factor.size == 1:
            continue
        last = found[-1] if found else None
        if last and not (last.run or factor.run) and last.stride == factor.size * factor.stride:
            found[-1] = Factor(last.size * factor.size, factor.stride)
        else:
            found.append(factor)
    return found


def regrouped(dimensions: Factors, shape: Sequence[int]) -> Factors | None:
    """The factors of a row-major reshape to `shape`; None where it would cut through a factor."""
    left = normal([factor for dimension in dimensions for factor in dimension])
    found: Factors = []
    for size in reversed(shape):
        dimension: list[Factor] = []
        while size > 1:
            if not left:
                return None
            factor = left.pop()
            if size % factor.size == 0:
                dimension.insert(0, factor)
                size //= factor.size
            elif factor.size % size == 0 and not factor.run:
                dimension.insert(0, Factor(size, factor.stride))
                left.append(Factor(factor.size // size, factor.stride * size))
                size = 1
            else:
                return None
        found.insert(0, normal(dimension))
    return found


def is_view(
    operand: Tensor, result: Tensor, shape: Sequence[int], permutation: Sequence[int]
) -> bool:
    """Whether reshape to `shape`, transpose and reshape to the result leave all bytes in place."""
    if not operand.count or math.prod(operand.stored_shape) != math.prod(result.stored_shape):
        return False
    split = regrouped(factors(operand.shape, steps(operand)), shape)
    if split is None:
        return False
    joined = regrouped([split[i] for i in permutation], result.shape)
    return joined == factors(result.shape, steps(result))


@lru_cache(VIEWS_KEPT)
def is_reshape_view(operand: Tensor, result: Tensor) -> bool:
    """Whether a reshape leaves all bytes in place; in rows it always does."""
    return is_view(operand, result, operand.shape, range(operand.rank))


def slice_offset(
    operand: Tensor, result: Tensor, starts: Sequence[int], strides: Sequence[int]
) -> int | None:
    """Where in its operand's array a slice lies, in elements; None unless it is a view of it."""
    if not result.count or not is_dense(result.shape, strides):
        return None
    at = steps(operand)
    if factors(result.shape, at) != factors(result.shape, steps(result)):
        return None
    if not at.run:
        return sum(start * step for start, step in zip(starts, at.strides, strict=True))
    limits = [start + size for start, size in zip(starts, result.shape, strict=True)]
    if not is_whole(operand, starts, limits, strides):
        return None
    places = [*starts[:-1], starts[-1] // at.run]
    return sum(place * step for place, step in zip(places, at.strides, strict=True))


def is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a slice of these sizes leaves nothing out."""
    return all(step == 1 or size <= 1 for size, step in zip(sizes, strides, strict=True))


def is_whole(
    operand: Tensor, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> bool:
    """Whether a slice in nz takes whole fractals, or the last ones as far as they go.

    What pads those is zero, as it is in the result.
    """
    units = (*(1 for _ in starts[:-2]), FRACTAL_SIDE, lanes(operand.element))
    bounds = zip(starts, limits, operand.shape, units, strict=True)
    sizes = [limit - start for start, limit in zip(starts, limits, strict=True)]
    return is_dense(sizes, strides) and all(
        start % unit == 0 and (limit % unit == 0 or limit == size)
        for start, limit, size, unit in bounds
    )


def any_layout(call: Call) -> None:
    """Operands and result have any layout."""


def one_layout(call: Call) -> None:
    """Operands and result have one layout; fractals of bytes have more columns than others."""
    allowed = {call.inputs[0].layout}
    require_layouts(call, allowed, allowed)


def view_in_layout(call: Call) -> None:
    """Operand and result have one layout; in nz all bytes stay where they are."""
    one_layout(call)
    (operand,), (result,) = call.inputs, call.outputs
    in_place = result.layout == ND or is_reshape_view(operand, result)
    require(in_place, "not a view", result, "the operand's bytes")


def joins_blocks(operands: Sequence[Tensor], dim: int) -> bool:
    """Whether arrays in nz that are joined along a dimension are parts of the result's array: along
    columns all but the last are whole fractals."""
    if dim != operands[0].rank - 1:
        return dim < operands[0].rank - 2
    return all(operand.shape[-1] % lanes(operand.element) == 0 for operand in operands[:-1])


def joined_in_layout(call: Call) -> None:
    """Operands and result have one layout; in nz operands are parts of the result's array."""
    one_layout(call)
    in_place = call.outputs[0].layout == ND or joins_blocks(call.inputs, call.integer("dim"))
    require(in_place, "what is joined", list(call.inputs), "whole fractals")


def rows_or_that_of_result(call: Call) -> None:
    """The operand has rows or the result's layout."""
    require_layouts(call, {ND, call.outputs[0].layout}, {ND, NZ})


def rows_unless_kept(call: Call) -> None:
    """The result has rows, or the operand's layout if the last two dimensions are kept."""
    (operand,) = call.inputs
    kept = max(call.array("dims"), default=-1) < operand.rank - 2
    require_layouts(call, {ND, NZ}, {ND, operand.layout} if kept else {ND})


def rows_only(call: Call) -> None:
    """Operands and result have rows."""
    require_layouts(call, {ND}, {ND})


def require_layouts(call: Call, of_operands: set[str], of_result: set[str]) -> None:
    """Layouts are among these; on buffers there are none."""
    for number, operand in enumerate(call.inputs):
        require_layout(f"operand {number}", operand, of_operands)
    require_layout("the result", call.outputs[0], of_result)


def require_layout(role: str, tensor: Tensor, allowed: set[str]) -> None:
    names = " or ".join(sorted(layout or "rows" for layout in allowed))
    require(tensor.layout in allowed, f"layout of {role}", tensor.layout or "rows", names)
