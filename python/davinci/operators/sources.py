"""Operators without operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.element_types import dtype_of
from davinci.errors import Invalid, require
from davinci.operators.call import Call, missing
from davinci.operators.constraints import require_dim
from davinci.operators.core import NONE, Array, operator
from davinci.operators.layouts import any_layout
from davinci.operators.tensors import Tensor
from davinci.operators.windows import same_place


def number_of_element_type(call: Call) -> None:
    """`value` is a typed integer or float of the element type."""
    value, kind = call.attributes.get("value"), call.typed.get("value")
    if kind is None or not isinstance(value, (bool, int, float)):
        raise Invalid("attribute 'value'", missing(value), "a typed integer or float")
    call.same_element("value", kind.element, call.outputs[0].element)


@operator(windows=same_place, constraints=(number_of_element_type,), unit=NONE, layouts=any_layout)
def full(*, value: float, result: Tensor) -> Array:
    """The same value everywhere."""
    return np.broadcast_to(np.asarray(value, dtype_of(result.element)), result.shape)


def elements_of_array(call: Call) -> None:
    """`value` is an elements attribute: the array that the result takes in GM in its layout."""
    value, kind = call.attributes.get("value"), call.typed.get("value")
    if kind is None or isinstance(value, (bool, int, float)):
        raise Invalid("attribute 'value'", missing(value), "an elements attribute")
    (result,) = call.outputs
    found, expected = list(kind.shape), list(result.stored_shape)
    require(found == expected, "shape of 'value'", found, expected)
    call.same_element("'value'", kind.element, result.element)


@operator(windows=same_place, constraints=(elements_of_array,), unit=NONE, layouts=any_layout)
def constant(*, value: Any) -> Any:
    """Known elements; in GM, globals hold them."""
    return value


def dim_of_result(call: Call) -> None:
    """`dim` is a dimension of the result."""
    require_dim(call, call.outputs[0].rank)


@operator(windows=same_place, constraints=(dim_of_result,), unit=NONE)
def iota(*, dim: int, result: Tensor) -> Array:
    """The index along a dimension; a constant, at the latest when values get their buffers."""
    spread = [-1 if i == dim else 1 for i in range(result.rank)]
    count = np.arange(result.shape[dim]).astype(dtype_of(result.element))
    return np.broadcast_to(count.reshape(spread), result.shape)
