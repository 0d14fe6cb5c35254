"""Lowerings of another compiler's operations, `hir.load` or `hir.vadd`, to instructions.

AscendNPU-IR, the vendor's open compiler, ends in operations of its dialect `hivm.hir` on memrefs,
which have addresses, flags and barriers already; our frontend reads them as `hir`. A lowering is a
function registered with `@lowering("vadd", ...)`. It is called with the `Translator` and the
operation, and builds hivm instructions in front of it; `convert-hir-to-hivm` erases the operation.

Meanings are those of the operations' definitions in github.com/Ascend/AscendNPU-IR
(`HIVMVectorOps.td`, `HIVMDMAOps.td`, `HIVMMacroOps.td`, `HIVMSynchronizationOps.td`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from davinci.mlir import Op
from davinci.tables import Table

if TYPE_CHECKING:
    from davinci.mlir import Op
    from davinci.passes.hir_to_hivm.translator import Translator

DIALECT = "hir"
Lowering = Callable[["Translator", "Op"], None]
LOWERINGS: Table[str, Lowering] = Table("a lowering of another compiler's operation")
lowering = LOWERINGS.register

FALLBACKS: Table[str, Lowering] = Table("what the scalar unit does for an operation")
fallback = FALLBACKS.register
"""Registers what is done where the lowering of an operation refuses a form, or there is none."""
