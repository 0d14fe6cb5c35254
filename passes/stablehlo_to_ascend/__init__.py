"""From StableHLO to ascend operators on tensors: conversions, one module a family of operators.

A conversion is a function registered with `@conversion("add", ...)`. It is called with the
StableHLO operation and a `TensorOps`, builds ascend operations in front of it, and returns the
values that replace its results, or None if it cannot: then it becomes a scalar call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from davinci.passes.ascend.tensor_ops import TensorOps

Conversion = Callable[[Any, TensorOps], "Sequence[Any] | None"]
CONVERSIONS: dict[str, Conversion] = {}


def conversion(*names: str) -> Callable[[Conversion], Conversion]:
    """Registers a function as the conversion of the StableHLO ops `names`."""

    def register(function: Conversion) -> Conversion:
        for name in names:
            if name in CONVERSIONS:
                raise ValueError(f"stablehlo.{name} has two conversions")
            CONVERSIONS[name] = function
        return function

    return register
