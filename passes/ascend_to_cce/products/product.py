"""What the kernels of products check and ask for, and those of empty matrices."""

from __future__ import annotations

import math

from davinci.dialects.ascend import call_of
from davinci.dialects.cce import build as cce
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.machine.views import multiplies_f32
from davinci.mlir import Op, ir
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import NZ
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.products.rows import fill_zeros
from davinci.passes.builder import alloc, restride, subview
from davinci.passes.pipeline.base import fail
from davinci.schedule.products.candidates import Wanted
from davinci.units import FRACTAL_SIDE as SIDE


def check_types(operation: Op, machine: Machine) -> None:
    """f16 x f16 to f32 or f16; f32 to f32 where cubes take it, or bytes to i32, with `transpose_b`
    only, bytes in nz where no rows become fractals on their way.

    Raises:
        CompileError: element types that the cube or load2d cannot take.
    """
    call = call_of(operation.opview)
    a, b, c = call.values
    kinds = a.element, b.element, c.element
    turned = [bool(call.attributes.get(flag)) for flag in (TRANSPOSE_A, TRANSPOSE_B)]
    in_nz = machine.cubes_apart or a.layout == b.layout == NZ
    of_bytes = turned == [False, True] and in_nz
    if kinds in (("f16", "f16", "f32"), ("f16", "f16", "f16")):
        return
    if kinds == ("f32", "f32", "f32") and multiplies_f32(machine) and turned == [False, True]:
        return
    if kinds != ("i8", "i8", "i32") or not of_bytes:
        fail(
            operation,
            "cannot be lowered for these element types",
            found=f"{a} x {b} to {c.element}",
            expected="f16 x f16 to f32 or f16, or i8 x i8 to i32 in nz with transpose_b",
            hint="load2d transposes 16-bit fractals only, so a plain 8-bit B cannot reach L0B; "
            "cast the operands to f16",
        )


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
