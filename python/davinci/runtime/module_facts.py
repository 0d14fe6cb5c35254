"""What the host reads off a module: symbols, types of arguments, its code without values."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from davinci.elements import dtype_of, to_array
from davinci.errors import CompileError
from davinci.mlir import Op, ir
from davinci.narrow import NARROW
from davinci.runtime.arguments import Array, Spec

INITIAL = "ascend.initial"
"""Attribute of a module: the values that its states have before the first step, by name."""

WORD = (1 << 64) - 1
"""All bits of a word."""


def scalar_bits(array: Array) -> int:
    """A scalar as the word that a kernel takes: an integer with its sign, the bits of a float."""
    if array.dtype.kind == "f":
        return int.from_bytes(array.tobytes(), "little")
    return int(array) & WORD


def scalar_dtype(name: str, kind: ir.Type) -> np.dtype[Any]:
    """The element type of a scalar argument."""
    try:
        found: np.dtype[Any] = dtype_of(kind)
    except KeyError:
        raise CompileError(
            "a scalar argument has a type that the host does not know",
            where=f"argument {name!r}",
            found=str(kind),
        ) from None
    return found


def initial_of(module: Op) -> dict[str, Array]:
    """What states hold at first, by name, as a module says it."""
    if INITIAL not in module.attributes:
        return {}
    return {mark.name: to_array(mark.attr) for mark in ir.DictAttr(module.attributes[INITIAL])}


def code_of(module: Op) -> bytes:
    """A module operation as bytecode, its constants without their values."""
    code = module.clone()
    for op in symbols(code).values():
        if op.name == "memref.global":
            op.attributes["initial_value"] = ir.UnitAttr.get()
    stream = io.BytesIO()
    code.write_bytecode(stream)
    return stream.getvalue()


def symbols(module: Op) -> dict[str, Any]:
    """Operations directly inside a module by symbol name."""
    return {
        ir.StringAttr(view.operation.attributes["sym_name"]).value: view.operation
        for view in module.regions[0].blocks[0].operations
        if "sym_name" in view.operation.attributes
    }


def spec_of(name: str, memref_type: ir.MemRefType, marks: Mapping[str, Any]) -> Spec:
    """The specification of an argument; booleans are bytes in GM, unsigned integers signless."""
    typed = ir.MemRefType(memref_type)
    try:
        dtype = dtype_of(typed.element_type)
    except KeyError:
        raise CompileError(
            "an argument has a type that arrays cannot have",
            where=f"argument {name!r}",
            found=str(memref_type),
        ) from None
    if "ascend.boolean" in marks:
        dtype = np.dtype(np.bool_)
    elif "ascend.unsigned" in marks:
        dtype = np.dtype(f"u{dtype.name}")
    if "ascend.element" in marks:
        dtype = NARROW[ir.StringAttr(marks["ascend.element"]).value].dtype
    return Spec(name, tuple(typed.shape), dtype)
