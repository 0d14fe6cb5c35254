"""What flows along the edges of an ONNX graph: tensors of static shape, or sequences of them.

A `OnnxTensor` knows its NumPy element type and shape. It is a value of the function under
construction, or a constant, whose array is known and which becomes a `stablehlo.constant` at its
first use. Python's operators build StableHLO with NumPy's broadcasting: `alpha * matmul(a, b) + c`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from davinci.element_types import DTYPES
from davinci.elements import to_attribute
from davinci.mlir import ir
from davinci.narrow import NARROW

Array = npt.NDArray[Any]

NARROW_INTEGERS = ("int2", "uint2", "int4", "uint4")

ELEMENTS: dict[np.dtype[Any], str] = {
    np.dtype(kind): text
    for text, kind in DTYPES.items()
    if not text.startswith("si")  # StableHLO's signed integers are signless
} | {narrow.dtype: text for text, narrow in NARROW.items()}
"""Text of the MLIR element type of each NumPy type that a value can have."""


class Refused(Exception):
    """A form of an operator that is not supported; the importer adds node and place.

    Attributes:
        within: what of the operator's definition it is about.
    """

    def __init__(self, message: str, expected: str = "") -> None:
        super().__init__(message)
        self.message, self.expected = message, expected
        self.within = ""

    def add_form(self, form: str) -> None:
        """Says which node of a definition is refused; the innermost one counts."""
        self.within = self.within or f", whose definition has {form}"


class BadNode(Refused):
    """An operator on operands that ONNX does not allow: the model is at fault."""


@dataclass(frozen=True)
class Dequantized:
    """Floats (integers - zero) * scale.

    Attributes:
        scale: of one element, or of one for each index of `axis`.
        zero: the same; None: 0.
    """

    integers: OnnxTensor
    scale: OnnxTensor
    zero: OnnxTensor | None
    axis: int


class OnnxTensor:
    """A tensor of static shape.

    Attributes:
        dtype: NumPy element type, one of `ml_dtypes` where NumPy has none.
        shape: of non-negative sizes.
        known: its values, read-only, if they are known at compile time.
        name: of the initializer or value that it comes from, for the resource of a constant.
        dequantized: the bytes that it was made from, if it was.
        shifted: of unsigned bytes that were quantized here the same less 128, as signed ones.
    """

    __array_ufunc__ = None  # NumPy's scalars leave operators to this class

    def __init__(
        self,
        dtype: Any,
        shape: tuple[int, ...],
        value: Any = None,
        known: Array | None = None,
        name: str = "constant",
    ) -> None:
        self.dtype, self.shape = np.dtype(dtype), tuple(int(size) for size in shape)
        self.known, self.name = known, name
        self.dequantized: Dequantized | None = None
        self.shifted: OnnxTensor | None = None
        self._value = value

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        return is_float(self.dtype)

    @property
    def is_integer(self) -> bool:
        return is_integer(self.dtype)

    @property
    def is_unsigned(self) -> bool:
        return is_integer(self.dtype) and bounds(self.dtype)[0] == 0

    @property
    def type(self) -> Any:
        """The `ir.RankedTensorType`."""
        return ir.RankedTensorType.get(list(self.shape), element_of(self.dtype))

    @property
    def value(self) -> Any:
        """The SSA value; a constant is placed at the start of the function when first asked for."""
        if self._value is None:
            assert self.known is not None, "a tensor is a constant or has a value"
            self._value = _place(self.known, self.name)
        return self._value

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def __add__(self, other: Operand) -> OnnxTensor:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> OnnxTensor:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> OnnxTensor:
        return binary("subtract", self, other)

    def __rsub__(self, other: Operand) -> OnnxTensor:
        return binary("subtract", other, self)

    def __mul__(self, other: Operand) -> OnnxTensor:
        return binary("multiply", self, other)

    def __rmul__(self, other: Operand) -> OnnxTensor:
        return binary("multiply", other, self)

    def __truediv__(self, other: Operand) -> OnnxTensor:
        return binary("divide", self, other)

    def __rtruediv__(self, other: Operand) -> OnnxTensor:
        return binary("divide", other, self)

    def __and__(self, other: Operand) -> OnnxTensor:
        return binary("and", self, other)

    def __or__(self, other: Operand) -> OnnxTensor:
        return binary("or", self, other)

    def __xor__(self, other: Operand) -> OnnxTensor:
        return binary("xor", self, other)

    def __neg__(self) -> OnnxTensor:
        return unary("negate", self)

    def __invert__(self) -> OnnxTensor:
        return unary("not", self)


Operand = OnnxTensor | bool | int | float
"""What the operators of `OnnxTensor` take: numbers take the element type of the tensor."""

Flowing = OnnxTensor | list[OnnxTensor] | None
"""What a name of the graph stands for: a tensor, a sequence, or an optional value left out."""

Compute = Callable[..., Sequence[OnnxTensor]]
"""Builds what a region computes of its arguments."""

Body = tuple[Sequence[tuple[Any, Sequence[int]]], Compute]


def constant(array: npt.ArrayLike, dtype: Any = None, name: str = "constant") -> OnnxTensor:
    """A tensor of known values."""
    values = np.asarray(array, dtype)
    return OnnxTensor(values.dtype, values.shape, known=values, name=name)


def element_of(dtype: Any) -> Any:
    """The MLIR element type of a NumPy type.

    Raises:
        Refused: tensors of that type (strings, complex numbers) cannot be compiled.
    """
    text = ELEMENTS.get(np.dtype(dtype))
    if text is None:
        raise Refused(
            f"tensors of {type_name(dtype)} cannot be compiled", ", ".join(ELEMENTS.values())
        )
    return ir.Type.parse(text)


def is_float(dtype: Any) -> bool:
    """Whether `dtype` is a real floating-point type, of NumPy or of ml_dtypes."""
    found = np.dtype(dtype)
    return found.kind == "f" or (found.kind == "V" and not is_integer(found))


def is_integer(dtype: Any) -> bool:
    found = np.dtype(dtype)
    return found.kind in "iu" or found.name in NARROW_INTEGERS


def bounds(dtype: Any) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    limits: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(limits.min), int(limits.max)


def type_name(dtype: Any) -> str:
    """`strings` for the objects that hold them, else the name of the type."""
    return "strings" if np.dtype(dtype).kind in "OSU" else str(np.dtype(dtype))


def emit(
    name: str, operands: Sequence[OnnxTensor], dtype: Any, shape: Sequence[int], **attributes: Any
) -> OnnxTensor:
    """Builds an operation of StableHLO with one result; `name` without the dialect's."""
    return emit_all(name, operands, [(dtype, shape)], **attributes)[0]


def emit_all(
    name: str,
    operands: Sequence[OnnxTensor],
    results: Sequence[tuple[Any, Sequence[int]]],
    regions: Sequence[Body] = (),
    **attributes: Any,
) -> list[OnnxTensor]:
    """Builds an operation with any results.

    Args:
        name: `add` of StableHLO, or `chlo.erf` with its dialect.
        results: element type and shape of each.
        regions: for each the (element type, shape) of its arguments and what computes its results.
        attributes: Python values as `davinci.passes.builder.as_attribute` takes, or attributes.
    """
    wanted = [OnnxTensor(dtype, tuple(shape)) for dtype, shape in results]
    built = ir.Operation.create(
        name if "." in name else f"stablehlo.{name}",
        [t.type for t in wanted],
        [t.value for t in operands],
        {key: _attribute(value) for key, value in attributes.items()},
        regions=len(regions),
    )
    for region, (arguments, compute) in zip(built.regions, regions, strict=True):
        _fill(region, arguments, compute)
    return [
        OnnxTensor(t.dtype, t.shape, value) for t, value in zip(wanted, built.results, strict=True)
    ]


def unary(name: str, x: OnnxTensor) -> OnnxTensor:
    """An elementwise operation of StableHLO or CHLO: `exponential`, `chlo.erf`."""
    return emit(name, [x], x.dtype, x.shape)


def binary(name: str, a: Operand, b: Operand) -> OnnxTensor:
    """An elementwise operation with NumPy's broadcasting; numbers take the other's type.

    Raises:
        Invalid: element types differ, or shapes do not broadcast.
    """
    a, b = spread(*typed(a, b))
    return emit(name, [a, b], a.dtype, a.shape)


def typed(*operands: Operand) -> list[OnnxTensor]:
    """Numbers become tensors of rank 0 of the element type that the tensors have."""
    tensors = [x for x in operands if isinstance(x, OnnxTensor)]
    kinds = {x.dtype for x in tensors}
    if len(kinds) != 1:
        raise BadNode(f"element types differ: {', '.join(sorted(map(str, kinds)))}")
    return [x if isinstance(x, OnnxTensor) else number(x, tensors[0].dtype) for x in operands]


def number(value: float, dtype: Any) -> OnnxTensor:
    """A tensor of rank 0.

    Raises:
        Invalid: a fraction as an integer.
    """
    if not is_float(dtype) and value != int(value):
        raise BadNode(f"{value} is no value of type {type_name(dtype)}")
    return constant(np.asarray(value).astype(dtype))


def spread(*tensors: OnnxTensor) -> list[OnnxTensor]:
    """The tensors, broadcast to their common shape."""
    try:
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
    except ValueError:
        text = " and ".join(str(list(t.shape)) for t in tensors)
        raise BadNode(f"shapes {text} do not broadcast") from None
    return [broadcast(t, shape) for t in tensors]


def broadcast(x: OnnxTensor, shape: Sequence[int], dims: Sequence[int] | None = None) -> OnnxTensor:
    """`x` repeated to `shape`.

    Args:
        dims: the dimension of the result that each of `x` becomes; the last ones if not given.
    """
    if x.shape == tuple(shape):
        return x
    first = len(shape) - x.rank
    places = list(range(first, len(shape))) if dims is None else list(dims)
    return emit("broadcast_in_dim", [x], x.dtype, shape, broadcast_dimensions=places)


def convert(x: OnnxTensor, dtype: Any) -> OnnxTensor:
    """StableHLO's conversion of element types; `x` itself where nothing changes."""
    return x if x.dtype == np.dtype(dtype) else emit("convert", [x], dtype, x.shape)


def _attribute(value: Any) -> Any:
    """A Python value as an attribute: bool, int (i64), text, list of int (array<i64>)."""
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, str):
        return ir.Attribute.parse(value) if value.startswith("#") else ir.StringAttr.get(value)
    if isinstance(value, (list, tuple)):
        return ir.DenseI64ArrayAttr.get([int(item) for item in value])
    return value


def _fill(region: Any, arguments: Sequence[tuple[Any, Sequence[int]]], compute: Compute) -> None:
    """Builds the only block of a region, which ends in `stablehlo.return`."""
    wanted = [OnnxTensor(dtype, tuple(shape)) for dtype, shape in arguments]
    locations = [ir.Location.current] * len(wanted)
    block = region.blocks.append(*(t.type for t in wanted), arg_locs=locations)
    with ir.InsertionPoint(block):
        values = [
            OnnxTensor(t.dtype, t.shape, value)
            for t, value in zip(wanted, block.arguments, strict=True)
        ]
        results = [result.value for result in compute(*values)]
        ir.Operation.create("stablehlo.return", [], results)


def _place(array: Array, name: str) -> Any:
    """A constant at the start of the function under construction."""
    block = ir.InsertionPoint.current.block
    while block.owner.operation.name != "func.func":
        block = block.owner.operation.block
    with ir.Location.name(name), ir.InsertionPoint.at_block_begin(block):
        attr = to_attribute(array, element_of(array.dtype), name)
        return ir.Operation.create("stablehlo.constant", [attr.type], [], {"value": attr}).result
