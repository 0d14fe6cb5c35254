"""The kernels of a module."""

from __future__ import annotations

from typing import Any

from davinci.mlir import Op, ir

CORES = "ascend.cores"
"""Of a kernel that shares launches: the number of cores that it is made for."""


def kernels(root: Op) -> list[Any]:
    """The functions with `ascend.kernel` below `root`, whatever they are nested in, in order."""
    found: list[Any] = []

    def visit(op: Op) -> Any:
        if op.name == "func.func":
            if "ascend.kernel" in op.attributes:
                found.append(op)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
