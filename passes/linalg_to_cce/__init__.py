"""Lowerings of kernels in upstream dialects (linalg, tensor, memref) to cce operations.

Tensors become tiles in UB, a buffer for each value; `plan-memory` and `insert-sync` complete the
kernel. Elementwise operations are the tile rules of the operator records, reductions those of rows
(`davinci.schedule.vector.row_statistics`). A lowering is a function registered with
`@lowering("linalg.fill", ..)`; it is called with the `KernelTranslator` and the operation, and
builds in front of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from davinci.errors import CompileError
from davinci.mlir import Op, location_text
from davinci.tables import Table

if TYPE_CHECKING:
    from davinci.passes.linalg_to_cce.translator import KernelTranslator

LinalgLowering = Callable[["KernelTranslator", Op], None]
LINALG_LOWERINGS: Table[str, LinalgLowering] = Table("a lowering of an upstream operation")
lowering = LINALG_LOWERINGS.register

HINT = "compile the kernel as the vendor's compiler makes it"


def refusal(op: Op, found: str, expected: str = "") -> CompileError:
    """The error about an operation, or a form of one, that our passes do not lower."""
    return CompileError(
        "our passes do not take this kernel of upstream dialects",
        where=location_text(op.location),
        found=found,
        expected=expected,
        hint=HINT,
    )
