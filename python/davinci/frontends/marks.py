"""Checks of what text says by attributes: kernels, their launches, and arguments of the host.

MLIR's parser accepts anything by the name of `ascend.blocks` or `ascend.launch`, and passes and
runtime read them as what docs/architecture.md says they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from davinci.errors import InputError
from davinci.mlir import Op, ir, location_text
from davinci.narrow import NARROW

MOST_BLOCKS = 65535
"""Most blocks of a launch: what CANN's `SetBlockDim` takes."""

MOST_ARGUMENTS = 1 << 20
"""More arguments than a function has."""

INTEGERS = {
    "ascend.blocks": (1, MOST_BLOCKS),
    "ascend.arena_bytes": (0, 1 << 62),
    "ascend.arena_lower_bound_bytes": (0, 1 << 62),
    "ascend.arena_unplanned_bytes": (0, 1 << 62),
    "ascend.state": (0, MOST_ARGUMENTS),
    "cce.address": (0, 1 << 31),
}
"""Attributes that are integers: the least and the most."""

COUNTS = "ascend.work"
"""The attribute that is a dictionary of integers."""

SCOPES = "ascend.scopes"
"""The attribute that is a dictionary of strings."""

LISTS = ("ascend.operators", "hivm.locations")
"""Attributes that are arrays of strings."""

MEMBERS = ("ascend.members", "hivm.members")
"""Attributes that are arrays of arrays: of strings, of numbers."""

ARENA = "ascend.arena"
"""The attribute that has four integers for each value: offset, bytes, first and last launch."""

TEXTS = ("ascend.core", "ascend.element", "ascend.label", "ascend.name", "ascend.op", "ascend.unit")
"""Attributes that are strings."""

MARKS = {*INTEGERS, *TEXTS, *LISTS, *MEMBERS, ARENA, COUNTS, SCOPES, "ascend.launch"}
"""Names of the attributes that are checked."""

SYMBOLS = (ir.SymbolRefAttr, ir.FlatSymbolRefAttr)


def check_marks(module: ir.Module) -> None:
    """Checks the attributes that mark kernels, launches and the host's function.

    Raises:
        InputError: one has another kind or value than it can have, there are several functions to
            start with, or the host has a buffer that global memory cannot hold.
    """
    entries = []
    for op in _operations(module.operation):
        for name in MARKS.intersection(op.attributes):
            _check_attribute(name, _attribute(op, name), op)
        for kind in ("argument", "result"):
            key = f"{kind[:3]}_attrs"
            lists = op.attributes.get(key, []) if op.name == "func.func" else []
            for number, marks in enumerate(lists):
                for mark in marks:
                    if mark.name in MARKS:
                        _check_attribute(mark.name, mark.attr, op, f" of {kind} {number}")
        if op.name == "func.func" and "ascend.entry" in op.attributes:
            entries.append(op)
    if len(entries) > 1:
        _reject(entries[-1], "attribute ascend.entry", "two functions that have it", "one")
    for entry in entries:
        _check_host(entry)


def _operations(root: Op) -> Iterator[Any]:
    """`root` and all below it. Not `walk`, which does not let errors through."""
    pending = [root]
    while pending:
        op = pending.pop()
        yield op
        for region in op.regions:
            for block in region:
                pending += [view.operation for view in block.operations]


def _attribute(op: Op, name: str) -> Any:
    """The attribute; None if it is a location, which the bindings cannot hand out."""
    try:
        return op.attributes[name]
    except TypeError:
        return None


def _check_attribute(name: str, attr: ir.Attribute, op: Op, place: str = "") -> None:
    what = f"attribute {name}{place}"
    if name in INTEGERS:
        least, most = INTEGERS[name]
        if not isinstance(attr, ir.IntegerAttr) or not least <= attr.value <= most:
            _reject(op, what, str(attr), f"an integer, {least} to {most}")
    elif name in TEXTS and not isinstance(attr, ir.StringAttr):
        _reject(op, what, str(attr), "a string")
    elif name == "ascend.launch":
        parts = list(attr) if isinstance(attr, ir.ArrayAttr) else [attr]
        if not parts or not all(isinstance(part, SYMBOLS) for part in parts):
            _reject(op, what, str(attr), "a kernel, as in @kernels::@add, or an array of kernels")
    elif name == COUNTS:
        numbers = [item.attr for item in attr] if isinstance(attr, ir.DictAttr) else [None]
        if not all(isinstance(x, ir.IntegerAttr) and 0 <= x.value < 1 << 62 for x in numbers):
            _reject(op, what, str(attr), "a dictionary of integers, 0 or more")
    elif name == ARENA:
        places = list(attr) if isinstance(attr, ir.DenseI64ArrayAttr) else [-1]
        if len(places) % 4 or any(number < 0 for number in places):
            _reject(op, what, str(attr), "array<i64: ..> of 4 integers, 0 or more, for each value")
    elif name == SCOPES:
        texts = [item.attr for item in attr] if isinstance(attr, ir.DictAttr) else [None]
        if not all(isinstance(text, ir.StringAttr) for text in texts):
            _reject(op, what, str(attr), "a dictionary of strings")
    elif name in LISTS and not (
        isinstance(attr, ir.ArrayAttr) and all(isinstance(part, ir.StringAttr) for part in attr)
    ):
        _reject(op, what, str(attr), "an array of strings")
    elif name in MEMBERS and not (
        isinstance(attr, ir.ArrayAttr) and all(map(_is_list_of_members, attr))
    ):
        _reject(op, what, str(attr), "an array of arrays of strings or integers")


def _is_list_of_members(attr: ir.Attribute) -> bool:
    if isinstance(attr, ir.DenseI64ArrayAttr):
        return all(number >= 0 for number in attr)
    return isinstance(attr, ir.ArrayAttr) and all(isinstance(x, ir.StringAttr) for x in attr)


def _check_host(entry: Any) -> None:
    """Arguments and buffers of the host are dense and of known size."""
    if not entry.regions[0].blocks:
        return
    block = entry.regions[0].blocks[0]
    attributes = entry.attributes.get("arg_attrs", [])
    for number, argument in enumerate(block.arguments):
        if not isinstance(argument.type, ir.MemRefType):
            _reject(entry, f"argument {number}", str(argument.type), "a memref")
        _check_buffer(argument.type, entry, f"argument {number}")
        names = {m.name: m.attr for m in attributes[number]} if number < len(attributes) else {}
        element = argument.type.element_type
        if "ascend.element" in names:
            kind = NARROW.get(ir.StringAttr(names["ascend.element"]).value)
            if kind is None or kind.stored.removeprefix("u") != str(element):
                found = f"{names['ascend.element']} in {element}"
                _reject(entry, f"argument {number}", found, ", ".join(NARROW))
        for mark, fits in (
            ("ascend.boolean", str(element) == "i8"),
            ("ascend.unsigned", isinstance(element, ir.IntegerType)),
        ):
            if mark in names and not fits:
                _reject(entry, f"argument {number}", f"{mark} of {element}", "integers (i8)")
    for view in block.operations:
        if view.operation.name == "memref.alloc":
            _check_buffer(view.operation.results[0].type, view.operation, "the buffer")


def _check_buffer(kind: Any, op: Op, what: str) -> None:
    element = kind.element_type
    dense = kind.has_static_shape and kind.memory_space is None
    if (
        not dense
        or kind.affine_map != ir.AffineMap.get_identity(kind.rank, kind.context)
        or not isinstance(element, (ir.IntegerType, ir.FloatType))
    ):
        _reject(op, what, str(kind), "a static shape without strides, of numbers, in global memory")


def _reject(op: Op, what: str, found: str, expected: str) -> None:
    place = location_text(op.location)
    raise InputError(f"'{op.name}' op {what}", where=place, found=found, expected=expected)
