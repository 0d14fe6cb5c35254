"""Lowerings of ONNX operators to StableHLO, by family.

    @operator("LeakyRelu")
    def leaky_relu(node: Call) -> Tensor:
        x = node.take(0)
        return where(compare("GE", x, 0), x, x * node.attr("alpha"))

A lowering asks the node for its operands and attributes, and refuses (`node.refuse`) what it cannot
do. Whatever the node has and the lowering did not ask for is refused by the importer. Lowerings
serve all versions of the operator sets: what became an input is asked for with `node.integers`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from davinci.frontends.onnx.tensor import Flowing
from davinci.tables import Table

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import Call

Lowering = Callable[["Call"], "Flowing | tuple[Flowing, ...]"]
"""Returns the result, or a tuple of several; a list is one result, a sequence."""

LOWERINGS: Table[tuple[str, str], Lowering] = Table("a lowering")
"""By domain ("" is ONNX's own) and operator."""


def operator(*names: str, domain: str = "") -> Callable[[Lowering], Lowering]:
    """Registers a function as the lowering of operators."""

    return LOWERINGS.register(*((domain, name) for name in names))


for family in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{family.name}")
