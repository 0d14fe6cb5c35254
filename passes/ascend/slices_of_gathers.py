"""Rows of a table by known indices at equal distances, as a slice of the table."""

from __future__ import annotations

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import ir
from davinci.operators.gather import rows_of
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, definition


def slices_of_gathers(block: ir.Block) -> int:
    """Replaces gathers; how many."""
    count = 0
    for op in [operation.operation for operation in block.operations]:
        indices = definition(op.operands[1]) if op.name == "ascend.gather" else None
        table = tensor_of(op.operands[0].type) if indices is not None else None
        if indices is None or table is None or not tensor_of(op.operands[1].type).count:
            continue
        wrap = attribute(op, "wrap", 0)
        rows = rows_of(constant_array(indices), table.shape[0], wrap)
        steps = np.unique(np.diff(rows))
        if len(steps) > 1 or (steps <= 0).any():
            continue
        step = int(steps[0]) if len(steps) else 1
        zeros = [0] * (table.rank - 1)
        with op.location, ir.InsertionPoint(op):
            limits = [int(rows[-1]) + 1, *table.shape[1:]]
            strides = [step, *(1 for _ in zeros)]
            made = TensorOps().cut(op.operands[0], [int(rows[0]), *zeros], limits, strides)
        op.results[0].replace_all_uses_with(made)
        op.erase()
        count += 1
    return count
