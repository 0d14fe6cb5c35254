"""How operations of AscendNPU-IR are built, and the error about what has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from davinci.mlir import Op, ir

Attributes = Mapping[str, str]
"""Texts of attributes."""


class NoCounterpart(Exception):
    """AscendNPU-IR has no operation that does what the message names."""


def build(
    name: str, attributes: Attributes, operands: Sequence[ir.Value], result: ir.Type | None = None
) -> Op:
    """Builds an operation, `hir.` in front of its name."""
    parsed = {key: ir.Attribute.parse(text) for key, text in attributes.items()}
    results = [] if result is None else [result]
    return ir.Operation.create(f"hir.{name}", results, operands, parsed)
