"""Lowerings of cce operations to hivm instructions, one module a family of operations.

A lowering is a function registered with `@lowering("vadd", "vsub", ...)`. It is called with the
`Emitter` and the cce op, and builds hivm instructions in front of it; `convert-cce-to-hivm` erases
the op.
"""

from __future__ import annotations

from collections.abc import Callable

from davinci.mlir import Op
from davinci.passes.cce_to_hivm.emitter import Emitter
from davinci.tables import Table

Lowering = Callable[[Emitter, Op], None]
LOWERINGS: Table[str, Lowering] = Table("a lowering to hivm")
lowering = LOWERINGS.register
