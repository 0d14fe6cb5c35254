"""What the three dialects share: verifier messages, counts of operands, and access to attributes.

A verifier is a method `verify_invariants(self) -> bool` that raises `Invalid`; the `verifier`
decorator turns that into a diagnostic at the operation's location. MLIR calls it before it compares
the operation with its definition, so the decorator does that first: a check may rely on counts.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from davinci.errors import Invalid, did_you_mean, require
from davinci.mlir import Op, ext, ir


def verifier(check: Callable[[Any], None]) -> Callable[[Any], bool]:
    """Wraps a check that raises `Invalid` into the form that MLIR calls."""

    @functools.wraps(check)
    def verify_invariants(self: Op) -> bool:
        operation = self.operation
        found = _checked.found
        key = None if found is None else _likeness(self, operation)
        if found is not None and key in found:
            return True
        try:
            # A module may be parsed where no context is current, but checks make types.
            with operation.context:
                check_form(self)
                check_attributes(self)
                check(self)
        except Invalid as error:
            operation.location.emit_error(f"'{operation.name}' op {error}")
            return False
        if found is not None and key is not None:
            found.add(key)
        return True

    return verify_invariants


class _Checked(threading.local):
    """Likenesses of operations that were found to be valid; None outside of `alike_once`."""

    found: set[Hashable] | None = None


_checked = _Checked()


@contextmanager
def alike_once() -> Iterator[None]:
    """Within it operations that differ in the values that they take and make only are checked once:
    a check looks at names, attributes and types. A class that looks at values as well names the
    attribute that such operations have, `VALUES`."""
    before, _checked.found = _checked.found, set()
    try:
        yield
    finally:
        _checked.found = before


def _likeness(op: Op, operation: Op) -> Hashable | None:
    """What the check of an operation looks at, so that equal ones are checked once; None if it
    looks at values or regions, too."""
    attributes, values = operation.attributes, getattr(type(op), "VALUES", None)
    if len(operation.regions) or (values is not None and values in attributes):
        return None
    try:
        pairs = attributes.items()
    except TypeError:  # a location, which the bindings cannot hand out
        return None
    operands = [value.type for value in operation.operands]
    results = [value.type for value in operation.results]
    return (operation.name, len(operands), *pairs, *operands, *results)


def check_form(op: Op) -> None:
    """Operands and results are as many as the fields of the operation's class; no region.

    Groups of optional or repeated ones are checked by the operation itself.
    """
    operation = op.operation
    cls: Any = type(op)
    form = form_of(cls)
    for role, values, fields in (
        ("operands", operation.operands, form.operands),
        ("results", operation.results, form.results),
    ):
        if fields is not None and len(values) != len(fields):
            expected = f"{len(fields)} ({', '.join(fields)})" if fields else "none"
            raise Invalid(f"number of {role}", len(values), expected)
    require(len(operation.regions) == 0, "number of regions", len(operation.regions), "none")


@dataclass(frozen=True)
class OperationForm:
    """Names of the operands and results of a class of operations; None if their number is open."""

    operands: tuple[str, ...] | None
    results: tuple[str, ...] | None


@functools.cache
def form_of(cls: Any) -> OperationForm:
    """The form of a class of operations."""
    operands, _, results, _ = ext.partition_fields(cls._fields)
    return OperationForm(*(_names(fields) for fields in (operands, results)))


def _names(fields: Sequence[Any]) -> tuple[str, ...] | None:
    if any(field.variadicity != ext.Variadicity.single for field in fields):
        return None
    return tuple(field.name for field in fields)


def check_attributes(op: Op) -> None:
    """Attributes are those in the class's table `ATTRIBUTES`, if it has one.

    Others may be given only with a dialect's name before a dot.
    """
    table: dict[str, AttributeKind] | None = getattr(type(op), "ATTRIBUTES", None)
    if table is None:
        return
    for name in op.attributes:
        if name not in table and "." not in name:
            parts = [f"has no attribute {name!r}", did_you_mean(name, table)]
            raise Invalid("; ".join(filter(None, parts)))
    for name, kind in table.items():
        if name in op.attributes:
            value = attribute(op, name)
            require(kind.accepts(value), f"attribute {name}", repr(value), kind.expected)
        else:
            require(not kind.required, f"attribute {name} is missing", "", kind.expected)


@dataclass(frozen=True)
class AttributeKind:
    """What an attribute may be: in words, as a test of its Python value, and whether it must be."""

    expected: str
    accepts: Callable[[Any], bool]
    required: bool = True


FLAG = AttributeKind("a unit attribute", lambda value: isinstance(value, bool), required=False)
"""An attribute that is there or not; true and false are taken too."""


def one_of(*texts: str, required: bool = True) -> AttributeKind:
    """One of some strings."""
    expected = ", ".join(texts)
    return AttributeKind(expected, lambda v: isinstance(v, str) and v in texts, required)


def integer(minimum: int, maximum: int, required: bool = True) -> AttributeKind:
    """An integer between two others, both included."""

    def accepts(value: object) -> bool:
        return (
            isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum
        )

    return AttributeKind(f"{minimum}..{maximum}", accepts, required)


def integers(count: int, minimum: int, maximum: int, required: bool = True) -> AttributeKind:
    """So many integers between two others, both included."""

    def accepts(value: object) -> bool:
        return (
            isinstance(value, list)
            and len(value) == count
            and all(type(item) is int and minimum <= item <= maximum for item in value)
        )

    expected = f"array of {count} integers {minimum}..{maximum}"
    return AttributeKind(expected, accepts, required)


def attribute_of(op: Op, name: str) -> ir.Attribute | None:
    """The attribute of `op`, None where it is absent.

    Raises:
        Invalid: it is a location, which the bindings cannot hand out.
    """
    if name not in op.attributes:
        return None
    try:
        found: ir.Attribute = op.attributes[name]
        return found
    except TypeError:
        raise Invalid(f"attribute {name}", "a location", "a value") from None


def attribute(op: Op, name: str, default: Any = None) -> Any:
    """The Python value of an attribute of `op`, or `default` where it is absent.

    Integers, floats, booleans, strings and arrays of them become Python values; `array<i64: ..>`
    a list of ints; anything else is returned as the attribute itself.
    """
    found = attribute_of(op, name)
    return default if found is None else python_value(found)


def python_value(attr: ir.Attribute) -> Any:
    """An attribute as a Python value, see `attribute`."""
    if isinstance(attr, (ir.IntegerAttr, ir.FloatAttr, ir.BoolAttr, ir.StringAttr)):
        return attr.value
    if isinstance(attr, ir.UnitAttr):
        return True
    if isinstance(attr, (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseBoolArrayAttr)):
        return list(attr)
    if isinstance(attr, ir.ArrayAttr):
        return [python_value(item) for item in attr]
    if isinstance(attr, ir.DictAttr):
        return {item.name: python_value(item.attr) for item in attr}
    return attr


def as_attribute(value: Any) -> ir.Attribute:
    """A Python value as an attribute: bool -> unit or bool, int -> i64, [int] -> array<i64>, and so
    on; a dictionary has names as keys."""
    if isinstance(value, bool):
        return ir.UnitAttr.get() if value else ir.BoolAttr.get(False)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, int) for item in value):
            return ir.DenseI64ArrayAttr.get(list(value))
        return ir.ArrayAttr.get([as_attribute(item) for item in value])
    if isinstance(value, dict):
        return ir.DictAttr.get({key: as_attribute(item) for key, item in value.items()})
    attribute: ir.Attribute = value
    return attribute


def create(
    name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type] = (), /, **attributes: Any
) -> ir.Operation:
    """Builds the operation `name`; attribute values may be ints, strings, bools, lists or attrs.
    Attributes that are None are left out."""
    given = {key: as_attribute(value) for key, value in attributes.items() if value is not None}
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=given
    )
