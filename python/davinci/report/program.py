"""Facts that a module's attributes hold about its program: its kernels and its memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from davinci.dialects.base import attribute
from davinci.mlir import Op, function_type, ir, symbol_name


@dataclass(frozen=True)
class Kernel:
    """A kernel as the module's attributes describe it.

    Attributes:
        op: the operator.
        unit: "cube", "vector" or "scalar".
        argument_bytes: of each buffer.
        label: operator, shape and element type in words: `matmul 128x768x768 f16`.
        schedule: how it is computed, `ascend.schedule`; empty where none was chosen.
        key, choices: under which a file of schedules has what was decided, and that as data.
        phases: the same of each kernel that became a phase of this one.
        sync_merged, sync_degraded: flags that are not what they would be with more event ids:
            those that share one, and those that became barriers of all pipes.
        work: what the operator means, `ascend.work` of docs/architecture.md; empty for kernels
            written by hand, which mean what their instructions do.
        useful_cores: that would have work, where fewer were chosen because of what a launch on
            more takes; 0 elsewhere.
        members: operators of the kernel by number; empty for kernels written by hand.
        served: by the number of a location (`Row.place`), the numbers of the operators that
            instructions with this location serve.
    """

    op: str
    unit: str
    argument_bytes: tuple[int, ...] = ()
    label: str = ""
    work: Mapping[str, int] = field(default_factory=dict)
    schedule: str = ""
    key: str = ""
    choices: Sequence[Any] = ()
    phases: Sequence[Mapping[str, Any]] = ()
    sync_merged: int = 0
    sync_degraded: int = 0
    useful_cores: int = 0
    members: tuple[Member, ...] = ()
    served: Sequence[Sequence[int]] = ()

    @property
    def decided(self) -> list[tuple[str, Sequence[Any]]]:
        """What was decided, by the keys under which a file of schedules has it."""
        known = [(self.key, self.choices), *((x["key"], x["choices"]) for x in self.phases)]
        return [(key, choices) for key, choices in known if choices]


@dataclass(frozen=True)
class Member:
    """An operator of a kernel, and the nodes of the model that it computes in the first launch."""

    op: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramFacts:
    """The whole program as the module's attributes describe it.

    Attributes:
        kernels: by name, with the argument sizes of a launch.
        weights_bytes: constants in global memory.
        arena_bytes: intermediate values.
        arena_unplanned_bytes: what they would take if no two shared memory.
        arena_lower_bound_bytes: the most of them that are live at once.
        scopes: of nodes of the model whose names do not tell theirs.
        arena: the values in it, in the order in which they are made.
        arena_limit_bytes: most bytes that were allowed, 0 for no limit.
        arena_remedies: what was tried to stay within the limit; the last one is what was done.
        plans: that were compared, the taken one last; none where every kernel waits for another.
    """

    kernels: dict[str, Kernel]
    weights_bytes: int
    arena_bytes: int
    arena_unplanned_bytes: int
    arena_lower_bound_bytes: int = 0
    scopes: Mapping[str, str] = field(default_factory=dict)
    arena: tuple[ArenaValue, ...] = ()
    arena_limit_bytes: int = 0
    arena_remedies: tuple[str, ...] = ()
    plans: tuple[PlanPoint, ...] = ()


@dataclass(frozen=True)
class PlanPoint:
    """A plan of which kernels share a launch, as it is estimated when it is compiled.

    Attributes:
        name: as `--plan` has it.
        launches: that it takes.
        arena_bytes: that values take with it.
        more_cycles: that it takes longer than the plan that was taken, with launches.
    """

    name: str
    launches: int
    arena_bytes: int
    more_cycles: int


@dataclass(frozen=True)
class ArenaValue:
    """A value in the arena.

    Attributes:
        offset, size: in bytes.
        first, last: numbers of the launch that makes it, or its first part, and of the last one
            that reads it.
        buffer: a number that pieces of one buffer share; they are given back one by one.
        writers: numbers of the launches that write into it behind the first one: other parts of
            it, or results that take its bytes.
        weights: whether no launch makes it, but the host brings it from the launch `first` on.
    """

    offset: int
    size: int
    first: int
    last: int
    buffer: int = 0
    writers: tuple[int, ...] = ()
    weights: bool = False


NO_FACTS = ProgramFacts({}, 0, 0, 0)
"""The facts of a program of which only the launches are known."""


def arena_values(
    places: Sequence[int], buffers: Sequence[Sequence[int]], weights: Collection[int]
) -> Iterator[ArenaValue]:
    """Yields the values of `ascend.arena` and `ascend.arena_buffers`; without these, each is a
    buffer of its own. `weights` are `ascend.arena_weights`."""
    for number in range(len(places) // 4):
        offset, size, first, last = places[4 * number : 4 * number + 4]
        buffer, *writers = buffers[number] if buffers else [number]
        yield ArenaValue(offset, size, first, last, buffer, tuple(writers), buffer in weights)


def describe(module: ir.Module) -> ProgramFacts:
    """Reads the facts of a report off a module whose kernels are outlined."""
    found: dict[str, Any] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    served: dict[str, Sequence[Sequence[int]]] = {}
    of_module: Sequence[Sequence[int]] = ()
    places: list[int] = []
    buffers: list[Sequence[int]] = []
    streamed: set[int] = set()
    weights = arena = unplanned = bound = limit = 0
    remedies: list[str] = []
    plans: list[PlanPoint] = []

    def visit(view: Any) -> Any:
        nonlocal weights, arena, unplanned, bound, limit, of_module
        op = view.operation
        if op.name == "builtin.module":
            of_module = attribute(op, "hivm.members", ())
        elif op.name == "memref.global":
            weights += memref_bytes(ir.TypeAttr(op.attributes["type"]).value)
        elif op.name == "func.func" and "ascend.launch" in op.attributes:
            name = kernel_names(op.attributes["ascend.launch"])[0][-1]
            inputs = function_type(op).inputs
            sizes[name] = tuple(memref_bytes(argument) for argument in inputs)
        elif op.name in ("func.func", "llvm.func"):
            arena += attribute(op, "ascend.arena_bytes", 0)
            unplanned += attribute(op, "ascend.arena_unplanned_bytes", 0)
            bound += attribute(op, "ascend.arena_lower_bound_bytes", 0)
            places.extend(attribute(op, "ascend.arena", ()))
            buffers.extend(attribute(op, "ascend.arena_buffers", ()))
            streamed.update(attribute(op, "ascend.arena_weights", ()))
            limit += attribute(op, "ascend.arena_limit_bytes", 0)
            remedies.extend(attribute(op, "ascend.arena_remedies", ()))
            plans.extend(PlanPoint(*point) for point in attribute(op, "ascend.plans", ()))
            if "ascend.kernel" in op.attributes:
                found[symbol_name(op)] = op
                served[symbol_name(op)] = of_module
                return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    kernels = {
        name: kernel_of(op, name, sizes.get(name, ()), served[name]) for name, op in found.items()
    }
    scopes = module.operation.attributes.get("ascend.scopes", ())
    texts = {item.name: ir.StringAttr(item.attr).value for item in scopes}
    values = tuple(arena_values(places, buffers, streamed))
    sizes_of_arena = (arena, unplanned, bound)
    return ProgramFacts(
        kernels, weights, *sizes_of_arena, texts, values, limit, tuple(remedies), tuple(plans)
    )


def kernel_of(
    function: Op, name: str, argument_bytes: tuple[int, ...], served: Sequence[Sequence[int]]
) -> Kernel:
    """Reads the attributes of a kernel.

    Args:
        served: `hivm.members` of its module.
    """
    work = function.attributes.get("ascend.work", ())
    members = attribute(function, "ascend.members", ())
    return Kernel(
        attribute(function, "ascend.op", name),
        attribute(function, "ascend.unit", "vector"),
        argument_bytes,
        attribute(function, "ascend.label", ""),
        {item.name: ir.IntegerAttr(item.attr).value for item in work},
        attribute(function, "ascend.schedule", ""),
        attribute(function, "ascend.key", ""),
        attribute(function, "ascend.choices", ()),
        attribute(function, "ascend.phases", ()),
        attribute(function, "cce.sync_merged", 0),
        attribute(function, "cce.sync_degraded", 0),
        attribute(function, "ascend.useful_cores", 0),
        tuple(Member(op, tuple(nodes)) for op, *nodes in members),
        served,
    )


def kernel_names(launch: ir.Attribute) -> list[list[str]]:
    """Symbol paths in an attribute `ascend.launch`: a kernel, or the ones of two kinds of cores."""
    parts = list(launch) if isinstance(launch, ir.ArrayAttr) else [launch]
    return [list(ir.SymbolRefAttr(part).value) for part in parts]


def memref_bytes(memref_type: Any) -> int:
    """Bytes of a memref with a static shape; a scalar is in no memory."""
    if not isinstance(memref_type, ir.MemRefType):
        return 0
    typed = ir.MemRefType(memref_type)
    element = typed.element_type
    width = 64 if isinstance(element, ir.IndexType) else element.width
    return int(math.prod(typed.shape)) * max(8, int(width)) // 8
