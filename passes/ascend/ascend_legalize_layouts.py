"""ascend-legalize-layouts: brings to rows what operators outside of groups take and give in rows.

before:
    %1 = "ascend.reduce"(%0) {kind = "add", dims = array<i64: 1>}
        : (tensor<512x768xf32, #ascend.layout<"nz">>) -> tensor<512xf32>
after:
    %r = "ascend.relayout"(%0) : (tensor<512x768xf32, #ascend.layout<"nz">>) -> tensor<512x768xf32>
    %1 = "ascend.reduce"(%r) {kind = "add", dims = array<i64: 1>}
        : (tensor<512x768xf32>) -> tensor<512xf32>

Groups compute statistics of values in nz, and spread them there; a reduction or broadcast that
joined none (`ascend-fuse`, `--fusion none`) has a kernel for rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.mlir import Op, ir
from davinci.operators.tensors import ND
from davinci.passes import builder
from davinci.passes.ascend.tensor_ops import TensorOps, merge_equal, tensor_functions
from davinci.passes.pipeline.base import Pass, register_pass

IN_ROWS = ("ascend.broadcast", "ascend.reduce")
"""Operators that only groups compute in other layouts."""


@register_pass
@dataclass(frozen=True)
class AscendLegalizeLayoutsPass(Pass):
    """Bring to rows what has no kernel in nz."""

    NAME = "ascend-legalize-layouts"

    def run(self, op: Op) -> None:
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            changed = [
                operation.operation
                for operation in block.operations
                if operation.operation.name in IN_ROWS and has_layouts(operation.operation)
            ]
            for operation in changed:
                in_rows(operation)
            if changed:
                merge_equal(block)


def has_layouts(op: Op) -> bool:
    return any(tensor_of(v.type).layout != ND for v in (*op.operands, *op.results))


def in_rows(op: Op) -> None:
    """Replaces an operation by one in rows."""
    wanted = tensor_of(op.results[0].type)
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        operands = [ops.relayout(value, ND) for value in op.operands]
        attributes = {key: op.attributes[key] for key in op.attributes}
        result = tensor_type(replace(wanted, layout=ND))
        made = builder.op(op.name, operands, [result], **attributes).result
        new = ops.relayout(made, wanted.layout)
    op.results[0].replace_all_uses_with(new)
    op.erase()
