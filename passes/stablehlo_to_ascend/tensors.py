"""Builders of StableHLO operations on tensors, at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from davinci.elements import Array, scalar_attribute, to_attribute
from davinci.mlir import ir
from davinci.passes import builder


def op(name: str, operands: Sequence[ir.Value], kind: ir.Type, **attributes: Any) -> ir.Value:
    """The result, of the type `kind`, of the operation `stablehlo.name`."""
    return builder.op(f"stablehlo.{name}", operands, [kind], **attributes).result


def full(kind: ir.RankedTensorType, number: float) -> ir.Value:
    """A constant that is `number` everywhere."""
    splat = ir.DenseElementsAttr.get_splat(kind, scalar_attribute(number, kind.element_type))
    return op("constant", [], kind, value=splat)


def constant(array: Array, element: ir.Type) -> ir.Value:
    """A constant of known numbers, of an element type."""
    value = to_attribute(array, element)
    return op("constant", [], value.type, value=value)


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    return op("add", [a, b], a.type)


def subtract(a: ir.Value, b: ir.Value) -> ir.Value:
    return op("subtract", [a, b], a.type)


def multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    return op("multiply", [a, b], a.type)


def divide(a: ir.Value, b: ir.Value) -> ir.Value:
    return op("divide", [a, b], a.type)


def compare(direction: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """Flags that say where a stands in a relation to b, "LT" or "NE" for example, of two tensors of
    floats or of integers."""
    flags = ir.RankedTensorType.get(a.type.shape, ir.IntegerType.get_signless(1))
    how = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    return op("compare", [a, b], flags, comparison_direction=how)


def select(flag: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return op("select", [flag, a, b], a.type)


def sqrt(x: ir.Value) -> ir.Value:
    return op("sqrt", [x], x.type)


def rsqrt(x: ir.Value) -> ir.Value:
    return op("rsqrt", [x], x.type)


def broadcast(x: ir.Value, kind: ir.Type, dims: list[int]) -> ir.Value:
    return op("broadcast_in_dim", [x], kind, broadcast_dimensions=dims)


def reshape(x: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The elements of `x` in their order, in dimensions of other sizes."""
    return op("reshape", [x], ir.RankedTensorType.get(shape, x.type.element_type))


def cut(x: ir.Value, dim: int, start: int, limit: int) -> ir.Value:
    """Indices of a dimension from `start` to `limit`; `x` itself if these are all."""
    shape = list(x.type.shape)
    if (start, limit) == (0, shape[dim]):
        return x
    starts = [start if d == dim else 0 for d in range(len(shape))]
    limits = [limit if d == dim else n for d, n in enumerate(shape)]
    shape[dim] = limit - start
    kind = ir.RankedTensorType.get(shape, x.type.element_type)
    places = {"start_indices": starts, "limit_indices": limits, "strides": [1] * len(shape)}
    return op("slice", [x], kind, **places)


def concatenate(parts: Sequence[ir.Value], dim: int) -> ir.Value:
    """Parts one behind the other along a dimension; the part itself if it is one."""
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].type.shape)
    shape[dim] = sum(part.type.shape[dim] for part in parts)
    kind = ir.RankedTensorType.get(shape, parts[0].type.element_type)
    return op("concatenate", parts, kind, dimension=dim)


def transpose(x: ir.Value, permutation: list[int]) -> ir.Value:
    """`x`, or itself if nothing moves."""
    if permutation == sorted(permutation):
        return x
    kind = ir.RankedTensorType.get([x.type.shape[i] for i in permutation], x.type.element_type)
    return op("transpose", [x], kind, permutation=permutation)


def dot(
    a: ir.Value,
    b: ir.Value,
    kind: ir.Type,
    left_batch: list[int],
    right_batch: list[int],
    left_inner: list[int],
    right_inner: list[int],
) -> ir.Value:
    """A `dot_general`; batch and inner dimensions of both factors."""
    numbers = dimension_numbers(left_batch, right_batch, left_inner, right_inner)
    return op("dot_general", [a, b], kind, dot_dimension_numbers=numbers)


def dimension_numbers(
    left_batch: list[int], right_batch: list[int], left_inner: list[int], right_inner: list[int]
) -> ir.Attribute:
    """Which dimensions of the factors of a `dot_general` are of the batch, and which inner ones."""
    return ir.Attribute.parse(
        f"#stablehlo.dot<lhs_batching_dimensions = {left_batch}, rhs_batching_dimensions = "
        f"{right_batch}, lhs_contracting_dimensions = {left_inner}, rhs_contracting_dimensions = "
        f"{right_inner}>"
    )


def total(x: ir.Value, dims: list[int]) -> ir.Value:
    """The sum over dimensions."""
    element = x.type.element_type
    shape = [n for d, n in enumerate(x.type.shape) if d not in dims]
    scalar = ir.RankedTensorType.get([], element)
    reduction = ir.Operation.create(
        "stablehlo.reduce",
        results=[ir.RankedTensorType.get(shape, element)],
        operands=[x, full(scalar, 0)],
        attributes={"dimensions": builder.as_attribute(dims)},
        regions=1,
    )
    here = ir.Location.current
    block = reduction.regions[0].blocks.append(scalar, scalar, arg_locs=[here, here])
    with ir.InsertionPoint(block):
        builder.op("stablehlo.return", [add(*block.arguments)])
    return reduction.result
