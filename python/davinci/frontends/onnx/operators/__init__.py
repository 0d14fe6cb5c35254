"""Lowerings of ONNX operators to StableHLO, by family.

    @operator("LeakyRelu")
    def leaky_relu(node: Call) -> Tensor:
        x = node.take(0)
        return where(compare("GE", x, 0), x, x * node.attr("alpha"))

A lowering asks the node for its operands and attributes, and refuses (`node.refuse`) what it cannot
do. Whatever the node has and the lowering did not ask for is refused by the importer. Lowerings
serve all versions of the operator sets: what became an input is asked for with `node.integers`.

Operators that onnxruntime's optimizer writes have no schema in the onnx package. Their lowerings
say the names of inputs, which messages use, and give each attribute its default where they ask.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from davinci.frontends.onnx.tensor import Flowing
from davinci.tables import Table

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

Lowering = Callable[["NodeCall"], "Flowing | tuple[Flowing, ...]"]
"""Returns the result, or a tuple of several; a list is one result, a sequence."""

LOWERINGS: Table[tuple[str, str], Lowering] = Table("a lowering")
"""By domain ("" is ONNX's own) and operator."""

MICROSOFT = "com.microsoft"
"""Domain of the operators that onnxruntime adds to ONNX's."""


INPUTS: dict[tuple[str, str], list[str]] = {}
"""Names of the inputs of operators without a schema, by domain and operator."""


def operator(*names: str, domain: str = "", inputs: str = "") -> Callable[[Lowering], Lowering]:
    """Registers a function as the lowering of operators.

    Args:
        inputs: names of the inputs, with spaces between, of an operator without a schema.
    """
    keys = [(domain, name) for name in names]
    INPUTS.update((key, inputs.split()) for key in keys if inputs)
    return LOWERINGS.register(*keys)


for family in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{family.name}")
