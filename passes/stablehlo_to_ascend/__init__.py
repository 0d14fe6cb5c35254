"""From StableHLO to ascend operators on tensors: conversions, one module a family of operators.

A conversion is a function registered with `@conversion("add", ...)`. It is called with the
StableHLO operation and a `TensorOps`, builds ascend operations in front of it, and returns the
values that replace its results, or None if it cannot: then it becomes a scalar call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.mlir import Op, ir
from davinci.passes.ascend.tensor_ops import TensorOps
from davinci.tables import Table

Conversion = Callable[[Op, TensorOps], "Sequence[ir.Value] | None"]
CONVERSIONS: Table[str, Conversion] = Table("a conversion to ascend")
conversion = CONVERSIONS.register
