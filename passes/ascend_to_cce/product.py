"""matmul and batch_matmul: products of matrices in rows or fractals, by a schedule.

`davinci.schedule.product_choice` chooses the schedule, or completes what the options of
`convert-ascend-to-cce` ask for; `product_kernel` builds it.
"""

from __future__ import annotations

import math

from davinci.dialects.ascend import call_of
from davinci.dialects.cce import build as cce
from davinci.errors import CompileError
from davinci.mlir import Op, ir
from davinci.operators.call import Call
from davinci.operators.products import PRODUCTS, TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.products import Product as Rules
from davinci.operators.tensors import Tensor
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.product_kernel import Buffers, ProductKernel
from davinci.passes.ascend_to_cce.product_rows import fill_zeros
from davinci.passes.ascend_to_cce.tiles import share_blocks
from davinci.passes.builder import alloc, reshaped, restride, subview
from davinci.passes.pipeline.base import fail
from davinci.schedule.product import Operand, Product, Result
from davinci.schedule.product_choice import Wanted, choose
from davinci.units import FRACTAL_SIDE as SIDE


@lowering("matmul", "batch_matmul")
def lower_product(operation: Op, target: Target) -> int:
    """C = A B on the cube; returns how many blocks can share the work.

    Raises:
        CompileError: element types the cube or load2d cannot take, or no legal tile.
    """
    call, rules = call_of(operation), PRODUCTS[operation.name.removeprefix("ascend.")]
    check_types(operation, call)
    *_, a, b, c = operation.operands
    product = product_of(call, rules)
    if not (product.batch and product.m and product.k and product.n):
        return write_zeros(c, target)
    try:
        schedule = choose(product, target.machine, target.cores, wanted(target))
    except CompileError as error:
        fail(operation, error.message, found=error.found, expected=error.expected, hint=error.hint)
    a, b, c = (batched(value, rules) for value in (a, b, c))
    kernel = ProductKernel(product, schedule, Buffers(a, b, [c], []))
    return share_blocks(kernel.parts(), target)


def check_types(operation: Op, call: Call) -> None:
    """f16 x f16 to f32 or f16."""
    a, b, c = (value.element for value in call.values)
    if (a, b) != ("f16", "f16") or c not in ("f32", "f16"):
        fail(
            operation,
            "cannot be lowered for these element types",
            found=f"{a} x {b} to {c}",
            expected="f16 x f16 to f32 or f16",
            hint="load2d transposes 16-bit fractals only, so an 8-bit B in Nz cannot reach L0B; "
            "cast the operands to f16",
        )


def product_of(call: Call, rules: Rules) -> Product:
    """The product that an operation on buffers means."""
    *batch, m, n, k = rules.sizes(call)
    turned_a, turned_b = (bool(call.attributes.get(x)) for x in (TRANSPOSE_A, TRANSPOSE_B))

    def operand(value: Tensor, k_rows: bool) -> Operand:
        return Operand(not rules.rows(value), value.bytes_each, k_rows)

    a, b, c = call.values
    of_a, of_b = operand(a, turned_a), operand(b, not turned_b)
    result = Result(not rules.rows(c), c.bytes_each)
    return Product(math.prod(batch), m, k, n, of_a, of_b, result)


def wanted(target: Target) -> Wanted:
    """What the options ask for, in fractals.

    Raises:
        CompileError: a size that is no multiple of 16.
    """
    m, n, k = target.tile
    for name, size in (("m", m), ("n", n), ("k", k)):
        if size % SIDE:
            raise CompileError(
                f"bad tile size {name}", found=str(size), expected=f"a multiple of {SIDE}, or 0"
            )
    return Wanted(target.matmul_strategy, m // SIDE, k // SIDE, n // SIDE)


def batched(value: ir.Value, rules: Rules) -> ir.Value:
    """A buffer with a batch dimension, added if it has none."""
    shape = list(ir.MemRefType(value.type).shape)
    return value if rules.batch else reshaped(value, [1, *shape])


def write_zeros(c: ir.Value, target: Target) -> int:
    """The product of empty matrices: whatever C has is zero."""
    kind = ir.MemRefType(c.type)
    total = math.prod(kind.shape)
    if total == 0:
        return 1
    size = min(total, target.machine.buffer("UB").bytes * 8 // int(kind.element_type.width))
    ub = alloc([size], kind.element_type, "UB")
    fill_zeros(ub)
    flat = restride(c, [total], [1])
    for start in range(0, total, size):
        length = min(size, total - start)
        cce.copy(subview(ub, [0], [length]), subview(flat, [start], [length]))
    return 1
