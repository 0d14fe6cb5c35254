"""Shapes and element types of ascend operations, shared by verifiers and conversions.

`Tensor` is a tensor or GM buffer type reduced to what the rules need. A rule `check_x(call)` raises
`Invalid` when an operation breaks one of its constraints. The `*_shape` functions give the shape of
a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.base import Invalid, attribute, attribute_of
from davinci.mlir import ir
from davinci.units import BLOCK_BYTES, FRACTAL_SIDE

ND, NZ = "", "nz"
"""Layouts of a tensor: rows one after the other, which is no encoding, and fractals."""


@dataclass(frozen=True)
class Tensor:
    """Shape, element type and layout of an operand or result, either form.

    A buffer has the shape of what lies in GM and the layout `ND`.
    """

    shape: tuple[int, ...]
    element: Any
    layout: str = ND

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def type(self) -> Any:
        """The ranked tensor type."""
        encoding = ir.Attribute.parse(f'#ascend.layout<"{self.layout}">') if self.layout else None
        return ir.RankedTensorType.get(list(self.shape), self.element, encoding)

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of the array that a value takes in GM."""
        return fractal_shape(self.shape, self.element) if self.layout == NZ else self.shape

    def __str__(self) -> str:
        text = "x".join([*map(str, self.shape), str(self.element)])
        return f"{text} in {self.layout}" if self.layout else text


@dataclass(frozen=True)
class Call:
    """An operation split into inputs and outputs; `buffers` is true for the memref form."""

    op: Any
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    buffers: bool

    def given(self, name: str) -> Any:
        """The attribute `name` as it is, or None."""
        return attribute_of(self.op, name)

    def array(self, name: str) -> list[int]:
        """The `array<i64>` attribute `name`."""
        found = attribute(self.op, name)
        if not isinstance(found, list) or any(not isinstance(x, int) for x in found):
            raise Invalid(f"attribute '{name}'", missing(found), "array<i64: ...>")
        return found

    def integer(self, name: str) -> int:
        found = attribute(self.op, name)
        if not isinstance(found, int) or isinstance(found, bool):
            raise Invalid(f"attribute '{name}'", missing(found), "an i64")
        return found

    def choice(self, name: str, choices: Sequence[str]) -> str:
        found = attribute(self.op, name)
        if found not in choices:
            raise Invalid(f"attribute '{name}'", missing(found), "one of " + ", ".join(choices))
        return str(found)

    def same_element(self, role: str, found: Any, expected: Any) -> None:
        """Equal element types; a buffer may hold booleans as bytes."""
        if found != expected and not (self.buffers and {str(found), str(expected)} <= BOOLEANS):
            raise Invalid(f"element type of {role}", found, expected)

    def expect_output(self, shape: Sequence[int], element: Any) -> None:
        """The single output must be this."""
        found = self.outputs[0]
        if found.shape != tuple(shape):
            raise Invalid("shape of the result", list(found.shape), list(shape))
        self.same_element("the result", found.element, element)


BOOLEANS = {"i1", "i8"}


def missing(found: object) -> object:
    return "none" if found is None else found


def tensor_of(value_type: Any) -> Tensor:
    """The `Tensor` of a ranked tensor or memref type; other types are `Invalid`."""
    if not isinstance(value_type, (ir.RankedTensorType, ir.MemRefType)):
        raise Invalid("operand or result type", value_type, "a ranked tensor or memref")
    if not value_type.has_static_shape:
        raise Invalid("operand or result shape", value_type, "static sizes")
    layout = layout_of(value_type) if isinstance(value_type, ir.RankedTensorType) else ND
    return Tensor(tuple(value_type.shape), value_type.element_type, layout)


def layout_of(tensor_type: Any) -> str:
    """The layout of a ranked tensor type.

    Raises:
        Invalid: an encoding that is no layout, or one that the shape or element type cannot have.
    """
    encoding = tensor_type.encoding
    if encoding is None:
        return ND
    named = getattr(encoding, "attr_name", "") == "ascend.layout"
    if not named or ir.StringAttr(encoding.params[0]).value != NZ:
        raise Invalid("unknown layout", encoding, '#ascend.layout<"nz">, or none for rows')
    if tensor_type.rank < 2:
        raise Invalid("rank of a tensor in nz", tensor_type.rank, "at least 2")
    if tensor_type.element_type.width not in (1, 8, 16, 32):
        raise Invalid("elements of a tensor in nz", tensor_type.element_type, "at most 32 bits")
    return NZ


def is_float(element: Any) -> bool:
    return isinstance(element, ir.FloatType)


def is_integer(element: Any) -> bool:
    return isinstance(element, ir.IntegerType)


def lanes(element: Any) -> int:
    """Columns of a fractal: 32 bytes' worth of elements, but 16 for 32-bit types."""
    return BLOCK_BYTES if element.width == 8 else FRACTAL_SIDE


def fractal_shape(shape: Sequence[int], element: Any) -> tuple[int, ...]:
    """Nz shape of [.., m, n]: [.., ceil(n / c), ceil(m / 16), 16, c]."""
    *batch, m, n = shape
    c = lanes(element)
    return (*batch, -(-n // c), -(-m // FRACTAL_SIDE), FRACTAL_SIDE, c)


def reduce_shape(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def slice_shape(
    starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    return tuple(
        -(-(limit - start) // stride)
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    )


def pad_shape(
    shape: Sequence[int], low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> tuple[int, ...]:
    return tuple(
        n + before + after + max(0, n - 1) * between
        for n, before, after, between in zip(shape, low, high, interior, strict=True)
    )
