"""Lowerings of cce operations to hivm instructions, one module a family of operations.

A lowering is a function registered with `@lowering("vadd", "vsub", ...)`. It is called with the
`Emitter` and the cce op, and builds hivm instructions in front of it; `convert-cce-to-hivm` erases
the op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from davinci.passes.cce_to_hivm.emitter import Emitter

Lowering = Callable[[Emitter, Any], None]
LOWERINGS: dict[str, Lowering] = {}


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers a function as the lowering of the cce ops `names`."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"cce.{name} has two lowerings")
            LOWERINGS[name] = function
        return function

    return register
