"""What the three dialects share: verifier messages and access to attributes.

A verifier is a method `verify_invariants(self) -> bool` that raises `Invalid`; the `verifier`
decorator turns that into a diagnostic at the operation's location.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from davinci.mlir import ir


class Invalid(Exception):
    """A broken constraint of an operation: what was found and what was expected."""

    def __init__(self, constraint: str, found: object = "", expected: object = "") -> None:
        parts = [constraint]
        parts += [f"found {found}"] if str(found) else []
        parts += [f"expected {expected}"] if str(expected) else []
        super().__init__("; ".join(parts))


def require(holds: bool, constraint: str, found: object = "", expected: object = "") -> None:
    """Raises `Invalid` with these parts unless `holds`."""
    if not holds:
        raise Invalid(constraint, found, expected)


def verifier(check: Callable[[Any], None]) -> Callable[[Any], bool]:
    """Wraps a check that raises `Invalid` into the form that MLIR calls."""

    @functools.wraps(check)
    def verify_invariants(self: Any) -> bool:
        operation = self.operation
        try:
            # A module may be parsed where no context is current, but checks make types.
            with operation.context:
                check(self)
        except Invalid as error:
            operation.location.emit_error(f"'{operation.name}' op {error}")
            return False
        return True

    return verify_invariants


def attribute(op: Any, name: str, default: Any = None) -> Any:
    """The Python value of an attribute of `op`, or `default` where it is absent.

    Integers, floats, booleans, strings and arrays of them become Python values; `array<i64: ..>`
    a list of ints; anything else is returned as the attribute itself.
    """
    attributes = op.attributes
    return python_value(attributes[name]) if name in attributes else default


def python_value(attr: Any) -> Any:
    """An attribute as a Python value, see `attribute`."""
    if isinstance(attr, (ir.IntegerAttr, ir.FloatAttr, ir.BoolAttr, ir.StringAttr)):
        return attr.value
    if isinstance(attr, ir.UnitAttr):
        return True
    if isinstance(attr, (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseBoolArrayAttr)):
        return list(attr)
    if isinstance(attr, ir.ArrayAttr):
        return [python_value(item) for item in attr]
    return attr
