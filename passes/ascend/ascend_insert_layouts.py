"""ascend-insert-layouts: brings operands of the cube to Nz and its results back to rows.

before:
    %c = "ascend.matmul"(%a, %b) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
after:
    %0 = "ascend.fractalize"(%a) : (tensor<8x16xf16>) -> tensor<1x1x16x16xf16>
    %1 = "ascend.fractalize"(%b) : (tensor<16x4xf16>) -> tensor<1x1x16x16xf16>
    %2 = "ascend.matmul"(%0, %1) {ascend.sizes = array<i64: 8, 4, 16>}
        : (..) -> tensor<1x1x16x16xf32>
    %c = "ascend.defractalize"(%2) : (tensor<1x1x16x16xf32>) -> tensor<8x4xf32>

A value is fractalized once for all its uses. A fractalize of a defractalize of the same layout is
dropped, also through a cast that lies between them: a cast acts on Nz as well. Padding stays zero
in that case, because a product of padded operands is padded with zeros. `ascend.sizes` keeps m, n
and k without padding, for reports.

Needs products of types that the cube has (`ascend-legalize-precision`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci.dialects.ascend_rules import MATMUL_TYPES
from davinci.dialects.ascend_shapes import Tensor, lanes, tensor_of
from davinci.mlir import ir
from davinci.passes.analysis.origins import fuse
from davinci.passes.ascend.kernel_facts import SIZES
from davinci.passes.ascend.tensor_ops import (
    PRODUCTS,
    TensorOps,
    defining_op,
    merge_equal,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, fail, register_pass
from davinci.units import FRACTAL_SIDE


@register_pass
@dataclass(frozen=True)
class AscendInsertLayoutsPass(Pass):
    """Insert fractalize and defractalize around matmuls."""

    NAME = "ascend-insert-layouts"

    def run(self, op: Any) -> None:
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            laid_out: dict[Any, Any] = {}
            for operation in list(block.operations):
                product = operation.operation
                if product.name in PRODUCTS and is_row_major(product):
                    require_cube_types(product)
                    lay_out(product, laid_out)
            merge_equal(block)


def is_row_major(product: Any) -> bool:
    return tensor_of(product.operands[0].type).rank < 4


def require_cube_types(product: Any) -> None:
    """Fails unless the cube multiplies these element types."""
    a, b, c = (str(tensor_of(v.type).element) for v in (*product.operands, product.result))
    if c not in MATMUL_TYPES.get((a, b), ()):
        known = (f"{x} x {y} to {' or '.join(z)}" for (x, y), z in MATMUL_TYPES.items())
        fail(
            product,
            "has element types that the cube has not",
            found=f"{a} x {b} to {c}",
            expected=", ".join(known),
            hint="ascend-legalize-precision brings f32 to f16",
        )


def lay_out(product: Any, laid_out: dict[Any, Any]) -> None:
    """Replaces a product of rows by one of fractals; `laid_out` keeps what was fractalized."""
    result = tensor_of(product.result.type)
    *batch, rows, columns = result.shape
    with product.location, ir.InsertionPoint(product):
        ops = TensorOps()
        operands = [nz(value, laid_out, ops) for value in product.operands]
        side = FRACTAL_SIDE
        shape = (*batch, -(-columns // side), -(-rows // side), side, side)
        name = product.name.removeprefix("ascend.")
        sizes = [rows, columns, tensor_of(product.operands[0].type).shape[-1]]
        made = ops.emit(name, operands, Tensor(shape, result.element), **{SIZES: sizes})
        new = ops.defractalize(made, rows, columns)
    product.result.replace_all_uses_with(new)
    product.erase()


def nz(value: Any, laid_out: dict[Any, Any], ops: TensorOps) -> Any:
    """`value` in Nz, of which a defractalize or a cast of one is the easiest case."""
    if value not in laid_out:
        found = undone(value, ops)
        laid_out[value] = ops.fractalize(value) if found is None else found
    elif (made := defining_op(laid_out[value])) is not None and made.name == "ascend.fractalize":
        fuse(made, [ir.Location.current])
    return laid_out[value]


def undone(value: Any, ops: TensorOps) -> Any:
    """What `value` is a defractalize, or a cast of a defractalize, of; None if neither."""
    owner = defining_op(value)
    if owner is None:
        return None
    if owner.name == "ascend.defractalize":
        return owner.operands[0]
    if owner.name == "ascend.cast":
        inner = defining_op(owner.operands[0])
        if inner is not None and inner.name == "ascend.defractalize":
            source = inner.operands[0]
            if lanes(tensor_of(source.type).element) == lanes(tensor_of(value.type).element):
                return ops.cast(source, tensor_of(value.type).element)
    return None
