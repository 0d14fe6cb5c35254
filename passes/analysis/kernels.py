"""The kernels of a module."""

from __future__ import annotations

from typing import Any

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, ir

CORES = "ascend.cores"
"""Of a kernel that shares launches: the number of cores that it is made for."""


CORE = "ascend.core"
"""Of a kernel for a split machine: the kind of core that runs it."""

UNIT = "ascend.unit"
"""Of a kernel: the unit that does its work, "cube", "vector" or "scalar"."""


def seen_by(kernel: Op, machine: Machine) -> Machine:
    """The machine as a kernel sees it: on a split one the cores that run it."""
    core = attribute(kernel, CORE, "")
    on_cube = core == "aic" if core else attribute(kernel, UNIT, "vector") == "cube"
    return machines.for_cube(machine) if on_cube else machines.for_vector(machine)


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
