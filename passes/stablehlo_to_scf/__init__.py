"""From StableHLO to loops of scf on tensors, for scalar kernels: one module a family of operators.

Upstream has loops for most operators (`stablehlo-legalize-to-linalg`); here are those it lacks or
gets wrong. A lowering is a function registered with `@lowering("sort")`. It is called with the
StableHLO operation, builds what replaces it in front of it, and returns the values that replace its
results. Elements are read and written by `tensor.extract` and `tensor.insert`, which bufferization
makes loads and stores in place; regions of the operation are copied into the loops on tensors of
rank 0, which `davinci.passes.ascend.scalar_kernels` makes scalars once they are linalg.

Values that loops carry are of signless types (`elements.stored`), since that is what buffers hold.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from davinci.mlir import Op, ir, operations
from davinci.tables import Table

Lowering = Callable[[Op], "Sequence[ir.Value]"]
LOWERINGS: Table[str, Lowering] = Table("a lowering to scf")
lowering = LOWERINGS.register

FAMILIES = ("control", "linear_algebra", "scatter", "select_and_scatter", "sort")


def lower_to_scf(root: Op) -> None:
    """Lowers the operations below `root` that have a lowering here, those in regions first."""
    for family in FAMILIES:
        importlib.import_module(f"davinci.passes.stablehlo_to_scf.{family}")
    for op in operations(root, *(f"stablehlo.{name}" for name in LOWERINGS)):
        with op.location, ir.InsertionPoint(op):
            results = LOWERINGS[op.name.removeprefix("stablehlo.")](op)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
