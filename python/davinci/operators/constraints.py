"""Constraints that several operators share.

A constraint is a function that raises `Invalid` where a call breaks it. Its docstring says it, and
its place among those of an operator numbers it, C1, C2, ..., in messages, pages and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.tensors import Tensor, is_float, is_integer

Constraint = Callable[[Call], None]


def same_types(call: Call) -> None:
    """Operands and result have one type."""
    first = call.inputs[0]
    for i, operand in enumerate(call.inputs[1:], 1):
        require(operand == first, f"type of operand {i}", operand, first)
    call.expect_output(first.shape, first.element)


def converts(source: str, result: str) -> Constraint:
    """The constraint that the operand has one type of elements, and the result another one."""

    def constraint(call: Call) -> None:
        call.same_element("the operand", call.inputs[0].element, source)
        call.expect_output(call.inputs[0].shape, result)

    constraint.__doc__ = f"The operand is {source}, the result {result} of its shape."
    return constraint


def floats_only(call: Call) -> None:
    """Elements are floats."""
    found = call.inputs[0].element
    require(is_float(found), "element type", found, "float elements")


def integers_only(call: Call) -> None:
    """Elements are integers or booleans."""
    found = call.inputs[0].element
    require(is_integer(found), "element type", found, "integer elements")


def same_shape(call: Call) -> None:
    """Operand and result have one shape."""
    call.expect_output(call.inputs[0].shape, call.outputs[0].element)


def require_length(name: str, values: Sequence[int], tensor: Tensor) -> None:
    """One value a dimension."""
    expected = f"{tensor.rank}, one a dimension of the operand"
    require(len(values) == tensor.rank, f"number of '{name}'", len(values), expected)


def require_dims(name: str, dims: Sequence[int], rank: int) -> None:
    """Distinct dimensions of a tensor of that rank."""
    distinct = len(set(dims)) == len(dims) and all(0 <= d < rank for d in dims)
    require(distinct, f"'{name}'", list(dims), f"distinct dimensions below {rank}")


def require_dim(call: Call, rank: int) -> None:
    """The attribute `dim` is a dimension of a tensor of that rank."""
    dim = call.integer("dim")
    require(0 <= dim < rank, "'dim'", dim, f"a dimension below {rank}")
