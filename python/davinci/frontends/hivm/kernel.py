"""The kernels in a module of AscendNPU-IR, and what each takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from davinci.dialects.base import attribute
from davinci.errors import InputError
from davinci.mlir import Op, ir, symbol_name, type_text

PARTS = {"_mix_aic": "aic", "_mix_aiv": "aiv"}
"""Endings of the names of the two programs of a kernel, and the cores that they are for."""

ROLES = ("ffts_base_address", "sync_block_lock", "workspace")
"""Arguments that whoever launches a kernel adds."""

READ_ONLY, WRITE_ONLY = 0, 1
"""Of `tt.tensor_kind`: a kernel only loads from that argument, or only stores to it."""

WORKSPACE = "_infer_workspace_shape_function"
LOCKS = "_infer_sync_block_lock_num_function"

CORES = {"AIC": "aic", "AIV": "aiv"}
UNITS = {"aic": "cube", "aiv": "vector"}


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel.

    Attributes:
        name: of the caller's argument, where the text has it.
        role: one of `ROLES`, "" for arguments of the caller.
        element: the element type of a buffer in global memory, the type of a scalar.
        buffer: whether it is a buffer.
        written: whether the kernel may write to it.
        read: whether it may read from it.
    """

    name: str
    role: str
    element: str
    buffer: bool
    written: bool = False
    read: bool = False


@dataclass
class HivmKernel:
    """A kernel: one function, or one for the cube and one for the vector cores.

    Attributes:
        functions: by kind of core, "aic" and "aiv".
        workspace_bytes: that each block has for itself in global memory.
        locks: how many locks between blocks it has.
    """

    name: str
    arguments: tuple[Argument, ...]
    functions: dict[str, Any] = field(default_factory=dict)
    workspace_bytes: int = 0
    locks: int = 0

    @property
    def given(self) -> list[Argument]:
        """Arguments that callers give."""
        return [argument for argument in self.arguments if not argument.role]


def kernels_of(module: ir.Module) -> list[HivmKernel]:
    """The kernels of a module, in order.

    Raises:
        InputError: there are none.
    """
    found: dict[str, HivmKernel] = {}
    sizes: dict[str, int] = {}
    for view in module.body.operations:
        op = view.operation
        if op.name != "func.func" or not op.regions[0].blocks:
            continue
        name = symbol_name(op)
        core = core_of(op)
        if core is None:
            size = returned(op)
            if size is not None:
                sizes[name] = size
            continue
        stem = re.sub(f"({'|'.join(PARTS)})$", "", name)
        kernel = found.setdefault(stem, HivmKernel(stem, arguments_of(op)))
        kernel.functions[core] = op
    if not found:
        raise InputError(
            "no kernel in a module of AscendNPU-IR",
            expected="a function with hivm.func_core_type, AIC or AIV",
        )
    for name, kernel in found.items():
        kernel.workspace_bytes = sizes.get(name + WORKSPACE, 0)
        kernel.locks = sizes.get(name + LOCKS, 0)
    return list(found.values())


def core_of(op: Op) -> str | None:
    """The kind of core that a function is for; None for functions of the host."""
    kind = attribute(op, "hivm.func_core_type")
    if kind is None:
        return None
    matched = re.search(r"<(\w+)>$", str(kind))
    return CORES.get(matched.group(1)) if matched else None


def returned(op: Op) -> int | None:
    """The constant that a function of the host gives back, None if it is none."""
    (last,) = [view.operation for view in list(op.regions[0].blocks[0].operations)[-1:]]
    if last.name != "func.return" or len(last.operands) != 1:
        return None
    owner = last.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def arguments_of(op: Op) -> tuple[Argument, ...]:
    """What the arguments of a function are, by its types and attributes."""
    given = op.attributes.get("arg_attrs", None)
    found: list[Argument] = []
    for number, value in enumerate(op.regions[0].blocks[0].arguments):
        marks = {mark.name: mark.attr for mark in given[number]} if given is not None else {}
        role = ""
        if "hacc.arg_type" in marks:
            matched = re.search(r"<(\w+)>$", str(marks["hacc.arg_type"]))
            role = matched.group(1) if matched and matched.group(1) in ROLES else ""
        name = role if role else f"arg{len(found)}"
        buffer = isinstance(value.type, ir.MemRefType)
        element = type_text(ir.MemRefType(value.type).element_type if buffer else value.type)
        mark = marks.get("tt.tensor_kind")
        kind = None if mark is None else ir.IntegerAttr(mark).value
        written, read = buffer and kind != READ_ONLY, buffer and kind != WRITE_ONLY
        found.append(Argument(name, role, element, buffer, written, read))
    return tuple(found)
