"""Types of MLIR and the plain `Tensor` of operators, in both directions."""

from __future__ import annotations

from davinci.errors import Invalid
from davinci.mlir import ir, type_text
from davinci.operators.tensors import ND, NZ, Tensor


def tensor_of(value_type: ir.Type) -> Tensor:
    """A ranked tensor or memref type as plain data; other types are `Invalid`."""
    if not isinstance(value_type, (ir.RankedTensorType, ir.MemRefType)):
        raise Invalid("operand or result type", value_type, "a ranked tensor or memref")
    if not value_type.has_static_shape:
        raise Invalid("operand or result shape", value_type, "static sizes")
    layout = layout_of(value_type) if isinstance(value_type, ir.RankedTensorType) else ND
    return Tensor(tuple(value_type.shape), type_text(value_type.element_type), layout)


def layout_of(tensor_type: ir.RankedTensorType) -> str:
    """The layout of a ranked tensor type.

    Raises:
        Invalid: an encoding that is no layout, or one that the shape or element type cannot have.
    """
    encoding = tensor_type.encoding
    if encoding is None:
        return ND
    named = isinstance(encoding, ir.DynamicAttr) and encoding.attr_name == "ascend.layout"
    if not named or ir.StringAttr(ir.DynamicAttr(encoding).params[0]).value != NZ:
        raise Invalid("unknown layout", encoding, '#ascend.layout<"nz">, or none for rows')
    if tensor_type.rank < 2:
        raise Invalid("rank of a tensor in nz", tensor_type.rank, "at least 2")
    if tensor_type.element_type.width not in (1, 8, 16, 32):
        raise Invalid("elements of a tensor in nz", tensor_type.element_type, "at most 32 bits")
    return NZ


def tensor_type(tensor: Tensor) -> ir.RankedTensorType:
    """The ranked tensor type, with its layout as encoding."""
    encoding = ir.Attribute.parse(f'#ascend.layout<"{tensor.layout}">') if tensor.layout else None
    return ir.RankedTensorType.get(list(tensor.shape), element_type(tensor.element), encoding)


def element_type(element: str) -> ir.Type:
    """The type of an element type's text, in the current context."""
    return ir.Type.parse(element)
