"""Transposes of matrices of 16-bit elements in squares of 16, each row of squares one instruction.

Others are the scalar unit's, see `elements_moves`.
"""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import BufferView
from davinci.mlir import Op
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.cce_to_hivm.transposes import DST_VA, SRC_VA, set_rows
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView
from davinci.units import FRACTAL_SIDE as SIDE


@lowering("vtranspose")
def lower_transpose(translator: Translator, op: Op) -> None:
    """dst[i, j] = src[j, i], of whole squares of 16."""
    given, target, *_ = list(op.operands)
    src, dst = translator.view(op, given), translator.view(op, target)
    if list(attribute(op, "permutation")) != [1, 0] or not (src.static and dst.static):
        raise Unsupported("vtranspose of other dimensions, or of a size that the program computes")
    if src.itemsize != 2 or any(n % SIDE for n in src.shape):
        raise Unsupported(f"vtranspose of {src.kind}, or of other matrices than whole squares")
    if any(view.steps[1] != 1 or view.steps[0] % SIDE for view in (src, dst)):
        raise Unsupported("vtranspose of rows that do not begin blocks")
    record = translator.record("scatter_vnchwconv", "b16")
    limits = {field.name: field.limit for field in record.fields}
    rows, columns = src.shape
    repeats = columns // SIDE
    if dst.steps[0] > limits["dst_stride"]:
        raise Unsupported("vtranspose to rows too far apart")
    for row in range(0, rows, SIDE):
        for first in range(0, repeats, limits["repeat"]):
            count = min(limits["repeat"], repeats - first)
            column = first * SIDE
            for view, va, at in (
                (dst, DST_VA, column * dst.steps[0] + row),
                (src, SRC_VA, row * src.steps[0] + column),
            ):
                start = view.at(Shift(at * view.itemsize)).address
                set_rows(start, squares(view, count), va)
            translator.instruction(
                record,
                [],
                dst_va0=DST_VA,
                dst_va1=DST_VA + 1,
                src_va0=SRC_VA,
                src_va1=SRC_VA + 1,
                src_stride=1 if count > 1 else 0,
                dst_stride=dst.steps[0] if count > 1 else 0,
                repeat=count,
            )


def squares(view: MemrefView, count: int) -> BufferView:
    """The 16 rows of so many squares, [16, count, 16]; how far apart these are is in a field."""
    return BufferView("UB", "f16", (SIDE, count, SIDE), (view.steps[0], SIDE, 1), 0)
