"""What a module says of the program that a report is about: its kernels and its memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from davinci.dialects.base import attribute
from davinci.mlir import Op, function_type, ir, symbol_name


@dataclass(frozen=True)
class Kernel:
    """What the module says of a kernel.

    Attributes:
        op: the operator.
        unit: "cube", "vector" or "scalar".
        argument_bytes: of each buffer.
        label: operator, shape and element type in words: `matmul 128x768x768 f16`.
        schedule: how it is computed, `ascend.schedule`; empty where none was chosen.
        key, choices: under which a file of schedules has what was decided, and that as data.
        sync_merged, sync_degraded: flags that are not what they would be with more event ids:
            those that share one, and those that became barriers of all pipes.
        work: what the operator means, `ascend.work` of docs/architecture.md; empty for kernels
            written by hand, which mean what their instructions do.
    """

    op: str
    unit: str
    argument_bytes: tuple[int, ...] = ()
    label: str = ""
    work: Mapping[str, int] = field(default_factory=dict)
    schedule: str = ""
    key: str = ""
    choices: Sequence[Any] = ()
    sync_merged: int = 0
    sync_degraded: int = 0


@dataclass(frozen=True)
class ProgramFacts:
    """What the module says of the whole program.

    Attributes:
        kernels: by name, with the argument sizes of a launch.
        weights_bytes: constants in global memory.
        arena_bytes: intermediate values.
        arena_unplanned_bytes: what they would take if no two shared memory.
        scopes: of nodes of the model whose names do not tell theirs.
    """

    kernels: dict[str, Kernel]
    weights_bytes: int
    arena_bytes: int
    arena_unplanned_bytes: int
    scopes: Mapping[str, str] = field(default_factory=dict)


def describe(module: ir.Module) -> ProgramFacts:
    """Reads the facts of a report off a module whose kernels are outlined."""
    found: dict[str, Any] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    weights = arena = unplanned = 0

    def visit(view: Any) -> Any:
        nonlocal weights, arena, unplanned
        op = view.operation
        if op.name == "memref.global":
            weights += memref_bytes(ir.TypeAttr(op.attributes["type"]).value)
        elif op.name == "func.func" and "ascend.launch" in op.attributes:
            name = kernel_names(op.attributes["ascend.launch"])[0][-1]
            inputs = function_type(op).inputs
            sizes[name] = tuple(memref_bytes(argument) for argument in inputs)
        elif op.name in ("func.func", "llvm.func"):
            arena += attribute(op, "ascend.arena_bytes", 0)
            unplanned += attribute(op, "ascend.arena_unplanned_bytes", 0)
            if "ascend.kernel" in op.attributes:
                found[symbol_name(op)] = op
                return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    kernels = {name: kernel_of(op, name, sizes.get(name, ())) for name, op in found.items()}
    scopes = module.operation.attributes.get("ascend.scopes", ())
    texts = {item.name: ir.StringAttr(item.attr).value for item in scopes}
    return ProgramFacts(kernels, weights, arena, unplanned, texts)


def kernel_of(function: Op, name: str, argument_bytes: tuple[int, ...]) -> Kernel:
    """What the attributes of a kernel say."""
    work = function.attributes.get("ascend.work", ())
    return Kernel(
        attribute(function, "ascend.op", name),
        attribute(function, "ascend.unit", "vector"),
        argument_bytes,
        attribute(function, "ascend.label", ""),
        {item.name: ir.IntegerAttr(item.attr).value for item in work},
        attribute(function, "ascend.schedule", ""),
        attribute(function, "ascend.key", ""),
        attribute(function, "ascend.choices", ()),
        attribute(function, "cce.sync_merged", 0),
        attribute(function, "cce.sync_degraded", 0),
    )


def kernel_names(launch: ir.Attribute) -> list[list[str]]:
    """Symbol paths in an attribute `ascend.launch`: a kernel, or the ones of two kinds of cores."""
    parts = list(launch) if isinstance(launch, ir.ArrayAttr) else [launch]
    return [list(ir.SymbolRefAttr(part).value) for part in parts]


def memref_bytes(memref_type: Any) -> int:
    """Bytes of a memref with a static shape."""
    typed = ir.MemRefType(memref_type)
    element = typed.element_type
    width = 64 if isinstance(element, ir.IndexType) else element.width
    return int(math.prod(typed.shape)) * max(8, int(width)) // 8
