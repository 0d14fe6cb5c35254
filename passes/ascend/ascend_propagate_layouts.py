"""ascend-propagate-layouts: brings operands of the cube to Nz and its results back to rows.

before:
    %c = "ascend.matmul"(%a, %b) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
after:
    %0 = "ascend.relayout"(%a) : (tensor<8x16xf16>) -> tensor<8x16xf16, #ascend.layout<"nz">>
    %1 = "ascend.relayout"(%b) : (tensor<16x4xf16>) -> tensor<16x4xf16, #ascend.layout<"nz">>
    %2 = "ascend.matmul"(%0, %1) : (..) -> tensor<8x4xf32, #ascend.layout<"nz">>
    %c = "ascend.relayout"(%2) : (tensor<8x4xf32, #ascend.layout<"nz">>) -> tensor<8x4xf32>

A value is laid out once for all its uses. A relayout and its reverse cancel, also through a cast
that lies between them: a cast acts on Nz as well. Padding stays zero in that case, because a
product of padded operands is padded with zeros.

Needs products of types that the cube has (`ascend-legalize-precision`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import ir
from davinci.operators.products import CUBE_TYPES
from davinci.operators.tensors import ND, NZ, lanes
from davinci.passes.analysis.origins import fuse
from davinci.passes.ascend.tensor_ops import (
    PRODUCTS,
    TensorOps,
    defining_op,
    merge_equal,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, fail, register_pass


@register_pass
@dataclass(frozen=True)
class AscendPropagateLayoutsPass(Pass):
    """Choose the layouts of values."""

    NAME = "ascend-propagate-layouts"

    def run(self, op: Any) -> None:
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            laid_out: dict[Any, Any] = {}
            for operation in list(block.operations):
                product = operation.operation
                if product.name in PRODUCTS and tensor_of(product.result.type).layout == ND:
                    require_cube_types(product)
                    lay_out(product, laid_out)
            merge_equal(block)


def require_cube_types(product: Any) -> None:
    """Fails unless the cube multiplies these element types."""
    a, b, c = (tensor_of(v.type).element for v in (*product.operands, product.result))
    if c not in CUBE_TYPES.get((a, b), ()):
        known = (f"{x} x {y} to {' or '.join(z)}" for (x, y), z in CUBE_TYPES.items())
        fail(
            product,
            "has element types that the cube has not",
            found=f"{a} x {b} to {c}",
            expected=", ".join(known),
            hint="ascend-legalize-precision brings f32 to f16",
        )


def lay_out(product: Any, laid_out: dict[Any, Any]) -> None:
    """Replaces a product of rows by one of fractals; `laid_out` keeps what is in Nz already."""
    with product.location, ir.InsertionPoint(product):
        ops = TensorOps()
        operands = [nz(value, laid_out, ops) for value in product.operands]
        name = product.name.removeprefix("ascend.")
        made = ops.emit(name, operands, replace(tensor_of(product.result.type), layout=NZ))
        new = ops.relayout(made, ND)
    product.result.replace_all_uses_with(new)
    product.erase()


def nz(value: Any, laid_out: dict[Any, Any], ops: TensorOps) -> Any:
    """`value` in Nz, of which a relayout or a cast of one is the easiest case."""
    if value not in laid_out:
        found = undone(value, ops)
        laid_out[value] = ops.relayout(value, NZ) if found is None else found
    elif (made := defining_op(laid_out[value])) is not None and made.name == "ascend.relayout":
        fuse(made, [ir.Location.current])
    return laid_out[value]


def undone(value: Any, ops: TensorOps) -> Any:
    """What `value` is a relayout, or a cast of a relayout, of; None if neither."""
    owner = defining_op(value)
    if owner is None:
        return None
    if owner.name == "ascend.relayout":
        return owner.operands[0]
    if owner.name == "ascend.cast":
        inner = defining_op(owner.operands[0])
        if inner is not None and inner.name == "ascend.relayout":
            source = inner.operands[0]
            element = tensor_of(value.type).element
            if lanes(tensor_of(source.type).element) == lanes(element):
                return ops.cast(source, element)
    return None
